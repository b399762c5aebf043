"""`cohort run`: one policy on one workload, its metrics on stdout."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cohort.errors import UsageError
from cohort.log import progress, tell
from cohort.verbs.options import (
    ARCHES,
    FILE,
    PAGE_SIZES,
    Command,
    Finite,
    as_json,
    make_room,
    of_kernel,
    of_machine,
    of_runs,
)

if TYPE_CHECKING:
    from cohort.kernel.build import KernelSpec
    from cohort.results.rundir import RunDir
    from cohort.runs import Engine

log = logging.getLogger(__name__)

VERIFY_SHARE = 0.1
"""Of a cluster's runs, where nothing is said."""
PERFETTO = click.option(
    "--perfetto",
    type=FILE,
    help="Write the runs there too, as a trace for ui.perfetto.dev.",
)


def on_cluster(command: Command) -> Command:
    """The options that say where runs are made, for `engine`."""
    command = click.option(
        "--verify-share",
        type=Finite(0, 1),
        help="Share of the cluster's runs made twice, on different workers "
        f"[default: {VERIFY_SHARE}].",
    )(command)
    return click.option(
        "--cluster", metavar="ADDRESS", help="Run on a Dask scheduler's workers: tcp://HOST:8786."
    )(command)


@contextmanager
def engine(
    address: str | None, verify_share: float | None, *, repeats: bool
) -> "Iterator[Engine | None]":
    """Where to run: the cluster of that scheduler, None for this machine. A share of runs that do
    not repeat is told.

    UsageError for a bad address, or a share without one; HostError if no scheduler answers there.
    """
    check_share(address, verify_share)
    if verify_share and not repeats:
        log.warning("--verify-share %g: no run is made twice, as these do not repeat", verify_share)
    if address is None:
        yield None
        return
    # Imported here: Dask takes a second.
    from cohort.cluster.engine import Cluster

    with Cluster(address, VERIFY_SHARE if verify_share is None else verify_share) as cluster:
        yield cluster


def check_share(address: str | None, verify_share: float | None) -> None:
    """UsageError for a share of a cluster's runs without a cluster."""
    if address is None and verify_share is not None:
        raise UsageError("--verify-share is of a cluster's runs", "say --cluster, or leave it out")


@click.command("run")
@click.argument("policy")
@of_runs
@of_kernel
@click.option("--append", multiple=True, help="A word more on the guest kernel's command line.")
@as_json("the metrics", "an array, an object a run")
@of_machine
@on_cluster
@PERFETTO
def command(
    policy: str,
    workload: str,
    launches: int | None,
    seeds: tuple[int, ...],
    jobs: int | None,
    config: str | None,
    append: tuple[str, ...],
    as_json: bool,
    perfetto: Path | None,
    cluster: str | None,
    verify_share: float | None,
    **options: Any,
) -> None:
    """Run POLICY (a name in policies/ or a TOML file) and print its metrics."""
    # Imported here: `cohort run --help` should not wait for pandas.
    from cohort import runs
    from cohort.policy import load_policy
    from cohort.run_spec import RunSpec

    chosen = load_policy(policy)
    make_room(perfetto)
    options = with_kernel(config, options)
    specs = [RunSpec(chosen, workload, launches, seed, cmdline=append, **options) for seed in seeds]
    repeats = options["accel"] == "deterministic"
    with engine(cluster, verify_share, repeats=repeats) as where, progress() as board:
        update = board.task(f"{policy} on {workload}, launches")
        done = runs.execute_matrix(specs, jobs, update, where)
    # Before anything is printed: the reader of that may have gone away.
    write_perfetto(done, perfetto)
    show(done, as_json)


def with_kernel(config: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a RunSpec, with the kernel of these fragments and its machine; as they are if
    each policy is to have its own. UsageError if the machine that was asked for is another."""
    if config is None:
        return options
    kernel = kernel_of(config, **options)
    return options | {"kernel": kernel, "arch": kernel.arch, "page_size": kernel.page_size}


def kernel_of(
    configs: str, tree: Path | None = None, *, arch: str, page_size: int, **_: Any
) -> "KernelSpec":
    """The kernel of these fragments. UsageError if the machine that was asked for is another."""
    from cohort.kernel.build import PAGES_16K, KernelSpec

    kernel = KernelSpec.from_fragments(configs, tree)
    if arch not in (ARCHES[0], kernel.arch):
        raise UsageError(
            f"--config {configs} is for {kernel.arch}, not for {arch}",
            f"--config {configs.replace(kernel.arch, arch)}",
        )
    if page_size not in (PAGE_SIZES["4k"], kernel.page_size):
        raise UsageError(
            f"--config {configs} has pages of {kernel.page_size} bytes, not of {page_size}",
            f"--config {configs},{PAGES_16K}",
        )
    return kernel


def show(done: "list[Any]", as_json: bool) -> None:
    """Print each run's metrics and where it is. Most metrics are of a phone with a camera, of
    roles, or of an experiment: what a run has not is only counted, and null in JSON."""
    if as_json:
        told = [{"path": str(x.path), **x.meta, "metrics": x.metrics} for x in done]
        print(json.dumps(told, allow_nan=False))
        return
    for run in done:
        meta = run.meta
        print(f"{meta['policy']} on {meta['workload']}, seed {meta['seed']}, {meta['accel']}")
        measured = {name: x for name, x in run.metrics.items() if x is not None}
        for name, value in measured.items():
            print(f"  {name:24} {_text(value)}")
        print(f"  {len(run.metrics) - len(measured)} other metrics have no value")
        print(f"  in {run.path}")


def write_perfetto(done: "Sequence[RunDir]", path: Path | None) -> None:
    """Write one trace of these runs to `path` and say so; nothing without a path."""
    if path is None:
        return
    from cohort.results.trace import write_trace

    write_trace(done, path)
    tell(f"trace: {path.absolute()}")


def _text(value: float | int) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
