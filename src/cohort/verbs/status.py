"""`cohort status`: what Cohort does on a live machine, read from its sysfs and /proc."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from click.core import ParameterSource

from cohort import device, sysfs
from cohort.errors import HostError, UsageError
from cohort.sysfs import AREA_PARTS, SYSFS, counts, number, table, text
from cohort.verbs.options import Finite

NODE_FILES = (
    "nodes",
    "cpus",
    *(f"{x}_kb" for x in ("size", "free", "anon", "file", "lent")),
    "oom_kills",
)
GAP_STOCK = 256  # COHORT_GAP_STOCK of the kernel
SHARE_ONE = 65536  # COHORT_SHARE_ONE
DAY_S = 86400

Section = Callable[[Path], dict[str, Any] | None]


@click.command("status")
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where /sys and /proc are: of a container, or copied from a device.  [default: /]",
)
@click.option("--on", "target", help="Ask a device: adb, adb:SERIAL or ssh:HOST.")
@click.option(
    "--watch", is_flag=True, help="A live screen: blocks, area, nodes, buffers, kills, refaults."
)
@click.option(
    "--every",
    "every_s",
    type=Finite(0.1, DAY_S),
    default=1.0,
    show_default=True,
    help="With --watch, seconds between two looks.",
)
@click.option("--times", type=click.IntRange(1), help="With --watch, end after so many looks.")
@click.option("--json", "as_json", is_flag=True, help="JSON: one object, with --watch one a look.")
def command(
    root: Path | None,
    target: str | None,
    watch: bool,
    every_s: float,
    times: int | None,
    as_json: bool,
) -> None:
    """Say what each scheme does on this machine: its nodes, roles, use and kills.

    Exit 4 if its kernel has no Cohort.
    """
    if root is not None and target is not None:
        raise UsageError("--root and --on name two machines", "say one of the two")
    given = click.get_current_context().get_parameter_source("every_s")
    if not watch and (times is not None or given is not ParameterSource.DEFAULT):
        raise UsageError("--every and --times are of --watch", "say --watch, too")
    if watch:
        _watch(root or Path("/"), target, every_s, times, as_json)
        return
    with _machine(root or Path("/"), target) as top:
        found = {name: section(top) for name, section in SECTIONS.items()}
    if as_json:
        print(json.dumps(found))
        return
    for name, content in found.items():
        click.echo(f"{name}: off" if content is None else TEXTS[name](content))


@contextmanager
def _machine(root: Path, target: str | None, live: bool = False) -> Iterator[Path]:
    """The root directory of the machine that is asked about, for the time of the asking. HostError
    for a file that is asked for then, and is not there."""
    with ExitStack() as stack:
        if target is not None:
            root = Path(stack.enter_context(TemporaryDirectory(prefix="cohort-")))
            device.fetch(target, root, live=live)
        sysfs.check(root)
        try:
            yield root
        except FileNotFoundError as error:
            raise HostError(f"{error.filename} is not there", sysfs.PARTIAL) from error


def _watch(
    root: Path, target: str | None, every_s: float, times: int | None, as_json: bool
) -> None:
    """The live screen. Ctrl-C ends it as it ends every verb."""
    # Imported here: `cohort status` alone should not wait for rich.
    from cohort import watch

    def take() -> watch.Reading:
        with _machine(root, target, live=True) as top:
            return watch.read(top, time.monotonic())

    watch.watch(take, every_s, times, as_json)


def general(root: Path) -> dict[str, Any]:
    """Parked memory, its free chunks by order where the kernel tells, and which schemes are on."""
    top = root / SYSFS
    chunks = top / "owned_free"
    schemes = {
        x.parent.name: text(x) == "1" for x in sorted(top.glob("*/enabled")) if _is_scheme(x)
    }
    owned = {"owned_free": counts(chunks)} if chunks.is_file() else {}
    return {"parked_kb": number(top / "parked_kb"), **owned, "schemes": schemes}


def vnode(root: Path) -> dict[str, Any] | None:
    """The virtual memory nodes; None without a layout."""
    top = root / SYSFS / "vnode"
    if not top.is_dir():
        return None
    processes = _roles(root)
    nodes = [
        {"name": x.name, **_node(x), "processes": processes.get(x.name, 0)}
        for x in sysfs.nodes(top)
    ]
    return {
        "layout": text(top / "layout"),
        "default": text(top / "default"),
        "lend": text(top / "lend") == "1",
        "nodes": nodes,
    }


def pcpa(root: Path) -> dict[str, Any] | None:
    """The page-cache-preferred area: sizes, knobs and counters; None without an area."""
    top = root / SYSFS / "pcpa"
    if not sysfs.has_area(top):
        return None
    numbers = ("size", "min_order", "timer_ms", *(f"{x}_kb" for x in AREA_PARTS))
    return {
        **{name: number(top / name) for name in numbers},
        "base": number(top / "base"),
        "state": text(top / "state"),
        "stats": table(top / "stats"),
    }


def reclaim(root: Path) -> dict[str, Any]:
    """What was evicted and came back since boot, by kind of page and by memory cgroup; sizes, if
    they are being measured. HostError without the kernel's counters."""
    vm = sysfs.counters(root)
    evicted = {kind: vm.get(f"pgsteal_{kind}", 0) for kind in ("anon", "file")}
    refaulted = {kind: vm.get(f"workingset_refault_{kind}", 0) for kind in ("anon", "file")}
    found: dict[str, Any] = {
        "evicted": evicted,
        "refaulted": refaulted,
        "kswapd": {"pages": vm.get("pgsteal_kswapd", 0), "runs": vm.get("pageoutrun", 0)},
        "direct": {
            "pages": vm.get("pgsteal_direct", 0),
            "runs": sum(n for name, n in vm.items() if name.startswith("allocstall_")),
        },
        "groups": _groups(root / "sys/fs/cgroup"),
    }
    top = root / SYSFS / "reclaim"
    if top.is_dir() and text(top / "enabled") == "1":
        names = sorted(top.glob("*_sizes")) + [top / "alloc_orders"]
        found["sizes"] = {x.name: counts(x) for x in names}
    return found


