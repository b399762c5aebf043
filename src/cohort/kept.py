"""What `out/` keeps for later commands: that it is in use, when it was used last, how it goes.

A command holds each directory of `out/` that it asks for (`cohort.paths.made`) until it ends,
shared with others, by a lock of the directory itself, which needs no file and dies with the
process. `cohort clean` removes nothing of a directory that it does not hold alone. When something
was used, its time of change tells.
"""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path
from threading import Event, Lock, get_native_id

from cohort import host

GONE = ".gone"
"""The directory, beside what is removed, that it lies in until all of it is: no name that a command
looks for leads there."""
MOUNTS = Path("/proc/self/mounts")
EXACT_S = 3600.0
"""Seconds to which a time of use is told: an image's digest is read again when its time changed."""

_held: dict[Path, int] = {}
"""Open directories that are locked, by their names."""
_changing = Lock()


def hold(directory: Path) -> None:
    """Keep `directory` from being cleaned until this process ends. Waits for one that cleans it,
    which is told after a second. OSError if it cannot be opened. On a file system without such
    locks nothing is held, and `alone` fails."""
    with _changing:
        if directory in _held:
            if _is_open(_held[directory], directory):
                return
            os.close(_held.pop(directory))
        file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            host.wait_for_lock(file, LOCK_SH, directory, Event())
        except OSError:
            return os.close(file)
        except BaseException:
            os.close(file)
            raise
        _held[directory] = file


def _is_open(file: int, directory: Path) -> bool:
    """Whether the directory of that name is the one that was opened, and not made anew since."""
    return os.path.samestat(os.fstat(file), directory.stat())


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
    is not noted."""
    with suppress(OSError):
        if path.stat().st_mtime < time.time() - EXACT_S:
            os.utime(path)
    return path


def mounted_below(path: Path) -> list[Path]:
    """Where something is mounted at `path` or below, in the order in which it was."""
    places = (Path(line.split()[1]) for line in MOUNTS.read_text().splitlines())
    return [place for place in places if place.is_relative_to(path)]


def remove(path: Path) -> None:
    """Remove a file or a directory that another process sees whole or not at all, also if this one
    is killed meanwhile: what is left then lies in GONE. OSError for what cannot be removed."""
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    aside = path.parent / GONE
    aside.mkdir(exist_ok=True)
    going = aside / f"{path.name}.{get_native_id()}"
    path.rename(going)
    shutil.rmtree(going)
    with suppress(OSError):  # something of another process is in it
        aside.rmdir()
