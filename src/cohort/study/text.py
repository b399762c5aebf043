"""A study's findings as a table, as Markdown for a results page, and as one JSON object."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from cohort.results.catalogue import BY_NAME
from cohort.results.runs import accelerator_label
from cohort.results.spread import spread
from cohort.results.table import several
from cohort.study.matrix import Findings
from cohort.study.schema import Measure
from cohort.study.verdict import agreements, number, verdicts

_STATISTICS: dict[str, Callable[[list[float]], Any]] = {
    "median": np.median,
    "mean": np.mean,
    "min": np.min,
    "max": np.max,
}


def value_of(findings: Findings, label: str, measure: Measure) -> float | None:
    """A measure of a column over the seeds; None if no run can tell it."""
    known = [x for x in findings.values(label, measure.metric) if x is not None]
    return float(_STATISTICS[measure.statistic](known)) if known else None


def seen_of(findings: Findings, label: str, metric: str) -> float | None:
    """The paper's number for a column; None if it gives none."""
    for seen in findings.study.paper:
        if seen.metric == metric and label in seen.values:
            return float(seen.values[label])
    return None


def head(findings: Findings) -> list[str]:
    """The titles of the table's columns: each measure, and the paper beside it where it has one."""
    titles = ["run"]
    for measure in findings.study.measure:
        metric = BY_NAME[measure.metric]
        unit = f", {metric.unit}" if metric.unit else ""
        how = "" if measure.statistic == "median" else f" ({measure.statistic})"
        titles.append(f"{metric.name}{unit}{how}")
        if _in_paper(findings, metric.name):
            titles.append("paper")
    return titles


def rows(findings: Findings) -> list[list[str]]:
    """One row a run: the value over the seeds, [least, greatest], of how many seeds it is where
    some have none, and the paper's number."""
    return [[label, *_cells(findings, label)] for label in findings.labels]


def _cells(findings: Findings, label: str) -> list[str]:
    cells = []
    for measure in findings.study.measure:
        metric = BY_NAME[measure.metric]
        cell = number(value_of(findings, label, measure), metric)
        over = spread(findings.values(label, metric.name))
        if over is not None and over.n > 1:
            cell += f" [{number(over.low, metric)}, {number(over.high, metric)}]"
        if over is not None and over.some:
            cell += f" {over.some}"
        cells.append(cell)
        if _in_paper(findings, metric.name):
            theirs = seen_of(findings, label, metric.name)
            cells.append("" if theirs is None else f"{theirs:g}")
    return cells


def _in_paper(findings: Findings, metric: str) -> bool:
    return any(seen.metric == metric and seen.values for seen in findings.study.paper)


def circumstances(findings: Findings) -> str:
    """On what all this was measured, in one line."""
    results = [result for each in findings.results.values() for result in each]
    seeds = sorted({result.seed for result in results})
    workload, memory, cpus, launches = (
        several(results, key, ", ") for key in ("workload", "memory_mb", "cpus", "launches")
    )
    accels = ", ".join(dict.fromkeys(accelerator_label(result.accel) for result in results))
    numbers = ", ".join(map(str, seeds))
    spoken = f"seed {numbers}" if len(seeds) == 1 else f"seeds {numbers} [least, greatest]"
    return f"{workload}; {launches} launches; {spoken}; {memory} MiB; {cpus} CPUs; {accels}"


def print_findings(findings: Findings, console: Console) -> None:
    """Table, comparison with the paper, targets."""
    study = findings.study
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, title in enumerate(head(findings)):
        table.add_column(Text(title), justify="right" if i else "left", no_wrap=not i)
    for row in rows(findings):
        table.add_row(*map(Text, row))
    if not console.is_terminal:
        wide = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
        console = Console(file=console.file, width=max(console.width, wide))
    console.print(study.title, style="bold", highlight=False, markup=False)
    for line in (study.source, circumstances(findings)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(table)
    for line in sentences(findings):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def sentences(findings: Findings) -> list[str]:
    """What the findings say, one sentence a line."""
    said = [f"Paper, {x.sentence}" for x in agreements(findings)]
    return said + [f"Target, {x.sentence}" for x in verdicts(findings)]


def markdown(findings: Findings, command: str, picture: str | None) -> str:
    """The same for a results page; `picture` is the file of the drawing, if there is one."""
    study = findings.study
    titles = head(findings)
    lines = [f"## {study.title}", "", f"    {command}", "", f"{study.source}."]
    if study.note:
        lines += ["", study.note]
    lines += ["", _row(_code(x) for x in titles)]
    lines += [_row("---" if not i else "--:" for i in range(len(titles)))]
    lines += [_row(cells) for cells in rows(findings)]
    lines += ["", f"{circumstances(findings)}."]
    if picture is not None:
        lines += ["", f"![{study.title}]({picture})"]
    lines += ["", *(f"- {line}" for line in sentences(findings))]
    return "\n".join(lines) + "\n"


def _code(title: str) -> str:
    """A title with the metric's name, if it has one, as code."""
    name, comma, unit = title.partition(",")
    return f"`{name}`{comma}{unit}" if name.split(" ")[0] in BY_NAME else title


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def as_object(findings: Findings) -> dict[str, Any]:
    """Everything, for other programs; docs/reference/studies.md lists the keys."""
    study = findings.study
    return {
        "study": study.name,
        "title": study.title,
        "source": study.source,
        "table": [
            _entry(findings, label, measure)
            for label in findings.labels
            for measure in study.measure
        ],
        "paper": [asdict(x) for x in agreements(findings)],
        "targets": [asdict(x) for x in verdicts(findings)],
        "runs": [
            {
                "label": label,
                "seed": result.seed,
                "path": str(result.path),
                "policy": result.meta.get("policy"),
                "workload": result.workload,
                "metrics": dict(result.metrics),
            }
            for label, results in findings.results.items()
            for result in results
        ],
    }


def _entry(findings: Findings, label: str, measure: Measure) -> dict[str, Any]:
    over = findings.spread(label, measure.metric)
    return {
        "label": label,
        "metric": measure.metric,
        "statistic": measure.statistic,
        "value": value_of(findings, label, measure),
        "least": None if over is None else over.low,
        "greatest": None if over is None else over.high,
        "seeds": 0 if over is None else over.n,
        "paper": seen_of(findings, label, measure.metric),
    }
