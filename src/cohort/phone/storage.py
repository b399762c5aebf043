"""The phone's storage: an ext4 image with every block of every app file really there.

Files are filled with a pattern (a hole would be read without touching the device). Identifiers,
hash seed and times are fixed, so the same workload gives the same bytes.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from cohort import host
from cohort.errors import BuildError, UsageError, from_oserror
from cohort.kept import used
from cohort.phone import bench, programs
from cohort.phone.schema import Workload

_VERSION = "1"  # of the layout; part of the image's identity
_UUID = "c0401207-0000-4000-8000-000000000001"
_EPOCH = 1704067200  # 2024-01-01, the guest's clock at start
_CHUNK = 1 << 20
_WORDS = "see you tomorrow at the station please bring the book and call when there"


def image_files(workload: Workload) -> Iterator[tuple[str, int]]:
    """(path, bytes) of every file in the image."""
    yield "system/framework", workload.system.framework_mb.value << 20
    for name, app in workload.app.items():
        category = workload.category[app.category]
        yield f"app/{name}/code", category.code_mb.value << 20
        yield f"app/{name}/res", category.res_mb.value << 20
    if workload.pressure is not None:
        yield "pressure", workload.pressure.file_mb.value << 20


def check_files(workload: Workload, where: str) -> None:
    """UsageError, beginning with `where`, if the image has no room for its files."""
    files_mb = sum(size for _, size in image_files(workload)) >> 20
    image_mb = workload.machine.image_mb.value
    if files_mb >= image_mb:
        raise UsageError(
            f"{where}: machine.image_mb: {image_mb} MiB are too little, the files have {files_mb}",
            "shipped phones leave half a gigabyte for what is written",
        )


def padded(image: Path) -> Path:
    """A copy of the image, made once, whose size is a power of two, as a PCI device's memory is.

    The rest is a hole. HostError on a full disk.
    """
    copy = image.with_suffix(".pci")
    with host.lock(image.with_suffix(".lock")):
        if not copy.is_file():
            part = image.with_suffix(".part")
            try:
                shutil.copyfile(image, part)
                os.truncate(part, 1 << (image.stat().st_size - 1).bit_length())
            except OSError as error:
                raise from_oserror(error) from error
            part.replace(copy)
    return copy


def build_storage(workload: Workload, out_dir: Path, arch: str = "x86_64") -> Path:
    """Make the image once for each content; its path. `arch` is that of programs in it.

    The guest may write to it: give each run a private view (`share=off`) or a copy.
    Raises MissingTool without mke2fs, BuildError with its message, HostError on a full disk.
    """
    tools = host.need("mke2fs"), host.need("debugfs")
    files = list(image_files(workload))
    size_mb = workload.machine.image_mb.value
    messages = {
        f"app/{x}/messages": a.messages.value for x, a in workload.app.items() if a.messages
    }
    identity = host.digest(_VERSION, repr(files), str(size_mb))
    if messages:
        identity = host.digest(identity, repr(messages), sqlite3.sqlite_version)
    opt = programs.fetch(bench.PROGRAMS, arch) if workload.bench is not None else None
    if opt is not None:
        identity = host.digest(identity, opt.name)
    image = out_dir / f"{identity[:16]}.img"  # workloads with the same files share it
    if image.is_file():
        return used(image)
    out_dir.mkdir(parents=True, exist_ok=True)
    with host.lock(image.with_suffix(".lock")):
        if not image.is_file():
            try:
                _make(image, files, messages, opt, size_mb, *tools)
            except OSError as error:
                raise from_oserror(error) from error
    return image


def _make(
    image: Path,
    files: list[tuple[str, int]],
    messages: dict[str, int],
    opt: Path | None,
    size_mb: int,
    mke2fs: Path,
    debugfs: Path,
) -> None:
    part = image.with_suffix(".part")
    part.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=image.parent) as name:
        root = Path(name)
        _populate(root, files)
        for path, count in messages.items():
            _write_messages(root / path, count)
        if opt is not None:
            shutil.copytree(opt, root, dirs_exist_ok=True)
        _set_modes(root)
        _run(
            part,
            [mke2fs, "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-U", _UUID],
            ["-O", "^metadata_csum", "-E", f"hash_seed={_UUID},lazy_itable_init=0,root_owner=0:0"],
            ["-d", root, part, f"{size_mb}m"],
        )
        _fix_times(root, part, debugfs)
    part.replace(image)


def _populate(root: Path, files: list[tuple[str, int]]) -> None:
    for directory in ("db", "tmp"):
        (root / directory).mkdir()
    for seed, (path, size) in enumerate(files, start=1):
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            for block in range(size // _CHUNK):
                file.write(_pattern(seed, block))


def _write_messages(path: Path, count: int) -> None:
    """An SQLite database of `count` text messages in 40 threads, the same for the same library."""
    words = tuple(_WORDS.split())
    rows = []
    for i in range(count):
        body = " ".join(words[i * k % len(words)] for k in range(3, 23))
        rows.append((i, i * i % 40, _EPOCH + 60 * i, body))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, thread INT, date INT, body TEXT)")
        db.executemany("INSERT INTO message VALUES (?, ?, ?, ?)", rows)
        db.execute("CREATE INDEX by_thread ON message (thread, date)")


def _pattern(seed: int, block: int) -> bytes:
    """One chunk, different for every file and block and nowhere zero."""
    word = b"%08x%08x" % (seed, block + 1)
    return word * (_CHUNK // len(word))


def _run(image: Path, *argv: list[str | Path]) -> None:
    """Run a program that writes the image; HostError on a full disk, BuildError for all else."""
    words = [word for part in argv for word in part]
    env = {**host.environment(), "E2FSPROGS_FAKE_TIME": str(_EPOCH)}
    done = host.run(words, env=env)
    host.check_room(done, image)
    if done.returncode:
        raise BuildError(f"{Path(words[0]).name} failed: {done.stderr.strip()}")


def _set_modes(root: Path) -> None:
    """mke2fs copies modes, which are a matter of the umask."""
    for path in root.rglob("*"):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & host.EXECUTABLE
            path.chmod(0o755 if runs else 0o644)


def _fix_times(root: Path, image: Path, debugfs: Path) -> None:
    """mke2fs copies the times of the files it was given, and the user: overwrite them."""
    copied = sorted(f"/{path.relative_to(root)}" for path in root.rglob("*"))
    names = ["/", "/lost+found", *copied]
    fields = ("atime", "ctime", "mtime", "crtime")
    extra = ("atime_extra", "ctime_extra", "mtime_extra", "crtime_extra")
    script = root / "times"
    script.write_text(
        "".join(f"sif {name} {field} @{_EPOCH}\n" for name in names for field in fields)
        + "".join(f"sif {name} {field} 0\n" for name in names for field in extra)
        + "".join(f"sif {name} {field} 0\n" for name in copied for field in ("uid", "gid"))
    )
    _run(image, [debugfs, "-w", "-f", script, image])
