"""A crash, with the schemes on: the dump leaves out as free what is free, blocks' pages too."""

import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import host
from cohort.kernel.build import KernelSpec, build
from cohort.log import Update
from cohort.phone.initramfs import Member, build_initramfs
from tests_support import SmallGuest, claims_of, small_guest

pytestmark = [pytest.mark.integration, pytest.mark.night]

SOURCE = Path(__file__).with_name("kdump_guest.c")
RESERVED = "crashkernel=256M"
PAGE_KB = 4
# Of 180 MiB that the process has given up within its blocks.
HOLES_KB = 100 * 1024
# What becomes free or not between the guest's look at it and the crash.
MEANWHILE_KB = 2 * 1024


@pytest.fixture(scope="module")
def guest(
    announce: Callable[[str], Update], tmp_path_factory: pytest.TempPathFactory
) -> SmallGuest:
    """A guest with the kernel for its crash aboard, and in that one's root makedumpfile."""
    spec = KernelSpec.from_fragments("base,x86_64,lab,cohort,suite")
    where = tmp_path_factory.mktemp("kdump")
    found = small_guest(SOURCE, build(spec, announce(f"building kernel {spec.name}")), where)
    program = where / "init"
    crash = build_initramfs(program, "", where / "crash.cpio", members=_with_libraries())
    aboard = [
        Member("kernel", stat.S_IFREG | 0o644, data=found.kernel.image.read_bytes()),
        Member("initrd", stat.S_IFREG | 0o644, data=crash.read_bytes()),
    ]
    build_initramfs(program, "", found.initrd, members=aboard)
    return found


def _with_libraries() -> list[Member]:
    """The program and the libraries that the loader says it needs, where it looks for them."""
    tool = host.need("makedumpfile")
    said = host.run([host.need("ldd"), str(tool)]).stdout
    libraries = [Path(x) for x in re.findall(r"(/\S+) \(0x", said)]
    places = sorted({str(x)[1:] for path in libraries for x in path.parents if x != Path("/")})
    return [
        *(Member(place, stat.S_IFDIR | 0o755) for place in places),
        *(Member(str(x)[1:], stat.S_IFREG | 0o755, data=x.read_bytes()) for x in libraries),
        Member("makedumpfile", stat.S_IFREG | 0o755, data=tool.read_bytes()),
    ]


def dump_of(guest: SmallGuest, *words: str) -> dict[str, int]:
    """In KiB: what was free at the crash, of it in blocks with an owner, what the dump left out as
    free, and what remained."""
    text = guest.boot(RESERVED, *words)
    assert len(claims_of(text)) == 3, text[-3000:]
    told = {name: int(kb) for name, kb in re.findall(r"^(\w+): ?(\d+) KiB$", text, re.MULTILINE)}
    for name in ("Free", "Remaining"):
        found = re.search(rf"{name} pages\s*: 0x([0-9a-f]+)", text)
        assert found, text[-3000:]
        told[name] = int(found[1], 16) * PAGE_KB
    return told


def test_free_pages_of_blocks_are_not_in_the_dump(guest: SmallGuest) -> None:
    stock = dump_of(guest)
    ours = dump_of(guest, "cohort=region", "cohort.pcpa=64M")
    assert ours["owned"] > HOLES_KB
    for dump in (stock, ours):
        assert dump["Free"] >= dump["MemFree"] - MEANWHILE_KB, (stock, ours)
    assert ours["Remaining"] < 1.1 * stock["Remaining"], (stock, ours)
