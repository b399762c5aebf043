"""Programs of the lab's own suites: C files, each compiled into a static program."""

import shutil
from pathlib import Path

from cohort import host, paths
from cohort.errors import BuildError, UsageError
from cohort.kernel.build import find_arch

FLAGS = (
    *("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-static"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"),
)


def build(sources: Path, arch: str = "x86_64") -> Path:
    """A directory with a program of that machine for each C file of `sources`, made once for their
    content.

    UsageError for a directory without any, MissingTool without the machine's gcc, BuildError with
    the compiler's words.
    """
    cc = find_arch(arch).cc
    gcc = host.need(cc)
    files = sorted(sources.glob("*.c"))
    if not files:
        raise UsageError(f"{sources} has no C file")
    key = host.digest(*(path.read_bytes() for path in files), arch, host.version(cc))[:16]
    made = paths.made("suites", "programs") / key
    with host.lock(made.with_suffix(".lock")):
        if not made.is_dir():
            part = made.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            for path in files:
                done = host.run([gcc, *FLAGS, "-o", part / path.stem, path])
                if done.returncode:
                    raise BuildError(f"{path} does not compile:\n{done.stderr.strip()}")
            part.replace(made)
    return made
