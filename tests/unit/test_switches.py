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
        *(f"cohort.region_order={order}" for order in (5, 6, 7, 8, 9)),
        *(f"cohort.cpb_order={order}" for order in (1, 2, 3, 4)),
        *("cohort.region_vmalloc=0", "cohort.region_vmalloc=1", "profile=4"),
        *("cohort.heap_orders=9,4,0", "cohort.heap_orders=2,1,0"),
        *("cohort.cpb_refill=split", "cohort.cpb_refill=remnants"),
        *("cohort.vnode=trusted:512M,untrusted:rest", "cohort.vnode=a:1G,b-2:20%,c:rest"),
        "cohort.vnode_default=untrusted",
        *("cohort.pcpa=260M", "cohort.pcpa=1G@0x80000000", "cohort.pcpa=64M@1G", "cohort.sra=260M"),
        *("cohort.pcpa_below=4G", "cohort.pcpa_below=512M"),
        *("cohort.pcpa_node=0", "cohort.pcpa_min_order=4", "cohort.pcpa_timer_ms=500"),
        *("cohort.pcpa_min_order=8", "cohort.pcpa_timer_ms=60000", "cohort.sra=2048K"),
        "cohort.vnode=a:49%,b:50%,c:rest",
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
        ("cohort.region_order=4", "not a number from 5 to 9"),
        ("cohort.region_vmalloc=no", "not one of 0, 1"),
        *(
            (f"cohort.heap_orders={x}", "not three orders that fall")
            for x in ("", "9,4", "4,9,0", "9,4,1", "10,4,0", "9,4,0,", "9,0,0", "9 4 0")
        ),
        ("cohort.cpb_order=0", "not a number from 1 to 4"),
        (f"cohort.cpb_order={'1' * 5000}", "not a number from 1 to 4"),
        (f"cohort.pcpa={'1' * 5000}M", "not a size"),
        (f"cohort.vnode=a:{'1' * 5000}M,b:rest", "a node is NAME:SIZE"),
        ("cohort.cpb_order=5", "not a number from 1 to 4"),
        ("cohort.cpb_order=-1", "not a number from 1 to 4"),
        ("cohort.cpb_order=02", "not a number from 1 to 4"),
        ("cohort.cpb_order=", "not a number from 1 to 4"),
        ("cohort.cpb_refill=merge", "not one of split, remnants"),
        ("cohort.cpb_refill", "not one of split, remnants"),
        ("cohort.vnode", "a node is NAME:SIZE"),
        ("cohort.vnode=a:0M,b:rest", "a node is NAME:SIZE"),
        ("cohort.vnode=a:1M,a:rest", "two nodes have one name"),
        ("cohort.vnode=lend:64M,a:rest", "lend is no name of a node"),
        ("cohort.vnode=a:1M,b:1M", "exactly one node takes the rest"),
        ("cohort.vnode=a:rest,b:rest", "exactly one node takes the rest"),
        ("cohort.vnode=a:rest", "not 2 to 8 nodes"),
        ("cohort.vnode_default=", "no node's name"),
        ("cohort.pcpa=", "not a size"),
        ("cohort.pcpa=0M", "not a size"),
        ("cohort.pcpa=260", "not a size"),
        ("cohort.sra=-1M", "not a size"),
        ("cohort.vnode=a:99%,b:99%,c:rest", "198 % leave nothing for the rest, 99 % is the most"),
        ("cohort.vnode=a:100%,b:rest", "100 % leave nothing for the rest, 99 % is the most"),
        ("cohort.vnode=a:31M,b:rest", "a is smaller than 32M"),
        (f"cohort.vnode={'a' * 16}:1G,b:rest", "a node is NAME:SIZE"),
        ("cohort.pcpa=261M", "the size is not a multiple of a pageblock, 2M"),
        ("cohort.sra=1023K", "the size is not a multiple of a pageblock, 2M"),
        ("cohort.pcpa=64M@1M", "the address is not a multiple of a pageblock, 2M"),
        ("cohort.pcpa=64M@0x40000001", "the address is not a multiple of a pageblock, 2M"),
        ("cohort.pcpa=64M@0x40M", "not a size"),
        ("cohort.pcpa_below=4096", "not an address with K, M or G"),
        ("cohort.pcpa_below=64M@1G", "not an address with K, M or G"),
        ("cohort.pcpa_timer_ms=0", "not a number from 1 to 60000"),
        ("cohort.pcpa_timer_ms=60001", "not a number from 1 to 60000"),
        ("cohort.pcpa_min_order=four", "not a number from 0 to 8"),
        ("cohort.pcpa_min_order=9", "not a number from 0 to 8"),
        ("cohort.pcpa_node=64", "not a number from 0 to 63"),
    ],
)
def test_refused(word: str, what: str) -> None:
    problem = switches.problem(word)
    assert problem is not None
    assert problem.startswith(f"{word}: ")
    assert what in problem


