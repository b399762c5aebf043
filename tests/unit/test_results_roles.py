"""Metrics by role, from records small enough to compute by hand."""

from typing import Any

import pytest

from cohort.results.metrics import compute_metrics

Record = dict[str, Any]


def launch(n: int, app: str, ms: float, kind: str = "resume") -> Record:
    return {"r": "launch", "n": n, "app": app, "kind": kind, "ns": int(ms * 1e6)}


def kill(n: int, app: str, by: str) -> Record:
    return {"r": "kill", "t": n, "n": n, "app": app, "class": "cached", "by": by}


def node(n: int, index: int, singles: int, blocks: int) -> Record:
    """Free pages in single ones and in blocks of order 4."""
    return {
        "r": "node", "n": n, "node": index, "blocks": [singles, 0, 0, 0, blocks, *[0] * 6]
    }  # fmt: skip


def role(app: str, name: str, nodes: int) -> Record:
    return {"r": "role", "app": app, "role": name, "nodes": nodes}


def records(nodes: int) -> list[Record]:
    return [
        role("phone", "trusted", nodes),
        role("game", "untrusted", nodes and 2),
        launch(1, "phone", 900, "cold"),
        launch(2, "phone", 100),
        {"r": "work", "n": 2, "bytes": 0, "ns": 0},
        launch(3, "phone", 200),
        kill(3, "phone", "oom"),
        kill(3, "game", "lmkd"),
        kill(4, "phone", "lmkd"),
        launch(4, "game", 5000),
        node(4, 0, 16, 3),
        node(4, 1, 64, 0),
        {"r": "work", "n": 4, "bytes": 10 << 20, "ns": 2 * 10**9},
    ]


def test_kills_launches_and_work_by_role() -> None:
    found = compute_metrics(records(1))
    assert found["kills"] == 3
    assert (found["kills_trusted"], found["ooms_trusted"], found["kills_untrusted"]) == (2, 1, 1)
    # the very first launch counts in neither, and the pressure shows first in sample 4
    assert found["launch_ms_p95_trusted_unloaded"] == pytest.approx(195)
    assert found["launch_ms_p95_trusted"] is None
    assert found["untrusted_work_per_s"] == pytest.approx(5)
    assert found["untrusted_work_mb"] == pytest.approx(10)


def test_apps_of_other_roles_have_no_trusted_node() -> None:
    """Any names of roles will do, and processes alone may be trusted."""
    others = [role("phone", "work", 1), role("game", "play", 2), *records(1)[2:]]
    found = compute_metrics(others)
    assert found["kills"] == 3
    assert found["kills_trusted"] is None or found["kills_trusted"] == 0


def test_launches_of_the_apps_that_the_paper_names() -> None:
    under = [launch(n, "phone", ms) for n, ms in ((4, 100), (5, 200), (6, 600))]
    found = compute_metrics([role("sms", "trusted", 1), *records(1), *under, launch(6, "sms", 50)])
    assert found["launch_ms_mean_phone"] == pytest.approx(300)
    assert found["launch_ms_p50_phone"] == pytest.approx(200)
    assert found["launch_ms_p95_phone"] == pytest.approx(560)
    assert found["launch_ms_p95_sms"] == pytest.approx(50)
    assert compute_metrics(records(1))["launch_ms_mean_phone"] is None


def test_free_pieces_of_the_machine_and_of_each_part() -> None:
    found = compute_metrics([*records(1), node(3, 0, 32, 1), node(3, 1, 0, 0)])
    assert found["free_pieces_order0"] == pytest.approx((80 + 32) / 2)
    assert found["free_pieces_order0_trusted"] == pytest.approx((16 + 32) / 2)
    assert found["free_pieces_order0_untrusted"] == pytest.approx(64 / 2)
    assert found["free_pieces_order10"] == 0
    whole = compute_metrics(records(0))
    assert whole["free_pieces_order0"] == 80
    assert whole["free_pieces_order0_trusted"] is None


def test_pieces_of_a_kernel_whose_largest_order_is_9() -> None:
    """The record has no column of order 10."""
    small = [{**x, "blocks": x["blocks"][:10]} if x["r"] == "node" else x for x in records(1)]
    found = compute_metrics(small)
    assert found["free_pieces_order10"] == 0
    assert found == compute_metrics(records(1))


def held(n: int, mib: int, free_mb: int) -> Record:
    """The program that zeroes 1,000 MiB held so much while so much was free."""
    return {
        **{"r": "work", "n": n, "bytes": n << 20, "ns": n * 10**9, "cpu_ns": n * 10**9},
        **{"held_kb": mib << 10, "want_kb": 1000 << 10, "free_kb": free_mb << 10},
    }


def test_memory_that_is_free_while_the_heap_is_held() -> None:
    found = compute_metrics([*records(1), held(5, 1000, 30), held(6, 0, 30), held(7, 500, 9)])
    assert found["free_mb_held"] == pytest.approx(30)
    assert found["held_share"] == pytest.approx(0.75)
    assert found["pressure_cpu_s"] == pytest.approx(7)
    none = compute_metrics([*records(1), held(5, 500, 9)])
    assert none["free_mb_held"] is None and none["held_share"] == pytest.approx(0.5)
    assert compute_metrics(records(1))["held_share"] is None
    assert compute_metrics(records(1))["pressure_cpu_s"] is None


def test_time_that_is_burnt_is_pressure_without_work() -> None:
    burnt = {"r": "work", "n": 2, "bytes": 0, "ns": 10, "cpu_ns": 9, "held_kb": 0, "want_kb": 0}
    first = [role("phone", "trusted", 1), launch(1, "phone", 900), {**burnt, "free_kb": 0}]
    found = compute_metrics([*first, launch(2, "phone", 150)])
    assert found["launch_ms_p95_trusted"] == pytest.approx(150)
    assert found["untrusted_work_per_s"] is None


def test_fragmentation_where_the_trusted_live() -> None:
    assert compute_metrics(records(1))["ui_order4_trusted"] == pytest.approx(16 / 64)
    assert compute_metrics(records(0))["ui_order4_trusted"] == pytest.approx(80 / 128)


def test_a_sample_without_a_free_page_there_counts_as_all_of_it() -> None:
    """UI is 1 then, as the reference says, and as of all memory."""
    found = compute_metrics([*records(1), node(3, 0, 0, 0), node(3, 1, 64, 0)])
    assert found["ui_order4_trusted"] == pytest.approx((16 / 64 + 1) / 2)
    none = compute_metrics([*records(0)[:-3], node(4, 0, 0, 0)])
    assert none["ui_order4_trusted"] == 1.0


def test_without_roles_there_is_nothing_to_tell() -> None:
    found = compute_metrics(records(1)[2:])
    assert found["kills"] == 3 and found["kills_trusted"] is None
    assert found["ui_order4_trusted"] is None
