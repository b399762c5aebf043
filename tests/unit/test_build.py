"""Kernels of several variants are built from one tree."""

import os
from collections.abc import Callable
from fcntl import LOCK_EX, LOCK_SH
from pathlib import Path

import pytest

from cohort import host
from cohort.errors import PatchError, UsageError
from cohort.kernel import build, config, overlay, source
from cohort.kernel.build import Kernel, KernelSpec
from cohort.log import Update
from cohort.suites import selftests
from tests_support import HOOK, Outcome, may_lock


def ignore(done: int, total: int) -> None:
    """No progress is shown."""


def test_two_variants_are_built_at_a_time(patched: Path) -> None:
    spec = KernelSpec.variant("cohort")
    with (
        build.prepared_tree(spec.tree, ignore) as one,
        build.prepared_tree(spec.tree, ignore) as other,
    ):
        assert one == other
        assert one[0] == patched


def test_make_has_a_job_for_each_cpu_that_the_lab_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not one for each that the machine has, of which a container may give one."""
    monkeypatch.setattr(host, "cpus", lambda: 3)
    said = tmp_path / "said"
    (tmp_path / "make").write_text(f"#!/bin/sh\necho $* > {said}\n")
    (tmp_path / "make").chmod(0o755)
    build.make([str(tmp_path / "make"), "bzImage"], tmp_path, ignore)
    assert said.read_text() == "bzImage -j3\n"
    part = tmp_path / "part"
    monkeypatch.setattr(build, "make_command", lambda *_: [str(tmp_path / "make")])
    monkeypatch.setattr(host, "need", lambda name: tmp_path / name)
    (tmp_path / "tree" / selftests.WHERE / "mm").mkdir(parents=True)
    selftests._build(["mm"], tmp_path / "tree", part)
    assert " -j3 " in said.read_text()


def test_cpus_are_those_that_this_process_may_use() -> None:
    mine = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(mine)})
        assert host.cpus() == 1
    finally:
        os.sched_setaffinity(0, mine)


def test_no_kernel_order9_but_for_the_pc() -> None:
    assert "order9" in KernelSpec.variant("order9").configs
    with pytest.raises(UsageError, match="no kernel order9 for arm64") as caught:
        KernelSpec.variant("order9", "arm64")
    assert "--arch x86_64" in str(caught.value)


@pytest.mark.parametrize(("arch", "tree"), [("x86_64", Path("/vendor")), ("arm64", None)])
def test_no_kernel_with_gcma_but_of_a_vendors_tree_on_arm64(arch: str, tree: Path | None) -> None:
    assert "gcma" in KernelSpec.variant("gcma", "arm64", Path("/vendor")).configs
    with pytest.raises(UsageError, match="needs a tree that has it") as caught:
        KernelSpec.variant("gcma", arch, tree)
    assert f"--tree {tree or 'DIR'}" in str(caught.value)


def test_pages_of_16_kib_are_arm64s_alone() -> None:
    spec = KernelSpec.variant("cohort", "arm64", page_size=16384)
    assert spec.name == "base-arm64-pages16k-lab-cohort"
    assert spec.page_size == 16384
    assert KernelSpec.from_fragments("base,arm64,pages16k,lab,cohort").page_size == 16384
    assert KernelSpec.variant("cohort", "arm64").page_size == 4096
    asked = config.merge(spec.configs)
    assert asked["CONFIG_ARM64_16K_PAGES"].value == "y"
    assert asked["CONFIG_ARM64_4K_PAGES"].value == "n"
    with pytest.raises(UsageError, match="pages of x86_64 have 4096 bytes") as caught:
        KernelSpec.variant("cohort", page_size=16384)
    assert "--arch arm64" in str(caught.value)


def test_an_overlay_that_changed_is_brought_up_to_date_first(
    patched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = ["before"]
    monkeypatch.setattr(overlay, "applied_id", lambda at: there[0])
    monkeypatch.setattr(overlay, "apply", lambda at: there.__setitem__(0, "now"))
    with build.prepared_tree(None, ignore):
        assert there == ["now"]


def test_half_an_overlay_is_completed_before_a_kernel_is_built(
    own_out: Path,
    make_tree: Callable[..., Path],
    make_series: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kernel of half of it had the id of the whole."""
    names = ("patches/6.12/series", "patches/6.12/0001-hook.patch")
    make_series(dict(zip(names, ("0001-hook.patch\n", HOOK), strict=True)))
    tree = make_tree()
    monkeypatch.setattr(source, "fetch", lambda update: tree)
    hooked = tree / "mm/alloc.c"
    before = hooked.read_text()
    overlay.apply(tree)
    hooked.write_text(before)
    with build.prepared_tree(None, ignore):
        assert "cohort_alloc" in hooked.read_text()


@pytest.fixture
def fake_make(patched: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], Kernel]:
    """Build a kernel of the tree as if its image were these bytes."""
    spec = KernelSpec.variant("cohort", tree=patched)
    image = b""

    def make(command: list[str], out: Path, update: Update) -> None:
        for name in ("arch/x86/boot/bzImage", "include/config/kernel.release"):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
        # As make does it: into the file that is there.
        (out / "arch/x86/boot/bzImage").write_bytes(image)
        (out / ".config").write_text("CONFIG_COHORT=y\n")
        (out / "include/config/kernel.release").write_text("6.12.117\n")

    monkeypatch.setattr(build, "configure", lambda *_: None)
    monkeypatch.setattr(build, "make_command", lambda *_: ["make"])
    monkeypatch.setattr(build, "make", make)

    def built(content: bytes) -> Kernel:
        nonlocal image
        image = content
        return build.build(spec, ignore)

    return built


