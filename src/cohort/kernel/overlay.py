"""Puts Cohort on a kernel tree and takes it off again.

New files come from the overlay (`kernel/`), hooks from the patch series; `hunks` has the rules by
which a hunk finds its place, the same on every tree, and `variants` those by which a hunk has
another form. Everything is looked at first, and only a
whole success is staged and then written: a hunk that is refused leaves the tree as it was. What was
there before is kept in `.cohort/` inside the tree, so taking Cohort off restores it to the byte.
What a command that was killed left half done the next one finishes. Callers hold the tree alone to
change it (`build.held_tree`).
"""

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cohort import host, paths
from cohort.errors import PatchError, UsageError
from cohort.kernel import hunks, source, variants
from cohort.kernel.hunks import Hunk, Landing, Refusal
from cohort.kernel.variants import Variant

STATE = ".cohort"
STAGE = ".cohort-stage-"
NOTHING_TO_DO = "already applied"
FITTING = "docs/how-to/patch-a-tree.md says how to make a hunk fit: a variant of it"


@dataclass(frozen=True)
class Series:
    """What is to be put on a tree: overlay files by their name in the tree, patches in order."""

    overlay: Path
    patches: Path
    files: tuple[Path, ...]
    names: tuple[str, ...]
    variants: tuple[Variant, ...] = ()

    @property
    def id(self) -> str:
        """By content: the overlay, the variants, and the patches in their order."""
        return host.digest(
            host.digest_tree(self.overlay, [self.overlay / f for f in self.files]),
            host.digest_tree(self.patches, variants.files_of(self.patches)),
            *(part for name in self.names for part in (name, (self.patches / name).read_bytes())),
        )


@dataclass
class Report:
    """What was done: `files` are new in the tree, `changed` the tree's own. `hunks` says where each
    hunk belongs; `refused` has only what a dry run found, as anything else raises."""

    action: str
    release: source.Release
    files: int = 0
    changed: int = 0
    patches: int = 0
    hunks: list[Landing] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """The hunks that are not at the line they expect, and those that are variants."""
        ours = f"{variants.FOLDER}/"
        return [str(x) for x in self.hunks if x.offset or x.hunk.patch.startswith(ours)]

    def error(self) -> PatchError:
        """The hunks that are refused, as the reason why nothing was changed."""
        lines = [f"does not apply to Linux {self.release}; the tree is as it was", *self.refused]
        return PatchError("\n  ".join(map(str, lines)), FITTING)


@dataclass(frozen=True)
class State:
    """What `.cohort/state.json` remembers. `made` and `changed` map files to their new content's
    SHA-256; `directories` were created by us. `earlier` maps them to the other contents in which a
    command that did not end may have left them."""

    id: str
    made: dict[str, str]
    changed: dict[str, str]
    directories: list[str]
    earlier: dict[str, list[str]] = field(default_factory=dict)

    @property
    def contents(self) -> dict[str, str]:
        """All files of ours, and their content's SHA-256."""
        return self.made | self.changed


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
    names = [n for n in names if n]
    return Series(overlay, patches, tuple(files), tuple(names), variants.load(patches, names))


def apply(tree: Path, series: Series | None = None, *, dry_run: bool = False) -> Report:
    """Put the series on the tree, bring an older one on it up to date, or complete this one where
    a file lacks it: an earlier command was killed, or git put the file back.

    Files whose content stays keep their time, so a build after it compiles only what changed.
    Raises PatchError if a hunk has no place of its own, or a file of ours was edited since; the
    tree is then untouched. A dry run tells of such hunks in its report instead, beside those that
    do have a place.
    """
    series = series or load_series()
    release = _supported(tree)
    state = read_state(tree)
    report = Report(_action(tree, series, state), release)
    report.files, report.patches = len(series.files), len(series.names)
    if report.action == NOTHING_TO_DO:
        return report
    _refuse_edited(tree, state)
    _refuse_taken(tree, series, state)
    texts = _patch(tree, series, report)
    report.changed = len(texts)
    if dry_run:
        report.action = "would not apply" if report.refused else "would apply"
        return report
    if report.refused:
        raise report.error()
    # On the tree's own file system: a full disk shows here, or where originals are kept. What
    # follows are renames.
    _clear_stages(tree)
    with tempfile.TemporaryDirectory(prefix=STAGE, dir=tree) as name:
        stage(tree, Path(name), series, texts)
        _install(tree, Path(name), series, list(texts), state)
    return report


