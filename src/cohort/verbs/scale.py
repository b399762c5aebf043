"""`cohort scale`: what operations of the memory manager cost under its locks."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cohort.errors import UsageError
from cohort.log import progress
from cohort.verbs import calls
from cohort.verbs.options import SEEDS, TREE, as_json, jobs, of_machine, of_results
from cohort.verbs.run import engine, on_cluster

if TYPE_CHECKING:
    from cohort.results.rundir import RunDir
    from cohort.results.scale import Counted, Rate, Row, Use
    from cohort.run_spec import RunSpec
    from cohort.runs import Engine

POLICIES = ("none", "region", "cpb")
OFF = ("0", "n", "f", "off")
"""What kstrtobool() takes for a scheme that is to be off, in small letters."""


@click.command("scale")
@click.argument("policies", nargs=-1, metavar="[POLICY...]")
@click.option("--free-running", is_flag=True, help="Operations a second, schemes in turn.")
@click.option("--workload", help="Name or TOML file [default: scale, scale-free].")
@click.option("--launches", type=int, help="App launches before [default: the workload's].")
@SEEDS
@jobs("as many as the host bears; with --free-running one")
@of_results
@TREE
@as_json("the table", "one object")
@of_machine
@on_cluster
def command(
    policies: tuple[str, ...],
    free_running: bool,
    workload: str | None,
    launches: int | None,
    seeds: tuple[int, ...],
    jobs: int | None,
    as_json: bool,
    cluster: str | None,
    verify_share: float | None,
    **options: Any,
) -> "list[RunDir]":
    """Count acquisitions of each lock, and instructions under it, an operation.

    Each POLICY (default: none, region and cpb) is run twice on a deterministic machine: on its
    kernel, and on one with lock statistics. With --free-running one kernel, whose policy is the
    first, switches its schemes on and off in turn on a machine that is as fast as the host. Of
    several seeds medians are printed.
    """
    # Imported here: `cohort scale --help` should not wait for pandas.
    from cohort.policy import load_policies
    from cohort.results.scale import middle_rates, rates
    from cohort.run_spec import RunSpec

    names = policies or (POLICIES[:1] if free_running else POLICIES)
    load = workload or ("scale-free" if free_running else "scale")
    loaded = load_policies(names)
    _check(load, names, free_running)
    if free_running:
        free = [RunSpec(loaded[0], load, launches, x, accel="tcg", **options) for x in seeds]
        _check_off(names[0], free[0])
        with engine(cluster, verify_share, repeats=False) as where:
            # One after the other: two at a time would take the host's cores from one another.
            done = _run(free, jobs or 1, where)
        show_rates(middle_rates([rates(run.records()) for run in done]), as_json, seeds)
        return done
    specs = [RunSpec(policy, load, launches, x, **options) for policy in loaded for x in seeds]
    with engine(cluster, verify_share, repeats=True) as where:
        done = _run([*specs, *(_watched(spec) for spec in specs)], jobs, where)
    show_counted(_count([policy.name for policy in loaded], done, len(seeds)), as_json, seeds)
    return done  # for `cohort results again`


def _count(policies: "Sequence[str]", done: "Sequence[RunDir]", seeds: int) -> "list[Counted]":
    """What was counted of each policy, the medians over so many seeds, of runs by policy and seed:
    first all on the kernel as it is, then all with lock statistics."""
    from cohort.results.scale import count, middle

    half = len(policies) * seeds
    pairs = list(zip(done[:half], done[half:], strict=True))
    return [
        middle(
            [
                count(policy, list(plain.records()), list(watched.records()))
                for plain, watched in pairs[i * seeds : (i + 1) * seeds]
            ]
        )
        for i, policy in enumerate(policies)
    ]


def _check(load: str, names: Sequence[str], free_running: bool) -> None:
    """UsageError if the workload or the policies are of the other kind of measurement: what is
    counted in turns is of no policy, and without turns there is nothing to compare a rate with."""
    from cohort.phone.workload import load_workload

    experiment = load_workload(load).scale
    if experiment is None:
        raise UsageError(f"{load} has no table scale", "--workload scale")
    turns = experiment.turns.value
    if free_running and len(names) > 1:
        raise UsageError(
            f"--free-running is of one policy, not of {', '.join(names)}",
            "its schemes are switched on that one's kernel",
        )
    if free_running and not turns:
        raise UsageError(
            f"{load}: scale.turns is 0, and --free-running switches the schemes in turn",
            "--workload scale-free, or leave --free-running out",
        )
    if turns and not free_running:
        raise UsageError(
            f"{load}: scale.turns is {turns}: its schemes are switched, whatever the policy",
            "say --free-running, or --workload scale",
        )


def _check_off(name: str, spec: "RunSpec") -> None:
    """UsageError for a policy, by the name that was given, whose kernel has no schemes; or has one
    on from the start: the turns of `none` would be measured with it, and those of its rival not at
    all."""
    from cohort import switches
    from cohort.knobs import COHORT

    policy = spec.policy
    if not spec.kernel_spec.has_cohort:
        raise UsageError(
            f"--free-running switches the schemes in turn, and the kernel of policy {policy.name}"
            " has none",
            "cohort scale --free-running, on the kernel of policy none",
        )
    word = f"cohort={switches.values(policy.cmdline).get('cohort', 'off')}"
    on = [] if word == "cohort=off" else [word]
    files = [f"{COHORT}/{scheme}/enabled" for scheme in switches.SCHEMES]
    on += [file for file in files if policy.sysfs.get(file, "0").lower() not in OFF]
    if on:
        raise UsageError(
            f"--free-running switches the schemes in turn, and policy {policy.name} has one on from"
            f" the start: {on[0]}",
            f"cohort scale none {name}, or --free-running with a policy that has none on",
        )


def _watched(spec: "RunSpec") -> "RunSpec":
    """The same run on a kernel with lock statistics."""
    from dataclasses import replace

    from cohort.kernel.build import KernelSpec

    kernel = KernelSpec.variant("lockstat", spec.arch, spec.tree, spec.page_size)
    return replace(spec, kernel=kernel)


def _run(specs: "Sequence[RunSpec]", jobs: int | None, where: "Engine | None") -> "list[RunDir]":
    from cohort.results import export
    from cohort.runs import execute_matrix

    with progress() as board:
        done = execute_matrix(specs, jobs, board.task("scale, launches"), where)
    calls.remember(done, export.SCALE)
    return done


def show_counted(counted: "Sequence[Counted]", as_json: bool, seeds: Sequence[int] = (1,)) -> None:
    """Print what was counted: a line a lock of an operation, and what is missed. `seeds` are those
    that it is the medians over."""
    from cohort.results.scale import ACQUIRED_LIMIT, HELD_LIMIT, rows

    found = rows(counted)
    if as_json:
        told = {"seeds": list(seeds), **counted_object(counted, found)}
        print(json.dumps(told, allow_nan=False))
        return
    names = [x.policy for x in counted]
    print("| operation | lock | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 2) + "|")
    last = None
    for row in found:
        if row.place != last:
            last = row.place
            cost = [f"{x.instructions.get(row.place, 0):,.0f}" for x in counted]
            print(f"| **{row.place.label}** | (instructions) | " + " | ".join(cost) + " |")
        cells = [_cell(row, index) for index in range(len(names))]
        print(f"| | {row.lock} | " + " | ".join(cells) + " |")
    probe = ", ".join(f"{x.policy} {x.probe.floor:.0f} and {x.probe.each:.0f}" for x in counted)
    print(
        f"\nTimes taken / instructions under it, an operation; ! is over {ACQUIRED_LIMIT}"
        f" or {HELD_LIMIT} times {names[0]}."
    )
    print(f"lockdep costs, inside the lock (taken off) and in all each time: {probe}.")
    if len(seeds) > 1:
        print(f"All of these are medians over the seeds {', '.join(map(str, seeds))}.")


def _cell(row: "Row", index: int) -> str:
    use = row.uses[index]
    if use is None:
        return "-"
    mark = " !" if index and row.met(index) is False else ""
    ratios = row.ratios(index) if index else None
    versus = f" ({ratios[0]:.2f} / {ratios[1]:.2f})" if ratios is not None else ""
    return f"{use.acquired:.3f} / {use.held:,.0f}{versus}{mark}"


def counted_object(counted: "Sequence[Counted]", found: "Sequence[Row]") -> dict[str, Any]:
    """Everything that was counted, for other programs."""

    def one(use: "Use | None") -> dict[str, float] | None:
        return None if use is None else asdict(use)

    names = [x.policy for x in counted]
    return {
        "policies": names,
        "probe": {x.policy: asdict(x.probe) for x in counted},
        "instructions": [
            {**asdict(at), "by_policy": {x.policy: x.instructions.get(at) for x in counted}}
            for at in counted[0].instructions
        ],
        "locks": [
            {
                **asdict(row.place),
                "lock": row.lock,
                "by_policy": dict(zip(names, map(one, row.uses), strict=True)),
                "met": {name: row.met(i) for i, name in enumerate(names) if i},
            }
            for row in found
        ],
    }


def show_rates(found: "Sequence[Rate]", as_json: bool, seeds: Sequence[int] = (1,)) -> None:
    """Print operations a second of each scheme, and their ratio to `none` of the same turn; of
    several `seeds` the medians of their medians."""
    from cohort.results.scale import RATE_LIMIT

    if as_json:
        operations = [{**asdict(x), "met": x.met} for x in found]
        print(json.dumps({"seeds": list(seeds), "operations": operations}, allow_nan=False))
        return
    print("| operation | scheme | a second | times none |")
    print("|---|---|---|---|")
    for x in found:
        mark = "" if x.met else " !"
        print(
            f"| {x.place.label} | {x.scheme} | {x.rate.median:,.0f} | {x.ratio.median:.3f}"
            f" [{x.ratio.low:.3f}, {x.ratio.high:.3f}]{mark} |"
        )
    print(f"\nMedian [least, greatest] of the turns; ! is below {RATE_LIMIT}. The host's load and")
    print("cores decide the rates: only the ratios say anything.")
    if len(seeds) > 1:
        print(f"Medians over the seeds {', '.join(map(str, seeds))} of the turns' medians.")
