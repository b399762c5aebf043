"""Frames kept for contiguous pieces: granted against every user, copies never stale."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.kernel.build import Kernel
from cohort.vm import kunit
from tests_support import at_night, claims_of, small_guest

pytestmark = pytest.mark.integration

SOURCE = Path(__file__).with_name("contig_guest.c")
BOOT_S = 1200
NIGHT_S = 6 * 3600
STORAGE_MB = 1024
BESIDE = ("few=1", "cohort=region", "cohort.pcpa=64M", "panic_on_warn=1", "kunit.enable=0")


@pytest.mark.parametrize(
    ("variant", "also", "claims", "limit_s"),
    at_night(
        [
            ("cohort", (), 36, BOOT_S),
            ("cohort", (*BESIDE, "beside=pipes"), 8, BOOT_S),
            ("debug", (*BESIDE, "beside=pipes"), 8, BOOT_S),
            ("debug", BESIDE, 36, NIGHT_S),
        ],
        2,
    ),
    ids=["alone", "beside-region-and-area", "debug-beside-pipes", "debug-beside-each-user"],
)
def test_pieces_are_granted_and_no_copy_is_stale(
    variant: str,
    also: tuple[str, ...],
    claims: int,
    limit_s: float,
    kernel: Callable[[str], Kernel],
    tmp_path: Path,
) -> None:
    guest = small_guest(SOURCE, kernel(variant), tmp_path, STORAGE_MB, limit_s)
    memory_mb = 640 if variant == "debug" else 512
    text = guest.boot("cohort.pcpa_contig=64M", *also, memory_mb=memory_mb)
    assert len(claims_of(text)) >= claims, text[-3000:]
    assert kunit.splats(text) == []
