"""The kernel sources that this machine's package archives have, whichever those are."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cohort import host
from cohort.kernel import source

PACKAGE = f"linux-source-{source.SERIES}"
TARBALL = f"./usr/src/{PACKAGE}.tar.xz"


def versions() -> list[str]:
    """The versions of the source package that can be had, oldest first; none without apt."""
    apt = host.find("apt-cache")
    said = host.run([apt, "madison", PACKAGE]).stdout if apt else ""
    found = {line.split("|")[1].strip() for line in said.splitlines() if line.count("|") == 2}
    return sorted(found, key=lambda version: [int(x) for x in re.findall(r"\d+", version)])


def unpack(version: str, into: Path, names: Sequence[str] = ()) -> Path:
    """The kernel tree of a version, or these files of it; AssertionError if it cannot be had."""
    into.mkdir()
    words = [str(host.need("apt-get")), "download", "--quiet", f"{PACKAGE}={version}"]
    done = host.run(words, cwd=into.parent)
    assert done.returncode == 0, done.stderr
    [package] = into.parent.glob(f"{PACKAGE}_*.deb")
    members = [f"linux-source-{source.SERIES}/{name}" for name in names]
    tar = str(host.need("tar"))
    pipeline = (
        [str(host.need("dpkg-deb")), "--fsys-tarfile", str(package)],
        [tar, "-xO", TARBALL],
        [str(host.need("xz")), "-dc"],
        [tar, "-x", "--strip-components=1", "-C", str(into), *members],
    )
    running: list[subprocess.Popen[bytes]] = []
    for command in pipeline:
        feed = running[-1].stdout if running else None
        running.append(subprocess.Popen(command, stdin=feed, stdout=subprocess.PIPE))
    assert [process.wait() for process in reversed(running)] == [0] * len(running)
    package.unlink()
    return into
