"""What memory and CPU time were used for."""

import re
from collections.abc import Sequence

import pandas as pd

from cohort.results.catalogue import METRICS
from cohort.results.experiments import Number
from cohort.results.frames import Frames, all_free_pages, cache_pages
from cohort.units import MIB

_TICKS_PER_S = 100  # of /proc/stat
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq")

_MEMORY: dict[str, tuple[str, ...]] = {
    "anon_mb_mean": ("nr_anon_pages",),
    "swapped_mb_mean": ("nr_zspages",),
    "kernel_mb_mean": (
        *("nr_slab_reclaimable", "nr_slab_unreclaimable"),
        *("nr_page_table_pages", "nr_kernel_stack"),
    ),
}
_KIB = {"nr_kernel_stack"}  # /proc/vmstat gives it in KiB, not in pages

GROUPS: dict[str, str] = {
    "profile_cohort_pct": r"(__)?cohort_",
    "profile_buffer_pct": r"system_heap_|dma_heap_|dma_buf_|alloc_largest|_?_?sg_",
    "profile_zero_pct": r"clear_page|clear_huge_page|memset|__memset",
    "profile_compact_pct": (
        r"compact|kcompactd|isolate_migrate|isolate_free|fast_isolate|migrate_|move_to_new|"
        r"try_to_migrate|remove_migration|fragmentation_index|__?folio_migrate|folio_migrate|"
        r"putback_movable|buffer_migrate|zs_page_migrate|folio_copy|copy_page|copy_mc"
    ),
    "profile_reclaim_pct": (
        r"shrink_|kswapd|balance_pgdat|pgdat_balanced|isolate_lru|folio_referenced|"
        r"try_to_unmap|evict_folios|lru_gen|inc_max_seq|walk_p[mu]d|get_pfn_folio|get_scan|"
        r"do_shrink_slab|workingset|__remove_mapping|__delete_from|swap_|zs_|zram|lz4|LZ4|"
        r"move_folios_to_lru|scan_folios|sort_folio|list_lru|prepare_kswapd|super_cache"
    ),
    "profile_alloc_pct": (
        r"__alloc_pages|__alloc_frozen|get_page_from_freelist|rmqueue|__rmqueue|free_unref|"
        r"free_frozen|__free_one_page|free_one_page|free_pcppages|prep_new_page|post_alloc|"
        r"split_large_buddy|expand|__free_pages|free_pages|zone_watermark|__zone_watermark|"
        r"__mod_zone|drain_pages|free_pcp"
    ),
}
"""Groups of kernel functions, by how their names begin: the first that fits has the function.

Every function of Cohort's begins as its group says; `tests/test_gates.py` sees to it.
"""

_IDLE = re.compile(r"default_idle|native_safe_halt|pv_native_safe_halt|do_idle|cpuidle|acpi_")
_SUFFIX = re.compile(r"\.(isra|constprop|part|cold)(\.\d+)*.*$")
_PATTERNS = {name: re.compile(pattern) for name, pattern in GROUPS.items()}
_NAMES = tuple(m.name for m in METRICS if m.group == "Use of memory and time")


def usage_metrics(frames: Frames) -> dict[str, Number]:
    """Memory by use, CPU time by mode, kernel time by group; None where the records lack it."""
    values: dict[str, Number] = dict.fromkeys(_NAMES)
    return values | _memory(frames) | _cpu(frames) | profile_shares(frames.profile)


def _memory(frames: Frames) -> dict[str, Number]:
    """Means over the samples of the second half, MiB. The rest is what no counter tells."""
    late = (frames.samples["n"] > frames.half).to_numpy(dtype=bool)
    vm = frames.vm[late]
    if not len(vm) or "nr_anon_pages" not in vm:
        return {}
    values: dict[str, Number] = {
        name: _mb(vm, counters, frames.page_size) for name, counters in _MEMORY.items()
    }
    values["file_mb_mean"] = float(cache_pages(vm).mean()) * frames.page_size / MIB
    if not frames.ram_pages:
        return values
    free = float(all_free_pages(vm).mean()) * frames.page_size / MIB
    known = free + sum(x for x in values.values() if x is not None)
    return {**values, "other_mb_mean": frames.ram_pages * frames.page_size / MIB - known}


def _mb(vm: pd.DataFrame, counters: Sequence[str], page_size: int) -> float | None:
    """The sum of their means; None if the kernel lacks one."""
    if not set(counters) <= set(vm.columns):
        return None
    return sum(float(vm[x].mean()) * (1024 if x in _KIB else page_size) / MIB for x in counters)


def _cpu(frames: Frames) -> dict[str, Number]:
    """Seconds of all CPUs together between the first and the last sample."""
    lines = frames.samples["cpu"].tolist()
    if len(lines) < 2 or min(map(len, lines)) < len(_FIELDS):
        return {}
    spent = {field: (lines[-1][i] - lines[0][i]) / _TICKS_PER_S for i, field in enumerate(_FIELDS)}
    user, irq = spent["user"] + spent["nice"], spent["irq"] + spent["softirq"]
    busy = user + irq + spent["system"]
    return {
        "cpu_user_s": user,
        "cpu_system_s": spent["system"] + irq,
        "cpu_busy_s": busy,
        "cpu_system_share": (spent["system"] + irq) / busy if busy else None,
    }


def profile_shares(profile: pd.DataFrame) -> dict[str, Number]:
    """Each group's share of the ticks that met the kernel at work, percent."""
    ticks: dict[str, int] = {}
    for name, count in zip(profile["function"], profile["ticks"], strict=True):
        plain = _SUFFIX.sub("", name)
        ticks[plain] = ticks.get(plain, 0) + int(count)
    busy = {name: count for name, count in ticks.items() if not _IDLE.match(name)}
    total = sum(busy.values())
    if not total:
        return {}
    sums = dict.fromkeys(GROUPS, 0)
    for name, count in busy.items():
        group = next((g for g, pattern in _PATTERNS.items() if pattern.match(name)), None)
        if group is not None:
            sums[group] += count
    return {**{g: 100 * n / total for g, n in sums.items()}, "profile_ticks": total}
