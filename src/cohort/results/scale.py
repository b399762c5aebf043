"""What operations of the memory manager cost: locks and instructions, and operations a second.

Counted: a deterministic machine runs one instruction a nanosecond, so the time a lock was held by
/proc/lock_stat is the instructions under it. lockdep's own are among them: a share for each lock
(`Probe.floor`), which is taken off, and for each lock taken inside (`Probe.each`), which is not.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from cohort.results.spread import Spread, spread

ACQUIRED_LIMIT = 1.0
"""Acquisitions of a lock an operation, at most so many times the baseline's."""
HELD_LIMIT = 1.1
"""Instructions under a lock an operation, at most so many times the baseline's."""
RATE_LIMIT = 0.97
"""Operations a second, at least so many times the baseline's."""

HAND = "pcp+magazine"
"""The locks of what a CPU has at hand, the page allocator's and Cohort's, together."""

LOCKS = {
    "&zone->lock": "zone",
    "&pcp->lock": "pcp",
    "&per_cpu_ptr(cz->magazine, cpu)->lock": "magazine",
    "&lruvec->lru_lock": "lru",
    "cohort_domains_lock": "domains",
    "&area->lock": "area",
    "&cpb->lock": "set",
    "ptlock_ptr(ptdesc)": "page table",
    "&mm->page_table_lock": "mm",
    "&xa->xa_lock": "xarray",
    "&n->list_lock": "slab",
}
"""The memory manager's spinlocks by the names of their lockdep classes."""

AT_HAND = ("pcp", "magazine")
_VARIANT = re.compile(r"(#\d+)?(/\d+)?(-[RW])?$")
_COLUMNS = 12
_US = 1000


@dataclass(frozen=True)
class LockLine:
    """A class in /proc/lock_stat: times it was taken, ns it was held in all and at least."""

    name: str
    acquired: int
    held_ns: float
    least_ns: float


@dataclass(frozen=True, order=True)
class Place:
    """An operation, and by what it is made: `kind` is process or thread."""

    op: str
    kind: str
    workers: int

    @property
    def label(self) -> str:
        """As tables say it."""
        if self.workers == 1:
            return f"{self.op}, alone"
        plural = "processes" if self.kind == "process" else "threads"
        return f"{self.op}, {self.workers} {plural}"


@dataclass(frozen=True)
class Use:
    """A lock in an operation: times it is taken, instructions under it."""

    acquired: float
    held: float


@dataclass(frozen=True)
class Probe:
    """What lockdep costs, instructions: inside the lock it is about, and in all each time."""

    floor: float
    each: float


@dataclass(frozen=True)
class Counted:
    """A policy's operations: instructions and locks of each."""

    policy: str
    instructions: Mapping[Place, float]
    locks: Mapping[Place, Mapping[str, Use]]
    probe: Probe


def lock_line(text: str) -> LockLine | None:
    """A line of /proc/lock_stat; None if it is of no class: a heading, a place of contention."""
    name, colon, rest = text.strip().rpartition(":")
    numbers = rest.split()
    if not colon or len(numbers) != _COLUMNS:
        return None
    values = [float(x) for x in numbers]
    return LockLine(name.strip(), int(values[7]), values[10] * _US, values[8] * _US)


def lock_label(name: str) -> str | None:
    """What tables call the lock of a lockdep class; None if it is none of the memory manager's."""
    return LOCKS.get(_VARIANT.sub("", name))


def _place(record: Mapping[str, Any]) -> Place:
    return Place(record["op"], record["kind"], int(record["workers"]))


def _steps(records: Iterable[Mapping[str, Any]]) -> dict[Place, tuple[int, int]]:
    """Operations and ns by place."""
    sums: dict[Place, tuple[int, int]] = {}
    for record in records:
        if record["r"] == "scale":
            n, ns = sums.get(_place(record), (0, 0))
            sums[_place(record)] = (n + int(record["n"]), ns + int(record["ns"]))
    return sums


def _lines(records: Iterable[Mapping[str, Any]]) -> list[tuple[Place, LockLine]]:
    found = [(r, lock_line(r["line"])) for r in records if r["r"] == "lock"]
    return [(_place(record), line) for record, line in found if line is not None]


def count(
    policy: str,
    plain: Sequence[Mapping[str, Any]],
    watched: Sequence[Mapping[str, Any]],
) -> Counted:
    """The costs out of two runs' records: on the kernel as it is, and with lock statistics."""
    steps, seen, lines = _steps(plain), _steps(watched), _lines(watched)
    taken = sum(line.acquired for _, line in lines)
    extra = sum(seen[at][1] - ns for at, (_, ns) in steps.items() if at in seen)
    floor = min((line.least_ns for _, line in lines if line.acquired), default=0.0)
    probe = Probe(floor, extra / taken if taken else 0.0)
    locks: dict[Place, dict[str, Use]] = {at: {} for at in seen}
    for at, line in lines:
        label = lock_label(line.name)
        if label is None or not line.acquired:
            continue
        n, held = seen[at][0], max(line.held_ns - floor * line.acquired, 0.0)
        _add(locks[at], label, line.acquired / n, held / n)
        if label in AT_HAND:
            _add(locks[at], HAND, line.acquired / n, held / n)
    return Counted(policy, {at: ns / n for at, (n, ns) in steps.items()}, locks, probe)


