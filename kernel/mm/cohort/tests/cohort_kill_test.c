// SPDX-License-Identifier: GPL-2.0
/*
 * What comes before a process is killed for a request: lists of CPUs are emptied, others are
 * waited for that pack blocks, and there is one more look.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/oom.h>

#include "cohort_test.h"

/* A trickle from the lists of CPUs puts a kill off once, and not for each page that comes free. */
static void cohort_kill_test_put_off(struct kunit *test)
{
	const gfp_t gfp = GFP_KERNEL & ~__GFP_IO;	/* for which nothing is packed */
	unsigned long late = jiffies + 2 * HZ;	/* on a busy host */
	struct alloc_context ac;
	bool first, again;

	cohort_test_context(&ac, gfp);
	msleep(1100);
	mutex_lock(&oom_lock);
	first = __cohort_drain_for(&ac, gfp);
	again = __cohort_drain_for(&ac, gfp);
	mutex_unlock(&oom_lock);
	KUNIT_EXPECT_TRUE(test, first);
	KUNIT_EXPECT_FALSE(test, again && time_before(jiffies, late));
}

/* While a task packs before a kill others wait for it, and not for ever. */
static void cohort_kill_test_waits(struct kunit *test)
{
	struct alloc_context ac;
	bool waits, waits_on;
	int nid;

	cohort_test_context(&ac, GFP_KERNEL);
	nid = zonelist_node_idx(ac.preferred_zoneref);
	KUNIT_ASSERT_FALSE(test, test_and_set_bit_lock(nid, cohort_packs_busy));
	cohort_test_boost(true);
	WRITE_ONCE(cohort_packs[nid].until, jiffies + 100 * HZ);
	waits = __cohort_packs_for(&ac, GFP_KERNEL, 2);
	WRITE_ONCE(cohort_packs[nid].until, jiffies - 1);
	waits_on = __cohort_packs_for(&ac, GFP_KERNEL, 2);
	clear_bit_unlock(nid, cohort_packs_busy);
	/* Another one that packs in vain is waited for no longer. */
	__cohort_packs_for(&ac, GFP_KERNEL, 2);
	cohort_test_boost(false);
	KUNIT_EXPECT_TRUE(test, time_before_eq(READ_ONCE(cohort_packs[nid].until), jiffies));
	KUNIT_EXPECT_TRUE(test, waits);
	KUNIT_EXPECT_FALSE(test, waits_on);
}

/* All that may have a block which came home lately look for it before a process is killed. */
static void cohort_kill_test_came_home(struct kunit *test)
{
	const gfp_t gfp = GFP_KERNEL & ~__GFP_IO;	/* for which nothing is packed */
	struct alloc_context ac;
	struct cohort_packs *packs;
	bool looks;

	cohort_test_context(&ac, gfp);
	packs = &cohort_packs[zonelist_node_idx(ac.preferred_zoneref)];
	mutex_lock(&oom_lock);
	/* What the lists of CPUs bring is a reason once in a while. */
	__cohort_drain_for(&ac, gfp);
	WRITE_ONCE(packs->home, jiffies);
	looks = __cohort_drain_for(&ac, gfp);
	mutex_unlock(&oom_lock);
	KUNIT_EXPECT_TRUE(test, looks);
}

static struct kunit_case cohort_kill_test_cases[] = {
	KUNIT_CASE_SLOW(cohort_kill_test_put_off),
	KUNIT_CASE(cohort_kill_test_waits),
	KUNIT_CASE(cohort_kill_test_came_home),
	{}
};

static struct kunit_suite cohort_kill_test_suite = {
	.name = "cohort_kill",
	.suite_init = cohort_test_suite_init,
	.suite_exit = cohort_test_suite_exit,
	.init = cohort_test_init,
	.exit = cohort_test_exit,
	.test_cases = cohort_kill_test_cases,
};
kunit_test_suite(cohort_kill_test_suite);
