"""What `out/` keeps is held while it is used, tells when it was used, and goes as a whole."""

import errno
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fcntl import LOCK_EX, LOCK_SH
from pathlib import Path
from threading import Thread, get_native_id

import pytest

from cohort import host, kept, paths
from cohort.phone import storage
from cohort.phone.workload import load_workload
from cohort.results.rundir import RunDir
from cohort.results.runs import measure
from cohort.suites import programs
from cohort.vm import steady
from made_runs import make_run
from tests_support import locked, may_lock

LONG_AGO = (10**9, 10**9)


def is_free(*directories: Path) -> bool:
    with kept.alone(directories) as free:
        return free


def test_what_a_command_asks_for_is_held_by_it(own_out: Path) -> None:
    runs, deep = paths.made("runs"), paths.made("suites", "runs", "mine")
    assert not may_lock(runs, LOCK_EX)
    assert {own_out.resolve(), own_out.resolve() / "suites"} <= kept._held.keys()
    assert deep not in kept._held
    kept.let_go(own_out.resolve())
    assert [x for x in kept._held if x.is_relative_to(own_out.resolve())] == []
    assert is_free(runs, deep)


def test_no_directory_is_free_that_another_command_holds(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    with locked(other, LOCK_SH):
        assert is_free(one)
        assert not is_free(one, other)
    assert is_free(one, other)


def test_a_command_waits_for_one_that_cleans(own_out: Path) -> None:
    runs = own_out / "runs"
    runs.mkdir(parents=True)
    asks = Thread(target=paths.made, args=("runs",))
    with locked(runs, LOCK_EX):
        asks.start()
        asks.join(4 * host.LOCK_POLL_S)
        assert asks.is_alive()
    asks.join(10)
    assert not asks.is_alive()
    assert runs.resolve() in kept._held


@pytest.mark.parametrize("held", ["suites", ""])
def test_what_is_removed_while_a_command_waits_is_made_anew(held: str, own_out: Path) -> None:
    """What was there before it waited is not what it was given."""
    there = own_out / "suites" / "runs" / "mine"
    there.mkdir(parents=True)
    asks = Thread(target=paths.made, args=("suites", "runs", "mine"))
    with locked(own_out / held, LOCK_EX):
        asks.start()
        asks.join(4 * host.LOCK_POLL_S)
        kept.remove(own_out / (held or ".") / ("runs" if held else "."))
    asks.join(10)
    assert there.is_dir()
    assert not may_lock(own_out / "suites", LOCK_EX)


def test_a_directory_that_is_made_anew_is_held_anew(own_out: Path) -> None:
    """As after `make clean`, or of another command's."""
    runs = paths.made("runs")
    shutil.rmtree(runs)
    assert paths.made("runs") == runs
    assert not may_lock(runs, LOCK_EX)


def test_a_file_system_without_locks_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(host, "flock", refuse)
    kept.hold(tmp_path)
    assert tmp_path not in kept._held


def test_a_use_is_noted_to_the_hour(tmp_path: Path) -> None:
    """A digest that is kept for the time of change should not be made again for each run."""
    file = tmp_path / "image"
    file.touch()
    for age, noted in ((2 * kept.EXACT_S, True), (kept.EXACT_S / 2, False)):
        then = time.time() - age
        os.utime(file, (then, then))
        assert kept.used(file) == file
        assert (file.stat().st_mtime > then + 1) == noted
    assert kept.used(tmp_path / "none") == tmp_path / "none"


def test_a_use_puts_a_time_to_come_right(tmp_path: Path) -> None:
    """Of a clock that was wrong: it would look used for as long."""
    now = time.time()
    os.utime(tmp_path, (now + 10 * kept.EXACT_S, now + 10 * kept.EXACT_S))
    assert kept.used(tmp_path).stat().st_mtime < now + 60


def test_what_is_removed_is_whole_or_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is killed in the middle leaves no half directory under its name."""
    cache = tmp_path / "cache"
    for name in ("a", "b"):
        (cache / name).mkdir(parents=True)
        (cache / name / "file").touch()

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            kept.remove(cache / "a")
    left, other = sorted(cache.iterdir())
    assert (kept.is_gone(left), other.name) == (True, "b")
    kept.remove(left)
    kept.remove(cache / "b")
    assert list(cache.iterdir()) == []


def directories(top: Path, count: int) -> list[Path]:
    found = [top / f"{number}" for number in range(count)]
    for path in found:
        path.mkdir(parents=True)
        (path / "file").touch()
    return found


def test_removals_in_one_directory_do_not_meet(tmp_path: Path) -> None:
    """Of runs that --fresh makes again several end at a time."""
    threads = 8
    found = directories(tmp_path / "runs", 20 * threads)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(kept.remove, found))
    assert list((tmp_path / "runs").iterdir()) == []


def test_what_a_dead_process_left_is_in_no_way(tmp_path: Path) -> None:
    """In a container the next one has its id."""
    [path] = directories(tmp_path / "runs", 1)
    (path.parent / ".gone" / f"{path.name}.{get_native_id()}" / "x").mkdir(parents=True)
    kept.remove(path)
    assert [x.name for x in path.parent.iterdir()] == [".gone"]


@pytest.mark.parametrize(("call", "number"), [("mkdir", errno.ENOSPC), ("rename", errno.EXDEV)])
def test_it_is_removed_where_a_call_is_refused(
    call: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk has no room for a directory, and one of a container's image gets no new name."""
    [path] = directories(tmp_path, 1)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, refuse)
    kept.remove(path)
    assert list(tmp_path.iterdir()) == []


def test_what_another_user_made_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [path] = directories(tmp_path, 1)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="Permission denied"):
        kept.remove(path)
    assert (path / "file").is_file()


def test_mounts_have_any_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mounts"
    table.write_bytes(b"a /media/caf\xe9 ext4 rw 0 0\nproc /out/a\\040b\\134c/proc proc rw 0 0\n")
    monkeypatch.setattr(kept, "MOUNTS", table)
    assert kept.mounted_below(Path("/out")) == [Path("/out/a b\\c/proc")]


def test_of_a_link_the_link_is_removed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    kept.remove(tmp_path / "link")
    assert [x.name for x in tmp_path.iterdir()] == ["there"]


def test_storage_and_programs_say_when_they_were_asked_for(
    own_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "need", Path)
    monkeypatch.setattr(storage, "_make", lambda image, *_: image.touch())
    monkeypatch.setattr(steady, "_compile", lambda gcc, made: made.touch())
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "mine.sh").touch()
    phone = load_workload("phone-2g")
    asks: tuple[Callable[[], Path], ...] = (
        lambda: storage.build_storage(phone, paths.made("storage")),
        lambda: programs.build(tmp_path / "sources"),
        steady.library,
    )
    for ask in asks:
        made = ask()
        os.utime(made, LONG_AGO)
        assert ask() == made
        assert made.stat().st_mtime > time.time() - 60, made


def test_a_run_that_is_shown_is_used(tmp_path: Path) -> None:
    run = make_run(tmp_path, "none")
    os.utime(run, LONG_AGO)
    measure(RunDir(run))
    assert run.stat().st_mtime > time.time() - 60
