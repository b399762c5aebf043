"""Helpers that are no fixtures."""

from pathlib import Path


def snapshot(tree: Path) -> dict[str, bytes | None]:
    """Every directory (None) and file of a tree with its content."""
    return {
        str(path.relative_to(tree)): path.read_bytes() if path.is_file() else None
        for path in sorted(tree.rglob("*"))
    }
