"""What unit tests of results share: checkouts with runs, or with the records and pages of such."""

import shutil
from pathlib import Path

import pytest

from cohort.results import collect, pages
from cohort.results.pages import Home
from cohort.results.records import write_set
from made_results import checkout, made_run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_out: Path) -> Home:
    """A checkout with templates and with runs in out/, and without records."""
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