def _action(tree: Path, series: Series, state: State | None) -> str:
    """What putting the series on the tree does."""
    if state is None:
        return "applied"
    if state.id != series.id:
        return "updated"
    return NOTHING_TO_DO if _is_whole(tree, state) else "completed"


def patched(tree: Path, series: Series) -> tuple[dict[str, list[str]], list[Landing]]:
    """The lines of the files that change, with the series on them, and where each hunk belongs;
    PatchError as for apply()."""
    report = Report("", _supported(tree))
    texts = _patch(tree, series, report)
    if report.refused:
        raise report.error()
    return texts, report.hunks


def revert(tree: Path, *, dry_run: bool = False) -> Report:
    """Take Cohort off; PatchError if files of it were edited since, which would be lost."""
    release = source.read_release(tree)
    state = read_state(tree)
    if state is None:
        return Report("not applied", release)
    report = Report("would revert" if dry_run else "reverted", release)
    report.files, report.changed = len(state.made), len(state.changed)
    _refuse_edited(tree, state)
    if not dry_run:
        _clear_stages(tree)
        _remove(tree, state.made, state.directories)
        # Not before: on a full disk what was removed has made room for it.
        _write_state(tree, replace(state, earlier=_earlier(tree, state)))
        _put_back(tree, state.changed)
        # The state goes first: without one, what is left beside it counts for nothing.
        _state_file(tree).unlink()
        shutil.rmtree(tree / STATE)
    return report


def applied_id(tree: Path) -> str | None:
    """What is on the tree, by content; None for nothing, and where a file lacks what was put on
    it."""
    state = read_state(tree)
    return state.id if state and _is_whole(tree, state) else None


def read_state(tree: Path) -> State | None:
    """What was put on the tree, or None."""
    path = _state_file(tree)
    return State(**json.loads(path.read_text())) if path.is_file() else None


def _write_state(tree: Path, state: State) -> None:
    values = asdict(state)
    if not state.earlier:
        del values["earlier"]  # which the lab of an older checkout cannot read
    host.write_json(_state_file(tree), values)


def _state_file(tree: Path) -> Path:
    return tree / STATE / "state.json"


def _is_whole(tree: Path, state: State) -> bool:
    """Whether the command that wrote the state ended, and each file has what that put into it."""
    files = state.contents.items()
    return not state.earlier and all(_digest_or_none(tree / x) == digest for x, digest in files)


def _supported(tree: Path) -> source.Release:
    release = source.read_release(tree)
    if release.series != source.SERIES:
        raise PatchError(
            f"{tree} is Linux {release}; the patches are for {source.SERIES}",
            f"use any {source.SERIES}.y tree",
        )
    return release


def original(tree: Path, file: str) -> Path:
    """The file as it was before us, which on a patched tree is the copy we kept. A copy that no
    state names is none: a command that failed may have left it, and the file been edited since."""
    state, kept = read_state(tree), _kept(tree, file)
    return kept if state and file in state.changed and kept.is_file() else tree / file


def _kept(tree: Path, file: str) -> Path:
    return tree / STATE / "original" / file


def _patch(tree: Path, series: Series, report: Report) -> dict[str, list[str]]:
    """The lines of the files that change, with all patches on them; `report` is told of each hunk.

    Goes on past a hunk that is refused, so that one run tells of all of them.
    """
    texts: dict[str, list[str]] = {}
    for name in series.names:
        wanted: dict[str, list[Hunk]] = {}
        for hunk in hunks.read_patch(series.patches / name):
            wanted.setdefault(hunk.file, []).append(hunk)
        for file, parts in wanted.items():
            if not original(tree, file).is_file():
                report.refused += [Refusal(hunk, "the tree has no such file") for hunk in parts]
                continue
            lines = texts[file] if file in texts else original_lines(tree, file)
            mine = [v for v in series.variants if v.number == name[:4] and file in v.files]
            chosen, unclear = variants.choose(lines, parts, mine)
            if chosen:
                texts[file], landings, refusals = hunks.patch_lines(lines, chosen)
                report.hunks += landings
                report.refused += refusals
                unclear += hunks.misplaced(lines, texts[file], landings)
            report.refused += unclear
    return texts


def original_lines(tree: Path, file: str) -> list[str]:
    """A file's lines as they are without Cohort."""
    return hunks.split(original(tree, file).read_bytes().decode(errors="surrogateescape"))


