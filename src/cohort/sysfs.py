"""Files of /proc and of Cohort's directory in sysfs, below the root directory of a machine."""

from pathlib import Path

from cohort.errors import Skipped

SYSFS = "sys/kernel/mm/cohort"


def check(root: Path) -> None:
    """Skipped if the kernel of this machine has no Cohort."""
    if not (root / SYSFS).is_dir():
        raise Skipped(f"{root / SYSFS} is not there: the kernel has no Cohort")


def text(path: Path) -> str:
    """A file's content without the blanks around it."""
    return path.read_text().strip()


def counts(path: Path) -> list[int]:
    """A file of numbers between blanks."""
    return [int(n) for n in text(path).split()]


def table(path: Path) -> dict[str, int]:
    """A file of lines "name value"; empty if it is not there."""
    if not path.is_file():
        return {}
    rows = (line.split() for line in path.read_text().splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2}
