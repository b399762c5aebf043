"""The page-cache-preferred area on a booted kernel: page cache, clients, pieces, sizes."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import host
from cohort.kernel.build import Kernel
from cohort.phone.initramfs import build_initramfs
from cohort.vm import machine
from cohort.vm.machine import VmSpec

pytestmark = pytest.mark.integration

SOURCE = Path(__file__).with_name("pcpa_guest.c")
BOOT_S = 300
STORAGE_MB = 512


@pytest.fixture(scope="module")
def boot(
    kernel: Callable[[str], Kernel], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., str]:
    """Boot with these words on the command line; what the console said."""
    where = tmp_path_factory.mktemp("pcpa")
    program = where / "init"
    words = ["-O1", "-Wall", "-Wextra", "-Werror", "-static", "-o", str(program), str(SOURCE)]
    done = host.run([host.need("gcc"), *words])
    assert done.returncode == 0, done.stderr
    initrd = build_initramfs(program, "", where / "initramfs.cpio")
    image = kernel("cohort").image

    def run(*words: str, memory_mb: int = 1024) -> str:
        storage = where / "storage"
        with storage.open("wb") as file:
            file.truncate(STORAGE_MB << 20)
        mkfs = host.run([host.need("mke2fs"), "-q", "-t", "ext4", "-F", str(storage)])
        assert mkfs.returncode == 0, mkfs.stderr
        spec = VmSpec(
            where, image, "tcg", memory_mb, 2, initrd=initrd, storage=storage, cmdline=words
        )
        subprocess.run(machine.arguments(spec), timeout=BOOT_S, check=True, capture_output=True)
        return spec.console.read_text(errors="replace").replace("\r", "")

    return run


@pytest.mark.parametrize("also", [(), ("cohort=region",), ("cohort=cpb",)])
def test_the_area_serves_page_cache_and_clients(
    also: tuple[str, ...], boot: Callable[..., str]
) -> None:
    text = boot("cohort.pcpa=260M", *also)
    lines = [x for x in text.splitlines() if x.startswith(("ok ", "not ok "))]
    assert "\ndone\n" in text, text[-3000:]
    assert [x for x in lines if x.startswith("not")] == [], text[-3000:]
    assert len(lines) >= 30, lines


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("cohort.pcpa=4G",), "larger than memory"),
        (("cohort.pcpa=261M",), "not a multiple of a pageblock"),
        (("cohort.pcpa=64M@1M",), "not aligned to a pageblock"),
        (("cohort.pcpa=64M", "cohort.pcpa=64M"), "given twice"),
        (("cohort.pcpa=much",), "expected SIZE"),
        (("cohort.pcpa=64M", "cohort.pcpa_min_order=9"), "expected 0 to 8"),
        (("cohort.pcpa=64M", "cohort.pcpa_timer_ms=0"), "expected 1 to"),
    ],
)
def test_a_size_that_cannot_be_is_told_and_ignored(
    words: tuple[str, ...], why: str, boot: Callable[..., str]
) -> None:
    text = boot(*words, "rdinit=/none")
    said = [x for x in text.splitlines() if "cohort: pcpa: " in x and why in x]
    assert said, text[-3000:]
    assert "pcpa: 64M\n" not in text
