"""The house of the guest's program: calls and includes lead down, and no two files need each other.

    base <- {measure, stress} <- apps <- system <- experiments <- phone
    base <- suite

Calls are read off what `nm` says of the objects. Between folders each arrow has to lead to a lower
floor, so there is no circle of folders; inside a folder, files are looked at one by one.
"""

import re
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from house import Object

FLOORS = {
    **{"base": 0, "measure": 1, "stress": 1, "suite": 1},
    **{"apps": 2, "system": 3, "experiments": 4, "phone": 5},
}
"""Folders of guest/ by how high they stand. `suite` is a program of its own, and low: it may know
base alone."""

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)

Arrow = tuple[str, str]
"""From a file to one that it needs, both by their paths in guest/."""


def files(root: Path) -> list[str]:
    """All C files and headers of the guest at `root`."""
    return sorted(str(file.relative_to(root)) for file in root.rglob("*.[ch]"))


def objects(names: Iterable[str], said: str) -> list[Object]:
    """What `nm --extern-only --print-file-name` said of objects, by the C files of `names`.

    Symbols are those that the linker sees: a static function may have the name of another's. A
    KeyError if it is the object of none of them.
    """
    sources = {Path(name).stem: name for name in names if name.endswith(".c")}
    found: dict[str, tuple[set[str], set[str]]] = {
        name: (set(), set()) for name in sources.values()
    }
    for line in said.splitlines():
        file, _, symbol = line.partition(":")
        kind, name = symbol.split()[-2:]
        found[sources[Path(file).stem]][kind.upper() == "U"].add(name)
    return [Object(name, frozenset(x), frozenset(y)) for name, (x, y) in found.items()]


def includes(texts: Mapping[str, str]) -> list[Arrow]:
    """Who includes whom, by the content of each file; a KeyError for a header that is not there.

    A header of another folder is named with its folder, one of the same may be named without.
    """
    found = []
    for name, text in texts.items():
        for header in _INCLUDE.findall(text):
            path = header if "/" in header else str(Path(name).with_name(header))
            texts[path]
            found.append((name, path))
    return found


def wrong_arrows(arrows: Iterable[Arrow]) -> list[str]:
    """Each arrow to another folder that does not lead down; a KeyError for one without a floor."""
    wrong = []
    for start, end in sorted(arrows):
        here, there = (Path(name).parts[0] for name in (start, end))
        if FLOORS[there] >= FLOORS[here] and here != there:
            wrong.append(f"{start} -> {end}")
    return wrong


def circle(arrows: Iterable[Arrow]) -> list[str]:
    """Files of which each needs the next, and the last is the first; nothing if there are none."""
    graph: dict[str, set[str]] = {}
    for start, end in sorted(arrows):
        graph.setdefault(start, set()).add(end)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []
