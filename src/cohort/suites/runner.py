"""Boots a suite's guest under a policy, again after a death, until every case has been run."""

import json
import logging
import shutil
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cohort import host, knobs, named, switches
from cohort.errors import GuestError, UsageError, WrongPolicy
from cohort.kernel.build import Kernel
from cohort.log import Update
from cohort.phone.conf import DISK
from cohort.phone.initramfs import Member, build_initramfs
from cohort.policy import MOST_MEMORY_MB, Policy
from cohort.results.record_schema import check_file
from cohort.runs import Engine, Here
from cohort.suites import results
from cohort.suites.results import LEAKS, Case, Outcome
from cohort.suites.schema import Suite
from cohort.units import PAGE
from cohort.vm import guest, machine
from cohort.vm.boot import Boot, Count
from cohort.vm.machine import VmSpec

LEAST_MEMORY_MB = 48
"""With less the suites' kernel does not boot, even into a small initramfs."""
BOOT_LIMIT_S = 600.0
SETUP_LIMIT_S = 600.0
SILENT_S = 600.0
"""On top of the longest case: a guest with every check on a busy host says little."""
CASE_SLACK_S = 60.0
LEAKS_LIMIT_S = 900
"""For two walks over all memory on a kernel with every check."""

# On a busy host the timer's interrupt comes too late for the kernel's own test.
WORDS = ("no_timer_check",)
DEBUG_WORDS = ("panic_on_warn=1", "page_owner=on", "page_poison=1")
_KMEMLEAK = "/sys/kernel/debug/kmemleak"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Machine:
    """What the guests are: memory in MiB, whether their kernel has every checker, the bytes of a
    page, the fragments of their kernel if it is not the policy's, and its tree if not the
    fetched one."""

    cpus: int
    memory_mb: int
    debug: bool
    page_size: int = PAGE
    config: str | None = None
    tree: Path | None = None

    def check(self, policy: Policy) -> None:
        """UsageError if there is no such machine, or it cannot have what the policy asks for."""
        if not LEAST_MEMORY_MB <= self.memory_mb <= MOST_MEMORY_MB:
            bounds = f"{LEAST_MEMORY_MB} to {MOST_MEMORY_MB} MiB"
            raise UsageError(
                f"memory must be {bounds}, not {self.memory_mb}",
                "without --memory it is what the suite says",
            )
        where = f"policy {policy.name}"
        words = self.switches(policy)
        switches.check_machine(words, self.memory_mb, self.cpus, f"{where}: cmdline", "--cpus")
        knobs.check_machine(policy.sysfs, self.memory_mb, where)
        _check_carried(policy)

    def switches(self, policy: Policy) -> list[str]:
        """The policy's words on the command line, areas in whole pageblocks."""
        return [switches.whole(word, self.page_size) for word in policy.cmdline]


def _check_carried(policy: Policy) -> None:
    """UsageError for a policy that is none without what a suite has not: a phone's processes with
    roles, a camera whose heap takes from an area, and GCMA's area in the device tree."""
    given = switches.values(policy.cmdline)
    where, with_phone = f"policy {policy.name}", f"cohort run {policy.name} --workload"
    if policy.role and switches.LAYOUT not in given:
        role = next(iter(policy.role))
        raise UsageError(
            f"{where}: role.{role}: the processes of a suite have no roles",
            f"leave it out, or: {with_phone} vnode-pressure",
        )
    areas = switches.HEAP_AREAS.get(policy.camera_heap, ())
    if areas and not policy.areas(policy.cmdline) & set(areas):
        raise UsageError(
            f"{where}: camera_heap {policy.camera_heap}: a suite has no camera, and cmdline has no"
            f" {' or '.join(f'{area}=' for area in areas)}",
            f'cmdline = ["{areas[0]}=260M"] in the policy',
        )
    if policy.guaranteed_mb:
        raise UsageError(
            f"{where}: guaranteed_mb: the guests of a suite have no area of GCMA",
            f"leave it out, or: {with_phone} camera --arch arm64 --tree DIR",
        )


def check_columns(policies: Sequence[Policy], *, disk: bool) -> None:
    """UsageError for a policy that differs from one before it only in what a suite has not: both
    columns would be of one and the same guest. `disk` says whether the root is on a disk."""
    seen: dict[object, Policy] = {}
    for policy in policies:
        words = switches.values(policy.cmdline)
        others = [word for word in policy.cmdline if not switches.is_cohorts(word)]
        carried = (policy.kernel, *others, *sorted(words.items()), *_written(policy, disk=disk))
        twin = seen.setdefault(carried, policy)
        if twin.digest != policy.digest:
            raise UsageError(
                f"policies {twin.name} and {policy.name} differ only in what a suite has not: in"
                f" {', '.join(_differ(twin, policy))}",
                "leave one of them out; cohort compare has both, on a phone",
            )


