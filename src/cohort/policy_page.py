"""What the policies are, as a reference page: all of it from their TOML files."""

from cohort import paths, switches, tomlfile
from cohort.policy import Policy, load_policy, policy_names

GROUPS = {
    "stock": "Stock, and what its knobs can do",
    "region": "Region domains",
    "cpb": "The contiguous page buffer",
    "area": "The page-cache-preferred area, and reserves",
    "rightsize": "Right-sized reclaim",
    "vnode": "Virtual memory nodes, and memory cgroups",
}


def markdown() -> str:
    """A table a group of policies; a policy's words are its title and the head of its file."""
    policies = [load_policy(name) for name in policy_names()]
    parts = []
    for group, title in GROUPS.items():
        rows = [_row(policy) for policy in policies if group_of(policy) == group]
        parts += [f"## {title}", "", "| policy | what it is | sets |", "|---|---|---|", *rows, ""]
    return "\n".join(parts).rstrip()


def group_of(policy: Policy) -> str:
    """The scheme of a policy or of those it is a rival of: a key of GROUPS."""
    given = switches.values(policy.cmdline)
    scheme = given.get("cohort", "").partition(",")[0]
    if policy.role:
        return "vnode"
    if policy.camera_heap != "system" or policy.areas(policy.cmdline):
        return "area"
    return scheme or "stock"


def _row(policy: Policy) -> str:
    path = paths.POLICIES / f"{policy.name}.toml"
    text, data = tomlfile.read(path, "policy")
    said = " ".join([f"{policy.title}.", *_head(text)])
    return f"| `{policy.name}` | {said} | {_sets(data, policy)} |"


def _head(text: str) -> list[str]:
    """The comment that a file begins with."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return lines


def _sets(data: tomlfile.Table, policy: Policy) -> str:
    """What its own file sets, beside what it extends."""
    words = [f"as `{data['extends']}`"] if "extends" in data else []
    words += [f"`{word}`" for word in data.get("cmdline", [])]
    for table in ("sysctl", "sysfs"):
        words += [f"`{key}` = {value}" for key, value in data.get(table, {}).items()]
    words += [f"role {name}: {policy.role[name].line}" for name in data.get("role", {})]
    keys = ("camera_heap", "kernel", "guaranteed_mb", "machine_mb")
    words += [f"{key} = {data[key]}" for key in keys if key in data]
    if "camera_announce" in data:
        words.append(f"starts {'' if data['camera_announce'] else 'not '}announced")
    if "entitled" in data:
        words.append("entitled" if data["entitled"] else "not entitled")
    return "; ".join(words) or "nothing"
