"""Files that are written whole, and what is no file."""

import errno
import os
import threading
from fcntl import LOCK_EX, LOCK_SH
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from cohort import host
from cohort.cluster import content
from cohort.errors import Stopped
from tests_support import may_lock


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "deep" / "file")
    for text in ("one", "two"):
        host.write_text(link, text)
        assert link.is_symlink()
        assert (tmp_path / "deep" / "file").read_text() == text


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        host.write_text(pipe, "told")
        assert os.read(reader, 99) == b"told"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_pipe_is_written_to_by_its_link(tmp_path: Path) -> None:
    """As /dev/stdout is one of it: where that leads to has no name."""
    reader, writer = os.pipe()
    try:
        (tmp_path / "link").symlink_to(f"/proc/self/fd/{writer}")
        host.write_text(tmp_path / "link", "told")
        assert os.read(reader, 99) == b"told"
    finally:
        os.close(reader)
        os.close(writer)


def test_a_program_may_say_anything() -> None:
    """Names of files, of a device's processes, and of a compiler's locale are bytes."""
    done = host.run(["sh", "-c", r"printf 'a\377b\n'; printf '\200' >&2"])
    assert (done.stdout, done.stderr) == ("a\ufffdb\n", "\ufffd")


def test_a_program_is_told_the_same_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags went into the guest, whose program is kept for commands without them; and git in a hook
    of another checkout told that one's commit."""
    for name in ("CFLAGS", "KCFLAGS", "MAKEFLAGS", "GIT_DIR", "LANGUAGE"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LC_ALL", "es_ES.UTF-8")
    monkeypatch.setenv("LC_MESSAGES", "es_ES.UTF-8")
    said = host.run(["env"]).stdout.splitlines()
    assert "LC_ALL=C.UTF-8" in said
    assert [line for line in said if line.endswith("=x")] == []
    assert "LANGUAGE=x" in host.run(["env"], env={"LANGUAGE": "x"}).stdout


def test_an_error_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IsADirectoryError):
        host.write_text(tmp_path, "x")
    assert not list(tmp_path.parent.glob(f"{tmp_path.name}*.part"))

    def full(self: Path, content: bytes) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        host.write_text(tmp_path / "file", "x")
    assert list(tmp_path.iterdir()) == []


def test_two_writers_of_one_file_do_not_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a part of its own: the second does not take away that of the first."""
    write, both = Path.write_bytes, threading.Barrier(2, timeout=60)

    def slow(self: Path, content: bytes) -> int:
        done = write(self, content)
        both.wait()
        return done

    monkeypatch.setattr(Path, "write_bytes", slow)
    failed: list[BaseException] = []

    def writer(text: str) -> None:
        try:
            host.write_text(tmp_path / "file", text)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=writer, args=(text,)) for text in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [x.name for x in tmp_path.iterdir()] == ["file"]


@pytest.mark.usefixtures("own_out")
def test_commands_that_ship_the_same_file_pack_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 1000)
    pack, packs, inside = content._packed, [0], threading.Event()

    def slow(path: Path) -> bytes:
        packs[0] += 1
        inside.set()
        threading.Event().wait(0.2)
        return pack(path)

    monkeypatch.setattr(content, "_packed", slow)
    made: list[content.Content] = []
    threads = [threading.Thread(target=lambda: made.append(content.of_file(file))) for _ in "ab"]
    threads[0].start()
    inside.wait(60)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert packs == [1]
    assert made[0] == made[1]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is logged for the user."""
    lines: list[str] = []
    monkeypatch.setattr(host.log, "info", lambda text, *words: lines.append(text % words))
    return lines


def test_a_wait_for_another_command_is_told_and_can_be_called_off(
    tmp_path: Path, told: list[str]
) -> None:
    """Ctrl-C was swallowed where a thread of a pool waited, and nothing said for what."""
    path, stop, ended = tmp_path / "lock", threading.Event(), list[BaseException]()

    def wait() -> None:
        try:
            with host.lock(path, stop=stop):
                pass
        except Stopped as error:
            ended.append(error)

    with host.lock(path):
        # A daemon: were it not called off, pytest would wait for it.
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        thread.join(host.LOCK_TOLD_S + 1)
        assert told == [f"waiting for another cohort ({path})"]
        stop.set()
        thread.join(2)
        assert (thread.is_alive(), len(ended)) == (False, 1)


def test_a_lock_that_is_free_is_had_at_once_and_in_silence(tmp_path: Path, told: list[str]) -> None:
    path = tmp_path / "lock"
    with host.lock(path, shared=True), host.lock(path, shared=True):
        assert not may_lock(path, LOCK_EX)
    with host.lock(path, stop=threading.Event()):
        assert not may_lock(path, LOCK_SH)
    assert told == []


def test_a_directory_is_held_without_a_file_in_it(tmp_path: Path, told: list[str]) -> None:
    """As on a read-only disk."""
    tmp_path.chmod(0o555)
    with host.lock_directory(tmp_path, shared=True), host.lock_directory(tmp_path, shared=True):
        assert not may_lock(tmp_path, LOCK_EX)
    with host.lock_directory(tmp_path):
        assert not may_lock(tmp_path, LOCK_SH)
    assert may_lock(tmp_path, LOCK_EX)
    assert (list(tmp_path.iterdir()), told) == ([], [])


def test_a_file_system_without_locks_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(host, "flock", refuse)
    with host.lock_directory(tmp_path):
        pass
    with pytest.raises(FileNotFoundError), host.lock_directory(tmp_path / "gone"):
        pass


@pytest.mark.parametrize(("code", "said"), [(0, "No space left on device"), (1, "no mercy")])
def test_a_program_that_found_room_is_no_failure_of_the_disk(code: int, said: str) -> None:
    host.check_room(CompletedProcess(["mke2fs"], code, "", said), Path("image"))


def test_a_tree_is_known_by_names_modes_links_and_empty_directories(tmp_path: Path) -> None:
    def digest(modes: int = host.EXECUTABLE) -> str:
        return host.digest_tree(tmp_path, tmp_path.rglob("*"), modes)

    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("two")
    (tmp_path / "a").chmod(0o644)
    seen = [digest()]
    (tmp_path / "a").chmod(0o664)
    assert digest() == seen[0], "as another umask leaves it in a checkout"
    assert digest(host.PERMISSIONS) != seen[0]
    (tmp_path / "a").chmod(0o755)
    seen.append(digest())
    (tmp_path / "link").symlink_to("a")
    seen.append(digest())
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("b")
    seen.append(digest())
    (tmp_path / "empty").mkdir()
    seen.append(digest())
    assert len(set(seen)) == len(seen)
