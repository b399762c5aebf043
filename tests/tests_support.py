"""Helpers that are no fixtures."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


def snapshot(tree: Path) -> dict[str, bytes | None]:
    """Every directory (None) and file of a tree with its content."""
    return {
        str(path.relative_to(tree)): path.read_bytes() if path.is_file() else None
        for path in sorted(tree.rglob("*"))
    }
