"""What a record is: one file, records.toml, says it for the guest, for the reader and for people.

`python -m cohort.results.record_schema` prints guest/base/record_kinds.h, the formats by which the
guest writes; a finished run's records are checked by `check_file`; `markdown` is the table of
docs/reference/records.md.
"""

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from cohort.errors import GuestError

SCHEMA = Path(__file__).with_name("records.toml")
Type = Literal[
    "text", "list", "object", "bool", "u64 or null", "u64", "u32", "int", "long", "ulong"
]
FORMATS: dict[Type, str] = {
    "text": '"%s"',
    "list": "[%s]",
    "object": "{%s}",
    "bool": "%s",
    "u64 or null": "%s",
    "u64": "%llu",
    "u32": "%u",
    "int": "%d",
    "long": "%ld",
    "ulong": "%lu",
}
"""How the guest writes each: printf's, with what JSON puts around it."""
PYTHON: dict[Type, tuple[type, ...]] = {
    "text": (str,),
    "list": (list,),
    "object": (dict,),
    "bool": (bool,),
    "u64 or null": (int, type(None)),
}
"""What the reader makes of each; all others are int."""
BAD_BYTES = "backslashreplace"
"""How a byte that is no UTF-8 is read: as an escape that JSON does not have, so that its line is
no record."""
PART = "..."
"""Behind a key of a form: text of several keys, each with a comma in front."""
COLUMNS = 76


class Kind(BaseModel):
    """A table of records.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    when: str
    keys: dict[str, Type]
    optional: list[str] = []
    forms: dict[str, list[str]] = {}
    says: str

    def problem(self, record: Mapping[str, Any]) -> str | None:
        """What of the record is not as the schema has it."""
        given = record.keys() - {"r"}
        if missing := [x for x in self.keys if x not in given and x not in self.optional]:
            return f"it lacks {', '.join(missing)}"
        if unknown := sorted(given - self.keys.keys()):
            return f"the schema has no {', '.join(unknown)}"
        for key in given:
            # A truth value is an int to Python, and not to JSON.
            if type(record[key]) not in PYTHON.get(self.keys[key], (int,)):
                return f"{key} is no {self.keys[key]}: {record[key]!r:.40}"
        return None


@cache
def kinds() -> dict[str, Kind]:
    """The kinds of records, in the file's order."""
    found = tomllib.loads(SCHEMA.read_text(encoding="utf-8"))
    return {name: Kind.model_validate(kind) for name, kind in found.items()}


def check_file(path: Path) -> None:
    """GuestError for the first record that is none of the schema's, or not as it says."""
    with path.open(encoding="utf-8", errors=BAD_BYTES) as file:
        for number, line in enumerate(file, 1):
            try:
                record = json.loads(line)
                kind = kinds().get(record["r"])
            except (ValueError, KeyError, TypeError):
                raise GuestError(f"record {number} is none: {line[:60]!r}") from None
            wrong = kind.problem(record) if kind else "the schema has no such kind"
            if wrong:
                raise GuestError(f"record {number}, {record['r']}: {wrong}")


def header() -> str:
    """guest/base/record_kinds.h: a format for each form of each kind."""
    lines = [
        "/* SPDX-License-Identifier: GPL-2.0 */",
        "/*",
        " * Made by `python -m cohort.results.record_schema` of src/cohort/results/records.toml:",
        " * change that. KEY... is text that begins with a comma, or nothing.",
        " */",
        "#ifndef RECORD_KINDS_H",
        "#define RECORD_KINDS_H",
        "",
    ]
    for name, kind in kinds().items():
        for form, keys in (kind.forms or {name.upper(): list(kind.keys)}).items():
            lines += [f"/* {line} */" for line in _wrapped(", ".join(keys))]
            lines.append(f"#define RECORD_{form} \\")
            parts = [f'"{{\\"r\\":\\"{name}\\""', *(_part(kind, key) for key in keys), '"}"']
            lines += [f"\t{line} \\" for line in _wrapped(" ".join(parts))]
            lines[-1] = lines[-1].removesuffix(" \\")
            lines.append("")
    return "\n".join([*lines, "#endif", ""])


def _part(kind: Kind, key: str) -> str:
    """One key of a format, as C has it."""
    if key.endswith(PART):
        return '"%s"'
    name, constant, value = key.partition("=")
    wanted = FORMATS[kind.keys[name]]
    text = wanted.replace("%s" if "%s" in wanted else wanted, value) if constant else wanted
    return f'",\\"{name}\\":{text.replace(chr(34), chr(92) + chr(34))}"'


def _wrapped(text: str) -> list[str]:
    """Lines of at most COLUMNS, broken at blanks."""
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) >= COLUMNS:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def markdown() -> str:
    """The reference's table: a row a kind."""
    rows = [f"| `{name}` | {kind.when} | {kind.says} |" for name, kind in kinds().items()]
    return "\n".join(["| `r` | when | other keys |", "|---|---|---|", *rows])


if __name__ == "__main__":
    print(header(), end="")
