"""Metrics of workloads whose apps have roles: which are protected, and what it costs the others."""

import numpy as np
import pandas as pd

from cohort.results.catalogue import METRICS
from cohort.results.experiments import Number
from cohort.results.frames import Floats, Frames, all_free_pages, all_orders, unusable_index
from cohort.units import KIB, MIB

TRUSTED = "trusted"
"""Every other role is one of the untrusted."""

ALL_NODES = (1 << 62) - 1
"""A mask of every node a record may name."""

TRUSTED_APPS = ("phone", "sms")
"""The trusted apps whose launches the VNODE paper tells."""

PIECE_ORDERS = (0, 10)
"""The orders of which the VNODE paper counts free pieces."""

ROLE_GROUP = "Trusted and untrusted apps"

_NAMES = tuple(m.name for m in METRICS if m.group == ROLE_GROUP)


def role_metrics(frames: Frames) -> dict[str, Number]:
    """Kills and launch times by role, and the pressure programs' work; None without roles."""
    values: dict[str, Number] = dict.fromkeys(_NAMES)
    if not len(frames.roles):
        return values
    role = dict(zip(frames.roles["app"], frames.roles["role"], strict=True))
    killed = frames.kills["app"].map(role)
    by_oom = frames.kills["by"] == "oom"
    trusted = frames.launches[frames.launches["app"].map(role) == TRUSTED]
    loaded, calm = _split(frames, trusted)
    values |= {
        "kills_trusted": int((killed == TRUSTED).sum()),
        "ooms_trusted": int(((killed == TRUSTED) & by_oom).sum()),
        "kills_untrusted": int((killed != TRUSTED).sum()),
        "launch_ms_p95_trusted": _p95(loaded),
        "launch_ms_p95_trusted_unloaded": _p95(calm),
        "ui_order4_trusted": _ui(frames),
        "free_mb_mean": _free_mb(frames),
        "untrusted_work_per_s": _work(frames),
        "untrusted_work_mb": _work_mb(frames),
        "pressure_cpu_s": _cpu_s(frames),
    }
    for app in TRUSTED_APPS:
        values |= _launches_of(loaded, app)
    return values | _free_pieces(frames) | _held(frames)


def pressure_from(frames: Frames) -> int:
    """The first launch whose sample shows work of the pressure programs; 0 if none does."""
    done = frames.work[frames.work["ns"] > 0]
    return int(done["n"].min()) if len(done) else 0


def _split(frames: Frames, launches: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Launches under pressure, and those before it that are not an app's very first."""
    first = pressure_from(frames) or frames.last_launch + 1
    again = launches[launches["app"].duplicated()]
    return launches[launches["n"] >= first], again[again["n"] < first]


def _p95(launches: pd.DataFrame) -> float | None:
    ms = pd.to_numeric(launches["ns"]) / 1e6
    return float(np.percentile(ms, 95)) if len(ms) else None


def _launches_of(launches: pd.DataFrame, app: str) -> dict[str, Number]:
    """Mean, median and 95th percentile of one app's launches under pressure, ms."""
    ms = pd.to_numeric(launches.loc[launches["app"] == app, "ns"]) / 1e6
    if not len(ms):
        return {}
    found = {"mean": ms.mean(), "p50": np.percentile(ms, 50), "p95": np.percentile(ms, 95)}
    return {f"launch_ms_{name}_{app}": float(value) for name, value in found.items()}


def _trusted_nodes(frames: Frames) -> int:
    """A mask, 0 under a policy without nodes and where no app is trusted."""
    masks = frames.roles.loc[frames.roles["role"] == TRUSTED, "nodes"]
    return int(masks.max()) if len(masks) else 0


def _blocks(frames: Frames, mask: int) -> Floats:
    """Free blocks by order of these nodes together, a row a sample of the second half."""
    nodes = frames.nodes[frames.nodes["n"] > frames.half]
    nodes = nodes[(mask >> nodes["node"].to_numpy(dtype=int)) & 1 == 1]
    rows = [np.sum(rows.tolist(), axis=0) for _, rows in nodes.groupby("n")["blocks"]]
    return np.array([all_orders(row) for row in rows], dtype=float)


def _ui(frames: Frames) -> float | None:
    """UI(4) of the nodes the trusted live in, or of all memory, mean of the second half."""
    blocks = _blocks(frames, _trusted_nodes(frames) or ALL_NODES)
    if not len(blocks):
        return None
    return float(np.mean(unusable_index(blocks, 4)))


def _free_pieces(frames: Frames) -> dict[str, Number]:
    """Free pieces of the machine, and of each part of it where a policy makes parts."""
    mask = _trusted_nodes(frames)
    parts = {"": ALL_NODES}
    if mask:
        parts |= {"_trusted": mask, "_untrusted": ALL_NODES & ~mask}
    found: dict[str, Number] = {}
    for name, nodes in parts.items():
        blocks = _blocks(frames, nodes)
        for order in PIECE_ORDERS if len(blocks) else ():
            found[f"free_pieces_order{order}{name}"] = float(blocks[:, order].mean())
    return found


def _held(frames: Frames) -> dict[str, Number]:
    """How much of its heap the zeroing program came to hold, and what was free with all of it."""
    work = frames.work.dropna()
    work = work[work["held_kb"] > 0]
    if not len(work):
        return {}
    full = work[work["held_kb"] >= work["want_kb"]]
    free_mb = float(full["free_kb"].mean()) / KIB if len(full) else None
    return {
        "held_share": float((work["held_kb"] / work["want_kb"]).mean()),
        "free_mb_held": free_mb,
    }


def _cpu_s(frames: Frames) -> float | None:
    """CPU time of the pressure programs in all; None of runs that did not count it."""
    counted = frames.work["cpu_ns"].dropna()
    return float(counted.iloc[-1]) / 1e9 if len(counted) else None


def _free_mb(frames: Frames) -> float | None:
    """All free memory of the machine, MiB, mean over the samples of the second half."""
    late = (frames.samples["n"] > frames.half).to_numpy(dtype=bool)
    return (
        float(all_free_pages(frames.vm)[late].mean()) * frames.page_size / MIB
        if late.any()
        else None
    )


def _work_mb(frames: Frames) -> float | None:
    """MiB read and zeroed by the pressure programs in the whole run; what a kill kept from being
    done is missing in it."""
    return float(frames.work["bytes"].iloc[-1]) / MIB if len(frames.work) else None


def _work(frames: Frames) -> float | None:
    """MiB read and zeroed by the pressure programs in a second of their work."""
    if not len(frames.work):
        return None
    total = frames.work.iloc[-1]
    return float(total["bytes"]) / MIB / (float(total["ns"]) / 1e9) if total["bytes"] else None
