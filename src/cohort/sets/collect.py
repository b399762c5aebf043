"""Which finished runs make a set of records, and the command that makes them again."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cohort.errors import UsageError
from cohort.kernel.build import KernelSpec
from cohort.phone.workload import load_workload, workload_names
from cohort.policy import load_policy, policy_names
from cohort.results import scale_set
from cohort.results.records import Record, check_build, of_result
from cohort.results.rundir import RunDir, finished
from cohort.results.runs import (
    OLDER,
    ONE_BUILD,
    ONE_PHONE,
    Result,
    check_meta,
    machine_words,
    measure,
)
from cohort.run_check import check_run
from cohort.run_spec import RunSpec
from cohort.study.matrix import Options, columns_of, specs_of
from cohort.study.schema import Study, load_study, study_names
from cohort.vm.machine import Latency

AGAIN = "make the runs again"


def of_runs(places: Sequence[Path]) -> list[Record]:
    """The records of a comparison: of these run directories, or all in a directory of such.

    UsageError for a place without runs, for runs that one `cohort compare` could not have made,
    and for a policy or a workload that is another by now; Failed for runs of more
    than one build or phone.
    """
    results = [measure(run) for run in run_directories(places)]
    for result in results:
        _check_policy(result)
    commands = _commands(results)
    records = [of_result(x, x.policy, commands[x.policy]) for x in _ordered(results)]
    check_build(records, "the runs do not make one table", (*ONE_BUILD, *ONE_PHONE))
    for result in results:
        _check_workload(result, _spec(result))
    return records


def of_study(file: Path) -> list[Record]:
    """The records of a study's runs, from the NAME.json that `cohort study NAME` left.

    UsageError if that is no such file, and for runs that the study of that name would not make by
    now; Failed for runs of more than one build.
    """
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        runs = [(str(x["label"]), Path(x["path"])) for x in said["runs"]]
        name = str(said["study"])
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}", "make it: cohort study NAME") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file}: not what `cohort study` writes: {error}") from error
    if name not in study_names():
        raise UsageError(f"{name} is no study of studies/, so its runs cannot be had again")
    for _, path in runs:
        _check_meta(RunDir(path))
    results = [(label, measure(RunDir(path))) for label, path in runs]
    command = _study_command(load_study(name), results)
    records = [of_result(result, label, command) for label, result in results]
    check_build(records, f"the runs of {name} do not make one table")
    return records


def of_scale(places: Sequence[Path]) -> list[Record]:
    """The records of the runs of `cohort scale` at these places, others left out.

    UsageError for a place without runs, and for a policy or a workload that is another by now, or
    not the repository's; and what `chosen` and `of_scale` of `scale_set` raise.
    """
    runs = scale_set.chosen(run_directories(places))
    for run in runs:
        named = (str(run.meta["policy"]), int(run.meta["seed"]), str(run.meta["workload"]))
        # The kernel with lock statistics is the verb's own, and no wish of a user.
        own = {"config": None} if scale_set.is_watched(run) else {}
        result = Result(*named, {}, {}, {**run.meta, **own}, run.path)
        _check_policy(result)
        _check_workload(result, _spec(result))
    return scale_set.of_scale(runs)


def run_directories(places: Sequence[Path]) -> list[RunDir]:
    """The runs at these places, each a run directory or one of such. UsageError for a place without
    runs, and for one that does not say what was run."""
    found: list[Path] = []
    for place in places:
        here = [place] if (place / "meta.json").is_file() else finished(place)
        if not here:
            raise UsageError(f"{place}: no finished run is there")
        found += [path.absolute() for path in here]
    runs = [RunDir(path) for path in dict.fromkeys(found)]
    for run in runs:
        _check_meta(run)
    return runs


_META = {
    **dict.fromkeys(("policy", "policy_id", "workload", "workload_digest", "accel"), str),
    **dict.fromkeys(("kernel_id", "guest_id"), str),
    **dict.fromkeys(("seed", "launches", "memory_mb", "cpus"), int),
    "versions": dict,
}
_VERSIONS = dict.fromkeys(("cohort_git", "tree_id", "kernel", "qemu", "gcc"), str)


def _check_meta(run: RunDir) -> None:
    """UsageError if its meta.json does not say what a record wants."""
    file, meta = run.path / "meta.json", run.meta
    check_meta(file, meta, _META)
    check_meta(file, meta["versions"], _VERSIONS)


def _study_command(study: Study, results: Sequence[tuple[str, Result]]) -> str:
    """The `cohort study` that makes these runs. UsageError if it would make others."""
    for label, result in results:
        spec = _study_spec(study, label, result, launches=result.meta["launches"])
        _check_column(result, spec, f"studies/{study.name}.toml: {label}")
        _check_workload(result, spec)
    meta = results[0][1].meta
    seeds = ",".join(map(str, sorted({result.seed for _, result in results})))
    words = [f"cohort study {study.name} --seeds {seeds}"]
    launches = [result.meta["launches"] for _, result in results]
    if launches != [_own_launches(_study_spec(study, *run)) for run in results]:
        # A column that asks for fewer has fewer all the same.
        words.append(f"--launches {max(launches)}")
    labels = dict.fromkeys(label for label, _ in results)
    if len(labels) < len(study.columns):
        words += [f"--run {shlex.quote(label)}" for label in labels]
    return " ".join([*words, *_machine(meta, study.accel)])


def _study_spec(study: Study, label: str, result: Result, launches: int | None = None) -> RunSpec:
    """The run of a column as the study makes it now, on the machine that the result is of."""
    meta = {**OLDER, **result.meta}
    machine = {key: meta[key] for key in OLDER}
    options = Options([result.seed], launches, result.meta["accel"], **machine)
    return specs_of(study, columns_of(study, [label]), options)[0]


def _own_launches(spec: RunSpec) -> int:
    return spec.launches or load_workload(spec.workload, dict(spec.change)).launches.value


def _check_column(result: Result, spec: RunSpec, where: str) -> None:
    """UsageError if a study's column is of another policy, command line or kernel by now."""
    meta = result.meta
    now = (spec.policy.name, spec.policy.digest[:16], list(spec.cmdline), spec.config)
    run = (meta["policy"], meta["policy_id"], meta.get("cmdline", []), meta.get("config"))
    if now != run:
        raise UsageError(f"{where}: says something else than when {_of(result)} was run", AGAIN)


