"""The history of a short run: commits in their order, and a newest one that is worse."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import paths
from cohort.errors import UsageError
from cohort.results import history
from cohort.results.figures import Figures, plain
from cohort.results.history import Bound
from cohort.results.records import Record, read_set

HISTORY_MD = paths.ROOT / "docs" / "templates" / "results" / "history.md"
BOUNDS = {"kills": Bound(most=1.1, why="it varies"), "resume_share": Bound(most=1.1, why="so")}


def run(
    commit: str, label: str, seed: int = 1, kills: int = 100, resume_share: float = 0.4
) -> Record:
    """A run of 200 launches."""
    names = (
        *("command", "tree_id", "kernel_id", "guest_id", "workload_digest", "policy_id"),
        *("kernel", "qemu", "gcc", "records_id"),
    )
    return Record(
        label=label,
        policy=label,
        seed=seed,
        workload="phone-2g",
        launches=200,
        memory_mb=2048,
        cpus=2,
        page_size=4096,
        accel="deterministic",
        commit=commit,
        metrics={"kills": kills, "resume_share": resume_share},
        **dict.fromkeys(names, "x"),
    )


def both(commit: str, kills: int = 100, resume_share: float = 0.4) -> list[Record]:
    """The two runs of a commit; what is said is of region."""
    return [
        run(commit, "none"),
        run(commit, "region", kills=kills, resume_share=resume_share),
    ]


def test_commits_stay_in_their_order_and_one_that_is_made_again_goes_to_the_end(
    tmp_path: Path,
) -> None:
    path = tmp_path / "records" / "history.jsonl"
    for commit in ("a", "b", "c", "a"):
        history.add(path, both(commit))
    assert history.commits(read_set(path)) == ["b", "c", "a"]
    assert len(read_set(path)) == 6


def test_a_record_may_have_what_unicode_calls_the_end_of_a_line(tmp_path: Path) -> None:
    odd = [x.model_copy(update={"command": "a\u2028b\x85c"}) for x in both("a")]
    history.add(tmp_path / "history.jsonl", odd)
    assert read_set(tmp_path / "history.jsonl") == odd


@pytest.mark.parametrize(
    "runs",
    [
        [run("a", "none")],
        [run("a", "none"), run("a", "region", seed=2)],
        [run("a", "none"), run("a", "tuned")],
        [x.model_copy(update={"launches": 400}) for x in both("a")],
        [x.model_copy(update={"accel": "tcg"}) for x in both("a")],
    ],
)
def test_other_runs_are_none_of_the_history(runs: list[Record], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--launches 200"):
        history.add(tmp_path / "history.jsonl", runs)
    assert list(tmp_path.iterdir()) == []


def test_a_commit_that_is_worse_than_the_last_is_told() -> None:
    records = [*both("a"), *both("b", kills=105, resume_share=0.38)]
    assert history.losses(records, BOUNDS) == []
    records += both("c", kills=120, resume_share=0.3)
    assert history.losses(records, BOUNDS) == [
        "history: kills: 120 (1.200 x none) on c, 105 (1.050 x) on b: 1.14 times worse, "
        "at most 1.1 (it varies)",
        "history: resume_share: 0.300 (0.750 x none) on c, 0.380 (0.950 x) on b: "
        "1.27 times worse, at most 1.1 (so)",
    ]
    assert history.losses([*records, *both("d", kills=121)], BOUNDS) == []


def test_what_was_none_at_all_is_a_loss_as_well() -> None:
    never, some, lost = both("a", kills=0), both("b", kills=1), both("c", kills=1, resume_share=0)
    assert history.losses([*never, *both("x", kills=0)], BOUNDS) == []
    assert "kills: 1 (0.010 x none) on b, 0 (0.000 x) on a: inf times worse" in str(
        history.losses([*never, *some], BOUNDS)
    )
    assert "resume_share: 0.000 (0.000 x none) on c" in str(history.losses([*some, *lost], BOUNDS))
    assert history.losses([*some, *both("d", kills=0)], BOUNDS) == []


def test_what_changes_for_both_is_no_loss() -> None:
    records = [*both("a"), run("b", "none", kills=200), run("b", "region", kills=200)]
    assert history.losses(records, BOUNDS) == []


def test_what_only_none_has_better_is_no_loss() -> None:
    """It varies by chance, and by itself `region` is as it was."""
    records = [*both("a"), run("b", "none", kills=60), run("b", "region", kills=101)]
    assert history.losses(records, BOUNDS) == []


def test_a_metric_that_none_does_not_have_is_not_judged() -> None:
    records = [*both("a"), run("b", "none", kills=0), run("b", "region", kills=300)]
    assert history.losses(records, BOUNDS) == []


def test_the_newest_is_first_on_the_page() -> None:
    figures = Figures()
    text = plain(history.table([*both("a"), *both("b", kills=50)], BOUNDS, figures))
    assert [line.split(" | ")[0] for line in text.splitlines()[2:]] == ["| b", "| a"]
    assert "| b | 50 (0.500) | 0.400 (1.000) |" in text
    assert {figure.table for figure in figures.all} == {"history"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[kills]\nmost = 1.0\nwhy = 'x'", "history.toml:2: kills.most: .* greater than 1"),
        ("[kills]\nmost = 1.1", "why"),
        ("[killz]\nmost = 1.1\nwhy = 'x'", "there is no metric killz"),
        ("kills", "history.toml"),
    ],
)
def test_bounds_that_are_none(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "history.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        history.read_bounds(path)


def test_the_verb_judges_what_is_there(
    cohort: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "docs" / "results"
    monkeypatch.setattr("cohort.paths.CHECKOUT", tmp_path)
    assert "code=0" in str(cohort("results", "history"))
    for commit, kills in (("a", 100), ("b", 130)):
        history.add(results / "records" / "history.jsonl", both(commit, kills=kills))
    (results / "history.toml").write_text("[kills]\nmost = 1.1\nwhy = 'it varies'\n")
    said = str(cohort("results", "history"))
    assert "code=1" in said
    assert "kills: 130 (1.300 x none) on b" in said


def test_the_verb_keeps_runs_and_makes_the_page(
    cohort: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, templates = tmp_path / "docs" / "results", tmp_path / "docs" / "templates" / "results"
    monkeypatch.setattr("cohort.paths.CHECKOUT", tmp_path)
    templates.mkdir(parents=True)
    results.mkdir()
    (templates / "history.md").write_text(HISTORY_MD.read_text())
    (results / "history.toml").write_text("[kills]\nmost = 1.1\nwhy = 'it varies'\n")
    for commit, kills, code in (("a", 100, 0), ("b", 130, 1)):
        made = both(commit, kills)
        monkeypatch.setattr("cohort.results.collect.of_runs", lambda *_, made=made: made)
        said = str(cohort("results", "history", tmp_path))
        assert f"code={code}" in said
        assert "history.jsonl" in said
        assert "history.md" in said
    assert "| b | 130 (1.300) |" in (results / "history.md").read_text()
