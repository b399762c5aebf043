"""Tiers of the tests: what the last full run of each took, on what, and what came of it.

`tests/tier.py` measures and keeps them in `docs/results/tiers.toml`, one a row of the page.
"""

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cohort import host, tomlfile
from cohort.errors import UsageError
from cohort.results.figures import Figures

FILE = "tiers.toml"
"""Beside the directory of all records."""
AIM_CORES = 2
"""What the aims are of: more cores are quicker."""

Cache = Literal["empty", "warm"]


class Run(BaseModel):
    """One full run of a tier. `cache` is the compiler's before it: `empty` has neither a compiled
    file nor a kernel that was built. `compiled` are calls of the compiler, `cached` those of them
    that the cache answered, both as far as the cache was asked. `differ` are the commands of `make
    suites` that failed, or whose results were not those of the first policy."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    tier: str
    cache: Cache
    commit: str
    date: datetime.date
    cores: int = Field(gt=0)
    minutes: float = Field(gt=0)
    compiled: int = Field(ge=0)
    cached: int = Field(ge=0)
    passed: int = Field(ge=0)
    failed: int = Field(ge=0)
    skipped: int = Field(ge=0)
    differ: list[str] = []


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    run: list[Run] = []


@dataclass(frozen=True)
class Tier:
    """A row of the page: a target of the Makefile, the cache if that matters, and the aim, in
    minutes if it is a number."""

    target: str
    cache: Cache | None = None
    aim: int | str = ""

    @property
    def title(self) -> str:
        """As it stands on the page."""
        return f"`make {self.target}`" + (f", {self.cache} cache" if self.cache else "")

    def has(self, run: Run) -> bool:
        """Is the run one of this row?"""
        return run.tier == self.target and self.cache in (None, run.cache)


TIERS = (
    Tier("test", "empty", 35),
    Tier("test", "warm", 20),
    Tier("night"),
    Tier("suites", aim="a night"),
)
TARGETS = tuple(dict.fromkeys(tier.target for tier in TIERS))


def read(path: Path) -> list[Run]:
    """The runs that are kept, none without a file; UsageError, with its line, for a bad one."""
    if not path.is_file():
        return []
    data = tomlfile.read(path, "tiers")[1]
    try:
        return _File.model_validate(data).run
    except ValidationError as error:
        raise tomlfile.explain(path, error, "tiers", _File) from error


def keep(path: Path, run: Run) -> None:
    """Keep a run in place of the one of its row. UsageError for a tier that is none, or a file that
    cannot be read."""
    row = next((tier for tier in TIERS if tier.has(run)), None)
    if row is None:
        raise UsageError(f"no tier {run.tier}", f"there are: {', '.join(TARGETS)}")
    kept = [*(x for x in read(path) if not row.has(x)), run]
    kept.sort(key=lambda x: next((i for i, tier in enumerate(TIERS) if tier.has(x)), len(TIERS)))
    head = "# The last full run of each tier of the tests: `make tier` writes it.\n"
    host.write_text(path, "\n".join([head, *map(_toml, kept)]))


def _toml(run: Run) -> str:
    """A run as the file has it. A date is a word of TOML, all else is as in JSON."""
    lines = [
        f"{key} = {value if key == 'date' else json.dumps(value)}"
        for key, value in run.model_dump(mode="json").items()
    ]
    return "\n".join(["[[run]]", *lines, ""])


def table(runs: Sequence[Run], figures: Figures) -> str:
    """A row a tier: its aim, and its last full run, or that there is none."""
    head = ["at most", "minutes", "passed", "failed", "skipped", "suites unlike `none`"]
    head += ["commit", "date", "cores", "answered by the compiler cache"]
    lines = [f"| tier | {' | '.join(head)} |", f"|---|{'--:|' * len(head)}"]
    for tier in TIERS:
        run = next((x for x in runs if tier.has(x)), None)
        aim = f"{tier.aim} min" if isinstance(tier.aim, int) else tier.aim
        cells = ["not run yet", *[""] * (len(head) - 2)] if run is None else _cells(tier, run)
        named = zip(head[1:], cells, strict=True)
        marked = [figures.mark("tiers", f"{what} of {tier.title}", text) for what, text in named]
        lines.append(f"| {' | '.join([tier.title, aim, *marked])} |")
    return "\n".join(lines)


def _cells(tier: Tier, run: Run) -> list[str]:
    """What a run has in each column after the aim."""
    return [
        f"{run.minutes:.1f}{_sign(tier, run)}",
        *(f"{count:,}" for count in (run.passed, run.failed, run.skipped)),
        ", ".join(run.differ) or ("none" if tier.target == "suites" else ""),
        run.commit,
        run.date.isoformat(),
        str(run.cores),
        f"{run.cached:,} of {run.compiled:,}",
    ]


def _sign(tier: Tier, run: Run) -> str:
    """Whether the aim is met; nothing where it is no number, or of a smaller machine."""
    if not isinstance(tier.aim, int) or run.cores > AIM_CORES:
        return ""
    return " ✓" if run.minutes <= tier.aim else " **✗**"
