"""What the lab finds of what it brings; also a script, for the Python of another environment."""

import json
from pathlib import Path
from typing import Any

from cohort import host, paths
from cohort.kernel import config, overlay
from cohort.phone.workload import load_workload, workload_names
from cohort.policy import load_policy, policy_names
from cohort.study.schema import load_study, study_names


def facts() -> dict[str, Any]:
    """By content, so that a checkout and a wheel of it say the same."""
    brought = (
        *(paths.OVERLAY, paths.PATCHES, paths.CONFIGS, paths.GUEST),
        *(paths.WORKLOADS, paths.POLICIES, paths.STUDIES),
    )
    return {
        "directories": {path.name: _digest(path) for path in brought},
        "series": overlay.load_series().id,
        "configs": sorted(config.merge(("base", "x86_64", "lab", "cohort"))),
        "workloads": [load_workload(name).name for name in workload_names()],
        "policies": [load_policy(name).digest for name in policy_names()],
        "studies": [load_study(name).title for name in study_names()],
    }


def _digest(root: Path) -> str:
    return host.digest_tree(root, (file for file in root.rglob("*") if file.is_file()))


if __name__ == "__main__":
    print(json.dumps(facts()))
