"""Sets of records: made of runs and of studies, and made again by the commands they name."""

import json
import logging
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cohort import checkout, host, paths, runs
from cohort.errors import Failed, UsageError
from cohort.results import export
from cohort.results.pages import Home
from cohort.results.records import Record, read_set, write_set
from cohort.results.rundir import RunDir
from cohort.run_check import check_run
from cohort.run_spec import RunSpec
from cohort.sets import again, collect
from cohort.study.matrix import Options, columns_of, specs_of
from cohort.study.schema import load_study
from tests_support import Outcome

Cohort = Callable[..., Outcome]


def test_runs_become_a_set_of_records(
    home: Home, cohort: Cohort, own_out: Path, small: Path
) -> None:
    path = home.records / "small.jsonl"
    assert cohort("results", "add", "small", "--from", own_out / "runs").stdout == f"{path}\n"
    assert path.read_text() == small.read_text()
    path.unlink()
    assert cohort("results", "add", "small", *sorted((own_out / "runs").iterdir())).code == 0
    assert path.read_text() == small.read_text()


def test_what_cannot_be_had_again_is_refused(
    home: Home, cohort: Cohort, own_out: Path, tmp_path: Path
) -> None:
    run = own_out / "runs" / "phone-2g-none-s1"
    meta = json.loads((run / "meta.json").read_text())

    def refused(**values: object) -> str:
        (run / "meta.json").write_text(json.dumps({**meta, **values}))
        ended = cohort("results", "add", "small", own_out / "runs")
        assert ended.code in (1, 2)
        assert not home.records.exists()
        return ended.stderr

    dirty = refused(versions=meta["versions"] | {"cohort_git": "abcd-dirty"})
    assert "phone-2g-none-s1 is of no commit (abcd-dirty)" in dirty
    other = refused(versions=meta["versions"] | {"cohort_git": "ef01"})
    assert "runs of different commit: none (seed 1) has ef01, none (seed 2) has abcd" in other
    assert "runs of different launches" in refused(launches=12)
    assert "policies/none.toml says something else" in refused(policy_id="0")
    assert "mine is no policy of policies/" in refused(policy="mine")
    assert "was run with --append 'a b'" in refused(cmdline=["a b"])
    assert "was run with --change maps.count=9" in refused(change=["maps.count=9"])
    assert "was run with --config base,x86_64,lab" in refused(config="base,x86_64,lab")
    assert "none-s1 was run with --tree /vendor, which is in no commit" in refused(tree="/vendor")
    assert "mine is no workload of workloads/" in refused(workload="mine")
    changed = "workloads/phone-2g.toml says something else than when phone-2g-none-s1 was run"
    cost = {**meta["storage"], "read_us": 1}
    assert changed in refused(storage=cost)
    conf = (run / "phone.conf").read_text()
    (run / "phone.conf").write_text(conf.replace("set think_us 1000\n", "set think_us 2000\n"))
    assert changed in refused()
    shutil.copy(run.with_name("phone-2g-none-s2") / "phone.conf", run)
    assert "two runs of none with seed 2" in refused(seed=2)


def test_runs_are_named_in_one_way(home: Home, cohort: Cohort, own_out: Path) -> None:
    assert "one of the four" in cohort("results", "add", "small").stderr
    assert "one of the four" in cohort("results", "add", "small", own_out, "--last").stderr
    assert "no finished run is there" in cohort("results", "add", "small", own_out).stderr
    assert "a set is called by" in cohort("results", "add", "../x", own_out / "runs").stderr
    for name in ("é", "X", "", "a_b", "a\n"):
        assert "a set is called by" in cohort("results", "add", name, own_out / "runs").stderr
    assert "one of the three" in cohort("results", "--check", "--sql", "SELECT 1").stderr
    assert "one of the three" in cohort("results", "--check", "--parquet", own_out).stderr


def test_the_history_is_not_replaced(home: Home, cohort: Cohort, own_out: Path) -> None:
    """It has the runs of all commits before, which only it has."""
    home.records.mkdir(parents=True)
    kept = home.records / "history.jsonl"
    kept.write_text("all commits\n")
    done = cohort("results", "add", "history", own_out / "runs")
    assert (done.code, kept.read_text()) == (2, "all commits\n")
    assert "hint: cohort results history --last" in done.stderr


