"""Sizes that all count in have one home."""

import ast
from collections.abc import Iterator
from pathlib import Path

from cohort import paths, units

SOURCES = paths.ROOT / "src" / "cohort"


def assigned(path: Path) -> Iterator[str]:
    """The names that a module gives values at its top."""
    for line in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = line.targets if isinstance(line, ast.Assign) else []
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (name.id for name in names if isinstance(name, ast.Name))


def test_sizes_are_defined_once() -> None:
    home = SOURCES / "units.py"
    names = set(assigned(home))
    assert names == {"KIB", "MIB", "PAGE", "LARGE_PAGE"}
    again = {path.name for path in SOURCES.rglob("*.py") if names & set(assigned(path))}
    assert again == {home.name}


def test_sizes_are_what_they_say() -> None:
    assert (units.KIB, units.MIB) == (1024, 1024 * 1024)
    assert units.LARGE_PAGE % units.PAGE == 0
