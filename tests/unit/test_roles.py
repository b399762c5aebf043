"""Roles, pressure and messages of a workload, as the guest and the image get them."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cohort import paths, runs
from cohort.errors import BuildError, UsageError
from cohort.phone import storage
from cohort.phone.conf import render_conf
from cohort.phone.workload import Workload, load_workload
from cohort.policy import Role, load_policy
from cohort.run_check import check_run
from cohort.run_spec import RunSpec


def conf(workload: Workload, policy: str, launches: int = 10) -> list[str]:
    roles = {name: role.line for name, role in load_policy(policy).role.items()}
    text = render_conf(workload, seed=1, launches=launches, writes=[], time="virtual", roles=roles)
    return text.splitlines()


def test_a_policy_says_what_keeps_a_role_apart() -> None:
    workload = load_workload("vnode-pressure")
    assert "role trusted vnode trusted" in conf(workload, "vnode-lend")
    assert "role trusted cgroup 393216 524288 0" in conf(workload, "memcg")
    assert "role untrusted cgroup 0 0 0" in conf(workload, "memcg")
    assert "role trusted cgroup 393216 524288 0" in conf(workload, "memcg-max")
    assert "role untrusted cgroup 0 0 1547264" in conf(workload, "memcg-max")
    assert "role trusted none" in conf(workload, "none")
    assert "native trusted" in conf(workload, "none")
    assert "role store vnode operator" in conf(load_workload("vnode-3nodes"), "vnode-case4")


def test_roles_come_before_the_processes_that_have_them() -> None:
    lines = conf(load_workload("vnode-pressure"), "vnode")
    first = next(i for i, line in enumerate(lines) if line.startswith(("proc ", "app ")))
    assert all(not line.startswith("role ") for line in lines[first:])


def test_pressure_begins_after_the_calm_launches() -> None:
    workload = load_workload("vnode-pressure", {"pressure.calm_pct": 40})
    assert "set pressure_from 5" in conf(workload, "none")
    assert "set pressure_nice 10" in conf(workload, "none")
    assert "set pressure_from 0" in conf(load_workload("phone-2g"), "none")


def test_pressure_may_be_confined_to_some_cpus() -> None:
    assert "set pressure_cpus 1" in conf(load_workload("vnode-pressure"), "none")
    assert "set pressure_cpus 0" in conf(load_workload("refault-hog"), "none")
    assert "set pressure_cpus 0" in conf(load_workload("phone-2g"), "none")


def test_the_control_burns_time_in_the_launches_of_the_pressure() -> None:
    programs = {"reader", "zeroer"}
    lines = {
        name: [set(x.split()) for x in conf(load_workload(name), "none") if programs & {*x.split()}]
        for name in ("vnode-pressure", "vnode-burn")
    }
    assert len(lines["vnode-burn"]) == len(lines["vnode-pressure"]) == 2
    for burning, pressing in zip(lines["vnode-burn"], lines["vnode-pressure"], strict=True):
        (more,) = burning - pressing
        assert more.startswith("burn_ms=") and pressing <= burning


def test_everybody_has_one_of_the_roles(tmp_path: Path) -> None:
    for name in ("phone-2g", "vnode-pressure"):
        (tmp_path / f"{name}.toml").write_text((paths.WORKLOADS / f"{name}.toml").read_text())
    child = tmp_path / "child.toml"
    child.write_text('name = "child"\nextends = "vnode-pressure"\n[app.maps]\nrole = "guest"\n')
    with pytest.raises(UsageError, match=r"app.maps: 'guest' is not one of the roles"):
        load_workload(child)


def test_messages_are_a_database_that_sqlite_reads(tmp_path: Path) -> None:
    path = tmp_path / "messages"
    storage._write_messages(path, 500)
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM message").fetchone() == (500,)
        found = db.execute("SELECT count(*) FROM message WHERE body LIKE '%tomorrow%'").fetchone()
    assert 0 < found[0] <= 500
    again = tmp_path / "again"
    storage._write_messages(again, 500)
    assert path.read_bytes() == again.read_bytes()


def spec(policy: str, workload: str, **role: Role) -> RunSpec:
    """A run of the policy with these roles besides."""
    chosen = load_policy(policy)
    changed = chosen.model_copy(update={"role": {**chosen.role, **role}})
    return RunSpec(changed, workload, 5)


def test_a_policy_of_roles_that_the_workload_has_not_is_refused() -> None:
    """Under the policy's name it would be a run without its cgroups."""
    with pytest.raises(UsageError, match=r"memcg: role\.trusted: the roles of phone-2g are: none"):
        check_run(spec("memcg", "phone-2g"))
    near = spec("none", "vnode-pressure", trustd=Role(memory_min_mb=5))
    with pytest.raises(UsageError, match="are: trusted, untrusted") as caught:
        check_run(near)
    assert caught.value.hint == "did you mean trusted?"
    assert check_run(spec("memcg", "vnode-pressure")).remarks == ()


