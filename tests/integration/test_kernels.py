"""KUnit on the debug kernel, and the kernel without Cohort."""

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import house
from cohort import host, paths
from cohort.kernel import build, config, overlay
from cohort.kernel.build import Kernel, KernelSpec
from cohort.log import Update
from cohort.vm import kunit
from tests_support import copy_originals, patched_objects, touched_files

pytestmark = pytest.mark.integration

MakeKernel = Callable[[str], Kernel]


def test_kunit_suites_pass_on_the_debug_kernel(
    kernel: MakeKernel, tree: Path, announce: Callable[[str], Update]
) -> None:
    report = kunit.run(kernel("debug"), tree, announce("KUnit cases"), timeout_s=1800)
    assert report.ok, report.text()


@pytest.mark.night
@pytest.mark.parametrize("variant", ["up", "rt"])
def test_kunit_suites_pass_on_one_cpu_and_with_preempt_rt(
    variant: str, kernel: MakeKernel, tree: Path, announce: Callable[[str], Update]
) -> None:
    """Some of the code is for such a kernel alone, and compiling it does not run it."""
    report = kunit.run(kernel(variant), tree, announce("KUnit cases"), timeout_s=1800)
    assert report.ok, report.text()


@pytest.mark.parametrize("variant", ["cohort", "debug"])
def test_calls_inside_the_feature_lead_down(kernel: MakeKernel, variant: str) -> None:
    """The floors are those of `house.FLOORS`; the memory manager alone uses the entries."""
    found = house.objects(kernel(variant).directory)
    hooks = paths.OVERLAY / "include" / "linux" / "cohort.h"
    host = sorted((paths.OVERLAY / "mm" / "cohort" / "host").glob("*.h"))
    glue = "".join(file.read_text(encoding="utf-8") for file in host)
    assert {part.folder for part in found} == set(house.FLOORS)
    assert house.wrong_arrows(found) == []
    assert house.scheme_names(found) == []
    assert house.entries_from_inside(found, hooks.read_text(encoding="utf-8"), glue) == []


def _code(file: Path) -> list[str]:
    """The instructions of an object, without places and names of what they lead to.

    Boot code aside: numa_emulation() has a branch that is dropped, and its registers are others.
    """
    said = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", file], text=True, capture_output=True, check=True
    )
    sections = re.split("^Disassembly of section ", said.stdout, flags=re.MULTILINE)[1:]
    kept = "".join(part for part in sections if not part.startswith(".init"))
    found = re.findall(r"^ *[0-9a-f]+:\t(.*)$", kept, re.MULTILINE)
    return [re.sub(r"[0-9a-f]+ <.*?>", "", line) for line in found]


def _commands(out: Path, name: str) -> list[list[str]]:
    """How the build compiled the object `name`, and what it did with it: objtool turns the
    branches of static keys into no-ops."""
    at = out / name
    text = at.with_name(f".{at.name}.cmd").read_text()
    found = re.search(r"^savedcmd_\S+ := (.*)$", text, re.MULTILINE)
    assert found is not None, text[:400]
    line = found[1].replace("\\#", "#").replace("$$", "$").replace("$(pound)", "#")
    return [shlex.split(command) for command in line.split(" ; ")]


def _compile_original(tree: Path, out: Path, name: str, aside: Path) -> Path:
    """The object of a C file as it was before the patches, with the headers as they were."""
    words, *then = _commands(out, f"{name.removesuffix('.c')}.o")
    made = aside / f"{name.removesuffix('.c')}.o"
    source = words.index("-c")
    words[words.index("-o") + 1] = str(made)
    words[-1] = str(aside / name)
    kept = [word for word in words if not word.startswith("-Wp,-MMD")]
    near = [f"-I{aside / 'include'}", f"-iquote{(tree / name).parent}"]
    kept[kept.index("-nostdinc") + 1 : kept.index("-nostdinc") + 1] = near
    assert source > 0
    for command in (kept, *([*words[:-1], str(made)] for words in then)):
        done = subprocess.run(command, cwd=out, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    return made


def test_without_cohort_the_patched_files_compile_to_the_same_code(
    tree: Path, tmp_path: Path
) -> None:
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
    on = {name for name, request in built.items() if request.value == "y"}
    objects = patched_objects(on)
    assert "mm/page_alloc.o" in objects
    command = [*build.make_command(tree, out, arch), f"-j{os.cpu_count() or 1}", *objects]
    done = host.run(command, env=build.environment())
    assert done.returncode == 0, done.stderr[-4000:]
    copy_originals(tree, tmp_path, touched_files(overlay.load_series()))
    changed = [
        name
        for name in objects
        if _code(_compile_original(tree, out, f"{name.removesuffix('.o')}.c", tmp_path))
        != _code(out / name)
    ]
    assert changed == []
