"""Suites: what they are, what their guests' records say, and what is told of differences."""

import io
import json
import os
import re
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from fcntl import LOCK_EX
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from cluster_support import prepare, prepared
from cohort import host, paths
from cohort.errors import BuildError, GuestError, MissingTool, Skipped, UsageError, WrongPolicy
from cohort.kernel.build import Kernel
from cohort.phone import programs as phone_programs
from cohort.policy import Policy, load_policy
from cohort.suites import output, programs, results, root, runner, selftests
from cohort.suites.results import Case, Check, Figure, Outcome, differences
from cohort.suites.runner import Plan
from cohort.suites.schema import (
    COMMAND_CHARS,
    Suite,
    load_directory,
    load_suite,
    suite_names,
)
from cohort.vm import guest
from cohort.vm.machine import LARGE_PAGE, VmSpec
from tests_support import Outcome as Ended
from tests_support import may_lock

GOLDEN = paths.ROOT / "tests" / "golden"
TWO = paths.ROOT / "tests" / "suites" / "two"
BOUND = 1.2
SUITE = Suite(name="s", title="t", case={"a": "./a", "b": "./b", "c": "./c"}, skip=[4])


def _begin(name: str) -> dict[str, Any]:
    return {"r": "case", "t": 1, "name": name}


def _end(name: str, status: int) -> dict[str, Any]:
    return {"r": "result", "t": 2, "name": name, "status": status, "lines": 1, "ns": 1_500_000_000}


def _out(line: str) -> dict[str, Any]:
    return {"r": "out", "t": 1, "line": line}


def test_every_suite_of_the_lab_is_well_formed() -> None:
    assert {"fio", "selftests", "selftests-mm", "stress-ng-vm", "trinity"} <= set(suite_names())
    for name in suite_names():
        suite = load_suite(name)
        assert suite.case
        assert suite.debian
        assert set(suite.longer) <= set(suite.case)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('title = "t"\n[case]\n"a b" = "x"\n', ":3:.*is no name of a case"),
        ('title = "t"\nlimit_s = 0\n[case]\na = "x"\n', ":2: limit_s: must be at least a second"),
        ('title = "t"\n[case]\na = " "\n', ":3: case.a: must be a command"),
        ('title = "t"\n[case]\n', ":2: case: .*at least 1 item"),
        ('title = "t"\narchives = ["A b"]\n[case]\na = "x"\n', ":2: archives.*no name of a Debian"),
        ('title = "t"\n[longer]\nb = 9\n[case]\na = "x"\n', "longer: no case b"),
    ],
)
def test_a_bad_file_is_told_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_suite(str(path))
    assert re.search(said, str(error.value)), error.value


