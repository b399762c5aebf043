"""The Perfetto trace of runs, opened with Perfetto's own Python library."""

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BUILTIN_CLOCK_MONOTONIC,
    Trace,
    TracePacket,
    TrackEvent,
)

from cohort.paths import ROOT
from cohort.results.rundir import RunDir
from cohort.results.trace import COMPACTION, MEMORY, RECLAIM, trace_of
from made_runs import make_run
from tests_support import Outcome

LIMIT = 20 << 20
ZONES = [["DMA32", 5, *range(1, 11)], ["Normal", 7, *range(1, 11)]]


def opened(content: bytes) -> Trace:
    trace = Trace()
    assert trace.ParseFromString(content) == len(content)
    return trace


def events(trace: Trace) -> dict[str, list[TracePacket]]:
    """Events by the path of their track: process/group/track."""
    names: dict[int, str] = {}
    found: dict[str, list[TracePacket]] = defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            own = track.name or track.process.process_name
            above = f"{names[track.parent_uuid]}/" if track.parent_uuid else ""
            names[track.uuid] = f"{above}{own}"
        elif packet.HasField("track_event"):
            found[names[packet.track_event.track_uuid]].append(packet)
    return found


def values(found: dict[str, list[TracePacket]], track: str) -> list[tuple[int, int]]:
    return [(p.timestamp, p.track_event.counter_value) for p in found[track]]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """Two launches, a kill between them, and all that a kernel with Cohort says."""
    path = make_run(tmp_path, "region")
    names = ["nr_free_pages", "nr_cohort_owned", "pgsteal_kswapd", "allocstall_normal"]
    names += ["allocstall_movable", "compact_stall"]
    sample = {"r": "sample", "buddy": ZONES, "owned": [9, 8], "alive": 1, "cached": 0, "cpu": []}
    records = [
        {"r": "hello", "t": 5, "vm_names": names},
        sample | {"t": 10, "n": 0, "vm": [100, 10, 7, 1, 2, 0]},
        {"r": "launch", "t": 1300, "n": 1, "app": "mail", "kind": "cold", "ns": 300, "majflt": 4},
        {"r": "kill", "t": 1100, "n": 1, "app": "game", "class": "cached", "by": "lmkd", "adj": 900,
         "free_kb": 8, "parked_kb": 4, "ns": 50, "buddy": [["Normal", 3, 1]], "owned": [1]},
        {"r": "buffer", "t": 1400, "n": 1, "app": "mail", "bytes": 4096, "ok": True, "ns": 40,
         "zero_ns": None, "o8": 0, "o4": 0, "o0": 1, "other": 0},
        sample | {"t": 2000, "n": 1, "vm": [90, 20, 17, 2, 3, 5]},
        {"r": "map", "t": 2001, "n": 1, "cell_pages": 64, "base_pfn": 0, "cells": "."},
        {"r": "end", "t": 2002, "ok": True, "launches": 1},
    ]  # fmt: skip
    (path / "records.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in records))
    return RunDir(path)


def test_what_happened_is_on_the_guests_clock(run: RunDir) -> None:
    trace = opened(trace_of([run]))
    found = events(trace)
    begin, end = found["region, seed 1/launches"]
    assert (begin.timestamp, end.timestamp, begin.track_event.name) == (1000, 1300, "mail")
    assert begin.track_event.type == TrackEvent.TYPE_SLICE_BEGIN
    [kill] = found["region, seed 1/kills"]
    assert (kill.timestamp, kill.track_event.name) == (1100, "game")
    notes = {note.name: note for note in kill.track_event.debug_annotations}
    assert notes["by"].string_value == "lmkd" and notes["free_kb"].int_value == 8
    assert [p.timestamp for p in found["region, seed 1/I/O buffers"]] == [1360, 1400]
    times = [p.timestamp for p in trace.packet if p.HasField("track_event")]
    assert times == sorted(times)
    clocks = {p.timestamp_clock_id for p in trace.packet if p.HasField("track_event")}
    assert clocks == {trace.packet[0].clock_snapshot.primary_trace_clock}
    assert clocks == {BUILTIN_CLOCK_MONOTONIC}


def test_counters_are_those_of_the_records(run: RunDir) -> None:
    found = events(opened(trace_of([run])))
    top = "region, seed 1"
    # Of both zones; after the kill, of the only one it tells.
    assert values(found, f"{top}/free blocks/order 0") == [(10, 12), (1150, 3), (2000, 12)]
    assert values(found, f"{top}/free blocks/order 10") == [(10, 20), (2000, 20)]
    assert values(found, f"{top}/parked blocks/order 0") == [(10, 9), (1150, 1), (2000, 9)]
    assert values(found, f"{top}/memory/parked") == [(10, 40960), (2000, 81920)]
    assert values(found, f"{top}/reclaim/evicted by kswapd, pages") == [(10, 7), (2000, 17)]
    assert values(found, f"{top}/reclaim/stalled allocations") == [(10, 3), (2000, 5)]
    assert values(found, f"{top}/compaction/stalls") == [(10, 0), (2000, 5)]
    assert f"{top}/compaction/blocks packed by Cohort" not in found


def test_the_same_runs_give_the_same_bytes(run: RunDir, tmp_path: Path) -> None:
    both = [RunDir(make_run(tmp_path / "stock", "none")), run]
    content = trace_of(both)
    assert content == trace_of(both)
    processes = {track.partition("/")[0] for track in events(opened(content))}
    assert processes == {"none, seed 1", "region, seed 1"}


def test_a_run_of_400_launches_fits(tmp_path: Path) -> None:
    """A hundred times the guest's own records of four launches, its 140 counters included."""
    path = make_run(tmp_path, "none")
    golden = (ROOT / "tests" / "golden" / "guest-records.jsonl").read_text()
    (path / "records.jsonl").write_text(golden * 100)
    content = trace_of([RunDir(path)])
    begun = [p for p in events(opened(content))["none, seed 1/launches"] if p.track_event.name]
    assert len(begun) == 400
    assert len(content) < LIMIT / 2, "there is room for the kills of a long run"


@pytest.mark.usefixtures("own_out", "no_guest")
@pytest.mark.parametrize(("verb", "runs"), [("run none --seed 1,2", 2), ("compare none region", 2)])
def test_the_command_says_where_the_trace_is(
    verb: str, runs: int, cohort: Callable[..., Outcome], tmp_path: Path
) -> None:
    trace = tmp_path / "deep" / "a.pftrace"
    done = cohort(*verb.split(), "--json", "--perfetto", trace)
    assert done.code == 0, done.stderr
    json.loads(done.stdout)
    assert f"trace: {trace}" in done.stderr
    tracks = events(opened(trace.read_bytes()))
    assert len({track.partition("/")[0] for track in tracks}) == runs


def test_every_counter_is_in_the_reference() -> None:
    text = " ".join((ROOT / "docs" / "reference" / "trace.md").read_text().split())
    assert [title for title in (*RECLAIM, *COMPACTION, *MEMORY) if title not in text] == []
