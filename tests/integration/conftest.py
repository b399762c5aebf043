"""What the tests with guests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cohort import paths


def guests_alive() -> list[int]:
    """Process ids of QEMUs that write into our output directory."""
    mark = str(paths.out_dir()).encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:  # it ended meanwhile
            continue
        if b"qemu-system" in words.split(b"\0")[0] and mark in words:
            found.append(int(entry.parent.name))
    return found


@pytest.fixture(autouse=True)
def no_guest_is_left(out_of_tests: Path) -> Iterator[None]:
    """Every test here ends without a QEMU of its own."""
    yield
    assert guests_alive() == []


@pytest.fixture
def out_of_tests(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs of tests go aside, so that no guest of the user's, or of tests that run beside these,
    is taken for one of ours. What is kept by content is everybody's: a storage image has 1.3 GB."""
    real = paths.out_dir()
    out = real / os.environ.get("PYTEST_XDIST_WORKER", "tests")
    out.mkdir(exist_ok=True)
    for shared in ("kernel", "storage"):
        link = out / shared
        if not link.is_symlink():
            link.symlink_to(paths.made(shared))
    monkeypatch.setenv("COHORT_OUT", str(out))
    return out
