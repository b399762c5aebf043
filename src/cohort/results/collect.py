"""Which finished runs make a set of records, and the command that makes them again."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cohort.errors import UsageError
from cohort.phone.workload import load_workload
from cohort.policy import load_policy, policy_names
from cohort.results.records import ONE_BUILD, ONE_PHONE, Record, check_build, of_result
from cohort.results.runs import Result, measure
from cohort.runs import RunDir
from cohort.vm.machine import PAGE


def of_runs(places: Sequence[Path]) -> list[Record]:
    """The records of a comparison: of these run directories, or all in a directory of such.

    UsageError for a place without runs, for runs that one `cohort compare` could not have made,
    and for a policy that is another by now; Failed for runs of more than one build or phone.
    """
    results = [measure(RunDir(path)) for path in _directories(places)]
    for result in results:
        _check_policy(result)
    commands = _commands(results)
    records = [of_result(x, x.policy, commands[x.policy]) for x in _ordered(results)]
    check_build(records, "the runs do not make one table", (*ONE_BUILD, *ONE_PHONE))
    return records


def of_study(file: Path) -> list[Record]:
    """The records of a study's runs, from the NAME.json that `cohort study NAME` left.

    UsageError if that is no such file; Failed for runs of more than one build.
    """
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        runs = [(str(x["label"]), Path(x["path"])) for x in said["runs"]]
        name = str(said["study"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file}: not what `cohort study` writes: {error}") from error
    results = [(label, measure(RunDir(path))) for label, path in runs]
    seeds = ",".join(map(str, sorted({result.seed for _, result in results})))
    command = f"cohort study {name} --seeds {seeds}"
    records = [of_result(result, label, command) for label, result in results]
    check_build(records, f"the runs of {name} do not make one table")
    return records


def _directories(places: Sequence[Path]) -> list[Path]:
    found = []
    for place in places:
        inside = sorted(x.parent for x in place.glob("*/meta.json"))
        here = [place] if (place / "meta.json").is_file() else inside
        if not here:
            raise UsageError(f"{place}: no finished run is there")
        found += [path.absolute() for path in here]
    return list(dict.fromkeys(found))


def _check_policy(result: Result) -> None:
    """A table calls a run by its policy: the repository's file must still say the same."""
    name, meta = result.policy, result.meta
    if name not in policy_names():
        raise UsageError(f"{name} is no policy of policies/, so its runs cannot be had again")
    if load_policy(name).digest[:16] != meta["policy_id"]:
        raise UsageError(
            f"policies/{name}.toml says something else than when {_of(result)} was run"
        )
    if meta.get("cmdline"):
        words = shlex.join(meta["cmdline"])
        raise UsageError(f"{_of(result)} was run with --append {words}", "make that a policy")


def _of(result: Result) -> str:
    return result.path.name if result.path else result.policy


def _ordered(results: Sequence[Result]) -> list[Result]:
    """By policy as they first come, then by seed."""
    policies = list(dict.fromkeys(result.policy for result in results))
    return sorted(results, key=lambda x: (policies.index(x.policy), x.seed))


def _commands(results: Sequence[Result]) -> dict[str, str]:
    """By policy the `cohort compare` that makes its runs: one for all that have the same seeds."""
    seeds: dict[str, tuple[int, ...]] = {}
    for result in _ordered(results):
        seeds[result.policy] = (*seeds.get(result.policy, ()), result.seed)
    shared = _options(results[0].meta)
    commands = {}
    for policy, numbers in seeds.items():
        names = [name for name, others in seeds.items() if others == numbers]
        listed = ",".join(map(str, numbers))
        commands[policy] = f"cohort compare {' '.join(names)} {shared} --seeds {listed}"
    return commands


def _options(meta: Any) -> str:
    words = [f"--workload {meta['workload']} --launches {meta['launches']}"]
    if meta["memory_mb"] != load_workload(str(meta["workload"])).memory_mb:
        words.append(f"--memory {meta['memory_mb']}")
    if meta.get("arch", "x86_64") != "x86_64":
        words.append(f"--arch {meta['arch']}")
    if meta.get("page_size", PAGE) != PAGE:
        words.append(f"--page-size {meta['page_size'] >> 10}k")
    if meta["accel"] != "deterministic":
        words.append(f"--accel {meta['accel']}")
    return " ".join(words)
