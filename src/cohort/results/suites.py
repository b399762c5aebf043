"""Records of a suite's runs: what its cases came to, and their figures, as metrics of a policy."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cohort import host
from cohort.errors import Failed, UsageError
from cohort.results.catalogue import BY_NAME
from cohort.results.records import NO_SEED, ONE_BUILD, ONE_PHONE, Record, check_build, check_commit
from cohort.results.runs import machine_words
from cohort.suites.results import (
    FAILURES,
    LEAKS,
    STATUSES,
    Case,
    Check,
    Figure,
    Outcome,
    Status,
    costs,
    differences,
    whole,
)
from cohort.suites.schema import Suite, load_suite

OF_CHECKS: tuple[Status, ...] = ("pass", "fail", "skip")
"""What a check of a case can come to."""


def of_suite(directory: Path) -> list[Record]:
    """The records of what `cohort suite NAME` left in out/suites/runs/NAME, a policy each.

    UsageError for a directory without runs, runs of a part of the suite or of a changed checkout;
    Failed for runs of more than one build or machine.
    """
    found = [(_read_meta(path), path.parent) for path in sorted(directory.glob("*/meta.json"))]
    if not found:
        raise UsageError(f"{directory}: no finished run of a suite is there")
    found.sort(key=lambda run: (run[0].get("position", 0), str(run[0]["ended"])))
    metas, places = [meta for meta, _ in found], [place for _, place in found]
    if len({tuple(_kernel_words(meta)) for meta in metas}) > 1:
        raise Failed(f"{directory}: the runs do not make one table: their kernels or roots differ")
    suite = load_suite(str(metas[0]["suite"]))
    command = _command(suite, metas)
    outcomes = [_outcome(suite, meta, place) for meta, place in zip(metas, places, strict=True)]
    records = [
        _record(suite, meta, place, command, metrics_of(suite, outcome, outcomes[0]))
        for meta, place, outcome in zip(metas, places, outcomes, strict=True)
    ]
    check_build(records, "the runs do not make one table", (*ONE_BUILD, *ONE_PHONE))
    return records


def _read_meta(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _command(suite: Suite, metas: Sequence[Mapping[str, Any]]) -> str:
    """What makes the runs again: the first policy is the one that the others are compared with."""
    policies = ",".join(str(meta["policy"]) for meta in metas)
    words = f"cohort suite {suite.name} --policies {policies}"
    memory, cpus = metas[0]["memory_mb"], metas[0]["cpus"]
    words += f" --memory {memory}" if memory != suite.memory_mb else ""
    words += f" --cpus {cpus}" if cpus != suite.cpus else ""
    return " ".join([words, *_kernel_words(metas[0])])


def _kernel_words(meta: Mapping[str, Any]) -> list[str]:
    """The options that say which machine, kernel and root it was; runs that do not tell the last
    two were made before they did."""
    words = machine_words(meta)
    if meta.get("debug"):
        words.append("--debug")
    if meta.get("config"):
        words.append(f"--config {meta['config']}")
    if meta.get("rootfs", "debian") != "debian":
        words.append(f"--rootfs {meta['rootfs']}")
    return words


def _outcome(suite: Suite, meta: Mapping[str, Any], place: Path) -> Outcome:
    """What the suite came to under a policy; UsageError for a changed checkout or a part of it."""
    check_commit(f"{suite.name} under {meta['policy']}", str(meta["cohort_git"]))
    lines = (place / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = tuple(_case(json.loads(line)) for line in lines)
    if [case.name for case in cases if case.name != LEAKS] != list(suite.case):
        raise UsageError(
            f"{place}: not every case of the suite {suite.name}", "run it without --case"
        )
    return Outcome(str(meta["policy"]), cases)


def _record(
    suite: Suite,
    meta: Mapping[str, Any],
    place: Path,
    command: str,
    metrics: dict[str, int | float],
) -> Record:
    said = [x.read_bytes() for x in sorted(place.glob("boot-*/records.jsonl"))]
    return Record(
        label=str(meta["policy"]),
        seed=NO_SEED,
        workload=suite.name,
        launches=len(suite.case),
        command=command,
        commit=meta["cohort_git"],
        workload_digest=meta["suite_id"],
        records_id=host.digest(*said)[:16],
        metrics=metrics,
        **{name: meta[name] for name in _AS_IN_META},
    )


_AS_IN_META = (
    *("policy", "policy_id", "memory_mb", "cpus", "accel", "kernel", "qemu", "gcc"),
    *("tree_id", "kernel_id", "guest_id", "arch", "page_size"),
)


def _case(said: Mapping[str, Any]) -> Case:
    """A line of cases.jsonl, as far as records want it."""
    return Case(
        said["name"],
        said["status"],
        checks=tuple(Check(**check) for check in said["checks"]),
        costs=said["costs"],
        figures={name: Figure(**figure) for name, figure in said["figures"].items()},
    )


def metrics_of(suite: Suite, outcome: Outcome, first: Outcome) -> dict[str, int | float]:
    """How many cases and checks came to what, how many results are not those of `first`; and the
    figures of all cases as SUITE_FIGURE, of each as SUITE_CASE_FIGURE, as are costs: those of them
    that the catalogue of metrics knows."""
    found = {f"{suite.name}_{name}": figure for name, figure in whole(outcome.cases).items()}
    for case in outcome.cases:
        for name, figure in case.figures.items():
            found[_of_case(suite, f"{case.name}: {name}")] = figure
    cases, checks = outcome.counts(), outcome.check_counts()
    told: dict[str, int | float] = {f"suite_{status}": cases[status] for status in STATUSES}
    told |= {f"suite_checks_{status}": checks[status] for status in OF_CHECKS}
    told["suite_differs"] = len(differences((first, outcome), suite.cost_bound))
    told[f"{suite.name}_failed"] = sum(cases[status] for status in FAILURES)
    told |= {_of_case(suite, name): cost for name, cost in costs(outcome).items()}
    numbers = {name: _number(figure) for name, figure in found.items()} | told
    return {name: number for name, number in numbers.items() if name in BY_NAME}


def _of_case(suite: Suite, name: str) -> str:
    """A metric's name for what a case tells, CASE: NAME."""
    return f"{suite.name}_{name}".replace(": ", "_").replace("-", "_")


def _number(figure: Figure) -> int | float:
    """A number of things is whole; else as exact as a case tells it."""
    return round(figure.value, 6) if figure.unit else int(figure.value)
