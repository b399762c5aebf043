"""Helpers that are no fixtures."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_NB, flock
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

from cohort import host, paths
from cohort.kernel import hunks, overlay
from cohort.kernel.build import Kernel, find_arch
from cohort.kernel.overlay import Series
from cohort.phone.initramfs import build_initramfs
from cohort.vm import machine
from cohort.vm.boot import BOOTS, STALE_BREAKPOINT
from cohort.vm.kunit import splats
from cohort.vm.machine import Latency, VmSpec


def git(where: Path, *words: str) -> str:
    """What git says in a directory to a user of it; an AssertionError if it fails."""
    argv = ["git", "-c", "user.name=x", "-c", "user.email=x@y.example", *words]
    done = subprocess.run(argv, cwd=where, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def may_lock(path: Path, how: int) -> bool:
    """Whether a file, or a directory, can be locked that way (LOCK_SH, LOCK_EX) at this moment."""
    try:
        with locked(path, how | LOCK_NB):
            return True
    except BlockingIOError:
        return False


@contextmanager
def locked(path: Path, how: int) -> Iterator[None]:
    """Lock a file, or a directory, as another process would."""
    file = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT)
    try:
        flock(file, how)
        yield
    finally:
        os.close(file)


def at_night(cases: Iterable[object], by_day: int) -> list[ParameterSet]:
    """Cases of a parametrized test: the first `by_day` for each `make test`, all for the night."""
    marks = pytest.mark.night
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=() if n < by_day else marks
        )
        for n, case in enumerate(cases)
    ]


# A file of a made tree, on which hunks land.
ALLOC_C = """\
#include <linux/mm.h>

static int alloc_fast(int order)
{
\treturn order;
}

int alloc_slow(int order)
{
\tint page = 0;

\tif (order > 3)
\t\tpage = 1;
\treturn page;
}
"""


# A patch's hunk for it.
HOOK = """\
---
--- a/mm/alloc.c
+++ b/mm/alloc.c
@@ -12,2 +12,3 @@ int alloc_slow(int order)
 \tif (order > 3)
+\t\tcohort_alloc(order);
 \t\tpage = 1;
