"""One run on a worker, in a process of its own: `python -m cohort.cluster.job DIR`.

The lab that the command shipped runs it, whatever lab a worker has installed; nothing outside the
standard library is imported. DIR has `job.json`; what the guest said and `outcome.json` go there.
stdout is a line with the number of launches, or of cases, each time it changes.
"""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cohort import errors, host
from cohort.vm import machine
from cohort.vm.boot import Boot, boot
from cohort.vm.guest import Limits
from cohort.vm.machine import Latency, VmSpec

JOB, OUTCOME = "job.json", "outcome.json"


def described(what: Boot) -> dict[str, Any]:
    """A boot as JSON, with the version of QEMU here and without paths: those are a worker's own.

    UsageError for a guest that writes to the file of its storage: of a worker that is a copy which
    other runs take, too.
    """
    vm, limits = what.vm, what.limits
    if vm.keep_writes:
        raise errors.UsageError("a guest that keeps what it writes cannot run on a cluster")
    cost = vm.latency
    return {
        "policy": what.policy,
        "counted": what.counted,
        "limits": [limits.total_s, limits.silent_s],
        "accel": vm.accel,
        "memory_mb": vm.memory_mb,
        "cpus": vm.cpus,
        "latency": cost and [cost.read_us, cost.write_us, cost.mb_per_s],
        "cmdline": list(vm.cmdline),
        "arch": vm.arch,
        "nodes_mb": list(vm.nodes_mb),
        "guaranteed_mb": vm.guaranteed_mb,
        "emulator": host.version(machine.emulator(vm.arch).program),
    }


def read(directory: Path, job: dict[str, Any]) -> Boot:
    """The boot that `described` wrote, in `directory`, with files where `files` of the job says."""
    files = {name: Path(path) for name, path in job["files"].items()}
    vm = VmSpec(
        run_dir=directory,
        kernel=files["kernel"],
        accel=job["accel"],
        memory_mb=job["memory_mb"],
        cpus=job["cpus"],
        initrd=files.get("initrd"),
        storage=files.get("storage"),
        latency=Latency(*job["latency"]) if job["latency"] else None,
        cmdline=tuple(job["cmdline"]),
        arch=job["arch"],
        nodes_mb=tuple(job["nodes_mb"]),
        guaranteed_mb=job["guaranteed_mb"],
    )
    return Boot(vm, job["policy"], Limits(*job["limits"]), job["counted"])


def outcome(work: Callable[[], float]) -> dict[str, Any]:
    """How it ended: `wall_s`, or which error of the lab's with what words."""
    try:
        return {"wall_s": work()}
    except errors.CohortError as error:
        failed = error
    except OSError as error:
        failed = errors.from_oserror(error)
    console = failed.console if isinstance(failed, errors.GuestError) else []
    return {
        "error": type(failed).__name__,
        "message": failed.message,
        "hint": failed.hint,
        "console": console,
    }


def raise_error(told: dict[str, Any], where: str) -> None:
    """Raise the error that `outcome` tells of, as of the worker `where`; nothing without one."""
    if "error" not in told:
        return
    message = f"on worker {where}: {told['message']}"
    kind: type[errors.CohortError] = getattr(errors, told["error"])
    if issubclass(kind, errors.GuestError):
        raise kind(message, told["hint"], console=told["console"])
    raise kind(message, told["hint"])


def raise_unable(told: dict[str, Any], where: str) -> None:
    """Raise what `outcome` tells of a worker that cannot boot a guest, with no word of how a guest
    fared: of a guest that failed nothing is raised."""
    if "error" in told and not issubclass(getattr(errors, told["error"]), errors.GuestError):
        raise_error(told, where)


def check_emulator(arch: str, wanted: str) -> None:
    """MissingTool if the QEMU of this worker is of another version: it would not repeat a run."""
    program = machine.emulator(arch).program
    host.need(program)
    found = host.version(program)
    if found != wanted:
        raise errors.MissingTool(
            f"{program} is {found!r}, and {wanted!r} where the command runs",
            "install the same version on all machines",
        )


def main(directory: Path) -> None:
    """Do the job in `directory`."""

    def count(launches: int) -> None:
        print(launches, flush=True)

    def work() -> float:
        job = json.loads((directory / JOB).read_text())
        check_emulator(job["arch"], job["emulator"])
        return boot(read(directory, job), count, threading.Event())

    told = outcome(work)
    (directory / OUTCOME).write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
