#!/usr/bin/env python3
"""Runs tests again and again beside busy loops: one that fails now and then is a defect.

    tests/repeat.py tests/unit/test_x.py -k name --times 10 --busy 4

What is no option of this is pytest's. Exit code 1 for any failure, pytest's own if it could not run
the tests, 130 after Ctrl-C.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGINT, SIGTERM, default_int_handler, signal
from xml.etree import ElementTree

TIMES, BUSY = 10, 4
RAN = (0, 1)
"""Exit codes of pytest that say that all tests ran."""
SPIN = ("setpriv", "--pdeathsig", "KILL", sys.executable, "-c", "while True: pass")
"""A busy loop, which the kernel ends should this process be killed."""


@dataclass
class Tally:
    """How often each test ran, failed and was skipped, in `times` sessions."""

    times: int = 0
    ran: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def add(self, junit: Path) -> None:
        """Count a session, as pytest's XML of it says."""
        self.times += 1
        cases: dict[str, set[str]] = {}
        for case in ElementTree.parse(junit).iter("testcase"):
            kinds = {child.tag for child in case}
            # One that fails and whose fixture then fails, too, stands there twice.
            cases.setdefault(name_of(case), set()).update(kinds)
        for name, kinds in cases.items():
            self.ran[name] += 1
            self.failed[name] += bool(kinds & {"failure", "error"})
            self.skipped[name] += "skipped" in kinds

    def text(self) -> str:
        """A row a test that failed or was skipped, those that failed most at the top; and a
        sentence."""
        told = [name for name in self.ran if self.failed[name] or self.skipped[name]]
        told.sort(key=lambda name: (-self.failed[name], name))
        lines = ["| test | ran | failed | skipped |", "|---|--:|--:|--:|"] if told else []
        for name in told:
            cells = (self.ran[name], self.failed[name], self.skipped[name])
            lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
        bad = sum(map(bool, self.failed.values()))
        lines.append(f"{len(self.ran)} tests, {self.times} times: {bad} of them failed")
        return "\n".join(lines)


def name_of(case: ElementTree.Element) -> str:
    """What pytest takes as the test's name, as far as its XML tells."""
    where = case.get("file")
    return f"{where or case.get('classname')}::{case.get('name')}"


@contextmanager
def busy_loops(number: int) -> Iterator[list[int]]:
    """So many busy loops, by their process ids; ended whatever happens."""
    with ExitStack() as stack:
        loops = []
        for _ in range(number):
            process = subprocess.Popen(SPIN)
            stack.callback(process.wait)
            stack.callback(process.kill)
            loops.append(process.pid)
        yield loops


def once(words: Sequence[str], tally: Tally) -> int:
    """One session of pytest, counted; its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "junit.xml"
        # This family of the XML has the tests' files.
        options = ("-q", f"--junitxml={junit}", "-o", "junit_family=xunit1")
        argv = [sys.executable, "-m", "pytest", *words, *options]
        code = run(argv)
        if code in RAN:
            tally.add(junit)
        return code


def run(argv: Sequence[str]) -> int:
    """Run to the end; its exit code. What ends this process has it end what it began, once: in a
    group of its own it does not hear the terminal's Ctrl-C itself."""
    with subprocess.Popen(argv, process_group=0) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(SIGINT)
            process.wait()
            raise


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code; the table goes to stdout."""
    parser = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--times", type=int, default=TIMES, help="Sessions of pytest.")
    parser.add_argument("--busy", type=int, default=BUSY, help="Busy loops beside them.")
    options, words = parser.parse_known_args(argv)
    if not words or options.times < 1 or options.busy < 0:
        parser.error("name the tests, at least one time, and no fewer loops than none")
    tally = Tally()
    try:
        with busy_loops(options.busy):
            for _ in range(options.times):
                if (code := once(words, tally)) not in RAN:
                    return code
    except KeyboardInterrupt:
        return 130
    finally:
        print(tally.text(), flush=True)
    return int(any(tally.failed.values()))


if __name__ == "__main__":
    # A command that is terminated ends its loops as one that is interrupted does, which a shell has
    # its background jobs ignore.
    signal(SIGINT, default_int_handler)
    signal(SIGTERM, default_int_handler)
    sys.exit(main())
