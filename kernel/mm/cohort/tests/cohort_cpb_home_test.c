// SPDX-License-Identifier: GPL-2.0
/*
 * The contiguous page buffer: the ways home, from any order and context of
 * frees, and that what is held unused is bounded and given back.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/oom.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "cohort_cpb_test.h"

/* Sets merge from any order of frees, and through the buffer. */
static void cohort_cpb_test_merge_any_order(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int i, pages = 5 * cohort_pages();
	struct page *first[5];

	cohort_test_take(test, pages);
	for (i = 0; i < 5; i++)
		first[i] = ct->page[i * cohort_pages()];
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 5);
	cohort_test_free_shuffled(test);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 0);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_PTR_EQ(test, cohort_cpb_test_dom_of(first[i]),
				    cohort_cpb_test_buffer());
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_GE(test, cohort_cpb_test_buddy_order(first[i]),
				(int)cohort_order);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_buffer()->nr_blocks, 0);
}

struct cohort_cpb_test_timer {
	struct hrtimer timer;
	struct completion done;
	struct page **page;
	unsigned int nr;
	bool irq;
};

static enum hrtimer_restart cohort_cpb_test_expired(struct hrtimer *timer)
{
	struct cohort_cpb_test_timer *t =
		container_of(timer, struct cohort_cpb_test_timer, timer);
	unsigned int i;

	t->irq = in_hardirq();
	for (i = 0; i < t->nr; i++)
		__free_page(t->page[i]);
	complete(&t->done);
	return HRTIMER_NORESTART;
}

/* Frees come from interrupts: the end of an I/O, a network packet. */
static void cohort_cpb_test_free_in_interrupt(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_cpb_test_timer t = { .page = ct->page };
	struct page *first;

	cohort_test_take(test, 2 * cohort_pages());
	first = ct->page[0];
	t.nr = ct->nr;
	ct->nr = 0;
	init_completion(&t.done);
	hrtimer_init_on_stack(&t.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	t.timer.function = cohort_cpb_test_expired;
	hrtimer_start(&t.timer, ms_to_ktime(1), HRTIMER_MODE_REL_PINNED_HARD);
	wait_for_completion(&t.done);
	hrtimer_cancel(&t.timer);
	destroy_hrtimer_on_stack(&t.timer);

	KUNIT_EXPECT_TRUE(test, t.irq);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
	KUNIT_EXPECT_PTR_EQ(test, cohort_cpb_test_dom_of(first), cohort_cpb_test_buffer());
	KUNIT_EXPECT_GE(test, cohort_cpb_test_buddy_order(first), (int)cohort_order);
}

/* A process has gone, and some of its pages are still in somebody's hands. */
static void cohort_cpb_test_exit_in_flight(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int i, pages = 3 * cohort_pages();
	struct page *late[3];

	cohort_test_take(test, pages);
	for (i = 0; i < pages; i++) {
		if (i % cohort_pages() == 5)
			late[i / cohort_pages()] = ct->page[i];
		else
			cohort_test_free(test, i, 1);
	}
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 3);
	cohort_domain_destroy(ct->dom);
	ct->dom = NULL;
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_NULL(test, cohort_cpb_test_dom_of(late[i]));
		KUNIT_EXPECT_EQ(test, page_count(late[i]), 1);
		KUNIT_EXPECT_EQ(test, cohort_cpb_test_buddy_order(late[i]), -1);
	}
	cohort_test_free(test, 0, ct->nr);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_GE(test, cohort_cpb_test_buddy_order(late[i]),
				(int)cohort_order);
}

static unsigned long cohort_cpb_test_buffers(void)
{
	return cohort_parked_in(COHORT_CPB);
}

