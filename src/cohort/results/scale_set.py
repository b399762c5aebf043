"""Runs of `cohort scale` as records, and the tables that a page makes of them.

Metrics of such a record are of a place, as in `fault process 8 instructions`: of an operation, or
of a lock in it as in `fault process 8 zone taken`. No run of a phone has them. A record is of one
seed; tables have the medians over the seeds of a label.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cohort.errors import UsageError
from cohort.kernel.build import VARIANTS
from cohort.phone.schema import ScaleExperiment
from cohort.phone.workload import load_workload, workload_names
from cohort.results.figures import Figures
from cohort.results.records import Record, check_build, of_result
from cohort.results.rundir import RunDir
from cohort.results.runs import ONE_BUILD, ONE_PHONE, Result, check_meta, machine_words
from cohort.results.scale import (
    HAND,
    Counted,
    Place,
    Probe,
    Rate,
    Row,
    Use,
    count,
    middle,
    middle_rates,
    rates,
    rows,
)
from cohort.results.spread import Spread
from cohort.results.table import MISSING

INSTRUCTIONS, TAKEN, HELD = "instructions", "taken", "under"
RATE, RATIO, LEAST, GREATEST = "rate", "ratio", "least", "greatest"
SHOWN = (HAND, "zone")
"""The locks of the page allocator and of what stands in front of it, whose aims are told whether
they are met or not."""
RARE = 0.01
"""Of another lock a row is shown where a policy misses a limit and takes it so many times an
operation. The lock of the LRU lists is taken once for a batch of 31 folios, 0.03 times a page, and
is not to be lost; what is below are the few times in a whole step that a cache of slabs grows."""
USUAL_SEEDS = [1]
"""Those of a `cohort scale` that says nothing of seeds."""
USUAL, USUAL_FREE = "scale", "scale-free"
"""Its workloads, without and with --free-running."""
WATCHED = VARIANTS["lockstat"][-1]
"""The fragment that a kernel with lock statistics has, and its policy's has not."""


def chosen(runs: Sequence[RunDir]) -> list[RunDir]:
    """The runs of `cohort scale` that records are made of: those with turns if there are any; else
    of each policy, seed and kernel the last, in the order in which they were made.

    UsageError if there is no such run, and for one that does not say what it is.
    """
    mine = [run for run in runs if _experiment(run) is not None]
    if not mine:
        raise UsageError("no finished run of `cohort scale` is there", "cohort scale")
    for run in mine:
        check_meta(run.path / "meta.json", run.meta, {"started": str, "kernel_configs": list})
    if turns := [run for run in mine if _has_turns(run)]:
        return turns
    last: dict[tuple[str, int, bool], RunDir] = {}
    for run in sorted(mine, key=lambda x: str(x.meta["started"])):
        last[str(run.meta["policy"]), int(run.meta["seed"]), is_watched(run)] = run
    return list(last.values())


def is_watched(run: RunDir) -> bool:
    """Whether it is the run on a kernel with lock statistics."""
    return WATCHED in run.meta["kernel_configs"]


def of_scale(runs: Sequence[RunDir]) -> list[Record]:
    """The records of `chosen` runs: of each policy and seed what was counted in its two; or of runs
    with turns what each scheme did a second.

    UsageError if a policy has one of its two or other seeds than the next, and for runs with turns
    that one call could not have made.
    """
    records = _in_turns(runs) if _has_turns(runs[0]) else _counted(runs)
    check_build(records, "the runs do not make one table", (*ONE_BUILD, *ONE_PHONE))
    return records


def _experiment(run: RunDir) -> ScaleExperiment | None:
    """What the run's workload has `cohort scale` count; None without, and for a workload that is
    not the repository's: a set cannot have its runs again."""
    name = str(run.meta["workload"])
    return load_workload(name).scale if name in workload_names() else None


def _has_turns(run: RunDir) -> bool:
    experiment = _experiment(run)
    return experiment is not None and bool(experiment.turns.value)


