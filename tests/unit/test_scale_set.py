"""Runs of `cohort scale` as records, and the tables that a page makes of them."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from cohort.errors import Failed, UsageError
from cohort.phone.workload import load_workload
from cohort.policy import load_policy
from cohort.results.figures import plain
from cohort.results.records import Record, read_set, write_set
from cohort.results.scale_set import chosen, of_scale
from cohort.results.sheet import Sheet
from cohort.run_check import check_run
from cohort.run_spec import RunSpec
from cohort.sets import again, collect
from cohort.sets.collect import run_directories
from cohort.vm.machine import Latency
from made_runs import END
from tests_support import Outcome, scale_lock, scale_step

VERSIONS = {
    **{"qemu": "QEMU 1", "gcc": "gcc 4", "kernel": "6.12.7"},
    **{"cohort_git": "abcd", "tree_id": "89ab"},
}


LOCK = {"lru": "&lruvec->lru_lock", "domains": "cohort_domains_lock"}


def made_run(root: Path, name: str, records: list[dict[str, Any]], **meta: Any) -> None:
    """A run directory of `cohort scale`, of policy `none` unless `meta` says another."""
    about: dict[str, Any] = {
        **{"policy": "none", "seed": 1, "workload": "scale", "launches": 12, "memory_mb": 2048},
        **{"cpus": 8, "accel": "deterministic", "versions": VERSIONS, "wall_s": 1.0},
        **{"started": name, "kernel_configs": ["base", "cohort"], "guest_id": "4567"},
        **dict.fromkeys(("kernel_id", "workload_digest", "policy_id"), "0123"),
        **meta,
    }
    path = root / name
    path.mkdir(parents=True)
    (path / "meta.json").write_text(json.dumps(about))
    (path / "records.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in [*records, END]))


def counted(
    root: Path,
    policy: str,
    ns: int,
    zone: int,
    seed: int = 1,
    meta: Mapping[str, Any] = MappingProxyType({}),
    **others: tuple[int, float],
) -> None:
    """The two runs of a policy: a fault of `ns` instructions that takes the zone's lock `zone`
    times in a thousand, and `others`, `lru` or `domains`, so often and for so many µs in all."""
    same = {"policy": policy, "policy_id": load_policy(policy).digest[:16], "seed": seed}
    same |= meta
    name = f"{policy}-{seed}"
    made_run(root, f"{name}-1", [scale_step(1000 * ns)], **same)
    watched = {"kernel_configs": ["base", "cohort", "lockstat"]}
    locks = [scale_lock("&pcp->lock", 1000, 400.0)]
    locks += [scale_lock("&zone->lock", zone, 22.0)] if zone else []
    locks += [scale_lock(LOCK[lock], *use) for lock, use in others.items()]
    made_run(root, f"{name}-2", [scale_step(2000 * ns), *locks], **same, **watched)


def records_of(root: Path) -> list[Record]:
    return of_scale(chosen(run_directories([root])))


@pytest.mark.parametrize("text", ["{}", '{"workload": "scale"}', '{"work', "[]"])
def test_a_run_that_does_not_say_what_it_is_is_refused(tmp_path: Path, text: str) -> None:
    counted(tmp_path, "none", 2000, 20)
    (tmp_path / "none-1-2" / "meta.json").write_text(text)
    with pytest.raises(UsageError, match="none-1-2/meta.json: not what a run leaves"):
        records_of(tmp_path)


def test_a_run_of_no_known_kernel_is_refused(tmp_path: Path) -> None:
    counted(tmp_path, "none", 2000, 20)
    made_run(tmp_path, "none-2", [scale_step(1)], kernel_configs=None)
    with pytest.raises(UsageError, match="none-2/meta.json: .* kernel_configs is None"):
        records_of(tmp_path)


def test_a_set_names_the_command_that_makes_its_runs_again(tmp_path: Path) -> None:
    another = {"launches": 3, "arch": "arm64", "page_size": 16384}
    counted(tmp_path, "none", 2000, 20, seed=2, meta=another)
    (record,) = records_of(tmp_path)
    assert record.command == "cohort scale none --launches 3 --arch arm64 --page-size 16k --seeds 2"


def test_runs_of_a_policy_that_is_not_the_repositorys_are_no_set(tmp_path: Path) -> None:
    counted(tmp_path, "none", 2000, 20, meta={"policy_id": "ffff"})
    with pytest.raises(UsageError, match=r"policies/none.toml says something else"):
        collect.of_scale([tmp_path])


def test_runs_as_the_verb_leaves_them_are_a_set(tmp_path: Path) -> None:
    """The second of each policy names its kernel, and runs of other workloads are not asked."""
    counted(tmp_path, "none", 2000, 20)
    for path in tmp_path.iterdir():
        load = load_workload("scale")
        spec = RunSpec(load_policy("none"), "scale", 12)
        meta = json.loads((path / "meta.json").read_text())
        if "lockstat" in meta["kernel_configs"]:
            meta["config"] = "base,x86_64,lab,cohort,lockstat"
        disk = load.storage
        cost = Latency(disk.read_us.value, disk.write_us.value, disk.mb_per_s.value)
        meta |= {"cpus": load.cpus, "storage": asdict(cost)}
        (path / "meta.json").write_text(json.dumps(meta))
        (path / "phone.conf").write_text(check_run(spec).conf)
    other = {"workload": "phone-2g", "cmdline": ["cohort=off"], "policy_id": "ffff"}
    made_run(tmp_path, "other", [], **other)
    (record,) = collect.of_scale([tmp_path])
    assert record.command == "cohort scale none"


def test_a_policy_is_a_record_of_two_runs_and_other_workloads_are_left_out(tmp_path: Path) -> None:
    counted(tmp_path, "none", 2000, 20)
    counted(tmp_path, "region", 2100, 50)
    made_run(tmp_path, "other", [], workload="phone-2g")
    none, region = records_of(tmp_path)
    assert (none.label, region.command) == ("none", "cohort scale none region")
    assert none.metrics["fault process 1 instructions"] == 2000
    assert region.metrics["fault process 1 zone taken"] == pytest.approx(0.05)
    assert none.metrics["fault process 1 zone under"] == pytest.approx(20.0)


def test_a_run_of_ones_own_workload_is_none_of_the_verbs(tmp_path: Path) -> None:
    """It lies in out/runs beside them, and its file may be anywhere, or gone."""
    counted(tmp_path, "none", 2000, 20)
    made_run(tmp_path, "mine", [], workload="my-phone")
    (record,) = records_of(tmp_path)
    assert record.label == "none"
    with pytest.raises(UsageError, match="no finished run of `cohort scale`"):
        of_scale(chosen(run_directories([tmp_path / "mine"])))


def test_the_tables_of_what_was_counted(tmp_path: Path) -> None:
    counted(tmp_path / "runs", "none", 2000, 20)
    counted(tmp_path / "runs", "region", 2100, 50)
    write_set(tmp_path / "scale.jsonl", records_of(tmp_path / "runs"))
    sheet = Sheet("page", tmp_path)
    assert plain(sheet.scale("scale", "instructions")).splitlines() == [
        "| operation | `none` | `region` |",
        "|---|--:|--:|",
        "| fault, alone | 2,000 | 2,100 (1.050) |",
    ]
    assert plain(sheet.scale("scale", "locks")).splitlines()[2:] == [
        "| fault, alone | zone | 0.020 / 20 | **0.050 / 17 (2.50 / 0.85)** |",
        "|  | pcp+magazine | 1.000 / 300 | 1.000 / 300 (1.00 / 1.00) |",
    ]
    assert "cohort scale none region" in plain(sheet.note("scale"))
    assert "commit" in [figure.what for figure in sheet.figures.all]
    with pytest.raises(Failed, match="page: table scale: looks is none of instructions, locks"):
        sheet.scale("scale", "looks")


def lock_rows(root: Path) -> list[str]:
    write_set(root.parent / "scale.jsonl", records_of(root))
    return plain(Sheet("page", root.parent).scale("scale", "locks")).splitlines()[2:]


def test_another_lock_has_a_row_where_a_limit_is_missed_and_not_rarely(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    counted(runs, "none", 2000, 20, lru=(30, 9.0))
    counted(runs, "region", 2000, 20, lru=(30, 12.0), domains=(2000, 400.0))
    counted(runs, "tuned", 2000, 20, lru=(30, 9.0), domains=(9, 2.0))
    assert lock_rows(runs)[1:] == [
        "|  | lru | 0.030 / 6 | **0.030 / 9 (1.00 / 1.50)** | 0.030 / 6 (1.00 / 1.00) |",
        "|  | domains | - | **2.000 / 200** | **0.009 / 1** |",
        "|  | pcp+magazine | 1.000 / 300 | 1.000 / 300 (1.00 / 1.00) | 1.000 / 300 (1.00 / 1.00) |",
    ]


@pytest.mark.parametrize("domains", [0, 9])
def test_it_has_none_where_the_limits_are_kept_or_it_is_rare(tmp_path: Path, domains: int) -> None:
    runs = tmp_path / "runs"
    counted(runs, "none", 2000, 20, lru=(30, 9.0))
    others = {"lru": (30, 9.3), **({"domains": (domains, 2.0)} if domains else {})}
    counted(runs, "region", 2000, 20, 1, {}, **others)
    assert [row.split(" | ")[1] for row in lock_rows(runs)] == ["zone", "pcp+magazine"]


def test_a_lock_that_the_first_never_takes_is_a_miss(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    counted(runs, "none", 2000, 0)
    counted(runs, "region", 2000, 50)
    assert lock_rows(runs)[0] == "| fault, alone | zone | - | **0.050 / 17** |"


def test_tables_are_medians_over_the_seeds(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for seed, zone in ((1, 20), (2, 40), (3, 30)):
        counted(runs, "none", 2000 + seed, zone, seed)
        counted(runs, "region", 2100, 0 if seed == 1 else 60, seed)
    records = records_of(runs)
    assert [(x.label, x.seed) for x in records] == [
        *(("none", 1), ("none", 2), ("none", 3)),
        *(("region", 1), ("region", 2), ("region", 3)),
    ]
    assert {x.command for x in records} == {"cohort scale none region --seeds 1,2,3"}
    assert (
        lock_rows(runs)[0] == "| fault, alone | zone | 0.030 / 19 | **0.060 / 16 (2.00 / 0.84)** |"
    )
    sheet = Sheet("page", tmp_path)
    row = plain(sheet.scale("scale", "instructions")).splitlines()[2]
    assert row == "| fault, alone | 2,002 | 2,100 (1.049) |"
    assert "seeds 1, 2, 3: median." in plain(sheet.note("scale"))


def test_a_seed_that_is_not_the_usual_one_is_in_the_command(tmp_path: Path) -> None:
    counted(tmp_path, "none", 2000, 20, seed=2)
    assert records_of(tmp_path)[0].command == "cohort scale none --seeds 2"
    (words,) = again.commands_of(records_of(tmp_path))
    assert words == ["scale", "none", "--seeds", "2"]


def test_policies_of_different_seeds_are_refused(tmp_path: Path) -> None:
    counted(tmp_path, "none", 2000, 20)
    counted(tmp_path, "none", 2000, 20, seed=2)
    counted(tmp_path, "region", 2000, 20)
    with pytest.raises(UsageError, match="none was run with seeds 1,2, region with 1"):
        records_of(tmp_path)


def test_a_run_with_turns_has_a_record_a_scheme(tmp_path: Path) -> None:
    steps = [
        scale_step(ns, scheme=scheme)
        for scheme, ns in (("none", 1000), ("region", 1250), ("none", 1000), ("region", 1000))
    ]
    made_run(tmp_path / "runs", "one", steps, workload="scale-free", accel="tcg")
    records = records_of(tmp_path / "runs")
    assert [x.label for x in records] == ["none", "region"]
    assert records[1].command == "cohort scale none --free-running"
    write_set(tmp_path / "free.jsonl", records)
    assert read_set(tmp_path / "free.jsonl") == records
    shown = plain(Sheet("page", tmp_path).scale("free", "speeds")).splitlines()
    assert shown[2] == "| fault, alone | 1,000,000,000 | **0.900 [0.800, 1.000]** |"
    made_run(tmp_path / "runs", "two", steps, workload="scale-free", accel="tcg")
    with pytest.raises(UsageError, match="2 runs with turns are there: one, two"):
        records_of(tmp_path / "runs")


def test_turns_of_several_seeds_have_one_median_and_all_of_the_range(tmp_path: Path) -> None:
    for seed, last in ((1, 1000), (2, 1250), (3, 800)):
        steps = [
            scale_step(ns, scheme=scheme)
            for scheme, ns in (("none", 1000), ("region", 1250), ("none", 1000), ("region", last))
        ]
        about = {"workload": "scale-free", "accel": "tcg", "seed": seed}
        made_run(tmp_path / "runs", str(seed), steps, **about)
    records = records_of(tmp_path / "runs")
    assert [(x.label, x.seed) for x in records][2:4] == [("none", 3), ("region", 1)]
    assert records[0].command == "cohort scale none --free-running --seeds 1,2,3"
    write_set(tmp_path / "free.jsonl", records)
    shown = plain(Sheet("page", tmp_path).scale("free", "speeds")).splitlines()
    assert shown[2] == "| fault, alone | 1,000,000,000 | **0.900 [0.800, 1.250]** |"


def test_half_of_a_measurement_is_refused(tmp_path: Path, own_out: Path) -> None:
    made_run(tmp_path / "half", "none-1", [scale_step(1000)])
    with pytest.raises(UsageError, match="none was run once"):
        records_of(tmp_path / "half")
    made_run(tmp_path / "other", "phone", [], workload="phone-2g")
    with pytest.raises(UsageError, match="no finished run of `cohort scale`"):
        records_of(tmp_path / "other")


def test_the_verb_wants_to_know_which_runs(cohort: Any, own_out: Path) -> None:
    done: Outcome = cohort("results", "add", "scale", "--scale", "--last")
    assert (done.code, "there is no last `cohort scale`" in done.stderr) == (2, True)
