#!/usr/bin/env python3
"""Runs a tier of the tests, `make test`, `night` or `suites`, and keeps what it took.

The tier says what it always says, and its exit code is this one's. Kept is a run that came to its
end on a commit without changes: in `docs/results/tiers.toml`, which makes a table of the page of
suites. `make test` by itself keeps nothing.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cohort import host, paths
from cohort.errors import CohortError
from cohort.results import pages, tiers

PAGE = "results/suites.md"
"""The template of the page that has the table."""
MADE = (f"docs/results/{tiers.FILE}", f"docs/{PAGE}")
"""What this writes: no change of a checkout that a tier would notice."""
_CLOSING = re.compile(r"^=+ (?P<counts>.*\d+ \w+.*) in [\d.]+s.* =+$", re.MULTILINE)
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)")
_ENDED = re.compile(
    rf"^make.* \*\*\* \[.*\b(?:{'|'.join(tiers.TARGETS)})\] \S+ (\d+)", re.MULTILINE
)
_DIFFER = re.compile(r"^failed, or differ: (.*)$", re.MULTILINE)
# The tier is not this command's make: an option of pytest or a target's variable is not its own.
_OWN = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTEST_ADDOPTS")


class NotFull(Exception):
    """The run cannot be kept; `why` says why, and `code` is what to exit with."""

    def __init__(self, why: str, code: int = 2) -> None:
        super().__init__(why)
        self.why, self.code = why, code


@dataclass(frozen=True)
class Compiler:
    """The compiler's cache: the files in it, calls that it answered and others."""

    files: int = 0
    hits: int = 0
    misses: int = 0


def read_compiler(said: str) -> Compiler:
    """From what `ccache --print-stats` says, a line a counter; nothing counts as 0."""
    pairs = (line.split("\t") for line in said.splitlines())
    counts = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}

    def of(*names: str) -> int:
        return sum(counts.get(name, 0) for name in names)

    hits = of("direct_cache_hit", "preprocessed_cache_hit")
    return Compiler(of("files_in_cache"), hits, of("cache_miss"))


def compiler() -> Compiler:
    """The cache now; one without anything where ccache is not installed."""
    program = host.find("ccache")
    return (
        Compiler()
        if program is None
        else read_compiler(host.run([program, "--print-stats"]).stdout)
    )


def kernels_built() -> bool:
    """Is there a kernel that a tier would not build again?"""
    return any(paths.made("kernel").glob("*/cohort.stamp"))


def counts(said: str) -> dict[str, int]:
    """Cases by how they ended, of all sessions of pytest that said how; errors have failed."""
    found = {"passed": 0, "failed": 0, "skipped": 0}
    for closing in _CLOSING.finditer(said):
        for number, what in _COUNT.findall(closing["counts"]):
            found[what if what in found else "failed"] += int(number)
    return found


def check_full(code: int, said: str) -> None:
    """NotFull for a run that a signal, a mistake of the command line or of the tests ended: pytest
    ends with 1 if all ran and some failed."""
    if not _CLOSING.search(said):
        raise NotFull("no session of pytest came to its end")
    ends = [int(end) for end in _ENDED.findall(said)]
    if code < 0 or (code and not ends) or any(end != 1 for end in ends):
        raise NotFull(f"it was ended, with {code}, and not all of it has run")


def run_through(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """Run with its output going on to stdout as it comes; the exit code, and all it said."""
    said: list[bytes] = []
    with subprocess.Popen(
        argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    ) as process:
        assert process.stdout is not None
        while part := process.stdout.read(1 << 16):
            said.append(part)
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        code = process.wait()
    return code, b"".join(said).decode(errors="replace").replace("\r", "")


def commit(root: Path) -> str:
    """What is checked out. NotFull where there is no git, or files are not the commit's: a run of
    them is of no commit."""
    but = [f":(exclude){name}" for name in MADE]
    changed = host.run(["git", "status", "--porcelain", "--", ".", *but], cwd=root)
    named = host.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=root)
    if changed.returncode or named.returncode:
        raise NotFull(f"{root} is no checkout with a commit")
    if changed.stdout:
        files = changed.stdout.splitlines()
        raise NotFull(
            f"the checkout has changes, as in {files[0][3:]}: a run of it is of no commit"
        )
    return named.stdout.strip()


def measure(tier: str, root: Path) -> tuple[int, tiers.Run]:
    """Run a tier; its exit code, and what there is to keep. NotFull if there is nothing."""
    before, was = commit(root), compiler()
    cache: tiers.Cache = "warm" if was.files or kernels_built() else "empty"
    env = {name: value for name, value in os.environ.items() if name not in _OWN}
    began = time.monotonic()
    code, said = run_through(["make", tier], root, env)
    minutes = (time.monotonic() - began) / 60
    now = compiler()
    try:
        check_full(code, said)
        if commit(root) != before:
            raise NotFull("another commit was checked out meanwhile")
    except NotFull as error:
        raise NotFull(error.why, code or error.code) from error
    hits, misses = now.hits - was.hits, now.misses - was.misses
    differ = [name for names in _DIFFER.findall(said) for name in names.split()]
    run = tiers.Run(
        tier=tier,
        cache=cache,
        commit=before,
        date=datetime.now(UTC).date(),
        cores=len(os.sched_getaffinity(0)),
        minutes=round(max(minutes, 0.1), 1),
        compiled=max(hits + misses, 0),
        cached=max(hits, 0),
        differ=differ,
        **counts(said),
    )
    return code, run


def main(argv: Sequence[str] | None = None, root: Path = paths.ROOT) -> int:
    """The tier's exit code; 2 if it was not run, or what it took could not be kept."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("tier", choices=tiers.TARGETS)
    parser.add_argument(
        "--into", type=Path, default=root, help="The checkout to keep it in [default: this one]."
    )
    options = parser.parse_args(argv)
    home = pages.Home(options.into.resolve())
    code = 0
    try:
        if not home.results.is_dir():
            raise NotFull(f"{home.root} has no docs/results")
        code, run = measure(options.tier, root)
        tiers.keep(home.results / tiers.FILE, run)
        pages.write(home, [PAGE])
    except NotFull as error:
        print(f"not kept: {error.why}", file=sys.stderr)
        return error.code
    except CohortError as error:
        print(error.message, file=sys.stderr)
        return code or 2
    print(f"kept in {home.results / tiers.FILE}: {run.minutes} minutes", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
