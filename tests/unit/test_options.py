"""Options of the verbs: one word, one thing."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from cohort.cli import cohort
from cohort.verbs.run import show


def verbs(command: click.Command = cohort, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """All verbs, and those of the groups among them, by what is typed."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            assert inner is not None
            yield from verbs(inner, f"{name} {word}".strip())


def words() -> Iterator[tuple[str, str, click.Option]]:
    """Every word of an option with its verb."""
    for verb, command in verbs():
        for option in command.params:
            if isinstance(option, click.Option):
                yield from ((word, verb, option) for word in option.opts)


SECOND = {("kernel patch", "--check"), ("kernel patch", "--report")}
"""Second names of an option, which other verbs have for something else: those that were asked for
when the option was made."""


def test_a_word_is_the_same_option_on_every_verb() -> None:
    kinds: dict[str, set[tuple[object, ...]]] = {}
    for word, verb, option in words():
        if (verb, word) in SECOND:
            assert option.opts[0] != word
            continue
        kind = (option.name, type(option.type), option.is_flag, option.multiple)
        kinds.setdefault(word, set()).add(kind)
    assert {word: found for word, found in kinds.items() if len(found) > 1} == {}


@pytest.mark.parametrize("word", ["--check", "--report", "--root"])
def test_a_word_that_had_two_meanings_is_of_one_verb(word: str) -> None:
    found = {verb for known, verb, _ in words() if known == word and (verb, word) not in SECOND}
    assert len(found) == 1


def test_an_option_has_the_same_word_on_every_verb() -> None:
    """By what the verb's function calls it."""
    spelt: dict[str | None, set[tuple[str, ...]]] = {}
    for _, _, option in words():
        spelt.setdefault(option.name, set()).add(tuple(option.opts))
    assert {name: found for name, found in spelt.items() if len(found) > 1} == {}


def test_a_run_is_shown_with_what_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    """Two of three metrics are of other workloads: what is here would be lost among them."""
    meta = {"policy": "none", "workload": "phone-2g", "seed": 1, "accel": "tcg"}
    metrics = {"camera_busy": None, "kills": 3, "ui_order4": 0.25, "fio_s": None}
    run = SimpleNamespace(meta=meta, metrics=metrics, path=Path("/out/runs/x"))
    show([run], as_json=False)
    assert [line.split() for line in capsys.readouterr().out.splitlines()][1:] == [
        ["kills", "3"],
        ["ui_order4", "0.250"],
        ["2", "other", "metrics", "have", "no", "value"],
        ["in", "/out/runs/x"],
    ]
    show([run], as_json=True)
    assert json.loads(capsys.readouterr().out)[0]["metrics"] == metrics


MAKE_RUNS = ("run", "compare", "study", "scale", "tune")


@pytest.mark.parametrize("verb", MAKE_RUNS)
def test_verbs_that_make_runs_have_the_same_options(verb: str) -> None:
    known = {word for word, name, _ in words() if name == verb}
    assert known >= {"--launches", "--jobs", "--fresh", "--json", "--arch", "--cluster"}


def test_all_that_can_run_elsewhere_run_on_a_cluster() -> None:
    assert {name for word, name, _ in words() if word == "--cluster"} == {
        *MAKE_RUNS,
        "suite",
        "results again",
    }


@pytest.mark.parametrize("option", ["--arch", "--page-size"])
def test_all_that_boot_a_guest_have_all_machines(option: str) -> None:
    assert {name for word, name, _ in words() if word == option} == {*MAKE_RUNS, "suite"}
