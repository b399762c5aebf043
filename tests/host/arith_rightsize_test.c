// SPDX-License-Identifier: GPL-2.0
/*
 * Property tests of mm/cohort/arith_rightsize.c: histogram buckets, shares, and
 * the controller under recorded, constant, random and adversarial input.
 */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "arith_rightsize.h"
#include "random.h"

#define ROUNDS	200000
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static unsigned int broken;

static void expect(int cond, const char *what)
{
	if (!cond && broken++ < 5)
		fprintf(stderr, "%s\n", what);
}

static void buckets(void)
{
	unsigned int i;

	expect(cohort_size_bucket(0) == 0, "nothing is bucket 0");
	for (i = 1; i < COHORT_SIZE_BUCKETS; i++) {
		expect(cohort_size_bucket(1UL << (i - 1)) == i, "a power of two begins its bucket");
		if (i > 1)
			expect(cohort_size_bucket((1UL << (i - 1)) - 1) == i - 1,
			       "one less is in the bucket before");
	}
	expect(cohort_size_bucket(ULONG_MAX) == COHORT_SIZE_BUCKETS - 1, "the last is open");
}

static void shares(void)
{
	unsigned int i;

	expect(cohort_share(0, 0) == 0, "a part of nothing is nothing");
	expect(cohort_share(9, 0) == 0, "a part of nothing is nothing");
	expect(cohort_share(ULONG_MAX, ULONG_MAX) == COHORT_SHARE_ONE, "all");
	expect(cohort_share(9, 3) == COHORT_SHARE_ONE, "never more than all");
	for (i = 0; i < ROUNDS; i++) {
		unsigned long whole = next() >> (next() % 60), part = whole ? next() % whole : 0;
		double exact = whole ? (double)part / whole : 0;
		double found = (double)cohort_share(part, whole) / COHORT_SHARE_ONE;

		expect(found <= exact + 1.0 / 8192 && found >= exact - 1.0 / 8192,
		       "a share is off by more than one in 2^13");
	}
}

static unsigned int distance(unsigned int a, unsigned int b)
{
	return a > b ? a - b : b - a;
}

/* Constant input: towards one point, every step nearer, and it arrives. */
static void constant(unsigned long direct, unsigned long refaulted, unsigned int from,
		     unsigned int point)
{
	struct cohort_flow flow = { 4096, direct, refaulted };
	struct cohort_sizer s;
	unsigned int i, before;

	cohort_sizer_init(&s);
	s.gap = from;
	/* Until the smoothed share is there. */
	for (i = 0; i < 40; i++)
		cohort_sizer_step(&s, &flow);
	for (i = 0; i < 100; i++) {
		before = distance(s.gap, point);
		cohort_sizer_step(&s, &flow);
		expect(distance(s.gap, point) <= before, "a step away from the fixed point");
	}
	expect(s.gap == point, "constant input does not end in its fixed point");
}

/* Whatever comes in, processes have stock's room at least, and it stays in its bounds. */
static void any_input(void)
{
	struct cohort_sizer s;
	unsigned int i;

	cohort_sizer_init(&s);
	for (i = 0; i < ROUNDS; i++) {
		struct cohort_flow flow = { next() >> (next() % 64), next() >> (next() % 64),
					    next() >> (next() % 64) };
		unsigned int gap = s.gap, share = s.direct_share;

		cohort_sizer_step(&s, &flow);
		expect(s.gap >= COHORT_GAP_STOCK && s.gap <= COHORT_GAP_MAX, "out of bounds");
		expect(s.direct_share <= COHORT_SHARE_ONE, "a share above one");
		expect(distance(s.gap, gap) <= (COHORT_GAP_MAX - COHORT_GAP_STOCK + 1) / 2,
		       "a step of more than half the way");
		expect(s.gap >= gap || share <= COHORT_DIRECT_GOAL ||
		       s.direct_share <= COHORT_DIRECT_GOAL,
		       "room taken away from processes that reclaim by themselves");
	}
}

/*
 * The worst enemy: direct reclaim comes as soon as the gap is stock's, and goes
 * as soon as it is above. The gap swings, and never below stock's.
 */
