"""The power goes while the page-cache-preferred area is emptied: the file system has what it
promised, and nothing in it is broken."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import host
from cohort.kernel.build import Kernel
from cohort.units import PAGE
from tests_support import SmallGuest, at_night, small_guest

pytestmark = pytest.mark.integration

SOURCE = Path(__file__).with_name("power_guest.c")
BOOT_S = 1200
STORAGE_MB = 512
# e2fsck has nothing to say, or has counted again what the journal does not keep.
FSCK_FINE = (0, 1)
PROMISE = re.compile(r"^synced (\S+) (\d+) (\d+)$", re.MULTILINE)


def content(size: int, seed: int) -> bytes:
    """The file of so many bytes that begins after this seed: fill() of power_guest.c."""
    pages = []
    for _ in range(size // PAGE):
        seed = (seed * 1664525 + 1013904223) % 2**32
        pages.append(seed.to_bytes(4, "little") * (PAGE // 4))
    return b"".join(pages)


@pytest.fixture(scope="module")
def guest(kernel: Callable[[str], Kernel], tmp_path_factory: pytest.TempPathFactory) -> SmallGuest:
    where = tmp_path_factory.mktemp("power")
    return small_guest(SOURCE, kernel("cohort"), where, STORAGE_MB, BOOT_S)


def promised(console: str) -> list[tuple[str, int, int]]:
    """Name, bytes and seed of each file the guest has had synced; a line that the end of the
    machine cut off is no promise."""
    found = PROMISE.findall(console)
    return [(name, int(size), int(seed)) for name, size, seed in found]


def checked(storage: Path) -> subprocess.CompletedProcess[str]:
    """The journal replayed and the file system checked, harmless counts mended."""
    return host.run([host.need("e2fsck"), "-f", "-p", storage])


@pytest.mark.parametrize(
    ("also", "after", "us"),
    at_night([("cohort=region", 6, 4000), ("", 3, 500), ("cohort=cpb", 9, 20000)], 1),
)
def test_what_was_synced_is_there_after_the_power_went(
    also: str, after: int, us: int, guest: SmallGuest, tmp_path: Path
) -> None:
    console = guest.boot(
        *("cohort.pcpa=260M", *also.split(), f"cut_after={after}", f"cut_us={us}"),
        keep_writes=True,
    )
    files = promised(console)
    assert len(files) >= 3, console[-3000:]
    storage = guest.run_dir / "storage"
    found = checked(storage)
    assert found.returncode in FSCK_FINE, found.stdout
    read = host.run([host.need("debugfs"), "-R", f"rdump /kept {tmp_path}", storage])
    assert read.returncode == 0, read.stderr
    wrong = [
        name
        for name, size, seed in files
        if (tmp_path / "kept" / name).read_bytes() != content(size, seed)
    ]
    assert wrong == []
