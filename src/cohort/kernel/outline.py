"""Which definition of a kernel source file a line belongs to.

diff writes behind the second @@ of a hunk the last line above it that begins in the first column
with a letter. In C that line is the head of a function, a struct, an enum, an initialiser or a
statement of file scope such as EXPORT_SYMBOL(). The outline finds the same heads in the tree that
is to be patched, and where what they define ends. Everything that is not C (Kconfig, Makefile,
documentation) is simpler: each line that begins with a letter is a head, and names itself.

This is no parser. It leans on what all of the kernel keeps to: definitions begin in the first
column, and the brace that ends one stands there. Comments, strings, macros and the other branches
of #if do not confuse it. Lines are counted from 0.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# GNU diff cuts a head off after 40 bytes, git after 80; blanks at its end go, too.
CUT = 32

HEAD = re.compile(r"[A-Za-z_$]")
LITERAL = re.compile(
    r"""/\*.*?\*/ | (?P<opened>/\*.*$) | //.*$ | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'""",
    re.VERBOSE,
)
LABEL = re.compile(r"\w+:\s*(?:$|/[/*])")
DIRECTIVE = re.compile(r"\s*#\s*(\w*)")

# Words with brackets of their own that stand in front of what is defined.
ATTRIBUTE = re.compile(
    r"\b(?:__attribute__|__printf|__scanf|__aligned|__section|__alloc_size|__acquires|__releases"
    r"|__must_hold|__no_sanitize|__nonnull|__cond_acquires|__counted_by)\s*"
    r"(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?"
)
# Words that stand between a variable's name and its value.
STORAGE = re.compile(
    r"\b__(?:\w*init(?:data|const)|exit(?:data|const)|refdata|refconst|read_mostly|ro_after_init"
    r"|maybe_unused|used|percpu|rcu|iomem|user|weak|visible|packed|latent_entropy"
    r"|cacheline\w*aligned\w*|randomize_layout)\b"
)
TYPE = re.compile(r"(?:typedef\s+)?(struct|union|enum)\s+(\w+)\s*\{")
POINTER = re.compile(r"\(\s*\**\s*(?:const\s+)?(\w+)\s*(?:\[[^]]*\])?\s*\)\s*\(")
EXPORT = re.compile(r"EXPORT_\w+\(\s*(\w+)\s*[,)]")
STATEMENT = re.compile(r"(?:static\s+)?\w+\(.*\);")
MACRO = re.compile(r"(?:static\s+)?([A-Z][A-Z_]*?)[0-9]*\(\s*([^,()]*)([,)]?)")
FUNCTION = re.compile(r"(\w+)\s*\(")
VARIABLE = re.compile(r"\b(?!(?:struct|union|enum)\b)(\w+)\s*(?:\[[^]]*\]?\s*)*$")


@dataclass(frozen=True)
class Section:
    """One definition. `heads` are its lines of the first column, the last one at `last_head`;
    `first` and `end` are its first and last line. It has several names where #if chooses between
    heads, and an EXPORT_SYMBOL() has those of what stands right in front of it. `declares` marks
    what is only announced, such as a prototype."""

    names: tuple[str, ...]
    heads: tuple[str, ...]
    first: int
    last_head: int
    end: int
    declares: bool = False

    def __str__(self) -> str:
        return self.names[0] if self.names else self.heads[-1]

    def holds(self, line: int) -> bool:
        """Whether what is put in front of this line is inside the definition."""
        return self.first < line <= self.end


