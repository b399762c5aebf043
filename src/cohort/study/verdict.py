"""What the findings say: beside the paper's numbers, and against the targets.

The sentences follow fixed rules, so that the same data always give the same words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cohort.results.catalogue import BY_NAME, Metric
from cohort.results.spread import Spread
from cohort.results.table import Cell
from cohort.study.matrix import Findings
from cohort.study.schema import Seen, Target

ALIKE = 0.10
"""Two relative changes that differ by less than this share of the paper's are as large."""

_SOME = "of some seeds alone"
"""What is said of what not all runs of a column have, which is compared with nothing."""


@dataclass(frozen=True)
class Agreement:
    """One comparison with the paper; `agrees` is None where there is nothing to compare."""

    metric: str
    agrees: bool | None
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """One target of one label; `passed` is None where it cannot be told or does not count."""

    metric: str
    label: str
    value: float | None
    limit: float | None
    passed: bool | None
    sentence: str

    @property
    def word(self) -> str:
        """passed, missed or open."""
        return {True: "passed", False: "missed", None: "open"}[self.passed]


def number(value: float | None, metric: Metric) -> str:
    """A value as tables show it."""
    return "-" if value is None else f"{value:,.{metric.digits}f}"


def _median(found: Spread | None, metric: Metric) -> str:
    """A column's value as tables show it, with its seeds where others have none."""
    cell = Cell(metric, found)
    return f"{cell.value} {cell.some}".rstrip()


def agreements(findings: Findings) -> list[Agreement]:
    """Our findings beside all that the paper says of the study's metrics."""
    found: list[Agreement] = []
    for seen in findings.study.paper:
        if seen.below:
            found.append(_same_ranking(findings, seen))
        elif seen.order:
            found.append(_same_order(findings, seen))
        else:
            base, *others = seen.values
            found += [_same_change(findings, seen, base, other) for other in others]
    return found


def verdicts(findings: Findings) -> list[Verdict]:
    """Each target for each label it is meant for, if that column was run."""
    return [
        _judge(findings, target, label)
        for target in findings.study.target
        for label in target.labels
        if label in findings.labels
    ]


def _same_change(findings: Findings, seen: Seen, base: str, other: str) -> Agreement:
    """From `base` to `other`: do both go the same way, and how far?"""
    metric = BY_NAME[seen.metric]
    theirs = seen.values[other] - seen.values[base]
    a, b = findings.spread(base, seen.metric), findings.spread(other, seen.metric)
    numbers = f"{seen.values[base]:g} with {base}, {seen.values[other]:g} with {other}"
    said = f"{_where(seen)}: {numbers}"
    if a is None or b is None:
        return Agreement(metric.name, None, f"{said}; not measured here.")
    ours = b.median - a.median
    words = (
        f"{said}{_percent(seen.values[base], theirs)}; here {_median(a, metric)} and "
        f"{_median(b, metric)}{_percent(a.median, ours)}"
    )
    if a.some or b.some:
        return Agreement(metric.name, None, f"{words}: {_SOME}.")
    if _overlap(a, b):
        return Agreement(metric.name, theirs == 0, f"{words}: no difference beyond the spread.")
    if theirs * ours <= 0:
        return Agreement(metric.name, False, f"{words}: the other way.")
    if seen.values[base] == 0 or a.median == 0:  # of nothing no change is a part
        return Agreement(metric.name, True, f"{words}: the same way.")
    far = abs(theirs / seen.values[base])
    further = abs(ours / a.median) - far
    how = "further" if further > 0 else "less far"
    how = "as far" if abs(further) < ALIKE * far else how
    return Agreement(metric.name, True, f"{words}: the same way, {how}.")


def _same_order(findings: Findings, seen: Seen) -> Agreement:
    """The paper gives no numbers, only which is lower."""
    metric = BY_NAME[seen.metric]
    spreads = [findings.spread(label, seen.metric) for label in seen.order]
    said = f"{_where(seen)}: {' below '.join(seen.order)}"
    return _in_order(said, [metric] * len(spreads), spreads)


