"""`cohort report`: finished runs as one self-contained HTML page."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cohort.errors import UsageError
from cohort.verbs import calls
from cohort.verbs.options import FILE, make_room

if TYPE_CHECKING:
    from cohort.results.runs import Result


@click.command("report")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="[RUNDIR...]")
@click.option("--last", is_flag=True, help="The runs of the last `cohort compare`.")
@click.option("-o", "--output", type=FILE, help="[default: out/report.html]")
@click.option(
    "--pictures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write its pictures there too, as SVG files.",
)
@click.option("--force", is_flag=True, help="Take runs that differ in more than the policy.")
def command(
    runs: tuple[Path, ...], last: bool, output: Path | None, pictures: Path | None, force: bool
) -> None:
    """Write a page about the runs in RUNDIR...; the first one's policy is the baseline.

    Prints where the page is.
    """
    # Imported here: `cohort report --help` should not wait for pandas.
    from cohort import host, paths
    from cohort.results import export
    from cohort.results.html import render_report
    from cohort.results.plots import draw_all
    from cohort.results.runs import check_comparable

    if last == bool(runs):
        raise UsageError(
            "name run directories or say --last, one of the two",
            "cohort report --last, for the runs of the last `cohort compare`",
        )
    output = output or paths.out_dir() / "report.html"
    make_room(output)
    if pictures is not None:
        make_room(pictures / "picture.svg")
        if output.suffix == ".svg" and output.resolve().parent == pictures.resolve():
            raise UsageError(
                f"{output} is where a picture goes", "call the page otherwise: -o FILE"
            )
    results = _measure(export.recall() if last else runs)
    check_comparable(results, force)
    host.write_text(output, render_report(results, calls.under_way()))
    if pictures is not None:
        for name, svg in draw_all(results).items():
            host.write_text(pictures / f"{name}.svg", svg)
    click.echo(output.absolute())


def _measure(directories: Sequence[Path]) -> "list[Result]":
    """The runs in these directories, each once and measured anew; UsageError for one that is
    none."""
    from cohort import paths
    from cohort.results.rundir import RunDir
    from cohort.results.runs import measure

    for directory in directories:
        if not (directory / "meta.json").is_file():
            raise UsageError(
                f"{directory} is not the directory of a finished run",
                f"they are in {paths.out_dir() / 'runs'}",
            )
    each_once = dict.fromkeys(directory.absolute() for directory in directories)
    return [measure(RunDir(directory)) for directory in each_once]