def rightsize(root: Path) -> dict[str, Any] | None:
    """What right-sized reclaim decided; None while it is off. Shares are parts of one."""
    top = root / SYSFS / "rightsize"
    if not top.is_dir() or text(top / "enabled") != "1":
        return None
    return {
        **{name: bool(number(top / name)) for name in ("scope", "sizing")},
        **{name: number(top / name) for name in ("background_adj", "read_around_pages")},
        "gap": number(top / "gap") / GAP_STOCK,
        "direct_share": number(top / "direct_share") / SHARE_ONE,
    }


def _groups(top: Path) -> list[dict[str, Any]]:
    """The memory cgroups that lost pages, those that refault most first."""
    found = []
    for path in sorted(top.glob("**/memory.stat")):
        stat = table(path)
        if path.parent != top and stat.get("pgsteal"):
            pages = sum(stat.get(f"workingset_refault_{kind}", 0) for kind in ("anon", "file"))
            name = str(path.parent.relative_to(top))
            found.append({"name": name, "evicted": stat["pgsteal"], "refaulted": pages})
    return sorted(found, key=lambda x: -x["refaulted"])


def _is_scheme(enabled: Path) -> bool:
    """The counters of buffers and of reclaim have a switch too, and are none."""
    return enabled.parent.name not in ("buffer", "reclaim")


def _node(directory: Path) -> dict[str, Any]:
    files = {x.name for x in directory.iterdir() if x.is_file()} | set(NODE_FILES)
    lists = ("nodes", "cpus")
    paths = (directory / name for name in sorted(files))
    return {x.name: text(x) if x.name in lists else number(x) for x in paths}