def _spec(result: Result) -> RunSpec:
    """The run of a comparison as the checkout makes it now."""
    meta = {**OLDER, **result.meta}
    return RunSpec(
        load_policy(result.policy),
        result.workload,
        meta["launches"],
        result.seed,
        meta["accel"],
        meta["memory_mb"],
        kernel=KernelSpec(tuple(meta.get("kernel_configs", ())), meta["arch"]),
    )


def _check_workload(result: Result, spec: RunSpec) -> None:
    """UsageError if the guest would be told something else by now: another workload of that name.

    Told by phone.conf, which has all numbers of a workload but those of its machine: the workload's
    digest takes the storage's image, which may not be there.
    """
    meta, path = result.meta, result.path
    assert path is not None
    checked = check_run(spec)
    storage = checked.workload.storage
    cost = asdict(Latency(storage.read_us.value, storage.write_us.value, storage.mb_per_s.value))
    said = (path / "phone.conf").read_text(encoding="utf-8")
    told = (said, meta["cpus"], meta.get("storage"))
    if told != (checked.conf, checked.workload.cpus, cost):
        raise UsageError(
            f"workloads/{result.workload}.toml says something else than when {_of(result)} was run",
            AGAIN,
        )


def _check_policy(result: Result) -> None:
    """A table calls a run by its policy: the repository's file must still say the same. And its
    workload must be one of the repository's."""
    name, meta = result.policy, result.meta
    if name not in policy_names():
        raise UsageError(f"{name} is no policy of policies/, so its runs cannot be had again")
    if result.workload not in workload_names():
        raise UsageError(
            f"{result.workload} is no workload of workloads/, so its runs cannot be had again"
        )
    if load_policy(name).digest[:16] != meta["policy_id"]:
        raise UsageError(
            f"policies/{name}.toml says something else than when {_of(result)} was run"
        )
    if meta.get("cmdline"):
        words = shlex.join(meta["cmdline"])
        raise UsageError(f"{_of(result)} was run with --append {words}", "make that a policy")
    if meta.get("change"):
        words = " ".join(f"--change {shlex.quote(word)}" for word in meta["change"])
        raise UsageError(f"{_of(result)} was run with {words}", "make that a workload")
    if config := meta.get("config"):
        raise UsageError(f"{_of(result)} was run with --config {config}", "leave that out")


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


def _options(meta: Mapping[str, Any]) -> str:
    words = [f"--workload {meta['workload']} --launches {meta['launches']}"]
    if meta["memory_mb"] != load_workload(str(meta["workload"])).memory_mb:
        words.append(f"--memory {meta['memory_mb']}")
    return " ".join([*words, *_machine(meta, "deterministic")])


def _machine(meta: Mapping[str, Any], usual: str) -> list[str]:
    """The options that say which machine it was, and which accelerator if not the `usual` one."""
    accel = [f"--accel {meta['accel']}"] if meta["accel"] != usual else []
    return [*machine_words(meta), *accel]
