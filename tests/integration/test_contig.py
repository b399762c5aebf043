"""Frames kept for contiguous pieces: granted against every user, copies never stale."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.kernel.build import Kernel, KernelSpec, build
from cohort.log import Update
from cohort.vm import kunit
from tests_support import SmallGuest, at_night, claims_of, small_guest

pytestmark = pytest.mark.integration

SOURCE = Path(__file__).with_name("contig_guest.c")
BOOT_S = 1200
NIGHT_S = 6 * 3600
STORAGE_MB = 768
PROMISES = [("pcpa-contig", "cohort.pcpa_contig=64M"), ("pcpa", "cohort.pcpa=64M")]
USERS = {
    *("alone", "reader", "pipes", "fuse-reads", "fuse-writes", "gup-pins"),
    *("ring-pins", "mlock", "dirty", "journal", "memory", "all"),
}


@pytest.fixture
def guest(announce: Callable[[str], Update], tmp_path: Path) -> SmallGuest:
    """A suite's kernel: users have FUSE, io_uring and namespaces of their own."""
    spec = KernelSpec.from_fragments("base,x86_64,lab,cohort,suite")
    kernel = build(spec, announce(f"building kernel {spec.name}"))
    return small_guest(SOURCE, kernel, tmp_path, STORAGE_MB, NIGHT_S)


def _told(console: str) -> dict[str, dict[str, int]]:
    """What the guest says of the pieces beside each user; shown by pytest's -s or -rA."""
    found = {}
    for line in console.splitlines():
        if line.startswith("adversary "):
            print(line)
            _, name, *words = line.split()
            found[name] = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    return found


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
    assert all(user["given"] == user["asked"] for user in _told(text).values())
    assert kunit.splats(text) == []


@pytest.mark.parametrize(
    ("heap", "words", "pieces"),
    at_night([(*promise, pieces) for pieces in (10, 1000) for promise in PROMISES], 0),
)
def test_every_piece_is_given_beside_each_user(
    heap: str, words: str, pieces: int, guest: SmallGuest
) -> None:
    """Pieces of 64 MB, which is all there is: the night's are 12,000 of each heap."""
    text = guest.boot(
        *(words, f"heap={heap}", f"pieces={pieces}", "only_pieces=1", "cohort.pcpa_timer_ms=5"),
        memory_mb=512,
    )
    told = _told(text)
    claims_of(text)
    assert told.keys() == USERS
    for name, user in told.items():
        assert (user["asked"], user["given"]) == (pieces, pieces), name


@pytest.mark.night
def test_what_cma_gives_beside_each_user(guest: SmallGuest) -> None:
    """Told and no more: it promises nothing."""
    text = guest.boot("cma=64M", "heap=reserved", "pieces=1000", "only_pieces=1", memory_mb=512)
    told = _told(text)
    claims_of(text)
    assert told.keys() == USERS
