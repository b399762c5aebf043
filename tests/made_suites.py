"""A suite of three cases, a directory that is a suite, and what a guest says of a case."""

from typing import Any

from cohort import paths
from cohort.suites.schema import Suite

TWO = paths.ROOT / "tests" / "suites" / "two"
SUITE = Suite(name="s", title="t", case={"a": "./a", "b": "./b", "c": "./c"}, skip=[4])


def begin(name: str) -> dict[str, Any]:
    """The record of a case that begins."""
    return {"r": "case", "t": 1, "name": name}


def end(name: str, status: int) -> dict[str, Any]:
    """The record of a case that ends, after a second and a half in which it said nothing."""
    return {"r": "result", "t": 2, "name": name, "status": status, "lines": 0, "ns": 1_500_000_000}
