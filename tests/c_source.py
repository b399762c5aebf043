"""Which functions a C file defines and what its comments say, read without a compiler."""

import re
from collections.abc import Iterable, Iterator

OURS = re.compile(r"(__)?cohort_")
"""How the name of every function of Cohort's begins: profiles and traces sort by it."""

_NOISE = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.DOTALL | re.VERBOSE
)
_COMMENT_BORDER = re.compile(r"^[ \t]*(?:/\*+|\*+/|//+|\*(?!/))|\*+/$|[ \t]+$", re.MULTILINE)
_ADDED = re.compile(r"\+(?!\+\+ )(.*)")
_PRONOUN = re.compile(
    r"\b(?:who|whom|whoever|whomever|(?:no|some|any|every)body|(?:some|any|every)one|no\s+one)\b",
    re.IGNORECASE,
)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w*)[ \t]*(.*)$", re.MULTILINE)
_MACRO_HEAD = re.compile(r"\w+(\([^)]*\))?")
_WORD = re.compile(r"[\w#]+")
_KB_OF_A_PAGE = re.compile(r"(?:kb\w*(?:\[[^]]*\])?(?:\([^()]*\))? / |->\w+ \* )4\b", re.IGNORECASE)
_NO_FUNCTION = {"if", "for", "while", "switch", "do", "else"}


def foreign_functions(text: str) -> list[str]:
    """The functions defined in C source whose name is not one of Cohort's, in order.

    Functions that a macro defines count by what its body calls them, such as `_name##_show`.
    """
    return [name for name in functions(text) if not OURS.match(name)]


def pages_of_4_kb(text: str) -> list[str]:
    """The lines that make pages of KiB, or KiB of a count of pages, by four: PAGE_KB does it."""
    return [line.strip() for line in text.splitlines() if _KB_OF_A_PAGE.search(line)]


def nameless_comments(text: str) -> list[str]:
    """The comments of C source in which a pronoun such as `nobody` stands for a noun, in order.

    Comments are returned without their borders, one line each. Strings are not looked at.
    """
    comments = [found[0] for found in _NOISE.finditer(text) if found[0].startswith("/")]
    return nameless([" ".join(_COMMENT_BORDER.sub("", text).split()) for text in comments])


def nameless_in_patch(text: str) -> list[str]:
    """Where a patch says such a pronoun: its subject and description as one, then added comments.

    An added comment is looked at within its run of added lines, whether or not it begins and ends
    there; added lines of other files than C are looked at as prose.
    """
    description, _, hunks = text.partition("\n---\n")
    return [
        *nameless([" ".join(description.split())]),
        *(said for lines, prose in _added(hunks) for said in _said(lines, prose)),
    ]


def nameless(texts: Iterable[str]) -> list[str]:
    """Those of the texts that contain such a pronoun, in order."""
    return [text for text in texts if _PRONOUN.search(text)]


def _said(lines: str, prose: bool) -> list[str]:
    """The nameless comments in added lines, or the lines themselves if they are prose."""
    if prose:
        return nameless(lines.splitlines())
    begun = "/*\n" if lines.lstrip().startswith("*") else ""
    return nameless_comments(f"{begun}{lines}\n*/")


def _added(hunks: str) -> Iterator[tuple[str, bool]]:
    """Each run of added lines without its signs, and whether it is prose: of no C file."""
    prose = False
    run: list[str] = []
    for line in [*hunks.splitlines(), ""]:
        if found := _ADDED.fullmatch(line):
            run.append(found[1])
            continue
        if run:
            yield "\n".join(run), prose
            run = []
        if line.startswith("+++ "):
            prose = not line.endswith((".c", ".h"))


def functions(text: str) -> list[str]:
    """The names of the functions that C source defines, in order, those in macros last."""
    text = _NOISE.sub(" ", text.replace("\\\n", " "))
    bodies = [
        _MACRO_HEAD.sub("", found[2], count=1)
        for found in _DIRECTIVE.finditer(text)
        if found[1] == "define"
    ]
    return [name for part in (_DIRECTIVE.sub("", text), *bodies) for name in _defined(part)]


def _defined(text: str) -> Iterator[str]:
    """What stands before each outermost brace, if that is the head of a function."""
    depth = start = 0
    for at, char in enumerate(text):
        if char == "{":
            if depth == 0 and (name := _name_of(text[start:at])):
                yield name
            depth += 1
        elif char == "}":
            depth -= 1
        if depth == 0 and char in ";}":
            start = at + 1


def _name_of(head: str) -> str | None:
    """The function's name; None for a type, an initializer or a statement.

    Its parameters are the last parentheses that no attribute has: `__releases(lock)`.
    """
    name = None
    for word, at in _calls(head):
        if word in _NO_FUNCTION or "=" in head[:at]:
            return None
        if name is None or not word.startswith("__") or OURS.match(word):
            name = word
    return name


def _calls(head: str) -> Iterator[tuple[str, int]]:
    """Each word in front of outermost parentheses, and where these begin."""
    depth = 0
    for at, char in enumerate(head):
        if char == "(":
            words = _WORD.findall(head[:at])
            if depth == 0 and words and head[:at].rstrip().endswith(words[-1]):
                yield words[-1], at
            depth += 1
        elif char == ")":
            depth -= 1
