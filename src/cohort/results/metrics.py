"""One number a metric from the records of a run. `docs/reference/metrics.md` defines them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from cohort.results.bench import bench_metrics
from cohort.results.camera import camera_metrics
from cohort.results.catalogue import METRICS, ORDERS
from cohort.results.experiments import (
    Number,
    exit_metrics,
    moment,
    order_metrics,
    throughput_metrics,
    without_clock,
)
from cohort.results.frames import (
    Floats,
    Frames,
    find_us,
    kill_chain,
    parked_pages,
    piece_pages,
    piece_shares,
    read_frames,
    unusable_index,
)
from cohort.results.oem import oem_metrics
from cohort.results.roles import role_metrics
from cohort.results.sizes import size_metrics
from cohort.results.usage import usage_metrics
from cohort.units import MIB

OF_SUITES = tuple(
    metric.name
    for metric in METRICS
    if metric.group in {"A day of Debian", "Adversaries", "Pieces", "Suites"}
)
"""What no run of a phone has: `cohort.sets.suites` makes them of a suite's cases."""

SHORTEST_CHAIN = 4
"""Points without which a slope means nothing."""


def compute_metrics(records: Iterable[Mapping[str, Any]]) -> dict[str, Number]:
    """Every metric of the catalogue, in its order; None for one the records cannot tell.

    Raises CohortError for a malformed record.
    """
    frames = read_frames(records)
    values = {
        **usage_metrics(frames),
        **_fragmentation(frames),
        **_buffers(frames.buffers),
        **_composition(frames),
        **_apps(frames),
        **_reclaim(frames.vm),
        **_cost(frames),
        **_kill_chain(frames),
        **exit_metrics(frames),
        **throughput_metrics(frames.throughput),
        **order_metrics(frames.orders, frames.page_size),
        **role_metrics(frames),
        **camera_metrics(frames),
        **bench_metrics(frames.bench),
        **size_metrics(frames.sizes),
        **oem_metrics(frames),
        **dict.fromkeys(OF_SUITES),
    }
    return {metric.name: values[metric.name] for metric in METRICS}


def _fragmentation(frames: Frames) -> dict[str, Number]:
    """UI of each order, mean over the samples of the second half; after an exit if there is one."""
    late = (frames.samples["n"] > frames.half).to_numpy(dtype=bool)
    blocks = {"ui": frames.free_blocks[late], "ui_all": frames.all_free_blocks[late]}
    after, all_after = moment(frames, "after"), moment(frames, "after", owned=True)
    if after is not None and all_after is not None:
        blocks = {"ui": after[None], "ui_all": all_after[None]}
    return {
        f"{name}_order{x}": _known_mean(unusable_index(rows, x))
        for name, rows in blocks.items()
        for x in ORDERS
    }


def _buffers(buffers: pd.DataFrame) -> dict[str, Number]:
    """Times of the buffers that were built, and the count of those that were not."""
    ok = buffers["ok"].astype(bool)
    find = find_us(buffers[ok]).dropna()
    zero = pd.to_numeric(buffers[ok]["zero_ns"]).dropna() / 1000
    return {
        "buffer_find_us_p50": _percentile(find, 50),
        "buffer_find_us_p95": _percentile(find, 95),
        "buffer_find_us_p99": _percentile(find, 99),
        "buffer_find_us_max": _percentile(find, 100),
        "buffer_zero_us_p50": _percentile(zero, 50),
        "buffer_fail": int((~ok).sum()),
    }


def _composition(frames: Frames) -> dict[str, Number]:
    """What the second half's buffers were built from, by bytes, and of how many pieces."""
    buffers = frames.buffers
    late = buffers[(buffers["n"] > frames.half) & buffers["ok"].astype(bool)]
    sizes = piece_pages(buffers)
    late = late.dropna(subset=[*sizes, "other"])
    pages = float(np.ceil(late["bytes"].to_numpy(dtype=float) / frames.page_size).sum())
    counts = {key: float(late[key].sum()) for key in sizes}
    pages_in = {key: counts[key] * size for key, size in sizes.items()}
    pieces = sum(counts.values()) + float(late["other"].sum())
    n_alloc = pieces / len(late) if len(late) else None
    return piece_shares(counts, pieces, pages_in, pages) | {"buffer_n_alloc_mean": n_alloc}


