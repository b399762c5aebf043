"""A run's records as data frames: one frame a kind of record, one row a record."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from cohort.errors import CohortError
from cohort.results.catalogue import ORDERS

PAGE = 4096
MIB = 1 << 20
PIECE_PAGES = {"o8": 256, "o4": 16, "o0": 1}
"""Pages of one piece of a buffer, by the record's key."""

_COLUMNS: dict[str, tuple[str, ...]] = {
    "fault": ("when", "pages", "ns"),
    "launch": ("n", "app", "kind", "ns"),
    "buffer": ("n", "bytes", "ok", "ns", "zero_ns", "o8", "o4", "o0", "other"),
    "kill": ("n", "app", "class", "by"),
    "sample": ("t", "n", "buddy", "vm", "alive", "cached"),
    "map": ("n", "cell_pages", "cells"),
}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Frames:
    """The records of one run.

    `vm` has one row per sample and one column per name of /proc/vmstat, as the kernel spells them.
    `free_blocks` has one row per sample and one column per order 0..10: free blocks of all zones.
    """

    launches: pd.DataFrame
    buffers: pd.DataFrame
    kills: pd.DataFrame
    samples: pd.DataFrame
    maps: pd.DataFrame
    faults: pd.DataFrame
    vm: pd.DataFrame
    free_blocks: Floats

    @property
    def last_launch(self) -> int:
        """The number of launches the run got through."""
        return int(self.launches["n"].max()) if len(self.launches) else 0

    @property
    def half(self) -> int:
        """The last launch of the first half: the second half has `n` greater than this."""
        return self.last_launch // 2


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
        self.free: list[Floats] = []

    def add(self, record: Mapping[str, Any]) -> None:
        """Take one record; raises as Python does when it is not as it should be."""
        kind = record["r"]
        if kind == "hello":
            self.vm_names = list(record["vm_names"])
        elif kind in _COLUMNS:
            self.rows[kind].append([record[column] for column in _COLUMNS[kind]])
        if kind == "sample":
            self.free.append(_free_blocks(record))
            if len(record["vm"]) != len(self.vm_names):
                raise ValueError(
                    f"{len(record['vm'])} vmstat values for {len(self.vm_names)} names"
                )

    def frames(self) -> Frames:
        """What was taken so far."""
        frames = {
            kind: pd.DataFrame(self.rows[kind], columns=list(columns))
            for kind, columns in _COLUMNS.items()
        }
        return Frames(
            launches=frames["launch"],
            buffers=frames["buffer"],
            kills=frames["kill"],
            samples=frames["sample"],
            maps=frames["map"],
            faults=frames["fault"],
            vm=pd.DataFrame(frames["sample"]["vm"].tolist(), columns=self.vm_names),
            free_blocks=np.array(self.free, dtype=float).reshape(-1, len(ORDERS) + 1),
        )


def unusable_index(free_blocks: Floats, order: int) -> Floats:
    """UI(order) of each row: the share of free memory that cannot serve a request of that order.

    A row without any free page counts as 1, as in the kernel's extfrag/unusable_index.
    """
    pages = free_blocks * np.exp2(np.arange(free_blocks.shape[1]))
    total = pages.sum(axis=1)
    usable = pages[:, order:].sum(axis=1)
    share = np.divide(usable, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(1.0 - share)


def find_us(buffers: pd.DataFrame) -> pd.Series:
    """Per buffer, the time of its allocation less the zeroing, in µs; empty where not known."""
    zero = pd.to_numeric(buffers["zero_ns"])
    return (pd.to_numeric(buffers["ns"]) - zero) / 1000


def _free_blocks(record: Mapping[str, Any]) -> Floats:
    """Free blocks by order, summed over the zones of a sample's `buddy`."""
    zones = np.array([zone[1:] for zone in record["buddy"]], dtype=float)
    if zones.ndim != 2 or zones.shape[1] != len(ORDERS) + 1:
        raise ValueError(f"buddy does not have {len(ORDERS) + 1} orders a zone")
    return np.asarray(zones.sum(axis=0))
