"""Cohort's files in sysfs, checked before anything is built for a policy that writes them.

A name that is mistyped, a file that is only read, or a value that the kernel refuses ends a guest
after its boot. What there is says the kernel part's ABI document; a file that has a boot parameter
has its bounds.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath

from cohort import named, paths, switches
from cohort.errors import UsageError
from cohort.sysfs import SYSFS

COHORT = f"/{SYSFS}"
TOP, _, OWN = COHORT.rpartition("/")
ABI = paths.OVERLAY / "Documentation/ABI/testing/sysfs-kernel-mm-cohort"
_NODES = f"{COHORT}/vnode"
_NODE = "<name>"
"""In the document, for the name of a virtual node."""
_PARAMETERS = {
    **{file: name for name, file in switches.AREA_FILES.items()},
    f"{COHORT}/pcpa/min_order": "cohort.pcpa_min_order",
    f"{COHORT}/pcpa/timer_ms": "cohort.pcpa_timer_ms",
    f"{COHORT}/cpb/refill": "cohort.cpb_refill",
}
"""The boot parameters of files that may be written, whose bounds are the same."""


@cache
def files() -> Mapping[str, bool]:
    """The paths of all files that Cohort has below /sys, `<name>` for that of a virtual node, and
    whether they may be written."""
    found = {}
    for entry in ABI.read_text(encoding="utf-8").split("\n\n"):
        mode = re.search(r"^Description:\s+\((\w+)\)", entry, re.MULTILINE)
        for path in re.findall(rf"^What:\s+({COHORT}/\S+)$", entry, re.MULTILINE):
            found[path] = mode is not None and "W" in mode[1]
    return found


def is_cohorts(path: str) -> bool:
    """Is this path below Cohort's directory, whether or not there is such a file?"""
    return path.startswith(f"{COHORT}/")


def problem(path: str, value: str) -> str | None:
    """Why the kernel would have no such file, or would refuse the value; None if it may take it.

    Of files that are none of Cohort's nothing is known.
    """
    if not is_cohorts(path):
        return _strange(path)
    place = path if path in files() else _of_any_node(path)
    if place not in files():
        meant = named.of_many(path, list(files()), f"grep What {ABI}")
        return f"{path}: Cohort has no such file; {meant}"
    if not files()[place]:
        return f"{path}: is only read"
    parameter = _PARAMETERS.get(path)
    if parameter is None or (parameter in switches.AREA_FILES and value == "0"):
        return None
    what = switches.problem(f"{parameter}={value}")
    return None if what is None else f"{path}: {what.removeprefix(f'{parameter}=')}"


def check_machine(sysfs: Mapping[str, str], memory_mb: int, where: str) -> None:
    """UsageError, beginning with `where`, if a machine of so many MiB cannot have an area that
    these values, by path, ask for."""
    for name, file in switches.AREA_FILES.items():
        what = switches.misfit([f"{name}={sysfs.get(file, '')}"], memory_mb, 1)
        if what is not None:
            said = what.removeprefix(f"{name}=")
            raise UsageError(
                f"{where}: sysfs: {file}: {said}", "more --memory, or less in that file"
            )


def without_node(writes: Sequence[str], nodes: Sequence[str]) -> str | None:
    """The first path of a virtual node's file that is none of these nodes'; None without any."""
    place = re.compile(rf"{_NODES}/([^/]+)/[^/]+")
    found = ((path, place.fullmatch(path)) for path in writes)
    return next((path for path, match in found if match and match[1] not in nodes), None)


def _of_any_node(path: str) -> str:
    """The same file of a virtual node as the document has it."""
    where = PurePosixPath(path)
    return str(where.parent.with_name(_NODE) / where.name)


def _strange(path: str) -> str | None:
    """Why a path that is not Cohort's may be meant as one: its directory is nearly called so."""
    directory = path.removeprefix(f"{TOP}/").partition("/")[0]
    if path.startswith(f"{TOP}/") and (meant := named.near(directory, [OWN])):
        return f"{path}: there is no {TOP}/{directory}; {meant}"
    return None
