"""Pages of results: made from records and templates, and checked against them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import paths
from cohort.errors import Failed, UsageError
from cohort.results import figures, pages
from cohort.results.pages import Home
from cohort.results.records import read_set, write_set
from cohort.results.sheet import Sheet
from made_results import BEGIN, TEMPLATE, made_run
from tests_support import Outcome

Cohort = Callable[..., Outcome]
PICTURE = '\n{{ picture("small", "ui_order", ["none", "region"], "UI", orders=True) }}\n'


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
    assert "Records `small`: commit abcd; phone-2g, 20 launches, 2048 MiB, 2 CPUs;" in text
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
        ("docs/results/small.md", "commit abcd", "commit abce", "table small: commit: "),
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


def test_a_figure_of_fewer_seeds_than_the_others_is_told(made: Home) -> None:
    """A median of one seed among those of two looks as sure as they do."""
    records = read_set(made.records / "small.jsonl")
    for record in records:
        if (record.label, record.seed) == ("region", 2):
            del record.metrics["kills"]
    write_set(made.records / "small.jsonl", records)
    pages.write(made)
    text = (made.results / "small.md").read_text()
    assert "| apps killed (`kills`) | 20 | 20 `none` | 20 (1 of 2 seeds) |" in text


def test_one_seed_has_no_spread(home: Home, cohort: Cohort, own_out: Path) -> None:
    runs = [own_out / "runs" / f"phone-2g-{x}-s1" for x in ("region", "none", "tuned")]
    assert cohort("results", "add", "small", "--from", *runs).code == 0
    assert cohort("results").code == 0
    text = (home.results / "small.md").read_text()
    assert "seeds 1.\n" in text
    assert "≈ less than a twentieth between them." in text
    assert "[" not in text.replace("![UI]", "")


@pytest.mark.parametrize("words", ["--check", "--json", "--sql broken", "--parquet x"])
def test_options_of_the_pages_go_with_no_other_verb(made: Home, cohort: Cohort, words: str) -> None:
    done = cohort("results", *words.split(), "history")
    assert (done.code, "do not go with history" in done.stderr) == (2, True), done.stderr


def test_a_wheel_has_no_pages(cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "CHECKOUT", None)
    assert cohort("results").code == 4


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
    found = 1.03 / 2.03
    said = plain(sheet.aim("small", "region", "launch_ms_p50", by="none", most=found - 1e-5))
    assert said == "≤ 0.50738 | 0.50739 **✗**"
    with pytest.raises(Failed, match="kills: an aim has one bound"):
        sheet.aim("small", "region", "kills")
    with pytest.raises(Failed, match="kills: an aim is in times of another column, or more than"):
        sheet.aim("small", "region", "kills", by="none", over="tuned", most=1)
    with pytest.raises(Failed, match="buffer_fail: none has 0"):
        sheet.aim("small", "region", "buffer_fail", by="none", most=1)


def test_an_aim_is_of_all_seeds(small: Path, tmp_path: Path) -> None:
    records = read_set(small)
    less = {name: x for name, x in records[0].metrics.items() if name != "kills"}
    fewer = [records[0].model_copy(update={"metrics": less}), *records[1:]]
    write_set(tmp_path / "small.jsonl", fewer)
    sheet, label = Sheet("page", tmp_path), records[0].label
    with pytest.raises(Failed, match=f"kills: {label} has it of some seeds alone"):
        sheet.aim("small", label, "kills", most=1)
