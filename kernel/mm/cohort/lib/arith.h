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
#define COHORT_MAX_ORDER	9
#define COHORT_DEFAULT_ORDER	8
#define COHORT_BLOCK_PAGES	(1U << COHORT_DEFAULT_ORDER)

/* Pieces of an I/O buffer come in so many sizes, as dma-buf's system heap has them. */
#define COHORT_HEAP_ORDERS	3
#define COHORT_MAX_HEAP_ORDER	9

/* Orders of a set of the CPB. */
#define COHORT_MIN_SET_ORDER	1
#define COHORT_MAX_SET_ORDER	4
#define COHORT_SET_PAGES	(1U << COHORT_MAX_SET_ORDER)

/* A CPB is refilled with at least so many pages, as in the paper. */
#define COHORT_REFILL_PAGES	31
#define COHORT_REFILL_SETS	((COHORT_REFILL_PAGES + 1) / 2)

/* A CPB has room for a refill, which may be half a set too large. */
#define COHORT_CPB_LIMIT_MIN	(2 * (COHORT_REFILL_PAGES + 1))

/*
 * Bucket 0 holds full blocks, 1..COHORT_BUCKETS-1 ever emptier ones.  Sets are
 * told apart less finely: each change of bucket costs, and they are small.
 */
#define COHORT_BUCKETS		17
#define COHORT_SET_BUCKETS	4

/* An attempt that took longer than a tick rests for so many times what it took. */
#define COHORT_REST_TIMES	4

/* Schemes of the cohort= boot parameter, as bits. */
#define COHORT_SCHEME_REGION	(1U << 0)
#define COHORT_SCHEME_CPB	(1U << 1)
#define COHORT_SCHEME_RIGHTSIZE	(1U << 2)

/**
 * enum cohort_class - what a process is, as Android's oom_score_adj says
 * @COHORT_NORMAL: an app in use or visible: a domain of its own
 * @COHORT_SERVICE: a service: the service domain
 * @COHORT_PERSISTENT: never killed: the shared domain
 * @COHORT_BACKGROUND: a cached app: its own domain, compacted
 */
enum cohort_class {
	COHORT_NORMAL,
	COHORT_SERVICE,
	COHORT_PERSISTENT,
	COHORT_BACKGROUND,
};

unsigned int cohort_bucket(unsigned int nr_parked, unsigned int order);
bool cohort_order_ok(long order);
bool cohort_set_order_ok(long order);
int cohort_parse_heap_orders(const char *text, unsigned int orders[COHORT_HEAP_ORDERS]);
int cohort_parse_schemes(const char *text, unsigned int *schemes);
enum cohort_class cohort_class_of(int oom_score_adj);
bool cohort_sweep_wanted(unsigned long nr_parked, unsigned int young_parked,
			 unsigned int order);
unsigned long cohort_rest_after(unsigned long took, unsigned long most);

#endif /* _MM_COHORT_ARITH_H */
