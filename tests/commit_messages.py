#!/usr/bin/env python3
"""What a commit message has to be: `area: what`, a blank line, then why.

As a script it checks the message in the file that it is given, and so is git's hook commit-msg.
"""

import re
import subprocess
import sys
from pathlib import Path

AREAS = ("mm/cohort", "lab", "guest", "docs", "patches", "ci", "tests")
SUBJECT_COLUMNS = 72
BODY_COLUMNS = 75  # what checkpatch has for the kernel's
START = "15a167f585246b00095b9d1d69b3f41042819114"
"""The last commit without the check. It and those before it were written without: their subjects
and bodies have more columns at times."""

_SUBJECT = re.compile(r"(?P<area>[^\s:]+): \S")
_TRAILER = re.compile(r"[A-Z][A-Za-z]*(-[A-Za-z]+)+: \S")
_SCISSORS = "# ------------------------ >8 ------------------------"
# What git itself writes, and merges or rewrites later.
_PASSING = ("Merge ", "fixup! ", "squash! ", "amend! ")


def problems(message: str) -> list[str]:
    """What is wrong with a message; nothing of a good one."""
    subject, *rest = message.strip("\n").split("\n")
    found = _subject_problems(subject)
    if rest and rest[0].strip():
        found.append("the second line is not blank")
    why = [line for line in rest if line.strip() and not _TRAILER.match(line)]
    if not why:
        found.append("no body: it does not say why")
    return [*found, *(f"{len(x)} columns, more than {BODY_COLUMNS}: {x}" for x in why if _long(x))]


def _subject_problems(subject: str) -> list[str]:
    found = []
    if len(subject) > SUBJECT_COLUMNS:
        found.append(f"the subject has {len(subject)} columns, more than {SUBJECT_COLUMNS}")
    shaped = _SUBJECT.match(subject)
    if not shaped or shaped["area"] not in AREAS:
        found.append(f"the subject is not `area: what` with an area of {', '.join(AREAS)}")
    if subject.endswith("."):
        found.append("the subject ends with a full stop")
    return found


def _long(line: str) -> bool:
    """Output and code, which are indented, and what cannot be broken may be longer."""
    whole = line[0].isspace() or " " not in line or "://" in line
    return len(line) > BODY_COLUMNS and not whole


def written(text: str) -> str:
    """The message in what an editor leaves: without git's comments, and what is below scissors."""
    kept = text.split(_SCISSORS)[0].split("\n")
    return "\n".join(line.rstrip() for line in kept if not line.startswith("#"))


def commits_since(start: str, repository: Path) -> dict[str, str] | None:
    """The messages of commits by short id, merges left out; None where `start` is not in the
    history: in a shallow clone, in an export, without git."""
    try:
        if _git(repository, "merge-base", "--is-ancestor", start, "HEAD") is None:
            return None
        listed = _git(repository, "log", "-z", "--no-merges", "--format=%h%n%B", f"{start}..HEAD")
    except FileNotFoundError:
        return None
    entries = [entry.partition("\n") for entry in (listed or "").split("\0") if entry]
    return {commit: message for commit, _, message in entries}


def _git(repository: Path, *words: str) -> str | None:
    """What git said, or None if it failed."""
    argv = ["git", "-C", str(repository), *words]
    done = subprocess.run(argv, text=True, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def main(file: str) -> int:
    """Say on stderr what is wrong with the message in a file; the exit code."""
    message = written(Path(file).read_text(encoding="utf-8"))
    found = [] if message.startswith(_PASSING) else problems(message)
    for problem in found:
        print(f"commit message: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
