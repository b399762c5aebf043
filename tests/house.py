"""The house of the kernel part, read off what `nm` says of its objects: arrows point down only.

    lib <- core <- {region, cpb, pcpa, vnode, rightsize} <- dmabuf <- hooks

As each arrow has to lead to a lower floor, there can be no circle between the folders.
"""

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SCHEMES = ("region", "cpb", "pcpa", "vnode", "rightsize")
FLOORS = {"lib": 0, "core": 1, **dict.fromkeys(SCHEMES, 2), "dmabuf": 3, "hooks": 4}
"""Folders of mm/cohort, and its top file, by how high they stand."""

HEADER_LINES = 250
"""What include/linux/cohort.h may have."""

FILE_LINES = 640
"""What a file of mm/cohort may have: one that is longer does two things, and is two files."""

PATCH_LINES = 300
"""What all patches of a series together may add to files of the kernel. Each line is carried
through every release to come, and what can stand in mm/cohort stands there."""

_NAMED_AFTER = re.compile(rf"cohort_(?:{'|'.join((*SCHEMES, 'dmabuf'))})_")
_NAMED_ENTRY = re.compile(r"\b(__cohort_\w+)\(")
_ENTRY = re.compile(r"\b(__cohort_\w+)\(|^[a-z].*?\b(cohort_\w+)\(", re.MULTILINE)

SHARED = {"cohort_block_after", "cohort_copies_evict", "cohort_zone_aim", "cohort_zone_drain"}
"""What the memory manager and the inside both call, as it is: an entry of its own for each would
do no more than call it."""


@dataclass(frozen=True)
class Object:
    """What one object file defines and what it wants from others."""

    folder: str
    defined: frozenset[str]
    wanted: frozenset[str]


def read(folder: str, said: str) -> Object:
    """An object of a folder from what `nm` said of it; a KeyError if no floor has that folder."""
    FLOORS[folder]
    defined: set[str] = set()
    wanted: set[str] = set()
    for line in said.splitlines():
        kind, name = line.split()[-2:]
        (wanted if kind.upper() == "U" else defined).add(name)
    return Object(folder, frozenset(defined), frozenset(wanted))


def objects(build: Path) -> list[Object]:
    """All objects of mm/cohort in a kernel built at `build`, but those of its tests.

    The archive tells which they are: a build directory keeps objects of files that are gone.
    """
    top = Path("mm", "cohort")
    listed = _said(build, "ar", "t", str(top / "built-in.a")).split()
    found = []
    for name in listed:
        where = Path(name).relative_to(top).parts
        if where[0] != "tests":
            found.append(read(where[0].removesuffix(".o"), _said(build, "nm", name)))
    return found


def added_lines(patch: str) -> int:
    """How many lines a patch adds to the files it touches."""
    return sum(x.startswith("+") and not x.startswith("+++ ") for x in patch.splitlines())


def _said(build: Path, *words: str) -> str:
    return subprocess.run(words, cwd=build, text=True, capture_output=True, check=True).stdout


def arrows(house: Iterable[Object]) -> dict[tuple[str, str], set[str]]:
    """From which folder to which other, and for which symbols."""
    house = list(house)
    home = {name: part.folder for part in house for name in part.defined}
    found: dict[tuple[str, str], set[str]] = {}
    for part in house:
        for name in part.wanted & home.keys():
            if home[name] != part.folder:
                found.setdefault((part.folder, home[name]), set()).add(name)
    return found


def wrong_arrows(house: Iterable[Object]) -> list[str]:
    """Each arrow that does not lead down, as `core -> region: symbol, symbol`."""
    return [
        f"{start} -> {end}: {', '.join(sorted(names))}"
        for (start, end), names in sorted(arrows(house).items())
        if FLOORS[end] >= FLOORS[start]
    ]


def scheme_names(house: Iterable[Object]) -> list[str]:
    """Symbols of core/, defined or wanted, that are named after a scheme."""
    parts = [part for part in house if part.folder == "core"]
    return sorted(
        {name for x in parts for name in x.defined | x.wanted if _NAMED_AFTER.match(name)}
    )


def entries(header: str, glue: str = "") -> set[str]:
    """The functions by which the memory manager alone enters: all that <linux/cohort.h> declares,
    and by their names those of `glue`, the headers that are compiled inside its files."""
    declared = {name for names in _ENTRY.findall(header) for name in names if name}
    return (declared | set(_NAMED_ENTRY.findall(glue))) - SHARED


def entries_from_inside(house: Iterable[Object], header: str, glue: str = "") -> list[str]:
    """Entries that something below hooks.c calls: inside functions have names of their own."""
    ways = entries(header, glue)
    return sorted({name for x in house if x.folder != "hooks" for name in x.wanted & ways})
