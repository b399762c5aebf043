"""The Makefile's lists agree with what there is."""

import re

from cohort import paths
from cohort.policy import load_policy
from cohort.suites.runner import Machine
from cohort.suites.schema import load_suite, suite_names

TEXT = (paths.ROOT / "Makefile").read_text()


def listed(name: str) -> list[str]:
    """The words, or the names between commas, of a variable of the Makefile; none without it."""
    found = re.search(rf"^{name} := (.*)$", TEXT, re.MULTILINE)
    return re.split(r"[ ,]", found[1]) if found else []


def test_make_suites_runs_every_suite_once() -> None:
    assert sorted(listed("SUITES")) == suite_names()


def test_make_suites_has_a_machine_for_each_policy() -> None:
    """What a suite's machine cannot have ends its command before a guest is booted."""
    for name in listed("SUITES"):
        suite = load_suite(name)
        policies = listed(f"POLICIES_{name}") or listed("POLICIES")
        assert policies[0] == "none"
        for policy in policies:
            Machine(suite.cpus, suite.memory_mb, debug=False).check(load_policy(policy))
