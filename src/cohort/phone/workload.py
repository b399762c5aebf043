"""Workloads by name: find, read, check; errors name the file, the line and the key."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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


def load_workload(name_or_path: str | Path, change: Mapping[str, int] | None = None) -> Workload:
    """The workload of that name, or in the TOML file at that path.

    `extends = "NAME"` in a file takes everything from another workload of its directory; tables
    are merged key by key. `change` sets numbers by their dotted keys ("exit.programs").

    Raises UsageError for an unknown name or a bad file ("file:line: key: what is wrong").
    """
    path = named.find("workload", str(name_or_path), paths.WORKLOADS, workload_names())
    data = _read(path, ())
    for key, value in (change or {}).items():
        _set(path, data, key, value)
    return _validate(path, data)


def _read(path: Path, children: tuple[Path, ...]) -> dict[str, Any]:
    """The file's tables on top of those it extends; `children` are the files that led here."""
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from error
    parent = data.pop("extends", None)
    if parent is None:
        return data
    where = f"{path}:{_line_of(text, ['extends'])}: extends"
    base = path.parent / f"{parent}.toml"
    if not isinstance(parent, str) or not base.is_file():
        raise UsageError(f"{where}: no workload {parent!r} beside this file")
    if base in (path, *children):
        raise UsageError(f"{where}: goes round in a circle")
    inherited = _read(base, (path, *children))
    _validate(base, inherited)  # its mistakes are told with its own lines
    return _merge(inherited, data)


def _merge(base: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    """`child` over `base`; a number is replaced with its source and note."""
    merged = dict(base)
    for key, value in child.items():
        old = base.get(key)
        deeper = isinstance(old, dict) and isinstance(value, dict) and "value" not in value
        merged[key] = _merge(old or {}, value) if deeper else value
    return merged


def _set(path: Path, data: dict[str, Any], key: str, value: int) -> None:
    """Put another value at a dotted key that is there."""
    *tables, name = key.split(".")
    place = data
    for table in tables:
        place = place.get(table, {})
    if not isinstance(place, dict) or "value" not in (place.get(name) or {}):
        raise UsageError(f"{path}: {key}: there is no such number to change")
    place[name] = {"value": value, "source": "assumed", "note": "changed for this run"}


def _validate(path: Path, data: dict[str, Any]) -> Workload:
    try:
        return Workload.model_validate(data)
    except ValidationError as error:
        raise UsageError(_explain(path, path.read_text(encoding="utf-8"), error)) from error


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
