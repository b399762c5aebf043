"""What `out/` holds, by kind, and the removal of what was not used for long.

An entry is what is used and removed as one: a directory, or a file with those that belong to it.
What a command makes again where it is not there are entries. The fetched kernel source, in which
the user may have edited, and what `study`, `tune`, `report` and the last comparison left are none.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cohort import paths
from cohort.errors import HostError
from cohort.kept import alone, is_gone, mounted_below, remove
from cohort.kernel import source

SUFFIXES = {".img", ".lock", ".part", ".pci", ".so"}
"""Files whose names differ in these alone are one entry: an image, its copy, its lock."""
SUITES = ("images", "programs", "roots", "runs", "selftests")
"""Directories of out/suites."""
HOMES = re.compile(r"tests|builds|gw[0-9]+")
"""Where tests put what they make: output directories in the output directory."""
BLOCK = 512
"""Bytes of a block, as stat counts them."""


@dataclass(frozen=True)
class Entry:
    """Files and directories that are one. `within` are the directories that a command which uses
    them holds; `bytes` are those on the disk, and `used` is the second of the last use since 1970,
    0 for what an interrupted removal left."""

    paths: tuple[Path, ...]
    within: tuple[Path, ...]
    bytes: int = 0
    used: float = 0.0

    @property
    def path(self) -> Path:
        """The first, after which it is called."""
        return self.paths[0]


@dataclass
class Holding:
    """The entries of a kind, and what became of those that were to be removed."""

    kind: str
    entries: list[Entry]
    old: list[Entry] = field(default_factory=list)
    removed: list[Entry] = field(default_factory=list)
    in_use: list[Entry] = field(default_factory=list)
    failed: dict[Path, HostError] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """On the disk."""
        return total(self.entries)

    @property
    def used(self) -> float:
        """When any of it was used last, seconds since 1970; 0 if nothing is there."""
        return max((entry.used for entry in self.entries), default=0.0)


def total(entries: Iterable[Entry]) -> int:
    """Their bytes on the disk."""
    return sum(entry.bytes for entry in entries)


def _kernels(out: Path) -> Iterator[Entry]:
    """Build directories, the images that were booted, packages, and what `--compile` left."""
    top = out / "kernel"
    for at in (top, top / "images", top / "deb") if _is_own(top) else ():
        for path in _children(at):
            if path.is_dir() and path.name not in ("images", "deb", f"linux-{source.SERIES}"):
                yield Entry((path,), (top,))


def _suites(out: Path) -> Iterator[Entry]:
    top = out / "suites"
    for name in SUITES if _is_own(top) else ():
        yield from _grouped(top / name, top)


def _runs(out: Path) -> Iterator[Entry]:
    """Each with its lock. One that failed, or was cut off, is an entry of its own."""
    top = out / "runs"
    for path in _children(top):
        locks = [lock] if (lock := top / ".locks" / path.name).is_file() else []
        yield Entry((path, *locks), (top,))


def _tests(out: Path) -> Iterator[Entry]:
    """What is in a directory of tests is held as that of any other output directory."""
    for path in _children(out):
        if is_gone(path):
            yield Entry((path,), (path,))
        elif HOMES.fullmatch(path.name) and _is_own(path):
            yield Entry((path,), (path, *filter(_is_own, sorted(path.iterdir()))))


KINDS = {
    "kernels": _kernels,
    "storage": lambda out: _grouped(out / "storage"),
    "guests": lambda out: _grouped(out / "guest"),
    "programs": lambda out: _grouped(out / "programs"),
    "suites": _suites,
    "runs": _runs,
    "kunit": lambda out: _grouped(out / "kunit"),
    "cache": lambda out: _grouped(out / "cache"),
    "tests": _tests,
}
"""By the word of --kind, what finds its entries in an output directory."""


def _is_own(path: Path) -> bool:
    """Whether it is a directory and no link: what that leads to is another output directory's."""
    return path.is_dir() and not path.is_symlink()


