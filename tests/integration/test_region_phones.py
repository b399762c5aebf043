"""Region domains on every phone: sizes, orders, both LRUs, large folios, compressed swap."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from cohort import runs
from cohort.kernel.build import Kernel
from cohort.policy import load_policy
from cohort.run_spec import RunSpec
from tests_support import at_night

pytestmark = pytest.mark.integration

LAUNCHES = 6
ORDER_OF_DEFAULT = 8
# A system that leaves room for apps in 1 GiB.
SMALL_SYSTEM = (
    ("zygote.heap_mb", 24),
    ("system.framework_mb", 48),
    ("process.framework.heap_mb", 48),
    ("process.systemui.heap_mb", 28),
    ("group.persistent.heap_mb", 4),
    ("group.service.heap_mb", 4),
    ("group.normal.heap_mb", 4),
)


@dataclass(frozen=True)
class Phone:
    """What differs from the 2 GiB phone with the default policy."""

    policy: str = "region"
    workload: str = "phone-2g"
    memory_mb: int | None = None
    order: int = ORDER_OF_DEFAULT
    folios: bool = False
    change: tuple[tuple[str, int], ...] = ()


PHONES = {
    # So small that its few launches swap.
    "zram": Phone(workload="phone-1g", memory_mb=800),
    "large-folios": Phone(folios=True),
    "order-5": Phone("region5", order=5),
    "order-9": Phone("region9", "phone-2g-order9", order=9),
    "order-6": Phone("region6", order=6),
    "order-7": Phone("region7", order=7),
    "mglru": Phone("region-mglru"),
    "1-gib": Phone(memory_mb=1024, change=SMALL_SYSTEM),
    "4-gib": Phone(memory_mb=4096),
}


def spec_of(phone: Phone) -> RunSpec:
    """The phone's run, free-running: whether it works is asked, not how well."""
    policy = load_policy(phone.policy)
    if phone.folios:
        folios = load_policy("mthp").sysfs
        policy = policy.model_copy(update={"sysfs": policy.sysfs | folios})
    return RunSpec(
        policy,
        phone.workload,
        LAUNCHES,
        accel="tcg",
        memory_mb=phone.memory_mb,
        change=phone.change,
    )


@pytest.mark.parametrize("name", at_night(PHONES, 2))
def test_regions_work_on(name: str, kernel: Callable[[str], Kernel]) -> None:
    """The scheme is on with that order, pages are parked, memory is swapped, no buffer fails."""
    phone = PHONES[name]
    spec = spec_of(phone)
    kernel(spec.policy.kernel)
    run = runs.execute(replace(spec, fresh=True))
    console = (run.path / "console.log").read_text(errors="replace")
    assert f"cohort: region: on, order {phone.order}" in console
    records = list(run.records())
    assert records[-1]["r"] == "end"
    assert records[-1]["launches"] == LAUNCHES
    assert run.metrics["parked_mb_max"] > 0
    assert run.metrics["buffer_fail"] == 0
    if name == "zram":
        assert run.metrics["swapped_mb_mean"] > 4
    whole = run.metrics.get("buffer_order9_share")
    assert (whole is not None and whole > 0.9) if phone.order == 9 else whole is None
