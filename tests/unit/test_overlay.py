"""Putting an overlay and patches on a tree, and taking them off."""

import errno
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from cohort import host
from cohort.errors import PatchError, UsageError
from cohort.kernel import overlay
from tests_support import ALLOC_C, Outcome, git, snapshot

HOOK = """\
The slow path asks Cohort first.

--- a/mm/alloc.c
+++ b/mm/alloc.c
@@ -12,3 +12,5 @@ int alloc_slow(int order)
 \tif (order > 3)
-\t\tpage = 1;
+\t\tpage = 2;
+\tif (cohort_enabled())
+\t\tpage = cohort_alloc(order);
 \treturn page;
"""
BUILD = """\
--- a/mm/Makefile
+++ b/mm/Makefile
@@ -1 +1,2 @@
 obj-y += alloc.o
+obj-$(CONFIG_COHORT) += cohort/
"""

MakeTree = Callable[..., Path]


@pytest.fixture
def series(make_series: Callable[..., Path]) -> Path:
    """A small overlay and series in place of the repository's; returns their directory."""
    return make_series(
        {
            "kernel/mm/cohort/core.c": "int cohort;\n",
            "kernel/mm/cohort/Makefile": "obj-y += core.o\n",
            "patches/6.12/series": "# in order\n0001-build.patch\n0002-hook.patch # the hook\n",
            "patches/6.12/0001-build.patch": BUILD,
            "patches/6.12/0002-hook.patch": HOOK,
        }
    )


