"""Finds where in a file the hunks of a patch belong, and says so or refuses.

The patches quote few lines, so the same lines are often in several functions, and in another tree
they may be left in a wrong one only. What a hunk looks for is therefore its lines, all of them to
the byte, in a place that one of these fixes:

1. *Its name.* The definition that the @@ line names is the last one to begin above the hunk's
   first line, as in the tree the patch was made on; only the name counts, not the rest of the head.
   If the @@ line names nothing, no definition begins above. What the hunk puts in must also be as
   deep as it looks: indented code inside a definition, code of the first column outside of all.
2. *What it quotes.* If no place is right by name, then one where the hunk's own lines have a head:
   above the first change, so that the change is in what begins there; or below it, if the change is
   outside of any definition, so that it is in front of what begins there. diff then names the
   definition before, which another tree may have moved or put something behind.

The place must be the only one, wherever in the file it is; how far from the expected line does not
matter. Hunks of one patch that are the same may have as many places as there are hunks, and take
them in order. Hunks of one patch that name one definition keep their order: where one of them would
jump over another, its lines are not those it was made on. A hunk without lines in front of its
change (or behind it) is at the start (or the end) of the file. Everything else is refused, as is a
name that diff cut off so that it fits several definitions. In what is not C a line that begins with
a letter is a head and its text is the name.

Every hunk is looked for in the file as the patch finds it, so they may be in any order. What came
of it is looked at, too: `misplaced` asks the outline of the patched file whether each change is in
the definition it was meant for.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cohort.errors import PatchError
from cohort.kernel.outline import LABEL, Outline, Section, outline

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@ ?(.*)")
TARGET = re.compile(r"\+\+\+ (?:b/)?(\S+)")
CODE = re.compile(r"([A-Za-z_])|[ \t]+[^\s*#]")
TOP = "above the first definition"
SHOWN = 4  # places that a refusal lists


@dataclass(frozen=True)
class Hunk:
    """One hunk. `start` is the line it expects to begin at, counted from 1; `lines` keep their
    sign and their end."""

    patch: str
    file: str
    start: int
    heading: str
    lines: tuple[str, ...]

    @property
    def old(self) -> list[str]:
        """What it looks for."""
        return [line[1:] for line in self.lines if line[0] != "+"]

    @property
    def new(self) -> list[str]:
        """What it leaves there."""
        return [line[1:] for line in self.lines if line[0] != "-"]

    @property
    def leading(self) -> int:
        """How many of the lines are in front of the first change."""
        return next(i for i, line in enumerate(self.lines) if line[0] != " ")

    @property
    def trailing(self) -> int:
        """How many of the lines are behind the last change."""
        return next(i for i, line in enumerate(reversed(self.lines)) if line[0] != " ")

    @property
    def indented(self) -> bool | None:
        """Whether the code it puts in first is indented; None if that is no code."""
        directive = False
        for line in self.lines[self.leading :]:
            directive = directive and line.rstrip().endswith("\\")
            if line[0] == " " or line[1:2] in ("{", "}"):
                return None
            if line[0] == "-" or directive:
                continue
            directive = line[1:].lstrip().startswith("#") and line.rstrip().endswith("\\")
            if (code := CODE.match(line, 1)) and not LABEL.match(line, 1):
                return code[1] is None
        return None


@dataclass(frozen=True)
class Landing:
    """Where a hunk belongs: its first line, counted from 1, in the file as the patch finds it, and
    what is there by the tree's own words."""

    hunk: Hunk
    line: int
    where: str

    @property
    def offset(self) -> int:
        """How many lines further down it is than expected; negative for further up."""
        return self.line - self.hunk.start

    def __str__(self) -> str:
        moved = f": {self.offset:+d} lines" if self.offset else ""
        return f"{self.hunk.file}:{self.line}: {self.where}: {self.hunk.patch}{moved}"


@dataclass(frozen=True)
class Refusal:
    """A hunk without a place, and why."""

    hunk: Hunk
    why: str

    def __str__(self) -> str:
        hunk = self.hunk
        wanted = f"in {hunk.heading}" if hunk.heading else TOP
        lines = "".join(f"\n      | {line.rstrip()}" for line in hunk.old)
        return f"{hunk.file}:{hunk.start}: {wanted}: {hunk.patch}: {self.why}{lines}"


