// SPDX-License-Identifier: GPL-2.0
/*
 * What the suites of the contiguous page buffer share; see cohort_cpb_test.h.
 */
#include <linux/mm.h>

#include "cohort_cpb_test.h"

/* What was on before the suite that runs now. */
static bool cohort_cpb_test_region_was_on;
static bool cohort_cpb_test_was_on;

int cohort_cpb_test_suite_init(struct kunit_suite *suite)
{
	cohort_cpb_test_region_was_on = static_key_enabled(&cohort_region_key);
	cohort_cpb_test_was_on = static_key_enabled(&cohort_cpb_key);
	return cohort_region_switch(false) ?: cohort_cpb_switch(true);
}

void cohort_cpb_test_suite_exit(struct kunit_suite *suite)
{
	cohort_cpb_switch(cohort_cpb_test_was_on);
	cohort_region_switch(cohort_cpb_test_region_was_on);
}

/* Cases look at the buffer of the CPU they run on, and stay there. */
int cohort_cpb_test_init(struct kunit *test)
{
	int err = cohort_test_init(test);

	cohort_drain();
	return err ?: set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
}

struct cohort_domain *cohort_cpb_test_buffer(void)
{
	return cohort_cpb_buffer(raw_smp_processor_id());
}

/* Something complete in the buffer of this CPU, and nothing in the domain. */
void cohort_cpb_test_fill(struct kunit *test, unsigned int sets)
{
	struct cohort_test *ct = test->priv;
	unsigned int first = cohort_test_take(test, sets * cohort_pages());

	cohort_test_free(test, first, sets * cohort_pages());
	KUNIT_ASSERT_EQ(test, ct->dom->nr_blocks, 0);
	KUNIT_ASSERT_GE(test, cohort_cpb_test_buffer()->nr_blocks, sets);
}

struct cohort_domain *cohort_cpb_test_dom_of(struct page *page)
{
	return cohort_test_block(page)->dom;
}

/* Order of the free block of the buddy allocator that has this page, or -1. */
int cohort_cpb_test_buddy_order(struct page *page)
{
	unsigned long pfn = page_to_pfn(page);
	int order;

	drain_all_pages(NULL);
	for (order = 0; order < NR_PAGE_ORDERS; order++) {
		struct page *head = pfn_to_page(round_down(pfn, 1UL << order));

		if (PageBuddy(head) && buddy_order(head) >= order)
			return buddy_order(head);
	}
	return -1;
}

void cohort_cpb_test_context(struct alloc_context *ac, gfp_t gfp)
{
	*ac = (struct alloc_context){ };
	ac->zonelist = node_zonelist(numa_mem_id(), gfp);
	ac->highest_zoneidx = gfp_zone(gfp);
	ac->migratetype = gfp_migratetype(gfp);
	ac->preferred_zoneref = first_zones_zonelist(ac->zonelist,
						     ac->highest_zoneidx, NULL);
}

void cohort_cpb_test_make_remnant(struct kunit *test, struct page *page,
				  unsigned int pages)
{
	for (; pages--; page++) {
		KUNIT_ASSERT_TRUE(test, put_page_testzero(page));
		KUNIT_ASSERT_TRUE(test, free_pages_prepare(page, 0));
	}
}
