"""The metrics by name, with what a table needs to show them: catalogue.toml as Python has it.

The definitions are in `docs/reference/metrics.md`; a test keeps the two alike.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from cohort import named

CATALOGUE = Path(__file__).with_name("catalogue.toml")

ORDERS = tuple(range(1, 11))
"""The orders the unusable free space index is reported for."""

Better = Literal["lower", "higher", "neither"]
"""Of what is neither no figure is judged: a policy may do less of it by other means."""


@dataclass(frozen=True)
class Metric:
    """A metric's name, and how it is shown.

    `digits` are those after the point. `shown` metrics are in every table, the others only in full
    ones. `special` ones are measured by few workloads: where no run has one, no table does. Of
    `conditional` ones a run has none where what they are a figure of did not happen.
    """

    name: str
    title: str
    unit: str
    better: Better
    group: str
    digits: int = 0
    shown: bool = True
    special: bool = False
    conditional: bool = False


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Entry(_Strict):
    """A metric, or a family of them, as the file has it."""

    name: str
    title: str
    better: Better
    each: list[int] = []
    unit: str = ""
    digits: int = 0
    shown: bool | list[int] | None = None
    special: bool | None = None
    conditional: bool = False


class Group(_Strict):
    """A part of the tables, and what its metrics have in common if they do not say otherwise."""

    title: str
    metrics: list[Entry]
    shown: bool = True
    special: bool = False

    def expand(self) -> Iterator[Metric]:
        """Its metrics, families one by one."""
        for entry in self.metrics:
            values: Sequence[int | None] = entry.each or [None]
            for value in values:
                shown = self.shown if entry.shown is None else entry.shown
                yield Metric(
                    name=entry.name.format(value),
                    title=entry.title.format(value),
                    unit=entry.unit,
                    better=entry.better,
                    group=self.title,
                    digits=entry.digits,
                    shown=value in shown if isinstance(shown, list) else shown,
                    special=self.special if entry.special is None else entry.special,
                    conditional=entry.conditional,
                )


class _Catalogue(_Strict):
    group: list[Group]


def read(data: dict[str, Any]) -> tuple[Metric, ...]:
    """The metrics of a catalogue, in its order. ValueError if it is none, or has a name twice."""
    metrics = [x for group in _Catalogue.model_validate(data).group for x in group.expand()]
    names = [metric.name for metric in metrics]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two metrics are called {twice[0]}")
    return tuple(metrics)


METRICS = read(tomllib.loads(CATALOGUE.read_text(encoding="utf-8")))
BY_NAME = {metric.name: metric for metric in METRICS}


def meant(name: str) -> str:
    """A hint for a name that is no metric's."""
    return named.near(name, BY_NAME) or "docs/reference/metrics.md lists them"
