"""Programs of the lab's own suites: C files, each compiled into a static program with the headers
beside it, and scripts.

Beside them, where a suite wants it, packages of Debian as files.
"""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cohort import host, paths
from cohort.errors import BuildError, UsageError
from cohort.kept import used
from cohort.kernel.build import find_arch
from cohort.phone import programs as packaged

FLAGS = (
    *("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-static"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"),
)
ARCHIVES = "archives"
"""Where packages are, below the directory of a suite's files."""


def build(sources: Path, archives: Sequence[str] = (), arch: str = "x86_64") -> Path:
    """A directory with a program of that machine for each C file of `sources`, and its shell
    scripts, made once for their names, their content and the flags; and with these packages of
    Debian as files, made once for their versions.

    UsageError for a directory without any, BuildError with the compiler's or apt's words,
    MissingTool without the machine's gcc or apt, or for a package it does not know.
    """
    cc = find_arch(arch).cc
    files = sorted(x for x in sources.glob("*") if x.suffix in {".c", ".sh"})
    if not files:
        raise UsageError(f"{sources} has no C file and no shell script")
    content = host.digest_tree(sources, [*files, *sources.glob("*.h")])
    versions = packaged.versions(archives) if archives else []
    key = host.digest(content, *FLAGS, arch, host.version(cc), *versions)[:16]
    made = paths.made("suites", "programs") / key
    with host.lock(made.with_suffix(".lock")):
        if not made.is_dir():
            with tempfile.TemporaryDirectory(dir=made.parent) as name:
                _make(files, archives, cc, Path(name, "made")).replace(made)
    return used(made)


def _make(files: Sequence[Path], archives: Sequence[str], cc: str, into: Path) -> Path:
    """All of it in the new directory `into`."""
    into.mkdir()
    for path in files:
        if path.suffix == ".sh":
            shutil.copyfile(path, into / path.name)
            (into / path.name).chmod(0o755)  # a wheel need not keep it
            continue
        done = host.run([host.need(cc), *FLAGS, "-o", into / path.stem, path])
        if done.returncode:
            raise BuildError(f"{path} does not compile:\n{done.stderr.strip()}")
    if archives:
        packaged.download(archives, into / ARCHIVES)
    return into
