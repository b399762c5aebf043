"""`cohort tune`: sizes as text, the best of them, the picture."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cohort import runs
from cohort.errors import UsageError
from cohort.policy import load_policy, policy_names
from cohort.results import runs as measured
from cohort.results.runs import Result
from cohort.run_spec import RunSpec
from cohort.tune import (
    COSTS,
    MEASURES,
    Size,
    Sweep,
    best,
    draw,
    judge,
    other_size,
    sized,
    too_dear,
    uses_area,
    whole_sizes,
)
from cohort.units import LARGE_PAGE, PAGE
from cohort.verbs.tune import parse_sizes, show
from tests_support import Outcome


def result(n_alloc: float | None, find_us: float | None, seed: int = 1, kills: int = 0) -> Result:
    metrics = {"buffer_n_alloc_mean": n_alloc, "buffer_find_us_p50": find_us, "kills": kills}
    return Result("pcpa", seed, "camera", metrics, {})


def with_cost(name: str, value: float) -> Result:
    """A run with so much of a measure."""
    metrics = {"buffer_n_alloc_mean": 200, "buffer_find_us_p50": 10, MEASURES[name]: value}
    return Result("pcpa", 1, "camera", metrics, {})


def swept(without: Size, *sizes: Size) -> Sweep:
    """A sweep of the policy pcpa with these sizes, whose runs are nowhere."""
    return Sweep("pcpa", "none", "camera", 10, (1,), 3072, (), without, sizes)


def test_sizes() -> None:
    assert parse_sizes("260,180,260") == [180, 260]
    for text in ("", "a", "0", "180,-1", "1.5"):
        with pytest.raises(UsageError, match="--sizes"):
            parse_sizes(text)


def test_areas_of_large_pages_are_whole_pageblocks_each_once() -> None:
    assert whole_sizes([180, 200, 220], PAGE) == [180, 200, 220]
    assert whole_sizes([180, 200, 220, 260], LARGE_PAGE) == [192, 224, 288]


def test_the_policys_own_size_is_replaced() -> None:
    policy = sized(load_policy("pcpa"), 180)
    assert policy.cmdline == ["cohort.pcpa=180M"]
    assert (policy.name, policy.camera_heap) == ("pcpa-180", "pcpa")
    assert policy.digest != load_policy("pcpa").digest


def test_fewest_pieces_first_then_the_soonest_then_the_smallest() -> None:
    # The paper's figure 11a: 260 MB has the fewest pieces though 200 MB is found sooner.
    sizes = [
        judge(200, [result(460, 380)]),
        judge(260, [result(260, 520)]),
        judge(300, [result(262, 610)]),
        judge(320, [result(None, 1)]),
    ]
    chosen = best(sizes)
    assert chosen is not None and chosen.mb == 260
    alike = [judge(mb, [result(100, 5)]) for mb in (280, 260)]
    chosen = best(alike)
    assert chosen is not None and chosen.mb == 260
    assert best([judge(200, [result(None, None)])]) is None


def test_a_size_that_costs_the_phone_more_than_it_has_without_is_not_the_best() -> None:
    without = judge(0, [result(900, 9000, seed, kills) for seed, kills in ((1, 10), (2, 14))])
    large = judge(260, [result(260, 520, seed, kills) for seed, kills in ((1, 15), (2, 20))])
    small = judge(200, [result(460, 380, seed, kills) for seed, kills in ((1, 13), (2, 20))])
    assert too_dear(large, without) == ["kills"]
    assert too_dear(small, without) == []  # one run has no more than the worst without an area
    assert best([small, large]) is large
    assert best([small, large], without) is small
    assert best([large], without) is None


@pytest.mark.parametrize("name", ["kills", "refaults", "others_ms_p95"])
def test_one_run_is_too_dear_by_more_than_chance_tells(name: str) -> None:
    """By the rule of reports: 5 % beyond what a size may cost."""
    bound = COSTS[name]

    def one(value: float) -> Size:
        return judge(0, [with_cost(name, value)])

    without = one(100_000)
    for value, dear in ((100_001, False), (104_900 * bound, False), (105_100 * bound, True)):
        assert too_dear(one(value), without) == ([name] if dear else []), value
    several = judge(0, [with_cost(name, 100_000 - x) for x in (0, 1)])
    beyond = judge(0, [with_cost(name, 100_000 * bound + x) for x in (1, 2)])
    assert too_dear(beyond, without) == []
    assert too_dear(beyond, several) == [name], "ranges that do not touch are no chance"


def test_a_size_that_serves_every_request_comes_first() -> None:
    """What is refused has memory of another kind, which may be found sooner and in fewer pieces."""
    refusing = judge(180, [with_cost("refused", 0), with_cost("refused", 3)])
    serving = judge(260, [result(300, 900)])
    chosen = best([refusing, serving])
    assert chosen is serving
    assert best([refusing, judge(300, [result(None, None)])]) is refusing, "the only one measured"


def test_a_size_that_refuses_some_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Its median may be none of them."""
    refusing = judge(180, [with_cost("refused", x) for x in (0, 0, 3)])
    show(swept(judge(0, [result(900, 9000)]), refusing), as_json=False)
    assert capsys.readouterr().out.splitlines()[2].split()[-3:] == ["0.0", "refuses", "some"]


