"""The benchmarks of a workload as lines of the guest's conf: real sysbench and fio.

IOzone, which the PCPA paper uses, is not packaged; fio makes the same six passes over one file.
"""

from collections.abc import Iterator

from cohort.phone.schema import Bench

PROGRAMS = ("sysbench", "fio")
FILEIO = ("seqrd", "rndrd", "seqwr")
PASSES = {
    "write": "write",
    "rewrite": "write",
    "read": "read",
    "reread": "read",
    "rndrd": "randread",
    "rndwr": "randwrite",
}
"""Passes of IOzone in its order, and what fio calls them."""

_FILES = 16
_MEMORY_THREADS = 32


def lines(bench: Bench) -> Iterator[str]:
    """`experiment` and `program` lines as guest/base/conf.c reads them."""
    kb = 1024
    keys = {
        "hold_kb": bench.hold_mb.value * kb,
        "fill_kb": bench.fill_mb.value * kb,
        "quiet_ms": bench.quiet_ms.value,
    }
    yield " ".join(["experiment", "bench", *(f"{key}={value}" for key, value in keys.items())])
    if set(bench.tests) & set(FILEIO):
        yield f"program prepare prepare {_fileio(bench, 'seqwr')} prepare"
    for test in bench.tests:
        if test in FILEIO:
            yield f"program {test} fresh {_fileio(bench, test)} run"
        elif test == "memory":
            yield f"program memory fresh {_memory(bench)}"
        else:
            yield from _fio(bench)


def _fileio(bench: Bench, mode: str) -> str:
    """As many requests as the files have blocks, however long that takes."""
    total, block = bench.total_mb.value, bench.block_kb.value
    words = [
        *("sysbench", "--rand-seed=1", "--threads=1", "--time=0"),
        *(f"--events={total * 1024 // block}", "fileio", f"--file-num={_FILES}"),
        *(f"--file-total-size={total}M", f"--file-block-size={block * 1024}"),
        *("--file-fsync-freq=0", f"--file-test-mode={mode}"),
    ]
    return " ".join(words)


def _memory(bench: Bench) -> str:
    words = [
        *("sysbench", "--rand-seed=1", f"--threads={_MEMORY_THREADS}", "--time=0", "memory"),
        f"--memory-block-size={bench.memory_block_kb.value}K",
        *(f"--memory-total-size={bench.memory_total_mb.value}M", "run"),
    ]
    return " ".join(words)


def _fio(bench: Bench) -> Iterator[str]:
    """The first pass makes the file; each finds what the one before left in the page cache.

    The last deletes it, as IOzone does: the page cache after it is what survived of the rest.
    """
    for i, (name, rw) in enumerate(PASSES.items()):
        words = [
            *("fio", f"--name={name}", "--filename=fio.tmp", f"--rw={rw}"),
            *(f"--bs={bench.block_kb.value}k", f"--size={bench.total_mb.value}M"),
            *("--ioengine=psync", "--thread", "--invalidate=0", "--fallocate=none"),
            *("--disk_util=0", "--output-format=terse", "--terse-version=3"),
        ]
        words += ["--unlink=1"] if i == len(PASSES) - 1 else []
        yield f"program fio-{name} {'next' if i else 'fresh'} {' '.join(words)}"