def _clear_stages(tree: Path) -> None:
    """Delete what a command that was killed had staged; the tree is held, so no other stages."""
    for left in tree.glob(f"{STAGE}*"):
        shutil.rmtree(left)


def stage(tree: Path, into: Path, series: Series, texts: Mapping[str, Sequence[str]]) -> None:
    """Write what is new and what changed below a directory; permissions stay."""
    for name, lines in texts.items():
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        (into / name).write_bytes("".join(lines).encode(errors="surrogateescape"))
        shutil.copymode(original(tree, name), into / name)
    for file in series.files:
        (into / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(series.overlay / file, into / file)


def _refuse_taken(tree: Path, series: Series, state: State | None) -> None:
    """The overlay brings new files only: never write over what the tree has itself."""
    ours = state.made if state else {}
    for file in series.files:
        if (tree / file).exists() and str(file) not in ours:
            raise PatchError(f"{tree} already has {file}, which Cohort would add")


def _refuse_edited(tree: Path, state: State | None) -> None:
    """Files of ours that were edited in the tree must not be lost."""
    if state is None:
        return
    for file in state.contents:
        path, kept = tree / file, _kept(tree, file)
        if path.is_file() and host.digest_file(path) not in _known(tree, state, file):
            back = f": cp {kept} {path}" if kept.is_file() else ""
            raise PatchError(
                f"{path} was edited since Cohort was applied",
                f"save the edit (in kernel/ or in a patch), then put the file back{back}",
            )


def _known(tree: Path, state: State, file: str) -> set[str]:
    """SHA-256 of each content of a file of ours that is no edit: what was put into it, its
    original, which git may have put back, and what a command that was killed may have left."""
    kept = _digest_or_none(_kept(tree, file))
    return {state.contents[file], *state.earlier.get(file, []), *([kept] if kept else [])}


def _digest_or_none(path: Path) -> str | None:
    return host.digest_file(path) if path.is_file() else None


def _install(
    tree: Path, staged: Path, series: Series, changed: list[str], old: State | None
) -> None:
    """Write what was staged. The state goes first: an interrupted install can be finished, and
    taken off."""
    new = State(
        series.id,
        {str(f): host.digest_file(staged / f) for f in series.files},
        {f: host.digest_file(staged / f) for f in changed},
        sorted({*(old.directories if old else []), *_new_directories(tree, series.files)}),
    )
    _begin(tree, new, old)
    for name in new.contents:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        _move(staged / name, tree / name)
    if old is not None:
        _remove(tree, old.made.keys() - new.made.keys(), [])
        _put_back(tree, {x: old.changed[x] for x in old.changed.keys() - new.changed.keys()})
        _write_state(tree, new)


def _begin(tree: Path, new: State, old: State | None) -> None:
    """Keep the originals, and write the state that holds until the new one is all there: with the
    files of the old one, too. After an error, such as of a full disk, the tree is as it was."""
    state = new
    if old is None:
        shutil.rmtree(tree / STATE, ignore_errors=True)
    else:
        made, changed = old.made | new.made, old.changed | new.changed
        state = State(new.id, made, changed, new.directories, _earlier(tree, old))
    try:
        (tree / STATE).mkdir(exist_ok=True)
        for name in new.changed:
            _keep(tree, name)
        _write_state(tree, state)
    except BaseException:
        if old is None:
            shutil.rmtree(tree / STATE, ignore_errors=True)
        raise


def _keep(tree: Path, name: str) -> None:
    """Copy a file that we change, unless that was done: whole, or not at all."""
    kept = _kept(tree, name)
    if original(tree, name) != kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with host.replacing(kept) as part:
            shutil.copy2(tree / name, part)


def _earlier(tree: Path, state: State) -> dict[str, list[str]]:
    """By file the SHA-256 of each content that it may have while another state takes the place of
    this one."""
    return {file: sorted(_known(tree, state, file)) for file in state.contents}


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


def _put_back(tree: Path, changed: Mapping[str, str]) -> None:
    """Put the originals of these files in their places. One that is kept no more is there already
    where a command was killed; OSError if the file has our content all the same."""
    for file, content in changed.items():
        kept = _kept(tree, file)
        if kept.is_file() or _digest_or_none(tree / file) == content:
            _move(kept, tree / file)


def _move(new: Path, target: Path) -> None:
    """Rename over the target, but leave a target alone that has the content already."""
    if not target.is_file() or target.read_bytes() != new.read_bytes():
        new.replace(target)
