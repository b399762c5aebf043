"""Runs as one Perfetto trace: what memory did, on the guest's clock."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BUILTIN_CLOCK_BOOTTIME,
    BUILTIN_CLOCK_MONOTONIC,
    CounterDescriptor,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import TraceProtoBuilder

from cohort import host
from cohort.results.catalogue import ORDERS
from cohort.results.frames import LARGER_PAGES, PARKED, PIECE_PAGES, free_by_order, in_small_pages
from cohort.results.runs import FinishedRun
from cohort.units import PAGE

COUNT, BYTES = CounterDescriptor.UNIT_COUNT, CounterDescriptor.UNIT_SIZE_BYTES

RECLAIM = {
    "evicted by kswapd, pages": ("pgsteal_kswapd",),
    "evicted by allocating processes, pages": ("pgsteal_direct",),
    "looked at by kswapd, pages": ("pgscan_kswapd",),
    "looked at by allocating processes, pages": ("pgscan_direct",),
    "stalled allocations": (
        *("allocstall_dma", "allocstall_dma32", "allocstall_normal"),
        *("allocstall_movable", "allocstall_device"),
    ),
    "refaulted anonymous pages": ("workingset_refault_anon",),
    "refaulted file pages": ("workingset_refault_file",),
    "faults that read storage": ("pgmajfault",),
}
"""Counters by title: names of /proc/vmstat, added up. They count from the boot on."""

COMPACTION = {
    "pages moved": ("pgmigrate_success",),
    "pages not moved": ("pgmigrate_fail",),
    "stalls": ("compact_stall",),
    "successes": ("compact_success",),
    "failures": ("compact_fail",),
    "kcompactd woken": ("compact_daemon_wake",),
    "blocks packed by Cohort": ("cohort_pack",),
}

MEMORY = {
    "free": ("nr_free_pages",),
    "parked": PARKED,
    "page cache": ("nr_inactive_file", "nr_active_file"),
    "anonymous": ("nr_anon_pages",),
}
"""Like RECLAIM, of pages that are shown in bytes. In `nr_file_pages` is the swap cache, too."""

_ALL_ORDERS = (0, *ORDERS)


def write_trace(runs: Iterable[FinishedRun], path: Path) -> None:
    """Write `trace_of` these runs to `path`, whose directory is made. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    host.write_bytes(path, trace_of(runs))


def trace_of(runs: Iterable[FinishedRun]) -> bytes:
    """The runs as one trace, each a process with its tracks; the same runs give the same bytes.

    Times are the guest's CLOCK_MONOTONIC, ns. The records are those that `compute_metrics` takes.
    """
    writer = _Writer()
    for number, run in enumerate(runs, start=1):
        title = f"{run.meta['policy']}, seed {run.meta['seed']}"
        tracks = _Tracks(writer, writer.process(number, title))
        for record in run.records():
            tracks.add(record)
    return writer.serialize()


@dataclass
class _Writer:
    """Packets of a trace: descriptors of tracks as they are made, events by time."""

    descriptors: list[TracePacket] = field(default_factory=list)
    events: list[TracePacket] = field(default_factory=list)

    def process(self, pid: int, name: str) -> int:
        """A track that has others below it; returns its uuid."""
        track = self._descriptor(0, "")
        track.process.pid = pid
        track.process.process_name = name
        return int(track.uuid)

    def track(self, parent: int, name: str) -> int:
        """A track for slices, instants or other tracks below `parent`; returns its uuid."""
        return int(self._descriptor(parent, name).uuid)

    def counter(self, parent: int, name: str, unit: "CounterDescriptor.Unit" = COUNT) -> int:
        """A track for values below `parent`; returns its uuid."""
        track = self._descriptor(parent, name)
        track.counter.unit = unit
        return int(track.uuid)

    def slice(self, track: int, start: int, ns: int, name: str, values: Mapping[str, Any]) -> None:
        """Something that took from `start` to `start + ns`."""
        event = self._event(track, start, TrackEvent.TYPE_SLICE_BEGIN)
        event.name = name
        _annotate(event, values)
        self._event(track, start + ns, TrackEvent.TYPE_SLICE_END)

    def instant(self, track: int, t: int, name: str, values: Mapping[str, Any]) -> None:
        """Something that happened at `t`."""
        event = self._event(track, t, TrackEvent.TYPE_INSTANT)
        event.name = name
        _annotate(event, values)

    def value(self, track: int, t: int, value: int) -> None:
        """A counter's value from `t` on."""
        self._event(track, t, TrackEvent.TYPE_COUNTER).counter_value = value

    def serialize(self) -> bytes:
        """The trace. Events of one time stay in the order they came in."""
        builder = TraceProtoBuilder()
        first = builder.add_packet()
        first.trusted_packet_sequence_id = 1
        first.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        _set_clock(first)
        ordered = sorted(self.events, key=lambda packet: packet.timestamp)
        for packet in (*self.descriptors, *ordered):
            builder.add_packet().CopyFrom(packet)
        return builder.serialize()

    def _descriptor(self, parent: int, name: str) -> TrackDescriptor:
        packet = TracePacket(trusted_packet_sequence_id=1)
        track = packet.track_descriptor
        track.uuid = len(self.descriptors) + 1
        track.child_ordering = TrackDescriptor.EXPLICIT
        track.sibling_order_rank = track.uuid
        if parent:
            track.parent_uuid = parent
            track.name = name
        self.descriptors.append(packet)
        return track

    def _event(self, track: int, t: int, kind: "TrackEvent.Type") -> TrackEvent:
        packet = TracePacket(trusted_packet_sequence_id=1)
        packet.timestamp = t
        packet.timestamp_clock_id = BUILTIN_CLOCK_MONOTONIC
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        self.events.append(packet)
        return packet.track_event


