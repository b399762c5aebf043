"""Cohort's boot parameters, checked before a guest is booted with them.

The kernel prints an error and stays off when it does not understand one: the run would be a run of
the stock kernel under a wrong name.
"""

from collections.abc import Sequence

from cohort.errors import UsageError

SCHEMES = ("off", "region")
ORDERS = range(5, 9)  # of cohort.region_order
PARAMETERS = ("cohort", "cohort.region_order")


def check(words: Sequence[str], where: str) -> None:
    """UsageError, beginning with `where`, for the first word the kernel would refuse."""
    for word in words:
        name, _, value = word.partition("=")
        if name != "cohort" and not name.startswith("cohort."):
            continue
        if name not in PARAMETERS:
            raise UsageError(f"{where}: {word}: no such parameter, known: {_list(PARAMETERS)}")
        if name == "cohort":
            _check_schemes(word, value, where)
        elif not value.isdecimal() or int(value) not in ORDERS:
            raise UsageError(f"{where}: {word}: not an order from {ORDERS[0]} to {ORDERS[-1]}")


def _check_schemes(word: str, value: str, where: str) -> None:
    for scheme in value.split(","):
        if scheme not in SCHEMES:
            raise UsageError(f"{where}: {word}: no scheme {scheme!r}, known: {_list(SCHEMES)}")


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
