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


def test_fragmentation_where_the_trusted_live() -> None:
    assert compute_metrics(records(1))["ui_order4_trusted"] == pytest.approx(16 / 64)
    assert compute_metrics(records(0))["ui_order4_trusted"] == pytest.approx(80 / 128)


def test_without_roles_there_is_nothing_to_tell() -> None:
    found = compute_metrics(records(1)[2:])
    assert found["kills"] == 3 and found["kills_trusted"] is None
    assert found["ui_order4_trusted"] is None
