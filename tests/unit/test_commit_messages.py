"""What the check of commit messages lets pass, on made messages and made repositories."""

import sys
from pathlib import Path

import pytest

import commit_messages as check
from tests_support import git

GOOD = "lab: a verb that waits\n\nA guest that is slow to start was taken for a dead one.\n"
SCRIPT = Path(check.__file__)


@pytest.mark.parametrize("area", check.AREAS)
def test_a_good_message(area: str) -> None:
    subject = f"{area}: ".ljust(check.SUBJECT_COLUMNS, "x")
    assert check.problems(f"{subject}\n\n{'why ' * 18}why\n") == []


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("lab: a verb\n", "why"),
        ("lab: a verb\n\nSigned-off-by: A <a@b.example>\n", "why"),
        ("lab: a verb\nIt waits.\n", "not blank"),
        (GOOD.replace("lab", "lib"), "area of mm/cohort, lab,"),
        (GOOD.replace("lab: ", ""), "area: what"),
        (GOOD.replace("lab: ", "lab, docs: "), "area: what"),
        (GOOD.replace("waits", "waits."), "full stop"),
        (GOOD.replace("waits", "x" * 56), "73 columns, more than 72"),
        (GOOD.replace("A guest", "A guest and all of its programs"), "more than 75: A guest"),
        ("", "area: what"),
    ],
)
def test_a_bad_message(message: str, said: str) -> None:
    assert said in "; ".join(check.problems(message))


@pytest.mark.parametrize("line", ["x" * 80, "    " + "output " * 12, "Link: https://" + "x" * 70])
def test_what_cannot_be_broken_may_be_long(line: str) -> None:
    assert check.problems(f"{GOOD}\n{line}\n") == []


def test_the_script_is_a_hook_of_git(tmp_path: Path) -> None:
    """Good messages make commits, bad ones do not; so do messages of git's own."""
    (tmp_path / ".git/hooks").mkdir(parents=True)
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/hooks/commit-msg").write_text(
        f'#!/bin/sh\nexec {sys.executable} "{SCRIPT}" "$1"\n'
    )
    (tmp_path / ".git/hooks/commit-msg").chmod(0o755)
    assert (
        commit(
            tmp_path,
            GOOD
            + "# a comment of git's, which may have any number of columns at all, also so many\n",
        )
        == ""
    )
    assert "not `area: what`" in commit(tmp_path, "more work\n\nNeeded.\n")
    assert commit(tmp_path, "fixup! lab: a verb that waits\n") == ""
    first = git(tmp_path, "rev-list", "--max-parents=0", "HEAD").strip()
    assert list((check.commits_since(first, tmp_path) or {}).values()) == [
        "fixup! lab: a verb that waits\n"
    ]


def test_a_history_without_the_start_is_not_looked_at(tmp_path: Path) -> None:
    assert check.commits_since(check.START, tmp_path) is None
    git(tmp_path, "init", "-q")
    assert check.commits_since(check.START, tmp_path) is None
    commit(tmp_path, "anything")
    assert check.commits_since(check.START, tmp_path) is None


def commit(where: Path, message: str) -> str:
    """Commit nothing with this message; why it was refused, or an empty text."""
    try:
        git(where, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", message)
    except AssertionError as error:
        return str(error)
    return ""
