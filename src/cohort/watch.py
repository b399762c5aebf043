"""A machine's blocks, area, nodes, buffers, kills and refaults from moment to moment."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from cohort import sysfs

HEAP_ORDERS = (8, 4, 0)
"""The orders that the dma-buf system heap takes pieces of, the largest first."""


def _size(kb: int) -> str:
    """A size as people say it."""
    return f"{kb >> 10} MiB" if kb >= 1024 else f"{kb} KiB"


def _mib(kb: int) -> str:
    """A size in a table whose sizes are all in MiB."""
    return f"{kb / 1024:.1f}"


_BLOCKS = "_blocks"


@dataclass(frozen=True)
class Owner:
    """What has blocks: how many, their size together, and what of it is free; KiB."""

    name: str
    blocks: int
    kb: int
    parked_kb: int


NODE_SIZES = ("size", "free", "parked", "anon", "file", "lent")


@dataclass(frozen=True)
class Node:
    """A virtual node: its NODE_SIZES in KiB, and the kills there since the boot."""

    name: str
    kb: dict[str, int]
    kills: int


@dataclass(frozen=True)
class Reading:
    """One moment: `t` in seconds of this host. Counts are since the boot.

    `area` is what the page-cache-preferred area holds, KiB by part; empty without one.
    `free` and `owned` are free pieces by order, without and with an owner, of pages of `page_kb`.
    """

    t: float
    page_kb: int
    owners: tuple[Owner, ...]
    area: dict[str, int]
    nodes: tuple[Node, ...]
    free: tuple[int, ...]
    owned: tuple[int, ...]
    kills: int
    refaults_anon: int
    refaults_file: int

    @property
    def largest_kb(self) -> int:
        """The largest single free piece without an owner, KiB; 0 without any."""
        orders = [order for order, pieces in enumerate(self.free) if pieces]
        return self.page_kb << orders[-1] if orders else 0

    def obtainable_kb(self, order: int, owned: bool = False) -> int:
        """The largest buffer of pieces of `order` that is there without reclaim, KiB.

        `owned` takes the free pieces of owned blocks, too.
        """
        lists = (self.free, self.owned) if owned else (self.free,)
        return sum(self.page_kb * n << i for x in lists for i, n in enumerate(x) if i >= order)

    def as_object(self) -> dict[str, Any]:
        """Everything, for a program to read."""
        buffers = {
            str(order): {
                "free_kb": self.obtainable_kb(order),
                "with_parked_kb": self.obtainable_kb(order, owned=True),
            }
            for order in HEAP_ORDERS
        }
        return {**asdict(self), "largest_kb": self.largest_kb, "obtainable": buffers}


def read(root: Path, t: float) -> Reading:
    """What the machine below `root`, which has Cohort, says. OSError as files have it; HostError
    without the kernel's counters or its free blocks."""
    vm = sysfs.counters(root)
    top = root / sysfs.SYSFS
    chunks = top / "owned_free"
    page_kb = sysfs.page_kb(root)
    return Reading(
        t=t,
        page_kb=page_kb,
        owners=(*_regions(top / "region", page_kb), *_sets(top / "cpb", page_kb)),
        area=_area(top / "pcpa"),
        nodes=tuple(map(_node, sysfs.nodes(top / "vnode"))),
        free=sysfs.free_pieces(root),
        owned=tuple(sysfs.counts(chunks)) if chunks.is_file() else (),
        kills=vm.get("oom_kill", 0),
        refaults_anon=vm.get("workingset_refault_anon", 0),
        refaults_file=vm.get("workingset_refault_file", 0),
    )


def watch(
    take: Callable[[], Reading], every_s: float, times: int | None, as_json: bool = False
) -> None:
    """Show readings `every_s` seconds apart, `times` of them or until Ctrl-C.

    On a terminal they are one live screen, elsewhere (and on one that can only print) one after the
    other, as JSON a line each.
    """
    console = Console()
    taken = _takes(take, every_s, times)
    if as_json:
        for now in taken:
            print(json.dumps(now.as_object()), flush=True)
        return
    before: Reading | None = None
    if not console.is_terminal or console.is_dumb_terminal:
        for now in taken:
            console.print(screen(now, before))
            before = now
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for now in taken:
            live.update(screen(now, before), refresh=True)
            before = now


