"""The pictures of the report, each as the text of an SVG image without outside references."""

import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

from cohort.results.memory_map import draw_maps
from cohort.results.runs import Result, policies_of
from cohort.units import PAGE

UI_ORDERS = (2, 4, 6, 8)

_WIDTH = 10.5
_COLOURS = {
    "none": "#5f6368",
    "tuned": "#e69f00",
    "tuned-compact": "#a0522d",
    "mthp16": "#e3b8d8",
    "mthp32": "#cc8abf",
    "mthp": "#b35fa0",
    "mglru": "#8c6d46",
    "tuned-mglru": "#c9b000",
    "tuned-compact-mglru": "#bc8f8f",
    "region": "#0072b2",
    "region-mglru": "#56b4e9",
    "region5": "#9ecae1",
    "region6": "#4aa3df",
    "region7": "#1f5fa8",
    "region8": "#08306b",
    "cpb": "#009e73",
    "sra": "#a3a3a3",
    "cma": "#d55e00",
    "pcpa": "#7b3294",
    "pcpa-contig": "#b58fc6",
}
_SPARE_COLOURS = ("#d55e00", "#117a5a", "#7b3294", "#a6761d", "#e7298a", "#66a61e")
_PIECES = {
    "buffer_order9_mb": (9, "#123a6b"),
    "buffer_order8_mb": (8, "#20639b"),
    "buffer_order4_mb": (4, "#9fc5e8"),
    "buffer_order0_mb": (0, "#d1495b"),
}
_MEMORY = {
    "free_mb": "free (MiB)",
    "parked_mb": "of it parked (MiB)",
    "file_mb": "page cache (MiB)",
    "kills": "apps killed so far",
}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
}


def draw_all(results: Sequence[Result]) -> dict[str, str]:
    """Every picture of these runs, by name. A picture whose data no run has is left out."""
    drawings: dict[str, Callable[[Sequence[Result]], Figure | None]] = {
        "ui": _draw_ui,
        "map": draw_maps,
        "buffers": _draw_composition,
        "latency": _draw_latency,
        "memory": _draw_memory,
    }
    pictures: dict[str, str] = {}
    for name, draw in drawings.items():
        with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
            figure = draw(results)
            if figure is not None:
                pictures[name] = svg_text(figure)
    return pictures


def policy_colours(results: Sequence[Result]) -> dict[str, str]:
    """A colour a policy; those that most reports have are the same in each."""
    return colours(policies_of(results))


def colours(policies: Iterable[str]) -> dict[str, str]:
    """The same by the policies' names; one without a colour of its own has one that no other of
    them has."""
    named = list(policies)
    taken = {_COLOURS.get(policy) for policy in named}
    spare = iter([x for x in _SPARE_COLOURS if x not in taken] * 6)
    return {policy: _COLOURS.get(policy) or next(spare, "#000000") for policy in named}


