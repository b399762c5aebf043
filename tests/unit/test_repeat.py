"""Tests that run again and again, beside loops that end whatever happens."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import repeat

SOMETIMES = """\
import pathlib


def test_good():
    pass


def test_bad():
    count = pathlib.Path(__file__).with_suffix(".count")
    count.write_text(count.read_text() + "x" if count.exists() else "x")
    assert len(count.read_text()) % 2
"""


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session of its own: a test that is good, and one that fails every second time."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "test_tiny.py"
    path.write_text(SOMETIMES)
    return path


def gone(pid: int) -> bool:
    """Is the process over? One that nobody has waited for yet is as well."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_what_fails_now_and_then_is_in_the_table(
    tests: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert repeat.main([tests.name, "--times", "3", "--busy", "1"]) == 1
    said = capfd.readouterr().out
    assert "| test_tiny.py::test_bad | 3 | 1 | 0 |" in said
    assert "test_good" not in said.partition("| test |")[2]
    assert said.endswith("2 tests, 3 times: 1 of them failed\n")


def test_what_never_fails_is_good(tests: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert repeat.main([tests.name, "-k", "good", "--times", "2", "--busy", "0"]) == 0
    assert capfd.readouterr().out.endswith("1 tests, 2 times: 0 of them failed\n")


@pytest.mark.parametrize(("words", "code"), [(["-k", "none_is_called_so"], 5), (["no_such.py"], 4)])
def test_what_pytest_cannot_run_is_no_success(tests: Path, words: list[str], code: int) -> None:
    assert repeat.main([*words, "--times", "2", "--busy", "0"]) == code


def test_without_tests_there_is_nothing_to_repeat(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        repeat.main(["--times", "2"])
    assert ended.value.code == 2
    assert "name the tests" in capfd.readouterr().err


def test_loops_are_busy_as_long_as_they_are_asked_for() -> None:
    with repeat.busy_loops(2) as loops:
        assert [pid for pid in loops if gone(pid)] == []
    assert [pid for pid in loops if not gone(pid)] == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_it(tests: Path, how: signal.Signals) -> None:
    """The loops are children of the script, and pytest is one."""
    tests.write_text(
        "import time\n\n\ndef test_long():\n    open('began', 'w')\n    time.sleep(60)\n"
    )
    argv = [sys.executable, repeat.__file__, tests.name, "--busy", "2"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        while not Path("began").exists():
            time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 3
        process.send_signal(how)
        code = process.wait()
    assert code == (-how if how == signal.SIGKILL else 130)
    loops = [int(pid) for pid in children[: 3 if how != signal.SIGKILL else 2]]
    for _ in range(100):
        if all(map(gone, loops)):
            break
        time.sleep(0.05)
    assert [pid for pid in loops if not gone(pid)] == []
    if how == signal.SIGKILL:
        os.kill(int(children[2]), signal.SIGKILL)
