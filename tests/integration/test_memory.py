"""Regions beside the rest of memory management, on booted kernels: nothing is withheld, no page
is where it must not be, and what others may ask of the kernel they still get."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.kernel.build import Kernel
from tests_support import SmallGuest, claims_of, small_guest

pytestmark = pytest.mark.integration

SOURCE = Path(__file__).with_name("memory_guest.c")
BOOT_S = 1200
STORAGE_MB = 64
LAYOUT = "cohort.vnode=trusted:256M,untrusted:rest"


@pytest.fixture(scope="module")
def guest(kernel: Callable[[str], Kernel], tmp_path_factory: pytest.TempPathFactory) -> SmallGuest:
    where = tmp_path_factory.mktemp("memory")
    return small_guest(SOURCE, kernel("cohort"), where, STORAGE_MB, BOOT_S)


@pytest.mark.parametrize(
    ("machine", "memory_mb", "words", "claims"),
    [
        ("one", 2048, (), 13),
        ("two", 1536, ("numa=fake=2",), 12),
        ("huge", 2048, (LAYOUT, "cohort.vnode_default=untrusted", "cohort.pcpa=260M"), 7),
        ("cma", 1024, ("cma=256M",), 3),
    ],
)
def test_regions_leave_others_what_is_theirs(
    machine: str, memory_mb: int, words: tuple[str, ...], claims: int, guest: SmallGuest
) -> None:
    text = guest.boot("cohort=region", f"memory={machine}", *words, memory_mb=memory_mb)
    assert len(claims_of(text)) >= claims, text[-3000:]
