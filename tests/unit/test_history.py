"""The history of a short run: commits in their order, and a newest one that is worse."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import paths
from cohort.errors import Failed, UsageError
from cohort.results import bounds, history
from cohort.results.bounds import Bound, Rule
from cohort.results.figures import Figures, plain
from cohort.results.records import Record, read_set, write_set
from cohort.results.spread import Spread
from tests_support import Outcome

HISTORY_MD = paths.ROOT / "docs" / "templates" / "results" / "history.md"
BOUNDS = {
    "kills": Bound(1.1, Spread(3, 100, 98, 103)),
    "resume_share": Bound(1.1, Spread(3, 0.4, 0.39, 0.41)),
}
RULE = """\
set = "headline"
label = "region"
factor = 2.0
metrics = ["kills"]
"""


def run(
    commit: str, label: str, seed: int = 1, kills: int | None = 100, resume_share: float = 0.4
) -> Record:
    """A run of 200 launches; without kills that are None."""
    known = {"kills": kills, "resume_share": resume_share}
    names = (
        *("command", "tree_id", "kernel_id", "guest_id", "workload_digest", "policy_id"),
        *("kernel", "qemu", "gcc", "records_id"),
    )
    return Record(
        label=label,
        policy=label,
        seed=seed,
        workload="phone-2g",
        launches=200,
        memory_mb=2048,
        cpus=2,
        page_size=4096,
        accel="deterministic",
        commit=commit,
        metrics={name: value for name, value in known.items() if value is not None},
        **dict.fromkeys(names, "x"),
    )


def both(commit: str, kills: int = 100, resume_share: float = 0.4) -> list[Record]:
    """The two runs of a commit; what is said is of region."""
    return [
        run(commit, "none"),
        run(commit, "region", kills=kills, resume_share=resume_share),
    ]


def test_commits_stay_in_their_order_and_one_that_is_made_again_goes_to_the_end(
    tmp_path: Path,
) -> None:
    path = tmp_path / "records" / "history.jsonl"
    for commit in ("a", "b", "c", "a"):
        history.add(path, both(commit))
    assert history.commits(read_set(path)) == ["b", "c", "a"]
    assert len(read_set(path)) == 6


def test_a_record_may_have_what_unicode_calls_the_end_of_a_line(tmp_path: Path) -> None:
    odd = [x.model_copy(update={"command": "a\u2028b\x85c"}) for x in both("a")]
    history.add(tmp_path / "history.jsonl", odd)
    assert read_set(tmp_path / "history.jsonl") == odd


@pytest.mark.parametrize(
    "runs",
    [
        [run("a", "none")],
        [run("a", "none"), run("a", "region", seed=2)],
        [run("a", "none"), run("a", "tuned")],
        [x.model_copy(update={"launches": 400}) for x in both("a")],
        [x.model_copy(update={"accel": "tcg"}) for x in both("a")],
    ],
)
def test_other_runs_are_none_of_the_history(runs: list[Record], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--launches 200"):
        history.add(tmp_path / "history.jsonl", runs)
    assert list(tmp_path.iterdir()) == []


def test_a_commit_that_is_worse_than_the_last_is_told() -> None:
    records = [*both("a"), *both("b", kills=105, resume_share=0.38)]
    assert history.losses(records, BOUNDS) == []
    records += both("c", kills=120, resume_share=0.3)
    assert history.losses(records, BOUNDS) == [
        "history: kills, seed 1: 120 (1.200 x none) on c, 105 (1.050 x none) on b: "
        "1.143 times worse, at most 1.100 (over 3 seeds it varies by 5.0%)",
        "history: resume_share, seed 1: 0.300 (0.750 x none) on c, 0.380 (0.950 x none) on b: "
        "1.267 times worse, at most 1.100 (over 3 seeds it varies by 5.0%)",
    ]
    assert history.losses([*records, *both("d", kills=121)], BOUNDS) == []


def test_what_was_none_at_all_is_a_loss_as_well() -> None:
    never, some, lost = both("a", kills=0), both("b", kills=1), both("c", kills=1, resume_share=0)
    assert history.losses([*never, *both("x", kills=0)], BOUNDS) == []
    assert "kills, seed 1: 1 (0.010 x none) on b, 0 (0.000 x none) on a: inf times worse" in str(
        history.losses([*never, *some], BOUNDS)
    )
    assert "resume_share, seed 1: 0.000 (0.000 x none) on c" in str(
        history.losses([*some, *lost], BOUNDS)
    )
    assert history.losses([*some, *both("d", kills=0)], BOUNDS) == []


def test_what_changes_for_both_is_no_loss() -> None:
    records = [*both("a"), run("b", "none", kills=200), run("b", "region", kills=200)]
    assert history.losses(records, BOUNDS) == []


def test_what_only_none_has_better_is_no_loss() -> None:
    """It varies by chance, and by itself `region` is as it was."""
    records = [*both("a"), run("b", "none", kills=60), run("b", "region", kills=101)]
    assert history.losses(records, BOUNDS) == []


def test_where_none_has_nothing_to_divide_by_regions_are_judged_by_themselves() -> None:
    records = [*both("a"), run("b", "none", kills=0), run("b", "region", kills=300)]
    (said,) = history.losses(records, BOUNDS)
    assert said.startswith("history: kills, seed 1: 300 on b, 100 (1.000 x none) on a: 3.000 times")
    alike = [*both("a"), run("b", "none", kills=0), run("b", "region", kills=101)]
    assert history.losses(alike, BOUNDS) == []


def test_a_metric_that_is_gone_is_lost() -> None:
    """As where a buffer fails at every try, and no time of finding one is left."""
    gone = [run("b", "none"), run("b", "region", kills=None)]
    said = ["history: kills, seed 1: nothing on b, 100 (1.000 x none) on a"]
    assert history.losses([*both("a"), *gone], BOUNDS) == said
    assert history.losses([*both("a"), *gone, *both("c")], BOUNDS) == []


def test_the_newest_is_first_on_the_page() -> None:
    figures = Figures()
    text = plain(history.table([*both("a"), *both("b", kills=50)], BOUNDS, figures))
    assert [line.split(" | ")[0] for line in text.splitlines()[2:]] == ["| b", "| a"]
    assert "| b | 50 (0.500) | 0.400 (1.000) |" in text
    assert {figure.table for figure in figures.all} == {"history"}


def test_a_run_is_compared_with_the_one_of_the_same_seed() -> None:
    """Medians would be alike here."""
    before = [run("a", policy, seed) for policy in ("none", "region") for seed in (1, 2, 3)]
    kills = {1: 80, 2: 100, 3: 120}
    now = [run("b", "none", seed) for seed in kills]
    now += [run("b", "region", seed, kills=count) for seed, count in kills.items()]
    (said,) = history.losses([*before, *now], BOUNDS)
    assert said.startswith(
        "history: kills, seed 3: 120 (1.200 x none) on b, 100 (1.000 x none) on a"
    )
    one = [x for x in now if x.seed == 1]
    assert history.losses([*before, *one], BOUNDS) == []


def test_commits_without_a_common_seed_are_told() -> None:
    other = [run("b", policy, seed=2) for policy in ("none", "region")]
    said = ["history: b and a have no seed in common to be compared by"]
    assert history.losses([*both("a"), *other], BOUNDS) == said


def headline(home: Path, kills: dict[int, int]) -> Path:
    """A set with runs of `region` and of another policy, by seed; `home`."""
    records = [run("z", "region", seed, kills=count) for seed, count in kills.items()]
    write_set(home / "headline.jsonl", [*records, run("z", "none", kills=1000)])
    return home


def test_a_bound_is_twice_the_range_over_the_seeds(tmp_path: Path) -> None:
    home = headline(tmp_path, {1: 220, 2: 219, 3: 230})
    rule = Rule(set="headline", label="region", factor=2.0, metrics=["kills"])
    found = bounds.measure(rule, home)
    assert found["kills"].measured == Spread(3, 220, 219, 230)
    assert found["kills"].most == pytest.approx(1 + 2 * 11 / 220)
    figures = Figures()
    text = plain(bounds.table(rule, found, figures))
    assert text.splitlines()[-1] == "| apps killed | 220 | 219 to 230 | 5.00% | 1.100 |"
    assert {figure.table for figure in figures.all} == {"headline"}


@pytest.mark.parametrize(
    ("kills", "said"),
    [
        ({1: 1, 2: 2}, "2 seeds of region, and a bound is of 3 at least"),
        ({1: 0, 2: 0, 3: 0}, "kills of region has no range to go by"),
    ],
)
def test_runs_that_say_too_little_make_no_bound(
    kills: dict[int, int], said: str, tmp_path: Path
) -> None:
    rule = Rule(set="headline", label="region", factor=2.0, metrics=["kills"])
    with pytest.raises(Failed, match=said):
        bounds.measure(rule, headline(tmp_path, kills))
    short = Rule(set="headline", label="region", factor=2.0, metrics=["refaults"])
    with pytest.raises(Failed):
        bounds.measure(short, headline(tmp_path, {1: 1, 2: 2, 3: 3}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RULE.replace("2.0", "0.0"), "history.toml:3: factor: .* greater than 0"),
        (RULE.replace("label", "#"), "label"),
        (RULE.replace("kills", "killz"), "history.toml:4: metrics: there is no metric killz"),
        (RULE.replace('["kills"]', '["kills", "kills"]'), "one is named twice"),
        ("kills", "history.toml"),
    ],
)
def test_a_rule_that_is_none(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "history.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        bounds.read_rule(path)


def test_the_bounds_of_the_repository_are_of_its_records() -> None:
    """Of three seeds at least, and each leaves room for chance: the most has UI(4), a share of next
    to nothing."""
    found = history.read(paths.ROOT / "docs" / "results" / "records")[1]
    assert all(1 < bound.most < 3 and bound.measured.n >= bounds.SEEDS for bound in found.values())


def test_the_verb_judges_what_is_there(
    cohort: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "docs" / "results"
    monkeypatch.setattr("cohort.paths.CHECKOUT", tmp_path)
    assert "code=0" in str(cohort("results", "history"))
    for commit, kills in (("a", 100), ("b", 130)):
        history.add(results / "records" / "history.jsonl", both(commit, kills=kills))
    (results / "history.toml").write_text(RULE)
    headline(results / "records", {1: 100, 2: 98, 3: 103})
    told = json.loads(cohort("results", "history", "--json").stdout)
    assert (told["written"], len(told["worse"]) > 0) == ([], True)
    said = str(cohort("results", "history"))
    assert "code=1" in said
    assert "kills, seed 1: 130 (1.300 x none) on b" in said


def test_the_verb_keeps_runs_and_makes_the_page(
    cohort: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, templates = tmp_path / "docs" / "results", tmp_path / "docs" / "templates" / "results"
    monkeypatch.setattr("cohort.paths.CHECKOUT", tmp_path)
    templates.mkdir(parents=True)
    headline(results / "records", {1: 100, 2: 98, 3: 103})
    (templates / "history.md").write_text(HISTORY_MD.read_text())
    (results / "history.toml").write_text(RULE)
    for commit, kills, code in (("a", 100, 0), ("b", 130, 1)):
        made = both(commit, kills)
        monkeypatch.setattr("cohort.sets.collect.of_runs", lambda *_, made=made: made)
        said = str(cohort("results", "history", tmp_path))
        assert f"code={code}" in said
        assert "history.jsonl" in said
        assert "history.md" in said
    page = (results / "history.md").read_text()
    assert "| b | 130 (1.300) |" in page
    assert "| apps killed | 100 | 98 to 103 | 5.00% | 1.100 |" in page
