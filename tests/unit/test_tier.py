"""What a tier took: measured, kept when asked, and told on a page."""

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest

import tier
from cohort.errors import UsageError
from cohort.results import pages, tiers
from cohort.results.figures import Figures, plain
from tests_support import git

# A target says what pytest would, and ends as the environment says.
MAKEFILE = """\
test night:
\t@echo "tests/unit/test_a.py::test_b PASSED"; $(SAY)
\t@echo "====== 3 failed, 1234 passed, 2 skipped, 1 warning, 1 error in 62.10s (0:01:02) ======"
\t@$(END)
suites:
\t@$(MAKE) night END=true; echo "failed, or differ:  night fio" >&2; exit 1
"""
RUN = tiers.Run(
    tier="test",
    cache="warm",
    commit="abc",
    date=datetime.date(2026, 1, 2),
    cores=2,
    minutes=19.5,
    compiled=2000,
    cached=1500,
    passed=1234,
    failed=0,
    skipped=2,
)
Keep = Callable[..., tuple[int, str, str]]


def kept(checkout: Path) -> list[tiers.Run]:
    """The runs that a checkout has."""
    return tiers.read(checkout / "docs" / "results" / tiers.FILE)


def pages_of(root: Path) -> Path:
    """A directory with the page and its template."""
    for name in (f"templates/{tier.PAGE}", tier.PAGE):
        path = root / "docs" / name
        path.parent.mkdir(parents=True)
        path.write_text("# Suites\n\n{{ tiers() }}\n")
    return root


@pytest.fixture
def checkout(tmp_path: Path, own_out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A commit with tiers that end at once and the page's template; the compiler has no cache."""
    monkeypatch.setattr(tier, "compiler", tier.Compiler)
    monkeypatch.setenv("SAY", "true")
    monkeypatch.setenv("END", "true")
    root = pages_of(tmp_path / "checkout")
    (root / "Makefile").write_text(MAKEFILE)
    git(tmp_path, "init", "-q", root.name)
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "x")
    return root


