"""What a kernel with frozen structures keeps is counted in the patches."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.kernel import frozen, overlay
from tests_support import Outcome, snapshot

ZONE_H = """\
enum item {
\tITEM_ONE,
\tNR_ITEM,
};

struct zone {
\tint nr;
\tANDROID_KABI_RESERVE(1);
};

static inline bool recent(struct zone *zone)
{
\treturn true;
}
"""
ALLOC_C = """\
int alloc_slow(int order)
{
\ttrace_android_vh_slow(order);
\treturn 0;
}
"""
PATCH = """\
---
--- a/include/linux/zone.h
+++ b/include/linux/zone.h
@@ -2,2 +2,4 @@ enum item {
 \tITEM_ONE,
+\tITEM_COHORT,
+#include <linux/cohort_items.h>
 \tNR_ITEM,
@@ -7,2 +9,5 @@ struct zone {
 \tint nr;
+#ifdef CONFIG_COHORT
+\tunsigned long cohort_soft;\t/* some; others */
+#endif
 \tANDROID_KABI_RESERVE(1);
@@ -12,3 +17,3 @@ static inline bool recent(struct zone *zone)
 {
-\treturn true;
+\treturn cohort(zone);
 }
--- a/mm/alloc.c
+++ b/mm/alloc.c
@@ -3,2 +3,3 @@ int alloc_slow(int order)
 \ttrace_android_vh_slow(order);
+\tcohort(order);
 \treturn 0;
"""
REPORT = """\
structures changed: 1, with 1 new members
  struct zone (include/linux/zone.h): cohort_soft; reserve here: ANDROID_KABI_RESERVE(1)
enums changed: 1, with 3 new members
  enum item (include/linux/zone.h): ITEM_COHORT, COHORT_A, COHORT_B; reserve here: none
inline functions and macros of headers changed: 1
  recent (include/linux/zone.h)
exports added: 1
  cohort_alloc
functions with hooks: 1, with vendor hooks, too: 1
  alloc_slow (mm/alloc.c): android_vh_slow
"""


@pytest.fixture
def tree(make_tree: Callable[..., Path], make_series: Callable[..., Path]) -> Path:
    """A tree with a structure, an enum and a vendor hook, and a series that touches them."""
    make_series(
        {
            "kernel/include/linux/cohort_items.h": 'ITEM(COHORT_A, "a")\nITEM(COHORT_B, "b")\n',
            "kernel/mm/cohort/core.c": "EXPORT_SYMBOL_GPL(cohort_alloc);\n",
            "patches/6.12/series": "0001-hook.patch\n",
            "patches/6.12/0001-hook.patch": PATCH,
        }
    )
    made = make_tree(alloc_c=ALLOC_C)
    (made / "include/linux").mkdir(parents=True)
    (made / "include/linux/zone.h").write_text(ZONE_H)
    return made


@pytest.mark.parametrize("option", ["--frozen", "--report"])
def test_the_report(tree: Path, option: str, cohort: Callable[..., Outcome]) -> None:
    before = snapshot(tree)
    done = cohort("kernel", "patch", "--tree", tree, option)
    assert (done.code, done.stdout) == (0, REPORT)
    assert snapshot(tree) == before


def test_a_patched_tree_has_the_same_report(tree: Path) -> None:
    overlay.apply(tree)
    assert list(frozen.report(tree, overlay.load_series()).lines()) == REPORT.splitlines()


def test_revert_does_not_go_with_it(tree: Path, cohort: Callable[..., Outcome]) -> None:
    assert cohort("kernel", "patch", "--tree", tree, "--frozen", "--revert").code == 2
