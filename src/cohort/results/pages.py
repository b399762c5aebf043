"""The pages of results that are made from records, each of a template of prose.

A template is `docs/templates/results/NAME.md` for the page `docs/results/NAME.md`, beside the pages
and not in the package, as it is prose that people edit. `docs/templates/README.md` and
`docs/templates/README-NAME.md` make parts of the repository's README, each between two marks. What
one may call: `cohort.results.sheet`.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from cohort import host
from cohort.errors import Failed, UsageError
from cohort.results import figures, history
from cohort.results.records import NoRecords
from cohort.results.sheet import Sheet, functions

README = "README.md"
BEGIN = "<!-- results: made by `cohort results` of docs/templates/{template} -->"
END = "<!-- results: end -->"
_PICTURE = re.compile(r"\]\((?:docs/results/)?([^()/]+\.svg)\)")


def is_part(template: str) -> bool:
    """Does the template make a part of the README, and not a page?"""
    return template == README or template.startswith("README-")


@dataclass(frozen=True)
class Home:
    """Where pages, templates and records are in a checkout."""

    root: Path

    @property
    def results(self) -> Path:
        """The pages, and their pictures."""
        return self.root / "docs" / "results"

    @property
    def templates(self) -> Path:
        """The templates, each where its page is in docs/."""
        return self.root / "docs" / "templates"

    @property
    def records(self) -> Path:
        """The sets of records."""
        return self.results / "records"

    def page(self, template: str) -> Path:
        """The file that a template makes, or a part of."""
        return self.root / README if is_part(template) else self.root / "docs" / template


@dataclass(frozen=True)
class Page:
    """A page as its template and the records have it, its figures marked."""

    template: str
    path: Path
    sheet: Sheet
    marked: str


def make(home: Home, template: str) -> Page:
    """One page. UsageError for a template that is none, Failed if records do not fit."""
    path = home.page(template)
    sheet = Sheet(str(path.relative_to(home.root)), home.records)
    loader = jinja2.FileSystemLoader(home.templates)
    jinja = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, autoescape=False)
    where = home.templates / template
    try:
        text = jinja.get_template(template).render(functions(sheet))
    except jinja2.TemplateSyntaxError as error:
        raise UsageError(f"{where}:{error.lineno}: {error.message}") from error
    except (jinja2.TemplateError, ArithmeticError, TypeError, ValueError) as error:
        raise UsageError(f"{where}: {error}") from error
    made_of = f"<!-- Made by `cohort results` of docs/templates/{template}: change that. -->\n"
    return Page(template, path, sheet, f"{'' if is_part(template) else made_of}{text.rstrip()}\n")


def templates(home: Home) -> list[str]:
    """The templates, by their paths in docs/templates."""
    return sorted(str(x.relative_to(home.templates)) for x in home.templates.rglob("*.md"))


def write(home: Home, only: Sequence[str] = ()) -> list[Path]:
    """Write every page and picture, or those of `only` these templates; returns those that were
    not there like that.

    Raises what `make` does, before anything is written; UsageError for a README without marks.
    """
    from cohort.results.set_picture import draw, is_of

    wanted: dict[Path, str] = {}
    for page in [make(home, template) for template in only or templates(home)]:
        before, after = _around(page, wanted.get(page.path, _text(page.path)))
        wanted[page.path] = f"{before}{figures.plain(page.marked)}{after}"
        for name, picture in page.sheet.pictures.items():
            if not is_of(_text(home.results / name), picture):
                wanted[home.results / name] = draw(name, picture)
    changed = [path for path, text in wanted.items() if _text(path) != text]
    for path in changed:
        host.write_text(path, wanted[path])
    return changed


def check(home: Home) -> list[str]:
    """Where pages say something else than their records: `PAGE: line: table: metric: ...`. Which
    pages and pictures are made of none, and what the newest commit of the history has worse than
    its bounds allow.

    Raises UsageError for a template that is none.
    """
    said, shown = [], set[str]()
    for template in templates(home):
        try:
            page = make(home, template)
            said += _check(home, page)
            shown.update(page.sheet.pictures)
        except (Failed, NoRecords) as error:
            page_is_told = isinstance(error, Failed)
            said.append(error.message if page_is_told else f"{template}: {error.message}")
            shown.update(_PICTURE.findall(_text(home.page(template))))
    return said + _strays(home, shown) + losses(home)


def _strays(home: Home, shown: Collection[str]) -> list[str]:
    """Pages that have no template, and pictures beside them that are not `shown`: nothing says
    whether their figures are those of any records."""
    made = {home.page(template) for template in templates(home)}
    pages = {x: "has no template" for x in home.results.glob("*.md") if x not in made}
    pictures = {x: "no page makes it" for x in home.results.glob("*.svg") if x.name not in shown}
    return [
        f"{path.relative_to(home.root)}: {what}; history is in docs/decisions"
        for path, what in sorted({**pages, **pictures}.items())
    ]


def losses(home: Home) -> list[str]:
    """What the newest commit of the history has worse than its bounds allow."""
    if not history.records_file(home.records).is_file():
        return []
    return history.losses(*history.read(home.records))


def _check(home: Home, page: Page) -> list[str]:
    from cohort.results.set_picture import is_of

    before, after = _around(page, _text(page.path))
    text = _text(page.path).removeprefix(before).removesuffix(after)
    found = figures.differences(page.marked, page.sheet.figures, text, before.count("\n"))
    wrong = [
        f"{name}: the picture is not of the records"
        for name, picture in page.sheet.pictures.items()
        if not is_of(_text(home.results / name), picture)
    ]
    return [f"{page.sheet.name}: {what}" for what in [*found, *wrong]]


def refuse(said: list[str], hint: str = "make the pages again: cohort results") -> None:
    """Failed with all that was said, if anything was."""
    if said:
        raise Failed("\n".join(said), hint)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _around(page: Page, text: str) -> tuple[str, str]:
    """What the text of a page has before and after the part that is made; nothing but for the
    README."""
    if not is_part(page.template):
        return "", ""
    mark = BEGIN.format(template=page.template)
    before, begin, rest = text.partition(f"{mark}\n")
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UsageError(f"{page.path}: has no lines {mark} and {END}")
    return before + begin, end + after
