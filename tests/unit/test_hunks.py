"""Hunks go where they belong, or nowhere: on a file whose definitions move, change and double.

The hooks are put into the file as a person would; git makes the patch of it. Where a hunk has to go
in a changed file is then known: the same change, made to the file with hooks.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import host
from cohort.errors import PatchError
from cohort.kernel import hunks
from cohort.kernel.hunks import Hunk, Landing

INCLUDES = """\
// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>
#include <linux/swap.h>
"""
EVENTS = """\
enum take_event {
	TAKE_FAST,
	TAKE_SLOW,
	NR_TAKE,
};
"""
NAMES = """\
static const char * const take_names[] = {
	"fast",
	"slow",
};
"""
FAST = """\
static int take_fast(struct pool *pool, int order)
{
	int page = 0;

	if (order > 3)
		return 0;
	return page;
}
"""
SLOW = """\
static struct page *
take_slow(struct pool *pool, int order,
	  unsigned long flags)
{
	int page = 0;

	if (order > 3)
		return 0;
	return page;
}
EXPORT_SYMBOL_GPL(take_slow);
"""
CALL = """\
SYSCALL_DEFINE2(take, unsigned long, from, unsigned long, count)
{
	int page = 0;

	if (order > 3)
		return 0;
	return page;
}
"""
STUBS = """\
#ifdef CONFIG_TAKE
/* The one that does something: { */
int take_back(void)
{
	char brace = '{';

	return give("}{", brace);
}
#else
static inline int take_back(void)
{
	return 0;
}
#endif
"""
LAST = """\
int take_last(void)
{
	return take_back();
}
"""
BLOCKS = {
    "includes": INCLUDES,
    "events": EVENTS,
    "names": NAMES,
    "fast": FAST,
    "slow": SLOW,
    "call": CALL,
    "stubs": STUBS,
    "last": LAST,
}
HOOK = "\tif (order > 3)\n", "\tif (order > 3 && !hook(order))\n"
HOOKED = BLOCKS | {
    "includes": INCLUDES.replace("swap.h>\n", "swap.h>\n#include <linux/cohort.h>\n"),
    "events": EVENTS.replace("\tNR_", "\tTAKE_COHORT,\n\tNR_"),
    "names": NAMES.replace('\t"slow",\n', '\t"slow",\n\t"cohort",\n'),
    "fast": FAST.replace(*HOOK),
    "slow": SLOW.replace(*HOOK),
    "call": CALL.replace(*HOOK),
    "stubs": STUBS.replace("\treturn give", "\tcohort_back();\n\treturn give"),
    "last": LAST + '\n#include "cohort/take.h"\n',
}
MIDDLE = [name for name in BLOCKS if name not in ("includes", "last")]

Diff = Callable[..., list[Hunk]]


@pytest.fixture
def diff(tmp_path: Path) -> Diff:
    """Make a patch of one file with so many lines of context and read it: `diff(old, new)`."""

    def make(old: str, new: str, name: str = "take.c", context: int = 1) -> list[Hunk]:
        for side, text in (("a", old), ("b", new)):
            (tmp_path / side).mkdir(exist_ok=True)
            (tmp_path / side / name).write_bytes(text.encode())
        words = ["git", "-c", "core.attributesFile=/dev/null", "diff", "--no-index", "--no-prefix"]
        done = host.run([*words, f"-U{context}", f"a/{name}", f"b/{name}"], cwd=tmp_path)
        assert done.returncode == 1, done.stderr
        patch = tmp_path / "0001-hook.patch"
        patch.write_bytes(done.stdout.encode())
        return hunks.read_patch(patch)

    return make


def join(blocks: dict[str, str], names: list[str] | None = None) -> str:
    """The file of these blocks in order."""
    return "\n".join(blocks[name] for name in names or blocks)


def patched(text: str, wanted: list[Hunk]) -> str:
    """The text with all of the hunks in it; AssertionError if one is refused."""
    lines, _, refused = hunks.patch_lines(hunks.split(text), wanted)
    assert refused == [], "\n".join(map(str, refused))
    return "".join(lines)


def refusals(text: str, wanted: list[Hunk]) -> list[str]:
    """What is said of the hunks that are refused."""
    return [str(refusal) for refusal in hunks.patch_lines(hunks.split(text), wanted)[2]]


def hook(diff: Diff, *names: str) -> list[Hunk]:
    """The hunks of the hooks in these blocks."""
    return diff(join(BLOCKS), join(BLOCKS | {name: HOOKED[name] for name in names}))


def test_every_kind_of_place_is_told(diff: Diff) -> None:
    wanted = diff(join(BLOCKS), join(HOOKED))
    lines, landings, refused = hunks.patch_lines(hunks.split(join(BLOCKS)), wanted)
    assert ("".join(lines), refused) == (join(HOOKED), [])
    assert [landing.where for landing in landings] == [
        "above the first definition",
        "in enum take_event",
        "in take_names",
        "in take_fast",
        "in take_slow",
        "in SYSCALL_DEFINE(take)",
        "in take_back",
        "behind take_last",
    ]
    assert [landing.offset for landing in landings] == [0] * 8


@pytest.mark.parametrize("seed", range(40))
def test_definitions_in_any_order(diff: Diff, seed: int) -> None:
    order = random.Random(seed).sample(MIDDLE, len(MIDDLE))
    names = ["includes", *order, "last"]
    wanted = diff(join(BLOCKS), join(HOOKED))
    assert patched(join(BLOCKS, names), wanted) == join(HOOKED, names)


@pytest.mark.parametrize("name", ["fast", "slow", "call"])
def test_a_function_with_the_same_surroundings_moved_in_front(diff: Diff, name: str) -> None:
    wanted = hook(diff, name)
    others = [x for x in MIDDLE if x != name]
    for names in ([name, *others], [*others, name]):
        new = BLOCKS | {name: HOOKED[name]}
        assert patched(join(BLOCKS, names), wanted) == join(new, names)


@pytest.mark.parametrize("before", MIDDLE)
def test_an_added_function_with_the_same_surroundings(diff: Diff, before: str) -> None:
    added = FAST.replace("take_fast", "take_faster") + "\n"
    wanted = diff(join(BLOCKS), join(HOOKED))
    more = {before: added + BLOCKS[before]}, {before: added + HOOKED[before]}
    assert patched(join(BLOCKS | more[0]), wanted) == join(HOOKED | more[1])


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("fast", "take_fast", "take_faster"),
        ("slow", "take_slow", "take_slower"),
        ("call", "(take,", "(takes,"),
        ("events", "take_event", "take_events"),
        ("names", "take_names", "names_of"),
    ],
)
def test_a_renamed_definition_is_refused(diff: Diff, name: str, old: str, new: str) -> None:
    text = join(BLOCKS | {name: BLOCKS[name].replace(old, new)})
    said = refusals(text, hook(diff, name))
    assert len(said) == 1
    assert "the file has no such definition; its lines are only in " in said[0]
    assert all(word in said[0] for word in ("take.c:", old, "0001-hook.patch", "\n      | ")), said


def test_a_function_without_the_lines_is_refused(diff: Diff) -> None:
    text = join(BLOCKS | {"slow": SLOW.replace("order > 3", "order > 4")})
    said = refusals(text, hook(diff, "slow"))
    assert len(said) == 1
    assert "its lines are only in take_fast (line 19), in SYSCALL_DEFINE(take) " in said[0]
    assert "      | \tif (order > 3)\n" in said[0]


def test_lines_twice_in_the_function_are_refused(diff: Diff) -> None:
    twice = FAST.replace("\tif (order", "\tif (order > 3)\n\t\treturn 0;\n\n\tif (order")
    said = refusals(join(BLOCKS | {"fast": twice}), hook(diff, "fast"))
    assert len(said) == 1
    assert "ambiguous, 2 places for 1 hunk(s): lines 19, 22" in said[0]


def test_hunks_that_are_the_same_take_all_places_in_order(diff: Diff) -> None:
    once = "\n\tif (order > 3)\n\t\treturn 0;\n\torder--;\n\tpage++;\n"
    one = FAST.replace("\n\tif (order > 3)\n\t\treturn 0;\n", once)
    old = one.replace(once, once * 2)
    new = old.replace(*HOOK)
    wanted = diff(old, new)
    assert len(wanted) == 2
    assert patched(INCLUDES + old, wanted) == INCLUDES + new
    for times in (1, 3):
        said = refusals(one.replace(once, once * times), wanted)
        assert [f"{times} places for 2 hunk(s)" in x for x in said] == [True, True], said


@pytest.mark.parametrize(
    "head",
    [
        "int take_fast(struct pool *pool, int order)",
        "static noinline int\ntake_fast(struct pool *pool, gfp_t gfp, int order)",
        "static __attribute__((unused)) int __must_check take_fast(struct pool *pool, int order)",
        "static __printf(1, 2) int take_fast(const char *text,\n\t\t...) __acquires(pool)",
        "#ifdef CONFIG_TAKE\nint take_any(int a)\n#else\nint take_fast(int order)\n#endif",
        "#ifdef CONFIG_TAKE\nint take_fast(int order)\n#else\nint take_any(int order)\n#endif",
        "static int take_fast(struct pool *pool, int order)\n",
    ],
)
def test_only_the_name_of_a_head_counts(diff: Diff, head: str) -> None:
    first = FAST.splitlines()[0]
    text = join(BLOCKS | {"fast": FAST.replace(first, head)})
    expected = join(BLOCKS | {"fast": HOOKED["fast"].replace(first, head)})
    assert patched(text, hook(diff, "fast")) == expected


def test_a_prototype_is_not_meant(diff: Diff) -> None:
    new = FAST + "\n#ifdef CONFIG_TAKE\n#endif\n"
    hooked = new.replace("TAKE\n", "TAKE\n#include <linux/cohort.h>\n")
    prototype = (
        "static int take_fast(struct pool *pool, int order);\n\n#ifdef CONFIG_TAKE\n#endif\n"
    )
    wanted = diff(new, hooked)
    assert wanted[0].heading.startswith("static int take_fast")
    assert patched(prototype + new, wanted) == prototype + hooked
    said = refusals(prototype + FAST, wanted)
    assert len(said) == 1
    assert "its lines are only behind take_fast (line 3)" in said[0]
    export = "EXPORT_SYMBOL(take_fast);\n\n#ifdef"
    new, hooked = new.replace("\n#ifdef", export), hooked.replace("\n#ifdef", export)
    wanted = diff(new, hooked)
    assert wanted[0].heading == "EXPORT_SYMBOL(take_fast);"
    assert patched(prototype + new, wanted) == prototype + hooked


def test_the_other_branch_of_an_if(diff: Diff) -> None:
    wanted = hook(diff, "stubs")
    one = STUBS.replace("#else", "#elif 1")
    hooked = HOOKED["stubs"].replace("#else", "#elif 1")
    assert patched(join(BLOCKS | {"stubs": one}), wanted) == join(BLOCKS | {"stubs": hooked})
    both = STUBS.replace("\treturn 0;", '\tchar brace = 0;\n\n\treturn give("}{", brace);')
    said = refusals(join(BLOCKS | {"stubs": both}), wanted)
    assert len(said) == 1
    assert "ambiguous, 2 places" in said[0]


def test_the_start_of_a_function_whose_neighbour_changed(diff: Diff) -> None:
    start = CALL.replace("{\n", "{\n\thook();\n"), 2
    between = "int hook(void);\n\n" + CALL, 1
    for hooked, context in (start, between):
        wanted = diff(join(BLOCKS), join(BLOCKS | {"call": hooked}), context=context)
        assert wanted[0].heading.startswith(("take_slow", "EXPORT_SYMBOL_GPL(take_slow)"))
        for other in ("", LAST.replace("take_last", "take_other"), SLOW.replace("slow", "sloth")):
            text = BLOCKS | {"slow": other}
            assert patched(join(text), wanted) == join(text | {"call": hooked})


def test_the_end_of_a_function_that_was_renamed(diff: Diff) -> None:
    """The hunk quotes the next function's head, but changes the one before."""
    hooked = FAST.replace("\treturn page;\n", "\tput(page);\n\treturn page;\n")
    wanted = diff(join(BLOCKS), join(BLOCKS | {"fast": hooked}), context=5)
    assert any("take_slow" in line for line in wanted[0].old)
    said = refusals(join(BLOCKS | {"fast": FAST.replace("take_fast", "take_other")}), wanted)
    assert len(said) == 1
    assert "its lines are only in take_other" in said[0]


