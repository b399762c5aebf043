"""Metrics of workloads with a camera: its starts, and what they cost the apps beside it."""

from typing import Any

import numpy as np
import pandas as pd

from cohort.results.catalogue import METRICS
from cohort.results.experiments import Number
from cohort.results.frames import Frames, cache_pages, find_us, piece_pages, piece_shares
from cohort.units import MIB, PAGE

CAMERA_GROUP = "Camera and its neighbours"
AREA_GROUP = "Page-cache-preferred area"

_NAMES = tuple(m.name for m in METRICS if m.group in (CAMERA_GROUP, AREA_GROUP))
_KB_PER_MB = 1024
_AREA_COUNTERS = ("reclaimed", "migrated", "busy", "refault")


def camera_metrics(frames: Frames) -> dict[str, Number]:
    """The camera's metrics; those of buffers and launches are then of its starts alone.

    All None, and nothing of buffers and launches, for a run without a camera.
    """
    values: dict[str, Number] = dict.fromkeys(_NAMES)
    if not len(frames.camera):
        return values
    first = int(frames.camera["n"].min())
    app = str(frames.camera["app"].iloc[0])
    others = _ordinary(frames.cost, app)
    return values | {
        **_buffers(frames.camera, frames.page_size),
        **_launches(frames.launches, app, others, first),
        **_costs(frames.cost, app, others, first),
        **_phone(frames, first),
        **_area(frames, app, first),
    }


def _ordinary(cost: pd.DataFrame, camera: str) -> set[str]:
    """The apps that count as ordinary: those the workload marks, or all but the camera."""
    marked = cost.loc[cost["measured"].astype(bool), "app"]
    return set(marked if len(marked) else cost["app"]) - {camera}


def starts(camera: pd.DataFrame) -> pd.DataFrame:
    """One row a start, by its launch: µs finding and zeroing, and of how many pieces it is made.

    The time of a request that was refused is part of the start's.
    """
    made = camera["ok"].astype(bool)
    counted = camera[[*piece_pages(camera), "other"]].apply(pd.to_numeric).sum(axis=1)
    rows = pd.DataFrame(
        {
            "n": camera["n"],
            "find_us": find_us(camera),
            "zero_us": pd.to_numeric(camera["zero_ns"]) / 1000,
            "pieces": np.where(camera["whole"].astype(bool), 1.0, counted) * made,
        }
    )
    return rows.groupby("n").sum(min_count=1)


def _buffers(camera: pd.DataFrame, page_size: int) -> dict[str, Number]:
    """The buffers of a start are one: what it takes to find them all, and what they are made of."""
    each = starts(camera)
    made = camera[camera["ok"].astype(bool)]
    pages = float(made["bytes"].sum()) / page_size
    whole = made.loc[made["whole"].astype(bool), "bytes"].sum() / page_size
    sizes = piece_pages(made)
    count = {key: float(pd.to_numeric(made[key]).sum()) for key in sizes}
    pages_in = {key: count[key] * size for key, size in sizes.items()}
    pages_in["o8"] += float(whole)  # one piece of many MiB is as good as those of one
    pieces = float(each["pieces"].sum())
    values: dict[str, Number] = {"buffer_fail": int((~camera["ok"].astype(bool)).sum())}
    values |= {f"buffer_find_us_p{p}": _percentile(each["find_us"], p) for p in (50, 95, 99)}
    values["buffer_find_us_max"] = _percentile(each["find_us"], 100)
    values["buffer_zero_us_p50"] = _percentile(each["zero_us"], 50)
    values["buffer_n_alloc_mean"] = float(each["pieces"].mean())
    values["camera_busy"] = int(camera["busy"].sum())
    values |= piece_shares(count, pieces, pages_in, pages)
    return values