def test_medians_over_the_seeds() -> None:
    size = judge(260, [result(n, 10, n) for n in (1, 2, 9)])
    assert size.median("n_alloc") == 2
    assert size.median("refused") is None


def test_picture() -> None:
    svg = draw([judge(200, [result(460, 380)]), judge(260, [result(None, None)])])
    assert "size of the area" in svg and "N_alloc" in svg


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_no_size_is_a_failure(
    words: tuple[str, ...],
    cohort: Callable[..., Outcome],
    own_out: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs, "execute_matrix", lambda specs, *_: specs)
    monkeypatch.setattr(measured, "measure", lambda spec: result(None, None, spec.seed))
    done = cohort("tune", "pcpa", "--sizes", "200", *words)
    assert (done.code, "no size was measured" in done.stderr) == (1, True)
    assert bool(words) == ('"best_mb": null' in done.stdout)


def test_policies_whose_camera_uses_the_area() -> None:
    chosen = {name for name in policy_names() if uses_area(load_policy(name))}
    assert {"pcpa", "pcpa-contig", "pcpa-entitled", "pcpa192"} <= chosen
    assert all(name.startswith("pcpa") for name in chosen)


SIZE_FILES = ("size", "contig_size")


@pytest.mark.parametrize("file", SIZE_FILES)
def test_a_policy_whose_camera_has_memory_of_another_size_is_refused(
    file: str, cohort: Callable[..., Outcome], own_out: Path, tmp_path: Path
) -> None:
    """Each size would be measured with the same memory under another name."""
    done = cohort("tune", "pcpa", "--policy", "pcpa-kept")
    assert done.code == 2
    assert "pcpa-kept: cohort.pcpa_contig=260M is no size that --sizes changes" in done.stderr
    written = f"/sys/kernel/mm/cohort/pcpa/{file}"
    mine = tmp_path / "mine.toml"
    mine.write_text(f'title = "t"\ncamera_heap = "pcpa"\n[sysfs]\n"{written}" = "64M"\n')
    done = cohort("tune", "pcpa", "--policy", mine)
    assert (done.code, f"mine: {written} is no size that" in done.stderr) == (2, True)
    for name in ("pcpa", "pcpa192", "pcpa-contig", "pcpa-entitled", "pcpa-sized"):
        assert other_size(load_policy(name)) is None


