"""The text the guest is started with: settings, processes, apps and the launch sequence."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from cohort.errors import UsageError
from cohort.phone import bench, limits
from cohort.phone.schema import App, Category, Process, Workload
from cohort.phone.sequence import MASK, all_launches, launch_sequence, most_launches, rounds_end
from cohort.units import MIB, PAGE

ZRAM = "zram0"
DISK = "/sys/block/dm-0/"  # knobs of the phone's storage
READ_AHEAD = f"{DISK}queue/read_ahead_kb"


def _drop_caches_at(w: Workload) -> int:
    """The launch before which caches are dropped; 0 if none."""
    if w.use is None or not w.use.drop_caches.value:
        return 0
    before = len(w.use.chosen) if w.use.again.value else 0
    return before + w.use.background.value + 1


def render_conf(
    workload: Workload,
    *,
    seed: int,
    launches: int,
    writes: Sequence[tuple[str, str]],
    time: Literal["virtual", "real"],
    roles: Mapping[str, str] | None = None,
    heap: str = "system",
    announce: bool = False,
    entitled: bool = False,
    page_size: int = PAGE,
) -> str:
    """The text of /phone.conf.

    `launches` are starts of the camera, if the workload has one. `writes` are (path, value) of the
    policy, applied before the phone starts; `roles` is what it does for a role, "vnode NAME" or
    "cgroup MIN_KB LOW_KB"; `heap` is where it has the camera's buffers come from, `announce`
    whether the kernel hears of a start before, and `entitled` whether what makes buffers is a
    client of the area. `page_size` is in bytes: a guest with larger pages touches as many bytes in
    fewer of them. `time` "real" shortens the waits of people, for guests whose clock is the
    host's. Raises UsageError for a number of launches or a write that the guest cannot take, and
    for more of them than it has room for.
    """
    total = all_launches(workload, launches)
    if not 1 <= launches <= total <= limits.MAX_LAUNCHES:
        more = f" ({total} with those between the camera's starts)" if total > launches else ""
        raise UsageError(
            f"launches: {launches}{more}: not between 1 and {limits.MAX_LAUNCHES}",
            f"--launches {most_launches(workload, limits.MAX_LAUNCHES)} is the most here",
        )
    if not 0 <= seed <= MASK:
        raise UsageError(f"seed: {seed} is not between 0 and 2^64 - 1", "like --seed 1,2,3")
    lines = [f"phone {workload.name}", f"seed {seed}", f"launches {total}", f"time {time}"]
    own = [*_swap_writes(workload), *_bench_writes(workload)]
    lines += [_write_line(path, value) for path, value in [*own, *writes]]
    if workload.swap is not None:
        noise = workload.swap.noise_bytes.value * page_size // PAGE
        lines.append(f"swap /dev/{ZRAM} {noise}")
    for key, value in _settings(workload, time, total).items():
        number = _pages(value, page_size) if key.endswith("_pages") else value
        if key == "gpu_piece_kb":
            number = _whole_pages_kb(value, page_size)
        lines.append(f"set {key} {number}")
    lines += [f"role {role} {(roles or {}).get(role, 'none')}" for role in workload.roles]
    lines += [f"native {workload.native_role}"] if workload.native_role else []
    lines += [f"minfree {x.adj.value} {x.kb.value}" for x in workload.lmkd.level]
    lines += [
        *_experiment_lines(workload, MIB // page_size),
        *_process_lines(workload),
        *_app_lines(workload),
    ]
    lines += _camera_lines(workload, heap, announce)
    lines += ["entitled"] if entitled else []
    lines += _judge_lines(workload, page_size)
    lines += _launch_lines(workload, seed, launches)
    _check_room(workload.name, lines)
    return "\n".join(lines) + "\n"


ROOMS = {
    "round": ("rounds", limits.MAX_ROUNDS, "fewer launches"),
    "write": ("writes", limits.MAX_WRITES, "fewer knobs in the policy"),
    "program": ("programs", limits.MAX_BENCHES, "fewer tests in bench.tests"),
}
"""By the word a line begins with: what these lines are, how many the guest takes, and the hint."""


def _check_room(name: str, lines: Sequence[str]) -> None:
    """UsageError if there are more lines of a kind than the guest has room for."""
    counts = Counter(line.partition(" ")[0] for line in lines)
    for verb, (what, most, hint) in ROOMS.items():
        if counts[verb] > most:
            raise UsageError(f"{name}: {counts[verb]} {what}, and the guest takes {most}", hint)


def _whole_pages_kb(kb: int, page_size: int) -> int:
    """What the heap makes of a piece it rounds up, had it been asked for as many bytes at most."""
    page_kb = page_size // 1024
    return max(kb // page_kb, min(kb, 1)) * page_kb


def _pages(number: int, page_size: int) -> int:
    """Pages of that size for so many of 4 KiB, as workloads count them: one at least, if any."""
    return max(number * PAGE // page_size, min(number, 1))


def _swap_writes(workload: Workload) -> list[tuple[str, str]]:
    """What sets up the zram device; the policy's writes come after and may say otherwise."""
    swap = workload.swap
    if swap is None:
        return []
    return [
        (f"/sys/block/{ZRAM}/comp_algorithm", swap.algorithm),
        (f"/sys/block/{ZRAM}/disksize", f"{swap.zram_mb.value}M"),
        ("/proc/sys/vm/swappiness", str(swap.swappiness.value)),
        ("/proc/sys/vm/page-cluster", str(swap.page_cluster.value)),
    ]


