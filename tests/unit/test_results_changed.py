"""What sets of records have better or worse than in a commit."""

import json
from collections.abc import Callable, Sequence

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


def replaced(home: Home, label: str, of: Callable[[Record], Record]) -> None:
    """Keep other records of a label."""
    path = home.records / "small.jsonl"
    write_set(path, [of(x) if x.label == label else x for x in read_set(path)])


def change(home: Home, label: str, **factors: float) -> None:
    """Make the metrics of a label as many times what they were."""

    def of(record: Record) -> Record:
        new = {name: record.metrics[name] * factor for name, factor in factors.items()}
        return record.model_copy(update={"metrics": {**record.metrics, **new}})

    replaced(home, label, of)


def lose(home: Home, label: str, metric: str, seeds: Sequence[int]) -> None:
    """Take a metric out of the records of a label with these seeds."""

    def of(record: Record) -> Record:
        left = {name: x for name, x in record.metrics.items() if name != metric}
        return record.model_copy(update={"metrics": left}) if record.seed in seeds else record

    replaced(home, label, of)


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
    assert "small: none, region, tuned left out: the runs then had another launches" in done.stderr
    assert "new: left out: there was none in HEAD" in done.stderr


def test_a_label_of_another_phone_is_left_out_with_a_warning(kept: Home, cohort: Cohort) -> None:
    """The figures of the others are there."""
    other = {"workload": "phone-1g", "memory_mb": 1024}
    replaced(kept, "region", lambda record: record.model_copy(update=other))
    change(kept, "region", kills=2.0)
    change(kept, "tuned", kills=2.0)
    done = cohort("results", "changed", "--json")
    assert [(x["label"], x["is"]) for x in json.loads(done.stdout)] == [("tuned", "worse")]
    said = "small: region left out: the runs then had another workload, memory_mb"
    assert said in done.stderr
    assert "none" not in done.stderr


def test_a_label_that_one_side_alone_has_is_told(kept: Home, cohort: Cohort) -> None:
    replaced(kept, "region", lambda record: record.model_copy(update={"label": "mine"}))
    done = cohort("results", "changed", "--json")
    assert (done.code, json.loads(done.stdout)) == (0, [])
    assert "small: mine left out: there was none in HEAD" in done.stderr
    assert "small: region left out: there is none any more" in done.stderr


def test_a_metric_that_is_gone_is_worse(kept: Home, cohort: Cohort) -> None:
    """From all runs of a label or from one; what a label has for the first time is even."""
    lose(kept, "region", "kills", (1, 2))
    lose(kept, "tuned", "kills", (2,))
    found = rows(cohort)
    assert [(x["label"], x["metric"], x["before"], x["now"], x["is"]) for x in found] == [
        ("region", "kills", "20 [20, 20]", "-", "worse"),
        ("tuned", "kills", "20 [20, 20]", "20 (1 of 2 seeds)", "worse"),
    ]
    git(kept.root, "commit", "--quiet", "--all", "--message", "fewer")
    assert rows(cohort) == []
    lose(kept, "tuned", "kills", (1,))
    assert [(x["label"], x["now"], x["is"]) for x in rows(cohort)] == [("tuned", "-", "worse")]
    git(kept.root, "checkout", "--quiet", "HEAD~1", "docs/results/records/small.jsonl")
    assert rows(cohort) == []


def test_what_a_run_may_have_none_of_is_not_gone(kept: Home, cohort: Cohort) -> None:
    """A mean of direct reclaim, in a run that has none any more."""
    name = "reclaim_pages_kswapd_mean"
    replaced(kept, "region", lambda x: x.model_copy(update={"metrics": {**x.metrics, name: 7.0}}))
    git(kept.root, "commit", "--quiet", "--all", "--message", "reclaim")
    lose(kept, "region", name, (1, 2))
    assert rows(cohort) == []


def test_what_there_is_not_is_said(kept: Home, cohort: Cohort) -> None:
    done = cohort("results", "changed", "--since", "nothing")
    assert (done.code, done.stdout) == (2, "")
    assert "there is no commit nothing in this checkout" in done.stderr
    done = cohort("results", "changed", "other")
    assert done.code == 2 and "there are no records 'other'" in done.stderr
