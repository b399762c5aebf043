"""`cohort tune`: the best size of a page-cache-preferred area for a phone."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cohort.errors import Failed, UsageError
from cohort.log import progress, tell
from cohort.verbs.options import (
    ACCEL,
    JSON,
    MEMORY,
    SEEDS,
    TIMEOUT,
    jobs,
    of_kernel,
    of_machine,
    of_results,
)
from cohort.verbs.run import engine, on_cluster, with_kernel

if TYPE_CHECKING:
    from cohort.policy import Policy
    from cohort.tune import Size, Sweep

SIZES = "180,200,220,240,260,280,300,320,340"
"""MiB; the range of the PCPA paper's figure 11a."""


@click.command("tune")
@click.argument("scheme", type=click.Choice(["pcpa"]))
@click.option("--sizes", default=SIZES, show_default=True, help="Sizes to try, MiB.")
@click.option("--policy", default="pcpa", show_default=True, help="The policy to be sized.")
@click.option(
    "--against",
    metavar="POLICY",
    default="none",
    show_default=True,
    help="A size that costs more kills, refaults or launch time than this is not named.",
)
@click.option("--workload", default="camera", show_default=True, help="Name or TOML file.")
@click.option("--launches", type=int, default=10, show_default=True, help="Starts of the camera.")
@SEEDS
@ACCEL
@MEMORY
@TIMEOUT
@jobs()
@of_results
@of_kernel
@JSON
@of_machine
@on_cluster
def command(
    scheme: str,
    sizes: str,
    policy: str,
    against: str,
    workload: str,
    launches: int,
    seeds: tuple[int, ...],
    jobs: int | None,
    config: str | None,
    as_json: bool,
    cluster: str | None,
    verify_share: float | None,
    **options: Any,
) -> None:
    """Start the camera with areas of several sizes and name the best of them.

    What each costs others is held against the phone without an area.

    Also writes out/tune/pcpa-WORKLOAD.svg and .json.
    """
    # Imported here: `cohort tune --help` should not wait for pandas.
    from cohort import host, paths, runs
    from cohort.phone.workload import load_workload
    from cohort.policy import load_policy
    from cohort.results.runs import measure
    from cohort.run_spec import RunSpec
    from cohort.tune import Sweep, draw, judge, sized, whole_sizes

    options = with_kernel(config, options)
    wanted = whole_sizes(parse_sizes(sizes), options["page_size"])
    phone = load_workload(workload)
    if phone.camera is None:
        raise UsageError(f"{workload} has no camera", "one that has: --workload camera")
    base = _with_area(load_policy(policy))
    baseline = load_policy(against)
    policies = [baseline, *(sized(base, mb) for mb in wanted)]
    specs = [
        RunSpec(one, workload, launches, seed, **options) for one in policies for seed in seeds
    ]
    repeats = options["accel"] == "deterministic"
    with engine(cluster, verify_share, repeats=repeats) as where_run, progress() as board:
        done = runs.execute_matrix(specs, jobs, board.task(f"{workload}, launches"), where_run)
    results, each = [measure(run) for run in done], len(seeds)
    without, *found = (
        judge(mb, results[i * each : (i + 1) * each]) for i, mb in enumerate([0, *wanted])
    )
    sweep = Sweep(
        policy=base.name,
        against=baseline.name,
        workload=phone.name,
        launches=launches,
        seeds=seeds,
        memory_mb=specs[0].memory_of(phone),
        runs=tuple(results),
        without=without,
        sizes=tuple(found),
    )
    where = paths.made("tune") / f"{scheme}-{phone.name}"
    host.write_text(where.with_suffix(".svg"), draw(found))
    host.write_json(where.with_suffix(".json"), as_object(sweep))
    show(sweep, as_json)
    tell(f"written: {where.with_suffix('.svg')}")


