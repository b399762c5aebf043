"""What sets of records have better or worse than in a commit."""

import json
from collections.abc import Callable

import pytest

from cohort.results.pages import Home
from cohort.results.records import Record, read_set, write_set
from tests_support import Outcome, git

Cohort = Callable[..., Outcome]
Rows = list[dict[str, str]]


@pytest.fixture
def kept(made: Home) -> Home:
    """A checkout in git with the set `small`: kills and all else of two seeds, three policies."""
    git(made.root, "init", "--quiet")
    git(made.root, "add", "docs/results/records")
    git(made.root, "commit", "--quiet", "--message", "the sets")
    return made


def change(home: Home, label: str, **factors: float) -> None:
    """Make the metrics of a label as many times what they were."""
    path = home.records / "small.jsonl"

    def of(record: Record) -> Record:
        if record.label != label:
            return record
        new = {name: record.metrics[name] * factor for name, factor in factors.items()}
        return record.model_copy(update={"metrics": {**record.metrics, **new}})

    write_set(path, [of(record) for record in read_set(path)])


def rows(cohort: Cohort, *words: str) -> Rows:
    done = cohort("results", "changed", "--json", *words)
    assert done.code == 0, done.stderr
    found: Rows = json.loads(done.stdout)
    return found


def test_what_is_worse_comes_first_and_what_is_even_not_at_all(kept: Home, cohort: Cohort) -> None:
    assert rows(cohort) == []
    change(kept, "region", kills=0.5, launch_ms_p50=2.0, launch_ms_p95=1.0001)
    found = rows(cohort)
    assert [(x["set"], x["label"], x["metric"], x["is"]) for x in found] == [
        ("small", "region", "launch_ms_p50", "worse"),
        ("small", "region", "kills", "better"),
    ]
    assert found[0]["before"] != found[0]["now"] and found[0]["unit"] == "ms"
    assert rows(cohort, "small", "--since", "HEAD") == found
    git(kept.root, "commit", "--quiet", "--all", "--message", "other runs")
    assert rows(cohort) == []
    assert rows(cohort, "--since", "HEAD~1") == found


def test_metrics_that_no_usual_table_has_are_rows_of_full_ones(kept: Home, cohort: Cohort) -> None:
    change(kept, "none", launch_ms_last=3.0)
    assert rows(cohort) == []
    assert [x["metric"] for x in rows(cohort, "--full")] == ["launch_ms_last"]


def test_sets_that_cannot_be_compared_are_left_out(kept: Home, cohort: Cohort) -> None:
    path = kept.records / "small.jsonl"
    records = read_set(path)
    write_set(kept.records / "new.jsonl", records)
    write_set(path, [x.model_copy(update={"launches": 999}) for x in records])
    done = cohort("results", "changed", "--json")
    assert json.loads(done.stdout) == []
    assert "small: left out: its runs then had another launches" in done.stderr
    assert "new: left out: there was none in HEAD" in done.stderr


def test_what_there_is_not_is_said(kept: Home, cohort: Cohort) -> None:
    done = cohort("results", "changed", "--since", "nothing")
    assert (done.code, done.stdout) == (2, "")
    assert "there is no commit nothing in this checkout" in done.stderr
    done = cohort("results", "changed", "other")
    assert done.code == 2 and "there are no records 'other'" in done.stderr
