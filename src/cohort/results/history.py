"""The same short run on commit after commit: what it measured, and whether the newest is worse.

The runs are those of `make run`: RIVAL and OURS, 200 launches. They are kept in the set HISTORY, a
commit after the other, in the order in which they were added. A metric is lost where OURS is worse
both by itself and in times of RIVAL of the same commit: both change where the guest or the workload
does, and how RIVAL finds buffers varies by chance.
"""

from collections.abc import Sequence
from math import inf
from pathlib import Path
from statistics import median

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from cohort import tomlfile
from cohort.errors import UsageError
from cohort.results.catalogue import BY_NAME, meant
from cohort.results.figures import Figures
from cohort.results.records import Record, read_set, values, write_lines
from cohort.results.spread import spread
from cohort.results.table import Cell

HISTORY = "history"
"""The set of records, and the page."""
RIVAL, OURS = "none", "region"
WORKLOAD, LAUNCHES = "phone-2g", 200


class Bound(BaseModel):
    """How many times worse than on the commit before a metric of OURS may be, by itself and in
    times of RIVAL, and why not less."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    most: float = Field(gt=1)
    why: str


class Bounds(RootModel[dict[str, Bound]]):
    """The file, by metric."""


def read_bounds(path: Path) -> dict[str, Bound]:
    """The bounds by metric, in the file's order. UsageError for a file that is none."""
    text, data = tomlfile.read(path, "bounds")
    try:
        bounds = Bounds.model_validate(data).root
    except ValidationError as error:
        raise tomlfile.explain(path, error, "bounds", Bounds) from error
    for name in bounds:
        if name not in BY_NAME:
            line = tomlfile.line_of(text, [name])
            raise UsageError(f"{path}:{line}: there is no metric {name}", meant(name))
    return bounds


def records_file(home: Path) -> Path:
    """Where the commits' runs are kept, in the directory of all records."""
    return home / f"{HISTORY}.jsonl"


def read(home: Path) -> tuple[list[Record], dict[str, Bound]]:
    """The commits' runs in the directory of all records, and the bounds beside it.

    Raises what `read_set` and `read_bounds` do.
    """
    return read_set(records_file(home)), read_bounds(home.parent / f"{HISTORY}.toml")


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
    """A sentence a metric that the newest commit has worse than its bound allows."""
    names = commits(records)
    if len(names) < 2:
        return []
    last, newest = ([r for r in records if r.commit == name] for name in names[-2:])
    said = []
    for metric, bound in bounds.items():
        before, now = _judged(last, metric), _judged(newest, metric)
        if before is None or now is None:
            continue
        worse = min(_times_worse(metric, *both) for both in zip(before, now, strict=True))
        if worse > bound.most:
            digits = BY_NAME[metric].digits
            said.append(
                f"history: {metric}: {now[0]:.{digits}f} ({now[1]:.3f} x {RIVAL}) on {names[-1]}, "
                f"{before[0]:.{digits}f} ({before[1]:.3f} x) on {names[-2]}: "
                f"{worse:.2f} times worse, at most {bound.most:g} ({bound.why})"
            )
    return said


def _judged(records: Sequence[Record], metric: str) -> tuple[float, float] | None:
    """OURS, and in times of RIVAL; None where one of them says nothing."""
    ours, times = of_label(records, OURS, metric), times_rival(records, metric)
    return None if ours is None or times is None else (ours, times)


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
