"""The report and the verbs that print and write comparisons, on run directories made by hand."""

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from cohort.cli import main
from cohort.results.html import render_report
from cohort.results.plots import colours, draw_all, policy_colours
from cohort.results.rundir import RunDir
from cohort.results.runs import measure
from made_runs import make_run


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything that is made goes here."""
    monkeypatch.setenv("COHORT_OUT", str(tmp_path / "out"))
    return tmp_path / "out"


def cohort(monkeypatch: pytest.MonkeyPatch, *argv: str | Path) -> int:
    """Run the command; its exit code."""
    words = [str(word) for word in argv]
    monkeypatch.setattr(sys, "argv", ["cohort", *words])
    with pytest.raises(SystemExit) as end:
        main(words)
    assert isinstance(end.value.code, int)
    return end.value.code


class References(HTMLParser):
    """Collects what a page would load, and the tags that it opens."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.pictures: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.pictures += [dict(attrs)] if tag == "svg" else []
        names = ("src", "href", "xlink:href", "srcset", "data")
        self.loads += [value for name, value in attrs if name in names and value]


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    results = [measure(RunDir(make_run(tmp_path, policy))) for policy in ("none", "region")]
    page = render_report(results, "cohort report x")
    found = References()
    found.feed(page)
    assert all(x.startswith(("#", "data:image/png;base64,")) for x in found.loads)
    assert "link" not in found.tags
    assert "default-src 'none'" in page, "the browser refuses what slips through"
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)


def test_pictures_have_names_and_ids_of_their_own(tmp_path: Path) -> None:
    page = render_report([measure(RunDir(make_run(tmp_path, "none")))], "cohort report x")
    found = References()
    found.feed(page)
    assert len(found.ids) == len(set(found.ids))
    named = {x[1:] for x in found.loads if x.startswith("#")}
    named |= set(re.findall(r"url\(#([^)]+)\)", page))
    assert len(named) > 5
    assert named <= set(found.ids)
    assert [x["role"] for x in found.pictures] == ["img"] * 5
    assert {"Unusable free space", "Physical memory"} < {x["aria-label"] for x in found.pictures}


def test_the_page_traces_every_number(tmp_path: Path) -> None:
    paths = [make_run(tmp_path, policy, seed) for policy in ("none", "region") for seed in (1, 2)]
    page = render_report([measure(RunDir(path)) for path in paths], "cohort compare 'a b' <c>")
    for path in paths:
        assert str(path) in page
    for version in ("QEMU 1.2.3", "gcc 4.5.6", "6.12.7"):
        assert version in page
    assert "cohort compare &#39;a b&#39; &lt;c&gt;" in page
    assert "the &lt;region&gt; policy" in page
    assert page.count("<svg") == 5
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).lower()


@pytest.mark.parametrize(
    ("none", "region", "ranges", "one"),
    [([1, 2], [1, 2], True, False), ([1], [2], False, True), ([1, 2], [1], True, True)],
)
def test_the_rule_of_signs_is_that_of_the_seeds(
    tmp_path: Path, none: list[int], region: list[int], ranges: bool, one: bool
) -> None:
    runs = [("none", seed) for seed in none] + [("region", seed) for seed in region]
    page = render_report([measure(RunDir(make_run(tmp_path, *run))) for run in runs], "x")
    assert ("the ranges over the seeds do not touch" in page) is ranges
    assert ("chance alone marks 33% with these seeds." in page) is (ranges and not one)
    assert ("one seed has no range, so it takes 5%" in page) is one


def test_a_figure_of_some_seeds_has_no_sign(tmp_path: Path) -> None:
    none, *others = (
        measure(RunDir(make_run(tmp_path, policy, seed, factor)))
        for policy, seed, factor in (("none", 1, 1.0), ("region", 1, 0.5), ("region", 2, 0.5))
    )
    some = [none, others[0], replace(others[1], metrics=dict.fromkeys(others[1].metrics))]
    whole, page = (render_report(runs, "x") for runs in ([none, *others], some))
    assert 'class="sign better"' in whole and "(1 of 2 seeds)" not in whole
    assert 'class="sign' not in page
    assert page.count('<span class="quiet">(1 of 2 seeds)</span>') > 10


def test_the_same_runs_give_the_same_pictures(tmp_path: Path) -> None:
    results = [measure(RunDir(make_run(tmp_path, policy))) for policy in ("none", "region")]
    assert draw_all(results) == draw_all(results)


