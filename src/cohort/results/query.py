"""All records as one table that SQL can be asked of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from cohort.errors import UsageError
from cohort.results.catalogue import METRICS
from cohort.results.records import read_set, set_names

Answer = tuple[list[str], list[tuple[Any, ...]]]
"""The names of the columns, and the rows."""


def ask(directory: Path, sql: str) -> Answer:
    """The answer to a query of the table `runs`: a row a run, a column a metric.

    Beside the metrics, NULL where a run has none, it has `name` (of the set) and what a record
    says of its run. UsageError for a query that is wrong.
    """
    with duckdb.connect() as database:
        database.register("runs", _runs(directory))
        # The records are all there is: a query is not to read or write other files.
        database.execute("SET enable_external_access = false")
        try:
            found = database.execute(sql)
            return [str(column[0]) for column in found.description or ()], found.fetchall()
        except duckdb.Error as error:
            raise UsageError(f"--sql: {error}") from error


def _runs(directory: Path) -> pd.DataFrame:
    metrics: Sequence[str] = [metric.name for metric in METRICS]
    rows = []
    for name in set_names(directory):
        for record in read_set(directory / f"{name}.jsonl"):
            known = {metric: record.metrics.get(metric) for metric in metrics}
            rows.append({"name": name, **record.model_dump(exclude={"metrics"}), **known})
    if not rows:
        raise UsageError("there are no records", "make them: cohort results add")
    frame = pd.DataFrame(rows)
    return frame.astype(dict.fromkeys(metrics, float))
