"""The size of a page-cache-preferred area: what is measured for each, and which is the best.

Figure 11a of the PCPA paper: a larger area makes the camera's buffers of fewer pieces and takes
longer to clear.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import matplotlib as mpl
from matplotlib.figure import Figure

from cohort import switches
from cohort.policy import Policy
from cohort.results import judgement
from cohort.results.catalogue import BY_NAME
from cohort.results.plots import STYLE, svg_text
from cohort.results.runs import Result
from cohort.results.spread import Spread, spread
from cohort.results.table import Cell

ALIKE = 0.05
"""Numbers of pieces within this share of the least are as good."""

AREA_HEAPS = ("pcpa", "pcpa-contig")
"""The heaps whose buffers are of the area."""

KEPT = "cohort.pcpa_contig"
"""What is kept for contiguous pieces, beside the area or in its place."""

MEASURES = {
    "n_alloc": "buffer_n_alloc_mean",
    "find_us": "buffer_find_us_p50",
    "launch_ms": "launch_ms_p50",
    "page_cache_mb": "page_cache_mb_mean",
    "kills": "kills",
    "refaults": "refaults",
    "others_ms_p95": "app_launch_ms_p95",
    "refused": "buffer_fail",
}
"""What a size is judged by, and the metric of each."""

COSTS = {"kills": 1.0, "refaults": 1.0, "others_ms_p95": 1.02}
"""What the phone's owner pays for an area: of these measures it may have so many times what the
phone has without one."""


@dataclass(frozen=True)
class Size:
    """An area of `mb` MiB and what its runs measured, over the seeds."""

    mb: int
    measured: dict[str, Spread | None]

    def median(self, name: str) -> float | None:
        """One of MEASURES; None if no run can tell it."""
        found = self.measured[name]
        return None if found is None else found.median

    @property
    def refuses(self) -> bool:
        """Whether a request for a buffer failed in one of the runs."""
        refused = self.measured["refused"]
        return refused is not None and refused.high > 0

    @property
    def partial(self) -> list[str]:
        """What only some of its runs measured, of MEASURES."""
        return [name for name, found in self.measured.items() if found is not None and found.some]


@dataclass(frozen=True)
class Sweep:
    """What each size measured, and the phone `without` an area, with what was asked for: the policy
    that was sized and the one without, by name, the workload and its launches, and MiB of memory.
    `runs` are those of the phone without first, then size by size, seed by seed."""

    policy: str
    against: str
    workload: str
    launches: int
    seeds: tuple[int, ...]
    memory_mb: int
    runs: tuple[Result, ...]
    without: Size
    sizes: tuple[Size, ...]


def uses_area(policy: Policy) -> bool:
    """Whether the camera's buffers come from the area."""
    return policy.entitled or policy.camera_heap in AREA_HEAPS


def other_size(policy: Policy) -> str | None:
    """What of the policy gives the camera memory whose size a sweep does not change; None if
    nothing does."""
    given = switches.values(policy.cmdline)
    if KEPT in given:
        return f"{KEPT}={given[KEPT]}"
    return next((file for file in switches.AREA_FILES.values() if file in policy.sysfs), None)


def sized(policy: Policy, mb: int) -> Policy:
    """The policy with an area of that size instead of its own."""
    others = [word for word in policy.cmdline if not word.startswith("cohort.pcpa=")]
    cmdline = [*others, f"cohort.pcpa={mb}M"]
    return policy.model_copy(update={"name": f"{policy.name}-{mb}", "cmdline": cmdline})


def whole_sizes(sizes: Sequence[int], page_size: int) -> list[int]:
    """The areas that a machine with pages of so many bytes makes of these, MiB, each once and
    rising: it has whole pageblocks alone."""
    words = (switches.whole(f"cohort.pcpa={mb}M", page_size) for mb in sizes)
    return sorted({int(word.partition("=")[2].rstrip("M")) for word in words})


def judge(mb: int, results: Sequence[Result]) -> Size:
    """What the runs with an area of that size measured."""
    measured = {
        name: spread([result.metrics.get(metric) for result in results])
        for name, metric in MEASURES.items()
    }
    return Size(mb, measured)


def too_dear(size: Size, without: Size | None) -> list[str]:
    """What of COSTS the phone has more of with that area than `without` one, beyond its bound, by
    the rule of the reports: of several seeds every run has to be beyond it, as what the ranges
    share is no difference, and of one it has to be so by judgement.LEAN.
    """
    if without is None:
        return []
    return [name for name in COSTS if _dearer(name, size.measured[name], without.measured[name])]


def _dearer(name: str, mine: Spread | None, other: Spread | None) -> bool:
    """Whether one of COSTS is beyond its bound; not where it was not measured in every run."""
    if mine is None or other is None:
        return False
    bound = COSTS[name]
    median, low, high = (bound * x for x in (other.median, other.low, other.high))
    allowed = replace(other, median=median, low=low, high=high)
    return judgement.judge(Cell(BY_NAME[MEASURES[name]], mine, allowed)) == "worse"


def best(sizes: Sequence[Size], without: Size | None = None) -> Size | None:
    """The size to boot with; None if none was measured, or each is too dear.

    What the phone is like `without` an area bounds what one may cost. A size that serves every
    request comes before one that refuses some: other memory than the area's was measured there. So
    does one whose runs measured all alike before one of which some told less.
    Then the camera's N_alloc, as what its IOMMU has to map: of those whose N_alloc is within ALIKE
    of the least, the one whose pages are found soonest, and of equals the smallest.
    """
    sizes = [x for x in sizes if not too_dear(x, without)]
    known = [(x.median("n_alloc"), x.median("find_us"), x) for x in sizes]
    whole = [(n, us, x) for n, us, x in known if n is not None and us is not None]
    if not whole:
        return None
    whole = [(n, us, x) for n, us, x in whole if not x.partial] or whole
    whole = [(n, us, x) for n, us, x in whole if not x.refuses] or whole
    bound = min(n for n, _, _ in whole) * (1 + ALIKE)
    return min((us, x.mb, x) for n, us, x in whole if n <= bound)[2]


def _drawn(value: float | None) -> float:
    """A gap in the line where nothing was measured."""
    return math.nan if value is None else value


def draw(sizes: Sequence[Size]) -> str:
    """N_alloc and the time to find the pages against the size, as an SVG image."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": "tune"}):
        figure = Figure(figsize=(7.5, 3.6), layout="constrained")
        left = figure.subplots()
        right = left.twinx()
        at = [size.mb for size in sizes]
        pieces, us = ([_drawn(x.median(name)) for x in sizes] for name in ("n_alloc", "find_us"))
        ms = [x / 1000 for x in us]
        lines = [
            *left.plot(at, pieces, "o-", color="#0072b2", label="pieces (N_alloc), left"),
            *right.plot(at, ms, "s--", color="#d55e00", label="finding the pages, right"),
        ]
        left.set_xlabel("size of the area, MiB")
        left.set_ylabel("pieces of a start's buffers")
        right.set_ylabel("ms")
        right.grid(visible=False)
        for ax in (left, right):
            ax.set_ylim(bottom=0)
        left.legend(handles=lines, loc="best")
        return svg_text(figure)
