"""`cohort kernel`: fetch the source, put Cohort on it, build it, run its KUnit suites."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cohort.errors import Failed, UsageError
from cohort.kernel import build as builder
from cohort.kernel import check, deb, frozen, overlay, source
from cohort.kernel.build import KernelSpec
from cohort.log import Update, progress
from cohort.verbs.options import Seconds, as_json, config
from cohort.vm import kunit

Say = Callable[[str], None]

FRAGMENTS = "base,x86_64,lab,cohort"
TREE = click.option(
    "--tree", type=click.Path(path_type=Path), help="A 6.12 kernel tree [default: the fetched one]."
)


@click.group("kernel")
def command() -> None:
    """Fetch, patch, build and test the kernel."""


@command.command("fetch")
def fetch() -> None:
    """Unpack the distribution's source package and print where."""
    with progress() as board:
        print(source.fetch(board.task("unpacking the kernel source, MiB")))


@command.command("patch")
@TREE
@click.option("--revert", is_flag=True, help="Take Cohort off again, to the byte.")
@click.option("--dry-run", is_flag=True, help="Say where each hunk belongs and change nothing.")
@click.option(
    "--compile",
    "--check",
    "compiles",
    is_flag=True,
    help="Compile what is touched, beside the tree.",
)
@config(f"For --compile: fragments, or a .config to begin with [default: {FRAGMENTS}].")
@click.option(
    "--frozen",
    "--report",
    "counts",
    is_flag=True,
    help="Count what a frozen kernel would keep.",
)
@as_json("lines")
def patch(
    tree: Path | None,
    revert: bool,
    dry_run: bool,
    compiles: bool,
    config: str | None,
    counts: bool,
    as_json: bool,
) -> None:
    """Put Cohort on a kernel tree: all of it, or nothing if a hunk has no place of its own.

    A hunk belongs in the function that it names, where its lines are once. Printed are those that
    are not at the line they expect, or are a variant; with --dry-run all: file, line, function,
    patch, lines off. --compile and --frozen change nothing either: the one compiles what the
    patches touch, the other counts the structures, enums, exports and functions that they change.
    Without --tree the source is fetched first if need be.
    """
    if revert and (compiles or counts):
        raise UsageError("--revert does not go with --compile or --frozen", "leave one of them out")
    if counts and (dry_run or compiles):
        word = "--dry-run" if dry_run else "--compile"
        raise UsageError(
            f"{word} does not go with --frozen, which puts nothing on the tree to look at",
            "one after the other",
        )
    if config is not None and not compiles:
        raise UsageError("--config is what --compile compiles", "say --compile, or leave it out")
    told: dict[str, Any] = {}
    say = _no_words if as_json else print
    with progress() as board:
        own = tree is not None
        tree = tree or source.fetch(board.task("unpacking the kernel source, MiB"))
        reads = dry_run or compiles or counts
        with builder.held_tree(tree, own=own, shared=reads):
            if counts:
                found = frozen.report(tree, overlay.load_series())
                told |= asdict(found)
                say("\n".join(found.lines()))
            else:
                report = _put(tree, revert, dry_run, compiles, say)
                told |= _as_object(tree, report)
                if report.refused:
                    if as_json:
                        print(json.dumps(told))
                    raise report.error()
            if compiles:
                task = board.task("compiling what is touched")
                told["compiled"] = asdict(_compile(tree, config or FRAGMENTS, task, say))
    if as_json:
        print(json.dumps(told))


def _no_words(text: str) -> None:
    """What is printed as JSON in the end is not printed before."""


def _as_object(tree: Path, report: overlay.Report) -> dict[str, Any]:
    """What was done, or would be, with each hunk and each that has no place."""
    return {
        "action": report.action,
        "tree": str(tree),
        "release": str(report.release),
        "files": report.files,
        "changed": report.changed,
        "patches": report.patches,
        "hunks": [
            {
                "file": x.hunk.file,
                "line": x.line,
                "where": x.where,
                "patch": x.hunk.patch,
                "offset": x.offset,
            }
            for x in report.hunks
        ],
        "refused": [
            {"file": x.hunk.file, "line": x.hunk.start, "patch": x.hunk.patch, "why": x.why}
            for x in report.refused
        ],
    }


