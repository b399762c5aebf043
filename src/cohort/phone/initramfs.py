"""The guest's program and the archive the kernel unpacks it from."""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cohort import host, paths
from cohort.errors import BuildError
from cohort.kept import used
from cohort.kernel.build import find_arch
from cohort.phone import programs
from cohort.units import PAGE

CONF = "phone.conf"
"""What the phone is told, in its archive."""

# (name, mode, major, minor): what must exist before devtmpfs is mounted.
NODES = [
    ("dev", stat.S_IFDIR | 0o755, 0, 0),
    ("dev/console", stat.S_IFCHR | 0o600, 5, 1),
    ("dev/null", stat.S_IFCHR | 0o666, 1, 3),
    ("data", stat.S_IFDIR | 0o755, 0, 0),
    ("proc", stat.S_IFDIR | 0o755, 0, 0),
    ("sys", stat.S_IFDIR | 0o755, 0, 0),
    ("tmp", stat.S_IFDIR | 0o1777, 0, 0),
]


def guest_sources() -> list[Path]:
    """The files the guest is built from."""
    return sorted([*paths.GUEST.rglob("*.[ch]"), paths.GUEST / "Makefile"])


def build_guest(
    out_dir: Path, name: str = "phone", arch: str = "x86_64", page_size: int = PAGE
) -> Path:
    """Compile the guest's program of that name, for pages of so many bytes, once for each content
    of its sources and compiler; its path.

    Raises MissingTool without make or the machine's gcc, BuildError with the compiler's last
    lines.
    """
    cc = find_arch(arch).cc
    make, _ = host.need("make"), host.need(cc)
    sources = guest_sources()
    options = [f"CC={cc}", *_sqlite(arch)]
    options += [f"PAGE_SIZE={page_size}"] if page_size != PAGE else []
    identity = host.digest(host.digest_tree(paths.GUEST, sources), host.version(cc), *options)
    target = out_dir / identity[:16]
    program = target / name
    if used(program).is_file():
        return program
    target.mkdir(parents=True, exist_ok=True)
    with host.lock(target / "lock"):
        if not program.is_file():
            words = ["-s", f"BUILD={target}", *options, str(program)]
            done = host.run([make, *words], cwd=paths.GUEST)
            if done.returncode:
                last = "\n".join(done.stderr.splitlines()[-20:])
                raise BuildError(f"the guest does not compile:\n{last}")
    return program


def _sqlite(arch: str) -> list[str]:
    """What make is told of SQLite for another machine than the PC, which has its own."""
    if arch == "x86_64":
        return []
    usr = programs.unpacked("libsqlite3-dev", arch) / "usr"
    return [
        f"SQLITE_INCLUDE={usr / 'include'}",
        f"SQLITE_LIB={usr / 'lib' / programs.TRIPLET[arch]}",
    ]


@dataclass(frozen=True)
class Member:
    """A file or directory of an archive besides the guest: name, mode with type, content."""

    name: str
    mode: int
    data: bytes = b""


def build_initramfs(
    guest_bin: Path,
    conf: str,
    out: Path,
    conf_name: str = CONF,
    members: Sequence[Member] = (),
) -> Path:
    """Write a newc archive with the guest as /init and `conf` at the top; returns `out`.

    Same input, same bytes: times, owners and inode numbers are fixed.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f"{out.name}.{os.getpid()}.part")
    part.write_bytes(_archive(guest_bin.read_bytes(), conf, conf_name, members))
    part.replace(out)
    return out


def identity() -> str:
    """SHA-256 of a phone's archive but for the guest and the conf."""
    return host.digest(_archive(b"", "", CONF, ()))


def _archive(init: bytes, conf: str, conf_name: str, members: Sequence[Member]) -> bytes:
    entries = [_entry(i, *node, b"") for i, node in enumerate(NODES, start=1)]
    entries.append(_entry(100, "init", stat.S_IFREG | 0o755, 0, 0, init))
    entries.append(_entry(101, conf_name, stat.S_IFREG | 0o644, 0, 0, conf.encode()))
    for ino, member in enumerate(members, start=200):
        entries.append(_entry(ino, member.name, member.mode, 0, 0, member.data))
    entries.append(_entry(0, "TRAILER!!!", 0, 0, 0, b""))
    return b"".join(entries)


def _entry(ino: int, name: str, mode: int, major: int, minor: int, data: bytes) -> bytes:
    """One member: header, name and data, each padded to four bytes."""
    raw = name.encode() + b"\0"
    fields = [ino, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(raw), 0]
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + raw
    return head + _pad(head) + data + _pad(data)


def _pad(data: bytes) -> bytes:
    return b"\0" * (-len(data) % 4)
