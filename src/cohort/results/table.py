"""The comparison: every metric of every policy against the first one."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from cohort.results.catalogue import METRICS, Metric
from cohort.results.runs import (
    OLDER,
    RATIOS_ONLY,
    Result,
    accelerator_label,
    differences,
    policies_of,
)
from cohort.results.spread import LEVEL, MAX_PAIRS, MIN_PAIRS, Spread, sign_flip_p, spread

MISSING = "-"


@dataclass(frozen=True)
class Cell:
    """One metric of one policy. `versus` is the baseline's spread, None in the baseline itself."""

    metric: Metric
    spread: Spread | None
    versus: Spread | None = None
    significant: bool = False

    @property
    def value(self) -> str:
        """The median over the seeds."""
        return MISSING if self.spread is None else _number(self.spread.median, self.metric)

    @property
    def delta(self) -> str:
        """The change of the median against the baseline's, in percent; empty in the baseline. The
        test is of pairs of runs: its star may stand where the medians are equal, or are 0."""
        if self.versus is None or self.spread is None:
            return ""
        old, new = self.versus.median, self.spread.median
        star = "*" if self.significant else ""
        if old == new:
            return f"(±0 %){star}"
        if old == 0:
            return f"(from 0){star}"
        return f"({(new - old) / abs(old) * 100:+.1f} %){star}"

    @property
    def range(self) -> str:
        """The least and the greatest value over the seeds; empty for a single run."""
        if self.spread is None or self.spread.n < 2:
            return ""
        return (
            f"[{_number(self.spread.low, self.metric)}, {_number(self.spread.high, self.metric)}]"
        )

    @property
    def some(self) -> str:
        """As "(1 of 3 seeds)" where only some runs of the policy have the metric, else empty."""
        return "" if self.spread is None else self.spread.some

    @property
    def pair(self) -> tuple[Spread, Spread] | None:
        """Its own spread and the baseline's, to be judged; None where either has none, or has it
        of some of its runs alone, and of a metric that is not judged."""
        if self.metric.better == "neither":
            return None
        if self.spread is None or self.versus is None or self.spread.some or self.versus.some:
            return None
        return self.spread, self.versus

    @property
    def verdict(self) -> str:
        """ "better" or "worse" if the ranges over the seeds do not touch, else empty."""
        if self.pair is None or not self.pair[0].apart(self.pair[1]):
            return ""
        new, old = self.pair
        lower = new.median < old.median
        return "better" if lower == (self.metric.better == "lower") else "worse"


@dataclass(frozen=True)
class Row:
    """One metric over all policies, the baseline first."""

    metric: Metric
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Comparison:
    """All that a table says."""

    policies: tuple[str, ...]
    rows: tuple[Row, ...]
    title: str
    notes: tuple[str, ...]


def compare(results: Sequence[Result], full: bool = False) -> Comparison:
    """The comparison of these runs, the first one's policy being the baseline.

    `full` takes every metric instead of those usually shown. `results` must not be empty.
    """
    policies = policies_of(results)
    metrics = [m for m in METRICS if (full or m.shown) and not (m.special and _absent(m, results))]
    rows = tuple(_row(metric, policies, results) for metric in metrics)
    return Comparison(
        policies=tuple(policies),
        rows=rows,
        title=_title(results),
        notes=tuple(_notes(results, any(cell.some for row in rows for cell in row.cells))),
    )


def _absent(metric: Metric, results: Sequence[Result]) -> bool:
    return all(result.metrics.get(metric.name) is None for result in results)


def print_table(comparison: Comparison, console: Console) -> None:
    """The table as text. Without a terminal it is as wide as it needs; on one that is too narrow
    the ranges go on lines of their own.
    """
    table = _table(comparison, " ")
    width = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    if not console.is_terminal:
        console = Console(file=console.file, width=max(console.width, width))
    elif width > console.width:
        table = _table(comparison, "\n")
    console.print(comparison.title, style="bold", highlight=False)
    console.print(table)
    for note in comparison.notes:
        console.print(note, highlight=False, markup=False)


