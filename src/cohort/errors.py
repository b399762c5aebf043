"""The errors the command knows, each with the exit code it ends with.

Library code raises; only `cohort.cli.main` exits.
"""

import errno
from pathlib import Path
from typing import ClassVar


class CohortError(Exception):
    """Something the user can understand, with a hint of what to do about it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class Stopped(Exception):
    """Work was called off from outside: by Ctrl-C, or as other work of the command failed."""


class Failed(CohortError):
    """The work was done and the answer is no (a test failed, a check did not hold)."""

    exit_code = 1


class UsageError(CohortError):
    """Bad input: an option, a TOML file, a scheme or an order."""

    exit_code = 2


class MissingTool(CohortError):
    """The host lacks a program or a package."""

    exit_code = 3


class Skipped(CohortError):
    """Nothing was done because it cannot be done here."""

    exit_code = 4


class BuildError(CohortError):
    """A kernel or guest build failed, or a configuration did not take."""

    exit_code = 5


class PatchError(CohortError):
    """The overlay or a patch does not fit the tree; the tree is as it was."""

    exit_code = 6


class GuestError(CohortError):
    """The guest panicked, hung, ran out of time or said itself that it failed."""

    exit_code = 7

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        run_dir: Path | None = None,
        console: list[str] | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.run_dir = run_dir
        self.console = console or []

    def __str__(self) -> str:
        parts = [self.message]
        if self.console:
            parts += ["last lines of the guest's console:", *(f"  | {x}" for x in self.console)]
        if self.run_dir is not None:
            parts.append(f"run directory: {self.run_dir}")
        if self.hint is not None:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class WrongPolicy(GuestError):
    """The guest's kernel is not switched as its policy asks: whatever it said is of no policy."""


class HostError(CohortError):
    """The host failed us: a full disk, a file that cannot be read or written."""

    exit_code = 8


def from_oserror(error: OSError) -> HostError:
    """The same failure in words, with the file it is about."""
    where = f": {error.filename}" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return HostError(
            f"the disk is full{where}",
            "free some space (cohort clean), or set COHORT_OUT elsewhere",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return HostError(f"permission denied{where}", _as_root(error))
    return HostError(f"{error.strerror or error}{where}")


def _as_root(error: OSError) -> str | None:
    """What to do about a file of this machine's kernel that only root may read or write."""
    name = str(error.filename or "")
    return "call it as root, or with sudo" if name.startswith(("/sys/", "/proc/")) else None
