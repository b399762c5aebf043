"""Spread over seeds and the test behind the star."""

from itertools import combinations
from math import factorial

import pytest

from cohort.results.spread import LEVEL, MIN_PAIRS, Spread, chance_apart, sign_flip_p, spread


def test_spread_leaves_out_what_is_missing() -> None:
    found = spread([3, None, 1, 2, 9])
    assert found == Spread(n=4, median=2.5, low=1, high=9, absent=1)
    assert found.some == "(4 of 5 seeds)"
    assert Spread(4, 2.5, 1, 9).some == ""
    assert spread([None]) is None
    assert spread([]) is None


def test_ranges_are_apart_only_if_they_do_not_touch() -> None:
    low, high = Spread(3, 1, 0, 2), Spread(3, 4, 3, 5)
    assert low.apart(high) and high.apart(low)
    assert not low.apart(Spread(3, 2, 2, 3))
    assert not low.apart(Spread(1, 9, 9, 9)), "one run has no range"


@pytest.mark.parametrize(
    ("differences", "p"),
    [([], 1), ([5], 1), ([0, 0], 1), ([1, 1, 1], 2 / 8), ([1, -1], 1), ([3, 2, -1], 4 / 8)],
)
def test_sign_flip_counts_the_patterns_at_least_as_far(differences: list[float], p: float) -> None:
    assert sign_flip_p(differences) == pytest.approx(p)


def test_min_pairs_is_the_first_number_that_can_be_significant() -> None:
    assert sign_flip_p([1.0] * MIN_PAIRS) < LEVEL <= sign_flip_p([1.0] * (MIN_PAIRS - 1))


def test_many_pairs_do_not_take_all_memory() -> None:
    assert sign_flip_p([1.0] * 100) < 1e-4


@pytest.mark.parametrize(("one", "other"), [(2, 2), (3, 3), (2, 3), (4, 4), (5, 2)])
def test_ranges_come_apart_by_chance_as_often_as_orders_have_them_apart(
    one: int, other: int
) -> None:
    orders = list(combinations(range(one + other), one))
    rest = [set(range(one + other)) - set(order) for order in orders]
    apart = [
        Spread(one, 0, min(a), max(a)).apart(Spread(other, 0, min(b), max(b)))
        for a, b in zip(orders, rest, strict=True)
    ]
    assert chance_apart(one, other) == pytest.approx(apart.count(True) / len(orders))


@pytest.mark.parametrize("seeds", [2, 3, 6])
def test_the_chance_is_that_of_the_formula(seeds: int) -> None:
    formula = 2 * factorial(seeds) ** 2 / factorial(2 * seeds)
    assert chance_apart(seeds, seeds) == pytest.approx(formula)
