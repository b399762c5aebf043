"""Physical memory as a picture: which kind of page sits where, policy by policy, over time."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cohort.results.night import by_night
from cohort.results.runs import Result, policies_of
from cohort.units import PAGE

TIMES = 4
"""Maps shown of each policy, spread over the run."""

ROW_MIB = 32
"""Memory in one row of a map: 64 rows for 2 GiB."""


@dataclass(frozen=True)
class Kind:
    """What a cell of a map may be, its kind or its owner: in words, and its colour."""

    label: str
    colour: str


# Letters of both are those of docs/reference/records.md; the last entry takes any other.
KINDS = {
    ".": Kind("free", "#f2f2ee"),
    "A": Kind("anonymous", "#e8a33d"),
    "F": Kind("file", "#4f9d69"),
    "S": Kind("slab", "#7b5ea7"),
    "T": Kind("page table", "#b04a8f"),
    "K": Kind("buffer or kernel", "#3b6fb6"),
    "P": Kind("parked by Cohort", "#9fe0e6"),
    "m": Kind("mixed", "#6b4423"),
    "-": Kind("not memory", "#ffffff"),
    "?": Kind("other", "#222222"),
}

OWNERS = {
    ".": Kind("free, no owner", "#f2f2ee"),
    "u": Kind("in use, no owner", "#a9a49a"),
    "0246": Kind("processes, even numbers", "#e8a33d"),
    "1357": Kind("processes, odd numbers", "#c4742b"),
    "f": Kind("processes' first pages", "#f3d38b"),
    "s": Kind("shared", "#b5423c"),
    "v": Kind("service", "#d98880"),
    "c": Kind("page cache", "#4f9d69"),
    "h": Kind("page cache that stays", "#2c6e49"),
    "b": Kind("metadata of block devices", "#8fc9a3"),
    "d": Kind("drivers", "#3b6fb6"),
    "k": Kind("kernel", "#7b5ea7"),
    "z": Kind("compressed swap", "#b04a8f"),
    "a": Kind("the area", "#3aa6a6"),
    "m": Kind("mixed", "#6b4423"),
    "-": Kind("not memory", "#ffffff"),
    "?": Kind("other", "#222222"),
}
"""Letters of an owner, all with one colour."""

NO_OWNER, USED = ".", "u"


@dataclass(frozen=True)
class Entry:
    """A line of a legend: the letters it stands for, its words, its colours by day and night."""

    letters: str
    label: str
    day: str
    night: str


def map_data(results: Sequence[Result]) -> dict[str, Any] | None:
    """What the page draws maps from: legends, and all maps of each policy's first run, by kind and,
    unless no run tells, by owner.

    `columns` cells are a row of ROW_MIB. None if no run has a map.
    """
    runs = _mapped_runs(results)
    if not runs:
        return None
    told = any(owners for run in runs for owners in run.series["map_owners"])
    legends = {"kind": KINDS} | ({"owner": OWNERS} if told else {})
    return {
        "row_mib": ROW_MIB,
        "legends": {by: _legend(kinds) for by, kinds in legends.items()},
        "runs": [
            {
                "name": f"{run.policy}, seed {run.seed}",
                "columns": _columns(int(run.series["map_cell_pages"][0])),
                "launches": run.series["map_n"],
                "cells": {by: _cells(run, by) for by in legends},
            }
            for run in runs
        ],
    }


def _legend(kinds: dict[str, Kind]) -> list[dict[str, str]]:
    return [
        asdict(Entry(letters, kind.label, kind.colour, by_night(kind.colour)))
        for letters, kind in kinds.items()
    ]


def _cells(run: Result, by: str) -> list[str]:
    """The maps of a run, as they are, or by owner."""
    kinds, owners = (run.series[f"map_{key}"] for key in ("cells", "owners"))
    if by == "kind":
        return list(kinds)
    return [_owned(kind, owner or "") for kind, owner in zip(kinds, owners, strict=True)]


def _owned(kinds: str, owners: str) -> str:
    """A map by owner, and where there is none what the kind tells. No owners: nothing has one."""
    padded = owners.ljust(len(kinds), NO_OWNER)
    return "".join(
        owner if owner != NO_OWNER else kind if kind in ".-" else USED
        for kind, owner in zip(kinds, padded, strict=True)
    )


def draw_maps(results: Sequence[Result]) -> Figure | None:
    """A row a policy (its first run), a column a time; address runs right, then down."""
    runs = _mapped_runs(results)
    if not runs:
        return None
    figure = Figure(figsize=(10.5, 0.5 + 2.7 * len(runs)), layout="constrained")
    axes = figure.subplots(len(runs), TIMES, squeeze=False)
    seen: set[int] = set()
    for run, row in zip(runs, axes, strict=True):
        row[0].set_ylabel(f"{run.policy}, seed {run.seed}\naddress, MiB", fontsize=9)
        for ax, index in zip(row, _picks(len(run.series["map_n"])), strict=True):
            seen |= _draw_one(ax, run, index)
        for ax in row[1:]:
            ax.set_yticks([])
    kinds = list(KINDS.values())
    patches = [
        Patch(facecolor=kind.colour, edgecolor="#999999", linewidth=0.5, label=kind.label)
        for code, kind in enumerate(kinds)
        if code in seen
    ]
    figure.legend(handles=patches, loc="outside upper center", ncols=min(len(patches), 5))
    return figure


def _mapped_runs(results: Sequence[Result]) -> list[Result]:
    """The first run of each policy, without those that have no map."""
    first = (next(r for r in results if r.policy == policy) for policy in policies_of(results))
    return [run for run in first if run.series["map_cells"]]


def _columns(cell_pages: int) -> int:
    """Cells in a row of ROW_MIB."""
    return max(1, (ROW_MIB << 20) // (cell_pages * PAGE))


def _picks(count: int) -> list[int]:
    """Which of `count` maps to show: the first, the last and those evenly between."""
    return [round(x) for x in np.linspace(0, count - 1, TIMES)]


def _draw_one(ax: Axes, run: Result, index: int) -> set[int]:
    """Draw map number `index` of the run; returns the codes of the kinds that occur."""
    grid = _grid(run.series["map_cells"][index], int(run.series["map_cell_pages"][index]))
    colours = ListedColormap([kind.colour for kind in KINDS.values()])
    bottom = grid.shape[0] * ROW_MIB
    ax.imshow(
        grid,
        cmap=colours,
        vmin=0,
        vmax=len(KINDS) - 1,
        interpolation="none",
        aspect="auto",
        extent=(0, ROW_MIB, bottom, 0),
    )
    launch = run.series["map_n"][index]
    ax.set_title(f"after launch {launch}" if launch else "booted")
    ax.grid(visible=False)
    ax.set_xticks([])
    ax.set_yticks(range(0, bottom + 1, max(1, bottom // 4)))
    return set(np.unique(grid).tolist())


def _grid(cells: str, cell_pages: int) -> npt.NDArray[np.uint8]:
    """The cells as codes of KINDS, in rows of ROW_MIB; the last row is filled with no memory."""
    letters = {letter: code for code, letter in enumerate(KINDS)}
    other = letters["?"]
    codes = np.array([letters.get(cell, other) for cell in cells], dtype=np.uint8)
    width = _columns(cell_pages)
    padding = -len(codes) % width
    padded = np.pad(codes, (0, padding), constant_values=letters["-"])
    return padded.reshape(-1, width)