def test_an_export_that_came_or_went(diff: Diff) -> None:
    end = '\n#include "x.h"\n'
    exported, plain = SLOW, SLOW.replace("EXPORT_SYMBOL_GPL(take_slow);\n", "")
    for old, other in ((exported, plain), (plain, exported)):
        wanted = diff(old + "\n#endif\n", old + end + "\n#endif\n")
        assert patched(other + "\n#endif\n", wanted) == other + end + "\n#endif\n"


def test_a_macro_is_no_code_of_a_function(diff: Diff) -> None:
    macro = "#define each(x) do { \\\n\tx(); \\\n} while (0)\n"
    wanted = diff(join(BLOCKS), join(BLOCKS | {"fast": f"{FAST}\n{macro}"}))
    assert wanted[0].heading.startswith("static int take_fast")
    assert patched("\n" + join(BLOCKS), wanted).count(f"{FAST}\n{macro}") == 1
    old = FAST + "\n" + macro
    inside = old.replace("x(); \\\n", "x(); \\\n\thook(); \\\n")
    assert patched("\n" + old, diff(old, inside)) == "\n" + inside


def test_the_line_of_a_head_that_names(diff: Diff) -> None:
    hooked = SLOW.replace("pool, int order,", "pool, short order,")
    wanted = diff(join(BLOCKS), join(BLOCKS | {"slow": hooked}))
    assert patched("\n" + join(BLOCKS), wanted) == "\n" + join(BLOCKS | {"slow": hooked})


