"""What the report says of each area, and how it marks winners and losers."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from cohort.results.catalogue import BY_NAME, METRICS
from cohort.results.html import render_report
from cohort.results.judgement import AREAS, judge, judgements, rule
from cohort.results.memory_map import KINDS, OWNERS, map_data
from cohort.results.night import CONTRAST, NIGHT_INK, NIGHT_PAPER, by_night, contrast
from cohort.results.plots import policy_colours
from cohort.results.rundir import RunDir
from cohort.results.runs import Result, measure
from cohort.results.table import compare
from made_runs import make_run

Figures = Mapping[str, float]


def result(policy: str, figures: Figures, seed: int = 1) -> Result:
    metrics = dict.fromkeys((metric.name for metric in METRICS), None) | dict(figures)
    return Result(policy, seed, "phone-2g", metrics, {})


def said(*policies: tuple[str, Figures]) -> dict[str, str]:
    """Sentences by area."""
    found = judgements([result(policy, figures) for policy, figures in policies])
    return {judgement.area: judgement.sentence for judgement in found}


STOCK = {"kills": 10, "launch_ms_p95": 1000.0, "refaults": 500, "parked_mb_mean": 0.0}


def test_every_area_is_made_of_metrics() -> None:
    assert [name for names in AREAS.values() for name in names if name not in BY_NAME] == []


def test_a_winner_is_named_with_its_greatest_lead() -> None:
    better = STOCK | {"kills": 9, "launch_ms_p95": 500.0}
    assert said(("none", STOCK), ("region", better))["Apps"] == (
        "region beats none in 2 of 2 (launch, 95 %: 1,000.0 → 500.0 ms, -50.0 %)."
    )


def test_the_baseline_may_win() -> None:
    worse = STOCK | {"refaults": 900, "parked_mb_mean": 20.0}
    found = said(("none", STOCK), ("region", worse))
    assert found["Reclaim"] == "none beats region in 1 of 1 (refaulted: 500 → 900 pages, +80.0 %)."
    assert found["Cost"] == "none beats region in 1 of 1 (parked memory, mean: 0.0 → 20.0 MiB)."
    assert found["Apps"] == "region and none differ in none of 2."


def test_an_area_may_be_divided_and_a_rival_may_win() -> None:
    mixed = STOCK | {"kills": 20, "launch_ms_p95": 500.0}
    rival = STOCK | {"kills": 5, "launch_ms_p95": 990.0}
    assert said(("none", STOCK), ("region", mixed), ("tuned", rival))["Apps"] == (
        "region and none divide it: region is ahead in 1 of 2 "
        "(launch, 95 %: 1,000.0 → 500.0 ms, -50.0 %), none in 1 (apps killed: 10 → 20, +100.0 %); "
        "tuned beats none in 1 of 2 (apps killed: 10 → 5, -50.0 %); "
        "ahead of all others: region in 1, tuned in 1."
    )


def test_rivals_are_compared_with_one_another_and_with_the_baseline() -> None:
    worse = STOCK | {"kills": 20, "launch_ms_p95": 1500.0}
    found = said(("none", STOCK), ("region", worse), ("tuned", worse))
    assert found["Apps"].endswith("; ahead of all others: none in 2.")
    assert found["Reclaim"].endswith("; no policy is ahead of all others in any.")


def test_what_was_not_measured_is_not_judged() -> None:
    assert set(said(("none", {"kills": 1}), ("region", {"kills": 1}))) == {"Apps"}
    assert judgements([result("none", STOCK)]) == []
    assert said(("none", {"kills": 1}), ("region", {"refaults": 1})) == {}


@pytest.mark.parametrize(
    ("stock", "other", "side"),
    [
        ((100,), (96,), "even"),
        # From 5 % of the baseline's on.
        ((100,), (95,), "better"),
        ((100,), (105,), "worse"),
        ((100,), (104,), "even"),
        ((0,), (0,), "even"),
        ((0,), (1,), "worse"),
        # Ranges that do not touch count, however near they are; those that touch do not.
        ((100, 101), (98, 99), "better"),
        ((100, 101), (102, 103), "worse"),
        ((100, 101), (10, 100), "even"),
        # One seed beside several: it lies in their range, or it takes 5 %.
        ((80, 101, 120), (95,), "even"),
        ((98, 100, 102), (97,), "even"),
        ((98, 100, 102), (90,), "better"),
    ],
)
def test_a_difference_counts_by_its_range(
    stock: tuple[int, ...], other: tuple[int, ...], side: str
) -> None:
    runs = [result("none", {"kills": x}, seed) for seed, x in enumerate(stock)]
    runs += [result("region", {"kills": x}, seed) for seed, x in enumerate(other)]
    [row] = [row for row in compare(runs, full=True).rows if row.metric.name == "kills"]
    assert [judge(cell) for cell in row.cells] == ["", side]


@pytest.mark.parametrize(
    ("stock", "other"),
    [
        ((100, 101, 102), (10, None, None)),
        ((100, 101, 102), (10, 11, None)),
        ((100, None, 102), (10, 11, 12)),
        ((100, None), (10,)),
    ],
)
def test_what_only_some_runs_have_is_not_judged(
    stock: tuple[float | None, ...], other: tuple[float | None, ...]
) -> None:
    """The run without it may be the one that is worse."""
    figures = {"none": (stock, 900), "region": (other, 500)}
    runs = [
        result(policy, {"refaults": refaults} | ({} if x is None else {"kills": x}), seed)
        for policy, (values, refaults) in figures.items()
        for seed, x in enumerate(values)
    ]
    [row] = [row for row in compare(runs, full=True).rows if row.metric.name == "kills"]
    assert [(judge(cell), cell.verdict) for cell in row.cells] == [("", "")] * 2
    assert [judgement.area for judgement in judgements(runs)] == ["Reclaim"]


@pytest.mark.parametrize(
    ("seeds", "chance"),
    [
        ((1, 1), None),
        ((2, 1), None),
        ((2, 2), "33%"),
        ((3, 3), "10%"),
        ((4, 4), "2.9%"),
        ((2, 3), "20%"),
        ((2, 2, 3), "up to 33%"),
    ],
)
def test_the_rule_tells_how_often_chance_marks_a_figure(
    seeds: tuple[int, ...], chance: str | None
) -> None:
    runs = [
        result(policy, STOCK, seed)
        for policy, count in zip(("none", "region", "tuned"), seeds, strict=False)
        for seed in range(count)
    ]
    told = f" Of the figures that do not differ, chance alone marks {chance} with these seeds."
    assert rule(runs).endswith(told) if chance else "chance" not in rule(runs)


def test_the_page_opens_with_the_areas_and_folds_the_table(tmp_path: Path) -> None:
    worse = [("none", 0.5), ("region", 1.0)]
    runs = [measure(RunDir(make_run(tmp_path, policy, factor=f))) for policy, f in worse]
    page = render_report(runs, "cohort compare none region")
    first, verdict, picture, table = (
        page.index(x) for x in ("<h1>", "none beats region", "<canvas", '<details id="table">')
    )
    assert first < verdict < picture < table
    assert '<span class="sign worse" role="img" aria-label="worse">✗</span>' in page
    alone = render_report(runs[:1], "cohort report x")
    assert 'class="area' not in alone and "<canvas" in alone


def test_the_map_has_every_kind_and_an_owner_for_each(tmp_path: Path) -> None:
    runs = [measure(RunDir(make_run(tmp_path, policy, seed))) for policy, seed in
            (("none", 1), ("none", 2), ("region", 1))]  # fmt: skip
    data = map_data(runs)
    assert data is not None
    assert [run["name"] for run in data["runs"]] == ["none, seed 1", "region, seed 1"]
    for by, kinds in (("kind", KINDS), ("owner", OWNERS)):
        letters = [entry["letters"] for entry in data["legends"][by]]
        assert letters == list(kinds)
    assert data["runs"][0]["columns"] == 128
    assert data["runs"][0]["launches"] == [20]
    cells = data["runs"][0]["cells"]
    assert cells["kind"][0][-18:] == ".AFSTKPm.AFSTKPm-!"
    assert cells["owner"][0][-18:] == "cc00uuam.uuuuuuu-u"


def test_a_map_is_read_by_kind_alone_where_no_kernel_tells_owners(tmp_path: Path) -> None:
    path = make_run(tmp_path, "none")
    lines = [json.loads(line) for line in (path / "records.jsonl").read_text().splitlines()]
    kept = [{k: v for k, v in line.items() if k != "owners"} for line in lines]
    (path / "records.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in kept))
    run = measure(RunDir(path))
    data = map_data([run])
    assert data is not None
    assert list(data["legends"]) == ["kind"]
    assert "by owner" not in render_report([run], "cohort report x")


def test_colours_are_seen_by_night(tmp_path: Path) -> None:
    assert (by_night("#ffffff"), by_night("#000000")) == (NIGHT_PAPER, NIGHT_INK)
    names = ("none", "tuned", "region", "region8", "mine", "pcpa", "sra")
    runs = [measure(RunDir(make_run(tmp_path, name))) for name in names]
    for colour in policy_colours(runs).values():
        assert contrast(by_night(colour), NIGHT_PAPER) >= CONTRAST