def _children(at: Path) -> list[Path]:
    """What is in a directory, hidden things left out but for what a removal left."""
    if not _is_own(at):
        return []
    return sorted(x for x in at.iterdir() if is_gone(x) or not x.name.startswith("."))


def _grouped(at: Path, within: Path | None = None) -> Iterator[Entry]:
    """The entries in a directory, by names without SUFFIXES."""
    groups: dict[str, list[Path]] = {}
    for path in _children(at):
        name = path.stem if path.suffix in SUFFIXES else path.name
        groups.setdefault(name, []).append(path)
    yield from (Entry(tuple(group), (within or at,)) for group in groups.values())


def holdings(kinds: Sequence[str] = ()) -> list[Holding]:
    """What is there of these kinds, or of all. OSError for what cannot be read."""
    out = paths.out_dir().resolve()
    wanted = kinds or tuple(KINDS)
    return [Holding(x, [_measured(entry) for entry in KINDS[x](out)]) for x in KINDS if x in wanted]


def _measured(entry: Entry) -> Entry:
    """With its size, and the newest change of anything in it: no use is newer."""
    found = [size for path in entry.paths for size in _sizes(path)]
    used = 0.0 if is_gone(entry.path) else max((time for _, time in found), default=0.0)
    return Entry(entry.paths, entry.within, sum(size for size, _ in found), used)


def size_of(path: Path) -> int:
    """Bytes on the disk of all that is at `path` or below."""
    return sum(size for size, _ in _sizes(path))


def _sizes(path: str | Path) -> Iterator[tuple[int, float]]:
    """Bytes on the disk and time of change of what is at `path` and below, links not followed.
    What goes meanwhile is left out: others work here."""
    try:
        status = os.lstat(path)
        yield status.st_blocks * BLOCK, status.st_mtime
        with os.scandir(path) as inside:
            below = list(inside)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in below:
        if entry.is_dir(follow_symlinks=False):
            yield from _sizes(entry.path)
        else:
            yield from _size(entry)


def _size(entry: "os.DirEntry[str]") -> Iterator[tuple[int, float]]:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    yield status.st_blocks * BLOCK, status.st_mtime


def choose(found: Sequence[Holding], before: float) -> None:
    """Note of each kind what was last used before that second since 1970, the oldest first."""
    for holding in found:
        old = [entry for entry in holding.entries if entry.used < before]
        holding.old = sorted(old, key=lambda entry: entry.used)


def remove_old(found: Sequence[Holding], before: float) -> None:
    """Remove what was chosen, and note what became of it.

    What another command holds stays, and what was used since it was looked at. So does what cannot
    be removed; that of another user may then be left in a part.
    """
    for holding in found:
        for entry in holding.old:
            try:
                _remove(entry, holding, before)
            except OSError as error:
                holding.failed[entry.path] = HostError(
                    f"{error.filename or entry.path} cannot be removed: {error.strerror or error}",
                    "call cohort clean as the user that made it: root, or with sudo",
                )
            except HostError as error:
                holding.failed[entry.path] = error


def _remove(entry: Entry, holding: Holding, before: float) -> None:
    with alone(entry.within) as free:
        if not free:
            holding.in_use.append(entry)
        elif _last_change(entry) < before:
            for path in entry.paths:
                _remove_one(path)
            holding.removed.append(entry)


def _last_change(entry: Entry) -> float:
    """Seconds since 1970; what a use notes is of the entry itself, so that is looked at alone."""
    if is_gone(entry.path):
        return 0.0
    return max((os.lstat(x).st_mtime for x in entry.paths if x.exists()), default=0.0)


def _remove_one(path: Path) -> None:
    """HostError for a directory in which something is mounted: that would be emptied, too."""
    if mounts := mounted_below(path):
        raise HostError(f"{mounts[-1]} is still mounted", f"umount {mounts[-1]}")
    if path.exists() or path.is_symlink():
        remove(path)
