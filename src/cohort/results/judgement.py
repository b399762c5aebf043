"""What a comparison comes to, area by area: one sentence each, and the figures it rests on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from cohort.results.catalogue import BY_NAME
from cohort.results.runs import Result
from cohort.results.spread import chance_apart
from cohort.results.table import Cell, Row, compare

Side = Literal["better", "worse", "even", ""]
"""How a policy's figure stands to the baseline's; empty where there is nothing to compare."""

SIGNS: dict[Side, str] = {"better": "✓", "worse": "✗", "even": "≈", "": ""}

LEAN = 0.05
"""With one seed a smaller difference, as a share of the baseline's figure, counts as none."""

AREAS: dict[str, tuple[str, ...]] = {
    "Contiguity": (
        *("ui_order8", "ui_all_order8", "ui_all_order4", "buffer_order8_share"),
        *("buffer_n_alloc_mean", "buffer_find_us_p50", "buffer_find_us_p99", "buffer_fail"),
        *("freed_ui_order4", "area_client_mb"),
    ),
    "Apps": (
        *("kills", "resume_share", "launch_ms_p50", "launch_ms_p95", "launch_major_faults"),
        *("kills_trusted", "launch_ms_p95_trusted", "app_launch_ms_p95"),
        *("apps_alive_mean", "frames_late"),
    ),
    "Reclaim": (
        *("refaults", "direct_reclaim_pages", "allocstall", "evicted", "compact_migrated"),
        *("camera_stalls", "area_refault"),
    ),
    "Cost": (
        *("file_mb_mean", "parked_mb_mean", "page_fault_us", "cpu_system_s"),
        *("untrusted_work_per_s", "flash_read_mb"),
    ),
}
"""Metrics by area, those that say most first. One that no run has is left out."""

_TITLES = {
    f"ui_all_order{order}": f"unusable free space with parked memory, order {order}"
    for order in (4, 8)
}


@dataclass(frozen=True)
class Figure:
    """One metric of an area: its words, and how each policy after the baseline stands in it."""

    title: str
    row: Row
    sides: tuple[Side, ...]


@dataclass(frozen=True)
class Tally:
    """How often a policy is better than the baseline, worse, and neither."""

    policy: str
    better: int
    worse: int
    even: int

    @property
    def side(self) -> Side:
        """Better or worse if it is nowhere the other; `even` also where both have something."""
        if self.better and not self.worse:
            return "better"
        return "worse" if self.worse and not self.better else "even"


@dataclass(frozen=True)
class Judgement:
    """What is to be said of one area."""

    area: str
    sentence: str
    figures: tuple[Figure, ...]
    tallies: tuple[Tally, ...]


def judge(cell: Cell) -> Side:
    """Better or worse where the ranges over the seeds do not touch.

    One seed has no range: there it takes a difference of LEAN, of what is 0 any, and to lie out of
    the other's range if that one has several. What only some runs of either have is not judged.
    """
    if cell.pair is None:
        return ""
    ours, theirs = cell.pair
    if min(ours.n, theirs.n) > 1:
        return "better" if cell.verdict == "better" else "worse" if cell.verdict else "even"
    old, new = theirs.median, ours.median
    if max(ours.low, theirs.low) <= min(ours.high, theirs.high):
        return "even"
    if new == old or abs(new - old) < LEAN * abs(old):
        return "even"
    return "better" if (new < old) == (cell.metric.better == "lower") else "worse"


def rule(results: Sequence[Result]) -> str:
    """How `judge` finds with as many runs of each policy, in sentences, and how often by chance."""
    runs = Counter(result.policy for result in results).values()
    parts = []
    if max(runs) > 1:
        parts.append("it counts where the ranges over the seeds do not touch")
    if min(runs) == 1:
        one = f"one seed has no range, so it takes {LEAN:.0%}, and another seed may say otherwise"
        parts.append(one)
    said = f"{'; '.join(parts)}."
    chances = {chance_apart(*pair) for pair in combinations(runs, 2) if min(pair) > 1}
    if not chances:
        return said
    most = f"{'up to ' if len(chances) > 1 else ''}{100 * max(chances):.2g}%"
    return f"{said} Of the figures that do not differ, chance alone marks {most} with these seeds."


