"""The report: one HTML file that needs nothing but itself."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cohort import __version__
from cohort.results.catalogue import Metric
from cohort.results.judgement import SIGNS, judge, judgements, rule
from cohort.results.memory_map import map_data
from cohort.results.night import by_night, colours_of
from cohort.results.plots import draw_all, policy_colours
from cohort.results.runs import OLDER, Result, policies_of
from cohort.results.spread import spread
from cohort.results.table import MISSING, Cell, compare, several

_PICTURES = {
    "ui": (
        "Unusable free space",
        "Share of free memory that lies in blocks too small for a request of that order: 0 is not "
        "fragmented, 1 is no such block left. Lines are medians over the seeds, bands go from the "
        "least to the greatest; the metrics are means over the shaded second half. Dashed: the "
        "same with parked memory, the free pages of blocks that have an owner.",
    ),
    "map": (
        "Physical memory",
        "Which kind of page sits where. Addresses run from left to right and then down, 32 MiB a "
        "row; the colour of a cell is the kind of most of its pages.",
    ),
    "buffers": (
        "What I/O buffers are built from",
        "Share of the buffers' bytes by size of the piece they were taken in, over the run.",
    ),
    "latency": (
        "Time to build a buffer",
        "Distribution over all buffers of the run, finding the pages and zeroing them apart.",
    ),
    "memory": (
        "Free memory and kills",
        "Parked memory is the part of free memory that has an owner: that owner is served from it "
        "first, others before they would have to reclaim. What is free in the page-cache-preferred "
        "area counts as parked, too.",
    ),
}
_ID = re.compile(r' id="([^"]+)"')
_NAMED = re.compile(r'(?:href="|url\()#([^")]+)')
"""Where a picture names one."""
_PHONE = {
    "launches": "launches",
    "memory_mb": "MiB",
    "cpus": "CPUs",
    "arch": "machine",
    "page_size": "bytes a page",
}
"""What each run was on: keys of its meta.json, and the heads of their columns."""
_VERSIONS = {
    "kernel": "kernel",
    "qemu": "QEMU",
    "gcc": "compiler",
    "cohort_git": "Cohort (git)",
    "tree_id": "kernel tree",
}


def render_report(results: Sequence[Result], command: str) -> str:
    """The whole page. `command` is what produced it.

    `results` must not be empty; the first one's policy is the baseline.
    """
    environment = Environment(
        loader=PackageLoader("cohort.results"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    comparison = compare(results, full=True)
    groups = [(g, list(rows)) for g, rows in groupby(comparison.rows, lambda r: r.metric.group)]
    pictures = draw_all(results)
    maps = map_data(results)
    return environment.get_template("report.html.j2").render(
        comparison=comparison,
        groups=groups,
        areas=judgements(results),
        judge=judge,
        signs=SIGNS,
        rule=rule(results),
        maps=maps,
        # The map is drawn by the page itself; its picture is for readers without scripts.
        pictures=[(*_PICTURES[x], _embedded(x, svg), x == "map") for x, svg in pictures.items()],
        night_colours=[(x, by_night(x)) for x in colours_of(pictures.values())],
        colours={policy: (x, by_night(x)) for policy, x in policy_colours(results).items()},
        titles={r.policy: r.meta.get("policy_title", "") for r in results},
        runs=[_origin(result) for result in results],
        phone=_PHONE,
        every_run=_every_run(results, [row.metric for row in comparison.rows]),
        versions=_versions(results),
        workload=several(results, "workload"),
        policies=policies_of(results),
        command=command,
        version=__version__,
    )


def _embedded(name: str, svg: str) -> Markup:
    """A picture as a part of the page: told by its title where it is not seen, and without the ids
    that nothing in it names, which are the same in every picture."""
    named = set(_NAMED.findall(svg))
    own = _ID.sub(lambda found: found[0] if found[1] in named else "", svg)
    shown = f'<svg role="img" aria-label="{escape(_PICTURES[name][0])}" '
    return Markup(own.replace("<svg ", shown, 1))


def _origin(result: Result) -> dict[str, Any]:
    """What a run is, in words, and where its files are."""
    meta = {**OLDER, **result.meta}
    return {
        **{key: _text(meta.get(key)) for key in _PHONE},
        "policy": result.policy,
        "workload": result.workload,
        "seed": result.seed,
        "accel": result.accel,
        "wall_s": _text(meta.get("wall_s")),
        "started": _text(meta.get("started")),
        "path": _text(result.path),
    }


def _every_run(results: Sequence[Result], metrics: Sequence[Metric]) -> list[tuple[str, list[str]]]:
    """One row a metric, one value a run, in the order of `_origin`."""
    return [
        (m.name, [Cell(m, spread([r.metrics.get(m.name)])).value for r in results]) for m in metrics
    ]


def _versions(results: Sequence[Result]) -> list[tuple[str, list[str]]]:
    """The versions the digits belong to; several where the runs differ."""
    table = []
    for key, title in _VERSIONS.items():
        seen = dict.fromkeys(_text(r.meta.get("versions", {}).get(key)) for r in results)
        table.append((title, list(seen)))
    return table


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}"
    return MISSING if value is None else str(value)