def test_indented_code_stays_inside(diff: Diff) -> None:
    """The lines are behind the function that is named, and no longer in it."""
    tail = "\n#ifdef CONFIG_TAKE\n#endif\n"
    old = FAST.replace("\n\tif", f"{tail}\n\tif")
    wanted = diff(old, old.replace("TAKE\n", "TAKE\n\thook();\n"))
    assert patched(INCLUDES + old, wanted).count("hook") == 1
    said = refusals(FAST + tail, wanted)
    assert len(said) == 1
    assert "its lines are only behind take_fast" in said[0]


def test_file_scope_stays_outside(diff: Diff) -> None:
    """What comes behind a function must not get into it."""
    tail = "\n#ifdef CONFIG_TAKE\n#endif\n"
    wanted = diff(FAST + tail, FAST + tail.replace("TAKE\n", "TAKE\nint hook(void);\n"))
    said = refusals(FAST.replace("\n\tif", f"{tail}\n\tif"), wanted)
    assert len(said) == 1
    assert "its lines are only in take_fast" in said[0]


def test_includes_are_those_above_the_first_definition(diff: Diff) -> None:
    wanted = hook(diff, "includes")
    later = BLOCKS | {"last": "#include <linux/mm.h>\n#include <linux/swap.h>\n\n" + LAST}
    assert patched(join(later), wanted) == join(later | {"includes": HOOKED["includes"]})
    twice = "#include <linux/swap.h>\n\n" + join(BLOCKS)
    assert ["ambiguous" in x for x in refusals(twice, wanted)] == [True]
    gone = join(later | {"includes": "#include <linux/mm.h>\n"})
    assert ["only behind take_back" in x for x in refusals(gone, wanted)] == [True]


