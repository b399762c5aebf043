"""Metrics by which device makers judge a phone."""

import numpy as np
import pandas as pd

from cohort.results.catalogue import METRICS
from cohort.results.experiments import Number
from cohort.results.frames import Frames
from cohort.units import PAGE

GROUP = "What device makers judge by"

_NAMES = tuple(m.name for m in METRICS if m.group == GROUP)
_KB_PER_MB = 1024
WARM_FAULTS = 256
"""Major faults of a launch that had to bring back a part of its app: 1 MiB in pages of 4 KiB.

A resumed app that was all there has a few dozen, of files; one that was swapped out has thousands.
"""
_WORK = ("foreground", "background", "system")


def oem_metrics(frames: Frames) -> dict[str, Number]:
    """The judge's metrics; None where the records do not tell. Without a `judge` record they tell
    what was read, from storage and from swap."""
    values: dict[str, Number] = dict.fromkeys(_NAMES)
    values |= {
        "storage_read_mb": _storage_read_mb(frames.vm, frames.page_size),
        "swap_in_pages": _swapped_in(frames.vm),
    }
    if not len(frames.judged):
        return values
    return values | {
        "apps_alive_mean": _apps_alive(frames),
        "mem_available_mb_mean": float(frames.judged["available_kb"].mean()) / _KB_PER_MB,
        **_major_faults(frames),
        **_launches(frames.launches, WARM_FAULTS * PAGE // frames.page_size),
        **_scrolling(frames.scrolls),
    }


def _apps_alive(frames: Frames) -> float | None:
    """Apps alive when all had their turn, mean over the rounds.

    Where launches are drawn there are no rounds: over the samples of the second half. The launcher
    does not count, the app on the screen does.
    """
    if len(frames.rounds):
        return float(frames.rounds["apps"].mean())
    late = frames.samples[frames.samples["n"] > frames.half]
    return float(late["cached"].mean()) + 1 if len(late) else None


def _major_faults(frames: Frames) -> dict[str, Number]:
    """By the work they were met in, from the first sample to the last.

    What the kernel counted beyond that is of native processes, or of work that a kill cut short.
    """
    spent = frames.judged[list(_WORK)].iloc[-1] - frames.judged[list(_WORK)].iloc[0]
    values: dict[str, Number] = {f"major_faults_{work}": int(spent[work]) for work in _WORK}
    if "pgmajfault" in frames.vm:
        counted = frames.vm["pgmajfault"]
        values["major_faults_other"] = int(counted.iloc[-1] - counted.iloc[0] - spent.sum())
    return values


def _storage_read_mb(vm: pd.DataFrame, page_size: int) -> float | None:
    """From storage to the page cache, between the first sample and the last.

    Not from zram, whose reads the kernel counts as those of any block device.
    """
    if "pgpgin" not in vm or len(vm) < 2:
        return None
    kb = vm["pgpgin"]
    if "pswpin" in vm:
        kb = kb - vm["pswpin"] * (page_size / 1024)
    return float(kb.iloc[-1] - kb.iloc[0]) / _KB_PER_MB


def _swapped_in(vm: pd.DataFrame) -> int | None:
    """Pages read back from swap, between the first sample and the last."""
    if "pswpin" not in vm or len(vm) < 2:
        return None
    return int(vm["pswpin"].iloc[-1] - vm["pswpin"].iloc[0])


def _launches(launches: pd.DataFrame, warm_faults: int) -> dict[str, Number]:
    """By what was left of the app: nothing, a part of its memory, or nearly all of it."""
    cold = launches["kind"] == "cold"
    missed = pd.to_numeric(launches["majflt"]) >= warm_faults
    kinds = {"cold": cold, "warm": ~cold & missed, "resumed": ~cold & ~missed}
    values: dict[str, Number] = {}
    for kind, chosen in kinds.items():
        ms = pd.to_numeric(launches.loc[chosen, "ns"]) / 1e6
        values[f"launches_{kind}"] = len(ms)
        for percent in (50, 95):
            found = float(np.percentile(ms, percent)) if len(ms) else None
            values[f"launch_ms_p{percent}_{kind}"] = found
    return values


def _scrolling(scrolls: pd.DataFrame) -> dict[str, Number]:
    if not len(scrolls):
        return {}
    late, frames = int(scrolls["late"].sum()), int(scrolls["frames"].sum())
    return {
        "frames_late": late,
        "frames_late_share": late / frames,
        "frame_late_ms_max": float(scrolls["worst_ns"].max()) / 1e6,
    }