def _same_ranking(findings: Findings, seen: Seen) -> Agreement:
    """Of one column, several metrics from high to low."""
    metrics = [BY_NAME[name] for name in (seen.metric, *seen.below)]
    spreads = [findings.spread(seen.label, metric.name) for metric in metrics]
    said = f"{_where(seen)}: with {seen.label} {' above '.join(x.name for x in metrics)}"
    return _in_order(said, metrics, spreads, falls=True)


def _in_order(
    said: str, metrics: Sequence[Metric], spreads: Sequence[Spread | None], falls: bool = False
) -> Agreement:
    """Whether these, of a metric each, rise as the paper has them, or fall; of the first metric."""
    name = metrics[0].name
    known = [x for x in spreads if x is not None]
    if len(known) < len(spreads):
        return Agreement(name, None, f"{said}; not measured here.")
    shown = ", ".join(_median(x, metric) for x, metric in zip(known, metrics, strict=True))
    words = f"{said}; here {shown}"
    if any(x.some for x in known):
        return Agreement(name, None, f"{words}: {_SOME}.")
    medians = [x.median for x in known]
    if medians != sorted(medians, reverse=falls):
        return Agreement(name, False, f"{words}: another order.")
    if any(_overlap(a, b) for a, b in zip(known, known[1:], strict=False)):
        return Agreement(name, None, f"{words}: the same order, but within the spread.")
    return Agreement(name, True, f"{words}: the same order.")


def _where(seen: Seen) -> str:
    return f"{seen.where} ({seen.note})" if seen.note else seen.where


def _judge(findings: Findings, target: Target, label: str) -> Verdict:
    metric = BY_NAME[target.metric]
    found = findings.spread(label, metric.name)
    value = None if found is None else found.median
    limit, bound = _limit(findings, target)
    relation = "at most" if target.at_most is not None else "at least"
    said = f"{label}: {metric.name} {_median(found, metric)}, {relation} {bound}"

    def verdict(passed: bool | None, why: str = "") -> Verdict:
        word = {True: "passed", False: "missed", None: "open"}[passed]
        return Verdict(metric.name, label, value, limit, passed, f"{said}: {word}{why}.")

    if value is None or limit is None:
        return verdict(None, ", not measured")
    if _of_some(findings, target, label):
        return verdict(None, f", {_SOME}")
    if (need := target.provided) is not None:
        there = findings.spread(need.label, metric.name)
        if there is None or there.median < need.at_least:
            has = number(there.median if there else None, metric)
            return verdict(None, f", as {need.label} has {has}, less than {need.at_least:g}")
    return verdict(value <= limit if target.at_most is not None else value >= limit)


def _of_some(findings: Findings, target: Target, label: str) -> bool:
    """Whether a column that the target looks at has the metric in some of its runs alone."""
    columns = [label, target.times, target.provided.label if target.provided else None]
    found = [findings.spread(x, target.metric) for x in columns if x is not None]
    return any(x is not None and x.some for x in found)


def _limit(findings: Findings, target: Target) -> tuple[float | None, str]:
    """The bound as a number, and in words."""
    factor = target.at_most if target.at_most is not None else target.at_least
    assert factor is not None  # the schema wants one of the two
    if target.times is None:
        return float(factor), f"{factor:g}"
    base = findings.spread(target.times, target.metric)
    limit = None if base is None else float(factor) * base.median
    shown = number(limit, BY_NAME[target.metric])
    return limit, f"{shown} ({factor:.4g} x {target.times})"


def _overlap(a: Spread, b: Spread) -> bool:
    """Whether the ranges over the seeds touch; single runs never do unless they are equal."""
    return a.low <= b.high and b.low <= a.high


def _percent(old: float, change: float) -> str:
    """A change as a part of the old value, in brackets; nothing where that is 0."""
    return f" ({change / abs(old) * 100:+.0f} %)" if old else ""
