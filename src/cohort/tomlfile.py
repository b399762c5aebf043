"""TOML files that people write: read them, extend one by another, and say what is wrong where.

A bad file is a UsageError "file:line: key: what is wrong".
"""

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cohort import named
from cohort.errors import UsageError

EXTENDS = "extends"
"""The key of a file that takes what it does not say from another."""

Table = dict[str, Any]
Key = Sequence[str | int]

_KEY = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=")


def read(path: Path, kind: str, shipped: Path | None = None) -> tuple[str, Table]:
    """Text and content of a file; `kind` is what a message calls it. Where there is no such file
    the hint is one of those beside it, or of the `shipped` ones, which are in that directory."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except FileNotFoundError as error:
        hint = None if shipped is None else named.no_file(path, shipped)
        raise UsageError(f"{path}: no such {kind} file", hint) from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from error


def read_extending(
    path: Path,
    kind: str,
    shipped: Path,
    merge: Callable[[Table, Table], Table],
    check: Callable[[Path, Table], object],
    children: tuple[Path, ...] = (),
) -> Table:
    """A file's tables, merged over those of the file its `extends = "NAME"` names, if it does:
    a file beside it, or else one of the `shipped` ones, which are in that directory.

    The other file is checked first, so that its mistakes are told with its own lines. `children`
    are the files that led here.
    """
    text, data = read(path, kind, shipped)
    parent = data.pop(EXTENDS, None)
    if parent is None:
        return data
    where = f"{path}:{line_of(text, [EXTENDS])}: {EXTENDS}"
    base = path.parent / f"{parent}.toml"
    # A file called as the shipped one that it extends means that one.
    other = shipped / base.name
    if not base.is_file() or (base == path and other.is_file()):
        base = other
    if not isinstance(parent, str) or not base.is_file():
        names = sorted({x.stem for folder in (path.parent, shipped) for x in folder.glob("*.toml")})
        raise UsageError(
            f"{where}: no {kind} {parent!r} beside this file or in {shipped}",
            named.near(str(parent), names),
        )
    if base.resolve() in {one.resolve() for one in (path, *children)}:
        raise UsageError(f"{where}: goes round in a circle")
    inherited = read_extending(base, kind, shipped, merge, check, (path, *children))
    check(base, inherited)
    return merge(inherited, data)


def with_name(path: Path, data: Table, pattern: re.Pattern[str], rule: str) -> Table:
    """`data` with a name, the file's own if it says none. UsageError, with the rule of names, for a
    file that is called otherwise."""
    if "name" not in data and pattern.fullmatch(path.stem) is None:
        raise UsageError(f"{path}: the file is not called as {rule}", "give it a line: name = ...")
    return {"name": path.stem, **data}


def explain(
    path: Path,
    error: ValidationError,
    kind: str,
    model: type[BaseModel],
    besides: Sequence[str] = (),
) -> UsageError:
    """The first thing wrong. A message of ours may begin with its key: `app.mail: what`.

    For a key that `model` does not have, the hint is the nearest that it has somewhere, or one of
    those that such a file may have `besides`; for a word that is none of a few, the nearest. What
    stands in the place of a number, a table or a list is told with how that is written.
    """
    problem = _first(error)
    key, what = first_problem(error)
    what, hint = named.with_hint(what)
    line = line_of(path.read_text(encoding="utf-8"), key)
    if problem["type"] == "extra_forbidden":
        here = _keys_at(model.model_json_schema(), problem["loc"][:-1])
        here += besides if len(key) == 1 else ()
        hint = named.near(str(key[-1]), here) or named.near(str(key[-1]), _keys(model))
    if problem["type"] == "literal_error":
        words = re.findall(r"'([^']+)'", problem["ctx"]["expected"])
        hint = named.near(str(problem["input"]), words)
    if problem["type"] in ("model_type", "dict_type"):
        what = _as_table(problem, _keys_at(model.model_json_schema(), problem["loc"]))
    if problem["type"] == "list_type":
        what = _as_list(problem)
    return UsageError(f"{path}:{line}: {shown(key) or kind}: {what}", hint)


def _as_table(problem: ErrorDetails, keys: Sequence[str]) -> str:
    """How a table with these keys is written, in place of what was: the most common is a number
    without its source."""
    if not {"value", "source"} <= set(keys):
        like = f"{{ {keys[0] if keys else 'NAME'} = ... }}"
        return f"not a valid dictionary, which is a table, as `{like}`"
    given = problem["input"]
    value = given if isinstance(given, int | float) and not isinstance(given, bool) else 5
    return f'a number is `{{ value = {value}, source = "assumed" }}`'


def _as_list(problem: ErrorDetails) -> str:
    """How a list is written, in place of what was: the most common is a text that is alone."""
    given = problem["input"]
    one = json.dumps(given, ensure_ascii=False) if isinstance(given, str) else "..."
    return f"not a valid list, as `[{one}]`"


def first_problem(error: ValidationError) -> tuple[list[str | int], str]:
    """The key of the first thing wrong, empty for the whole file, and what is wrong with it."""
    problem = _first(error)
    what = problem["msg"].removeprefix("Value error, ")
    key: list[str | int] = [x for x in problem["loc"] if x not in ("[key]", "int", "float", "str")]
    if not key and ": " in what:
        where, what = what.split(": ", 1)
        key = [int(x) if x.isdigit() else x for x in where.split(".")]
    return key, what


def shown(key: Key) -> str:
    """A key as it may stand in the file."""
    return ".".join(f'"{x}"' if "." in str(x) else str(x) for x in key)


def _first(error: ValidationError) -> ErrorDetails:
    """A misspelt key is two mistakes, and "missing" the one that helps less."""
    problems = error.errors()
    return next((x for x in problems if x["type"] == "extra_forbidden"), problems[0])


def _keys_at(schema: Table, place: Key) -> list[str]:
    """The keys of the table at that place; none if the schema does not say."""
    reached = [schema]
    for part in place:
        reached = [inner for table in reached for inner in _inside(schema, table, part)]
    tables = [table for one in reached for table in _alternatives(schema, one)]
    return [key for table in tables for key in table.get("properties", {})]


def _inside(schema: Table, table: Table, part: str | int) -> list[Table]:
    """What a part of a key leads to, from there."""
    found = []
    for one in _alternatives(schema, table):
        if isinstance(part, int):
            inner = [one.get("items")]
        elif part in one.get("properties", {}):
            inner = [one["properties"][part]]
        else:
            inner = [one.get("additionalProperties"), *one.get("patternProperties", {}).values()]
        found += [x for x in inner if isinstance(x, dict)]
    return found


def _alternatives(schema: Table, table: Table) -> list[Table]:
    """A part of a schema, or all that may stand for it."""
    if "$ref" in table:
        return _alternatives(schema, schema["$defs"][table["$ref"].rpartition("/")[2]])
    several = table.get("anyOf") or table.get("oneOf") or table.get("allOf")
    if several:
        return [x for one in several for x in _alternatives(schema, one)]
    return [table]


def _keys(model: type[BaseModel]) -> set[str]:
    """The keys of a model and of those inside it."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return {key for part in parts for key in part.get("properties", {})}


def line_of(text: str, key: Key) -> int:
    """The line of the longest part of the key that the file has, else 1."""
    best, depth = 1, 0
    table: list[str | int] = []
    seen: dict[tuple[str | int, ...], int] = {}  # arrays of tables: the index reached
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _place(_parts(header[2]), seen, begins=header[1] == "[[")
            here = table
        elif assigned := _ASSIGNMENT.match(line):
            here = [*table, *_parts(assigned[1])]
        else:
            continue
        common = _common(key, here)
        if common == len(here) and common > depth:
            best, depth = number, common
    return best


def _parts(dotted: str) -> list[str | int]:
    return [x.strip("\"'") for x in re.findall(_KEY, dotted)]


def _place(
    parts: list[str | int], seen: dict[tuple[str | int, ...], int], begins: bool
) -> list[str | int]:
    """A header's table with the indices of the arrays it is in; `begins` opens another element."""
    place: list[str | int] = []
    for depth, part in enumerate(parts, start=1):
        place.append(part)
        name = tuple(place)
        if begins and depth == len(parts):
            seen[name] = seen.get(name, -1) + 1
        if name in seen:
            place.append(seen[name])
    return place


def _common(a: Key, b: Key) -> int:
    """Length of the common beginning."""
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n
