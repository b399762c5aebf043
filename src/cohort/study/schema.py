"""What a study file may hold. `docs/reference/studies.md` explains each key to an author."""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from cohort import named, paths, tomlfile
from cohort.results.catalogue import BY_NAME, meant

Value = str | int
_PLACE = re.compile(r"\{(\w+)\}")


def _metric_name(value: str) -> str:
    if value not in BY_NAME:
        raise ValueError(f"no metric {value!r}; {meant(value)}")
    return value


def _file_name(value: str) -> str:
    if not value or value.startswith(".") or "/" in value:
        raise ValueError("is what the study's files are called: no slash, no dot in front")
    return value


MetricName = Annotated[str, AfterValidator(_metric_name)]
Text = Annotated[str, Field(min_length=1)]
FileName = Annotated[str, AfterValidator(_file_name)]


class Strict(BaseModel):
    """No unknown keys, no conversions, no changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Column(Strict):
    """One policy on one workload, perhaps changed; a row of the study's table.

    `cmdline` is appended to the policy's; `sysctl` and `sysfs` are written after the policy's;
    `change` replaces numbers of the workload. Every text may have {places} that `sweep` fills: a
    column for each combination.
    """

    label: Text
    policy: Text
    workload: Text | None = None
    launches: Annotated[int, Field(ge=1)] | None = None
    cmdline: list[Text] = []
    sysctl: dict[str, Value] = {}
    sysfs: dict[str, Value] = {}
    change: dict[str, Value] = {}
    sweep: dict[str, Annotated[list[Value], Field(min_length=1)]] = {}

    @model_validator(mode="after")
    def _places_are_filled(self) -> Self:
        words = self.model_dump(exclude={"sweep"})
        missing = sorted(set(_PLACE.findall(repr(words))) - set(self.sweep))
        if missing:
            raise ValueError(f"sweep: nothing fills {{{missing[0]}}}")
        return self

    def expand(self) -> Iterator["Column"]:
        """Itself without a sweep, else one for each combination of the swept values."""
        plain = self.model_dump(exclude={"sweep"})
        for values in product(*self.sweep.values()):
            filled = _fill(plain, dict(zip(self.sweep, values, strict=True)))
            yield Column.model_validate(filled)


def _fill(value: Any, places: Mapping[str, Value]) -> Any:
    """`value` with every {place} in its texts and keys replaced."""
    if isinstance(value, str):
        return _PLACE.sub(lambda found: str(places[found[1]]), value)
    if isinstance(value, list):
        return [_fill(x, places) for x in value]
    if isinstance(value, dict):
        return {_fill(key, places): _fill(x, places) for key, x in value.items()}
    return value


class Measure(Strict):
    """A metric shown, and how the seeds are put together."""

    metric: MetricName
    statistic: Literal["median", "mean", "min", "max"] = "median"


class Seen(Strict):
    """What the paper saw of a metric: numbers by label, or only an order from low to high.

    Or, of one `label`, the order of several metrics: `metric` and those `below`, the highest first.
    """

    metric: MetricName
    where: Text
    values: dict[str, float | int] = {}
    order: list[str] = []
    label: str = ""
    below: list[MetricName] = []
    note: str = ""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if [bool(self.values), bool(self.order), bool(self.below)].count(True) != 1:
            raise ValueError("needs either values or an order or what is below, and only one")
        if bool(self.label) != bool(self.below):
            raise ValueError("label: belongs to below")
        if self.order and len(self.order) < 2:
            raise ValueError("an order needs two labels at least")
        return self


class Condition(Strict):
    """A target only counts where this holds: the effect must be there to be removed."""

    label: Text
    at_least: float | int


class Target(Strict):
    """What is aimed at: a bound, either a number or a multiple of another label's value."""

    metric: MetricName
    labels: Annotated[list[Text], Field(min_length=1)]
    at_most: float | int | None = None
    at_least: float | int | None = None
    times: str | None = None
    provided: Condition | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("needs either at_most or at_least")
        return self


class Picture(Strict):
    """One picture: bars of `metric` by label, of a family of metrics by order, or a line a label.

    `name` is a metric for "bars", the part before the order for "orders" (freed_pages_order), and
    a series for "line" and "runs"; `labels` are those drawn, all if empty. "runs" draws a row an
    entry of the series, which is a list of [first, number].
    """

    kind: Literal["bars", "orders", "line", "runs"]
    name: Text
    x: Text
    y: Text
    labels: list[Text] = []

    @model_validator(mode="after")
    def _of_a_metric(self) -> Self:
        """Whether a series is there only a run can tell."""
        families = {name.rstrip("0123456789") for name in BY_NAME}
        if self.kind == "bars":
            _metric_name(self.name)
        if self.kind == "orders" and self.name not in families:
            raise ValueError(f"no metrics {self.name}0, {self.name}1, ...; {meant(self.name)}")
        return self


class Study(Strict):
    """A figure or a table of a paper. One file in `studies/`."""

    name: FileName
    title: Text
    source: Text
    workload: Text
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    accel: Literal["deterministic", "tcg", "kvm", "auto"] = "deterministic"
    note: str = ""
    run: Annotated[list[Column], Field(min_length=1)]
    measure: Annotated[list[Measure], Field(min_length=1)]
    paper: list[Seen] = []
    target: list[Target] = []
    picture: Picture | None = None

    @property
    def columns(self) -> list[Column]:
        """Every column, sweeps expanded."""
        return [column for run in self.run for column in run.expand()]

    @model_validator(mode="after")
    def _seeds_are_different(self) -> Self:
        if twice := [x for x in self.seeds if self.seeds.count(x) > 1]:
            raise ValueError(f"seeds: {twice[0]} is there twice, and its run would count twice")
        return self

    @model_validator(mode="after")
    def _labels_are_there(self) -> Self:
        labels = [column.label for column in self.columns]
        if twice := [x for x in labels if labels.count(x) > 1]:
            raise ValueError(f"run: two columns are called {twice[0]!r}")
        for key, label in self._mentions():
            if label not in labels:
                hint = named.hint(label, labels, "there are")
                raise ValueError(f"{key}: no column {label!r}; {hint}")
        return self

    def _mentions(self) -> Iterator[tuple[str, str]]:
        """Every label the study speaks of, with the key it stands at."""
        for i, seen in enumerate(self.paper):
            yield from ((f"paper.{i}.values", label) for label in seen.values)
            yield from ((f"paper.{i}.order", label) for label in seen.order)
            if seen.label:
                yield f"paper.{i}.label", seen.label
        for i, target in enumerate(self.target):
            yield from ((f"target.{i}.labels", label) for label in target.labels)
            if target.times is not None:
                yield f"target.{i}.times", target.times
            if target.provided is not None:
                yield f"target.{i}.provided", target.provided.label
        if self.picture is not None:
            yield from (("picture.labels", label) for label in self.picture.labels)


def study_names() -> list[str]:
    """The names of the studies in `studies/`."""
    return sorted(path.stem for path in paths.STUDIES.glob("*.toml"))


def load_study(name_or_path: str | Path) -> Study:
    """The study of that name in `studies/`, or in the TOML file at that path.

    Raises UsageError for an unknown name or a bad file ("file:line: key: what is wrong").
    """
    path = named.find(
        "study", str(name_or_path), paths.STUDIES, study_names(), "cohort study --list"
    )
    _, data = tomlfile.read(path, "study", paths.STUDIES)
    try:
        return Study.model_validate({"name": path.stem, **data})
    except ValidationError as error:
        raise tomlfile.explain(path, error, "study", Study) from error
