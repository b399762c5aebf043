"""Runs with all that their records need, and a checkout for the pages that are made of these."""

import json
from pathlib import Path

import pytest

from cohort import paths
from cohort.policy import load_policy
from cohort.results import pages
from cohort.results.pages import Home
from cohort.run_check import check_run
from cohort.run_spec import RunSpec
from made_runs import make_run

TEMPLATE = """# A page

{{ table("small", ["none", best("none", "tuned", title="best of stock"), "region"],
         ["kills", ["launch_ms_p50", "launch"]], mark="region") }}

A launch takes {{ times("small", "region", best("none", "tuned"), "launch_ms_p50") }} times as long,
{{ value("small", "region", "launch_ms_p50") }} ms.
"""
BEGIN = pages.BEGIN.format(template="README.md")

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
