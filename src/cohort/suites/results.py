"""Results of a suite: read out of the guest's records, counted, and compared between policies."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cohort.suites.schema import Suite
from cohort.vm.kunit import STAMP, splats

Status = Literal["pass", "fail", "skip", "timeout", "splat", "died", "absent", "slow"]
"""Of a case. `splat`: the kernel complained meanwhile, whatever the case said; `died`: the guest
did not outlive it; `absent`: another policy has this check or cost; `slow`, of a cost: above the
suite's bound."""
STATUSES: tuple[Status, ...] = ("pass", "fail", "skip", "timeout", "splat", "died")
"""What a case itself can come to."""
FAILURES: frozenset[Status] = frozenset({"fail", "timeout", "splat", "died"})

TIMEOUT = -1
"""The guest's status of a case that took too long."""
TAIL_LINES = 15
LEAKS = "_kmemleak"
"""The case behind the others on a kernel with every checker; no suite can have one of that name."""

_TAP = re.compile(r"^\s*(not ok|ok) (\d+)\b[ -]*([^#]*?)\s*(?:#\s*(SKIP|XFAIL|TODO)?.*)?$", re.I)
_NUMBER = r"([0-9]{1,18}(?:\.[0-9]+)?)"
"""So short that it is finite, and any sum of such."""
_FIGURE = re.compile(rf"^# figure ([a-z0-9_]+) {_NUMBER}(?: (\S+))?$")
SHARE = "share"
"""The unit of a figure that is a part of a whole: several have a mean, and no sum."""
_COST = re.compile(rf"^# cost (\S+) {_NUMBER}$")
_MARK = re.compile(r"suite: case (\S+)$")


@dataclass(frozen=True)
class Check:
    """A line of a case's own result (TAP): its number, and what it says of itself."""

    name: str
    status: Status
    text: str = ""


@dataclass(frozen=True)
class Figure:
    """What a case measured; no unit for a number of things. It is told, and makes no difference."""

    value: float
    unit: str = ""


@dataclass(frozen=True)
class Case:
    """A program of a suite: what it said in the end, and its own checks, costs and figures if it
    told any.

    A cost is a line `# cost NAME NUMBER`; less is better. A figure is `# figure NAME NUMBER UNIT`.
    `late_death` says how the guest died when the case had ended and no other had begun.
    """

    name: str
    status: Status
    seconds: float = 0.0
    tail: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    complaints: tuple[str, ...] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    late_death: str = ""

    def results(self) -> dict[str, Status]:
        """The case and its checks by names that are the same under every policy."""
        found: dict[str, Status] = {self.name: self.status}
        return found | {f"{self.name}: {check.name}": check.status for check in self.checks}


@dataclass(frozen=True)
class Outcome:
    """All cases of a suite under one policy. `boots` is how many guests it took."""

    policy: str
    cases: tuple[Case, ...]
    boots: int = 1

    def counts(self) -> Counter[Status]:
        """Cases by status, their checks left out."""
        return Counter(case.status for case in self.cases)

    def check_counts(self) -> Counter[Status]:
        """The cases' own checks by status."""
        return Counter(check.status for case in self.cases for check in case.checks)

    def late_deaths(self) -> list[str]:
        """A sentence for each guest that died when a case had ended and no other had begun."""
        return [
            f"{case.name}, {self.policy}: the case had ended, and then: {case.late_death}"
            for case in self.cases
            if case.late_death
        ]


@dataclass(frozen=True)
class Difference:
    """A result that is not the same under all policies; statuses are in the policies' order."""

    name: str
    statuses: tuple[Status, ...]
    tails: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def checks_of(lines: Iterable[str]) -> tuple[Check, ...]:
    """The TAP results in a program's output.

    The number is the name: what a check says of itself may depend on how it went. A program that
    numbers anew (several harnesses in one) gets a second row of numbers.
    """
    found = []
    times: Counter[str] = Counter()
    for line in lines:
        match = _TAP.match(line)
        if match is None:
            continue
        number = match[2]
        times[number] += 1
        again = f".{times[number]}" if times[number] > 1 else ""
        status: Status = "pass" if match[1].lower() == "ok" else "fail"
        if match[4]:
            status = "skip"
        found.append(Check(f"{number}{again}", status, match[3]))
    return tuple(found)


def costs_of(lines: Iterable[str]) -> dict[str, float]:
    """What a program says that something cost, by its name."""
    return {m[1]: float(m[2]) for line in lines if (m := _COST.match(line))}


def figures_of(lines: Iterable[str]) -> dict[str, Figure]:
    """What a program says that it measured, by its name."""
    found = (_FIGURE.match(line) for line in lines)
    return {m[1]: Figure(float(m[2]), m[3] or "") for m in found if m}


def status_of(code: int, skip: Sequence[int]) -> Status:
    """A status out of how the guest says that a case ended."""
    if code == TIMEOUT:
        return "timeout"
    if code == 0:
        return "pass"
    return "skip" if code in skip else "fail"


def complaints_of(console: str) -> dict[str, tuple[str, ...]]:
    """What the kernel complained of, by the case that it stands after in its log. What stands
    before the first, as of booting and of switching schemes on, is of that one."""
    found: dict[str, list[str]] = {}
    name = ""
    for raw in console.replace("\r", "").splitlines():
        if mark := _MARK.search(STAMP.sub("", raw)):
            name = mark[1]
            if "" in found:
                found[name] = found.pop("")
        elif complaint := splats(raw):
            found.setdefault(name, []).extend(complaint)
    return {case: tuple(lines) for case, lines in found.items()}


