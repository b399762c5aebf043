"""What the sets of records say beside what they said in a commit, metric by metric."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from cohort import host
from cohort.errors import UsageError
from cohort.results.catalogue import METRICS, Metric
from cohort.results.history import HISTORY
from cohort.results.judgement import Side, judge
from cohort.results.query import Answer
from cohort.results.records import Record, parse_set, read_set, set_names, values
from cohort.results.spread import spread
from cohort.results.table import Cell

COLUMNS = ["set", "label", "metric", "unit", "before", "now", "is"]
ORDER: dict[str, int] = {"worse": 0, "better": 1}
SAME = ("workload", "launches", "memory_mb", "cpus", "arch", "page_size", "accel")
"""What two labels have in common if their figures are to be compared."""
log = logging.getLogger(__name__)


def changed(root: Path, home: Path, names: Sequence[str], since: str, full: bool) -> Answer:
    """The figures of sets in `home`, a directory in the checkout `root`, that are worse or better
    than in the commit `since`, set by set, the worse first. A figure is one or the other as `judge`
    finds it, and worse where runs have lost it. No names are all sets but the history, which grows.

    `full` takes every metric and not only those of usual tables. A set that was not there is left
    out, and with a warning a label that was not, that is gone, or that is of other runs. UsageError
    for a commit that there is not, NoRecords for such a set, Failed for lines that are no records.
    """
    found = _git(root, "rev-parse", "--verify", "--quiet", f"{since}^{{commit}}")
    if found is None:
        raise UsageError(f"there is no commit {since} in this checkout", "git log --oneline")
    rows = []
    for name in names or [x for x in set_names(home) if x != HISTORY]:
        path = home / f"{name}.jsonl"
        now = read_set(path)
        text = _git(root, "show", f"{found.strip()}:{path.relative_to(root).as_posix()}")
        if text is None:
            log.info("%s: left out: there was none in %s", name, since)
            continue
        before = parse_set(path, text.removesuffix("\n").split("\n"))
        labels = _alike(name, before, now, since)
        rows += sorted(_rows(name, labels, before, now, full), key=lambda row: ORDER[row[-1]])
    return COLUMNS, rows


def _alike(name: str, before: Sequence[Record], now: Sequence[Record], since: str) -> list[str]:
    """The labels of a set that are of the same runs then and now; a warning tells of the others."""
    labels = dict.fromkeys(record.label for record in [*now, *before])
    why = {label: _unlike(label, before, now, since) for label in labels}
    for reason in dict.fromkeys(filter(None, why.values())):
        left = ", ".join(label for label in labels if why[label] == reason)
        log.warning("%s: %s left out: %s", name, left, reason)
    return [label for label in labels if not why[label]]


def _unlike(label: str, before: Sequence[Record], now: Sequence[Record], since: str) -> str:
    """Why the runs of a label are not to be compared; empty if they are."""
    then, there = ([x for x in records if x.label == label] for records in (before, now))
    if not then:
        return f"there was none in {since}"
    if not there:
        return "there is none any more"
    other = [x for x in SAME if {getattr(r, x) for r in then} != {getattr(r, x) for r in there}]
    return f"the runs then had another {', '.join(other)}" if other else ""


def _rows(
    name: str, labels: Sequence[str], before: Sequence[Record], now: Sequence[Record], full: bool
) -> Iterator[tuple[str, ...]]:
    """The figures of these labels of a set that are not even, by label and metric."""
    metrics = [metric for metric in METRICS if full or metric.shown]
    for label in labels:
        for metric in metrics:
            cell = _cell(metric, before, now, label)
            side = _side(cell)
            if side in ORDER:
                shown = map(_shown, (Cell(metric, cell.versus), cell))
                yield name, label, metric.name, metric.unit, *shown, side


def _cell(metric: Metric, before: Sequence[Record], now: Sequence[Record], label: str) -> Cell:
    new, old = (spread(values(records, label, metric.name)) for records in (now, before))
    return Cell(metric, new, old)


def _side(cell: Cell) -> Side:
    """As `judge` finds it; worse where fewer runs have the metric, or none has any more, unless it
    is one that a run may have none of."""
    now, then = cell.spread, cell.versus
    if not cell.metric.conditional and then and (now is None or now.absent > then.absent):
        return "worse"
    return judge(cell)


def _shown(cell: Cell) -> str:
    return " ".join(filter(None, (cell.value, cell.range, cell.some)))


def _git(root: Path, *words: str) -> str | None:
    """What git prints; None where it fails."""
    done = host.run([host.need("git"), *words], cwd=root)
    return done.stdout if done.returncode == 0 else None
