"""Reading KTAP out of saved consoles."""

from pathlib import Path

from cohort.kernel import kunit

DATA = Path(__file__).parent / "data"


def test_a_good_log() -> None:
    report = kunit.parse((DATA / "ktap_good.log").read_text())
    assert [(c.suite, c.name, c.status) for c in report.cases] == [
        ("cohort_block", "block_take_returns_parked", "ok"),
        ("cohort_block", "block_dissolve", "ok"),
        ("cohort_block", "block_needs_two_nodes", "skip"),
        ("cohort_arith", "arith_order", "ok"),
    ]
    assert report.ok, report.problems
    assert report.text().endswith("3 passed, 0 failed, 1 skipped")


def test_a_bad_log() -> None:
    report = kunit.parse((DATA / "ktap_bad.log").read_text())
    assert not report.ok
    failed = [case for case in report.cases if case.status == "not ok"]
    assert [case.name for case in failed] == ["block_take"]
    assert any("EXPECTATION FAILED" in line for line in failed[0].lines)
    assert report.problems == [
        "BUG: KASAN: use-after-free in cohort_block_free+0x1b/0x40",
        "suite cohort_block planned 3 cases and ran 2",
        "suite cohort_domain did not end: 1 of 4 cases",
    ]
    assert "block_take" in report.text()


def test_no_suite_is_no_success() -> None:
    assert not kunit.parse("[    0.1] Linux version\n").ok
