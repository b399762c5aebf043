"""Figures on a page of results: marked as the page is made, so that a wrong one can be named.

A marked text is the page with each figure between characters that no page has. `plain` takes them
out; `differences` says which figures another text has otherwise.
"""

import difflib
import re
from dataclasses import dataclass, field
from typing import NamedTuple

_OPEN, _MIDDLE, _CLOSE = "\ue000\ue001\ue002"
_MARKED = re.compile(f"{_OPEN}([0-9]+){_MIDDLE}([^{_CLOSE}]*){_CLOSE}")


class Figure(NamedTuple):
    """What a page says at one place: the set of records, and which figure of it."""

    table: str
    what: str


@dataclass
class Figures:
    """The figures of one page, in the order in which they were marked."""

    all: list[Figure] = field(default_factory=list)

    def mark(self, table: str, what: str, text: str) -> str:
        """`text` as a marked figure."""
        self.all.append(Figure(table, what))
        return f"{_OPEN}{len(self.all) - 1}{_MIDDLE}{text}{_CLOSE}"


def plain(marked: str) -> str:
    """The text without marks, as it stands on the page."""
    return _MARKED.sub(r"\2", marked)


def differences(marked: str, figures: Figures, found: str, above: int = 0) -> list[str]:
    """Where the text `found` is not the marked one: a sentence a figure, or a line of prose.

    `above` it are so many lines of the same file.
    """
    wanted, lines = marked.splitlines(), found.splitlines()
    matcher = difflib.SequenceMatcher(None, plain(marked).splitlines(), lines, autojunk=False)
    said = []
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "replace" and b - a == d - c:
            for index in range(b - a):
                said += _in_line(
                    wanted[a + index], figures, lines[c + index], above + c + index + 1
                )
        elif kind != "equal":
            said.append(f"line {above + c + 1}: {b - a} lines of the template have become {d - c}")
    return said


def _in_line(marked: str, figures: Figures, found: str, number: int) -> list[str]:
    """The same for one line."""
    if plain(marked) == found:
        return []
    marks = list(_MARKED.finditer(marked))
    match = _pattern(marked, marks).fullmatch(found)
    if match is None:
        return [f"line {number}: not what the template says: {found[:60]!r}"]
    return [
        f"line {number}: table {figure.table}: {figure.what}: "
        f"the page says {there or 'nothing'}, the records {mark[2]}"
        for mark, there in zip(marks, match.groups(), strict=True)
        if there != mark[2] and (figure := figures.all[int(mark[1])])
    ]


def _pattern(marked: str, marks: list[re.Match[str]]) -> re.Pattern[str]:
    """The line with any text for its figures."""
    parts, at = [], 0
    for mark in marks:
        parts += [re.escape(marked[at : mark.start()]), "(.*?)"]
        at = mark.end()
    return re.compile("".join([*parts, re.escape(marked[at:])]))
