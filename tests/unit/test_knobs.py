"""Cohort's files in sysfs, checked before a kernel is built for them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import knobs, switches
from cohort.errors import UsageError
from cohort.policy import load_policies, load_policy, policy_names
from cohort.run_check import check_run
from cohort.run_spec import RunSpec
from cohort.suites.runner import Machine
from tests_support import Outcome

TOP = knobs.COHORT


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{TOP}/pcpa/min_order", "8"),
        (f"{TOP}/region/enabled", "1"),
        (f"{TOP}/pcpa/size", "260M"),
        (f"{TOP}/pcpa/size", "0"),
        (f"{TOP}/cpb/refill", "split"),
        (f"{TOP}/vnode/trusted/unusable_pct", "3"),
        ("/sys/kernel/mm/lru_gen/enabled", "7"),
        ("/sys/block/dm-0/queue/read_ahead_kb", "64"),
    ],
)
def test_what_the_kernel_may_take(path: str, value: str) -> None:
    assert knobs.problem(path, value) is None


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (f"{TOP}/region/enabeld", "1", f"no such file; did you mean {TOP}/region/enabled?"),
        (f"{TOP}/vnode/a/b/free_kb", "1", "no such file"),
        ("/sys/kernel/mm/cohrt/region/order", "8", "no /sys/kernel/mm/cohrt; did you mean cohort?"),
        (f"{TOP}/region/order", "8", "order: is only read"),
        (f"{TOP}/vnode/trusted/free_kb", "8", "free_kb: is only read"),
        (f"{TOP}/pcpa/min_order", "99", "min_order: 99: not a number from 0 to 8"),
        (f"{TOP}/pcpa/size", "261M", "size: 261M: the size is not a multiple of a pageblock"),
        (f"{TOP}/pcpa/below", "4G", "below: is only read"),
        (f"{TOP}/cpb/refill", "whole", "not one of split, remnants"),
    ],
)
def test_what_the_kernel_refuses(path: str, value: str, said: str) -> None:
    assert said in str(knobs.problem(path, value))


def test_all_files_with_a_boot_parameter_are_cohorts() -> None:
    assert all(knobs.files()[path] for path in knobs._PARAMETERS)
    assert set(knobs._PARAMETERS.values()) <= set(switches.PARAMETERS)


def test_the_policies_that_there_are_write_files_that_there_are() -> None:
    assert len(load_policies(policy_names())) > 50


def test_a_node_that_the_layout_has_not_is_told(own_out: Path) -> None:
    policy = load_policy("vnode").model_copy(
        update={"sysfs": {f"{TOP}/vnode/trustd/unusable_pct": "2"}}
    )
    with pytest.raises(
        UsageError, match="trustd/unusable_pct: no such node; .* trusted, untrusted"
    ):
        check_run(RunSpec(policy, "phone-2g", 5))
    assert (
        knobs.without_node([f"{TOP}/vnode/lend", f"{TOP}/vnode/trusted/free_kb"], ["trusted"])
        is None
    )


@pytest.mark.parametrize(
    ("file", "size", "refused"),
    [
        ("size", "260G", True),
        ("contig_size", "2G", True),
        ("size", "260M", False),
        ("size", "0", False),
    ],
)
def test_an_area_made_at_run_time_fits_the_machine(file: str, size: str, refused: bool) -> None:
    """As one does that the command line makes; on a phone and in a suite."""
    path = f"{TOP}/pcpa/{file}"
    policy = load_policy("none").model_copy(update={"name": "mine", "sysfs": {path: size}})
    checks: list[tuple[str, Callable[[], object]]] = [
        ("mine on phone-2g", lambda: check_run(RunSpec(policy, "phone-2g", 5))),
        ("mine", lambda: Machine(2, 2048, debug=False).check(policy)),
    ]
    for where, check in checks:
        if not refused:
            check()
            continue
        with pytest.raises(UsageError) as caught:
            check()
        assert caught.value.message == (
            f"policy {where}: sysfs: {path}: {size}: larger than the machine's 2048M"
        )
        assert caught.value.hint == "more --memory, or less in that file"


def test_a_file_that_is_none_is_told_before_anything_is_built(
    tmp_path: Path, cohort: Callable[..., Outcome], own_out: Path
) -> None:
    policy = tmp_path / "mine.toml"
    policy.write_text(f'title = "t"\n[sysfs]\n"{TOP}/region/ordr" = "8"\n')
    done = cohort("run", policy)
    assert done.code == 2
    assert f"mine.toml:2: sysfs: {TOP}/region/ordr: Cohort has no such file" in done.stderr
    assert f"did you mean {TOP}/region/order?" in done.stderr
    assert not list(own_out.glob("kernel/*"))
