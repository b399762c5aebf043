"""Physical memory as a picture: which kind of page sits where, policy by policy, over time."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cohort.results.frames import PAGE
from cohort.results.runs import Result, policies_of

TIMES = 4
"""Maps shown of each policy, spread over the run."""

ROW_MIB = 32
"""Memory in one row of a map: 64 rows for 2 GiB."""

# Letters are those of docs/reference/records.md; the last entry takes any other.
KINDS = {
    ".": ("free", "#f2f2ee"),
    "A": ("anonymous", "#e8a33d"),
    "F": ("file", "#4f9d69"),
    "S": ("slab", "#7b5ea7"),
    "T": ("page table", "#b04a8f"),
    "K": ("buffer or kernel", "#3b6fb6"),
    "P": ("parked by Cohort", "#9fe0e6"),
    "m": ("mixed", "#6b4423"),
    "-": ("not memory", "#ffffff"),
    "?": ("other", "#222222"),
}


def draw_maps(results: Sequence[Result]) -> Figure | None:
    """A row a policy (its first run), a column a time; address runs right, then down."""
    runs = [next(r for r in results if r.policy == policy) for policy in policies_of(results)]
    runs = [run for run in runs if run.series["map_cells"]]
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
        Patch(facecolor=colour, edgecolor="#999999", linewidth=0.5, label=label)
        for code, (label, colour) in enumerate(kinds)
        if code in seen
    ]
    figure.legend(handles=patches, loc="outside upper center", ncols=min(len(patches), 5))
    return figure


def _picks(count: int) -> list[int]:
    """Which of `count` maps to show: the first, the last and those evenly between."""
    return [round(x) for x in np.linspace(0, count - 1, TIMES)]


def _draw_one(ax: Axes, run: Result, index: int) -> set[int]:
    """Draw map number `index` of the run; returns the codes of the kinds that occur."""
    grid = _grid(run.series["map_cells"][index], int(run.series["map_cell_pages"][index]))
    colours = ListedColormap([colour for _, colour in KINDS.values()])
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
    width = max(1, (ROW_MIB << 20) // (cell_pages * PAGE))
    padding = -len(codes) % width
    padded = np.pad(codes, (0, padding), constant_values=letters["-"])
    return padded.reshape(-1, width)
