"""Virtual memory nodes on a booted kernel: layouts, roles, and who is killed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cohort import runs
from cohort.kernel.build import ARCHES, Kernel, KernelSpec, build
from cohort.log import Update
from cohort.policy import load_policy
from cohort.results.rundir import RunDir
from cohort.results.runs import measure
from cohort.run_spec import RunSpec
from tests_support import SmallGuest, at_night, claims_of, small_guest

pytestmark = pytest.mark.integration

SOURCE = Path(__file__).with_name("vnode_guest.c")
PAGES = Path(__file__).with_name("pages_guest.c")
LAYOUT = "cohort.vnode=trusted:256M,untrusted:rest"
LAUNCHES = 2
PRESSED = 32
"""Launches of which the last eight are under pressure."""
EITHER = pytest.mark.parametrize("default", ["trusted", "untrusted"])


@pytest.fixture(scope="module", params=at_night(ARCHES, 1))
def guest(
    request: pytest.FixtureRequest,
    kernel: Callable[..., Kernel],
    tmp_path_factory: pytest.TempPathFactory,
) -> SmallGuest:
    built = kernel("cohort", request.param)
    storage_mb = 64 if request.param == "x86_64" else 0
    return small_guest(SOURCE, built, tmp_path_factory.mktemp("vnode"), storage_mb=storage_mb)


@EITHER
def test_nobody_leaves_a_role_and_a_bystander_lives(default: str, guest: SmallGuest) -> None:
    text = guest.boot(LAYOUT, f"cohort.vnode_default={default}")
    lines = claims_of(text)
    assert len(lines) >= (90 if guest.storage_mb else 80), lines
    assert text.count("that its role does not have") == 1


@pytest.mark.night
def test_pages_that_are_moved_or_merged_stay_in_their_role(
    announce: Callable[[str], Update], tmp_path: Path
) -> None:
    """Huge pages of pools, beside them and of small ones, equal pages: a suite's kernel."""
    spec = KernelSpec.from_fragments("base,x86_64,lab,cohort,suite")
    guest = small_guest(PAGES, build(spec, announce(f"building kernel {spec.name}")), tmp_path)
    assert len(claims_of(guest.boot(LAYOUT, "cohort.vnode_default=trusted"))) == 34


def test_a_policy_chooses_among_the_nodes_of_its_role(guest: SmallGuest) -> None:
    """A virtual node with memory of two nodes that the firmware tells of."""
    text = guest.boot(LAYOUT, nodes_mb=(512, 512))
    assert _sizes(text) == pytest.approx([256, 256, 512], abs=1)
    assert len(claims_of(text)) == 7


def test_a_role_has_no_node_without_memory(guest: SmallGuest) -> None:
    """A firmware's node may end in addresses that the machine keeps, and a role begin there: the
    kernel has no such node, and a program that is executed looks for none."""
    text = guest.boot(
        "memmap=64M$448M", "cohort.vnode=trusted:447M,untrusted:rest", nodes_mb=(512, 512)
    )
    # The second has kept memory alone, so what is claimed of the role's two nodes is not so.
    assert _sizes(text) == pytest.approx([448, 64, 512], abs=1)
    assert "done" in text.splitlines() and "BUG:" not in text


@EITHER
def test_the_phone_comes_up_with_the_kernel_in(default: str, kernel: Callable[..., Kernel]) -> None:
    """Whichever node the kernel and the native processes begin in, no trusted process dies."""
    policy = load_policy("vnode")
    layout = [word for word in policy.cmdline if not word.startswith("cohort.vnode_default=")]
    policy = policy.model_copy(update={"cmdline": [*layout, f"cohort.vnode_default={default}"]})
    kernel(policy.kernel)
    run = runs.execute(replace(RunSpec(policy, "vnode-pressure", LAUNCHES), fresh=True))
    assert f"default {default}" in (run.path / "console.log").read_text(errors="replace")
    assert list(run.records())[-1]["r"] == "end"
    assert run.metrics["kills_trusted"] == 0


