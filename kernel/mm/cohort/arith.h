/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pure arithmetic of Cohort: no locks, no struct page, no memory of its own.
 * arith.c is compiled into the kernel and, by tests/host, into a user space
 * test under ASan and UBSan.
 */
#ifndef _MM_COHORT_ARITH_H
#define _MM_COHORT_ARITH_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#endif

#define COHORT_MIN_ORDER	5
#define COHORT_MAX_ORDER	8
#define COHORT_BLOCK_PAGES	(1U << COHORT_MAX_ORDER)
#define COHORT_MAP_LONGS	(COHORT_BLOCK_PAGES / (8 * sizeof(long)))

/* Orders of a set of the contiguous page buffer: a slot is one word of a map. */
#define COHORT_MIN_SET_ORDER	1
#define COHORT_MAX_SET_ORDER	4
#define COHORT_SET_PAGES	(1U << COHORT_MAX_SET_ORDER)

/* A refill of the buffer brings at least so many pages, as the paper's does. */
#define COHORT_REFILL_PAGES	31
#define COHORT_REFILL_SETS	((COHORT_REFILL_PAGES + 1) / 2)

/* A buffer has room for a refill, which may exceed its number by half a set. */
#define COHORT_CPB_LIMIT_MIN	(2 * (COHORT_REFILL_PAGES + 1))

/*
 * Bucket 0 holds full blocks, 1..COHORT_BUCKETS-1 ever emptier ones.  Sets are
 * told apart less finely: each change of bucket costs, and they are small.
 */
#define COHORT_BUCKETS		17
#define COHORT_SET_BUCKETS	4

/* Schemes of the cohort= boot parameter, as bits. */
#define COHORT_SCHEME_REGION	(1U << 0)
#define COHORT_SCHEME_CPB	(1U << 1)
#define COHORT_SCHEME_RIGHTSIZE	(1U << 2)

/**
 * enum cohort_class - what a process is, as Android's oom_score_adj says
 * @COHORT_NORMAL: an app in use or visible: a domain of its own
 * @COHORT_SERVICE: a background service: the service domain
 * @COHORT_PERSISTENT: never killed: the shared domain
 * @COHORT_BACKGROUND: a cached app: its own domain, compacted
 */
enum cohort_class {
	COHORT_NORMAL,
	COHORT_SERVICE,
	COHORT_PERSISTENT,
	COHORT_BACKGROUND,
};

/**
 * struct cohort_map - which pages of one block are parked
 * @nr: number of set bits
 * @bits: bit i is page i of the block
 *
 * nr == popcount(bits), nr <= pages in a block.
 */
struct cohort_map {
	unsigned int nr;
	unsigned long bits[COHORT_MAP_LONGS];
};

void cohort_map_fill(struct cohort_map *map, unsigned int order);
unsigned int cohort_map_lowest(const struct cohort_map *map);
unsigned int cohort_map_take(struct cohort_map *map);
void cohort_map_put(struct cohort_map *map, unsigned int bit);
bool cohort_map_test(const struct cohort_map *map, unsigned int bit);
bool cohort_map_ok(const struct cohort_map *map, unsigned int order);
void cohort_map_fill_part(struct cohort_map *map, unsigned int first,
			  unsigned int order);
bool cohort_part_has(unsigned int first, unsigned int order, unsigned int bit);

unsigned int cohort_bucket(unsigned int nr_parked, unsigned int order);
bool cohort_order_ok(long order);
bool cohort_set_order_ok(long order);
int cohort_parse_schemes(const char *text, unsigned int *schemes);
enum cohort_class cohort_class_of(int oom_score_adj);
bool cohort_may_refill(unsigned long nr_parked, unsigned long cap);
unsigned int cohort_spill(unsigned int nr_sets, unsigned long nr_parked,
			  unsigned int pages, unsigned long limit);
bool cohort_sweep_wanted(unsigned long nr_parked, unsigned int young_parked,
			 unsigned int order);
bool cohort_compact_wanted(unsigned long nr_parked, unsigned int order);

#endif /* _MM_COHORT_ARITH_H */