def test_a_role_that_the_workload_has_not_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def prepare(specs: Sequence[RunSpec]) -> None:
        raise BuildError("there is no kernel")

    monkeypatch.setattr(runs, "prepare", prepare)
    monkeypatch.setattr(runs.log, "warning", lambda text, remark: told.append(text % remark))
    one = spec("memcg", "vnode-pressure", trustd=Role(memory_min_mb=5))
    nodes = spec("vnode", "phone-2g")  # its nodes are there without roles, too
    with pytest.raises(BuildError):
        runs.execute_matrix([one, one, nodes])
    assert told == [
        "policy memcg: role.trustd: the roles of vnode-pressure are: trusted, untrusted;"
        " nothing is done for it",
        "policy vnode: role.trusted: the roles of phone-2g are: none; nothing is done for it",
    ]


def test_a_policy_whose_sizes_are_of_another_machine_is_refused(tmp_path: Path) -> None:
    """With 3 GiB the others would have half of it: less than beside a virtual node."""
    chosen = spec("memcg-max", "vnode-pressure")
    assert check_run(chosen).remarks == ()
    with pytest.raises(UsageError, match="sizes are those of 2048 MiB, .* has 3072") as caught:
        check_run(replace(chosen, memory_mb=3072))
    lines = ['extends = "memcg-max"', "machine_mb = 3072", "role.untrusted.memory_max_mb = 2518"]
    assert caught.value.hint == f"a policy with {', '.join(lines)}"
    mine = tmp_path / "mine.toml"
    mine.write_text("\n".join(['title = "mine"', *lines]))
    assert check_run(replace(chosen, policy=load_policy(mine), memory_mb=3072)).remarks == ()
    with pytest.raises(UsageError, match="sizes are those of 2048"):
        check_run(replace(chosen, memory_mb=400))


def test_a_policy_that_protects_all_of_its_machine_has_no_sizes_for_another(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    low, limit = "role.trusted.memory_low_mb = 1024", "role.untrusted.memory_max_mb = 512"
    mine.write_text("\n".join(['title = "mine"', "machine_mb = 1024", low, limit]))
    with pytest.raises(UsageError, match="sizes are those of 1024 MiB, .* has 2048"):
        check_run(replace(spec("memcg-max", "vnode-pressure"), policy=load_policy(mine)))


def test_the_machine_of_a_policy_is_no_part_of_a_run() -> None:
    """Runs that were made before policies named it are runs of the same policy."""
    policy = load_policy("memcg-max")
    assert policy.digest.startswith("a1e1dd702f015b71")
    assert policy.model_copy(update={"machine_mb": None}).digest == policy.digest


@pytest.mark.parametrize(
    ("policy", "workload", "remark"),
    [
        ("pcpa", "phone-2g", "camera_heap pcpa and camera_announce: phone-2g has no camera;"),
        ("pcpa-alone", "phone-2g", "camera_heap pcpa: phone-2g has no camera;"),
        ("pcpa-contig", "phone-2g", "camera_heap pcpa-contig and camera_announce: phone-2g has"),
        ("cma", "phone-2g", "camera_heap reserved: phone-2g has no camera;"),
        (
            "pcpa-sized",
            *("phone-2g", "pcpa: phone-2g has no camera, and the command line no cohort.pcpa=;"),
        ),
        ("pcpa-entitled", "phone-2g", None),
        ("none", "phone-2g", None),
        ("pcpa", "camera", None),
    ],
)
def test_a_camera_that_the_workload_has_not_is_told(
    policy: str, workload: str, remark: str | None
) -> None:
    """`compare pcpa pcpa-alone pcpa-contig` had three equal columns, and none with its name."""
    remarks = check_run(spec(policy, workload)).remarks
    assert [f"policy {policy}: " in x and str(remark) in x for x in remarks] == [True] * bool(
        remark
    )


@pytest.mark.parametrize(
    ("policy", "what", "hint"),
    [
        ("vnode", "no node 'trsted'; the nodes are: trusted, untrusted", "did you mean trusted?"),
        ("none", "no node 'trsted'; the nodes are: none, as there is no cohort.vnode=", None),
    ],
)
def test_a_role_of_a_node_that_the_machine_has_not_is_refused(
    policy: str, what: str, hint: str | None
) -> None:
    """The guest would be booted only to give up."""
    with pytest.raises(UsageError, match=what) as caught:
        check_run(spec(policy, "vnode-pressure", trusted=Role(vnode="trsted")))
    assert "role.trusted.vnode" in caught.value.message
    assert caught.value.hint == hint


def test_nodes_may_be_laid_out_by_the_run() -> None:
    chosen = spec("none", "vnode-pressure", trusted=Role(vnode="own")).policy
    words = ("cohort.vnode=own:600M,others:rest",)
    assert check_run(RunSpec(chosen, "vnode-pressure", 5, cmdline=words)).remarks == ()
