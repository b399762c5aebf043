// SPDX-License-Identifier: GPL-2.0
/*
 * Property tests of mm/cohort/arith_pcpa.c against models that are too simple
 * to be wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arith_pcpa.h"
#include "random.h"

#define ROUNDS	200000
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static unsigned int broken;

static void expect(int cond, const char *what)
{
	if (!cond && broken++ < 5)
		fprintf(stderr, "arith_pcpa: %s\n", what);
}

/* Pieces that fit one after the other, from the first granule on. */
static unsigned long row(const u16 *cost, unsigned long nr, unsigned long len, unsigned long step)
{
	unsigned long at = 0, k, n = 0;

	while (at + len <= nr) {
		for (k = 0; k < len && cost[at + k] != COHORT_COST_NEVER; k++)
			;
		n += k == len;
		at += k == len ? len : 1;
		at = (at + step - 1) / step * step;
	}
	return n;
}

/* Of the places that leave room for the most others the cheapest, of those the highest. */
static void window_once(void)
{
	unsigned long nr = 1 + next() % 60, len = 1 + next() % 20, step = 1UL << next() % 4;
	unsigned long best = nr, i, k, most = 0;
	u64 least = ~0ULL;
	u16 cost[60], rest[60];

	for (i = 0; i < nr; i++)
		cost[i] = next() % 20 ? next() % 17 : COHORT_COST_NEVER;
	for (i = 0; i + len <= nr; i += step) {
		unsigned long left;
		u64 sum = 0;

		for (k = 0; k < len && cost[i + k] != COHORT_COST_NEVER; k++)
			sum += cost[i + k];
		if (k < len)
			continue;
		memcpy(rest, cost, sizeof(rest));
		for (k = 0; k < len; k++)
			rest[i + k] = COHORT_COST_NEVER;
		left = 1 + row(rest, nr, len, step);
		if (left < most || (left == most && sum > least))
			continue;
		most = left;
		least = sum;
		best = i;
	}
	expect(cohort_area_window(cost, nr, len, step) == best, "not the best window");
	expect(most == row(cost, nr, len, step), "a piece costs another");
}

/* Every chunk is visited, by one of the two, in whatever order they run. */
static void walk_once(void)
{
	unsigned long nr = next() % 50, c, left = nr;
	struct cohort_walk walk = { 0, nr };
	char seen[50] = {};

	while (cohort_walk_next(&walk, next() & 1, &c)) {
		expect(c < nr && !seen[c], "a chunk is visited twice");
		seen[c] = 1;
		left--;
	}
	expect(!left && !cohort_walk_next(&walk, true, &c), "a chunk is left out");
}

/* However many pages chunks have, never more are locked than are dropped together. */
static void flush_once(void)
{
	unsigned int nr = 0, chunks = next() % 40;

	while (chunks--) {
		nr += next() % 3 ? next() % 8 : next() % (COHORT_CHUNK + 1);
		expect(nr <= COHORT_FLUSH_MAX, "too many pages are locked");
		if (cohort_flush_due(nr, !chunks || next() % 50 == 0))
			nr = 0;
	}
	expect(!nr, "pages are left over");
	expect(!cohort_flush_due(0, true), "nothing is dropped");
}

static void fsm(void)
{
	struct cohort_pcpa_fsm fsm = { COHORT_PCACHE_ONLY, false };
	int armed = 0, i;

	for (i = 0; i < ROUNDS; i++) {
		switch (next() % 3) {
		case 0:
			armed += cohort_pcpa_request(&fsm);
			expect(fsm.state == COHORT_ANON_ALLOC, "a request is not served");
			break;
		case 1:
			cohort_pcpa_granted(&fsm);
			break;
		default:
			if (armed && !cohort_pcpa_timeout(&fsm))
				armed = 0;
		}
		expect(armed == (fsm.state == COHORT_ANON_ALLOC), "the timer is lost or set twice");
		expect(!fsm.used || fsm.state == COHORT_ANON_ALLOC, "used while nobody is served");
	}
}

static void trail(void)
{
	unsigned long pages = 4096, i, known = 0, strange = 0;
	void *mem = calloc(1, cohort_trail_size(pages));
	uint64_t *hash = malloc(pages * sizeof(*hash));
	struct cohort_trail trail;

	cohort_trail_init(&trail, pages, mem);
	for (i = 0; i < pages; i++)
		cohort_trail_put(&trail, hash[i] = next());
	for (i = 0; i < pages; i++)
		strange += cohort_trail_take(&trail, next());
	for (i = 0; i < pages; i++)
		known += cohort_trail_take(&trail, hash[i]);
	expect(known > pages * 85 / 100, "a trail forgets too much");
	expect(strange < 8, "a trail takes strangers for its own");
	for (known = i = 0; i < pages; i++)
		known += cohort_trail_take(&trail, hash[i]);
	expect(known < 8, "a trail does not forget");
	free(hash);
	free(mem);
}

static void texts(void)
{
	static const char *const bad[] = {
		"", "M", "-1", "260MB", "260M@", "260M@x", "260M@1M2", "99999999999999999999M",
		"260 M", "@1G", "17179869184G", "0x10", "260M@0x", "260M@0x1ffffffffffffffff",
	};
	u64 size, base;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		expect(cohort_pcpa_parse(bad[i], &size, &base) != NULL, bad[i]);
	expect(!cohort_pcpa_parse("260M\n", &size, &base) && size == 260ULL << 20 &&
	       base == COHORT_ANY_BASE, "260M");
	expect(!cohort_pcpa_parse("1g@0x40000000", &size, &base) && size == 1ULL << 30 &&
	       base == 1ULL << 30, "1g@0x40000000");
	expect(!cohort_pcpa_parse("0", &size, &base) && !size, "0");
	expect(cohort_pcpa_refuse(4ULL << 30, COHORT_ANY_BASE, 2 << 20, 2ULL << 30) != NULL,
	       "larger than memory");
	expect(cohort_pcpa_refuse(3 << 20, COHORT_ANY_BASE, 2 << 20, 2ULL << 30) != NULL, "odd size");
	expect(cohort_pcpa_refuse(4 << 20, 1 << 20, 2 << 20, 2ULL << 30) != NULL, "odd base");
	expect(cohort_pcpa_refuse(4 << 20, 0, 2 << 20, 2ULL << 30) != NULL, "a base that is none");
	expect(!cohort_pcpa_refuse(260ULL << 20, 1ULL << 30, 2 << 20, 2ULL << 30), "refused");
}

int main(int argc, char **argv)
{
	int i;

	state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	for (i = 0; i < 20000; i++) {
		window_once();
		walk_once();
		flush_once();
	}
	fsm();
	trail();
	texts();
	if (broken)
		fprintf(stderr, "arith_pcpa_test: %u broken\n", broken);
	return broken != 0;
}
