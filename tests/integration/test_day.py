"""A day in the life of the phone, or its first hours, nearly all of it idle: nothing drifts."""

from collections.abc import Callable

import pytest

from cohort import runs
from cohort.kernel.build import Kernel
from cohort.policy import load_policy
from cohort.run_spec import RunSpec
from tests_support import at_night

pytestmark = pytest.mark.integration

HOURS = (6, 24)
HOUR_MS = 3_600_000
# An idle hour costs the host seconds, or half a minute beside other tests.
HOST_MAY_BE_BUSY_S = 2400
IN_USE_MS = HOUR_MS // 6


@pytest.mark.parametrize("hours", at_night(HOURS, 1))
def test_a_day_of_use_and_idle_loses_nothing(hours: int, kernel: Callable[[str], Kernel]) -> None:
    """An app an hour of virtual time. The guest itself ends the run with an error when memory is
    unaccounted for in the end, or a block is left after switching off."""
    spec = RunSpec(
        load_policy("region"),
        "phone-2g",
        hours,
        timeout_s=HOST_MAY_BE_BUSY_S,
        cmdline=("phone_stress=account",),
        change=(("time.foreground_ms", IN_USE_MS), ("time.home_ms", HOUR_MS - IN_USE_MS)),
    )
    kernel(spec.policy.kernel)
    records = list(runs.execute(spec).records())
    assert records[-1] == records[-1] | {"r": "end", "ok": True, "launches": hours}
    assert records[-1]["t"] > hours * HOUR_MS * 1_000_000
    assert [r for r in records if r["r"] == "note" and "unaccounted" in r["text"]]
