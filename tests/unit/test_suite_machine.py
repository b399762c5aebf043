"""Machines of suites: what `cohort suite` refuses before anything is built."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.errors import UsageError
from cohort.policy import load_policies
from cohort.suites.runner import Machine, check_columns
from made_suites import TWO
from tests_support import Outcome as Ended

ARM64 = ("--arch", "arm64")
ARM = "base,arm64,lab,cohort"
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
    (("fio", "--tree", "/nowhere"), "/nowhere: no such directory\nhint: --tree is"),
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


@pytest.mark.parametrize("memory", ["0", "-1", "1", "47", "9999999"])
def test_memory_is_checked_before_anything_is_built(
    cohort: Callable[..., Ended], own_out: Path, memory: str
) -> None:
    done = cohort("suite", "fio", "--memory", memory)
    assert done.code == 2
    assert f"memory must be 48 to 1048576 MiB, not {memory}\nhint: without --memory" in done.stderr
    done = cohort("suite", "fio", "--policies", "none,vnode", "--memory", "256")
    assert done.code == 2
    assert "policy vnode: cmdline" in done.stderr
    assert "\nhint: more --memory, or less in that word" in done.stderr
    assert not (own_out / "kernel").exists()


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        ("none,memcg", r"memcg: role\.trusted: the .*hint: .*run memcg --workload vnode-pressure"),
        ("none,memcg-max", r"memcg-max: role\.trusted"),
        ("none,pcpa-sized", r"camera_heap pcpa: .* no cohort\.pcpa=\nhint: cmdline = "),
        (
            f"gcma --config {ARM} {' '.join(ARM64)} --rootfs initramfs --dir {TWO}",
            r"guaranteed_mb: .*hint: .*cohort run gcma",
        ),
        ("pcpa,none,pcpa-alone", r"pcpa and pcpa-alone differ only in .*: in camera_announce\n"),
        ("pcpa,pcpa-contig", r": in camera_heap\nhint: leave one of them out"),
        ("pcpa,pcpa-entitled", r": in camera_heap, camera_announce, entitled"),
    ],
)
def test_a_policy_that_a_suite_cannot_carry_is_refused_before_anything_is_built(
    policies: str, said: str, cohort: Callable[..., Ended], own_out: Path
) -> None:
    """Its column would be of a plain guest, or of another column's, under the policy's name."""
    done = cohort("suite", "fio", "--policies", *policies.split())
    assert done.code == 2
    assert re.search(said, done.stderr, re.DOTALL), done.stderr
    assert not (own_out / "kernel").exists()


def test_columns_that_a_suite_can_tell_apart_are_taken() -> None:
    """Nodes and areas are there without roles and cameras; and one policy twice is meant."""
    policies = load_policies(["none", "vnode", "pcpa", "sra", "cma", "none-stock", "boost0"])
    for policy in policies:
        Machine(2, 2048, debug=False).check(policy)
    same = policies[0].model_copy(update={"name": "again"})
    check_columns([*policies, same], disk=False)
    ahead = load_policies(["boost0", "boost0-ra32"])
    check_columns(ahead, disk=True)
    with pytest.raises(UsageError, match="differ only in what a suite has not: in sysfs"):
        check_columns(ahead, disk=False)


@pytest.mark.parametrize("option", ["--config", "--kernel"])
def test_options_that_exclude_each_other(option: str, cohort: Callable[..., Ended]) -> None:
    done = cohort("suite", "fio", option, "base,x86_64", "--debug")
    assert done.code == 2
    assert "--config does not go with --debug" in done.stderr
