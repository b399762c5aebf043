"""The commit that this lab is of."""

import logging

from cohort import host, paths

log = logging.getLogger(__name__)

READ = (
    *("configs", "guest", "kernel", "patches"),
    *("policies", "src", "studies", "suites", "workloads"),
)
"""What runs are made of: a file here is a change, though git was not told of it."""


def commit() -> str:
    """The checkout's commit, or a wheel's; `-dirty` with uncommitted changes, `unknown` outside
    git. Documents are no change: no run reads them, and `cohort results` writes them between
    runs. Nor are files that git ignores, or those new to it where no run looks."""
    if paths.CHECKOUT is None:
        return paths.COMMIT.read_text().strip() if paths.COMMIT.is_file() else "unknown"
    if not host.find("git"):
        return "unknown"
    name = _git("describe", "--always", "--abbrev=12")
    if not name:
        return "unknown"
    but = (":(exclude)docs", ":(exclude)README.md")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *but)
    new = _git("ls-files", "--others", "--exclude-standard", "--", *READ)
    return f"{name}-dirty" if changed or new else name


def since(before: str) -> str:
    """The commit of what was built since it was `before`: `-dirty` if the checkout is another now,
    as what was built may be of either."""
    now = commit()
    if now == before:
        return before
    log.warning(
        "the checkout was %s when building began, and is %s: runs are of neither", before, now
    )
    return f"{before.removesuffix('-dirty')}-dirty"


def _git(*words: str) -> str:
    return host.run(["git", *words], cwd=paths.CHECKOUT).stdout.strip()