def _apps(frames: Frames) -> dict[str, Number]:
    """Launches by kind and time, and kills, over the whole run."""
    launches = frames.launches
    cold = int((launches["kind"] == "cold").sum())
    resumed = int((launches["kind"] == "resume").sum())
    ms = pd.to_numeric(launches["ns"]) / 1e6
    majflt = pd.to_numeric(launches["majflt"])
    return {
        "kills": len(frames.kills),
        "cold_starts": cold,
        "resume_share": resumed / len(launches) if len(launches) else None,
        "launch_ms_p50": _percentile(ms, 50),
        "launch_ms_p95": _percentile(ms, 95),
        "launch_ms_last": float(ms.iloc[-1]) if len(ms) else None,
        "launch_major_faults": int(majflt.sum()) if len(ms) and majflt.notna().all() else None,
    }


def _reclaim(vm: pd.DataFrame) -> dict[str, Number]:
    """Differences of the kernel's counters between the first and the last sample."""

    def delta(*prefixes: str) -> int | None:
        """The sum over the counters that begin so; counters this kernel lacks add 0."""
        if len(vm) < 2:
            return None
        names = [name for name in vm.columns if name.startswith(prefixes)]
        return int((vm[names].iloc[-1] - vm[names].iloc[0]).sum())

    # pgsteal_anon and pgsteal_file count the same pages again by kind. What a quick reclaim of the
    # area drops is in none of them, and its refaults are counted.
    evicted = delta(
        *("pgsteal_kswapd", "pgsteal_direct", "pgsteal_khugepaged", "pgsteal_proactive"),
        "cohort_pcpa_reclaimed",
    )
    refaults = delta("workingset_refault_")
    direct, stalls = delta("pgsteal_direct"), delta("allocstall_")
    return {
        "evicted": evicted,
        "refaults": refaults,
        "refault_ratio": _ratio(refaults, evicted),
        "refaults_anon": delta("workingset_refault_anon"),
        "refaults_file": delta("workingset_refault_file"),
        "direct_reclaim_pages": direct,
        "direct_reclaim_share": _ratio(direct, evicted),
        "allocstall": stalls,
        "reclaim_pages_kswapd_mean": _ratio(delta("pgsteal_kswapd"), delta("pageoutrun")),
        "reclaim_pages_direct_mean": _ratio(direct, stalls),
        "major_faults": delta("pgmajfault"),
        "compact_migrated": delta("pgmigrate_success"),
        "compact_scanned": delta("compact_migrate_scanned", "compact_free_scanned"),
    }


def _cost(frames: Frames) -> dict[str, Number]:
    """Memory held back, and the time of an anonymous page fault on fresh memory."""
    faults = frames.faults
    parked = parked_pages(frames.vm) * frames.page_size / MIB
    touched = faults[faults["when"] == "boot"]
    if len(frames.programs):
        touched = without_clock(frames.programs)
    pages = float(touched["pages"].sum())
    return {
        "parked_mb_mean": _mean(parked),
        "parked_mb_p80": float(np.percentile(parked, 80)) if len(parked) else None,
        "parked_mb_max": float(parked.max()) if len(parked) else None,
        "page_fault_us": float(touched["ns"].sum()) / pages / 1000 if pages else None,
    }


def _kill_chain(frames: Frames) -> dict[str, Number]:
    """UI(4) right after a kill, and by least squares how much it rises from one to the next."""
    values: dict[str, Number] = {}
    for name, owned in (("ui_order4", False), ("ui_all_order4", True)):
        chain = kill_chain(frames, 4, owned)
        steps = np.flatnonzero(~np.isnan(chain))
        enough = len(steps) >= SHORTEST_CHAIN
        slope = float(np.polyfit(steps, chain[steps], 1)[0]) if enough else None
        after = chain[1:]
        values[f"{name}_slope_per_kill"] = slope
        values[f"{name}_after_kill"] = _mean(after[~np.isnan(after)])
    return values


def _ratio(part: int | None, whole: int | None) -> float | None:
    return part / whole if whole and part is not None else None


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _known_mean(values: Floats) -> float | None:
    """The mean; None if one of them is not a number."""
    return None if np.isnan(values).any() else _mean(values)


def _percentile(values: "pd.Series[float]", percent: float) -> float | None:
    """The percentile, interpolated linearly between the two nearest values."""
    return float(np.percentile(values, percent)) if len(values) else None
