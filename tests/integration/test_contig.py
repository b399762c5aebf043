"""Frames kept for contiguous pieces: granted against every user, copies never stale."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.kernel import kunit
from cohort.kernel.build import Kernel
from tests_support import claims_of, small_guest

pytestmark = pytest.mark.integration

SOURCE = Path(__file__).with_name("contig_guest.c")
BOOT_S = 1200
STORAGE_MB = 512


@pytest.mark.parametrize(
    ("variant", "also"),
    [
        ("cohort", ()),
        (
            "debug",
            ("few=1", "cohort=region", "cohort.pcpa=64M", "panic_on_warn=1", "kunit.enable=0"),
        ),
    ],
    ids=["alone", "debug-beside-region-and-area"],
)
def test_pieces_are_granted_and_no_copy_is_stale(
    variant: str, also: tuple[str, ...], kernel: Callable[[str], Kernel], tmp_path: Path
) -> None:
    guest = small_guest(SOURCE, kernel(variant), tmp_path, STORAGE_MB, BOOT_S)
    memory_mb = 640 if variant == "debug" else 512
    text = guest.boot("cohort.pcpa_contig=64M", *also, memory_mb=memory_mb)
    assert len(claims_of(text)) >= 12, text[-3000:]
    assert kunit.splats(text) == []
