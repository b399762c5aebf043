"""Makes, out of a hunk alone, a file in which it has one place: what the @@ line names, and in it
(or behind it) what the hunk quotes. Nothing of a kernel is needed."""

import re
from dataclasses import dataclass

from cohort.kernel.hunks import Hunk
from cohort.kernel.outline import CUT, HEAD, name_of

TYPE = re.compile(r".*(\{|=)[^;]*$")


@dataclass(frozen=True)
class Made:
    """The lines of a definition in three parts: up to where the hunk begins, what it looks for, and
    what ends the definition. `name` is what the @@ line names, as far as diff left it."""

    name: str
    head: tuple[str, ...]
    quoted: tuple[str, ...]
    tail: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """The definition."""
        return [*self.head, *self.quoted, *self.tail]

    def renamed(self) -> "Made":
        """The same of another name: a function that another tree has beside it, or instead."""
        word = rf"\b{re.escape(self.name)}"
        head = tuple(re.sub(word, f"un{self.name}", line) for line in self.head)
        return Made(f"un{self.name}", head, self.quoted, self.tail)


def is_code(hunk: Hunk) -> bool:
    """Whether the file has functions."""
    return hunk.file.endswith((".c", ".h"))


def in_macro(hunk: Hunk) -> bool:
    """Whether the hunk begins inside of a macro of several lines."""
    return hunk.old[0].endswith("\\\n")


def make(hunk: Hunk) -> Made:
    """The definition that the hunk is in, or behind."""
    quoted = tuple(hunk.old)
    name = _name(hunk)
    if not is_code(hunk):
        return Made(name, (f"{hunk.heading}\n", "\n") if hunk.heading else (), quoted, ())
    head, end = _definition(hunk.heading) if hunk.heading else ((), ())
    if in_macro(hunk):
        return Made(name, (*head, *end, "#define MADE \\\n"), quoted, ("\tmade\n",))
    if not hunk.heading:
        return Made(name, (), quoted, ())
    if not _is_inside(hunk):
        return Made(name, (*head, *end), quoted, (*_comment_end(quoted), *_end_of(quoted, ())))
    if any(HEAD.match(line) for line in quoted):
        return Made(name, head, quoted, _end_of(quoted, end))
    opened, closed = _balance(quoted)
    return Made(name, (*head, *opened), quoted, (*closed, *_end_of(quoted, end)))


def _name(hunk: Hunk) -> str:
    """The word that tells what is named from other things; empty if nothing is named."""
    name = name_of(hunk.heading) if is_code(hunk) else ""
    whole = name or hunk.heading
    words = re.findall(r"\w+", whole)
    return words[-1] if words and (name or len(whole) >= CUT or not is_code(hunk)) else ""


def _definition(heading: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Whole lines that begin what a heading names, and those that end it."""
    if heading.endswith(";"):
        return (f"{heading}\n",), ()
    if TYPE.match(heading):
        return (f"{heading}\n",), ("};\n",)
    if "(" not in heading:
        return (f"{heading}_made(int made)\n", "{\n"), ("}\n",)
    if heading.count("(") > heading.count(")"):
        return (f"{heading.rstrip(',')},\n", "\tint made)\n", "{\n"), ("}\n",)
    return (f"{heading}\n", "{\n"), ("}\n",)


def _balance(quoted: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines around those quoted, with which every brace and comment has its other end."""
    depth, lowest = 0, 0
    for sign in re.findall(r"[{}]", "".join(quoted)):
        depth += 1 if sign == "{" else -1
        lowest = min(lowest, depth)
    closed = (*_comment_end(quoted), *("\t}\n",) * (depth - lowest))
    return ("\tif (made) {\n",) * -lowest, closed


def _comment_end(quoted: tuple[str, ...]) -> tuple[str, ...]:
    """The end of a comment that begins in these lines."""
    text = "".join(quoted)
    return (" */\n",) if text.rfind("/*") > text.rfind("*/") else ()


def _is_inside(hunk: Hunk) -> bool:
    """Whether the hunk begins inside of what is named."""
    first = next((line for line in hunk.old if line.strip()), "\t")
    if hunk.indented is not None and not any(HEAD.match(line) for line in hunk.old):
        return hunk.indented
    return first[0] in "\t }"


def _end_of(quoted: tuple[str, ...], end: tuple[str, ...]) -> tuple[str, ...]:
    """What ends the definition, or the one that the hunk's lines begin behind it."""
    closed = any(line.startswith("}") for line in quoted)
    begun = [
        n for n, line in enumerate(quoted) if HEAD.match(line) and not line.rstrip().endswith(";")
    ]
    if not begun:
        return () if closed else end
    rest = "".join(quoted[begun[-1] :])
    if "\n}" in rest:
        return ()
    missing = "" if rest.count("(") <= rest.count(")") else "\tint made)\n"
    opened = "" if "{" in rest else "{\n"
    return tuple(line for line in (missing, opened, "}\n") if line)
