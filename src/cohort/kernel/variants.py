"""Variants of hunks: what point releases and vendors have otherwise than the pinned release.

`patches/6.12/variants/NNNN-what.patch` belongs to the patch of the series with that number. Its
header has one line or more of the form

    Instead: mm/vmscan.c: kswapd_shrink_node

and its hunks stand in for all of the patch's hunks in that definition of that file; a line without
a definition means those above the first one. What the tree has decides: the hunks of the patch and
those of each variant are looked for by the rules of `hunks`, and exactly one of them has to fit
as a whole. Nothing asks for a release or for a vendor's name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cohort.errors import UsageError
from cohort.kernel import hunks
from cohort.kernel.hunks import Hunk, Refusal
from cohort.kernel.outline import CUT, name_of

FOLDER = "variants"
INSTEAD = re.compile(r"Instead: (\S+?)(?:: (.+))?")

Place = tuple[str, str]
"""A file and a definition in it, empty for what is above the first one."""


@dataclass(frozen=True)
class Variant:
    """Hunks that stand in for those of a patch at some places."""

    name: str
    instead: frozenset[Place]
    hunks: tuple[Hunk, ...]

    @property
    def number(self) -> str:
        """Which patch of the series it belongs to."""
        return self.name[:4]

    @property
    def files(self) -> set[str]:
        """The files it is about: one, as a tree chooses for each file."""
        return {file for file, _ in self.instead}


def is_at(hunk: Hunk, place: Place) -> bool:
    """Whether an `Instead:` line with this place means the hunk. diff may have cut off the name."""
    file, name = place
    heading = " ".join(hunk.heading.split())
    known = name_of(heading) if hunk.file.endswith((".c", ".h")) else heading
    cut = "" if known or len(hunk.heading) < CUT else heading.split()[-1].lstrip("*")
    return hunk.file == file and (name == known or (cut != "" and name.startswith(cut)))


def files_of(patches: Path) -> tuple[Path, ...]:
    """The files of all variants of a series, in order."""
    return tuple(sorted((patches / FOLDER).glob("*.patch")))


def load(patches: Path, names: Sequence[str]) -> tuple[Variant, ...]:
    """The variants of a series' patches; UsageError for one that stands in for nothing."""
    by_number = {name[:4]: name for name in names}
    found = []
    for path in files_of(patches):
        if path.name[:4] in by_number:
            found.append(_read(path, patches / by_number[path.name[:4]]))
    return tuple(found)


def _read(path: Path, base: Path) -> Variant:
    header = path.read_text(errors="surrogateescape").partition("\n---\n")[0]
    lines = [INSTEAD.fullmatch(line.strip()) for line in header.splitlines()]
    instead = frozenset((line[1], line[2] or "") for line in lines if line)
    named = (replace(hunk, patch=f"{FOLDER}/{path.name}") for hunk in hunks.read_patch(path))
    variant = Variant(path.name, instead, tuple(named))
    theirs = hunks.read_patch(base)
    for file, name in sorted(instead):
        if not any(is_at(hunk, (file, name)) for hunk in theirs):
            where = f"in {name} of {file}" if name else f"above the first definition of {file}"
            raise UsageError(
                f"{path.name} is instead of hunks {where}, and {base.name} has none there",
                f"name a file and what the @@ lines of {base.name} name",
            )
    if len(variant.files) != 1 or {hunk.file for hunk in variant.hunks} != variant.files:
        raise UsageError(f"{path.name} has to name one file that it is about, and change that one")
    return variant


def choose(
    lines: list[str], wanted: list[Hunk], variants: Sequence[Variant]
) -> tuple[list[Hunk], list[Refusal]]:
    """The hunks of one patch for one file as this file needs them, and those that are refused.

    `wanted` are the patch's own. Where nothing fits they stay, so that what is said of the tree is
    about them; where several fit, that is the refusal.
    """
    chosen, refused = list(wanted), list[Refusal]()
    for instead in dict.fromkeys(variant.instead for variant in variants):
        own = [hunk for hunk in wanted if any(is_at(hunk, place) for place in instead)]
        ways = [own, *(list(v.hunks) for v in variants if v.instead == instead)]
        fitting = [way for way in ways if not hunks.patch_lines(lines, way)[2]]
        if not fitting or fitting == [own]:
            continue
        chosen = [hunk for hunk in chosen if hunk not in own]
        if len(fitting) == 1:
            chosen += fitting[0]
        else:
            names = ", ".join(way[0].patch for way in fitting)
            refused.append(Refusal(own[0], f"{len(fitting)} ways fit, and one has to: {names}"))
    return sorted(chosen, key=lambda hunk: hunk.start), refused
