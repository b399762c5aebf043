"""The comparison table, against golden files."""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cohort.errors import UsageError
from cohort.kernel.build import KernelSpec
from cohort.policy import load_policy
from cohort.results.catalogue import BY_NAME, METRICS
from cohort.results.runs import Result, check_comparable
from cohort.results.spread import Spread
from cohort.results.table import Cell, compare, print_table
from cohort.run_spec import RunSpec
from cohort.runs import Ended, Plan, meta_of

GOLDEN = Path(__file__).parents[1] / "golden"
META = {"accel": "deterministic", "launches": 400, "memory_mb": 2048, "cpus": 2}


def result(policy: str, seed: int = 1, factor: float = 1.0, **meta: object) -> Result:
    """A run whose metrics are their place in the catalogue, a little up with the seed."""
    metrics = {
        metric.name: None if metric.special else factor * (index + seed / 8)
        for index, metric in enumerate(METRICS, start=1)
    }
    return Result(policy, seed, "phone-2g", metrics, {}, META | meta)


def runs(seeds: int, **factors: float) -> list[Result]:
    """The runs of several policies, given by name and factor, with seeds 1, 2, ..."""
    return [
        result(policy, seed, factor)
        for policy, factor in factors.items()
        for seed in range(1, seeds + 1)
    ]


def render(results: Sequence[Result], full: bool = False, width: int | None = None) -> str:
    file = io.StringIO()
    terminal = width is not None
    console = Console(file=file, width=width or 80, force_terminal=terminal, color_system=None)
    print_table(compare(results, full), console)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def check_golden(name: str, text: str, tmp_path: Path) -> None:
    """Compare with the golden file; a failure says how to look and how to accept."""
    golden = GOLDEN / name
    if golden.is_file() and golden.read_text(encoding="utf-8") == text:
        return
    new = tmp_path / name
    new.write_text(text, encoding="utf-8")
    pytest.fail(f"{golden} differs.\nlook:   diff -u {golden} {new}\naccept: mv {new} {golden}")


def test_one_seed(tmp_path: Path) -> None:
    check_golden("table-one-seed.txt", render(runs(1, none=1, region=0.5)), tmp_path)


def test_three_seeds_and_every_metric(tmp_path: Path) -> None:
    text = render(runs(3, none=1, tuned=1.001, region=0.5), full=True)
    check_golden("table-three-seeds.txt", text, tmp_path)


def test_a_narrow_terminal_folds_the_ranges(tmp_path: Path) -> None:
    text = render(runs(2, none=1, region=0.5), width=84)
    check_golden("table-narrow.txt", text, tmp_path)
    assert max(map(len, text.splitlines())) <= 84


def test_six_seeds_earn_a_star_where_all_pairs_agree() -> None:
    text = render(runs(6, none=1, region=0.5))
    assert "(-50.0 %)*" in text
    assert "* p < 0.05, exact two-sided sign-flip test on N = 6 pairs" in text


def test_the_note_tells_how_many_pairs_were_tested() -> None:
    assert "on N = 16 pairs of runs" in render(runs(16, none=1, region=0.5))
    text = render(runs(20, none=1, region=0.5))
    assert "on N = 16 pairs (the first of 20) of runs with the same seed" in text


def test_five_seeds_earn_none() -> None:
    assert "*" not in render(runs(5, none=1, region=0.5))


def test_unequal_seeds_are_pointed_out() -> None:
    text = render([*runs(2, none=1), result("region")])
    assert "not run with the same seeds" in text
    assert "not run with the same seeds" not in render(runs(2, none=1, region=1))


@pytest.mark.parametrize(("accel", "label"), [("tcg", "free TCG †"), ("kvm", "KVM †")])
def test_times_that_are_only_ratios_are_marked(accel: str, label: str) -> None:
    text = render([result("none", accel=accel)])
    assert label in text
    assert "† times depend on this host" in text
    assert "†" not in render([result("none")])


def test_missing_and_zero_values_have_words() -> None:
    metric = BY_NAME["kills"]
    zero, two = Spread(1, 0, 0, 0), Spread(1, 2, 2, 2)
    assert (Cell(metric, None, two).value, Cell(metric, None, two).delta) == ("-", "")
    assert Cell(metric, two, None).delta == ""
    assert Cell(metric, two, zero).delta == "(from 0)"
    assert Cell(metric, zero, zero).delta == "(±0 %)"


