"""Options that several verbs have: on each of them one word, one meaning and the same bounds."""

from collections.abc import Callable, Sequence
from math import inf, isnan
from pathlib import Path
from typing import Any, TypeVar

import click

from cohort import host
from cohort.errors import UsageError
from cohort.units import LARGE_PAGE, PAGE

Command = TypeVar("Command", bound=Callable[..., Any])

ACCELS = ("deterministic", "tcg", "kvm", "auto")
ARCHES = ("x86_64", "arm64")
PAGE_SIZES = {"4k": PAGE, "16k": LARGE_PAGE}
"""Bytes of a page of the machine, by its word."""


class Finite(click.FloatRange):
    """A range of numbers. What is no number (nan) is in none, whatever it is compared with."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number, or click's error."""
        number = float(super().convert(value, param, ctx))
        if isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Seconds(click.types.FloatParamType):
    """A time: more than no seconds, and an end."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds, or click's error."""
        seconds = float(super().convert(value, param, ctx))
        if not 0 < seconds < inf:
            self.fail(f"{value} is not more than 0 seconds, or has no end.", param, ctx)
        return seconds


FILE = click.Path(path_type=Path, dir_okay=False)
"""A file to be written: a directory is refused before anything is run."""


def make_room(*files: Path | None) -> None:
    """Make the directories of files to be written, before anything is run: what has no place, or
    one that cannot be written, should not be found when all runs are made. OSError says why;
    UsageError for one without a name, one below a file, and for two of one place, of which one
    would be lost."""
    taken: set[Path] = set()
    for file in files:
        if file is None:
            continue
        if not file.name:
            raise UsageError("a file to be written has no name", "name it, or leave its option out")
        try:
            file.absolute().parent.mkdir(parents=True, exist_ok=True)
            host.try_to_write(file)
        except (FileExistsError, NotADirectoryError) as error:
            below = next(x for x in file.absolute().parents if x.exists())
            raise UsageError(f"{file}: {below} is no directory", "name another") from error
        place = file.resolve()
        if place in taken and not host.is_stream(file):
            raise UsageError(f"two files to be written are {file}", "give one another name")
        taken.add(place)


ACCEL = click.option(
    "--accel",
    type=click.Choice(ACCELS),
    default="deterministic",
    show_default=True,
    help="The guest's CPU: deterministic (emulated, counts instructions, repeats), tcg (emulated), "
    "kvm (the machine's own; refused where it does not work), auto (kvm where it works, else tcg).",
)
ARCH = click.option(
    "--arch",
    type=click.Choice(ARCHES),
    default=ARCHES[0],
    show_default=True,
    help="The machine that is emulated.",
)
PAGE_SIZE = click.option(
    "--page-size",
    type=click.Choice(tuple(PAGE_SIZES)),
    default="4k",
    show_default=True,
    callback=lambda context, parameter, given: PAGE_SIZES[given],
    help="Pages of the machine; 16k with --arch arm64 alone.",
)
FRESH = click.option("--fresh", is_flag=True, help="Run again even if the results are there.")
ONE_COMMIT = click.option(
    "--one-commit", is_flag=True, help="Refuse results that are there of another commit."
)
LAUNCHES = click.option(
    "--launches", type=int, help="App launches to replay [default: the workload's]."
)


def as_json(instead_of: str, what: str = "one object") -> Callable[[Command], Command]:
    """`--json`, what is printed without it, and what JSON it is."""
    return click.option(
        "--json", "as_json", is_flag=True, help=f"JSON instead of {instead_of}: {what}."
    )


def jobs(default: str = "as many as the host bears") -> Callable[[Command], Command]:
    """`--jobs`, and what says how many without it."""
    return click.option(
        "--jobs", type=click.IntRange(1), help=f"Runs at a time [default: {default}]."
    )


