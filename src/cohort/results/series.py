"""What a run looked like over time, as plain lists for JSON and the plots."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from cohort.results.catalogue import ORDERS
from cohort.results.frames import (
    Floats,
    Frames,
    all_free_pages,
    cache_pages,
    find_us,
    kill_chain,
    parked_pages,
    piece_pages,
    read_frames,
    unusable_index,
)
from cohort.units import MIB

Series = dict[str, list[Any]]

_DIGITS = 4


def compute_series(records: Iterable[Mapping[str, Any]]) -> Series:
    """The series of a run; `docs/reference/metrics.md` lists them. Lists of a group are parallel:
    the plain names per sample, `buffer_*` per buffer, `kill_*` per kill, `map_*` per map,
    `left_*` per start of a camera.

    Raises CohortError for a malformed record.
    """
    frames = read_frames(records)
    return {
        **_samples(frames),
        **_buffers(frames),
        **_kills(frames),
        **_maps(frames),
        **_left(frames),
    }


def _samples(frames: Frames) -> Series:
    samples, vm = frames.samples, frames.vm
    launches = samples["n"].to_numpy(dtype=int)
    killed = np.sort(frames.kills["n"].to_numpy(dtype=int))
    series: Series = {
        "n": launches.tolist(),
        "t_s": _rounded(samples["t"].to_numpy(dtype=float) / 1e9),
        "alive": samples["alive"].tolist(),
        "cached": samples["cached"].tolist(),
        "kills": np.searchsorted(killed, launches, side="right").tolist(),
    }
    none = pd.Series(0, index=vm.index)
    pages = {
        "free_mb": all_free_pages(vm),
        "parked_mb": parked_pages(vm),
        "file_mb": cache_pages(vm),
        "anon_mb": vm.get("nr_anon_pages", none).to_numpy(dtype=float),
    }
    series |= {name: _rounded(counts * frames.page_size / MIB) for name, counts in pages.items()}
    for order in ORDERS:
        series[f"ui_order{order}"] = _rounded(unusable_index(frames.free_blocks, order))
        series[f"ui_all_order{order}"] = _rounded(unusable_index(frames.all_free_blocks, order))
    return series


def _buffers(frames: Frames) -> Series:
    """Only buffers that were built; None where the kernel does not count pieces or zeroing."""
    built = frames.buffers[frames.buffers["ok"].astype(bool)]
    series: Series = {
        "buffer_n": built["n"].tolist(),
        "buffer_mb": _rounded(built["bytes"].to_numpy(dtype=float) / MIB),
        "buffer_find_us": _rounded(find_us(built).to_numpy(dtype=float)),
        "buffer_zero_us": _rounded(pd.to_numeric(built["zero_ns"]).to_numpy(dtype=float) / 1000),
    }
    for key, pages in piece_pages(built).items():
        mib = pd.to_numeric(built[key]).to_numpy(dtype=float) * pages * frames.page_size / MIB
        series[f"buffer_order{key[1:]}_mb"] = _rounded(mib)
    return series


def _kills(frames: Frames) -> Series:
    kills = frames.kills
    series = {f"kill_{key}": kills[key].tolist() for key in ("n", "app", "class", "by")}
    return {
        **series,
        "kill_ui_order4": _rounded(kill_chain(frames, 4)[1:]),
        "kill_ui_all_order4": _rounded(kill_chain(frames, 4, owned=True)[1:]),
    }


def _left(frames: Frames) -> Series:
    return {f"left_{key}": frames.left[key].tolist() for key in ("n", "runs")}


def _maps(frames: Frames) -> Series:
    columns = ("n", "cell_pages", "cells", "owners")
    return {f"map_{key}": frames.maps[key].tolist() for key in columns}


def _rounded(values: Floats) -> list[float | None]:
    """Values for JSON: a few digits after the point, None for not a number."""
    return [None if np.isnan(x) else round(float(x), _DIGITS) for x in values]
