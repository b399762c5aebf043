"""The lab as a wheel: made here, installed elsewhere, where it has all that it needs."""

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import wheel_facts
from cohort import checkout, host, paths
from made_runs import make_run

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
FACTS = Path(wheel_facts.__file__)


class Elsewhere:
    """An environment outside the checkout that has the wheel, made of `commit`; `work` is where it
    is used."""

    def __init__(self, root: Path, commit: str) -> None:
        self.commit = commit
        self.bin = root / "venv" / "bin"
        self.work = root / "work"
        self.work.mkdir()
        venv.create(root / "venv", symlinks=True)
        self.packages = next((root / "venv").glob("lib/python*/site-packages"))

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in `work`; the exit code is the caller's to judge."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
        return host.run([self.bin / words[0], *words[1:]], cwd=self.work, env=kept)

    def files(self) -> set[Path]:
        """What is installed, without what Python compiled."""
        return {x for x in self.packages.rglob("*") if x.is_file() and x.suffix != ".pyc"}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    """Without network: what the lab depends on is what these tests run with."""
    root = tmp_path_factory.mktemp("wheel")
    build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", root, paths.ROOT)
    there = Elsewhere(root, checkout.commit())
    done = host.run([*PIP, *build])
    assert done.returncode == 0, done.stderr
    shared = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (there.packages / "shared.pth").write_text("".join(f"{path}\n" for path in shared))
    install = ("--python", there.bin / "python", "install", "--no-deps", "--no-index")
    done = host.run([*PIP, *install, "--no-compile", next(root.glob("cohort-*.whl"))])
    assert done.returncode == 0, done.stderr
    return there


def test_it_brings_what_the_checkout_has(elsewhere: Elsewhere) -> None:
    """Overlay, patches, guest, workloads, policies, studies, to the byte; and all of it loads."""
    done = elsewhere.run("python", FACTS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == wheel_facts.facts()
    ask = (
        "from cohort import checkout as c, paths; print(paths.__file__, paths.CHECKOUT, c.commit())"
    )
    said = elsewhere.run("python", "-c", ask).stdout.split()
    assert said == [str(elsewhere.packages / "cohort/paths.py"), "None", elsewhere.commit]


def test_its_verbs_find_their_data_and_write_into_the_working_directory(
    elsewhere: Elsewhere, tmp_path: Path
) -> None:
    before = elsewhere.files()
    assert "Verbs:" in elsewhere.run("cohort", "--help").stdout
    doctor = elsewhere.run("cohort", "doctor")
    assert doctor.returncode in (0, 3), doctor.stderr
    assert str(elsewhere.work / "out") in " ".join(doctor.stdout.split())
    assert "region-fig10" in elsewhere.run("cohort", "study", "--list").stdout
    refused = elsewhere.run("cohort", "compare", "none", "no-such-policy")
    assert refused.returncode == 2
    assert re.search(r"hint: all \d+: ls \S+/policies; the nearest is", refused.stderr)
    run = make_run(tmp_path, "region")
    report = elsewhere.run("cohort", "report", run)
    assert report.returncode == 0, report.stderr
    assert "<html" in (elsewhere.work / "out" / "report.html").read_text(encoding="utf-8")
    assert elsewhere.files() == before


@pytest.mark.skipif(not (host.find("make") and host.find("gcc")), reason="needs make and gcc")
def test_its_guest_compiles(elsewhere: Elsewhere) -> None:
    before = elsewhere.files()
    build = "from cohort import paths; from cohort.phone.initramfs import build_guest"
    done = elsewhere.run("python", "-c", f"{build}; print(build_guest(paths.made('guest')))")
    assert done.returncode == 0, done.stderr
    phone = Path(done.stdout.strip())
    assert phone.is_relative_to(elsewhere.work / "out")
    assert phone.read_bytes()[:4] == b"\x7fELF"
    assert elsewhere.files() == before


@pytest.mark.kernel
def test_its_series_is_the_one_on_a_tree(elsewhere: Elsewhere, tree: Path) -> None:
    """Put on by the checkout, known to the wheel."""
    done = elsewhere.run("cohort", "kernel", "patch", "--tree", tree, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("already applied: ")
