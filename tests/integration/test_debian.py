"""Debian's oldest and newest package of the series: the patches fit, come off, and compile."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import debian
from cohort import host, paths
from cohort.kernel import check, overlay, source
from cohort.log import Update
from tests_support import snapshot, touched_files

VERSIONS = debian.versions()
ENDS = sorted({*VERSIONS[:1], *VERSIONS[-1:]})
CONFIG = "base,x86_64,lab,cohort"


@pytest.mark.kernel
@pytest.mark.parametrize("version", ENDS)
def test_the_patches_fit_and_come_off(version: str, tmp_path: Path) -> None:
    """Each hunk in the definition that it names, or as a variant; and every byte back."""
    series = overlay.load_series()
    names = ["Makefile", *touched_files(series)]
    tree = debian.unpack(version, tmp_path / "linux", names)
    before = snapshot(tree)
    report = overlay.apply(tree, series)
    assert report.action == "applied"
    assert len(report.hunks) >= len(names)
    if str(source.read_release(tree)) == source.PINNED:
        assert report.notes == []
    overlay.revert(tree)
    assert snapshot(tree) == before


@pytest.fixture
def oldest() -> Iterator[Path]:
    """The whole tree of the oldest package; 1.6 GB, gone afterwards. Its place is always the same,
    and so is that of what is compiled."""
    if not VERSIONS:
        pytest.skip(f"no archive has {debian.PACKAGE}")
    place = paths.made("kernel", "debian")
    with host.lock(place.with_name("debian.lock")):
        shutil.rmtree(place / "linux", ignore_errors=True)
        yield debian.unpack(VERSIONS[0], place / "linux")
        shutil.rmtree(place)


@pytest.mark.integration
@pytest.mark.night
def test_what_is_touched_compiles_on_the_oldest(
    oldest: Path, announce: Callable[[str], Update]
) -> None:
    names = sorted(path.name for path in (oldest / "mm").iterdir())
    done = check.compile_touched(oldest, CONFIG, announce(f"compiling on {VERSIONS[0]}"))
    assert "mm/page_alloc.o" in done.objects
    assert sorted(path.name for path in (oldest / "mm").iterdir()) == names
    assert overlay.applied_id(oldest) is None
