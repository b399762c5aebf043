"""Programs of the distribution for the guest: packages fetched and unpacked, never installed.

A program comes with the shared libraries it is linked to, all of the distribution's, and runs by
their own loader; nothing of the host's is taken.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from cohort import host, paths
from cohort.errors import BuildError, MissingTool
from cohort.kept import used

BIN, LIB = "opt/bin", "opt/lib"
LOADER = {"x86_64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}
TRIPLET = {"x86_64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

_NEEDED = re.compile(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]")
_PACKAGE = re.compile(r"(?:lib|zlib)[a-z0-9.+-]*")


def fetch(programs: Sequence[str], arch: str = "x86_64") -> Path:
    """A directory with `opt/bin` and `opt/lib` for these programs, made once for their versions.

    Each is called as its package. Raises MissingTool without apt or for a package it does not
    know, BuildError for a library that no package brings.
    """
    return _once(programs, arch, lambda work: _make(programs, work, arch))


def unpacked(package: str, arch: str) -> Path:
    """Another machine's package of what needs no other, unpacked once for its version.

    Raises MissingTool without apt or for a package it does not know.
    """

    def make(work: Path) -> Path:
        _unpack([package], work, work / "root", arch)
        return work / "root"

    return _once([package], arch, make)


def download(packages: Sequence[str], into: Path) -> None:
    """The packages as files in the new directory `into`; BuildError with apt's words."""
    into.mkdir()
    done = host.run([*_apt("x86_64"), "download", *packages], cwd=into)
    if done.returncode:
        raise BuildError(f"apt-get download failed: {done.stderr.strip()[-300:]}", "apt-get update")


def _once(packages: Sequence[str], arch: str, make: Callable[[Path], Path]) -> Path:
    """What `make` makes of these packages in a directory it is given, once for their versions."""
    made = paths.made("programs") / host.digest(*versions(packages, arch))[:16]
    with host.lock(made.with_suffix(".lock")):
        if not made.is_dir():
            with tempfile.TemporaryDirectory(dir=made.parent) as name:
                make(Path(name)).replace(made)
    return used(made)


def _apt(arch: str) -> list[str | Path]:
    """apt-get for packages of a machine; for one that is not this PC, with lists of its own, as
    the host's know nothing of it."""
    if arch == "x86_64":
        return [host.need("apt-get")]
    home = paths.made("programs", f"apt-{arch}")
    (used(home) / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    options = {
        "APT::Architecture": arch,
        "APT::Architectures": arch,
        "APT::Sandbox::User": "root",
        "Dir::State::Lists": home / "lists",
        "Dir::Cache": home,
    }
    return [host.need("apt-get"), *(x for k, v in options.items() for x in ("-o", f"{k}={v}"))]


def versions(packages: Sequence[str], arch: str = "x86_64") -> list[str]:
    """File name and hash of what apt would download for each."""
    apt = _apt(arch)
    done = host.run([*apt, "download", "--print-uris", *packages])
    if done.returncode and host.run([*apt, "update"]).returncode == 0:  # a machine without lists
        done = host.run([*apt, "download", "--print-uris", *packages])
    lines = [line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith("'")]
    if done.returncode or len(lines) != len(packages):
        said = done.stderr.strip().splitlines()
        raise MissingTool(
            f"apt does not know {', '.join(packages)}: {said[-1] if said else 'no answer'}",
            "apt-get update",
        )
    return sorted(lines)


def _make(programs: Sequence[str], work: Path, arch: str) -> Path:
    """Unpack the programs, then package by package what their files are linked to."""
    root, out = work / "root", work / "out"
    root.mkdir()
    (out / BIN).mkdir(parents=True)
    (out / LIB).mkdir()
    depends = _unpack(programs, work, root, arch)
    wanted = [_program(root, name, out) for name in programs]
    have: set[str] = set()
    while missing := {x for file in wanted for x in _needed(file)} - have:
        found = {name: path for name in missing if (path := _library(root, name))}
        absent = missing - set(found)
        if absent and not depends:
            raise BuildError(f"no package brings {', '.join(sorted(absent))}")
        if absent:
            depends = _unpack(depends, work, root, arch)
            continue
        wanted = [_copy(path, out / LIB / name) for name, path in found.items()]
        have |= set(found)
    if LOADER[arch] not in have:
        raise BuildError(
            f"{', '.join(programs)} do not ask for {LOADER[arch]}: not of this machine"
        )
    return out


def _program(root: Path, name: str, out: Path) -> Path:
    found = root / "usr/bin" / name
    if not found.is_file():
        raise BuildError(f"package {name} has no /usr/bin/{name}")
    return _copy(found, out / BIN / name)


def _copy(source: Path, target: Path) -> Path:
    shutil.copyfile(source, target)
    target.chmod(0o755)
    return target


def _unpack(packages: Iterable[str], work: Path, root: Path, arch: str) -> list[str]:
    """Download and unpack packages; the libraries they depend on that were not yet."""
    debs = work / "debs"
    debs.mkdir(exist_ok=True)
    before = set(debs.glob("*.deb"))
    done = host.run([*_apt(arch), "download", *packages], cwd=debs)
    new = sorted(set(debs.glob("*.deb")) - before)
    if done.returncode or not new:
        raise BuildError(f"apt-get download failed: {done.stderr.strip()[-300:]}", "apt-get update")
    known = {path.name.partition("_")[0] for path in debs.glob("*.deb")}
    depends: list[str] = []
    for deb in new:
        _dpkg_deb("-x", deb, root)
        depends += dependencies(_dpkg_deb("-f", deb, "Depends"))
    return [name for name in dict.fromkeys(depends) if name not in known]


def _dpkg_deb(*argv: str | Path) -> str:
    done = host.run([host.need("dpkg-deb"), *argv])
    if done.returncode:
        raise BuildError(f"{Path(argv[1]).name} does not unpack: {done.stderr.strip()}")
    return done.stdout


def dependencies(field: str) -> list[str]:
    """The libraries in a package's Depends; of alternatives the first."""
    names = [part.split("|")[0].split("(")[0].strip() for part in field.split(",")]
    return [name for name in names if _PACKAGE.fullmatch(name.partition(":")[0])]


def _needed(file: Path) -> list[str]:
    """The libraries an ELF file is linked to."""
    done = host.run([host.need("readelf"), "-d", file])
    if done.returncode:
        raise BuildError(f"{file.name}: {done.stderr.strip()}")
    return _NEEDED.findall(done.stdout)


def _library(root: Path, name: str) -> Path | None:
    """The file of that name, links followed inside the unpacked packages."""
    for path in sorted(root.rglob(name)):
        real = path
        while real.is_symlink():
            target = real.readlink()
            real = root / target.relative_to("/") if target.is_absolute() else real.parent / target
        if real.is_file():
            return real
    return None
