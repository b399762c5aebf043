"""Results of suites: read from what guests say, compared, and told as tables and JSON."""

import io
import json
import re
from typing import Any

from rich.console import Console

from cohort import paths
from cohort.suites import output, results
from cohort.suites.results import Case, Check, Figure, Outcome, differences
from made_suites import SUITE, begin, end

GOLDEN = paths.ROOT / "tests" / "golden"
BOUND = 1.2


def _out(line: str) -> dict[str, Any]:
    return {"r": "out", "t": 1, "line": line}


def test_cases_are_read_from_records() -> None:
    records = [
        {"r": "switches", "t": 0, "files": {}, "sra": False},
        _out("of the setup"),
        begin("a"),
        _out("ok 1 - first"),
        _out("ok 2 # SKIP no swap"),
        _out("not ok 3 third # exit=1"),
        end("a", 1),
        begin("b"),
        end("b", 4),
        begin("c"),
        end("c", -1),
    ]
    a, b, c = results.cases_of(SUITE, records, "")
    assert (a.status, b.status, c.status) == ("fail", "skip", "timeout")
    assert a.seconds == 1.5
    assert a.checks == (
        Check("1", "pass", "first"),
        Check("2", "skip"),
        Check("3", "fail", "third"),
    )
    assert a.tail == ("ok 1 - first", "ok 2 # SKIP no swap", "not ok 3 third # exit=1")


def test_a_row_of_numbers_that_begins_anew_keeps_its_names_apart() -> None:
    lines = ["ok 1 x", "1..1", "ok 1 y", "okay 1", "# ok 2 z"]
    assert [check.name for check in results.checks_of(lines)] == ["1", "1.2"]


def test_what_the_kernel_says_belongs_to_the_case_before_it() -> None:
    console = (
        "[    1.0][    T1] suite: case a\n"
        "[    1.1][    T9] WARNING: CPU: 0 PID: 9 at mm/page_alloc.c:1\n"
        "[    2.0][    T1] suite: case b\r\n"
        "[    2.1][    T1] Memory failure: 0x1: recovery action\n"
    )
    found = results.complaints_of(console)
    assert list(found) == ["a"]
    a, b = results.cases_of(SUITE, [begin("a"), end("a", 0), begin("b"), end("b", 0)], console)
    assert (a.status, b.status) == ("splat", "pass")
    assert a.complaints == found["a"]


def test_what_the_kernel_says_before_the_first_case_is_of_that_one() -> None:
    """Schemes are switched on there, and no case would tell of what came of it."""
    console = (
        "[    0.9][    T1] WARNING: CPU: 0 PID: 1 at mm/cohort/core/block.c:1\n"
        "[    1.0][    T1] suite: case a\n"
        "[    1.1][    T1] BUG: sleeping function called from invalid context\n"
        "[    2.0][    T1] suite: case b\n"
    )
    a, b = results.cases_of(SUITE, [begin("a"), end("a", 0), begin("b"), end("b", 0)], console)
    assert (a.status, len(a.complaints), b.status) == ("splat", 2, "pass")


def test_a_case_without_a_result_has_died() -> None:
    assert [x.status for x in results.cases_of(SUITE, [begin("a")], "")] == ["died"]


def _outcome(policy: str, *cases: Case) -> Outcome:
    return Outcome(policy, cases)


def test_differences_are_of_cases_and_their_checks() -> None:
    checks = (Check("1", "pass", "one"), Check("2", "pass", "two"))
    worse = (Check("1", "pass", "one"), Check("2", "fail", "two, errno 12"))
    none = _outcome("none", Case("a", "pass", checks=checks), Case("b", "fail"))
    same = _outcome("cpb", Case("a", "pass", 9.0, checks=checks), Case("b", "fail"))
    region = _outcome("region", Case("a", "fail", tail=("no",), checks=worse), Case("b", "fail"))
    assert differences([none, same], BOUND) == []
    found = differences([none, same, region], BOUND)
    assert [(x.name, x.statuses) for x in found] == [
        ("a", ("pass", "pass", "fail")),
        ("a: 2", ("pass", "pass", "fail")),
    ]
    assert found[0].tails["region"] == ("no",)


def test_checks_that_are_missing_differ_unless_their_case_died() -> None:
    checks = (Check("1", "pass"), Check("2", "pass"))
    none = _outcome("none", Case("a", "pass", checks=checks))
    fewer = _outcome("region", Case("a", "pass", checks=checks[:1]))
    dead = _outcome("region", Case("a", "died", checks=checks[:1]))
    assert [(x.name, x.statuses) for x in differences([none, fewer], BOUND)] == [
        ("a: 2", ("pass", "absent"))
    ]
    assert [x.name for x in differences([none, dead], BOUND)] == ["a"]
    slow = [
        _outcome(x, Case("a", "timeout", checks=checks[:n])) for x, n in (("none", 1), ("b", 2))
    ]
    assert differences(slow, BOUND) == []
    failed = (Check("1", "fail"), Check("2", "pass"))
    slow.append(_outcome("c", Case("a", "timeout", checks=failed)))
    assert [x.name for x in differences(slow, BOUND)] == ["a: 1"]


