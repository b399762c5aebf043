"""The page-cache-preferred area on a booted kernel: page cache, clients, pieces, sizes."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.kernel.build import Kernel
from cohort.vm import kunit
from cohort.vm.machine import Latency
from tests_support import SmallGuest, at_night, claims_of, small_guest

pytestmark = pytest.mark.integration

SOURCE = Path(__file__).with_name("pcpa_guest.c")
BOOT_S = 1200
STORAGE_MB = 512
# Slow, as an eMMC that writes: else it is up to the threads' turns how much of a file that is
# written is written back, and evicted, before the area is asked for room.
STORAGE = Latency(read_us=200, write_us=200, mb_per_s=40)


@pytest.fixture(scope="module")
def guest(kernel: Callable[[str], Kernel], tmp_path_factory: pytest.TempPathFactory) -> SmallGuest:
    where = tmp_path_factory.mktemp("pcpa")
    return small_guest(SOURCE, kernel("cohort"), where, STORAGE_MB, BOOT_S, STORAGE)


# The one case that wants what it is booted with.
WIPED = (
    "init_on_free=1",
    "kunit.enable=1",
    "kunit.filter_glob=cohort_copies.cohort_copies_test_wiped",
)


@pytest.mark.parametrize("also", at_night(["", "cohort=region", "cohort=cpb"], 2))
def test_the_area_serves_page_cache_and_clients(also: str, guest: SmallGuest) -> None:
    lines = claims_of(guest.boot("cohort.pcpa=260M", *also.split()))
    assert len(lines) >= 83, lines


def test_file_systems_end_while_room_is_made(
    kernel: Callable[[str], Kernel], tmp_path: Path
) -> None:
    """On the debug kernel: no splat, and no page is left behind, dropped twice or not wiped."""
    guest = small_guest(SOURCE, kernel("debug"), tmp_path, STORAGE_MB, BOOT_S, STORAGE)
    text = guest.boot("cohort.pcpa=260M", "only_umount=1", "panic_on_warn=1", *WIPED)
    assert len(claims_of(text)) == 3
    assert re.search(r"\bok 1 cohort_copies_test_wiped$", text, re.MULTILINE), text[-3000:]
    assert kunit.splats(text) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("cohort.pcpa=4G",), "larger than memory"),
        (("cohort.pcpa=261M",), "not a multiple of a pageblock"),
        (("cohort.pcpa=64M@1M",), "not aligned to a pageblock"),
        (("cohort.pcpa=64M", "cohort.pcpa=64M"), "given twice"),
        (("cohort.pcpa=much",), "expected SIZE"),
        (("cohort.pcpa=64M", "cohort.pcpa_below=32M"), "no such piece of memory"),
        (("cohort.pcpa=64M", "cohort.pcpa_min_order=9"), "expected 0 to 8"),
        (("cohort.pcpa=64M", "cohort.pcpa_timer_ms=0"), "expected 1 to"),
    ],
)
def test_a_size_that_cannot_be_is_told_and_ignored(
    words: tuple[str, ...], why: str, guest: SmallGuest
) -> None:
    text = guest.boot(*words, "rdinit=/none")
    said = [x for x in text.splitlines() if "cohort: pcpa: " in x and why in x]
    assert said, text[-3000:]
    assert "pcpa: 64M\n" not in text
