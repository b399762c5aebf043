"""The house of the lab: which folder of src/cohort imports of which, and that there is no circle.

A file beside the folders is a part of its own: two folders that need each other by way of one are
in a circle, too.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import guest_house

LAB = "cohort"

Arrow = tuple[str, str]
"""From a folder, or a file beside the folders, to one that it imports of."""


def texts(root: Path) -> dict[str, str]:
    """The content of each file of the lab at `root`, by its path there."""
    files = sorted(root.rglob("*.py"))
    return {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in files}


def arrows(files: Mapping[str, str]) -> dict[Arrow, set[str]]:
    """From which part to which other, and by which imports: `kernel/kunit.py: vm/guest.py`.

    Those count, too, that a function makes when it is called, or that are for types alone.
    """
    found: dict[Arrow, set[str]] = {}
    for name, text in files.items():
        for other in _imported(text, files):
            start, end = Path(name).parts[0], Path(other).parts[0]
            if start != end:
                found.setdefault((start, end), set()).add(f"{name}: {other}")
    return found


def _imported(text: str, files: Mapping[str, str]) -> Iterator[str]:
    """The files of the lab that one imports; a KeyError for one that is not there."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "an import that begins at its own folder"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (_file(name, files) for name in names if name.split(".")[0] == LAB)


def _file(name: str, files: Mapping[str, str]) -> str:
    """Where what is imported is: a module, or something in the module or package of the rest."""
    path = "/".join(name.split(".")[1:])
    within = str(Path(path).parent)
    for file in (f"{path}.py", f"{path}/__init__.py", f"{within}.py", f"{within}/__init__.py"):
        if str(Path(file)) in files:
            return str(Path(file))
    raise KeyError(name)


def circle(found: Mapping[Arrow, set[str]]) -> list[str]:
    """A circle of parts, a line a step with all the imports that make it; nothing without one."""
    parts = guest_house.circle(found)
    return [
        f"{step[0]} -> {step[1]}: {', '.join(sorted(found[step]))}"
        for step in zip(parts, parts[1:], strict=False)
    ]