def test_a_directory_is_a_suite_of_its_programs(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("not a program\n")
    with pytest.raises(UsageError, match="neither suite.toml nor a program"):
        load_directory(tmp_path, "mine")
    for name in ("two", "one"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    suite = load_directory(tmp_path, "mine")
    assert suite.case == {"one": "./one", "two": "./two"}
    assert suite.files == tmp_path
    assert load_directory(TWO, "two").files == TWO


def test_suites_of_the_guide_are_well_formed(tmp_path: Path) -> None:
    """Its examples, each with the scripts that it shows for them."""
    text = (paths.ROOT / "docs" / "how-to" / "run-a-suite.md").read_text(encoding="utf-8")
    found = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(found) > 4
    for written in found:
        (tmp_path / "suite.toml").write_text(written)
        assert load_directory(tmp_path, "mine").case
    for script in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        done = host.run(["sh", "-n", "-c", script])
        assert (done.returncode, done.stderr) == (0, ""), script


def test_what_cannot_be_called_by_its_name_is_told(tmp_path: Path) -> None:
    """It may lie in a directory of others, beside what can."""
    for name in ("good.sh", "a copy.sh"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(UsageError, match="a copy.sh: is no name of a case") as caught:
        load_directory(tmp_path, "mine")
    assert "suite.toml" in (caught.value.hint or "")
    for name in ("../mine", "my suite", ""):
        with pytest.raises(UsageError, match="is no name of a suite"):
            load_directory(tmp_path, name)


def test_cases_are_read_from_records() -> None:
    records = [
        {"r": "switches", "t": 0, "files": {}, "sra": False},
        _out("of the setup"),
        _begin("a"),
        _out("ok 1 - first"),
        _out("ok 2 # SKIP no swap"),
        _out("not ok 3 third # exit=1"),
        _end("a", 1),
        _begin("b"),
        _end("b", 4),
        _begin("c"),
        _end("c", -1),
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
    a, b = results.cases_of(SUITE, [_begin("a"), _end("a", 0), _begin("b"), _end("b", 0)], console)
    assert (a.status, b.status) == ("splat", "pass")
    assert a.complaints == found["a"]


def test_a_case_without_a_result_has_died() -> None:
    assert [x.status for x in results.cases_of(SUITE, [_begin("a")], "")] == ["died"]


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
    records = [_begin("a"), _out("# figure kills 1"), _end("a", 0), _begin("b"), _end("b", 0)]
    a, b = results.cases_of(SUITE, records, "")
    assert (a.figures, b.figures) == ({"kills": Figure(1)}, {})


def test_sources_become_static_programs(own_out: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no C file"):
        programs.build(tmp_path)
    (tmp_path / "hello.c").write_text("int main(void) { return 3; }\n")
    made = programs.build(tmp_path)
    assert host.run([made / "hello"]).returncode == 3
    assert programs.build(tmp_path) == made
    (tmp_path / "step.sh").write_text("#!/bin/sh\nexit 4\n")
    (tmp_path / "step.sh").chmod(0o755)
    made = programs.build(tmp_path)
    assert host.run([made / "step.sh"]).returncode == 4
    (tmp_path / "hello.c").write_text("int main(void) { return; }\n")
    with pytest.raises(BuildError, match="does not compile"):
        programs.build(tmp_path)


def test_a_header_beside_a_program_is_part_of_it(own_out: Path, tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#define CODE 3\n")
    (tmp_path / "a.c").write_text('#include "a.h"\nint main(void) { return CODE; }\n')
    assert host.run([programs.build(tmp_path) / "a"]).returncode == 3
    (tmp_path / "a.h").write_text("#define CODE 4\n")
    assert host.run([programs.build(tmp_path) / "a"]).returncode == 4


def test_words_of_a_suite_stand_before_the_policys() -> None:
    suite = SUITE.model_copy(update={"cmdline": ["cma=64M"]})
    plan = Plan(suite, Path(), None, [], runner.Machine(2, 512, debug=False))
    words = plan.words(load_policy("region"))
    assert words.index("cma=64M") < words.index("cohort=region,rightsize")


@pytest.mark.parametrize("word", ["", "two words"])
def test_a_word_of_the_command_line_is_one(tmp_path: Path, word: str) -> None:
    text = f'title = "t"\ncmdline = ["{word}"]\n[case]\na = "./a"\n'
    (tmp_path / "suite.toml").write_text(text)
    with pytest.raises(UsageError, match="one word"):
        load_directory(tmp_path, "s")


def test_an_unknown_adversary_is_refused(own_out: Path) -> None:
    program = programs.build(paths.SUITES / "adversaries") / "adversary"
    assert host.run([program, "nothing", "1"]).returncode == 2
    source = (paths.SUITES / "adversaries/adversary.c").read_text()
    known = re.findall(r'\{ \.name = "(\w+)", \.run = ', source)
    suites = [load_suite("adversaries"), load_suite("changes")]
    named = [command.split()[1] for suite in suites for command in suite.case.values()]
    assert sorted(named) == sorted(known)


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


def test_ktap() -> None:
    assert output.ktap(_example()) == (GOLDEN / "suite.ktap").read_text()


def test_junit_is_xml_whatever_a_case_prints() -> None:
    tail = ("\x1b[31mred\x1b[0m\x00\x0b", "a\tb", "\ufffe\ud800 end")
    case = Case("a\x07", "fail", tail=tail)
    tree = ElementTree.fromstring(output.junit("s", [Outcome("none", (case,))]))
    failure = tree.find(".//failure")
    assert failure is not None
    assert failure.text == "[31mred[0m\na\tb\n end"


def test_junit() -> None:
    tree = ElementTree.fromstring(output.junit("s", _example()))
    none, region = tree.findall("testsuite")
    assert (none.get("failures"), region.get("failures")) == ("0", "1")
    failure = region.findall("testcase")[1].find("failure")
    assert failure is not None
    assert failure.text == "BUG: sleeping function\nsaid"


def test_json_has_counts_and_differences() -> None:
    told = json.loads(json.dumps(output.as_object(_example(), BOUND)))
    assert told["ok"] is False
    assert told["policies"]["none"]["counts"]["pass"] == 2
    assert told["policies"]["none"]["checks"] == {"pass": 1, "fail": 0, "skip": 1}
    assert told["differences"] == [{"name": "b", "status": {"none": "pass", "region": "splat"}}]


def _plan(tmp_path: Path, image: Path | None = None) -> Plan:
    init = tmp_path / "init"
    init.write_bytes(b"\x7fELF")
    return Plan(SUITE, init, image, [], runner.Machine(2, 512, debug=False))


def test_the_conf_has_the_policys_knobs_before_the_cases(tmp_path: Path) -> None:
    policy = load_policy("mglru-wsf100")
    suite = SUITE.model_copy(update={"setup": ["true"], "longer": {"b": 300}})
    plan = Plan(suite, tmp_path, tmp_path, [], runner.Machine(2, 512, debug=False))
    lines = runner.render_conf(plan, policy, ["b", "c"]).splitlines()
    assert lines[0] == "root /dev/pmem0"
    assert lines[1:-3] == [f"write {path} {value}" for path, value in policy.writes()]
    assert lines[-3:] == ["setup true", "case b 300 ./b", "case c 120 ./c"]


def test_a_policy_that_the_machine_cannot_have_is_refused(tmp_path: Path) -> None:
    plan = Plan(SUITE, tmp_path, None, [], runner.Machine(1, 512, debug=True))
    with pytest.raises(UsageError, match="policy vnode: cmdline"):
        plan.machine.check(load_policy("vnode"))
    assert "panic_on_warn=1" in plan.words(load_policy("none"))


def test_a_kernel_with_every_checker_is_asked_for_leaks_behind_the_cases(tmp_path: Path) -> None:
    suite = SUITE.model_copy(update={"skip": [77]})
    plan = Plan(suite, tmp_path, None, [], runner.Machine(2, 512, debug=True))
    lines = runner.render_conf(plan, load_policy("none"), ["c", results.LEAKS]).splitlines()
    assert lines[-2] == "case c 120 ./c"
    assert lines[-1].startswith("case _kmemleak 900 [ -w /sys/kernel/debug/kmemleak ] || exit 77; ")
    assert len(lines[-1]) < COMMAND_CHARS
    with pytest.raises(UsageError, match="is no name of a case"):
        (tmp_path / "suite.toml").write_text(f'title = "t"\n[case]\n{results.LEAKS} = "true"\n')
        load_directory(tmp_path, "mine")


OWN_LEAK = """unreferenced object 0xffff888004e08000 (size 192):
  comm "swapper/0", pid 1, jiffies 4294892300
  backtrace (crc 0):
    [<00000000a1b2c3d4>] cohort_room_make+0x3c/0x160
    [<00000000a1b2c3d5>] kernel_init+0x1a/0x1c0
"""


@pytest.mark.parametrize(
    ("leaks", "code", "said"),
    [
        (None, 4, ""),
        ("", 0, ""),
        (OWN_LEAK.replace("cohort_", "other_"), 0, ""),
        (OWN_LEAK, 1, "[<00000000a1b2c3d4>] cohort_room_make+0x3c/0x160\n"),
    ],
)
def test_only_leaks_that_name_cohort_are_complaints(
    tmp_path: Path, leaks: str | None, code: int, said: str
) -> None:
    """Run by a shell, with files in the places of the kernel's."""
    kmemleak, log, fast = tmp_path / "kmemleak", tmp_path / "kmsg", tmp_path / "bin"
    if leaks is not None:
        kmemleak.write_text(leaks)
    fast.mkdir()
    (fast / "sleep").write_text("#!/bin/sh\n")
    (fast / "sleep").chmod(0o755)
    command = runner.leaks_command(4, str(kmemleak), str(log))
    path = f"{fast}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command], env={"PATH": path}, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, said, "")
    assert not leaks or kmemleak.read_text() == f"{leaks}scan\nscan\n"
    console = f"[ 1.0][ T1] suite: case {results.LEAKS}\n"
    console += log.read_text().replace("<2>", "[ 1.1][ T2] ") if log.is_file() else ""
    (case,) = results.cases_of(SUITE, [_begin(results.LEAKS), _end(results.LEAKS, code)], console)
    assert case.status == {4: "skip", 0: "pass", 1: "splat"}[code]
    assert [f"BUG: leaked by {x}" for x in said.splitlines()] == list(case.complaints)


def test_leaks_are_asked_for_once_all_cases_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def run(
        spec: VmSpec, limits: guest.Limits, watch: Callable[[str], None], stop: threading.Event
    ) -> float:
        conf = (spec.run_dir / "suite.conf").read_text()
        asked.append(re.findall(r"^case (\S+)", conf, re.MULTILINE))
        if len(asked) == 1:
            _write(spec, watch, [_begin("a"), _end("a", 0), _begin("b")])
            raise GuestError("the guest died before its end")
        _write(spec, watch, [y for x in asked[-1] for y in (_begin(x), _end(x, 0))])
        return 1.0

    monkeypatch.setattr(guest, "run", run)
    plan = replace(_plan(tmp_path), machine=runner.Machine(2, 512, debug=True))
    done = runner.run(
        plan, load_policy("none"), KERNEL, tmp_path / "none", lambda *_: None, threading.Event()
    )
    assert asked == [["a", "b", "c", "_kmemleak"], ["c", "_kmemleak"]]
    assert [case.name for case in done.cases] == ["a", "b", "c", "_kmemleak"]


KERNEL = Kernel(Path("bzImage"), Path(".config"), "6.12.117", "id", "tree", "x86_64")
SWITCHES = json.dumps({"r": "switches", "t": 0, "files": {}, "sra": False}, separators=(",", ":"))


def _write(spec: VmSpec, watch: Callable[[str], None], records: list[dict[str, Any]]) -> None:
    lines = [SWITCHES, *(json.dumps(x, separators=(",", ":")) for x in records)]
    spec.records.write_text("".join(f"{line}\n" for line in lines))
    for line in lines:
        watch(line)


def test_a_guest_that_dies_is_followed_by_one_for_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def run(
        spec: VmSpec, limits: guest.Limits, watch: Callable[[str], None], stop: threading.Event
    ) -> float:
        conf = (spec.run_dir / "suite.conf").read_text()
        asked.append(re.findall(r"^case (\S+)", conf, re.MULTILINE))
        if len(asked) == 1:
            _write(spec, watch, [_begin("a"), _end("a", 0), _begin("b")])
            raise GuestError("the guest died before its end")
        _write(spec, watch, [_begin("c"), _end("c", 0)])
        return 1.0

    monkeypatch.setattr(guest, "run", run)
    seen: list[tuple[int, int]] = []
    where = tmp_path / "none"
    done = runner.run(
        _plan(tmp_path),
        load_policy("none"),
        KERNEL,
        where,
        lambda *x: seen.append(x),
        threading.Event(),
    )
    assert asked == [["a", "b", "c"], ["c"]]
    assert [(case.name, case.status) for case in done.cases] == [
        ("a", "pass"),
        ("b", "died"),
        ("c", "pass"),
    ]
    assert (done.boots, seen[-1]) == (2, (3, 3))
    assert len((where / "cases.jsonl").read_text().splitlines()) == 3


def boot(tmp_path: Path) -> Outcome:
    """The suite under the policy none."""
    where, stop = tmp_path / "n", threading.Event()
    return runner.run(_plan(tmp_path), load_policy("none"), KERNEL, where, lambda *_: None, stop)


def test_a_guest_that_is_no_run_of_its_policy_has_no_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its cases said by then, and also if it came to its end."""

    def run(
        spec: VmSpec, limits: guest.Limits, watch: Callable[[str], None], stop: threading.Event
    ) -> float:
        said = [{**json.loads(SWITCHES), "sra": True}] if other else []
        lines = [json.dumps(x, separators=(",", ":")) for x in [*said, _begin("a"), _end("a", 0)]]
        spec.records.write_text("".join(f"{line}\n" for line in lines))
        for line in lines:
            watch(line)
        return 1.0

    monkeypatch.setattr(guest, "run", run)
    other = True
    with pytest.raises(WrongPolicy, match="a static reserve is there"):
        boot(tmp_path)
    other = False
    with pytest.raises(WrongPolicy, match="did not tell"):
        boot(tmp_path)


def test_a_guest_without_a_case_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(
        spec: VmSpec, limits: guest.Limits, watch: Callable[[str], None], stop: threading.Event
    ) -> float:
        _write(spec, watch, [])
        raise GuestError("the guest gave up: the suite's setup failed")

    monkeypatch.setattr(guest, "run", run)
    with pytest.raises(GuestError, match="setup failed"):
        boot(tmp_path)


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Callable[..., list[str | Path]]]:
    """`cohort suite` of these cases with a shell script in QEMU's place, whose guests die when so
    many cases have ended under a policy."""
    flags = prepare(tmp_path, seconds=0)
    busybox = tmp_path / "bin" / "busybox"
    busybox.write_text("#!/bin/sh\n")
    busybox.chmod(0o755)

    def words(cases: str, policies: str, **late: int) -> list[str | Path]:
        directory = tmp_path / "mine"
        directory.mkdir()
        for case in cases:
            (directory / case).touch(0o755)
        for policy, count in late.items():
            (flags / f"late.{policy}").write_text(str(count))
        options = ("--rootfs", "initramfs", "--policies", policies, "--json")
        return ["suite", "mine", "--dir", directory, *options]

    with prepared(tmp_path):
        yield words


def statuses(said: str, policy: str) -> list[str]:
    """Of the cases under a policy, out of what `--json` printed."""
    return [case["status"] for case in json.loads(said)["policies"][policy]["cases"]]


Fake = Callable[..., list[str | Path]]
TOO_LATE = "the case had ended, and then: the guest died before its end: Kernel panic - not syncing"


@pytest.mark.parametrize(("cases", "count"), [("a", 1), ("ab", 2)])
def test_a_guest_that_dies_after_its_last_case_is_a_failure(
    cohort: Callable[..., Ended], fake: Fake, cases: str, count: int
) -> None:
    done = cohort(*fake(cases, "none", none=count))
    assert done.code == 7
    assert f"mine: a guest died\n{cases[-1]}, none: {TOO_LATE}: too late" in done.stderr
    assert statuses(done.stdout, "none") == ["pass"] * (count - 1) + ["died"]


def test_a_guest_that_dies_late_under_one_policy_is_a_difference(
    cohort: Callable[..., Ended], fake: Fake
) -> None:
    done = cohort(*fake("a", "none,tuned", tuned=1))
    assert done.code == 1
    assert "mine: 1 results differ from none\na, tuned: the case had ended" in done.stderr
    assert statuses(done.stdout, "none") == ["pass"]
    assert statuses(done.stdout, "tuned") == ["died"]


def test_a_guest_that_dies_between_two_cases_is_followed_by_another(
    cohort: Callable[..., Ended], fake: Fake
) -> None:
    done = cohort(*fake("abc", "none", none=2))
    assert done.code == 7
    assert done.stderr.count(TOO_LATE) == 2, "after b, and again after c"
    assert statuses(done.stdout, "none") == ["pass", "died", "died"]


def test_a_guest_has_its_directory_alone(
    cohort: Callable[..., Ended], fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second command removed what the first one's guest was writing into."""
    held: list[bool] = []

    def run(plan: Plan, policy: Policy, *_: object) -> Outcome:
        mine = paths.made("suites", ".locks") / f"mine-{policy.name}"
        held.append(not may_lock(mine, LOCK_EX))
        raise GuestError("seen")

    monkeypatch.setattr(runner, "run", run)
    assert cohort(*fake("a", "none")).code == 7
    assert held == [True]


def test_cases_are_chosen_by_name() -> None:
    assert list(runner.choose_cases(SUITE, ["b"]).case) == ["b"]
    assert runner.choose_cases(SUITE, []) is SUITE
    with pytest.raises(UsageError, match="has no case z"):
        runner.choose_cases(SUITE, ["z"])


def test_the_initramfs_has_a_shell_and_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"\x7fELF shell")
    monkeypatch.setattr(host, "need", lambda name: busybox)
    members = {member.name: member for member in root.initramfs(TWO)}
    assert members["bin/busybox"].data == b"\x7fELF shell"
    assert members["bin/sh"].mode == stat.S_IFLNK | 0o777
    assert members["suite/passes"].mode & 0o111
    assert members["suite/suite.toml"].data == (TWO / "suite.toml").read_bytes()


def test_what_is_missing_on_the_host_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_out: Path
) -> None:
    with pytest.raises(UsageError, match="has no tools/testing/selftests/mm"):
        selftests.install(["mm"], tmp_path, "id")
    makefile = tmp_path / selftests.WHERE / "mm" / "Makefile"
    makefile.parent.mkdir(parents=True)
    makefile.write_text("all:\n")
    monkeypatch.setattr(selftests, "HEADERS", {"mm": {"no/such.h": "libno-dev"}})
    with pytest.raises(MissingTool, match=re.escape("no/such.h is not installed")) as missing:
        selftests.install(["mm"], tmp_path, "id")
    assert missing.value.hint == "apt-get install libno-dev"


def test_a_root_is_made_on_debian_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text('ID=debian\nVERSION_CODENAME="bookworm"\n')
    monkeypatch.setattr(root, "RELEASE", release)
    assert root.codename() == "bookworm"
    release.write_text("ID=fedora\n")
    with pytest.raises(Skipped, match="on a Debian host only"):
        root.codename()


ARM64 = ("--arch", "arm64")
REFUSED = [
    (("fio", *ARM64), "Debian's for the host, x86_64, not for arm64\nhint: --arch x86_64"),
    (
        ("mine", "--dir", str(TWO), *ARM64),
        "not for arm64\nhint: --rootfs initramfs, if its programs are static; or --arch x86_64",
    ),
    (("fio", "--rootfs", "initramfs"), "needs Debian's root.*\nhint: leave out --rootfs"),
    (("fio", "--rootfs", "initramfs", *ARM64), "\nhint: --arch x86_64, without --rootfs"),
    (("fio", "--config", "base,arm64,lab,cohort"), "not for arm64"),
    (("fio", "--page-size", "16k"), "pages of x86_64 have 4096 bytes"),
    (("fio", "--policies", "none-order9", *ARM64), "there is no kernel order9 for arm64"),
    (
        ("fio", "--config", "base,arm64,lab,cohort", *ARM64, "--page-size", "16k"),
        "has pages of 4096 bytes, not of 16384",
    ),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_a_machine_that_a_suite_cannot_have_is_refused_before_anything_is_built(
    cohort: Callable[..., Ended], own_out: Path, words: tuple[str, ...], said: str
) -> None:
    done = cohort("suite", *words)
    assert done.code == 2
    assert re.search(said, done.stderr, re.DOTALL), done.stderr
    assert not own_out.exists() or not list(own_out.rglob("*.config"))


def test_a_program_of_another_machine_is_refused(tmp_path: Path) -> None:
    elf = b"\x7fELF" + bytes(14)
    (tmp_path / "ours").write_bytes(elf + b"\xb7\0 and so on")
    (tmp_path / "script").write_text("#!/bin/sh\n")
    suite = SUITE.model_copy(update={"files": tmp_path})
    root.check("initramfs", suite, "arm64")
    (tmp_path / "theirs").write_bytes(elf + b"\x3e\0 and so on")
    root.check("initramfs", suite, "x86_64")
    with pytest.raises(UsageError, match="theirs is a program of another machine") as refused:
        root.check("initramfs", suite, "arm64")
    assert refused.value.hint == "compile it with aarch64-linux-gnu-gcc -static"


def test_areas_of_large_pages_are_whole_pageblocks(tmp_path: Path) -> None:
    large = runner.Machine(2, 2048, debug=False, page_size=LARGE_PAGE)
    plan = Plan(SUITE, tmp_path, None, [], large)
    assert "cohort.pcpa=288M" in plan.words(load_policy("pcpa"))


def test_the_initramfs_of_another_machine_has_its_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/busybox").write_bytes(b"of arm64")
    asked = []

    def unpacked(*words: str) -> Path:
        asked.append(words)
        return tmp_path

    monkeypatch.setattr(phone_programs, "unpacked", unpacked)
    members = {member.name: member for member in root.initramfs(None, "arm64")}
    assert members["bin/busybox"].data == b"of arm64"
    assert asked == [("busybox-static", "arm64")]


def test_knobs_of_the_phones_storage_are_the_roots(tmp_path: Path) -> None:
    plan = Plan(SUITE, tmp_path, tmp_path, [], runner.Machine(2, 2048, debug=False))
    tuned = load_policy("tuned-compact")
    conf = runner.render_conf(plan, tuned, list(SUITE.case))
    assert "write /sys/block/pmem0/queue/read_ahead_kb 64\n" in conf
    conf = runner.render_conf(replace(plan, image=None), tuned, list(SUITE.case))
    assert "read_ahead_kb" not in conf and "write /proc/sys/vm/" in conf


@pytest.mark.parametrize("memory", ["0", "-1", "1", "47", "9999999"])
def test_memory_is_checked_before_anything_is_built(
    cohort: Callable[..., Ended], own_out: Path, memory: str
) -> None:
    done = cohort("suite", "fio", "--memory", memory)
    assert done.code == 2
    assert f"memory must be 48 to 1048576 MiB, not {memory}" in done.stderr
    done = cohort("suite", "fio", "--policies", "none,vnode", "--memory", "256")
    assert done.code == 2
    assert "policy vnode: cmdline" in done.stderr
    assert not (own_out / "kernel").exists()


def test_the_mail_keeps_its_texts(own_out: Path, tmp_path: Path) -> None:
    program = programs.build(paths.SUITES / "userland") / "mail"
    assert host.run([program, tmp_path]).returncode == 2
    assert host.run([program, tmp_path, "1600"]).returncode == 0
    assert len(list(tmp_path.glob("*/*.day"))) == 1500
    assert host.run([program, tmp_path, "10"]).returncode == 1  # there is one


def test_every_step_of_the_day_is_a_function() -> None:
    script = (paths.SUITES / "userland" / "day.sh").read_text()
    commands = load_suite("userland").case.values()
    named = {word for command in commands for word in re.findall(r"day\.sh (\w+)", command)}
    assert named == set(re.findall(r"^step_(\w+)\(\)", script, re.MULTILINE))


@pytest.mark.parametrize("option", ["--config", "--kernel"])
def test_options_that_exclude_each_other(option: str, cohort: Callable[..., Ended]) -> None:
    done = cohort("suite", "fio", option, "base,x86_64", "--debug")
    assert done.code == 2
    assert "--config does not go with --debug" in done.stderr
