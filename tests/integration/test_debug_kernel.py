"""Kernels with checks while a phone runs on them and everything is done to it at once."""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pytest

import races
from cohort import runs
from cohort.kernel.build import Kernel, KernelSpec
from cohort.policy import Policy, load_policy
from cohort.results.rundir import RunDir
from cohort.run_spec import RunSpec
from cohort.vm import kunit
from tests_support import at_night

pytestmark = pytest.mark.integration

# A checked kernel in a storm, on a host that may be busy with other tests.
LAUNCH_TIMEOUT_MS = 800_000
# The kernel's virtual node has to hold what a checked kernel keeps of every page: more than 512M.
STORM_MB, LAYOUT = 3072, "cohort.vnode=trusted:1280M,untrusted:rest"
# guest/stress does what the last word asks for; the others make the kernel die of any mistake.
CMDLINE = ("panic_on_warn=1", "page_poison=1", "kunit.enable=0")
# What is for the memory of all kernels with checks.
COMMON = ("page_owner=on", "cma=32M")
# At least so often in any run.
ACTIONS = {
    **{"toggle": 5, "hotplug": 1, "compact": 1, "drop": 1, "faults": 1},
    **{"hwpoison": 1, "storm": 4, "bomb": 1, "hog": 1, "badpage": 1, "contig": 1},
    **{"failswitch": 1},
}


@dataclass(frozen=True)
class Storm:
    """A phone, what is switched on and off meanwhile, and how long a run may take in seconds."""

    policy: str
    workload: str
    toggled: str
    cpus: int
    launches: int = 3
    limit_s: float = 2400
    change: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        """In a list of tests."""
        return f"{self.policy}-{self.toggled}-{self.launches}"

    @property
    def least(self) -> dict[str, int]:
        """How often each thing is done at least."""
        area = {"area": 4} if self.toggled in ("pcpa", "all") else {}
        return ACTIONS | area | ({"lend": 4} if self.policy == "vnode-lend" else {})


# The first switches everything, with the most CPUs: it is what `make test` has time for. The last
# does so for a night, to a phone whose memory no program presses on but the storm's.
STORMS = (
    Storm("vnode-lend", "vnode-pressure", "all", 4),
    Storm("region-mglru", "phone-2g-zram", "region", 2),
    Storm("pcpa", "phone-2g", "pcpa", 2),
    Storm("rightsize-mglru", "phone-2g-zram", "rightsize", 2),
    Storm("vnode-lend", "vnode-pressure", "all", 4, 1000, 12 * 3600, (("pressure.calm_pct", 100),)),
)


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


def execute(storm: Storm, variant: str, *words: str) -> tuple[RunDir, str]:
    """The run on a kernel of that variant, and what was on its console. The guest fails it itself
    if a block or less memory is left after switching off."""
    spec = RunSpec(
        storm_policy(storm.policy),
        storm.workload,
        storm.launches,
        accel="tcg",
        memory_mb=STORM_MB if storm.policy == "vnode-lend" else None,
        timeout_s=storm.limit_s,
        kernel=KernelSpec.variant(variant),
        cmdline=(*words, *COMMON, f"phone_stress={storm.toggled}"),
        change=(
            ("machine.cpus", storm.cpus),
            ("time.launch_timeout_ms", LAUNCH_TIMEOUT_MS),
            *storm.change,
        ),
    )
    run = runs.execute(spec)
    return run, (run.path / "console.log").read_text(errors="replace")


def complaints(console: str) -> list[str]:
    """Splats, without what a file system says of the allocations that a storm makes fail: it tells
    so of each that a caller cannot be told alone, as where O_TRUNC drops a file's pages."""
    of_the_storm = re.compile(r"EXT4-fs error .*: Out of memory$")
    return [line for line in kunit.splats(console) if not of_the_storm.match(line)]


def too_rare(storm: Storm, run: RunDir) -> dict[str, int]:
    """What was done less often than it has to be."""
    counts = done(run)
    return {name: counts[name] for name, least in storm.least.items() if counts[name] < least}


@pytest.mark.parametrize("storm", at_night(STORMS, 1), ids=lambda storm: storm.name)
def test_nothing_breaks_and_no_memory_is_lost_under_stress(
    storm: Storm, kernel: Callable[[str], Kernel]
) -> None:
    kernel("debug")
    run, console = execute(storm, "debug", *CMDLINE)
    assert complaints(console) == []
    assert too_rare(storm, run) == {}
    if storm.launches > Storm.launches:
        minutes = run.meta["wall_s"] / 60
        # A worker of xdist prints nothing: what is to be read in the end is a warning.
        warnings.warn(f"{storm.name}: a storm of {minutes:.0f} minutes", stacklevel=1)


@pytest.mark.night
def test_no_data_race_is_cohorts(kernel: Callable[[str], Kernel]) -> None:
    """Others are the kernel's own, and told in the end. A race of an inlined function is told of
    the one that it is inlined into."""
    kernel("races")
    run, console = execute(STORMS[0], "races")
    assert [line for line in complaints(console) if "BUG: KCSAN: " not in line] == []
    found = races.told(console)
    warnings.warn(f"data races that are told of:\n{races.report(found)}", stacklevel=1)
    assert [where for where in found if races.ours(where)] == []
    assert too_rare(STORMS[0], run) == {}
