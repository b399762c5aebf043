"""Checkers run over the tree, as test cases: formatting, types, shell, kernel style."""

import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import commit_messages
import house
import lab_house
from c_source import (
    foreign_functions,
    nameless,
    nameless_comments,
    nameless_in_patch,
    pages_of_4_kb,
)
from cohort import paths
from cohort.kernel import frozen, overlay, source
from cohort.results import pages
from tests_support import copy_originals, touched_files

BIN = Path(sys.executable).parent
FEATURE = paths.OVERLAY / "mm" / "cohort"
C_FILES = sorted(FEATURE.rglob("*.[ch]"))
FILES = sorted(file for file in FEATURE.rglob("*") if file.is_file())
HOOKS = paths.OVERLAY / "include" / "linux" / "cohort.h"
NAMED = [
    str(file.relative_to(paths.OVERLAY))
    for file in [*C_FILES, *sorted(HOOKS.parent.glob("cohort*.h"))]
    if FEATURE / "tests" not in file.parents
]
COMMENTED = sorted(
    str(file.relative_to(paths.ROOT))
    for folder in (
        paths.OVERLAY,
        paths.ROOT / "guest",
        paths.SUITES,
        paths.ROOT / "tests" / "integration",
    )
    for file in folder.rglob("*")
    if file.suffix in {".c", ".h"} or file.name.startswith("Kconfig")
) + sorted(str(file.relative_to(paths.ROOT)) for file in (paths.ROOT / "src").rglob("*.py"))
PATCHES = sorted(str(file.relative_to(paths.ROOT)) for file in paths.PATCHES.glob("*/*.patch"))
# Types of what checkpatch says that are no mistakes here. In all files: the entry in MAINTAINERS is
# a patch of its own, and a gate's; what stands for a hook, and for a list of which a part is asked,
# takes all arguments and uses some.
STYLE = ("FILE_PATH_CHANGES", "MACRO_ARG_UNUSED")
# In patches: an entry in fs/proc/base.c has the words for its permissions that all others there
# have.
AROUND = ("SYMBOLIC_PERMS",)
# In variants of patches, which are no mails: the place that one is for is a line as long as it is.
NO_MAIL = ("MISSING_SIGN_OFF", "COMMIT_LOG_LONG_LINE")
PAGE_LINES = 200
# A page that `cohort results` makes of a template begins so. Those of results have their own test.
MADE = "<!-- Made by `cohort results` of "
WRITTEN = sorted(
    str(page.relative_to(paths.ROOT))
    for page in (paths.ROOT / "docs").rglob("*.md")
    if not page.read_text(encoding="utf-8").startswith(MADE)
)
# Pages that are longer, and why.
LONG = {"docs/reference/metrics.md": "the list of all metrics, in which a name is looked up"}
SHELL = [
    paths.ROOT / ".ci" / "run",
    *sorted(paths.ROOT.glob("tests/**/*.sh")),
    *sorted(paths.SUITES.glob("**/*.sh")),
]


def check(*words: str | Path, cwd: Path = paths.ROOT) -> str:
    """Run a checker; the test fails with what it printed."""
    argv = [str(x) for x in words]
    done = subprocess.run(argv, cwd=cwd, text=True, capture_output=True, check=False)
    assert done.returncode == 0, (
        f"{' '.join(argv[:4])}:\n{done.stdout[-6000:]}{done.stderr[-3000:]}"
    )
    return done.stdout + done.stderr


@pytest.mark.gate
def test_python_is_formatted() -> None:
    check(BIN / "ruff", "format", "--check", ".")


@pytest.mark.gate
def test_python_has_no_lint() -> None:
    check(BIN / "ruff", "check", ".")


@pytest.mark.gate
def test_python_types() -> None:
    """Of the tests as well: they are read as often, and call what is typed."""
    check(BIN / "mypy", "--strict")


@pytest.mark.gate
def test_the_folders_of_the_lab_form_no_circle() -> None:
    """What two of them need lies in the lower one: either can be read, and tried, by itself."""
    files = lab_house.texts(paths.ROOT / "src" / lab_house.LAB)
    assert lab_house.circle(lab_house.arrows(files)) == []


