"""What a template of a page of results may ask for: tables, figures and pictures of records."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cohort import policy_page
from cohort.errors import Failed
from cohort.results import bounds, history, record_schema, scale_set, tiers
from cohort.results.catalogue import BY_NAME, ORDERS, Metric, meant
from cohort.results.figures import Figures
from cohort.results.judgement import SIGNS, judge
from cohort.results.records import NO_SEED, Record, check_build, read_set, values
from cohort.results.runs import ONE_PHONE, accelerator_label
from cohort.results.spread import Spread, spread
from cohort.results.table import MISSING, Cell

_COMMAND_COLUMNS = 94
"""Of a command, which stands four columns in and may go on in the next line."""


@dataclass(frozen=True)
class Best:
    """In place of a label: of these the one that is best by the metric asked for."""

    labels: tuple[str, ...]
    title: str


def best(*labels: str, title: str = "best rival") -> Best:
    """A column that is the best of these, metric by metric."""
    return Best(labels, title)


Column = str | Best
_MET = {True: "✓", False: "**✗**"}
_SCHEMES = ("scheme", "what is measured", "with it", "best rival")
Picture = dict[str, dict[str, tuple[float, float, float]]]
"""By label and metric: median, least, greatest."""

Scheme = tuple[str, str, str, Column, Sequence[str | Sequence[str]]]
"""A set, the name of a scheme for a reader, its label, its rival, and the metrics with titles."""


@dataclass
class Sheet:
    """One page while it is made. `name` is its file in the repository, `home` where records are."""

    name: str
    home: Path
    figures: Figures = field(default_factory=Figures)
    pictures: dict[str, Picture] = field(default_factory=dict)
    _sets: dict[str, list[Record]] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    def table(
        self,
        table: str,
        columns: Sequence[Column],
        rows: Sequence[str | Sequence[str]],
        mark: str | None = None,
        spreads: bool = True,
        phones: bool = False,
    ) -> str:
        """A row a metric, a column a label; above it the command, below it what was run on what.

        A row is a metric, or the metric and a title of its own. The column `mark` has a sign a
        cell: how it stands to the best rival, or to the first column where there is none. `phones`
        lets columns be of different phones.
        """
        records = self._of(table, columns)
        if not phones:
            check_build(records, f"{self.name}: table {table}", ONE_PHONE)
        rival = next((x for x in columns if isinstance(x, Best)), columns[0])
        lines = [_row(["", *map(_head, columns)]), _row(["---", *["--:"] * len(columns)])]
        for row in rows:
            metric, title = _titled(row)
            cells = []
            for column in columns:
                text = self._text(table, column, metric, spreads)
                if column == mark:
                    text += self._sign(table, mark, rival, metric)
                cells.append(self._mark(table, column, metric, text))
            lines.append(_row([title, *cells]))
        note = self._note(table, records, mark is not None, rival, spreads)
        return "\n".join([*self._commands(table, records), "", *lines, "", *note])

    def schemes(self, groups: Sequence[Scheme]) -> str:
        """A row a metric of several sets: what a scheme has, with a sign, and its best rival's.

        Below it is told what each set is of, so these sets may be of different commits on one page.
        """
        self._told.update(table for table, *_ in groups)
        lines = [_row(_SCHEMES), _row(["---", "---", "--:", "--:"])]
        of: dict[str, list[tuple[str, Column]]] = {}
        for table, name, label, other, rows in groups:
            rival = other if isinstance(other, Best) else best(other)  # which is told with its name
            of.setdefault(table, []).append((label, rival))
            for number, row in enumerate(rows):
                metric, title = _titled(row)
                ours = self._text(table, label, metric, False)
                cells = [
                    self._mark(
                        table, label, metric, ours + self._sign(table, label, rival, metric)
                    ),
                    self._mark(table, rival, metric, self._text(table, rival, metric, False)),
                ]
                lines.append(_row(["" if number else name, title, *cells]))
        told = [self._of_what(table, pairs) for table, pairs in of.items()]
        several = all(_several(self._records(table)) for table in of)
        return "\n".join([*lines, "", *told, "", _how_to_read(_SCHEMES[-1], several)])

    def value(self, table: str, column: Column, metric: str) -> str:
        """A figure for a sentence: the median over the seeds."""
        return self._mark(table, column, metric, self._shown(table, column, metric).value)

    def times(self, table: str, column: Column, by: Column, metric: str, digits: int = 2) -> str:
        """How many times the median of `by` is that of `column`."""
        one, other = (self._median(table, x, metric) for x in (column, by))
        text = f"{one / other:.{digits}f}" if other else MISSING
        return self.figures.mark(table, f"{metric} of {_plain(column)} by {_plain(by)}", text)

    def aim(
        self,
        table: str,
        column: Column,
        metric: str,
        by: Column | None = None,
        over: Column | None = None,
        most: float | None = None,
        least: float | None = None,
    ) -> str:
        """What a metric should be, what it is and a sign whether it is: the median of `column`,
        that in times of `by`, or how much more it is than `over` has. `most` is its upper or
        `least` its lower bound. Failed for no bound or both, for both others, and for what some
        seeds alone have."""
        where = f"{self.name}: table {table}: {metric}"
        if (most is None) == (least is None):
            raise Failed(f"{where}: an aim has one bound")
        if by is not None and over is not None:
            raise Failed(f"{where}: an aim is in times of another column, or more than it")
        if some := [x for x in (column, by, over) if x and self._shown(table, x, metric).some]:
            raise Failed(f"{where}: {_plain(some[0])} has it of some seeds alone")
        found = self._median(table, column, metric)
        what = metric
        if by is not None:
            other = self._median(table, by, metric)
            if not other:
                raise Failed(f"{where}: {_plain(by)} has 0")
            found, what = found / other, f"{metric} of {_plain(column)} by {_plain(by)}"
        if over is not None:
            found -= self._median(table, over, metric)
            what = f"{metric} of {_plain(column)} over {_plain(over)}"
        met = found <= most if most is not None else found >= (least or 0)
        sign, limit = ("≤", most) if most is not None else ("≥", least or 0.0)
        bound, text = _as_far_apart(limit, found)
        return f"{sign} {bound} | {self.figures.mark(table, what, f'{text} {_MET[met]}')}"

    def commit(self, table: str) -> str:
        """The commit of all records of the table."""
        return self.figures.mark(table, "commit", self._records(table)[0].commit)

    def history(self) -> str:
        """What the short run measured on each commit, of the set and the bounds that are there."""
        return history.table(*history.read(self.home), self.figures)

    def bounds(self) -> str:
        """The bounds of the history, and what they are made of."""
        rule = history.read_rule(self.home)
        return bounds.table(rule, bounds.measure(rule, self.home), self.figures)

    def tiers(self) -> str:
        """The last full run of each tier of the tests."""
        return tiers.table(tiers.read(self.home.parent / tiers.FILE), self.figures)

    def scale(self, table: str, what: str) -> str:
        """Runs of `cohort scale`: their `instructions`, `locks` or `speeds`. Failed for another."""
        draw = scale_set.TABLES.get(what)
        if draw is None:
            known = ", ".join(scale_set.TABLES)
            raise Failed(f"{self.name}: table {table}: {what} is none of {known}")
        return draw(table, self._records(table), self.figures)

    def note(self, table: str) -> str:
        """The command of a set, and what its runs were made on."""
        records = self._records(table)
        note = self._note(table, records, False, records[0].label, False)
        return "\n".join([*self._commands(table, records), "", *note])

    def picture(
        self, table: str, family: str, labels: Sequence[str], alt: str, orders: bool = False
    ) -> str:
        """A picture of a metric, a bar a label; with `orders` of a family of metrics, a line each.

        It goes into docs/results, under the name of its table and metric.
        """
        names = [f"{family}{x}" for x in ORDERS] if orders else [family]
        drawn: Picture = {}
        self._of(table, labels)
        for label in labels:
            shown = {x: self._spread(table, label, self._metric(table, x)) for x in names}
            drawn[label] = {x: (s.median, s.low, s.high) for x, s in shown.items() if s is not None}
        file = f"{table}-{family.strip('_')}.svg"
        self.pictures[file] = drawn
        where = "docs/results/" if "/" not in self.name else ""
        return f"![{alt}]({where}{file})"

    def _records(self, table: str) -> list[Record]:
        if table not in self._sets:
            records = read_set(self.home / f"{table}.jsonl")
            check_build(records, f"{self.name}: table {table}")
            self._sets[table] = records
            self._check_commits()
        return self._sets[table]

    def _check_commits(self) -> None:
        """A page is of one commit, as a reader sets its tables side by side, but for sets of
        `schemes`, which tells the commit of each."""
        commits = {records[0].commit: table for table, records in self._sets.items()}
        if len(commits) > 1 and not self._told.issuperset(self._sets):
            said = ", ".join(f"table {table} of {commit}" for commit, table in commits.items())
            raise Failed(f"{self.name}: tables of different commits: {said}")

    def _of(self, table: str, columns: Sequence[Column]) -> list[Record]:
        """The records of these columns; Failed for one that has none."""
        records = self._records(table)
        wanted = [x for column in columns for x in _labels(column)]
        known = {record.label for record in records}
        if missing := [label for label in wanted if label not in known]:
            raise Failed(f"{self.name}: table {table}: no records of {', '.join(missing)}")
        return [record for record in records if record.label in wanted]

    def _spread(self, table: str, label: str, metric: Metric) -> Spread | None:
        return spread(values(self._records(table), label, metric.name))

    def _winner(self, table: str, column: Column, metric: Metric) -> str:
        """The label that a column stands for by this metric; the first of equals."""
        known = [
            (found.median, label)
            for label in _labels(column)
            if (found := self._spread(table, label, metric)) is not None
        ]
        pick = min if metric.better == "lower" else max
        return pick(known, key=lambda x: x[0])[1] if known else _labels(column)[0]

    def _shown(self, table: str, column: Column, name: str) -> Cell:
        self._of(table, [column])
        metric = self._metric(table, name)
        return Cell(metric, self._spread(table, self._winner(table, column, metric), metric))

    def _metric(self, table: str, name: str) -> Metric:
        """Failed for a name that is no metric's."""
        if name not in BY_NAME:
            raise Failed(f"{self.name}: table {table}: there is no metric {name}; {meant(name)}")
        return BY_NAME[name]

    def _median(self, table: str, column: Column, name: str) -> float:
        found = self._shown(table, column, name).spread
        if found is None:
            raise Failed(f"{self.name}: table {table}: {name}: {_plain(column)} has none")
        return found.median

    def _text(self, table: str, column: Column, name: str, spreads: bool) -> str:
        if isinstance(column, Best) and self._metric(table, name).better == "neither":
            return ""
        shown = self._shown(table, column, name)
        text, found = shown.value, shown.spread
        if found is None:
            return text
        if spreads and found.low < found.high:
            text += f" {shown.range}"
        if shown.some:
            text += f" {shown.some}"
        label = self._winner(table, column, shown.metric)
        return f"{text} `{label}`" if isinstance(column, Best) else text

    def _sign(self, table: str, label: str, rival: Column, name: str) -> str:
        """What either has of some of its seeds alone gets none."""
        ours, versus = (self._shown(table, x, name).spread for x in (label, rival))
        sign = SIGNS[judge(Cell(BY_NAME[name], ours, versus))]
        return f" {sign}" if sign else ""

    def _mark(self, table: str, column: Column, metric: str, text: str) -> str:
        return self.figures.mark(table, f"{metric} of {_plain(column)}", text)

    def _commands(self, table: str, records: Sequence[Record]) -> list[str]:
        lines = []
        for command in dict.fromkeys(record.command for record in records):
            parts = textwrap.wrap(
                command, _COMMAND_COLUMNS, break_long_words=False, break_on_hyphens=False
            )
            marked = [self.figures.mark(table, "command", part) for part in parts]
            lines.append("    " + " \\\n        ".join(marked))
        return lines

    def _of_what(self, table: str, pairs: Sequence[tuple[str, Column]]) -> str:
        """An item of a list: on what these labels of a set and their rivals were measured."""
        records = self._of(table, [column for pair in pairs for column in pair])
        check_build(records, f"{self.name}: table {table}", ONE_PHONE)
        one, names = records[0], ", ".join(dict.fromkeys(f"`{label}`" for label, _ in pairs))
        text = f"commit {one.commit}, {one.workload}, {one.launches} launches, {one.accel}"
        return (
            f"- {names}: {self.figures.mark(table, 'commit', text)}, {self._seeds(table, records)}"
        )

    def _note(
        self, table: str, records: Sequence[Record], signs: bool, rival: Column, spreads: bool
    ) -> list[str]:
        """On what all this was measured, and how to read it; a line an item."""

        def one(key: str) -> str:
            known = dict.fromkeys(str(getattr(record, key)) for record in records)
            return self.figures.mark(table, key, ", ".join(known))

        accels = ", ".join(dict.fromkeys(accelerator_label(record.accel) for record in records))
        of_suite = all(record.seed == NO_SEED for record in records)
        lines = [
            f"Records `{table}`: commit {one('commit')}; {one('workload')}, {one('launches')} "
            f"{'cases' if of_suite else 'launches'}, {one('memory_mb')} MiB, {one('cpus')} CPUs;",
            f"{self.figures.mark(table, 'accel', accels)};",
            f"Linux {one('kernel')}; {one('gcc')};",
            f"{one('qemu')}{'.' if of_suite else ';'}",
        ]
        if not of_suite:
            lines.append(
                f"{self._seeds(table, records)}{': median' if _several(records) else ''}"
                f"{' [least, greatest]' if spreads and _several(records) else ''}."
            )
        if signs:
            lines.append(_how_to_read(_plain(rival), _several(records)))
        return lines

    def _seeds(self, table: str, records: Sequence[Record]) -> str:
        """The seeds of all, or of each label where they differ."""
        seeds: dict[str, list[int]] = {}
        for record in records:
            seeds.setdefault(record.label, []).append(record.seed)
        said: dict[str, list[str]] = {}
        for label, numbers in seeds.items():
            said.setdefault(", ".join(map(str, sorted(numbers))), []).append(label)
        if len(said) == 1:
            text = next(iter(said))
        else:
            text = "; ".join(f"{numbers} of {', '.join(x)}" for numbers, x in said.items())
        return f"seeds {self.figures.mark(table, 'seeds', text)}"


