// SPDX-License-Identifier: GPL-2.0
/*
 * Property tests of mm/cohort/arith.c against naive models.
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

#define ROUNDS		200	/* random histories of one block, an order */
#define STEPS		2000	/* operations in one history */
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

/* The model of a map: one flag a page, counted anew each time. */
struct model {
	bool parked[COHORT_BLOCK_PAGES];
};

static unsigned int model_nr(const struct model *model)
{
	unsigned int i, nr = 0;

	for (i = 0; i < COHORT_BLOCK_PAGES; i++)
		nr += model->parked[i];
	return nr;
}

static unsigned int model_lowest(const struct model *model)
{
	unsigned int i;

	for (i = 0; i < COHORT_BLOCK_PAGES && !model->parked[i]; i++)
		;
	return i;
}

static void model_fill(struct model *model, unsigned int order)
{
	unsigned int i;

	for (i = 0; i < COHORT_BLOCK_PAGES; i++)
		model->parked[i] = i < 1U << order;
}

static void compare(const struct cohort_map *map, const struct model *model,
		    unsigned int order)
{
	unsigned int i;

	EXPECT_EQ(map->nr, model_nr(model));
	EXPECT(cohort_map_ok(map, order));
	for (i = 0; i < COHORT_BLOCK_PAGES; i++)
		EXPECT_EQ(cohort_map_test(map, i), model->parked[i]);
}

static void map_fill(unsigned int order)
{
	struct cohort_map map;
	struct model model;

	/* Whatever was there before. */
	memset(&map, 0xa5, sizeof(map));
	model_fill(&model, order);
	cohort_map_fill(&map, order);
	EXPECT_EQ(map.nr, 1U << order);
	compare(&map, &model, order);
}

static void map_take_in_order(unsigned int order)
{
	struct cohort_map map;
	unsigned int i;

	cohort_map_fill(&map, order);
	for (i = 0; i < 1U << order; i++)
		EXPECT_EQ(cohort_map_take(&map), i);
	EXPECT_EQ(map.nr, 0);
	EXPECT_EQ(cohort_map_take(&map), COHORT_BLOCK_PAGES);
	EXPECT_EQ(map.nr, 0);
}

/* A block taken whole comes back whole, in whatever order it is freed. */
static void map_put_in_any_order(unsigned int order)
{
	unsigned int page[COHORT_BLOCK_PAGES], i, round, pages = 1U << order;
	struct cohort_map map = { 0 };

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < pages; i++)
			page[i] = i;
		for (i = pages - 1; i; i--) {
			unsigned int k = below(i + 1), swap = page[i];

			page[i] = page[k];
			page[k] = swap;
		}
		for (i = 0; i < pages; i++) {
			EXPECT(!cohort_map_test(&map, page[i]));
			cohort_map_put(&map, page[i]);
			EXPECT_EQ(map.nr, i + 1);
		}
		EXPECT(cohort_map_ok(&map, order));
		while (map.nr)
			cohort_map_take(&map);
	}
}

/* Any history of takes and puts, with phases that fill and that empty. */
static void map_history(unsigned int order)
{
	unsigned int step, round, pages = 1U << order;
	struct cohort_map map;
	struct model model;

	for (round = 0; round < ROUNDS / 10; round++) {
		cohort_map_fill(&map, order);
		model_fill(&model, order);
		for (step = 0; step < STEPS; step++) {
			unsigned int page = below(pages);

			if (below(100) < (step / 500 % 2 ? 30 : 70)) {
				unsigned int lowest = model_lowest(&model);

				EXPECT_EQ(cohort_map_lowest(&map), lowest);
				EXPECT_EQ(cohort_map_take(&map), lowest);
				if (lowest < COHORT_BLOCK_PAGES)
					model.parked[lowest] = false;
			} else if (!model.parked[page]) {
				cohort_map_put(&map, page);
				model.parked[page] = true;
			}
			if (!below(50))
				compare(&map, &model, order);
		}
		compare(&map, &model, order);
	}
}

/* The check finds a wrong sum, and a page beyond the block's end. */
static void map_ok_finds_damage(unsigned int order)
{
	unsigned int pages = 1U << order;
	struct cohort_map map;

	cohort_map_fill(&map, order);
	map.nr--;
	EXPECT(!cohort_map_ok(&map, order));

	cohort_map_fill(&map, order);
	map.bits[0] &= ~(1UL << below(32));
	EXPECT(!cohort_map_ok(&map, order));

	if (order == COHORT_MAX_ORDER)
		return;
	cohort_map_fill(&map, order);
	cohort_map_put(&map, pages + below(COHORT_BLOCK_PAGES - pages));
	EXPECT(!cohort_map_ok(&map, order));
}

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

	EXPECT(!cohort_compact_wanted(0, order));
	EXPECT(!cohort_compact_wanted(pages - 1, order));
	EXPECT(cohort_compact_wanted(pages, order));
	EXPECT(cohort_compact_wanted(pages + 1, order));
	for (young = 0; young < pages; young++) {
		EXPECT(!cohort_sweep_wanted(young, young, order));
		EXPECT(!cohort_sweep_wanted(young + pages - 1, young, order));
		EXPECT(cohort_sweep_wanted(young + pages, young, order));
	}
}

