"""Sizes of reclaim and orders of allocations, from /sys/kernel/mm/cohort/reclaim."""

import numpy as np
import pandas as pd

from cohort.results.catalogue import METRICS, ORDERS
from cohort.results.experiments import Number
from cohort.results.frames import all_orders

SIZE_GROUP = "Sizes of reclaim and allocation"
RECLAIMS = ("lru_kswapd", "lru_other", "slab_kswapd", "slab_other")
"""What the paper counts as one reclaim: a batch from the LRU, a call of a shrinker."""

SIZE_POWERS = tuple(range(15))
"""The powers of two by which sizes are sorted; the last has all that is larger."""

_LARGE = 5  # the paper's bound: 2^5 pages
_NAMES = tuple(m.name for m in METRICS if m.group == SIZE_GROUP)


def size_metrics(sizes: pd.DataFrame) -> dict[str, Number]:
    """Shares of all allocations by order, of all reclaims that freed something by size.

    `sizes` has a row a histogram: `kind`, and the list `counts`. None where that was not measured.
    """
    values: dict[str, Number] = dict.fromkeys(_NAMES)
    if not len(sizes):
        return values
    counts = dict(zip(sizes["kind"], sizes["counts"], strict=True))
    orders = all_orders(np.array(counts["alloc_orders"], dtype=float))
    # The first bar of a histogram of sizes is reclaims that freed nothing.
    freed = np.sum([counts[kind][1:] for kind in RECLAIMS], axis=0, dtype=float)
    if orders.sum():
        share = orders / orders.sum()
        values |= {f"alloc_share_order{x}": float(share[x]) for x in (0, *ORDERS)}
    if freed.sum():
        share = freed / freed.sum()
        values |= {f"reclaim_share_order{x}": float(share[x]) for x in SIZE_POWERS}
        values["reclaim_share_over32"] = float(share[_LARGE:].sum())
    return values