def _differ(one: Policy, other: Policy) -> list[str]:
    """The keys that two policies differ in, but for what they are called."""
    keys = [key for key in Policy.model_fields if key not in ("name", "title")]
    return [key for key in keys if getattr(one, key) != getattr(other, key)]


def _written(policy: Policy, *, disk: bool) -> list[tuple[str, str]]:
    """The files that a guest with a disk, or without one, writes: a knob of the phone's storage is
    one of the root's here, and of none where the root is an initramfs."""
    return [(path, x) for path, x in policy.writes() if disk or not path.startswith(DISK)]


@dataclass(frozen=True)
class Plan:
    """A suite with everything its guests need, and where they run.

    Without an `image` the root is the initramfs with `members`.
    """

    suite: Suite
    init: Path
    image: Path | None
    members: Sequence[Member]
    machine: Machine
    engine: Engine = Here()
    commit: str = "unknown"
    """Of the lab, while all this was made."""

    def words(self, policy: Policy) -> tuple[str, ...]:
        """What is on the guest kernel's command line."""
        return (
            *WORDS,
            *(DEBUG_WORDS if self.machine.debug else ()),
            *self.suite.cmdline,
            *self.machine.switches(policy),
        )

    @property
    def id(self) -> str:
        """SHA-256 of what is run: the suite's text, and the root with the suite's files."""
        root: list[bytes | str] = [] if self.image is None else [self.image.name]
        for member in self.members:
            root += [member.name, f"{member.mode:o}", member.data]
        return host.digest(self.suite.model_dump_json(exclude={"files", "home"}), *root)


def _knobs(plan: Plan, policy: Policy) -> list[str]:
    """What the policy writes, as the guest reads it."""
    disk = f"/sys/block/{Path(machine.PMEM).name}/"
    written = _written(policy, disk=plan.image is not None)
    return [f"write {path.replace(DISK, disk)} {value}" for path, value in written]


def leaks_command(skipped: int, kmemleak: str = _KMEMLEAK, log: str = "/dev/kmsg") -> str:
    """What asks a kernel for objects that nothing points to any longer, twice, as the first look
    may have met one on its way, and after those that are too young for it. Lines that name Cohort
    are complaints of the kernel. `skipped` is the exit code where it looks for none."""
    return (
        f"[ -w {kmemleak} ] || exit {skipped}; sleep 6; echo scan >>{kmemleak} || exit {skipped}; "
        f"sleep 1; echo scan >>{kmemleak}; grep -q cohort_ {kmemleak} || exit 0; "
        f"grep cohort_ {kmemleak} | while read -r line; do "
        f'echo "$line"; echo "<2>BUG: leaked by $line" >>{log}; done; exit 1'
    )


def render_conf(plan: Plan, policy: Policy, cases: Sequence[str]) -> str:
    """The text of /suite.conf: the policy's knobs, the suite's setup and these of its cases."""
    suite = plan.suite
    lines = [] if plan.image is None else [f"root {machine.PMEM}"]
    lines += _knobs(plan, policy)
    lines += [f"setup {command}" for command in suite.setup]
    for name in cases:
        command = suite.case.get(name) or leaks_command(next(iter(suite.skip), 0))
        lines.append(f"case {name} {_limit(suite, name)} {command}")
    return "\n".join(lines) + "\n"


def _limit(suite: Suite, name: str) -> int:
    """Seconds that a case may take."""
    return LEAKS_LIMIT_S if name == LEAKS else suite.limit_of(name)


def expect(plan: Plan, policies: Sequence[Policy]) -> None:
    """Have the engine hear of the guests to come that must repeat. CohortError if it cannot.

    Of each policy it is the first: whether there are more, its guest decides.
    """
    names = [_name(plan, policy, 1) for policy in policies] if plan.suite.deterministic else []
    plan.engine.expect(names)


def _name(plan: Plan, policy: Policy, boot: int) -> str:
    """A guest's name for the engine."""
    return f"{plan.suite.name}-{policy.name}-boot-{boot}"


