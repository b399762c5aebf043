"""The names of the metrics, with what a table needs to show them.

The definitions are in `docs/reference/metrics.md`; a test keeps the two alike.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

ORDERS = tuple(range(1, 11))
"""The orders the unusable free space index is reported for."""

GROUPS = (
    *("Fragmentation", "I/O buffers", "Apps", "Reclaim and compaction", "Cost"),
    *("Exit of a program", "Faults on several CPUs", "Use of memory and time"),
    *("Trusted and untrusted apps", "Camera and its neighbours", "Page-cache-preferred area"),
    *("Benchmarks", "Sizes of reclaim and allocation", "What device makers judge by"),
)

SIZE_POWERS = tuple(range(15))
"""The powers of two by which sizes of reclaim are sorted; the last has all that is larger."""

WORKERS = (1, 2, 4)
"""The numbers of CPUs that fault at once in a throughput experiment."""

BLOCK_ORDERS = (0, 4, 8)
"""The orders of an I/O buffer's pieces."""


@dataclass(frozen=True)
class Metric:
    """A metric's name, and how it is shown.

    `digits` are those after the point. `shown` metrics are in every table, the others only in full
    ones. `special` ones are measured by few workloads: where no run has one, no table does.
    """

    name: str
    title: str
    unit: str
    better: Literal["lower", "higher"]
    group: str
    digits: int = 0
    shown: bool = True
    special: bool = False


def _ui(name: str, what: str, order: int) -> Metric:
    shown = order in (4, 6, 8)
    return Metric(
        f"{name}_order{order}", f"{what}, order {order}", "", "lower", GROUPS[0], 3, shown
    )


TRUSTED_APPS = ("phone", "sms")
"""The trusted apps whose launches the VNODE paper tells."""

PIECE_ORDERS = (0, 10)
"""The orders of which the VNODE paper counts free pieces."""


def _special(
    group: str,
    name: str,
    title: str,
    unit: str = "",
    better: Literal["lower", "higher"] = "lower",
    digits: int = 0,
    shown: bool = True,
) -> Metric:
    """One that few workloads have."""
    return Metric(name, title, unit, better, group, digits, shown, special=True)


_role = partial(_special, GROUPS[8])
"""One of workloads whose apps have roles."""

_camera = partial(_special, GROUPS[9])
"""One of workloads with a camera."""


def _free_pieces(order: int) -> tuple[Metric, ...]:
    better: Literal["lower", "higher"] = "higher" if order else "lower"
    where = {"": "", "_trusted": " of the trusted", "_untrusted": " of the others"}
    return tuple(
        _role(
            f"free_pieces_order{order}{name}",
            f"free pieces{what}, order {order}",
            "",
            better,
            1,
            shown=False,
        )
        for name, what in where.items()
    )


def _launches_of(app: str) -> tuple[Metric, ...]:
    return tuple(
        _role(f"launch_ms_{name}_{app}", f"launch of {app}, {what}", "ms", digits=1, shown=False)
        for name, what in (("mean", "mean"), ("p50", "median"), ("p95", "95 %"))
    )


def _chain(name: str, what: str) -> tuple[Metric, Metric]:
    """How UI(4) goes from kill to kill."""
    rise, after = f"rise of order 4 a kill{what}", f"order 4 after a kill{what}"
    return (
        Metric(f"{name}_slope_per_kill", rise, "", "lower", GROUPS[0], 4, shown=False),
        Metric(f"{name}_after_kill", after, "", "lower", GROUPS[0], 3, shown=False),
    )


def _freed_ui(order: int) -> Metric:
    title = f"unusable freed memory, order {order}"
    return Metric(f"freed_ui_order{order}", title, "", "lower", GROUPS[5], 3, order == 4, True)


def _freed_pages(order: int) -> Metric:
    better: Literal["lower", "higher"] = "lower" if order < 4 else "higher"
    title = f"freed into blocks of order {order}"
    return Metric(f"freed_pages_order{order}", title, "pages", better, GROUPS[5], special=True)


def _refaulted(kind: str) -> Metric:
    return Metric(
        f"refaults_{kind}", f"refaulted, {kind}", "pages", "lower", GROUPS[3], shown=False
    )


def _share(name: str, title: str) -> Metric:
    return Metric(name, title, "", "lower", GROUPS[12], 4, False, True)


def _use(
    name: str, title: str, unit: str, better: Literal["lower", "higher"] = "lower", digits: int = 1
) -> Metric:
    return Metric(name, title, unit, better, GROUPS[7], digits, False, True)