static void adversary(void)
{
	unsigned long above = 0;
	struct cohort_sizer s;
	unsigned int i;

	cohort_sizer_init(&s);
	for (i = 0; i < 8000; i++) {
		struct cohort_flow flow = { 4096, 0, 3000 };

		if (s.gap == COHORT_GAP_STOCK)
			flow.direct = 4096;
		cohort_sizer_step(&s, &flow);
		above += s.gap > COHORT_GAP_STOCK;
	}
	expect(above >= 7000, "an enemy holds the gap down");
}

/* The last of 50 launches of phone-2g on the stock kernel, seed 1. */
static void recorded(void)
{
	static const struct cohort_flow flow[] = {
		{ 7366, 69, 0 }, { 36792, 3147, 909 }, { 4281, 142, 946 }, { 6871, 80, 1489 },
		{ 4581, 32, 692 }, { 12890, 303, 1720 }, { 21905, 8277, 1519 }, { 2973, 0, 2710 },
		{ 13530, 1640, 3300 }, { 2408, 0, 2025 }, { 12776, 3612, 3627 },
		{ 14508, 1163, 3774 }, { 4884, 0, 2078 }, { 6434, 39, 2275 }, { 5376, 32, 2801 },
		{ 16496, 2268, 4902 }, { 5838, 981, 1806 },
	};
	struct cohort_sizer s;
	unsigned int i;

	cohort_sizer_init(&s);
	for (i = 0; i < 50 * ARRAY_SIZE(flow); i++)
		cohort_sizer_step(&s, &flow[i % ARRAY_SIZE(flow)]);
	expect(s.gap > COHORT_GAP_STOCK && s.gap <= COHORT_GAP_MAX,
	       "recorded: 13 % of direct reclaim, and no more room");
}

static void targets(void)
{
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		unsigned long stock = next() >> (next() % 64), missing = next() >> (next() % 64);
		unsigned long target = cohort_run_target(stock, missing, 32);

		expect(target >= 32, "a target below a batch");
		expect(target <= stock || target == 32, "a target above stock's");
		expect(target >= missing || target >= stock, "a target too small");
	}
}

/* A zone that has one page in @part of the lists gets one in @part of what is reclaimed. */
static void shares_of_lists(void)
{
	unsigned int i;

	expect(cohort_run_missing(0, 0, 0) == 0, "nothing lacks");
	expect(cohort_run_missing(780, 0, 16000) == ~0UL, "a zone without pages gets some");
	expect(cohort_run_missing(780, 50, 1000) == 15600, "a twentieth");
	expect(cohort_run_missing(16000, 950, 1000) == 16842, "nearly all");
	expect(cohort_run_missing(5, 7, 7) == 5 && cohort_run_missing(5, 9, 7) == 5, "all");
	for (i = 0; i < ROUNDS; i++) {
		unsigned long lacks = next() >> (next() % 64);
		unsigned long lru = next() >> (next() % 64), all = next() >> (next() % 64);
		unsigned long missing = cohort_run_missing(lacks, lru, all);

		expect(missing >= lacks, "less than what lacks");
		expect(missing >= cohort_run_missing(lacks / 2, lru, all), "not monotonous");
	}
}

int main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	buckets();
	shares();
	constant(1024, 2048, COHORT_GAP_STOCK, COHORT_GAP_MAX);	/* much direct reclaim */
	constant(32, 2048, COHORT_GAP_MAX, COHORT_GAP_STOCK);	/* little, and refaults */
	constant(0, 2048, 300, COHORT_GAP_STOCK);
	constant(0, 16, 300, 300);				/* nothing comes back: stays */
	any_input();
	adversary();
	recorded();
	targets();
	shares_of_lists();
	if (broken)
		fprintf(stderr, "%u failed (seed %llu)\n", broken,
			argc > 1 ? strtoull(argv[1], NULL, 0) : 1ULL);
	printf("rightsize: %s\n", broken ? "failed" : "passed");
	return broken ? 1 : 0;
}