def test_a_kernel_stays_what_it_is_when_another_is_built(
    fake_make: Callable[[bytes], Kernel],
) -> None:
    """A comparison boots its kernels for hours."""
    first, second = fake_make(b"one"), fake_make(b"two")
    assert (first.image.read_bytes(), second.image.read_bytes()) == (b"one", b"two")
    assert host.digest_file(first.image) == first.id
    assert first.config.read_text() == "CONFIG_COHORT=y\n"
    assert first.directory == second.directory
    assert fake_make(b"one") == first


def test_images_that_no_command_asks_for_are_removed(
    fake_make: Callable[[bytes], Kernel],
) -> None:
    old, asked = fake_make(b"old"), fake_make(b"asked")
    for kernel in (old, asked):
        os.utime(kernel.image.parent, (0, 0))
    assert fake_make(b"asked").image.is_file()
    assert not old.image.parent.exists()


@pytest.mark.parametrize(("words", "alone"), [((), True), (("--dry-run",), False)])
def test_the_fetched_tree_is_patched_by_one_command_alone(
    words: tuple[str, ...],
    alone: bool,
    patched: Path,
    own_out: Path,
    cohort: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kernels that are built from it meanwhile would be of half of each."""
    free: list[bool] = []

    def apply(tree: Path, dry_run: bool) -> None:
        free.append(may_lock(own_out / "kernel" / "tree.lock", LOCK_SH))
        raise PatchError("seen")

    monkeypatch.setattr(overlay, "apply", apply)
    (own_out / "kernel").mkdir(parents=True)
    assert cohort("kernel", "patch", *words).code == 6
    assert cohort("kernel", "patch", "--tree", patched, *words).code == 6
    assert free == [not alone, True]


@pytest.mark.parametrize(
    ("words", "shared"), [((), False), (("--revert",), False), (("--dry-run",), True)]
)
def test_a_tree_of_the_users_is_changed_by_one_command_alone(
    words: tuple[str, ...],
    shared: bool,
    make_tree: Callable[..., Path],
    cohort: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two commands wrote into it at a time, and a kernel was built meanwhile."""
    seen: list[tuple[bool, bool]] = []

    def look(tree: Path, dry_run: bool) -> None:
        seen.append((may_lock(tree, LOCK_SH), may_lock(tree, LOCK_EX)))
        raise PatchError("seen")

    for name in ("apply", "revert"):
        monkeypatch.setattr(overlay, name, look)
    tree = make_tree()
    assert cohort("kernel", "patch", "--tree", tree, *words).code == 6
    assert seen == [(shared, False)]
    assert may_lock(tree, LOCK_EX)


def test_a_tree_of_the_users_is_held_while_it_is_built(patched: Path, own_out: Path) -> None:
    """And not the fetched one, which another command may change."""
    (own_out / "kernel").mkdir(parents=True)
    with build.prepared_tree(patched, ignore), build.prepared_tree(patched, ignore):
        assert (may_lock(patched, LOCK_SH), may_lock(patched, LOCK_EX)) == (True, False)
        assert may_lock(own_out / "kernel" / "tree.lock", LOCK_EX)
    assert may_lock(patched, LOCK_EX)


def test_the_fetched_tree_is_held_also_against_its_name(patched: Path, own_out: Path) -> None:
    """`--tree out/kernel/linux-6.12` is the same tree."""
    with build.prepared_tree(None, ignore):
        assert not may_lock(patched, LOCK_EX)
        assert not may_lock(own_out / "kernel" / "tree.lock", LOCK_EX)


@pytest.mark.parametrize("name", ["gone", "linux"])
def test_a_tree_of_which_nothing_is_built_has_no_directory(
    name: str, own_out: Path, make_tree: Callable[..., Path], cohort: Callable[..., Outcome]
) -> None:
    """`clean` knows none in which make was not called."""
    tree = make_tree().with_name(name)
    done = cohort("kernel", "build", "--tree", tree)
    said = " has no Cohort" if name == "linux" else ": no such directory"
    assert (done.code, f"{tree}{said}" in done.stderr) == (2, True), done.stderr
    assert not (own_out / "kernel").exists()


def test_a_tree_without_cohort_says_what_puts_it_on(
    own_out: Path, make_tree: Callable[..., Path], cohort: Callable[..., Outcome]
) -> None:
    """It had been told that a symbol is missing from the fragments, when all was configured."""
    tree = make_tree()
    done = cohort("kernel", "build", "--tree", tree)
    assert done.code == 2
    assert f"{tree} has no Cohort, which configs/cohort.config:" in done.stderr
    assert f"hint: cohort kernel patch --tree {tree}\n" in done.stderr
    stock = config.merge(KernelSpec.variant("stock").configs)
    build.check_patched(tree, stock)


@pytest.mark.parametrize(
    ("name", "text", "depends"),
    [
        ("a.c", "int x;\n", "1"),
        ("a.c", 'asm(".incbin \\"picture\\"");\n', ""),
        ("a.S", "nop\n", ""),
        ("--version", "", ""),
    ],
)
def test_ccache_believes_make_but_not_of_what_incbin_brings_in(
    name: str, text: str, depends: str, tmp_path: Path
) -> None:
    """It gave out an object with the picture of before: no list of headers has it."""
    ccache = tmp_path / "ccache"
    ccache.write_text('#!/bin/sh\necho "$CCACHE_DEPEND" "$@"\n')
    ccache.chmod(0o755)
    if text:
        (tmp_path / name).write_text(text)
    env = {**host.environment(), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = ["sh", str(build.CACHED_CC), "gcc", "-c", name]
    assert host.run(argv, cwd=tmp_path, env=env).stdout == f"{depends} gcc -c {name}\n"
