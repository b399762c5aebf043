"""What a comparison compares: a kernel, its boot switches, and knobs written at guest start.

A policy is a TOML file in `policies/`. `extends = "NAME"` takes everything from another policy of
the same directory, or of `policies/`: boot switches are appended to its own, knobs and Cohort's
switches of the same name replace, and so does each key of a role.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from cohort import knobs, named, paths, switches, tomlfile
from cohort.errors import UsageError

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_SYSCTL = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
_HEAP = re.compile(r"[a-z][a-z0-9_-]{0,30}")
_SYSFS = re.compile(r"/sys(/[A-Za-z0-9_.:-]+)+")
MOST_MEMORY_MB = 1 << 20
"""A terabyte: above it is a slip of the finger."""


def _knob_text(value: object) -> object:
    """A number as the kernel reads it; anything but a number or a string is left to pydantic."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def _one_line(value: str) -> str:
    if not value or value != value.strip() or "\n" in value:
        raise ValueError("must be one line of text without blanks around it")
    return value


def _one_word(value: str) -> str:
    if what := switches.malformed(value) or switches.problem(value):
        raise ValueError(what)
    return value


def _policy_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("must be lower-case letters, digits and dashes")
    return value


def _sysctl_name(value: str) -> str:
    if not _SYSCTL.fullmatch(value):
        raise ValueError("is not a sysctl name like vm.min_free_kbytes")
    return value


def _sysfs_path(value: str) -> str:
    if not _SYSFS.fullmatch(value) or "/../" in f"{value}/" or "/./" in f"{value}/":
        raise ValueError("is not a path of a file below /sys")
    return value


def _heap_name(value: str) -> str:
    if not _HEAP.fullmatch(value):
        raise ValueError("is not a name in /dev/dma_heap")
    return value


Line = Annotated[str, AfterValidator(_one_line)]
Word = Annotated[str, AfterValidator(_one_word)]
Name = Annotated[str, AfterValidator(_policy_name)]
Knob = Annotated[str, BeforeValidator(_knob_text), AfterValidator(_one_line)]
SysctlName = Annotated[str, AfterValidator(_sysctl_name)]
SysfsPath = Annotated[str, AfterValidator(_sysfs_path)]
HeapName = Annotated[str, AfterValidator(_heap_name)]
RoleMb = Annotated[int, Field(ge=0, le=MOST_MEMORY_MB)]


class Role(BaseModel):
    """What a policy does for the processes of a role of the workload.

    Either they live in the virtual memory node `vnode`, or in a memory cgroup of which
    `memory_min_mb` are never reclaimed and `memory_low_mb` not before everything else, and which
    has no more than `memory_max_mb`; 0: no protection, no limit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    vnode: Name | None = None
    memory_min_mb: RoleMb = 0
    memory_low_mb: RoleMb = 0
    memory_max_mb: RoleMb = 0

    @model_validator(mode="after")
    def _one_wall(self) -> Self:
        sizes = ("memory_min_mb", "memory_low_mb", "memory_max_mb")
        if self.vnode is not None and (given := [x for x in sizes if getattr(self, x)]):
            raise ValueError(f"vnode does not go with {given[0]}: a node is as large as the layout")
        return self

    @property
    def line(self) -> str:
        """As guest/base/conf.c reads it."""
        if self.vnode is not None:
            return f"vnode {self.vnode}"
        sizes_mb = (self.memory_min_mb, self.memory_low_mb, self.memory_max_mb)
        return " ".join(["cgroup", *(str(size * 1024) for size in sizes_mb)])


class Policy(BaseModel):
    """One way to run the phone.

    `cmdline` goes on the kernel's command line; `sysctl` (dotted names) and `sysfs` (paths) are
    written by the guest before the first process of the phone starts. `camera_heap` is the dma-buf
    heap of a camera's buffers; with `camera_announce` the activity manager tells the area of
    scheme 3 before a camera starts. With `entitled` the process that makes buffers, for the screen
    and for a camera, is a client of that area, whatever heap it uses. `kernel` is the build:
    "cohort", "order9" for one without free blocks above that order, "gcma" for a tree that has
    GCMA, or "stock" for one without Cohort compiled in. `guaranteed_mb` MiB are the area of GCMA.
    With `machine_mb` its sizes are those of a machine of so many MiB, and it is for no other.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Name
    title: Line
    cmdline: list[Word] = []
    sysctl: dict[SysctlName, Knob] = {}
    sysfs: dict[SysfsPath, Knob] = {}
    role: dict[Name, Role] = {}
    camera_heap: HeapName = "system"
    camera_announce: bool = False
    entitled: bool = False
    kernel: Literal["cohort", "order9", "gcma", "stock"] = "cohort"
    guaranteed_mb: Annotated[int, Field(ge=0, le=1024)] = 0
    machine_mb: Annotated[int, Field(ge=1, le=MOST_MEMORY_MB)] | None = None

    @model_validator(mode="after")
    def _switches_agree(self) -> Self:
        """Each switch is good by itself; some are refused beside others, or by this kernel."""
        if clash := switches.conflict(self.cmdline):
            raise ValueError(f"cmdline.{clash[0]}: {clash[1]}")
        for path, value in self.sysfs.items():
            if what := knobs.problem(path, value):
                raise ValueError(f"sysfs: {what}")
        self._check_stock()
        if self.guaranteed_mb and self.kernel != "gcma":
            raise ValueError('guaranteed_mb: the kernel has no GCMA, kernel = "gcma" has')
        if self.entitled and "cohort.pcpa" not in self.areas(self.cmdline):
            raise ValueError("entitled: there is no area, cmdline has no cohort.pcpa=")
        return self

    def _check_stock(self) -> None:
        """ValueError for what only a kernel with Cohort has, of a policy whose kernel has none."""
        if self.kernel != "stock":
            return
        if given := switches.values(self.cmdline):
            raise ValueError(f"kernel: stock has no Cohort, and cmdline has {next(iter(given))}=")
        if files := [path for path in self.sysfs if knobs.is_cohorts(path)]:
            raise ValueError(f"kernel: stock has no Cohort, and sysfs has {files[0]}")

    @property
    def area_words(self) -> list[str]:
        """The areas that its knobs make at run time, as the boot parameters that would: size 0 for
        one that a knob takes away."""
        files = switches.AREA_FILES
        return [f"{name}={self.sysfs[file]}" for name, file in files.items() if file in self.sysfs]

    def areas(self, words: Iterable[str]) -> set[str]:
        """The parameters of the areas that there are after a boot with `words` and these knobs."""
        given = switches.values([*words, *self.area_words])
        return {name for name in switches.AREAS if given.get(name, "0") != "0"}

    def writes(self) -> list[tuple[str, str]]:
        """The files the guest writes at start, in order: (path, value)."""
        sysctl = [
            (f"/proc/sys/{name.replace('.', '/')}", value) for name, value in self.sysctl.items()
        ]
        return sysctl + list(self.sysfs.items())

    @property
    def digest(self) -> str:
        """A hash of all that changes a run: name and title do not, nor does what machine it is
        for, as it is refused on others."""
        usual = {"role"} if not self.role else set()
        usual |= {"camera_heap"} if self.camera_heap == "system" else set()
        flags = ("camera_announce", "entitled", "guaranteed_mb")
        usual |= {x for x in flags if not getattr(self, x)}
        effect = self.model_dump(exclude={"name", "title", "machine_mb"} | usual)
        return hashlib.sha256(json.dumps(effect, sort_keys=True).encode()).hexdigest()