def screen(now: Reading, before: Reading | None) -> Group:
    """A reading as text; rates need the one `before`."""
    own = [_owner_table(now)]
    if now.area:
        own.append(_area_table(now))
    if now.nodes:
        own.append(_node_table(now))
    return Group(*own, _buffer_table(now), _count_table(now, before))


def _takes(take: Callable[[], Reading], every_s: float, times: int | None) -> Iterator[Reading]:
    for number in count(1):
        yield take()
        if number == times:
            return
        time.sleep(every_s)


def _regions(top: Path, page_kb: int) -> list[Owner]:
    if not (top / "order").is_file():
        return []
    kb = page_kb << sysfs.order(top / "order")
    names = sorted(path.name.removesuffix(_BLOCKS) for path in top.glob(f"*{_BLOCKS}"))
    found = []
    for name in names:
        blocks = sysfs.number(top / f"{name}{_BLOCKS}")
        parked = sysfs.number(top / f"{name}_parked_kb")
        found.append(Owner(name, blocks, blocks * kb, parked))
    return sorted((x for x in found if x.blocks), key=lambda x: -x.blocks)


def _sets(top: Path, page_kb: int) -> list[Owner]:
    """Those of processes and of CPUs, while the scheme has any."""
    if not (top / "process_sets").is_file():
        return []
    kb = page_kb << sysfs.order(top / "order")
    pairs = (("process sets", "process_sets", "reserved_kb"), ("CPU sets", "cpu_sets", "cpu_kb"))
    found = []
    for name, sets, parked in pairs:
        blocks = sysfs.number(top / sets)
        found.append(Owner(name, blocks, blocks * kb, sysfs.number(top / parked)))
    return [owner for owner in found if owner.blocks]


def _area(top: Path) -> dict[str, int]:
    if not sysfs.has_area(top):
        return {}
    return {part: sysfs.number(top / f"{part}_kb") for part in sysfs.AREA_PARTS}


def _node(directory: Path) -> Node:
    kb = {size: sysfs.number(directory / f"{size}_kb") for size in NODE_SIZES}
    return Node(directory.name, kb, sysfs.number(directory / "oom_kills"))


def _new_table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _owner_table(now: Reading) -> Table:
    table = _new_table("owner", "blocks", "MiB", "of it free")
    for owner in now.owners:
        sizes = (_mib(kb) for kb in (owner.kb, owner.parked_kb))
        table.add_row(owner.name, str(owner.blocks), *sizes)
    if not now.owners:
        table.add_row("none has any", "0", "0.0", "0.0")
    return table


def _area_table(now: Reading) -> Table:
    table = _new_table("area, MiB", *now.area)
    table.add_row("holds", *(_mib(kb) for kb in now.area.values()))
    return table


def _node_table(now: Reading) -> Table:
    table = _new_table("node, MiB", *NODE_SIZES, "killed")
    for node in now.nodes:
        table.add_row(node.name, *(_mib(x) for x in node.kb.values()), f"{node.kills:,}")
    return table


def _buffer_table(now: Reading) -> Table:
    table = _new_table("largest buffer without reclaim", "MiB", "with parked")
    for order in HEAP_ORDERS:
        size = _size(now.page_kb << order)
        both = (now.obtainable_kb(order), now.obtainable_kb(order, owned=True))
        table.add_row(f"in pieces of {size} and more", *(_mib(kb) for kb in both))
    table.add_row("in one piece", _mib(now.largest_kb), "")
    return table


def _count_table(now: Reading, before: Reading | None) -> Table:
    table = _new_table("since the boot", "", "a second")
    for title, name in (
        ("killed by the kernel", "kills"),
        ("refaulted, anonymous pages", "refaults_anon"),
        ("refaulted, file pages", "refaults_file"),
    ):
        total = getattr(now, name)
        rate = "-"
        # A count that fell is of another boot, whose look is a first one.
        if before is not None and now.t > before.t and total >= getattr(before, name):
            rate = f"{(total - getattr(before, name)) / (now.t - before.t):.1f}"
        table.add_row(title, f"{total:,}", rate)
    return table
