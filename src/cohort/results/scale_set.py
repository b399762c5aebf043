"""Runs of `cohort scale` as records, and the tables that a page makes of them.

Metrics of such a record are of a place, as in `fault process 8 instructions`: of an operation, or
of a lock in it as in `fault process 8 zone taken`. No run of a phone has them.
"""

from collections.abc import Mapping, Sequence

from cohort.errors import UsageError
from cohort.kernel.build import VARIANTS
from cohort.phone.workload import load_workload
from cohort.results.figures import Figures
from cohort.results.records import ONE_BUILD, ONE_PHONE, Record, check_build, of_result
from cohort.results.runs import Result
from cohort.results.scale import (
    ACQUIRED_LIMIT,
    HAND,
    HELD_LIMIT,
    Counted,
    Place,
    Probe,
    Rate,
    Row,
    Use,
    count,
    rates,
    rows,
)
from cohort.results.table import MISSING
from cohort.runs import RunDir

INSTRUCTIONS, TAKEN, HELD = "instructions", "taken", "under"
RATE, RATIO = "rate", "ratio"
SHOWN = (HAND, "zone")
"""The locks of the page allocator and of what stands in front of it."""
WATCHED = VARIANTS["lockstat"][-1]
"""The fragment that a kernel with lock statistics has, and its policy's has not."""


def of_scale(runs: Sequence[RunDir]) -> list[Record]:
    """The records of `cohort scale`, those of other workloads left out: of each policy what was
    counted in its two runs; or of a run with turns what each scheme did a second.

    UsageError if there is no such run, or a policy has one of its two.
    """
    mine = [run for run in runs if load_workload(str(run.meta["workload"])).scale is not None]
    if not mine:
        raise UsageError("no finished run of `cohort scale` is there", "cohort scale")
    turns = [run for run in mine if _has_turns(run)]
    records = _in_turns(turns) if turns else _counted(mine)
    check_build(records, "the runs do not make one table", (*ONE_BUILD, *ONE_PHONE))
    return records


def _has_turns(run: RunDir) -> bool:
    experiment = load_workload(str(run.meta["workload"])).scale
    return experiment is not None and bool(experiment.turns.value)


def _counted(runs: Sequence[RunDir]) -> list[Record]:
    pairs: dict[str, dict[bool, RunDir]] = {}
    for run in sorted(runs, key=lambda x: str(x.meta["started"])):
        watched = WATCHED in run.meta["kernel_configs"]
        pairs.setdefault(str(run.meta["policy"]), {})[watched] = run
    names = " ".join(pairs)
    records = []
    for policy, pair in pairs.items():
        if len(pair) < 2:
            raise UsageError(f"{policy} was run once, and is counted in two runs", "cohort scale")
        found = count(policy, list(pair[False].records()), list(pair[True].records()))
        records.append(_record(pair[False], policy, f"cohort scale {names}", told(found)))
    return records


def _in_turns(runs: Sequence[RunDir]) -> list[Record]:
    if len(runs) > 1:
        raise UsageError(
            f"{len(runs)} runs with turns are there: {runs[0].path.name}, {runs[1].path.name}",
            "name one",
        )
    found = rates(runs[0].records())
    command = f"cohort scale {runs[0].meta['policy']} --free-running"
    return [
        _record(runs[0], scheme, command, rates_told([x for x in found if x.scheme == scheme]))
        for scheme in dict.fromkeys(x.scheme for x in found)
    ]


def _record(run: RunDir, label: str, command: str, metrics: Mapping[str, float]) -> Record:
    meta = run.meta
    policy, workload = str(meta["policy"]), str(meta["workload"])
    result = Result(policy, int(meta["seed"]), workload, metrics, {}, meta, run.path)
    return of_result(result, label, command)


def told(counted: Counted) -> dict[str, float]:
    """What was counted of a policy, by the names of metrics."""
    found = {_name(at, INSTRUCTIONS): ns for at, ns in counted.instructions.items()}
    for at, locks in counted.locks.items():
        for lock, use in locks.items():
            found[_name(at, lock, TAKEN)] = use.acquired
            found[_name(at, lock, HELD)] = use.held
    return {name: round(value, 6) for name, value in found.items()}


def rates_told(found: Sequence[Rate]) -> dict[str, float]:
    """Operations a second of a scheme, and what they are in times of none: median and range."""
    metrics = {}
    for x in found:
        metrics[_name(x.place, RATE)] = x.rate.median
        for name, value in zip(
            (RATIO, "least", "greatest"), (x.ratio.median, x.ratio.low, x.ratio.high), strict=True
        ):
            metrics[_name(x.place, name)] = value
    return {name: round(value, 6) for name, value in metrics.items()}


