"""The commit that this lab is of."""

from cohort import host, paths


def commit() -> str:
    """The checkout's commit, or a wheel's; `-dirty` with uncommitted changes, `unknown` outside
    git. Documents are no change: no run reads them, and `cohort results` writes them between
    runs."""
    if paths.CHECKOUT is None:
        return paths.COMMIT.read_text().strip() if paths.COMMIT.is_file() else "unknown"
    if not host.find("git"):
        return "unknown"
    named = host.run(["git", "describe", "--always", "--abbrev=12"], cwd=paths.CHECKOUT)
    but = (":(exclude)docs", ":(exclude)README.md")
    changed = host.run(
        ["git", "status", "--porcelain", "--untracked-files=no", "--", ".", *but],
        cwd=paths.CHECKOUT,
    )
    name = named.stdout.strip()
    return f"{name}-dirty" if name and changed.stdout else name or "unknown"