def test_all_free_memory_is_dashed_where_it_is_known(tmp_path: Path) -> None:
    """In the others, nothing tells what the parked pages were good for."""
    path = make_run(tmp_path, "region")
    unknown = draw_all([measure(RunDir(path))])["ui"]
    lines = (path / "records.jsonl").read_text().splitlines()
    owned = [line.replace('"vm": [', '"owned": [4, 0, 0, 0, 1], "vm": [') for line in lines]
    (path / "records.jsonl").write_text("\n".join(owned))
    known = draw_all([measure(RunDir(path))])["ui"]
    assert ("stroke-dasharray" in unknown, "stroke-dasharray" in known) == (False, True)


def test_pictures_without_data_are_left_out(tmp_path: Path) -> None:
    path = make_run(tmp_path, "none")
    kept = [line for line in (path / "records.jsonl").read_text().splitlines()
            if '"r": "map"' not in line and '"r": "buffer"' not in line]  # fmt: skip
    (path / "records.jsonl").write_text("\n".join(kept))
    assert set(draw_all([measure(RunDir(path))])) == {"ui", "memory"}


def test_a_policy_keeps_its_colour(tmp_path: Path) -> None:
    a, b, c = (measure(RunDir(make_run(tmp_path, policy))) for policy in ("none", "region", "mine"))
    assert policy_colours([a, b, c])["region"] == policy_colours([c, b])["region"]
    assert len(set(policy_colours([a, b, c]).values())) == 3


def test_no_two_policies_have_one_colour() -> None:
    for named in (("cma", "pcpa-alone", "pcpa", "sra"), ("pcpa", "a", "b", "c"), ("cma", *"abcde")):
        assert len(set(colours(named).values())) == len(named)


def test_a_page_where_a_picture_goes_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, out: Path
) -> None:
    run, where = make_run(tmp_path, "none"), tmp_path / "pictures"
    words = ("-o", where / "ui.svg", "--pictures", where)
    assert cohort(monkeypatch, "report", run, *words) == 2
    assert "is where a picture goes" in capsys.readouterr().err


@pytest.mark.usefixtures("out", "no_guest")
def test_compare_prints_one_json_object(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = "compare none region --launches 20 --seed 1 --seed 2 --json"
    assert cohort(monkeypatch, *argv.split()) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"host", "runs"}
    assert [(run["policy"], run["seed"]) for run in answer["runs"]] == [
        ("none", 1), ("none", 2), ("region", 1), ("region", 2)]  # fmt: skip
    for run in answer["runs"]:
        assert run["workload"] == "phone-2g"
        assert run["metrics"]["kills"] == 20
        assert len(run["series"]["n"]) == 20


@pytest.mark.usefixtures("no_guest")
def test_compare_prints_a_table_and_says_where_the_report_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, out: Path
) -> None:
    page = out / "deep" / "r.html"
    argv = ["compare", "none", "region", "--seeds", "1,2", "--report", str(page)]
    assert cohort(monkeypatch, *argv) == 0
    printed = capsys.readouterr()
    assert "buffer_order8_share" in printed.out
    assert f"report: {page}" in printed.err
    assert f"cohort {' '.join(argv)}" in page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("out", "no_guest", "own_level")
def test_a_quiet_command_says_nothing_of_what_went_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ("none", "--report", tmp_path / "r.html", "--perfetto", tmp_path / "t.pftrace")
    assert cohort(monkeypatch, "-q", "compare", *words) == 0
    printed = capsys.readouterr()
    assert ("buffer_order8_share" in printed.out, printed.err) == (True, "")


@pytest.mark.usefixtures("no_guest")
def test_report_last_finds_the_last_comparison(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, out: Path
) -> None:
    assert cohort(monkeypatch, "compare", "none", "region") == 0
    capsys.readouterr()
    assert cohort(monkeypatch, "report", "--last") == 0
    assert capsys.readouterr().out.strip() == str(out / "report.html")
    assert "phone-2g-region-s1" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("out")
def test_report_writes_its_pictures_as_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run, pictures = make_run(tmp_path, "none"), tmp_path / "pictures"
    assert cohort(monkeypatch, "report", run, "--pictures", pictures) == 0
    assert (pictures / "ui.svg").read_text(encoding="utf-8").startswith("<svg")
    assert len(list(pictures.iterdir())) == 5


@pytest.mark.usefixtures("out")
def test_a_place_that_is_none_for_pictures_is_told_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(run: RunDir) -> None:
        raise AssertionError("it was measured")

    monkeypatch.setattr("cohort.results.runs.measure", refuse)
    run, file = make_run(tmp_path, "none"), tmp_path / "file"
    file.touch()
    assert cohort(monkeypatch, "report", run, "--pictures", file) == 2
    assert "is a file" in capsys.readouterr().err
    assert cohort(monkeypatch, "report", run, "--pictures", file / "deep") == 2
    assert f"{file}/deep" in capsys.readouterr().err


