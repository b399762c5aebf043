"""Cohort's boot parameters, checked before anything is built for them.

The kernel prints an error and stays off when it refuses one: the run would be a run of the stock
kernel under a wrong name. The bounds are the kernel's. What only a booted kernel can tell,
`cohort.vm.switched` hears from it.
"""

import re
from collections.abc import Iterable, Sequence

from cohort import named
from cohort.errors import UsageError
from cohort.units import KIB, MIB, PAGE

UNITS = {"": 1, "K": KIB, "M": MIB, "G": 1 << 30}
PAGEBLOCK = 2 * MIB
"""A huge page, with pages of 4 KiB: areas begin and end at a multiple."""
PAGEBLOCK_16K = 32 * MIB
"""The same with pages of 16 KiB."""
NODE_LEAST = 32 * MIB
"""No virtual memory node is smaller."""

SCHEMES = ("off", "region", "cpb", "rightsize")
RIVALS = {"region", "cpb"}
NUMBERS = {
    "cohort.region_order": (5, 9),
    "cohort.cpb_order": (1, 4),
    "cohort.pcpa_min_order": (0, 8),
    "cohort.pcpa_timer_ms": (1, 60_000),
    "cohort.pcpa_node": (0, 63),
}
"""The least and the greatest value of each."""
CHOICES = {"cohort.region_vmalloc": ("0", "1"), "cohort.cpb_refill": ("split", "remnants")}
AREAS = ("cohort.pcpa", "cohort.pcpa_contig", "cohort.sra")
STOCK_AREA = "cma"
ONCE = AREAS[:2]
"""Of these the kernel refuses a second one; of all others it takes the last."""
AREA_FILES = {
    "cohort.pcpa": "/sys/kernel/mm/cohort/pcpa/size",
    "cohort.pcpa_contig": "/sys/kernel/mm/cohort/pcpa/contig_size",
}
"""The areas that may be made at run time, and by which file."""
HEAP_AREAS = {"pcpa": AREAS[:1], "pcpa-contig": AREAS[:2], "sra": AREAS[2:]}
"""The heaps whose memory is an area's, and which of the areas."""
BELOW = "cohort.pcpa_below"
LAYOUT, DEFAULT_NODE = "cohort.vnode", "cohort.vnode_default"
HEAP_ORDERS = "cohort.heap_orders"
PARAMETERS = ("cohort", *NUMBERS, *CHOICES, HEAP_ORDERS, LAYOUT, DEFAULT_NODE, *AREAS, BELOW)

EACH = 'name each by itself: --append ONE --append OTHER, or cmdline = ["ONE", "OTHER"]'
"""What to do with several in one string."""

_WHOLE = "[1-9][0-9]{0,18}"
"""Of more digits no number is that the kernel reads."""
_AREA = re.compile(rf"({_WHOLE})([KMG])(?:@(?:(0x[0-9a-fA-F]{{1,16}})|([0-9]{{1,19}})([KMG]?)))?")
_NODE = re.compile(r"[a-z][a-z0-9_-]{0,14}")
_SHARE = re.compile(rf"({_NODE.pattern}):(?:({_WHOLE})([MG%])|rest)")
_FILES = ("default", "layout", "lend")
"""Files beside the directories of the nodes: their names are taken."""
_LAYOUT_CHARS = 255


def check(words: Sequence[str], where: str) -> None:
    """UsageError, beginning with `where`, for the first word the kernel would refuse, or that is
    not one."""
    for word in words:
        if what := malformed(word):
            raise UsageError(f"{where}: {what}", EACH)
        if what := problem(word):
            raise UsageError(*named.with_hint(f"{where}: {what}"))
    if clash := conflict(words):
        raise UsageError(f"{where}: {clash[1]}")


def check_machine(
    words: Sequence[str], memory_mb: int, cpus: int, where: str, more_cpus: str
) -> None:
    """UsageError, beginning with `where`, if such a machine cannot have what `words` ask for. Where
    it has not CPUs enough the hint is `more_cpus` and their number."""
    if what := misfit(words, memory_mb, cpus):
        wanted = len(nodes(words))
        hint = f"{more_cpus} {wanted}" if wanted > cpus else "more --memory, or less in that word"
        raise UsageError(f"{where}: {what}", None if what == _no_node(values(words)) else hint)


def values(words: Iterable[str]) -> dict[str, str]:
    """Cohort's parameters and their values; of one that is given twice the last counts."""
    pairs = (word.partition("=") for word in words if is_cohorts(word))
    return {name: value for name, _, value in pairs}


def is_cohorts(word: str) -> bool:
    """Is this boot parameter Cohort's, known or not?"""
    name = word.partition("=")[0]
    return name == "cohort" or name.startswith("cohort.")


