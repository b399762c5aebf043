"""Records of a suite's runs: the figures of its cases as metrics, a record a policy."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cohort import host
from cohort.errors import UsageError
from cohort.results.catalogue import BY_NAME
from cohort.results.records import NO_SEED, ONE_BUILD, ONE_PHONE, Record, check_build, check_commit
from cohort.suites.results import FAILURES, Case, Figure, whole
from cohort.suites.schema import Suite, load_suite


def of_suite(directory: Path) -> list[Record]:
    """The records of what `cohort suite NAME` left in out/suites/runs/NAME, a policy each.

    UsageError for a directory without runs, runs of a part of the suite, of a changed checkout, or
    of a suite without figures that are metrics; Failed for runs of more than one build or machine.
    """
    places = sorted(path.parent for path in directory.glob("*/meta.json"))
    if not places:
        raise UsageError(f"{directory}: no finished run of a suite is there")
    metas = [json.loads((x / "meta.json").read_text(encoding="utf-8")) for x in places]
    suite = load_suite(str(metas[0]["suite"]))
    command = _command(suite, metas)
    records = [
        _record(suite, meta, place, command) for meta, place in zip(metas, places, strict=True)
    ]
    check_build(records, "the runs do not make one table", (*ONE_BUILD, *ONE_PHONE))
    return records


def _command(suite: Suite, metas: Sequence[Mapping[str, Any]]) -> str:
    """What makes the runs again, in the order in which they were made."""
    ordered = sorted(metas, key=lambda meta: str(meta["ended"]))
    policies = ",".join(str(meta["policy"]) for meta in ordered)
    words = f"cohort suite {suite.name} --policies {policies}"
    memory, cpus = metas[0]["memory_mb"], metas[0]["cpus"]
    words += f" --memory {memory}" if memory != suite.memory_mb else ""
    return words + (f" --cpus {cpus}" if cpus != suite.cpus else "")


def _record(suite: Suite, meta: Mapping[str, Any], place: Path, command: str) -> Record:
    check_commit(f"{suite.name} under {meta['policy']}", str(meta["cohort_git"]))
    lines = (place / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [_case(json.loads(line)) for line in lines]
    if [case.name for case in cases] != list(suite.case):
        raise UsageError(
            f"{place}: not every case of the suite {suite.name}", "run it without --case"
        )
    said = [x.read_bytes() for x in sorted(place.glob("boot-*/records.jsonl"))]
    return Record(
        label=str(meta["policy"]),
        seed=NO_SEED,
        workload=suite.name,
        launches=len(cases),
        command=command,
        commit=meta["cohort_git"],
        workload_digest=meta["suite_id"],
        records_id=host.digest(*said)[:16],
        metrics=metrics_of(suite.name, cases),
        **{name: meta[name] for name in _AS_IN_META},
    )


_AS_IN_META = (
    *("policy", "policy_id", "memory_mb", "cpus", "accel", "kernel", "qemu", "gcc"),
    *("tree_id", "kernel_id", "guest_id", "arch", "page_size"),
)


def _case(said: Mapping[str, Any]) -> Case:
    """A line of cases.jsonl, as far as records want it."""
    figures = {name: Figure(**figure) for name, figure in said["figures"].items()}
    return Case(said["name"], said["status"], figures=figures)


def metrics_of(suite: str, cases: Sequence[Case]) -> dict[str, int | float]:
    """The figures of all cases as SUITE_FIGURE, of each as SUITE_CASE_FIGURE, and how many cases
    failed; those of them that the catalogue of metrics knows.

    UsageError if it knows no figure of the suite.
    """
    found = {f"{suite}_{name}": figure for name, figure in whole(cases).items()}
    for case in cases:
        for name, figure in case.figures.items():
            found[f"{suite}_{case.name}_{name}".replace("-", "_")] = figure
    if BY_NAME.keys().isdisjoint(found):
        raise UsageError(f"suite {suite}: no figure of its cases is a metric")
    found[f"{suite}_failed"] = Figure(sum(case.status in FAILURES for case in cases))
    return {name: _number(figure) for name, figure in found.items() if name in BY_NAME}


def _number(figure: Figure) -> int | float:
    """A number of things is whole; else as exact as a case tells it."""
    return round(figure.value, 6) if figure.unit else int(figure.value)