/* A buffer keeps what its limit says, however much comes home. */
static void cohort_cpb_test_limit(struct kunit *test)
{
	unsigned long limit = READ_ONCE(cohort_cpb_limit);
	struct cohort_test *ct = test->priv;
	unsigned int i, over = 0;

	WRITE_ONCE(cohort_cpb_limit, COHORT_CPB_LIMIT_MIN);
	cohort_test_take(test, 12 * cohort_pages());
	for (i = 0; i < ct->nr; i++) {
		cohort_test_free(test, i, 1);
		over += cohort_cpb_test_buffer()->nr_parked > COHORT_CPB_LIMIT_MIN;
	}
	WRITE_ONCE(cohort_cpb_limit, limit);
	KUNIT_EXPECT_EQ(test, over, 0);
	KUNIT_EXPECT_GT(test, cohort_cpb_test_buffer()->nr_parked, 0);
}

/*
 * limit * CPUs + (set - 1) * processes: processes that have begun a set and
 * freed nothing.
 */
static void cohort_cpb_test_bound_of_reservations(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_domain *mine = ct->dom, *dom[24];
	unsigned int i, nr = 0;

	for (i = 0; i < ARRAY_SIZE(dom); i++) {
		dom[i] = cohort_domain_create(COHORT_PROCESS, NUMA_NO_NODE, GFP_KERNEL);
		if (!dom[i])
			break;
		ct->dom = dom[i];
		cohort_test_take(test, 1 + i % cohort_pages());
		nr += dom[i]->nr_parked > cohort_pages() - 1;
	}
	ct->dom = mine;
	KUNIT_EXPECT_EQ(test, i, ARRAY_SIZE(dom));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_LE(test, cohort_cpb_test_buffers(),
			READ_ONCE(cohort_cpb_limit) * num_possible_cpus());
	while (i--)
		cohort_domain_destroy(dom[i]);
}

/* parked_max: holes that living processes leave. */
static void cohort_cpb_test_bound_of_holes(struct kunit *test)
{
	unsigned long cap = READ_ONCE(cohort_parked_max), parked, addr;
	unsigned int i, pages = 64 * cohort_pages();
	/* What a CPU counts for itself, and refills under way. */
	unsigned long slack = num_possible_cpus() * (125 + 2 * COHORT_REFILL_PAGES);

	addr = cohort_test_map(test, pages);
	cohort_test_touch(test, addr, pages);
	lru_add_drain_all();
	WRITE_ONCE(cohort_parked_max, cohort_test_zones() + pages / 8);
	for (i = 0; i < pages; i += 2)
		do_madvise(current->mm, addr + i * PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	parked = cohort_test_zones();
	KUNIT_EXPECT_LE(test, parked, READ_ONCE(cohort_parked_max) + slack);
	WRITE_ONCE(cohort_parked_max, cap);
	for (i = 1; i < pages; i += 2)
		cohort_test_verify(test, addr + i * PAGE_SIZE, 1);
}

/* The buffers first, then everything. */
static void cohort_cpb_test_give_back(struct kunit *test)
{
	struct cohort_test *ct = test->priv;

	cohort_cpb_test_fill(test, 2);
	cohort_test_take(test, 1);
	KUNIT_EXPECT_GT(test, cohort_cpb_test_buffers(), 0);
	KUNIT_EXPECT_GE(test, cohort_give_back(NULL, COHORT_GIVE_BACKGROUND), cohort_pages());
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_buffers(), 0);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, cohort_pages() - 1);
	KUNIT_EXPECT_GE(test, cohort_give_back(NULL, COHORT_GIVE_ALL), cohort_pages() - 1);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
}

static void cohort_cpb_test_drain(struct kunit *test)
{
	cohort_cpb_test_fill(test, 2);
	drain_all_pages(NULL);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_buffers(), 0);
}

/* Memory is short: nothing is kept, and no more taken than is used. */
static void cohort_cpb_test_low_memory(struct kunit *test)
{
	gfp_t gfp = GFP_HIGHUSER_MOVABLE & ~__GFP_KSWAPD_RECLAIM;
	struct cohort_test *ct = test->priv;
	struct alloc_context ac;
	unsigned long boost;
	struct zone *zone;
	bool refilled;

	cohort_cpb_test_context(&ac, gfp);
	zone = zonelist_zone(ac.preferred_zoneref);
	cohort_test_take(test, cohort_pages());
	cohort_drain();
	/* Threads of the kernel that ask now are refused in the end. */
	KUNIT_ASSERT_TRUE(test, oom_killer_disable(HZ));
	boost = zone->watermark_boost;
	zone->watermark_boost = zone_managed_pages(zone);
	cohort_test_free(test, 0, ct->nr);
	refilled = cohort_cpb_refill(ct->dom, gfp, 0, &ac);
	zone->watermark_boost = boost;
	oom_killer_enable();

	KUNIT_EXPECT_EQ(test, cohort_cpb_test_buffer()->nr_blocks, 0);
	if (zonelist_zone(ac.preferred_zoneref + 1))
		kunit_skip(test, "the next zone may serve");
	KUNIT_EXPECT_FALSE(test, refilled);
}

