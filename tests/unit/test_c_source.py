"""Finding the functions that a C file defines, and comments that do not name their subject."""

import pytest

from c_source import (
    foreign_functions,
    functions,
    nameless_comments,
    nameless_in_patch,
    pages_of_4_kb,
)

SOURCE = r"""
#include <linux/mm.h>
#define LIMIT	3
#define each(p, list) \
	for (p = (list)->first; p; p = p->next)
#define SHOW(_name, _field)						\
static ssize_t _name##_show(struct kobject *kobj, char *buf)		\
{									\
	return sysfs_emit(buf, "}%lu\n", _field);			\
}									\
static int cohort_##_name(void) { return 0; }				\
ATTR_RO(_name)
#define max2(a, b) ({ typeof(a) _a = (a); _a > (b) ? _a : (b); })

/* static int commented(void) { } */
struct cohort_thing {
	int (*call)(int x);
	struct { int a; } inner;
};

static const struct ops cohort_ops = { .call = look, };
static int table[] = { [A] = F(1), };
static DEFINE_MUTEX(lock);
int declared(int x);
EXPORT_SYMBOL(declared);

static int __init cohort_first(char *text)
{
	if (text) { each(p, q) { look("{"); } }
	return '{';
}
early_param("cohort", cohort_first);

static __always_inline bool
second(struct page *page,
       int (*call)(int))
	__releases(&zone->lock) __must_hold(&a->b)
{
	while (1) { }
}

static void __printf(1, 2) third(const char *fmt, ...) { }
void __cohort_fourth(void) { }
__attribute__((noinline)) void *fifth(void)
{
#ifdef CONFIG_X
	return NULL;
#else
	return (void *)1;
#endif
}
SHOW(size_kb, size);
enum cohort_state { A, B };
union cohort_both { int a; long b; };
"""


def test_functions_are_found_and_nothing_else() -> None:
    plain = ["cohort_first", "second", "third", "__cohort_fourth", "fifth"]
    assert functions(SOURCE) == [*plain, "_name##_show", "cohort_##_name"]


def test_those_that_a_profile_would_not_count_as_ours() -> None:
    assert foreign_functions(SOURCE) == ["second", "third", "fifth", "_name##_show"]
    assert foreign_functions("void cohort(void) {}\nvoid x_cohort_y(void) {}") == [
        "cohort",
        "x_cohort_y",
    ]


def test_branches_of_the_preprocessor_all_count() -> None:
    text = "#ifdef A\nint a(void) { return 0; }\n#else\nstatic int b(void) { return 1; }\n#endif\n"
    assert functions(text) == ["a", "b"]


COMMENTED = r"""
/* Pages are free: every page has a list. */
/**
 * first() - what nobody has
 * @x: pages; Everyone's
 */
int first(int x); // no
char *text = "who /* nobody */ is" "\"//anyone";	// for whom it is
int who = 0; /* the wholesome one, whose body is whole */
char quote = '"'; /*no
 * one */ int anybody(void);
#define F "/*" /* Whoever \
		  reads */
/** somebody **/
"""


def test_comments_with_a_pronoun_are_found_and_nothing_else() -> None:
    assert nameless_comments(COMMENTED) == [
        "first() - what nobody has @x: pages; Everyone's",
        "for whom it is",
        "no one",
        "Whoever \\ reads",
        "somebody",
    ]


@pytest.mark.parametrize("word", ["who", "anyone", "SomeBody", "everybody", "someone", "nobody"])
def test_every_pronoun_counts_in_either_kind_of_comment(word: str) -> None:
    assert nameless_comments(f"// {word}\n/* {word}'s */") == [word, f"{word}'s"]
    assert nameless_comments(f"// {word}se\nint {word}; /* {word}_x */") == []


PATCH = """\
Subject: mm: pages

Pages that no
one has.

---
--- a/mm/who.c
+++ b/mm/who.c
@@ -1,2 +1,5 @@ static void nobody(void)
 /* who was here before */
-/* who goes */
+/* pages that
+ * somebody has */
+int nobody;
 int here;
+/* a whole one */
 /*
  * pages
+ * that anyone may have
+ */
+
 int there;
+	/* begun by someone
  */
--- a/Documentation/x.txt
+++ b/Documentation/x.txt
@@ -1 +1,2 @@
 who
+			Everyone may.
+			A process may.
"""


def test_a_patch_answers_for_its_description_and_for_what_it_adds() -> None:
    assert nameless_in_patch(PATCH) == [
        "Subject: mm: pages Pages that no one has.",
        "pages that somebody has",
        "that anyone may have",
        "begun by someone",
        "\t\t\tEveryone may.",
    ]
    named = PATCH.replace("no\none", "no task")
    for word in ("somebody", "anyone", "someone", "Everyone"):
        named = named.replace(word, "a task")
    assert nameless_in_patch(named) == []


@pytest.mark.parametrize(
    "line",
    [
        "return kb / 4;",
        'm->free = role_vnode_kb(d->role, "free_kb") / 4;',
        "if (below(d, m, free, set->minfree_kb[i] / 4))",
        "(unsigned long long)m->free * 4, zones);",
    ],
)
def test_pages_that_are_taken_for_4_kb_are_found(line: str) -> None:
    assert pages_of_4_kb(f"\t{line}\n") == [line]


@pytest.mark.parametrize(
    "line", ["return kb / PAGE_KB;", "file_read(&a->res, r, pages(kb) / 4);", "tries = n * 4;"]
)
def test_a_quarter_of_something_else_is_none(line: str) -> None:
    assert pages_of_4_kb(line) == []
