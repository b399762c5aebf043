"""What Cohort changes that a kernel with frozen structures keeps as it is, counted in the patches.

Modules are compiled against structures, enums, inline functions and exports. A generic kernel image
(GKI) freezes those, leaves reserve fields in some structures and declares vendor hooks in some
functions. Here is told which of them the patches touch, and what this tree has to carry them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cohort.kernel import overlay
from cohort.kernel.hunks import Landing
from cohort.kernel.outline import outline
from cohort.kernel.overlay import Series

RESERVE = re.compile(r"\bANDROID_(?:KABI_RESERVE|BACKPORT_RESERVE|(?:VENDOR|OEM)_DATA\w*)\([^)]*\)")
VENDOR = re.compile(r"\btrace_(android_r?vh_\w+)\(")
EXPORT = re.compile(r"^EXPORT_SYMBOL\w*\((\w+)\)", re.MULTILINE)
MEMBER = re.compile(r"(\w+)\s*(?:\[[^]]*\])?;")
ENUMERATOR = re.compile(r"([A-Z]\w+)\s*(?:=[^,]*)?,")
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)
INCLUDE = re.compile(r"#include <(\S+)>")
ITEM = re.compile(r"^[A-Z]\w+\((\w+),", re.MULTILINE)


@dataclass(frozen=True)
class Touched:
    """A structure, an enum or a function that hunks are in. `adds` are new members; `carriers` what
    this tree has in it for others: reserve fields or vendor hooks."""

    name: str
    file: str
    adds: tuple[str, ...]
    carriers: tuple[str, ...]


@dataclass
class Frozen:
    """All that the patches touch, by kind."""

    structures: list[Touched] = field(default_factory=list)
    enums: list[Touched] = field(default_factory=list)
    inlines: list[Touched] = field(default_factory=list)
    functions: list[Touched] = field(default_factory=list)
    exports: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The report, a count a line and below it what was counted."""
        for title, kind in (("structures", self.structures), ("enums", self.enums)):
            new = sum(len(one.adds) for one in kind)
            yield f"{title} changed: {len(kind)}, with {new} new members"
            for one in kind:
                spare = ", ".join(one.carriers) or "none"
                yield f"  {one.name} ({one.file}): {', '.join(one.adds)}; reserve here: {spare}"
        yield f"inline functions and macros of headers changed: {len(self.inlines)}"
        yield from (f"  {one.name} ({one.file})" for one in self.inlines)
        yield f"exports added: {len(self.exports)}"
        yield from (f"  {name}" for name in self.exports)
        carried = [one for one in self.functions if one.carriers]
        yield f"functions with hooks: {len(self.functions)}, with vendor hooks, too: {len(carried)}"
        yield from (f"  {one.name} ({one.file}): {', '.join(one.carriers)}" for one in carried)


def report(tree: Path, series: Series) -> Frozen:
    """What the series touches on this tree; PatchError if it does not fit."""
    _, landings = overlay.patched(tree, series)
    found = Frozen(exports=sorted(_exports(series)))
    grouped: dict[tuple[str, str], list[Landing]] = {}
    for landing in landings:
        if landing.hunk.file.endswith((".c", ".h")):
            grouped.setdefault((landing.hunk.file, landing.where), []).append(landing)
    bodies = {file: _bodies(tree, file) for file in dict.fromkeys(file for file, _ in grouped)}
    for (file, where), parts in grouped.items():
        name = where.removeprefix("in ")
        body = bodies[file].get(name, "")
        if name.startswith("struct ") and body:
            adds = _members(parts, MEMBER)
            found.structures.append(Touched(name, file, adds, _carriers(RESERVE, body)))
        elif name.startswith("enum ") and body:
            adds = (*_members(parts, ENUMERATOR), *_included(parts, series))
            found.enums.append(Touched(name, file, adds, _carriers(RESERVE, body)))
        elif file.endswith(".h"):
            names = [name] if body else dict.fromkeys(MACRO.findall(_added(parts)))
            found.inlines += [Touched(x, file, (), ()) for x in names]
        elif file.endswith(".c") and body:
            found.functions.append(Touched(name, file, (), _carriers(VENDOR, body)))
    return found


def _bodies(tree: Path, file: str) -> dict[str, str]:
    """The lines of each definition by its names, as the tree has the file without Cohort."""
    lines = overlay.original_lines(tree, file)
    found: dict[str, str] = {}
    for section in outline(file, lines).sections:
        text = "".join(lines[section.first : section.end + 1])
        for name in section.names:
            found[name] = found.get(name, "") + text
    return found


def _carriers(kind: re.Pattern[str], body: str) -> tuple[str, ...]:
    """Reserve fields or vendor hooks, each once."""
    return tuple(dict.fromkeys(match[match.lastindex or 0] for match in kind.finditer(body)))


def _added(parts: list[Landing]) -> str:
    return "".join(x[1:] for part in parts for x in part.hunk.lines if x[0] == "+")


def _members(parts: list[Landing], kind: re.Pattern[str]) -> tuple[str, ...]:
    """The members of a structure or an enum that hunks add, one a line."""
    lines = [line.split("/*")[0].strip() for line in _added(parts).splitlines()]
    found = [kind.search(line) for line in lines if not line.startswith("#")]
    return tuple(match[1] for match in found if match)


def _included(parts: list[Landing], series: Series) -> tuple[str, ...]:
    """The enumerators of a list that a hunk includes."""
    files = [series.overlay / "include" / name for name in INCLUDE.findall(_added(parts))]
    return tuple(
        name for file in files if file.is_file() for name in ITEM.findall(file.read_text())
    )


def _exports(series: Series) -> Iterator[str]:
    for file in series.files:
        if file.suffix == ".c":
            yield from EXPORT.findall((series.overlay / file).read_text(errors="replace"))