def test_a_star_stands_where_there_are_no_percents() -> None:
    """The test is of pairs: a baseline of 0, or an equal median, is no reason to leave it out."""
    metric = BY_NAME["kills"]
    zero, two = Spread(6, 0, 0, 2), Spread(6, 2, 2, 2)
    assert Cell(metric, two, zero, significant=True).delta == "(from 0)*"
    assert Cell(metric, zero, zero, significant=True).delta == "(±0 %)*"
    assert Cell(metric, two, two, significant=True).delta == "(±0 %)*"


def test_runs_of_several_phones_are_told_with_all_of_them() -> None:
    """As --force compares them: what a heading takes from the first run is false of the others."""
    small, large = result("none", launches=200, cpus=4), result("region", launches=20, cpus=8)
    large = replace(large, workload="phone-8g", meta={**large.meta, "memory_mb": 8192})
    told = compare([small, large])
    assert told.title.startswith(
        "phone-2g and phone-8g, 200 and 20 launches, seed 1, 2048 and 8192 MiB, 4 and 8 CPUs\n"
    )
    (note,) = [note for note in told.notes if "more than the policy" in note]
    for said in ("launches 200 (none), 20 (region)", "memory_mb 2048 (none), 8192 (region)"):
        assert said in note
    same = compare([small, replace(result("region"), meta=small.meta)])
    assert same.title.startswith("phone-2g, 200 launches, seed 1, 2048 MiB, 4 CPUs\n")
    assert "more than the policy" not in " ".join(same.notes)


def test_metrics_of_few_workloads_are_shown_where_they_are_measured() -> None:
    plain, exits = result("none"), result("none")
    exits = replace(exits, metrics={**exits.metrics, "freed_ui_order4": 0.5})
    assert "freed_ui_order4" not in render([plain], full=True)
    text = render([exits, plain])
    assert "freed_ui_order4" in text
    assert "freed_ui_order5" not in text


def kills_row(results: Sequence[Result]) -> str:
    [row] = [row for row in render(results).splitlines() if row.split()[:1] == ["kills"]]
    return row


def test_a_figure_of_some_seeds_says_so_and_is_not_judged() -> None:
    """Nor is it the median of as many seeds as the note tells of."""
    whole = runs(6, none=1, region=0.5)
    some = [
        replace(run, metrics={**run.metrics, "kills": None}) if number > 7 else run
        for number, run in enumerate(whole)
    ]
    assert ")*" in kills_row(whole) and "seeds)" not in kills_row(whole)
    assert ")*" not in kills_row(some) and kills_row(some).endswith("] (2 of 6 seeds)")
    assert kills_row([whole[0], *some[7:9]]).endswith(" %) (1 of 2 seeds)")
    note = "(n of N seeds): the other runs have no such figure, and it is not judged."
    assert (note in compare(whole).notes, note in compare(some).notes) == (False, True)


def test_no_table_says_nan() -> None:
    empty = Result("none", 1, "phone-2g", dict.fromkeys(BY_NAME), {}, META)
    assert "nan" not in render([empty, empty], full=True).lower()


def test_better_and_worse_follow_the_direction_of_the_metric() -> None:
    low, high = Spread(2, 1, 1, 1), Spread(2, 2, 2, 2)
    assert Cell(BY_NAME["kills"], low, high).verdict == "better"
    assert Cell(BY_NAME["resume_share"], low, high).verdict == "worse"
    assert Cell(BY_NAME["kills"], low, low).verdict == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("memory_mb", 3072),
        ("cpus", 4),
        ("launches", 10),
        ("accel", "tcg"),
        ("workload_digest", "0123"),
    ],
)
def test_runs_that_differ_in_more_than_the_policy_are_refused(key: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"runs differ in {key}: none .*{value}") as caught:
        check_comparable([result("none"), replace(result("region"), meta={**META, key: value})])
    assert "--force" in str(caught.value)


def test_runs_that_do_not_say_their_machine_are_the_pcs() -> None:
    check_comparable([result("none"), result("region", arch="x86_64")])
    with pytest.raises(UsageError, match="runs differ in arch: none .* x86_64, region .* arm64"):
        check_comparable([result("none"), result("region", arch="arm64")])


def test_runs_with_other_pages_are_refused() -> None:
    check_comparable([result("none"), result("region", page_size=4096)])
    with pytest.raises(UsageError, match="differ in page_size: none .* 4096, region .* 16384"):
        check_comparable([result("none"), result("region", page_size=16384)])


