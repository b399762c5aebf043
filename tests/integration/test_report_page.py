"""The report in a browser, opened from a file: nothing fails, the map moves, colours change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Page, browser
from cohort.results.html import render_report
from cohort.results.rundir import RunDir
from cohort.results.runs import measure
from made_runs import add_map, make_run

pytestmark = pytest.mark.integration

FIRST = ("A" * 8192, "1" * 8192)
LAST = ("F" * 4096 + "S" * 4096, "c" * 4096 + "." * 4096)
"""A map by kind and by owner."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two policies: both have a map after the boot, one has another at launch 10."""
    top = tmp_path_factory.mktemp("report")
    none, region = (make_run(top, name, factor=f) for name, f in (("none", 1), ("region", 2)))
    for path, n, maps in ((none, 0, FIRST), (region, 0, FIRST), (region, 10, LAST)):
        add_map(path, n, *maps)
    results = [measure(RunDir(path)) for path in (none, region)]
    file = top / "report.html"
    file.write_text(render_report(results, "cohort compare none region"), encoding="utf-8")
    return file


@pytest.fixture
def page(report: Path, tmp_path: Path) -> Iterator[Page]:
    """The report as it is opened; in the end, nothing was wrong and nothing was loaded."""
    with browser(tmp_path / "profile") as shown:
        shown.open(report)
        shown.prefer("light")
        yield shown
        assert shown.complaints == []
        assert shown.requests == [report.as_uri()]


def colour(page: Page, side: str, x: int, y: int) -> list[int]:
    """Red, green and blue of a cell of the map."""
    canvas = f'document.getElementById("map-{side}").getContext("2d")'
    found = page.run(f"[...{canvas}.getImageData({x}, {y}, 1, 1).data]")
    assert isinstance(found, list)
    return found[:3]


def move(page: Page, step: int) -> None:
    slider = 'document.getElementById("map-launch")'
    page.run(f"{slider}.value = {step}; {slider}.dispatchEvent(new Event('input'))")


def text(page: Page, selector: str) -> str:
    return str(page.run(f"document.querySelector({selector!r}).textContent"))


def test_the_map_moves_from_launch_to_launch_on_both_sides(page: Page) -> None:
    anonymous, file, slab = [0xE8, 0xA3, 0x3D], [0x4F, 0x9D, 0x69], [0x7B, 0x5E, 0xA7]
    process = [0xC4, 0x74, 0x2B]
    assert page.run('document.getElementById("map").hidden') is False
    assert page.run('document.getElementById("map-launch").max') == "2"
    move(page, 0)
    assert (colour(page, "a", 0, 0), colour(page, "b", 0, 0)) == (anonymous, anonymous)
    assert text(page, "#map-title-b") == "booted"
    move(page, 1)
    assert (colour(page, "a", 0, 0), colour(page, "b", 0, 0)) == (anonymous, file)
    assert colour(page, "b", 127, 63) == slab
    assert text(page, "#map-title-a") == "booted"
    assert text(page, "#map-title-b") == "after launch 10"
    assert "file 0.0 % | 50.0 %" in text(page, "#map-legend")
    page.run("document.querySelector('input[name=map-by][value=owner]').click()")
    assert "page cache 0.0 % | 50.0 %" in text(page, "#map-legend")
    assert "in use, no owner 0.0 % | 50.0 %" in text(page, "#map-legend")
    assert colour(page, "a", 0, 0) == process
    page.run("""document.getElementById("map-run-a").selectedIndex = 1;
             document.getElementById("map-run-a").dispatchEvent(new Event('change'))""")
    assert colour(page, "a", 0, 0) == file


def test_a_press_on_the_legend_leaves_one_kind(page: Page) -> None:
    move(page, 1)
    page.run("""[...document.querySelectorAll("#map-legend button")]
             .find((button) => button.textContent.startsWith("slab")).click()""")
    pressed = 'document.querySelector("#map-legend [aria-pressed=true]").textContent'
    assert page.run(pressed).startswith("slab")
    alpha = 'getContext("2d").getImageData(0, 0, 1, 1).data[3]'
    assert page.run(f'document.getElementById("map-b").{alpha}') < 64
    assert page.run("document.activeElement.dataset.label") == "slab"


def test_a_narrow_screen_scrolls_tables_and_not_the_page(page: Page) -> None:
    page.ask(
        "Emulation.setDeviceMetricsOverride",
        **{"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    page.run('document.querySelectorAll("details").forEach((x) => (x.open = true))')
    assert page.run("document.documentElement.scrollWidth") == 390


def test_it_is_light_and_dark(page: Page) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    line = "getComputedStyle(document.querySelector(\"svg [style*='stroke: #0072b2']\")).stroke"
    assert page.run(paper) == "rgb(255, 255, 255)"
    by_day = page.run(line)
    page.prefer("dark")
    assert page.run(paper) == "rgb(21, 24, 28)"
    assert page.run(line) != by_day
    page.run('document.getElementById("theme").click()')
    assert page.run(paper) == "rgb(255, 255, 255)"


def test_it_opens_with_the_verdicts(page: Page) -> None:
    assert page.run('document.querySelectorAll(".area .verdict").length') == 4
    assert page.run('document.getElementById("table").open') is False
    tops = '["h1", ".area", "canvas", "#table"].map((x) => document.querySelector(x)'
    places = page.run(f"{tops}.getBoundingClientRect().top)")
    assert places == sorted(places)
