"""Runs: one policy, one workload, one seed, in a directory of its own.

A run is named by the content of everything that goes into it (kernel image, guest, workload,
policy, parameters, QEMU and all it is told), so the same run is never made twice and a changed one
never mistaken.
"""

import json
import logging
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cohort import capacity, checkout, host, paths
from cohort.capacity import Load
from cohort.errors import BuildError, CohortError, GuestError, Stopped, UsageError
from cohort.kept import remove
from cohort.kernel.build import Kernel, KernelSpec, build
from cohort.log import progress as show_progress
from cohort.phone import initramfs
from cohort.phone.initramfs import build_guest, build_initramfs
from cohort.phone.storage import build_storage, padded
from cohort.phone.workload import Workload, all_launches
from cohort.results.metrics import compute_metrics
from cohort.results.record_schema import check_file
from cohort.results.rundir import RunDir
from cohort.run_check import CheckedRun, check_run
from cohort.run_spec import RunSpec
from cohort.vm import accel as accelerators
from cohort.vm import guest, machine
from cohort.vm.boot import Boot, Count, boot
from cohort.vm.machine import Accel, Latency, VmSpec

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
Made = TypeVar("Made")

FORMAT = 2  # of a run directory; part of every run's id
SILENT_S = 120.0
SILENT_CHECKED_S = 400.0  # a kernel with every check, and a storm on it, on a busy host
BOOT_LIMIT_S = 300.0
LAUNCH_LIMIT_S = 6.0  # a launch takes half a second on a quiet host
BENCH_LIMIT_S = 3600.0


@dataclass(frozen=True)
class Ended:
    """A boot that came to its end: seconds of wall time, and the workers that made it, if any."""

    wall_s: float
    workers: tuple[str, ...] = ()


class Engine(Protocol):
    """Where guests run: on this machine, or on the workers of a cluster."""

    def width(self, runs: int, here: int = 1) -> int:
        """How many of so many runs are under way at a time if the command does not say. This host
        bears `here` of them."""

    def expect(self, runs: Sequence[str]) -> None:
        """Hear the names of runs to come that must repeat. CohortError if they cannot be made."""

    def boot(self, name: str, what: Boot, count: Count, stop: threading.Event) -> Ended:
        """Make the run called `name`, and leave what the guest said in its directory.

        Raises what `cohort.vm.boot.boot` does, Failed for a run that does not repeat.
        """


class Here:
    """The engine that is this machine."""

    def width(self, runs: int, here: int = 1) -> int:
        """As many as it bears."""
        return here

    def expect(self, runs: Sequence[str]) -> None:
        """There is nothing to prepare."""

    def boot(self, name: str, what: Boot, count: Count, stop: threading.Event) -> Ended:
        """Boot as a child of this process."""
        return Ended(boot(what, count, stop))


@dataclass(frozen=True)
class Plan:
    """A run with everything it needs at hand."""

    spec: RunSpec
    kernel: Kernel
    workload: Workload
    accel: Accel
    guest: Path
    storage: Path
    conf: str
    commit: str = "unknown"
    """Of the lab, while all this was made."""

    @property
    def launches(self) -> int:
        """How many launches the run is about."""
        return self.spec.launches or self.workload.launches.value

    @property
    def all_launches(self) -> int:
        """How many apps are launched, those between the starts of a camera counted."""
        return all_launches(self.workload, self.launches)

    @property
    def memory_mb(self) -> int:
        """The guest's memory, MiB."""
        return self.spec.memory_of(self.workload)

    @property
    def page_size(self) -> int:
        """Bytes of a page of the machine."""
        return self.spec.kernel_spec.page_size

    @property
    def load(self) -> Load:
        """What the guest takes of a host: one thread runs all CPUs of a deterministic one, another
        has a thread a CPU."""
        return Load(1 if self.repeats else self.workload.cpus, self.memory_mb)

    @property
    def latency(self) -> Latency:
        """What a request to the phone's storage costs."""
        cost = self.workload.storage
        return Latency(cost.read_us.value, cost.write_us.value, cost.mb_per_s.value)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """All that decides the result, by content: the same wherever the files are."""
        return {
            "format": FORMAT,
            "page_size": self.page_size,
            "machine_id": self._machine_id,
            "kernel_id": self.kernel.id[:16],
            "guest_id": host.digest_file(self.guest)[:16],
            "workload_id": host.digest(_image_digest(self.storage), self.conf)[:16],
            "storage": asdict(self.latency),
            "policy_id": self.spec.policy.digest[:16],
            "cmdline": list(self.spec.cmdline),
            "accel": self.accel,
            "memory_mb": self.memory_mb,
            "cpus": self.workload.cpus,
            "qemu": host.version(machine.emulator(self.kernel.arch).program),
        }

    @property
    def _machine_id(self) -> str:
        """The machine's arguments and whatever else the lab gives a guest, by content."""
        vm = _machine(self, Path(), Path())
        return host.digest(guest.identity(vm), initramfs.identity())[:16]

    @property
    def workload_digest(self) -> str:
        """The workload alone: the same for every policy, seed and number of launches."""
        return host.digest(_image_digest(self.storage), self.workload.model_dump_json())[:16]

    @property
    def path(self) -> Path:
        """Where the run goes."""
        key = host.digest(json.dumps(self.identity, sort_keys=True))[:8]
        name = f"{self.workload.name}-{self.spec.policy.name}-s{self.spec.seed}-{key}"
        return paths.made("runs") / name

    @property
    def repeats(self) -> bool:
        """Made again, the run says the same byte for byte."""
        return self.accel == "deterministic"

    @property
    def wanted(self) -> bool:
        """The run has to be made: it is not there, or is to be made again."""
        return self.spec.fresh or not (self.path / "meta.json").is_file()


