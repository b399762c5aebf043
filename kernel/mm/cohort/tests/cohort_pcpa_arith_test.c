// SPDX-License-Identifier: GPL-2.0
/*
 * The arithmetic of the page-cache-preferred area.
 */
#include <kunit/test.h>
#include <linux/bits.h>

#include "../lib/arith_pcpa.h"

static void cohort_pcpa_arith_test_state(struct kunit *test)
{
	struct cohort_pcpa_fsm fsm = { COHORT_PCACHE_ONLY, false };

	cohort_pcpa_granted(&fsm);
	KUNIT_EXPECT_FALSE_MSG(test, fsm.used, "used in pcache_only");
	KUNIT_EXPECT_TRUE_MSG(test, cohort_pcpa_request(&fsm), "the first sets the timer");
	KUNIT_EXPECT_EQ(test, fsm.state, COHORT_ANON_ALLOC);
	KUNIT_EXPECT_FALSE_MSG(test, cohort_pcpa_request(&fsm), "others do not");
	cohort_pcpa_granted(&fsm);
	KUNIT_EXPECT_TRUE_MSG(test, cohort_pcpa_timeout(&fsm), "used: one more turn");
	KUNIT_EXPECT_EQ(test, fsm.state, COHORT_ANON_ALLOC);
	KUNIT_EXPECT_FALSE_MSG(test, cohort_pcpa_timeout(&fsm), "not used since");
	KUNIT_EXPECT_EQ(test, fsm.state, COHORT_PCACHE_ONLY);
	cohort_pcpa_request(&fsm);
	KUNIT_EXPECT_FALSE_MSG(test, cohort_pcpa_timeout(&fsm), "asked, and nothing granted");
}

static void cohort_pcpa_arith_test_join(struct kunit *test)
{
	struct cohort_walk walk = { 0, 5 };
	unsigned long c, seen = 0;
	bool down = false;

	while (cohort_walk_next(&walk, down, &c)) {
		KUNIT_EXPECT_FALSE(test, seen & BIT(c));
		seen |= BIT(c);
		down = !down;
	}
	KUNIT_EXPECT_EQ(test, seen, 0x1fUL);
	KUNIT_EXPECT_FALSE(test, cohort_walk_next(&walk, !down, &c));
}

static struct kunit_case cohort_pcpa_arith_test_cases[] = {
	KUNIT_CASE(cohort_pcpa_arith_test_state),
	KUNIT_CASE(cohort_pcpa_arith_test_join),
	{}
};

static struct kunit_suite cohort_pcpa_arith_test_suite = {
	.name = "cohort_pcpa_arith",
	.test_cases = cohort_pcpa_arith_test_cases,
};
kunit_test_suite(cohort_pcpa_arith_test_suite);
