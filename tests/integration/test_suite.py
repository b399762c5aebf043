"""A suite of two scripts, one of which tells the policies apart, in real guests."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cohort import paths
from cohort.errors import Skipped
from cohort.suites.schema import load_suite
from tests_support import Outcome, at_night

pytestmark = pytest.mark.integration

TWO = paths.ROOT / "tests" / "suites" / "two"
MACHINES = ("x86_64", "arm64", "arm64,pages16k")


@pytest.mark.parametrize("machine", at_night(MACHINES, by_day=1))
def test_a_case_that_differs_is_told_and_is_a_failure(
    cohort: Callable[..., Outcome], tmp_path: Path, machine: str
) -> None:
    junit, ktap = tmp_path / "junit.xml", tmp_path / "results.ktap"
    words = ["suite", "two", "--dir", TWO, "--policies", "none,region", "--rootfs", "initramfs"]
    words += ["--config", f"base,{machine},lab,cohort"]
    done = cohort(*words, "--json", "--junit", junit, "--ktap", ktap)
    assert done.code == 1, done.stderr
    assert "two: 1 results differ from none" in done.stderr
    told = json.loads(done.stdout)
    assert told["differences"] == [
        {"name": "region-off", "status": {"none": "pass", "region": "fail"}}
    ]
    assert told["policies"]["region"]["checks"] == {"pass": 1, "fail": 0, "skip": 1}
    suites = ElementTree.parse(junit).getroot().findall("testsuite")
    assert [suite.get("failures") for suite in suites] == ["0", "1"]
    assert "not ok 2 region-off # fail, and pass under none" in ktap.read_text()


@pytest.mark.night
def test_every_step_of_a_day_of_debian_passes(cohort: Callable[..., Outcome]) -> None:
    """On the stock kernel, and each tells its figures; without a Debian host there is no root."""
    done = cohort("suite", "userland", "--policies", "none", "--json")
    if done.code == Skipped.exit_code:
        pytest.skip(done.stderr)
    assert done.code == 0, done.stderr
    told = json.loads(done.stdout)["policies"]["none"]
    assert {case["name"]: case["status"] for case in told["cases"]} == dict.fromkeys(
        load_suite("userland").case, "pass"
    )
    for case in told["cases"]:
        assert set(told["figures"]) - {"huge_pages"} <= set(case["figures"]), case["name"]
    assert told["figures"]["kills"]["value"] == 0


@pytest.mark.night
def test_an_adversary_tells_costs_waits_and_kills(cohort: Callable[..., Outcome]) -> None:
    """Of the guest's own time, in which a victim that is not held up has hardly a wait."""
    done = cohort("suite", "adversaries", "--case", "asks", "--policies", "none", "--json")
    if done.code == Skipped.exit_code:
        pytest.skip(done.stderr)
    assert done.code == 0, done.stderr
    (case,) = json.loads(done.stdout)["policies"]["none"]["cases"]
    assert {check["text"] for check in case["checks"]} >= {
        "the victim goes on",
        "nothing is killed for want of memory",
        "all memory is back",
    }
    assert {check["status"] for check in case["checks"]} == {"pass"}
    costs, wait = case["costs"], case["figures"]["wait_us"]["value"]
    assert costs["whole_us"] == pytest.approx(costs["round_us"] + wait, abs=0.2)
    assert wait < costs["round_us"]
    assert 1000 <= costs["users_us"] < 1200
    assert case["figures"]["kills"]["value"] == 0


@pytest.mark.night
def test_pieces_are_given_where_they_are_promised(
    cohort: Callable[..., Outcome], tmp_path: Path
) -> None:
    """A few beside each user, which holds what it is to hold."""
    shutil.copytree(paths.SUITES / "pieces", tmp_path / "pieces")
    text = (paths.SUITES / "pieces.toml").read_text()
    (tmp_path / "few.toml").write_text(text.replace(' 1000"', ' 5"'))
    done = cohort("suite", tmp_path / "few.toml", "--policies", "pcpa64,pcpa-kept64", "--json")
    if done.code == Skipped.exit_code:
        pytest.skip(done.stderr)
    for name, policy in json.loads(done.stdout)["policies"].items():
        assert [case["name"] for case in policy["cases"]] == [*load_suite("pieces").case]
        for case in policy["cases"]:
            assert case["status"] == "pass", (name, case)
            assert case["figures"]["refused"]["value"] == 0, (name, case)
            costs = case["costs"]
            longest_us = case["figures"]["longest_us"]["value"]
            assert 0 < costs["p50_us"] <= costs["p99_us"] <= longest_us
