"""Records are said in one file: the guest's header is made of it, and runs are checked by it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cohort import paths
from cohort.errors import Failed, GuestError
from cohort.results import record_schema
from cohort.results.rundir import RunDir
from made_runs import END

GUEST = paths.ROOT / "guest"
NOTE = {"r": "note", "t": 1, "text": "x"}
SAMPLE = {
    **{"r": "sample", "t": 2, "n": 0, "buddy": [], "vm": [], "alive": 3, "cached": 0},
    "cpu": [],
}


def test_the_guests_header_is_made_of_the_schema() -> None:
    made = record_schema.header()
    assert (GUEST / "base" / "record_kinds.h").read_text() == made, (
        "python -m cohort.results.record_schema > guest/base/record_kinds.h"
    )
    assert max(len(line.expandtabs(8)) for line in made.splitlines()) <= 90


def test_the_guest_writes_nothing_else_and_each_form_once_at_least() -> None:
    text = "".join(path.read_text() for path in sorted(GUEST.rglob("*.c")))
    assert re.findall(r'\brecord\("', text) == []
    forms = re.findall(r"#define RECORD_(\w+) ", record_schema.header())
    assert [form for form in forms if f"record(RECORD_{form}," not in text] == []


def test_forms_have_keys_of_their_kind_and_none_is_forgotten() -> None:
    for name, kind in record_schema.kinds().items():
        for form in kind.forms.values():
            named = [key.partition("=")[0] for key in form if not key.endswith("...")]
            assert set(named) <= kind.keys.keys(), name
            told = len(named) + len(kind.optional)
            parts = any(key.endswith("...") for key in form)
            assert parts or told >= len(kind.keys), name


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def test_records_as_the_schema_has_them(tmp_path: Path) -> None:
    owned = SAMPLE | {"owned": [1, 2]}
    buffer = {"r": "buffer", "t": 1, "n": 1, "app": "a", "bytes": 4096, "ok": True, "ns": 5}
    buffer |= {"zero_ns": None, "o9": 0, "o8": 0, "o4": 0, "o0": 1, "other": 0}
    record_schema.check_file(write(tmp_path / "records.jsonl", NOTE, SAMPLE, owned, buffer))


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (NOTE | {"r": "nota"}, "record 2, nota: the schema has no such kind"),
        (NOTE | {"more": 1}, "record 2, note: the schema has no more"),
        ({"r": "note", "t": 1}, "record 2, note: it lacks text"),
        (NOTE | {"text": 5}, "record 2, note: text is no text: 5"),
        (NOTE | {"t": True}, "record 2, note: t is no u64: True"),
        (SAMPLE | {"vm": {}}, "record 2, sample: vm is no list"),
        ({"t": 1}, "record 2 is none"),
    ],
)
def test_records_that_are_none(record: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(GuestError, match=re.escape(said)):
        record_schema.check_file(write(tmp_path / "records.jsonl", NOTE, record))


def test_a_line_that_is_cut_is_no_record(tmp_path: Path) -> None:
    path = write(tmp_path / "records.jsonl", NOTE)
    path.write_text(path.read_text() + '{"r":"no')
    with pytest.raises(GuestError, match="record 2 is none"):
        record_schema.check_file(path)


def test_what_the_guest_escapes_is_read_back(tmp_path: Path) -> None:
    """All that guest/base/json.c writes, and what JSON allows besides."""
    said = "".join(map(chr, range(1, 256)))
    escaped = "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\u{ord(c):04x}" for c in said)
    path = tmp_path / "records.jsonl"
    path.write_text(
        f'{{"r":"note","t":1,"text":"{escaped}"}}\n{{ "text": "\u2028", "t":2,"r":"note"}}\n'
    )
    record_schema.check_file(path)
    path.write_text(f"{path.read_text()}{json.dumps(END)}\n")
    assert [x.get("text") for x in RunDir(tmp_path).records()] == [said, "\u2028", None]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", "records.jsonl: cut short"),
        ('{"r":"note","t":1,"text":"x"}\n', "records.jsonl: cut short"),
        ('{"r":"note","t":1,"te', "records.jsonl:1: not a record"),
        ("3\n", "records.jsonl:1: not a record"),
    ],
)
def test_records_that_are_cut_short_are_of_no_run(said: str, told: str, tmp_path: Path) -> None:
    """A disk that was full when a run was copied: half of its launches are another workload."""
    (tmp_path / "records.jsonl").write_text(said)
    with pytest.raises(Failed, match=told):
        list(RunDir(tmp_path).records())


def test_a_byte_that_is_no_text_is_told_and_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"r":"note","t":1,"text":"\xff"}\n')
    with pytest.raises(GuestError, match="record 1 is none"):
        record_schema.check_file(path)
    with pytest.raises(Failed, match="not a record"):
        list(RunDir(tmp_path).records())
