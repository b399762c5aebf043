// SPDX-License-Identifier: GPL-2.0
/*
 * Property tests of mm/cohort/lib/arith.c against naive models.
 *
 * Every case runs to its end: a failed expectation is printed and counted, so
 * that one mistake shows all it breaks.  The numbers come from a seeded
 * generator, and the same seed gives the same run anywhere.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "arith.h"
#include "random.h"

#define ROUNDS		200	/* random refills, an order */
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define SHOWN		5	/* failures printed of one case */

static unsigned int broken;	/* expectations of the case that runs */

static unsigned int below(unsigned int n)
{
	return next() % n;
}

static void expect_at(int line, const char *what, long left, long right)
{
	if (left == right)
		return;
	if (broken++ < SHOWN)
		fprintf(stderr, "line %d: %s: %ld, expected %ld\n", line, what,
			left, right);
}

#define EXPECT_EQ(left, right) \
	expect_at(__LINE__, #left, (long)(left), (long)(right))
#define EXPECT(cond)	expect_at(__LINE__, #cond, !!(cond), 1)

/* The orders of sets, too: the same arithmetic has to hold for them. */
static unsigned int buckets(unsigned int order)
{
	return order <= COHORT_MAX_SET_ORDER ? COHORT_SET_BUCKETS + 1 : COHORT_BUCKETS;
}

static void bucket(unsigned int order)
{
	unsigned int nr, pages = 1U << order, last = 0;

	EXPECT_EQ(cohort_bucket(0, order), 0);
	EXPECT_EQ(cohort_bucket(1, order), 1);
	if (pages > COHORT_SET_BUCKETS)
		EXPECT_EQ(cohort_bucket(pages - 1, order), buckets(order) - 1);
	EXPECT(cohort_bucket(pages, order) > buckets(order) / 2);
	for (nr = 0; nr <= pages; nr++) {
		unsigned int b = cohort_bucket(nr, order);

		EXPECT(b < buckets(order));
		/* No bucket is left out but where there are more of them than pages. */
		EXPECT(b >= last && (b <= last + 1 || pages < COHORT_SET_BUCKETS));
		/* Taking and parking one page crosses at most one border. */
		EXPECT(nr == 0 || b >= 1);
		last = b;
	}
}

static void wanted(unsigned int order)
{
	unsigned long pages = 1UL << order, young;

	for (young = 0; young < pages; young++) {
		EXPECT(!cohort_sweep_wanted(young, young, order));
		EXPECT(!cohort_sweep_wanted(young + pages - 1, young, order));
		EXPECT(cohort_sweep_wanted(young + pages, young, order));
	}
}

/* However long an attempt took, it is tried again after a while; after a short one at once. */
static void rests(void)
{
	unsigned long took, most;

	for (most = 4; most <= 1000; most += 83)
		for (took = 0; took < 2 * most; took++) {
			unsigned long rest = cohort_rest_after(took, most);

			EXPECT(rest <= most);
			EXPECT(took > 1 || !rest);
			EXPECT(took <= 1 || rest >= cohort_rest_after(took - 1, most));
			EXPECT(took <= 1 || rest == most || rest == 4 * (took - 1));
		}
	EXPECT(cohort_rest_after(~0UL, 250) == 250);
}

/*
 * A refill of at least so many pages, as the kernel's loop does it, fits the
 * array and the smallest buffer, and exceeds the number by a part of a set.
 */
static void refill(unsigned int order)
{
	unsigned int round, pages, sets;

	for (round = 0; round < ROUNDS; round++) {
		unsigned int last = 0;

		for (pages = 0, sets = 0; pages < COHORT_REFILL_PAGES; sets++) {
			last = 1U << (COHORT_MIN_SET_ORDER + below(order));
			pages += last;
		}
		EXPECT(pages >= COHORT_REFILL_PAGES);
		EXPECT(pages - last < COHORT_REFILL_PAGES);
		EXPECT(sets <= COHORT_REFILL_SETS);
		EXPECT(pages <= COHORT_CPB_LIMIT_MIN);
	}
	EXPECT(COHORT_REFILL_PAGES + COHORT_SET_PAGES <= COHORT_CPB_LIMIT_MIN);
}

static void set_order_ok(void)
{
	long order;

	for (order = -100; order <= 100; order++) {
		EXPECT_EQ(cohort_set_order_ok(order), order >= 1 && order <= 4);
		EXPECT(!cohort_set_order_ok(order) || !cohort_order_ok(order));
	}
	EXPECT(!cohort_set_order_ok((1L << 32) + 4));
	EXPECT(!cohort_set_order_ok(INT64_MIN));
	EXPECT(!cohort_set_order_ok(INT64_MAX));
}

static void order_ok(void)
{
	long order;

	for (order = -100; order <= 100; order++)
		EXPECT_EQ(cohort_order_ok(order), order >= 5 && order <= 9);
	EXPECT(!cohort_order_ok((1L << 32) + 6));
	EXPECT(!cohort_order_ok(INT64_MIN));
	EXPECT(!cohort_order_ok(INT64_MAX));
}

static void schemes_accepted(void)
{
	static const struct {
		const char *text;
		unsigned int schemes;
	} good[] = {
		{ "off", 0 },
		{ "region", COHORT_SCHEME_REGION },
		{ "region,region", COHORT_SCHEME_REGION },
		{ "cpb", COHORT_SCHEME_CPB },
		/* That they exclude each other is for the caller to say. */
		{ "region,cpb", COHORT_SCHEME_REGION | COHORT_SCHEME_CPB },
		{ "cpb,region,cpb", COHORT_SCHEME_REGION | COHORT_SCHEME_CPB },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		unsigned int schemes = 0xdead;

		EXPECT_EQ(cohort_parse_schemes(good[i].text, &schemes), 0);
		EXPECT_EQ(schemes, good[i].schemes);
	}
}

static void schemes_rejected(void)
{
	static const char *const bad[] = {
		"", ",", "region,", ",region", "region,,region", "Region",
		"regio", "regions", " region", "region ", "region,off",
		"off,region", "off,", "on", "1", "pony", "region,pony",
		"region;region", "region=1", "cp", "cpbs", "CPB", "cpb,", "off,cpb",
		"cpbregion",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		unsigned int schemes = 0xdead;

		if (cohort_parse_schemes(bad[i], &schemes) != -EINVAL) {
			fprintf(stderr, "accepted: \"%s\"\n", bad[i]);
			broken++;
		}
		EXPECT_EQ(schemes, 0xdead);
	}
}

/* Random text over the grammar's own letters: never read past its end. */
static void schemes_random(void)
{
	static const char *const word[] = { "region", "off", ",", "regi", "cpb" };
	unsigned int round, i;

	for (round = 0; round < 20000; round++) {
		unsigned int schemes = 0, words = below(6);
		char *text = calloc(1, 64);
		size_t len;
		int ret;

		for (i = 0; i < words; i++)
			strcat(text, word[below(5)]);
		len = strlen(text);
		/* To the byte, so that ASan sees one too many. */
		text = realloc(text, len + 1);
		ret = cohort_parse_schemes(text, &schemes);
		if (!ret && schemes)
			EXPECT(!strncmp(text, "region", 6) || !strncmp(text, "cpb", 3));
		if (!ret && schemes & COHORT_SCHEME_CPB)
			EXPECT(strstr(text, "cpb"));
		EXPECT(ret == 0 || ret == -EINVAL);
		free(text);
	}
}

static void heap_orders(void)
{
	static const char *const bad[] = {
		"", "9", "9,4", "9,4,", "9,4,0,", "9,4,1", "4,9,0", "9,0,0", "9,9,0", "9:4:0",
		":,4,0", "9,4,0x", "10,4,0", "a,4,0", "0,0,0", " 9,4,0", "8,4,-",
	};
	unsigned int orders[COHORT_HEAP_ORDERS] = { 7, 7, 7 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		char *text = strdup(bad[i]);

		EXPECT_EQ(cohort_parse_heap_orders(text, orders), -EINVAL);
		EXPECT(orders[0] == 7 && orders[1] == 7 && orders[2] == 7);
		free(text);
	}
	EXPECT_EQ(cohort_parse_heap_orders("9,4,0", orders), 0);
	EXPECT(orders[0] == 9 && orders[1] == 4 && orders[2] == 0);
	EXPECT_EQ(cohort_parse_heap_orders("2,1,0", orders), 0);
	EXPECT(orders[0] == 2 && orders[1] == 1 && orders[2] == 0);
}

static enum cohort_class model_class(int adj)
{
	switch (adj) {
	case 500:
	case 800:
		return COHORT_SERVICE;
	default:
		return adj <= -700 ? COHORT_PERSISTENT :
		       adj >= 600 ? COHORT_BACKGROUND : COHORT_NORMAL;
	}
}

static void class_of(void)
{
	int adj;

	EXPECT_EQ(cohort_class_of(-1000), COHORT_PERSISTENT);
	EXPECT_EQ(cohort_class_of(-700), COHORT_PERSISTENT);
	EXPECT_EQ(cohort_class_of(-699), COHORT_NORMAL);
	EXPECT_EQ(cohort_class_of(599), COHORT_NORMAL);
	EXPECT_EQ(cohort_class_of(600), COHORT_BACKGROUND);
	EXPECT_EQ(cohort_class_of(800), COHORT_SERVICE);
	for (adj = -1001; adj <= 1001; adj++)
		EXPECT_EQ(cohort_class_of(adj), model_class(adj));
}

static unsigned int passed, failed;

static void finish(const char *name, int order)
{
	if (broken) {
		failed++;
		if (order >= 0)
			printf("FAIL %s, order %d: %u\n", name, order, broken);
		else
			printf("FAIL %s: %u\n", name, broken);
	} else {
		passed++;
	}
	broken = 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(unsigned int order);
	} by_order[] = {
		{ "bucket", bucket },
		{ "wanted", wanted },
	};
	static const struct {
		const char *name;
		void (*run)(unsigned int order);
	} by_set_order[] = {
		{ "bucket", bucket },
		{ "refill", refill },
	};
	static const struct {
		const char *name;
		void (*run)(void);
	} plain[] = {
		{ "order_ok", order_ok },
		{ "set_order_ok", set_order_ok },
		{ "schemes_accepted", schemes_accepted },
		{ "schemes_rejected", schemes_rejected },
		{ "schemes_random", schemes_random },
		{ "class_of", class_of },
		{ "heap_orders", heap_orders },
		{ "rests", rests },
	};
	unsigned int order;
	size_t i;

	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	for (i = 0; i < ARRAY_SIZE(by_order); i++) {
		for (order = COHORT_MIN_ORDER; order <= COHORT_MAX_ORDER; order++) {
			by_order[i].run(order);
			finish(by_order[i].name, order);
		}
	}
	for (i = 0; i < ARRAY_SIZE(by_set_order); i++) {
		for (order = COHORT_MIN_SET_ORDER; order <= COHORT_MAX_SET_ORDER; order++) {
			by_set_order[i].run(order);
			finish(by_set_order[i].name, order);
		}
	}
	for (i = 0; i < ARRAY_SIZE(plain); i++) {
		plain[i].run();
		finish(plain[i].name, -1);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
