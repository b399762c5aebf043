"""What the sets of records say beside what they said in a commit, metric by metric."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from cohort import host
from cohort.errors import UsageError
from cohort.results.catalogue import METRICS, Metric
from cohort.results.history import HISTORY
from cohort.results.judgement import judge
from cohort.results.query import Answer
from cohort.results.records import Record, parse_set, read_set, set_names, values
from cohort.results.spread import spread
from cohort.results.table import Cell

COLUMNS = ["set", "label", "metric", "unit", "before", "now", "is"]
ORDER: dict[str, int] = {"worse": 0, "better": 1}
SAME = ("workload", "launches", "memory_mb", "cpus", "arch", "page_size", "accel")
"""What two sets have in common if their figures are to be compared."""
log = logging.getLogger(__name__)


def changed(root: Path, home: Path, names: Sequence[str], since: str, full: bool) -> Answer:
    """The figures of sets in `home`, a directory in the checkout `root`, that are worse or better
    than in the commit `since`, set by set, the worse first. A figure is one or the other as `judge`
    finds it. No names are all sets but the history, which grows.

    `full` takes every metric and not only those of usual tables. A set that was not there
    is left out, and one of other runs with a warning. UsageError for a commit that there is not,
    NoRecords for such a set, Failed for lines that are no records.
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
        other = [key for key in SAME if getattr(before[0], key) != getattr(now[0], key)]
        if other:
            log.warning("%s: left out: its runs then had another %s", name, ", ".join(other))
            continue
        rows += sorted(_rows(name, before, now, full), key=lambda row: ORDER[row[-1]])
    return COLUMNS, rows


def _rows(
    name: str, before: Sequence[Record], now: Sequence[Record], full: bool
) -> Iterator[tuple[str, ...]]:
    """The figures of a set that are not even, by label and metric."""
    metrics = [metric for metric in METRICS if full or metric.shown]
    for label in dict.fromkeys(record.label for record in now):
        for metric in metrics:
            cell = _cell(metric, before, now, label)
            side = judge(cell)
            if side in ORDER:
                then = Cell(metric, cell.versus)
                shown = (f"{x.value} {x.range}".rstrip() for x in (then, cell))
                yield name, label, metric.name, metric.unit, *shown, side


def _cell(metric: Metric, before: Sequence[Record], now: Sequence[Record], label: str) -> Cell:
    new, old = (spread(values(records, label, metric.name)) for records in (now, before))
    return Cell(metric, new, old)


def _git(root: Path, *words: str) -> str | None:
    """What git prints; None where it fails."""
    done = host.run([host.need("git"), *words], cwd=root)
    return done.stdout if done.returncode == 0 else None
