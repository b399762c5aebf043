"""Puts Cohort on a kernel tree and takes it off again.

New files come from the overlay (`kernel/`), hooks from the patch series. Everything is staged
first in a directory of its own, from copies of the files that change, and only a whole success
is written into the tree: a hunk that fails leaves the tree as it was. What was there before is
kept in `.cohort/` inside the tree, so taking Cohort off restores it to the byte.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cohort import host, paths
from cohort.errors import PatchError, UsageError
from cohort.kernel import source

STATE = ".cohort"
FUZZ = 2  # lines of context that may differ on a release we did not pin

TARGET = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)$")
FAILED = re.compile(r"^Hunk #(\d+) FAILED at (\d+)")
MOVED = re.compile(r"^Hunk #(\d+) succeeded at (\d+)(?: with (fuzz \d+))?(?: \(offset (-?\d+))?")
PATCHING = re.compile(r"^(?:patching|checking) file '?([^']+?)'?$")


@dataclass(frozen=True)
class Series:
    """What is to be put on a tree: overlay files by their name in the tree, patches in order."""

    overlay: Path
    patches: Path
    files: tuple[Path, ...]
    names: tuple[str, ...]

    @property
    def id(self) -> str:
        """By content: the overlay, and the patches in their order."""
        return host.digest(
            host.digest_tree(self.overlay, [self.overlay / f for f in self.files]),
            *(part for name in self.names for part in (name, (self.patches / name).read_bytes())),
        )


@dataclass
class Report:
    """What was done; `notes` are hunks that applied elsewhere or with fuzz."""

    action: str
    release: source.Release
    files: int = 0
    patches: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class State:
    """What `.cohort/state.json` remembers. `made` and `changed` map files to their new content's
    SHA-256; `directories` were created by us."""

    id: str
    made: dict[str, str]
    changed: dict[str, str]
    directories: list[str]


def load_series(overlay: Path | None = None, patches: Path | None = None) -> Series:
    """The repository's own series, or another one."""
    overlay = overlay or paths.OVERLAY
    patches = patches or paths.PATCHES / source.SERIES
    files = sorted(p.relative_to(overlay) for p in overlay.rglob("*") if p.is_file())
    listed = patches / "series"
    lines = listed.read_text().splitlines() if listed.is_file() else []
    names = [line.split("#")[0].strip() for line in lines]
    missing = [n for n in names if n and not (patches / n).is_file()]
    if missing:
        raise UsageError(f"{listed} names {missing[0]}, which is not there")
    return Series(overlay, patches, tuple(files), tuple(n for n in names if n))


