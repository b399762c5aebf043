"""What a suite is: a TOML file in `suites/`, or a directory of programs that lies anywhere."""

import os
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cohort import named, paths, tomlfile
from cohort.errors import UsageError
from cohort.vm.machine import Accel

FILE = "suite.toml"
"""In a directory, what says how its programs are run. Without it each is a case."""
COMMAND_CHARS = 900

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,79}")
_NO_CASE = "is no name of a case: letters, digits, dots and dashes"
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+-]+")


def _case_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError(_NO_CASE)
    return value


def _command(value: str) -> str:
    if not value.strip() or "\n" in value or len(value) > COMMAND_CHARS:
        raise ValueError(f"must be a command for the shell, one line of up to {COMMAND_CHARS}")
    return value


def _seconds(value: int) -> int:
    if value < 1:
        raise ValueError("must be at least a second")
    return value


def _word(value: str) -> str:
    if not value or any(x.isspace() for x in value):
        raise ValueError("must be one word of a kernel's command line")
    return value


def _package(value: str) -> str:
    if not _PACKAGE.fullmatch(value):
        raise ValueError("is no name of a Debian package")
    return value


CaseName = Annotated[str, AfterValidator(_case_name)]
Command = Annotated[str, AfterValidator(_command)]
Seconds = Annotated[int, AfterValidator(_seconds)]
Word = Annotated[str, AfterValidator(_word)]
Package = Annotated[str, AfterValidator(_package)]


class Suite(BaseModel):
    """Commands for the guest's shell, run in the directory of the suite's files, one by one.

    `selftests` are directories of the kernel's own tests, which are built and brought along; of
    one the files are in the suite's directory, of several each has a folder of its name there.
    `sources` one beside the suite's file, whose C files are each compiled, static, and whose shell
    scripts are copied. `files` is a directory that is brought along as it is, `home` the one with
    the suite's file; no file says them. `debian` says that an initramfs is no root for it: it needs
    programs or libraries of Debian, or a disk. `packages` are in the root beside those that every
    root has; `archives` are packages that lie in `archives` of the directory as files, for a case
    to install. The root's file system has `image_mb` MiB. `cmdline` are words for each guest's
    kernel, whatever the policy. `setup` is run before the first case and again after a guest that
    died. A case has `limit_s` seconds, or those in `longer`; `skip` are the exit codes of a case
    that cannot be run.
    With `deterministic` the guest's time counts instructions, so that costs mean something: one
    that is more than `cost_bound` times what it is under the first policy is a difference.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: CaseName
    title: str
    selftests: list[CaseName] = []
    sources: str | None = None
    debian: bool = False
    deterministic: bool = False
    cost_bound: float = Field(default=1.2, gt=1)
    packages: list[Package] = []
    archives: list[Package] = []
    image_mb: int = Field(default=2048, ge=1024, le=16384)
    memory_mb: int = 2048
    cpus: int = Field(default=2, ge=1, le=8)
    limit_s: Seconds = 120
    longer: dict[CaseName, Seconds] = {}
    skip: list[int] = [4]
    cmdline: list[Word] = []
    setup: list[Command] = []
    case: Annotated[dict[CaseName, Command], Field(min_length=1)]
    files: Path | None = None
    home: Path = paths.SUITES

    @property
    def accel(self) -> Accel:
        """How the guests are emulated."""
        return "deterministic" if self.deterministic else "tcg"

    def limit_of(self, case: str) -> int:
        """Seconds a case may take."""
        return self.longer.get(case, self.limit_s)


def suite_names() -> list[str]:
    """The names of the suites that the lab brings."""
    return sorted(path.stem for path in paths.SUITES.glob("*.toml"))


def load_suite(name: str) -> Suite:
    """The suite of that name, or in the TOML file at that path; UsageError for a bad one."""
    if name == "scale":
        raise UsageError("scale is a verb, not a suite", "cohort scale none region")
    if Path(name).is_dir() and name not in suite_names():
        raise UsageError(f"{name} is a directory", f"cohort suite NAME --dir {name}")
    path = named.find("suite", name, paths.SUITES, suite_names())
    return _validate(path, tomlfile.read(path, "suite", paths.SUITES)[1], path.stem)


def load_directory(directory: Path, name: str) -> Suite:
    """The suite that lies in a directory; UsageError if it has neither FILE nor a program, or one
    that cannot be called by its name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name of a suite: letters, digits, dots and dashes",
            "the name is yours to choose, the place is what --dir says",
        )
    if not directory.is_dir():
        raise UsageError(f"{directory} is no directory")
    path = directory / FILE
    if path.is_file():
        data = tomlfile.read(path, "suite")[1]
        return _validate(path, data, name).model_copy(update={"files": directory})
    programs = [
        x.name for x in sorted(directory.iterdir()) if x.is_file() and os.access(x, os.X_OK)
    ]
    if not programs:
        raise UsageError(f"{directory} has neither {FILE} nor a program")
    if odd := next((x for x in programs if not _NAME.fullmatch(x)), None):
        raise UsageError(
            f"{directory / odd}: {_NO_CASE}", f"call it otherwise, or say in {FILE} what is run"
        )
    cases = {program: f"./{program}" for program in programs}
    return Suite(name=name, title=str(directory), case=cases, files=directory)


def _validate(path: Path, data: dict[str, Any], name: str) -> Suite:
    try:
        suite = Suite.model_validate({"name": name, **data})
    except ValidationError as error:
        raise tomlfile.explain(path, error, "suite", Suite) from error
    if unknown := sorted(set(suite.longer) - set(suite.case)):
        hint = named.hint(unknown[0], suite.case, "there are")
        raise UsageError(f"{path}: longer: no case {', '.join(unknown)}", hint)
    return suite.model_copy(update={"home": path.parent})