@pytest.fixture
def keep(checkout: Path, capfd: pytest.CaptureFixture[str]) -> Keep:
    """Run the command on the checkout: exit code, stdout and stderr."""

    def call(*words: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = tier.main(words, checkout)
        return (code, *capfd.readouterr())

    return call


def test_a_run_is_kept_with_what_it_was_of(checkout: Path, keep: Keep) -> None:
    code, out, err = keep("test")
    assert (code, out.splitlines()[-1][:8]) == (0, "====== 3")
    assert "kept in " in err
    [run] = kept(checkout)
    commit = git(checkout, "rev-parse", "HEAD")
    assert commit.startswith(run.commit)
    assert (run.tier, run.cache, run.differ) == ("test", "empty", [])
    assert (run.passed, run.failed, run.skipped) == (1234, 4, 2)
    assert (datetime.datetime.now(datetime.UTC).date() - run.date).days <= 1
    page = (checkout / "docs" / tier.PAGE).read_text()
    row = f"| 0.1 ✓ | 1,234 | 4 | 2 |  | {run.commit} | {run.date} |"
    assert row in page or run.cores > tiers.AIM_CORES
    assert pages.check(pages.Home(checkout)) == []


def test_the_exit_code_is_the_tiers_and_a_failure_is_kept(
    checkout: Path, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("END", "exit 1")
    assert keep("test")[0] == 2
    assert len(kept(checkout)) == 1


@pytest.mark.parametrize("end", ["exit 2", "kill -TERM $$PPID", "exit 5"])
def test_a_run_that_was_ended_is_not_kept(
    end: str, checkout: Path, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest ends with 2 after Ctrl-C, and with 5 if it found no test."""
    monkeypatch.setenv("END", end)
    code, _, err = keep("test")
    assert code != 0
    assert "not kept: it was ended" in err
    assert kept(checkout) == []


def test_of_suites_it_is_kept_which_differ(checkout: Path, keep: Keep) -> None:
    code, out, _ = keep("suites")
    assert (code, out.splitlines()[-2]) == (2, "failed, or differ:  night fio")
    [run] = kept(checkout)
    assert (run.tier, run.differ, run.passed) == ("suites", ["night", "fio"], 1234)


def test_a_second_run_takes_the_place_of_the_first(
    checkout: Path, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this writes itself is no change of the checkout. One of another cache has its row."""
    monkeypatch.setattr(tier, "compiler", lambda: tier.Compiler(files=1))
    assert [keep("test")[0], keep("night")[0], keep("test")[0]] == [0, 0, 0]
    monkeypatch.setattr(tier, "compiler", tier.Compiler)
    keep("test")
    found = [(run.tier, run.cache) for run in kept(checkout)]
    assert found == [("test", "empty"), ("test", "warm"), ("night", "warm")]


def test_with_a_kernel_that_was_built_nothing_is_empty(
    checkout: Path, keep: Keep, own_out: Path
) -> None:
    (own_out / "kernel" / "base").mkdir(parents=True)
    (own_out / "kernel" / "base" / "cohort.stamp").touch()
    keep("test")
    assert kept(checkout)[0].cache == "warm"


def test_a_run_of_a_changed_checkout_is_refused_before_it(checkout: Path, keep: Keep) -> None:
    (checkout / "new").touch()
    code, out, err = keep("test")
    assert (code, out) == (2, "")
    assert "the checkout has changes, as in new" in err


def test_a_run_is_of_one_commit(
    checkout: Path, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAY", "touch meanwhile")
    code, _, err = keep("test")
    assert (code, kept(checkout)) == (2, [])
    assert "as in meanwhile" in err


def test_another_checkout_may_keep_it(checkout: Path, keep: Keep, tmp_path: Path) -> None:
    other = pages_of(tmp_path / "other")
    keep("test", "--into", str(other))
    assert (len(kept(other)), kept(checkout)) == (1, [])
    assert git(checkout, "status", "--porcelain") == ""


def test_where_nothing_can_be_kept_nothing_runs(keep: Keep, tmp_path: Path) -> None:
    code, out, err = keep("test", "--into", str(tmp_path))
    assert (code, out) == (2, "")
    assert "has no docs/results" in err


def test_options_of_pytest_and_make_do_not_reach_the_tier(
    checkout: Path, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With them not all of it would run."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k one")
    monkeypatch.setenv("MAKEFLAGS", "n")
    monkeypatch.setenv("SAY", 'test -z "$$PYTEST_ADDOPTS"')
    assert keep("test")[0] == 0
    assert len(kept(checkout)) == 1


def test_the_compilers_cache_is_read() -> None:
    said = "stats_updated_timestamp\t1\ndirect_cache_hit\t147\npreprocessed_cache_hit\t8\n"
    said += "cache_miss\t1696\nfiles_in_cache\t3050\n"
    assert tier.read_compiler(said) == tier.Compiler(3050, 155, 1696)
    assert tier.read_compiler("") == tier.Compiler()


def test_cases_are_counted_as_pytest_says() -> None:
    assert tier.counts("= 1 passed in 0.09s =\n===== 2 passed, 3 xfailed in 4.00s =====\n") == {
        **{"passed": 3, "failed": 0, "skipped": 0}
    }
    assert tier.counts("==== slowest 15 durations ====\n== no tests ran in 0.01s ==\n") == {
        **{"passed": 0, "failed": 0, "skipped": 0}
    }


def test_a_page_without_runs_says_so() -> None:
    lines = plain(tiers.table([], Figures())).splitlines()
    assert len(lines) == 2 + len(tiers.TIERS)
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].startswith("| `make test`, empty cache | 35 min | not run yet |  |")
    assert lines[5].startswith("| `make suites` | a night | not run yet |")


def test_a_page_has_a_sign_for_an_aim_on_its_machine() -> None:
    late = RUN.model_copy(update={"minutes": 20.1})
    many = RUN.model_copy(update={"cores": 16})
    found = [plain(tiers.table([run], Figures())).splitlines()[3] for run in (RUN, late, many)]
    assert [line.split(" | ")[2] for line in found] == ["19.5 ✓", "20.1 **✗**", "19.5"]
    assert found[0].endswith("| 1,234 | 0 | 2 |  | abc | 2026-01-02 | 2 | 1,500 of 2,000 |")


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / tiers.FILE
    night = RUN.model_copy(update={"tier": "suites", "differ": ["fio", "a+b"]})
    tiers.keep(path, night)
    tiers.keep(path, RUN)
    assert tiers.read(path) == [RUN, night]
    with pytest.raises(UsageError, match="no tier unit"):
        tiers.keep(path, RUN.model_copy(update={"tier": "unit"}))
    path.write_text(path.read_text().replace("cores = 2", "cores = 0", 1))
    with pytest.raises(UsageError, match=r"tiers\.toml:\d+: run\.0\.cores"):
        tiers.read(path)
