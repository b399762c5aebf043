"""Records of a suite's runs: made of what the runs left, refused where nobody could repeat them."""

import json
from pathlib import Path
from typing import Any

import pytest

from cohort.errors import Failed, UsageError
from cohort.results.records import write_set
from cohort.results.sheet import Sheet
from cohort.sets.suites import metrics_of, of_suite
from cohort.suites.results import LEAKS, Case, Check, Figure, Outcome
from cohort.suites.schema import load_suite

NAMES = list(load_suite("userland").case)
META = {
    "suite": "userland",
    "suite_id": "5" * 16,
    "policy_id": "1" * 16,
    "cmdline": [],
    "cpus": 2,
    "memory_mb": 2048,
    "kernel": "6.12.117",
    "kernel_id": "2" * 16,
    "tree_id": "3" * 16,
    "guest_id": "4" * 16,
    "arch": "x86_64",
    "page_size": 4096,
    "kernel_config": "base",
    "accel": "deterministic",
    "cohort_git": "abc123",
    "qemu": "QEMU 7",
    "gcc": "gcc 12",
}


def left(where: Path, policy: str, hour: int, names: list[str] = NAMES, **meta: Any) -> None:
    """What a run of the suite leaves: an hour a policy, a second and a quarter of UI(4) a step."""
    place = where / policy
    (place / "boot-1").mkdir(parents=True)
    (place / "boot-1" / "records.jsonl").write_text(f'{{"r":"{policy}"}}\n')
    ended = f"2026-01-01T0{hour}:00:00+00:00"
    said = {**META, "policy": policy, "ended": ended, **meta}
    (place / "meta.json").write_text(json.dumps(said))
    figures = {
        "s": {"value": 1.0, "unit": "s"},
        "ui4": {"value": 0.25, "unit": "share"},
        "kills": {"value": 1.0, "unit": ""},
    }
    rest = {"status": "pass", "checks": [], "costs": {}, "figures": figures}
    cases = [{"name": name, **rest} for name in names]
    cases[0]["status"] = "fail"
    (place / "cases.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases))


def test_a_record_a_policy_and_the_command_that_repeats_it(tmp_path: Path) -> None:
    left(tmp_path, "region", 2)
    left(tmp_path, "none", 1)
    none, region = of_suite(tmp_path)
    assert (none.label, region.label) == ("none", "region")
    assert none.command == "cohort suite userland --policies none,region --memory 2048"
    assert none.metrics["userland_s"] == len(NAMES)
    assert none.metrics["userland_ui4"] == 0.25
    assert none.metrics["userland_kills"] == len(NAMES)
    assert none.metrics["userland_failed"] == 1
    assert none.metrics["userland_compile_again_s"] == 1.0
    assert none.records_id != region.records_id


def test_the_command_has_the_machine_the_kernel_and_the_root(tmp_path: Path) -> None:
    told: dict[str, Any] = {"arch": "arm64", "page_size": 16384, "rootfs": "initramfs"}
    left(tmp_path / "arm64", "none", 1, **told, config=None, debug=True)
    assert of_suite(tmp_path / "arm64")[0].command == (
        "cohort suite userland --policies none --memory 2048 "
        "--arch arm64 --page-size 16k --debug --rootfs initramfs"
    )
    left(tmp_path / "own", "none", 1, config="base,x86_64,lab", debug=False, rootfs="debian")
    assert of_suite(tmp_path / "own")[0].command == (
        "cohort suite userland --policies none --memory 2048 --config base,x86_64,lab"
    )


def test_a_page_has_its_cases_and_no_seeds(tmp_path: Path) -> None:
    left(tmp_path / "runs", "none", 1)
    left(tmp_path / "runs", "region", 2)
    write_set(tmp_path / "day.jsonl", of_suite(tmp_path / "runs"))
    text = Sheet("page", tmp_path).table("day", ["none", "region"], ["userland_s"], mark="region")
    assert "10 cases" in "".join(c for c in text if c < "\ue000")
    assert "seeds" not in text.partition("✓")[0]


def test_runs_that_nobody_could_repeat_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no finished run of a suite"):
        of_suite(tmp_path)
    left(tmp_path / "part", "none", 1, NAMES[:2])
    with pytest.raises(UsageError, match="not every case of the suite userland"):
        of_suite(tmp_path / "part")
    left(tmp_path / "dirty", "none", 1, cohort_git="abc123-dirty")
    with pytest.raises(UsageError, match="is of no commit"):
        of_suite(tmp_path / "dirty")
    left(tmp_path / "vendor", "none", 1, tree="/vendor")
    with pytest.raises(UsageError, match="userland under none was run with --tree /vendor"):
        of_suite(tmp_path / "vendor")
    left(tmp_path / "two", "none", 1)
    left(tmp_path / "two", "region", 1, memory_mb=1024)
    with pytest.raises(Failed, match="do not make one table: runs of different memory_mb"):
        of_suite(tmp_path / "two")


def test_the_look_for_leaks_is_no_case_of_the_suite(tmp_path: Path) -> None:
    left(tmp_path, "none", 1, [*NAMES, LEAKS], debug=True)
    (none,) = of_suite(tmp_path)
    assert none.launches == len(NAMES)
    assert none.command.endswith("--debug")


def test_figures_without_a_metric_are_left_out() -> None:
    suite = load_suite("userland")
    case = Case("a", "pass", figures={"s": Figure(1.5, "s"), "other": Figure(3)})
    outcome = Outcome("none", (case,))
    found = metrics_of(suite, outcome, outcome)
    assert (found["userland_s"], found["userland_failed"]) == (1.5, 0)
    assert "userland_other" not in found


def test_what_a_case_costs_is_a_metric_of_its_own() -> None:
    suite = load_suite("changes")
    figures = {"changes": Figure(3), "wait_us": Figure(7.5, "us"), "kills": Figure(2)}
    costs = {"round_us": 41.5, "whole_us": 49.0, "users_us": 1003.5}
    outcome = Outcome("none", (Case("frames", "pass", costs=costs, figures=figures),))
    found = metrics_of(suite, outcome, outcome)
    assert (found["changes_frames_round_us"], found["changes_frames_changes"]) == (41.5, 3)
    assert (found["changes_frames_wait_us"], found["changes_frames_users_us"]) == (7.5, 1003.5)
    assert found["changes_kills"] == 2


def test_cases_and_checks_are_counted_and_compared_with_the_first_policy() -> None:
    checks = (Check("1", "pass"), Check("2", "fail"))
    first = Outcome("none", (Case("a", "pass", checks=checks), Case("b", "skip")))
    checks = (Check("1", "pass"), Check("2", "pass"))
    other = Outcome("region", (Case("a", "pass", checks=checks), Case("b", "splat")))
    assert metrics_of(load_suite("fio"), other, first) == {
        **{"suite_pass": 1, "suite_fail": 0, "suite_skip": 0, "suite_timeout": 0},
        **{"suite_splat": 1, "suite_died": 0, "suite_differs": 2},
        **{"suite_checks_pass": 2, "suite_checks_fail": 0, "suite_checks_skip": 0},
    }


def test_the_first_policy_is_the_one_that_ran_first(tmp_path: Path) -> None:
    left(tmp_path, "pcpa", 3)
    left(tmp_path, "region", 1)
    region, pcpa = of_suite(tmp_path)
    assert (region.label, region.metrics["suite_differs"]) == ("region", 0)
    assert region.command == "cohort suite userland --policies region,pcpa --memory 2048"
    assert pcpa.metrics["suite_pass"] == len(NAMES) - 1


def test_runs_of_other_kernels_or_roots_make_no_table(tmp_path: Path) -> None:
    left(tmp_path, "none", 1)
    left(tmp_path, "region", 2, debug=True)
    with pytest.raises(Failed, match="their kernels or roots differ"):
        of_suite(tmp_path)


def test_what_an_older_command_left_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its policy has a directory of its own, which the newest command does not touch."""
    left(tmp_path, "cpb", 1, policies=["none", "cpb"], position=1)
    left(tmp_path, "gcma", 1, debug=True)
    left(tmp_path, "region", 3, policies=["none", "region"], position=1)
    left(tmp_path, "none", 2, policies=["none", "region"], position=0)
    records = of_suite(tmp_path)
    assert [record.label for record in records] == ["none", "region"]
    assert caplog.messages == [
        f"{tmp_path / name}: left out: of a command before `none,region`"
        for name in ("cpb", "gcma")
    ]
    assert records[0].command == "cohort suite userland --policies none,region --memory 2048"
    left(tmp_path, "pcpa", 4, policies=["none", "pcpa"], position=1)
    with pytest.raises(UsageError, match=f"{tmp_path}/none: of another command than none,pcpa"):
        of_suite(tmp_path)
    left(tmp_path, "vnode", 5, policies=["memcg", "vnode"], position=1)
    with pytest.raises(UsageError, match="no finished run of memcg is there"):
        of_suite(tmp_path)


def spoilt(where: Path, name: str, text: str) -> str:
    """What is said of a run of which a file has this text."""
    left(where, "none", 1)
    (where / "none" / name).write_text(text)
    with pytest.raises(UsageError) as error:
        of_suite(where)
    return str(error.value)


@pytest.mark.parametrize("text", ["{}", '{"suite": "user', "[]", '{"suite": 3}', ""])
def test_a_meta_that_does_not_tell_is_refused(tmp_path: Path, text: str) -> None:
    assert f"{tmp_path}/none/meta.json: not what a run leaves: " in spoilt(
        tmp_path, "meta.json", text
    )


GOOD = {"name": NAMES[0], "status": "pass"}


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"name": "a", "sta', "no case: line: "),
        ("{}", "no case: name: "),
        (json.dumps(GOOD | {"status": "odd"}), "no case: status: "),
        (json.dumps(GOOD | {"costs": [1]}), "no case: costs: "),
        (json.dumps(GOOD | {"figures": {"s": {"value": float("inf")}}}), "a number of install is"),
    ],
)
def test_a_line_that_is_no_case_is_refused(tmp_path: Path, line: str, what: str) -> None:
    said = spoilt(tmp_path, "cases.jsonl", f"{json.dumps(GOOD)}\n{line}\n")
    assert said.startswith(f"{tmp_path}/none/cases.jsonl:2: {what}")


def test_the_command_says_which_policy_is_compared_with(tmp_path: Path) -> None:
    left(tmp_path, "none", 2, position=0)
    left(tmp_path, "region", 1, position=1)
    assert [record.label for record in of_suite(tmp_path)] == ["none", "region"]
