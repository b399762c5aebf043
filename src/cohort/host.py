"""Programs of the host: are they there, run them, what version are they; and small file habits."""

import errno
import hashlib
import json
import logging
import os
import shlex
import shutil
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from functools import cache
from pathlib import Path
from threading import Event, get_native_id
from typing import IO, Any

from cohort.errors import MissingTool, Stopped, from_oserror

log = logging.getLogger(__name__)

LOCK_POLL_S = 0.05
LOCK_TOLD_S = 1.0
"""After so long a command says what it waits for."""

# The Debian package each program comes from, for the hint.
PACKAGES = {
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
    "aarch64-linux-gnu-ld": "binutils-aarch64-linux-gnu",
    "adb": "adb",
    "apt-get": "apt",
    "bc": "bc",
    "bison": "bison",
    "busybox": "busybox-static",
    "cpio": "cpio",
    "debootstrap": "debootstrap",
    "depmod": "kmod",
    "dh": "debhelper",
    "dpkg-buildpackage": "dpkg-dev",
    "flex": "flex",
    "gcc": "gcc",
    "debugfs": "e2fsprogs",
    "dpkg-deb": "dpkg",
    "e2fsck": "e2fsprogs",
    "ld": "binutils",
    "make": "make",
    "mke2fs": "e2fsprogs",
    "patch": "patch",
    "perl": "perl",
    "readelf": "binutils",
    "qemu-system-aarch64": "qemu-system-arm",
    "fdtput": "device-tree-compiler",
    "qemu-system-x86_64": "qemu-system-x86",
    "rsync": "rsync",
    "setpriv": "util-linux",
    "ssh": "openssh-client",
    "tar": "tar",
    "umount": "mount",
    "unshare": "util-linux",
    "xz": "xz-utils",
}


def cpus() -> int:
    """How many CPUs this process may run on, which in a container or under taskset are fewer than
    the machine has."""
    return len(os.sched_getaffinity(0))


def memory() -> int:
    """Bytes of memory that the kernel has: firmware and graphics keep a part of the machine's."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def find(program: str) -> Path | None:
    """The program's path; sbin is looked at too, which a user's PATH often lacks."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    found = shutil.which(program, path=path)
    return Path(found) if found else None


def need(program: str) -> Path:
    """The program's path, or MissingTool with the package to install."""
    found = find(program)
    if found is None:
        raise _missing([program])
    return found


def need_all(programs: Iterable[str]) -> None:
    """MissingTool with every program that is not there, and the packages to install for them."""
    if gone := [program for program in dict.fromkeys(programs) if find(program) is None]:
        raise _missing(gone)


def packages_of(programs: Iterable[str]) -> str:
    """The Debian packages of these programs, each once, with blanks between."""
    return " ".join(dict.fromkeys(PACKAGES.get(program, program) for program in programs))


def _missing(programs: Sequence[str]) -> MissingTool:
    verb = "is" if len(programs) == 1 else "are"
    said = f"{', '.join(programs)} {verb} not installed"
    return MissingTool(said, f"apt-get install {packages_of(programs)}")


UNHEARD = frozenset(
    (
        *("CFLAGS", "CPPFLAGS", "LDFLAGS", "KCFLAGS", "KCPPFLAGS", "KAFLAGS", "KRUSTFLAGS"),
        *("HOSTCFLAGS", "HOSTCXXFLAGS", "HOSTLDFLAGS", "USERCFLAGS", "USERLDFLAGS"),
        *("MAKEFLAGS", "GNUMAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEFILES", "LLVM", "LLVM_IAS"),
        *("KBUILD_OUTPUT", "KCONFIG_CONFIG", "KCONFIG_ALLCONFIG", "LANGUAGE"),
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_NAMESPACE"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR"),
    )
)
"""Of the environment: what has compilers and make build something else than the words on their
command line say, messages translated, and git speak of another checkout, as in its hooks."""


