"""KUnit, and the debug kernel under the phone's load."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from cohort import paths, runs
from cohort.kernel import kunit
from cohort.kernel.build import Kernel, KernelSpec
from cohort.log import Update
from cohort.policy import load_policy
from cohort.runs import RunSpec

pytestmark = pytest.mark.integration

MakeKernel = Callable[[str], Kernel]
DEBUG_LAUNCHES = 15
CMDLINE = ("panic_on_warn=1", "page_owner=on", "page_poison=1", "kunit.enable=0")


def test_kunit_suites_pass_on_the_debug_kernel(
    kernel: MakeKernel, announce: Callable[[str], Update]
) -> None:
    report = kunit.run(kernel("debug"), announce("KUnit cases"), timeout_s=900)
    assert report.ok, report.text()
    suites = {case.suite for case in report.cases}
    assert len(suites) >= 4, suites


def test_the_phone_runs_on_the_debug_kernel_without_a_splat(kernel: MakeKernel) -> None:
    kernel("debug")
    policy = load_policy("region")
    spec = RunSpec(policy, "phone-2g", DEBUG_LAUNCHES, accel="tcg", timeout_s=1200)
    spec = replace(spec, kernel=KernelSpec.variant("debug"), cmdline=CMDLINE)
    run = runs.execute(spec)
    splats = kunit.splats((run.path / "console.log").read_text(errors="replace"))
    assert splats == []


def test_stock_differs_from_cohort_in_cohort_alone(kernel: MakeKernel) -> None:
    stock, cohort = (set(kernel(x).config.read_text().splitlines()) for x in ("stock", "cohort"))
    new = {line for line in cohort - stock if line.startswith("CONFIG_")}
    assert "CONFIG_COHORT=y" in new
    assert all("COHORT" in line for line in new), new
    assert (paths.CONFIGS / "cohort.config").is_file()