def _image_digest(image: Path) -> str:
    """The digest of an image of storage, which has gigabytes: read again only if it is another."""
    now = image.stat()
    return _digest_once(image, now.st_mtime_ns, now.st_size)


@cache
def _digest_once(image: Path, mtime_ns: int, size: int) -> str:
    return host.digest_file(image)


def execute(spec: RunSpec) -> RunDir:
    """Run `spec` here, as execute_matrix does, or return the run made earlier of the same content.

    Raises GuestError if the guest fails; what it left behind stays in a directory ending in
    `.failed`.
    """
    [run] = execute_matrix([spec])
    return run


def execute_matrix(
    specs: Sequence[RunSpec],
    jobs: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> list[RunDir]:
    """Run all on `engine` (default: this machine), `jobs` at a time (default: what it bears).

    In the order given. `progress` counts launches over all runs. The first failure stops the
    others.
    """
    engine = engine or Here()
    # Before the kernels: a mistyped name should not be found after a build.
    checked = [check_run(spec) for spec in specs]
    _tell(checked)
    for wish, arch in dict.fromkeys((spec.accel, spec.kernel_spec.arch) for spec in specs):
        accelerators.check(wish, arch)
    _check_tools(specs, here=isinstance(engine, Here))
    plans = _plans(specs, checked)
    _check_commits(plans)
    engine.expect([plan.path.name for plan in plans if plan.wanted and plan.repeats])
    report = _sum_progress([plan.all_launches for plan in plans], progress or _ignore)
    calls = [partial(_execute, plan, engine, report(i)) for i, plan in enumerate(plans)]
    # A cluster's guests take nothing of this machine.
    wanted = [plan for plan in plans if plan.wanted and isinstance(engine, Here)]
    here = capacity.guests([plan.load for plan in wanted])
    return together(calls, jobs or engine.width(len(plans), here))


def _check_commits(plans: Sequence[Plan]) -> None:
    """UsageError for runs that are there and of another commit, if their specs are to be of one."""
    reused = [RunDir(plan.path) for plan in plans if plan.spec.one_commit and not plan.wanted]
    if not reused:
        return
    here = plans[0].commit
    made = {run.path.name: run.meta.get("versions", {}).get("cohort_git") for run in reused}
    other = {name: commit for name, commit in made.items() if commit != here}
    if other:
        name, commit = next(iter(other.items()))
        raise UsageError(
            f"{len(other)} of {len(plans)} runs are there and of another commit than this, {here}:"
            f" first {name}, of {commit}",
            "make all of them again, with --fresh, or remove those directories",
        )


def together(calls: Sequence[Callable[[threading.Event], Made]], width: int) -> list[Made]:
    """What the calls return, `width` of them at a time. The first failure sets the event that all
    are given, as does Ctrl-C, and is raised when they have ended."""
    stop = threading.Event()
    with ThreadPoolExecutor(width) as pool:
        futures = [pool.submit(call, stop) for call in calls]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            # Also on Ctrl-C: leaving the pool waits for the calls, which this ends.
            if not all(_succeeded(future) for future in futures):
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
    _raise_first(futures)
    return [future.result() for future in futures]


def prepare(specs: Sequence[RunSpec]) -> dict[KernelSpec, Kernel]:
    """Build the kernels of all specs, each once. BuildError if they are not all of one source."""
    wanted = list(dict.fromkeys(spec.kernel_spec for spec in specs))
    with show_progress() as board:
        built = {kernel: build(kernel, board.task(f"kernel {kernel.name}")) for kernel in wanted}
    check_trees(built)
    return built


def _tell(checked: Sequence[CheckedRun]) -> None:
    """Each remark on the runs once."""
    for remark in dict.fromkeys(remark for run in checked for remark in run.remarks):
        log.warning("%s", remark)


def check_trees(built: Mapping[KernelSpec, Kernel]) -> None:
    """BuildError if a tree was edited between two kernels that were built of it: what their runs
    differ in would not be the policies."""
    ids: dict[Path | None, str] = {}
    for spec, kernel in built.items():
        if ids.setdefault(spec.tree, kernel.tree_id) != kernel.tree_id:
            raise BuildError(
                f"{spec.tree or 'the kernel part'} changed while kernels were built of it",
                "leave it as it is until all are built, and call the command again",
            )


def _check_tools(specs: Sequence[RunSpec], here: bool) -> None:
    """MissingTool with all that runs need beside what builds a kernel: before one is built. Guests
    that are not booted `here` take what boots them where they are."""
    wanted = ["mke2fs", "debugfs"]
    wanted += [machine.emulator(spec.kernel_spec.arch).program for spec in specs]
    if here:
        wanted += ["setpriv", *(["fdtput"] if any(x.policy.guaranteed_mb for x in specs) else [])]
    host.need_all(wanted)


def _plans(specs: Sequence[RunSpec], checked: Sequence[CheckedRun]) -> list[Plan]:
    """Build what all runs need."""
    before = checkout.commit()
    kernels = prepare(specs)
    plans = [_plan(spec, run, kernels) for spec, run in zip(specs, checked, strict=True)]
    commit = checkout.since(before)
    return [replace(plan, commit=commit) for plan in plans]


def _plan(spec: RunSpec, checked: CheckedRun, kernels: dict[KernelSpec, Kernel]) -> Plan:
    kernel = kernels[spec.kernel_spec]
    accel = accelerators.choose(spec.accel, kernel)
    guest_bin = build_guest(
        paths.made("guest"), arch=kernel.arch, page_size=spec.kernel_spec.page_size
    )
    storage = build_storage(checked.workload, paths.made("storage"), kernel.arch)
    return Plan(spec, kernel, checked.workload, accel, guest_bin, storage, checked.conf)


def _execute(plan: Plan, engine: Engine, progress: Progress, stop: threading.Event) -> RunDir:
    path, launches = plan.path, plan.all_launches
    with host.lock(paths.made("runs", ".locks") / path.name, stop=stop):
        if plan.wanted:
            part = path.with_name(path.name + ".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            _run_in(part, plan, engine, progress, stop)
            if path.is_dir():
                remove(path)
            part.replace(path)
        else:
            # The definition of a metric may have changed since, and a note of the workload, which
            # decides no result.
            _write_metrics(path)
            meta = RunDir(path).meta
            if meta.get("workload_digest") != plan.workload_digest:
                host.write_json(
                    path / "meta.json", meta | {"workload_digest": plan.workload_digest}
                )
    progress(launches, launches)
    return RunDir(path)


def _write_metrics(directory: Path) -> None:
    host.write_json(directory / "metrics.json", compute_metrics(RunDir(directory).records()))


def _run_in(
    part: Path, plan: Plan, engine: Engine, progress: Progress, stop: threading.Event
) -> None:
    """Make the run in `part`; one that fails, does not repeat or cannot be measured has it renamed
    to `.failed`. A directory with a meta.json is of a finished run, so that is written last."""
    started = datetime.now(UTC)
    host.write_text(part / "phone.conf", plan.conf)
    shutil.copy(plan.kernel.config, part / "config")
    total = plan.all_launches

    def count(launches: int) -> None:
        progress(min(launches, total), total)

    try:
        try:
            initrd = build_initramfs(plan.guest, plan.conf, part / "initramfs.cpio")
            what = _boot(_machine(plan, part, initrd), plan)
            ended = engine.boot(plan.path.name, what, count, stop)
        finally:
            (part / "initramfs.cpio").unlink(missing_ok=True)
        check_file(part / "records.jsonl")
        _write_metrics(part)
    except CohortError as error:
        failed = part.with_name(part.name.removesuffix(".part") + ".failed")
        shutil.rmtree(failed, ignore_errors=True)
        part.replace(failed)
        if isinstance(error, GuestError):
            error.run_dir = failed
        raise
    host.write_json(part / "meta.json", meta_of(plan, started, ended))


def _machine(plan: Plan, run_dir: Path, initrd: Path) -> VmSpec:
    return VmSpec(
        run_dir=run_dir,
        kernel=plan.kernel.image,
        accel=plan.accel,
        memory_mb=plan.memory_mb,
        cpus=plan.workload.cpus,
        initrd=initrd,
        storage=_storage(plan),
        latency=plan.latency,
        cmdline=(*plan.workload.boot_words, *plan.spec.words),
        arch=plan.kernel.arch,
        guaranteed_mb=plan.spec.policy.guaranteed_mb,
    )


def _storage(plan: Plan) -> Path:
    """The image as the machine takes it."""
    return plan.storage if machine.emulator(plan.kernel.arch).nvdimm else padded(plan.storage)


def _boot(vm: VmSpec, plan: Plan) -> Boot:
    checked = {"debug", "races"} & set(plan.spec.kernel_spec.configs)
    silent_s = SILENT_CHECKED_S if checked else SILENT_S
    limits = guest.Limits(plan.spec.timeout_s or _limit_s(plan), silent_s)
    return Boot(vm, plan.spec.policy.name, limits)


def _limit_s(plan: Plan) -> float:
    """Time enough on a busy host."""
    long = plan.workload.bench is not None or plan.workload.scale is not None
    bench = BENCH_LIMIT_S if long else 0
    return BOOT_LIMIT_S + plan.all_launches * LAUNCH_LIMIT_S + bench


def meta_of(plan: Plan, started: datetime, ended: Ended) -> dict[str, Any]:
    """What meta.json says: what was run, on what, when."""
    spec = plan.spec
    return {
        **plan.identity,
        "policy": spec.policy.name,
        "policy_title": spec.policy.title,
        "policy_cmdline": spec.policy.cmdline,
        "workload": plan.workload.name,
        "workload_digest": plan.workload_digest,
        "seed": spec.seed,
        "launches": plan.launches,
        "deterministic": plan.repeats,
        "arch": plan.kernel.arch,
        "page_size": plan.page_size,
        "kernel_configs": list(spec.kernel_spec.configs),
        "tree": None if spec.kernel_spec.tree is None else str(spec.kernel_spec.tree.resolve()),
        "config": spec.config,
        "change": [f"{key}={value}" for key, value in spec.change],
        "versions": {
            "qemu": plan.identity["qemu"],
            "gcc": host.version("gcc"),
            "kernel": plan.kernel.release,
            "cohort_git": plan.commit,
            "tree_id": plan.kernel.tree_id[:16],
        },
        "started": started.isoformat(timespec="seconds"),
        "wall_s": round(ended.wall_s, 1),
        "workers": list(ended.workers),
    }


def _sum_progress(totals: list[int], progress: Progress) -> Callable[[int], Progress]:
    """One progress for many runs: the counts of all added up."""
    done = [0] * len(totals)
    lock = threading.Lock()

    def of_run(index: int) -> Progress:
        def update(count: int, total: int) -> None:
            with lock:
                done[index] = count
                progress(sum(done), sum(totals))

        return update

    return of_run


def _succeeded(future: "Future[Any]") -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _raise_first(futures: "Sequence[Future[Any]]") -> None:
    """Raise what went wrong first, not the `Stopped` of runs that were then called off."""
    for future in futures:
        error = future.exception() if future.done() and not future.cancelled() else None
        if error is not None and not isinstance(error, Stopped):
            raise error


def _ignore(done: int, total: int) -> None:
    """The progress is not shown."""
