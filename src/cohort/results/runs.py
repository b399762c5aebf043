"""What the results are made from: finished runs with their metrics, series and origin."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cohort.errors import Failed, GuestError, UsageError
from cohort.kept import used
from cohort.results.experiments import Number
from cohort.results.metrics import compute_metrics
from cohort.results.record_schema import check_file
from cohort.results.series import Series, compute_series
from cohort.units import PAGE

ACCELERATORS = {
    "deterministic": "deterministic (QEMU TCG under -icount: virtual time, 1 ns an instruction)",
    "tcg": "free TCG",
    "kvm": "KVM",
}
RATIOS_ONLY = "times depend on this host and its load: read them as ratios, not as times"

ONE_PHONE = ("arch", "page_size", "workload_digest", "memory_mb", "cpus", "launches", "accel")
"""Keys of meta.json and of a record: what was emulated. Runs in one table have it in common, unless
the table compares phones."""

OF_KERNELS = ("tree_id", "gcc")
"""Likewise, of what their kernels are made."""
OF_GUESTS = ("guest_id", "qemu")
"""What ran in all of them, and on what."""
ONE_BUILD = ("commit", *OF_KERNELS, *OF_GUESTS)
"""What all runs of a table that is kept have in common, whatever they run."""

ASKED = {"cmdline": "--append", "config": "--config", "change": "--change"}
"""Of a run alone, and not of its policy: words on the command line, fragments of the kernel and
numbers of the workload, and the options that ask for them."""
MUST_MATCH = ("workload", *ONE_PHONE, *OF_GUESTS, *ASKED)
"""Keys of meta.json that runs in one table have in common, whichever kernels their policies name.
"""
KINDS = {
    **dict.fromkeys(("arch", "accel", "workload_digest", "guest_id", "kernel_id", "qemu"), str),
    **dict.fromkeys(("page_size", "memory_mb", "cpus", "launches"), int),
    **dict.fromkeys(("cmdline", "policy_cmdline", "kernel_configs", "change"), list),
    **dict.fromkeys(("versions", "storage"), dict),
}
"""What a meta.json has there, if it does."""
OLDER: dict[str, str | int] = {"arch": "x86_64", "page_size": PAGE}
"""Some of them, and what each was before runs said so."""


class FinishedRun(Protocol):
    """What is needed of a run directory."""

    @property
    def path(self) -> Path:
        """The directory."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """Its meta.json."""

    def records(self) -> Iterable[Mapping[str, Any]]:
        """Its records, in order."""


@dataclass(frozen=True)
class Result:
    """One run, measured. `meta` is its meta.json, `path` its directory."""

    policy: str
    seed: int
    workload: str
    metrics: Mapping[str, Number]
    series: Series
    meta: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None

    @property
    def accel(self) -> str:
        """The accelerator's name as in meta.json."""
        return str(self.meta.get("accel", "deterministic"))


def measure(run: FinishedRun) -> Result:
    """The metrics and series of a finished run. Raises CohortError for malformed records, and for a
    meta.json that does not say what was run."""
    used(run.path)
    meta = run.meta
    said = {key: kind for key, kind in KINDS.items() if key in meta}
    check_meta(run.path / "meta.json", meta, said | {"policy": str, "seed": int, "workload": str})
    records = list(run.records())
    metrics = metrics_of(run.path, records)
    with _damage_told(run.path):
        series = compute_series(records)
    return Result(meta["policy"], meta["seed"], meta["workload"], metrics, series, meta, run.path)


def metrics_of(path: Path, records: Sequence[Mapping[str, Any]]) -> dict[str, Number]:
    """The metrics of a run's records; Failed if it is these that are not as a guest writes them."""
    with _damage_told(path):
        return compute_metrics(records)


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """What goes wrong with a run's records is Failed, naming the first that is not as the schema
    has it; where all are, it is a defect of the lab."""
    records = path / "records.jsonl"
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        try:
            check_file(records)
        except GuestError as error:
            raise Failed(f"{records}: {error}", "make the run again, or leave it out") from error
        raise


def check_meta(path: Path, meta: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    """UsageError if a meta.json lacks one of these keys, or has another kind of value there."""
    for key, kind in kinds.items():
        if not isinstance(meta.get(key), kind):
            raise UsageError(
                f"{path}: not what a run leaves: {key} is {meta.get(key)!r:.40}",
                "make the run again, or leave it out",
            )


def check_comparable(
    results: Sequence[Result], force: bool = False, built_now: bool = False
) -> None:
    """Raise UsageError if two runs would be one cell of a table, or if the runs differ in something
    that no policy is meant to change. `force` takes such a difference.

    One kernel may be of two trees that differ in a document; kernels that differ may not, nor be of
    two compilers, unless they were built just now (`built_now`), of one tree. If all
    have one kernel, it is no difference that its fragments are some policies' own and were named
    with --config for the others.
    """
    check_cells(results)
    if force:
        return
    for what, seen in differences(results, built_now):
        (one, first), (two, second) = list(seen.items())[:2]
        a, b = first[-1], second[-1]
        raise UsageError(
            f"runs differ in {what}: {a.policy} (seed {a.seed}) has {one}, "
            f"{b.policy} (seed {b.seed}) has {two}",
            "make them again alike, or compare them all the same with --force",
        )


def differences(
    results: Sequence[Result], built_now: bool = False
) -> Iterator[tuple[str, dict[str, list[Result]]]]:
    """What the runs have not in common though no policy is meant to change it, by the name of an
    option or a key of meta.json, and the runs of each thing that is said there. `built_now` is that
    of `check_comparable`."""
    kernels = {result.meta.get("kernel_id") for result in results}
    built = () if built_now or len(kernels) == 1 else OF_KERNELS
    keys = [key for key in MUST_MATCH if key != "config" or len(kernels) > 1]
    for key in (*keys, *built):
        seen: dict[str, list[Result]] = {}
        for result in results:
            seen.setdefault(_said(result.meta, key), []).append(result)
        if len(seen) > 1:
            yield ASKED.get(key, key), seen


def machine_words(meta: Mapping[str, Any]) -> list[str]:
    """The options of a command that say which machine a run was on, if not the usual one."""
    meta = {**OLDER, **meta}
    words = []
    if meta["arch"] != OLDER["arch"]:
        words.append(f"--arch {meta['arch']}")
    if meta["page_size"] != OLDER["page_size"]:
        words.append(f"--page-size {meta['page_size'] >> 10}k")
    return words


def check_cells(results: Sequence[Result]) -> None:
    """Raise UsageError for two runs of one policy and seed: a table has a value of each once."""
    cells: dict[tuple[str, int], Result] = {}
    for result in results:
        first = cells.setdefault((result.policy, result.seed), result)
        if first is not result:
            raise UsageError(
                f"two runs of {result.policy} with seed {result.seed}: {first.path}, {result.path}",
                "name one of the two",
            )


def _said(meta: Mapping[str, Any], key: str) -> str:
    """What a run says of a key, in words."""
    value = {**OLDER, **meta, **meta.get("versions", {})}.get(key)
    if key in ASKED and not value:
        return "none"
    return shlex.join(value) if isinstance(value, list) else str(value)


def policies_of(results: Sequence[Result]) -> list[str]:
    """The policies in order of appearance; the first is the baseline."""
    return list(dict.fromkeys(result.policy for result in results))


def accelerator_label(accel: str) -> str:
    """What a table says of the accelerator; ends in † where times are only ratios."""
    label = ACCELERATORS.get(accel, accel)
    return label if accel == "deterministic" else f"{label} †"
