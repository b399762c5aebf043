"""Every hunk of the series, and every variant, on made files whose surroundings move, change their
name and double: it goes where it belongs or is refused, never anywhere else.

What a hunk is made for is known in a made file, so the line at which it has to land is, too.
"""

import random
import re
from dataclasses import replace

import pytest

from cohort.kernel import hunks, overlay
from cohort.kernel.hunks import Hunk
from made_tree import Made, in_macro, is_code, make

SERIES = overlay.load_series()
PATCHES = {
    **{name: hunks.read_patch(SERIES.patches / name) for name in SERIES.names},
    **{variant.hunks[0].patch: list(variant.hunks) for variant in SERIES.variants},
}
OTHER = """\
static int unmade(int made)
{
	if (made)
		return 0;
	return made;
}
""".splitlines(keepends=True)

every_patch = pytest.mark.parametrize("name", PATCHES)


def hunks_of(name: str, *, with_name: bool = False) -> list[tuple[Hunk, Made]]:
    """The hunks of a patch with what was made for each, those whose @@ line names code alone."""
    made = [(hunk, make(hunk)) for hunk in PATCHES[name]]
    return [x for x in made if not with_name or (is_code(x[0]) and x[1].name)]


def landing(hunk: Hunk, *parts: list[str]) -> int | None:
    """The line, counted from 1, at which the hunk lands in a file of these parts, a line between
    any two; None if it is refused."""
    _, found, refused = hunks.patch_lines(joined(*parts), [hunk])
    assert len(found) + len(refused) == 1
    return found[0].line if found else None


def joined(*parts: list[str]) -> list[str]:
    """The lines of a file of these parts."""
    lines: list[str] = []
    for part in parts:
        lines += ["\n", *part] if lines else part
    return lines


def quotes_its_own_head(hunk: Hunk) -> bool:
    """Whether the hunk's own lines say what it is in, or in front of."""
    return any(line[0].isalpha() for line in hunk.old if line.strip())


def at_an_end(hunk: Hunk) -> bool:
    """Whether the hunk belongs at the start or the end of its file."""
    return hunk.leading == 0 or hunk.trailing == 0


@every_patch
def test_it_lands_where_it_was_made_for(name: str) -> None:
    for hunk, made in hunks_of(name):
        assert landing(hunk, made.lines) == len(made.head) + 1, hunk


@every_patch
def test_what_is_around_moves(name: str) -> None:
    for hunk, made in hunks_of(name, with_name=True):
        behind = [] if hunk.trailing == 0 else [OTHER]
        in_front = [] if hunk.leading == 0 else [OTHER, OTHER]
        start = sum(len(part) + 1 for part in in_front)
        right = start + len(made.head) + 1
        assert landing(hunk, *in_front, made.lines, *behind) == right, hunk


@every_patch
def test_a_definition_that_has_another_name_is_not_meant(name: str) -> None:
    for hunk, made in hunks_of(name, with_name=True):
        if quotes_its_own_head(hunk):
            right = len(made.head) + 1
            assert landing(hunk, made.renamed().lines) in (None, right), hunk
        else:
            assert landing(hunk, made.renamed().lines) is None, hunk


@every_patch
@pytest.mark.parametrize("seed", range(4))
def test_copies_of_the_definition_are_beside_it(name: str, seed: int) -> None:
    """A copy in another definition is passed over; with one in the hunk's own it is refused, as
    what the lines mean cannot be told."""
    chance = random.Random(f"{name} {seed}")
    for hunk, made in hunks_of(name, with_name=True):
        if at_an_end(hunk):
            continue
        copies = [made.renamed().lines, made.renamed().renamed().lines, OTHER]
        at = chance.randrange(len(copies) + 1)
        parts = [*copies[:at], made.lines, *copies[at:]]
        right = sum(len(part) + 1 for part in copies[:at]) + len(made.head) + 1
        found = landing(hunk, *parts)
        assert found == right or (found is None and quotes_its_own_head(hunk)), hunk


@every_patch
def test_the_lines_are_twice_in_the_definition(name: str) -> None:
    for hunk, _ in hunks_of(name, with_name=True):
        if not quotes_its_own_head(hunk) and not at_an_end(hunk):
            between = " \tmade(); \\\n" if in_macro(hunk) else " \tmade();\n"
            twice = replace(hunk, lines=(*hunk.lines, between, *hunk.lines))
            assert landing(hunk, make(twice).lines) is None, hunk


@every_patch
def test_the_lines_are_left_in_another_definition_only(name: str) -> None:
    for hunk, made in hunks_of(name, with_name=True):
        for number, line in enumerate(made.quoted):
            if quotes_its_own_head(hunk) or not re.search(r"\w", line):
                continue
            changed = list(made.quoted)
            changed[number] = line.replace(line.strip(), f"un{line.strip()}")
            own = [*made.head, *changed, *made.tail]
            assert landing(hunk, made.renamed().lines, own, OTHER) is None, hunk
            assert landing(hunk, own, made.renamed().lines, OTHER) is None, hunk


@every_patch
def test_a_vendor_has_a_line_between(name: str) -> None:
    for hunk, made in hunks_of(name):
        for number in range(1, len(made.quoted)):
            split = [*made.quoted[:number], "\ttrace_vendor(made);\n", *made.quoted[number:]]
            assert landing(hunk, [*made.head, *split, *made.tail]) is None, hunk


def test_every_kind_of_hunk_was_made() -> None:
    """What the tests above pass over is little."""
    made = [x for name in PATCHES for x in hunks_of(name)]
    named = [x for name in PATCHES for x in hunks_of(name, with_name=True)]
    telling = [hunk for hunk, _ in named if not quotes_its_own_head(hunk)]
    assert len(named) > len(made) * 0.75
    assert len(telling) > len(made) * 0.55