def _counted(runs: Sequence[RunDir]) -> list[Record]:
    """By policy as they were run first, then by seed."""
    pairs: dict[str, dict[int, dict[bool, RunDir]]] = {}
    for run in runs:
        seeds = pairs.setdefault(str(run.meta["policy"]), {})
        seeds.setdefault(int(run.meta["seed"]), {})[is_watched(run)] = run
    seeds_word = _seeds_word(_one_set_of_seeds(pairs))
    command = f"cohort scale {' '.join(pairs)}{_options(runs[0].meta, USUAL)}{seeds_word}"
    return [
        _of_pair(policy, pair, command)
        for policy, seeds in pairs.items()
        for _, pair in sorted(seeds.items())
    ]


def _one_set_of_seeds(pairs: Mapping[str, Iterable[int]]) -> list[int]:
    """The seeds of all policies; UsageError if two have not the same: medians over different seeds
    are of different launches."""
    (first, seeds), *others = ((policy, sorted(found)) for policy, found in pairs.items())
    for policy, found in others:
        if found != seeds:
            raise UsageError(
                f"{first} was run with seeds {_listed(seeds)}, {policy} with {_listed(found)}",
                "run all with the same",
            )
    return seeds


def _of_pair(policy: str, pair: Mapping[bool, RunDir], command: str) -> Record:
    """What was counted in a policy's two runs with a seed, which is the first one's."""
    if len(pair) < 2:
        raise UsageError(f"{policy} was run once, and is counted in two runs", "cohort scale")
    found = count(policy, list(pair[False].records()), list(pair[True].records()))
    return _record(pair[False], policy, command, told(found))


def _in_turns(runs: Sequence[RunDir]) -> list[Record]:
    """By scheme, then by seed."""
    by_seed = {int(run.meta["seed"]): run for run in runs}
    policies = list(dict.fromkeys(str(run.meta["policy"]) for run in runs))
    if len(policies) > 1 or len(by_seed) < len(runs):
        names = ", ".join(run.path.name for run in runs)
        raise UsageError(f"{len(runs)} runs with turns are there: {names}", "name one a seed")
    options = f" --free-running{_options(runs[0].meta, USUAL_FREE)}"
    command = f"cohort scale {policies[0]}{options}{_seeds_word(sorted(by_seed))}"
    found = {seed: rates(run.records()) for seed, run in sorted(by_seed.items())}
    schemes = dict.fromkeys(x.scheme for each in found.values() for x in each)
    return [
        _record(by_seed[seed], scheme, command, rates_told([x for x in each if x.scheme == scheme]))
        for scheme in schemes
        for seed, each in found.items()
    ]


def _options(meta: Mapping[str, Any], usual: str) -> str:
    """The options that say what was run, but for seeds; a blank is in front of each."""
    workload, launches = str(meta["workload"]), int(meta["launches"])
    words = [] if workload == usual else [f"--workload {workload}"]
    if launches != load_workload(workload).launches.value:
        words.append(f"--launches {launches}")
    return "".join(f" {word}" for word in [*words, *machine_words(meta)])


def _seeds_word(seeds: Sequence[int]) -> str:
    """The option that makes these, nothing for the usual ones; a blank is in front of it."""
    return "" if seeds == USUAL_SEEDS else f" --seeds {_listed(seeds)}"


def _listed(seeds: Sequence[int]) -> str:
    return ",".join(map(str, seeds))


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
            (RATIO, LEAST, GREATEST), (x.ratio.median, x.ratio.low, x.ratio.high), strict=True
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


def _rates_again(record: Record) -> list[Rate]:
    """What a scheme did a second, out of its record; of the rates only the medians are kept."""
    found = []
    for at in _places(record):
        rate, versus, least, most = (
            record.metrics[_name(at, x)] for x in (RATE, RATIO, LEAST, GREATEST)
        )
        ratio = Spread(1, versus, least, most)
        found.append(Rate(at, record.label, Spread(1, rate, rate, rate), ratio))
    return found


