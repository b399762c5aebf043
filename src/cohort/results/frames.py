"""A run's records as data frames: one frame a kind of record, one row a record."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from cohort.errors import CohortError
from cohort.results.catalogue import ORDERS
from cohort.units import PAGE

PARKED = ("nr_cohort_owned", "nr_cohort_reserved", "nr_cohort_free")
"""Counters of free pages with an owner; older kernels hid them, and have the last alone."""
PIECE_PAGES = {"o8": 256, "o4": 16, "o0": 1}
"""Pages of the machine in one piece of a buffer, by the record's key."""
LARGER_PAGES = {"o9": 512}
"""Likewise: pieces that only a heap with other orders than the kernel's own asks for."""

_COLUMNS: dict[str, tuple[str, ...]] = {
    "fault": ("when", "pages", "ns"),
    "launch": ("n", "app", "kind", "ns"),
    "buffer": ("n", "bytes", "ok", "ns", "zero_ns", *PIECE_PAGES, "other"),
    "camera": (
        *("n", "app", "heap", "bytes", "ok", "ns", "zero_ns", *PIECE_PAGES, "other"),
        *("whole", "busy"),
    ),
    "cost": (
        *(
            "n",
            "app",
            "measured",
            "stalls",
            "own_stalls",
            "file_before",
            "file_after",
            "free_before",
        ),
        *("in_kb", "out_kb"),
    ),
    "area": ("n", "when", "size_kb", "free_kb", "cache_kb", "client_kb", "other_kb"),
    "left": ("n", "base_pfn", "pages", "runs"),
    "bench": (
        *("name", "free_before", "free_after", "file_before", "file_after", "in_kb", "out_kb"),
        "output",
    ),
    "kill": ("t", "n", "app", "class", "by"),
    "sample": ("t", "n", "buddy", "vm", "alive", "cached", "cpu"),
    "map": ("n", "cell_pages", "cells"),
    "moment": ("when",),
    "program": ("i", "pages", "ns", "p50_ns", "p99_ns", "clock_ns"),
    "own": ("i", "blocks"),
    "profile": ("function", "ticks"),
    "order": ("order", "path", "blocks", "ns", "max_ns"),
    "throughput": ("kind", "cpus", "pages", "ns", "free_ns"),
    "role": ("app", "role", "nodes"),
    "node": ("n", "node", "blocks"),
    "work": ("n", "bytes", "ns"),
    "reclaim": ("kind", "counts"),
    "round": ("n", "apps"),
    "scroll": ("n", "frames", "late", "worst_ns"),
    "judge": ("n", "available_kb", "foreground", "background", "system"),
}

# Kept where the guest wrote them.
_OPTIONAL: dict[str, tuple[str, ...]] = {
    "launch": ("majflt",),
    "work": ("cpu_ns", "held_kb", "want_kb", "free_kb"),
    "buffer": tuple(LARGER_PAGES),
    "camera": tuple(LARGER_PAGES),
    "map": ("owners",),
}

Floats = npt.NDArray[np.float64]

NO_BLOCKS: Floats = np.full(len(ORDERS) + 1, np.nan)