def _as_far_apart(bound: float, found: float) -> tuple[str, str]:
    """Two numbers with three digits that count, or as many more as tell them apart."""
    texts = ((_short(bound, digits), _short(found, digits)) for digits in range(3, 9))
    return next((pair for pair in texts if pair[0] != pair[1]), (_short(bound), _short(found)))


def _short(number: float, digits: int = 3) -> str:
    """A number with that many digits that count, and all those before the point."""
    rounded = abs(float(f"{number:.{digits}g}"))
    if rounded < 1000:
        return f"{number:.{digits}g}"
    return f"{number:,.{max(0, digits - len(str(int(rounded))))}f}"


def _how_to_read(rival: str, several: bool) -> str:
    if several:
        return f"✓ better than {rival}, ✗ worse, ≈ the ranges over the seeds touch."
    return f"✓ better than {rival}, ✗ worse, ≈ less than a twentieth between them."


def _several(records: Sequence[Record]) -> bool:
    return len({record.seed for record in records}) > 1


def _labels(column: Column) -> tuple[str, ...]:
    return column.labels if isinstance(column, Best) else (column,)


def _plain(column: Column) -> str:
    return column.title if isinstance(column, Best) else column


def _head(column: Column) -> str:
    return column.title if isinstance(column, Best) else f"`{column}`"


def _titled(row: str | Sequence[str]) -> tuple[str, str]:
    """The metric of a row, and its title."""
    if not isinstance(row, str):
        return row[0], row[1]
    metric = BY_NAME.get(row)
    unit = f", {metric.unit}" if metric and metric.unit else ""
    return row, f"{metric.title}{unit} (`{row}`)" if metric else row


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def functions(sheet: Sheet) -> Mapping[str, Any]:
    """By name, what a template may call."""
    return {
        "aim": sheet.aim,
        "best": best,
        "bounds": sheet.bounds,
        "commit": sheet.commit,
        "history": sheet.history,
        "picture": sheet.picture,
        "note": sheet.note,
        "policies": policy_page.markdown,
        "records": record_schema.markdown,
        "scale": sheet.scale,
        "schemes": sheet.schemes,
        "table": sheet.table,
        "tiers": sheet.tiers,
        "times": sheet.times,
        "value": sheet.value,
    }