@dataclass(frozen=True)
class Outline:
    """A file's definitions in order, and its macros of several lines as (first, last). Without
    `code` it is a text, whose lines are named by themselves."""

    code: bool
    sections: tuple[Section, ...]
    macros: tuple[tuple[int, int], ...] = ()

    def above(self, line: int) -> Section | None:
        """The last definition that begins above the line; None in front of the first one."""
        index = bisect_left(self.sections, line, key=lambda section: section.first)
        return self.sections[index - 1] if index else None

    def begun_in(self, first: int, end: int) -> list[Section]:
        """The definitions whose naming line is one of `first` to `end` - 1."""
        return [section for section in self.sections if first <= section.last_head < end]

    def inside(self, line: int) -> bool:
        """Whether what is put in front of this line is inside a definition or a macro."""
        section = self.above(line)
        return (section is not None and section.holds(line)) or any(
            first < line <= last for first, last in self.macros
        )

    def named(self, heading: str) -> list[Section]:
        """The definitions that a @@ line means: those of that name; if there is none and diff may
        have cut the line off, or it names nothing, those with a head that begins like it."""
        text = _plain(heading)
        name = name_of(heading) if self.code else text
        found = [s for s in self.sections if (name and name in s.names) or text in s.heads]
        if not found and (not name or len(heading) >= CUT):
            found = [s for s in self.sections if any(h.startswith(text) for h in s.heads)]
        if not text.endswith(";") or EXPORT.match(text):
            return [s for s in found if not s.declares] or found
        return found


def outline(name: str, lines: Sequence[str]) -> Outline:
    """The definitions of a file, by the language its name tells."""
    if name.endswith((".c", ".h")):
        scanner = _Scanner()
        for number, line in enumerate(lines):
            scanner.feed(number, line)
        return scanner.done()
    return Outline(False, tuple(_text_sections(lines)))


def _text_sections(lines: Sequence[str]) -> Iterator[Section]:
    """Each line that begins with a letter, with what follows it up to the next one."""
    head, end = -1, -1
    for number, line in enumerate([*lines, "end"]):
        if HEAD.match(line):
            if head >= 0:
                text = _plain(lines[head])
                yield Section((text,), (text,), head, head, end)
            head = number
        if line.strip():
            end = number


def name_of(head: str) -> str:
    """What a head defines, `struct page` or `free_unref_page`; empty if it does not say.

    It may be cut off anywhere, as diff does after 40 or 80 bytes: then there is a name only if the
    character behind it is still there.
    """
    text = _plain(ATTRIBUTE.sub(" ", head))
    if match := TYPE.match(text):
        return f"{match[1]} {match[2]}"
    if match := EXPORT.match(text):
        return match[1]
    if STATEMENT.fullmatch(text):
        return text
    if match := MACRO.match(text):
        return f"{match[1]}({match[2]})" if match[3] else ""
    return _declared(text)


def _declared(text: str) -> str:
    """The function or variable that a declaration is of, or an empty string."""
    before = re.split(r"[={;]", text)[0]
    if match := POINTER.match(before, max(before.find("("), 0)) or FUNCTION.search(before):
        return match[1]
    complete = len(before) < len(text) or "[" in before
    match = VARIABLE.search(STORAGE.sub(" ", before).rstrip())
    return match[1] if match and complete else ""


def _plain(text: str) -> str:
    return " ".join(text.split())


@dataclass
class _Open:
    """A definition whose end has not come. `gap` is an empty line behind a head that looks whole:
    only a brace may follow. `closing` tells that the last line of code began with a brace."""

    first: int
    last_head: int
    last_code: int
    heads: list[str] = field(default_factory=list)
    brackets: int = 0
    body: bool = False
    closing: bool = False
    gap: int | None = None