def environment() -> dict[str, str]:
    """What a program is told besides its words: the same on every machine in what it makes of it,
    and its messages as they are in the source."""
    own = {name: value for name, value in os.environ.items() if name not in UNHEARD}
    return {**own, "LC_ALL": "C.UTF-8"}


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit_s: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run to the end with output captured; the exit code is the caller's to judge.

    The program can ask nothing: a question whose text is captured would wait for ever. It may say
    anything: a byte that is no UTF-8 becomes a sign for such. Without `env` it has `environment`.
    After `limit_s` seconds it is killed,
    and subprocess.TimeoutExpired is raised.
    """
    words = [str(x) for x in argv]
    log.debug("%s", shlex.join(words))
    return subprocess.run(
        words,
        cwd=cwd,
        env=environment() if env is None else env,
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
        capture_output=True,
        check=False,
        timeout=limit_s,
    )


def check_room(
    done: subprocess.CompletedProcess[str], written: Path, log: Path | None = None
) -> None:
    """HostError if a program says, in its log or to stderr, that the disk was full while it wrote
    this file."""
    said = "No space left on device"
    logged = log.read_text(errors="replace") if log and log.is_file() else ""
    if done.returncode and said in done.stderr + logged:
        raise from_oserror(OSError(errno.ENOSPC, said, str(written)))


@cache
def version(program: str) -> str:
    """The first line of `program --version`, or an empty string if it is not there."""
    path = find(program)
    if path is None:
        return ""
    lines = run([path, "--version"]).stdout.splitlines()
    return lines[0].strip() if lines else ""


def digest(*parts: bytes | str) -> str:
    """SHA-256 over the parts, each with its length so that no two lists look alike."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(f"{len(data)}:".encode() + data)
    return total.hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


EXECUTABLE, PERMISSIONS = 0o100, 0o7777
"""Bits of a file's mode: the one that git keeps, which is the same in every checkout, and all that
a file system keeps."""


def digest_tree(root: Path, files: Iterable[Path], modes: int = EXECUTABLE) -> str:
    """SHA-256 over names (relative to `root`), kinds, the bits `modes` of modes, and contents.
    Links are followed; a directory counts without what is in it."""
    parts = []
    for path in sorted(files):
        mode = path.stat().st_mode
        content = digest_file(path) if stat.S_ISREG(mode) else ""
        parts += [str(path.relative_to(root)), f"{stat.S_IFMT(mode) | mode & modes:o}", content]
    return digest(*parts)


def write_json(path: Path, value: Any) -> None:
    """Write so that a reader sees the old file or the whole new one, never a part. ValueError for a
    number that JSON has not (nan, infinity)."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Like write_json, for text."""
    write_bytes(path, text.encode())


def is_stream(path: Path) -> bool:
    """Whether what is there is no file, but a device or a pipe."""
    return path.exists() and not path.is_file()


def write_bytes(path: Path, content: bytes) -> None:
    """Like write_json, for bytes. What a link leads to is written, and what is there and no file (a
    device, a pipe) is written to and not replaced. No part is left behind by an error."""
    if is_stream(path):
        path.write_bytes(content)
        return
    # Not before: what a pipe's link in /proc leads to has no name.
    with replacing(path.resolve()) as part:
        part.write_bytes(content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to be written: at the end it takes the place of `path`, after an error it is gone."""
    part = _part(path)
    try:
        yield part
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def try_to_write(path: Path) -> None:
    """OSError if `path` cannot be written by write_bytes. What is there stays as it is."""
    if is_stream(path):
        return  # a try would reach it
    path = path.resolve()
    part = _part(path)
    try:
        part.touch()
        part.unlink()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _part(path: Path) -> Path:
    """A file beside `path` of this thread alone: others may be writing the same one."""
    return path.with_name(f"{path.name}.{get_native_id()}.part")


@contextmanager
def lock(path: Path, *, shared: bool = False, stop: Event | None = None) -> Iterator[None]:
    """Hold `path` as a lock between processes; it is let go when the process dies.

    Where another process has it, that is told after a second of waiting. Raises Stopped if `stop`
    is set meanwhile: Ctrl-C is for the main thread alone, which then waits for all others.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        wait_for_lock(file, LOCK_SH if shared else LOCK_EX, path, stop or Event())
        yield


@contextmanager
def lock_directory(directory: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a directory by a lock of its own, which needs no file and so no right to write there; a
    wait is told as for `lock`. On a file system without such locks nothing is held. OSError if it
    cannot be opened."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            wait_for_lock(file, LOCK_SH if shared else LOCK_EX, directory, Event())
        yield
    finally:
        os.close(file)


def wait_for_lock(file: IO[str] | int, how: int, path: Path, stop: Event) -> None:
    """Lock the open file that way (LOCK_SH, LOCK_EX) as soon as it can be. Tells and raises what
    `lock` does; `path` is what it is called."""
    tell_at: float | None = time.monotonic() + LOCK_TOLD_S
    while True:
        try:
            return flock(file, how | LOCK_NB)
        except BlockingIOError:
            pass
        if tell_at is not None and time.monotonic() >= tell_at:
            log.info("waiting for another cohort (%s)", path)
            tell_at = None
        if stop.wait(LOCK_POLL_S):
            raise Stopped