def test_costs_above_the_bound_are_differences() -> None:
    lines = ["# cost round_us 100.0", "# cost more 5", "cost no 7", "# cost x y"]
    assert results.costs_of(lines) == {"round_us": 100.0, "more": 5.0}
    none = _outcome("none", Case("a", "pass", costs={"us": 100.0, "kb": 0.0}))
    near = _outcome("cpb", Case("a", "pass", costs={"us": 119.0, "kb": 0.0}))
    dear = _outcome("region", Case("a", "pass", costs={"us": 121.0, "kb": 1.0}))
    assert differences([none, near], BOUND) == []
    assert [(x.name, x.statuses) for x in differences([none, near, dear], BOUND)] == [
        ("a: us", ("pass", "pass", "slow")),
        ("a: kb", ("pass", "pass", "slow")),
    ]
    file = io.StringIO()
    output.print_tables([none, dear], BOUND, Console(file=file))
    assert re.search(r"a: us +100\.0 \(1\.00\) +121\.0 \(1\.21\)", file.getvalue())


def test_a_number_that_is_none_is_no_cost_and_no_figure() -> None:
    """What JSON cannot say must not end a command whose guests have all run."""
    for number in ("1.2.3", ".", "1.", "9" * 400, "-1", "1e9", "nan"):
        assert results.costs_of([f"# cost a {number}"]) == {}, number
        assert results.figures_of([f"# figure a {number} s"]) == {}, number
    most = "9" * 18
    assert results.costs_of([f"# cost a {most}"]) == {"a": float(most)}


def test_a_cost_that_not_all_policies_have_is_a_difference() -> None:
    none = _outcome("none", Case("a", "pass", costs={"us": 100.0, "kb": 1.0}))
    fewer = _outcome("cpb", Case("a", "pass", costs={"us": 100.0}))
    more = _outcome("region", Case("a", "pass", costs={"us": 100.0, "kb": 1.0, "mb": 9.0}))
    assert [(x.name, x.statuses) for x in differences([none, fewer, more], BOUND)] == [
        ("a: kb", ("pass", "absent", "pass")),
        ("a: mb", ("absent", "absent", "pass")),
    ]
    dead = _outcome("cpb", Case("a", "died"))
    assert [x.name for x in differences([none, dead], BOUND)] == ["a"]
    file = io.StringIO()
    output.print_tables([fewer, more], BOUND, Console(file=file))
    assert re.search(r"a: mb +- +9\.0 *$", file.getvalue(), re.MULTILINE)


def test_names_that_look_like_markup_are_shown_as_they_are() -> None:
    odd = Case("[/a]", "pass", costs={"[/x]": 1.0}, figures={"f": Figure(1.0, "[/s]")})
    other = Case("[/a]", "fail", costs={"[/x]": 9.0}, figures={"f": Figure(1.0, "[/s]")})
    file = io.StringIO()
    output.print_tables([_outcome("none", odd), _outcome("x", other)], BOUND, Console(file=file))
    for text in ("[/a]: [/x]", "f, [/s]", "[/a]  "):
        assert text in file.getvalue()


def test_figures_are_told_and_make_no_difference() -> None:
    lines = ["# figure s 1.5 s", "# figure ui4 0.25 share", "# figure kills 2", "# figure x y"]
    lines += ["figure s 9 s", "# figure x 1 a b", "# figure x 1.2.3"]
    first = results.figures_of(lines)
    assert first == {"s": Figure(1.5, "s"), "ui4": Figure(0.25, "share"), "kills": Figure(2)}
    second = first | {"ui4": Figure(0.75, "share"), "more": Figure(1)}
    none = _outcome("none", Case("a", "pass", figures=first), Case("b", "pass", figures=second))
    region = _outcome("region", Case("a", "pass", figures=first), Case("b", "pass"))
    assert results.whole(none.cases) == {
        "s": Figure(3.0, "s"),
        "ui4": Figure(0.5, "share"),
        "kills": Figure(4),
        "more": Figure(1),
    }
    assert differences([none, region], BOUND) == []
    told = json.loads(json.dumps(output.as_object([none, region], BOUND)))
    assert told["policies"]["none"]["figures"]["ui4"] == {"value": 0.5, "unit": "share"}
    assert told["policies"]["none"]["cases"][1]["figures"]["more"]["value"] == 1
    file = io.StringIO()
    output.print_tables([none, region], BOUND, Console(file=file))
    for row in (r"s, s +3\.0 +1\.5", r"ui4, share +0\.500 +0\.250", r"kills +4 +2", r"more +1 +-"):
        assert re.search(row, file.getvalue()), row


def test_figures_are_read_from_records() -> None:
    records = [begin("a"), _out("# figure kills 1"), end("a", 0), begin("b"), end("b", 0)]
    a, b = results.cases_of(SUITE, records, "")
    assert (a.figures, b.figures) == ({"kills": Figure(1)}, {})


def _example() -> list[Outcome]:
    checks = (Check("1", "pass", "one"), Check("2", "skip", "two"))
    splat = Case("b", "splat", 2.0, ("said",), (), ("BUG: sleeping function",))
    none = _outcome("none", Case("a", "pass", 1.0, (), checks), Case("b", "pass", 2.0))
    return [none, _outcome("region", Case("a", "pass", 1.0, (), checks), splat)]


def test_tables() -> None:
    file = io.StringIO()
    output.print_tables(_example(), BOUND, Console(file=file))
    output.print_tables(_example()[:1] * 2, BOUND, Console(file=file))
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert "\n".join(lines) + "\n" == (GOLDEN / "suite.txt").read_text()


def test_json_has_counts_and_differences() -> None:
    told = json.loads(json.dumps(output.as_object(_example(), BOUND)))
    assert told["ok"] is False
    assert told["policies"]["none"]["counts"]["pass"] == 2
    assert told["policies"]["none"]["checks"] == {"pass": 1, "fail": 0, "skip": 1}
    assert told["differences"] == [{"name": "b", "status": {"none": "pass", "region": "splat"}}]
