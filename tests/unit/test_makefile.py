"""The Makefile's lists agree with what there is, and its commands are what they should be."""

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cohort import paths
from cohort.policy import load_policy
from cohort.suites.runner import Machine
from cohort.suites.schema import load_suite, suite_names
from cohort.verbs.suite import command as verb

TEXT = (paths.ROOT / "Makefile").read_text()
NAMED = ["none", "region-alone", "region", "cpb", "pcpa", "vnode-untrusted"]


def listed(name: str) -> list[str]:
    """The words of a variable of the Makefile."""
    found = re.search(rf"^{re.escape(name)} := (.*)$", TEXT, re.MULTILINE)
    assert found is not None
    return found[1].split()


def make(out: Path, *words: str, cohort: str = "echo") -> subprocess.CompletedProcess[str]:
    """Make with another program in the command's place, by default one that prints its options."""
    # Nothing is installed, and `make suites` goes without its night.
    without = ("-o", "packages", "-o", ".venv/installed", "again=:", f"OUT={out}")
    argv = ("make", "--no-print-directory", *without, f"COHORT={cohort}", *words)
    return subprocess.run(argv, cwd=paths.ROOT, text=True, capture_output=True, check=False)


@pytest.fixture
def bare(tmp_path: Path) -> Callable[..., list[str]]:
    """Make on a machine where dpkg-query and python3 only say that they were called, and all
    packages are there; in what order they were."""
    said, programs = tmp_path / "said", tmp_path / "bin"
    programs.mkdir()
    texts = {
        "dpkg-query": f"sleep 0.5; echo packages >> {said}; shift 3\n"
        "printf 'install ok %s\\n' $@\n",
        "python3": f"echo venv >> {said}; mkdir -p $3/bin; cp {programs}/true $3/bin/pip\n"
        f"cp {programs}/true $3/bin/pytest; cp {programs}/true $3/bin/python\n",
        "true": "exit 0\n",
    }
    for name, text in texts.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}")
        (programs / name).chmod(0o755)

    def call(*words: str) -> list[str]:
        said.write_text("")
        argv = ("make", f"VENV={tmp_path}/{len(list(tmp_path.iterdir()))}", "again=:", *words)
        path = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        done = subprocess.run(
            argv, cwd=paths.ROOT, env=path, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return said.read_text().split()

    return call


def test_unit_and_tier_install_no_packages(bare: Callable[..., list[str]]) -> None:
    """They are asked for where nothing may be installed."""
    for words in ("unit", "-j4 tier", "venv"):
        assert bare(*words.split()) == ["venv"], words
    for words in ("-j4 test", "-j4 COHORT=:", "-j4 packages venv"):
        assert bare(*words.split()) == ["packages", "venv"], words


@pytest.mark.parametrize("own", [True, False])
def test_what_is_made_goes_where_it_is_asked_for(own: bool, tmp_path: Path) -> None:
    out = tmp_path / "mine" if own else Path("out")
    environment = {name: x for name, x in os.environ.items() if name != "COHORT_OUT"}
    environment |= {"COHORT_OUT": str(out)} if own else {}

    def asked(*words: str) -> str:
        argv = ("make", "-n", "--no-print-directory", "-o", "packages", "-o", ".venv/installed")
        return subprocess.run(
            [*argv, *words],
            cwd=paths.ROOT,
            env=environment,
            text=True,
            capture_output=True,
            check=True,
        ).stdout

    assert asked("run").endswith(f" --report {out}/report.html\n")
    assert asked("clean") == "rm -rf out\n" or own
    if own:
        for name in ("runs/x", "last-scale.json", "notes"):
            (out / name).mkdir(parents=True)
        subprocess.run(["sh", "-c", asked("clean")], check=True)
        assert [x.name for x in out.iterdir()] == ["notes"]


@dataclass(frozen=True)
class Command:
    """One `cohort suite` of `make suites`: the name of what it leaves, and its options."""

    left: str
    suite: str
    policies: list[str]
    cpus: int
    debug: bool


def command(line: str) -> Command:
    """As its line says; click finds options that there are not."""
    words = shlex.split(line)
    given = verb.make_context("suite", words[1:]).params
    suite = load_suite(given["name"])
    policies = given["policies"].split(",")
    cpus = given["cpus"] or suite.cpus
    return Command(given["junit"].stem, suite.name, policies, cpus, given["debug"])


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> list[Command]:
    """Those of `make suites`, in their order."""
    done = make(tmp_path_factory.mktemp("out"), "suites")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "scale"
    return [command(line) for line in done.stdout.splitlines() if line.startswith("suite ")]


def test_make_suites_runs_every_suite(commands: list[Command]) -> None:
    assert sorted(x.left for x in commands if x.left == x.suite) == suite_names()
    assert sorted(listed("SUITES")) == suite_names()
    names = [x.left for x in commands]
    assert len(set(names)) == len(names)


def test_make_suites_has_a_machine_for_each_policy(commands: list[Command]) -> None:
    """What a suite's machine cannot have ends its command before a guest is booted."""
    for one in commands:
        memory_mb = load_suite(one.suite).memory_mb
        assert one.policies[0] == ("cma128" if one.suite == "pieces" else "none")
        for policy in one.policies:
            Machine(one.cpus, memory_mb, one.debug).check(load_policy(policy))


def test_make_suites_runs_them_under_every_policy_that_they_can_have(
    commands: list[Command],
) -> None:
    seen = {one.left: one for one in commands}
    pieces = seen["pieces"]
    assert pieces.policies == ["cma128", "pcpa64", "pcpa-kept64"]
    for name in {*suite_names()} - {"pieces"}:
        alone = NAMED[:-1] if seen[name].cpus == 1 else NAMED
        # Most memory of that machine is of a kind that no area is made of.
        large = {"pcpa"} if name == "changes" else set()
        assert {*alone} - large <= {*seen[name].policies}, name
    assert "pcpa64" in seen["changes"].policies
    assert "rightsize" in seen["adversaries"].policies
    two = seen["adversaries+2cpus"]
    assert (two.policies, two.cpus, two.debug) == (["none", "vnode", "vnode-lend"], 2, False)
    checked = [x for x in commands if x.suite == "stress-ng-vm" and x.debug]
    assert [x.cpus for x in checked] == [8, 2]


def test_what_ran_on_another_machine_is_out_of_the_way(tmp_path: Path) -> None:
    """Of two runs of a suite the second would replace what the guests of the first said."""
    cohort = tmp_path / "cohort"
    cohort.write_text(f'dir={tmp_path}/suites/runs/$2/none; mkdir -p $dir; echo "$@" > $dir/said\n')
    make(tmp_path, "suites", cohort=f"sh {cohort}")
    for name in ("adversaries", "adversaries+2cpus", "stress-ng-vm", "stress-ng-vm+8cpus+debug"):
        said = (tmp_path / "suites" / "runs" / name / "none" / "said").read_text()
        assert f"/suites/{name}.xml" in said
        assert [x.name for x in (tmp_path / "suites" / "runs" / name).iterdir()] == ["none"]


def test_the_end_tells_what_failed_or_differs(tmp_path: Path) -> None:
    done = make(tmp_path, "suites", cohort="f() { case $$* in *fio*|scale) false;; esac; }; f")
    assert done.returncode == 2
    assert "failed, or differ:  fio scale\n" in done.stderr


def test_what_make_is_only_asked_for_does_not_run(tmp_path: Path) -> None:
    done = make(tmp_path, "-n", "suites", cohort="touch $(OUT)/ran; :")
    assert (done.returncode, list(tmp_path.iterdir())) == (0, [])


def test_make_repeat_and_make_tier_say_what_they_are_told(tmp_path: Path) -> None:
    said = make(tmp_path, "-n", "repeat", "TESTS=tests/unit/test_x.py -k 'a or b'", "BUSY=2").stdout
    assert said.endswith("tests/repeat.py --times 10 --busy 2 tests/unit/test_x.py -k 'a or b'\n")
    said = make(tmp_path, "-n", "tier", "TIER=night").stdout
    assert said.endswith("tests/tier.py night --into .\n")
