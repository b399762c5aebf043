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
    files = {name for _, name in re.findall(r"^COHORT_ATTR_R[OW]\((\w+), ([a-z]\w+)\)", TEXT, re.M)}
    entries = set(
        re.findall(r"^What:\t\t/sys/kernel/mm/cohort/(?:[\w<>]+/)*(\w+)$", ABI, re.MULTILINE)
    )
    assert "compact_delay_ms" in files
    assert sorted(files - entries) == []


def test_the_delay_of_compaction_is_the_one_that_is_told() -> None:
    found = re.search(r"^unsigned int cohort_compact_delay_ms = (\d+);", TEXT, re.MULTILINE)
    entry = ABI.partition("/region/compact_delay_ms\n")[2].partition("What:")[0]
    assert found
    assert f"Default: {found[1]}." in entry


def test_domains_are_walked_only_where_nothing_waits() -> None:
    """A phone has hundreds of processes, and a domain for each. Switching off, the packing worker,
    memory that comes and sums for people look at all of them; faults and reclaim do not."""
    heads = re.compile(r"^(?:\w[\w *]*\b(\w+)\(|.*\(dom, &cohort_domains, all\))", re.MULTILINE)
    names = [found[1] for found in heads.finditer(TEXT)]
    walkers = {name for name, walk in itertools.pairwise(names) if walk is None}
    assert walkers == {
        *("cohort_dissolve_all", "cohort_free_in", "cohort_most_holes", "cohort_rooms_all"),
    }
    assert users("for_each_process") == {"core/process.c"}
    assert users("cohort_each_process") == {
        *("cohort.h", "core/process.c", "core/scheme.c", "rightsize/rightsize.c"),
    }
