"""Metrics of the distribution's benchmarks, from what they print themselves."""

import re

import pandas as pd

from cohort.errors import CohortError
from cohort.results.catalogue import METRICS
from cohort.results.experiments import Number
from cohort.units import MIB, PAGE

_NAMES = tuple(m.name for m in METRICS if m.name.startswith(("sysbench_", "fio_")))
_SYSBENCH = re.compile(r"total time:\s+([0-9.]+)s")
_FIO_READ_MS, _FIO_WRITE_MS = 8, 49
"""Places of the run times in fio's terse output, version 3."""


def bench_metrics(bench: pd.DataFrame) -> dict[str, Number]:
    """Seconds of each test and the page cache after it; None for tests that were not run."""
    values: dict[str, Number] = dict.fromkeys(_NAMES)
    sums = {"sysbench_fileio_s": 0.0, "fio_s": 0.0}
    for row in bench.to_dict("records"):
        program, _, test = str(row["name"]).rpartition("-")
        program = program or "sysbench"
        seconds = seconds_of(program, str(row["output"]))
        values[f"{program}_{test}_s"] = seconds
        values[f"{program}_{test}_cache_mb"] = _mb(row["file_after"])
        if test == "memory":
            values["sysbench_memory_cache_mb_before"] = _mb(row["file_before"])
            values["sysbench_memory_free_mb_before"] = _mb(row["free_before"])
            values["sysbench_memory_free_mb"] = _mb(row["free_after"])
        else:
            sums["fio_s" if program == "fio" else "sysbench_fileio_s"] += seconds
    return values | {name: total for name, total in sums.items() if total}


def seconds_of(program: str, output: str) -> float:
    """The run time a program printed. CohortError if it printed none."""
    if program == "sysbench" and (found := _SYSBENCH.search(output)):
        return float(found[1])
    fields = next((x.split(";") for x in output.splitlines() if x.startswith("3;fio-")), [])
    if len(fields) <= _FIO_WRITE_MS:
        raise CohortError(f"{program} printed no run time: {output[-200:]!r}")
    return max(float(fields[_FIO_READ_MS]), float(fields[_FIO_WRITE_MS])) / 1000


def _mb(pages: object) -> float:
    return float(str(pages)) * PAGE / MIB