def _name(at: Place, *what: str) -> str:
    return " ".join((at.op, at.kind, str(at.workers), *what))


def _place(name: str) -> Place:
    op, kind, workers = name.split()[:3]
    return Place(op, kind, int(workers))


def _places(record: Record) -> list[Place]:
    return list(dict.fromkeys(map(_place, record.metrics)))


def _again(record: Record) -> Counted:
    """What was counted, out of its record; the probe is not kept."""
    metrics = record.metrics
    locks: dict[Place, dict[str, Use]] = {at: {} for at in _places(record)}
    for name, taken in metrics.items():
        words = name.split()
        if words[-1] == TAKEN:
            lock = " ".join(words[3:-1])
            at = _place(name)
            locks[at][lock] = Use(taken, metrics[_name(at, lock, HELD)])
    steps = {at: metrics[_name(at, INSTRUCTIONS)] for at in locks}
    return Counted(record.label, steps, locks, Probe(0.0, 0.0))


def _table(heads: Sequence[str], left: int, lines: Sequence[Sequence[str]]) -> str:
    rule = f"|{'---|' * left}{'--:|' * (len(heads) - left)}"
    return "\n".join([f"| {' | '.join(heads)} |", rule, *(f"| {' | '.join(x)} |" for x in lines)])


def instructions(table: str, records: Sequence[Record], figures: Figures) -> str:
    """A row an operation, a column a policy: its instructions, and how many times the first's."""
    lines = []
    for at in _places(records[0]):
        name = _name(at, INSTRUCTIONS)
        base = records[0].metrics[name]
        cells = [
            figures.mark(
                table,
                f"{name} of {record.label}",
                _times(f"{record.metrics[name]:,.0f}", record.metrics[name], base, index),
            )
            for index, record in enumerate(records)
        ]
        lines.append([at.label, *cells])
    return _table(["operation", *(f"`{x.label}`" for x in records)], 1, lines)


def _times(text: str, value: float, base: float, index: int) -> str:
    return f"{text} ({value / base:.3f})" if index and base else text


def locks(table: str, records: Sequence[Record], figures: Figures) -> str:
    """A row a lock of SHOWN in an operation: times taken and instructions under it, and in
    brackets how many times the first column's; in bold where a limit is passed."""
    lines, last = [], None
    for row in rows([_again(record) for record in records]):
        if row.lock not in SHOWN:
            continue
        cells = [
            figures.mark(table, f"{row.place.label}: {row.lock} of {x.label}", _use(row, index))
            for index, x in enumerate(records)
        ]
        lines.append(["" if row.place == last else row.place.label, row.lock, *cells])
        last = row.place
    return _table(["operation", "lock", *(f"`{x.label}`" for x in records)], 2, lines)


def _use(row: Row, index: int) -> str:
    use = row.uses[index]
    if use is None:
        return MISSING
    ratios = row.ratios(index) if index else None
    text = f"{use.acquired:.3f} / {use.held:,.0f}"
    if ratios is None:
        return text
    # As it is shown: of an acquisition in ten thousand nothing is to be seen.
    taken, held = (round(ratio, 2) for ratio in ratios)
    over = "**" if taken > ACQUIRED_LIMIT or held > HELD_LIMIT else ""
    return f"{over}{text} ({taken:.2f} / {held:.2f}){over}"


def speeds(table: str, records: Sequence[Record], figures: Figures) -> str:
    """A row an operation, a column a scheme: operations a second in times of none of the same
    turn, median and range over the turns; of none itself, operations a second."""
    lines = []
    for at in _places(records[0]):
        cells = [
            figures.mark(table, f"{at.label} of {record.label}", _speed(record.metrics, at, index))
            for index, record in enumerate(records)
        ]
        lines.append([at.label, *cells])
    return _table(["operation", *(f"`{x.label}`" for x in records)], 1, lines)


def _speed(metrics: Mapping[str, float], at: Place, index: int) -> str:
    if not index:
        return f"{metrics[_name(at, RATE)]:,.0f}"
    middle, least, most = (metrics[_name(at, x)] for x in (RATIO, "least", "greatest"))
    return f"{middle:.3f} [{least:.3f}, {most:.3f}]"


TABLES = {"instructions": instructions, "locks": locks, "speeds": speeds}
"""By name, what a page may ask for."""