def test_what_was_run_is_told_with_what_it_measured(
    cohort: Callable[..., Outcome], own_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the screen and in both JSON objects."""

    def measure(spec: RunSpec) -> Result:
        path = own_out / "runs" / f"{spec.policy.name}-s{spec.seed}"
        return replace(result(500, 9, spec.seed), policy=spec.policy.name, path=path)

    monkeypatch.setattr(runs, "execute_matrix", lambda specs, *_: specs)
    monkeypatch.setattr(measured, "measure", measure)
    asked = "--policy pcpa-contig --against tuned-mglru --sizes 200 --seeds 1,2 --launches 3"
    words = ("tune", "pcpa", *asked.split(), "--memory", "4096")
    table = cohort(*words).stdout.splitlines()
    assert [line.split()[0] for line in table[:2]] == ["MiB", "tuned-mglru"]
    assert len(table[0]) == len(table[1]) == len(table[2])
    told = json.loads(cohort(*words, "--json").stdout)
    written = json.loads((own_out / "tune/pcpa-camera.json").read_text())
    assert told == written
    names = ("policy", "against", "workload", "launches", "seeds", "memory_mb")
    assert [told[x] for x in names] == ["pcpa-contig", "tuned-mglru", "camera", 3, [1, 2], 4096]
    assert told["runs"] == [
        {"policy": name, "seed": seed, "path": str(own_out / "runs" / f"{name}-s{seed}")}
        for name in ("tuned-mglru", "pcpa-contig-200")
        for seed in (1, 2)
    ]


def test_a_cost_that_some_runs_alone_have_is_not_too_dear() -> None:
    """As no report judges it."""
    without = judge(0, [result(900, 9000, seed, kills=1) for seed in (1, 2)])
    dear = [result(300, 900, seed, kills=9) for seed in (1, 2)]
    assert too_dear(judge(260, dear), without) == ["kills"]
    some = [dear[0], replace(dear[1], metrics={**dear[1].metrics, "kills": None})]
    assert too_dear(judge(260, some), without) == []
    assert too_dear(judge(260, dear), judge(0, some)) == []


def test_a_size_that_all_runs_measured_comes_first() -> None:
    whole = judge(200, [result(300, 900, seed) for seed in (1, 2)])
    better = result(200, 400, 1)
    some = judge(260, [better, replace(better, seed=2, metrics={**better.metrics, "kills": None})])
    assert some.partial == ["kills"]
    assert best([whole, some]) is whole
    assert best([some]) is some


def test_the_command(
    cohort: Callable[..., Outcome], own_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(specs: list[RunSpec], *more: object) -> list[RunSpec]:
        return specs

    def measure(spec: RunSpec) -> Result:
        mb = int(spec.policy.name.rpartition("-")[2]) if spec.policy.name != "none" else 0
        return result(1000 - mb, mb, spec.seed, kills=int(mb == 280))

    monkeypatch.setattr(runs, "execute_matrix", execute)
    monkeypatch.setattr(measured, "measure", measure)
    done = cohort("tune", "pcpa", "--sizes", "200,260", "--seeds", "1,2")
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[1].split()[0] == "none"
    assert "* " in done.stdout.splitlines()[3]
    assert done.stdout.splitlines()[-1] == "best: 260 MiB; boot with cohort.pcpa=260M"
    done = cohort("tune", "pcpa", "--sizes", "260,280")
    assert done.stdout.splitlines()[-2].endswith("too dear: kills")
    assert done.stdout.splitlines()[-1].startswith("best: 260 MiB")
    done = cohort("tune", "pcpa", "--sizes", "280")
    assert (done.code, "costs the phone too much" in done.stderr) == (1, True)
    large = ("--arch", "arm64", "--page-size", "16k")
    done = cohort("tune", "pcpa", "--sizes", "200,220,260", *large)
    assert [line.split()[-9] for line in done.stdout.splitlines()[2:-1]] == ["224", "288"]
    done = cohort("tune", "pcpa", *large[2:])
    assert (done.code, "--arch arm64 --page-size 16k" in done.stderr) == (2, True)
    assert (own_out / "tune/pcpa-camera.svg").is_file()
    found = json.loads(cohort("tune", "pcpa", "--sizes", "200,260", "--json").stdout)
    assert found["best_mb"] == 260
    assert found["sizes"][0]["n_alloc"]["median"] == 800
    assert (found["without"]["kills"]["median"], found["sizes"][0]["too_dear"]) == (0, [])
    refused = cohort("tune", "pcpa", "--workload", "phone-2g")
    assert refused.code == 2 and "no camera" in refused.stderr
    assert cohort("tune", "region").code == 2
