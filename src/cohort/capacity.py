"""How many guests this host bears beside one another."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cohort.host import cpus

log = logging.getLogger(__name__)

MEMINFO = Path("/proc/meminfo")
OVERHEAD_MB = 512
"""Of a QEMU besides its guest's memory: code that was translated, and what the guest has written to
its storage. 430 MiB were measured in a run of phone-2g."""


@dataclass(frozen=True)
class Load:
    """What a guest takes of its host: threads that are busy at a time, and its memory in MiB."""

    threads: int
    memory_mb: int


def guests(loads: Sequence[Load]) -> int:
    """How many of these guests may run beside one another, at least one: each busy thread has a CPU
    to itself, and memory that is available is enough for all. As many as CPUs if there is none.
    Where the memory is not enough for one, that is told."""
    if not loads:
        return cpus()
    threads = max(load.threads for load in loads)
    memory_mb = max(load.memory_mb for load in loads) + OVERHEAD_MB
    fitting = cpus() // threads
    available_mb = _available_mb()
    if available_mb is not None:
        fitting = min(fitting, available_mb // memory_mb)
        if available_mb < memory_mb:
            log.warning(
                "a guest takes %d MiB of memory, and %d are available: this machine may swap, or"
                " the kernel kill the guest",
                memory_mb,
                available_mb,
            )
    return max(1, fitting)


def _available_mb() -> int | None:
    """MiB that new processes may have before the host swaps; None if its kernel does not say."""
    if not MEMINFO.is_file():
        return None
    for line in MEMINFO.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) >> 10
    return None