@pytest.fixture
def told(planned: Callable[..., Plan]) -> Callable[..., Result]:
    """A run whose meta.json is as `runs` writes it: its policy, its kernel's image and tree,
    and what else was asked for."""

    def of(policy: str, image: str = "89ab", tree: str = "89ab", **asked: Any) -> Result:
        plan = planned(RunSpec(load_policy(policy), "phone-2g", 20, **asked), image, tree)
        return Result(policy, 1, "phone-2g", {}, {}, meta_of(plan, datetime.now(UTC), Ended(1.0)))

    return of


def with_version(run: Result, **versions: str) -> Result:
    """The same run, made with other tools."""
    return replace(run, meta={**run.meta, "versions": run.meta["versions"] | versions})


def test_runs_of_other_kernel_sources_are_refused(told: Callable[..., Result]) -> None:
    ours, other = told("none"), told("region", "cdef", "cdef")
    check_comparable([ours, told("region")])
    check_comparable([ours, told("region", tree="cdef")])
    with pytest.raises(UsageError, match="differ in tree_id: none .* 89ab, region .* cdef"):
        check_comparable([ours, other])
    check_comparable([ours, other], force=True)
    check_comparable([ours, other], built_now=True)


def test_runs_of_other_tools_are_refused(told: Callable[..., Result]) -> None:
    """One kernel is of one compiler, whatever the host has by now."""
    ours, other = told("none"), told("region", "cdef")
    check_comparable([ours, other])
    with pytest.raises(UsageError, match="differ in gcc: .*, region .* has gcc 99"):
        check_comparable([ours, with_version(other, gcc="gcc 99")])
    check_comparable([ours, with_version(told("region"), gcc="gcc 99")])
    check_comparable([ours, with_version(other, gcc="gcc 99")], built_now=True)
    newer = with_version(other, qemu="QEMU 99")
    with pytest.raises(UsageError, match="differ in qemu: .* has QEMU 99") as caught:
        check_comparable([ours, newer], built_now=True)
    assert "--force" in str(caught.value)
    check_comparable([ours, newer], force=True)


def test_what_a_run_was_asked_for_besides_its_policy_is_in_all_or_in_none(
    told: Callable[..., Result],
) -> None:
    quiet = told("region", cmdline=("quiet", "nosmt"))
    with pytest.raises(UsageError, match="in --append: none .* none, region .* quiet nosmt"):
        check_comparable([told("none"), quiet])
    check_comparable([told("none", cmdline=("quiet", "nosmt")), quiet])
    fragments = "base,x86_64,lab,cohort,debug"
    debug = told("region", "cdef", kernel=KernelSpec.from_fragments(fragments))
    with pytest.raises(UsageError, match=f"in --config: none .* none, region .* {fragments}"):
        check_comparable([told("none"), debug])
    check_comparable([told("none", "cdef", kernel=KernelSpec.from_fragments(fragments)), debug])


def test_one_kernel_is_one_whichever_policy_has_it_as_its_own(
    told: Callable[..., Result],
) -> None:
    """As of `cohort compare none none-order9 --config` with the fragments of the second."""
    kernel = KernelSpec.variant("order9")
    both = [told(name, "cdef", kernel=kernel) for name in ("none", "none-order9")]
    assert [run.meta["config"] for run in both] == [",".join(kernel.configs), None]
    check_comparable(both)
    check_comparable(both, built_now=True)


def test_what_is_of_the_policy_is_no_difference(told: Callable[..., Result]) -> None:
    """Its own kernel, also where that was named, and its own words on the command line."""
    own = KernelSpec.from_fragments("base,x86_64,lab,cohort,order9")
    policies = [told("none"), told("region"), told("none-stock", "0123")]
    check_comparable([*policies, told("none-order9", "4567", kernel=own)])


@pytest.mark.parametrize("force", [False, True])
def test_two_runs_of_one_policy_and_seed_are_refused(force: bool) -> None:
    """A table would keep one of them and plots both."""
    twice = [result("none"), result("region", 2), result("none", kernel_id="other")]
    with pytest.raises(UsageError, match="two runs of none with seed 1"):
        check_comparable(twice, force)


def test_the_storage_is_stated() -> None:
    cost = {"read_us": 100, "write_us": 50, "mb_per_s": 600}
    notes = compare([result("none", storage=cost), result("region", storage=cost)]).notes
    said = [note for note in notes if "100 µs a read, 50 µs a write, and 600 MB/s" in note]
    assert len(said) == 1


def test_runs_of_the_same_kind_are_compared() -> None:
    check_comparable([result("none"), result("none", 2), result("region")])
