"""What `out/` keeps for later commands: that it is in use, when it was used last, how it goes.

A command holds each directory of `out/` that it asks for (`cohort.paths.made`) until it ends,
shared with others, by a lock of the directory itself, which needs no file and dies with the
process. `cohort clean` removes nothing of a directory that it does not hold alone. When something
was used, its time of change tells.
"""

import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path
from threading import Event, Lock
from types import TracebackType
from typing import Any
from uuid import uuid4

from cohort import host

GONE = ".gone"
"""How the name begins that a directory has until all of it is removed: no command looks for it. A
name of its own for each, as the process that chose one may be dead and its id another's."""
MOUNTS = Path("/proc/self/mounts")
EXACT_S = 3600.0
"""Seconds to which a time of use is told: an image's digest is read again when its time changed."""

_held: dict[Path, int] = {}
"""Open directories that are locked, by their names."""
_changing = Lock()


def hold(directory: Path) -> bool:
    """Keep `directory` from being cleaned until this process ends. Waits for one that cleans it,
    which is told after a second. Whether it still has that name then: it may have been removed.
    OSError if it cannot be opened. On a file system without such locks nothing is held, and `alone`
    fails."""
    with _changing:
        if directory in _held:
            if _is_open(_held[directory], directory):
                return True
            os.close(_held.pop(directory))
        try:
            file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return False
        try:
            host.wait_for_lock(file, LOCK_SH, directory, Event())
        except OSError:
            os.close(file)
            return True
        except BaseException:
            os.close(file)
            raise
        _held[directory] = file
        return _is_open(file, directory)


def _is_open(file: int, directory: Path) -> bool:
    """Whether the directory of that name is the one that was opened, and not made anew since."""
    try:
        return os.path.samestat(os.fstat(file), directory.stat())
    except FileNotFoundError:
        return False


def let_go(top: Path) -> None:
    """End what `hold` began in this process, for `top` and all below it."""
    with _changing:
        for directory in [x for x in _held if x.is_relative_to(top)]:
            os.close(_held.pop(directory))


@contextmanager
def alone(directories: Sequence[Path]) -> Iterator[bool]:
    """Whether no other process holds one of these directories; until the end none comes to hold
    one. What this process held of them it holds no longer. OSError for one that is not there."""
    with ExitStack() as stack:
        yield all(_lock_alone(directory, stack) for directory in directories)


def _lock_alone(directory: Path, stack: ExitStack) -> bool:
    let_go(directory)
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    stack.callback(os.close, file)
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return True


def used(path: Path) -> Path:
    """Note that what is kept at `path` is used now; returns `path`. Where that cannot be written it
    is not noted. A time to come, of a clock that was wrong, tells of no use and is put right."""
    with suppress(OSError):
        if abs(path.stat().st_mtime - time.time()) > EXACT_S:
            os.utime(path)
    return path


def mounted_below(path: Path) -> list[Path]:
    """Where something is mounted at `path` or below, in the order in which it was. The kernel tells
    the bytes of names, some of them as numbers: blanks and backslashes."""
    lines = os.fsdecode(MOUNTS.read_bytes()).split("\n")
    names = (line.split(" ")[1] for line in lines if line)
    places = (Path(re.sub(r"\\([0-7]{3})", lambda x: chr(int(x[1], 8)), name)) for name in names)
    return [place for place in places if place.is_relative_to(path)]


def is_gone(path: Path) -> bool:
    """Whether `remove` gave it this name, and was interrupted if it is still there."""
    return path.name.startswith(GONE)


def remove(path: Path) -> None:
    """Remove a file or a directory that another process sees whole or not at all, also if this one
    is killed meanwhile: what is left then has a name that begins with GONE, and takes no room of a
    full disk. OSError for what cannot be removed; a directory that this user may not write to stays
    as it is.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if not is_gone(path):
        path = _renamed(path)
    shutil.rmtree(path, onerror=_pass_over)


def _renamed(path: Path) -> Path:
    going = path.with_name(f"{GONE}-{uuid4().hex}")
    try:
        return path.rename(going)
    except OSError as error:
        # A directory of a container's image has to be copied to get a new name, and is not.
        if error.errno != errno.EXDEV:
            raise
        return path


_Failure = tuple[type[BaseException], BaseException, TracebackType]


def _pass_over(call: Callable[..., Any], path: str, failure: _Failure) -> None:
    """What is not there need not be removed: another process may remove the same."""
    if not isinstance(failure[1], FileNotFoundError):
        raise failure[1]
