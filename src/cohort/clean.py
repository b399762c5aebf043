"""What `out/` holds, by kind, and the removal of what was not used for long.

An entry is what is used and removed as one: a directory, or a file with those that belong to it.
What a command makes again where it is not there are entries, by the names that commands give them.
COHORT_OUT may name a directory in which the user has others: those are none. Nor are a link, the
fetched kernel source, in which the user may have edited, and what `study`, `tune`, `report` and the
last comparison left.
"""

import errno
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cohort import paths
from cohort.errors import HostError
from cohort.kept import alone, is_gone, mounted_below, remove
from cohort.kernel import source

SUFFIXES = {".img", ".lock", ".part", ".pci", ".so"}
"""Files whose names differ in these alone are one entry: an image, its copy, its lock."""
LEFT = r"|tmp\w{8}"
"""What a command that was killed had begun to make."""
KEYED = rf"[0-9a-f]{{16}}(\..+)?{LEFT}"
"""What is called by its content alone."""
SUITES = {
    **dict.fromkeys(("images", "programs", "selftests"), KEYED),
    **{"roots": rf"\w+-{KEYED}", "runs": ".+"},
}
"""Directories of out/suites, and the names in them."""
RUNS = re.compile(r".+-s\d+-[0-9a-f]{8}(\.part|\.failed)?")
BUILDS = ("build.lock", "check.lock")
"""One of them is in each directory of out/kernel in which make was called."""
HOMES = re.compile(r"tests|gw[0-9]+")
"""Where tests put what they make: output directories in the output directory, which share these."""
SHARED = ("kernel", "storage")
BLOCK = 512
"""Bytes of a block, as stat counts them."""


@dataclass(frozen=True)
class Entry:
    """Files and directories that are one. `within` are the directories that a command which uses
    them holds; `bytes` are those on the disk, and `changed` is the second of the newest change of
    anything in them since 1970, 0 for what an interrupted removal left. No use is newer, and
    `used` is no second to come: a clock was wrong."""

    paths: tuple[Path, ...]
    within: tuple[Path, ...]
    bytes: int = 0
    changed: float = 0.0
    used: float = 0.0

    @property
    def path(self) -> Path:
        """The first, after which it is called."""
        return self.paths[0]

    @property
    def is_there(self) -> bool:
        """Whether any of it is on the disk by now."""
        return any(os.path.lexists(path) for path in self.paths)


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
    """Build directories, the images that were booted, packages, and what `--compile` left. A kernel
    tree is none of them."""
    top, unpacked = out / "kernel", f"linux-{source.SERIES}.part"
    for path in _children(top):
        built = any((path / name).is_file() for name in BUILDS)
        if is_gone(path) or built or path.name == unpacked:
            yield Entry((path,), (top,))
    for at in (top / "images", top / "deb") if _is_own(top) else ():
        yield from (Entry((path,), (top,)) for path in _children(at) if path.is_dir())


def _suites(out: Path) -> Iterator[Entry]:
    top = out / "suites"
    for name, pattern in SUITES.items() if _is_own(top) else ():
        yield from _grouped(top / name, pattern, top)


def _runs(out: Path) -> Iterator[Entry]:
    """Each with its lock. One that failed, or was cut off, is an entry of its own."""
    top = out / "runs"
    for path in _children(top):
        if not (is_gone(path) or (path.is_dir() and RUNS.fullmatch(path.name))):
            continue
        locks = [lock] if (lock := top / ".locks" / path.name).is_file() else []
        yield Entry((path, *locks), (top,))


def _tests(out: Path) -> Iterator[Entry]:
    """What is in a directory of tests is held as that of any other output directory."""
    for path in _children(out):
        if is_gone(path):
            yield Entry((path,), (path,))
        elif HOMES.fullmatch(path.name) and all((path / name).is_symlink() for name in SHARED):
            yield Entry((path,), (path, *filter(_is_own, sorted(path.iterdir()))))
    builds = out / "builds"
    for path in _children(builds):
        if is_gone(path) or (path / ".config").is_file():
            yield Entry((path,), (builds,))


KINDS = {
    "kernels": _kernels,
    "storage": lambda out: _grouped(out / "storage", KEYED),
    "guests": lambda out: _grouped(out / "guest", KEYED),
    "programs": lambda out: _grouped(out / "programs", rf"apt-\w+|{KEYED}"),
    "suites": _suites,
    "runs": _runs,
    "kunit": lambda out: _grouped(out / "kunit", r"\d+\.\d+.*-\w{8}"),
    "cache": lambda out: _grouped(out / "cache", rf"(kvm|packed|steady)-{KEYED}"),
    "tests": _tests,
}
"""By the word of --kind, what finds its entries in an output directory."""


