// SPDX-License-Identifier: GPL-2.0
/*
 * Property tests of mm/cohort/arith_vnode.c: layouts that must be refused, and
 * random layouts over random maps of memory.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "arith_vnode.h"
#include "random.h"

#define ROUNDS	20000
#define SPANS	12
#define ALIGN	(4ULL << 20)
#define MB	(1ULL << 20)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static unsigned int broken;

static void expect(int cond, const char *what, const char *about)
{
	if (!cond && broken++ < 5)
		fprintf(stderr, "%s: %s\n", about, what);
}

static void refused(void)
{
	static const char *const texts[] = {
		"", ",", ":", "a", "a:", "a:rest", "a:rest,", "a:rest,b", "a:rest,b:",
		"a:rest,b:rest", "a:512M,b:512M", "a:0M,b:rest", "a:0%,b:rest",
		"a:100%,b:rest", "a:1K,b:rest", "a:1,b:rest", "a:M,b:rest", "a:-1M,b:rest",
		"a:512M,a:rest", "A:512M,b:rest", "1a:512M,b:rest", "a b:1M,c:rest",
		"a:512MB,b:rest", "a:512M;b:rest", "a:512M b:rest", "a:restx,b:1M",
		"abcdefghijklmnop:512M,b:rest", "default:1M,b:rest", "lend:1M,b:rest",
		"layout:1M,b:rest", "a:99999999999999999999M,b:rest",
		"a:1M,b:1M,c:1M,d:1M,e:1M,f:1M,g:1M,h:1M,i:rest",
	};
	struct cohort_layout layout;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++)
		expect(cohort_layout_parse(texts[i], &layout) != NULL, "taken", texts[i]);
}

static void taken(void)
{
	struct cohort_layout layout;

	expect(!cohort_layout_parse("trusted:512M,store:25%,untrusted:rest", &layout),
	       "refused", "three nodes");
	expect(layout.nr == 3 && layout.share[0].bytes == 512 * MB &&
	       layout.share[1].percent == 25 && !layout.share[2].bytes, "wrong", "three nodes");
	expect(cohort_layout_find(&layout, "store", 5) == 1, "not found", "store");
	expect(cohort_layout_find(&layout, "stor", 4) == -ENOENT, "found", "stor");
	expect(!cohort_layout_parse("a:1G,b:rest", &layout) &&
	       layout.share[0].bytes == 1024 * MB, "wrong", "1G");
}

/* Garbage is refused or taken, but never read beyond its end. */
static void garbage(void)
{
	static const char chars[] = "ab:,0159MG%rest-_";
	struct cohort_layout layout;
	char *text;
	unsigned int i, len, n;

	for (n = 0; n < ROUNDS; n++) {
		len = next() % 40;
		text = malloc(len + 1);
		for (i = 0; i < len; i++)
			text[i] = chars[next() % (sizeof(chars) - 1)];
		text[len] = '\0';
		if (!cohort_layout_parse(text, &layout))
			expect(layout.nr >= 2 && layout.nr <= 8, "number of nodes", text);
		free(text);
	}
}

static unsigned int random_map(struct cohort_span *ram)
{
	unsigned int i, nr = 1 + next() % SPANS;
	u64 at = (next() % 4096) << 12;

	for (i = 0; i < nr; i++) {
		ram[i].start = at;
		at += (1 + next() % (600 * 256)) << 12;
		ram[i].end = at;
		at += (1 + next() % (300 * 256)) << 12;
	}
	return nr;
}

static void random_layout(struct cohort_layout *layout, u64 total)
{
	unsigned int i;

	memset(layout, 0, sizeof(*layout));
	layout->nr = 2 + next() % 7;
	for (i = 0; i < layout->nr; i++) {
		layout->share[i].name[0] = 'a' + i;
		if (next() & 1)
			layout->share[i].percent = 1 + next() % 40;
		else
			layout->share[i].bytes = (1 + next() % (total / MB + 1)) * MB / 4;
	}
	i = next() % layout->nr;
	layout->share[i].bytes = layout->share[i].percent = 0;
}

static u64 wanted(const struct cohort_share *share, u64 total)
{
	return share->percent ? total / 100 * share->percent : share->bytes;
}

static void check_split(const struct cohort_layout *layout, const struct cohort_span *ram,
			unsigned int nr, const u64 *bound)
{
	u64 total = cohort_ram_between(ram, nr, 0, ~0ULL), sum = 0;
	unsigned int i;

	expect(bound[0] == ram[0].start && bound[layout->nr] == ram[nr - 1].end,
	       "does not cover memory", "split");
	for (i = 0; i < layout->nr; i++) {
		u64 has = cohort_ram_between(ram, nr, bound[i], bound[i + 1]);
		u64 want = wanted(&layout->share[i], total);
		u64 end = ~0ULL;

		sum += has;
		expect(bound[i] < bound[i + 1], "not ascending", "split");
		expect(!i || bound[i] % ALIGN == 0, "not aligned", "split");
		expect(has, "a node without memory", "split");
		if (want)
			expect(has + ALIGN >= want && has <= want + ALIGN, "size", "split");
		expect(cohort_layout_piece(bound, layout->nr, bound[i], &end) == i,
		       "another node's", "piece");
		expect(i + 1 == layout->nr || end == bound[i + 1], "too long", "piece");
	}
	expect(sum == total, "memory lost", "split");
}

static void splits(void)
{
	struct cohort_span ram[SPANS];
	struct cohort_layout layout;
	u64 bound[COHORT_VNODE_MAX + 1];
	unsigned int n, nr, done = 0;

	for (n = 0; n < ROUNDS; n++) {
		nr = random_map(ram);
		random_layout(&layout, cohort_ram_between(ram, nr, 0, ~0ULL));
		if (cohort_layout_split(&layout, ram, nr, ALIGN, bound))
			continue;
		done++;
		check_split(&layout, ram, nr, bound);
	}
	expect(done > ROUNDS / 10, "hardly any layout fits", "splits");
}

static void unusable(void)
{
	static const u64 whole[] = { 0, 0, 0, 0, 3, 0, 1 }, none[7];
	static const u64 holes[] = { 16, 0, 0, 0, 4, 0, 0 };
	u64 blocks[7];
	unsigned int n, i, pct;

	expect(cohort_layout_unusable(whole, 7, 4) == 0, "whole", "unusable");
	expect(cohort_layout_unusable(none, 7, 4) == 0, "nothing free", "unusable");
	expect(cohort_layout_unusable(holes, 7, 4) == 20, "a fifth", "unusable");
	expect(cohort_layout_unusable(holes, 7, 5) == 100, "all", "unusable");
	for (n = 0; n < ROUNDS; n++) {
		for (i = 0; i < 7; i++)
			blocks[i] = next() % 1000;
		pct = cohort_layout_unusable(blocks, 7, 4);
		expect(pct <= 100, "more than all", "unusable");
		expect(pct <= cohort_layout_unusable(blocks, 7, 5), "order", "unusable");
	}
}

int main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	refused();
	taken();
	garbage();
	splits();
	unusable();
	printf("vnode: %s\n", broken ? "failed" : "passed");
	return broken != 0;
}