@pytest.mark.gate
@pytest.mark.parametrize("name", NAMED)
def test_functions_of_the_feature_have_its_prefix(name: str) -> None:
    """`profile_cohort_pct` and every trace of the kernel know Cohort's functions by it."""
    assert foreign_functions((paths.OVERLAY / name).read_text(encoding="utf-8")) == []


@pytest.mark.gate
@pytest.mark.parametrize("name", [*COMMENTED, *PATCHES])
def test_comments_name_their_subject(name: str) -> None:
    """A page, a task or a process does what a comment says, not `somebody`."""
    text = (paths.ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".patch"):
        assert nameless_in_patch(text) == []
    elif name.endswith((".c", ".h")):
        assert nameless_comments(text) == []
    else:
        assert nameless(text.splitlines()) == []


@pytest.mark.gate
def test_the_header_of_the_hooks_is_short() -> None:
    """One predicate and one entry an event; what an event means stands at its entry."""
    assert len(HOOKS.read_text(encoding="utf-8").splitlines()) <= house.HEADER_LINES


@pytest.mark.gate
@pytest.mark.parametrize("path", FILES, ids=lambda x: str(x.relative_to(FEATURE)))
def test_a_file_of_the_feature_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= house.FILE_LINES


@pytest.mark.gate
def test_the_patches_add_little() -> None:
    """Of the series alone: a variant stands in for one of its patches in another release."""
    added = {
        file.name: house.added_lines(file.read_text(encoding="utf-8"))
        for file in paths.PATCHES.glob("6.12/*.patch")
    }
    assert sum(added.values()) <= house.PATCH_LINES, added


@pytest.mark.gate
@pytest.mark.parametrize("path", sorted((paths.ROOT / "guest").rglob("*.c")), ids=lambda x: x.name)
def test_the_guest_takes_no_page_for_4_kb(path: Path) -> None:
    """Its machine may have pages of 16 KiB: levels of the killer were four times too high there."""
    assert pages_of_4_kb(path.read_text(encoding="utf-8")) == []


@pytest.mark.gate
def test_shell() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    check("shellcheck", *SHELL)


@pytest.mark.gate
def test_pages_of_results_are_their_records() -> None:
    """No figure on them is typed, and none is older than its records."""
    assert pages.check(pages.Home(paths.ROOT)) == []


@pytest.mark.gate
def test_the_newest_commit_of_the_history_is_within_its_bounds() -> None:
    """The runs take ten minutes: what is compared by day is what was kept of them."""
    assert pages.losses(pages.Home(paths.ROOT)) == []


@pytest.mark.gate
@pytest.mark.parametrize("name", WRITTEN)
def test_a_page_written_by_hand_is_short(name: str) -> None:
    """One that is longer has two subjects, and is two pages; a page of `LONG` is in fact long."""
    lines = (paths.ROOT / name).read_text(encoding="utf-8").splitlines()
    assert (len(lines) > PAGE_LINES) == (name in LONG), len(lines)


@pytest.mark.gate
def test_commit_messages() -> None:
    """Of all commits since there is the check."""
    history = commit_messages.commits_since(commit_messages.START, paths.ROOT)
    if history is None:
        warnings.warn("the history is not here: no commit message was checked", stacklevel=1)
    found = {commit: commit_messages.problems(text) for commit, text in (history or {}).items()}
    assert {commit: wrong for commit, wrong in found.items() if wrong} == {}


@pytest.mark.gate
def test_arithmetic_under_sanitizers() -> None:
    if not (paths.ROOT / "tests" / "host" / "Makefile").is_file():
        pytest.skip("there is no tests/host")
    check("make", "-C", "tests/host")


@pytest.mark.kernel
def test_patches_fit_the_pinned_release_exactly(tree: Path, tmp_path: Path) -> None:
    """Zero fuzz, zero lines off, and taken off again to the byte."""
    if str(source.read_release(tree)) != source.PINNED:
        pytest.skip(f"the source installed is not {source.PINNED}")
    series = overlay.load_series()
    names = touched_files(series)
    copy = tmp_path / "linux"
    copy_originals(tree, copy, ["Makefile", "mm/Makefile", *names])
    before = {name: (copy / name).read_bytes() for name in names}
    report = overlay.apply(copy, series)
    assert report.action == "applied"
    assert report.notes == []
    overlay.revert(copy)
    assert {name: (copy / name).read_bytes() for name in names} == before
    assert not (copy / overlay.STATE).exists()


