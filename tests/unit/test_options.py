"""Options of the verbs: one word, one thing."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from cohort import host
from cohort.cli import cohort
from cohort.errors import Failed
from cohort.run_check import check_run
from cohort.run_spec import RunSpec
from cohort.verbs.run import show
from tests_support import Outcome


def verbs(command: click.Command = cohort, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """All verbs, and those of the groups among them, by what is typed."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            assert inner is not None
            yield from verbs(inner, f"{name} {word}".strip())


def words() -> Iterator[tuple[str, str, click.Option]]:
    """Every word of an option with its verb."""
    for verb, command in verbs():
        for option in command.params:
            if isinstance(option, click.Option):
                yield from ((word, verb, option) for word in option.opts)


SECOND = {("kernel patch", "--check"), ("kernel patch", "--report")}
"""Second names of an option, which other verbs have for something else: those that were asked for
when the option was made."""


def test_a_word_is_the_same_option_on_every_verb() -> None:
    kinds: dict[str, set[tuple[object, ...]]] = {}
    for word, verb, option in words():
        if (verb, word) in SECOND:
            assert option.opts[0] != word
            continue
        kind = (option.name, type(option.type), option.is_flag, option.multiple)
        kinds.setdefault(word, set()).add(kind)
    assert {word: found for word, found in kinds.items() if len(found) > 1} == {}


@pytest.mark.parametrize("word", ["--check", "--report", "--root"])
def test_a_word_that_had_two_meanings_is_of_one_verb(word: str) -> None:
    found = {verb for known, verb, _ in words() if known == word and (verb, word) not in SECOND}
    assert len(found) == 1


def test_an_option_has_the_same_word_on_every_verb() -> None:
    """By what the verb's function calls it."""
    spelt: dict[str | None, set[tuple[str, ...]]] = {}
    for _, _, option in words():
        spelt.setdefault(option.name, set()).add(tuple(option.opts))
    assert {name: found for name, found in spelt.items() if len(found) > 1} == {}


def test_a_run_is_shown_with_what_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    """Two of three metrics are of other workloads: what is here would be lost among them."""
    meta = {"policy": "none", "workload": "phone-2g", "seed": 1, "accel": "tcg"}
    metrics = {"camera_busy": None, "kills": 3, "ui_order4": 0.25, "fio_s": None}
    run = SimpleNamespace(meta=meta, metrics=metrics, path=Path("/out/runs/x"))
    show([run], as_json=False)
    assert [line.split() for line in capsys.readouterr().out.splitlines()][1:] == [
        ["kills", "3"],
        ["ui_order4", "0.250"],
        ["2", "other", "metrics", "have", "no", "value"],
        ["in", "/out/runs/x"],
    ]
    show([run], as_json=True)
    assert json.loads(capsys.readouterr().out)[0]["metrics"] == metrics


