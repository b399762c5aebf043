"""What a tree has otherwise is a variant of a hunk, and the tree chooses it."""

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from cohort.errors import PatchError, UsageError
from cohort.kernel import hunks, overlay, variants
from cohort.kernel.overlay import Series
from made_tree import make
from tests_support import ALLOC_C, HOOK, Outcome, snapshot

VENDOR = """\
A vendor asks first.

Instead: mm/alloc.c: alloc_slow
---
--- a/mm/alloc.c
+++ b/mm/alloc.c
@@ -20,3 +20,4 @@ int alloc_slow(int order)
 \tif (order > 3)
 \t\ttrace_vendor(order);
+\t\tcohort_alloc(order);
 \t\tpage = 1;
"""
VENDORS_ALLOC_C = ALLOC_C.replace("order > 3)\n", "order > 3)\n\t\ttrace_vendor(order);\n")

MakeTree = Callable[..., Path]
SERIES = overlay.load_series()


@pytest.fixture
def series(make_series: Callable[..., Path]) -> Path:
    """A series of one patch with a variant, in place of the repository's; returns its directory."""
    root = make_series(
        {
            "patches/6.12/series": "0001-hook.patch\n",
            "patches/6.12/0001-hook.patch": HOOK,
            "patches/6.12/variants/0001-vendor.patch": VENDOR,
        }
    )
    return root / "patches" / "6.12"


def test_a_tree_without_the_difference_has_the_patch(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree()
    assert overlay.apply(tree).notes == []
    assert "3)\n\t\tcohort_alloc(order);" in (tree / "mm/alloc.c").read_text()


def test_a_tree_with_the_difference_has_the_variant(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree(alloc_c=VENDORS_ALLOC_C)
    before = snapshot(tree)
    report = overlay.apply(tree)
    assert report.notes == ["mm/alloc.c:12: in alloc_slow: variants/0001-vendor.patch: -8 lines"]
    text = (tree / "mm/alloc.c").read_text()
    assert "trace_vendor(order);\n\t\tcohort_alloc(order);\n\t\tpage = 1;\n\treturn page" in text
    overlay.revert(tree)
    assert snapshot(tree) == before


def test_a_variant_is_told_where_it_is_expected(make_tree: MakeTree, series: Path) -> None:
    (series / "variants" / "0001-vendor.patch").write_text(VENDOR.replace("-20,3 +20", "-12,3 +12"))
    report = overlay.apply(make_tree(alloc_c=VENDORS_ALLOC_C))
    assert report.notes == ["mm/alloc.c:12: in alloc_slow: variants/0001-vendor.patch"]


def test_where_nothing_fits_the_patch_is_what_is_refused(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree(alloc_c=ALLOC_C.replace("page = 1", "page = 3"))
    before = snapshot(tree)
    with pytest.raises(PatchError) as error:
        overlay.apply(tree)
    assert "0001-hook.patch: its lines are not in the file" in str(error.value)
    assert "variants/" not in str(error.value)
    assert snapshot(tree) == before


def test_where_two_ways_fit_none_is_chosen(
    make_tree: MakeTree, series: Path, cohort: Callable[..., Outcome]
) -> None:
    other = VENDOR.replace(" \tif (order > 3)\n", "").replace("-20,3 +20,4", "-21,2 +21,3")
    (series / "variants" / "0001-vendor-2.patch").write_text(other)
    tree = make_tree(alloc_c=VENDORS_ALLOC_C)
    before = snapshot(tree)
    done = cohort("kernel", "patch", "--tree", tree)
    assert done.code == 6
    assert "2 ways fit, and one has to: variants/0001-vendor-2.patch, variants/" in done.stderr
    assert snapshot(tree) == before


def test_another_variant_is_another_series(make_tree: MakeTree, series: Path) -> None:
    tree = make_tree(alloc_c=VENDORS_ALLOC_C)
    overlay.apply(tree)
    path = series / "variants" / "0001-vendor.patch"
    path.write_text(VENDOR.replace("cohort_alloc(order)", "cohort_alloc(0)"))
    assert overlay.apply(tree).action == "updated"
    assert "cohort_alloc(0)" in (tree / "mm/alloc.c").read_text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("alloc_slow\n---", "alloc_fast\n---", "instead of hunks in alloc_fast of mm/alloc.c"),
        (": alloc_slow\n---", "\n---", "above the first definition of mm/alloc.c"),
        ("Instead: mm/alloc.c: alloc_slow\n", "", "has to name one file"),
    ],
)
def test_a_variant_of_nothing_is_named(
    make_tree: MakeTree, series: Path, old: str, new: str, said: str
) -> None:
    (series / "variants" / "0001-vendor.patch").write_text(VENDOR.replace(old, new))
    with pytest.raises(UsageError, match="0001-vendor") as error:
        overlay.apply(make_tree())
    assert said in str(error.value)


@pytest.mark.parametrize("variant", SERIES.variants, ids=lambda variant: variant.name)
def test_a_tree_made_of_a_variant_chooses_it(variant: variants.Variant) -> None:
    """On the lines that a variant quotes neither its patch fits nor another variant of it."""
    lines = []
    for _, group in groupby(variant.hunks, key=lambda hunk: hunk.heading):
        made = [make(hunk) for hunk in group]
        gap = ("\n",) if made[0].head else ()
        lines += [*made[0].head, *(line for one in made for line in (*gap, *one.quoted))]
        lines += made[0].tail if made[0].head else ()
    [base] = [name for name in SERIES.names if name.startswith(variant.number)]
    wanted = [
        hunk
        for hunk in hunks.read_patch(SERIES.patches / base)
        if any(variants.is_at(hunk, place) for place in variant.instead)
    ]
    rivals = [v for v in SERIES.variants if v.instead == variant.instead]
    assert wanted
    assert variants.choose(lines, wanted, rivals) == (list(variant.hunks), [])


def test_every_variant_belongs_to_a_patch() -> None:
    assert len(SERIES.variants) == len(variants.files_of(SERIES.patches))
    assert isinstance(SERIES, Series)
