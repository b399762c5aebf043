"""Whether a run can be made, told before a kernel is built for it: what its policy, its workload
and its machine ask of each other."""

from dataclasses import dataclass

from cohort import knobs, named, switches
from cohort.errors import UsageError
from cohort.kernel.build import VARIANTS
from cohort.phone import room
from cohort.phone.storage import check_files
from cohort.phone.workload import Workload, load_workload, render_conf
from cohort.policy import Policy
from cohort.run_spec import RunSpec


@dataclass(frozen=True)
class CheckedRun:
    """A run that can be made: its workload, and all that the guest is told (/phone.conf).

    `remarks` are what may not be meant.
    """

    workload: Workload
    conf: str
    remarks: tuple[str, ...] = ()


def check_run(spec: RunSpec) -> CheckedRun:
    """Read the run's workload and write the guest's settings. UsageError if its machine cannot have
    what the switches ask for, the phone does not fit in its memory or on its storage, the policy is
    of no effect on it or names what the machine has not, or the guest could not be told the run's
    numbers."""
    workload = load_workload(spec.workload, dict(spec.change))
    memory_mb = spec.memory_of(workload)
    _check_machine_mb(spec.policy, memory_mb)
    where = f"policy {spec.policy.name} on {workload.name}"
    more_cpus = "a workload with machine.cpus ="
    switches.check_machine(spec.words, memory_mb, workload.cpus, f"{where}: cmdline", more_cpus)
    knobs.check_machine(spec.policy.sysfs, memory_mb, where)
    switches.check(workload.boot_words, f"{workload.name}: machine.heap_orders")
    reserved_mb = switches.reserved_mb([*spec.words, *spec.policy.area_words])
    room.check(workload, memory_mb, workload.name, reserved_mb)
    check_files(workload, workload.name)
    remarks = filter(
        None,
        (
            _strange_kernel(spec),
            _strange_roles(spec.policy, workload),
            _strange_camera(spec, workload),
        ),
    )
    _check_nodes(spec, workload)
    _check_area(spec, workload)
    return CheckedRun(workload, _conf(spec, workload), tuple(remarks))


def _strange_kernel(spec: RunSpec) -> str:
    """A sentence if the kernel that is named for the run is not of the policy's kind: of policies
    that differ in it alone the runs would be the same, and no table would tell."""
    policy, asked = spec.policy, spec.kernel_spec.configs
    own = VARIANTS.get(policy.kernel, ())
    where = f"policy {policy.name}: its kernel is {policy.kernel}, and {','.join(asked)}"
    if lacking := [fragment for fragment in own if fragment not in asked]:
        return f"{where} has no {lacking[0]}"
    return f"{where} has Cohort" if spec.kernel_spec.has_cohort and "cohort" not in own else ""


def _strange_roles(policy: Policy, workload: Workload) -> str:
    """A sentence if the policy has roles that the workload has not. UsageError if it has no other
    and no virtual nodes either: under its name the run would be of none of its walls."""
    strange = [name for name in policy.role if name not in workload.roles]
    if not strange:
        return ""
    known = ", ".join(workload.roles) or "none"
    said = f"policy {policy.name}: role.{strange[0]}: the roles of {workload.name} are: {known}"
    nodes = "cohort.vnode" in switches.values(policy.cmdline)
    if len(strange) == len(policy.role) and not nodes:
        near = named.near(strange[0], workload.roles)
        raise UsageError(said, near or "one that has roles: --workload vnode-pressure")
    return f"{said}; nothing is done for it"


def _check_machine_mb(policy: Policy, memory_mb: int) -> None:
    """UsageError for a policy whose sizes are those of a machine with other memory: as a rival it
    would have more than its share, or less."""
    meant_mb = policy.machine_mb
    if meant_mb is None or meant_mb == memory_mb:
        return
    limits = {name: role.memory_max_mb for name, role in policy.role.items() if role.memory_max_mb}
    kept_mb = sum(role.memory_low_mb for role in policy.role.values())
    lines = [
        f"role.{name}.memory_max_mb = {limit_mb * (memory_mb - kept_mb) // (meant_mb - kept_mb)}"
        for name, limit_mb in limits.items()
        if memory_mb > kept_mb and meant_mb > kept_mb
    ]
    raise UsageError(
        f"policy {policy.name}: its sizes are those of {meant_mb} MiB, and the machine has"
        f" {memory_mb}",
        f'a policy with extends = "{policy.name}", '
        f"{', '.join((f'machine_mb = {memory_mb}', *lines))}",
    )


def _strange_camera(spec: RunSpec, workload: Workload) -> str:
    """A sentence if the policy says something of a camera that the workload has not: of policies
    that differ in it alone the runs would be the same, and no table would tell."""
    policy = spec.policy
    said = [f"camera_heap {policy.camera_heap}"] if policy.camera_heap != "system" else []
    said += ["camera_announce"] if policy.camera_announce else []
    if workload.camera is not None or not said:
        return ""
    where = f"policy {policy.name}: {' and '.join(said)}: {workload.name} has no camera"
    areas = switches.HEAP_AREAS.get(policy.camera_heap, ())
    if areas and not policy.areas(spec.words) & set(areas):
        return f"{where}, and the command line no {areas[0]}=; nothing is done for it"
    return f"{where}; nothing is done for it"


def _check_nodes(spec: RunSpec, workload: Workload) -> None:
    """UsageError for a role of the workload whose virtual node the machine will not have, and for a
    file of such a node."""
    nodes = switches.nodes(spec.words)
    known = ", ".join(nodes) or f"none, as there is no {switches.LAYOUT}="
    if path := knobs.without_node(list(spec.policy.sysfs), nodes):
        raise UsageError(
            f"policy {spec.policy.name}: sysfs: {path}: no such node; the nodes are: {known}"
        )
    for name, role in spec.policy.role.items():
        if name not in workload.roles or role.vnode is None or role.vnode in nodes:
            continue
        raise UsageError(
            f"policy {spec.policy.name}: role.{name}.vnode: no node {role.vnode!r};"
            f" the nodes are: {known}",
            named.near(role.vnode, nodes),
        )


def _check_area(spec: RunSpec, workload: Workload) -> None:
    """UsageError for a camera whose heap takes from an area that the machine will not have. The
    heaps are there without one and have ordinary memory: a run of no policy, and no sign of it."""
    policy, given = spec.policy, spec.policy.areas(spec.words)
    heap = switches.HEAP_AREAS.get(policy.camera_heap, ())
    needs = {f"camera_heap {policy.camera_heap}": heap} if heap else {}
    if policy.camera_announce:
        needs["camera_announce"] = switches.AREAS[:1]
    for key, areas in needs.items():
        if workload.camera is not None and not any(area in given for area in areas):
            raise UsageError(
                f"policy {policy.name} on {workload.name}: {key}: there is no area, the command"
                f" line has no {' or '.join(f'{area}=' for area in areas)}",
                f'cmdline = ["{areas[0]}=260M"] in the policy',
            )


def _conf(spec: RunSpec, workload: Workload) -> str:
    """What the guest is told. UsageError for a number that it cannot take."""
    return render_conf(
        workload,
        seed=spec.seed,
        launches=spec.launches or workload.launches.value,
        writes=spec.policy.writes(),
        time="virtual" if spec.accel == "deterministic" else "real",
        roles={name: role.line for name, role in spec.policy.role.items()},
        heap=spec.policy.camera_heap,
        announce=spec.policy.camera_announce,
        entitled=spec.policy.entitled,
        page_size=spec.kernel_spec.page_size,
    )