@pytest.mark.usefixtures("out")
def test_report_refuses_runs_that_do_not_belong_together(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small, large = make_run(tmp_path, "none"), make_run(tmp_path, "region", memory_mb=3072)
    assert cohort(monkeypatch, "report", small, large) == 2
    assert "runs differ in memory_mb" in capsys.readouterr().err
    assert cohort(monkeypatch, "report", small, large, "--force") == 0


def test_the_page_says_of_each_run_what_it_was_on(tmp_path: Path) -> None:
    """Of runs that --force puts on one page the first one's phone is not that of the rest."""
    other: dict[str, Any] = {"workload": "phone-8g", "launches": 19, "memory_mb": 8192, "cpus": 8}
    paths = [make_run(tmp_path, "none"), make_run(tmp_path, "region", arch="arm64", **other)]
    page = render_report([measure(RunDir(path)) for path in paths], "x")
    assert "<title>Cohort: none, region on phone-2g and phone-8g</title>" in page
    assert "20 and 19 launches, seed 1, 2048 and 8192 MiB, 2 and 8 CPUs" in page
    assert "memory_mb 2048 (none), 8192 (region)" in page
    _, _, origin = page.partition("Where the numbers come from")
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", x) for x in origin.split("<tr>")[1:4]]
    head = ["workload", "launches", "MiB", "CPUs", "machine", "bytes a page"]
    assert rows[0][3:9] == head
    assert rows[1][3:9] == ["phone-2g", "20", "2048", "2", "x86_64", "4096"]
    assert rows[2][3:9] == ["phone-8g", "19", "8192", "8", "arm64", "4096"]


def test_pieces_have_the_size_that_they_have_with_each_runs_pages(tmp_path: Path) -> None:
    small = measure(RunDir(make_run(tmp_path, "none")))
    large = measure(RunDir(make_run(tmp_path, "region", page_size=16384)))
    one, both = draw_all([large]), draw_all([small, large])
    assert "4 MiB (order 8)" in one["buffers"] and "pages of" not in one["buffers"]
    assert "1 MiB or 4 MiB (order 8)" in both["buffers"]
    for title in ("none, pages of 4 KiB", "region, pages of 16 KiB"):
        assert title in both["buffers"]
    assert "order 8 (4 MiB)" in one["ui"] and "order 8 (1 MiB or 4 MiB)" in both["ui"]


@pytest.mark.usefixtures("out")
def test_a_directory_that_is_named_twice_is_one_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run, other = make_run(tmp_path, "none"), make_run(tmp_path / "other", "none")
    assert cohort(monkeypatch, "report", run, run) == 0
    assert cohort(monkeypatch, "report", run, other, "--force") == 2
    said = capsys.readouterr().err
    assert f"two runs of none with seed 1: {run}, {other}" in said


def test_a_record_with_a_word_for_a_number_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, out: Path
) -> None:
    run = make_run(tmp_path, "none")
    path = run / "records.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[2] = lines[2].replace('"n": 1,', '"n": "one",')
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert cohort(monkeypatch, "report", run) == 1
    assert f"{path}: record " in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "{}", '{"policy": "none", "seed": "one"}'),
        '{"policy": "none", "seed": 1, "workload": "phone-2g", "memory_mb": "2 GiB"}',
    ],
)
def test_a_run_that_does_not_say_what_it_is(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    out: Path,
    text: str,
) -> None:
    run = make_run(tmp_path, "none")
    (run / "meta.json").write_text(text)
    assert cohort(monkeypatch, "report", run) == 2
    assert f"{run / 'meta.json'}: not what a run leaves" in capsys.readouterr().err
    out.mkdir(exist_ok=True)
    (out / "last-compare.json").write_text(text)
    assert cohort(monkeypatch, "report", "--last") == 2
    assert "last-compare.json: not what `cohort compare` leaves" in capsys.readouterr().err


@pytest.mark.usefixtures("out", "no_guest")
@pytest.mark.parametrize(
    ("argv", "what"),
    [
        ("compare none none", "policies of the same name"),
        ("compare nnone", "did you mean none"),
        ("compare none --seed x", "not numbers"),
        ("report", "or say --last"),
        ("report --last", "no last `cohort compare`"),
        ("report /nowhere", "not the directory of a finished run"),
    ],
)
def test_bad_input_is_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, argv: str, what: str
) -> None:
    assert cohort(monkeypatch, *argv.split()) == 2
    assert what in " ".join(capsys.readouterr().err.split())
