"""The debug kernel while a phone runs on it and everything is done to it at once."""

from collections.abc import Callable

import pytest

from cohort import runs
from cohort.kernel import kunit
from cohort.kernel.build import Kernel, KernelSpec
from cohort.policy import Policy, load_policy
from cohort.runs import RunDir, RunSpec
from tests_support import at_night

pytestmark = pytest.mark.integration

LAUNCHES = 3
# A checked kernel in a storm, on a host that may be busy with other tests.
LAUNCH_TIMEOUT_MS = 800_000
# The kernel's virtual node has to hold what a checked kernel keeps of every page: more than 512M.
STORM_MB, LAYOUT = 3072, "cohort.vnode=trusted:1280M,untrusted:rest"
# guest/stress.c does what the last word asks for; the others make the kernel die of any mistake.
CMDLINE = ("panic_on_warn=1", "page_owner=on", "page_poison=1", "kunit.enable=0", "cma=32M")
# At least so often in a run of LAUNCHES.
ACTIONS = {
    **{"toggle": 5, "hotplug": 1, "compact": 1, "drop": 1, "faults": 1},
    **{"hwpoison": 1, "storm": 4, "bomb": 1, "hog": 1, "badpage": 1, "contig": 1},
    **{"failswitch": 1},
}


def done(run: RunDir) -> dict[str, int]:
    """How often each thing was done, as the guest's note says: `stress: toggle 12 hotplug 3`."""
    notes = [r["text"] for r in run.records() if r["r"] == "note"]
    words = next(x for x in notes if x.startswith("stress: toggle")).split()[1:]
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def storm_policy(name: str) -> Policy:
    """The policy, with nodes of LAYOUT if it has any."""
    policy = load_policy(name)
    words = [LAYOUT if x.startswith("cohort.vnode=") else x for x in policy.cmdline]
    return policy.model_copy(update={"cmdline": words})


# The first switches everything, with the most CPUs: it is what `make test` has time for.
STORMS = (
    ("vnode-lend", "vnode-pressure", "all", 4),
    ("region-mglru", "phone-2g-zram", "region", 2),
    ("pcpa", "phone-2g", "pcpa", 2),
    ("rightsize-mglru", "phone-2g-zram", "rightsize", 2),
)


@pytest.mark.parametrize(("policy", "workload", "toggled", "cpus"), at_night(STORMS, 1))
def test_nothing_breaks_and_no_memory_is_lost_under_stress(
    policy: str, workload: str, toggled: str, cpus: int, kernel: Callable[[str], Kernel]
) -> None:
    """The guest fails the run itself if a block or less memory is left after switching off."""
    kernel("debug")
    spec = RunSpec(
        storm_policy(policy),
        workload,
        LAUNCHES,
        accel="tcg",
        memory_mb=STORM_MB if policy == "vnode-lend" else None,
        timeout_s=2400,
        kernel=KernelSpec.variant("debug"),
        cmdline=(*CMDLINE, f"phone_stress={toggled}"),
        change=(("machine.cpus", cpus), ("time.launch_timeout_ms", LAUNCH_TIMEOUT_MS)),
    )
    run = runs.execute(spec)
    assert kunit.splats((run.path / "console.log").read_text(errors="replace")) == []
    counts = done(run)
    least = ACTIONS | ({"area": 4} if toggled in ("pcpa", "all") else {})
    least |= {"lend": 4} if policy == "vnode-lend" else {}
    assert {name: counts[name] for name in least if counts[name] < least[name]} == {}, counts
