"""The distribution's kernel source: found, unpacked once, its release read."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cohort import host, paths
from cohort.errors import HostError, MissingTool, UsageError
from cohort.log import Update

SERIES = "6.12"
PINNED = "6.12.117"
"""The release the patches are made for: they must apply to it without fuzz."""

TARBALL = Path("/usr/src/linux-source-6.12.tar.xz")
TAR_RECORD = 10240  # bytes; what `tar --checkpoint` counts


@dataclass(frozen=True)
class Release:
    """A kernel release, such as 6.12.117."""

    series: str
    patch: int

    def __str__(self) -> str:
        return f"{self.series}.{self.patch}"


def read_release(tree: Path) -> Release:
    """The release a tree says it is; UsageError if it is no kernel tree."""
    makefile = tree / "Makefile"
    if not tree.is_dir():
        raise UsageError(f"{tree}: no such directory", "--tree is a kernel's source")
    if not makefile.is_file():
        raise UsageError(f"{tree} is not a kernel tree: it has no Makefile")
    text = makefile.read_text(errors="replace")
    numbers = [
        re.search(rf"^{name} = (\d+)$", text, re.MULTILINE)
        for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")
    ]
    found = [int(m.group(1)) for m in numbers if m]
    if len(found) != len(numbers):
        raise UsageError(f"{tree} is not a kernel tree: its Makefile names no release")
    if not (tree / "mm").is_dir():
        raise UsageError(f"{tree} is not a kernel tree: it has no mm/", "not headers: the source")
    return Release(f"{found[0]}.{found[1]}", found[2])


def for_make(tree: Path) -> Path:
    """The tree by its one name. UsageError for one that make, which has lists of names with blanks
    between and rules with colons, would look for elsewhere."""
    tree = tree.resolve()
    if re.search(r"[\s:]", str(tree)):
        raise UsageError(
            f"{tree}: make takes a path apart at a blank or a colon",
            "move the tree, or bind it to a place without any: mount --bind",
        )
    return tree


def default_tree() -> Path:
    """Where `fetch` puts the source."""
    return paths.made("kernel") / f"linux-{SERIES}"


def fetch(update: Update, tarball: Path = TARBALL) -> Path:
    """Unpack the source package unless that was done already; returns the tree."""
    if not tarball.is_file():
        raise MissingTool(
            f"the kernel source {tarball} is not installed",
            f"apt-get install linux-source-{SERIES}",
        )
    tree = default_tree()
    stamp = tree.with_name(tree.name + ".json")
    status = tarball.stat()
    origin = {"tarball": str(tarball), "bytes": status.st_size, "mtime_ns": status.st_mtime_ns}
    with host.lock(paths.made("kernel") / "fetch.lock"):
        if tree.is_dir() and stamp.is_file() and json.loads(stamp.read_text()) == origin:
            return tree
        part = tree.with_name(tree.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        _unpack(tarball, part, update)
        shutil.rmtree(tree, ignore_errors=True)
        part.replace(tree)
        host.write_json(stamp, origin)
    return tree


def _unpack(tarball: Path, into: Path, update: Update) -> None:
    """Unpack without the leading directory, reporting bytes unpacked in MiB."""
    listing = host.run([host.need("xz"), "--robot", "--list", tarball]).stdout
    totals = [line.split("\t") for line in listing.splitlines() if line.startswith("totals")]
    total = int(totals[0][4]) >> 20 if totals else 0
    command = [str(host.need("tar")), "-xf", str(tarball), "-C", str(into), "--strip-components=1"]
    command += ["--checkpoint=2000", "--checkpoint-action=echo=%u"]
    with subprocess.Popen(
        command, encoding="utf-8", errors="replace", stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        complaints = []
        for line in process.stderr:
            records = line.rsplit(maxsplit=1)[-1]
            if records.isdigit():
                update(min(int(records) * TAR_RECORD >> 20, total), total)
            else:
                complaints.append(line)
    if process.returncode != 0:
        shutil.rmtree(into, ignore_errors=True)
        raise HostError(f"cannot unpack {tarball}: {''.join(complaints[-3:]).strip()}")
    update(total, total)
