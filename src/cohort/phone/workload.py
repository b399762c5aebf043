"""Workloads by name: find, read, check; errors name the file, the line and the key."""

import re
import tomllib
from pathlib import Path

from pydantic import ValidationError

from cohort import named, paths
from cohort.errors import UsageError
from cohort.phone.conf import launch_sequence, launch_weights, render_conf
from cohort.phone.schema import Workload

__all__ = [
    "Workload",
    "launch_sequence",
    "launch_weights",
    "load_workload",
    "render_conf",
    "workload_names",
]


def workload_names(directory: Path | None = None) -> list[str]:
    """Names of the workloads in `directory`, by default the repository's."""
    return sorted(path.stem for path in (directory or paths.WORKLOADS).glob("*.toml"))


def load_workload(name_or_path: str | Path) -> Workload:
    """The workload of that name, or in the TOML file at that path.

    Raises UsageError for an unknown name or a bad file ("file:line: key: what is wrong").
    """
    path = named.find("workload", str(name_or_path), paths.WORKLOADS, workload_names())
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from error
    try:
        return Workload.model_validate(data)
    except ValidationError as error:
        raise UsageError(_explain(path, text, error)) from error


def _explain(path: Path, text: str, error: ValidationError) -> str:
    """The first thing wrong, as file:line: key: what."""
    problem = error.errors()[0]
    what = problem["msg"].removeprefix("Value error, ")
    keys = [str(x) for x in problem["loc"] if x not in ("[key]", "int", "float")]
    if not keys and ": " in what:
        where, what = what.split(": ", 1)
        keys = where.split(".")
    return f"{path}:{_line_of(text, keys)}: {'.'.join(keys) or 'workload'}: {what}"


def _line_of(text: str, keys: list[str]) -> int:
    """The line of the longest part of the dotted key that the file has, else 1."""
    best, depth, table = 1, 0, [""]
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[?([^\]]+)\]", line):
            here = table = [x.strip("\" '") for x in header[1].split(".")]
        elif key := re.match(r"\s*([\w.\"'-]+)\s*=", line):
            here = [x for x in [*table, *key[1].split(".")] if x]
        else:
            continue
        common = _common([x for x in keys if not x.isdigit()], here)
        if common == len(here) and common > depth:
            best, depth = number, common
    return best


def _common(a: list[str], b: list[str]) -> int:
    """Length of the common beginning."""
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n
