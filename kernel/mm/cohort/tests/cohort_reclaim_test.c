// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes of reclaim: what the histograms say is what the tracepoints said.
 */
#include <kunit/test.h>
#include <linux/gfp.h>
#include <linux/shrinker.h>
#include <linux/swap.h>
#include <trace/events/kmem.h>
#include <trace/events/vmscan.h>

#include "../cohort.h"
#include "../rightsize/rightsize.h"

struct cohort_reclaim_test {
	unsigned long count[COHORT_SIZE_BUCKETS];
	unsigned long sum;
};

static int cohort_reclaim_test_init(struct kunit *test)
{
	return cohort_reclaim_measure(true);
}

static void cohort_reclaim_test_exit(struct kunit *test)
{
	cohort_reclaim_measure(false);
}

static struct cohort_reclaim_test *cohort_reclaim_test_read(struct kunit *test,
							    enum cohort_size kind)
{
	struct cohort_reclaim_test *now = kunit_kzalloc(test, sizeof(*now), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, now);
	now->sum = cohort_reclaim_sizes(kind, now->count);
	return now;
}

/* The probes hang on the tracepoints themselves, so this is what they see. */
static void cohort_reclaim_test_direct(struct kunit *test)
{
	struct cohort_reclaim_test *before, *after;

	before = cohort_reclaim_test_read(test, COHORT_SIZE_DIRECT);
	trace_mm_vmscan_direct_reclaim_end(0);
	trace_mm_vmscan_direct_reclaim_end(37);
	trace_mm_vmscan_direct_reclaim_end(63);
	trace_mm_vmscan_direct_reclaim_end(1UL << 40);
	after = cohort_reclaim_test_read(test, COHORT_SIZE_DIRECT);
	KUNIT_EXPECT_GE(test, after->count[0], before->count[0] + 1);
	KUNIT_EXPECT_GE(test, after->count[6], before->count[6] + 2);
	KUNIT_EXPECT_GE(test, after->count[COHORT_SIZE_BUCKETS - 1],
			before->count[COHORT_SIZE_BUCKETS - 1] + 1);
	KUNIT_EXPECT_GE(test, after->sum, before->sum + 37 + 63 + (1UL << 40));
}

static void cohort_reclaim_test_node(struct kunit *test)
{
	struct cohort_reclaim_test *before, *after;

	before = cohort_reclaim_test_read(test, COHORT_SIZE_NODE);
	trace_mm_vmscan_node_reclaim_end(8);
	after = cohort_reclaim_test_read(test, COHORT_SIZE_NODE);
	KUNIT_EXPECT_GE(test, after->count[4], before->count[4] + 1);
}

/* We are not kswapd. */
static void cohort_reclaim_test_slab(struct kunit *test)
{
	static struct shrinker shrinker;
	struct cohort_reclaim_test *before, *after;

	before = cohort_reclaim_test_read(test, COHORT_SIZE_SLAB_OTHER);
	trace_mm_shrink_slab_end(&shrinker, 0, 5, 0, 0, 0);
	trace_mm_shrink_slab_end(&shrinker, 0, -1, 0, 0, 0);
	after = cohort_reclaim_test_read(test, COHORT_SIZE_SLAB_OTHER);
	KUNIT_EXPECT_GE(test, after->count[3], before->count[3] + 1);
	KUNIT_EXPECT_GE(test, after->count[0], before->count[0] + 1);
}

static void cohort_reclaim_test_orders(struct kunit *test)
{
	unsigned long before[NR_PAGE_ORDERS], after[NR_PAGE_ORDERS];
	struct page *page;

	cohort_reclaim_orders(before);
	page = alloc_pages(GFP_KERNEL, 3);
	KUNIT_ASSERT_NOT_NULL(test, page);
	__free_pages(page, 3);
	cohort_reclaim_orders(after);
	KUNIT_EXPECT_GE(test, after[3], before[3] + 1);
}

/* Measuring again begins at zero; off, nothing is counted. */
static void cohort_reclaim_test_reset(struct kunit *test)
{
	struct cohort_reclaim_test *now;

	trace_mm_vmscan_node_reclaim_end(1UL << 30);
	KUNIT_ASSERT_EQ(test, cohort_reclaim_measure(false), 0);
	now = cohort_reclaim_test_read(test, COHORT_SIZE_NODE);
	KUNIT_EXPECT_GE(test, now->sum, 1UL << 30);
	trace_mm_vmscan_node_reclaim_end(1UL << 30);
	now = cohort_reclaim_test_read(test, COHORT_SIZE_NODE);
	KUNIT_EXPECT_LT(test, now->sum, 1UL << 31);
	/* Right-sized reclaim hears of kswapd meanwhile. */
	__cohort_kswapd_ran(first_online_node, 1UL << 30);
	now = cohort_reclaim_test_read(test, COHORT_SIZE_KSWAPD);
	KUNIT_EXPECT_LT(test, now->sum, 1UL << 30);
	KUNIT_ASSERT_EQ(test, cohort_reclaim_measure(true), 0);
	now = cohort_reclaim_test_read(test, COHORT_SIZE_NODE);
	KUNIT_EXPECT_LT(test, now->sum, 1UL << 30);
}

static struct kunit_case cohort_reclaim_test_cases[] = {
	KUNIT_CASE(cohort_reclaim_test_direct),
	KUNIT_CASE(cohort_reclaim_test_node),
	KUNIT_CASE(cohort_reclaim_test_slab),
	KUNIT_CASE(cohort_reclaim_test_orders),
	KUNIT_CASE(cohort_reclaim_test_reset),
	{}
};

static struct kunit_suite cohort_reclaim_test_suite = {
	.name = "cohort_reclaim",
	.init = cohort_reclaim_test_init,
	.exit = cohort_reclaim_test_exit,
	.test_cases = cohort_reclaim_test_cases,
};

kunit_test_suite(cohort_reclaim_test_suite);
