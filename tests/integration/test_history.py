"""The short run of this commit beside the newest that the history has kept."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from cohort import paths, runs
from cohort.kernel.build import Kernel
from cohort.policy import load_policy
from cohort.results import history
from cohort.results.pages import Home
from cohort.results.records import Record, of_result, read_set
from cohort.results.rundir import RunDir
from cohort.results.runs import measure
from cohort.run_spec import RunSpec

pytestmark = [pytest.mark.integration, pytest.mark.night]

THIS = "this tree"
"""In place of the commit: what is changed and not yet committed is judged as well."""


def record_of(run: RunDir) -> Record:
    """The run as the history keeps runs."""
    result = measure(run)
    versions = {**result.meta["versions"], "cohort_git": THIS}
    result = replace(result, meta={**result.meta, "versions": versions})
    return of_result(result, result.policy, "cohort compare")


def test_this_tree_is_not_worse_than_the_newest_commit_kept(
    kernel: Callable[[str], Kernel],
) -> None:
    kernel("cohort")
    home = Home(paths.ROOT)
    name = history.HISTORY
    kept = read_set(home.records / f"{name}.jsonl")
    specs = [
        RunSpec(load_policy(policy), history.WORKLOAD, history.LAUNCHES)
        for policy in (history.RIVAL, history.OURS)
    ]
    made = [record_of(run) for run in runs.execute_matrix(specs, 1)]
    newest = [x for x in kept if x.commit == history.commits(kept)[-1] and x.seed == 1]
    assert history.losses([*newest, *made], history.read(home.records)[1]) == []