def memory(default: str) -> Callable[[Command], Command]:
    """`--memory`, and what says how much there is without it."""
    return click.option(
        "--memory", "memory_mb", type=int, help=f"Guest memory, MiB [default: {default}'s]."
    )


def config(said: str, default: str | None = None) -> Callable[[Command], Command]:
    """`--config`, or `--kernel`: of what a kernel's configuration is made."""
    shown = default is not None
    return click.option(
        "--config", "--kernel", "config", default=default, show_default=shown, help=said
    )


JSON = as_json("the table")
TREE = click.option(
    "--tree",
    type=click.Path(path_type=Path),
    help="Another kernel tree, patched [default: the fetched one].",
)
MEMORY = memory("the workload")
TIMEOUT = click.option(
    "--timeout", "timeout_s", type=Seconds(), help="Give up a run after so many seconds."
)
WORKLOAD = click.option(
    "--workload", default="phone-2g", show_default=True, help="Name or TOML file."
)


_LIKE_SEEDS = "like --seed 1,2,3"


def parse_seeds(text: str) -> list[int]:
    """Seeds out of `1,2,3`; UsageError for anything else."""
    try:
        seeds = [int(x) for x in text.split(",")]
    except ValueError:
        raise UsageError(f"--seed {text}: not numbers between commas", _LIKE_SEEDS) from None
    if min(seeds) < 0:
        raise UsageError(f"--seed {text}: seeds are not negative", _LIKE_SEEDS)
    return seeds


def _all_seeds(
    context: click.Context, parameter: click.Parameter, given: Sequence[str]
) -> tuple[int, ...]:
    """Each seed once, in the order given."""
    return tuple(dict.fromkeys(parse_seeds(",".join(given)))) if given else ()


def _seeds(default: str | None, said: str) -> Callable[[Command], Command]:
    """`--seed`, by default `default`; `said` tells of it where it is not one for all."""
    return click.option(
        "--seed",
        "--seeds",
        "seeds",
        multiple=True,
        default=None if default is None else [default],
        show_default=default is not None,
        callback=_all_seeds,
        help=f"Seeds: 1,2,3, or the option several times{said}.",
    )


SEEDS = _seeds("1", "")
STUDY_SEEDS = _seeds(None, " [default: the study's]")


def _changes(
    context: click.Context, parameter: click.Parameter, given: Sequence[str]
) -> tuple[tuple[str, int], ...]:
    """The numbers by their keys, in the order of these: one run is one, however it is asked for."""
    changes: dict[str, int] = {}
    for text in given:
        key, _, number = text.partition("=")
        try:
            value = int(number if key else "")
        except ValueError:
            raise UsageError(f"--change {text}: not KEY=NUMBER", _LIKE_CHANGE) from None
        if changes.setdefault(key, value) != value:
            raise UsageError(f"--change {key}= is there twice, {changes[key]} and {value}")
    return tuple(sorted(changes.items()))


_LIKE_CHANGE = "like --change maps.count=200, with a key of the workload's file"
CHANGE = click.option(
    "--change",
    multiple=True,
    metavar="KEY=NUMBER",
    callback=_changes,
    help="Another number of the workload, by its key in the file: lmkd.poll_ms=50.",
)


def of_machine(command: Command) -> Command:
    """The options that say which machine is emulated."""
    return ARCH(PAGE_SIZE(command))


def of_kernel(command: Command) -> Command:
    """The options that say of what the guests' kernels are built, for `run.with_kernel`."""
    return config("The kernel's fragments [default: each policy's own].")(TREE(command))


def of_results(command: Command) -> Command:
    """The options that say which results that are there are taken."""
    return FRESH(ONE_COMMIT(command))


def of_runs(command: Command) -> Command:
    """The options that say what is run, how often, on what, and for how long."""
    for option in reversed(
        (WORKLOAD, CHANGE, LAUNCHES, SEEDS, ACCEL, MEMORY, TIMEOUT, jobs(), of_results)
    ):
        command = option(command)
    return command
