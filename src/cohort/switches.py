"""Cohort's boot parameters, checked before a guest is booted with them.

The kernel prints an error and stays off when it does not understand one: the run would be a run of
the stock kernel under a wrong name.
"""

import re
from collections.abc import Sequence

from cohort.errors import UsageError

SCHEMES = ("off", "region", "cpb", "rightsize")
RIVALS = {"region", "cpb"}
ORDERS = {"cohort.region_order": range(5, 9), "cohort.cpb_order": range(1, 5)}
REFILLS = ("split", "remnants")
BOOLEANS = ("cohort.region_vmalloc",)
AREAS = ("cohort.pcpa", "cohort.sra")
COUNTS = {"cohort.pcpa_node": 0, "cohort.pcpa_min_order": 0, "cohort.pcpa_timer_ms": 1}
"""The least value of each."""
VNODE = ("cohort.vnode", "cohort.vnode_default")
PARAMETERS = ("cohort", *ORDERS, *BOOLEANS, "cohort.cpb_refill", *VNODE, *AREAS, *COUNTS)
AREA = re.compile(r"[1-9][0-9]*[KMG](@(0x[0-9a-fA-F]+|[0-9]+)[KMG]?)?")
SHARE = re.compile(r"([a-z][a-z0-9_-]{0,14}):(?:([1-9][0-9]*)[MG]|([1-9][0-9]?)%|(rest))")


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
        return _scheme_problem(word, value)
    if name in ORDERS:
        orders = ORDERS[name]
        known = value.isdecimal() and int(value) in orders
        return None if known else f"{word}: not an order from {orders[0]} to {orders[-1]}"
    if name in BOOLEANS:
        return None if value in ("0", "1") else f"{word}: not 0 or 1"
    if name in AREAS:
        return None if AREA.fullmatch(value) else f"{word}: not a size with K, M or G"
    if name in COUNTS:
        known = value.isdecimal() and int(value) >= COUNTS[name]
        return None if known else f"{word}: not a number from {COUNTS[name]}"
    if name == "cohort.vnode":
        return _layout_problem(word, value)
    if name == "cohort.vnode_default":
        return None if re.fullmatch(r"[a-z][a-z0-9_-]{0,14}", value) else f"{word}: no node's name"
    return None if value in REFILLS else f"{word}: not one of {_list(REFILLS)}"


def _scheme_problem(word: str, value: str) -> str | None:
    schemes = value.split(",")
    unknown = [scheme for scheme in schemes if scheme not in SCHEMES]
    if unknown:
        return f"{word}: no scheme {unknown[0]!r}, known: {_list(SCHEMES)}"
    if set(schemes) >= RIVALS:
        return f"{word}: {' and '.join(sorted(RIVALS))} exclude each other"
    if len(schemes) > 1 and "off" in schemes:
        return f"{word}: off stands alone"
    return None


def _layout_problem(word: str, value: str) -> str | None:
    shares = [SHARE.fullmatch(share) for share in value.split(",")]
    if not all(shares):
        return f"{word}: a node is NAME:SIZE, the size a number with M, G or %, or rest"
    names = [share[1] for share in shares if share]
    if len(set(names)) != len(names):
        return f"{word}: two nodes have one name"
    if sum(bool(share and share[4]) for share in shares) != 1:
        return f"{word}: exactly one node takes the rest"
    return None if 2 <= len(names) <= 8 else f"{word}: not 2 to 8 nodes"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