def read_patch(path: Path) -> list[Hunk]:
    """The hunks of a patch in order; PatchError if it is damaged or a hunk has no context."""
    lines = split(path.read_bytes().decode(errors="surrogateescape"))
    hunks, file, number = [], "", 0
    while number < len(lines):
        if (target := TARGET.match(lines[number])) and lines[number - 1].startswith("--- "):
            file = target[1]
        number += 1
        if file and (match := HUNK.match(lines[number - 1])):
            body = _body(lines[number:], int(match[2] or 1), int(match[3] or 1))
            if not body or all(line[0] == " " for line in body):
                raise PatchError(f"{path.name}:{number}: the hunk is damaged")
            if not any(line[0] != "+" for line in body):
                raise PatchError(f"{path.name}:{number}: the hunk quotes no line of {file}")
            hunks.append(Hunk(path.name, file, int(match[1]), match[4].strip(), body))
            number += len(body)
    return hunks


def _body(lines: Sequence[str], old: int, new: int) -> tuple[str, ...]:
    """The lines of a hunk that has so many old and new ones; none if they are not there."""
    body: list[str] = []
    for line in lines:
        if line.startswith("\\") and body:
            body[-1] = body[-1].rstrip("\n")
            continue
        if old <= 0 and new <= 0:
            break
        line = " " + line if line == "\n" else line
        if line[0] not in " +-":
            return ()
        old -= line[0] != "+"
        new -= line[0] != "-"
        body.append(line)
    return tuple(body) if (old, new) == (0, 0) else ()


def split(text: str) -> list[str]:
    """Lines with their ends. Only a line feed ends one, or joining them would not be exact."""
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)


def patch_lines(
    lines: list[str], hunks: Sequence[Hunk]
) -> tuple[list[str], list[Landing], list[Refusal]]:
    """Put the hunks of one patch for one file in; those that are refused are left out."""
    text = _Text(lines, outline(hunks[0].file, lines))
    found = []
    doing = [(hunk.heading, hunk.lines) for hunk in hunks]
    for number, hunk in enumerate(hunks):
        same = doing[number]
        found.append(text.place(hunk, doing[:number].count(same), doing.count(same)))
    landings = [place for place in found if isinstance(place, Landing)]
    refusals = [place for place in found if isinstance(place, Refusal)]
    for landing in _jumping(landings):
        landings.remove(landing)
        refusals.append(
            Refusal(landing.hunk, f"out of order {landing.where} (line {landing.line})")
        )
    result, free = list(lines), len(lines)
    for landing in sorted(landings, key=lambda x: x.line, reverse=True):
        first, hunk = landing.line - 1, landing.hunk
        end = first + len(hunk.old)
        if end > free:
            landings.remove(landing)
            refusals.append(Refusal(hunk, "another hunk of the patch is about these lines, too"))
            continue
        result[first:end] = hunk.new
        free = first
    return result, landings, refusals


def _jumping(landings: Sequence[Landing]) -> list[Landing]:
    """Hunks that name one definition and are not in the order of the patch."""
    wrong: dict[int, Landing] = {}
    ordered = sorted(landings, key=lambda landing: landing.hunk.start)
    for number, one in enumerate(ordered):
        for other in ordered[number + 1 :]:
            same = one.hunk.heading == other.hunk.heading and one.where == other.where
            if same and other.line < one.line:
                wrong |= {id(one): one, id(other): other}
    return list(wrong.values())


def misplaced(
    before: Sequence[str], after: Sequence[str], landings: Sequence[Landing]
) -> list[Refusal]:
    """Hunks that are in no definition of the right name in the patched file, or that swallow one.

    That is so if a hunk's own lines open or close a brace too many on this tree.
    """
    if not landings or not (old := outline(landings[0].hunk.file, before)).code:
        return []
    new = outline(landings[0].hunk.file, after)
    gone = {name for section in old.sections for name in section.names}
    gone -= {name for section in new.sections for name in section.names}
    taken = "".join(line for x in landings for line in x.hunk.lines if line[0] == "-")
    gone = {name for name in gone if name.split()[-1] not in taken}
    wrong, moved = [], 0
    for landing in sorted(landings, key=lambda landing: landing.line):
        change = landing.line - 1 + landing.hunk.leading
        meant, is_in = old.above(change), new.above(change + moved)
        moved += len(landing.hunk.new) - len(landing.hunk.old)
        if meant is None or not meant.holds(change):
            continue
        if is_in is None or not set(meant.names) & set(is_in.names):
            wrong.append(Refusal(landing.hunk, f"applied, it is no longer in {meant}"))
    if gone and not wrong:
        hunk = landings[0].hunk
        wrong.append(Refusal(hunk, f"applied, the file no longer has {_listed(sorted(gone))}"))
    return wrong


