"""Finished runs as the repository keeps them: what was run, on what, and the metrics. No more.

A set of runs is a file `docs/results/records/NAME.jsonl`, a line a run, which a pull request shows
line by line. Pages of results are made from nothing else, so a clone without `out/` can check them.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from cohort import host, named
from cohort.errors import Failed, UsageError
from cohort.results.experiments import Number
from cohort.results.runs import ONE_BUILD, Result
from cohort.units import PAGE

NO_SEED = 0
"""Of a suite's run, in which nothing is drawn."""


class NoRecords(UsageError):
    """There is no set of that name."""


class Record(BaseModel):
    """One run. `label` is its column: the policy's name, or the one that a study gives it. Of a
    suite `workload` is its name, `launches` are its cases, and `seed` is 0.

    `records_id` is the beginning of the SHA-256 of what the guest said: a deterministic run that
    is made again has the same. Ids of 16 digits as in meta.json; memory in MiB, a page in bytes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    label: str
    policy: str
    seed: int
    workload: str
    launches: int
    memory_mb: int
    cpus: int
    accel: str
    command: str
    commit: str
    tree_id: str
    kernel_id: str
    guest_id: str
    workload_digest: str
    policy_id: str
    kernel: str
    qemu: str
    gcc: str
    records_id: str
    arch: str = "x86_64"
    page_size: int = PAGE
    metrics: dict[str, int | float]

    @property
    def result(self) -> Result:
        """The same run as the tables take it, called by its label."""
        meta = self.model_dump(exclude={"metrics"})
        return Result(self.label, self.seed, self.workload, self.metrics, {}, meta)


def of_result(result: Result, label: str, command: str) -> Record:
    """The record of a finished run. UsageError if the run could not be had again."""
    meta, path = result.meta, result.path
    assert path is not None
    versions = meta["versions"]
    commit = str(versions["cohort_git"])
    check_commit(path.name, commit)
    check_tree(path.name, meta.get("tree"))
    return Record(
        label=label,
        policy=result.policy,
        seed=result.seed,
        workload=result.workload,
        command=command,
        commit=commit,
        kernel=versions["kernel"],
        qemu=versions["qemu"],
        gcc=versions["gcc"],
        tree_id=versions["tree_id"],
        records_id=host.digest_file(path / "records.jsonl")[:16],
        metrics={name: x for name, x in result.metrics.items() if x is not None},
        **{name: meta[name] for name in _AS_IN_META},
        **{name: meta[name] for name in ("arch", "page_size") if name in meta},
    )


def check_commit(name: str, commit: str) -> None:
    """UsageError if the run of that name was made in a changed checkout."""
    if commit.endswith("-dirty") or commit == "unknown":
        raise UsageError(
            f"{name} is of no commit ({commit}), so it cannot be had again",
            "make it in a clean checkout: git worktree add --detach DIR COMMIT",
        )


def check_tree(name: str, tree: str | None) -> None:
    """UsageError if the run of that name was made on a tree of the user's."""
    if tree:
        raise UsageError(
            f"{name} was run with --tree {tree}, which is in no commit of this repository",
            "keep its directory, or make the run without, with --fresh",
        )


_AS_IN_META = (
    *("launches", "memory_mb", "cpus", "accel"),
    *("kernel_id", "guest_id", "workload_digest", "policy_id"),
)


def check_build(records: Sequence[Record], where: str, keys: Iterable[str] = ONE_BUILD) -> None:
    """Failed, beginning with `where`, if two of the records differ in one of `keys`."""
    for key in keys:
        seen = {getattr(record, key): record for record in reversed(records)}
        if len(seen) > 1:
            a, b = sorted(seen.values(), key=records.index)[:2]
            raise Failed(
                f"{where}: runs of different {key}: {a.label} (seed {a.seed}) has "
                f"{getattr(a, key)}, {b.label} (seed {b.seed}) has {getattr(b, key)}"
            )


def write_set(path: Path, records: Sequence[Record]) -> None:
    """Write a set, its directory too. UsageError if two runs would be the same cell of a table."""
    cells: dict[tuple[str, int], Record] = {}
    for record in records:
        first = cells.setdefault((record.label, record.seed), record)
        if first is not record:
            raise UsageError(f"two runs of {record.label} with seed {record.seed}")
    write_lines(path, records)


def write_lines(path: Path, records: Sequence[Record]) -> None:
    """Write records in the order given, their directory too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(record.model_dump(), ensure_ascii=False) for record in records)
    host.write_text(path, "".join(f"{line}\n" for line in lines))


def read_set(path: Path) -> list[Record]:
    """The records of a set. NoRecords if there is none, Failed for a line that is no record."""
    try:
        # Not `splitlines`: a text may have what that takes for the end of a line.
        with path.open(encoding="utf-8", newline="\n") as file:
            lines = list(file)
    except FileNotFoundError as error:
        raise NoRecords(
            f"there are no records {path.stem!r}",
            named.near(path.stem, set_names(path.parent))
            or f"make them: cohort results add {path.stem}",
        ) from error
    return parse_set(path, lines)


def parse_set(path: Path, lines: Iterable[str]) -> list[Record]:
    """The records in the lines that the file of a set has, or had. Failed for no line, and for one
    that is no record."""
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(Record.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            what = ".".join(map(str, first["loc"])) or "line"
            raise Failed(f"{path}:{number}: {what}: {first['msg']}") from error
    if not records:
        raise Failed(f"{path}: no record in it")
    return records


def set_names(directory: Path) -> list[str]:
    """The names of the sets there."""
    return sorted(path.stem for path in directory.glob("*.jsonl"))


def values(records: Sequence[Record], label: str, metric: str) -> list[Number]:
    """A metric of the runs of a label, by seed; None for a run that has none."""
    return [x.metrics.get(metric) for x in records if x.label == label]
