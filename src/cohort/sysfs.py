"""Files of /proc and of Cohort's directory in sysfs, below the root directory of a machine."""

import errno
import mmap
import re
from itertools import zip_longest
from pathlib import Path

from cohort.errors import HostError, Skipped

SYSFS = "sys/kernel/mm/cohort"
AREA_PARTS = ("free", "cache", "client", "lent", "other")
"""What the page-cache-preferred area holds; lent memory is part of the other."""

PARTIAL = (
    f"a copy of a machine wants its /proc and its /{SYSFS}, as root may read them; or its kernel"
    " has another Cohort than this lab"
)
"""What to do about a file that any machine with Cohort has."""

MAX_ORDER = 16
"""Above what any machine's page allocator has."""


def check(root: Path) -> None:
    """Skipped if the kernel of this machine has no Cohort."""
    if not (root / SYSFS).is_dir():
        raise Skipped(
            f"{root / SYSFS} is not there: the kernel has no Cohort",
            "boot one that has it (`cohort kernel deb` makes packages), or ask another machine:"
            " --on adb, --on ssh:HOST, --root DIR",
        )


def text(path: Path) -> str:
    """A file's content without the blanks around it; a byte that is no text is a sign for it."""
    return path.read_text(encoding="utf-8", errors="replace").strip()


def number(path: Path) -> int:
    """A file of one number, decimal or with 0x in front. HostError for what is none."""
    return parse(text(path), path)


def order(path: Path) -> int:
    """A file that has the order of a block. HostError for what is none."""
    found = number(path)
    if not 0 <= found <= MAX_ORDER:
        raise HostError(f"{path}: {found} is no order, which is 0 to {MAX_ORDER}")
    return found


def counts(path: Path) -> list[int]:
    """A file of numbers between blanks."""
    return [parse(word, path) for word in text(path).split()]


def table(path: Path) -> dict[str, int]:
    """A file of lines "name value"; empty if it is not there, or goes away meanwhile as that of a
    memory cgroup may. HostError for a value that is no number."""
    try:
        lines = text(path).splitlines() if path.is_file() else []
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):
            raise
        return {}
    rows = (line.split() for line in lines)
    return {row[0]: parse(row[1], path) for row in rows if len(row) == 2}


def counters(root: Path) -> dict[str, int]:
    """The counts since its boot of the machine below `root`. HostError where they are not there, or
    there is none: that nothing happened would be another thing to say."""
    path = root / "proc/vmstat"
    if found := table(path):
        return found
    raise HostError(f"{path} is not there, or empty", PARTIAL)


def free_pieces(root: Path) -> tuple[int, ...]:
    """Free blocks by order of the machine below `root`, all zones together. HostError where they
    are not there, or there is no zone."""
    path = root / "proc/buddyinfo"
    lines = text(path).splitlines() if path.is_file() else []
    zones = [[parse(word, path) for word in line.split()[4:]] for line in lines]
    if any(zones):
        return tuple(sum(column) for column in zip_longest(*zones, fillvalue=0))
    raise HostError(f"{path} is not there, or empty", PARTIAL)


def nodes(top: Path) -> list[Path]:
    """The directories of the virtual nodes in the directory `top`, as its layout has them; empty
    without a layout."""
    if not top.is_dir():
        return []
    names = [share.partition(":")[0] for share in text(top / "layout").split(",")]
    there = (x for x in sorted(top.iterdir()) if x.is_dir())
    return sorted(there, key=lambda x: names.index(x.name) if x.name in names else len(names))


def has_area(top: Path) -> bool:
    """Whether the directory `top` is that of a page-cache-preferred area."""
    return (top / "size").is_file() and text(top / "size") != "0"


def page_kb(root: Path) -> int:
    """Size of a page of the machine below `root`, KiB: its memory in KiB by the pages that its
    zones have. This machine's where those files are not there."""
    files = (root / "proc/meminfo", root / "proc/zoneinfo")
    if all(x.is_file() for x in files):
        memory, zones = (text(x) for x in files)
        total = re.search(r"^MemTotal:\s+(\d+) kB$", memory, re.MULTILINE)
        pages = sum(int(n) for n in re.findall(r"^\s+managed\s+(\d+)$", zones, re.MULTILINE))
        if total and pages:
            return round(int(total[1]) / pages)
    return mmap.PAGESIZE >> 10


def parse(said: str, path: Path) -> int:
    """A number that a file has, decimal or with 0x in front. HostError for what is none."""
    try:
        return int(said, 0)
    except ValueError as error:
        # What a copy could not read is empty there.
        raise HostError(
            f"{path}: {said!r} is no number",
            "some files only root may read: adb root, ssh:root@HOST, or a copy that root made",
        ) from error
