"""Records of a suite's runs: what its cases came to, and their figures, as metrics of a policy."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cohort import host
from cohort.errors import Failed, UsageError
from cohort.results.catalogue import BY_NAME
from cohort.results.records import NO_SEED, Record, check_build, check_commit, check_tree
from cohort.results.rundir import read_object
from cohort.results.runs import ONE_BUILD, ONE_PHONE, check_meta, machine_words
from cohort.suites.results import (
    FAILURES,
    LEAKS,
    STATUSES,
    Case,
    Figure,
    Outcome,
    Status,
    costs,
    differences,
    whole,
)
from cohort.suites.schema import Suite, load_suite

log = logging.getLogger(__name__)
Found = tuple[dict[str, Any], Path]
"""The meta.json of a run, and its directory."""
_CASE = TypeAdapter(Case)
OF_CHECKS: tuple[Status, ...] = ("pass", "fail", "skip")
"""What a check of a case can come to."""


def of_suite(directory: Path) -> list[Record]:
    """The records of what `cohort suite NAME` left in out/suites/runs/NAME, a policy each.

    What an older command left of policies that the newest had not is left out, with a warning.
    UsageError for a directory without runs, runs of a part of the suite or of a changed checkout,
    and for files that are not what a run leaves; Failed for runs of more than one build or machine.
    """
    found = [(_read_meta(path), path.parent) for path in sorted(directory.glob("*/meta.json"))]
    if not found:
        raise UsageError(f"{directory}: no finished run of a suite is there")
    found = _of_newest(found)
    found.sort(key=lambda run: (run[0].get("position", 0), str(run[0]["ended"])))
    metas, places = [meta for meta, _ in found], [place for _, place in found]
    kernels = {tuple(_kernel_words(meta)): place for meta, place in reversed(found)}
    if len(kernels) > 1:
        one, other = sorted(kernels.values(), key=places.index)[:2]
        raise Failed(
            f"the runs do not make one table: their kernels or roots differ: {one}, {other}",
            "remove the directory of an older command",
        )
    suite = load_suite(str(metas[0]["suite"]))
    command = _command(suite, metas)
    outcomes = [_outcome(suite, meta, place) for meta, place in zip(metas, places, strict=True)]
    records = [
        _record(suite, meta, place, command, metrics_of(suite, outcome, outcomes[0]))
        for meta, place, outcome in zip(metas, places, outcomes, strict=True)
    ]
    check_build(records, "the runs do not make one table", (*ONE_BUILD, *ONE_PHONE))
    return records


_META = {
    **dict.fromkeys(("suite", "suite_id", "policy", "policy_id", "ended", "cohort_git"), str),
    **dict.fromkeys(("kernel", "kernel_id", "tree_id", "guest_id", "qemu", "gcc", "accel"), str),
    **dict.fromkeys(("memory_mb", "cpus", "page_size"), int),
    "arch": str,
}


def _read_meta(path: Path) -> dict[str, Any]:
    """A run's meta.json; UsageError for a file that is none, or does not say what was run."""
    meta = read_object(path)
    check_meta(path, meta, _META)
    usual: dict[str, Any] = {"position": 0, "policies": []}
    check_meta(path, usual | meta, {name: type(value) for name, value in usual.items()})
    return meta


def _of_newest(found: Sequence[Found]) -> list[Found]:
    """The runs of the command that ended last, with a warning for each of another policy.

    UsageError, naming its directory, for a run of one of its policies that another command made.
    Runs that do not tell were made before they did: all are taken.
    """
    newest, _ = max(found, key=lambda run: str(run[0]["ended"]))
    policies = newest.get("policies")
    if not policies:
        return list(found)
    for meta, place in found:
        if meta["policy"] not in policies:
            log.warning("%s: left out: of a command before `%s`", place, ",".join(policies))
        elif meta.get("policies") != policies:
            raise UsageError(
                f"{place}: of another command than {','.join(policies)}", "run the suite again"
            )
    made = [(meta, place) for meta, place in found if meta["policy"] in policies]
    if missing := [x for x in policies if x not in [meta["policy"] for meta, _ in made]]:
        raise UsageError(f"{found[0][1].parent}: no finished run of {missing[0]} is there")
    return made


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
    name = f"{suite.name} under {meta['policy']}"
    check_commit(name, str(meta["cohort_git"]))
    check_tree(name, meta.get("tree"))
    cases = tuple(_read_cases(place / "cases.jsonl"))
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


def _read_cases(path: Path) -> Iterator[Case]:
    """The lines of a cases.jsonl; UsageError names one that is no case, or has a number that is
    none."""
    # Not `splitlines`: a text may have what that takes for the end of a line.
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            try:
                case = _CASE.validate_json(line)
            except ValidationError as error:
                what = error.errors()[0]
                where = ".".join(map(str, what["loc"])) or "line"
                raise UsageError(
                    f"{path}:{number}: no case: {where}: {what['msg']}", "run the suite again"
                ) from error
            numbers = [*case.costs.values(), *(x.value for x in case.figures.values())]
            if not all(map(isfinite, numbers)):
                raise UsageError(f"{path}:{number}: a number of {case.name} is none")
            yield case


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
