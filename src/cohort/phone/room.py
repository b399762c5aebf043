"""How much memory a phone needs, from the sizes in its workload."""

from collections.abc import Iterator

from cohort.errors import UsageError
from cohort.phone.schema import App, Workload
from cohort.phone.workload import load_workload, workload_names
from cohort.units import PAGE

KERNEL_MB = 48
"""The kernel itself, the guest's program, and what both have allocated after boot."""
NATIVE = 5
"""Processes that are the guest's own: zygote, activity manager, buffer service, lmkd, churn."""
PROCESS_MB = 1
"""Page tables, stacks and kernel objects of a process."""
STRUCT_PAGE_BYTES = 64


def check(workload: Workload, memory_mb: int, where: str, reserved_mb: int = 0) -> None:
    """UsageError, beginning with `where`, if not even what boot starts fits in so many MiB, of
    which so many are set aside for something else.

    The hint says what would fit. Less than that may do: lmkd then kills what it started.
    """
    booted = booted_mb(workload)
    left_mb = memory_mb - reserved_mb
    if left_mb >= booted:
        return
    smaller = [x for x in _phones() if least_mb(x) <= left_mb]
    others = f", or --workload {' or '.join(x.name for x in smaller)}" if smaller else ""
    reserve = f" of which {reserved_mb} are set aside" if reserved_mb else ""
    raise UsageError(
        f"{where}: {memory_mb} MiB{reserve} are too little, what boot starts takes about {booted}",
        f"with its largest app it fits in --memory {least_mb(workload) + reserved_mb}{others}",
    )


def _phones() -> Iterator[Workload]:
    """The phones there are."""
    return (load_workload(name) for name in workload_names() if name.startswith("phone-"))


def booted_mb(workload: Workload) -> int:
    """About how many MiB the kernel, all that boot starts and the launcher take."""
    return _memory_mb(workload, *_booted(workload))


def least_mb(workload: Workload) -> int:
    """About how many MiB take in the largest app as well, on the screen, and nothing else."""
    heaps, held = _booted(workload)
    apps = [_on_screen(workload, app) for app in workload.app.values() if not app.home]
    app_heap, app_held = max(apps, key=sum)
    return _memory_mb(workload, heaps + app_heap, held + app_held)


def _booted(workload: Workload) -> tuple[int, int]:
    """MiB of heaps, which may be swapped, and of what may not, before any app was launched."""
    groups = workload.group.values()
    processes = len(workload.process) + sum(x.count.value for x in groups)
    heaps = sum(x.heap_mb.value for x in workload.process.values())
    heaps += sum(x.heap_mb.value * x.count.value for x in groups)
    heaps += workload.zygote.heap_mb.value + processes * workload.zygote.cow_mb.value
    launcher = next(app for app in workload.app.values() if app.home)
    home_heap, home_held = _on_screen(workload, launcher)
    lowest = min(x.kb.value for x in workload.lmkd.level) // 1024
    held = KERNEL_MB + (processes + NATIVE) * PROCESS_MB + lowest
    return heaps + home_heap, held + home_held


def _on_screen(workload: Workload, app: App) -> tuple[int, int]:
    """MiB of an app's heap when it has started, and of its buffers and GPU memory."""
    category = workload.category[app.category]
    heap = category.heap_mb.value * app.heap_pct.value // 100 + workload.zygote.cow_mb.value
    buffers = (app.buf_max_mb or category.buf_max_mb).value
    return heap, buffers + category.gpu_mb.value + PROCESS_MB


def _memory_mb(workload: Workload, heaps: int, held: int) -> int:
    """The memory for so much, with the kernel's notes of each page and zram's share of heaps."""
    if (swap := workload.swap) is not None:
        swapped = min(heaps // 2, swap.zram_mb.value)  # the other half is in use
        heaps -= swapped - swapped * swap.noise_bytes.value // PAGE
    return (heaps + held) * PAGE // (PAGE - STRUCT_PAGE_BYTES)