def test_the_end_of_the_file(diff: Diff) -> None:
    wanted = hook(diff, "last")
    said = refusals(join(BLOCKS) + "\nint more;\n", wanted)
    assert len(said) == 1
    assert "its lines are not at the end of the file" in said[0]


def test_a_name_that_was_cut_off(diff: Diff) -> None:
    table = "static const struct file_operations {} = {{\n\t.open\t= open,\n\t.read\t= read,\n}};\n"
    one, other = table.format("take_fast_operations"), table.format("take_slow_operations")
    [hunk] = diff(f"{other}\n{one}", f"{other}\n{one.replace('read,', 'read, /* */')}")
    cut = Hunk(hunk.patch, hunk.file, hunk.start, hunk.heading[:44], hunk.lines)
    assert cut.heading.endswith("take_fas")
    assert "/* */" in patched(f"{other}\n{one}", [cut]).split("take_fast")[1]
    cut = Hunk(hunk.patch, hunk.file, hunk.start, hunk.heading[:40], hunk.lines)
    said = refusals(f"{other}\n{one}", [cut])
    assert len(said) == 1
    assert "cut off, it may be take_slow_operations, take_fast_operations;" in said[0]


@pytest.mark.parametrize(
    ("name", "text", "old", "new"),
    [
        ("Makefile", "obj-y += a.o\nobj-y += b.o\nobj-y += c.o\n", "b.o\n", "b.o\nobj-y += x.o\n"),
        (
            "Kconfig",
            "config A\n\tbool\n\nconfig B\n\tbool\n\nconfig C\n",
            "\n\nconfig C",
            "x\n\nconfig C",
        ),
        ("index.rst", "Title\n=====\n\n   a\n   b\n   c\n", "   b\n", "   b\n   x\n"),
    ],
)
def test_texts(diff: Diff, name: str, text: str, old: str, new: str) -> None:
    wanted = diff(text, text.replace(old, new), name)
    front = "Other\n" if name.endswith("rst") else "obj-m += z.o\n\n"
    assert patched(front + text, wanted) == front + text.replace(old, new)


