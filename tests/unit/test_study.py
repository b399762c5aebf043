"""Studies: what a file may say, what the findings say of it."""

import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from cohort import paths, runs
from cohort.cli import main
from cohort.errors import UsageError
from cohort.phone.workload import load_workload
from cohort.policy import load_policy
from cohort.results.catalogue import BY_NAME
from cohort.results.rundir import RunDir
from cohort.results.runs import Result
from cohort.run_check import check_run
from cohort.run_spec import RunSpec
from cohort.study import matrix, text
from cohort.study.matrix import Findings, Options
from cohort.study.picture import draw
from cohort.study.schema import Study, load_study, study_names
from cohort.study.text import print_findings
from cohort.study.verdict import agreements, verdicts

GOLDEN = paths.ROOT / "tests" / "golden" / "study.txt"

TEXT = """\
title = "A figure"
source = "Author, Paper, figure 1"
workload = "phone-2g"
seeds = [1, 2, 3]

[[run]]
label = "none"
policy = "none"

[[run]]
label = "order {order}"
policy = "region"
cmdline = ["cohort.region_order={order}"]
change = { "machine.cpus" = "{cpus}" }
[run.sweep]
order = [6, 8]
cpus = [4]

[[measure]]
metric = "ui_order4"

[[measure]]
metric = "kills"
statistic = "max"

[[paper]]
metric = "ui_order4"
where = "figure 1"
values = { none = 0.9, "order 8" = 0.3 }

[[paper]]
metric = "kills"
where = "figure 2"
order = ["order 8", "none"]

[[target]]
metric = "ui_order4"
labels = ["order 6", "order 8"]
at_most = 0.5
times = "none"
provided = { label = "none", at_least = 0.6 }

[picture]
kind = "bars"
name = "ui_order4"
x = "run"
y = "UI(4)"
"""

Values = dict[str, Mapping[str, Sequence[float | None]]]

VALUES: Values = {
    "none": {"ui_order4": [0.8, 0.7, 0.75], "kills": [9, 8, 9]},
    "order 6": {"ui_order4": [0.5, 0.45, 0.55], "kills": [9, 9, 9]},
    "order 8": {"ui_order4": [0.1, 0.1, 0.2], "kills": [6, 5, 7]},
}


def write(tmp_path: Path, content: str = TEXT) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(content, encoding="utf-8")
    return path


def result(label: str, seed: int, **metrics: float | None) -> Result:
    everything = dict.fromkeys(BY_NAME) | metrics
    meta = {"launches": 20, "memory_mb": 2048, "cpus": 2, "workload": "phone-2g", "policy": label}
    return Result(label, seed, "phone-2g", everything, {"kill_ui_order4": [0.1, None]}, meta)


def findings(study: Study, **changed: Mapping[str, Sequence[float | None]]) -> Findings:
    values: Values = {**VALUES, **changed}
    results = {
        label: [
            result(label, seed + 1, **{name: each[seed] for name, each in metrics.items()})
            for seed in range(len(metrics["ui_order4"]))
        ]
        for label, metrics in values.items()
    }
    return Findings(study, tuple(study.columns), results)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return load_study(write(tmp_path))


@pytest.mark.parametrize("name", study_names())
def test_shipped_studies_name_what_there_is(name: str) -> None:
    study = load_study(name)
    assert study.name == name
    specs = matrix.specs_of(study, study.columns, Options(seeds=[1]))
    assert specs
    for spec in specs:
        assert check_run(spec).workload.name == spec.workload


def test_a_sweep_makes_columns(study: Study) -> None:
    assert [column.label for column in study.columns] == ["none", "order 6", "order 8"]
    specs = matrix.specs_of(study, study.columns, Options(launches=5))
    assert len(specs) == 9
    assert [spec.seed for spec in specs[:3]] == [1, 2, 3]
    last = specs[-1]
    assert (last.cmdline, last.change, last.launches) == (
        ("cohort.region_order=8",),
        (("machine.cpus", 4),),
        5,
    )


def test_a_sweep_fills_keys(tmp_path: Path) -> None:
    content = TEXT.replace(
        'label = "order {order}"', 'label = "order {order}"\nsysctl = { "vm.x{order}" = 1 }'
    )
    assert {"vm.x8": 1} in [
        column.sysctl for column in load_study(write(tmp_path, content)).columns
    ]


