"""Debian's root for suites: what an interrupted debootstrap leaves is no way into the host."""

from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from cohort import host
from cohort.errors import HostError
from cohort.phone import programs
from cohort.suites import root


class Host:
    """Stands in for the host: remembers what was called, with the exit codes it is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mounts: Path, **codes: int) -> None:
        self.calls: list[list[str]] = []
        self.codes = codes
        monkeypatch.setattr(root, "MOUNTS", mounts)
        monkeypatch.setattr(root, "codename", lambda: "bookworm")
        monkeypatch.setattr(programs, "versions", lambda names: [*names])
        monkeypatch.setattr("os.geteuid", lambda: 0)
        monkeypatch.setattr(host, "need", Path)
        monkeypatch.setattr(host, "run", self.run)

    def run(self, argv: Sequence[str | Path]) -> CompletedProcess[str]:
        words = [str(word) for word in argv]
        self.calls.append(words)
        if "debootstrap" in words:
            Path(words[-1]).mkdir()
        return CompletedProcess(words, self.codes.get(words[0], 0), "", "")


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
