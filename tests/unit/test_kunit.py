"""Reading KTAP out of saved consoles with the kernel's own parser."""

import sys
from collections.abc import Callable
from fcntl import LOCK_EX
from pathlib import Path

import pytest

from cohort.errors import GuestError, UsageError
from cohort.kernel import build
from cohort.kernel.build import Kernel
from cohort.vm import guest, kunit
from cohort.vm.kunit import Case, Report
from cohort.vm.machine import VmSpec
from tests_support import Outcome, may_lock

DATA = Path(__file__).parent / "data"


@pytest.mark.kernel
def test_a_good_log(tree: Path) -> None:
    report = kunit.parse((DATA / "ktap_good.log").read_text(), tree)
    assert [(c.suite, c.name, c.status) for c in report.cases] == [
        ("cohort_block", "block_take_returns_parked", "ok"),
        ("cohort_block", "block_dissolve", "ok"),
        ("cohort_block", "block_needs_two_nodes", "skip"),
        ("cohort_arith", "arith_order", "ok"),
    ]
    assert report.ok, report.problems
    assert report.text().endswith("3 passed, 0 failed, 1 skipped")


@pytest.mark.kernel
def test_a_bad_log(tree: Path) -> None:
    report = kunit.parse((DATA / "ktap_bad.log").read_text(), tree)
    assert not report.ok
    failed = [case for case in report.cases if case.status == "not ok"]
    assert failed[0].name == "block_take"
    assert any("EXPECTATION FAILED" in line for line in failed[0].lines)
    assert report.problems[0] == "BUG: KASAN: use-after-free in cohort_block_free+0x1b/0x40"
    assert "cohort_block: missing expected subtest!" in report.problems
    assert "cohort_domain: missing subtest result line!" in report.problems
    assert "block_take" in report.text()


@pytest.mark.kernel
def test_no_suite_is_no_success(tree: Path) -> None:
    assert not kunit.parse("[    0.1] Linux version\n", tree).ok


def test_a_tree_without_the_parser_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no tools/testing/kunit/kunit_printer\.py"):
        kunit.load_parser(tmp_path)


def test_a_parser_is_that_of_its_tree_and_leaves_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for release in ("a", "b"):
        folder = tmp_path / release / kunit.PARSER
        folder.mkdir(parents=True)
        (folder / "kunit_printer.py").write_text(f"release = {release!r}\n")
        (folder / "kunit_parser.py").write_text("from kunit_printer import release\n")
        before = sorted(folder.iterdir())
        parser, _ = kunit.load_parser(tmp_path / release)
        assert parser.release == release
        assert sorted(folder.iterdir()) == before
    assert "kunit_parser" not in sys.modules
    assert not sys.dont_write_bytecode


def test_suites_that_the_configuration_has() -> None:
    most = "CONFIG_COHORT_KUNIT_TEST=y\nCONFIG_COHORT_VNODE=y\n"
    names = kunit.built_in(most)
    area = {"cohort_pcpa", "cohort_pcpa_frames", "cohort_pcpa_arith", "cohort_pcpa_wait"}
    area |= {"cohort_copies"}
    assert names == kunit.built_in(most + "CONFIG_COHORT_PCPA=y\n") - area
    assert {"cohort_block", "cohort_vnode", "cohort_hazard"} <= names
    files = [x.read_text() for x in kunit.SUITES.glob("*.c")]
    assert len(names | area) == sum(text.count("kunit_test_suite(") for text in files)
    assert kunit.built_in("# CONFIG_COHORT_KUNIT_TEST is not set\n") == set()
    assert kunit.built_in("") == set()


def test_a_suite_that_is_missing_is_a_problem() -> None:
    report = Report([Case("cohort_block", "block_take", "ok")])
    assert kunit.missing(report, {"cohort_block"}) == []
    assert kunit.missing(report, {"cohort_block", "cohort_cpb"}) == ["suite cohort_cpb did not run"]


def test_what_is_wrong_is_told_by_the_first_problem(
    cohort: Callable[..., Outcome], own_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cases may have passed beside a complaint of the kernel."""
    cases = [Case("cohort_block", name, "ok") for name in ("a", "b")]
    problems = ["BUG: KASAN: use-after-free in x", "suite cohort_cpb did not run"]
    report = Report(cases, problems, tmp_path / "console.log")
    monkeypatch.setattr(build, "build", lambda *_: None)
    monkeypatch.setattr(kunit, "run", lambda *_: report)
    done = cohort("kernel", "test", "--tree", tmp_path)
    assert done.code == 1
    assert done.stderr.endswith(
        "cohort: KUnit: 0 of 2 cases failed, 2 problems: BUG: KASAN: use-after-free in x\n"
        f"hint: the console is in {tmp_path}/console.log\n"
    )
    assert Report(cases, problems[1:]).failure == (
        "0 of 2 cases failed, 1 problem: suite cohort_cpb did not run"
    )
    assert Report([*cases, Case("s", "c", "not ok")]).failure == "1 of 3 cases failed"


KERNEL = """\
class Result:
    def __init__(self, name, subtests=(), log=()):
        self.name, self.subtests, self.log = name, subtests, log
        self.status = self


def parse_run_tests(lines):
    case = Result("SUCCESS")
    return Result("all", [Result("cohort_block", [case])])
"""


@pytest.mark.parametrize(
    ("line", "complains"),
    [
        ("WARNING: CPU: 0 PID: 9 at mm/page_alloc.c:1", True),
        ("kernel BUG at mm/cohort/core/block.c:9!", True),
        ("BUG: KASAN: use-after-free in free_unref_page", True),
        ("pagealloc: memory corruption", True),
        ("pagealloc: single bit error", True),
        ("INFO: trying to register non-static key.", True),
        ("INFO: possible recursive locking detected", True),
        ("INFO: task kswapd0:44 blocked for more than 122 seconds.", True),
        ("EXT4-fs error (device pmem0): ext4_lookup:1: inode #2: iget: bad extra_isize", True),
        ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", False),
        ("EXT4-fs (pmem0): mounted filesystem r/w with ordered data mode", False),
        ("Memory failure: 0x1: recovery action for free buddy page: Recovered", False),
    ],
)
def test_which_lines_are_complaints(line: str, complains: bool) -> None:
    assert kunit.splats(f"[    1.100000][    T9] {line}\r\nbooted\n") == [line] * complains


def test_a_guest_is_of_its_kernels_machine_and_has_its_directory_alone(
    tmp_path: Path, own_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tree" / kunit.PARSER
    folder.mkdir(parents=True)
    (folder / "kunit_printer.py").touch()
    (folder / "kunit_parser.py").write_text(KERNEL)
    (tmp_path / "config").touch()
    kernel = Kernel(tmp_path / "Image", tmp_path / "config", "6.12.117", "i" * 64, "t", "arm64")
    asked: list[VmSpec] = []

    def run(spec: VmSpec, limits: guest.Limits) -> None:
        asked.append(spec)
        spec.console.write_text("")
        held = spec.run_dir.with_name(f"{spec.run_dir.name}.lock")
        assert not may_lock(held, LOCK_EX)
        raise GuestError("Kernel panic")

    monkeypatch.setattr(guest, "run", run)
    report = kunit.run(kernel, tmp_path / "tree", lambda *_: None, 5)
    assert (report.total, [spec.arch for spec in asked]) == (1, ["arm64"])
