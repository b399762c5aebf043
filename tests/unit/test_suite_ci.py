"""What continuous integration reads of a suite is red where the command's exit code is not 0."""

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import pytest

from cohort import paths
from cohort.errors import CohortError
from cohort.suites import ci
from cohort.suites.results import Case, Check, Outcome, Status
from cohort.verbs import suite as verb
from made_suites import SUITE

GOLDEN = paths.ROOT / "tests" / "golden"
BOUND = SUITE.cost_bound
LATE = "the guest died before its end"


def _example() -> list[Outcome]:
    """A check, a cost and a case that differ, and a case that fails alike."""
    checks = (Check("1", "pass", "one"), Check("2", "skip", "two"))
    worse = (checks[0], Check("2", "fail", "two"))
    splat = Case("b", "splat", 2.0, ("said",), (), ("BUG: sleeping function",))
    alike = Case("c", "fail", tail=("no hugetlb",))
    none = Case("a", "pass", 1.0, (), checks, costs={"us": 10.0})
    region = Case("a", "pass", 1.0, (), worse, costs={"us": 19.0})
    return [
        Outcome("none", (none, Case("b", "pass", 2.0), alike)),
        Outcome("region", (region, splat, alike)),
    ]


def test_ktap() -> None:
    assert ci.ktap(_example(), BOUND) == (GOLDEN / "suite.ktap").read_text()


def test_junit_has_a_failure_for_each_difference() -> None:
    tree = ElementTree.fromstring(ci.junit("s", _example(), BOUND))
    none, region = tree.findall("testsuite")
    counts = [(x.get("tests"), x.get("failures"), x.get("errors"), x.get("skipped")) for x in tree]
    assert counts == [("3", "0", "0", "1"), ("5", "3", "0", "1")]
    failed = {
        case.get("name"): (failure.get("message"), failure.text)
        for case in region
        if (failure := case.find("failure")) is not None
    }
    assert failed == {
        "a: 2": ("fail, and skip under none", None),
        "a: us": ("slow, and pass under none", "region: 19.0, none: 10.0"),
        "b": ("splat, and pass under none", "BUG: sleeping function\nsaid"),
    }
    skipped = [suite.findall("testcase")[-1].find("skipped") for suite in (none, region)]
    assert [x is not None and (x.get("message"), x.text) for x in skipped] == [
        ("fail, under the first policy", "no hugetlb"),
        ("fail, as under none", "no hugetlb"),
    ]


def test_junit_is_xml_whatever_a_case_prints() -> None:
    tail = ("\x1b[31mred\x1b[0m\x00\x0b", "a\tb", "\ufffe\ud800 end")
    both = [
        Outcome("none", (Case("a\x07", "pass"),)),
        Outcome("x", (Case("a\x07", "fail", 0, tail),)),
    ]
    failure = ElementTree.fromstring(ci.junit("s", both, BOUND)).find(".//failure")
    assert failure is not None
    assert failure.text == "[31mred[0m\na\tb\n end"


def _one(status: Status, **more: Any) -> Case:
    return Case("a", status, **more)


@pytest.mark.parametrize(
    "cases",
    [
        [_one("pass"), _one("pass")],
        [_one("fail", tail=("no",)), _one("fail", tail=("no",))],
        [_one("fail")],
        [_one("skip"), _one("skip")],
        [_one("pass"), _one("skip")],
        [_one("fail"), _one("pass")],
        [_one("pass"), _one("pass"), _one("timeout")],
        [_one("pass", costs={"us": 1.0}), _one("pass", costs={"us": 9.0})],
        [_one("pass", costs={"us": 1.0}), _one("pass")],
        [_one("pass"), _one("pass", costs={"us": 1.0})],
        [_one("fail", checks=(Check("1", "pass"),)), _one("fail", checks=(Check("1", "fail"),))],
        [_one("pass", checks=(Check("1", "pass"),)), _one("pass")],
        [_one("died", late_death=LATE), _one("died", late_death=LATE)],
        [_one("died"), _one("died")],
        [_one("pass"), _one("died", late_death=LATE)],
    ],
)
def test_red_is_what_the_command_fails_for(cases: Sequence[Case]) -> None:
    """A case that fails alike was red though the command ended with 0, and a cost that is above its
    bound, or a check of a case, was green though it ended with 1."""
    outcomes = [Outcome(f"p{n}", (case,)) for n, case in enumerate(cases)]
    code = 0
    try:
        verb._judge(SUITE, outcomes)
    except CohortError as error:
        code = error.exit_code
    suites = ElementTree.fromstring(ci.junit("s", outcomes, BOUND))
    red = sum(int(x.get("failures", "")) + int(x.get("errors", "")) for x in suites)
    assert (red > 0) == (code != 0)
    assert ("not ok" in ci.ktap(outcomes, BOUND)) == (code != 0)
