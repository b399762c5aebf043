"""The id of a user's tree is another one where its content is, and stays where that does."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import host
from cohort.kernel import build, identity
from tests_support import git

Change = Callable[[Path], object]


@pytest.fixture
def tree(own_out: Path, make_tree: Callable[..., Path]) -> Path:
    """A tree with a driver, as a tarball has it."""
    made = make_tree()
    (made / "drivers").mkdir()
    (made / "drivers" / "a.c").write_text("int a;\n")
    return made


@pytest.fixture
def checkout(tree: Path) -> Path:
    """The same in git."""
    (tree / ".gitignore").write_text("*.o\n")
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "one")
    return tree


def edit(name: str, text: str) -> Change:
    """A file with this text."""
    return lambda tree: (tree / name).write_text(text)


IN_GIT: dict[str, Change] = {
    "a driver": edit("drivers/a.c", "int b;\n"),
    "a new file": edit("mm/new.c", "int a;\n"),
    "no driver": lambda tree: (tree / "drivers/a.c").unlink(),
    "its mode": lambda tree: (tree / "drivers/a.c").chmod(0o755),
    "a link": lambda tree: (tree / "drivers/b.c").symlink_to("a.c"),
    "a commit": lambda tree: git(tree, "commit", "-q", "--allow-empty", "-m", "two"),
}
IN_A_TARBALL: dict[str, Change] = {
    "a driver's size": edit("drivers/a.c", "long a;\n"),
    "mm/": edit("mm/alloc.c", (" " * 400)),
    "a new file": edit("drivers/b.c", ""),
}


@pytest.mark.parametrize("change", IN_GIT)
def test_a_checkout_is_known_by_its_content(checkout: Path, change: str) -> None:
    """Two trees of one release had one id, whatever had been done to them."""
    before = identity.identify(checkout)
    IN_GIT[change](checkout)
    assert identity.identify(checkout) != before


@pytest.mark.parametrize("change", IN_A_TARBALL)
def test_a_tree_without_git_is_known_by_names_sizes_and_mm(tree: Path, change: str) -> None:
    alloc = tree / "mm" / "alloc.c"
    alloc.write_text("x" * 400)
    before = identity.identify(tree)
    IN_A_TARBALL[change](tree)
    assert identity.identify(tree) != before


def test_what_is_no_source_makes_no_difference(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a compiler or the lab makes there, times, and the user's settings of git."""
    (checkout / "drivers" / "a.c").write_text("int b;\n")
    before = identity.identify(checkout)
    monkeypatch.setenv("COHORT_OUT", str(checkout / "out"))
    for name in ("a.o", ".cohort/state.json", "out/kernel/big"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("x")
    os.utime(checkout / "Makefile", (1, 1))
    git(checkout, "config", "diff.mnemonicPrefix", "true")
    monkeypatch.setenv("GIT_DIR", "/gone")
    index = (checkout / ".git" / "index").read_bytes()
    assert identity.identify(checkout) == before
    assert (checkout / ".git" / "index").read_bytes() == index


def test_a_tree_within_another_checkout_is_none_of_it(checkout: Path) -> None:
    """Its commit says nothing of what it ignores."""
    inner = checkout / "inner"
    (inner / "mm").mkdir(parents=True)
    before = identity.identify(inner)
    git(checkout, "commit", "-q", "--allow-empty", "-m", "two")
    assert identity.identify(inner) == before


def test_a_kernel_has_the_id_of_its_tree(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def id_of() -> str:
        with build.prepared_tree(checkout, lambda done, total: None) as (tree, tree_id):
            assert tree == checkout
            return tree_id

    before = id_of()
    (checkout / "drivers" / "a.c").write_text("int c;\n")
    assert id_of() != before
    monkeypatch.setattr(host, "find", lambda program: None)
    assert id_of() != before
