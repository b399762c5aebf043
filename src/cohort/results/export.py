"""What a comparison leaves for other programs, and which runs a verb's last call made."""

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cohort import host, paths
from cohort.errors import UsageError
from cohort.results.rundir import RunDir
from cohort.results.runs import Result

COMPARE, SCALE = "compare", "scale"
"""Verbs whose last runs are noted."""


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


def remember(runs: Sequence[RunDir], command: str, verb: str) -> None:
    """Note the runs and the command of the verb that made them. Raises OSError."""
    found = [str(run.path) for run in runs]
    host.write_json(_note(verb), {"command": command, "runs": found})


def recall(verb: str = COMPARE) -> list[Path]:
    """The run directories of the verb's last call. Raises UsageError if there was none, or its note
    cannot be read."""
    note, call = _note(verb), f"`cohort {verb}`"
    try:
        return [Path(run) for run in json.loads(note.read_text(encoding="utf-8"))["runs"]]
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no last `cohort {verb}`", f"run `cohort {verb}` first"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{note}: not what {call} leaves: {error!r}",
            f"run {call} again, or name the run directories",
        ) from error


def _note(verb: str) -> Path:
    return paths.out_dir() / f"last-{verb}.json"


def _host(results: Sequence[Result]) -> dict[str, Any]:
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "cpus": host.cpus(),
        "memory_mb": host.memory() >> 20,
        "versions": results[0].meta.get("versions", {}),
    }
