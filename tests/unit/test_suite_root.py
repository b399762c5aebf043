"""Roots of suites: what an initramfs has in it, and what debootstrap leaves of one of Debian."""

import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from cohort import host, kept
from cohort.errors import BuildError, CohortError, HostError, MissingTool, Skipped, UsageError
from cohort.phone import programs as phone_programs
from cohort.suites import root
from made_suites import SUITE, TWO


class Host:
    """Stands in for the host: remembers what was called, with the exit codes it is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mounts: Path, **codes: int) -> None:
        self.calls: list[list[str]] = []
        self.codes = codes
        self.said = self.logged = ""
        monkeypatch.setattr(kept, "MOUNTS", mounts)
        monkeypatch.setattr(root, "codename", lambda: "bookworm")
        monkeypatch.setattr(phone_programs, "versions", lambda names: [*names])
        monkeypatch.setattr("os.geteuid", lambda: 0)
        monkeypatch.setattr(host, "need", Path)
        monkeypatch.setattr(host, "run", self.run)

    def run(self, argv: Sequence[str | Path]) -> CompletedProcess[str]:
        words = [str(word) for word in argv]
        self.calls.append(words)
        if "debootstrap" in words:
            log = Path(words[-1]) / "debootstrap/debootstrap.log"
            log.parent.mkdir(parents=True)
            log.write_text(self.logged)
        if words[0] == "mke2fs":
            Path(words[-2]).touch()
        return CompletedProcess(words, self.codes.get(words[0], 0), "", self.said)


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    table = tmp_path / "mounts"
    table.write_text("proc /proc proc rw 0 0\n")
    return table


def test_what_debootstrap_mounts_ends_with_it(
    own_out: Path, mounts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = Host(monkeypatch, mounts)
    made = root.debian()
    assert made.is_dir()
    assert called.calls[-1][:6] == [
        *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
        "debootstrap",
    ]


def test_a_container_that_allows_no_namespace_has_debootstrap_alone(
    own_out: Path, mounts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = Host(monkeypatch, mounts, unshare=1)
    root.debian()
    assert called.calls[-1][0] == "debootstrap"


def test_a_disk_that_debootstrap_found_full_is_told_as_such(
    own_out: Path, mounts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a build that failed, with exit code 5 and a log to be read."""
    called = Host(monkeypatch, mounts, unshare=1, debootstrap=1)
    called.logged = "dpkg: error: cannot copy: No space left on device\n"
    with pytest.raises(HostError, match="the disk is full"):
        root.debian()


@pytest.mark.parametrize("code", [0, 32])
def test_what_is_mounted_below_a_rest_goes_before_the_rest(
    own_out: Path, mounts: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Through a mount that is not gone what is removed would be the host's."""
    called = Host(monkeypatch, mounts, umount=code)
    made = root.debian()
    part = made.rename(made.with_suffix(".part"))
    (part / "file").touch()
    proc, inner = part / "proc", part / "proc/sys/fs"
    with mounts.open("a") as table:
        table.write(f"proc {proc} proc rw 0 0\nx {inner} binfmt_misc rw 0 0\n")
    if code:
        with pytest.raises(HostError, match="is still mounted"):
            root.debian()
        assert (part / "file").is_file()
        return
    assert root.debian() == made
    unmounted = [words for words in called.calls if words[0] == "umount"]
    assert unmounted == [["umount", str(inner)], ["umount", str(proc)]]


def test_the_initramfs_has_a_shell_and_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"\x7fELF shell")
    monkeypatch.setattr(host, "need", lambda name: busybox)
    members = {member.name: member for member in root.initramfs([TWO])}
    assert members["bin/busybox"].data == b"\x7fELF shell"
    assert members["bin/sh"].mode == stat.S_IFLNK | 0o777
    assert members["suite/passes"].mode & 0o111
    assert members["suite/suite.toml"].data == (TWO / "suite.toml").read_bytes()


def test_a_root_is_made_on_debian_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text('ID=debian\nVERSION_CODENAME="bookworm"\n')
    monkeypatch.setattr(root, "RELEASE", release)
    assert root.codename() == "bookworm"
    release.write_text("ID=fedora\n")
    with pytest.raises(Skipped, match="on a Debian host only"):
        root.codename()


