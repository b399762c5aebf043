"""Queries of results: what SQL answers of records and runs, and the tables as Parquet files."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from cohort import paths
from cohort.errors import UsageError
from cohort.results.pages import Home
from cohort.results.query import ask, export
from cohort.sets.collect import run_directories
from tests_support import Outcome

Cohort = Callable[..., Outcome]


def test_records_can_be_asked(made: Home, cohort: Cohort) -> None:
    query = "SELECT label, median(launch_ms_p50) AS ms, max(bytes) AS x FROM runs GROUP BY 1"
    ended = cohort("results", "--json", "--sql", query.replace("max(bytes)", "max(fio_s)"))
    rows = {row["label"]: row for row in json.loads(ended.stdout)}
    assert rows["none"] == {"label": "none", "ms": pytest.approx(10.66, abs=0.01), "x": None}
    assert "Binder Error" in cohort("results", "--sql", query).stderr
    table = cohort("results", "--sql", "SELECT name, seed, fio_s FROM runs LIMIT 1").stdout
    assert [line.split() for line in table.splitlines()[1::2]][1:] == [["small", "1", "-"]]


def test_a_query_reads_no_file(made: Home) -> None:
    secret = made.root / "README.md"
    for query in (f"SELECT * FROM read_text('{secret}')", f"COPY (SELECT 1) TO '{secret}.csv'"):
        with pytest.raises(UsageError, match="disabled|Permission"):
            ask(made.records, made.root, query)
    assert not Path(f"{secret}.csv").exists()


def test_runs_in_out_and_what_their_guests_said_can_be_asked(home: Home, cohort: Cohort) -> None:
    def rows(query: str) -> list[dict[str, object]]:
        done = cohort("results", "--json", "--sql", query)
        assert done.code == 0, done.stderr
        found = json.loads(done.stdout)
        assert isinstance(found, list)
        return found

    for run in (paths.out_dir() / "runs").iterdir():
        (run / "metrics.json").write_text('{"kills": 7}')  # of another definition
    (run / "metrics.json").unlink()
    made = rows("SELECT run, seed, commit, page_size, kills, fio_s FROM Made ORDER BY run")
    assert len(made) == 6
    assert made[0] == {
        **{"run": "phone-2g-none-s1", "seed": 1, "commit": "abcd"},
        **{"page_size": 4096, "kills": 20.0, "fio_s": None},
    }
    query = (
        "SELECT run, count(*) n, max(record->>'app') app FROM events WHERE r = 'kill' GROUP BY 1"
    )
    assert rows(f"{query} ORDER BY 1")[0] == {"run": "phone-2g-none-s1", "n": 20, "app": "b"}
    assert rows("SELECT 'nan'::DOUBLE AS x, 'inf'::DOUBLE AS y") == [{"x": None, "y": None}]
    (run / "records.jsonl").write_text("{")
    assert cohort("results", "--sql", "SELECT count(*) FROM events").code == 1
    made = rows(f"SELECT kills FROM made WHERE run = '{run.name}'")
    assert made == [{"kills": None}]
    (run / "records.jsonl").unlink()
    bad = cohort("results", "--sql", "SELECT * FROM made")
    assert (bad.code, f"{run.name} is no finished run" in bad.stderr) == (2, True)
    (run / "meta.json").write_text("{")
    bad = cohort("results", "--sql", "SELECT * FROM made")
    assert (bad.code, "meta.json: not what a run leaves" in bad.stderr) == (2, True)


def test_runs_that_are_being_made_or_removed_are_none(home: Home, cohort: Cohort) -> None:
    runs = paths.out_dir() / "runs"
    for name in ("phone-2g-none-s1.part", "phone-2g-none-s1.failed", ".gone-12"):
        shutil.copytree(runs / "phone-2g-none-s1", runs / name)
    done = cohort("results", "--json", "--sql", "SELECT count(*) AS n FROM made")
    assert json.loads(done.stdout) == [{"n": 6}]
    assert len(run_directories([runs])) == 6


def test_damage_of_a_run_is_told(home: Home, cohort: Cohort) -> None:
    run = paths.out_dir() / "runs" / "phone-2g-none-s1"
    records = run / "records.jsonl"
    records.write_text(records.read_text().replace('"ns": ', '"ns": "x", "was": ', 1))
    done = cohort("results", "--json", "--sql", f"SELECT kills FROM made WHERE run = '{run.name}'")
    assert (json.loads(done.stdout), "has no metrics" in done.stderr) == ([{"kills": None}], True)
    meta = json.loads((run / "meta.json").read_text())
    (run / "meta.json").write_text(json.dumps(meta | {"versions": None}))
    done = cohort("results", "--sql", "SELECT * FROM made")
    assert (done.code, "meta.json: not what a run leaves: versions" in done.stderr) == (2, True)


def test_a_bad_query_is_told_with_the_tables_and_their_columns(made: Home, cohort: Cohort) -> None:
    for query in ("SELECT kils FROM runs", "SELECT * FROM run", "SELEC 1"):
        done = cohort("results", "--sql", query)
        assert (done.code, done.stdout) == (2, "")
        assert "  runs: name, label, policy, seed, workload, launches," in done.stderr
        assert "  made: run, policy, seed," in done.stderr
        assert "  events: run, r, t, record\n" in done.stderr
        assert "  runs and made besides: one a metric" in done.stderr
        assert len(done.stderr) < 2000, "the metrics are hundreds"
    for table in ("made", "events"):
        done = cohort("results", "--sql", f"SELECT * FROM {table}")
        assert (done.code, "there are no finished runs" in done.stderr) == (2, True)
    assert "--json is how --sql answers" in cohort("results", "--json").stderr


def test_an_answer_is_shown_as_it_is(made: Home, cohort: Cohort) -> None:
    """Brackets are no styles, and JSON has no number that is none, however deep it is."""
    said = cohort("results", "--sql", "SELECT '[/x]' AS \"[/y]\", '[red]hello' AS b")
    assert said.code == 0, said.stderr
    for word in ("[/x]", "[/y]", "[red]hello"):
        assert word in said.stdout
    deep = "['nan'::DOUBLE, 1] AS a, {'x': ['inf'::DOUBLE]} AS b, MAP {DATE '2026-01-01': 1} AS c"
    said = cohort("results", "--json", "--sql", f"SELECT {deep}")
    assert json.loads(said.stdout) == [
        {"a": [None, 1.0], "b": {"x": [None]}, "c": {"2026-01-01": 1}}
    ]
    tens = "1.50 AS a, 2::DECIMAL(9, 2) AS b, sum(3) AS c, [0.25] AS d, 123456789012345678901 AS e"
    said = cohort("results", "--json", "--sql", f"SELECT {tens}")
    (told,) = json.loads(said.stdout)
    assert told == {"a": 1.5, "b": 2, "c": 3, "d": [0.25], "e": 123456789012345678901}
    twice = cohort("results", "--json", "--sql", "SELECT kills, kills FROM runs")
    assert (twice.code, "two columns are called kills" in twice.stderr) == (2, True)


@pytest.mark.parametrize("query", ["", " ", "-- only a remark"])
def test_a_text_without_a_query_is_told(made: Home, cohort: Cohort, query: str) -> None:
    done = cohort("results", "--sql", query)
    assert (done.code, "there is no query in it" in done.stderr) == (2, True), done.stderr
    assert "hint: the tables are runs, made and events: " in done.stderr
    assert len(done.stderr) < 200
    assert cohort("results", "--sql", "DESCRIBE runs").code == 0


def test_a_wheel_asks_the_runs_that_were_made(
    home: Home, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "CHECKOUT", None)
    for table in ("made", "events"):
        done = cohort("results", "--json", "--sql", f"SELECT count(DISTINCT run) AS n FROM {table}")
        assert (done.code, done.stdout) == (0, '[{"n": 6}]\n'), done.stderr
    kept = cohort("results", "--sql", "SELECT * FROM runs")
    assert (kept.code, "the records are in a checkout" in kept.stderr) == (4, True)


def test_the_tables_are_files_for_other_programs(
    home: Home, cohort: Cohort, tmp_path: Path
) -> None:
    """What pandas reads of them is what a query answers."""
    added = cohort("results", "add", "small", paths.out_dir() / "runs", "--json")
    assert (added.code, json.loads(added.stdout)) == (0, [str(home.records / "small.jsonl")])
    into = tmp_path / "it's new" / "tables"
    done = cohort("results", "--parquet", into)
    assert done.code == 0, done.stderr
    written = [Path(line) for line in done.stdout.splitlines()]
    assert written == [into / f"{name}.parquet" for name in ("runs", "made", "events")]
    assert sorted(into.iterdir()) == sorted(written), "no part is left"
    for path in written:
        count = f"SELECT count(*) AS n FROM {path.stem}"
        asked = json.loads(cohort("results", "--json", "--sql", count).stdout)[0]["n"]
        assert duckdb.read_parquet(str(path)).shape[0] == asked > 0
    kills = duckdb.read_parquet(str(written[0])).project("kills").fetchall()
    assert kills == ask(home.records, paths.made("runs"), "SELECT kills FROM runs")[1]
    assert cohort("results", "--parquet", "/proc/x").code == 8
    assert cohort("results", "--parquet", written[0]).code == 2


def test_without_runs_no_table_is_written(own_out: Path, cohort: Cohort, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no finished runs"):
        export(None, paths.made("runs"), tmp_path / "tables")


def test_a_long_cell_is_folded_and_not_cut(made: Home, cohort: Cohort) -> None:
    said = cohort("results", "--sql", "SELECT repeat('x', 300) AS record")
    assert (said.code, "…" in said.stdout) == (0, False), said.stderr
    assert said.stdout.count("x") == 300