@pytest.mark.kernel
def test_what_frozen_structures_keep_is_as_documented(tree: Path) -> None:
    """docs/decisions/gki.md quotes the counts of `cohort kernel patch --frozen`."""
    text = (paths.ROOT / "docs/decisions/gki.md").read_text(encoding="utf-8")
    found = frozen.report(tree, overlay.load_series())
    for title, kind in (("structures", found.structures), ("enums", found.enums)):
        members = sum(len(one.adds) for one in kind)
        assert f"| {title} | {len(kind)}, with {members} new members |" in text
        assert [one.name for one in kind if f"`{one.name}`" not in text] == []
    assert f"| exports | {len(found.exports)} added, " in text
    assert f"with a hook of Cohort in them | {len(found.functions)} |" in text


@pytest.mark.kernel
def test_git_am_takes_the_series(tree: Path, tmp_path: Path) -> None:
    """With the result that `cohort kernel patch` has, and the author that the patches name."""
    if str(source.read_release(tree)) != source.PINNED:
        pytest.skip(f"the source installed is not {source.PINNED}")
    series = overlay.load_series()
    names = touched_files(series)
    copy_originals(tree, tmp_path, names)
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@y.example")
    check("git", "init", "-q", cwd=tmp_path)
    check("git", "add", "--all", "--force", cwd=tmp_path)
    check(*git, "commit", "-q", "-m", "stock", cwd=tmp_path)
    check(*git, "am", "-q", *(series.patches / name for name in series.names), cwd=tmp_path)
    assert [x for x in names if (tmp_path / x).read_bytes() != (tree / x).read_bytes()] == []
    authors = check("git", "log", "--format=%ae", "--grep=^Signed-off-by: ", cwd=tmp_path).split()
    assert len(authors) == len(series.names)
    assert "x@y.example" not in authors


@pytest.mark.kernel
def test_maintainers_stays_in_order(tree: Path) -> None:
    """The entry stands between its neighbours by the alphabet."""
    text = (tree / "MAINTAINERS").read_text(encoding="utf-8")
    titles = [part.partition("\n")[0] for part in text.split("\n\n")]
    where = titles.index("COHORT")
    assert sorted(titles[where - 1 : where + 2]) == titles[where - 1 : where + 2]


def checkpatch(tree: Path, ignored: tuple[str, ...], *words: str | Path) -> None:
    """The test fails with what the kernel's checker of style says, but for these types."""
    # Two lines of help are enough for an option of tests.
    says = ("--no-tree", "--terse", "--no-summary", "--show-types", "--min-conf-desc-length=2")
    program = ("perl", tree / "scripts/checkpatch.pl")
    check(*program, *says, "--ignore", ",".join(ignored), *words, cwd=tree)


@pytest.mark.kernel
def test_checkpatch(tree: Path) -> None:
    """No error and no warning in what is new: code, Kconfig, make's files and documents."""
    files = sorted(x for x in paths.OVERLAY.rglob("*") if x.is_file())
    checkpatch(tree, STYLE, "-f", *files)


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("name", "ignored"),
    [("*.patch", ()), ("variants/*.patch", NO_MAIL)],
    ids=["series", "variants"],
)
def test_checkpatch_of_patches(name: str, ignored: tuple[str, ...], tree: Path) -> None:
    """Nor in the hooks, and what a patch's mail says."""
    files = sorted(overlay.load_series().patches.glob(name))
    assert files
    checkpatch(tree, (*STYLE, *AROUND, *ignored), *files)


@pytest.mark.kernel
def test_kernel_doc(tree: Path) -> None:
    headers = [*C_FILES, *sorted(paths.OVERLAY.glob("include/**/*.h"))]
    said = check("perl", tree / "scripts/kernel-doc", "-none", *headers, cwd=tree)
    assert "warning" not in said, said
