"""What unit tests share: runs with all that they need; and for those of results checkouts with
runs, or with the records and pages of such."""

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cohort import runs
from cohort.kernel.build import Kernel
from cohort.results import pages
from cohort.results.pages import Home
from cohort.results.records import write_set
from cohort.run_check import check_run
from cohort.run_spec import RunSpec
from cohort.runs import Plan
from cohort.sets import collect
from cohort.vm.machine import Accel
from made_results import checkout, made_run


@pytest.fixture
def prepared(tmp_path: Path, own_out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel, guest program and storage are there, as far as the lab can tell."""
    for name in ("image", "config", "phone", "store"):
        (tmp_path / name).write_bytes(b"\0" * 512)
    made = Kernel(tmp_path / "image", tmp_path / "config", "6.12", "i" * 16, "t" * 16, "x86_64")
    monkeypatch.setattr(runs, "build", lambda *_: made)
    monkeypatch.setattr(runs, "build_guest", lambda *_, **__: tmp_path / "phone")
    monkeypatch.setattr(runs, "build_storage", lambda *_: tmp_path / "store")


@pytest.fixture(autouse=True)
def no_tools_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No guest is booted here, and `make unit` installs no QEMU."""
    monkeypatch.setattr(runs, "_check_tools", lambda *_, **__: None)


@pytest.fixture
def own_level() -> Iterator[None]:
    """How much is told may be set: it is as before when the test has ended."""
    logger = logging.getLogger("cohort")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture
def planned(tmp_path: Path, prepared: None) -> Callable[..., Plan]:
    """Make a run's plan, with a kernel of these ids."""

    def plan(spec: RunSpec, kernel_id: str = "i" * 64, tree_id: str = "t" * 64) -> Plan:
        arch = spec.kernel_spec.arch
        made = Kernel(tmp_path / "image", tmp_path / "config", "6.12", kernel_id, tree_id, arch)
        checked = check_run(spec)
        accel: Accel = "deterministic" if spec.accel == "deterministic" else "tcg"
        files = (tmp_path / "phone", tmp_path / "store")
        return Plan(spec, made, checked.workload, accel, *files, checked.conf)

    return plan


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