def test_a_text_under_another_heading(diff: Diff) -> None:
    lines = "\n\n   a\n   b\n\n"
    text = f"First{lines}Second{lines}Third\n"
    hooked = f"First{lines}Second\n\n   a\n   x\n   b\n\nThird\n"
    wanted = diff(text, hooked, "index.rst")
    assert wanted[0].heading == "Second"
    assert patched(text.replace("First", "Number 1"), wanted) == hooked.replace("First", "Number 1")
    said = refusals(text.replace("Second", "Second part"), wanted)
    assert len(said) == 1
    assert 'its lines are only below "First" (line 3), below "Second part" (line 8)' in said[0]


def test_a_long_line_of_a_text_that_was_cut_off(diff: Diff) -> None:
    text = "obj-$(CONFIG_A_LONG_NAME) += a-rather-long-name.o\n\n\ta\n\tb\n"
    [hunk] = diff(text, text.replace("\tb", "\tx\n\tb"), "Makefile")
    cut = Hunk(hunk.patch, hunk.file, hunk.start, hunk.heading[:40], hunk.lines)
    assert patched("\n" + text, [cut]).endswith("\ta\n\tx\n\tb\n")
    cut = Hunk(hunk.patch, hunk.file, hunk.start, hunk.heading[:20], hunk.lines)
    assert ["no such definition" in x for x in refusals(text, [cut])] == [True]


def test_bytes_stay(diff: Diff) -> None:
    """Line ends, odd bytes and a last line without an end."""
    odd = "/* caf\udce9 \x0c \x85 */\r\n" + FAST + "int end;"
    wanted = diff(FAST, HOOKED["fast"])
    assert patched(odd, wanted) == odd.replace(*HOOK)
    wanted = diff("int a;\nint b;", "int a;\nint b;\nint c;")
    assert patched("int z;\nint a;\nint b;", wanted) == "int z;\nint a;\nint b;\nint c;"


