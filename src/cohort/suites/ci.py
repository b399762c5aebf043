"""Outcomes of a suite for continuous integration: JUnit's XML and KTAP.

They are red where the command's exit code is not 0, and nowhere else: each difference is a failure
under the policy whose result is not the first one's, and so is a guest that died when a case had
ended. What fails under all policies alike is told, and is none.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from cohort.suites.results import FAILURES, Case, Difference, Outcome, costs, differences

Kind = Literal["ok", "skip", "alike", "differs", "late"]
"""`alike`: it fails as under the first policy; `late`: the guest died when the case had ended."""
RED: frozenset[Kind] = frozenset({"differs", "late"})
_ELEMENTS: dict[Kind, str] = {
    **{"skip": "skipped", "alike": "skipped"},
    **{"differs": "failure", "late": "error"},
}
"""What JUnit calls them."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to say; a case may print it."""


@dataclass(frozen=True)
class Result:
    """A case under one policy, or a check or cost of it that differs: `said` is a word on it,
    `text` what the case printed last. Seconds are the guest's."""

    name: str
    kind: Kind
    said: str = ""
    text: str = ""
    seconds: float = 0.0


def junit(suite: str, outcomes: Sequence[Outcome], bound: float) -> str:
    """A test suite for each policy, as continuous integration reads it; costs have this bound."""
    root = ElementTree.Element("testsuites", name=suite)
    for outcome, results in zip(outcomes, _results(outcomes, bound), strict=True):
        name = f"{suite}.{outcome.policy}"
        elements = [_ELEMENTS.get(result.kind) for result in results]
        counts = {f"{x}s": str(elements.count(x)) for x in ("failure", "error")}
        counts |= {"tests": str(len(results)), "skipped": str(elements.count("skipped"))}
        parent = ElementTree.SubElement(root, "testsuite", {"name": name, **counts})
        for result in results:
            _junit_case(parent, name, result)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode", xml_declaration=True)
    return f"{_NOT_XML.sub('', text)}\n"


def _junit_case(parent: ElementTree.Element, classname: str, result: Result) -> None:
    seconds = f"{result.seconds:.1f}"
    element = ElementTree.SubElement(
        parent, "testcase", name=result.name, classname=classname, time=seconds
    )
    if result.kind in _ELEMENTS:
        word = {"message": result.said} if result.said else {}
        told = ElementTree.SubElement(element, _ELEMENTS[result.kind], word)
        told.text = result.text or None


def ktap(outcomes: Sequence[Outcome], bound: float) -> str:
    """A subtest for each policy, in the kernel's own format; costs have this bound."""
    lines = ["KTAP version 1", f"1..{len(outcomes)}"]
    told = zip(outcomes, _results(outcomes, bound), strict=True)
    for number, (outcome, results) in enumerate(told, 1):
        inner = ["KTAP version 1", f"# Subtest: {outcome.policy}", f"1..{len(results)}"]
        inner += [_ktap_line(n, result) for n, result in enumerate(results, 1)]
        lines += [f"  {line}" for line in inner]
        red = any(result.kind in RED for result in results)
        lines.append(f"{'not ok' if red else 'ok'} {number} {outcome.policy}")
    return "\n".join(lines) + "\n"


def _ktap_line(number: int, result: Result) -> str:
    word = {"skip": "SKIP", "alike": "XFAIL"}.get(result.kind, "")
    directive = " ".join(x for x in (word, result.said) if x)
    line = f"{'not ok' if result.kind in RED else 'ok'} {number} {result.name}"
    return f"{line} # {directive}" if directive else line


def _results(outcomes: Sequence[Outcome], bound: float) -> list[list[Result]]:
    """All cases under each policy, and behind each case what differs in it."""
    found: dict[str, dict[str, Difference]] = {}
    for difference in differences(outcomes, bound):
        name = difference.name
        found.setdefault(name.partition(":")[0], {})[name] = difference
    return [
        [x for case in outcome.cases for x in _of_case(case, n, found.get(case.name, {}), outcomes)]
        for n, outcome in enumerate(outcomes)
    ]


def _of_case(
    case: Case, position: int, found: Mapping[str, Difference], outcomes: Sequence[Outcome]
) -> list[Result]:
    """The case under the policy at that position; `found` are differences in it, by name."""
    first = outcomes[0].policy
    whole, parts = _whole(case, first if position else ""), []
    for name, difference in found.items():
        mine, theirs = difference.statuses[position], difference.statuses[0]
        said = f"{mine}, and {theirs} under {first}"
        if mine == theirs:
            continue
        if name == case.name:
            whole = Result(name, "differs", said, whole.text, whole.seconds)
        else:
            text = whole.text if difference.tails else _costs(name, outcomes, position)
            parts.append(Result(name, "differs", said, text))
    return [whole, *parts]


def _whole(case: Case, first: str) -> Result:
    """The case as it is where it does not differ; `first` is empty under the first policy."""
    late = (case.late_death,) if case.late_death else ()
    text = "\n".join((*late, *case.complaints, *case.tail))
    kind: Kind = "skip" if case.status == "skip" else "ok"
    said = ""
    if late:
        kind, said = "late", "the guest died when the case had ended"
    elif case.status in FAILURES:
        kind = "alike"
        said = f"{case.status}, {f'as under {first}' if first else 'under the first policy'}"
    return Result(case.name, kind, said, text, case.seconds)


def _costs(name: str, outcomes: Sequence[Outcome], position: int) -> str:
    """A cost under the policy at that position and under the first."""
    both = (outcomes[position], outcomes[0])
    return ", ".join(f"{x.policy}: {costs(x).get(name, 'none')}" for x in both)
