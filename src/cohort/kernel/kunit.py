"""Runs the kernel's KUnit suites in a guest and reads their results (KTAP) off the console.

The one place where the console is the result: KUnit has no other way to tell, and no user space.
"""

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cohort import paths
from cohort.errors import GuestError
from cohort.kernel import config
from cohort.kernel.build import Kernel
from cohort.log import Update
from cohort.vm import guest
from cohort.vm.machine import VmSpec

RESULT = re.compile(
    r"^(\s*)(not ok|ok) (\d+) ?-? ?([^#]*?)\s*(?:# (SKIP)\b.*|#.*)?$", re.IGNORECASE
)
PLAN = re.compile(r"^(\s*)1\.\.(\d+)$")
SUBTEST = re.compile(r"^\s*# Subtest: (.+)$")
STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\](?:\[\s*\w+\])? ")
SUITE = re.compile(r'^static struct kunit_suite \w+ = \{\s+\.name = "(\w+)"', re.MULTILINE)
OBJECTS = re.compile(r"^obj-(?:y|\$\((CONFIG_\w+)\))\s*\+= (.*)$", re.MULTILINE)
SPLAT = re.compile(r"WARNING:|BUG:|KASAN|UBSAN|INFO: (?:possible|suspicious|inconsistent)|Oops")

SUITES = paths.OVERLAY / "mm/cohort/tests"
MEMORY_MB = 1024
SILENT_S = 120.0


@dataclass(frozen=True)
class Case:
    """A test case: `status` is "ok", "not ok" or "skip"; `lines` are its diagnostics."""

    suite: str
    name: str
    status: str
    lines: tuple[str, ...] = ()


@dataclass
class Report:
    """What the suites found. `problems` are plans not kept, and what the kernel complained of."""

    cases: list[Case] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    log: Path | None = None

    @property
    def total(self) -> int:
        """Cases that ran or were skipped."""
        return len(self.cases)

    @property
    def failed(self) -> int:
        """Cases that failed."""
        return sum(case.status == "not ok" for case in self.cases)

    @property
    def ok(self) -> bool:
        """At least one case, none failed, every plan kept, no complaint."""
        return bool(self.cases) and not self.failed and not self.problems

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        counts = {x: sum(c.status == x for c in self.cases) for x in ("ok", "not ok", "skip")}
        return {
            "ok": self.ok,
            "passed": counts["ok"],
            "failed": counts["not ok"],
            "skipped": counts["skip"],
            "problems": self.problems,
            "cases": [vars(case) for case in self.cases],
            "log": str(self.log),
        }

    def text(self) -> str:
        """A line a case, then the counts."""
        lines = []
        for case in self.cases:
            lines.append(f"{case.status:6} {case.suite}: {case.name}")
            if case.status == "not ok":
                lines += [f"         {x}" for x in case.lines]
        lines += [f"problem: {x}" for x in self.problems]
        counts = self.summary()
        lines.append(
            f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
        )
        return "\n".join(lines)


def splats(console: str) -> list[str]:
    """The lines with which a kernel complains of a bug."""
    lines = (STAMP.sub("", line).strip() for line in console.replace("\r", "").splitlines())
    return [line for line in lines if SPLAT.search(line)]


def parse(console: str) -> Report:
    """Read KTAP out of a kernel's console, between the other things the kernel says."""
    report = Report(problems=splats(console))
    suite, planned, seen, notes = "", 0, 0, list[str]()
    for raw in console.replace("\r", "").splitlines():
        line = STAMP.sub("", raw)
        if match := SUBTEST.match(line):
            # A parameterised case opens a subtest of its own, two steps in: not a suite.
            if line.startswith(" " * 4) and not line.startswith(" " * 8):
                suite, planned, seen, notes = match[1].strip(), 0, 0, []
        elif match := PLAN.match(line):
            planned = int(match[2]) if len(match[1]) == 4 else planned
        elif match := RESULT.match(line):
            depth = len(match[1])
            if depth == 4:
                status = "skip" if match[5] else match[2].lower()
                report.cases.append(Case(suite, match[4].strip(), status, tuple(notes)))
                seen, notes = seen + 1, []
            elif depth == 0 and suite:
                _close_suite(report, suite, planned, seen)
                suite = ""
        elif suite and line.strip():
            notes.append(line.strip())
    if suite:
        report.problems.append(f"suite {suite} did not end: {seen} of {planned} cases")
    return report


def _close_suite(report: Report, suite: str, planned: int, seen: int) -> None:
    if seen != planned:
        report.problems.append(f"suite {suite} planned {planned} cases and ran {seen}")


def built_in(kernel_config: str, where: Path = SUITES) -> set[str]:
    """The suites a kernel of this configuration has by their names, as `where`/Makefile says."""
    asked = config.parse(kernel_config, ".config")
    on = {symbol for symbol, request in asked.items() if request.value == "y"}
    if "CONFIG_COHORT_KUNIT_TEST" not in on:
        return set()
    names: set[str] = set()
    for symbol, objects in OBJECTS.findall((where / "Makefile").read_text().replace("\\\n", " ")):
        if not symbol or symbol in on:
            for word in objects.split():
                names.update(SUITE.findall((where / word).with_suffix(".c").read_text()))
    return names


def missing(report: Report, wanted: set[str]) -> list[str]:
    """A problem for each suite that should have run and did not."""
    ran = {case.suite for case in report.cases}
    return [f"suite {name} did not run" for name in sorted(wanted - ran)]


def run(kernel: Kernel, update: Update, timeout_s: float) -> Report:
    """Boot the kernel without a user space: the suites run, then it panics and QEMU ends."""
    directory = paths.made("kunit") / f"{kernel.release}-{kernel.id[:8]}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    spec = VmSpec(directory, kernel.image, "tcg", MEMORY_MB, 2, cmdline=("kunit.enable=1",))
    try:
        guest.run(spec, guest.Limits(timeout_s, SILENT_S))
    except GuestError as error:
        report = parse(spec.console.read_text(errors="replace"))
        if not report.cases or "Kernel panic" not in error.message:
            raise
    report.log = spec.console
    report.problems = [x for x in report.problems if "Unable to mount root" not in x]
    report.problems += missing(report, built_in(kernel.config.read_text()))
    update(report.total, report.total)
    return report