class _Scanner:
    """Reads a C file line by line."""

    def __init__(self) -> None:
        self._sections: list[Section] = []
        self._macros: list[tuple[int, int]] = []
        self._open: _Open | None = None
        self._comment = False
        self._directive: int | None = None
        self._depth = 0
        self._levels: list[tuple[int, int]] = []

    def feed(self, number: int, line: str) -> None:
        """The next line."""
        if self._directive is not None or (not self._comment and DIRECTIVE.match(line)):
            self._preprocess(number, line)
            return
        first_column = not self._comment and bool(HEAD.match(line))
        code = self._code(line)
        if self._open is not None and code:
            self._end_before(self._open, code, first_column)
        if self._depth == 0 and first_column:
            self._begin(number, line)
        if self._open is not None:
            self._continue(self._open, number, code)

    def done(self) -> Outline:
        """What was found. A macro call without a semicolon may be the last thing of a file."""
        if self._open is not None:
            self._close(self._open, self._open.last_code)
        return Outline(True, tuple(self._sections), tuple(self._macros))

    def _code(self, line: str) -> str:
        """The line without comments and what is in quotes."""
        if self._comment:
            _, end, line = line.partition("*/")
            if not end:
                return ""
        self._comment = any(literal["opened"] for literal in LITERAL.finditer(line))
        return LITERAL.sub(lambda m: '""' if m[0][0] in "\"'" else " ", line).rstrip()

    def _preprocess(self, number: int, line: str) -> None:
        """A directive, over all of its lines. Each branch of #if starts as deep."""
        if self._directive is None:
            self._directive = number
            self._branch(DIRECTIVE.match(line))
            # A comment may begin behind the directive and go on below it.
            self._code(line)
        if self._comment or not line.rstrip().endswith("\\"):
            if number > self._directive:
                self._macros.append((self._directive, number))
            self._directive = None

    def _branch(self, directive: re.Match[str] | None) -> None:
        word = directive[1] if directive else ""
        if word in ("if", "ifdef", "ifndef"):
            self._levels.append((self._depth, self._open.brackets if self._open else 0))
        elif word in ("else", "elif") and self._levels:
            self._depth, brackets = self._levels[-1]
            if self._open is not None:
                self._open.brackets = brackets
        elif word == "endif" and self._levels:
            self._levels.pop()

    def _end_before(self, current: _Open, code: str, first_column: bool) -> None:
        """See whether this line of code tells that the definition ended above it.

        A head right below a brace of the first column does, even if by the count of braces there
        are some to come: a macro may have them, and what follows must not count as part of this.
        """
        if current.gap is not None and code.startswith("{"):
            current.gap = None
        elif current.gap is not None:
            self._close(current, current.gap)
        elif self._depth > 0 and current.closing and first_column and not LABEL.match(code):
            self._close(current, current.last_code)

    def _begin(self, number: int, line: str) -> None:
        """A line of the first column at file scope: a head, or the next line of one."""
        if self._open is None:
            self._open = _Open(number, number, number)
        self._open.last_head = number
        self._open.heads.append(_plain(line))

    def _continue(self, current: _Open, number: int, code: str) -> None:
        """Count braces and brackets, and see whether the definition ends here."""
        if code:
            current.last_code, current.closing = number, code.startswith("}")
        for sign in re.findall(r"[(){}]", code):
            if sign == "{":
                self._depth += 1
                current.body = current.body or current.brackets == 0
            elif sign == "}":
                self._depth = max(self._depth - 1, 0)
            elif self._depth == 0:
                current.brackets += 1 if sign == "(" else -1
        if self._depth > 0 or current.brackets > 0:
            return
        if current.body or code.endswith(";"):
            self._close(current, number)
        elif not code and current.gap is None and any("(" in head for head in current.heads):
            current.gap = number

    def _close(self, current: _Open, end: int) -> None:
        names = [name_of(head) for head in current.heads]
        adds = bool(self._sections) and self._adds_to(self._sections[-1], current)
        if adds:
            names = [current.heads[0], *names, *self._sections[-1].names]
        self._sections.append(
            Section(
                tuple(dict.fromkeys(name for name in names if name)),
                *(tuple(current.heads), current.first, current.last_head, end),
                declares=not current.body and not adds,
            )
        )
        self._open, self._depth = None, 0

    @staticmethod
    def _adds_to(before: Section, current: _Open) -> bool:
        """Whether this is EXPORT_SYMBOL() or the like, about the definition right in front."""
        match = re.match(r"[A-Z_]+\(\s*(\w+)", current.heads[0])
        return match is not None and match[1] in before.names