@dataclass(frozen=True)
class Frames:
    """The records of one run.

    `vm` has one row per sample and one column per name of /proc/vmstat, as the kernel spells them:
    its pages, and `ram_pages`, have `page_size` bytes. Orders of blocks are those of 4 KiB on every
    machine: a block of order n has 4 KiB << n, a larger one than of order 10 counts as several.
    `free_blocks` has one row per sample and one column per order 0..10: free blocks of all zones
    that have no owner; `kill_blocks` the same after each kill, `moment_blocks` at each moment of an
    experiment. `all_free_blocks` and so on have the free chunks of owned blocks, too. A row is not
    a number where it is not known. `ram_pages` is 0 where it is not known.
    """

    launches: pd.DataFrame
    buffers: pd.DataFrame
    camera: pd.DataFrame
    cost: pd.DataFrame
    area: pd.DataFrame
    left: pd.DataFrame
    bench: pd.DataFrame
    kills: pd.DataFrame
    samples: pd.DataFrame
    maps: pd.DataFrame
    faults: pd.DataFrame
    moments: pd.DataFrame
    programs: pd.DataFrame
    own: pd.DataFrame
    throughput: pd.DataFrame
    orders: pd.DataFrame
    profile: pd.DataFrame
    roles: pd.DataFrame
    nodes: pd.DataFrame
    work: pd.DataFrame
    sizes: pd.DataFrame
    rounds: pd.DataFrame
    scrolls: pd.DataFrame
    judged: pd.DataFrame
    vm: pd.DataFrame
    free_blocks: Floats
    kill_blocks: Floats
    moment_blocks: Floats
    all_free_blocks: Floats
    all_kill_blocks: Floats
    all_moment_blocks: Floats
    ram_pages: int
    page_size: int

    @property
    def last_launch(self) -> int:
        """The number of launches the run got through."""
        return int(self.launches["n"].max()) if len(self.launches) else 0

    @property
    def half(self) -> int:
        """The last launch of the first half: the second half has `n` greater than this."""
        return self.last_launch // 2


def piece_pages(buffers: pd.DataFrame) -> dict[str, int]:
    """Pages of one piece, by the column of these buffers: larger ones where there was any."""
    larger = {
        key: pages
        for key, pages in LARGER_PAGES.items()
        if pd.to_numeric(buffers[key]).fillna(0).any()
    }
    return larger | PIECE_PAGES


def piece_shares(
    count: Mapping[str, float], pieces: float, pages_in: Mapping[str, float], pages: float
) -> dict[str, float | int | None]:
    """Shares of pieces in the bytes and in the number of pieces, by metric: None for pieces that a
    heap never gave, or where no buffer was made. `pages_in` are pages in pieces of a column, of
    `pages` in all."""
    shares: dict[str, float | int | None] = {}
    for key in LARGER_PAGES | PIECE_PAGES:
        name = f"buffer_order{key.removeprefix('o')}"
        known = key in count
        shares[f"{name}_share"] = pages_in[key] / pages if known and pages else None
        shares[f"{name}_pieces"] = count[key] / pieces if known and pieces else None
    return shares


def read_frames(records: Iterable[Mapping[str, Any]]) -> Frames:
    """Sort the records of one run into frames; unknown kinds and keys are left out.

    Raises CohortError, with the record's number, for one that lacks a key or has a value of the
    wrong kind.
    """
    reader = _Reader()
    for number, record in enumerate(records, start=1):
        try:
            reader.add(record)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise CohortError(
                f"record {number} ({record.get('r')!r}): {what}",
                "are the guest and the lab of the same version? try --fresh",
            ) from error
    return reader.frames()