def apply(tree: Path, series: Series | None = None, *, dry_run: bool = False) -> Report:
    """Put the series on the tree, or bring an older one on it up to date.

    Files whose content stays keep their time, so a build after it compiles only what changed.
    Raises PatchError if a hunk does not fit; the tree is then untouched.
    """
    series = series or load_series()
    release = _supported(tree)
    state = read_state(tree)
    report = Report("applied" if state is None else "updated", release)
    report.files, report.patches = len(series.files), len(series.names)
    if state is not None and state.id == series.id:
        report.action = "already applied"
        return report
    _refuse_edited(tree, state)
    # Staged on the tree's own file system: a full disk shows here, and what follows are renames.
    where = None if dry_run else tree
    with tempfile.TemporaryDirectory(prefix=".cohort-stage-", dir=where) as name:
        stage = Path(name)
        changed = _stage(tree, stage, series, report)
        _refuse_taken(tree, series, state)
        if dry_run:
            report.action = "would apply"
            return report
        for file in series.files:
            (stage / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(series.overlay / file, stage / file)
        _install(tree, stage, series, changed, state)
    return report


def revert(tree: Path, *, dry_run: bool = False) -> Report:
    """Take Cohort off; PatchError if files of it were edited since, which would be lost."""
    release = source.read_release(tree)
    state = read_state(tree)
    if state is None:
        return Report("not applied", release)
    report = Report("would revert" if dry_run else "reverted", release)
    report.files, report.patches = len(state.made), len(state.changed)
    _refuse_edited(tree, state)
    if not dry_run:
        _remove(tree, state.made, state.directories)
        for file in state.changed:
            _move(tree / STATE / "original" / file, tree / file)
        shutil.rmtree(tree / STATE)
    return report


def applied_id(tree: Path) -> str | None:
    """What is on the tree, by content; None for nothing."""
    state = read_state(tree)
    return state.id if state else None


def read_state(tree: Path) -> State | None:
    """What was put on the tree, or None."""
    path = tree / STATE / "state.json"
    return State(**json.loads(path.read_text())) if path.is_file() else None


def _supported(tree: Path) -> source.Release:
    release = source.read_release(tree)
    if release.series != source.SERIES:
        raise PatchError(
            f"{tree} is Linux {release}; the patches are for {source.SERIES}",
            f"use any {source.SERIES}.y tree",
        )
    return release


def touched_files(series: Series) -> list[str]:
    """The files of the tree the patches change, by name, in order of appearance."""
    texts = [(series.patches / name).read_text() for name in series.names]
    return list(dict.fromkeys(file for text in texts for file in TARGET.findall(text)))


def original(tree: Path, file: str) -> Path:
    """The file as it was before us, which on a patched tree is the copy we kept."""
    kept = tree / STATE / "original" / file
    return kept if kept.is_file() else tree / file


def _stage(tree: Path, stage: Path, series: Series, report: Report) -> list[str]:
    """Patch copies in `stage`; returns the files that changed, relative to the tree."""
    changed = touched_files(series)
    for file in changed:
        before = original(tree, file)
        if not before.is_file():
            raise PatchError(f"the patches change {file}, which {tree} does not have")
        (stage / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(before, stage / file)
    fuzz = 0 if str(report.release) == source.PINNED else FUZZ
    for name in series.names:
        report.notes += _patch(stage, series.patches / name, fuzz, report.release)
    return changed


def _patch(stage: Path, patch: Path, fuzz: int, release: source.Release) -> list[str]:
    """Apply one patch in `stage`; returns notes on hunks that did not fit exactly."""
    done = host.run(
        [
            *(host.need("patch"), "-p1", "--batch", "--forward", f"--fuzz={fuzz}"),
            *("--no-backup-if-mismatch", "--reject-file=-", "--input", patch.resolve()),
        ],
        cwd=stage,
    )
    failed, notes = _read_patch_output(done.stdout, patch)
    if done.returncode != 0:
        what = failed or [f"{patch.name}: {(done.stderr or done.stdout).strip()}"]
        raise PatchError(
            f"does not apply to Linux {release}; the tree is as it was\n  " + "\n  ".join(what)
        )
    return notes


def _read_patch_output(output: str, patch: Path) -> tuple[list[str], list[str]]:
    """What GNU patch said of its hunks: those that failed, those that applied with a difference."""
    functions = _hunk_functions(patch.read_text())
    file, failed, notes = "", [], []
    for line in output.splitlines():
        if match := PATCHING.match(line):
            file = match[1]
        elif match := FAILED.match(line):
            function = functions.get((file, int(match[1])), "")
            failed.append(f"{file}:{match[2]}: in {function or 'file scope'}: {patch.name}")
        elif match := MOVED.match(line):
            function = functions.get((file, int(match[1])), "")
            how = match[3] or f"{match[4]} lines off"
            notes.append(f"{file}:{match[2]}: in {function or 'file scope'}: {patch.name}: {how}")
    return failed, notes


def _hunk_functions(text: str) -> dict[tuple[str, int], str]:
    """The function each hunk is in, by file and the hunk's number in the file."""
    functions = {}
    file, number = "", 0
    for line in text.splitlines():
        if match := TARGET.match(line):
            file, number = match[1], 0
        elif match := HUNK.match(line):
            number += 1
            functions[(file, number)] = match[1].strip()
    return functions


def _refuse_taken(tree: Path, series: Series, state: State | None) -> None:
    """The overlay brings new files only: never write over what the tree has itself."""
    ours = state.made if state else {}
    for file in series.files:
        if (tree / file).exists() and str(file) not in ours:
            raise PatchError(f"{tree} already has {file}, which Cohort would add")


def _refuse_edited(tree: Path, state: State | None) -> None:
    """Files of ours that somebody edited in the tree must not be lost."""
    if state is None:
        return
    for file, content in (state.made | state.changed).items():
        path, kept = tree / file, tree / STATE / "original" / file
        # The original itself is there if an earlier command was killed half way.
        if path.is_file() and host.digest_file(path) not in (content, _digest_or_none(kept)):
            raise PatchError(
                f"{path} was edited since Cohort was applied",
                "save the edit (in kernel/ or in a patch), then put the file back",
            )


def _digest_or_none(path: Path) -> str | None:
    return host.digest_file(path) if path.is_file() else None


def _install(
    tree: Path, stage: Path, series: Series, changed: list[str], old: State | None
) -> None:
    """Write what was staged. The state goes first: an interrupted install can be taken off."""
    new = State(
        series.id,
        {str(f): host.digest_file(series.overlay / f) for f in series.files},
        {f: host.digest_file(stage / f) for f in changed},
        sorted({*(old.directories if old else []), *_new_directories(tree, series.files)}),
    )
    (tree / STATE).mkdir(exist_ok=True)
    for name in changed:
        kept = tree / STATE / "original" / name
        if not kept.is_file():
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, kept)
    host.write_json(tree / STATE / "state.json", vars(new))
    for name in [*new.made, *changed]:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        _move(stage / name, tree / name)
    if old is not None:
        _remove(tree, old.made.keys() - new.made.keys(), [])
        for name in old.changed.keys() - new.changed.keys():
            _move(tree / STATE / "original" / name, tree / name)


def _new_directories(tree: Path, files: tuple[Path, ...]) -> Iterator[str]:
    for file in files:
        for parent in file.parents[:-1]:
            if not (tree / parent).is_dir():
                yield str(parent)


def _remove(tree: Path, files: Iterable[str], dirs: list[str]) -> None:
    """Delete files of ours, then directories of ours that are empty, deepest first."""
    for file in files:
        (tree / file).unlink(missing_ok=True)
    for directory in sorted(dirs, key=len, reverse=True):
        path = tree / directory
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _move(new: Path, target: Path) -> None:
    """Rename over the target, but leave a target alone that has the content already."""
    if not target.is_file() or target.read_bytes() != new.read_bytes():
        new.replace(target)
