"""Several seeds of one metric: the middle, how far apart, and whether a difference is one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import comb

import numpy as np

LEVEL = 0.05
"""A difference is marked when chance alone gives one as large less often than this."""

MIN_PAIRS = 6
"""With fewer pairs even the clearest difference has p = 2 / 2**n > LEVEL."""

MAX_PAIRS = 16
"""Above this the test would try more than 65,536 patterns; the first pairs are enough then."""


@dataclass(frozen=True)
class Spread:
    """The values of one metric over `n` runs that have it, beside `absent` that do not."""

    n: int
    median: float
    low: float
    high: float
    absent: int = 0

    @property
    def some(self) -> str:
        """Of how many seeds it is, as "(1 of 3 seeds)"; empty where every run has the metric."""
        return f"({self.n} of {self.n + self.absent} seeds)" if self.absent else ""

    @property
    def share(self) -> float:
        """The range as a share of the median, which is not 0."""
        return (self.high - self.low) / abs(self.median)

    def apart(self, other: "Spread") -> bool:
        """Whether no value of one lies within the range of the other; needs two runs of each."""
        return min(self.n, other.n) > 1 and (self.high < other.low or other.high < self.low)


def spread(values: Sequence[float | None]) -> Spread | None:
    """Median and range of the values that are there, of a run each; None if none is."""
    known = [float(x) for x in values if x is not None]
    if not known:
        return None
    absent = len(values) - len(known)
    return Spread(len(known), float(np.median(known)), min(known), max(known), absent)


def chance_apart(one: int, other: int) -> float:
    """How often the ranges of so many values and so many others do not touch by chance, all being
    of one distribution without ties: of the orders they may come in, all as likely, in two the ones
    are all below the others or all above. That is 2 n! m! / (n + m)!."""
    return 2 / comb(one + other, one)


def sign_flip_p(differences: Sequence[float]) -> float:
    """p of the exact two-sided sign-flip test that paired differences have a mean of zero.

    Runs of the same seed see the same launches, so they are pairs; if a policy changes nothing,
    each difference could as well have the other sign. p is the share of all sign patterns whose
    sum is at least as far from zero. Assumes no distribution. No pairs: 1.
    """
    pairs = np.array(differences[:MAX_PAIRS], dtype=float)
    if not len(pairs):
        return 1.0
    signs = np.array(list(product((-1.0, 1.0), repeat=len(pairs))))
    sums = np.abs(signs @ pairs)
    # A hair below, so that rounding does not lose the observed pattern itself.
    return float(np.mean(sums >= abs(pairs.sum()) * (1 - 1e-12)))
