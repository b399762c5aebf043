"""Cohort compiles whatever is built beside it: each pair of options, inside the tree and outside,
and its own options in every combination.

Only what is new and what the patches touch is compiled, with all warnings of W=1 and those of
sparse, but for its count of locks: it takes a function that locks on a condition for a mistake.
Locks are checked where they are taken, by lockdep on the debug kernel.
"""

import itertools
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cohort import host, paths
from cohort.kernel import build, config
from cohort.kernel.build import KernelSpec
from tests_support import at_night, patched_objects

pytestmark = pytest.mark.integration

# What may be there or not, and what it is called in a configuration.
OPTIONS: dict[str, tuple[str, ...]] = {
    "vnode": ("COHORT_VNODE",),
    "pcpa": ("COHORT_PCPA",),
    "sra": ("COHORT_SRA",),
    "debug": ("COHORT_DEBUG",),
    "order9": ("COHORT_ORDER9",),
    "kunit": ("KUNIT", "COHORT_KUNIT_TEST"),
    "flash": ("COHORT_FLASH",),
    # What it depends on besides, PCI and LIBNVDIMM, is on in all of the lab's kernels.
    "store": ("COHORT_FLASH_STORE",),
    "numa": ("NUMA", "NUMA_EMU"),
    "heaps": ("DMABUF_HEAPS", "DMABUF_HEAPS_SYSTEM"),
    "memcg": ("MEMCG",),
    "swap": ("SWAP", "KSM", "HUGETLBFS"),
    "zsmalloc": ("ZSMALLOC", "ZRAM"),
    "hotplug": ("MEMORY_HOTPLUG", "MEMORY_HOTREMOVE"),
    "sleep": ("HIBERNATION", "SHUFFLE_PAGE_ALLOCATOR"),
    "smp": ("SMP",),
    "rt": ("PREEMPT_RT",),
}
# The left one cannot be without those on the right.
NEEDS = {
    "vnode": ("numa",),
    "sra": ("pcpa", "heaps"),
    "store": ("flash",),
    "numa": ("smp",),
    "sleep": ("swap",),
}
# What is on in a kernel; what is not named is off. The first two are compiled by `make test`: the
# least, and nearly all.
KERNELS = (
    "order9 heaps memcg swap smp",
    "vnode pcpa debug kunit flash store numa swap zsmalloc hotplug sleep smp rt",
    "flash store memcg swap hotplug sleep rt",
    "pcpa sra debug kunit flash store heaps memcg zsmalloc",
    "vnode debug order9 kunit numa zsmalloc smp",
    "pcpa order9 flash store numa heaps memcg zsmalloc smp",
    "vnode pcpa debug numa memcg swap hotplug sleep smp",
    "vnode pcpa sra order9 flash numa heaps hotplug smp rt",
    "pcpa sra order9 kunit heaps swap sleep rt",
)
PAGES = {
    "16k": "vnode numa pcpa sra flash store heaps memcg swap smp hotplug",
    "64k": "pcpa debug kunit memcg zsmalloc smp",
}
# Cohort's own options. With the first one all is compiled again, with the last two next to nothing:
# of two combinations that follow each other most objects are the same.
OWN = ("order9", "debug", "kunit", "vnode", "pcpa", "sra", "flash", "store")
BESIDES = "numa heaps memcg swap zsmalloc hotplug sleep smp"
"""All that any of them needs, and all of the memory manager that they meet."""
# Outside of mm/cohort, by the option that has it compiled.
DRIVERS = {
    "CONFIG_COHORT_FLASH": "drivers/md/dm-flash.o",
    "CONFIG_COHORT_FLASH_STORE": "drivers/md/flash-store.o",
}
COMPLAINT = re.compile(r"^\S*(?:cohort|flash)\S*:\d+:.*(?:warning|error)|^\S*Kconfig\S*:.*warning")


def on(words: str) -> dict[str, bool]:
    """Which of OPTIONS these words name."""
    named = words.split()
    assert set(named) <= set(OPTIONS), words
    return {option: option in named for option in OPTIONS}


def pairs(kernel: dict[str, bool]) -> set[tuple[tuple[str, bool], tuple[str, bool]]]:
    """Each two options with what this kernel has of them."""
    return set(itertools.combinations(kernel.items(), 2))


def possible(some: dict[str, bool]) -> bool:
    """Whether there can be a kernel that has these options, or has not."""
    there = [option for option in some if some[option]]
    for option in there:
        there += [x for x in NEEDS.get(option, ()) if x not in there]
    return all(some.get(option, True) for option in there)


def combinations() -> list[str]:
    """The kernels there can be by Cohort's own options, with all of BESIDES."""
    found = []
    for values in itertools.product((False, True), repeat=len(OWN)):
        own = dict(zip(OWN, values, strict=True))
        if possible(own):
            found.append(" ".join([*(option for option in OWN if own[option]), BESIDES]))
    return found


def requests(words: str, arch: str) -> dict[str, config.Request]:
    """The lab's kernel with these options and without the others."""
    wanted = config.merge(KernelSpec.variant("cohort", arch).configs)
    values = {"DEBUG_KERNEL": True, "PREEMPT_NONE": "rt" not in words.split()}
    for option, there in on(words).items():
        if option != "order9" or arch == "x86_64":
            values |= dict.fromkeys(OPTIONS[option], there)
    for name, there in values.items():
        wanted[f"CONFIG_{name}"] = config.Request("y" if there else "n", words)
    return wanted


