"""Metrics of workloads whose apps have roles: who is protected, and what that costs the others."""

import numpy as np
import pandas as pd

from cohort.results.catalogue import METRICS
from cohort.results.experiments import Number
from cohort.results.frames import (
    MIB,
    PAGE,
    Frames,
    all_free_pages,
    pages_by_order,
    unusable_index,
)

TRUSTED = "trusted"
"""Every other role is one of the untrusted."""

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
    }
    return values


def pressure_from(frames: Frames) -> int:
    """The first launch whose sample shows work of the pressure programs; 0 if none does."""
    done = frames.work[frames.work["bytes"] > 0]
    return int(done["n"].min()) if len(done) else 0


def _split(frames: Frames, launches: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Launches under pressure, and those before it that are not an app's very first."""
    first = pressure_from(frames) or frames.last_launch + 1
    again = launches[launches["app"].duplicated()]
    return launches[launches["n"] >= first], again[again["n"] < first]


def _p95(launches: pd.DataFrame) -> float | None:
    ms = pd.to_numeric(launches["ns"]) / 1e6
    return float(np.percentile(ms, 95)) if len(ms) else None


def _ui(frames: Frames) -> float | None:
    """UI(4) of the nodes the trusted live in, or of all memory, mean of the second half."""
    nodes = frames.nodes[frames.nodes["n"] > frames.half]
    mask = int(frames.roles.loc[frames.roles["role"] == TRUSTED, "nodes"].max())
    if mask:
        nodes = nodes[(mask >> nodes["node"].to_numpy(dtype=int)) & 1 == 1]
    if not len(nodes):
        return None
    blocks = np.array(
        [np.sum(rows.tolist(), axis=0) for _, rows in nodes.groupby("n")["blocks"]], dtype=float
    )
    known = pages_by_order(blocks).sum(axis=1) > 0
    return float(np.mean(unusable_index(blocks[known], 4))) if known.any() else 1.0


def _free_mb(frames: Frames) -> float | None:
    """All free memory of the machine, MiB, mean over the samples of the second half."""
    late = (frames.samples["n"] > frames.half).to_numpy(dtype=bool)
    return float(all_free_pages(frames.vm)[late].mean()) * PAGE / MIB if late.any() else None


def _work(frames: Frames) -> float | None:
    """MiB read and zeroed by the pressure programs in a second of their work."""
    if not len(frames.work):
        return None
    total = frames.work.iloc[-1]
    return float(total["bytes"]) / MIB / (float(total["ns"]) / 1e9) if total["ns"] else None
