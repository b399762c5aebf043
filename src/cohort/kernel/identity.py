"""What a source tree of the user's is: an id of its content, without a look at every byte of it."""

import os
from collections.abc import Iterator
from pathlib import Path

from cohort import host, paths
from cohort.kernel import overlay

CONTENT = "mm/"
"""The directory whose files are read where there is no git to ask."""
GIT = ".git"


def identify(tree: Path) -> str:
    """SHA-256 of what the tree is, made in a second or two.

    Of the top of a git checkout these are the commit, and the content of each file that is not as
    the commit has it or that git does not know; what git ignores is left out. Of any other tree
    they are the names and sizes of all files, and the content of those in mm/: an edit elsewhere
    that leaves a file's size as it is, is not seen.
    """
    apart = {GIT, overlay.STATE, _inside(tree, paths.out_dir())}
    changed = _changed(tree)
    if changed is None:
        found = sorted(_sizes(str(tree), "", apart))
        parts = [f"{name} {size}" for name, size in found]
        read = [name for name, _ in found if name.startswith(CONTENT)]
    else:
        commit, names = changed
        parts = [commit]
        read = [name for name in names if not any(f"{name}/".startswith(f"{x}/") for x in apart)]
    return host.digest(*parts, *(x for name in read for x in (name, _content(tree / name))))


def _inside(tree: Path, directory: Path) -> str:
    """The directory as the tree names it; GIT, which is left out anyway, for one elsewhere."""
    whole, top = directory.resolve(), tree.resolve()
    return str(whole.relative_to(top)) if whole.is_relative_to(top) else GIT


def _changed(tree: Path) -> tuple[str, list[str]] | None:
    """The commit and the names of all files that are not as it has them; None for a tree that is
    not the top of a checkout, or where git refuses."""
    if host.find("git") is None:
        return None
    said = _git(tree, "rev-parse", "--show-toplevel", "HEAD")
    top, _, commit = (said or "").strip().rpartition("\n")
    if not top or Path(top).resolve() != tree.resolve():
        return None
    # Names alone: how a difference is shown is a matter of the user's settings.
    found = _git(tree, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
    return None if found is None else (commit, sorted(x[3:] for x in found.split("\0") if x))


def _git(tree: Path, *words: str) -> str | None:
    """What git says of the tree, which stays as it is to the byte of its index; None if it refuses.
    Another checkout that the environment names, as in a hook of git's, is not meant."""
    own = {name: value for name, value in host.environment().items() if not name.startswith("GIT_")}
    own["GIT_OPTIONAL_LOCKS"] = "0"
    done = host.run([host.need("git"), "-C", tree, *words], env=own)
    return None if done.returncode else done.stdout


def _content(path: Path) -> str:
    """A word that tells the file's content, and that there is none, from any other."""
    if path.is_symlink():
        return f"link {path.readlink()}"
    if not path.is_file():
        return "gone"
    return f"{path.stat().st_mode & host.EXECUTABLE:o} {host.digest_file(path)}"


def _sizes(tree: str, at: str, apart: set[str]) -> Iterator[tuple[str, int]]:
    """All files below a directory of the tree, "" or with a slash behind it, and their bytes, but
    for what is apart. No Path: of 90,000 names that takes longer than all else."""
    with os.scandir(f"{tree}/{at}") as entries:
        for entry in entries:
            name = f"{at}{entry.name}"
            if name in apart:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _sizes(tree, f"{name}/", apart)
            else:
                yield name, entry.stat(follow_symlinks=False).st_size
