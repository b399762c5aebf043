"""Cohort's boot parameters: what the kernel would refuse is refused before the guest boots."""

import pytest

from cohort import switches
from cohort.errors import UsageError


@pytest.mark.parametrize(
    "word",
    [
        *("quiet", "root=/dev/x", "cohortx=1", "xcohort.cpb_order=9"),
        *("cohort=off", "cohort=region", "cohort=cpb", "cohort=cpb,cpb"),
        *("cohort=rightsize", "cohort=region,rightsize", "cohort=rightsize,cpb"),
        *(f"cohort.region_order={order}" for order in (5, 6, 7, 8)),
        *(f"cohort.cpb_order={order}" for order in (1, 2, 3, 4)),
        *("cohort.region_vmalloc=0", "cohort.region_vmalloc=1", "profile=4"),
        *("cohort.cpb_refill=split", "cohort.cpb_refill=remnants"),
        *("cohort.vnode=trusted:512M,untrusted:rest", "cohort.vnode=a:1G,b-2:20%,c:rest"),
        "cohort.vnode_default=untrusted",
        *("cohort.pcpa=260M", "cohort.pcpa=1G@0x80000000", "cohort.pcpa=64M@1G", "cohort.sra=260M"),
        *("cohort.pcpa_node=0", "cohort.pcpa_min_order=4", "cohort.pcpa_timer_ms=500"),
    ],
)
def test_accepted(word: str) -> None:
    assert switches.problem(word) is None


@pytest.mark.parametrize(
    ("word", "what"),
    [
        ("cohort", "no scheme ''"),
        ("cohort=", "no scheme ''"),
        ("cohort=CPB", "no scheme 'CPB'"),
        ("cohort=cpb,pony", "no scheme 'pony'"),
        ("cohort=region,cpb", "cpb and region exclude each other"),
        ("cohort=cpb,region,cpb", "cpb and region exclude each other"),
        ("cohort=off,cpb", "off stands alone"),
        ("cohort.pony=1", "no such parameter"),
        ("cohort.region_order=4", "not an order from 5 to 8"),
        ("cohort.region_vmalloc=no", "not 0 or 1"),
        ("cohort.cpb_order=0", "not an order from 1 to 4"),
        ("cohort.cpb_order=5", "not an order from 1 to 4"),
        ("cohort.cpb_order=-1", "not an order from 1 to 4"),
        ("cohort.cpb_order=", "not an order from 1 to 4"),
        ("cohort.cpb_refill=merge", "not one of split, remnants"),
        ("cohort.cpb_refill", "not one of split, remnants"),
        ("cohort.vnode", "a node is NAME:SIZE"),
        ("cohort.vnode=a:0M,b:rest", "a node is NAME:SIZE"),
        ("cohort.vnode=a:1M,a:rest", "two nodes have one name"),
        ("cohort.vnode=a:1M,b:1M", "exactly one node takes the rest"),
        ("cohort.vnode=a:rest,b:rest", "exactly one node takes the rest"),
        ("cohort.vnode=a:rest", "not 2 to 8 nodes"),
        ("cohort.vnode_default=", "no node's name"),
        ("cohort.pcpa=", "not a size"),
        ("cohort.pcpa=0M", "not a size"),
        ("cohort.pcpa=260", "not a size"),
        ("cohort.sra=-1M", "not a size"),
        ("cohort.pcpa_timer_ms=0", "not a number from 1"),
        ("cohort.pcpa_min_order=four", "not a number from 0"),
    ],
)
def test_refused(word: str, what: str) -> None:
    problem = switches.problem(word)
    assert problem is not None
    assert problem.startswith(f"{word}: ")
    assert what in problem


def test_the_first_bad_word_is_named() -> None:
    with pytest.raises(UsageError, match=r"policy p: cohort.cpb_order=7: not an order"):
        switches.check(["cohort=cpb", "cohort.cpb_order=7", "cohort=pony"], "policy p")
    switches.check(["cohort=cpb", "quiet"], "policy p")
