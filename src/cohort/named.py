"""What lies in a directory of TOML files and is called by its name: policies, workloads."""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from cohort.errors import UsageError


def near(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the one of the known names that may be meant; None if none is near."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]}?" if close else None


def hint(name: str, known: Iterable[str], said: str = "known") -> str:
    """The same, or all names that there are: of fifty the one that is meant would be lost."""
    known = list(known)
    return near(name, known) or f"{said}: {', '.join(known)}"


def with_hint(message: str) -> tuple[str, str | None]:
    """A message that ends in such a hint, behind a semicolon, and the hint by itself."""
    said, _, meant = message.partition("; did you mean ")
    return said, f"did you mean {meant}" if meant else None


SUFFIX = ".toml"
SHORT = 12
"""As many names can be read in a hint."""
ANYHOW = 0.3
"""How near the nearest of many names is, if none is near."""


def of_many(name: str, known: Sequence[str], listed: str) -> str:
    """The same, but of more than SHORT names that there are, of which none is near, the nearest,
    and what lists all of them."""
    if len(known) <= SHORT or near(name, known):
        return hint(name, known)
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=ANYHOW)
    return f"all {len(known)}: {listed}{f'; the nearest is {nearest[0]}' if nearest else ''}"


def no_file(path: Path, directory: Path) -> str:
    """A hint for a path without a file: the name in `directory`, whose files need no path, the file
    beside it that may be meant, or what `of_many` says of the names."""
    names = sorted(file.stem for file in directory.glob(f"*{SUFFIX}"))
    beside = sorted(file.stem for file in path.parent.glob(f"*{SUFFIX}"))
    meant = difflib.get_close_matches(path.stem, beside, n=1)
    if meant and path.stem not in names:
        return f"did you mean {path.with_name(f'{meant[0]}{SUFFIX}')}?"
    return of_many(path.stem, names, f"ls {directory}")


def find(
    kind: str, name_or_path: str, directory: Path, known: list[str], listed: str | None = None
) -> Path:
    """The file of a name without slash and suffix in `directory`; a path as it is.

    Raises UsageError naming the `kind` and the closest of the `known` names; if none is close, all
    or, of many, what lists them: the command `listed`, or where they lie.
    """
    if name_or_path.endswith(SUFFIX) or "/" in name_or_path:
        return Path(name_or_path)
    if name_or_path not in known:
        raise UsageError(
            f"no {kind} named {name_or_path!r}",
            of_many(name_or_path, known, listed or f"ls {directory}"),
        )
    return directory / f"{name_or_path}{SUFFIX}"