def _roles(root: Path) -> dict[str, int]:
    """How many user processes each role has; a process that ends meanwhile is left out."""
    count: dict[str, int] = {}
    for path in (root / "proc").glob("[0-9]*/vnode"):
        try:
            if not (path.parent / "cmdline").read_bytes():
                continue  # a kernel thread
            name = text(path)
        except OSError:
            continue
        count[name] = count.get(name, 0) + 1
    return count


def _general_text(found: dict[str, Any]) -> str:
    on = [name for name, is_on in found["schemes"].items() if is_on]
    line = f"cohort: {', '.join(on) or 'no scheme'} on, {found['parked_kb'] >> 10} MiB parked"
    if not any(found.get("owned_free", ())):
        return line
    chunks = (f"{n} of order {order}" for order, n in enumerate(found["owned_free"]) if n)
    return f"{line}\n  free in owned blocks: {', '.join(chunks)}"


def _vnode_text(found: dict[str, Any]) -> str:
    columns = ("name", "nodes", "cpus", "MiB", "free", "anon", "file", "lent", "procs", "killed")
    rows = [columns]
    for node in found["nodes"]:
        sizes = ("size_kb", "free_kb", "anon_kb", "file_kb", "lent_kb")
        mib = [str(node[key] >> 10) for key in sizes]
        ends = (str(node["processes"]), str(node["oom_kills"]))
        rows.append((node["name"], node["nodes"], node["cpus"], *mib, *ends))
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    lines = [f"vnode: {found['layout']}, default {found['default']}"]
    lines[0] += ", lending" if found["lend"] else ""
    for row in rows:
        cells = [x.rjust(w) for x, w in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join([row[0].ljust(widths[0]), *cells]))
    return "\n".join(lines)


def _pcpa_text(found: dict[str, Any]) -> str:
    parts = (f"{found[f'{part}_kb'] >> 10} {part}" for part in AREA_PARTS)
    base, mib = found["base"], found["size"] >> 20
    lines = [f"pcpa: {mib} MiB at {base:#x}, {found['state']}; MiB: {', '.join(parts)}"]
    lines += [f"  {name:20} {value}" for name, value in found["stats"].items() if value]
    return "\n".join(lines)


def _rightsize_text(found: dict[str, Any]) -> str:
    parts = [name for name in ("scope", "sizing") if found[name]]
    return (
        f"rightsize: {' and '.join(parts) or 'neither half'} on, marks {found['gap']:.2f} of "
        f"stock's apart, direct {100 * found['direct_share']:.1f} %, background from "
        f"{found['background_adj']}, {found['read_around_pages']} pages read around"
    )


def _ratio(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _reclaim_text(found: dict[str, Any]) -> str:
    evicted, refaulted = found["evicted"], found["refaulted"]
    total = sum(evicted.values())
    parts = [f"{_ratio(refaulted[x], evicted[x])} of {evicted[x]} {x}" for x in evicted]
    lines = [f"reclaim: {_ratio(sum(refaulted.values()), total)} came back: {', '.join(parts)}"]
    for name in ("kswapd", "direct"):
        pages, runs = found[name]["pages"], found[name]["runs"]
        mean = f"{pages / runs:.1f}" if runs else "-"
        lines.append(f"  {name}: {_ratio(pages, total)} of it, {runs} times, {mean} pages each")
    for x in found["groups"]:
        lines.append(f"  {x['name']}: {_ratio(x['refaulted'], x['evicted'])} of {x['evicted']}")
    if "sizes" not in found:
        return "\n".join([*lines, "  sizes: not measured (write 1 to reclaim/enabled)"])
    for name, sizes in found["sizes"].items():
        lines.append(f"  {name}: {' '.join(map(str, sizes)) if sum(sizes) else '-'}")
    return "\n".join(lines)


# A scheme adds itself to both.
SECTIONS: dict[str, Section] = {
    "cohort": general,
    "vnode": vnode,
    "pcpa": pcpa,
    "rightsize": rightsize,
    "reclaim": reclaim,
}
TEXTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "cohort": _general_text,
    "vnode": _vnode_text,
    "pcpa": _pcpa_text,
    "rightsize": _rightsize_text,
    "reclaim": _reclaim_text,
}
