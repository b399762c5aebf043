"""Outcomes of a suite for people and for programs: tables and JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cohort.suites.results import (
    SHARE,
    STATUSES,
    Difference,
    Figure,
    Outcome,
    Status,
    cost_names,
    costs,
    differences,
    whole,
)

_COLOURS = {"pass": "green", "skip": "yellow", "absent": "yellow"}
_SHOWN_LINES = 4
_WIDE = 200


# Of what a case says only a Text is shown: rich takes a word in brackets for a style.
def print_tables(outcomes: Sequence[Outcome], bound: float, console: Console) -> None:
    """Counts by policy, costs, then each result that differs, with what the cases said last."""
    if not console.is_terminal:
        console = Console(file=console.file, width=_WIDE)
    console.print(_counts_table(outcomes))
    if any(map(costs, outcomes)):
        console.print(_costs_table(outcomes))
    if any(case.figures for outcome in outcomes for case in outcome.cases):
        console.print(_figures_table(outcomes))
    found = differences(outcomes, bound)
    if not found:
        console.print(f"no case differs from {outcomes[0].policy}", highlight=False)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("differs")
    for outcome in outcomes:
        table.add_column(outcome.policy)
    for difference in found:
        table.add_row(Text(difference.name), *(_coloured(x) for x in difference.statuses))
    console.print(table)
    for difference in found:
        for line in _words(difference):
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def _counts_table(outcomes: Sequence[Outcome]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("policy")
    for status in STATUSES:
        table.add_column(status, justify="right")
    for title in ("checks: pass", "fail", "skip", "boots"):
        table.add_column(title, justify="right")
    for outcome in outcomes:
        counts, checks = outcome.counts(), outcome.check_counts()
        cells = [counts[status] for status in STATUSES]
        cells += [checks["pass"], checks["fail"], checks["skip"], outcome.boots]
        table.add_row(outcome.policy, *map(str, cells))
    return table


def _costs_table(outcomes: Sequence[Outcome]) -> Table:
    """What cases say that something cost, and how many times that is what the first policy has."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("cost")
    by_policy = [costs(outcome) for outcome in outcomes]
    for outcome in outcomes:
        table.add_column(outcome.policy, justify="right")
    for name in cost_names(outcomes):
        shown = [of_policy.get(name) for of_policy in by_policy]
        cells = ["-" if x is None else f"{x:,.1f}{_times(x, shown[0])}" for x in shown]
        table.add_row(Text(name), *cells)
    return table


def _figures_table(outcomes: Sequence[Outcome]) -> Table:
    """What all cases measured together; JSON has those of each."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("figure, all cases")
    by_policy = [whole(outcome.cases) for outcome in outcomes]
    for outcome in outcomes:
        table.add_column(outcome.policy, justify="right")
    for name in dict.fromkeys(name for figures in by_policy for name in figures):
        shown = [figures.get(name) for figures in by_policy]
        unit = next(x.unit for x in shown if x is not None)
        cells = ["-" if x is None else _number(x) for x in shown]
        table.add_row(Text(f"{name}, {unit}" if unit else name), *cells)
    return table


def _number(figure: Figure) -> str:
    if figure.unit == SHARE:
        return f"{figure.value:.3f}"
    return f"{figure.value:,.1f}" if figure.unit else f"{figure.value:,.0f}"


def _times(cost: float, first: float | None) -> str:
    return f" ({cost / first:.2f})" if first else ""


def _coloured(status: Status) -> str:
    colour = _COLOURS.get(status, "red")
    return f"[{colour}]{status}[/{colour}]"


def _words(difference: Difference) -> Iterator[str]:
    """What a case that differs said last, under each policy; its checks say no more."""
    if ":" in difference.name:
        return
    for policy, lines in difference.tails.items():
        for line in lines[-_SHOWN_LINES:]:
            yield f"{difference.name}, {policy}: {line}"


def as_object(outcomes: Sequence[Outcome], bound: float) -> dict[str, Any]:
    """Everything, for other programs."""
    found = differences(outcomes, bound)
    policies = [outcome.policy for outcome in outcomes]
    return {
        "ok": not found,
        "policies": {
            outcome.policy: {
                "counts": {status: outcome.counts()[status] for status in STATUSES},
                "checks": {x: outcome.check_counts()[x] for x in ("pass", "fail", "skip")},
                "boots": outcome.boots,
                "figures": {name: asdict(x) for name, x in whole(outcome.cases).items()},
                "cases": [asdict(case) for case in outcome.cases],
            }
            for outcome in outcomes
        },
        "differences": [
            {"name": x.name, "status": dict(zip(policies, x.statuses, strict=True))} for x in found
        ],
    }
