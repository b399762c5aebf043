"""The `cohort` command: finds the verb, and turns errors into exit codes."""

import importlib
import io
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn, TextIO

import click

from cohort import __version__, log, named
from cohort.errors import CohortError, from_oserror
from cohort.paths import in_out

EXIT_DEFECT = os.EX_SOFTWARE
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 128 + signal.SIGTERM

# One verb, one module of cohort.verbs that has `command`. Listed here with its help so that
# `cohort --help` imports none of them: pandas alone takes half a second.
VERBS = {
    "doctor": "What this host can do.",
    "status": "What Cohort does on a live machine.",
    "kernel": "Fetch, patch, build and test the kernel.",
    "run": "Run one policy on one workload.",
    "compare": "Run several policies and compare them in a table.",
    "study": "Make a figure of a paper again and set it beside the paper's.",
    "scale": "Count what operations of the memory manager cost under its locks.",
    "suite": "Run tests of others under several policies and compare their results.",
    "tune": "Find the best size of a page-cache-preferred area.",
    "report": "Write runs as one self-contained HTML page.",
    "clean": "Show what out/ holds, and remove what was not used for long.",
    "results": "Keep runs' metrics, and make the pages of results from them.",
}


_DEFECT = (
    "this is a defect of the lab: please report the lines above, the command, and what"
    " `cohort --version` and `cohort doctor` print"
)


class Verbs(click.Group):
    """The verbs, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order a newcomer needs them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's module, imported now. Ends with a click.UsageError for an unknown one."""
        if cmd_name not in VERBS:
            if not ctx.resilient_parsing:
                near = named.near(cmd_name, VERBS)
                ctx.fail(f"No such command {cmd_name!r}.{f' D{near[1:]}' if near else ''}")
            return None
        command = importlib.import_module(f"cohort.verbs.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", is_flag=True, help="Say what is run.")
@click.option("-q", "--quiet", is_flag=True, help="Say only warnings and errors.")
@click.version_option(__version__, "-V", "--version")
@click.pass_context
def cohort(context: click.Context, verbose: bool, quiet: bool) -> None:
    """Build the Cohort kernel, boot a phone on it, measure it, compare policies.

    \b
    Exit codes: 0 done, 1 failed, 2 bad input, 3 a tool is missing, 4 skipped, 5 build failed,
    6 patch does not fit, 7 the guest failed, 8 the host failed (disk, permissions), 70 a defect of
    the lab, 130 Ctrl-C, 143 a polite kill (SIGTERM). 1 is also the end of a command whose reader
    went away (`| head`).
    """
    log.setup(1 if verbose else -1 if quiet else 0)
    if os.environ.get("NO_COLOR"):  # rich looks itself, click does not
        context.color = False


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:
    """A polite kill unwinds like Ctrl-C, so that guests are stopped and caches stay whole."""
    sys.exit(EXIT_TERMINATED)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # tables have signs that not every locale has
    log.setup(0)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        try:
            cohort.main(args=argv, prog_name="cohort", standalone_mode=False)
        finally:
            # Here, where what goes wrong has an exit code, and not when Python ends.
            _flush()
    except CohortError as error:
        _fail(str(error), error.exit_code)
    except click.ClickException as error:
        # The nearest name comes first, and of three that are listed none is meant.
        del (getattr(error, "possibilities", None) or [])[1:]
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away (`cohort ... | head`): not an error.
        sys.exit(1)
    except OSError as error:
        logging.getLogger(__name__).debug("where it failed", exc_info=True)
        host = in_out(error) or from_oserror(error)
        _fail(str(host), host.exit_code)
    except Exception:
        traceback.print_exc()
        _fail(_DEFECT, EXIT_DEFECT)
    sys.exit(0)


def _flush() -> None:
    """Write what was printed; OSError if it cannot be, and Python does not try again at its end."""
    stdout: TextIO | None = sys.stdout  # None where the shell has closed it
    if stdout is None:
        return
    try:
        stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        raise


def _fail(message: str, code: int) -> NoReturn:
    print(f"cohort: {message}", file=sys.stderr)
    sys.exit(code)
