"""A study's columns and seeds as runs, and the runs' results by column."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cohort import named, runs, tomlfile
from cohort.errors import UsageError
from cohort.kernel.build import KernelSpec
from cohort.phone.workload import load_workload
from cohort.policy import Policy, load_policy
from cohort.results.rundir import RunDir
from cohort.results.runs import Result, measure
from cohort.results.spread import Spread, spread
from cohort.run_spec import RunSpec
from cohort.study.schema import Column, Study
from cohort.units import PAGE

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """What the command may change about all runs of a study; None leaves it to the study."""

    seeds: Sequence[int] | None = None
    launches: int | None = None
    accel: str | None = None
    jobs: int | None = None
    fresh: bool = False
    one_commit: bool = False
    labels: Sequence[str] = ()
    arch: str = "x86_64"
    page_size: int = PAGE
    tree: Path | None = None
    kernel: KernelSpec | None = None


@dataclass(frozen=True)
class Findings:
    """A study and what its runs measured: the results of each label, one a seed."""

    study: Study
    columns: tuple[Column, ...]
    results: dict[str, list[Result]]

    @property
    def labels(self) -> list[str]:
        """The columns that were run, in order."""
        return [column.label for column in self.columns]

    def values(self, label: str, metric: str) -> list[float | None]:
        """A metric of a column, one value a seed."""
        return [result.metrics.get(metric) for result in self.results.get(label, [])]

    def spread(self, label: str, metric: str) -> Spread | None:
        """A metric of a column over the seeds; None if no run can tell it."""
        return spread(self.values(label, metric))


def columns_of(study: Study, wanted: Sequence[str] = ()) -> tuple[Column, ...]:
    """The study's columns, or those `wanted` by label. UsageError for a label that is none."""
    columns = study.columns
    labels = [column.label for column in columns]
    for label in wanted:
        if label not in labels:
            hint = named.hint(label, labels, "there are")
            raise UsageError(f"{study.name} has no column {label!r}", hint)
    return tuple(column for column in columns if not wanted or column.label in wanted)


def specs_of(study: Study, columns: Sequence[Column], options: Options) -> list[RunSpec]:
    """The runs of the columns, seed by seed."""
    seeds = options.seeds or study.seeds
    return [_spec(study, column, seed, options) for column in columns for seed in seeds]


def execute(
    study: Study,
    options: Options,
    progress: runs.Progress | None = None,
    engine: runs.Engine | None = None,
) -> Findings:
    """Make the runs that are not there yet, on `engine` or here, and measure them all."""
    columns = columns_of(study, options.labels)
    specs = specs_of(study, columns, options)
    _tell_capped(study, columns, options.launches)
    done = runs.execute_matrix(specs, options.jobs, progress, engine)
    return collect(study, columns, done)


def collect(study: Study, columns: tuple[Column, ...], done: Sequence[RunDir]) -> Findings:
    """The findings of finished runs, given in the order of `specs_of`."""
    each = len(done) // len(columns)
    results = {
        column.label: [
            replace(measure(run), policy=column.label) for run in done[i * each : (i + 1) * each]
        ]
        for i, column in enumerate(columns)
    }
    return Findings(study, columns, results)


def _spec(study: Study, column: Column, seed: int, options: Options) -> RunSpec:
    """The column's run. UsageError, beginning with the column, for what it says wrong."""
    try:
        return _run_of(study, column, seed, options)
    except UsageError as error:
        raise UsageError(f"column {column.label}: {error.message}", error.hint) from error


def _run_of(study: Study, column: Column, seed: int, options: Options) -> RunSpec:
    accel: Any = options.accel or study.accel
    return RunSpec(
        _policy(column),
        _workload(study, column),
        _launches(study, column, options),
        seed,
        accel=accel,
        cmdline=tuple(column.cmdline),
        change=tuple(_change(column).items()),
        fresh=options.fresh,
        one_commit=options.one_commit,
        arch=options.arch,
        page_size=options.page_size,
        tree=options.tree,
        kernel=options.kernel,
    )


def _workload(study: Study, column: Column) -> str:
    return column.workload or study.workload


def _change(column: Column) -> dict[str, int]:
    return {key: _number(key, value) for key, value in column.change.items()}


def _launches(study: Study, column: Column, options: Options) -> int | None:
    """The fewer of the column's own and the command's: young memory stays young in a short run.
    UsageError for a workload that cannot be read."""
    if options.launches is None:
        return column.launches
    return min(_own_launches(study, column), options.launches)


def _own_launches(study: Study, column: Column) -> int:
    """As many as the column has without the command: its own number, or the workload's."""
    if column.launches is not None:
        return column.launches
    return load_workload(_workload(study, column), _change(column)).launches.value


def _tell_capped(study: Study, columns: Sequence[Column], launches: int | None) -> None:
    """Say once which columns stay shorter than the command asks for."""
    if launches is None:
        return
    own_launches = {column.label: _own_launches(study, column) for column in columns}
    short = {label: own for label, own in own_launches.items() if own < launches}
    if short:
        label, own = next(iter(short.items()))
        more = f", and {len(short) - 1} more" if len(short) > 1 else ""
        log.warning(
            "--launches %d: the study has no more than %d of %s%s", launches, own, label, more
        )


def _policy(column: Column) -> Policy:
    """The column's policy with the knobs it adds, checked as if they stood in the policy's file."""
    policy = load_policy(column.policy)
    if not column.sysctl and not column.sysfs:
        return policy
    data = policy.model_dump()
    data["sysctl"] |= column.sysctl
    data["sysfs"] |= column.sysfs
    try:
        return Policy.model_validate(data)
    except ValidationError as error:
        key, what = tomlfile.first_problem(error)
        raise UsageError(f"{tomlfile.shown(key)}: {what}") from error


def _number(key: str, value: str | int) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"change {key}: {value!r} is no number") from None
