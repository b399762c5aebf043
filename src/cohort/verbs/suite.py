"""`cohort suite`: tests that others wrote, under several policies."""

import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cohort import host, paths
from cohort.errors import Failed, GuestError, UsageError
from cohort.log import progress
from cohort.verbs.options import (
    ARCHES,
    FILE,
    TREE,
    as_json,
    config,
    jobs,
    make_room,
    memory,
    of_machine,
)
from cohort.verbs.run import engine, kernel_of, on_cluster

if TYPE_CHECKING:
    from cohort.kernel.build import Kernel, KernelSpec
    from cohort.log import Board
    from cohort.policy import Policy
    from cohort.runs import Engine
    from cohort.suites.results import Outcome
    from cohort.suites.root import Kind
    from cohort.suites.runner import Machine, Plan
    from cohort.suites.schema import Suite

POLICIES = "none,region"


@click.command("suite")
@click.argument("name")
@click.option("--policies", default=POLICIES, show_default=True, help="The first is compared with.")
@click.option("--dir", "directory", type=click.Path(path_type=Path), help="Where NAME lies.")
@click.option("--case", "cases", multiple=True, help="Only this case of it; may be repeated.")
@config("The kernel's fragments [default: the policy's, and suite].")
@TREE
@click.option("--debug", is_flag=True, help="On the kernel with every checker; a warning ends it.")
@click.option(
    "--rootfs",
    type=click.Choice(["debian", "initramfs"]),
    default="debian",
    show_default=True,
    help="What the guests boot into.",
)
@click.option("--cpus", type=click.IntRange(1, 8), help="CPUs [default: the suite's].")
@memory("the suite")
@as_json("the tables")
@click.option("--junit", type=FILE, help="Write the results as JUnit's XML, too.")
@click.option("--ktap", type=FILE, help="Write the results as KTAP, too.")
@of_machine
@jobs("one, or as many as the host bears if its guests count instructions")
@on_cluster
def command(
    name: str,
    policies: str,
    directory: Path | None,
    cases: tuple[str, ...],
    config: str | None,
    tree: Path | None,
    debug: bool,
    rootfs: "Kind",
    cpus: int | None,
    memory_mb: int | None,
    as_json: bool,
    junit: Path | None,
    ktap: Path | None,
    arch: str,
    page_size: int,
    jobs: int | None,
    cluster: str | None,
    verify_share: float | None,
) -> None:
    """Run the suite NAME under each policy, and tell every case that differs from the first.

    NAME is a file of suites/, or anything you call the programs in the directory --dir. A case
    that fails under all policies is no difference: exit code 1 says that there is one. What the
    guests said stays in out/suites/runs. The kernel's own tests are those of --tree.
    """
    from cohort.kernel import source
    from cohort.policy import load_policies
    from cohort.suites import ci, selftests
    from cohort.suites import root as roots
    from cohort.suites.runner import Machine, check_columns, choose_cases
    from cohort.suites.schema import load_directory, load_suite

    if config is not None and debug:
        raise UsageError("--config does not go with --debug", "name the fragment debug instead")
    debug = debug or "debug" in (config or "").split(",")
    suite = load_suite(name) if directory is None else load_directory(directory, name)
    suite = choose_cases(suite, cases)
    loaded = load_policies(_names(policies))
    specs = [
        _kernel_spec(policy, config=config, tree=tree, debug=debug, arch=arch, page_size=page_size)
        for policy in loaded
    ]
    roots.check(rootfs, suite, specs[0].arch)
    memory_mb = suite.memory_mb if memory_mb is None else memory_mb
    machine = Machine(cpus or suite.cpus, memory_mb, debug, specs[0].page_size, config, tree)
    for policy in loaded:
        machine.check(policy)
    check_columns(loaded, disk=rootfs == "debian")
    if tree is not None:
        source.read_release(source.for_make(tree))
    make_room(junit, ktap)
    with engine(cluster, verify_share, repeats=suite.deterministic) as where:
        # What is wrong with the command is told before what the machine lacks.
        roots.check_makes(rootfs, suite)
        selftests.check_tools(suite.selftests)
        outcomes = _run(suite, loaded, specs, rootfs, machine, where, jobs)
    # Before anything is printed: the reader of that may have gone away.
    if junit is not None:
        host.write_text(junit, ci.junit(suite.name, outcomes, suite.cost_bound))
    if ktap is not None:
        host.write_text(ktap, ci.ktap(outcomes, suite.cost_bound))
    show(suite, outcomes, as_json)
    _judge(suite, outcomes)


def _names(policies: str) -> list[str]:
    """The names between the commas of --policies; UsageError for none."""
    names = [name for word in policies.split(",") if (name := word.strip())]
    if not names:
        raise UsageError("--policies names none", f"--policies {POLICIES}")
    return names


def show(suite: "Suite", outcomes: "Sequence[Outcome]", as_json: bool) -> None:
    """Print what the suite came to on stdout."""
    from rich.console import Console

    from cohort.suites.output import as_object, print_tables

    if as_json:
        print(json.dumps(as_object(outcomes, suite.cost_bound), allow_nan=False))
    else:
        print_tables(outcomes, suite.cost_bound, Console(file=sys.stdout))


def _judge(suite: "Suite", outcomes: "Sequence[Outcome]") -> None:
    """Failed if a result differs from the first policy's; GuestError if none does and a guest died
    when a case had ended: of such a death no case tells, under whatever policies."""
    from cohort.suites.results import differences

    late = [sentence for outcome in outcomes for sentence in outcome.late_deaths()]
    if found := differences(outcomes, suite.cost_bound):
        said = f"{suite.name}: {len(found)} results differ from {outcomes[0].policy}"
        raise Failed("\n".join((said, *late)))
    if late:
        where = paths.made("suites", "runs", suite.name)
        raise GuestError("\n".join((f"{suite.name}: a guest died", *late)), run_dir=where)


