"""Pictures of a set of records. Each carries the numbers it was drawn from, by which it is checked:
another release of a font must not make a right picture wrong.
"""

import json
import re

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cohort.results.catalogue import BY_NAME
from cohort.results.plots import STYLE, colours, size_of, svg_text
from cohort.results.sheet import Picture

_WIDTH = 8.0
_ORDER = re.compile(r"_order([0-9]+)$")


def draw(name: str, picture: Picture) -> str:
    """The picture as an SVG image; `name` makes its ids, so that it is the same each time."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(_WIDTH, 3.2), layout="constrained")
        ax = figure.subplots()
        if any(len(values) > 1 for values in picture.values()):
            _draw_orders(ax, picture)
        else:
            _draw_bars(ax, picture)
        return svg_text(figure) + _numbers(picture)


def is_of(svg: str, picture: Picture) -> bool:
    """Whether the image was drawn from these numbers."""
    return svg.endswith(_numbers(picture))


def _numbers(picture: Picture) -> str:
    """As a comment, in which two dashes must not follow one another."""
    text = json.dumps(picture, sort_keys=True).replace("--", "-\\u002d")
    return f"<!-- {text} -->\n"


def _draw_bars(ax: Axes, picture: Picture) -> None:
    """A bar a label, with a whisker from least to greatest."""
    shown = {label: values for label, values in picture.items() if values}
    metric = BY_NAME[next(name for values in shown.values() for name in values)]
    for at, (label, values) in enumerate(shown.items()):
        median, low, high = values[metric.name]
        reach = [[median - low], [high - median]]
        ax.bar(at, median, 0.6, color=colours(shown)[label], yerr=reach, ecolor="#333333")
    ax.set_xticks(range(len(shown)), list(shown), rotation=20 if len(shown) > 4 else 0)
    ax.grid(axis="x", visible=False)
    ax.set_ylabel(f"{metric.title}{f', {metric.unit}' if metric.unit else ''}")


def _draw_orders(ax: Axes, picture: Picture) -> None:
    """A line a label over the orders of a family of metrics, in a band from least to greatest."""
    for label, values in picture.items():
        if not values:
            continue
        orders = [int(found[1]) for name in values if (found := _ORDER.search(name))]
        median, low, high = zip(*values.values(), strict=True)
        colour = colours(picture)[label]
        ax.fill_between(orders, low, high, color=colour, alpha=0.2)
        ax.plot(orders, median, color=colour, label=label, linewidth=1.6)
    ax.set_xticks(range(1, 11), [size_of(order) for order in range(1, 11)])
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("a piece of")
    ax.set_ylabel("unusable share of free memory")
    ax.legend()