def _compile(tree: Path, config: str, update: Update, say: Say) -> check.Compiled:
    """Compile what is touched, and say what that was."""
    done = check.compile_touched(tree, config, update)
    left_out = f"; not in this kernel: {', '.join(done.left_out)}" if done.left_out else ""
    say(f"compiles: {len(done.objects)} files and {builder.FEATURE} ({config}){left_out}")
    return done


def _put(tree: Path, revert: bool, dry_run: bool, compiles: bool, say: Say) -> overlay.Report:
    """Apply or revert, and say what was done; PatchError if it does not fit, but for a dry run,
    whose report tells."""
    do = overlay.revert if revert else overlay.apply
    report = do(tree, dry_run=dry_run or compiles)
    what = f"{report.changed} changed files" if revert else f"{report.patches} patches"
    say(f"{report.action}: {tree} (Linux {report.release}), {report.files} new files, {what}")
    for line in report.hunks if dry_run else report.notes:
        say(f"  {line}")
    return report


@command.command("build")
@TREE
@config(f"Fragments [default: {FRAGMENTS}].")
@click.option("--stock", is_flag=True, help="The same without CONFIG_COHORT.")
@as_json("the path")
def build(tree: Path | None, config: str | None, stock: bool, as_json: bool) -> None:
    """Build the kernel of some fragments of configs/, and print the image's path.

    Nothing is built if nothing changed. A tree given with --tree is built as it is: patch it first.
    """
    if stock and config is not None:
        raise UsageError("--stock does not go with --config", "--config with the fragments it has")
    spec = KernelSpec.variant("stock", tree=tree) if stock else None
    spec = spec or KernelSpec.from_fragments(config or FRAGMENTS, tree)
    with progress() as board:
        kernel = builder.build(spec, board.task(f"kernel {spec.name}"))
    if as_json:
        print(json.dumps({k: str(v) for k, v in vars(kernel).items()}))
    else:
        print(kernel.image)


@command.command("deb")
@TREE
@config("The distribution's: amd64, cloud-amd64, rt-amd64; or a .config.", "amd64")
@click.option(
    "--revision",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Of the packages: a greater one replaces those that are installed.",
)
@click.option(
    "--lsmod",
    type=click.Path(path_type=Path),
    help="What lsmod prints on the machine they are for: no other modules are built.",
)
@as_json("the paths")
def packages(
    tree: Path | None, config: str, revision: int, lsmod: Path | None, as_json: bool
) -> None:
    """Build Debian packages of the patched kernel, and print their paths.

    The configuration is the distribution's own with Cohort built in: an image and headers that
    install beside its kernels as release 6.12.x-cohort. Nothing is switched on. A tree given with
    --tree is built as it is: patch it first.
    """
    with progress() as board:
        task = board.task(f"packages of {config}")
        made = deb.build_packages(config, tree, revision, task, lsmod=lsmod)
    if as_json:
        print(json.dumps({"release": made.release, "packages": [str(x) for x in made.files]}))
    else:
        print("\n".join(str(path) for path in made.files))


@command.command("test")
@TREE
@config("Fragments [default: the debug kernel's].")
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(),
    default=600.0,
    show_default=True,
    help="Give up the guest after so many seconds.",
)
@as_json("lines")
def test(tree: Path | None, config: str | None, timeout_s: float, as_json: bool) -> None:
    """Boot a kernel with the KUnit suites built in and print what they found."""
    spec = KernelSpec.variant("debug", tree=tree)
    if config is not None:
        spec = KernelSpec.from_fragments(config, tree)
    with progress() as board:
        kernel = builder.build(spec, board.task(f"kernel {spec.name}"))
        report = kunit.run(
            kernel, tree or source.default_tree(), board.task("KUnit cases"), timeout_s
        )
    if as_json:
        print(json.dumps(report.summary()))
    else:
        print(report.text())
    if not report.ok:
        raise Failed(f"KUnit: {report.failure}", f"the console is in {report.log}")