def run(
    plan: Plan,
    policy: Policy,
    kernel: Kernel,
    directory: Path,
    update: Update,
    stop: threading.Event,
) -> Outcome:
    """Run every case under the policy; each boot leaves a directory in `directory`. A kernel with
    every checker is asked for leaks behind the last one.

    A case that its guest does not outlive has died, also if it had ended and no other had begun,
    and the next guest begins after it. Raises GuestError for a guest that does not come to its
    first case, WrongPolicy for one that is no run of its policy, and what the engine does.
    """
    shutil.rmtree(directory, ignore_errors=True)
    cases: list[Case] = []
    boots = 0
    names = [*plan.suite.case, *((LEAKS,) if plan.machine.debug else ())]

    def count(done: int) -> None:
        update(len(cases) + done, len(names))

    while len(cases) < len(names):
        boots += 1
        where = directory / f"boot-{boots}"
        where.mkdir(parents=True)
        left = names[len(cases) :]
        what = _described(plan, policy, kernel, where, left)
        count(0)
        cases += _boot(plan, _name(plan, policy, boots), what, left, count, stop)
    count(0)
    lines = [json.dumps(asdict(case), allow_nan=False) for case in cases]
    host.write_text(directory / "cases.jsonl", "".join(f"{line}\n" for line in lines))
    return Outcome(policy.name, tuple(cases), boots)


def _described(
    plan: Plan, policy: Policy, kernel: Kernel, where: Path, names: Sequence[str]
) -> Boot:
    """A guest that runs these cases."""
    spec = _machine(plan, policy, kernel, where, names)
    return Boot(spec, policy.name, _limits(plan.suite, names), counted="result")


def _boot(
    plan: Plan, name: str, what: Boot, names: Sequence[str], count: Count, stop: threading.Event
) -> list[Case]:
    """One guest, from the first of `names` to the last or to its death; what it ran."""
    spec = what.vm
    try:
        plan.engine.boot(name, what, count, stop)
    except WrongPolicy:
        raise
    except GuestError as error:
        cases = _cases(plan, spec)
        if not cases:
            raise
        if cases[-1].status != "died":
            cases[-1] = results.died_after(cases[-1], error.message)
        return cases
    check_file(spec.records)
    cases = _cases(plan, spec)
    if len(cases) != len(names):
        raise GuestError(f"{len(cases)} of {len(names)} cases have a result", run_dir=spec.run_dir)
    return cases


def _cases(plan: Plan, spec: VmSpec) -> list[Case]:
    records = []
    with spec.records.open(errors="replace") as file:
        for line in file:
            if line.endswith("}\n"):  # a guest may die in the middle of one
                records.append(json.loads(line))
    for name, (lines, kept) in results.left_out(records).items():
        log.warning("%s: %d of %d lines of output are kept (%s)", name, kept, lines, spec.run_dir)
    console = spec.console.read_text(errors="replace") if spec.console.is_file() else ""
    return results.cases_of(plan.suite, records, console)


def _limits(suite: Suite, names: Sequence[str]) -> guest.Limits:
    """Time enough for every case to run into its own limit."""
    whole = sum(_limit(suite, name) + CASE_SLACK_S for name in names)
    setup = SETUP_LIMIT_S * len(suite.setup)
    longest = max(_limit(suite, name) for name in names)
    return guest.Limits(BOOT_LIMIT_S + setup + whole, SILENT_S + longest)


def _machine(
    plan: Plan, policy: Policy, kernel: Kernel, where: Path, names: Sequence[str]
) -> VmSpec:
    conf = render_conf(plan, policy, names)
    host.write_text(where / "suite.conf", conf)
    initrd = build_initramfs(plan.init, conf, where / "initramfs.cpio", "suite.conf", plan.members)
    return VmSpec(
        run_dir=where,
        kernel=kernel.image,
        accel=plan.suite.accel,
        memory_mb=plan.machine.memory_mb,
        cpus=plan.machine.cpus,
        initrd=initrd,
        storage=plan.image,
        cmdline=plan.words(policy),
        arch=kernel.arch,
    )


def choose_cases(suite: Suite, names: Sequence[str]) -> Suite:
    """The suite with only these of its cases, all if none is named; UsageError for unknown ones."""
    if not names:
        return suite
    if unknown := [name for name in names if name not in suite.case]:
        raise UsageError(
            f"suite {suite.name} has no case {', '.join(unknown)}",
            named.of_many(unknown[0], list(suite.case), "see the suite's file"),
        )
    return suite.model_copy(update={"case": {name: suite.case[name] for name in names}})
