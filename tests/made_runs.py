"""Run directories made by hand, with at least one record of each kind that the results show."""

import json
from pathlib import Path
from typing import Any

PAGES = 256
END = {"r": "end", "t": 21 * 10**9, "ok": True, "launches": 20}


def records(factor: float) -> list[dict[str, Any]]:
    """A tiny run: twenty launches, of each kind of record at least one."""
    rows: list[dict[str, Any]] = [
        {"r": "hello", "t": 0, "vm_names": ["nr_free_pages", "nr_cohort_free", "pgsteal_direct"]},
        {"r": "fault", "t": 0, "when": "boot", "pages": 100, "ns": 100_000 * factor},
    ]
    for n in range(1, 21):
        single = int(PAGES * n / 20 * factor)
        blocks = [single, *[0] * 7, (PAGES - single) // 256, 0, 1]
        at = {"t": n * 10**9, "n": n}
        kind = "cold" if n % 2 else "resume"
        rows += [
            {"r": "launch", **at, "app": "a", "kind": kind, "ns": int(n * 1e6 * factor)},
            {"r": "buffer", **at, "bytes": PAGES * 4096, "ok": True,
             "ns": int(9000 * factor) + 1000, "zero_ns": 1000,
             "o8": 0, "o4": 0, "o0": PAGES, "other": 0},
            {"r": "kill", **at, "app": "b", "class": "cached", "by": "lmkd"},
            {"r": "sample", **at, "buddy": [["Normal", *blocks]], "vm": [PAGES, n, n * 10],
             "alive": 9, "cached": 3, "cpu": []},
        ]  # fmt: skip
    about = {"cell_pages": 64, "base_pfn": 0, "cells": ".AFSTKPm" * 64 + "-!"}
    rows.append({"r": "map", "t": 1, "n": 20, **about, "owners": "cc00..am........" * 32 + ".."})
    return [*rows, END]


def make_run(root: Path, policy: str, seed: int = 1, factor: float = 1.0, **meta: Any) -> Path:
    path = root / f"phone-2g-{policy}-s{seed}"
    path.mkdir(parents=True)
    text = "".join(f"{json.dumps(record)}\n" for record in records(factor))
    (path / "records.jsonl").write_text(text, encoding="utf-8")
    about = {
        "policy": policy,
        "policy_title": f"the <{policy}> policy",
        "seed": seed,
        "workload": "phone-2g",
        "launches": 20,
        "accel": "deterministic",
        "memory_mb": 2048,
        "cpus": 2,
        "versions": {"qemu": "QEMU 1.2.3", "gcc": "gcc 4.5.6", "kernel": "6.12.7"},
        "wall_s": 12.3,
    }
    (path / "meta.json").write_text(json.dumps(about | meta), encoding="utf-8")
    return path


def add_map(path: Path, n: int, cells: str, owners: str) -> None:
    """One more map of a made run, after launch `n`; a cell is 256 KiB."""
    row = {"r": "map", "t": n, "n": n, "cell_pages": 64, "base_pfn": 0}
    row |= {"cells": cells, "owners": owners}
    records_file = path / "records.jsonl"
    lines = records_file.read_text(encoding="utf-8").splitlines()
    lines.insert(-1, json.dumps(row))
    records_file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