def _launches(
    launches: pd.DataFrame, app: str, ordinary: set[str], first: int
) -> dict[str, Number]:
    """Times of the camera's starts, and of the ordinary launches from the first start on."""
    ms = pd.to_numeric(launches["ns"]) / 1e6
    camera = ms[launches["app"] == app]
    others = ms[launches["app"].isin(ordinary) & (launches["n"] > first)]
    return {
        "launch_ms_p50": _percentile(camera, 50),
        "launch_ms_p95": _percentile(camera, 95),
        "launch_ms_p99": _percentile(camera, 99),
        "launch_ms_mean": _mean(camera),
        "app_launch_ms_p50": _percentile(others, 50),
        "app_launch_ms_p95": _percentile(others, 95),
        "app_launch_ms_mean": _mean(others),
    }


def _costs(cost: pd.DataFrame, app: str, ordinary: set[str], first: int) -> dict[str, Number]:
    """Stalls of others while the camera starts; page cache and flash traffic around a launch."""
    camera = cost[cost["app"] == app]
    others = cost[cost["app"].isin(ordinary) & (cost["n"] > first)]
    return {
        "camera_stalls": int((camera["stalls"] - camera["own_stalls"]).sum()),
        "camera_own_stalls": int(camera["own_stalls"].sum()),
        "camera_file_mb_before": _mb(camera["file_before"]),
        "camera_free_mb_before": _mb(camera["free_before"]),
        "app_file_mb_before": _mb(others["file_before"]),
        "app_file_mb_after": _mb(others["file_after"]),
        "app_flash_read_mb": _mean(others["in_kb"] / _KB_PER_MB),
        "app_flash_write_mb": _mean(others["out_kb"] / _KB_PER_MB),
    }


def _phone(frames: Frames, first: int) -> dict[str, Number]:
    """Page cache and flash traffic of the phone from the first start on."""
    late = (frames.samples["n"] >= first - 1).to_numpy(dtype=bool)
    vm = frames.vm[late]
    if len(vm) < 2 or not {"nr_file_pages", "nr_shmem", "pgpgin", "pgpgout"} <= set(vm.columns):
        return {}
    spent = vm[["pgpgin", "pgpgout"]].iloc[-1] - vm[["pgpgin", "pgpgout"]].iloc[0]
    return {
        "page_cache_mb_mean": _mb(cache_pages(vm) - vm["nr_shmem"], frames.page_size),
        "flash_read_mb": float(spent["pgpgin"]) / _KB_PER_MB,
        "flash_write_mb": float(spent["pgpgout"]) / _KB_PER_MB,
    }


def _area(frames: Frames, app: str, first: int) -> dict[str, Number]:
    """What the area holds while ordinary apps are used, and right after a start; its counters."""
    area = frames.area
    if not len(area):
        return {}
    camera = set(frames.launches.loc[frames.launches["app"] == app, "n"])
    ordinary = area[(area["when"] == "use") & ~area["n"].isin(camera) & (area["n"] > first)]
    before = area[(area["when"] == "use") & (area["n"] + 1).isin(camera) & ~area["n"].isin(camera)]
    start = area[area["when"] == "start"]
    values: dict[str, Number] = {
        "area_cache_share": _mean(before["cache_kb"] / before["size_kb"]),
        "area_cache_mean_share": _mean(ordinary["cache_kb"] / ordinary["size_kb"]),
        "area_other_share": _mean(ordinary["other_kb"] / ordinary["size_kb"]),
        "area_client_mb": _mean(start["client_kb"] / _KB_PER_MB),
        "area_left_pages": _mean((start["cache_kb"] + start["other_kb"]) * 1024 / frames.page_size),
    }
    for name in _AREA_COUNTERS:
        column = f"cohort_pcpa_{name}"
        if column in frames.vm and len(frames.vm):
            counted = frames.vm[column]
            values[f"area_{name}"] = int(counted.iloc[-1] - counted.iloc[0])
    return values


def _mb(pages: "pd.Series[Any]", page_size: int = PAGE) -> float | None:
    return float(pages.mean()) * page_size / MIB if len(pages) else None


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _percentile(values: "pd.Series[float]", percent: float) -> float | None:
    known = values.dropna()
    return float(np.percentile(known, percent)) if len(known) else None