def test_the_command_shortens_and_never_lengthens(tmp_path: Path) -> None:
    young = TEXT.replace('policy = "none"', 'policy = "none"\nlaunches = 10', 1)
    # A workload of a thousand launches, with the two CPUs that the columns change.
    young = young.replace('workload = "phone-2g"', 'workload = "region-fig3"', 1)
    study = load_study(write(tmp_path, young))
    for asked, first, last in ((None, 10, None), (5, 5, 5), (1000, 10, 1000)):
        specs = matrix.specs_of(study, study.columns, Options(launches=asked))
        assert (specs[0].launches, specs[-1].launches) == (first, last)


def test_nor_does_it_lengthen_the_workloads_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That number is the column's, where the column has none, and where it changes it."""
    own = load_workload("phone-2g").launches.value
    changed = TEXT.replace('policy = "none"', 'policy = "none"\nchange = { launches = 30 }', 1)
    study = load_study(write(tmp_path, changed))
    for asked, first, last in ((None, None, None), (5, 5, 5), (5000, 30, own)):
        specs = matrix.specs_of(study, study.columns, Options(launches=asked))
        assert (specs[0].launches, specs[-1].launches) == (first, last)
    told: list[str] = []
    monkeypatch.setattr(matrix.log, "warning", lambda text, *words: told.append(text % words))
    monkeypatch.setattr(runs, "execute_matrix", lambda *_: [])
    matrix.execute(study, Options(launches=5000))
    assert told == ["--launches 5000: the study has no more than 30 of none, and 2 more"]


@pytest.mark.usefixtures("no_guest")
def test_launches_that_a_column_has_not_are_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(matrix.log, "warning", lambda text, *words: told.append(text % words))
    short = TEXT.replace('label = "none"', 'label = "none"\nlaunches = 20', 1)
    study = load_study(write(tmp_path, short))
    for launches in (None, 20, 5):
        matrix.execute(study, Options(launches=launches))
    assert told == []
    matrix.execute(study, Options(launches=30))
    assert told == ["--launches 30: the study has no more than 20 of none"]


def test_knobs_are_written_after_the_policys(tmp_path: Path) -> None:
    content = TEXT.replace('policy = "none"', 'policy = "tuned"\nsysctl = { "vm.swappiness" = 5 }')
    study = load_study(write(tmp_path, content))
    policy = matrix.specs_of(study, study.columns, Options())[0].policy
    assert policy.sysctl == load_policy("tuned").sysctl | {"vm.swappiness": "5"}
    assert list(policy.sysctl)[-1] == "vm.swappiness"
    assert policy.name == "tuned"