def _by_label(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The seeds of each label, in the records' order."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.label, []).append(record)
    return found


def _middles(records: Sequence[Record]) -> list[Counted]:
    """What was counted of each policy, the medians over its seeds."""
    return [middle([_again(x) for x in seeds]) for seeds in _by_label(records).values()]


def _table(heads: Sequence[str], left: int, lines: Sequence[Sequence[str]]) -> str:
    rule = f"|{'---|' * left}{'--:|' * (len(heads) - left)}"
    return "\n".join([f"| {' | '.join(heads)} |", rule, *(f"| {' | '.join(x)} |" for x in lines)])


def instructions(table: str, records: Sequence[Record], figures: Figures) -> str:
    """A row an operation, a column a policy: its instructions, and how many times the first's."""
    columns = _middles(records)
    lines = []
    for at, base in columns[0].instructions.items():
        cells = [
            figures.mark(
                table,
                f"{_name(at, INSTRUCTIONS)} of {column.policy}",
                _times(column.instructions[at], base, index),
            )
            for index, column in enumerate(columns)
        ]
        lines.append([at.label, *cells])
    return _table(["operation", *(f"`{x.policy}`" for x in columns)], 1, lines)


def _times(value: float, base: float, index: int) -> str:
    return f"{value:,.0f} ({value / base:.3f})" if index and base else f"{value:,.0f}"


def locks(table: str, records: Sequence[Record], figures: Figures) -> str:
    """A row a lock of SHOWN in an operation, and one each other lock of which a policy misses a
    limit: times taken and instructions under it, and in brackets how many times the first
    column's; in bold where a limit is passed."""
    columns = _middles(records)
    lines, last = [], None
    for row in rows(columns):
        if row.lock not in SHOWN and not _told_besides(row):
            continue
        cells = [
            figures.mark(table, f"{row.place.label}: {row.lock} of {x.policy}", _use(row, index))
            for index, x in enumerate(columns)
        ]
        lines.append(["" if row.place == last else row.place.label, row.lock, *cells])
        last = row.place
    return _table(["operation", "lock", *(f"`{x.policy}`" for x in columns)], 2, lines)


def _told_besides(row: Row) -> bool:
    """Whether a policy misses a limit with a lock that it does not take rarely."""
    return any(
        use is not None and use.acquired >= RARE and row.met(index) is False
        for index, use in enumerate(row.uses)
        if index
    )


def _use(row: Row, index: int) -> str:
    use = row.uses[index]
    if use is None:
        return MISSING
    text = f"{use.acquired:.3f} / {use.held:,.0f}"
    if not index:
        return text
    ratios = row.ratios(index)
    if ratios is not None:
        text += f" ({ratios[0]:.2f} / {ratios[1]:.2f})"
    return f"**{text}**" if row.met(index) is False else text


def speeds(table: str, records: Sequence[Record], figures: Figures) -> str:
    """A row an operation, a column a scheme: operations a second in times of none of the same
    turn, median and range over the turns; of none itself, operations a second. Of several seeds
    the median of the medians, and the range over all turns. In bold where the limit is missed."""
    columns = {
        label: middle_rates([_rates_again(x) for x in seeds])
        for label, seeds in _by_label(records).items()
    }
    lines = []
    for same in zip(*columns.values(), strict=True):
        at = same[0].place
        cells = [
            figures.mark(table, f"{at.label} of {x.scheme}", _speed(x, index))
            for index, x in enumerate(same)
        ]
        lines.append([at.label, *cells])
    return _table(["operation", *(f"`{label}`" for label in columns)], 1, lines)


def _speed(found: Rate, index: int) -> str:
    if not index:
        return f"{found.rate.median:,.0f}"
    ratio = found.ratio
    text = f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
    return text if found.met else f"**{text}**"


TABLES = {"instructions": instructions, "locks": locks, "speeds": speeds}
"""By name, what a page may ask for."""
