"""The same short run on commit after commit: what it measured, and whether the newest is worse.

The runs are those of `make run`: RIVAL and OURS, 200 launches. They are kept in the set HISTORY, a
commit after the other, in the order in which they were added. A metric is lost where OURS is worse
than in the run of the same seed before, both by itself and in times of RIVAL of the same commit:
both change where the guest or the workload does, and how RIVAL finds buffers varies by chance.
Where RIVAL has nothing to be divided by, OURS alone is judged; a metric that is gone is lost.
"""

from collections.abc import Sequence
from math import inf
from pathlib import Path
from statistics import median

from cohort.errors import UsageError
from cohort.results import bounds as measured
from cohort.results.bounds import Bound, Rule
from cohort.results.catalogue import BY_NAME
from cohort.results.figures import Figures
from cohort.results.records import Record, read_set, values, write_lines
from cohort.results.spread import spread
from cohort.results.table import Cell

HISTORY = "history"
"""The set of records, and the page."""
RIVAL, OURS = "none", "region"
WORKLOAD, LAUNCHES = "phone-2g", 200


def records_file(home: Path) -> Path:
    """Where the commits' runs are kept, in the directory of all records."""
    return home / f"{HISTORY}.jsonl"


def read_rule(home: Path) -> Rule:
    """What bounds are made of, beside the directory of all records. Raises what `bounds` does."""
    return measured.read_rule(home.parent / f"{HISTORY}.toml")


def read(home: Path) -> tuple[list[Record], dict[str, Bound]]:
    """The commits' runs in the directory of all records, and the bounds that its sets make.

    Raises what `read_set` and `bounds` do.
    """
    return read_set(records_file(home)), measured.measure(read_rule(home), home)


def add(path: Path, records: Sequence[Record]) -> None:
    """Keep the runs of one commit, in place of what was kept of it. UsageError for other runs."""
    labels = {record.label for record in records}
    seeds = {label: {r.seed for r in records if r.label == label} for label in labels}
    fits = all(
        (r.workload, r.launches, r.accel) == (WORKLOAD, LAUNCHES, "deterministic") for r in records
    )
    if labels != {RIVAL, OURS} or seeds[RIVAL] != seeds[OURS] or not fits:
        raise UsageError(
            "these are not the runs that the history is made of",
            f"cohort compare {RIVAL} {OURS} --workload {WORKLOAD} --launches {LAUNCHES}",
        )
    kept = read_set(path) if path.is_file() else []
    write_lines(path, [x for x in kept if x.commit != records[0].commit] + list(records))


def commits(records: Sequence[Record]) -> list[str]:
    """The commits, as they were added."""
    return list(dict.fromkeys(record.commit for record in records))


def of_label(records: Sequence[Record], label: str, metric: str) -> float | None:
    """The median over the seeds; None where no run has the metric."""
    known = [x for x in values(records, label, metric) if x is not None]
    return median(known) if known else None


def times_rival(records: Sequence[Record], metric: str) -> float | None:
    """OURS in times of RIVAL; None where RIVAL has 0 or nothing."""
    ours, theirs = (of_label(records, label, metric) for label in (OURS, RIVAL))
    return ours / theirs if ours is not None and theirs else None


def _times_worse(metric: str, before: float, now: float) -> float:
    """How many times worse it is now; below 1 if it is better. What was 0 may be infinitely so."""
    good, bad = (before, now) if BY_NAME[metric].better == "lower" else (now, before)
    if bad == good:
        return 1.0
    return bad / good if good else inf


def losses(records: Sequence[Record], bounds: dict[str, Bound]) -> list[str]:
    """A sentence a metric and seed that the newest commit has worse than its bound allows, and one
    if the commit before has no run of any of its seeds."""
    names = commits(records)
    if len(names) < 2:
        return []
    earlier, latest = names[-2:]
    last, newest = (_by_seed(records, name) for name in (earlier, latest))
    common = sorted(last.keys() & newest.keys())
    if not common:
        return [f"history: {latest} and {earlier} have no seed in common to be compared by"]
    found = [
        _loss(metric, bound, (seed, earlier, latest), last[seed], newest[seed])
        for metric, bound in bounds.items()
        for seed in common
    ]
    return [sentence for sentence in found if sentence is not None]


def _by_seed(records: Sequence[Record], commit: str) -> dict[int, list[Record]]:
    """The runs of a commit, of both policies, by their seeds."""
    of_it = [record for record in records if record.commit == commit]
    return {x.seed: [record for record in of_it if record.seed == x.seed] for x in of_it}


def _loss(
    metric: str,
    bound: Bound,
    of: tuple[int, str, str],
    last: Sequence[Record],
    newest: Sequence[Record],
) -> str | None:
    """What is worse by more than the bound; `of` is the seed, and the commits before and now."""
    before, now = (of_label(records, OURS, metric) for records in (last, newest))
    times_before, times_now = (times_rival(records, metric) for records in (last, newest))
    seed, earlier, commit = of
    where = f"history: {metric}, seed {seed}"
    if before is None:
        return None
    was = f"{_value(metric, before, times_before)} on {earlier}"
    if now is None:
        return f"{where}: nothing on {commit}, {was}"
    worse = _times_worse(metric, before, now)
    if times_before is not None and times_now is not None:
        worse = min(worse, _times_worse(metric, times_before, times_now))
    if worse <= bound.most:
        return None
    return (
        f"{where}: {_value(metric, now, times_now)} on {commit}, {was}: "
        f"{worse:.3f} times worse, at most {bound.most:.3f} (over {bound.measured.n} seeds it "
        f"varies by {bound.measured.share:.1%})"
    )


def _value(metric: str, ours: float, times: float | None) -> str:
    beside = "" if times is None else f" ({times:.3f} x {RIVAL})"
    return f"{ours:.{BY_NAME[metric].digits}f}{beside}"


def table(records: Sequence[Record], bounds: dict[str, Bound], figures: Figures) -> str:
    """A row a commit, the newest first; a column a metric: OURS, and in times of RIVAL."""
    names = [BY_NAME[metric].title for metric in bounds]
    lines = [f"| commit | {' | '.join(names)} |", f"|---|{'--:|' * len(names)}"]
    for commit in reversed(commits(records)):
        of_it = [record for record in records if record.commit == commit]
        cells = [_cell(of_it, metric, commit, figures) for metric in bounds]
        lines.append(f"| {commit} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(records: Sequence[Record], metric: str, commit: str, figures: Figures) -> str:
    text = Cell(BY_NAME[metric], spread(values(records, OURS, metric))).value
    times = times_rival(records, metric)
    text += "" if times is None else f" ({times:.3f})"
    return figures.mark(HISTORY, f"{metric} on {commit}", text)
