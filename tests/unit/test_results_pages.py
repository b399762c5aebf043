"""Pages of results: made from records, checked against them, and records from made runs."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pytest

from cohort import paths, runs
from cohort.errors import Failed, UsageError
from cohort.policy import load_policy
from cohort.results import again, collect, figures, pages
from cohort.results.pages import Home
from cohort.results.query import ask, export
from cohort.results.records import Record, read_set, write_set
from cohort.results.sheet import Sheet
from cohort.runs import RunSpec, check_run
from cohort.study.matrix import Options, columns_of, specs_of
from cohort.study.schema import load_study
from made_runs import make_run
from tests_support import Outcome

Cohort = Callable[..., Outcome]

TEMPLATE = """# A page

{{ table("small", ["none", best("none", "tuned", title="best of stock"), "region"],
         ["kills", ["launch_ms_p50", "launch"]], mark="region") }}

A launch takes {{ times("small", "region", best("none", "tuned"), "launch_ms_p50") }} times as long,
{{ value("small", "region", "launch_ms_p50") }} ms.
"""
BEGIN = pages.BEGIN.format(template="README.md")
PICTURE = '\n{{ picture("small", "ui_order", ["none", "region"], "UI", orders=True) }}\n'

IDS = {
    **dict.fromkeys(("kernel_id", "workload_digest"), "0123"),
    **{"guest_id": "4567", "cmdline": []},
    "storage": {"read_us": 100, "write_us": 50, "mb_per_s": 600},
}


def made_run(root: Path, policy: str, seed: int, factor: float, **versions: str) -> Path:
    """A run directory with all that a record needs, of commit abcd."""
    known = {"qemu": "QEMU 1", "gcc": "gcc 4", "kernel": "6.12.7"}
    known |= {"cohort_git": "abcd", "tree_id": "89ab"}
    identity = {**IDS, "policy_id": load_policy(policy).digest[:16]}
    path = make_run(root, policy, seed, factor, versions=known | versions, **identity)
    tell(path)
    return path


def tell(path: Path) -> None:
    """Leave in a run directory what its guest was told."""
    meta = json.loads((path / "meta.json").read_text())
    spec = RunSpec(load_policy(meta["policy"]), "phone-2g", meta["launches"], meta["seed"])
    (path / "phone.conf").write_text(check_run(spec).conf)


def checkout(root: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A checkout with a page's template, and a README with marks and a template of its own."""
    monkeypatch.setattr(paths, "CHECKOUT", root)
    home = Home(root)
    (home.templates / "results").mkdir(parents=True)
    (home.templates / "results" / "small.md").write_text(TEMPLATE)
    (home.templates / "README.md").write_text('Kills: {{ value("small", "none", "kills") }}.\n')
    (root / "README.md").write_text(f"# R\n\n{BEGIN}\n{pages.END}\n\nmore\n")
    return home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_out: Path) -> Home:
    """The same with runs in out/, and without records."""
    for policy, factor in (("none", 1.0), ("tuned", 0.9), ("region", 0.5)):
        for seed in (1, 2):
            made_run(own_out / "runs", policy, seed, factor + seed / 100)
    return checkout(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records of such runs."""
    root = tmp_path_factory.mktemp("small")
    for policy, factor in (("none", 1.0), ("region", 0.5), ("tuned", 0.9)):
        for seed in (1, 2):
            made_run(root / "runs", policy, seed, factor + seed / 100)
    path = root / "small.jsonl"
    write_set(path, collect.of_runs([root / "runs"]))
    return path


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: Path) -> Home:
    """A checkout with templates, records and pages, and without runs."""
    home = checkout(tmp_path, monkeypatch)
    home.records.mkdir(parents=True)
    shutil.copy(small, home.records)
    pages.write(home)
    return home


def test_a_page_has_its_figures_and_what_they_are_of(made: Home, cohort: Cohort) -> None:
    text = (made.results / "small.md").read_text()
    assert text.startswith(
        "<!-- Made by `cohort results` of docs/templates/results/small.md: change that. -->"
    )
    assert (
        "    cohort compare none region tuned --workload phone-2g --launches 20 --seeds 1,2\n"
        in text
    )
    assert "|  | `none` | best of stock | `region` |" in text
    assert "| apps killed (`kills`) | 20 | 20 `none` | 20 ≈ |" in text
    assert "| launch | 10.7 [10.6, 10.7] | 9.6 [9.6, 9.7] `tuned` | 5.4 [5.4, 5.5] ✓ |" in text
    assert "A launch takes 0.56 times as long,\n5.4 ms." in text
    assert "Commit abcd; phone-2g, 20 launches, 2048 MiB, 2 CPUs;" in text
    assert "Linux 6.12.7; gcc 4;\nQEMU 1;\nseeds 1, 2: median [least, greatest].\n" in text
    assert "✓ better than best of stock, ✗ worse, ≈ the ranges over the seeds touch." in text
    readme = (made.root / "README.md").read_text()
    assert readme == f"# R\n\n{BEGIN}\nKills: 20.\n{pages.END}\n\nmore\n"
    assert cohort("results", "--check") == Outcome(0, "", "")
    assert cohort("results") == Outcome(0, "", "")


def test_the_readme_has_parts_of_different_commits(made: Home) -> None:
    """As the schemes are not all measured at once."""
    later = [
        x.model_copy(update={"commit": "ef01"}) for x in read_set(made.records / "small.jsonl")
    ]
    write_set(made.records / "later.jsonl", later)
    (made.templates / "README-later.md").write_text('{{ commit("small") }} {{ commit("later") }}\n')
    with pytest.raises(Failed, match="different commits"):
        pages.write(made)
    (made.templates / "README-later.md").write_text('{{ commit("later") }}\n')
    with pytest.raises(UsageError, match="has no lines .*README-later.md"):
        pages.write(made)
    mark = pages.BEGIN.format(template="README-later.md")
    (made.root / "README.md").write_text(f"{BEGIN}\n{pages.END}\n{mark}\n{pages.END}\n")
    pages.write(made)
    readme = (made.root / "README.md").read_text()
    assert readme == f"{BEGIN}\nKills: 20.\n{pages.END}\n{mark}\nef01\n{pages.END}\n"


SCHEMES = """{%- set rival = best("none", "tuned") -%}
{{ schemes([
  ["small", "`region`: blocks", "region", rival,
   [["kills", "killed"], ["launch_ms_p50", "launch"]]],
  ["small", "the same, tuned", "tuned", "none", [["kills", "killed"]]],
  ["later", "`region` later", "region", rival, [["launch_ms_p50", "launch"]]],
]) }}

{{ times("later", "region", rival, "launch_ms_p50") }}
"""


def test_a_table_of_schemes_tells_the_commit_of_each(made: Home) -> None:
    """Its sets alone may be of several on one page."""
    first = read_set(made.records / "small.jsonl")
    later = [x.model_copy(update={"commit": "ef01"}) for x in first]
    write_set(made.records / "later.jsonl", later)
    template = made.templates / "README.md"
    template.write_text(SCHEMES)
    assert pages.write(made) == [made.root / "README.md"]
    text = (made.root / "README.md").read_text().partition(f"{BEGIN}\n")[2]
    assert text.splitlines()[:13] == [
        "| scheme | what is measured | with it | best rival |",
        "| --- | --- | --: | --: |",
        "| `region`: blocks | killed | 20 ≈ | 20 `none` |",
        "|  | launch | 5.4 ✓ | 9.6 `tuned` |",
        "| the same, tuned | killed | 20 ≈ | 20 `none` |",
        "| `region` later | launch | 5.4 ✓ | 9.6 `tuned` |",
        "",
        "- `region`, `tuned`: commit abcd, phone-2g, 20 launches, deterministic, seeds 1, 2",
        "- `region`: commit ef01, phone-2g, 20 launches, deterministic, seeds 1, 2",
        "",
        "✓ better than best rival, ✗ worse, ≈ the ranges over the seeds touch.",
        "",
        "0.56",
    ]
    write_set(made.records / "third.jsonl", first)
    template.write_text(SCHEMES + '{{ value("third", "none", "kills") }}')
    with pytest.raises(
        Failed, match="README.md: tables of different commits: .*table later of ef01"
    ):
        pages.write(made)
    write_set(made.records / "later.jsonl", [later[0].model_copy(update={"cpus": 4}), *later[1:]])
    template.write_text(SCHEMES)
    with pytest.raises(Failed, match="README.md: table later: runs of different cpus"):
        pages.write(made)


def test_runs_become_a_set_of_records(
    home: Home, cohort: Cohort, own_out: Path, small: Path
) -> None:
    path = home.records / "small.jsonl"
    assert cohort("results", "add", "small", "--from", own_out / "runs").stdout == f"{path}\n"
    assert path.read_text() == small.read_text()
    path.unlink()
    assert cohort("results", "add", "small", *sorted((own_out / "runs").iterdir())).code == 0
    assert path.read_text() == small.read_text()


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            *("docs/results/small.md", "5.4 [5.4, 5.5]", "5.3 [5.4, 5.5]"),
            "docs/results/small.md: line 9: table small: launch_ms_p50 of region: "
            "the page says 5.3 [5.4, 5.5] ✓, the records 5.4 [5.4, 5.5] ✓",
        ),
        (
            *("docs/results/small.md", "\n5.4 ms", "\n5.0 ms"),
            "docs/results/small.md: line 19: table small: launch_ms_p50 of region: "
            "the page says 5.0, the records 5.4",
        ),
        (
            *("docs/results/small.md", "✓ |", "✗ |"),
            "launch_ms_p50 of region: the page says 5.4 [5.4, 5.5] ✗, the records 5.4 [5.4, 5.5] ✓",
        ),
        ("docs/results/small.md", "Commit abcd", "Commit abce", "table small: commit: "),
        ("docs/results/small.md", "# A page", "# Another", "line 2: not what the template says"),
        ("docs/results/small.md", "| launch |", "| launch |\n| more |", "lines of the template"),
        (
            *("README.md", "Kills: 20", "Kills: 21"),
            "README.md: line 4: table small: kills of none: the page says 21, the records 20",
        ),
    ],
)
def test_a_page_that_is_not_its_records_is_named(
    made: Home, cohort: Cohort, file: str, old: str, new: str, said: str
) -> None:
    path = made.root / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    ended = cohort("results", "--check")
    assert ended.code == 1
    assert said in ended.stderr
    assert "hint: make the pages again: cohort results" in ended.stderr
    assert path.read_text() != text, "a check writes nothing"
    assert cohort("results").stdout == f"{path}\n"
    assert path.read_text() == text


def test_a_picture_that_is_not_of_the_records_is_named(made: Home, cohort: Cohort) -> None:
    template = made.templates / "results" / "small.md"
    bars = PICTURE.replace("ui_order", "kills").replace(", orders=True", "")
    template.write_text(f"{TEMPLATE}{PICTURE}{bars}")
    said = "docs/results/small.md: small-ui_order.svg: the picture is not of the records"
    assert said in cohort("results", "--check").stderr
    assert cohort("results").code == 0
    assert cohort("results", "--check").code == 0
    assert (
        "![UI](small-ui_order.svg)\n\n![UI](small-kills.svg)\n"
        in (made.results / "small.md").read_text()
    )
    change(made, 0, metrics=read_set(made.records / "small.jsonl")[2].metrics | {"kills": 20})
    assert said in cohort("results", "--check").stderr
    assert "small-kills.svg" not in cohort("results", "--check").stderr


def test_what_is_made_of_no_template_is_named(made: Home, cohort: Cohort) -> None:
    """Nothing says what the figures of such pages and pictures are of."""
    (made.results / "old.md").write_text("Kills: 20.\n")
    (made.results / "small-ui.svg").write_text("<svg/>")
    (made.results / "history.toml").write_text("")
    said = cohort("results", "--check").stderr
    assert "docs/results/old.md: has no template; history is in docs/decisions\n" in said
    assert "docs/results/small-ui.svg: no page makes it; history is in docs/decisions\n" in said
    assert said.count("history is in") == 2
    for name in ("old.md", "small-ui.svg"):
        (made.results / name).unlink()
    assert cohort("results", "--check") == Outcome(0, "", "")


def test_a_page_that_cannot_be_made_keeps_its_pictures(made: Home, cohort: Cohort) -> None:
    """Only what is the matter with it is told."""
    (made.templates / "README.md").write_text(PICTURE)
    assert cohort("results").code == 0
    assert "![UI](docs/results/small-ui_order.svg)" in (made.root / "README.md").read_text()
    assert cohort("results", "--check").code == 0
    (made.templates / "README.md").write_text(f"{PICTURE}{{{{ commit('large') }}}}")
    said = cohort("results", "--check").stderr
    assert "there are no records 'large'" in said
    assert "no page makes it" not in said


def change(home: Home, line: int, **values: object) -> None:
    """Write other values into a record."""
    path = home.records / "small.jsonl"
    lines = path.read_text().splitlines()
    lines[line] = json.dumps({**json.loads(lines[line]), **values})
    path.write_text("".join(f"{x}\n" for x in lines))


def test_other_records_make_the_page_wrong(made: Home, cohort: Cohort) -> None:
    kills = read_set(made.records / "small.jsonl")[0].metrics | {"kills": 22}
    change(made, 0, metrics=kills)
    said = cohort("results", "--check").stderr
    assert "docs/results/small.md: line 8: table small: kills of none: the page says 20, " in said
    assert "README.md: line 4: table small: kills of none" in said


@pytest.mark.parametrize("key", ["commit", "tree_id", "guest_id", "qemu", "gcc"])
def test_records_of_two_builds_make_no_table(made: Home, cohort: Cohort, key: str) -> None:
    change(made, 2, **{key: "ffff"})
    ended = cohort("results", "--check")
    assert ended.code == 1
    assert f"docs/results/small.md: table small: runs of different {key}: none (seed 1) has " in (
        ended.stderr
    )
    assert "region (seed 1) has ffff" in ended.stderr
    assert "README.md: table small: runs of different" in ended.stderr
    assert cohort("results").code == 1


def test_records_of_two_phones_make_no_table(made: Home, cohort: Cohort) -> None:
    change(made, 2, memory_mb=1024)
    assert "table small: runs of different memory_mb" in cohort("results", "--check").stderr


def test_tables_of_two_commits_make_no_page(made: Home, cohort: Cohort) -> None:
    others = [
        x.model_copy(update={"commit": "ef01"}) for x in read_set(made.records / "small.jsonl")
    ]
    write_set(made.records / "other.jsonl", others)
    template = made.templates / "results" / "small.md"
    template.write_text(f'{TEMPLATE}\n{{{{ value("other", "none", "kills") }}}}\n')
    said = cohort("results", "--check")
    assert said.code == 1
    assert "tables of different commits: table small of abcd, table other of ef01" in said.stderr


@pytest.mark.parametrize(
    ("template", "code", "said"),
    [
        ("{{ value('small', 'cpb', 'kills') }}", 1, "table small: no records of cpb"),
        ("{{ value('small', 'none', 'kils') }}", 1, "there is no metric kils"),
        ("a\n{{ table( }}", 2, "small.md:2: "),
        ("{{ tables() }}", 2, "'tables' is undefined"),
        ("{{ value('small') }}", 2, "missing 2 required positional arguments"),
    ],
)
def test_a_template_that_asks_for_what_is_not_there(
    made: Home, cohort: Cohort, template: str, code: int, said: str
) -> None:
    (made.templates / "results" / "small.md").write_text(template)
    for words in (("results", "--check"), ("results",)):
        ended = cohort(*words)
        assert (ended.code, said in ended.stderr) == (code, True), ended.stderr


def test_a_set_that_is_not_there_hides_no_other_page(made: Home, cohort: Cohort) -> None:
    """What pages with records have wrong is told, too."""
    large = made.templates / "results" / "large.md"
    large.write_text("{{ value('large', 'none', 'kills') }}")
    readme = made.root / "README.md"
    readme.write_text(readme.read_text().replace("Kills: 20", "Kills: 21"))
    checked = cohort("results", "--check")
    assert checked.code == 1
    assert "results/large.md: there are no records 'large'" in checked.stderr
    assert "README.md: line 4: table small: kills of none" in checked.stderr
    assert cohort("results").code == 2


def test_a_readme_without_marks_is_told(made: Home, cohort: Cohort) -> None:
    (made.root / "README.md").write_text("# R\n")
    assert "README.md: has no lines <!-- results: " in cohort("results").stderr


def test_seeds_that_not_all_have_are_told(home: Home, cohort: Cohort, own_out: Path) -> None:
    made_run(own_out / "runs", "region", 3, 0.5)
    assert cohort("results", "add", "small", own_out / "runs").code == 0
    assert cohort("results").code == 0
    text = (home.results / "small.md").read_text()
    assert "seeds 1, 2 of none, tuned; 1, 2, 3 of region: median" in text
    assert "    cohort compare none tuned --workload phone-2g --launches 20 --seeds 1,2\n" in text
    assert "    cohort compare region --workload phone-2g --launches 20 --seeds 1,2,3\n" in text


def test_one_seed_has_no_spread(home: Home, cohort: Cohort, own_out: Path) -> None:
    runs = [own_out / "runs" / f"phone-2g-{x}-s1" for x in ("region", "none", "tuned")]
    assert cohort("results", "add", "small", "--from", *runs).code == 0
    assert cohort("results").code == 0
    text = (home.results / "small.md").read_text()
    assert "seeds 1.\n" in text
    assert "≈ less than a twentieth between them." in text
    assert "[" not in text.replace("![UI]", "")


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
    assert "one of the three" in cohort("results", "--check", "--sql", "SELECT 1").stderr
    assert "one of the three" in cohort("results", "--check", "--parquet", own_out).stderr


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


def test_records_can_be_asked(made: Home, cohort: Cohort) -> None:
    query = "SELECT label, median(launch_ms_p50) AS ms, max(bytes) AS x FROM runs GROUP BY 1"
    ended = cohort("results", "--json", "--sql", query.replace("max(bytes)", "max(fio_s)"))
    rows = {row["label"]: row for row in json.loads(ended.stdout)}
    assert rows["none"] == {"label": "none", "ms": pytest.approx(10.66, abs=0.01), "x": None}
    assert "Binder Error" in cohort("results", "--sql", query).stderr
    table = cohort("results", "--sql", "SELECT name, seed, fio_s FROM runs LIMIT 1").stdout
    assert [line.split() for line in table.splitlines()[1::2]][1:] == [["small", "1", "-"]]


def test_a_query_reads_no_file(made: Home) -> None:
    secret = made.root / "README.md"
    for query in (f"SELECT * FROM read_text('{secret}')", f"COPY (SELECT 1) TO '{secret}.csv'"):
        with pytest.raises(UsageError, match="disabled|Permission"):
            ask(made.records, made.root, query)
    assert not Path(f"{secret}.csv").exists()


def test_runs_in_out_and_what_their_guests_said_can_be_asked(home: Home, cohort: Cohort) -> None:
    def rows(query: str) -> list[dict[str, object]]:
        done = cohort("results", "--json", "--sql", query)
        assert done.code == 0, done.stderr
        found = json.loads(done.stdout)
        assert isinstance(found, list)
        return found

    for run in (paths.out_dir() / "runs").iterdir():
        (run / "metrics.json").write_text('{"kills": 7}')  # of another definition
    (run / "metrics.json").unlink()
    made = rows("SELECT run, seed, commit, page_size, kills, fio_s FROM Made ORDER BY run")
    assert len(made) == 6
    assert made[0] == {
        **{"run": "phone-2g-none-s1", "seed": 1, "commit": "abcd"},
        **{"page_size": 4096, "kills": 20.0, "fio_s": None},
    }
    query = (
        "SELECT run, count(*) n, max(record->>'app') app FROM events WHERE r = 'kill' GROUP BY 1"
    )
    assert rows(f"{query} ORDER BY 1")[0] == {"run": "phone-2g-none-s1", "n": 20, "app": "b"}
    assert rows("SELECT 'nan'::DOUBLE AS x, 'inf'::DOUBLE AS y") == [{"x": None, "y": None}]
    (run / "records.jsonl").write_text("{")
    assert cohort("results", "--sql", "SELECT count(*) FROM events").code == 1
    made = rows(f"SELECT kills FROM made WHERE run = '{run.name}'")
    assert made == [{"kills": None}]
    (run / "records.jsonl").unlink()
    bad = cohort("results", "--sql", "SELECT * FROM made")
    assert (bad.code, f"{run.name} is no finished run" in bad.stderr) == (2, True)
    (run / "meta.json").write_text("{")
    bad = cohort("results", "--sql", "SELECT * FROM made")
    assert (bad.code, "meta.json: not what a run leaves" in bad.stderr) == (2, True)


def test_a_bad_query_is_told_with_the_tables_and_their_columns(made: Home, cohort: Cohort) -> None:
    for query in ("SELECT kils FROM runs", "SELECT * FROM run", "SELEC 1"):
        done = cohort("results", "--sql", query)
        assert (done.code, done.stdout) == (2, "")
        assert "  runs: name, label, policy, seed, workload, launches," in done.stderr
        assert "  made: run, policy, seed," in done.stderr
        assert "  events: run, r, t, record\n" in done.stderr
        assert re.search(r"  runs and made besides: .*\bkills, ", done.stderr)
    for table in ("made", "events"):
        done = cohort("results", "--sql", f"SELECT * FROM {table}")
        assert (done.code, "there are no finished runs" in done.stderr) == (2, True)
    assert "--json is how --sql answers" in cohort("results", "--json").stderr


def test_an_answer_is_shown_as_it_is(made: Home, cohort: Cohort) -> None:
    """Brackets are no styles, and JSON has no number that is none, however deep it is."""
    said = cohort("results", "--sql", "SELECT '[/x]' AS \"[/y]\", '[red]hello' AS b")
    assert said.code == 0, said.stderr
    for word in ("[/x]", "[/y]", "[red]hello"):
        assert word in said.stdout
    deep = "['nan'::DOUBLE, 1] AS a, {'x': ['inf'::DOUBLE]} AS b, MAP {DATE '2026-01-01': 1} AS c"
    said = cohort("results", "--json", "--sql", f"SELECT {deep}")
    assert json.loads(said.stdout) == [
        {"a": [None, 1.0], "b": {"x": [None]}, "c": {"2026-01-01": 1}}
    ]
    twice = cohort("results", "--json", "--sql", "SELECT kills, kills FROM runs")
    assert (twice.code, "two columns are called kills" in twice.stderr) == (2, True)


@pytest.mark.parametrize("query", ["", " ", "-- only a remark"])
def test_a_text_without_a_query_is_told(made: Home, cohort: Cohort, query: str) -> None:
    done = cohort("results", "--sql", query)
    assert (done.code, "there is no query in it" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("words", ["--check", "--json", "--sql broken", "--parquet x"])
def test_options_of_the_pages_go_with_no_other_verb(made: Home, cohort: Cohort, words: str) -> None:
    done = cohort("results", *words.split(), "history")
    assert (done.code, "do not go with history" in done.stderr) == (2, True), done.stderr


@pytest.fixture
def same_runs(
    home: Home, cohort: Cohort, own_out: Path, monkeypatch: pytest.MonkeyPatch
) -> list[RunSpec]:
    """A set `small` that is kept, and runs which turn out as they were; those that were asked."""
    asked: list[RunSpec] = []

    def execute(specs: Sequence[RunSpec], *_: object) -> list[runs.RunDir]:
        asked.extend(specs)
        places = [own_out / "runs" / f"phone-2g-{x.policy.name}-s{x.seed}" for x in specs]
        return [runs.RunDir(place) for place in places]

    monkeypatch.setattr(runs, "execute_matrix", execute)
    monkeypatch.setattr(again, "git_id", lambda: "abcd")
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


def test_a_set_is_had_again_to_the_byte(
    home: Home, cohort: Cohort, same_runs: list[RunSpec]
) -> None:
    path = home.records / "small.jsonl"
    done = cohort("results", "again", "small", "--verify")
    assert (done.code, done.stdout) == (0, f"{path}\n"), done.stderr
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
    odd = [x.model_copy(update={"command": "cohort doctor --fix"}) for x in small]
    write_set(home.records / "odd.jsonl", odd)
    for name, said in (
        ("history", "cohort results history --last"),
        ("odd", "`cohort doctor --fix` leaves no runs to keep"),
        ("gone", "there are no records 'gone'"),
    ):
        done = cohort("results", "again", "small", name)
        assert (done.code, said in done.stderr, same_runs) == (2, True, []), done.stderr
    monkeypatch.setattr(again, "git_id", lambda: "abcd-dirty")
    done = cohort("results", "again", "small")
    assert (done.code, "small is of no commit" in done.stderr, same_runs) == (2, True, [])


def test_a_wheel_has_no_pages(cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "CHECKOUT", None)
    assert cohort("results").code == 4


def test_a_wheel_asks_the_runs_that_were_made(
    home: Home, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "CHECKOUT", None)
    for table in ("made", "events"):
        done = cohort("results", "--json", "--sql", f"SELECT count(DISTINCT run) AS n FROM {table}")
        assert (done.code, done.stdout) == (0, '[{"n": 6}]\n'), done.stderr
    kept = cohort("results", "--sql", "SELECT * FROM runs")
    assert (kept.code, "the records are in a checkout" in kept.stderr) == (4, True)


def test_the_tables_are_files_for_other_programs(
    home: Home, cohort: Cohort, tmp_path: Path
) -> None:
    """What pandas reads of them is what a query answers."""
    assert cohort("results", "add", "small", paths.out_dir() / "runs").code == 0
    into = tmp_path / "it's new" / "tables"
    done = cohort("results", "--parquet", into)
    assert done.code == 0, done.stderr
    written = [Path(line) for line in done.stdout.splitlines()]
    assert written == [into / f"{name}.parquet" for name in ("runs", "made", "events")]
    assert sorted(into.iterdir()) == sorted(written), "no part is left"
    for path in written:
        count = f"SELECT count(*) AS n FROM {path.stem}"
        asked = json.loads(cohort("results", "--json", "--sql", count).stdout)[0]["n"]
        assert duckdb.read_parquet(str(path)).shape[0] == asked > 0
    kills = duckdb.read_parquet(str(written[0])).project("kills").fetchall()
    assert kills == ask(home.records, paths.made("runs"), "SELECT kills FROM runs")[1]
    assert cohort("results", "--parquet", "/proc/x").code == 8
    assert cohort("results", "--parquet", written[0]).code == 2


def test_without_runs_no_table_is_written(own_out: Path, cohort: Cohort, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no finished runs"):
        export(None, paths.made("runs"), tmp_path / "tables")


def test_a_long_cell_is_folded_and_not_cut(made: Home, cohort: Cohort) -> None:
    said = cohort("results", "--sql", "SELECT repeat('x', 300) AS record")
    assert (said.code, "…" in said.stdout) == (0, False), said.stderr
    assert said.stdout.count("x") == 300


def test_an_aim_is_a_bound_and_what_is_measured(small: Path) -> None:
    sheet = Sheet("page", small.parent)
    plain = figures.plain
    assert plain(sheet.aim("small", "region", "kills", by="none", most=1)) == "≤ 1 | 1 ✓"
    said = plain(sheet.aim("small", "region", "launch_ms_p50", by="none", most=0.25))
    assert said == "≤ 0.25 | 0.507 **✗**"
    assert plain(sheet.aim("small", "none", "kills", least=21)) == "≥ 21 | 20 **✗**"
    said = plain(sheet.aim("small", "none", "launch_ms_p50", over="region", least=0.9 * 6))
    assert said == "≥ 5.4 | 5.25 **✗**"
    said = plain(sheet.aim("small", "region", "launch_ms_p50", by="none", most=2 / 3))
    assert said == "≤ 0.667 | 0.507 ✓"
    with pytest.raises(Failed, match="kills: an aim has one bound"):
        sheet.aim("small", "region", "kills")
    with pytest.raises(Failed, match="kills: an aim is in times of another column, or more than"):
        sheet.aim("small", "region", "kills", by="none", over="tuned", most=1)
    with pytest.raises(Failed, match="buffer_fail: none has 0"):
        sheet.aim("small", "region", "buffer_fail", by="none", most=1)