def test_what_a_root_is_made_with_is_known_before_a_kernel_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lacks(programs: Sequence[str]) -> None:
        raise MissingTool(f"{', '.join(programs)} are not installed")

    root.check_makes("initramfs", SUITE)
    monkeypatch.setattr(host, "need_all", lacks)
    with pytest.raises(MissingTool, match="debootstrap, mke2fs are not"):
        root.check_makes("debian", SUITE)


def test_a_program_of_another_machine_is_refused(tmp_path: Path) -> None:
    elf = b"\x7fELF" + bytes(14)
    (tmp_path / "ours").write_bytes(elf + b"\xb7\0 and so on")
    (tmp_path / "script").write_text("#!/bin/sh\n")
    suite = SUITE.model_copy(update={"files": tmp_path})
    root.check("initramfs", suite, "arm64")
    (tmp_path / "theirs").write_bytes(elf + b"\x3e\0 and so on")
    root.check("initramfs", suite, "x86_64")
    with pytest.raises(UsageError, match="theirs is a program of another machine") as refused:
        root.check("initramfs", suite, "arm64")
    assert refused.value.hint == "compile it with aarch64-linux-gnu-gcc -static"


def test_the_initramfs_of_another_machine_has_its_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/busybox").write_bytes(b"of arm64")
    asked = []

    def unpacked(*words: str) -> Path:
        asked.append(words)
        return tmp_path

    monkeypatch.setattr(phone_programs, "unpacked", unpacked)
    members = {member.name: member for member in root.initramfs([], "arm64")}
    assert members["bin/busybox"].data == b"of arm64"
    assert asked == [("busybox-static", "arm64")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files of a suite: a program, and links to a directory and to a file outside of it."""
    made = tmp_path / "mine"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "data").write_text("old")
    made.mkdir()
    (made / "run").write_text("#!/bin/sh\n")
    (made / "run").chmod(0o644)
    (made / "linked").symlink_to(tmp_path / "outside")
    (made / "data").symlink_to(tmp_path / "outside" / "data")
    return made


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: (tree / "run").chmod(0o755),
        lambda tree: (tree / "run").chmod(0o600),
        lambda tree: tree.chmod(0o700),
        lambda tree: (tree / "empty").mkdir(),
        lambda tree: (tree / "linked" / "more").touch(),
        lambda tree: (tree / "run").rename(tree / "walk"),
    ],
    ids=["executable", "private", "private-directory", "directory", "behind-a-link", "name"],
)
def test_an_image_is_made_again_for_all_that_is_in_it(
    own_out: Path,
    mounts: Path,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], object],
) -> None:
    """After `chmod +x` a suite's program went on failing, as the image was that of before."""
    Host(monkeypatch, mounts)
    first = root.image([tree], (), 64)
    assert root.image([tree], (), 64) == first
    change(tree)
    assert root.image([tree], (), 64) != first


@pytest.mark.parametrize(
    ("said", "error"),
    [("No space left on device", HostError), ("Filesystem too small", BuildError)],
)
def test_a_full_disk_is_told_from_an_image_that_cannot_be_made(
    said: str,
    error: type[CohortError],
    own_out: Path,
    mounts: Path,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called = Host(monkeypatch, mounts, mke2fs=1)
    called.said = f"mke2fs: {said}"
    with pytest.raises(error) as caught:
        root.image([tree], (), 64)
    assert ("cohort clean" in str(caught.value)) == (error is HostError)


def test_links_are_brought_as_what_they_lead_to(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busybox = tree.with_name("busybox")
    busybox.touch()
    monkeypatch.setattr(host, "need", lambda name: busybox)
    members = {member.name: member for member in root.initramfs([tree])}
    assert {members[f"suite/{x}"].data for x in ("data", "linked/data")} == {b"old"}


@pytest.mark.parametrize(("target", "said"), [("gone", "leads nowhere"), ("..", "in which it")])
def test_a_link_that_has_no_copy_is_refused(tree: Path, target: str, said: str) -> None:
    (tree / "odd").symlink_to(target)
    suite = SUITE.model_copy(update={"files": tree})
    with pytest.raises(UsageError, match=said):
        root.check("debian", suite, root.HOST)