"""


# Files the patches touch that not every kernel compiles, and the option that has them compiled.
OPTIONAL = {
    "drivers/dma-buf/heaps/system_heap.c": "CONFIG_DMABUF_HEAPS_SYSTEM",
    "kernel/power/snapshot.c": "CONFIG_HIBERNATION",
    "mm/hugetlb.c": "CONFIG_HUGETLBFS",
    "mm/khugepaged.c": "CONFIG_TRANSPARENT_HUGEPAGE",
    "mm/ksm.c": "CONFIG_KSM",
    "mm/mempolicy.c": "CONFIG_NUMA",
    "mm/numa_emulation.c": "CONFIG_NUMA_EMU",
    "mm/shuffle.c": "CONFIG_SHUFFLE_PAGE_ALLOCATOR",
    "mm/zsmalloc.c": "CONFIG_ZSMALLOC",
}


def touched_files(series: Series) -> list[str]:
    """The files of the tree the patches change, by name, in order of appearance."""
    found = (hunk.file for x in series.names for hunk in hunks.read_patch(series.patches / x))
    return list(dict.fromkeys(found))


def patched_objects(on: set[str]) -> list[str]:
    """What make calls the files that the patches touch, in a kernel with these options."""
    return [
        f"{name.removesuffix('.c')}.o"
        for name in touched_files(overlay.load_series())
        if name.endswith(".c") and OPTIONAL.get(name, "CONFIG_MMU") in on
    ]


def copy_originals(tree: Path, into: Path, names: Iterable[str]) -> None:
    """Files of a tree as they are without Cohort."""
    for name in names:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(overlay.original(tree, name), into / name)


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


def snapshot(tree: Path) -> dict[str, bytes | None]:
    """Every directory (None) and file of a tree with its content."""
    return {
        str(path.relative_to(tree)): path.read_bytes() if path.is_file() else None
        for path in sorted(tree.rglob("*"))
    }


@dataclass(frozen=True)
class SmallGuest:
    """A machine whose one process is a test: it prints "ok WHAT" or "not ok WHAT", a line a
    claim, and "done" in the end. `storage_mb` is an empty ext4 file system on an NVDIMM, which
    answers at once unless a request has a `latency`."""

    kernel: Kernel
    initrd: Path
    run_dir: Path
    storage_mb: int
    limit_s: float
    latency: Latency | None = None

    def boot(
        self,
        *words: str,
        memory_mb: int = 1024,
        cpus: int = 2,
        nodes_mb: tuple[int, ...] = (),
        keep_writes: bool = False,
    ) -> str:
        """Boot with these words on the command line; what the console said. `nodes_mb` are the
        machine's own nodes, which make up its memory. With `keep_writes` the file `storage` of
        the run directory is what the guest left.

        Booted again where QEMU ran a stale breakpoint, as the lab's own guests are.
        """
        for _ in range(BOOTS):
            text = self._boot(words, sum(nodes_mb) or memory_mb, cpus, nodes_mb, keep_writes)
            if STALE_BREAKPOINT not in text:
                break
        return text

    def _boot(
        self,
        words: tuple[str, ...],
        memory_mb: int,
        cpus: int,
        nodes_mb: tuple[int, ...],
        keep_writes: bool,
    ) -> str:
        spec = VmSpec(
            self.run_dir,
            self.kernel.image,
            "tcg",
            memory_mb,
            cpus,
            initrd=self.initrd,
            storage=self._storage() if self.storage_mb else None,
            latency=self.latency,
            # On a busy host the timer's interrupt comes too late for the kernel's own test.
            cmdline=("no_timer_check", *words),
            arch=self.kernel.arch,
            nodes_mb=nodes_mb,
            keep_writes=keep_writes,
        )
        try:
            subprocess.run(
                machine.arguments(spec), timeout=self.limit_s, check=True, capture_output=True
            )
        except subprocess.TimeoutExpired:
            said = spec.console.read_text(errors="replace")[-3000:]
            raise AssertionError(
                f"not done in {self.limit_s:.0f} s; its last words:\n{said}"
            ) from None
        return spec.console.read_text(errors="replace").replace("\r", "")

    def _storage(self) -> Path:
        storage = self.run_dir / "storage"
        with storage.open("wb") as file:
            file.truncate(self.storage_mb << 20)
        made = host.run([host.need("mke2fs"), "-q", "-t", "ext4", "-F", str(storage)])
        assert made.returncode == 0, made.stderr
        return storage


def small_guest(
    source: Path,
    kernel: Kernel,
    run_dir: Path,
    storage_mb: int = 0,
    limit_s: float = 1200,
    latency: Latency | None = None,
) -> SmallGuest:
    """The guest whose init is this C file, compiled for the kernel's machine."""
    program = run_dir / "init"
    words = ["-O1", "-Wall", "-Wextra", "-Werror", "-static", f"-I{paths.SUITES / 'pieces'}"]
    words += ["-o", str(program), str(source)]
    done = host.run([host.need(find_arch(kernel.arch).cc), *words])
    assert done.returncode == 0, done.stderr
    initrd = build_initramfs(program, "", run_dir / "initramfs.cpio")
    return SmallGuest(kernel, initrd, run_dir, storage_mb, limit_s, latency)


def claims_of(console: str) -> list[str]:
    """The lines of a small guest's claims; AssertionError if one is not so, it did not end, or its
    kernel complained."""
    lines = [x for x in console.splitlines() if x.startswith(("ok ", "not ok "))]
    wrong = [x for x in lines if x.startswith("not")]
    notes = [x for x in console.splitlines() if x.startswith("note ")]
    told = "\n".join([*wrong, *notes, console[-3000:]])
    assert "\ndone\n" in console, told
    assert wrong == [], told
    assert splats(console) == [], told
    return lines


def scale_step(ns: int, n: int = 1000, **more: Any) -> dict[str, Any]:
    """What a guest of `cohort scale` says of a step: `n` faults of one process in `ns` in all."""
    step = {"r": "scale", "op": "fault", "kind": "process", "workers": 1, "scheme": "booted"}
    return step | {"n": n, "ns": ns} | more


def scale_lock(name: str, acquired: int, total_us: float, least_us: float = 0.1) -> dict[str, Any]:
    """What it says of a class of locks in that step: times it was taken, and held in all."""
    waits = "0 0 0.00 0.00 0.00 0.00"
    average = total_us / acquired
    line = f"{name}: {waits} 3 {acquired} {least_us:.2f} 9.00 {total_us:.2f} {average:.2f}"
    return {"r": "lock", "op": "fault", "kind": "process", "workers": 1, "line": line}