def _is_own(path: Path) -> bool:
    """Whether it is a directory and no link: what that leads to is another output directory's."""
    return path.is_dir() and not path.is_symlink()


def _children(at: Path) -> list[Path]:
    """What is in a directory, links and hidden things left out but for what a removal left. A use
    is noted of what a link leads to, so of the link nothing tells when it was used."""
    if not _is_own(at):
        return []
    own = (x for x in at.iterdir() if not x.is_symlink())
    return sorted(x for x in own if is_gone(x) or not x.name.startswith("."))


def _grouped(at: Path, pattern: str, within: Path | None = None) -> Iterator[Entry]:
    """The entries in a directory, by names without SUFFIXES that fit the pattern."""
    groups: dict[str, list[Path]] = {}
    for path in _children(at):
        name = path.stem if path.suffix in SUFFIXES else path.name
        if is_gone(path) or re.fullmatch(pattern, name):
            groups.setdefault(name, []).append(path)
    yield from (Entry(tuple(group), (within or at,)) for group in groups.values())


def holdings(now: float, kinds: Sequence[str] = ()) -> list[Holding]:
    """What is there of these kinds, or of all, at this second since 1970. OSError for what cannot
    be read."""
    out = paths.out_dir().resolve()
    wanted = kinds or tuple(KINDS)
    return [
        Holding(kind, [_measured(entry, now) for entry in KINDS[kind](out)])
        for kind in KINDS
        if kind in wanted
    ]


def _measured(entry: Entry, now: float) -> Entry:
    """With its size and its time."""
    found = [size for path in entry.paths for size in _sizes(path)]
    size = sum(size for size, _ in found)
    changed = 0.0 if is_gone(entry.path) else max((time for _, time in found), default=0.0)
    return Entry(entry.paths, entry.within, size, changed, min(max(changed, 0.0), now))


def size_of(path: Path) -> int:
    """Bytes on the disk of all that is at `path` or below."""
    return sum(size for size, _ in _sizes(path))


def _sizes(path: str | Path) -> Iterator[tuple[int, float]]:
    """Bytes on the disk and time of change of what is at `path` and below, links not followed.
    What goes meanwhile is left out, as others work here, and what this user may not read: a root of
    Debian has such directories."""
    try:
        status = os.lstat(path)
        yield status.st_blocks * BLOCK, status.st_mtime
        with os.scandir(path) as inside:
            below = list(inside)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
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
    """Note of each kind what was last used at that second since 1970, or before; oldest first."""
    for holding in found:
        old = [entry for entry in holding.entries if entry.used <= before]
        holding.old = sorted(old, key=lambda entry: entry.used)


def remove_old(found: Sequence[Holding]) -> None:
    """Remove what was chosen, and note what became of it.

    What another command holds stays, and what was used since it was looked at. So does what cannot
    be removed; of a directory in which another user has something a part may then be gone.
    """
    for holding in found:
        for entry in holding.old:
            try:
                _remove(entry, holding)
            except OSError as error:
                holding.failed[entry.path] = _failure(entry, error)
            except HostError as error:
                holding.failed[entry.path] = error


def _failure(entry: Entry, error: OSError) -> HostError:
    """The same in words, with what to do about it."""
    hint = f"rm -r {shlex.quote(str(entry.path))}, while no cohort uses it"
    if error.errno in (errno.EACCES, errno.EPERM):
        hint = "call cohort clean as the user that made it: root, or with sudo"
    what = error.strerror or error
    return HostError(f"{error.filename or entry.path} cannot be removed: {what}", hint)


def _remove(entry: Entry, holding: Holding) -> None:
    if not entry.is_there:  # another process was faster
        return
    with alone(entry.within) as free:
        if not free:
            holding.in_use.append(entry)
        elif _measured(entry, entry.used).changed == entry.changed:
            for path in entry.paths:
                _remove_one(path)
            holding.removed.append(entry)


def _remove_one(path: Path) -> None:
    """HostError for a directory in which something is mounted: that would be emptied, too."""
    if mounts := mounted_below(path):
        place = shlex.quote(str(mounts[-1]))
        raise HostError(f"{mounts[-1]} is still mounted", f"umount {place}")
    if os.path.lexists(path):
        remove(path)
