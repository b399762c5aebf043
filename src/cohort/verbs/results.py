"""`cohort results`: the pages of results, made from the records in the repository."""

import json
import re
import shlex
import sys
from contextlib import redirect_stdout
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cohort.errors import Skipped, UsageError
from cohort.log import tell
from cohort.verbs import calls
from cohort.verbs.options import FRESH, as_json, jobs
from cohort.verbs.run import check_share, on_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cohort.results.pages import Home
    from cohort.results.query import Answer


PATHS = as_json("the paths", "an array of them")


@click.group("results", invoke_without_command=True)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a page is not its records.")
@click.option("--sql", metavar="QUERY", help="Ask the tables `runs`, `made` and `events`.")
@as_json("the table", "an array, an object a row")
@click.option(
    "--parquet",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write these tables there, a Parquet file each.",
)
@click.pass_context
def command(
    context: click.Context, check: bool, sql: str | None, as_json: bool, parquet: Path | None
) -> None:
    """Make README's table and the pages in docs/results that have a template.

    Prints which pages were not up to date. --sql asks with DuckDB instead: of the runs that are
    kept as records (`runs`), of those in out/runs (`made`), and of what their guests said
    (`events`); --parquet writes these tables to files for other programs.
    """
    if context.invoked_subcommand is not None:
        if check or sql is not None or as_json or parquet is not None:
            raise UsageError(
                f"--check, --sql, --json and --parquet do not go with {context.invoked_subcommand}",
                "leave them out",
            )
        return
    # Imported here: `cohort results --help` should not wait for pandas.
    from cohort.results import pages

    if [check, sql is not None, parquet is not None].count(True) > 1:
        raise UsageError("--check, --sql or --parquet, one of the three")
    if as_json and sql is None:
        raise UsageError("--json is how --sql answers", "leave it out, or ask something")
    if sql is not None or parquet is not None:
        _tables(sql, as_json, parquet)
    elif check:
        pages.refuse(pages.check(_home()))
    else:
        for path in pages.write(_home()):
            click.echo(path)


def _tables(sql: str | None, as_json: bool, parquet: Path | None) -> None:
    """Answer a query of the tables, or write them to files and print which."""
    from cohort import paths
    from cohort.results import pages, query

    records = pages.Home(paths.CHECKOUT).records if paths.CHECKOUT else None
    made = paths.made("runs")
    if sql is not None:
        show(query.ask(records, made, sql), as_json)
    if parquet is not None:
        for path in query.export(records, made, parquet):
            click.echo(path)


@command.command("add")
@click.argument("name")
@click.argument("more", nargs=-1, type=click.Path(path_type=Path), metavar="[RUNDIR...]")
@click.option(
    "--from",
    "places",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RUNDIR",
    help="A run, or a directory of runs; the others may follow it.",
)
@click.option("--last", is_flag=True, help="The runs of the last `cohort compare`, or `scale`.")
@click.option(
    "--study",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The runs of a study: out/studies/NAME.json.",
)
@click.option(
    "--suite",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The runs of a suite: out/suites/runs/NAME.",
)
@click.option("--scale", is_flag=True, help="Of these runs, those of `cohort scale`.")
@PATHS
def add(
    name: str,
    more: tuple[Path, ...],
    places: tuple[Path, ...],
    last: bool,
    study: Path | None,
    suite: Path | None,
    scale: bool,
    as_json: bool,
) -> None:
    """Keep the metrics of finished runs as the set NAME, in place of what it was.

    All must be of one clean commit. Prints the set's file. The pages are made by `cohort results`.
    """
    from cohort.results import export
    from cohort.results.records import write_set
    from cohort.sets import collect, suites

    named = [*places, *more]
    if [bool(named), last, study is not None, suite is not None].count(True) != 1:
        raise UsageError(
            "name run directories, or say --last, --study or --suite, one of the four",
            f"cohort results add {name} --last, for the runs of the last `cohort compare`",
        )
    if scale and not (named or last):
        raise UsageError("--scale: name run directories, or say --last")
    _check_name(name)
    if study is not None:
        records = collect.of_study(study)
    elif suite is not None:
        records = suites.of_suite(suite)
    elif scale:
        chosen = export.recall(export.SCALE) if last else named
        records = collect.of_scale(chosen)
    else:
        records = collect.of_runs(export.recall() if last else named)
    path = _home().records / f"{name}.jsonl"
    write_set(path, records)
    _print_paths([path], as_json)


def _print_paths(made: "Sequence[Path]", as_json: bool) -> None:
    """Print the files that were written, or looked at, a line each."""
    if as_json:
        print(json.dumps([str(path) for path in made]))
        return
    for path in made:
        click.echo(path)


def _check_name(name: str) -> None:
    """UsageError for what is no name of a set, or that of the one which only grows."""
    from cohort.results.history import HISTORY

    if re.fullmatch("[a-z0-9][a-z0-9-]*", name) is None:
        raise UsageError(f"{name}: a set is called by lower-case letters, digits and dashes")
    if name == HISTORY:
        raise UsageError(
            f"{HISTORY} has a run of each commit, and these would take their place",
            "cohort results history --last, or RUNDIR...",
        )


