"""Runs on a kernel tree of the user's: every verb builds all its kernels of that one."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cohort import runs
from cohort.errors import BuildError, Stopped
from cohort.kernel.build import Kernel, KernelSpec
from cohort.policy import load_policy
from cohort.run_check import check_run
from cohort.run_spec import RunSpec
from cohort.runs import Ended, Plan, meta_of
from tests_support import Outcome

VENDOR = Path("/vendor")
OWN = {
    "run": ("none",),
    "compare": ("none", "none-order9"),
    "study": ("cpb-fig3a",),
    "tune": ("pcpa",),
    "scale": ("none", "region"),
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, own_out: Path) -> list[RunSpec]:
    """What a verb asks to be run; nothing is."""
    found: list[RunSpec] = []

    def execute(specs: Sequence[RunSpec], *_: object) -> None:
        found.extend(specs)
        raise Stopped

    monkeypatch.setattr(runs, "execute_matrix", execute)
    return found


@pytest.mark.parametrize("verb", OWN)
def test_all_kernels_of_a_verb_are_of_the_tree(
    verb: str, asked: list[RunSpec], cohort: Callable[..., Outcome]
) -> None:
    cohort(verb, *OWN[verb], "--tree", VENDOR)
    assert len(asked) >= len(OWN[verb])
    for spec in asked:
        watched = verb == "scale" and "lockstat" in spec.kernel_spec.configs
        variant = "lockstat" if watched else spec.policy.kernel
        assert spec.kernel_spec == KernelSpec.variant(variant, tree=VENDOR)
    assert verb != "scale" or {"lockstat" in x.kernel_spec.configs for x in asked} == {True, False}


@pytest.mark.parametrize("verb", sorted(OWN.keys() - {"scale"}))
def test_one_kernel_is_named_for_all_policies(
    verb: str, asked: list[RunSpec], cohort: Callable[..., Outcome]
) -> None:
    """A vendor's tree may want a fragment more; the machine is that of the fragments."""
    fragments = "base,arm64,pages16k,lab,cohort,android"
    cohort(verb, *OWN[verb], "--tree", VENDOR, "--config", fragments)
    wanted = KernelSpec.from_fragments(fragments, VENDOR)
    assert {spec.kernel_spec for spec in asked} == {wanted}
    assert {(spec.arch, spec.page_size) for spec in asked} == {("arm64", 16384)}


@pytest.mark.parametrize("verb", sorted(OWN.keys() - {"scale"}))
def test_fragments_of_another_machine_are_refused(
    verb: str, asked: list[RunSpec], cohort: Callable[..., Outcome]
) -> None:
    done = cohort(verb, *OWN[verb], "--config", "base,x86_64,lab,cohort", "--arch", "arm64")
    assert (done.code, asked) == (2, [])
    assert "hint: --config base,arm64,lab,cohort" in done.stderr


def test_a_tree_that_is_none_is_refused_before_anything_is_built(
    cohort: Callable[..., Outcome], own_out: Path, tmp_path: Path
) -> None:
    done = cohort("compare", "none", "region", "--tree", tmp_path)
    assert (done.code, f"{tmp_path} is not a kernel tree" in done.stderr) == (2, True)


@pytest.mark.parametrize("tree", [VENDOR, None])
def test_kernels_are_of_one_state_of_the_tree(
    tree: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor may save while the second one is built."""
    ids = iter(["a" * 64, "a" * 64, "a" * 64, "b" * 64])

    def build(spec: KernelSpec, update: object) -> Kernel:
        return Kernel(Path(), Path(), "6.12.117", "i", next(ids), spec.arch)

    monkeypatch.setattr(runs, "build", build)
    names = ("none", "none-order9")
    specs = [RunSpec(load_policy(name), "phone-2g", tree=tree) for name in names]
    assert len(runs.prepare(specs)) == 2
    with pytest.raises(BuildError, match="changed while kernels were built of it") as caught:
        runs.prepare(specs)
    assert str(caught.value).startswith(str(tree or "the kernel part"))


def test_a_run_says_which_tree_its_kernel_is_of(planned: Callable[..., Plan]) -> None:
    """The name of a run is of the image alone: two trees that make one image make one run."""

    def meta(tree: Path | None) -> dict[str, object]:
        plan = planned(RunSpec(load_policy("none"), "phone-2g", 20, tree=tree))
        return meta_of(plan, datetime.now(UTC), Ended(1.0)) | {"name": plan.path.name}

    own, other = meta(None), meta(VENDOR)
    assert (own["tree"], other["tree"]) == (None, "/vendor")
    assert own["name"] == other["name"]
    assert own["config"] is other["config"] is None


@pytest.mark.parametrize(
    ("policy", "fragments", "remark"),
    [
        ("none", "base,x86_64,lab,cohort,lockstat", None),
        ("none", None, None),
        ("none-stock", None, None),
        ("none-stock", "base,x86_64,lab,lockstat", None),
        ("none-stock", "base,x86_64,lab,cohort", "stock, and base,x86_64,lab,cohort has Cohort"),
        (
            "none-order9",
            "base,x86_64,lab,cohort",
            "order9, and base,x86_64,lab,cohort has no order9",
        ),
        ("none", "base,x86_64,lab", "cohort, and base,x86_64,lab has no cohort"),
    ],
)
def test_a_kernel_of_another_kind_than_the_policys_is_told(
    policy: str, fragments: str | None, remark: str | None
) -> None:
    """The columns of none-stock and of none would be one, and Cohort would cost nothing."""
    kernel = None if fragments is None else KernelSpec.from_fragments(fragments, VENDOR)
    checked = check_run(RunSpec(load_policy(policy), "phone-2g", kernel=kernel, tree=VENDOR))
    assert checked.remarks == (
        () if remark is None else (f"policy {policy}: its kernel is {remark}",)
    )
