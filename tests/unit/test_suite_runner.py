"""Guests of suites: what they are told, and what becomes of their cases when they die."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fcntl import LOCK_EX
from pathlib import Path
from typing import Any

import pytest

from cluster_support import drive, prepare, prepared
from cohort import capacity, host, paths, runs
from cohort.errors import GuestError, UsageError, WrongPolicy
from cohort.kernel.build import Kernel
from cohort.phone.initramfs import Member
from cohort.policy import Policy, load_policy
from cohort.suites import results, runner
from cohort.suites.results import Outcome
from cohort.suites.runner import Plan
from cohort.suites.schema import COMMAND_CHARS, load_directory
from cohort.units import LARGE_PAGE
from cohort.verbs import suite as verb
from cohort.vm import guest
from cohort.vm.machine import VmSpec
from made_suites import SUITE, begin, end
from tests_support import Outcome as Ended
from tests_support import may_lock


def test_words_of_a_suite_stand_before_the_policys() -> None:
    suite = SUITE.model_copy(update={"cmdline": ["cma=64M"]})
    plan = Plan(suite, Path(), None, [], runner.Machine(2, 512, debug=False))
    words = plan.words(load_policy("region"))
    assert words.index("cma=64M") < words.index("cohort=region,rightsize")


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


def test_a_plan_is_known_by_names_and_modes_of_its_initramfs(tmp_path: Path) -> None:
    """`suite_id` of a run is that: two runs of one id are of the same programs."""
    plan = _plan(tmp_path)
    members = [
        Member("suite/a", 0o100644, b"x"),
        Member("suite/b", 0o100644, b"x"),
        Member("suite/b", 0o100755, b"x"),
        Member("suite/b", 0o100755, b"y"),
    ]
    assert len({replace(plan, members=[member]).id for member in members}) == len(members)


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
    (case,) = results.cases_of(SUITE, [begin(results.LEAKS), end(results.LEAKS, code)], console)
    assert case.status == {4: "skip", 0: "pass", 1: "splat"}[code]
    assert [f"BUG: leaked by {x}" for x in said.splitlines()] == list(case.complaints)


def test_leaks_are_asked_for_once_all_cases_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = dies_once(monkeypatch)
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


def dies_once(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The cases that each guest is asked for; the first dies in b, behind a, and others do all."""
    asked: list[list[str]] = []

    def run(
        spec: VmSpec, limits: guest.Limits, watch: Callable[[str], None], stop: threading.Event
    ) -> float:
        conf = (spec.run_dir / "suite.conf").read_text()
        asked.append(re.findall(r"^case (\S+)", conf, re.MULTILINE))
        if len(asked) == 1:
            _write(spec, watch, [begin("a"), end("a", 0), begin("b")])
            raise GuestError("the guest died before its end")
        _write(spec, watch, [y for x in asked[-1] for y in (begin(x), end(x, 0))])
        return 1.0

    monkeypatch.setattr(guest, "run", run)
    return asked


def test_a_guest_that_dies_is_followed_by_one_for_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = dies_once(monkeypatch)
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


def test_output_that_the_guest_left_out_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def run(
        spec: VmSpec, limits: guest.Limits, watch: Callable[[str], None], stop: threading.Event
    ) -> float:
        said = [{"r": "out", "t": 1, "line": x} for x in ("of the setup", "1", "2")]
        ended = [{**end("a", 0), "lines": 2}, begin("b"), said[0], {**end("b", 0), "lines": 9}]
        _write(spec, watch, [said[0], begin("a"), *said[1:], *ended, begin("c"), end("c", 0)])
        return 1.0

    monkeypatch.setattr(guest, "run", run)
    boot(tmp_path)
    assert caplog.messages == [f"b: 1 of 9 lines of output are kept ({tmp_path}/n/boot-1)"]


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
        lines = [json.dumps(x, separators=(",", ":")) for x in [*said, begin("a"), end("a", 0)]]
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