@pytest.mark.parametrize(
    ("says", "what"),
    [
        ('sysctl = { "vm.swappiness x" = 1 }', 'sysctl."vm.swappiness x": is not a sysctl name'),
        ('sysfs = { "/proc/x" = 1 }', "sysfs./proc/x: is not a path of a file below /sys"),
        (
            'cmdline = ["cohort.region_order=12"]',
            "cohort.region_order=12: not a number from 5 to 9",
        ),
        (
            'change = { "machine.memory_mb" = "much" }',
            "change machine.memory_mb: 'much' is no number",
        ),
    ],
)
def test_what_a_column_asks_for_is_told_with_its_label(
    tmp_path: Path, says: str, what: str
) -> None:
    """In the lab's words: pydantic's have an address of its documents."""
    policy = 'policy = "none"\n'
    assert TEXT.count(policy) == 1
    study = load_study(write(tmp_path, TEXT.replace(policy, f"{policy}{says}\n")))
    with pytest.raises(UsageError) as caught:
        matrix.specs_of(study, study.columns, Options())
    assert caught.value.message.startswith("column none: ")
    assert what in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("old", "new", "key", "what"),
    [
        ("title", "titel", "titel", "Extra inputs"),
        ('metric = "kills"', 'metric = "kils"', "measure.1.metric", "no metric 'kils'"),
        ('statistic = "max"', 'statistic = "most"', "measure.1.statistic", "'median'"),
        ('times = "none"', 'times = "non"', "target.0.times", "no column 'non'"),
        ('labels = ["order 6"', 'labels = ["order 7"', "target.0.labels", "no column 'order 7'"),
        ("at_most = 0.5", "", "target.0", "at_most or at_least"),
        ("cpus = [4]", "", "run.1", "nothing fills {cpus}"),
        ('label = "order {order}"', 'label = "none"', "run", "two columns"),
        ("seeds = [1, 2, 3]", "seeds = []", "seeds", "at least 1"),
        ("at_most = 0.5", "at_most = inf", "target.0.at_most", "finite"),
        ("seeds = [1, 2, 3]", "seeds = [1, 2, 1]", "seeds", "1 is there twice"),
        ("seeds = [1, 2, 3]", 'seeds = [1]\nname = "../x"', "name", "no slash"),
        ("seeds = [1, 2, 3]", 'seeds = [1]\nname = "a/b"', "name", "no slash"),
        ('kind = "bars"', 'kind = "pie"', "picture.kind", "'bars'"),
        ('kind = "bars"\nname = "ui_order4"', 'kind = "bars"\nname = "ui"', "picture", "no metric"),
        (
            'kind = "bars"\nname = "ui_order4"',
            'kind = "orders"\nname = "ui_ordr"',
            *("picture", "no metrics ui_ordr0"),
        ),
        ('order = ["order 8", "none"]', 'label = "no"\nbelow = ["kills"]', "paper.1.label", "'no'"),
        ('order = ["order 8", "none"]', 'below = ["kills"]', "paper.1", "belongs to below"),
        ("values = {", "order = []\nvalue = {", "paper.0.value", "Extra inputs"),
    ],
)
def test_a_bad_file_is_named_with_line_and_key(
    tmp_path: Path, old: str, new: str, key: str, what: str
) -> None:
    assert old in TEXT
    path = write(tmp_path, TEXT.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        load_study(path)
    message = caught.value.message
    assert message.startswith(f"{path}:")
    assert f": {key}: " in message
    assert what in message


def test_the_line_is_that_of_the_element_meant(tmp_path: Path) -> None:
    content = TEXT.replace('metric = "kills"\nstatistic', 'metric = "kills"\nstatistics')
    with pytest.raises(UsageError) as caught:
        load_study(write(tmp_path, content))
    line = content.splitlines().index('statistics = "max"') + 1
    assert f":{line}: measure.1.statistics" in caught.value.message


def test_an_unknown_study_gets_a_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        load_study("cpb-fig3")
    assert str(caught.value.hint).startswith("did you mean cpb-fig3")


def test_a_number_that_is_none(tmp_path: Path) -> None:
    content = TEXT.replace("cpus = [4]", 'cpus = ["four"]')
    study = load_study(write(tmp_path, content))
    with pytest.raises(UsageError, match="machine.cpus: 'four' is no number"):
        matrix.specs_of(study, study.columns, Options())


def test_table_and_sentences(study: Study, tmp_path: Path) -> None:
    file = io.StringIO()
    text.print_findings(findings(study), Console(file=file, width=80, color_system=None))
    said = "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())
    new = tmp_path / GOLDEN.name
    new.write_text(said, encoding="utf-8")
    known = GOLDEN.read_text(encoding="utf-8") if GOLDEN.is_file() else ""
    assert said == known, f"look: diff -u {GOLDEN} {new}; accept: mv {new} {GOLDEN}"


def test_of_nothing_no_change_is_a_part(study: Study) -> None:
    """From 0 to 11 kills had been 1,100 % more."""
    changed: Values = {"none": {"ui_order4": [0, 0, 0]}, "order 8": {"ui_order4": [1, 1, 1]}}
    first = agreements(findings(study, **changed))[0]
    assert "%)" not in first.sentence.partition("here")[2]


def test_brackets_in_a_title_are_shown(study: Study) -> None:
    said = io.StringIO()
    named = study.model_copy(update={"title": "Fig. 3 [ra32] [/MiB]"})
    print_findings(findings(named), Console(file=said, width=100))
    assert "Fig. 3 [ra32] [/MiB]" in said.getvalue()


@pytest.mark.parametrize(
    ("ours", "agrees", "words"),
    [
        ([0.1, 0.1, 0.2], True, "the same way, further."),
        ([0.25, 0.25, 0.25], True, "the same way, as far."),
        ([0.5, 0.5, 0.5], True, "the same way, less far."),
        ([0.75, 0.5, 0.5], False, "no difference beyond the spread."),
        ([0.9, 0.9, 0.9], False, "the other way."),
        ([None, None, None], None, "not measured here."),
        (
            [None, 0.1, None],
            None,
            "here 0.750 and 0.100 (1 of 3 seeds) (-87 %): of some seeds alone.",
        ),
    ],
)
def test_agreement_with_numbers(
    study: Study, ours: list[float | None], agrees: bool | None, words: str
) -> None:
    changed: Values = {"order 8": {"ui_order4": ours, "kills": [1, 1, 1]}}
    first = agreements(findings(study, **changed))[0]
    assert (first.agrees, first.sentence.endswith(words)) == (agrees, True), first.sentence


@pytest.mark.parametrize(
    ("ours", "agrees", "words"),
    [
        ([6, 5, 7], True, "the same order."),
        ([8, 7, 8], None, "the same order, but within the spread."),
        ([19, 18, 17], False, "another order."),
        ([None, None, None], None, "not measured here."),
        ([6, None, 7], None, "here 6 (2 of 3 seeds), 9: of some seeds alone."),
    ],
)
def test_agreement_with_an_order(
    study: Study, ours: list[float | None], agrees: bool | None, words: str
) -> None:
    changed: Values = {"order 8": {"ui_order4": [0.1] * 3, "kills": ours}}
    last = agreements(findings(study, **changed))[-1]
    assert (last.agrees, last.sentence.endswith(words)) == (agrees, True), last.sentence


def test_agreement_with_a_ranking(tmp_path: Path) -> None:
    ranking = """order = ["order 8", "none"]"""
    content = TEXT.replace(ranking, 'label = "none"\nbelow = ["ui_order4"]')
    study = load_study(write(tmp_path, content))
    assert agreements(findings(study))[-1].sentence == (
        "figure 2: with none kills above ui_order4; here 9, 0.750: the same order."
    )
    few: Values = {"none": {"ui_order4": [0.8] * 3, "kills": [0] * 3}}
    assert agreements(findings(study, **few))[-1].agrees is False
    unknown: Values = {"none": {"ui_order4": [0.8] * 3, "kills": [None] * 3}}
    assert agreements(findings(study, **unknown))[-1].agrees is None
    for kills in ([0.8, 0.8, 0.8], [0.7, 0.9, 2.0]):
        near: Values = {"none": {"ui_order4": [0.8, 0.7, 0.9], "kills": kills}}
        last = agreements(findings(study, **near))[-1]
        assert last.agrees is None
        assert last.sentence.endswith(": the same order, but within the spread.")


def test_targets(study: Study) -> None:
    assert [x.word for x in verdicts(findings(study))] == ["missed", "passed"]
    calm: Values = {"none": {"ui_order4": [0.5] * 3, "kills": [0] * 3}}
    assert [x.word for x in verdicts(findings(study, **calm))] == ["open", "open"]
    unknown: Values = {"order 6": {"ui_order4": [None] * 3, "kills": [0] * 3}}
    assert [x.word for x in verdicts(findings(study, **unknown))] == ["open", "passed"]


def test_what_some_seeds_alone_have_meets_and_misses_no_target(study: Study) -> None:
    some: Values = {"order 8": {"ui_order4": [None, 0.1, None], "kills": [6] * 3}}
    found = findings(study, **some)
    assert [x.word for x in verdicts(found)] == ["missed", "open"]
    assert verdicts(found)[1].sentence == (
        "order 8: ui_order4 0.100 (1 of 3 seeds), at most 0.375 (0.5 x none): "
        "open, of some seeds alone."
    )
    assert text.rows(found)[2][1] == "0.100 (1 of 3 seeds)"
    base: Values = {"none": {"ui_order4": [0.8, 0.7, None], "kills": [9] * 3}}
    found = findings(study, **base)
    assert [x.word for x in verdicts(found)] == ["open", "open"]
    assert text.rows(found)[0][1] == "0.750 [0.700, 0.800] (2 of 3 seeds)"


def test_only_some_columns(study: Study) -> None:
    columns = matrix.columns_of(study, ["none", "order 6"])
    some = replace(findings(study), columns=columns)
    assert [row[0] for row in text.rows(some)] == ["none", "order 6"]
    assert [x.label for x in verdicts(some)] == ["order 6"]
    with pytest.raises(UsageError, match="no column 'order 9'"):
        matrix.columns_of(study, ["order 9"])


@pytest.mark.parametrize("kind", ["bars", "orders", "line"])
def test_pictures(study: Study, kind: str) -> None:
    names = {"bars": "ui_order4", "orders": "freed_pages_order", "line": "kill_ui_order4"}
    assert study.picture is not None
    picture = study.picture.model_copy(update={"kind": kind, "name": names[kind]})
    found = findings(study.model_copy(update={"picture": picture}))
    svg = draw(found)
    if kind == "orders":
        assert svg is None, "nothing was freed"
        return
    assert svg is not None and svg.startswith("<svg")
    assert svg == draw(found)


@pytest.mark.parametrize(
    ("kind", "entries", "drawn"),
    [
        ("line", [1, None, 2.5], True),
        ("line", ["camera", "mail"], False),
        ("line", [[0, 3]], False),
        ("runs", [[[0, 3], [8, 1]], []], True),
        ("runs", [0.5, None], False),
    ],
)
def test_a_series_that_the_picture_cannot_draw(
    study: Study, kind: str, entries: list[object], drawn: bool
) -> None:
    """A series may be of words or of lists, which no line goes through."""
    assert study.picture is not None
    picture = study.picture.model_copy(update={"kind": kind, "name": "mine"})
    found = findings(study.model_copy(update={"picture": picture}))
    mine = {
        label: [replace(one, series={"mine": entries}) for one in results]
        for label, results in found.results.items()
    }
    assert (draw(replace(found, results=mine)) is not None) == drawn


@pytest.fixture
def no_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are made by hand instead of by QEMU."""
    monkeypatch.setenv("COHORT_OUT", str(tmp_path / "out"))

    def made(specs: Sequence[RunSpec], *_: object) -> list[RunDir]:
        return [RunDir(make_run(tmp_path / str(i), spec)) for i, spec in enumerate(specs)]

    monkeypatch.setattr(runs, "execute_matrix", made)


def make_run(path: Path, spec: RunSpec) -> Path:
    """A run in which `none` frees single pages and the others whole blocks."""
    path.mkdir(exist_ok=True)
    free = [100, *[0] * 10] if spec.policy.name == "none" else [0] * 10 + [1]
    records = [
        {"r": "hello", "vm_names": ["nr_free_pages"]},
        {"r": "launch", "n": 1, "app": "a", "kind": "cold", "ns": 1},
        {"r": "sample", "t": 1, "n": 1, "buddy": [["Normal", *free]], "vm": [1], "alive": 1,
         "cached": 0, "cpu": []},
        {"r": "end", "t": 2, "ok": True, "launches": 1},
    ]  # fmt: skip
    (path / "records.jsonl").write_text("\n".join(json.dumps(x) for x in records))
    meta = {"policy": spec.policy.name, "seed": spec.seed, "workload": spec.workload}
    (path / "meta.json").write_text(json.dumps(meta))
    return path


def cohort(monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
    monkeypatch.setattr(sys, "argv", ["cohort", *argv])
    with pytest.raises(SystemExit) as end:
        main(argv)
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.usefixtures("no_guest")
def test_the_verb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(write(tmp_path))
    assert cohort(monkeypatch, "study", path, "--json", "--strict") == 0
    answer = json.loads(capsys.readouterr().out)
    assert [x["passed"] for x in answer["targets"]] == [True, True]
    assert len(answer["runs"]) == 9
    assert answer["table"][0] == {
        "label": "none", "metric": "ui_order4", "statistic": "median", "value": 1.0, "least": 1.0,
        "greatest": 1.0, "seeds": 3, "paper": 0.9}  # fmt: skip
    page = (tmp_path / "out" / "studies" / "mine.md").read_text(encoding="utf-8")
    assert f"cohort study {path} --json --strict" in page
    assert "![A figure](mine.svg)" in page
    assert (tmp_path / "out" / "studies" / "mine.svg").is_file()


@pytest.mark.usefixtures("no_guest")
def test_a_missed_target_fails_only_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(write(tmp_path, TEXT.replace("at_most = 0.5", "at_most = -1")))
    assert cohort(monkeypatch, "study", path) == 0
    assert "missed" in capsys.readouterr().out
    assert cohort(monkeypatch, "study", path, "--strict") == 1
    assert "2 of the study's targets missed" in capsys.readouterr().err


@pytest.mark.usefixtures("no_guest")
def test_a_picture_of_a_series_that_no_run_has_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = TEXT.replace('kind = "bars"\nname = "ui_order4"', 'kind = "line"\nname = "ui_ordr4"')
    assert cohort(monkeypatch, "study", str(write(tmp_path, lines))) == 0
    assert "no picture: no run has ui_ordr4" in capfd.readouterr().err
    assert cohort(monkeypatch, "study", str(write(tmp_path))) == 0
    assert "no picture" not in capfd.readouterr().err


def test_the_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert cohort(monkeypatch, "study", "--list") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == study_names()
    assert cohort(monkeypatch, "study") == 2
