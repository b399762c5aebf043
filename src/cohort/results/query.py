"""All runs as tables that SQL can be asked of: those that are kept, those in out/runs, and what the
guests of these said."""

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from cohort import host
from cohort.errors import CohortError, Failed, Skipped, UsageError
from cohort.results.catalogue import METRICS
from cohort.results.experiments import Number
from cohort.results.records import Record, read_set, set_names
from cohort.results.rundir import MAKE_AGAIN, RunDir, finished
from cohort.results.runs import OLDER, check_meta, metrics_of

log = logging.getLogger(__name__)

Answer = tuple[list[str], list[tuple[Any, ...]]]
"""The names of the columns, and the rows."""

KEPT, MADE, SAID = "runs", "made", "events"
"""The tables."""
METRIC_NAMES = [metric.name for metric in METRICS]
KEPT_COLUMNS = ["name", *(x for x in Record.model_fields if x != "metrics")]
META_COLUMNS = (
    *("policy", "seed", "workload", "launches", "memory_mb", "cpus", "accel", "arch", "page_size"),
    *("started", "wall_s"),
)
VERSION_COLUMNS = {"commit": "cohort_git", "kernel": "kernel", "qemu": "qemu", "gcc": "gcc"}
MADE_COLUMNS = ["run", *META_COLUMNS, *VERSION_COLUMNS]
SAID_COLUMNS = ["run", "r", "t", "record"]

_ASK = f"the tables are {KEPT}, {MADE} and {SAID}: cohort results --sql 'DESCRIBE {KEPT}'"
_EMPTY = {
    KEPT: ("there are no records", "make them: cohort results add"),
    **dict.fromkeys((MADE, SAID), ("there are no finished runs", "make some: cohort compare")),
}


def ask(records: Path | None, runs: Path, sql: str) -> Answer:
    """The answer to a query of the runs kept in the directory `records` and made in `runs`. These
    are measured anew, as the definition of a metric may have changed since.

    `runs` has a row a run that is kept, `made` one a directory, both a column a metric, NULL where
    a run has none; `events` has a row a record of a guest. UsageError for a query that is wrong,
    with the tables and their columns, or of a table without rows; Skipped for one of `runs` without
    `records`.
    """
    if records is None and _names(sql, KEPT):
        raise Skipped(
            "the records are in a checkout, and this is a wheel", f"ask {MADE} or {SAID} instead"
        )
    directories = finished(runs)
    # Of each run two files are read: only for a query that asks for them.
    kept = _kept(records) if records else _frame([], KEPT_COLUMNS)
    tables = {KEPT: kept, MADE: _made(directories if _names(sql, MADE) else [])}
    with duckdb.connect() as database:
        for name, frame in tables.items():
            if frame.empty and _names(sql, name):
                raise UsageError(*_EMPTY[name])
            database.register(name, frame)
        if _names(sql, SAID):
            _load_events(database, directories)
        # These tables are all there is: a query is not to read or write other files.
        database.execute("SET enable_external_access = false")
        try:
            # Of a text without a query the outcome is None, whatever its type says.
            found: duckdb.DuckDBPyConnection | None = database.execute(sql)
            if found is None:
                raise UsageError("--sql: there is no query in it", _ASK)
            return [str(column[0]) for column in found.description or ()], found.fetchall()
        except duckdb.Error as error:
            raise UsageError(f"--sql: {error}", tables_in_words()) from error


def export(records: Path | None, runs: Path, into: Path) -> list[Path]:
    """Write the tables that have rows to Parquet files in the directory `into`, each in place of
    what it was; returns the files. UsageError if no table has any, Failed as for `ask`, and OSError
    for a directory that cannot be written."""
    directories = finished(runs)
    into.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as database:
        frames = {KEPT: _kept(records)} if records else {}
        frames[MADE] = _made(directories)
        tables = [name for name, frame in frames.items() if not frame.empty]
        for name in tables:
            database.register(name, frames[name])
        if directories:
            _load_events(database, directories)
            tables.append(SAID)
        if not tables:
            raise UsageError(*_EMPTY[MADE])
        return [_write_table(database, name, into / f"{name}.parquet") for name in tables]


def _write_table(database: duckdb.DuckDBPyConnection, name: str, path: Path) -> Path:
    """Write a table as a Parquet file: the old one, or the whole new one, but never a part."""
    host.try_to_write(path)
    with host.replacing(path) as part:
        database.table(name).write_parquet(str(part))
    return path


def tables_in_words() -> str:
    """The tables with their columns, but for the metrics, which are hundreds."""
    columns = {KEPT: KEPT_COLUMNS, MADE: MADE_COLUMNS, SAID: SAID_COLUMNS}
    lines = [f"  {name}: {', '.join(known)}" for name, known in columns.items()]
    metrics = f"  {KEPT} and {MADE} besides: one a metric, as in docs/reference/metrics.md"
    return "\n".join(("the tables and their columns are", *lines, metrics))


def _names(sql: str, table: str) -> bool:
    """Whether a query has the table's name in it. One that only seems to costs a little time."""
    return re.search(rf"\b{table}\b", sql, re.IGNORECASE) is not None


def _kept(directory: Path) -> pd.DataFrame:
    rows = []
    for name in set_names(directory):
        for record in read_set(directory / f"{name}.jsonl"):
            rows.append({"name": name, **record.model_dump(exclude={"metrics"}), **record.metrics})
    return _frame(rows, KEPT_COLUMNS)


def _made(directories: Sequence[Path]) -> pd.DataFrame:
    return _frame([_made_row(path) for path in directories], MADE_COLUMNS)


def _made_row(directory: Path) -> dict[str, Any]:
    """A finished run by its directory's name, without metrics if its records are none of today's.

    UsageError for a directory that is none.
    """
    run = RunDir(directory)
    try:
        meta, metrics = {**OLDER, **run.meta}, _made_metrics(run)
        check_meta(directory / "meta.json", {"versions": {}, **meta}, {"versions": dict})
    except OSError as error:
        raise UsageError(f"{directory} is no finished run: {error}", MAKE_AGAIN) from error
    versions = meta.get("versions", {})
    return {
        "run": directory.name,
        **{name: meta.get(name) for name in META_COLUMNS},
        **{name: versions.get(key) for name, key in VERSION_COLUMNS.items()},
        **metrics,
    }


def _made_metrics(run: RunDir) -> dict[str, Number]:
    try:
        return metrics_of(run.path, list(run.records()))
    except CohortError as error:
        log.warning("%s has no metrics: %s", run.path, error)
        return {}


def _frame(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """The rows with these columns, and one a metric."""
    frame = pd.DataFrame(rows, columns=[*columns, *METRIC_NAMES])
    return frame.astype(dict.fromkeys(METRIC_NAMES, float))


def _load_events(database: duckdb.DuckDBPyConnection, directories: Sequence[Path]) -> None:
    """Read what the guests said: of each record its run, kind, ns and all of it as JSON.

    UsageError without runs, Failed for a record that is none.
    """
    files = [str(path / "records.jsonl") for path in directories]
    if not files:
        raise UsageError(*_EMPTY[SAID])
    query = (
        f"CREATE TABLE {SAID} AS SELECT parse_path(filename)[-2] AS run, json->>'r' AS r, "
        "CAST(json->>'t' AS BIGINT) AS t, json AS record "
        "FROM read_ndjson_objects($files, filename = true)"
    )
    try:
        database.execute(query, {"files": files})
    except duckdb.Error as error:
        raise Failed(f"what a guest said cannot be read: {error}", MAKE_AGAIN) from error
