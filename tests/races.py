"""What a kernel with KCSAN says of data races on its console."""

import re
from collections import Counter

from cohort.vm import kunit

_TITLE = re.compile(r"BUG: KCSAN: (?:data-race|assert: race) in (.+)$")
_OURS = re.compile(r"\b(?:__)?cohort_")


def told(console: str) -> Counter[str]:
    """Where, as `one / other` function or the one that is known, and how often that was told."""
    lines = (kunit.STAMP.sub("", line).strip() for line in console.replace("\r", "").splitlines())
    return Counter(found[1] for line in lines if (found := _TITLE.search(line)))


def ours(where: str) -> bool:
    """Is one of the functions Cohort's?"""
    return _OURS.search(where) is not None


def report(found: Counter[str]) -> str:
    """A line a place, what was told most at the top."""
    return "\n".join(f"{count:6} {where}" for where, count in found.most_common())