def test_files_are_written_whatever_becomes_of_what_is_printed(
    cohort: Callable[..., Ended],
    fake: Callable[..., list[str | Path]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def show(*_: object) -> None:
        raise GuestError("the reader went away")

    monkeypatch.setattr(verb, "show", show)
    junit, ktap = tmp_path / "x.xml", tmp_path / "x.ktap"
    assert cohort(*fake("a", "none"), "--junit", junit, "--ktap", ktap).code == 7
    assert (junit.is_file(), ktap.is_file()) == (True, True)


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
    meta = json.loads((paths.made("suites", "runs", "mine", "tuned") / "meta.json").read_text())
    assert (meta["position"], meta["policies"]) == (1, ["none", "tuned"])


def test_a_guest_that_dies_between_two_cases_is_followed_by_another(
    cohort: Callable[..., Ended], fake: Fake
) -> None:
    done = cohort(*fake("abc", "none", none=2))
    assert done.code == 7
    assert done.stderr.count(TOO_LATE) == 2, "after b, and again after c"
    assert statuses(done.stdout, "none") == ["pass", "died", "died"]


@pytest.mark.parametrize(
    ("key", "words", "wide"),
    [("", (), 1), ("deterministic = true\n", (), 3), ("", ("--jobs", "2"), 2)],
)
def test_policies_run_beside_one_another_if_no_guest_disturbs_another(
    cohort: Callable[..., Ended],
    fake: Fake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    words: tuple[str, ...],
    wide: int,
) -> None:
    """Three CPUs, and memory for more guests than that."""
    monkeypatch.setattr(capacity, "cpus", lambda: 3)
    monkeypatch.setattr(capacity, "MEMINFO", tmp_path / "none")
    widths: list[int] = []

    def together(
        calls: Sequence[Callable[[threading.Event], Outcome]], width: int
    ) -> list[Outcome]:
        widths.append(width)
        return [call(threading.Event()) for call in calls]

    monkeypatch.setattr(runs, "together", together)
    called = fake("a", "none,tuned")
    (tmp_path / "mine" / "suite.toml").write_text(f'title = "mine"\n{key}[case]\na = "./a"\n')
    assert cohort(*called, *words).code == 0
    assert widths == [wide]


def test_a_directory_brings_its_files_and_what_is_built_of_its_sources(
    cohort: Callable[..., Ended], fake: Fake, tmp_path: Path
) -> None:
    """Its sources were looked for among the lab's, and its files were left out beside them."""
    words = fake("a", "none")
    (tmp_path / "mine/src").mkdir()
    (tmp_path / "mine/src/made.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "mine/suite.toml").write_text(
        'title = "t"\nsources = "src"\n[case]\na = "./a"\nmade = "./made"\n'
    )
    done = cohort(*words)
    assert done.code == 0, done.stderr
    boot = paths.made("suites", "runs", "mine", "none") / "boot-1"
    archive = (boot / "initramfs.cpio").read_bytes()
    assert all(f"suite/{name}\0".encode() in archive for name in ("a", "made", "src/made.c"))


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


def test_ctrl_c_ends_a_command_that_waits_for_another(fake: Fake, tmp_path: Path) -> None:
    """Its threads wait, and the main thread waits for them."""
    words = [str(word) for word in fake("a", "none")]
    context = multiprocessing.get_context("spawn")
    command = context.Process(target=drive, args=(tmp_path, words), daemon=True)
    with host.lock(paths.made("suites", ".locks") / "mine-none"):
        command.start()
        said, give_up_at = tmp_path / "said", time.monotonic() + 60
        while not said.is_file() or "waiting for another cohort" not in said.read_text():
            assert time.monotonic() < give_up_at
            time.sleep(0.05)
        assert command.pid is not None
        os.kill(command.pid, signal.SIGINT)
        command.join(10)
        ended = command.exitcode
        command.kill()
    assert ended == 130, said.read_text()


def test_cases_are_chosen_by_name() -> None:
    assert list(runner.choose_cases(SUITE, ["b"]).case) == ["b"]
    assert runner.choose_cases(SUITE, []) is SUITE
    with pytest.raises(UsageError, match="has no case z"):
        runner.choose_cases(SUITE, ["z"])


def test_areas_of_large_pages_are_whole_pageblocks(tmp_path: Path) -> None:
    large = runner.Machine(2, 2048, debug=False, page_size=LARGE_PAGE)
    plan = Plan(SUITE, tmp_path, None, [], large)
    assert "cohort.pcpa=288M" in plan.words(load_policy("pcpa"))


def test_knobs_of_the_phones_storage_are_the_roots(tmp_path: Path) -> None:
    plan = Plan(SUITE, tmp_path, tmp_path, [], runner.Machine(2, 2048, debug=False))
    tuned = load_policy("tuned-compact")
    conf = runner.render_conf(plan, tuned, list(SUITE.case))
    assert "write /sys/block/pmem0/queue/read_ahead_kb 64\n" in conf
    conf = runner.render_conf(replace(plan, image=None), tuned, list(SUITE.case))
    assert "read_ahead_kb" not in conf and "write /proc/sys/vm/" in conf
