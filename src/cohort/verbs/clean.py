"""`cohort clean`: what `out/` holds, and the removal of what was not used for long."""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from cohort import clean, paths
from cohort.clean import Entry, Holding
from cohort.errors import CohortError, Skipped, UsageError
from cohort.units import MIB
from cohort.verbs.options import JSON, Finite

DAY_S = 86400.0
MOST_DAYS = 36525


@click.command("clean")
@click.option(
    "--older",
    "older_days",
    type=Finite(0, MOST_DAYS),
    metavar="DAYS",
    help="Remove what was last used so many days ago, or earlier.",
)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(tuple(clean.KINDS)),
    multiple=True,
    help="Of this kind alone; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Say what --older would remove; remove nothing.")
@JSON
def command(older_days: float | None, kinds: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Show what out/ holds by kind; with --older, remove what was not used for so long.

    What is removed is made again when it is asked for, but for runs of another commit or of another
    state of a tree than is there by then. What a command uses that has not ended stays, and exit
    code 4 says so; 8 is for what could not be removed. The kernel source, studies and reports are
    never removed.
    """
    if dry_run and older_days is None:
        raise UsageError("--dry-run is of --older, which alone removes anything", "--older 30")
    now = time.time()
    found = clean.holdings(now, kinds)
    whole = clean.size_of(paths.out_dir().resolve()) if not kinds else None
    other = None if whole is None else max(0, whole - sum(holding.bytes for holding in found))
    if older_days is not None:
        clean.choose(found, now - older_days * DAY_S)
        if not dry_run:
            clean.remove_old(found)
    show(found, other, older_days, dry_run, as_json)
    _judge(found)


def show(
    found: Sequence[Holding],
    other: int | None,
    older_days: float | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Print what is there, and with --older what of it went, or would go. `other` are the bytes of
    what is of no kind."""
    if as_json:
        about = {
            "out": str(paths.out_dir().resolve()),
            "older_days": older_days,
            "dry_run": dry_run,
        }
        told = {**about, "other_bytes": other, "kinds": [_object(x) for x in found]}
        print(json.dumps(told, allow_nan=False))
        return
    _print_table(found, other, older_days is not None)
    for holding in found:
        for entry in holding.old if dry_run else ():
            print(f"would go: {entry.path} ({_mib(entry.bytes)} MiB, {_day(entry.used)})")
    if older_days is not None and not dry_run:
        gone = [entry for holding in found for entry in holding.removed]
        print(f"removed: {len(gone)} entries, {_mib(clean.total(gone))} MiB")


def _print_table(found: Sequence[Holding], other: int | None, older: bool) -> None:
    """A line a kind as it was found, then what is of no kind and never removed."""
    head = f"{'kind':10}{'entries':>8}{'MiB':>10}  {'last used':16}" + "   older       MiB" * older
    print(head.rstrip())
    for x in found:
        line = f"{x.kind:10}{len(x.entries):>8}{_mib(x.bytes):>10}  {_day(x.used):16}"
        line += f"{len(x.old):>8}{_mib(clean.total(x.old)):>10}" * older
        print(line.rstrip())
    if other is not None:
        print(f"{'other':10}{'':>8}{_mib(other):>10}  never removed: source, studies, reports")


def _mib(size: int) -> str:
    return f"{size / MIB:,.1f}"


def _day(used: float) -> str:
    """Local time, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(used)) if used else "-"


def _object(holding: Holding) -> dict[str, Any]:
    """A kind for other programs, each entry that --older means with what became of it: kept,
    removed, in use, failed, or gone, as another process removed it."""
    states = {x.path: "kept" if x.is_there else "gone" for x in holding.old}
    states |= {entry.path: "removed" for entry in holding.removed}
    states |= {entry.path: "in use" for entry in holding.in_use}
    states |= dict.fromkeys(holding.failed, "failed")
    return {
        "kind": holding.kind,
        "entries": len(holding.entries),
        "bytes": holding.bytes,
        "last_used": _instant(holding.used),
        "older": [{**_entry(entry), "state": states[entry.path]} for entry in holding.old],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {"path": str(entry.path), "bytes": entry.bytes, "last_used": _instant(entry.used)}


def _instant(used: float) -> str | None:
    return datetime.fromtimestamp(used, UTC).isoformat(timespec="seconds") if used else None


def _judge(found: Sequence[Holding]) -> None:
    """HostError of what could not be removed, or Skipped for what is in use; of several all are
    told."""
    errors: list[CohortError] = []
    held = [holding for holding in found if holding.in_use]
    if held:
        count = sum(len(holding.in_use) for holding in held)
        names = ", ".join(holding.kind for holding in held)
        stay = "1 old entry stays" if count == 1 else f"{count} old entries stay"
        errors.append(
            Skipped(
                f"{stay}, as another cohort uses out/: {names}",
                "call it again when that has ended, or name other kinds: --kind",
            )
        )
    errors += [error for holding in found for error in holding.failed.values()]
    for error in errors[:-1]:
        click.echo(f"cohort: {error}", err=True)
    if errors:
        raise errors[-1]
