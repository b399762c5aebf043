"""The definitions of a file, as diff names them and as the tree has them."""

import pytest

from cohort.kernel.outline import name_of, outline

CODE = """\
#include <linux/mm.h>
/*
int in_a_comment(void)
{
*/
#define each(x) do { \\
\tx(); \\
} while (0)

static DEFINE_MUTEX(lock);
int early(int a);
struct pair {
\tint a, b;
} __packed;
static const int sizes[] = { 1, 2 };

static int
late(const char *text)

{
\tif (text[0] == '{' || text[0] == '"') {
\t\treturn 1; /* } */
\t}
\tif (text[1]) {
#ifdef CONFIG_A
\t}
#else
\t}
#endif
out:
\treturn 0;
}
EXPORT_SYMBOL(late);

#ifdef CONFIG_A
int one(int a,
#else
int other(int a,
#endif
\tint b)
{
\treturn a;
}

TRACE_EVENT(take,
\tTP_fast_assign(
\t\tif (a) { b(); }
\t),
\tTP_printk("%d", a)
);

late_initcall(late)

#endif
"""


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("void free_unref_page(struct page *page, unsigned int order)", "free_unref_page"),
        ("__alloc_pages_slowpath(gfp_t gfp_mask, unsigned int order,", "__alloc_pages_slowpath"),
        ("struct page *__alloc_pages_noprof(gfp_t", "__alloc_pages_noprof"),
        ("static __printf(1, 2) void warn(const char *text, ...)", "warn"),
        ("static __attribute__((format(printf, 1, 2))) int f(int a)", "f"),
        ("void each(int (*call)(int a))", "each"),
        ("static struct client *(*connect)(struct server *s) = NULL;", "connect"),
        ("static int (*calls[4])(int) = {", "calls"),
        ("struct mm_struct {", "struct mm_struct"),
        ("typedef struct pglist_data {", "struct pglist_data"),
        ("enum vm_event_item { PGPGIN, PGPGOUT, PSWPIN, PSWPOUT,", "enum vm_event_item"),
        ("static const char * const dm_targets[] __initconst = {", "dm_targets"),
        ("static struct kmem_cache *cache __ro_after_init;", "cache"),
        ("SYSCALL_DEFINE3(mbind, unsigned long, start,", "SYSCALL_DEFINE(mbind)"),
        ("COMPAT_SYSCALL_DEFINE5(mbind, compat_ulong_t, start,", "COMPAT_SYSCALL_DEFINE(mbind)"),
        ("TRACE_EVENT(mm_take,", "TRACE_EVENT(mm_take)"),
        ("EXPORT_SYMBOL_NS_GPL(take, TAKE);", "take"),
        ("static DEFINE_MUTEX(lock);", "static DEFINE_MUTEX(lock);"),
        # What diff cut off, or what has no name.
        ("static const struct file_operations proc", ""),
        ("SYSCALL_DEFINE3(mbi", ""),
        ("EXPORT_SYMBOL_GPL(alloc_pages_bulk_no", ""),
        ("struct mm_str", ""),
        ("static struct page *", ""),
        ("enum {", ""),
        ("out:", ""),
    ],
)
def test_what_a_head_names(head: str, name: str) -> None:
    assert name_of(head) == name


def test_the_definitions_of_c() -> None:
    found = outline("take.c", CODE.splitlines(keepends=True))
    lines = CODE.splitlines()
    told = [(str(s), lines[s.first], lines[s.end]) for s in found.sections]
    assert told == [
        ("static DEFINE_MUTEX(lock);", "static DEFINE_MUTEX(lock);", "static DEFINE_MUTEX(lock);"),
        ("early", "int early(int a);", "int early(int a);"),
        ("struct pair", "struct pair {", "} __packed;"),
        ("sizes", "static const int sizes[] = { 1, 2 };", "static const int sizes[] = { 1, 2 };"),
        ("late", "static int", "}"),
        ("EXPORT_SYMBOL(late);", "EXPORT_SYMBOL(late);", "EXPORT_SYMBOL(late);"),
        ("one", "int one(int a,", "}"),
        ("TRACE_EVENT(take)", "TRACE_EVENT(take,", ");"),
        ("late_initcall", "late_initcall(late)", "late_initcall(late)"),
    ]
    assert [s.names for s in found.sections if str(s) == "one"] == [("one", "other")]
    assert found.macros == ((5, 7),)
    assert found.inside(6)
    assert not found.inside(9)
    assert not found.inside(len(lines))


def test_a_brace_that_only_a_macro_closes() -> None:
    text = "int a(void)\n{\n\tif (b) {\n\tCLOSE\n}\n\nint c(void)\n{\n}\n"
    found = outline("take.c", text.splitlines(keepends=True))
    assert [(str(s), s.first, s.end) for s in found.sections] == [("a", 0, 4), ("c", 6, 8)]
    shallow = "int a(void)\n{\n\tif (b) {\nB();\n}\n\td();\n}\n\nint c(void)\n{\n}\n"
    found = outline("take.c", shallow.splitlines(keepends=True))
    assert [(str(s), s.first, s.end) for s in found.sections] == [("a", 0, 6), ("c", 8, 10)]
    label = text.replace("\n\nint c(void)\n{\n}\n", "\nout:\n\treturn 1;\n}\n")
    found = outline("take.c", label.splitlines(keepends=True))
    assert [(str(s), s.first, s.end) for s in found.sections] == [("a", 0, 7)]


def test_heads_without_a_name_are_told_by_their_text() -> None:
    text = "enum {\n\tA,\n};\n\nstruct page *\n*f(void)\n{\n}\n\nstruct page *g(void)\n{\n}\n"
    found = outline("take.c", text.splitlines(keepends=True))
    assert [s.first for s in found.named("enum {")] == [0]
    assert [s.first for s in found.named("struct page *")] == [4]


def test_an_export_and_what_it_exports_are_one_name() -> None:
    found = outline("take.c", CODE.splitlines(keepends=True))
    assert [str(s) for s in found.named("EXPORT_SYMBOL(late);")] == ["late", "EXPORT_SYMBOL(late);"]
    assert [str(s) for s in found.named("late(const char *text)")] == [
        "late",
        "EXPORT_SYMBOL(late);",
    ]


def test_a_text_is_named_by_its_lines() -> None:
    found = outline("Kconfig", ["config A\n", "\tbool\n", "\n", "config AB\n", "\n"])
    assert [(s.names, s.first, s.end) for s in found.sections] == [
        (("config A",), 0, 1),
        (("config AB",), 3, 3),
    ]
    assert [s.first for s in found.named("config A")] == [0]
    assert found.named("config") == []
