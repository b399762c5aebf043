"""The root file system of a suite's guest: Debian's own packages, or an initramfs with a shell."""

import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from cohort import host, paths
from cohort.errors import BuildError, HostError, Skipped, UsageError
from cohort.kept import mounted_below, used
from cohort.kernel.build import find_arch
from cohort.phone import programs
from cohort.phone.initramfs import Member
from cohort.suites.schema import Suite

log = logging.getLogger(__name__)

Kind = Literal["debian", "initramfs"]

PACKAGES = ("fio", "libcap2", "libnuma1", "liburing2", "procps", "stress-ng")
"""What every root has beside Debian's minimum: one serves all suites that need no more, as each
takes minutes."""
RELEASE = Path("/etc/os-release")
HOME = "suite"
"""Where the files of a suite are, below the root."""
HOST = "x86_64"
"""The machine that the host is, and what is made of its packages."""
MACHINES = {"x86_64": 62, "arm64": 183}
"""What an ELF file calls them."""
_VERSION = "1"  # of the layout; part of the image's identity
_NOT_ROOT = ("debootstrap needs root", "call it as root, or use --rootfs initramfs")
_SHELL = ("sh", "echo", "cat", "sleep", "true", "false", "mount", "grep")


def check(kind: Kind, suite: Suite, arch: str) -> None:
    """UsageError if the guests' root has not what the suite needs, or is of another machine than
    they are, as Debian's is of the host's, or if the suite's files cannot be copied into it."""
    where = f"suite {suite.name}"
    entries = [] if suite.files is None else list(_entries(suite.files))
    if kind == "initramfs" and suite.debian:
        raise UsageError(
            f"{where} needs Debian's root, for its programs or for a disk",
            "leave out --rootfs" if arch == HOST else f"--arch {HOST}, without --rootfs",
        )
    if arch == HOST:
        return
    if kind == "debian":
        other = "" if suite.debian else "--rootfs initramfs, if its programs are static; or "
        raise UsageError(
            f"{where}: its root is Debian's for the host, {HOST}, not for {arch}",
            f"{other}--arch {HOST}",
        )
    if foreign := _foreign(entries, arch):
        raise UsageError(
            f"{foreign[0]} is a program of another machine than {arch}",
            f"compile it with {find_arch(arch).cc} -static",
        )


def _foreign(entries: Sequence[Path], arch: str) -> list[Path]:
    """The ELF files that are of another machine: two bytes at 18 tell, the lower first."""
    heads = {path: path.open("rb").read(20) for path in entries if path.is_file()}
    mine = MACHINES[arch].to_bytes(2, "little")
    return [x for x, head in heads.items() if head[:4] == b"\x7fELF" and head[18:] != mine]


def check_makes(kind: Kind, suite: Suite) -> None:
    """Raises what `image` does of tools and rights for the suite's root that is not made yet, so
    that it is known before a kernel is built."""
    if kind == "debian":
        host.need_all(("debootstrap", "mke2fs"))
        release = codename()
        # For root no package is asked for its version once more.
        if os.geteuid() != 0 and not _made(release, (*PACKAGES, *suite.packages)).is_dir():
            raise Skipped(*_NOT_ROOT)


def codename() -> str:
    """The host's release of Debian, so that what is built here runs there; Skipped elsewhere."""
    lines = RELEASE.read_text().splitlines()
    known = dict(line.split("=", 1) for line in lines if "=" in line)
    name = known.get("VERSION_CODENAME", "").strip('"')
    if known.get("ID", "").strip('"') != "debian" or not name:
        raise Skipped("a Debian root is made on a Debian host only", "use --rootfs initramfs")
    return name


def debian(packages: Sequence[str] = ()) -> Path:
    """A directory with Debian's minimum, PACKAGES and `packages`, made once for their versions.

    Raises MissingTool without debootstrap, Skipped for another user than root, BuildError with
    debootstrap's last line, and HostError if an earlier one's mounts do not go.
    """
    tool, release = host.need("debootstrap"), codename()
    wanted = (*PACKAGES, *packages)
    made = _made(release, wanted)
    with host.lock(made.with_suffix(".lock")):
        if not made.is_dir():
            if os.geteuid() != 0:
                raise Skipped(*_NOT_ROOT)
            log.info("making a Debian root file system, which takes minutes")
            part = made.with_suffix(".part")
            _clear(part)
            words = ["--variant=minbase", f"--include={','.join(wanted)}", release, str(part)]
            done = host.run([*_apart(), tool, *words])
            host.check_room(done, part, part / "debootstrap/debootstrap.log")
            if done.returncode:
                last = (done.stdout + done.stderr).strip().splitlines()[-1:]
                raise BuildError(f"debootstrap failed: {' '.join(last)}", f"{part}/debootstrap")
            part.replace(made)
    return used(made)