def svg_text(figure: Figure) -> str:
    """The figure as an `<svg>` element; the same figure gives the same text."""
    buffer = io.StringIO()
    unstated = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=unstated)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _draw_ui(results: Sequence[Result]) -> Figure:
    """Unusable free space index over the launches, a panel an order."""
    figure = Figure(figsize=(_WIDTH, 5.6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey=True).flat
    page_sizes = _page_sizes(results)
    for order, ax in zip(UI_ORDERS, axes, strict=True):
        _lines(ax, results, f"ui_order{order}")
        _dashes(ax, results, f"ui_all_order{order}")
        ax.set_title(f"order {order} ({_any_size_of(order, page_sizes)})")
        ax.set_ylim(0, 1.02)
        _shade_second_half(ax, results)
    figure.supxlabel("app launches", fontsize=9)
    figure.supylabel("unusable free space index", fontsize=9)
    _legend(figure, results)
    return figure


def _draw_memory(results: Sequence[Result]) -> Figure:
    """Free memory, what of it is parked, page cache and kills over the launches."""
    figure = Figure(figsize=(_WIDTH, 5.6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True).flat
    for (name, title), ax in zip(_MEMORY.items(), axes, strict=True):
        _lines(ax, results, name)
        ax.set_title(title)
        ax.set_ylim(0, max(1.0, ax.get_ylim()[1]))
        ax.set_xlim(left=0)
    figure.supxlabel("app launches", fontsize=9)
    _legend(figure, results)
    return figure


def _draw_composition(results: Sequence[Result]) -> Figure | None:
    """What buffers are built from over the launches, by bytes, a panel a policy."""
    by_policy = {x: [r for r in results if r.policy == x] for x in policies_of(results)}
    frames = {
        policy: shares
        for policy, runs in by_policy.items()
        if (shares := _composition(runs)) is not None
    }
    if not frames:
        return None
    page_sizes = _page_sizes(results)
    figure = Figure(figsize=(_WIDTH, 2.7), layout="constrained")
    axes = figure.subplots(1, len(frames), sharey=True, squeeze=False).flat
    for (policy, shares), ax in zip(frames.items(), axes, strict=True):
        bottom = np.zeros(len(shares))
        width = float(shares.index[0]) * 2 if len(shares) else 1.0
        for name in map(str, shares):
            order, colour = _PIECES[name]
            label = f"{_any_size_of(order, page_sizes)} (order {order})"
            values = shares[name].to_numpy(dtype=float)
            ax.bar(shares.index, values, width, bottom, color=colour, label=label, aa=False)
            bottom += values
        own = f", pages of {_any_size_of(0, _page_sizes(by_policy[policy]))}"
        title = f"{policy}{own if len(page_sizes) > 1 else ''}"
        ax.set_title(title, color=policy_colours(results)[policy], fontweight="bold")
        ax.set_ylim(0, 1)
        ax.grid(visible=False)
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    figure.supxlabel("app launches", fontsize=9)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


def _composition(results: Sequence[Result], bins: int = 25) -> pd.DataFrame | None:
    """Shares of the bytes by piece, indexed by the middle launch of each bin; None without any."""
    pieces = [name for name in _PIECES if all(name in r.series for r in results)]
    columns = ["buffer_n", *pieces]
    frame = pd.concat([pd.DataFrame({c: r.series[c] for c in columns}) for r in results])
    frame = frame.dropna()
    if frame.empty:
        return None
    last = float(frame["buffer_n"].max())
    bins = max(1, min(bins, int(last)))
    size = max(1.0, last / bins)
    middle = (np.ceil(frame["buffer_n"].astype(float) / size) - 0.5) * size
    mib = frame[pieces].astype(float).groupby(middle).sum()
    mib = mib.reindex((np.arange(bins) + 0.5) * size, method="nearest", tolerance=size / 4)
    return mib.div(mib.sum(axis=1), axis=0).fillna(0.0)


def _draw_latency(results: Sequence[Result]) -> Figure | None:
    """Distribution of the time of a buffer's allocation: finding pages, and zeroing them."""
    figure = Figure(figsize=(_WIDTH, 3.0), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    titles = {"buffer_find_us": "finding pages", "buffer_zero_us": "zeroing them"}
    drawn = False
    for (name, title), ax in zip(titles.items(), axes, strict=True):
        for policy, colour in policy_colours(results).items():
            pooled = [x for r in results if r.policy == policy for x in r.series[name]]
            values = np.sort([x for x in pooled if x is not None and x > 0])
            if len(values):
                share = np.arange(1, len(values) + 1) / len(values)
                ax.step(values, share, where="post", color=colour, label=policy, linewidth=1.6)
                drawn = True
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 300 * low else (1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda us, _: f"{us:,g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_title(title)
        ax.set_xlabel("µs a buffer (log)")
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes[0].set_ylabel("buffers at most this slow")
    _legend(figure, results)
    return figure if drawn else None


def _lines(ax: Axes, results: Sequence[Result], name: str) -> None:
    """One line a policy: the median over its seeds, in a band from least to greatest."""
    for policy, colour in policy_colours(results).items():
        over = _over_launches(results, policy, name)
        if over is None:
            continue
        if len(over.columns) > 1:
            ax.fill_between(over.index, over.min(axis=1), over.max(axis=1), color=colour, alpha=0.2)
        ax.plot(over.index, over.median(axis=1), color=colour, label=policy, linewidth=1.3)


def _dashes(ax: Axes, results: Sequence[Result], name: str) -> None:
    """One dashed line a policy, the median over its seeds; none where no run knows the values."""
    for policy, colour in policy_colours(results).items():
        over = _over_launches(results, policy, name)
        if over is not None and over.notna().any(axis=None):
            ax.plot(over.index, over.median(axis=1), "--", color=colour, linewidth=1.0)


def _over_launches(results: Sequence[Result], policy: str, name: str) -> pd.DataFrame | None:
    """A series of a policy by launch, a column a seed; None if no run has it."""
    runs = [r for r in results if r.policy == policy and r.series[name]]
    columns = [pd.Series(r.series[name], index=r.series["n"], dtype=float) for r in runs]
    return pd.concat(columns, axis=1) if columns else None


def _shade_second_half(ax: Axes, results: Sequence[Result]) -> None:
    """Mark the launches that the metrics of the second half are taken from."""
    last = max((max(r.series["n"]) for r in results if r.series["n"]), default=0)
    ax.axvspan(last // 2, last, color="#f4f4f1", zorder=0)
    ax.set_xlim(0, max(last, 1))


def _legend(figure: Figure, results: Sequence[Result]) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if handles:
        columns = min(len(labels), 6)
        figure.legend(handles, labels, loc="outside upper center", ncols=columns)


def _page_sizes(results: Sequence[Result]) -> list[int]:
    """Bytes of a page of the runs' machines, each size once."""
    return list(dict.fromkeys(int(r.meta.get("page_size", PAGE)) for r in results))


def _any_size_of(order: int, page_sizes: Iterable[int]) -> str:
    """How large a piece of that order is, of pages of each of these sizes."""
    return " or ".join(size_of(order, page_size) for page_size in page_sizes)


def size_of(order: int, page_size: int = PAGE) -> str:
    """How large a piece of that order is, of pages of so many bytes."""
    kib = page_size << order >> 10
    return f"{kib} KiB" if kib < 1024 else f"{kib >> 10} MiB"
