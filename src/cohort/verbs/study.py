"""`cohort study`: a figure of a paper, made again and set beside the paper's."""

import json
import logging
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cohort.errors import Failed, UsageError
from cohort.log import progress, tell
from cohort.verbs import calls
from cohort.verbs.options import (
    ACCELS,
    STUDY_SEEDS,
    as_json,
    jobs,
    of_kernel,
    of_machine,
    of_results,
)
from cohort.verbs.run import engine, on_cluster, with_kernel

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from pathlib import Path

    from cohort.study.matrix import Findings


@click.command("study")
@click.argument("name", required=False)
@click.option("--list", "as_list", is_flag=True, help="The studies there are.")
@STUDY_SEEDS
@click.option("--launches", type=int, help="App launches, at most [default: the study's].")
@click.option("--run", "labels", multiple=True, help="Only this run, by its label; repeatable.")
@click.option("--accel", type=click.Choice(ACCELS), help="[default: the study's].")
@jobs()
@of_results
@of_kernel
@click.option("--strict", is_flag=True, help="Exit 1 if a target is missed.")
@as_json("the tables", "one object, with --list an array, an object a study")
@of_machine
@on_cluster
def command(
    name: str | None,
    as_list: bool,
    seeds: tuple[int, ...],
    config: str | None,
    strict: bool,
    as_json: bool,
    cluster: str | None,
    verify_share: float | None,
    **options: Any,
) -> None:
    """Make the runs of a study (a name in studies/ or a TOML file) and print what they say.

    Also writes table and picture to out/studies, for a results page. A missed target is a finding,
    not a failure, unless --strict is given.
    """
    if as_list == (name is not None):
        raise UsageError(
            "name a study or say --list, one of the two", "cohort study cpb-fig3a, for one of them"
        )
    if name is None:
        _check_alone()
        _print_list(as_json)
        return
    # Imported here: `cohort study --help` should not wait for pandas.
    from cohort.study.matrix import Options, execute
    from cohort.study.schema import load_study
    from cohort.study.verdict import verdicts

    study = load_study(name)
    wanted = Options(seeds=list(seeds) or None, **with_kernel(config, options))
    repeats = (options["accel"] or study.accel) == "deterministic"
    with engine(cluster, verify_share, repeats=repeats) as where, progress() as board:
        findings = execute(study, wanted, board.task(f"{study.name}, launches"), where)
    written = write(findings, calls.under_way())
    show(findings, as_json)
    tell(f"written: {written}")
    missed = [x.sentence for x in verdicts(findings) if x.passed is False]
    if strict and missed:
        raise Failed(f"{len(missed)} of the study's targets missed: {missed[0]}")


def show(findings: "Findings", as_json: bool) -> None:
    """Print the findings on stdout."""
    from rich.console import Console

    from cohort.study.text import as_object, print_findings

    if as_json:
        print(json.dumps(as_object(findings), allow_nan=False))
    else:
        print_findings(findings, Console())


def write(findings: "Findings", command: str) -> "Path":
    """Table and picture as NAME.md, NAME.svg and NAME.json; returns the first one's path."""
    from cohort import host, paths
    from cohort.study.picture import draw
    from cohort.study.text import as_object, markdown

    name = findings.study.name
    directory = paths.made("studies")
    picture = draw(findings)
    if picture is not None:
        host.write_text(directory / f"{name}.svg", picture)
    elif wanted := findings.study.picture:
        log.warning("no picture: no run has %s in a form for %r", wanted.name, wanted.kind)
    host.write_json(directory / f"{name}.json", as_object(findings))
    page = directory / f"{name}.md"
    host.write_text(page, markdown(findings, command, picture and f"{name}.svg"))
    return page


def _check_alone() -> None:
    """UsageError if --list was given an option that is of runs, or of what they say."""
    context = click.get_current_context()
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in ("as_list", "as_json", "name", None)
        and context.get_parameter_source(str(parameter.name)) is not ParameterSource.DEFAULT
    ]
    if given:
        raise UsageError(
            f"{given[0]} does not go with --list, which makes no run", "leave one of the two out"
        )


def _print_list(as_json: bool) -> None:
    from cohort.study.schema import load_study, study_names

    studies = [load_study(name) for name in study_names()]
    if as_json:
        print(json.dumps([{"name": x.name, "title": x.title, "source": x.source} for x in studies]))
        return
    width = max((len(x.name) for x in studies), default=0)
    for study in studies:
        print(f"{study.name:{width}}  {study.title} ({study.source})")