/* A CPU that is gone keeps nothing, and is given nothing by those it had run. */
static void cohort_cpb_test_cpu_dead(struct kunit *test)
{
	struct cohort_domain *buffer = cohort_cpb_test_buffer();
	unsigned int cpu = raw_smp_processor_id();
	struct cohort_test *ct = test->priv;

	cohort_cpb_test_fill(test, 3);
	KUNIT_EXPECT_EQ(test, cohort_cpb_cpu_dead(cpu), 0);
	KUNIT_EXPECT_EQ(test, buffer->nr_blocks, 0);
	cohort_test_take(test, 2 * cohort_pages());
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 2);
	cohort_test_free(test, 0, ct->nr);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
	KUNIT_EXPECT_EQ(test, buffer->nr_blocks, 0);

	KUNIT_EXPECT_EQ(test, cohort_cpb_cpu_prepare(cpu), 0);
	cohort_cpb_test_fill(test, 2);
}

/* The same for a CPU that really goes; the first one of x86 never does. */
static void cohort_cpb_test_hotplug(struct kunit *test)
{
	struct page *page = alloc_pages(GFP_HIGHUSER_MOVABLE, cohort_order);
	unsigned int cpu = cpumask_last(cpu_online_mask);
	struct cohort_domain *buffer;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, page);
	if (!cpu || !IS_ENABLED(CONFIG_HOTPLUG_CPU)) {
		__free_pages(page, cohort_order);
		kunit_skip(test, "no second CPU");
	}
	buffer = cohort_cpb_buffer(cpu);
	split_page(page, cohort_order);
	cohort_cpb_test_make_remnant(test, page, cohort_pages());
	KUNIT_EXPECT_TRUE(test, cohort_block_publish(buffer, page, cohort_order));

	set_cpus_allowed_ptr(current, cpumask_of(0));
	err = remove_cpu(cpu);
	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, buffer->nr_blocks, 0);
	if (!err)
		KUNIT_EXPECT_EQ(test, add_cpu(cpu), 0);
	KUNIT_EXPECT_GE(test, cohort_cpb_test_buddy_order(page), (int)cohort_order);
}

static struct kunit_case cohort_cpb_home_test_cases[] = {
	KUNIT_CASE(cohort_cpb_test_merge_any_order),
	KUNIT_CASE(cohort_cpb_test_free_in_interrupt),
	KUNIT_CASE(cohort_cpb_test_exit_in_flight),
	KUNIT_CASE(cohort_cpb_test_limit),
	KUNIT_CASE(cohort_cpb_test_bound_of_reservations),
	KUNIT_CASE(cohort_cpb_test_bound_of_holes),
	KUNIT_CASE(cohort_cpb_test_give_back),
	KUNIT_CASE(cohort_cpb_test_drain),
	KUNIT_CASE(cohort_cpb_test_low_memory),
	KUNIT_CASE(cohort_cpb_test_cpu_dead),
	KUNIT_CASE(cohort_cpb_test_hotplug),
	{}
};

static struct kunit_suite cohort_cpb_home_test_suite = {
	.name = "cohort_cpb_home",
	.suite_init = cohort_cpb_test_suite_init,
	.suite_exit = cohort_cpb_test_suite_exit,
	.init = cohort_cpb_test_init,
	.exit = cohort_test_exit,
	.test_cases = cohort_cpb_home_test_cases,
};
kunit_test_suite(cohort_cpb_home_test_suite);