@pytest.mark.night
def test_a_full_node_goes_on(kernel: Callable[..., Kernel]) -> None:
    """Under pressure the node of the others is full of anonymous memory: a process is killed
    there in time, as on stock, and the others neither reclaim all over nor lose their work."""
    kernel("cohort")
    specs = [RunSpec(load_policy(name), "vnode-pressure", PRESSED) for name in ("none", "vnode")]
    stock, ours = runs.execute_matrix(specs, 1)
    work, stalls = "untrusted_work_per_s", "allocstall"
    assert _measured(ours, work) >= 0.8 * _measured(stock, work)
    assert _measured(ours, stalls) <= 2 * _measured(stock, stalls)


def _measured(run: RunDir, metric: str) -> float:
    value = measure(run).metrics[metric]
    assert value is not None, metric
    return value


@pytest.mark.parametrize(
    ("layout", "memory_mb", "cpus", "nodes"),
    [
        ("trusted:512M,untrusted:rest", 2048, 2, [512, 1536]),
        ("trusted:512M,store:512M,untrusted:rest", 2048, 3, [512, 512, 1024]),
        ("responsive:35%,external:rest", 1024, 2, [360, 664]),
    ],
)
def test_sizes(layout: str, memory_mb: int, cpus: int, nodes: list[int], guest: SmallGuest) -> None:
    text = guest.boot(f"cohort.vnode={layout}", "rdinit=/none", memory_mb=memory_mb, cpus=cpus)
    # The PC's first page and its ACPI tables are not for nodes, and sizes are rounded down.
    assert all(0 <= want - size <= 1 for want, size in zip(nodes, _sizes(text), strict=True)), text
    starts = [int(x.partition("[mem ")[2].partition("-")[0], 16) for x in _faked(text)]
    assert all(start % (4 << 20) == 0 for start in starts[1:])


def test_a_layout_comes_before_nodes_of_the_boot_line(guest: SmallGuest) -> None:
    """As on systems that boot with `numa=fake=2`; a layout that does not fit leaves those."""
    text = guest.boot("numa=fake=2", LAYOUT, "rdinit=/none")
    assert _sizes(text) == pytest.approx([256, 768], abs=1)
    text = guest.boot("numa=fake=2", "cohort.vnode=a:4G,b:rest")
    assert len(_complaints(text)) == 1
    assert _sizes(text) == pytest.approx([512, 512], abs=1)
    assert "ok no virtual nodes at all" in text


def test_a_bad_layout_leaves_nodes_of_the_firmware(guest: SmallGuest) -> None:
    text = guest.boot("cohort.vnode=a:4G,b:rest", nodes_mb=(512, 512))
    assert len(_complaints(text)) == 1 and not _faked(text)
    assert "ok no virtual nodes at all" in text


def _faked(console: str) -> list[str]:
    return [x for x in console.splitlines() if "Faking node " in x]


def _sizes(console: str) -> list[int]:
    """Of the emulated nodes, MiB."""
    return [int(x.rpartition("(")[2].removesuffix("MB)")) for x in _faked(console)]


def _complaints(console: str) -> list[str]:
    return [x for x in console.splitlines() if "cohort.vnode=" in x and "booting" in x]


@pytest.mark.parametrize(
    ("layout", "cpus", "why"),
    [
        ("a:4G,b:rest", 2, "leave no 32M"),
        ("a:64M,b:64M,c:rest", 2, "more nodes than CPUs"),
        ("a:rest,b:rest", 2, "rest is given twice"),
    ],
)
def test_a_layout_that_does_not_fit_is_told_and_ignored(
    layout: str, cpus: int, why: str, guest: SmallGuest
) -> None:
    text = guest.boot(f"cohort.vnode={layout}", cpus=cpus)
    complaints = _complaints(text)
    assert len(complaints) == 1 and why in complaints[0], complaints
    assert "ok no virtual nodes at all" in text