def test_two_hunks_about_the_same_lines(diff: Diff) -> None:
    [hunk], [other] = hook(diff, "fast"), diff(FAST, FAST.replace("> 3", "> 4"))
    said = refusals(join(BLOCKS), [hunk, other])
    assert len(said) == 1
    assert "another hunk of the patch is about these lines, too" in said[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@@ -1,2 +1,3 @@\n a\n+b\n", ":3: the hunk is damaged"),
        ("@@ -1,2 +1,2 @@\n a\n b\n", ":3: the hunk is damaged"),
        ("@@ -1,2 +1,3 @@\n a\n+b\nc\n", ":3: the hunk is damaged"),
        ("@@ -3,0 +4 @@ int f(void)\n+b\n", ":3: the hunk quotes no line of take.c"),
    ],
)
def test_a_damaged_patch_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "0001-x.patch"
    path.write_text("--- a/take.c\n+++ b/take.c\n" + text)
    with pytest.raises(PatchError, match=f"0001-x.patch{said}"):
        hunks.read_patch(path)


def test_what_is_around_hunks_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "0001-x.patch"
    path.write_text(
        "Subject: x\n\n+++ b/no.c\n@@ -1 +1 @@ no\n---\n--- a/take.c\n+++ b/take.c\n"
        "@@ -1,2 +1,2 @@ int f(void)\n--- x;\n+++ y;\n\n-- \n2.39\n"
    )
    [hunk] = hunks.read_patch(path)
    assert (hunk.file, hunk.old, hunk.new) == ("take.c", ["-- x;\n", "\n"], ["++ y;\n", "\n"])


def test_a_landing_is_a_line_for_people(diff: Diff) -> None:
    [hunk] = hook(diff, "fast")
    assert (
        str(Landing(hunk, hunk.start, "in take_fast")) == "take.c:19: in take_fast: 0001-hook.patch"
    )
    assert str(Landing(hunk, 17, "in f")).endswith("take.c:17: in f: 0001-hook.patch: -2 lines")


def test_hunks_of_one_function_keep_their_order(diff: Diff) -> None:
    """What each of them looks for is there once, but the other way round."""
    first, second = "\tif (a)\n\t\tgo();\n\n", "\tif (b)\n\t\tstop();\n\n"
    pad = "\tone();\n\ttwo();\n"
    old = f"int f(int a, int b)\n{{\n{first}{pad}{second}}}\n"
    new = old.replace("go();\n", "go();\n\thook(1);\n").replace(
        "stop();\n", "stop();\n\thook(2);\n"
    )
    wanted = diff(INCLUDES + old, INCLUDES + new)
    assert len(wanted) == 2
    swapped = f"int f(int a, int b)\n{{\n{second}{pad}{first}}}\n"
    said = refusals(INCLUDES + swapped, wanted)
    assert ["out of order in f" in x for x in said] == [True, True], said


@pytest.mark.parametrize(
    ("put_in", "said"),
    [
        (["}\n", "\n", "static void other(void)\n", "{\n"], "no longer in take_fast"),
        (["/*\n"], "no longer has EXPORT_SYMBOL_GPL(take_slow);, take_slow"),
        (["\thook();\n"], None),
    ],
)
def test_what_came_of_it_is_looked_at(diff: Diff, put_in: list[str], said: str | None) -> None:
    """A hunk whose own lines end a definition, or swallow the next one, is told."""
    [hunk] = hook(diff, "fast")
    lines = [" \tif (order > 3)\n", *(f"+{line}" for line in put_in), " \t\treturn 0;\n"]
    wrong = Hunk(hunk.patch, hunk.file, hunk.start, hunk.heading, tuple(lines))
    later = Hunk(hunk.patch, hunk.file, hunk.start + 2, hunk.heading, (" \treturn page;\n", "-}\n"))
    before = hunks.split(join({"fast": FAST, "slow": SLOW}))
    places = [Landing(wrong, 5, "in take_fast"), Landing(later, 7, "in take_fast")]
    after = [*before[:5], *put_in, *before[5:]]
    found = [str(refusal) for refusal in hunks.misplaced(before, after, places)]
    assert [said in x for x in found] == [True] if said else found == []
