"""Hibernation, with the schemes on: the image has what stock's has, and all of it comes back."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.kernel.build import Kernel
from tests_support import SmallGuest, claims_of, small_guest

pytestmark = [pytest.mark.integration, pytest.mark.night]

SOURCE = Path(__file__).with_name("hibernate_guest.c")
BOOT_S = 1200
STORAGE_MB = 768
IMAGE = re.compile(r"Need to copy (\d+) pages")
OWNED = re.compile(r"^owned (\d+) KiB$", re.MULTILINE)
# Of 180 MiB that processes have given up within their blocks.
HOLES_KB = 100 * 1024


@pytest.fixture(scope="module")
def guest(kernel: Callable[[str], Kernel], tmp_path_factory: pytest.TempPathFactory) -> SmallGuest:
    where = tmp_path_factory.mktemp("hibernate")
    return small_guest(SOURCE, kernel("debug"), where, STORAGE_MB, BOOT_S)


def image_of(guest: SmallGuest, *words: str) -> tuple[int, int]:
    """Pages of the image, and KiB of free memory in blocks that have an owner."""
    text = guest.boot("panic_on_warn=1", *words)
    assert len(claims_of(text)) >= 13, text[-3000:]
    found, owned = IMAGE.search(text), OWNED.search(text)
    assert found and owned, text[-3000:]
    return int(found[1]), int(owned[1])


def test_free_pages_of_blocks_are_not_in_the_image(guest: SmallGuest) -> None:
    stock, _ = image_of(guest)
    image, owned = image_of(guest, "cohort=region", "cohort.pcpa=64M")
    assert owned > HOLES_KB
    assert image < 1.1 * stock, f"{owned} KiB were free in blocks"