def judgements(results: Sequence[Result]) -> list[Judgement]:
    """A judgement an area, in the order of AREAS; areas that nothing was measured of are left out.

    The first result's policy is the baseline; with it alone there is nothing to judge, so no
    judgement.
    """
    comparison = compare(results, full=True)
    if len(comparison.policies) < 2:
        return []
    rows = {row.metric.name: row for row in comparison.rows}
    found = []
    for area, names in AREAS.items():
        figures = [_figure(rows[name]) for name in names if name in rows]
        figures = [figure for figure in figures if any(figure.sides)]
        if figures:
            found.append(_judgement(area, comparison.policies, figures))
    return found


def _figure(row: Row) -> Figure:
    title = _TITLES.get(row.metric.name, BY_NAME[row.metric.name].title)
    return Figure(title, row, tuple(judge(cell) for cell in row.cells[1:]))


def _judgement(area: str, policies: Sequence[str], figures: Sequence[Figure]) -> Judgement:
    baseline, *others = policies
    parts, tallies = [], []
    for index, policy in enumerate(others):
        parts.append(_clause(baseline, policy, index, figures))
        sides = [figure.sides[index] for figure in figures]
        counts = (sides.count(side) for side in ("better", "worse", "even"))
        tallies.append(Tally(policy, *counts))
    if len(others) > 1:
        parts.append(_fronts(policies, figures))
    return Judgement(area, f"{'; '.join(parts)}.", tuple(figures), tuple(tallies))


def _clause(baseline: str, policy: str, index: int, figures: Sequence[Figure]) -> str:
    """Which of the two is ahead, in how many figures, and its greatest lead."""
    known = sum(1 for figure in figures if figure.sides[index])
    won = [figure for figure in figures if figure.sides[index] == "better"]
    lost = [figure for figure in figures if figure.sides[index] == "worse"]
    if won and lost:
        return (
            f"{policy} and {baseline} divide it: {policy} is ahead in {len(won)} of {known} "
            f"({_greatest(won, index)}), {baseline} in {len(lost)} ({_greatest(lost, index)})"
        )
    if won:
        return f"{policy} beats {baseline} in {len(won)} of {known} ({_greatest(won, index)})"
    if lost:
        return f"{baseline} beats {policy} in {len(lost)} of {known} ({_greatest(lost, index)})"
    return f"{policy} and {baseline} differ in none of {known}"


def _fronts(policies: Sequence[str], figures: Sequence[Figure]) -> str:
    """In how many figures each policy is better than every other, a rival or the baseline."""
    leads = [_front(figure.row) for figure in figures]
    parts = [
        f"{policy} in {leads.count(index)}"
        for index, policy in enumerate(policies)
        if index in leads
    ]
    if not parts:
        return "no policy is ahead of all others in any"
    return f"ahead of all others: {', '.join(parts)}"


def _front(row: Row) -> int | None:
    """Which policy is better than every other in this row; None if no policy is."""
    for index, cell in enumerate(row.cells):
        others = [*row.cells[:index], *row.cells[index + 1 :]]
        sides = (judge(Cell(row.metric, cell.spread, other.spread)) for other in others)
        if all(side == "better" for side in sides):
            return index
    return None


def _greatest(figures: Sequence[Figure], index: int) -> str:
    """The figure with the greatest change, in words; the first of those that changed alike."""
    figure = max(figures, key=lambda x: _factor(x.row.cells[0], x.row.cells[index + 1]))
    base, cell = figure.row.cells[0], figure.row.cells[index + 1]
    unit = f" {cell.metric.unit}" if cell.metric.unit else ""
    percent = f", {cell.delta.strip('()*')}" if base.spread and base.spread.median else ""
    return f"{figure.title}: {base.value} → {cell.value}{unit}{percent}"


def _factor(base: Cell, cell: Cell) -> float:
    """How many times the larger is the smaller, which counts as half its last shown digit."""
    if base.spread is None or cell.spread is None:
        return 0.0
    least = 0.5 * 10.0**-cell.metric.digits
    sizes = sorted(max(abs(x.median), least) for x in (base.spread, cell.spread))
    return sizes[1] / sizes[0]