def _table(comparison: Comparison, before_range: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("metric", "unit", "better"):
        table.add_column(title, no_wrap=True)
    for policy in comparison.policies:
        table.add_column(policy, justify="right")
    group = comparison.rows[0].metric.group
    for row in comparison.rows:
        if row.metric.group != group:
            table.add_row()
            group = row.metric.group
        cells = (_styled(cell, before_range) for cell in row.cells)
        table.add_row(row.metric.name, row.metric.unit, row.metric.better, *cells)
    return table


def _row(metric: Metric, policies: Sequence[str], results: Sequence[Result]) -> Row:
    by_policy = {
        policy: {r.seed: r.metrics.get(metric.name) for r in results if r.policy == policy}
        for policy in policies
    }
    base = by_policy[policies[0]]
    base_spread = spread(list(base.values()))
    cells = [Cell(metric, base_spread)]
    for policy in policies[1:]:
        values = by_policy[policy]
        cells.append(
            Cell(metric, spread(list(values.values())), base_spread, _significant(base, values))
        )
    return Row(metric, tuple(cells))


def _significant(base: dict[int, float | None], other: dict[int, float | None]) -> bool:
    """Whether the pairs of runs differ; not where one of the runs has no value."""
    if None in [*base.values(), *other.values()]:
        return False
    pairs = [(x, other[seed]) for seed, x in base.items() if seed in other]
    differences = [y - x for x, y in pairs if x is not None and y is not None]
    return sign_flip_p(differences) < LEVEL


def several(results: Sequence[Result], key: str, between: str = " and ") -> str:
    """All that the runs say of a key of meta.json, each thing once and in the order of the runs."""
    said = [{**OLDER, **run.meta, "workload": run.workload}.get(key, MISSING) for run in results]
    return between.join(dict.fromkeys(map(str, said)))


def _title(results: Sequence[Result]) -> str:
    seeds = sorted({result.seed for result in results})
    word = "seed" if len(seeds) == 1 else "seeds"
    parts = [
        several(results, "workload"),
        f"{several(results, 'launches')} launches",
        f"{word} {', '.join(map(str, seeds))}",
        f"{several(results, 'memory_mb')} MiB",
        f"{several(results, 'cpus')} CPUs",
    ]
    accels = dict.fromkeys(accelerator_label(result.accel) for result in results)
    return f"{', '.join(parts)}\n{'; '.join(accels)}"


def _notes(results: Sequence[Result], some: bool) -> list[str]:
    """The sentences below a table that say how to read it; with `some` it has figures that not all
    runs of a policy have."""
    seeds = [
        {result.seed for result in results if result.policy == policy}
        for policy in policies_of(results)
    ]
    shared, all_seeds = set.intersection(*seeds), set.union(*seeds)
    baseline = results[0].policy
    notes = []
    if len(all_seeds) > 1:
        notes.append(
            f"Median of {len(all_seeds)} seeds (change of the median against {baseline}) "
            "[least, greatest]."
        )
    else:
        notes.append(f"One seed (change against {baseline}): no spread, so no small differences.")
    if some:
        notes.append("(n of N seeds): the other runs have no such figure, and it is not judged.")
    if shared != all_seeds:
        notes.append("The policies were not run with the same seeds: medians may differ by that.")
    if len(shared) >= MIN_PAIRS:
        first = f" (the first of {len(shared)})" if len(shared) > MAX_PAIRS else ""
        notes.append(
            f"* p < {LEVEL:g}, exact two-sided sign-flip test on N = "
            f"{min(len(shared), MAX_PAIRS)} pairs{first} of "
            "runs with the same seed; not corrected for the number of metrics."
        )
    notes += _more_than_the_policy(results)
    notes += _storage(results)
    if any(result.accel != "deterministic" for result in results):
        notes.append(f"† {RATIOS_ONLY}.")
    return notes


def _more_than_the_policy(results: Sequence[Result]) -> list[str]:
    """What else the columns differ in, as --force lets them; no sentence where it is nothing. Of
    what the kernels are made, the versions tell."""
    told = []
    for what, seen in differences(results, built_now=True):
        each = [f"{said} ({', '.join(policies_of(runs))})" for said, runs in seen.items()]
        told.append(f"{what} {', '.join(each)}")
    where = "; ".join(told)
    said = f"The runs differ in more than the policy, and a change may be of that: {where}."
    return [said] if told else []


def _storage(results: Sequence[Result]) -> list[str]:
    """What the phone's storage costs; no sentence for runs that do not say it."""
    costs = [r.meta["storage"] for r in results if "storage" in r.meta]
    sentences = [
        f"Storage as flash, in the guest's time: {cost['read_us']} µs a read, "
        f"{cost['write_us']} µs a write, and {cost['mb_per_s']} MB/s."
        for cost in costs
    ]
    return list(dict.fromkeys(sentences))


def _number(value: float, metric: Metric) -> str:
    return f"{value:,.{metric.digits}f}"


def _styled(cell: Cell, before_range: str) -> Text:
    style = {"better": "green", "worse": "red"}.get(cell.verdict, "")
    text = Text(f"{cell.value} {cell.delta}".rstrip(), style=style)
    behind = f"{cell.range} {cell.some}".strip()
    return text.append(f"{before_range}{behind}", "dim") if behind else text