def cases_of(suite: Suite, records: Iterable[Mapping[str, Any]], console: str) -> list[Case]:
    """The cases that one guest began, in order; the last has died if it has no result."""
    complaints = complaints_of(console)
    cases: list[Case] = []
    name, lines = "", list[str]()
    for record in records:
        if record["r"] == "case":
            name, lines = str(record["name"]), []
        elif record["r"] == "out" and name:
            lines.append(str(record["line"]).replace("\t", " "))
        elif record["r"] == "result":
            status = status_of(int(record["status"]), suite.skip)
            seconds = int(record["ns"]) / 1e9
            cases.append(_case(name, status, lines, complaints, seconds))
            name = ""
    if name:
        cases.append(_case(name, "died", lines, complaints, 0.0))
    return cases


def left_out(records: Iterable[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Cases of whose output the guest kept a part: how many lines they had, and how many are
    records."""
    found = {}
    kept = 0
    for record in records:
        if record["r"] == "case":
            kept = 0
        elif record["r"] == "out":
            kept += 1
        elif record["r"] == "result" and int(record["lines"]) > kept:
            found[str(record["name"])] = (int(record["lines"]), kept)
    return found


def died_after(case: Case, how: str) -> Case:
    """The same case as one that its guest did not outlive, whatever it had ended with."""
    return replace(case, status="died", late_death=how)


def _case(
    name: str,
    status: Status,
    lines: Sequence[str],
    complaints: Mapping[str, tuple[str, ...]],
    seconds: float,
) -> Case:
    said = complaints.get(name, ())
    if said and status != "died":
        status = "splat"
    tail, checks = tuple(lines[-TAIL_LINES:]), checks_of(lines)
    taken = round(seconds, 1)
    return Case(name, status, taken, tail, checks, said, costs_of(lines), figures_of(lines))


def costs(outcome: Outcome) -> dict[str, float]:
    """All costs under a policy, by `CASE: NAME`."""
    return {f"{case.name}: {name}": x for case in outcome.cases for name, x in case.costs.items()}


def whole(cases: Iterable[Case]) -> dict[str, Figure]:
    """The figures of all cases together, by name: the mean of shares, the sum of all else."""
    found: dict[str, list[Figure]] = {}
    for case in cases:
        for name, figure in case.figures.items():
            found.setdefault(name, []).append(figure)
    return {name: _together(figures) for name, figures in found.items()}


def _together(figures: Sequence[Figure]) -> Figure:
    total, unit = sum(figure.value for figure in figures), figures[0].unit
    return Figure(total / len(figures) if unit == SHARE else total, unit)


def too_dear(outcomes: Sequence[Outcome], bound: float) -> list[Difference]:
    """Every cost that under some policy is more than `bound` times that under the first, or that
    not all policies have."""
    by_policy = [costs(outcome) for outcome in outcomes]
    found = []
    for name in cost_names(outcomes):
        least = by_policy[0].get(name)
        statuses = tuple(_of_cost(x.get(name), least, bound) for x in by_policy)
        if set(statuses) != {"pass"}:
            found.append(Difference(name, statuses))
    return found


def cost_names(outcomes: Iterable[Outcome]) -> list[str]:
    """The costs that any policy has, each once, the first policy's first."""
    return list(dict.fromkeys(name for outcome in outcomes for name in costs(outcome)))


def _of_cost(cost: float | None, least: float | None, bound: float) -> Status:
    """Of a cost beside the first policy's; without that it is above no bound."""
    if cost is None:
        return "absent"
    return "pass" if least is None or cost <= bound * least else "slow"


def differences(outcomes: Sequence[Outcome], bound: float) -> list[Difference]:
    """Every case and check whose status under some policy is another than under the first, and
    every cost that is above the bound, or absent.

    Checks and costs of a case that died or took too long under some policies are not told one by
    one; of one that did so under all, those that it did not come to: how far it came is chance.
    """
    by_policy = [
        {name: status for case in outcome.cases for name, status in case.results().items()}
        for outcome in outcomes
    ]
    names = dict.fromkeys(name for results in by_policy for name in results)
    found, dead, cut = [], set[str](), set[str]()
    for name in names:
        statuses = tuple(results.get(name, "absent") for results in by_policy)
        case, alike = name.partition(":")[0], len(set(statuses)) == 1
        if name == case and {"died", "timeout"} & set(statuses):
            (cut if alike else dead).add(case)
        chance = case in dead or (case in cut and "absent" in statuses)
        if not alike and (name == case or not chance):
            found.append(Difference(name, statuses, _tails(case, outcomes)))
    dear = too_dear(outcomes, bound)
    ended = dead | cut
    return found + [
        x for x in dear if "slow" in x.statuses or x.name.partition(":")[0] not in ended
    ]


def _tails(name: str, outcomes: Sequence[Outcome]) -> dict[str, tuple[str, ...]]:
    return {
        outcome.policy: (*case.complaints, *case.tail)
        for outcome in outcomes
        for case in outcome.cases
        if case.name == name
    }