def _area(
    name: str, title: str, unit: str = "", better: Literal["lower", "higher"] = "lower"
) -> Metric:
    digits = 3 if name.endswith("_share") else 1 if unit == "MiB" else 0
    return Metric(name, title, unit, better, GROUPS[10], digits, True, True)


def _judged(
    name: str, title: str, unit: str, better: Literal["lower", "higher"] = "lower", digits: int = 0
) -> Metric:
    return Metric(name, title, unit, better, GROUPS[13], digits, True, True)


def _launched(kind: str, better: Literal["lower", "higher"] = "lower") -> tuple[Metric, ...]:
    """How many launches were of that kind, and how long they took."""
    return (
        _judged(f"launches_{kind}", f"{kind} launches", "", better),
        _judged(f"launch_ms_p50_{kind}", f"{kind} launch, median", "ms", digits=1),
        _judged(f"launch_ms_p95_{kind}", f"{kind} launch, 95 %", "ms", digits=1),
    )


def _block(order: int) -> tuple[Metric, ...]:
    name, what = f"order{order}", f"a block of order {order}"
    return (
        Metric(f"{name}_normal_us", f"{what}, free", "µs", "lower", GROUPS[11], 3, True, True),
        Metric(f"{name}_slow_us", f"{what}, slow path", "µs", "lower", GROUPS[11], 1, True, True),
        Metric(f"{name}_refused_share", f"{what}, not had", "", "lower", GROUPS[11], 3, True, True),
    )


def _bench(program: str, test: str, what: str) -> tuple[Metric, Metric]:
    """Its time, and the page cache after it."""
    name = f"{program}_{test}"
    return (
        Metric(f"{name}_s", what, "s", "lower", GROUPS[11], 4, True, True),
        Metric(
            f"{name}_cache_mb", f"{what}: page cache", "MiB", "higher", GROUPS[11], 1, True, True
        ),
    )


def _memory_test(name: str, title: str) -> Metric:
    return Metric(f"sysbench_memory_{name}", title, "MiB", "higher", GROUPS[11], 1, True, True)


def _rate(name: str, what: str, cpus: int) -> Metric:
    title = f"{what} on {cpus} CPU{'s' if cpus > 1 else ''}"
    return Metric(f"{name}_{cpus}", title, "pages/s", "higher", GROUPS[6], special=True)