def _bench_writes(workload: Workload) -> list[tuple[str, str]]:
    if workload.bench is None:
        return []
    return [(READ_AHEAD, str(workload.bench.read_ahead_kb.value))]


def _write_line(path: str, value: str) -> str:
    if not path.startswith("/") or any(c.isspace() for c in path) or len(path) > 159:
        raise UsageError(f"write: bad path {path!r}")
    if not value or "\n" in value or len(value) > 95:
        raise UsageError(f"write {path}: bad value {value!r}")
    return f"write {path} {value}"


def _pressure_from(w: Workload, launches: int) -> int:
    """The first launch under memory pressure; 0 if there is none."""
    return launches * w.pressure.calm_pct.value // 100 + 1 if w.pressure is not None else 0


def _pressure_cpus(w: Workload) -> int:
    """How many of the last CPUs the pressure programs may use; 0: all."""
    cpus = w.pressure.cpus if w.pressure is not None else None
    return cpus.value if cpus is not None else 0


def _settings(w: Workload, time: str, launches: int) -> dict[str, int]:
    """Keys as in guest/base/conf.c."""
    kb = 1024
    return {
        "zygote_heap_kb": w.zygote.heap_mb.value * kb,
        "zygote_cow_kb": w.zygote.cow_mb.value * kb,
        "foreground_ms": w.time.foreground_ms.value,
        "home_ms": w.time.home_ms.value,
        "time_scale": w.time.real_scale.value if time == "real" else 1,
        "launch_timeout_ms": w.time.launch_timeout_ms.value,
        "burst_pages": w.faults.burst_pages.value,
        "think_us": w.faults.think_us.value,
        "extent_pages": w.faults.extent_pages.value,
        "run_pages": w.faults.run_pages.value,
        "fault_bench_mb": w.faults.bench_mb.value,
        "services_woken": w.system.services_woken.value,
        "service_churn_kb": w.system.service_churn_kb.value,
        "service_file_kb": w.system.service_file_kb.value,
        "service_db_writes": w.system.service_db_writes.value,
        "cached_woken": w.system.cached_woken.value,
        "cached_churn_kb": w.system.cached_churn_kb.value,
        "system_file_kb": w.system.framework_mb.value * kb,
        "normal_restart": w.system.normal_restart.value,
        "gpu_piece_kb": w.system.gpu_piece_kb.value,
        "churn_forks": w.kernel_churn.forks.value,
        "churn_threads": w.kernel_churn.threads.value,
        "churn_pipes": w.kernel_churn.pipes.value,
        "churn_files": w.kernel_churn.files.value,
        "churn_pool": w.kernel_churn.pool.value,
        "lmkd_psi": int(w.lmkd.mode == "psi"),
        "lmkd_poll_ms": w.lmkd.poll_ms.value,
        "lmkd_idle_ms": w.lmkd.idle_ms.value,
        "lmkd_psi_partial_ms": w.lmkd.psi_partial_ms.value,
        "lmkd_psi_complete_ms": w.lmkd.psi_complete_ms.value,
        "lmkd_thrashing_pct": w.lmkd.thrashing_pct.value,
        "map_cell_pages": w.maps.cell_pages.value,
        "maps": w.maps.count.value,
        "pressure_from": _pressure_from(w, launches),
        "pressure_nice": w.pressure.nice.value if w.pressure is not None else 0,
        "pressure_cpus": _pressure_cpus(w),
        "scan_kb": w.media.scan_mb.value * kb if w.media is not None else 0,
        "watch_kb": w.media.watch_mb.value * kb if w.media is not None else 0,
        "drop_caches_at": _drop_caches_at(w),
    }