def _with_area(policy: "Policy") -> "Policy":
    """The policy; UsageError for one whose camera does not use the area that is to be sized, or has
    memory of another size besides."""
    from cohort.tune import other_size, uses_area

    if not uses_area(policy):
        raise UsageError(
            f"policy {policy.name}: the camera's buffers come from heap {policy.camera_heap}, and"
            " not from the page-cache-preferred area",
            "one that has them from there: --policy pcpa",
        )
    if size := other_size(policy):
        raise UsageError(
            f"policy {policy.name}: {size} is no size that --sizes changes, and the camera uses it",
            "one that has cohort.pcpa= alone: --policy pcpa",
        )
    return policy


_LIKE_SIZES = "like --sizes 180,200,260"


def parse_sizes(text: str) -> list[int]:
    """Sizes in MiB out of `180,200`, each once and rising; UsageError for anything else."""
    try:
        sizes = sorted({int(x) for x in text.split(",")})
    except ValueError:
        raise UsageError(f"--sizes {text}: not numbers between commas", _LIKE_SIZES) from None
    if sizes[0] < 1:
        raise UsageError(f"--sizes {text}: a size is at least 1 MiB", _LIKE_SIZES)
    return sizes


def as_object(sweep: "Sweep") -> dict[str, Any]:
    """Everything, for other programs: what was run and where its runs are, each size with its
    measures and what it costs too much of, the phone without an area, and the best, MiB or null."""
    from cohort.tune import best, too_dear

    without = sweep.without
    chosen = best(sweep.sizes, without)
    asked = ("policy", "against", "workload", "launches", "seeds", "memory_mb")
    return {
        **{key: getattr(sweep, key) for key in asked},
        "runs": [{"policy": x.policy, "seed": x.seed, "path": str(x.path)} for x in sweep.runs],
        "without": _measured(without),
        "sizes": [
            {"mb": x.mb, **_measured(x), "too_dear": too_dear(x, without)} for x in sweep.sizes
        ],
        "best_mb": None if chosen is None else chosen.mb,
    }


def _measured(size: "Size") -> dict[str, Any]:
    return {name: found and asdict(found) for name, found in size.measured.items()}


def show(sweep: "Sweep", as_json: bool) -> None:
    """Print a table with the best size marked, and how to boot with it, or all of that as JSON.
    Failed without one."""
    from cohort.tune import best

    chosen = best(sweep.sizes, sweep.without)
    if as_json:
        print(json.dumps(as_object(sweep), allow_nan=False))
    else:
        _print_table(sweep, chosen)
    if chosen is None and best(sweep.sizes) is None:
        raise Failed("no size was measured: does the policy have an area and the kernel its heap?")
    if chosen is None:
        raise Failed(
            "each size costs the phone too much: kills, refaults or launch time",
            "smaller ones: --sizes; or more --seeds, if one run says so",
        )


def _print_table(sweep: "Sweep", chosen: "Size | None") -> None:
    """A line a size, the phone without an area first, by its policy's name, and what to boot with
    if one is the best."""
    from cohort.tune import MEASURES, too_dear

    width = max(4, len(sweep.against))
    print("  ".join([f"  {'MiB':>{width}}", *(f"{name:>13}" for name in MEASURES)]))
    for size in [sweep.without, *sweep.sizes]:
        cells = [size.median(name) for name in MEASURES]
        words = [f"{'-':>13}" if x is None else f"{x:>13,.1f}" for x in cells]
        dear = too_dear(size, sweep.without)
        mark = "*" if size is chosen else "!" if dear else " "
        told = ["refuses some"] if size.refuses else []
        told += [f"too dear: {', '.join(dear)}"] if dear else []
        told += [f"of some seeds alone: {', '.join(size.partial)}"] if size.partial else []
        print("  ".join([f"{mark} {size.mb or sweep.against:>{width}}", *words, *told]))
    if chosen is not None:
        print(f"best: {chosen.mb} MiB; boot with cohort.pcpa={chosen.mb}M")
