"""The directory of a finished run: what was run, and what its guest said."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cohort.errors import Failed, UsageError
from cohort.kept import is_gone
from cohort.results.record_schema import BAD_BYTES

UNFINISHED = (".part", ".failed")
"""How the names of directories end that no run has finished in."""
MAKE_AGAIN = "make the run again, with --fresh, or remove its directory"


@dataclass(frozen=True)
class RunDir:
    """A finished run."""

    path: Path

    @property
    def meta(self) -> dict[str, Any]:
        """What was run, on what, when."""
        return read_object(self.path / "meta.json")

    @property
    def metrics(self) -> dict[str, Any]:
        """The run's metrics by name."""
        return read_object(self.path / "metrics.json")

    def records(self) -> Iterator[dict[str, Any]]:
        """The guest's records in order; Failed names a line that is none, and tells of a file that
        was cut short."""
        path = self.path / "records.jsonl"
        record: dict[str, Any] = {}
        with path.open(encoding="utf-8", errors=BAD_BYTES) as file:
            for number, line in enumerate(file, 1):
                record = _read_record(line, f"{path}:{number}")
                yield record
        if record.get("r") != "end":
            raise Failed(f"{path}: cut short: the guest's last record is not there", MAKE_AGAIN)


def finished(directory: Path) -> list[Path]:
    """The run directories in this one, in order; not those that are being made or removed."""
    found = sorted(path.parent for path in directory.glob("*/meta.json"))
    return [path for path in found if not (is_gone(path) or path.name.endswith(UNFINISHED))]


def _read_record(line: str, where: str) -> dict[str, Any]:
    """A line of what a guest said; Failed, beginning with `where`, for one that is no record."""
    try:
        record = json.loads(line)
    except ValueError as error:
        raise Failed(f"{where}: not a record: {line[:80]!r}", MAKE_AGAIN) from error
    if not isinstance(record, dict):
        raise Failed(f"{where}: not a record: {line[:80]!r}", MAKE_AGAIN)
    return record


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object; UsageError for a file that is none. OSError as files have it."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path}: not what a run leaves: {error}", MAKE_AGAIN) from error
    if not isinstance(value, dict):
        raise UsageError(f"{path}: not what a run leaves: no object", MAKE_AGAIN)
    return value
