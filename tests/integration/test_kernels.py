"""KUnit on the debug kernel, and the kernel without Cohort."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import host, paths
from cohort.kernel import build, config, kunit, overlay
from cohort.kernel.build import Kernel, KernelSpec
from cohort.log import Update

pytestmark = pytest.mark.integration

MakeKernel = Callable[[str], Kernel]


def test_kunit_suites_pass_on_the_debug_kernel(
    kernel: MakeKernel, announce: Callable[[str], Update]
) -> None:
    report = kunit.run(kernel("debug"), announce("KUnit cases"), timeout_s=900)
    assert report.ok, report.text()
    suites = {case.suite for case in report.cases}
    assert len(suites) >= 4, suites


def test_without_cohort_the_patched_files_compile_and_nothing_else_changes(tree: Path) -> None:
    """A whole kernel would take minutes; what the patches do not touch is as it was."""
    spec = KernelSpec.variant("stock")
    out = paths.made("kernel", spec.name)
    arch = build.find_arch(spec.arch)
    build.configure(tree, out, arch, config.merge(spec.configs))
    asked = config.merge(KernelSpec.variant("cohort").configs)
    built = config.parse((out / ".config").read_text(), ".config")
    assert "CONFIG_COHORT" not in built or built["CONFIG_COHORT"].value == "n"
    assert set(asked) - set(config.merge(spec.configs)) == {
        f"CONFIG_COHORT{x}" for x in ("", "_VNODE", "_PCPA", "_SRA")
    }
    sources = [name for name in overlay.touched_files(overlay.load_series()) if name.endswith(".c")]
    assert "mm/page_alloc.c" in sources
    objects = [f"{name.removesuffix('.c')}.o" for name in sources]
    command = [*build.make_command(tree, out, arch), f"-j{os.cpu_count() or 1}", *objects]
    done = host.run(command, env=build.environment())
    assert done.returncode == 0, done.stderr[-4000:]
