"""Pages for people: their links lead somewhere, their lines fit, and those of results are short."""

import itertools
import re
from pathlib import Path

import pytest

from cohort import paths

ROOT = paths.ROOT
TEMPLATES = ROOT / "docs" / "templates"
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if TEMPLATES not in page.parents  # links of a template are those of the page it makes
)
RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))
LINES, COLUMNS = 200, 100
WIDE = {ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"}
"""Pages whose lines are longer still."""
_LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]*))?\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as a browser of the repository makes them."""
    names: set[str] = set()
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        again = (f"{name}-{number}" for number in itertools.count(1))
        names.add(name if name not in names else next(x for x in again if x not in names))
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for target, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        there = (page.parent / target).resolve() if target else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            wrong.append(f"{target}#{anchor}")
    assert wrong == []


@pytest.mark.parametrize(
    "page", [x for x in PAGES if x not in WIDE], ids=lambda page: str(page.relative_to(ROOT))
)
def test_lines_of_prose_fit(page: Path) -> None:
    """Rows of tables and code may be wide, as they cannot be broken, nor can a long link."""
    text = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"))
    wide = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > COLUMNS and not line.startswith(("|", "    ", "!["))
    ]
    assert [(n, x) for n, x in wide if " " in x.removeprefix("- ").strip()] == []


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.name)
def test_a_page_of_results_is_short(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LINES, "what was tried and what is superseded goes to docs/decisions"
    code = [n for n, x in enumerate(lines, 1) if len(x) > COLUMNS and x.startswith("    ")]
    assert code == [], "a command can be broken"
