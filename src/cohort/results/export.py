"""What a comparison leaves for other programs and for `cohort report --last`."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cohort import host, paths
from cohort.errors import UsageError
from cohort.results.runs import Result

_PAGE_COUNT, _PAGE_SIZE = "SC_PHYS_PAGES", "SC_PAGE_SIZE"


def as_object(results: Sequence[Result]) -> dict[str, Any]:
    """The comparison as one object: the host, and each run with all metrics and series."""
    return {
        "host": _host(results),
        "runs": [
            {
                "policy": result.policy,
                "seed": result.seed,
                "workload": result.workload,
                "accel": result.accel,
                "path": str(result.path),
                "metrics": dict(result.metrics),
                "series": result.series,
            }
            for result in results
        ],
    }


def remember(results: Sequence[Result], command: str) -> None:
    """Note the runs and the command that made them. Raises OSError."""
    runs = [str(result.path) for result in results]
    host.write_json(_note(), {"command": command, "runs": runs})


def recall() -> list[Path]:
    """The run directories of the last comparison. Raises UsageError if there was none, or its note
    cannot be read."""
    again = "run `cohort compare` again, or name the run directories"
    try:
        return [Path(run) for run in json.loads(_note().read_text(encoding="utf-8"))["runs"]]
    except FileNotFoundError as error:
        raise UsageError("there is no last comparison", "run `cohort compare` first") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{_note()}: not what a comparison leaves: {error!r}", again) from error


def _note() -> Path:
    return paths.out_dir() / "last-compare.json"


def _host(results: Sequence[Result]) -> dict[str, Any]:
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "memory_mb": os.sysconf(_PAGE_COUNT) * os.sysconf(_PAGE_SIZE) >> 20,
        "versions": results[0].meta.get("versions", {}),
    }
