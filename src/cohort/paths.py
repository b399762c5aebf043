"""Where things are: what the lab brings (kernel, guest, policies, ...) and everything it makes.

In a checkout, what it brings are the repository's directories, and what it makes is under the
repository's `out/`. A wheel has copies of those directories in the package (`hatch_build.py`), and
makes `out/` in the working directory: nothing is ever written beside the package.
"""

import errno
import os
import re
from pathlib import Path

from cohort import kept
from cohort.errors import HostError, UsageError, from_oserror

PACKED = Path(__file__).resolve().with_name("data")
CHECKOUT = None if PACKED.is_dir() else Path(__file__).resolve().parents[2]
ROOT = CHECKOUT or PACKED
OVERLAY = ROOT / "kernel"
PATCHES = ROOT / "patches"
CONFIGS = ROOT / "configs"
GUEST = ROOT / "guest"
WORKLOADS = ROOT / "workloads"
POLICIES = ROOT / "policies"
STUDIES = ROOT / "studies"
SUITES = ROOT / "suites"
COMMIT = PACKED / "commit"
"""The commit that a wheel was built from, if it was built from one."""


def out_dir() -> Path:
    """The directory of everything made: the value of COHORT_OUT, or `out/` of the checkout, or of
    the working directory without one. Created. UsageError for a path that programs take apart:
    make and LD_PRELOAD at blanks, LD_PRELOAD at colons, QEMU at commas."""
    out = _named()
    if re.search(r"[\s:,]", f"{out}{out.resolve()}"):
        raise UsageError(
            f"{out}: make, QEMU or the linker takes a path apart at a blank, a colon or a comma",
            "set COHORT_OUT to a directory without any",
        )
    _create(out)
    return out


def _named() -> Path:
    return Path(os.environ.get("COHORT_OUT") or (CHECKOUT or Path.cwd()) / "out").absolute()


def made(*parts: str) -> Path:
    """A directory under `out_dir()`, created. Resolved: a build must not see it by two names.

    What `cohort clean` removes lies in the first of `parts`, which is held until this process ends,
    and so is the output directory, which may be one of tests in another. Held first: what is there
    already might be removed before it is.
    """
    out = out_dir()
    if parts:
        _hold(out)
        _hold(out / parts[0])
    path = out.joinpath(*parts)
    _create(path)
    return path.resolve()


def _hold(directory: Path) -> None:
    """Hold a directory that is created where there is none, also if it was removed meanwhile."""
    _create(directory)
    while not kept.hold(directory.resolve()):
        _create(directory)


def _create(path: Path) -> None:
    """Make a directory where there is none. HostError with what to do about it, as every verb that
    makes or reads anything made needs it, also in a checkout that cannot be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _elsewhere(error) from error


def in_out(error: OSError) -> HostError | None:
    """The failure to write below `out_dir()`, another user's or on a read-only disk, in words with
    what to do about it; None for any other."""
    out, name = _named(), error.filename
    if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM) or not isinstance(name, str):
        return None
    inside = Path(name).is_relative_to(out) or Path(name).is_relative_to(out.resolve())
    return _elsewhere(error) if inside else None


def _elsewhere(error: OSError) -> HostError:
    failed = from_oserror(error)
    hint = failed.hint or "set COHORT_OUT to a directory that can be written"
    return HostError(failed.message, hint)
