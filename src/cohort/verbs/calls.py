"""Which `cohort` command is under way: the one that was typed, or one that it calls."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cohort.results.rundir import RunDir


@dataclass(frozen=True)
class Call:
    """A command that another one calls, by its words without `cohort`."""

    words: tuple[str, ...]


def call(words: Sequence[str]) -> Any:
    """Run a `cohort` command within this one; what its verb returns.

    How much is logged, and whether in colours, stays as it was asked for. Raises what the verb
    does.
    """
    from cohort.cli import cohort

    verb, *rest = words
    here = click.get_current_context()
    command = cohort.get_command(here, verb)
    assert command is not None
    return command.main(
        args=rest,
        prog_name=f"cohort {verb}",
        standalone_mode=False,
        obj=Call(tuple(words)),
        color=here.color,
    )


def under_way() -> str:
    """The command that is under way, as a shell takes it."""
    called = _called()
    return shlex.join(["cohort", *(sys.argv[1:] if called is None else called.words)])


def remember(runs: "Sequence[RunDir]", verb: str) -> None:
    """Note for `--last` which runs the verb made, if it was typed: of one that is called the user
    may not know. Raises OSError."""
    from cohort.results import export

    if _called() is None:
        export.remember(runs, under_way(), verb)


def _called() -> Call | None:
    return click.get_current_context().find_object(Call)