class _Reader:
    """Collects rows until there is a frame to make of them."""

    def __init__(self) -> None:
        self.rows: dict[str, list[list[Any]]] = {kind: [] for kind in _COLUMNS}
        self.vm_names: list[str] = []
        self.ram_pages = 0
        self.page_size = PAGE
        self.blocks: dict[str, list[Floats]] = {"sample": [], "kill": [], "moment": []}
        self.owned: dict[str, list[Floats]] = {"sample": [], "kill": [], "moment": []}

    def add(self, record: Mapping[str, Any]) -> None:
        """Take one record; raises as Python does when it is not as it should be."""
        kind = record["r"]
        if self.page_size != PAGE:
            record = in_small_pages(record, self.page_size)
        if kind == "hello":
            self.vm_names = list(record["vm_names"])
            self.ram_pages = int(record.get("pages", 0))
            self.page_size = int(record.get("page_size", PAGE))
        elif kind in _COLUMNS:
            needed = [record[column] for column in _COLUMNS[kind]]
            more = [record.get(column) for column in _OPTIONAL.get(kind, ())]
            self.rows[kind].append([*needed, *more])
        if kind in self.blocks:
            unknown = kind == "kill" and "buddy" not in record
            self.blocks[kind].append(NO_BLOCKS if unknown else _free_blocks(record))
            self.owned[kind].append(self._owned_blocks(record))
        if kind == "sample" and len(record["vm"]) != len(self.vm_names):
            raise ValueError(f"{len(record['vm'])} vmstat values for {len(self.vm_names)} names")

    def _owned_blocks(self, record: Mapping[str, Any]) -> Floats:
        """Free chunks of owned blocks by order: none where nothing is parked."""
        if "owned" in record:
            return _by_order(np.array(record["owned"], dtype=float), "owned")
        # Of kernels before `owned`, what was parked is known, its orders are not.
        vm = dict(zip(self.vm_names, record.get("vm", ()), strict=False))
        parked = record.get("parked_kb") if record["r"] == "kill" else vm.get("nr_cohort_free", 0)
        return np.zeros_like(NO_BLOCKS) if parked == 0 else NO_BLOCKS

    def frames(self) -> Frames:
        """What was taken so far."""
        frames = {
            kind: pd.DataFrame(self.rows[kind], columns=[*columns, *_OPTIONAL.get(kind, ())])
            for kind, columns in _COLUMNS.items()
        }
        free = {kind: _stacked(rows) for kind, rows in self.blocks.items()}
        owned = {kind: _stacked(rows) for kind, rows in self.owned.items()}
        return Frames(
            launches=frames["launch"],
            buffers=frames["buffer"],
            camera=frames["camera"],
            cost=frames["cost"],
            area=frames["area"],
            left=frames["left"],
            bench=frames["bench"],
            kills=frames["kill"],
            samples=frames["sample"],
            maps=frames["map"],
            faults=frames["fault"],
            moments=frames["moment"],
            programs=frames["program"],
            own=frames["own"],
            throughput=frames["throughput"],
            orders=frames["order"],
            profile=frames["profile"],
            roles=frames["role"],
            nodes=frames["node"],
            work=frames["work"],
            sizes=frames["reclaim"],
            rounds=frames["round"],
            scrolls=frames["scroll"],
            judged=frames["judge"],
            vm=pd.DataFrame(frames["sample"]["vm"].tolist(), columns=self.vm_names),
            free_blocks=free["sample"],
            kill_blocks=free["kill"],
            moment_blocks=free["moment"],
            all_free_blocks=free["sample"] + owned["sample"],
            all_kill_blocks=free["kill"] + owned["kill"],
            all_moment_blocks=free["moment"] + owned["moment"],
            ram_pages=self.ram_pages,
            page_size=self.page_size,
        )


def in_small_pages(record: Mapping[str, Any], page_size: int) -> Mapping[str, Any]:
    """A record of a machine with pages of so many bytes, with orders, and places and amounts of
    memory, in pages of 4 KiB. What counts events, and /proc/vmstat, is as it was."""
    times = page_size // PAGE
    shift = times.bit_length() - 1
    changed = dict(record)
    for key in ("owned", "blocks"):
        if isinstance(record.get(key), list):
            changed[key] = _shifted(record[key], shift)
    for key in ("cell_pages", "file_before", "file_after", "free_before", "free_after"):
        if key in record:
            changed[key] = record[key] * times
    if record["r"] == "left":
        changed["pages"] = record["pages"] * times
        changed["runs"] = [[first * times, count * times] for first, count in record["runs"]]
    if "buddy" in record:
        changed["buddy"] = [[zone, *_shifted(counts, shift)] for zone, *counts in record["buddy"]]
    if record.get("kind") == "alloc_orders":
        changed["counts"] = _shifted(record["counts"], shift, split=False)
    return changed


def _shifted(counts: Sequence[int], shift: int, split: bool = True) -> list[int]:
    """Counts by order with so many orders below; what is above order 10 counts there, as the
    pieces it may be split into or, without `split`, as it is."""
    moved, last = [0] * shift + list(counts), len(ORDERS)
    above = (n << (i if split else 0) for i, n in enumerate(moved[last:]))
    return [*moved[:last], sum(above)] if len(moved) > last else moved


