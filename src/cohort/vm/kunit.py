"""Runs the kernel's KUnit suites in a guest and has their results (KTAP) read off the console.

The one place where the console is the result: KUnit has no other way to tell, and no user space.
It is read by the kernel's own parser, that of the tree that was built.
"""

import contextlib
import importlib.util
import io
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from cohort import host, paths
from cohort.errors import GuestError, UsageError
from cohort.kernel import config
from cohort.kernel.build import Kernel
from cohort.log import Update
from cohort.vm import guest
from cohort.vm.machine import VmSpec

STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\](?:\[\s*\w+\])? ")
SUITE = re.compile(r'^static struct kunit_suite \w+ = \{\s+\.name = "(\w+)"', re.MULTILINE)
OBJECTS = re.compile(r"^obj-(?:y|\$\((CONFIG_\w+)\))\s*\+= (.*)$", re.MULTILINE)
SPLAT = re.compile(
    r"WARNING:|BUG:|kernel BUG at|KASAN|UBSAN|Oops|pagealloc: |EXT4-fs error"
    r"|INFO: (?:possible|suspicious|inconsistent|trying to register|task )"
)
"""What a kernel begins a complaint with, of lockdep, hung tasks and poisoned pages among others.
A stall of RCU is none: on a busy host the guest stands still for as long."""

PARSER = Path("tools/testing/kunit")
ERROR = "[ERROR] Test: "
"""What the parser begins a line with for what is no case: a plan that was not kept."""
STATUSES = {"SUCCESS": "ok", "SKIPPED": "skip"}
"""The parser's words for a case that did not fail."""

SUITES = paths.OVERLAY / "mm/cohort/tests"
MEMORY_MB = 1024
SILENT_S = 400.0  # cases of a kernel with every check, on a busy host


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

    @property
    def failure(self) -> str:
        """What is wrong, in a line: cases that failed, and the first of the problems."""
        said = f"{self.failed} of {self.total} cases failed"
        if not self.problems:
            return said
        several = "s" if len(self.problems) > 1 else ""
        return f"{said}, {len(self.problems)} problem{several}: {self.problems[0]}"

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


def load_parser(tree: Path) -> tuple[ModuleType, io.StringIO]:
    """The kernel's parser of KTAP, and where it prints. UsageError for a tree that has none."""
    said = io.StringIO()
    writes_nothing = sys.dont_write_bytecode
    # The printer keeps the standard output that it finds now.
    with contextlib.redirect_stdout(said):
        try:
            # A tree is the user's: what Python compiles of it is not left there.
            sys.dont_write_bytecode = True
            _load(tree, "kunit_printer")
            return _load(tree, "kunit_parser"), said
        finally:
            sys.dont_write_bytecode = writes_nothing
            # By their names those of another tree must not be found.
            for name in ("kunit_printer", "kunit_parser"):
                sys.modules.pop(name, None)


def _load(tree: Path, name: str) -> ModuleType:
    path = tree / PARSER / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise UsageError(f"{tree} has no {PARSER / name}.py to read KUnit's results with")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parse(console: str, tree: Path) -> Report:
    """What KUnit told on a kernel's console, between the other things the kernel says there."""
    parser, said = load_parser(tree)
    lines = [STAMP.sub("", line) for line in console.replace("\r", "").splitlines()]
    found = parser.parse_run_tests(lines)
    report = Report(problems=splats(console))
    for suite in found.subtests:
        for case in suite.subtests:
            status = STATUSES.get(case.status.name, "not ok")
            notes = () if status == "ok" else tuple(line.strip() for line in case.log)
            report.cases.append(Case(suite.name, case.name, status, notes))
    report.problems += [
        line.partition(ERROR)[2] for line in said.getvalue().splitlines() if ERROR in line
    ]
    return report


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


def run(kernel: Kernel, tree: Path, update: Update, timeout_s: float) -> Report:
    """Boot the kernel without a user space: the suites run, then it panics and QEMU ends.

    `tree` is what it was built from. Raises what `load_parser` does, and GuestError for a guest
    that ran no suite.
    """
    load_parser(tree)
    directory = paths.made("kunit") / f"{kernel.release}-{kernel.id[:8]}"
    with host.lock(directory.with_name(f"{directory.name}.lock")):
        report = _boot(kernel, tree, directory, timeout_s)
    update(report.total, report.total)
    return report


def _boot(kernel: Kernel, tree: Path, directory: Path, timeout_s: float) -> Report:
    """What the suites say in a guest whose run directory this is, made anew."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    words = ("kunit.enable=1",)
    spec = VmSpec(directory, kernel.image, "tcg", MEMORY_MB, 2, cmdline=words, arch=kernel.arch)
    try:
        guest.run(spec, guest.Limits(timeout_s, SILENT_S))
    except GuestError as error:
        report = parse(spec.console.read_text(errors="replace"), tree)
        if not report.cases or "Kernel panic" not in error.message:
            raise
    report.log = spec.console
    report.problems = [x for x in report.problems if "Unable to mount root" not in x]
    report.problems += missing(report, built_in(kernel.config.read_text()))
    return report
