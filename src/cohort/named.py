"""What lies in a directory of TOML files and is called by its name: policies, workloads."""

import difflib
from pathlib import Path

from cohort.errors import UsageError


def find(kind: str, name_or_path: str, directory: Path, known: list[str]) -> Path:
    """The file of a name without slash and suffix in `directory`; a path as it is.

    Raises UsageError naming the `kind` and the closest of the `known` names, or all if none is.
    """
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        return Path(name_or_path)
    path = directory / f"{name_or_path}.toml"
    if not path.is_file():
        close = difflib.get_close_matches(name_or_path, known, n=1)
        # Of fifty names the one that is meant is lost.
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
        raise UsageError(f"no {kind} named {name_or_path!r}", hint)
    return path
