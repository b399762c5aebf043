"""`cohort compare`: several policies on one workload, in one table."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cohort.errors import UsageError
from cohort.log import progress, tell
from cohort.verbs import calls
from cohort.verbs.options import FILE, JSON, make_room, of_kernel, of_machine, of_runs
from cohort.verbs.run import PERFETTO, engine, on_cluster, with_kernel, write_perfetto

if TYPE_CHECKING:
    from cohort.results.rundir import RunDir
    from cohort.results.runs import Result


@click.command("compare")
@click.argument("policies", nargs=-1, required=True, metavar="POLICY...")
@of_runs
@of_kernel
@click.option("--force", is_flag=True, help="Compare runs that differ in more than the policy.")
@click.option("--full", is_flag=True, help="Every metric in the table.")
@JSON
@click.option("--report", type=FILE, help="Write the HTML report there too.")
@of_machine
@on_cluster
@PERFETTO
def command(
    policies: tuple[str, ...],
    workload: str,
    launches: int | None,
    seeds: tuple[int, ...],
    jobs: int | None,
    config: str | None,
    force: bool,
    full: bool,
    as_json: bool,
    report: Path | None,
    perfetto: Path | None,
    cluster: str | None,
    verify_share: float | None,
    **options: Any,
) -> "list[RunDir]":
    """Run every POLICY with every seed and compare; the first policy is the baseline.

    A POLICY is a name in policies/ or a TOML file.
    """
    # Imported here: `cohort compare --help` should not wait for pandas.
    from cohort import host, runs
    from cohort.policy import load_policies
    from cohort.results import export
    from cohort.results.html import render_report
    from cohort.results.runs import check_comparable, measure
    from cohort.run_spec import RunSpec

    if full and as_json:
        raise UsageError("--full is of the table, and --json has every metric", "leave it out")
    loaded = load_policies(policies)
    make_room(report, perfetto)
    options = with_kernel(config, options)
    specs = [
        RunSpec(policy, workload, launches, seed, **options) for policy in loaded for seed in seeds
    ]
    repeats = options["accel"] == "deterministic"
    with engine(cluster, verify_share, repeats=repeats) as where, progress() as board:
        done = runs.execute_matrix(specs, jobs, board.task(f"{workload}, launches"), where)
    results = [measure(run) for run in done]
    check_comparable(results, force, built_now=True)
    calls.remember(done, export.COMPARE)
    # Before anything is printed: the reader of that may have gone away.
    if report is not None:
        host.write_text(report, render_report(results, calls.under_way()))
        tell(f"report: {report.absolute()}")
    write_perfetto(done, perfetto)
    show(results, as_json, full)
    return done  # for `cohort results again`


def show(results: "Sequence[Result]", as_json: bool, full: bool) -> None:
    """Print the comparison on stdout."""
    from rich.console import Console

    from cohort.results.export import as_object
    from cohort.results.table import compare, print_table

    if as_json:
        print(json.dumps(as_object(results), allow_nan=False))
    else:
        print_table(compare(results, full), Console())