def area(value: str) -> tuple[int, int | None] | None:
    """Size and address of an area in bytes, the address None if any will do.

    None if `value` is not SIZE[@BASE].
    """
    found = _AREA.fullmatch(value)
    if found is None:
        return None
    number, unit, hexadecimal, decimal, base_unit = found.groups()
    base = int(hexadecimal, 16) if hexadecimal else None
    if decimal:
        base = int(decimal) * UNITS[base_unit]
    return int(number) * UNITS[unit], base


def reserved_mb(words: Iterable[str]) -> int:
    """MiB that no process ever has: of the other areas' pages most can be had while nothing asks
    for them."""
    given = values(words)
    found = [area(given.get(name, "")) for name in AREAS[1:]]
    return sum(size[0] for size in found if size is not None) // MIB


def whole(word: str, page_size: int) -> str:
    """`word` for a machine with pages of so many bytes: an area is of whole pageblocks there, as
    stock makes cma= of them."""
    name, _, value = word.partition("=")
    if page_size == PAGE or name not in AREAS or (found := area(value)) is None:
        return word
    mib = -(-found[0] // PAGEBLOCK_16K) * PAGEBLOCK_16K // MIB
    return f"{name}={mib}M{value[len(value.partition('@')[0]) :]}"


def malformed(word: str) -> str | None:
    """Why this is not one word on a command line; None if it is."""
    if word and re.search(r"\s", word) is None:
        return None
    return f"{word!r}: must be one boot parameter a string, without blanks"


def problem(word: str) -> str | None:
    """Why the kernel would refuse `word`; None if it would not, or the word is not Cohort's."""
    name, _, value = word.partition("=")
    if not is_cohorts(word):
        return None
    if name not in PARAMETERS:
        return f"{word}: no such parameter; {named.hint(name, PARAMETERS)}"
    if name == "cohort":
        return _scheme_problem(word, value)
    if name in NUMBERS:
        least, most = NUMBERS[name]
        # Without a 0 in front, as the kernel shows it again: the two are compared.
        known = re.fullmatch(f"0|{_WHOLE}", value) and least <= int(value) <= most
        return None if known else f"{word}: not a number from {least} to {most}"
    if name in CHOICES:
        choices = CHOICES[name]
        return None if value in choices else f"{word}: not one of {_list(choices)}"
    if name in AREAS:
        return _area_problem(word, value)
    if name == BELOW:
        found = area(value)
        good = found is not None and found[1] is None
        return None if good else f"{word}: not an address with K, M or G"
    if name == HEAP_ORDERS:
        fine = re.fullmatch("[1-9],[1-9],0", value) and value[0] > value[2]
        return None if fine else f"{word}: not three orders that fall from 9 at most to 0"
    if name == LAYOUT:
        return _layout_problem(word, value)
    return None if _NODE.fullmatch(value) else f"{word}: no node's name"


def conflict(words: Sequence[str]) -> tuple[int, str] | None:
    """Which of `words`, each good by itself, the kernel would refuse beside the others, and why."""
    return _twice(words) or _beyond(words) or _no_default(words)


def _twice(words: Sequence[str]) -> tuple[int, str] | None:
    for name in ONCE:
        areas = [i for i, word in enumerate(words) if word.startswith(f"{name}=")]
        if len(areas) > 1:
            return areas[1], f"{words[areas[1]]}: given twice, after {words[areas[0]]}"
    return None


def _beyond(words: Sequence[str]) -> tuple[int, str] | None:
    given = values(words)
    limit = area(given.get(BELOW, ""))
    for name in ONCE:
        found = area(given.get(name, ""))
        if found is not None and limit is not None and (found[1] or 0) + found[0] > limit[0]:
            word = f"{name}={given[name]}"
            return words.index(word), f"{word}: not below {BELOW}={given[BELOW]}"
    return None


def _no_default(words: Sequence[str]) -> tuple[int, str] | None:
    default, names = values(words).get(DEFAULT_NODE), nodes(words)
    if default is None or not names or default in names:
        return None
    word = f"{DEFAULT_NODE}={default}"
    return words.index(word), f"{word}: none of the nodes {_list(names)}"


def nodes(words: Iterable[str]) -> list[str]:
    """The names of the virtual memory nodes that these words lay out; none without a layout."""
    layout = values(words).get(LAYOUT)
    return [share.partition(":")[0] for share in layout.split(",")] if layout else []


def misfit(words: Sequence[str], memory_mb: int, cpus: int) -> str | None:
    """Why a machine of so many MiB and CPUs cannot have what `words` ask for; None if it may.

    Firmware and kernel keep some MiB: what misses its bound by as much only the kernel refuses.
    """
    given = values(words)
    memory = memory_mb * MIB
    # Stock's own area, too: the kernel goes on without one that it cannot have.
    stock = [word.partition("=")[2] for word in words if word.startswith(f"{STOCK_AREA}=")]
    sizes = given | ({STOCK_AREA: stock[-1].partition("@")[0]} if stock else {})
    for name in (*AREAS, STOCK_AREA):
        found = area(sizes.get(name, ""))
        if found is not None and found[0] >= memory:
            return f"{name}={sizes[name]}: larger than the machine's {memory_mb}M"
    if problem := _no_node(given):
        return problem
    return _layout_misfit(given[LAYOUT], memory, cpus) if LAYOUT in given else None


def _no_node(given: dict[str, str]) -> str | None:
    """What of these values names a node that there is not, whatever the size of the machine."""
    if DEFAULT_NODE in given and LAYOUT not in given:
        return f"{DEFAULT_NODE}={given[DEFAULT_NODE]}: a node's name without {LAYOUT}="
    node, last = int(given.get("cohort.pcpa_node", 0)), given.get(LAYOUT, "rest").count(",")
    if node > last:
        return f"cohort.pcpa_node={node}: the machine's last node is {last}"
    return None


def _scheme_problem(word: str, value: str) -> str | None:
    schemes = value.split(",")
    unknown = [scheme for scheme in schemes if scheme not in SCHEMES]
    if unknown:
        return f"{word}: no scheme {unknown[0]!r}; {named.hint(unknown[0], SCHEMES)}"
    if set(schemes) >= RIVALS:
        return f"{word}: {' and '.join(sorted(RIVALS))} exclude each other"
    if len(schemes) > 1 and "off" in schemes:
        return f"{word}: off stands alone"
    return None


def _area_problem(word: str, value: str) -> str | None:
    found = area(value)
    if found is None:
        return f"{word}: not a size with K, M or G, perhaps with @ and an address"
    for what, number in zip(("the size", "the address"), found, strict=True):
        if number is not None and number % PAGEBLOCK:
            meant = f"{-(-number // PAGEBLOCK) * PAGEBLOCK // MIB}M"
            return (
                f"{word}: {what} is not a multiple of a pageblock, {PAGEBLOCK // MIB}M;"
                f" did you mean {meant}?"
            )
    return None


def _layout_problem(word: str, value: str) -> str | None:
    shares = [share for text in value.split(",") if (share := _SHARE.fullmatch(text))]
    if len(shares) != value.count(",") + 1:
        return f"{word}: a node is NAME:SIZE, the size a number with M, G or %, or rest"
    names = [share[1] for share in shares]
    if len(set(names)) != len(names):
        return f"{word}: two nodes have one name"
    if taken := [name for name in names if name in _FILES]:
        return f"{word}: {taken[0]} is no name of a node"
    if sum(share[2] is None for share in shares) != 1:
        return f"{word}: exactly one node takes the rest"
    if not 2 <= len(names) <= 8:
        return f"{word}: not 2 to 8 nodes"
    if len(value) > _LAYOUT_CHARS:
        return f"{word}: longer than {_LAYOUT_CHARS} characters"
    return _sizes_problem(word, shares)


def _sizes_problem(word: str, shares: Sequence[re.Match[str]]) -> str | None:
    """Why these sizes fit no machine."""
    percent = sum(int(share[2]) for share in shares if share[3] == "%")
    if percent >= 100:
        return f"{word}: {percent} % leave nothing for the rest, 99 % is the most"
    sizes = {share[1]: _bytes(share, 0) for share in shares if share[3] in ("M", "G")}
    if small := [name for name, size in sizes.items() if size < NODE_LEAST]:
        return f"{word}: {small[0]} is smaller than {NODE_LEAST // MIB}M"
    return None


def _layout_misfit(layout: str, memory: int, cpus: int) -> str | None:
    word = f"{LAYOUT}={layout}"
    shares = [share for text in layout.split(",") if (share := _SHARE.fullmatch(text))]
    if len(shares) > cpus:
        return f"{word}: {len(shares)} nodes, and the machine has {cpus} CPUs"
    least, whole = f"{NODE_LEAST // MIB}M", f"{memory // MIB}M"
    sizes = {share[1]: _bytes(share, memory) for share in shares if share[2]}
    if small := [name for name, size in sizes.items() if size < NODE_LEAST]:
        return f"{word}: {small[0]} of {whole} is smaller than {least}"
    if sum(sizes.values()) + NODE_LEAST > memory:
        return f"{word}: of {whole} less than {least} is left for the rest"
    return None


def _bytes(share: re.Match[str], memory: int) -> int:
    """The size, on a machine of so many bytes, of a node that does not take the rest."""
    number = int(share[2])
    return memory // 100 * number if share[3] == "%" else number * UNITS[share[3]]


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
