"""Costs of operations: what is read out of /proc/lock_stat, and what the tables say."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cohort import paths, runs
from cohort.knobs import COHORT
from cohort.phone.workload import load_workload
from cohort.results import scale
from cohort.results.rundir import RunDir
from cohort.results.scale import (
    HAND,
    Place,
    count,
    lock_label,
    lock_line,
    middle,
    middle_rates,
    rates,
    rows,
)
from cohort.results.spread import Spread
from cohort.run_spec import RunSpec
from cohort.units import LARGE_PAGE
from cohort.verbs.scale import show_counted, show_rates
from made_runs import END
from tests_support import Outcome, scale_lock, scale_step

GOLDEN = paths.ROOT / "tests" / "golden" / "scale.txt"
MAGAZINE = "&per_cpu_ptr(cz->magazine, cpu)->lock"
ALONE = Place("fault", "process", 1)


def _counted(policy: str, zone: int, zone_us: float, magazine: int = 0) -> scale.Counted:
    locks = [scale_lock("&zone->lock", zone, zone_us)] if zone else []
    locks += [scale_lock("&pcp->lock", 1000, 400.0)]
    locks += [scale_lock(MAGAZINE, magazine, 0.2 * magazine)] if magazine else []
    locks += [scale_lock("&rq->__lock", 5, 1.0)]
    watched = [scale_step(4_000_000), *locks]
    return count(policy, [{"r": "note"}, scale_step(2_000_000)], watched)


def test_lines_that_are_of_no_class_are_left_out() -> None:
    line = lock_line(scale_lock("&mm->mmap_lock-R", 1030, 77.59, 0.05)["line"])
    assert line == scale.LockLine("&mm->mmap_lock-R", 1030, 77_590.0, 50.0)
    heading = "class name    con-bounces    contentions   waittime-min"
    place = "&zone->lock          7          [<ffffffff8123>] rmqueue_bulk+0x44/0x6f0"
    assert lock_line(heading) is None
    assert lock_line(place) is None
    assert lock_line("lock_stat version 0.4") is None


def test_labels_do_not_depend_on_subclasses() -> None:
    assert lock_label("ptlock_ptr(ptdesc)#2/1") == "page table"
    assert lock_label("cohort_domains_lock") == "domains"
    assert lock_label(MAGAZINE) == "magazine"
    assert lock_label("&rq->__lock") is None


def test_costs_are_by_operation_and_without_lockdeps_share() -> None:
    none = _counted("none", 20, 22.0)
    assert none.instructions == {ALONE: 2000.0}
    assert none.probe.floor == pytest.approx(100)
    assert none.probe.each == pytest.approx(2_000_000 / 1025)
    zone = none.locks[ALONE]["zone"]
    assert [zone.acquired, zone.held] == pytest.approx([0.02, 20.0])
    assert none.locks[ALONE][HAND] == none.locks[ALONE]["pcp"]
    assert set(none.locks[ALONE]) == {"zone", "pcp", HAND}


def test_limits_are_on_each_lock_and_on_what_is_at_hand_together() -> None:
    region = _counted("region", 10, 12.1, magazine=500)
    found = {row.lock: row for row in rows([_counted("none", 20, 22.0), region])}
    assert found["zone"].ratios(1) == pytest.approx((0.5, 0.555))
    assert (found["zone"].met(1), found["pcp"].met(1)) == (True, None)
    assert found[HAND].ratios(1) == pytest.approx((1.5, 7 / 6))
    assert found[HAND].met(1) is False
    assert (found["magazine"].ratios(1), found["magazine"].met(1)) == (None, None)


def test_a_lock_that_the_first_never_takes_has_no_room() -> None:
    none, region = _counted("none", 0, 22.0), _counted("region", 10, 12.1)
    (row,) = (row for row in rows([none, region]) if row.lock == "zone")
    assert (row.ratios(1), row.met(1), row.met(0)) == (None, False, None)
    rare = scale.Row(ALONE, "zone", (None, scale.Use(0.0004, 7.0)))
    assert rare.met(1) is True


def test_limits_are_on_what_tables_show() -> None:
    uses = (scale.Use(1.0, 100.0), scale.Use(1.004, 110.4), scale.Use(1.006, 100.0))
    row = scale.Row(ALONE, "zone", uses)
    assert (row.met(1), row.met(2)) == (True, False)


def test_seeds_are_medians_and_a_lock_that_one_does_not_take_is_taken_0_times() -> None:
    seeds = [_counted("none", zone, 22.0) for zone in (20, 0, 40)]
    found = middle([*seeds[:2], _counted("none", 40, 32.0, magazine=500)])
    assert found.locks[ALONE]["zone"].acquired == pytest.approx(0.02)
    assert found.locks[ALONE]["zone"].held == pytest.approx(20.0)
    assert set(found.locks[ALONE]) == {"zone", "pcp", HAND}
    assert found.instructions == {ALONE: 2000.0}
    assert middle(seeds[:1]) == seeds[0]


def test_rates_of_seeds_are_medians_of_medians_and_all_of_the_range() -> None:
    one, other = (
        scale.Rate(ALONE, "region", Spread(3, x, x, x), Spread(3, y, *z))
        for x, y, z in (
            (10.0, 0.9, (0.8, 1.0)),
            (20.0, 1.0, (0.9, 1.2)),
        )
    )
    (found,) = middle_rates([[one], [other]])
    assert found.rate == Spread(6, 15.0, 10.0, 20.0)
    assert found.ratio == Spread(6, 0.95, 0.8, 1.2)
    assert middle_rates([[one]]) == [one]


def _turns() -> list[dict[str, Any]]:
    records = []
    for none, region in ((1.0, 1.1), (2.0, 2.0), (1.0, 1.0)):
        for scheme, factor in (("none", none), ("region", region)):
            for _ in range(2):
                records.append(scale_step(int(500_000 * factor), scheme=scheme))
                records.append(scale_step(int(500_000 * factor), scheme=scheme, op="free"))
    return records


def test_a_loop_does_and_undoes_and_turns_are_pairs() -> None:
    none, region = rates(_turns())
    assert none.rate.median == pytest.approx(1e6)
    assert (none.ratio.low, none.ratio.high, none.met) == (1.0, 1.0, True)
    assert (region.ratio.n, region.ratio.median) == (3, 1.0)
    assert region.ratio.low == pytest.approx(1 / 1.1)


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    counted = [_counted("none", 20, 22.0), _counted("region", 30, 12.1, magazine=500)]
    show_counted(counted, as_json=False)
    show_rates(rates(_turns()), as_json=False)
    assert capsys.readouterr().out == GOLDEN.read_text()
    show_counted(counted, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["locks"][0]["by_policy"]["region"]["acquired"] == pytest.approx(0.03)
    assert told["locks"][0]["met"] == {"region": False}
    assert told["seeds"] == [1]
    show_rates(rates(_turns()), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert [x["met"] for x in told["operations"]] == [True, True]
    assert told["seeds"] == [1]


def test_medians_are_told_with_their_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    show_counted([_counted("none", 20, 22.0)], False, (1, 2))
    assert "medians over the seeds 1, 2." in capsys.readouterr().out
    show_rates(rates(_turns()), False, (1, 2))
    assert "Medians over the seeds 1, 2 of" in capsys.readouterr().out


def made_run(path: Path, records: list[dict[str, Any]]) -> RunDir:
    path.mkdir(parents=True)
    (path / "records.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in [*records, END]))
    return RunDir(path)


def test_each_policy_is_run_with_each_seed(
    cohort: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    own_out: Path,
) -> None:
    def execute(specs: list[RunSpec], *_: object) -> list[RunDir]:
        found = []
        for n, spec in enumerate(specs):
            zone = spec.seed * (10 if spec.policy.name == "none" else 20)
            watched = "lockstat" in spec.kernel_spec.configs
            locks = [scale_lock("&zone->lock", zone, 22.0)] if watched else []
            ns = 1000 * (2000 + spec.seed)
            found.append(made_run(tmp_path / str(n), [scale_step(ns), *locks]))
        return found

    monkeypatch.setattr(runs, "execute_matrix", execute)
    done = cohort("scale", "none", "region", "--seeds", "1,2", "--seed", "6", "--json")
    told = json.loads(done.stdout)
    assert told["seeds"] == [1, 2, 6]
    assert told["instructions"][0]["by_policy"] == {"none": 2002.0, "region": 2002.0}
    uses = told["locks"][0]["by_policy"]
    assert uses["none"]["acquired"] == pytest.approx(0.02)
    assert uses["region"]["acquired"] == pytest.approx(0.04)


def test_seeds_in_turns_are_run_one_after_the_other(
    cohort: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    own_out: Path,
) -> None:
    asked: list[object] = []

    def execute(specs: list[RunSpec], jobs: int | None, *_: object) -> list[RunDir]:
        asked.extend([jobs, *(spec.seed for spec in specs)])
        return [made_run(tmp_path / str(spec.seed), _turns()) for spec in specs]

    monkeypatch.setattr(runs, "execute_matrix", execute)
    done = cohort("scale", "--free-running", "--seeds", "1,2", "--json")
    assert (done.code, asked) == (0, [1, 1, 2])
    told = json.loads(done.stdout)
    assert told["seeds"] == [1, 2]
    assert [x["ratio"]["n"] for x in told["operations"]] == [6, 6]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('cmdline = ["cohort=region"]', "cohort=region"),
        ('cmdline = ["cohort.region_order=6", "cohort=rightsize,cpb"]', "cohort=rightsize,cpb"),
        (f'[sysfs]\n"{COHORT}/cpb/enabled" = "Y"', f"{COHORT}/cpb/enabled"),
    ],
)
def test_a_policy_with_a_scheme_on_has_no_turns_without_it(
    text: str,
    said: str,
    cohort: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    own_out: Path,
) -> None:
    """The guest switches off after a turn alone, and has no two rivals on at once."""
    monkeypatch.setattr(runs, "execute_matrix", lambda *_: pytest.fail("a run is made"))
    policy = tmp_path / "mine.toml"
    policy.write_text(f'title = "t"\n{text}\n')
    done = cohort("scale", policy, "--free-running")
    assert done.code == 2
    assert f"policy mine has one on from the start: {said}\n" in done.stderr
    assert f"hint: cohort scale none {policy}, or --free-running with" in done.stderr


def test_a_kernel_without_schemes_has_no_turns(
    cohort: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, own_out: Path
) -> None:
    monkeypatch.setattr(runs, "execute_matrix", lambda *_: pytest.fail("a run is made"))
    done = cohort("scale", "none-stock", "--free-running")
    assert done.code == 2 and "the kernel of policy none-stock has none" in done.stderr


def test_a_policy_with_its_schemes_off_has_turns(
    cohort: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_out: Path
) -> None:
    def execute(specs: list[RunSpec], *_: object) -> list[RunDir]:
        return [made_run(tmp_path / "run", _turns()) for _ in specs]

    monkeypatch.setattr(runs, "execute_matrix", execute)
    policy = tmp_path / "mine.toml"
    words = '["cohort=off", "cohort.region_order=6"]'
    policy.write_text(f'title = "t"\ncmdline = {words}\n[sysfs]\n"{COHORT}/region/enabled" = "N"\n')
    done = cohort("scale", policy, "--free-running")
    assert done.code == 0, done.stderr


def test_the_kernel_with_lock_statistics_is_for_the_same_machine(
    cohort: Callable[..., Outcome], asked: list[RunSpec]
) -> None:
    assert cohort("scale", "none", "--arch", "arm64", "--page-size", "16k").code == 1
    plain, watched = (spec.kernel_spec for spec in asked)
    assert (plain.page_size, watched.page_size) == (LARGE_PAGE, LARGE_PAGE)
    assert set(watched.configs) - set(plain.configs) == {"lockstat"}
    done = cohort("scale", "none", "--page-size", "16k")
    assert (done.code, "--arch arm64 --page-size 16k" in done.stderr) == (2, True)


def test_both_workloads_fit_their_machine() -> None:
    counted, free = load_workload("scale"), load_workload("scale-free")
    assert counted.scale is not None
    assert free.scale is not None
    assert (counted.scale.turns.value, free.scale.turns.value > 0) == (0, True)
    assert counted.cpus == free.cpus == counted.scale.tasks.value