def test_json_has_no_number_that_is_none(tmp_path: Path) -> None:
    """What reads it may be no Python."""
    run = SimpleNamespace(meta={}, metrics={"kills": float("nan")}, path=tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        show([run], as_json=True)
    with pytest.raises(ValueError, match="JSON"):
        host.write_json(tmp_path / "x.json", {"kills": float("inf")})
    assert list(tmp_path.iterdir()) == []


def test_json_is_told_for_what_it_is() -> None:
    """Some verbs print an array."""
    said = {verb: option.help or "" for word, verb, option in words() if word == "--json"}
    arrays = {verb for verb, help in said.items() if "an array" in help}
    of_results = {"results", *(f"results {x}" for x in ("add", "again", "changed"))}
    assert arrays == {"run", "study", *of_results}
    assert all("one object" in said[verb] for verb in said.keys() - arrays | {"study"})


MAKE_RUNS = ("run", "compare", "study", "scale", "tune")


@pytest.mark.parametrize("verb", MAKE_RUNS)
def test_verbs_that_make_runs_have_the_same_options(verb: str) -> None:
    known = {word for word, name, _ in words() if name == verb}
    assert known >= {"--launches", "--jobs", "--fresh", "--json", "--arch", "--cluster"}


def test_all_that_can_run_elsewhere_run_on_a_cluster() -> None:
    assert {name for word, name, _ in words() if word == "--cluster"} == {
        *MAKE_RUNS,
        "suite",
        "results again",
    }


ALONE = {
    **dict.fromkeys(("run", "compare", "scale"), ("none",)),
    **{"study": ("cpb-fig3a",), "tune": ("pcpa",), "suite": ("fio",)},
    **{"results again": ("headline",)},
}


@pytest.mark.parametrize("verb", ALONE)
def test_a_share_of_a_clusters_runs_is_refused_without_one(
    verb: str, own_out: Path, cohort: Callable[..., Outcome]
) -> None:
    done = cohort(*verb.split(), *ALONE[verb], "--verify-share", "0.5")
    assert (done.code, "--verify-share is of a cluster's runs" in done.stderr) == (2, True)
    assert {name for word, name, _ in words() if word == "--verify-share"} == set(ALONE)


@pytest.mark.parametrize("word", ["--dry-run", "--compile"])
def test_what_only_counts_lists_no_hunks(word: str, cohort: Callable[..., Outcome]) -> None:
    done = cohort("kernel", "patch", "--frozen", word)
    assert (done.code, f"{word} does not go with --frozen" in done.stderr) == (2, True)


def test_a_file_that_would_be_below_a_file_is_refused(
    tmp_path: Path, cohort: Callable[..., Outcome]
) -> None:
    (tmp_path / "page").touch()
    done = cohort("compare", "none", "region", "--report", tmp_path / "page" / "x.html")
    assert (done.code, "is no directory" in done.stderr) == (2, True), done.stderr


def test_a_suite_takes_a_policy_once(cohort: Callable[..., Outcome]) -> None:
    done = cohort("suite", "fio", "--policies", "none,none")
    assert (done.code, "policies of the same name: none, none" in done.stderr) == (2, True)


def test_a_tree_is_asked_for_alike_on_every_verb_that_makes_runs() -> None:
    said = {verb: option.help for word, verb, option in words() if word == "--tree"}
    assert {said.pop(verb) for verb in (*MAKE_RUNS, "suite")} == {
        "Another kernel tree, patched [default: the fetched one]."
    }
    assert all(verb.startswith("kernel ") for verb in said)


@pytest.mark.parametrize("option", ["--arch", "--page-size"])
def test_all_that_boot_a_guest_have_all_machines(option: str) -> None:
    assert {name for word, name, _ in words() if word == option} == {*MAKE_RUNS, "suite"}


ONLY_LIST = ["--strict", "--fresh", "--one-commit"]
ONLY_LIST += ["--cluster tcp://a:1", "--seeds 1", "--run x", "--launches 2", "--accel tcg"]
ONLY_LIST += ["--jobs 1", "--arch x86_64", "--tree x"]


@pytest.mark.parametrize("given", ONLY_LIST)
def test_a_list_of_studies_takes_no_option_of_runs(
    given: str, cohort: Callable[..., Outcome]
) -> None:
    done = cohort("study", "--list", *given.split())
    assert (done.code, done.stdout) == (2, "")
    word = given.split()[0].replace("--seeds", "--seed")
    assert f"{word} does not go with --list, which makes no run\nhint: " in done.stderr


def test_json_of_a_comparison_is_full(own_out: Path, cohort: Callable[..., Outcome]) -> None:
    done = cohort("compare", "none", "--full", "--json")
    assert (done.code, "--json has every metric\nhint: leave it out" in done.stderr) == (2, True)
    assert not (own_out / "kernel").exists()


class Scheduler:
    """In place of a cluster: where no run is made."""

    def __init__(self, address: str, share: float) -> None:
        pass

    def __enter__(self) -> None:
        raise Failed("stopped here")

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run none --accel tcg", True),
        ("compare none --accel kvm", True),
        ("tune pcpa --accel auto", True),
        ("study pcpa-fig7 --accel tcg", True),
        ("study pcpa-fig7", False),
        ("scale none --free-running", True),
        ("scale none", False),
        ("suite fio", True),
        ("suite adversaries", False),
        ("run none", False),
        ("run none --accel tcg --verify-share 0", False),
    ],
)
def test_a_share_of_runs_that_do_not_repeat_is_told(
    words: str,
    told: bool,
    own_out: Path,
    cohort: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing can be said of such a run that is made twice."""
    monkeypatch.setattr("cohort.cluster.engine.Cluster", Scheduler)
    share = "" if "share" in words else "--verify-share 0.5"
    done = cohort(*f"{words} --cluster tcp://a:1 {share}".split())
    assert (done.code, "stopped here" in done.stderr) == (1, True)
    assert done.stderr.count("no run is made twice") == told


@pytest.mark.usefixtures("own_out")
def test_a_number_of_the_workload_is_changed_for_a_run(
    cohort: Callable[..., Outcome], asked: list[RunSpec]
) -> None:
    """As it is, a report's map of memory has a stop for every eighth of a run."""
    words = ("--change", "maps.count=400", "--change", "lmkd.poll_ms=50")
    for verb in (("run", "none"), ("compare", "none")):
        assert cohort(*verb, *words).code == 1
    assert [x.change for x in asked] == [(("lmkd.poll_ms", 50), ("maps.count", 400))] * 2
    assert "\nset maps 400\n" in check_run(asked[0]).conf
    for word, said in (
        ("maps.count", "--change maps.count: not KEY=NUMBER"),
        ("maps.count=some", "--change maps.count=some: not KEY=NUMBER"),
        ("maps.count=9", "--change maps.count= is there twice, 400 and 9"),
        ("=5", "--change =5: not KEY=NUMBER"),
    ):
        refused = cohort("run", "none", *words, "--change", word)
        assert refused.code == 2
        assert said in refused.stderr


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("maps.no=1", "maps.no: there is no such number to change"),
        (
            "maps.count=-1",
            "with maps.count=-1: maps.count.value: Input should be greater than or equal to 0",
        ),
        ("machine.memory_mb=99999999", "value: Input should be less than or equal to 1048576"),
        ("machine.image_mb=99999999", "value: Input should be less than or equal to 65536"),
        ("category.browser.trim_pct=101", "value: Input should be less than or equal to 100"),
    ],
)
def test_a_change_is_as_the_file_may_be(
    word: str, said: str, own_out: Path, cohort: Callable[..., Outcome]
) -> None:
    refused = cohort("run", "none", "--change", word)
    assert refused.code == 2
    assert said in refused.stderr
    assert not (own_out / "kernel").exists()