class _Tracks:
    """The tracks of one run, and what its records put on them."""

    def __init__(self, writer: _Writer, process: int) -> None:
        self.writer = writer
        self.vm_names: list[str] = []
        self.launches = writer.track(process, "launches")
        self.kills = writer.track(process, "kills")
        self.buffers = writer.track(process, "I/O buffers")
        self.blocks = self._orders(writer.track(process, "free blocks"))
        self.owned = self._orders(writer.track(process, "parked blocks"))
        self.memory = self._counters(writer.track(process, "memory"), MEMORY, BYTES)
        self.counts = {
            **self._counters(writer.track(process, "reclaim"), RECLAIM),
            **self._counters(writer.track(process, "compaction"), COMPACTION),
        }

    def add(self, record: Mapping[str, Any]) -> None:
        """Take one record; kinds that a trace does not show are left out."""
        match record["r"]:
            case "hello":
                self.vm_names = list(record["vm_names"])
                self.page_size = int(record.get("page_size", PAGE))
            case "launch":
                self._slice(self.launches, record, record["app"], ("n", "kind", "majflt"))
            case "buffer" | "camera":
                keys = (
                    "app",
                    "heap",
                    "bytes",
                    "ok",
                    "zero_ns",
                    *LARGER_PAGES,
                    *PIECE_PAGES,
                    "other",
                )
                self._slice(self.buffers, record, record["r"], keys)
            case "kill":
                self._kill(record)
            case "sample":
                self._blocks(record["t"], record)
                self._vm(record["t"], record["vm"])

    def _orders(self, parent: int) -> list[int]:
        return [self.writer.counter(parent, f"order {order}") for order in _ALL_ORDERS]

    def _counters(
        self,
        parent: int,
        titles: Mapping[str, Sequence[str]],
        unit: "CounterDescriptor.Unit" = COUNT,
    ) -> dict[int, Sequence[str]]:
        return {self.writer.counter(parent, title, unit): vm for title, vm in titles.items()}

    def _slice(self, track: int, record: Mapping[str, Any], name: str, keys: Sequence[str]) -> None:
        """The record was made when the time it tells was over."""
        start = record["t"] - record["ns"]
        self.writer.slice(track, start, record["ns"], name, _values(record, keys))

    def _kill(self, record: Mapping[str, Any]) -> None:
        keys = ("class", "by", "adj", "free_kb", "parked_kb", "file_kb", "ns")
        self.writer.instant(self.kills, record["t"], record["app"], _values(record, keys))
        if "buddy" in record:
            self._blocks(record["t"] + record["ns"], record)

    def _blocks(self, t: int, record: Mapping[str, Any]) -> None:
        if self.page_size != PAGE:
            record = in_small_pages(record, self.page_size)
        free, owned = free_by_order(record), record.get("owned", ())
        for tracks, counts in ((self.blocks, free), (self.owned, owned)):
            # A kernel with a lower maximum order has fewer counts.
            for track, count in zip(tracks, counts, strict=False):
                self.writer.value(track, t, int(count))

    def _vm(self, t: int, values: Sequence[int]) -> None:
        vm = dict(zip(self.vm_names, values, strict=True))
        for scale, tracks in ((self.page_size, self.memory), (1, self.counts)):
            for track, names in tracks.items():
                there = [vm[name] for name in names if name in vm]
                if there:
                    self.writer.value(track, t, scale * sum(there))


def _values(record: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: record[key] for key in keys if key in record}


def _set_clock(packet: TracePacket) -> None:
    """Say that times are CLOCK_MONOTONIC, which in a guest that never sleeps is CLOCK_BOOTTIME."""
    packet.clock_snapshot.primary_trace_clock = BUILTIN_CLOCK_MONOTONIC
    for clock in (BUILTIN_CLOCK_MONOTONIC, BUILTIN_CLOCK_BOOTTIME):
        packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=0)


def _annotate(event: TrackEvent, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        note = event.debug_annotations.add(name=name)
        if isinstance(value, bool):
            note.bool_value = value
        elif isinstance(value, int):
            note.int_value = value
        elif value is not None:
            note.string_value = str(value)
