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
        if what := problem(word):
            raise UsageError(f"{where}: {what}")


def problem(word: str) -> str | None:
    """Why the kernel would refuse `word`; None if it would not, or the word is not Cohort's."""
    name, _, value = word.partition("=")
    if name != "cohort" and not name.startswith("cohort."):
        return None
    if name not in PARAMETERS:
        return f"{word}: no such parameter, known: {_list(PARAMETERS)}"
    if name == "cohort":
        unknown = [scheme for scheme in value.split(",") if scheme not in SCHEMES]
        return f"{word}: no scheme {unknown[0]!r}, known: {_list(SCHEMES)}" if unknown else None
    if not value.isdecimal() or int(value) not in ORDERS:
        return f"{word}: not an order from {ORDERS[0]} to {ORDERS[-1]}"
    return None


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