/* A set may be a part of its slot: it has those pages and no other. */
static void part(unsigned int order)
{
	unsigned int small, first, bit, pages = 1U << order;
	struct cohort_map map;

	for (small = 0; small <= order; small++) {
		for (first = 0; first < pages; first += 1U << small) {
			/* Whatever was there before. */
			memset(&map, 0xa5, sizeof(map));
			cohort_map_fill_part(&map, first, small);
			EXPECT_EQ(map.nr, 1U << small);
			EXPECT(cohort_map_ok(&map, order));
			for (bit = 0; bit < pages; bit++) {
				bool inside = bit >= first && bit < first + (1U << small);

				EXPECT_EQ(cohort_part_has(first, small, bit), inside);
				EXPECT_EQ(cohort_map_test(&map, bit), inside);
			}
		}
	}
	/* The whole is a part, and the one the other function fills. */
	cohort_map_fill_part(&map, 0, order);
	for (bit = 0; bit < pages; bit++)
		EXPECT_EQ(cohort_map_take(&map), bit);
	EXPECT_EQ(map.nr, 0);
}

/* Parts of a slot that are freed page by page become complete, each for itself. */
static void part_history(unsigned int order)
{
	unsigned int step, small = below(order + 1), size = 1U << small;
	unsigned int first = below(1U << (order - small)) << small;
	struct cohort_map map;

	cohort_map_fill_part(&map, first, small);
	for (step = 0; step < STEPS; step++) {
		unsigned int bit = first + below(size);

		if (below(2)) {
			unsigned int nr = map.nr, got = cohort_map_take(&map);

			EXPECT_EQ(got == COHORT_BLOCK_PAGES, nr == 0);
			if (nr)
				EXPECT(cohort_part_has(first, small, got));
		} else if (!cohort_map_test(&map, bit)) {
			cohort_map_put(&map, bit);
		}
		EXPECT(map.nr <= size);
		EXPECT(cohort_map_ok(&map, order));
	}
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

/* Spilling makes room, ends, and never asks for more sets than there are. */
static void spill(unsigned int order)
{
	unsigned int round, pages = 1U << order;

	for (round = 0; round < ROUNDS * 10; round++) {
		unsigned long limit = COHORT_CPB_LIMIT_MIN + below(4096);
		unsigned int sets = below(400), nr, turns = 0;
		unsigned long parked = (unsigned long)sets * pages;

		EXPECT_EQ(cohort_spill(sets, parked, pages, parked + pages), 0);
		EXPECT_EQ(cohort_spill(0, 0, pages, limit), 0);
		while ((nr = cohort_spill(sets, parked, pages, limit))) {
			EXPECT(nr <= sets);
			EXPECT(parked + pages > limit);
			sets -= nr;
			parked = (unsigned long)sets * pages;
			if (turns++ > 10)
				break;
		}
		EXPECT(turns <= 10);
		EXPECT(parked + pages <= limit);
	}
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
		EXPECT_EQ(cohort_order_ok(order), order >= 5 && order <= 8);
	EXPECT(!cohort_order_ok((1L << 32) + 6));
	EXPECT(!cohort_order_ok(INT64_MIN));
	EXPECT(!cohort_order_ok(INT64_MAX));
}

static void may_refill(void)
{
	unsigned long cap = 1 + below(100000);

	EXPECT(!cohort_may_refill(0, 0));
	EXPECT(cohort_may_refill(0, cap));
	EXPECT(cohort_may_refill(cap - 1, cap));
	EXPECT(!cohort_may_refill(cap, cap));
	EXPECT(!cohort_may_refill(~0UL, cap));
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
		{ "map_fill", map_fill },
		{ "map_take_in_order", map_take_in_order },
		{ "map_put_in_any_order", map_put_in_any_order },
		{ "map_history", map_history },
		{ "map_ok_finds_damage", map_ok_finds_damage },
		{ "bucket", bucket },
		{ "wanted", wanted },
	};
	static const struct {
		const char *name;
		void (*run)(unsigned int order);
	} by_set_order[] = {
		{ "map_fill", map_fill },
		{ "map_take_in_order", map_take_in_order },
		{ "map_put_in_any_order", map_put_in_any_order },
		{ "map_history", map_history },
		{ "bucket", bucket },
		{ "part", part },
		{ "part_history", part_history },
		{ "refill", refill },
		{ "spill", spill },
	};
	static const struct {
		const char *name;
		void (*run)(void);
	} plain[] = {
		{ "order_ok", order_ok },
		{ "set_order_ok", set_order_ok },
		{ "may_refill", may_refill },
		{ "schemes_accepted", schemes_accepted },
		{ "schemes_rejected", schemes_rejected },
		{ "schemes_random", schemes_random },
		{ "class_of", class_of },
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