METRICS: tuple[Metric, ...] = (
    *(_ui("ui", "unusable free space", order) for order in ORDERS),
    *(_ui("ui_all", "the same, parked included", order) for order in ORDERS),
    *_chain("ui_order4", ""),
    *_chain("ui_all_order4", ", parked included"),
    Metric(
        "buffer_order9_share", "bytes in 2 MiB pieces", "", "higher", GROUPS[1], 3, special=True
    ),
    Metric("buffer_order8_share", "bytes in 1 MiB pieces", "", "higher", GROUPS[1], 3),
    Metric("buffer_order4_share", "bytes in 64 KiB pieces", "", "lower", GROUPS[1], 3),
    Metric("buffer_order0_share", "bytes in single pages", "", "lower", GROUPS[1], 3),
    Metric("buffer_n_alloc_mean", "pieces per buffer", "", "lower", GROUPS[1], 1),
    Metric("buffer_find_us_p50", "finding pages, median", "µs", "lower", GROUPS[1], 1),
    Metric("buffer_find_us_p95", "finding pages, 95 %", "µs", "lower", GROUPS[1], 1),
    Metric("buffer_find_us_p99", "finding pages, 99 %", "µs", "lower", GROUPS[1], 1),
    Metric("buffer_find_us_max", "finding pages, worst", "µs", "lower", GROUPS[1], 1),
    Metric("buffer_zero_us_p50", "zeroing, median", "µs", "lower", GROUPS[1], 1),
    Metric("buffer_fail", "buffers refused", "", "lower", GROUPS[1]),
    Metric("kills", "apps killed", "", "lower", GROUPS[2]),
    Metric("cold_starts", "cold starts", "", "lower", GROUPS[2]),
    Metric("resume_share", "launches that resume", "", "higher", GROUPS[2], 3),
    Metric("launch_ms_p50", "launch, median", "ms", "lower", GROUPS[2], 1),
    Metric("launch_ms_p95", "launch, 95 %", "ms", "lower", GROUPS[2], 1),
    Metric("launch_ms_last", "the last launch", "ms", "lower", GROUPS[2], 1, shown=False),
    Metric("launch_major_faults", "faults of launches that read storage", "", "lower", GROUPS[2]),
    Metric("evicted", "evicted", "pages", "lower", GROUPS[3]),
    Metric("refaults", "refaulted", "pages", "lower", GROUPS[3]),
    Metric("refault_ratio", "refaulted / evicted", "", "lower", GROUPS[3], 3),
    Metric("direct_reclaim_pages", "reclaimed by apps themselves", "pages", "lower", GROUPS[3]),
    Metric("allocstall", "allocations that stalled", "", "lower", GROUPS[3]),
    Metric(
        *("direct_reclaim_share", "of evicted, by apps themselves", "", "lower", GROUPS[3], 3),
    ),
    Metric(
        *("reclaim_pages_kswapd_mean", "freed by a run of kswapd", "pages", "lower", GROUPS[3], 1),
    ),
    Metric(
        *("reclaim_pages_direct_mean", "freed by a direct reclaim", "pages", "lower", GROUPS[3]),
        *(1, False),
    ),
    Metric("major_faults", "faults that read storage", "", "lower", GROUPS[3], shown=False),
    *(_refaulted(kind) for kind in ("anon", "file")),
    Metric("compact_migrated", "migrated", "pages", "lower", GROUPS[3]),
    Metric("parked_mb_mean", "parked memory, mean", "MiB", "lower", GROUPS[4], 1),
    Metric("parked_mb_max", "parked memory, most", "MiB", "lower", GROUPS[4], 1),
    Metric("page_fault_us", "anonymous page fault", "µs", "lower", GROUPS[4], 3),
    *(_freed_ui(order) for order in ORDERS),
    *(_freed_pages(order) for order in (0, *ORDERS)),
    Metric("own_ui_order4", "own blocks below order 4", "", "lower", GROUPS[5], 3, special=True),
    Metric("touch_us_p50", "touch of a page, median", "µs", "lower", GROUPS[5], 3, special=True),
    Metric("touch_us_p99", "touch of a page, 99 %", "µs", "lower", GROUPS[5], 3, special=True),
    *(_rate("fault_per_s", "processes fault", cpus) for cpus in WORKERS),
    *(_rate("thread_fault_per_s", "threads fault", cpus) for cpus in WORKERS),
    Metric("page_free_us", "giving a page back", "µs", "lower", GROUPS[6], 3, special=True),
    _use("anon_mb_mean", "anonymous memory", "MiB", "higher"),
    _use("file_mb_mean", "page cache", "MiB", "higher"),
    _use("swapped_mb_mean", "compressed swap", "MiB"),
    _use("kernel_mb_mean", "slab, page tables, stacks", "MiB"),
    _use("other_mb_mean", "I/O buffers, GPU, vmalloc", "MiB"),
    _use("parked_mb_p80", "parked memory, 80 %", "MiB"),
    _use("buffer_order9_pieces", "pieces of 2 MiB", "", "higher", 3),
    _use("buffer_order8_pieces", "pieces of 1 MiB", "", "higher", 3),
    _use("buffer_order4_pieces", "pieces of 64 KiB", "", digits=3),
    _use("buffer_order0_pieces", "single pages", "", digits=3),
    _use("cpu_user_s", "CPU time, programs", "s"),
    _use("cpu_system_s", "CPU time, kernel", "s"),
    _use("cpu_busy_s", "CPU time, all", "s"),
    _use("cpu_system_share", "kernel's share of it", "", digits=3),
    _use("profile_buffer_pct", "kernel time, I/O buffers", "%", digits=2),
    _use("profile_zero_pct", "kernel time, zeroing", "%", digits=2),
    _use("profile_compact_pct", "kernel time, moving pages", "%", digits=2),
    _use("profile_reclaim_pct", "kernel time, reclaim", "%", digits=2),
    _use("profile_cohort_pct", "kernel time, Cohort", "%", digits=2),
    _use("profile_alloc_pct", "kernel time, page allocator", "%", digits=2),
    _use("profile_ticks", "ticks in the kernel", "", digits=0),
    _role("kills_trusted", "trusted killed"),
    _role("ooms_trusted", "trusted killed by the kernel"),
    _role("kills_untrusted", "untrusted killed"),
    _role("launch_ms_p95_trusted", "launch of a trusted app, 95 %", "ms", digits=1),
    _role("launch_ms_p95_trusted_unloaded", "the same before the pressure", "ms", digits=1),
    *(metric for app in TRUSTED_APPS for metric in _launches_of(app)),
    _role("ui_order4_trusted", "unusable free space of the trusted, order 4", digits=3),
    *(metric for order in PIECE_ORDERS for metric in _free_pieces(order)),
    _role("free_mb_mean", "free memory, mean", "MiB", "higher", 1),
    _role("free_mb_held", "free memory while the heap is held", "MiB", "higher", 1),
    _role("held_share", "share of its heap the program came to", "", "higher", 3),
    _role("untrusted_work_per_s", "work of the pressure programs", "MiB/s", "higher"),
    _role("pressure_cpu_s", "CPU time of the pressure programs", "s", digits=1, shown=False),
    _camera("launch_ms_p99", "camera start, 99 %", "ms", digits=1),
    _camera("launch_ms_mean", "camera start, mean", "ms", digits=1),
    _camera("camera_stalls", "stalls of others in its starts"),
    _camera("camera_own_stalls", "stalls of its own"),
    _camera("camera_busy", "busy ranges met by CMA"),
    _camera("camera_file_mb_before", "page cache before a start", "MiB", "higher", 1),
    _camera("camera_free_mb_before", "free memory before a start", "MiB", "higher", 1, False),
    _camera("app_launch_ms_p50", "ordinary launch, median", "ms", digits=1),
    _camera("app_launch_ms_p95", "ordinary launch, 95 %", "ms", digits=1),
    _camera("app_launch_ms_mean", "ordinary launch, mean", "ms", digits=1),
    _camera("app_file_mb_before", "page cache before it", "MiB", "higher", 1, False),
    _camera("app_file_mb_after", "page cache after it", "MiB", "higher", 1, False),
    _camera("app_flash_read_mb", "read from flash in it", "MiB", digits=3),
    _camera("app_flash_write_mb", "written to flash in it", "MiB", digits=3),
    _camera("page_cache_mb_mean", "page cache, mean", "MiB", "higher", 1),
    _camera("flash_read_mb", "read from flash, all", "MiB", digits=1),
    _camera("flash_write_mb", "written to flash, all", "MiB", digits=1),
    _area("area_cache_share", "page cache in it before a start", "", "higher"),
    _area("area_cache_mean_share", "page cache in it, ordinary use", "", "higher"),
    _area("area_other_share", "neither cache nor client in it"),
    _area("area_client_mb", "the camera's in it after a start", "MiB", "higher"),
    _area("area_left_pages", "left in it after a start", "pages"),
    _area("area_reclaimed", "dropped for a start", "pages"),
    _area("area_migrated", "moved out", "pages"),
    _area("area_busy", "could not be freed", "pages"),
    _area("area_refault", "dropped for a start, read again", "pages"),
    *(metric for order in BLOCK_ORDERS for metric in _block(order)),
    *_bench("sysbench", "seqrd", "sysbench, sequential read"),
    *_bench("sysbench", "rndrd", "sysbench, random read"),
    *_bench("sysbench", "seqwr", "sysbench, sequential write"),
    *_bench("sysbench", "memory", "sysbench, memory"),
    _memory_test("cache_mb_before", "page cache before it"),
    _memory_test("free_mb_before", "free memory before it"),
    _memory_test("free_mb", "free memory after it"),
    *_bench("fio", "write", "fio, write"),
    *_bench("fio", "rewrite", "fio, rewrite"),
    *_bench("fio", "read", "fio, read"),
    *_bench("fio", "reread", "fio, reread"),
    *_bench("fio", "rndrd", "fio, random read"),
    *_bench("fio", "rndwr", "fio, random write"),
    Metric("fio_s", "fio, all six", "s", "lower", GROUPS[11], 4, special=True),
    Metric(
        "sysbench_fileio_s", "sysbench fileio, all three", "s", "lower", GROUPS[11], 4, special=True
    ),
    *(_share(f"alloc_share_order{x}", f"allocations of order {x}") for x in (0, *ORDERS)),
    *(
        _share(f"reclaim_share_order{x}", f"reclaims of {1 << x} to {(2 << x) - 1}")
        for x in SIZE_POWERS
    ),
    _share("reclaim_share_over32", "reclaims of more than 31"),
    _judged("apps_alive_mean", "apps kept alive", "", "higher", 2),
    _judged("mem_available_mb_mean", "available memory, mean", "MiB", "higher", 1),
    *(
        _judged(f"major_faults_{work}", f"major faults, {what}", "")
        for work, what in (
            ("foreground", "app on the screen"),
            ("background", "apps in the background"),
            ("system", "system and services"),
            ("other", "native processes and the killed"),
        )
    ),
    _judged("storage_read_mb", "read from storage", "MiB", digits=1),
    *_launched("cold"),
    *_launched("warm"),
    *_launched("resumed", "higher"),
    _judged("frames_late", "frames late while scrolling", ""),
    _judged("frames_late_share", "late frames / all", "", digits=4),
    _judged("frame_late_ms_max", "latest frame", "ms", digits=1),
)

BY_NAME = {metric.name: metric for metric in METRICS}