def all_orders(counts: Floats) -> Floats:
    """Counts of order 0, 1, ... up to the kernel's maximum, with zeros for the orders above it."""
    return np.pad(counts, (0, len(ORDERS) + 1 - len(counts)))


def pages_by_order(free_blocks: Floats) -> Floats:
    """Pages in blocks of each order, from the number of blocks."""
    return np.asarray(free_blocks * np.exp2(np.arange(free_blocks.shape[-1])))


def unusable_index(free_blocks: Floats, order: int) -> Floats:
    """UI(order) of each row: the share of free memory that cannot serve a request of that order.

    A row without any free page counts as 1, as in the kernel's extfrag/unusable_index; one that is
    not a number stays so.
    """
    pages = pages_by_order(free_blocks)
    total = pages.sum(axis=1)
    usable = pages[:, order:].sum(axis=1)
    share = np.divide(usable, total, out=np.zeros_like(total), where=total != 0)
    return np.asarray(1.0 - share)


def kill_chain(frames: Frames, order: int, owned: bool = False) -> Floats:
    """UI(order) along the kills: before the first one, then right after each.

    Of free memory without an owner, or of all with `owned`. Not a number where it is not known.
    Empty without a kill.
    """
    if not len(frames.kills):
        return np.empty(0)
    samples = frames.all_free_blocks if owned else frames.free_blocks
    kills = frames.all_kill_blocks if owned else frames.kill_blocks
    earlier = (frames.samples["t"] < frames.kills["t"].min()).to_numpy(dtype=bool)
    before = samples[earlier][-1:] if earlier.any() else NO_BLOCKS[None]
    return unusable_index(np.concatenate([before, kills]), order)


def parked_pages(vm: pd.DataFrame) -> Floats:
    """Per sample, free pages with an owner: of blocks that may be breached, and of the area.

    Older kernels hid some or all of them (`nr_cohort_free`).
    """
    return _sum_of(vm, PARKED)


def all_free_pages(vm: pd.DataFrame) -> Floats:
    """Per sample, all free pages: MemFree, and what older kernels hid from it."""
    return _sum_of(vm, ("nr_free_pages", "nr_cohort_free"))


def cache_pages(vm: pd.DataFrame) -> Floats:
    """Per sample, page cache with shared memory.

    The kernel counts the swap cache as pages of files, too: anonymous memory, which cannot be
    dropped, and most of which `nr_anon_pages` has as well.
    """
    return _sum_of(vm, ("nr_file_pages",)) - _sum_of(vm, ("nr_swapcached",))


def _sum_of(vm: pd.DataFrame, counters: Sequence[str]) -> Floats:
    """Those of these counters that the kernel has, added up."""
    there = [name for name in counters if name in vm.columns]
    return vm[there].sum(axis=1).to_numpy(dtype=float)


def find_us(buffers: pd.DataFrame) -> pd.Series:
    """Per buffer, the time of its allocation less the zeroing, in µs; empty where not known."""
    zero = pd.to_numeric(buffers["zero_ns"])
    return (pd.to_numeric(buffers["ns"]) - zero) / 1000


def _stacked(rows: list[Floats]) -> Floats:
    return np.array(rows, dtype=float).reshape(-1, len(ORDERS) + 1)


def free_by_order(record: Mapping[str, Any]) -> Floats:
    """Free blocks by order, summed over the zones of `buddy`; as many orders as the kernel has."""
    zones = np.array([zone[1:] for zone in record["buddy"]], dtype=float)
    return np.asarray(zones.sum(axis=0))


def _free_blocks(record: Mapping[str, Any]) -> Floats:
    return _by_order(free_by_order(record), "buddy")


def _by_order(counts: Floats, what: str) -> Floats:
    if counts.ndim != 1 or not 1 <= len(counts) <= len(ORDERS) + 1:
        raise ValueError(f"{what} does not have 1 to {len(ORDERS) + 1} orders")
    return all_orders(counts)
