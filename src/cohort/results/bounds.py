"""How much worse than on the commit before a metric may be: twice what another seed makes of it.

A seed says which apps are launched when, and nothing else: what it changes in a metric is chance.
Any change of the code shifts a run as another seed does, so a loss within that is none. A bound is
1 and `factor` times the range of a set's runs over their seeds, as a share of their median.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cohort import tomlfile
from cohort.errors import Failed
from cohort.results.catalogue import BY_NAME, meant
from cohort.results.figures import Figures
from cohort.results.records import Record, read_set, values
from cohort.results.spread import Spread, spread
from cohort.results.table import Cell

SEEDS = 3
"""Runs of fewer have no range to speak of."""


class Rule(BaseModel):
    """The file: which runs the ranges are of, how many times a range a loss may be, and in which
    metrics."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    set: str
    label: str
    factor: float = Field(gt=0)
    metrics: list[str] = Field(min_length=1)

    @model_validator(mode="after")
    def _known(self) -> "Rule":
        for name in self.metrics:
            if name not in BY_NAME:
                raise ValueError(f"metrics: there is no metric {name}; {meant(name)}")
        if len(set(self.metrics)) < len(self.metrics):
            raise ValueError("metrics: one is named twice")
        return self


@dataclass(frozen=True)
class Bound:
    """How many times worse a metric may be, and what was measured of it over the seeds."""

    most: float
    measured: Spread


def read_rule(path: Path) -> Rule:
    """The rule in a file; UsageError, with its line, for a file that is none."""
    data = tomlfile.read(path, "bounds")[1]
    try:
        return Rule.model_validate(data)
    except ValidationError as error:
        raise tomlfile.explain(path, error, "bounds", Rule) from error


def measure(rule: Rule, home: Path) -> dict[str, Bound]:
    """The bounds by metric, in the rule's order, of the sets in the directory `home`.

    Raises what `read_set` does, and Failed where the runs say too little: fewer than SEEDS seeds, a
    run without a metric, a median of 0.
    """
    records = [x for x in read_set(home / f"{rule.set}.jsonl") if x.label == rule.label]
    seeds = {record.seed for record in records}
    if len(seeds) < SEEDS:
        raise Failed(
            f"history: set {rule.set}: {len(seeds)} seeds of {rule.label}, and a bound is of "
            f"{SEEDS} at least"
        )
    return {metric: _bound(rule, records, metric) for metric in rule.metrics}


def _bound(rule: Rule, records: Sequence[Record], metric: str) -> Bound:
    found = spread(values(records, rule.label, metric))
    if found is None or found.n < len(records) or not found.median:
        raise Failed(f"history: set {rule.set}: {metric} of {rule.label} has no range to go by")
    return Bound(1 + rule.factor * found.share, found)


def table(rule: Rule, bounds: dict[str, Bound], figures: Figures) -> str:
    """A row a metric: what the runs of the set measured, and the bound that makes."""
    head = [f"`{rule.set}`, `{rule.label}`: median", "range", "of the median", "at most"]
    lines = [f"| metric | {' | '.join(head)} |", f"|---|{'--:|' * len(head)}"]
    for name, bound in bounds.items():
        metric, found = BY_NAME[name], bound.measured
        ends = (Cell(metric, spread([x])).value for x in (found.low, found.high))
        cells = [
            Cell(metric, found).value,
            " to ".join(ends),
            f"{found.share:.2%}",
            f"{bound.most:.3f}",
        ]
        marked = (figures.mark(rule.set, f"bound of {name}", cell) for cell in cells)
        lines.append(f"| {metric.title} | {' | '.join(marked)} |")
    return "\n".join(lines)