@command.command("again")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--verify", is_flag=True, help="Keep nothing; exit 1 if a run is not the set's to the byte."
)
@FRESH
@jobs()
@PATHS
@on_cluster
def again(
    names: tuple[str, ...],
    verify: bool,
    fresh: bool,
    jobs: int | None,
    as_json: bool,
    cluster: str | None,
    verify_share: float | None,
) -> None:
    """Make the runs of the sets NAME again, on this commit, and keep them in place of the old ones.

    Calls the commands that the records name. Prints the sets' files, and everything else on stderr.
    The pages are made by `cohort results`. Runs of this commit that are there are taken; those of
    another are refused before any is made. --verify in a checkout of the set's commit tells whether
    its deterministic runs say the same here, and makes all of them.
    """
    from cohort.results.records import write_set
    from cohort.sets import again as sets

    check_share(cluster, verify_share)
    records = _home().records
    kept = {name: sets.read(records / f"{name}.jsonl", verify) for name in names}
    share = [] if verify_share is None else ["--verify-share", str(verify_share)]
    place = ["--cluster", cluster, *share] if cluster else []
    taken = "--fresh" if fresh or verify else "--one-commit"
    several = [*place, *(["--jobs", str(jobs)] if jobs else [])]
    options = {verb: [*several, taken] for verb in ("compare", "study", "scale")}
    options["suite"] = several
    done: list[Path] = []
    for name, old in kept.items():
        new, path = sets.make(old, _call, options), records / f"{name}.jsonl"
        if verify:
            sets.check_same(name, old, new)
        else:
            write_set(path, new)
        done.append(path)
        if not as_json:
            click.echo(path)
    if as_json:
        _print_paths(done, as_json)


def _call(words: "Sequence[str]") -> Any:
    """Run a `cohort` command here, with what it prints on stderr; what its verb returns."""
    tell(f"cohort {shlex.join(words)}")
    with redirect_stdout(sys.stderr):
        return calls.call(words)


@command.command("history")
@click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[RUNDIR...]")
@click.option("--last", is_flag=True, help="The runs of the last `cohort compare`.")
@as_json("the paths", "one object, with what is worse")
def history(places: tuple[Path, ...], last: bool, as_json: bool) -> None:
    """Add a commit's short run to the history, make its page, and compare with the commit before.

    The run is that of `make run`: none and region, 200 launches, of a clean commit. Exit code 1
    names the metrics that are worse than in the same seed's run before by more than twice what
    seeds vary by (docs/results/history.toml). Without runs the newest commit there is judged.
    """
    from cohort.results import export, pages
    from cohort.results import history as kept
    from cohort.sets import collect

    if places and last:
        raise UsageError("name run directories, or say --last, one of the two")
    home = _home()
    written: list[Path] = []
    if places or last:
        path = kept.records_file(home.records)
        kept.add(path, collect.of_runs(export.recall() if last else places))
        written = [path, *pages.write(home, [f"results/{kept.HISTORY}.md"])]
    losses = pages.losses(home)
    if as_json:
        print(json.dumps({"written": [str(x) for x in written], "worse": losses}))
    else:
        _print_paths(written, as_json)
    pages.refuse(losses, "see what changed between the two commits")


@command.command("changed")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--since", default="HEAD", show_default=True, metavar="COMMIT", help="Then.")
@click.option("--full", is_flag=True, help="Every metric, not only those of usual tables.")
@as_json("the table", "an array, an object a row")
def changed(names: tuple[str, ...], since: str, full: bool, as_json: bool) -> None:
    """What the sets NAME, or all, have better or worse than in a commit, metric by metric.

    Prints a row a figure, the worse of a set first: those whose ranges over the seeds do not touch,
    of one seed those that differ by a twentieth, and those that runs had and have no more. With
    three seeds chance alone makes a row of one figure in ten.
    """
    from cohort.sets.changed import changed as compare

    home = _home()
    show(compare(home.root, home.records, names, since, full), as_json)


def _home() -> "Home":
    """The checkout's pages; Skipped without a checkout."""
    from cohort import paths
    from cohort.results.pages import Home

    if paths.CHECKOUT is None:
        raise Skipped("the pages of results are in a checkout, and this is a wheel")
    return Home(paths.CHECKOUT)


def _json(value: object) -> object:
    """A cell as JSON has it: no number that is none, no decimal, and keys that are texts."""
    if isinstance(value, dict):
        return {str(key): _json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return None if isinstance(value, float) and not isfinite(value) else value


def show(answer: "Answer", as_json: bool) -> None:
    """Print the rows of an answer on stdout. UsageError for an object with a key twice."""
    columns, rows = answer
    if as_json:
        if twice := [x for x in columns if columns.count(x) > 1]:
            raise UsageError(
                f"--json: two columns are called {twice[0]}", f"{twice[0]} AS another name"
            )
        named = [dict(zip(columns, map(_json, row), strict=True)) for row in rows]
        print(json.dumps(named, allow_nan=False, default=str))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Not plain strings: rich takes a word in brackets for a style. Nothing that was asked for is
    # cut off: a record is one word to rich.
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(*(Text("-" if x is None else str(x)) for x in row))
    Console(width=max(80, 24 * len(columns))).print(table)