def _add(locks: dict[str, Use], label: str, acquired: float, held: float) -> None:
    old = locks.get(label, Use(0.0, 0.0))
    locks[label] = Use(old.acquired + acquired, old.held + held)


def middle(seeds: Sequence[Counted]) -> Counted:
    """One policy's runs with several seeds as one: the median of each number. A seed that does not
    take a lock takes it 0 times; what is not taken in the median is left out."""
    first = seeds[0]
    locks = {at: _middle_uses([x.locks.get(at, {}) for x in seeds]) for at in first.locks}
    steps = {at: median(x.instructions[at] for x in seeds) for at in first.instructions}
    probe = Probe(median(x.probe.floor for x in seeds), median(x.probe.each for x in seeds))
    return Counted(first.policy, steps, locks, probe)


def _middle_uses(seeds: Sequence[Mapping[str, Use]]) -> dict[str, Use]:
    never = Use(0.0, 0.0)
    found = {}
    for lock in dict.fromkeys(lock for uses in seeds for lock in uses):
        uses = [x.get(lock, never) for x in seeds]
        use = Use(median(x.acquired for x in uses), median(x.held for x in uses))
        if use.acquired:
            found[lock] = use
    return found


@dataclass(frozen=True)
class Row:
    """A lock in an operation under each policy, in their order; None where it is not taken."""

    place: Place
    lock: str
    uses: tuple[Use | None, ...]

    def ratios(self, index: int) -> tuple[float, float] | None:
        """Acquisitions and instructions of a policy over the first one's; None without both."""
        base, use = self.uses[0], self.uses[index]
        if base is None or use is None or not base.acquired or not base.held:
            return None
        return use.acquired / base.acquired, use.held / base.held

    def met(self, index: int) -> bool | None:
        """Whether a policy keeps both limits, as far as tables show it: of an acquisition in ten
        thousand nothing is to be seen. A lock that the first one never takes has no room for any.

        None where the policy does not take it, and for the locks that stand for one another.
        """
        base, use = self.uses[0], self.uses[index]
        if use is None or self.lock in AT_HAND:
            return None
        ratios = self.ratios(index)
        if ratios is None:
            return round(use.acquired - (base.acquired if base else 0.0), 3) <= 0
        taken, held = (round(ratio, 2) for ratio in ratios)
        return taken <= ACQUIRED_LIMIT and held <= HELD_LIMIT


LEAST = 0.0005
"""Locks taken less often an operation, under every policy, are left out."""


def rows(counted: Sequence[Counted]) -> list[Row]:
    """Every lock of every operation, in the guest's order."""
    found = []
    for at in counted[0].locks:
        for lock in (*LOCKS.values(), HAND):
            uses = tuple(x.locks.get(at, {}).get(lock) for x in counted)
            if any(use is not None and use.acquired >= LEAST for use in uses):
                found.append(Row(at, lock, uses))
    return found


@dataclass(frozen=True)
class Rate:
    """Operations a second of a scheme at a place, over the turns; `ratio` is to `none` by turn."""

    place: Place
    scheme: str
    rate: Spread
    ratio: Spread

    @property
    def met(self) -> bool:
        """Whether the median keeps the limit."""
        return self.ratio.median >= RATE_LIMIT


UNDONE = {"fault": "free", "fill": "drop"}
"""Steps that make a loop of one another."""


def rates(records: Iterable[Mapping[str, Any]]) -> list[Rate]:
    """The rates of loops (do and undo) by place and scheme, of runs with turns."""
    turns = _turns(records)
    found = []
    for (at, scheme), speeds in turns.items():
        base = turns[at, "none"]
        middle = spread(speeds)
        ratio = spread([x / b for x, b in zip(speeds, base, strict=False)])
        assert middle is not None and ratio is not None
        found.append(Rate(at, scheme, middle, ratio))
    return found


def middle_rates(seeds: Sequence[Sequence[Rate]]) -> list[Rate]:
    """The rates of several seeds as one: medians of medians, and the ends of all ranges.

    Each seed has the same places and schemes in the same order, as `rates` of one workload has.
    """
    return [
        Rate(
            same[0].place,
            same[0].scheme,
            _together([x.rate for x in same]),
            _together([x.ratio for x in same]),
        )
        for same in zip(*seeds, strict=True)
    ]


def _together(parts: Sequence[Spread]) -> Spread:
    return Spread(
        sum(x.n for x in parts),
        median(x.median for x in parts),
        min(x.low for x in parts),
        max(x.high for x in parts),
    )


def _turns(records: Iterable[Mapping[str, Any]]) -> dict[tuple[Place, str], list[float]]:
    """Operations a second, a turn each, by place and scheme.

    A turn's rounds follow each other in the records until the scheme changes.
    """
    sums: dict[tuple[Place, str], list[list[int]]] = {}
    last: tuple[str, str, int, str] | None = None
    loops = {undo: do for do, undo in UNDONE.items()}
    for record in records:
        if record["r"] != "scale":
            continue
        op = record["op"]
        at = Place(loops.get(op, op), record["kind"], int(record["workers"]))
        now = (at.op, at.kind, at.workers, record["scheme"])
        turns = sums.setdefault((at, record["scheme"]), [])
        if now != last:
            turns.append([0, 0])
        last = now
        turns[-1][0] += 0 if op in loops else int(record["n"])
        turns[-1][1] += int(record["ns"])
    return {key: [n * 1e9 / ns for n, ns in turns] for key, turns in sums.items()}