@pytest.mark.parametrize(
    ("words", "which", "what"),
    [
        (["quiet", "cohort.pcpa=260M", "cohort.pcpa=192M"], 2, "given twice, after cohort.pcpa="),
        (
            ["cohort.pcpa_contig=260M", "cohort.pcpa=64M", "cohort.pcpa_contig=64M"],
            2,
            "given twice, after cohort.pcpa_contig=260M",
        ),
        (
            ["cohort.pcpa_below=512M", "cohort.pcpa=64M@1024M"],
            1,
            "cohort.pcpa=64M@1024M: not below cohort.pcpa_below=512M",
        ),
        (["cohort.pcpa_contig=64M", "cohort.pcpa_below=32M"], 0, "not below"),
        (
            ["cohort.vnode_default=c", "cohort.vnode=a:1G,b:rest"],
            0,
            "cohort.vnode_default=c: none of the nodes a, b",
        ),
    ],
)
def test_refused_beside_others(words: list[str], which: int, what: str) -> None:
    assert [switches.problem(word) for word in words] == [None] * len(words)
    clash = switches.conflict(words)
    assert clash is not None
    assert clash[0] == which and what in clash[1]
    with pytest.raises(UsageError, match=f"policy p: {words[which]}: "):
        switches.check(words, "policy p")


def test_the_last_word_counts() -> None:
    words = ["cohort=region,rightsize", "quiet", "cohort=region", "cohort.vnode_default=b"]
    assert switches.conflict(words) is None
    assert switches.conflict(["cohort.pcpa=64M@448M", "cohort.pcpa_below=512M"]) is None
    assert switches.values(words) == {"cohort": "region", "cohort.vnode_default": "b"}


@pytest.mark.parametrize(
    ("words", "memory_mb", "cpus", "what"),
    [
        ([], 64, 1, None),
        (["quiet", "cohort=region"], 64, 1, None),
        (["cohort.pcpa=260M"], 2048, 2, None),
        (["cohort.pcpa=260M"], 260, 2, "cohort.pcpa=260M: larger than the machine's 260M"),
        (["cohort.sra=1G"], 512, 2, "larger than the machine's 512M"),
        (["cma=2900M", "quiet"], 3072, 2, None),
        (["cma=1G", "cma=3072M", "quiet"], 3072, 2, "cma=3072M: larger than the machine's 3072M"),
        (["cma=4G@0-8G"], 3072, 2, "cma=4G: larger than the machine's 3072M"),
        (["cohort.pcpa_node=0"], 512, 2, None),
        (["cohort.pcpa_node=1"], 512, 2, "the machine's last node is 0"),
        (["cohort.pcpa_node=1", "cohort.vnode=a:1G,b:rest"], 2048, 2, None),
        (["cohort.vnode_default=a"], 2048, 2, "a node's name without cohort.vnode="),
        (["cohort.vnode=a:512M,b:rest"], 2048, 2, None),
        (["cohort.vnode=a:512M,b:rest"], 544, 2, None),
        (["cohort.vnode=a:512M,b:rest"], 543, 2, "of 543M less than 32M is left for the rest"),
        (["cohort.vnode=a:512M,b:rest"], 2048, 1, "2 nodes, and the machine has 1 CPUs"),
        (["cohort.vnode=a:5%,b:rest"], 600, 2, "a of 600M is smaller than 32M"),
        (["cohort.vnode=a:99%,b:rest"], 1024, 2, "less than 32M is left"),
    ],
)
def test_what_a_machine_can_have(
    words: list[str], memory_mb: int, cpus: int, what: str | None
) -> None:
    found = switches.misfit(words, memory_mb, cpus)
    assert (found is None) == (what is None)
    assert what is None or (found is not None and what in found)


def test_sizes_and_addresses() -> None:
    assert switches.area("260M") == (260 << 20, None)
    assert switches.area("1G@0x80000000") == (1 << 30, 1 << 31)
    assert switches.area("64M@2G") == switches.area("65536K@2147483648") == (1 << 26, 1 << 31)
    assert switches.area("") is None


def test_the_first_bad_word_is_named() -> None:
    with pytest.raises(UsageError, match=r"policy p: cohort.cpb_order=7: not a number"):
        switches.check(["cohort=cpb", "cohort.cpb_order=7", "cohort=pony"], "policy p")
    switches.check(["cohort=cpb", "quiet"], "policy p")


@pytest.mark.parametrize(
    ("word", "there"),
    [
        ("cohort.pcpa=260M", "cohort.pcpa=288M"),
        ("cohort.sra=1G", "cohort.sra=1024M"),
        ("cohort.pcpa_contig=2M", "cohort.pcpa_contig=32M"),
        ("cohort.pcpa=260M@0x80000000", "cohort.pcpa=288M@0x80000000"),
        ("cohort.pcpa_min_order=4", "cohort.pcpa_min_order=4"),
        ("cohort.vnode=a:1G,b:rest", "cohort.vnode=a:1G,b:rest"),
        ("cohort.pcpa=much", "cohort.pcpa=much"),
    ],
)
def test_an_area_is_of_whole_pageblocks(word: str, there: str) -> None:
    assert switches.whole(word, 16384) == there
    assert switches.whole(word, 4096) == word
