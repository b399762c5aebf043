// SPDX-License-Identifier: GPL-2.0
/*
 * The common part of the suites of the CPB; see cohort_cpb_test.h.
 */
#include <linux/mm.h>

#include "cohort_cpb_test.h"

/* The schemes that were on before the suite that runs now. */
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

/* Cases look at the CPB of the CPU they run on, and stay there. */
int cohort_cpb_test_init(struct kunit *test)
{
	int err = cohort_test_init(test);

	drain_all_pages(NULL);
	return err;
}

unsigned long cohort_cpb_test_sets(void)
{
	unsigned long sets, pages;

	cohort_cpb_stats(&sets, &pages);
	return sets;
}

unsigned long cohort_cpb_test_pages(void)
{
	unsigned long sets, pages;

	cohort_cpb_stats(&sets, &pages);
	return pages;
}

/* A refill brings more than a set. */
void cohort_cpb_test_fill(struct kunit *test)
{
	cohort_test_take(test, 1);
	KUNIT_ASSERT_GE(test, cohort_cpb_test_sets(), 1);
}
