"""Workloads by name: find, read, check; errors name the file, the line and the key."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cohort import named, paths, tomlfile
from cohort.errors import UsageError
from cohort.phone.conf import render_conf
from cohort.phone.schema import NAME, RULE, Workload
from cohort.phone.sequence import all_launches, launch_sequence, launch_weights

__all__ = [
    "Workload",
    "all_launches",
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

    `extends = "NAME"` in a file takes everything from another workload of its directory, or of
    `workloads/`; tables are merged key by key. `change` replaces numbers by their dotted keys
    ("exit.programs").

    Raises UsageError for an unknown name or a bad file ("file:line: key: what is wrong").
    """
    path = named.find("workload", str(name_or_path), paths.WORKLOADS, workload_names())
    data = tomlfile.read_extending(path, "workload", paths.WORKLOADS, _extend, _validate)
    found = _validate(path, data)
    if not change:
        return found
    for key, value in change.items():
        _replace(path, data, key, value)
    return _validate(path, data, change)


def _extend(base: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    """A whole workload over another one. It does not inherit the name: it is called as its file."""
    return _merge({key: value for key, value in base.items() if key != "name"}, child)


def _merge(base: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    """`child` over `base`; a number is replaced with its source and note."""
    merged = dict(base)
    for key, value in child.items():
        old = base.get(key)
        deeper = isinstance(old, dict) and isinstance(value, dict) and "value" not in value
        merged[key] = _merge(old or {}, value) if deeper else value
    return merged


def _replace(path: Path, data: dict[str, Any], key: str, value: int) -> None:
    """Put another value at a dotted key that is there. UsageError, with the nearest key, for one
    that is not."""
    *tables, name = key.split(".")
    place: Any = data
    for table in tables:
        place = place.get(table) if isinstance(place, dict) else None
    number = place.get(name) if isinstance(place, dict) else None
    if not isinstance(number, dict) or "value" not in number:
        what = f"{path}: {key}: there is no such number to change"
        raise UsageError(what, named.near(key, _numbers(data)))
    place[name] = {"value": value, "source": "assumed", "note": "changed for this run"}


def _numbers(data: dict[str, Any], above: str = "") -> Iterator[str]:
    """The dotted keys of all numbers."""
    for key, value in data.items():
        if isinstance(value, dict) and "value" in value:
            yield f"{above}{key}"
        elif isinstance(value, dict):
            yield from _numbers(value, f"{above}{key}.")


def _validate(
    path: Path, data: dict[str, Any], change: Mapping[str, int] | None = None
) -> Workload:
    """The workload that a file, which was good before the `change`, says. UsageError for a bad one,
    with the file's line or, if it was changed, with the numbers that were."""
    named_data = tomlfile.with_name(path, data, NAME, f"a workload is: {RULE}")
    try:
        return Workload.model_validate(named_data)
    except ValidationError as error:
        if change:
            key, what = tomlfile.first_problem(error)
            other = ", ".join(f"{name}={value}" for name, value in change.items())
            said = f"{path} with {other}: {tomlfile.shown(key)}: {what}"
            raise UsageError(said) from error
        raise tomlfile.explain(path, error, "workload", Workload, (tomlfile.EXTENDS,)) from error
