"""What the guest boots from: its program, the archive, the ext4 image."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from cohort import host, paths
from cohort.errors import BuildError, HostError
from cohort.phone import initramfs, programs, storage
from cohort.phone.workload import Workload, load_workload


def _members(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """Name to (mode, data) of a newc archive, read by the book."""
    found: dict[str, tuple[int, bytes]] = {}
    at = 0
    while True:
        assert archive[at : at + 6] == b"070701"
        field = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        mode, size, name_size = field[1], field[6], field[11]
        name = archive[at + 110 : at + 110 + name_size - 1].decode()
        start = (at + 110 + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (mode, archive[start : start + size])
        at = (start + size + 3) // 4 * 4


def test_archive_holds_program_and_conf(tmp_path: Path) -> None:
    program = tmp_path / "phone"
    program.write_bytes(b"\x7fELF program")
    out = initramfs.build_initramfs(program, "phone x\n", tmp_path / "deep" / "initramfs")
    members = _members(out.read_bytes())
    assert members["init"] == (0o100755, b"\x7fELF program")
    assert members["phone.conf"] == (0o100644, b"phone x\n")
    assert members["dev/console"][0] == 0o020600
    assert {"proc", "sys", "dev", "data", "tmp"} <= set(members)


def test_archive_is_deterministic(tmp_path: Path) -> None:
    program = tmp_path / "phone"
    program.write_bytes(b"x")
    first = initramfs.build_initramfs(program, "a", tmp_path / "1").read_bytes()
    program.touch()
    assert initramfs.build_initramfs(program, "a", tmp_path / "2").read_bytes() == first
    assert initramfs.build_initramfs(program, "b", tmp_path / "3").read_bytes() != first


# As a compiler that is killed while it writes: half a program, and no success.
HALF_COMPILER = """\
#!/bin/sh
case "$1" in --version) echo "gcc 0"; exit ;; esac
while [ "$1" != -o ]; do shift; done
printf half > "$2"
exit 1
"""


def test_half_a_guest_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gcc = tmp_path / "bin" / "gcc"
    gcc.parent.mkdir()
    gcc.write_text(HALF_COMPILER)
    gcc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{gcc.parent}:{os.environ['PATH']}")
    for _ in range(2):
        with pytest.raises(BuildError, match="the guest does not compile"):
            initramfs.build_guest(tmp_path / "out")
    assert list((tmp_path / "out").glob("*/phone")) == []


@pytest.mark.skipif(not (host.find("make") and host.find("gcc")), reason="needs make and gcc")
def test_guest_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = initramfs.build_guest(tmp_path)
    stamp = program.stat().st_mtime_ns
    assert program.read_bytes()[:4] == b"\x7fELF"
    assert initramfs.build_guest(tmp_path).stat().st_mtime_ns == stamp

    copy = tmp_path / "guest"
    shutil.copytree(paths.GUEST, copy)
    (copy / "base" / "rng.c").write_text("not C\n")
    monkeypatch.setattr(paths, "GUEST", copy)
    with pytest.raises(BuildError, match="rng.c"):
        initramfs.build_guest(tmp_path)


def test_a_pci_devices_storage_is_a_power_of_two(tmp_path: Path) -> None:
    image = tmp_path / "a.img"
    image.write_bytes(b"x" * 5120)
    copy = storage.padded(image)
    assert copy.read_bytes() == b"x" * 5120 + b"\0" * 3072
    assert image.stat().st_size == 5120
    stamp = copy.stat().st_mtime_ns
    assert storage.padded(image).stat().st_mtime_ns == stamp
    image.write_bytes(b"x" * 4096)
    copy.unlink()
    assert storage.padded(image).stat().st_size == 4096


@pytest.mark.skipif(not host.find("make"), reason="needs make")
def test_another_machines_guest_has_its_compiler_and_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell in the place of its compiler writes what make called it with."""
    compiler = tmp_path / "bin" / "aarch64-linux-gnu-gcc"
    compiler.parent.mkdir()
    compiler.write_text(
        '#!/bin/sh\nwords="$*"; while [ "$1" != -o ]; do shift; done; echo "$words" > "$2"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{compiler.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(programs, "unpacked", lambda package, arch: tmp_path / package / arch)
    host.version.cache_clear()
    words = initramfs.build_guest(tmp_path / "out", arch="arm64").read_text()
    assert "-DPAGE=4096UL" in words
    larger = initramfs.build_guest(tmp_path / "out", arch="arm64", page_size=16384)
    assert "-DPAGE=16384UL" in larger.read_text()
    host.version.cache_clear()
    assert f"-isystem {tmp_path}/libsqlite3-dev/arm64/usr/include" in words
    assert f"-L{tmp_path}/libsqlite3-dev/arm64/usr/lib/aarch64-linux-gnu" in words


def _small() -> Workload:
    """The phone with all its files cut down to a few MiB."""
    data = load_workload("phone-2g").model_dump(by_alias=True)
    data["app"] = {k: v for k, v in data["app"].items() if k in ("launcher", "cnn")}
    data["machine"]["image_mb"]["value"] = 64
    data["system"]["framework_mb"]["value"] = 2
    for category in data["category"].values():
        category["code_mb"]["value"] = category["res_mb"]["value"] = 1
    return Workload.model_validate(data)


needs_ext4 = pytest.mark.skipif(
    not (host.find("mke2fs") and host.find("debugfs")), reason="needs e2fsprogs"
)


@needs_ext4
def test_image_is_deterministic_and_has_no_holes(tmp_path: Path) -> None:
    one = storage.build_storage(_small(), tmp_path / "a")
    two = storage.build_storage(_small(), tmp_path / "b")
    assert one.name == two.name
    assert host.digest_file(one) == host.digest_file(two)
    words = [str(host.need("debugfs")), "-R", "stat /app/cnn/code", str(one)]
    stat = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "Blockcount: 2048" in stat  # 512-byte sectors: all of 1 MiB
    check = host.run([host.need("e2fsck"), "-fn", one])
    assert check.returncode == 0, check.stdout


@needs_ext4
def test_image_is_the_same_for_every_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mke2fs copies modes, and the user and group that files belong to."""
    set_modes = storage._set_modes

    def of_another(root: Path) -> None:
        for path in root.rglob("*"):
            os.chown(path, 1234, 1234)
        set_modes(root)

    one = storage.build_storage(_small(), tmp_path / "a")
    if os.geteuid() == 0:
        monkeypatch.setattr(storage, "_set_modes", of_another)
    before = os.umask(0o077)
    try:
        two = storage.build_storage(_small(), tmp_path / "b")
    finally:
        os.umask(before)
    assert host.digest_file(one) == host.digest_file(two)
    words = [str(host.need("debugfs")), "-R", "stat /app/cnn/code", str(one)]
    stat = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert re.search(r"Mode:\s+0644", stat) and re.search(r"User:\s+0 +Group:\s+0 ", stat), stat


@needs_ext4
def test_image_is_cached(tmp_path: Path) -> None:
    image = storage.build_storage(_small(), tmp_path)
    stamp = image.stat().st_mtime_ns
    assert storage.build_storage(_small(), tmp_path).stat().st_mtime_ns == stamp
    assert not list(tmp_path.glob("tmp*"))


@needs_ext4
def test_image_too_small_says_so(tmp_path: Path) -> None:
    data = _small().model_dump(by_alias=True)
    data["machine"]["image_mb"]["value"] = 4
    with pytest.raises(BuildError):
        storage.build_storage(Workload.model_validate(data), tmp_path)


@needs_ext4
def test_full_disk_is_a_host_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(root: Path, files: object) -> None:
        raise OSError(28, "No space left on device", str(root))

    monkeypatch.setattr(storage, "_populate", full)
    with pytest.raises(HostError, match="disk is full"):
        storage.build_storage(_small(), tmp_path)


def test_a_disk_that_is_full_when_the_image_is_written_is_a_host_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended with 5, as if something had not compiled."""
    said = "mke2fs: No space left on device while populating file system\n"
    monkeypatch.setattr(host, "need", Path)
    monkeypatch.setattr(host, "run", lambda words, env: CompletedProcess(words, 1, "", said))
    with pytest.raises(HostError, match=r"the disk is full: .*\.part") as caught:
        storage.build_storage(_small(), tmp_path)
    assert "cohort clean" in (caught.value.hint or "")
