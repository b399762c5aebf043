"""Where things are: the repository's own directories and everything made, under `out/`."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OVERLAY = ROOT / "kernel"
PATCHES = ROOT / "patches"
CONFIGS = ROOT / "configs"
GUEST = ROOT / "guest"
WORKLOADS = ROOT / "workloads"
POLICIES = ROOT / "policies"
STUDIES = ROOT / "studies"


def out_dir() -> Path:
    """The directory of everything made: `out/`, or the value of COHORT_OUT. Created."""
    out = Path(os.environ.get("COHORT_OUT") or ROOT / "out").absolute()
    out.mkdir(parents=True, exist_ok=True)
    return out


def made(*parts: str) -> Path:
    """A directory under `out_dir()`, created. Resolved: a build must not see it by two names."""
    path = out_dir().joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()