def configure(command: list[str], out: Path, wanted: dict[str, config.Request]) -> set[str]:
    """Configure with `command`, which writes into `out`: what is on, and all of OPTIONS are as
    wanted."""
    host.write_text(out / "cohort.config", config.render(wanted))
    configured = host.run(
        [*command, f"KCONFIG_ALLCONFIG={out / 'cohort.config'}", "allnoconfig"],
        env=build.environment(),
    )
    assert configured.returncode == 0, configured.stderr[-4000:]
    built = config.parse((out / ".config").read_text(), ".config")
    got = {name for name, request in built.items() if request.value == "y"}
    named = {f"CONFIG_{name}" for names in OPTIONS.values() for name in names}
    assert [x for x in named & set(wanted) if (wanted[x].value == "y") != (x in got)] == []
    return got


def compile_new(command: list[str], got: set[str], patched: Sequence[str] = ()) -> None:
    """Compile what Cohort adds to a configured kernel that has `got`, and these patched objects: no
    error and no warning."""
    drivers = [name for option, name in DRIVERS.items() if option in got]
    host.need("sparse")
    words = ["W=1", "C=1", "CF=-Wno-context", "-k", f"-j{os.cpu_count() or 1}"]
    done = host.run([*command, *words, "mm/cohort/", *drivers, *patched], env=build.environment())
    text = done.stdout + done.stderr
    said = [x for x in text.splitlines() if COMPLAINT.search(x)]
    assert done.returncode == 0 and not said, "\n".join([*said[:20], done.stderr[-4000:]])


def compile_all(command: list[str], out: Path, wanted: dict[str, config.Request]) -> None:
    """Configure, and compile what Cohort adds and what its patches touch."""
    got = configure(command, out, wanted)
    objects = patched_objects(got)
    assert "mm/page_alloc.o" in objects
    compile_new(command, got, objects)


def worker() -> str:
    """What of all that run tests this process is: a directory that is built in is one's own."""
    return os.environ.get("PYTEST_XDIST_WORKER", "alone")


@pytest.fixture(scope="module")
def copied_tree(tree: Path) -> Iterator[Path]:
    """The tree once more, to be built in. Links: a build makes new files and changes none."""
    copy = tree.with_name(f"in-tree-{worker()}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(tree, copy, symlinks=True, copy_function=os.link)
    yield copy
    shutil.rmtree(copy)


def test_each_pair_of_options_is_compiled() -> None:
    values = [(option, there) for option in OPTIONS for there in (False, True)]
    wanted = {
        (a, b)
        for a, b in itertools.combinations(values, 2)
        if a[0] != b[0] and possible(dict([a, b]))
    }
    kernels = [on(words) for words in KERNELS]
    assert all(possible(kernel) for kernel in kernels)
    assert wanted - set().union(*(pairs(kernel) for kernel in kernels)) == set()


def test_there_is_every_combination_of_its_own_options() -> None:
    found = combinations()
    assert len(found) == len(set(found)) == 2**4 * 3 * 3  # sra is with pcpa, store with flash
    assert all(possible(on(words)) for words in found)
    named = {name for option in OWN for name in OPTIONS[option]}
    text = (paths.OVERLAY / "mm" / "cohort" / "Kconfig").read_text(encoding="utf-8")
    own = set(re.findall(r"^config (COHORT_\w+)$", text, re.MULTILINE))
    assert own == named - {"KUNIT"}


@pytest.mark.parametrize("words", at_night(combinations(), 0))
def test_it_compiles_with_each_combination_of_its_own_options(words: str, tree: Path) -> None:
    """Patched files of the kernel are left to the pairs: they ask what is on, not what it is."""
    out = paths.made("builds", f"own-{worker()}")
    command = build.make_command(tree, out, build.find_arch("x86_64"))
    compile_new(command, configure(command, out, requests(words, "x86_64")))


@pytest.mark.parametrize("words", at_night(KERNELS, 2))
def test_it_compiles_inside_the_tree(words: str, copied_tree: Path) -> None:
    """Without O=, which is another include path; the lab's kernels are built with it."""
    command = build.make_command(copied_tree, copied_tree, build.find_arch("x86_64"))
    inside = [word for word in command if not word.startswith("O=")]
    compile_all(inside, copied_tree, requests(words, "x86_64"))


@pytest.mark.parametrize("pages", at_night(PAGES, 1))
def test_it_compiles_for_larger_pages(pages: str, tree: Path) -> None:
    """On arm64; with 4 KiB pages it is booted at night, see test_vnode.py."""
    out = paths.made("builds", "arm64")
    wanted = requests(PAGES[pages], "arm64")
    wanted[f"CONFIG_ARM64_{pages.upper()}_PAGES"] = config.Request("y", pages)
    compile_all(build.make_command(tree, out, build.find_arch("arm64")), out, wanted)


def test_32_bit_kernels_say_why_they_do_not_offer_it(tree: Path) -> None:
    out = paths.made("builds", "i386")
    command = build.make_command(tree, out, build.Arch("i386", "i386", "", ""))
    asked = out / "cohort.config"
    host.write_text(asked, "CONFIG_COMPACTION=y\nCONFIG_MIGRATION=y\nCONFIG_COHORT=y\n")
    done = host.run([*command, f"KCONFIG_ALLCONFIG={asked}", "allnoconfig"])
    assert done.returncode == 0, done.stderr
    built = (out / ".config").read_text()
    assert "CONFIG_COMPACTION=y" in built
    assert "CONFIG_COHORT=y" not in built
    assert "# Cohort needs a 64-bit kernel" in built
