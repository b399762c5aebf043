"""Cohort's files in sysfs, checked before anything is built for a policy that writes them.

A name that is mistyped, or a value that the kernel refuses, ends a guest after its boot. The names
are those of the kernel part's ABI document; a file that has a boot parameter has its bounds.
"""

import re
from functools import cache
from pathlib import PurePosixPath

from cohort import named, paths, switches

TOP = "/sys/kernel/mm"
COHORT = f"{TOP}/cohort"
ABI = paths.OVERLAY / "Documentation/ABI/testing/sysfs-kernel-mm-cohort"
_NODE = "<name>"
"""In the document, for the name of a virtual node."""
_PARAMETERS = {
    **{file: name for name, file in switches.AREA_FILES.items()},
    f"{COHORT}/pcpa/below": switches.BELOW,
    **{
        f"{COHORT}/{name.removeprefix('cohort.').replace('_', '/', 1)}": name
        for name in (*switches.NUMBERS, *switches.CHOICES)
        if name not in switches.AT_BOOT
    },
}


@cache
def files() -> tuple[str, ...]:
    """The paths of all files that Cohort has below /sys, `<name>` for that of a virtual node."""
    found = re.findall(rf"^What:\s+({COHORT}/\S+)$", ABI.read_text(encoding="utf-8"), re.MULTILINE)
    return tuple(found)


def problem(path: str, value: str) -> str | None:
    """Why the kernel would have no such file, or would refuse the value; None if it may take it.

    Of files that are none of Cohort's nothing is known.
    """
    if not path.startswith(f"{COHORT}/"):
        return _strange(path)
    if path not in files() and _of_any_node(path) not in files():
        meant = named.of_many(path, files(), f"grep What {ABI}")
        return f"{path}: Cohort has no such file; {meant}"
    parameter = _PARAMETERS.get(path)
    if parameter is None or (parameter in switches.AREA_FILES and value == "0"):
        return None
    what = switches.problem(f"{parameter}={value}")
    return None if what is None else f"{path}: {what.removeprefix(f'{parameter}=')}"


def _of_any_node(path: str) -> str:
    """The same file of a virtual node as the document has it."""
    where = PurePosixPath(path)
    return str(where.parent.with_name(_NODE) / where.name)


def _strange(path: str) -> str | None:
    """Why a path that is not Cohort's may be meant as one: its directory is nearly called so."""
    directory = path.removeprefix(f"{TOP}/").partition("/")[0]
    if path.startswith(f"{TOP}/") and (meant := named.near(directory, ["cohort"])):
        return f"{path}: there is no {TOP}/{directory}; {meant}"
    return None
