"""The kernel's own tests (tools/testing/selftests), built on the host with the host's libc."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from cohort import host, paths
from cohort.errors import BuildError, MissingTool, UsageError
from cohort.kept import used
from cohort.kernel import build
from cohort.kernel.build import ARCHES

HEADERS = {
    "mm": {
        "sys/capability.h": "libcap-dev",
        "numa.h": "libnuma-dev",
        "liburing.h": "liburing-dev",
    },
    "memfd": {"fuse/fuse.h": "libfuse-dev"},
}
"""What the tests of a directory include of other libraries, and the packages that have it."""
WHERE = "tools/testing/selftests"
_INCLUDE = Path("/usr/include")
_ERROR_LINES = 12


def install(directories: Sequence[str], tree: Path, tree_id: str) -> Path:
    """The installed tests of these directories of `tree`, built once for the tree and the compiler:
    the files of one, or a folder for each of several.

    Raises UsageError if the tree has no such tests, what `check_tools` does, and BuildError for
    tests that do not build.
    """
    for directory in directories:
        if not (tree / WHERE / directory / "Makefile").is_file():
            raise UsageError(f"{tree} has no {WHERE}/{directory}")
    check_tools(directories)
    key = host.digest(tree_id, *directories, host.version("gcc"))[:16]
    made = paths.made("suites", "selftests") / key
    with host.lock(made.with_suffix(".lock")):
        if not made.is_dir():
            part = made.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            _build(directories, tree, part)
            alone = directories[0] if len(directories) == 1 else ""
            shutil.move(part / "installed" / alone, made)
            shutil.rmtree(part)
    return used(made)


def check_tools(directories: Sequence[str]) -> None:
    """MissingTool if the tests of these directories cannot be built here, whatever their tree."""
    for directory in directories:
        for header, package in HEADERS.get(directory, {}).items():
            if not (_INCLUDE / header).is_file():
                raise MissingTool(f"{header} is not installed", f"apt-get install {package}")
    if directories:
        host.need("rsync")


def _build(directories: Sequence[str], tree: Path, part: Path) -> None:
    """Headers into `part`/headers and the tests of it; the tree itself is left as it is."""
    part.mkdir(parents=True)
    headers, source = part / "headers", part / "source"
    arch = ARCHES["x86_64"]
    kernel = build.make_command(tree, headers, arch)
    _make([*kernel, "headers"], part)
    _copy_tests(tree, source)
    words = [str(host.need("make")), "-C", str(source / WHERE), f"-j{host.cpus()}"]
    words += [f"TARGETS={' '.join(directories)}", f"KHDR_INCLUDES=-isystem {headers}/usr/include"]
    # 6.12.117's khugepaged.c forgets to include what defines it.
    words += ["EXTRA_CFLAGS=-DKSFT_SKIP=4"]
    # Without, a directory that does not build is left out, and nothing tells.
    words += ["FORCE_TARGETS=1"]
    words += [f"INSTALL_PATH={part}/installed", "ARCH=x86_64", "install"]
    _make(words, part)


def _copy_tests(tree: Path, source: Path) -> None:
    """A tree whose tests are copies, as their makefiles write beside them; the rest are links."""
    shutil.copytree(tree / WHERE, source / WHERE, symlinks=True)
    for directory in ("", "tools", "tools/testing"):
        for path in (tree / directory).iterdir():
            link = source / directory / path.name
            if not link.exists():
                link.symlink_to(path)


def _make(words: list[str], part: Path) -> None:
    done = host.run(words, env=build.environment())
    (part / "build.log").open("a").write(done.stdout + done.stderr)
    if done.returncode:
        lines = [x for x in done.stderr.splitlines() if "rror" in x] or done.stderr.splitlines()
        shown = "\n  ".join(lines[:_ERROR_LINES])
        raise BuildError(f"the selftests do not build (all of it in {part}/build.log):\n  {shown}")