def test_apply_and_revert_restore_every_byte(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree()
    before = snapshot(tree)
    report = overlay.apply(tree)
    assert (report.action, report.files, report.patches, report.notes) == ("applied", 2, 2, [])
    assert "cohort_alloc" in (tree / "mm/alloc.c").read_text()
    assert (tree / "mm/cohort/core.c").read_text() == "int cohort;\n"
    report = overlay.revert(tree)
    assert (report.action, report.files, report.changed) == ("reverted", 2, 2)
    assert snapshot(tree) == before
    assert not (tree / "mm/cohort").exists()


def test_revert_leaves_git_clean(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree()
    git = ["git", "-C", str(tree), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "base"], check=True)
    overlay.apply(tree)
    overlay.revert(tree)
    assert host.run([*git, "status", "--porcelain", "--ignored"]).stdout == ""


def test_applying_twice_says_so(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree()
    overlay.apply(tree)
    before = snapshot(tree)
    assert overlay.apply(tree).action == "already applied"
    assert snapshot(tree) == before


def test_an_empty_series_is_fine(make_tree: MakeTree, series: Path) -> None:
    shutil.rmtree(series / "patches")
    shutil.rmtree(series / "kernel")
    tree = make_tree()
    before = snapshot(tree)
    assert overlay.apply(tree).action == "applied"
    assert overlay.revert(tree).action == "reverted"
    assert snapshot(tree) == before


def test_dry_run_changes_nothing(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree()
    before = snapshot(tree)
    assert overlay.apply(tree, dry_run=True).action == "would apply"
    assert snapshot(tree) == before


def test_a_changed_overlay_updates_only_what_changed(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree()
    before = snapshot(tree)
    overlay.apply(tree)
    same, changed = tree / "mm/cohort/Makefile", tree / "mm/cohort/core.c"
    times = same.stat().st_mtime_ns, (tree / "mm/alloc.c").stat().st_mtime_ns
    (series / "kernel/mm/cohort/core.c").write_text("long cohort;\n")
    (series / "kernel/mm/cohort/new.c").write_text("int new;\n")
    assert overlay.apply(tree).action == "updated"
    assert changed.read_text() == "long cohort;\n"
    assert (same.stat().st_mtime_ns, (tree / "mm/alloc.c").stat().st_mtime_ns) == times
    (series / "kernel/mm/cohort/new.c").unlink()
    (series / "patches/6.12/series").write_text("0001-build.patch\n")
    assert overlay.apply(tree).action == "updated"
    assert not (tree / "mm/cohort/new.c").exists()
    assert "cohort_alloc" not in (tree / "mm/alloc.c").read_text()
    overlay.revert(tree)
    assert snapshot(tree) == before


def test_a_hunk_that_fails_names_file_function_and_patch(make_tree: MakeTree, series: Path) -> None:
    alloc_c = "int alloc_slow(int order)\n{\n\treturn 0;\n}\n"
    tree = make_tree(alloc_c=alloc_c)
    before = snapshot(tree)
    with pytest.raises(PatchError) as error:
        overlay.apply(tree)
    for word in ("mm/alloc.c:12", "alloc_slow(int order)", "0002-hook.patch", "6.12.117"):
        assert word in str(error.value)
    assert snapshot(tree) == before


@pytest.mark.parametrize("patch", [117, 121])
def test_no_release_gets_fuzz(make_tree: MakeTree, series: Path, patch: int) -> None:
    other = HOOK.replace(" \tif (order > 3)", " \tif (order > 4)")
    (series / "patches/6.12/0002-hook.patch").write_text(other)
    with pytest.raises(PatchError, match="its lines are not in the file"):
        overlay.apply(make_tree(patch=patch))


def test_a_moved_hunk_is_reported_and_comes_off_exactly(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree()
    path = tree / "mm/alloc.c"
    path.write_bytes(b"/* a\n * \xff\r\n */\n" + path.read_bytes() + b"int end;")
    path.chmod(0o640)
    before = snapshot(tree)
    report = overlay.apply(tree)
    assert report.notes == ["mm/alloc.c:15: in alloc_slow: 0002-hook.patch: +3 lines"]
    assert path.stat().st_mode & 0o777 == 0o640
    overlay.revert(tree)
    assert snapshot(tree) == before


def test_a_hunk_never_lands_in_another_function(make_tree: MakeTree, series: Path) -> None:
    """Where it belongs the lines changed; another function has them as they were."""
    slow = ALLOC_C[ALLOC_C.index("int alloc_slow") :]
    other = slow.replace("alloc_slow", "alloc_slower")
    tree = make_tree(alloc_c=ALLOC_C.replace("order > 3", "order > 4") + "\n" + other)
    before = snapshot(tree)
    with pytest.raises(PatchError) as error:
        overlay.apply(tree)
    assert "only in alloc_slower (line 21)" in str(error.value)
    assert "      | \tif (order > 3)\n" in str(error.value)
    assert snapshot(tree) == before
    path = tree / "mm/alloc.c"
    path.write_text(other + "\n" + ALLOC_C)
    overlay.apply(tree)
    assert path.read_text().startswith(other)
    assert "cohort_alloc" in path.read_text()


def test_all_hunks_that_are_refused_are_told_at_once(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree(alloc_c="int alloc_slow(int order)\n{\n\treturn 0;\n}\n")
    (tree / "mm/Makefile").write_text("obj-m += alloc.o\n")
    with pytest.raises(PatchError) as error:
        overlay.apply(tree)
    assert all(name in str(error.value) for name in ("0001-build.patch", "0002-hook.patch"))


def test_a_file_that_is_not_there_is_told_as_a_hunk_is(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree()
    (tree / "mm/alloc.c").unlink()
    (tree / "mm/Makefile").write_text("obj-m += alloc.o\n")
    before = snapshot(tree)
    with pytest.raises(PatchError) as error:
        overlay.apply(tree)
    said = str(error.value)
    assert "in int alloc_slow(int order): 0002-hook.patch: the tree has no such file" in said
    assert "      | \tif (order > 3)\n" in said
    assert "0001-build.patch" in said
    assert snapshot(tree) == before


def test_a_dry_run_says_where_each_hunk_belongs(
    make_tree: MakeTree, series: Path, cohort: Callable[..., Outcome]
) -> None:
    tree = make_tree(alloc_c="\n\n" + ALLOC_C)
    before = snapshot(tree)
    done = cohort("kernel", "patch", "--tree", tree, "--dry-run")
    assert (done.code, done.stdout.splitlines()[1:]) == (
        0,
        [
            "  mm/Makefile:1: behind obj-y += alloc.o: 0001-build.patch",
            "  mm/alloc.c:14: in alloc_slow: 0002-hook.patch: +2 lines",
        ],
    )
    assert snapshot(tree) == before


def test_a_dry_run_says_what_is_refused_beside_what_fits(
    make_tree: MakeTree, series: Path, cohort: Callable[..., Outcome]
) -> None:
    tree = make_tree(alloc_c=ALLOC_C.replace("alloc_slow", "alloc_other"))
    before = snapshot(tree)
    done = cohort("kernel", "patch", "--tree", tree, "--dry-run")
    assert done.code == 6
    assert done.stdout.startswith("would not apply: ")
    assert "mm/Makefile:1" in done.stdout
    assert "mm/alloc.c" not in done.stdout
    assert "only in alloc_other" in done.stderr
    assert snapshot(tree) == before


def test_edits_in_the_tree_are_not_lost(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree()
    overlay.apply(tree)
    edited = tree / "mm/cohort/core.c"
    edited.write_text("int cohort = 1;\n")
    with pytest.raises(PatchError, match=r"core\.c was edited"):
        overlay.revert(tree)
    assert edited.read_text() == "int cohort = 1;\n"


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], AbstractContextManager[None]]:
    """A command that ends in the block when it comes to put this file into its place."""

    @contextmanager
    def at(file: Path) -> Iterator[None]:
        replace = Path.replace

        def fail(self: Path, target: Path) -> Path:
            if target == file:
                raise OSError(errno.EIO, "Input/output error", str(target))
            return replace(self, target)

        with monkeypatch.context() as patch, pytest.raises(OSError, match="Input/output"):
            patch.setattr(Path, "replace", fail)
            yield

    return at


Killed = Callable[[Path], AbstractContextManager[None]]
FILES = ("mm/cohort/Makefile", "mm/cohort/core.c", "mm/Makefile", "mm/alloc.c")


@pytest.mark.parametrize("file", FILES)
def test_an_apply_that_was_killed_is_completed(
    file: str, make_tree: MakeTree, series: Path, killed: Killed
) -> None:
    """It said `already applied` of a tree with one of two files patched."""
    whole, tree = make_tree(name="whole"), make_tree()
    before = snapshot(tree)
    overlay.apply(whole)
    with killed(tree / file):
        overlay.apply(tree)
    assert overlay.applied_id(tree) is None
    assert overlay.apply(tree, dry_run=True).action == "would apply"
    assert overlay.apply(tree).action == "completed"
    assert snapshot(tree) == snapshot(whole)
    assert overlay.applied_id(tree) == overlay.load_series().id
    assert overlay.apply(tree).action == "already applied"
    overlay.revert(tree)
    assert snapshot(tree) == before


def test_files_that_git_put_back_are_patched_again(make_tree: MakeTree, series: Path) -> None:
    """Git leaves `.cohort` and new files where they are."""
    tree = make_tree()
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "base")
    overlay.apply(tree)
    after = snapshot(tree / "mm")
    git(tree, "reset", "-q", "--hard")
    assert "cohort_alloc" not in (tree / "mm/alloc.c").read_text()
    assert overlay.apply(tree).action == "completed"
    assert snapshot(tree / "mm") == after


def test_a_patched_file_that_was_edited_is_told_with_what_puts_it_back(
    make_tree: MakeTree, series: Path
) -> None:
    tree = make_tree()
    overlay.apply(tree)
    edited = tree / "mm/alloc.c"
    edited.write_text("int edited;\n")
    before = snapshot(tree)
    with pytest.raises(PatchError, match=r"alloc\.c was edited") as caught:
        overlay.apply(tree)
    assert snapshot(tree) == before
    assert f": cp {tree}/.cohort/original/mm/alloc.c {edited}" in (caught.value.hint or "")
    shutil.copy(tree / ".cohort/original/mm/alloc.c", edited)
    assert overlay.apply(tree).action == "completed"


def change(series: Path) -> None:
    """Another state of the series: a file is new, one is gone, one differs; a hook is gone."""
    (series / "kernel/mm/cohort/core.c").rename(series / "kernel/mm/cohort/new.c")
    (series / "kernel/mm/cohort/Makefile").write_text("obj-y += new.o\n")
    (series / "patches/6.12/0001-build.patch").write_text(BUILD.replace("cohort/", "cohort.o"))
    (series / "patches/6.12/series").write_text("0001-build.patch\n")


UPDATED = ("mm/cohort/Makefile", "mm/cohort/new.c", "mm/Makefile", "mm/alloc.c")


@pytest.mark.parametrize("file", UPDATED)
@pytest.mark.parametrize("then", ["complete", "revert", "go back", "revert, killed"])
def test_an_update_that_was_killed_is_no_edit(
    file: str, then: str, make_tree: MakeTree, series: Path, killed: Killed
) -> None:
    """Files of the state before were taken for edits of the user's, or stayed for ever."""
    tree = make_tree()
    before = snapshot(tree)
    overlay.apply(tree)
    shutil.copytree(series, series.with_name("first"))
    change(series)
    with killed(tree / file):
        overlay.apply(tree)
    assert overlay.applied_id(tree) is None
    if then == "go back":
        shutil.rmtree(series)
        series.with_name("first").rename(series)
    if then in ("complete", "go back"):
        whole = make_tree(name="whole")
        overlay.apply(whole)
        assert overlay.apply(tree).action == ("completed" if then == "complete" else "updated")
        assert snapshot(tree / "mm") == snapshot(whole / "mm")
        assert overlay.apply(tree).action == "already applied"
    elif then == "revert, killed" and file != "mm/alloc.c":
        with killed(tree / "mm/alloc.c"):
            overlay.revert(tree)
    assert overlay.revert(tree).action == "reverted"
    assert snapshot(tree) == before


@pytest.mark.parametrize("again", [True, False])
def test_a_revert_that_was_killed_is_no_edit(
    again: bool, make_tree: MakeTree, series: Path, killed: Killed
) -> None:
    """Of a file that it had put back the original was gone, and nothing told what it is."""
    tree = make_tree()
    before = snapshot(tree)
    overlay.apply(tree)
    after = snapshot(tree)
    with killed(tree / "mm/alloc.c"):
        overlay.revert(tree)
    assert "cohort" not in (tree / "mm/Makefile").read_text()
    if again:
        assert overlay.apply(tree).action == "completed"
        assert snapshot(tree) == after
    assert overlay.revert(tree).action == "reverted"
    assert snapshot(tree) == before


@pytest.mark.parametrize("revert", [False, True])
def test_what_a_command_that_was_killed_had_staged_goes(
    revert: bool, make_tree: MakeTree, series: Path
) -> None:
    tree = make_tree()
    if revert:
        overlay.apply(tree)
    left = tree / ".cohort-stage-abc/mm/alloc.c"
    left.parent.mkdir(parents=True)
    left.write_text("half")
    (overlay.revert if revert else overlay.apply)(tree)
    assert not list(tree.glob(".cohort-stage-*"))


def test_a_full_disk_while_originals_are_kept_leaves_the_tree(
    make_tree: MakeTree, series: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = make_tree()
    before = snapshot(tree)

    def full(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:9])
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(shutil, "copy2", full)
        overlay.apply(tree)
    assert snapshot(tree) == before


@pytest.mark.parametrize("names", ["", "0001-build.patch\n"])
def test_a_copy_that_no_state_names_is_no_original(
    names: str, make_tree: MakeTree, series: Path
) -> None:
    """Half of it was what a full disk had left, and `--revert` put that into the tree."""
    tree = make_tree()
    before = snapshot(tree)
    listed = series / "patches/6.12/series"
    both = listed.read_text()
    if names:
        listed.write_text(names)
        overlay.apply(tree)
    left = tree / ".cohort/original/mm/alloc.c"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_text("half")
    assert overlay.original(tree, "mm/alloc.c") == tree / "mm/alloc.c"
    listed.write_text(both)
    overlay.apply(tree)
    assert "cohort_alloc" in (tree / "mm/alloc.c").read_text()
    overlay.revert(tree)
    assert snapshot(tree) == before


def test_a_file_of_the_tree_is_never_overwritten(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree()
    (tree / "mm/cohort").mkdir()
    (tree / "mm/cohort/core.c").write_text("theirs\n")
    with pytest.raises(PatchError, match="already has"):
        overlay.apply(tree)
    assert (tree / "mm/cohort/core.c").read_text() == "theirs\n"


def test_another_series_of_linux_is_refused(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree()
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 6\nSUBLEVEL = 1\n")
    with pytest.raises(PatchError, match=r"Linux 6\.6\.1"):
        overlay.apply(tree)


def test_no_kernel_tree(tmp_path: Path, series: Path) -> None:
    with pytest.raises(UsageError, match="it has no Makefile"):
        overlay.apply(tmp_path)
    (tmp_path / "Makefile").write_text("all:\n")
    with pytest.raises(UsageError, match="its Makefile names no release"):
        overlay.apply(tmp_path)
    (tmp_path / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n")
    with pytest.raises(UsageError, match="it has no mm/"):
        overlay.apply(tmp_path)


def test_reverting_nothing_says_so(make_tree: MakeTree, series: Path) -> None:
    assert overlay.revert(make_tree()).action == "not applied"


def test_a_missing_patch_is_named(make_tree: MakeTree, series: Path) -> None:
    (series / "patches/6.12/series").write_text("0009-gone.patch\n")
    with pytest.raises(UsageError, match=r"0009-gone\.patch"):
        overlay.apply(make_tree())