def _experiment_lines(w: Workload, pages_per_mb: int) -> Iterator[str]:
    """Keys as in guest/base/conf.c."""
    if w.bench is not None:
        yield from bench.lines(w.bench)
    if w.exit is not None:
        yield _experiment(
            "exit",
            programs=w.exit.programs.value,
            pages=w.exit.mb.value * pages_per_mb,
            period_us=w.exit.period_us.value,
            cpus=w.exit.cpus.value,
            quiet_ms=w.exit.quiet_ms.value,
        )
    if w.throughput is not None:
        yield _experiment(
            "throughput",
            pages=w.throughput.mb.value * pages_per_mb,
            rounds=w.throughput.rounds.value,
            quiet_ms=w.throughput.quiet_ms.value,
        )
    if w.orders is not None:
        yield _experiment(
            "orders",
            pages=w.orders.mb.value * pages_per_mb,
            fill_kb=w.orders.fill_mb.value * 1024,
            quiet_ms=w.orders.quiet_ms.value,
        )
    if w.scale is not None:
        yield _experiment(
            "scale",
            pages=w.scale.mb.value * pages_per_mb,
            rounds=w.scale.rounds.value,
            turns=w.scale.turns.value,
            tasks=w.scale.tasks.value,
            step=w.scale.step.value,
            quiet_ms=w.scale.quiet_ms.value,
        )


def _experiment(kind: str, **keys: int) -> str:
    return " ".join(["experiment", kind, *(f"{key}={value}" for key, value in keys.items())])


def _camera_lines(w: Workload, heap: str, announce: bool) -> list[str]:
    if w.camera is None:
        return []
    kb = [x.value * 1024 for x in (w.camera.buffers_mb, w.camera.piece_mb)]
    line = f"camera {w.camera.app} {heap} {kb[0]} {kb[1]} {w.camera.woken.value}"
    return [f"{line} announce" if announce else line]


def _judge_lines(w: Workload, page_size: int) -> list[str]:
    if w.judge is None:
        return []
    judge = w.judge
    pages = (_pages(x.value, page_size) for x in (judge.heap_pages, judge.file_pages))
    return [" ".join(map(str, ["judge", judge.frames.value, judge.frame_us.value, *pages]))]


def _launch_lines(w: Workload, seed: int, launches: int) -> Iterator[str]:
    """The sequence, with a mark where all apps had their turn."""
    ends = rounds_end(w, launches)
    for n, app in enumerate(launch_sequence(w, seed=seed, launches=launches), start=1):
        yield f"launch {app}"
        if n in ends:
            yield "round"


def _process_lines(workload: Workload) -> Iterator[str]:
    for name, one in workload.process.items():
        yield _process_line(name, one, one.heap_mb.value * 1024)
    for name, group in workload.group.items():
        for i in range(count := group.count.value):
            # from half to one and a half of the mean, in steps
            kb = group.heap_mb.value * 1024 * (count + 2 * i + 1) // (2 * count)
            yield _process_line(f"{name}-{i:02}", group, kb)


def _process_line(name: str, one: Process, heap_kb: int) -> str:
    words = [f"proc {name} {one.process_class} {one.adj.value} heap_kb={heap_kb}"]
    words += [f"role={one.role}"] if one.role else []
    words += [f"flood_kb={one.flood_mb.value * 1024}"] if one.flood_mb else []
    words += [f"zero_kb={one.zero_mb.value * 1024}"] if one.zero_mb else []
    words += [f"zero_every={one.zero_every.value}"] if one.zero_every else []
    words += [f"burn_ms={one.burn_ms.value}"] if one.burn_ms else []
    return " ".join(words)


def _app_lines(workload: Workload) -> Iterator[str]:
    for name, app in workload.app.items():
        keys = _app_keys(app, workload.category[app.category])
        words = [f"{key}={value}" for key, value in keys.items()]
        marks = [*(["home=1"] if app.home else []), *([f"role={app.role}"] if app.role else [])]
        marks += ["measured=1"] if app.measured else []
        marks += [f"messages={app.messages.value}"] if app.messages else []
        yield " ".join(["app", name, *marks, *words])


def _app_keys(app: App, cat: Category) -> dict[str, int]:
    kb, pct = 1024, app.heap_pct.value
    return {
        "heap_kb": cat.heap_mb.value * kb * pct // 100,
        "heap_max_kb": cat.heap_max_mb.value * kb * pct // 100,
        "grow_kb": cat.grow_mb.value * kb,
        "churn_pct": cat.churn_pct.value,
        "trim_pct": cat.trim_pct.value,
        "code_kb": cat.code_mb.value * kb,
        "res_kb": cat.res_mb.value * kb,
        "cold_file_kb": cat.cold_file_mb.value * kb,
        "warm_file_kb": cat.warm_file_mb.value * kb,
        "buf_min_kb": (app.buf_min_mb or cat.buf_min_mb).value * kb,
        "buf_max_kb": (app.buf_max_mb or cat.buf_max_mb).value * kb,
        "piece_min_kb": cat.piece_min_mb.value * kb,
        "piece_max_kb": (app.piece_max_mb or cat.piece_max_mb).value * kb,
        "piece_align_kb": cat.piece_align_kb.value,
        "gpu_kb": cat.gpu_mb.value * kb,
        "db_writes": cat.db_writes.value,
        "stream_kb": cat.stream_mb.value * kb,
        "threads": cat.threads.value,
    }
