"""Where things are: what the lab brings (kernel, guest, policies, ...) and everything it makes.

In a checkout, what it brings are the repository's directories, and what it makes is under the
repository's `out/`. A wheel has copies of those directories in the package (`hatch_build.py`), and
makes `out/` in the working directory: nothing is ever written beside the package.
"""

import os
from pathlib import Path

PACKED = Path(__file__).resolve().with_name("data")
CHECKOUT = None if PACKED.is_dir() else Path(__file__).resolve().parents[2]
ROOT = CHECKOUT or PACKED
OVERLAY = ROOT / "kernel"
PATCHES = ROOT / "patches"
CONFIGS = ROOT / "configs"
GUEST = ROOT / "guest"
WORKLOADS = ROOT / "workloads"
POLICIES = ROOT / "policies"
STUDIES = ROOT / "studies"
SUITES = ROOT / "suites"
COMMIT = PACKED / "commit"
"""The commit that a wheel was built from, if it was built from one."""


def out_dir() -> Path:
    """The directory of everything made: the value of COHORT_OUT, or `out/` of the checkout, or of
    the working directory without one. Created."""
    home = CHECKOUT or Path.cwd()
    out = Path(os.environ.get("COHORT_OUT") or home / "out").absolute()
    out.mkdir(parents=True, exist_ok=True)
    return out


def made(*parts: str) -> Path:
    """A directory under `out_dir()`, created. Resolved: a build must not see it by two names."""
    path = out_dir().joinpath(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()
