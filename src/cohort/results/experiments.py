"""Metrics of the experiments that follow a workload's launches."""

import numpy as np
import pandas as pd

from cohort.results.catalogue import METRICS, ORDERS
from cohort.results.frames import Floats, Frames, pages_by_order
from cohort.units import MIB

Number = float | int | None

WORKERS = (1, 2, 4)
"""The numbers of CPUs that fault at once in a throughput experiment."""

BLOCK_ORDERS = (0, 4, 8)
"""The orders of an I/O buffer's pieces."""

_EXIT = tuple(m.name for m in METRICS if m.name.startswith(("freed_", "own_", "touch_")))


def moment(frames: Frames, when: str, owned: bool = False) -> Floats | None:
    """The free blocks by order at that moment of an experiment; None if there was none.

    Free chunks of owned blocks are in it with `owned` only.
    """
    at = np.flatnonzero((frames.moments["when"] == when).to_numpy(dtype=bool))
    blocks = frames.all_moment_blocks if owned else frames.moment_blocks
    return np.asarray(blocks[at[0]]) if len(at) else None


def without_clock(programs: pd.DataFrame) -> pd.DataFrame:
    """The programs' touches, less what looking at the clock costs."""
    return programs.assign(ns=programs["ns"] - programs["pages"] * programs["clock_ns"])


def exit_metrics(frames: Frames) -> dict[str, Number]:
    """What the memory of the program that exited has become; None without such a program."""
    values: dict[str, Number] = dict.fromkeys(_EXIT)
    before, after = moment(frames, "before"), moment(frames, "after")
    if before is None or after is None:
        return values
    freed = pages_by_order(after) - pages_by_order(before)
    values |= {f"freed_pages_order{x}": int(pages) for x, pages in enumerate(freed)}
    values |= {f"freed_ui_order{x}": _unusable(freed, x) for x in ORDERS}
    blocks = frames.own.loc[frames.own["i"] == 0, "blocks"]
    if len(blocks):
        values["own_ui_order4"] = _unusable(pages_by_order(np.array(blocks.iloc[0], float)), 4)
    us = (frames.programs[["p50_ns", "p99_ns"]].sub(frames.programs["clock_ns"], axis=0)) / 1000
    if len(us):
        p50, p99 = us.mean()
        values |= {"touch_us_p50": float(p50), "touch_us_p99": float(p99)}
    return values


def throughput_metrics(measured: pd.DataFrame) -> dict[str, Number]:
    """Pages a second by number of CPUs, and the time to give one back."""
    values: dict[str, Number] = {}
    for name, kind in (("fault_per_s", "process"), ("thread_fault_per_s", "thread")):
        rows = measured[measured["kind"] == kind].set_index("cpus")
        rates = rows["pages"] * 1e9 / rows["ns"]
        values |= {f"{name}_{x}": float(rates[x]) if x in rates else None for x in WORKERS}
    alone = measured[measured["cpus"] == 1]
    pages = float(alone["pages"].sum())
    values["page_free_us"] = float(alone["free_ns"].sum()) / pages / 1000 if pages else None
    return values


def order_metrics(measured: pd.DataFrame, page_size: int) -> dict[str, Number]:
    """µs of a block by order and path, and of 1 MiB in blocks that were free; and the share of
    blocks that came in smaller ones. Pages of `page_size` bytes."""
    values: dict[str, Number] = {}
    for order in BLOCK_ORDERS:
        rows = measured[measured["order"] == order].set_index("path")
        blocks, ns = rows["blocks"], rows["ns"]
        for path in ("normal", "slow"):
            there = path in rows.index and blocks[path] > 0
            values[f"order{order}_{path}_us"] = (
                float(ns[path]) / float(blocks[path]) / 1000 if there else None
            )
        free = values[f"order{order}_normal_us"]
        blocks_a_mib = MIB / (page_size << order)
        values[f"order{order}_mib_us"] = None if free is None else free * blocks_a_mib
        total = float(blocks.sum())
        refused = float(blocks["refused"]) if "refused" in rows.index else 0.0
        values[f"order{order}_refused_share"] = refused / total if total else None
    return values


def _unusable(pages: Floats, order: int) -> float | None:
    """The share of these pages, given by order, that is below `order`; None without a page."""
    total = float(pages.sum())
    return 1 - float(pages[order:].sum()) / total if total > 0 else None
