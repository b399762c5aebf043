"""Runs of a set made again, by the commands that its records name."""

import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cohort import checkout, paths
from cohort.errors import Failed, UsageError
from cohort.results import export
from cohort.results.history import HISTORY
from cohort.results.records import Record, check_build, check_commit, read_set
from cohort.results.rundir import RunDir
from cohort.sets import collect, suites

Call = Callable[[Sequence[str]], Any]
"""What runs a `cohort` command, by its words, and returns what its verb does: of `compare` and
`scale` the runs that it made."""

DETERMINISTIC = "deterministic"
SUITE = "suite"
log = logging.getLogger(__name__)


def read(path: Path, verify: bool) -> list[Record]:
    """The set at `path`, if its runs can be made again and kept, or else verified, here.

    UsageError, before anything is run, for the history, in a changed checkout, for a command that
    leaves no runs, and where runs are to be verified that nothing binds to be the same.
    """
    name, here = path.stem, checkout.commit()
    if name == HISTORY:
        raise UsageError(f"{HISTORY} grows by a commit at a time", "cohort results history --last")
    records = read_set(path)
    check_commit(name, here)
    commands_of(records)
    if verify and records[0].commit != here:
        raise UsageError(
            f"{name} is of commit {records[0].commit}, and this is {here}",
            f"git worktree add --detach DIR {records[0].commit}, and in DIR these records:"
            f" git checkout {here} -- docs/results/records",
        )
    if verify and not _ids(records):
        raise UsageError(f"{name} is of runs that take the host's time: none repeats to the byte")
    return records


def commands_of(records: Sequence[Record]) -> list[list[str]]:
    """The commands that made a set, each once and in words, without `cohort`.

    UsageError for one that leaves no runs behind.
    """
    lines = dict.fromkeys(record.command for record in records)
    found = [_words(line) for line in lines]
    for words in found:
        if not words or words[0] not in _COLLECT:
            raise UsageError(f"`cohort {shlex.join(words)}` leaves no runs to keep")
    return found


def _words(line: str) -> list[str]:
    """The words behind `cohort` on a command line; UsageError for none that a shell reads."""
    try:
        return shlex.split(line)[1:]
    except ValueError as error:
        raise UsageError(f"`{line}` is no command: {error}") from error


def make(old: Sequence[Record], call: Call, options: Mapping[str, Sequence[str]]) -> list[Record]:
    """Run the commands of a set on this checkout and return its new records.

    `options` are words that a verb is given besides. Raises what the verbs raise; cases of a suite
    that differ are results, and a warning. Failed for runs that are not those of the set.
    """
    made: list[Record] = []
    for words in commands_of(old):
        runs: Sequence[RunDir] = ()
        try:
            runs = call([*words, *options.get(words[0], ())])
        except Failed as error:
            if words[0] != SUITE:
                raise
            log.warning("%s: %s", shlex.join(words), error)
        made += _COLLECT[words[0]](words, runs)
    check_build(made, "the runs do not make one table")
    _check_cells(old, made)
    return made


def _check_cells(old: Sequence[Record], made: Sequence[Record]) -> None:
    """Failed unless both have the same labels and seeds, of the same commands: what a verb leaves
    in out/ may by now be another command's."""
    before, now = ({(x.label, x.seed): x.command for x in each} for each in (old, made))
    for cell in sorted(before.keys() | now.keys()):
        if before.get(cell) != now.get(cell):
            kept, other = (f"`{x[cell]}`" if cell in x else "none" for x in (before, now))
            raise Failed(
                f"the runs are not those of the set: of {cell[0]} (seed {cell[1]}) it has "
                f"{kept}, and made was {other}",
                "did another command use the same out/ meanwhile?",
            )


def check_same(name: str, old: Sequence[Record], new: Sequence[Record]) -> None:
    """Failed, naming the first, if a deterministic run is another than the set's."""
    kept, ids = _ids(old), _ids(new)
    other = [cell for cell in kept if ids.get(cell) != kept[cell]]
    if other:
        label, seed = other[0]
        raise Failed(
            f"{name}: {len(other)} of {len(kept)} runs are others than the set's, first {label} "
            f"(seed {seed}): {ids.get(other[0], 'not made')}, and not {kept[other[0]]}"
        )


def _ids(records: Sequence[Record]) -> dict[tuple[str, int], str]:
    """What the guests said, by label and seed, of the runs that repeat to the byte."""
    return {(x.label, x.seed): x.records_id for x in records if x.accel == DETERMINISTIC}


def _of_compare(words: Sequence[str], runs: Sequence[RunDir]) -> list[Record]:
    return collect.of_runs([run.path for run in runs])


def _of_study(words: Sequence[str], runs: Sequence[RunDir]) -> list[Record]:
    return collect.of_study(paths.made("studies") / f"{words[1]}.json")


def _of_scale(words: Sequence[str], runs: Sequence[RunDir]) -> list[Record]:
    return collect.of_scale([run.path for run in runs])


def _of_suite(words: Sequence[str], runs: Sequence[RunDir]) -> list[Record]:
    return suites.of_suite(paths.made("suites", "runs", words[1]))


_COLLECT: Mapping[str, Callable[[Sequence[str], Sequence[RunDir]], list[Record]]] = {
    export.COMPARE: _of_compare,
    "study": _of_study,
    export.SCALE: _of_scale,
    SUITE: _of_suite,
}
