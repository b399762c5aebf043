"""What the user sees while work goes on: log lines and progress, both on stderr.

stdout belongs to the result. On a terminal, progress is a bar; elsewhere (a CI log, a terminal that
can only print) it is a line now and then.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Update = Callable[[int, int], None]
"""Called with how much is done and how much there is; a total of 0 means that it is not known."""

LINE_EVERY_S = 15.0

console = Console(stderr=True, highlight=False)


def setup(verbosity: int) -> None:
    """Send log records to stderr: warnings at -1, information at 0, everything at 1."""
    level = {-1: logging.WARNING, 0: logging.INFO}.get(verbosity, logging.DEBUG)
    handler = RichHandler(console=console, show_path=False, show_time=False, markup=False)
    root = logging.getLogger("cohort")
    root.handlers[:] = [handler]
    root.setLevel(level)
    root.propagate = False


def tell(line: str) -> None:
    """Print a line on stderr as it is, unless only warnings are wanted. A record would be folded,
    and a path is there to be copied."""
    if not _quiet():
        print(line, file=sys.stderr, flush=True)


def _quiet() -> bool:
    """Whether only warnings and errors are wanted. The level that was set counts: without `setup`,
    as in a test, all is told."""
    return logging.getLogger("cohort").level > logging.INFO


class Board:
    """Several pieces of work under way at once, each with its bar or its lines."""

    def __init__(self, bars: Progress | None) -> None:
        self._bars = bars

    def task(self, title: str) -> Update:
        """A new piece of work; the returned function reports how far it is."""
        if self._bars is None:
            return line_writer(title)
        bars = self._bars
        task = bars.add_task(title, total=None)

        def update(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total or None)

        return update


@contextmanager
def progress() -> Iterator[Board]:
    """A board for the time of the work; without bars where they cannot be drawn, or with -q."""
    if _quiet() or not console.is_terminal or console.is_dumb_terminal:
        yield Board(None)
        return
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as bars:
        yield Board(bars)


def line_writer(title: str) -> Update:
    """Progress for a log file: a line every LINE_EVERY_S seconds, and one at the end; none with -q.

    A piece of work may have several parts (fetch, then build): counting from below starts anew.
    """
    last = time.monotonic()
    before, ended = 0, False

    def update(done: int, total: int) -> None:
        nonlocal last, before, ended
        now = time.monotonic()
        ended = ended and done >= before
        before = done
        finished = total > 0 and done >= total
        if ended or (not finished and now - last < LINE_EVERY_S):
            return
        last, ended = now, finished
        tell(f"{title}: {done}/{total or '?'}")

    return update
