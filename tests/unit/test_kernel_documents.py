"""What the kernel's documents say of Cohort beside what its source does."""

import itertools
import re

from cohort import paths

FEATURE = paths.OVERLAY / "mm" / "cohort"
ABI = (paths.OVERLAY / "Documentation/ABI/testing/sysfs-kernel-mm-cohort").read_text()
GUIDE = (paths.OVERLAY / "Documentation/admin-guide/mm/cohort.rst").read_text()
SOURCES = {
    str(file.relative_to(FEATURE)): file.read_text()
    for file in sorted(FEATURE.rglob("*.[ch]"))
    if FEATURE / "tests" not in file.parents
}
TEXT = "".join(SOURCES.values())


def users(word: str) -> set[str]:
    """The files of the feature that have this word."""
    return {name for name, text in SOURCES.items() if re.search(rf"\b{word}\b", text)}


def test_every_parameter_is_in_the_kernels_list_and_in_the_guide() -> None:
    patches = "".join(x.read_text() for x in sorted(paths.PATCHES.glob("*/*.patch")))
    lines = re.findall(r"^\+\t(cohort.*=.*)$", patches, re.MULTILINE)
    listed = set(re.findall(r"(cohort[\w.]*)=", " ".join(lines)))
    taken = set(re.findall(r'\bearly_param\("([\w.]+)"', TEXT))
    assert {"cohort", "cohort.region_vmalloc"} <= taken
    assert listed == taken
    assert [name for name in sorted(taken) if f"{name}=" not in GUIDE] == []


def test_every_file_of_sysfs_has_its_entry() -> None:
    attributes = r"^COHORT_ATTR_R(?:O|W|OOT)\(\w+, ([a-z]\w+)\)"
    files = set(re.findall(attributes, TEXT, re.MULTILINE))
    entries = set(
        re.findall(r"^What:\t\t/sys/kernel/mm/cohort/(?:[\w<>]+/)*(\w+)$", ABI, re.MULTILINE)
    )
    assert "compact_delay_ms" in files
    assert sorted(files - entries) == []


def test_what_drivers_and_heaps_call_is_exported() -> None:
    """A heap may be a module, as Android's system heap is."""
    header = (paths.OVERLAY / "include/linux/cohort_pcpa.h").read_text()
    calls = set(re.findall(r"^\w[^#\n]*?\b(cohort_\w+)\([^{]*?\);$", header, re.MULTILINE))
    assert {"cohort_pcpa_alloc", "cohort_buffer_alloc_noprof", "cohort_heap_orders"} <= calls
    exported = set(re.findall(r"^EXPORT_SYMBOL_GPL\((\w+)\);$", TEXT, re.MULTILINE))
    # The key is what the inline cohort_region_enabled() looks at.
    assert (calls | {"cohort_region_key"}) - exported == set()


def test_the_delay_of_compaction_is_the_one_that_is_told() -> None:
    found = re.search(r"^unsigned int cohort_compact_delay_ms = (\d+);", TEXT, re.MULTILINE)
    entry = ABI.partition("/region/compact_delay_ms\n")[2].partition("What:")[0]
    assert found
    assert f"Default: {found[1]}." in entry


def test_domains_are_walked_only_where_nothing_waits() -> None:
    """A phone has hundreds of processes, and a domain for each. Switching off, the packing worker,
    memory that comes and sums for people look at all of them; faults and reclaim do not. Before a
    kill, that has looked at all processes itself, what left a role does."""
    heads = re.compile(r"^(?:\w[\w *]*\b(\w+)\(|.*\(dom, &cohort_domains, all\))", re.MULTILINE)
    names = [found[1] for found in heads.finditer(TEXT)]
    walkers = {name for name, walk in itertools.pairwise(names) if walk is None}
    assert walkers == {
        *("cohort_domains_holding", "cohort_free_in", "cohort_most_holes", "cohort_rooms_all"),
    }
    assert users("for_each_process") == {"core/process.c", "vnode/left.c"}
    assert users("cohort_each_process") == {
        *("cohort.h", "core/process.c", "core/scheme.c", "rightsize/rightsize.c"),
    }


def test_the_area_is_locked_for_a_chunk_at_a_time() -> None:
    """Interrupts are off under the lock. A function that takes it has no loop over chunks inside:
    of those that it calls, only what looks for a free piece goes over their heads."""
    area = "".join(text for name, text in SOURCES.items() if name.startswith("pcpa/"))
    functions = re.findall(r"^\w[^;{}]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", area, re.M | re.DOTALL)
    bodies = dict(functions)
    holders = {name for name, body in bodies.items() if "cohort_area_lock(&flags)" in body}
    loops = re.compile(r"^\t+(?:for|while) \(.*COHORT_CHUNK\b|cohort_chunk_end\(", re.MULTILINE)
    assert {"cohort_area_take", "cohort_chunk_look", "cohort_chunk_keep"} <= holders
    assert {name for name in holders if loops.search(bodies[name])} == set()
    walkers = {name for name, body in bodies.items() if loops.search(body)}
    called = {name: walkers & set(re.findall(r"\w+", bodies[name])) for name in holders}
    finders = {"cohort_area_take", "cohort_area_take_cache"}
    assert {name for name in holders - finders if called[name] - {name}} == set()