def policy_names(directory: Path | None = None) -> list[str]:
    """The names of the policies in `directory`, by default the repository's."""
    return sorted(path.stem for path in (directory or paths.POLICIES).glob("*.toml"))


def load_policy(name_or_path: str | Path) -> Policy:
    """The policy of that name in `policies/`, or in the TOML file at that path.

    Raises UsageError for an unknown name and for a bad file (file, key and line in the message).
    """
    path = named.find("policy", str(name_or_path), paths.POLICIES, policy_names())
    return _validate(
        path, tomlfile.read_extending(path, "policy", paths.POLICIES, _merge, _validate)
    )


def load_policies(names: Sequence[str]) -> list[Policy]:
    """The policies of these names or paths. UsageError if two have the same name, as a table or a
    directory could not tell them apart."""
    policies = [load_policy(name) for name in names]
    if len({policy.name for policy in policies}) < len(policies):
        raise UsageError(
            f"policies of the same name: {', '.join(names)}",
            'leave one out, or give its file a line name = "ANOTHER"',
        )
    return policies


def _merge(base: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    merged = _over(base, child)
    if "name" not in child:
        merged.pop("name", None)  # a child is called as its file
    if isinstance(child.get("cmdline", []), list):  # else it is told as the mistake it is
        merged["cmdline"] = _more_switches(base.get("cmdline", []), child.get("cmdline", []))
    return merged


def _over(base: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    """`child` over `base`, tables key by key; a value in a table's place is told as the mistake it
    is."""
    merged = dict(base)
    for key, value in child.items():
        old = base.get(key)
        tables = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _over(old or {}, value) if tables else value
    return merged


def _more_switches(base: list[Any], child: list[Any]) -> list[Any]:
    """Of a Cohort parameter that is given twice the kernel takes the last, or refuses both."""
    again = switches.values(str(word) for word in child)
    return [*(word for word in base if word.partition("=")[0] not in again), *child]


def _validate(path: Path, data: dict[str, Any]) -> Policy:
    """The policy in `data`, or a UsageError about the first thing wrong in file `path`."""
    rule = "a policy is: lower-case letters, digits and dashes"
    named_data = tomlfile.with_name(path, data, _NAME, rule)
    try:
        return Policy.model_validate(named_data)
    except ValidationError as error:
        raise tomlfile.explain(path, error, "policy", Policy, (tomlfile.EXTENDS,)) from error