STUDY = """
title = "t"
source = "s"
workload = "phone-2g"
seeds = [1, 2, 3]
run = [
    {label = "{policy} now", policy = "{policy}", sweep = {policy = ["none", "tuned"]}},
    {label = "more", policy = "region", launches = 20, sysctl = {"vm.swappiness" = 1}},
]
measure = [{metric = "kills"}]
"""


@pytest.fixture
def study(home: Home, own_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `cohort study small` left of two of its three columns, one with more knobs."""
    monkeypatch.setattr(paths, "STUDIES", tmp_path / "studies")
    paths.STUDIES.mkdir()
    (paths.STUDIES / "small.toml").write_text(STUDY)
    small = load_study("small")
    runs = []
    for label, policy in (("none now", "none"), ("more", "region")):
        for seed in (1, 2):
            run = own_out / "runs" / f"phone-2g-{policy}-s{seed}"
            spec = specs_of(small, columns_of(small, [label]), Options([seed], 20))[0]
            about = json.loads((run / "meta.json").read_text())
            about |= {"policy_id": spec.policy.digest[:16]}
            (run / "meta.json").write_text(json.dumps(about))
            (run / "phone.conf").write_text(check_run(spec).conf)
            runs.append({"label": label, "path": str(run)})
    file = tmp_path / "small.json"
    file.write_text(json.dumps({"study": "small", "runs": runs}))
    return file


def test_a_study_keeps_its_labels_and_its_options(study: Path) -> None:
    records = collect.of_study(study)
    assert [x.label for x in records] == ["none now", "none now", "more", "more"]
    assert {x.command for x in records} == {
        "cohort study small --seeds 1,2 --launches 20 --run 'none now' --run more"
    }
    study.write_text("{}")
    with pytest.raises(UsageError, match="not what `cohort study` writes"):
        collect.of_study(study)


def test_a_study_of_another_machine_is_one_of_that_machine(study: Path) -> None:
    for run in json.loads(study.read_text())["runs"]:
        path = Path(run["path"])
        about = json.loads((path / "meta.json").read_text()) | {"accel": "tcg", "arch": "arm64"}
        (path / "meta.json").write_text(json.dumps(about))
        conf = (path / "phone.conf").read_text()
        conf = conf.replace("time virtual\n", "time real\n")
        (path / "phone.conf").write_text(conf.replace("set time_scale 1\n", "set time_scale 50\n"))
    command = collect.of_study(study)[0].command
    assert command.endswith("--run more --arch arm64 --accel tcg")


def test_a_study_that_says_something_else_by_now_is_refused(study: Path) -> None:
    file = paths.STUDIES / "small.toml"
    for old, new, said in (
        (
            "swappiness",
            "page-cluster",
            "small.toml: more: says something else than when phone-2g-r",
        ),
        ('"phone-2g"', '"phone-3g"', "phone-2g.toml says something else than when phone-2g-none"),
        ('"more"', '"less"', "small has no column 'more'"),
    ):
        file.write_text(STUDY.replace(old, new))
        with pytest.raises(UsageError, match=said):
            collect.of_study(study)
    file.unlink()
    with pytest.raises(UsageError, match="small is no study of studies/"):
        collect.of_study(study)


def test_records_come_back_as_they_were(made: Home) -> None:
    path = made.records / "small.jsonl"
    records = read_set(path)
    text = path.read_text()
    write_set(path, records)
    assert path.read_text() == text
    assert all(isinstance(x, Record) and len(x.records_id) == 16 for x in records)
    path.write_text(text + '{"label": 1}\n')
    with pytest.raises(Failed, match=r"small.jsonl:7: label: "):
        read_set(path)


@pytest.fixture
def same_runs(
    home: Home, cohort: Cohort, own_out: Path, monkeypatch: pytest.MonkeyPatch
) -> list[RunSpec]:
    """A set `small` that is kept, and runs which turn out as they were; those that were asked."""
    asked: list[RunSpec] = []

    def execute(specs: Sequence[RunSpec], *_: object) -> list[RunDir]:
        asked.extend(specs)
        places = [own_out / "runs" / f"phone-2g-{x.policy.name}-s{x.seed}" for x in specs]
        return [RunDir(place) for place in places]

    monkeypatch.setattr(runs, "execute_matrix", execute)
    monkeypatch.setattr(checkout, "commit", lambda: "abcd")
    assert cohort("results", "add", "small", own_out / "runs").code == 0
    return asked


def test_a_set_is_made_again(home: Home, cohort: Cohort, same_runs: list[RunSpec]) -> None:
    """Its file is what is printed: the table of `cohort compare` goes beside it."""
    path = home.records / "small.jsonl"
    kept = path.read_text()
    first = kept.splitlines()[0]
    path.write_text(kept.replace('"commit": "abcd"', '"commit": "0123"'))
    done = cohort("results", "again", "small", "--jobs", "2")
    assert (done.code, done.stdout) == (0, f"{path}\n"), done.stderr
    assert "cohort compare none region tuned --workload phone-2g" in done.stderr
    assert json.loads(path.read_text().splitlines()[0]) == json.loads(first)
    assert path.read_text() == kept
    asked = [(x.policy.name, x.workload, x.launches, x.seed) for x in same_runs]
    names = ("none", "region", "tuned")
    assert asked == [(name, "phone-2g", 20, seed) for name in names for seed in (1, 2)]
    assert {(x.one_commit, x.fresh) for x in same_runs} == {(True, False)}
    same_runs.clear()
    done = cohort("results", "again", "small", "--fresh", "--json")
    assert (done.code, len(json.loads(done.stdout))) == (0, 1)
    assert {(x.one_commit, x.fresh) for x in same_runs} == {(False, True)}


def test_a_comparison_that_ends_meanwhile_is_not_taken_for_the_set(
    home: Home,
    cohort: Cohort,
    same_runs: list[RunSpec],
    own_out: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`cohort compare` notes its runs in out/, which commands share."""
    path = home.records / "small.jsonl"
    kept = path.read_text()
    other = [RunDir(own_out / "runs" / f"phone-2g-tuned-s{seed}") for seed in (1, 2)]
    make = runs.execute_matrix

    def execute(specs: Sequence[RunSpec], *_: object) -> list[RunDir]:
        export.remember(other, "cohort compare tuned", export.COMPARE)
        return make(specs)

    monkeypatch.setattr(runs, "execute_matrix", execute)
    done = cohort("results", "again", "small")
    assert (done.code, path.read_text()) == (0, kept), done.stderr
    assert export.recall() == [run.path for run in other], "nor does the set take its place"


def test_a_study_that_is_made_again_names_its_own_command(
    home: Home,
    cohort: Cohort,
    same_runs: list[RunSpec],
    study: Path,
    own_out: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And takes no run of another commit, as a comparison."""
    records = collect.of_study(study)
    write_set(home.records / "figure.jsonl", records)
    monkeypatch.setattr(sys, "argv", ["cohort", "results", "again", "figure"])
    done = cohort("results", "again", "figure")
    assert done.code == 0, done.stderr
    page = (own_out / "studies" / "small.md").read_text()
    assert records[0].command in page
    assert "results again" not in page
    assert {(x.one_commit, x.fresh) for x in same_runs} == {(True, False)}


@pytest.mark.parametrize("how", [(), ("-q",), ("-v",)])
def test_commands_of_a_set_say_as_much_as_was_asked_for(
    how: tuple[str, ...],
    home: Home,
    cohort: Cohort,
    same_runs: list[RunSpec],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels: list[int] = []
    make = runs.execute_matrix

    def execute(specs: Sequence[RunSpec], *_: object) -> list[RunDir]:
        levels.append(logging.getLogger("cohort").level)
        return make(specs)

    monkeypatch.setattr(runs, "execute_matrix", execute)
    assert cohort(*how, "results", "again", "small").code == 0
    assert levels == [{"-q": logging.WARNING, "-v": logging.DEBUG}.get("".join(how), logging.INFO)]


def test_runs_that_are_not_the_sets_are_not_kept(
    home: Home,
    cohort: Cohort,
    same_runs: list[RunSpec],
    own_out: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = home.records / "small.jsonl"
    kept, places = path.read_text(), sorted((own_out / "runs").iterdir())
    whole = collect.of_runs

    def of_runs(places: Sequence[Path]) -> list[Record]:
        return whole([place for place in places if "region" not in place.name])

    with monkeypatch.context() as patch:
        patch.setattr(collect, "of_runs", of_runs)
        done = cohort("results", "again", "small")
    assert (done.code, path.read_text()) == (1, kept)
    assert "of none (seed 1) it has `cohort compare none region tuned" in done.stderr
    records = [x for x in read_set(path) if x.seed == 1]
    with pytest.raises(Failed, match=r"of none \(seed 2\) it has none, and made was `cohort"):
        again.make(records, lambda _: [RunDir(x) for x in places], {})


def test_a_set_is_had_again_to_the_byte(
    home: Home, cohort: Cohort, same_runs: list[RunSpec]
) -> None:
    path = home.records / "small.jsonl"
    done = cohort("results", "again", "small", "--verify")
    assert (done.code, done.stdout) == (0, f"{path}\n"), done.stderr
    assert [x.fresh for x in same_runs] == [True] * 6, "else the set's own runs are looked at"
    records = read_set(path)
    odd = [records[0], records[1].model_copy(update={"records_id": "ffff"}), *records[2:]]
    write_set(path, odd)
    before = path.read_text()
    done = cohort("results", "again", "small", "--verify")
    assert (done.code, done.stdout) == (1, "")
    assert "1 of 6 runs are others than the set's, first none (seed 2)" in done.stderr
    write_set(path, [x.model_copy(update={"commit": "0123"}) for x in odd])
    done = cohort("results", "again", "small", "--verify")
    assert (done.code, "small is of commit 0123, and this is abcd" in done.stderr) == (2, True)
    write_set(path, [x.model_copy(update={"accel": "tcg"}) for x in odd])
    done = cohort("results", "again", "small", "--verify")
    assert (done.code, "none repeats to the byte" in done.stderr) == (2, True)
    write_set(path, odd)
    assert path.read_text() == before, "nothing is kept"


def test_nothing_is_run_that_could_not_be_kept(
    home: Home, cohort: Cohort, same_runs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = read_set(home.records / "small.jsonl")
    write_set(home.records / "history.jsonl", small)
    for name, command in (("odd", "doctor --fix"), ("none", ""), ("open", "run 'none")):
        odd = [x.model_copy(update={"command": f"cohort {command}"}) for x in small]
        write_set(home.records / f"{name}.jsonl", odd)
    for name, said in (
        ("history", "cohort results history --last"),
        ("odd", "`cohort doctor --fix` leaves no runs to keep"),
        ("none", "`cohort ` leaves no runs to keep"),
        ("open", "is no command: No closing quotation"),
        ("gone", "there are no records 'gone'"),
        ("smal", "did you mean small?"),
    ):
        done = cohort("results", "again", "small", name)
        assert (done.code, said in done.stderr, same_runs) == (2, True, []), done.stderr
    monkeypatch.setattr(checkout, "commit", lambda: "abcd-dirty")
    done = cohort("results", "again", "small")
    assert (done.code, "small is of no commit" in done.stderr, same_runs) == (2, True, [])


def test_suites_take_jobs_too(
    home: Home, cohort: Cohort, same_runs: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = read_set(home.records / "small.jsonl")
    day = [x.model_copy(update={"command": "cohort suite fio"}) for x in small]
    write_set(home.records / "day.jsonl", day)
    given: list[dict[str, Sequence[str]]] = []

    def make(old: Sequence[Record], call: object, options: dict[str, Sequence[str]]) -> object:
        given.append(options)
        return old

    monkeypatch.setattr(again, "make", make)
    assert cohort("results", "again", "day", "small", "--jobs", "2").code == 0
    assert given[0]["suite"] == ["--jobs", "2"]
    assert given[1]["compare"] == ["--jobs", "2", "--one-commit"]


def test_a_run_is_of_a_commit_though_its_documents_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cohort results` writes pages and records between two runs of a checkout."""
    monkeypatch.setattr(paths, "CHECKOUT", tmp_path)
    assert checkout.commit() == "unknown"
    files = [tmp_path / name for name in ("docs/page.md", "README.md", "program.c")]
    (tmp_path / "docs").mkdir()
    for file in files:
        file.write_text("as it was\n")
    git = ("git", "-C", tmp_path, "-c", "user.name=x", "-c", "user.email=x")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "all")):
        assert host.run([*git, *words]).returncode == 0
    commit = checkout.commit()
    for file in files[:2]:
        file.write_text("made again\n")
    (tmp_path / "log").write_text("of nothing\n")
    assert len(commit) == 12 and checkout.commit() == commit == checkout.since(commit)
    new = tmp_path / "policies" / "mine.toml"
    new.parent.mkdir()
    new.write_text("what a run reads\n")
    assert checkout.commit() == f"{commit}-dirty"
    assert checkout.since(commit) == checkout.since(f"{commit}-dirty") == f"{commit}-dirty"
    new.unlink()
    files[2].write_text("another\n")
    assert checkout.commit() == f"{commit}-dirty"
