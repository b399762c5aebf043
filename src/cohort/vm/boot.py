"""One boot of a guest from its switches to its last record.

Imports nothing outside the standard library: a worker of a cluster runs it with any Python.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from cohort.errors import GuestError
from cohort.vm import guest
from cohort.vm.guest import Limits
from cohort.vm.machine import VmSpec
from cohort.vm.switched import Switched

log = logging.getLogger(__name__)

STALE_BREAKPOINT = "Oops: int3: "
"""What the kernel of a free-running guest says where QEMU before version 10 ran the breakpoint of a
branch that had been patched by then, on another thread's CPU. Such a boot tells nothing."""
BOOTS = 3
"""Boots after which a stale breakpoint is a failure like others."""

Count = Callable[[int], None]
"""Called with the number of records so far that tell of progress: of apps launched, in a phone."""


@dataclass(frozen=True)
class Boot:
    """A machine to boot, the policy that messages name, when to give up, and the kind of record
    that tells of progress."""

    vm: VmSpec
    policy: str
    limits: Limits
    counted: str = "launch"


def boot(what: Boot, count: Count, stop: threading.Event) -> float:
    """Boot, wait for the end and look at what the run was; returns seconds of wall time.

    A guest that QEMU had run a stale breakpoint is booted again, BOOTS times at most. Raises
    GuestError if the guest fails or is no run of its policy, `Stopped` on `stop`.
    """
    for _ in range(BOOTS - 1):
        try:
            return _boot(what, count, stop)
        except GuestError:
            if not _ran_stale(what.vm):
                raise
            log.warning("QEMU ran a stale breakpoint in %s: again", what.vm.run_dir.name)
            what.vm.records.unlink(missing_ok=True)
            what.vm.console.unlink()
    return _boot(what, count, stop)


def _ran_stale(vm: VmSpec) -> bool:
    """The guest died of QEMU, not of its kernel."""
    if vm.accel != "tcg" or not vm.console.is_file():
        return False
    return STALE_BREAKPOINT in vm.console.read_text(errors="replace")


def _boot(what: Boot, count: Count, stop: threading.Event) -> float:
    """The same, once."""
    switched = Switched(what.policy, what.vm.cmdline, what.vm.console)
    begins = f'{{"r":"{what.counted}"'
    counted = 0

    def watch(line: str) -> None:
        nonlocal counted
        switched.watch(line)
        if line.startswith(begins):
            counted += 1
            count(counted)

    wall = guest.run(what.vm, what.limits, watch, stop)
    switched.finish()
    _check_storage(what.vm)
    return wall


def _check_storage(vm: VmSpec) -> None:
    """GuestError if the guest had to use the storage without its latency."""
    with vm.records.open() as records:
        notes = [line for line in records if line.startswith('{"r":"note"')]
    if vm.latency is not None and not any("storage /dev/dm-0" in line for line in notes):
        raise GuestError("the guest's kernel has no flash storage: CONFIG_COHORT_FLASH is missing")