@dataclass(frozen=True)
class _Text:
    """A file to be patched. Lines are counted from 0."""

    lines: list[str]
    outline: Outline

    def place(self, hunk: Hunk, which: int, twins: int) -> Landing | Refusal:
        """Where the hunk belongs. It is number `which`, from 0, of `twins` that are the same."""
        everywhere = list(self._matches(hunk.old))
        matches = [line for line in everywhere if self._has_all_context(hunk, line)]
        meant = self.outline.named(hunk.heading) if hunk.heading else [None]
        right = [] if _several(meant) else [x for x in matches if self._by_name(hunk, x, meant)]
        right = right or [line for line in matches if self._by_quote(hunk, line)]
        if len(right) == twins:
            line = right[which]
            return Landing(hunk, line + 1, self._where(hunk, line))
        return Refusal(hunk, self._why(hunk, everywhere, right, meant, twins))

    def _matches(self, old: list[str]) -> Iterator[int]:
        """Every line at which these lines are."""
        for line in range(len(self.lines) - len(old) + 1):
            if self.lines[line] == old[0] and self.lines[line : line + len(old)] == old:
                yield line

    def _has_all_context(self, hunk: Hunk, line: int) -> bool:
        """A hunk that quotes nothing on one side was made where the file has nothing there."""
        at_end = line + len(hunk.old) == len(self.lines)
        return (hunk.leading > 0 or line == 0) and (hunk.trailing > 0 or at_end)

    def _by_name(self, hunk: Hunk, line: int, meant: Sequence[Section | None]) -> bool:
        """The first rule of the module: what the @@ line names is there, and the depth is right."""
        return self.outline.above(line) in meant and self._depth_fits(hunk, line)

    def _depth_fits(self, hunk: Hunk, line: int) -> bool:
        change = line + hunk.leading
        section = self.outline.above(change)
        if not self.outline.code or hunk.indented is None:
            return True
        if hunk.indented:
            return self.outline.inside(change)
        in_head = section is not None and change <= section.last_head
        return in_head or not self.outline.inside(change)

    def _by_quote(self, hunk: Hunk, line: int) -> bool:
        """The second rule of the module: the hunk's own lines say what it is in or in front of."""
        change = line + hunk.leading
        below = self.outline.begun_in(change, line + len(hunk.old))
        in_front = bool(below) and not self.outline.inside(change)
        return in_front or bool(self.outline.begun_in(line, change))

    def _where(self, hunk: Hunk, line: int) -> str:
        """What is at the hunk's first change."""
        change = line + hunk.leading
        section = self.outline.above(change)
        if section is not None and section.holds(change):
            return f"in {section}" if self.outline.code else f'below "{section}"'
        if below := self.outline.begun_in(change, line + len(hunk.old)):
            return f"in front of {below[0]}"
        return f"behind {section}" if section is not None else TOP

    def _why(
        self,
        hunk: Hunk,
        everywhere: list[int],
        right: list[int],
        meant: Sequence[Section | None],
        twins: int,
    ) -> str:
        """What is wrong with a hunk that has no place, or too many."""
        if right:
            places = _listed([line + 1 for line in right])
            return f"ambiguous, {len(right)} places for {twins} hunk(s): lines {places}"
        lost = ""
        if not meant:
            lost = "the file has no such definition; "
        elif _several(meant):
            lost = f"the name is cut off, it may be {_listed(meant)}; "
        if not everywhere:
            return f"{lost}its lines are not in the file"
        if not any(self._has_all_context(hunk, line) for line in everywhere):
            side = "end" if hunk.leading else "start"
            return f"{lost}its lines are not at the {side} of the file"
        found = [f"{self._where(hunk, line)} (line {line + 1})" for line in everywhere]
        return f"{lost}its lines are only {_listed(found)}"


def _several(meant: Sequence[Section | None]) -> bool:
    """Whether these are different definitions, and not one in several branches of #if."""
    names = [set(section.names) for section in meant if section is not None]
    return len(names) > 1 and not set.intersection(*names)


def _listed(things: Sequence[object]) -> str:
    words = [str(thing) for thing in things]
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more