def _kernel_spec(
    policy: "Policy",
    *,
    config: str | None,
    tree: Path | None,
    debug: bool,
    arch: str,
    page_size: int,
) -> "KernelSpec":
    """The kernel to build for a policy: its own variant with what suites want to find.

    UsageError for a machine that there is none for.
    """
    from cohort.kernel.build import KernelSpec

    if config is not None:
        return kernel_of(config, tree, arch=arch, page_size=page_size)
    spec = KernelSpec.variant(policy.kernel, arch, tree, page_size)
    own = () if arch == ARCHES[0] else (f"suite-{arch}",)
    return replace(spec, configs=(*spec.configs, "suite", *(("debug",) if debug else ()), *own))


def _run(
    suite: "Suite",
    policies: "Sequence[Policy]",
    specs: "Sequence[KernelSpec]",
    rootfs: "Kind",
    machine: "Machine",
    where: "Engine | None",
    jobs: int | None,
) -> "list[Outcome]":
    """Build what is needed, then so many guests at a time: if the command does not say, one, as
    many as the host bears if none can disturb another, or all if `where` is a cluster."""
    from cohort import capacity, checkout, runs
    from cohort.kernel import build
    from cohort.suites import runner

    before = checkout.commit()
    with progress() as board:
        kernels = {x: build.build(x, board.task(f"kernel {x.name}")) for x in dict.fromkeys(specs)}
        runs.check_trees(kernels)
        plan = _plan(suite, kernels[specs[0]], rootfs, machine, board)
        place = where or runs.Here()
        plan = replace(plan, engine=place, commit=checkout.since(before))
        runner.expect(plan, policies)
        names = [policy.name for policy in policies]
        calls = [
            _call(plan, policy, kernels[spec], names, board)
            for policy, spec in zip(policies, specs, strict=True)
        ]
        # One whose time is the host's has several CPUs, and its cases have limits of time.
        alone = capacity.Load(1, machine.memory_mb)
        here = capacity.guests([alone] * len(calls)) if suite.deterministic else 1
        return runs.together(calls, jobs or place.width(len(calls), here))


def _call(
    plan: "Plan", policy: "Policy", kernel: "Kernel", policies: "Sequence[str]", board: "Board"
) -> "Callable[[threading.Event], Outcome]":
    """Run the suite under a policy, one of these of the command, and leave what was run beside
    it."""
    from cohort.suites import runner

    directory = paths.made("suites", "runs", plan.suite.name) / policy.name
    task = board.task(f"{plan.suite.name} under {policy.name}, cases")

    def call(stop: threading.Event) -> "Outcome":
        # Of two commands the second would remove what the first one's guest writes into.
        place = paths.made("suites", ".locks") / f"{plan.suite.name}-{policy.name}"
        with host.lock(place, stop=stop):
            outcome = runner.run(plan, policy, kernel, directory, task, stop)
            _write_meta(directory, plan, policy, kernel, policies)
        return outcome

    return call


def _plan(
    suite: "Suite",
    kernel: "Kernel",
    rootfs: "Kind",
    machine: "Machine",
    board: "Board",
) -> "Plan":
    from cohort.phone.initramfs import build_guest
    from cohort.suites import root as roots
    from cohort.suites.runner import Plan

    layers = _layers(suite, kernel, machine, board)
    debian = rootfs == "debian"
    image = roots.image(layers, suite.packages, suite.image_mb) if debian else None
    members = [] if debian else roots.initramfs(layers, kernel.arch)
    init = build_guest(paths.made("guest"), "suite", kernel.arch, machine.page_size)
    return Plan(suite, init, image, members, machine)


def _layers(suite: "Suite", kernel: "Kernel", machine: "Machine", board: "Board") -> list[Path]:
    """The directories whose files the guest finds in one: what is brought as it is, then what is
    built."""
    from cohort.kernel import source
    from cohort.suites import programs, selftests

    layers = [] if suite.files is None else [suite.files]
    if suite.selftests:
        tree = machine.tree or source.fetch(board.task("unpacking the kernel source, MiB"))
        layers.append(selftests.install(suite.selftests, tree, kernel.tree_id))
    if suite.sources is not None:
        layers.append(programs.build(suite.home / suite.sources, suite.archives, kernel.arch))
    return layers


def _write_meta(
    where: Path, plan: "Plan", policy: "Policy", kernel: "Kernel", policies: "Sequence[str]"
) -> None:
    """What was run, on what, when."""
    from cohort.vm.machine import emulator

    host.write_json(
        where / "meta.json",
        {
            "suite": plan.suite.name,
            "suite_id": plan.id[:16],
            "policy": policy.name,
            "position": policies.index(policy.name),
            "policies": list(policies),
            "policy_id": policy.digest[:16],
            "cmdline": list(plan.words(policy)),
            "cpus": plan.machine.cpus,
            "memory_mb": plan.machine.memory_mb,
            "arch": kernel.arch,
            "page_size": plan.machine.page_size,
            "kernel": kernel.release,
            "kernel_id": kernel.id[:16],
            "tree_id": kernel.tree_id[:16],
            "tree": plan.machine.tree and str(plan.machine.tree.resolve()),
            "guest_id": host.digest_file(plan.init)[:16],
            "accel": plan.suite.accel,
            "gcc": host.version("gcc"),
            "debug": plan.machine.debug,
            "config": plan.machine.config,
            "rootfs": "initramfs" if plan.image is None else "debian",
            "kernel_config": kernel.directory.name,
            "cohort_git": plan.commit,
            "qemu": host.version(emulator(kernel.arch).program),
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    )
