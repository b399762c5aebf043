"""Metrics and series from records small enough to compute by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cohort.errors import CohortError
from cohort.paths import ROOT
from cohort.results import catalogue
from cohort.results.catalogue import BY_NAME, METRICS, Metric
from cohort.results.frames import cache_pages, in_small_pages, unusable_index
from cohort.results.metrics import compute_metrics
from cohort.results.series import compute_series

GOLDEN = ROOT / "tests" / "golden"

Record = dict[str, Any]

VM = {
    "nr_free_pages": (1000, 900, 800, 700),
    "nr_file_pages": (512, 512, 512, 256),
    "nr_anon_pages": (256, 256, 256, 256),
    "nr_cohort_free": (0, 256, 512, 256),
    "pgsteal_kswapd": (10, 10, 50, 110),
    "pgsteal_direct": (5, 5, 5, 25),
    "pgsteal_khugepaged": (0, 0, 0, 0),
    "pgsteal_anon": (0, 0, 0, 20),
    "pgsteal_file": (15, 15, 55, 115),
    "workingset_refault_anon": (0, 0, 0, 5),
    "workingset_refault_file": (1, 1, 1, 26),
    "workingset_nodes": (0, 9, 9, 9),
    "allocstall_dma32": (0, 0, 1, 2),
    "allocstall_normal": (3, 3, 3, 4),
    "pgmigrate_success": (7, 7, 7, 17),
    "pgmigrate_fail": (0, 0, 0, 99),
}


def hello(names: list[str] | None = None) -> Record:
    return {"r": "hello", "t": 0, "version": 1, "vm_names": list(VM) if names is None else names}


def sample(n: int, blocks: dict[int, int]) -> Record:
    """A sample whose free blocks lie half in one zone, half in the other."""
    half = [blocks.get(order, 0) for order in range(11)]
    zones = [["DMA32", *half], ["Normal", *half]]
    vm = [values[n - 1] for values in VM.values()]
    return {
        "r": "sample",
        "t": n * 10**9,
        "n": n,
        "buddy": zones,
        "vm": vm,
        "alive": 20 + n,
        "cached": n,
        "cpu": [],
    }


def launch(n: int, kind: str, ms: float) -> Record:
    return {"r": "launch", "t": n, "n": n, "app": "a", "kind": kind, "ns": ms * 1e6, "majflt": 0}


def buffer(n: int, pages: int, find_us: float, **more: Any) -> Record:
    record = {"r": "buffer", "t": n, "n": n, "app": "a", "bytes": pages * 4096, "ok": True}
    record |= {"ns": (find_us + 50) * 1000, "zero_ns": 50_000}
    return record | {"o8": 0, "o4": 0, "o0": 0, "other": 0} | more


def kill(n: int, by: str = "lmkd") -> Record:
    return {"r": "kill", "t": n * 10**9, "n": n, "app": "a", "pid": 9, "class": "cached", "by": by}


def phone_run() -> list[Record]:
    return [
        hello(),
        {"r": "fault", "t": 1, "when": "boot", "pages": 1000, "ns": 1_500_000},
        launch(1, "cold", 100),
        buffer(1, 256, 400, o8=1),
        sample(1, {0: 1}),
        launch(2, "cold", 200),
        kill(2),
        sample(2, {10: 1}),
        launch(3, "resume", 10),
        buffer(3, 256 + 32, 100, o8=1, o4=1, o0=16),
        buffer(3, 32, 300, o4=2),
        buffer(3, 1 << 20, 9e9, ok=False),
        kill(3, "oom"),
        sample(3, {0: 16, 4: 1}),
        launch(4, "resume", 20),
        sample(4, {0: 16, 4: 3}),
        {"r": "map", "t": 4, "n": 4, "cell_pages": 64, "base_pfn": 0, "cells": ".AF-"},
        {"r": "fault", "t": 5, "when": "end", "pages": 1000, "ns": 9_000_000},
        {"r": "note", "t": 5, "text": "of no matter"},
        {"r": "end", "t": 5, "ok": True, "launches": 4},
    ]


def test_pieces_of_two_mib_count_where_a_heap_gives_them() -> None:
    run = [
        hello(),
        launch(1, "cold", 100),
        buffer(1, 512, 400, o9=1),
        launch(2, "cold", 100),
        buffer(2, 1024 + 256, 400, o9=2, o4=16),
        sample(2, {0: 1}),
    ]
    metrics = compute_metrics(run)
    assert metrics["buffer_order9_share"] == 1024 / 1280
    assert metrics["buffer_order9_pieces"] == 2 / 18
    assert compute_series(run)["buffer_order9_mb"] == [2, 4]
    assert compute_metrics(phone_run())["buffer_order9_share"] is None


def test_what_the_area_drops_was_evicted() -> None:
    """Its refaults count, so it has to; no `pgsteal` has it."""
    run = phone_run()
    run[0]["vm_names"].append("cohort_pcpa_reclaimed")
    for record in run:
        if record["r"] == "sample":
            record["vm"].append(30 * record["n"])
    found = compute_metrics(run)
    assert (found["evicted"], found["refault_ratio"]) == (120 + 90, 30 / 210)
    assert found["direct_reclaim_pages"] == 20


def test_every_metric_of_a_small_run() -> None:
    metrics = compute_metrics(phone_run())
    expected = {
        # Launches 3 and 4: half, then a quarter of the free pages are single.
        **{f"ui_order{x}": (0.5 + 0.25) / 2 for x in range(1, 5)},
        **{f"ui_order{x}": 1.0 for x in range(5, 11)},
        # Of what this kernel hid, the orders are not known.
        **{f"ui_all_order{x}": None for x in range(1, 11)},
        "buffer_order8_share": 256 / 320,
        "buffer_order4_share": 48 / 320,
        "buffer_order0_share": 16 / 320,
        "buffer_n_alloc_mean": 20 / 2,
        "buffer_find_us_p50": 300.0,
        "buffer_find_us_p95": 390.0,
        "buffer_find_us_p99": 398.0,
        "buffer_find_us_max": 400.0,
        "buffer_zero_us_p50": 50.0,
        "buffer_fail": 1,
        "kills": 2,
        "cold_starts": 2,
        "resume_share": 0.5,
        "launch_ms_p50": 60.0,
        "launch_ms_p95": 185.0,
        "launch_ms_last": 20.0,
        "launch_major_faults": 0,
        "evicted": 120,
        "refaults": 30,
        "refault_ratio": 0.25,
        "refaults_anon": 5,
        "refaults_file": 25,
        "direct_reclaim_pages": 20,
        "direct_reclaim_share": 20 / 120,
        "allocstall": 3,
        "reclaim_pages_kswapd_mean": None,
        "reclaim_pages_direct_mean": 20 / 3,
        "major_faults": 0,
        "compact_migrated": 10,
        "compact_scanned": 0,
        "parked_mb_mean": 1.0,
        "parked_mb_max": 2.0,
        "page_fault_us": 1.5,
        "ui_order4_slope_per_kill": None,
        "ui_order4_after_kill": None,
        "ui_all_order4_slope_per_kill": None,
        "ui_all_order4_after_kill": None,
        **{metric.name: None for metric in METRICS if metric.special},
        "buffer_order8_pieces": 1 / 20,
        "buffer_order4_pieces": 3 / 20,
        "buffer_order0_pieces": 16 / 20,
        "parked_mb_p80": 1.4,
        "anon_mb_mean": 1.0,
        "file_mb_mean": 1.5,
    }
    assert metrics == pytest.approx(expected)
    assert list(metrics) == [metric.name for metric in METRICS]


def test_the_swap_cache_is_no_page_cache() -> None:
    vm = pd.DataFrame({"nr_file_pages": [512, 768], "nr_swapcached": [12, 500]})
    assert cache_pages(vm).tolist() == [500, 268]
    assert cache_pages(vm[["nr_file_pages"]]).tolist() == [512, 768]


def test_sizes_of_reclaim_and_orders_of_allocations() -> None:
    none = [0] * 16
    counts = dict.fromkeys(("lru_kswapd", "lru_other", "slab_kswapd", "slab_other"), none)
    counts["lru_kswapd"] = [7, 1, 0, 0, 0, 0, 2, *[0] * 9]  # 7 freed nothing, 1 a page, 2 some 32
    counts["slab_other"] = [0, 1, *[0] * 14]
    counts["alloc_orders"] = [90, 0, 0, 10, *[0] * 7]
    sizes = [{"r": "reclaim", "kind": kind, "counts": x} for kind, x in counts.items()]
    metrics = compute_metrics([*phone_run(), *sizes])
    assert (metrics["alloc_share_order0"], metrics["alloc_share_order3"]) == (0.9, 0.1)
    assert (metrics["reclaim_share_order0"], metrics["reclaim_share_order5"]) == (0.5, 0.5)
    assert metrics["reclaim_share_over32"] == 0.5


def test_a_kernel_with_a_lower_maximum_order_has_no_free_block_above_it() -> None:
    counts = dict.fromkeys(("lru_kswapd", "lru_other", "slab_kswapd", "slab_other"), [0] * 16)
    counts["alloc_orders"] = [3, 1, *[0] * 8]
    sizes = [{"r": "reclaim", "kind": kind, "counts": x} for kind, x in counts.items()]
    blocks = {"buddy": [["DMA32", *[0] * 9, 1]]}
    samples = [sample(n, {}) | blocks for n in (1, 2)]
    metrics = compute_metrics([hello(), launch(1, "cold", 1), *samples, *sizes])
    assert (metrics["ui_order9"], metrics["ui_order10"]) == (0, 1)
    assert (metrics["alloc_share_order1"], metrics["alloc_share_order10"]) == (0.25, 0)


def test_memory_and_time_by_use() -> None:
    names = ["nr_anon_pages", "nr_free_pages", "nr_zspages"]
    ticks = [[1, 0, 2, 9, 9, 0, 0, 0], [101, 50, 202, 99, 99, 25, 25, 7]]
    both = [
        sample(n, {0: 1}) | {"vm": [512, 256, 256], "cpu": cpu}
        for n, cpu in zip((1, 2), ticks, strict=True)
    ]
    functions = {"clear_page_rep": 20, "migrate_pages.isra.0": 10, "default_idle": 99, "ext4_x": 55}
    functions |= {"cohort_buffer_done": 9, "__cohort_x.part.0": 5, "compact_cohort_x": 1}
    profile = [{"r": "profile", "function": x, "ticks": n} for x, n in functions.items()]
    metrics = compute_metrics(
        [hello(names) | {"pages": 2048}, launch(1, "cold", 1), *both, *profile]
    )
    expected: dict[str, float] = {"anon_mb_mean": 2, "swapped_mb_mean": 1}
    expected |= {"other_mb_mean": 8 - 1 - 2 - 1}
    expected |= {"cpu_user_s": 1.5, "cpu_system_s": 2.5, "cpu_busy_s": 4, "cpu_system_share": 0.625}
    expected |= {"profile_zero_pct": 20, "profile_compact_pct": 11, "profile_ticks": 100}
    expected |= {"profile_cohort_pct": 14, "profile_buffer_pct": 0}
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)


def test_records_that_a_guest_wrote(tmp_path: Path) -> None:
    lines = (GOLDEN / "guest-records.jsonl").read_text(encoding="utf-8").splitlines()
    metrics = compute_metrics(map(json.loads, lines))
    expected = json.loads((GOLDEN / "guest-metrics.json").read_text(encoding="utf-8"))
    new = tmp_path / "guest-metrics.json"
    new.write_text(f"{json.dumps(metrics, indent=1)}\n", encoding="utf-8")
    assert metrics == pytest.approx(expected), f"accept: mv {new} {GOLDEN / new.name}"


def test_no_records_no_numbers() -> None:
    metrics = compute_metrics([])
    counts = {"kills", "cold_starts", "buffer_fail"}
    assert {name for name, value in metrics.items() if value is not None} == counts
    assert all(metrics[name] == 0 for name in counts)


def test_a_kernel_without_counters_tells_no_composition_and_no_finding_time() -> None:
    unknown = {"zero_ns": None, "o8": None, "o4": None, "o0": None, "other": None}
    metrics = compute_metrics([launch(1, "cold", 1), buffer(1, 256, 10, **unknown)])
    names = [name for name in BY_NAME if name.startswith("buffer_") and name != "buffer_fail"]
    assert {metrics[name] for name in names} == {None}


def test_a_kernel_without_cohort_parks_nothing() -> None:
    old = sample(1, {0: 1}) | {"vm": [5]}
    metrics = compute_metrics([hello(["nr_free_pages"]), launch(1, "cold", 1), old, old])
    assert (metrics["parked_mb_mean"], metrics["evicted"], metrics["refault_ratio"]) == (0, 0, None)


def owned_run() -> list[Record]:
    """A kernel whose owned blocks are free memory, and that hides what is free in the area.

    In the second half 16 single pages have no owner; 8 single pages and an order-4 block have one.
    """
    names = ["nr_free_pages", "nr_cohort_owned", "nr_cohort_free"]
    owned = {"vm": [40, 24, 8], "owned": [8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]}
    empty = {"vm": [16, 0, 0], "owned": [0] * 11}
    return [
        *(hello(names), sample(1, {4: 1}) | empty),
        *(launch(1, "cold", 1), launch(2, "cold", 1), sample(2, {0: 8}) | owned),
    ]


def test_free_memory_with_and_without_what_has_an_owner() -> None:
    metrics = compute_metrics(owned_run())
    assert [metrics[f"ui_order{x}"] for x in (1, 4, 5)] == [1, 1, 1]
    # 24 of 40 pages are single ones, the others lie in one block of order 4.
    expected = [24 / 40, 24 / 40, 1]
    assert [metrics[f"ui_all_order{x}"] for x in (1, 4, 5)] == pytest.approx(expected)
    pages = 24 + 8
    assert metrics["parked_mb_max"] == pages * 4096 / 2**20
    series = compute_series(owned_run())
    assert series["ui_order4"] == [0, 1]
    assert series["ui_all_order4"] == [0, 0.6]
    assert series["free_mb"] == [0.0625, (40 + 8) * 4096 / 2**20]
    assert series["parked_mb"] == [0, 0.125]


def test_where_nothing_is_parked_both_indices_are_one() -> None:
    nothing = {"vm": [40, 0]}
    with_file = {"owned": [0] * 11}
    for more in (nothing, nothing | with_file):
        late = sample(2, {0: 8, 4: 1}) | more
        metrics = compute_metrics([hello(["nr_free_pages", "nr_cohort_free"]), late])
        for order in range(1, 11):
            assert metrics[f"ui_all_order{order}"] == metrics[f"ui_order{order}"] is not None


def test_an_exit_that_leaves_chunks_in_owned_blocks() -> None:
    after = moment("after", {0: 8}) | {"owned": [0, 0, 0, 0, 3]}
    metrics = compute_metrics([hello(), moment("before", {}), after])
    assert metrics["ui_order4"] == 1
    assert metrics["ui_all_order4"] == pytest.approx(16 / 64)
    assert metrics["freed_pages_order4"] == 0, "freed pages are those without an owner"


def moment(when: str, blocks: dict[int, int]) -> Record:
    return sample(1, blocks) | {"r": "moment", "when": when}


def exit_run() -> list[Record]:
    """Two programs; when the first exits, 16 single pages, 8 pairs and an order-4 block appear,
    and four pairs that were free before have become part of it."""
    touches = {"r": "program", "pages": 100, "p50_ns": 1500, "p99_ns": 2500, "clock_ns": 500}
    return [
        hello(),
        launch(1, "cold", 1),
        sample(1, {0: 4}),
        moment("before", {0: 2, 1: 4}),
        touches | {"i": 0, "ns": 200_000},
        touches | {"i": 1, "ns": 400_000},
        {"r": "own", "i": 0, "blocks": [16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]},
        {"r": "own", "i": 1, "blocks": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]},
        moment("after", {0: 10, 1: 4, 4: 1}),
    ]


def test_what_an_exit_leaves() -> None:
    metrics = compute_metrics(exit_run())
    # Each block stands in two zones: 2 * (10 - 2) single pages and 2 * 16 in order 4.
    assert [metrics[f"freed_pages_order{x}"] for x in (0, 1, 4, 10)] == [16, 0, 32, 0]
    assert metrics["freed_ui_order1"] == metrics["freed_ui_order4"] == pytest.approx(16 / 48)
    assert metrics["freed_ui_order5"] == 1
    assert metrics["own_ui_order4"] == 0.5
    assert metrics["ui_order4"] == pytest.approx(18 / 34), "the state after the exit"
    assert metrics["page_fault_us"] == pytest.approx((600_000 - 200 * 500) / 200 / 1000)
    assert (metrics["touch_us_p50"], metrics["touch_us_p99"]) == (1, 2)


def test_freed_pages_may_use_up_small_blocks() -> None:
    records = [hello(), moment("before", {0: 8}), moment("after", {4: 1})]
    metrics = compute_metrics(records)
    assert metrics["freed_pages_order0"] == -16
    assert metrics["freed_ui_order4"] == pytest.approx(1 - 32 / 16)


def test_a_chain_of_kills() -> None:
    def killed(n: int, free: dict[int, int]) -> Record:
        return kill(n) | {"t": n * 10**9 + 1, "buddy": sample(1, free)["buddy"]}

    chain = [{0: 16, 4: 3}, {0: 16, 4: 1}, {0: 16, 4: 0}]
    records = [hello(), sample(1, {4: 1})]
    records += [killed(n, free) for n, free in enumerate(chain, start=1)]
    metrics = compute_metrics([*records, kill(4, "oom") | {"t": 9 * 10**9}])
    assert metrics["ui_order4_after_kill"] == pytest.approx((0.25 + 0.5 + 1) / 3)
    assert metrics["ui_order4_slope_per_kill"] == pytest.approx(0.325)
    assert metrics["ui_all_order4_after_kill"] is None, "it is not known what was parked"
    assert compute_metrics(records[:-1])["ui_order4_slope_per_kill"] is None, "too short"
    series = compute_series([*records, kill(4, "oom") | {"t": 9 * 10**9}])
    assert series["kill_ui_order4"] == [0.25, 0.5, 1, None]
    owned = {"owned": [0] * 4 + [1] + [0] * 6}
    records = [x | owned if x["r"] == "kill" else x for x in records]
    assert compute_series(records)["kill_ui_all_order4"] == [0.2222, 0.4, 0.6667]


def test_faults_on_several_cpus() -> None:
    def rate(kind: str, cpus: int, ns: int) -> Record:
        more = {"pages": 1000 * cpus, "ns": ns, "free_ns": 100_000 * cpus}
        return {"r": "throughput", "kind": kind, "cpus": cpus} | more

    metrics = compute_metrics([rate("process", 1, 10**9), rate("process", 4, 10**9)])
    assert [metrics[f"fault_per_s_{x}"] for x in (1, 2, 4)] == [1000, None, 4000]
    assert metrics["thread_fault_per_s_1"] is None
    assert metrics["page_free_us"] == pytest.approx(0.1)


def test_nothing_free_is_wholly_unusable() -> None:
    blocks = np.zeros((2, 11))
    blocks[1, 10] = 1
    assert unusable_index(blocks, 4).tolist() == [1.0, 0.0]


def test_series_of_a_small_run() -> None:
    series = compute_series(phone_run())
    assert series["n"] == [1, 2, 3, 4]
    assert series["t_s"] == [1, 2, 3, 4]
    assert series["kills"] == [0, 1, 2, 2]
    assert series["ui_order4"] == [1, 0, 0.5, 0.25]
    assert series["free_mb"] == [3.9062, 4.5156, 5.125, 3.7344]
    assert series["parked_mb"] == [0, 1, 2, 1]
    assert series["file_mb"] == [2, 2, 2, 1]
    assert series["buffer_find_us"] == [400, 100, 300]
    assert series["buffer_order4_mb"] == [0, 0.0625, 0.125]
    assert series["kill_by"] == ["lmkd", "oom"]
    assert series["map_cells"] == [".AF-"]


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"r": "launch", "n": 1}, r"record 2 \('launch'\): lacks 'app'"),
        ({"t": 1}, r"record 2 \(None\): lacks 'r'"),
        (sample(1, {0: 1}) | {"buddy": [["DMA", *range(12)]]}, "have 1 to 11 orders"),
        (sample(1, {0: 1}) | {"buddy": [["DMA", *"abcdefghijk"]]}, "could not convert"),
        (sample(1, {0: 1}) | {"owned": [1] * 12}, "owned does not have 1 to 11 orders"),
        (sample(1, {0: 1}) | {"vm": [1]}, f"1 vmstat values for {len(VM)} names"),
    ],
)
def test_a_malformed_record_is_named(record: Record, what: str) -> None:
    with pytest.raises(CohortError, match=what):
        compute_metrics([hello(), record])


def test_the_reference_defines_every_metric_with_unit_and_direction() -> None:
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    documented = {row[1].strip("`"): (row[2], row[3]) for row in rows if len(row) > 4}
    for metric in METRICS:
        assert documented.get(metric.name) == (metric.unit or "-", metric.better), metric.name


CATALOGUE = {
    "title": "G",
    "special": True,
    "metrics": [
        {"name": "a{}", "each": [1, 2], "title": "A {}", "better": "lower", "shown": [2]},
        {"name": "b", "title": "B", "better": "higher", "unit": "s", "special": False},
    ],
}


def test_a_catalogue_has_families_and_what_a_group_has_in_common() -> None:
    assert catalogue.read({"group": [CATALOGUE]}) == (
        Metric("a1", "A 1", "", "lower", "G", 0, False, True),
        Metric("a2", "A 2", "", "lower", "G", 0, True, True),
        Metric("b", "B", "s", "higher", "G", 0, True, False),
    )
    with pytest.raises(ValueError, match="two metrics are called a1"):
        catalogue.read({"group": [CATALOGUE, CATALOGUE]})
    with pytest.raises(ValueError, match="better"):
        catalogue.read({"group": [{"title": "G", "metrics": [{"name": "a", "title": "A"}]}]})
    with pytest.raises(ValueError, match="extra"):
        catalogue.read({"group": [CATALOGUE | {"show": True}]})


def test_the_reference_lists_every_series() -> None:
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    chapter = text[text.index("## Series") :]
    for name in compute_series([]):
        if not name.startswith(("ui_order", "ui_all_order")):
            assert f"`{name}`" in chapter, name


def larger(record: Record, shift: int = 2) -> Record:
    """The same memory as a machine with larger pages tells it: no block may be below `shift`."""
    changed = dict(record)
    if "buddy" in record:
        changed["buddy"] = [[zone[0], *zone[1 + shift :], 0] for zone in record["buddy"]]
    return changed


def test_orders_are_of_bytes_whatever_a_page_is() -> None:
    """1 MiB is order 6 of a machine with pages of 16 KiB, and order 8 of every table."""
    small = [hello(), *(sample(n, {4: 8, 8: 2, 10: n}) for n in (1, 2, 3, 4))]
    large = [{**small[0], "page_size": 16384}, *(larger(x) for x in small[1:])]
    one, other = compute_metrics(small), compute_metrics(large)
    for order in range(1, 11):
        assert other[f"ui_order{order}"] == pytest.approx(one[f"ui_order{order}"])
    assert other["parked_mb_max"] == pytest.approx(4 * float(one["parked_mb_max"] or 0))


def test_blocks_above_the_largest_order_count_as_several() -> None:
    """Order 11 of pages of 16 KiB is 32 MiB: eight blocks of 4 MiB."""
    record = {"r": "sample", "buddy": [["DMA", *[0] * 11, 1]], "owned": [3, *[0] * 11]}
    found = in_small_pages(record, 16384)
    assert found["buddy"] == [["DMA", *[0] * 10, 8]]
    assert found["owned"] == [0, 0, 3, *[0] * 8]
    counted = {"r": "reclaim", "kind": "alloc_orders", "counts": [5, *[0] * 10, 2]}
    assert in_small_pages(counted, 16384)["counts"] == [0, 0, 5, *[0] * 7, 2]


def test_places_and_amounts_are_of_pages_of_4_kib() -> None:
    left = {"r": "left", "n": 1, "base_pfn": 64, "pages": 2048, "runs": [[3, 2]]}
    assert in_small_pages(left, 16384) == {**left, "pages": 8192, "runs": [[12, 8]]}
    assert in_small_pages({"r": "map", "cell_pages": 16}, 16384)["cell_pages"] == 64
    assert in_small_pages({"r": "cost", "file_after": 5}, 16384)["file_after"] == 20
    fault = {"r": "fault", "pages": 7}
    assert in_small_pages(fault, 16384) == fault
