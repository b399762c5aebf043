"""What a wheel has beside the package: copies of the directories that the lab reads.

They go into `cohort/data`, where `cohort.paths` looks for them. An editable install has none: it
reads the checkout's.
"""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DIRECTORIES = (
    *("kernel", "patches", "configs", "guest", "workloads", "policies", "studies", "suites"),
)
DATA = "cohort/data"
DESCRIBE = ("git", "describe", "--always", "--abbrev=12")
# As `cohort.checkout.commit` asks: documents are no change, files that are packed are one.
CHANGES = (
    *("git", "status", "--porcelain", "--untracked-files=no", "--", "."),
    *(":(exclude)docs", ":(exclude)README.md"),
)
NEW = ("git", "ls-files", "--others", "--exclude-standard", "--", "src", *DIRECTORIES)


class DataHook(BuildHookInterface):
    """Hatchling calls it before and after it writes a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the directories, and a file with the commit; `version` is the kind of wheel."""
        if version == "editable":
            return
        root = Path(self.root)
        included = build_data["force_include"]
        included.update({str(root / name): f"{DATA}/{name}" for name in DIRECTORIES})
        if commit := _commit(root):
            self.scratch = tempfile.TemporaryDirectory()  # gone with the hook
            file = Path(self.scratch.name, "commit")
            file.write_text(f"{commit}\n")
            included[str(file)] = f"{DATA}/commit"


def _commit(root: Path) -> str:
    """The checkout's commit; nothing in an export, even one that lies in another repository."""
    if not (root / ".git").exists():
        return ""
    try:
        commit, *changes = (
            subprocess.run(argv, cwd=root, text=True, capture_output=True, check=False).stdout
            for argv in (DESCRIBE, CHANGES, NEW)
        )
    except FileNotFoundError:
        return ""
    return f"{commit.strip()}-dirty" if commit and any(changes) else commit.strip()
