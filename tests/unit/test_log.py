"""Progress in a log file, where no bar can be drawn."""

import io
import tomllib

import pytest
from packaging.requirements import Requirement
from rich.console import Console

from cohort import log, paths


def test_every_part_of_a_work_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter(range(0, 1000, 10))
    monkeypatch.setattr("cohort.log.time.monotonic", lambda: float(next(seconds)))
    update = log.line_writer("kernel")
    for done, total in ((1, 9), (5, 9), (9, 9), (9, 9), (2, 60), (40, 60), (60, 60), (60, 60)):
        update(done, total)
    lines = ["kernel: 5/9", "kernel: 9/9", "kernel: 2/60", "kernel: 60/60"]
    captured = capsys.readouterr()
    assert captured.err.splitlines() == lines
    assert captured.out == ""


def test_a_terminal_that_can_only_print_has_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bars need a cursor that moves: on a dumb terminal they would never be seen."""
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    monkeypatch.setattr(log, "console", dumb)
    with log.progress() as board:
        board.task("kernel")(3, 3)
    assert capsys.readouterr().err == "kernel: 3/3\n"


@pytest.mark.usefixtures("own_level")
@pytest.mark.parametrize(("verbosity", "told"), [(-1, False), (0, True), (1, True)])
def test_only_warnings_are_wanted(
    verbosity: int,
    told: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a terminal, which has bars, as in a log file, which has lines."""
    bars = io.StringIO()
    terminal = Console(file=bars, force_terminal=True, _environ={"TERM": "xterm"})
    for console in (terminal, Console(stderr=True)):
        monkeypatch.setattr(log, "console", console)
        log.setup(verbosity)
        with log.progress() as board:
            board.task("kernel")(3, 3)
    log.tell("report: /some/where")
    lines = ["kernel: 3/3", "report: /some/where"] if told else []
    assert capsys.readouterr().err.splitlines() == lines
    assert ("kernel" in bars.getvalue()) is told


def test_a_board_may_be_shown_within_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """As kernels are built within a comparison. Before rich 14.1 the second was a LiveError."""
    terminal = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "xterm"})
    monkeypatch.setattr(log, "console", terminal)
    with log.progress() as board, log.progress() as inner:
        board.task("launches")(1, 2)
        inner.task("kernel")(2, 2)
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [Requirement(line) for line in project["dependencies"]]
    (rich,) = [one for one in wanted if one.name == "rich"]
    assert [x for x in ("14.0.0", "14.1.0") if x in rich.specifier] == ["14.1.0"]
