"""A study's picture, as the text of an SVG image."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cohort.results.plots import STYLE, policy_colours, svg_text
from cohort.results.spread import spread
from cohort.study.matrix import Findings
from cohort.study.schema import Picture
from cohort.study.text import seen_of

_WIDTH = 9.0
_ORDERS = range(11)


def draw(findings: Findings) -> str | None:
    """The picture the study asks for; None if it asks for none or no run has the data."""
    wanted = findings.study.picture
    if wanted is None:
        return None
    labels = [x for x in findings.labels if not wanted.labels or x in wanted.labels]
    drawing = {
        "bars": _draw_bars,
        "orders": _draw_orders,
        "line": _draw_lines,
        "runs": _draw_runs,
    }[wanted.kind]
    with mpl.rc_context({**STYLE, "svg.hashsalt": findings.study.name}):
        figure = Figure(figsize=(_WIDTH, 3.6), layout="constrained")
        ax = figure.subplots()
        if not drawing(ax, findings, wanted, labels):
            return None
        ax.set_xlabel(wanted.x)
        ax.set_ylabel(wanted.y)
        return svg_text(figure)


def _colours(findings: Findings, labels: Sequence[str]) -> dict[str, str]:
    return policy_colours([findings.results[label][0] for label in labels])


def _draw_bars(ax: Axes, findings: Findings, wanted: Picture, labels: Sequence[str]) -> bool:
    """A bar a label, from least to greatest a whisker; the paper's numbers as diamonds."""
    spreads = {x: found for x in labels if (found := findings.spread(x, wanted.name))}
    colours = _colours(findings, labels)
    for at, (label, found) in enumerate(spreads.items()):
        reach = [[found.median - found.low], [found.high - found.median]]
        ax.bar(at, found.median, 0.6, color=colours[label], yerr=reach, ecolor="#333333")
        theirs = seen_of(findings, label, wanted.name)
        if theirs is not None:
            ax.plot(at, theirs, "D", color="black", markerfacecolor="none")
    ax.set_xticks(range(len(spreads)), list(spreads), rotation=20 if len(spreads) > 4 else 0)
    ax.grid(axis="x", visible=False)
    return bool(spreads)


def _draw_orders(ax: Axes, findings: Findings, wanted: Picture, labels: Sequence[str]) -> bool:
    """A group of bars an order, a bar a label."""
    width = 0.8 / max(1, len(labels))
    drawn = False
    for i, (label, colour) in enumerate(_colours(findings, labels).items()):
        found = [spread(findings.values(label, f"{wanted.name}{order}")) for order in _ORDERS]
        heights = [0.0 if x is None else x.median for x in found]
        places = np.array(_ORDERS) + (i - (len(labels) - 1) / 2) * width
        ax.bar(places, heights, width, color=colour, label=label)
        drawn |= any(x is not None for x in found)
    ax.set_xticks(list(_ORDERS))
    ax.grid(axis="x", visible=False)
    ax.legend()
    return drawn


def _draw_lines(ax: Axes, findings: Findings, wanted: Picture, labels: Sequence[str]) -> bool:
    """A thin line a run; the mean over the runs as far as all of them go."""
    drawn = False
    for label, colour in _colours(findings, labels).items():
        series = [result.series.get(wanted.name, []) for result in findings.results[label]]
        lines = [line for line in map(_numbers, series) if line]
        if not lines:
            continue
        for line in lines:
            ax.plot(range(1, len(line) + 1), line, color=colour, linewidth=0.6, alpha=0.5)
        shared = min(map(len, lines))
        mean = np.mean([line[:shared] for line in lines], axis=0)
        ax.plot(range(1, shared + 1), mean, color=colour, linewidth=1.8, label=label)
        drawn = True
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if drawn:
        ax.legend()
    return drawn


def _draw_runs(ax: Axes, findings: Findings, wanted: Picture, labels: Sequence[str]) -> bool:
    """A row an entry, a stroke a run of pages; the first result of each label."""
    rows = [
        (colour, runs)
        for label, colour in _colours(findings, labels).items()
        for runs in findings.results[label][0].series.get(wanted.name, [])
        if isinstance(runs, list)
    ]
    for at, (colour, runs) in enumerate(rows, start=1):
        ax.broken_barh([(first, count) for first, count in runs], (at - 0.4, 0.8), color=colour)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(0.4, len(rows) + 0.6)
    return bool(rows)


def _numbers(line: Sequence[Any]) -> list[float]:
    """A series with NaN where nothing was measured; empty for one of words or of lists."""
    if not all(x is None or isinstance(x, int | float) for x in line):
        return []
    return [np.nan if x is None else x for x in line]
