"""Virtual memory nodes on a booted kernel: layouts, roles, and who is killed."""

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

SOURCE = Path(__file__).with_name("vnode_guest.c")
TWO = ("cohort.vnode=trusted:256M,untrusted:rest", "cohort.vnode_default=trusted")
BOOT_S = 120


@pytest.fixture(scope="module")
def boot(
    kernel: Callable[[str], Kernel], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., str]:
    """Boot with these words on the command line; what the console said."""
    where = tmp_path_factory.mktemp("vnode")
    program = where / "init"
    words = ["-O1", "-Wall", "-Wextra", "-Werror", "-static", "-o", str(program), str(SOURCE)]
    done = host.run([host.need("gcc"), *words])
    assert done.returncode == 0, done.stderr
    initrd = build_initramfs(program, "", where / "initramfs.cpio")
    image = kernel("cohort").image

    def run(*words: str, memory_mb: int = 1024, cpus: int = 2) -> str:
        spec = VmSpec(where, image, "tcg", memory_mb, cpus, initrd=initrd, cmdline=words)
        subprocess.run(machine.arguments(spec), timeout=BOOT_S, check=True, capture_output=True)
        return spec.console.read_text(errors="replace")

    return run


def test_nobody_leaves_a_role_and_a_bystander_lives(boot: Callable[..., str]) -> None:
    text = boot(*TWO).replace("\r", "")
    lines = [x for x in text.splitlines() if x.startswith(("ok ", "not ok "))]
    assert "\ndone\n" in text, text[-3000:]
    assert [x for x in lines if x.startswith("not")] == []
    assert len(lines) >= 14, lines


@pytest.mark.parametrize(
    ("layout", "memory_mb", "cpus", "nodes"),
    [
        ("trusted:512M,untrusted:rest", 2048, 2, ["511MB", "1535MB"]),
        ("trusted:512M,store:512M,untrusted:rest", 2048, 3, ["511MB", "512MB", "1023MB"]),
        ("responsive:35%,external:rest", 1024, 2, ["359MB", "663MB"]),
    ],
)
def test_sizes(
    layout: str, memory_mb: int, cpus: int, nodes: list[str], boot: Callable[..., str]
) -> None:
    text = boot(f"cohort.vnode={layout}", "rdinit=/none", memory_mb=memory_mb, cpus=cpus)
    found = [x for x in text.splitlines() if "Faking node " in x]
    assert [x.rpartition("(")[2].strip(")\r") for x in found] == nodes, found
    starts = [int(x.partition("[mem ")[2].partition("-")[0], 16) for x in found]
    assert all(start % (4 << 20) == 0 for start in starts[1:])


@pytest.mark.parametrize(
    ("layout", "cpus", "why"),
    [
        ("a:4G,b:rest", 2, "leave no 32M"),
        ("a:64M,b:64M,c:rest", 2, "more nodes than CPUs"),
        ("a:rest,b:rest", 2, "rest is given twice"),
    ],
)
def test_a_layout_that_does_not_fit_is_told_and_ignored(
    layout: str, cpus: int, why: str, boot: Callable[..., str]
) -> None:
    text = boot(f"cohort.vnode={layout}", cpus=cpus)
    complaints = [x for x in text.splitlines() if "cohort.vnode=" in x and "booting" in x]
    assert len(complaints) == 1 and why in complaints[0], complaints
    assert "ok no nodes at all" in text