def _made(release: str, wanted: Sequence[str]) -> Path:
    """Where the root of that release with these packages is, or will be."""
    key = host.digest(_VERSION, release, *programs.versions(wanted))[:16]
    return paths.made("suites", "roots") / f"{release}-{key}"


def _apart() -> list[str | Path]:
    """What debootstrap is called with, so that its mounts and processes end with it also when it is
    killed: /proc would stay mounted below `out/`. Nothing where a container does not allow it."""
    words: list[str | Path] = [host.need("unshare"), *("--mount", "--pid", "--fork")]
    words.append("--kill-child")
    return words if host.run([*words, "true"]).returncode == 0 else []


def _clear(part: Path) -> None:
    """Remove what was left of an interrupted call, its mounts first: what is removed through one is
    the host's. HostError, with all still there, if one does not go."""
    for place in reversed(mounted_below(part)):
        if host.run([host.need("umount"), place]).returncode:
            raise HostError(f"{place} is still mounted", f"umount {place}")
    shutil.rmtree(part, ignore_errors=True)


def image(layers: Sequence[Path], packages: Sequence[str], size_mb: int) -> Path:
    """An ext4 image of `size_mb` MiB with the Debian root, `packages` in it and what is in these
    directories in its HOME, made once for its content. Of one name the last directory's file is it.

    The guest may write to it: each boot has a private view. Raises what `debian` does, MissingTool
    without mke2fs, BuildError with its message, and HostError on a full disk.
    """
    tool, root = host.need("mke2fs"), debian(packages)
    key = host.digest(root.name, *map(_digest, layers), str(size_mb))[:16]
    made = paths.made("suites", "images") / f"{key}.img"
    with host.lock(made.with_suffix(".lock")):
        if made.is_file():
            return used(made)
        with tempfile.TemporaryDirectory(dir=root.parent) as name:
            # Links: mke2fs only reads, and copies would take longer than the image itself.
            whole = Path(name, "root")
            shutil.copytree(root, whole, symlinks=True, copy_function=_link)
            (whole / HOME).mkdir()
            for layer in layers:
                shutil.copytree(layer, whole / HOME, dirs_exist_ok=True)
            part = made.with_suffix(".part")
            part.unlink(missing_ok=True)
            words = ["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-d", str(whole)]
            done = host.run([tool, *words, part, f"{size_mb}m"])
            host.check_room(done, part)
            if done.returncode:
                raise BuildError(f"mke2fs failed: {done.stderr.strip()}")
            part.replace(made)
    return made


def _link(source: str, target: str) -> None:
    os.link(source, target, follow_symlinks=False)


def initramfs(layers: Sequence[Path], arch: str = HOST) -> list[Member]:
    """A static shell of that machine with a few programs, and in HOME what is in the directories.

    MissingTool without busybox, or without apt, which brings another machine's.
    """
    busybox = _busybox(arch).read_bytes()
    directory = stat.S_IFDIR | 0o755
    members = [Member("bin", directory), Member("bin/busybox", stat.S_IFREG | 0o755, busybox)]
    members += [Member(f"bin/{x}", stat.S_IFLNK | 0o777, b"busybox") for x in _SHELL]
    members.append(Member(HOME, directory))
    found = {member.name: member for layer in layers for member in _members(layer)}
    return [*members, *found.values()]


def _busybox(arch: str) -> Path:
    if arch == HOST:
        return host.need("busybox")
    top = programs.unpacked("busybox-static", arch)
    return next(path for path in (top / "bin/busybox", top / "usr/bin/busybox") if path.is_file())


def _members(files: Path) -> Iterator[Member]:
    for path in _entries(files):
        name = f"{HOME}/{path.relative_to(files)}"
        mode = path.stat().st_mode
        if path.is_dir():
            yield Member(name, stat.S_IFDIR | 0o755)
        else:
            yield Member(name, stat.S_IFREG | stat.S_IMODE(mode), path.read_bytes())


def _digest(files: Path) -> str:
    """SHA-256 of all that a copy of the directory has of it: a guest's user may have to be allowed
    to read or to run what is in it."""
    return host.digest_tree(files, [files, *_entries(files)], host.PERMISSIONS)


def _entries(directory: Path) -> Iterator[Path]:
    """What is below a directory, links followed, as a copy for a guest has it: its files and
    directories, each directory in front of what is in it. UsageError for a link that has no copy.
    """
    for path in sorted(directory.iterdir()):
        if path.is_symlink():
            _check_link(path)
        if path.is_dir() or path.is_file():
            yield path
        if path.is_dir():
            yield from _entries(path)


def _check_link(link: Path) -> None:
    """UsageError for a link that leads nowhere, or to a directory that it lies in."""
    leads_to = link.resolve() if link.exists() else None
    if leads_to is None or link.parent.resolve().is_relative_to(leads_to):
        where = "nowhere" if leads_to is None else f"to {leads_to}, in which it lies"
        raise UsageError(
            f"{link} is a link that leads {where}",
            "remove it: the guest gets a copy of what links lead to",
        )
