// SPDX-License-Identifier: GPL-2.0
/*
 * The contiguous page buffer (CPB): the ways home, from any order and context of
 * frees, and that what is held unused is bounded.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/oom.h>
#include <linux/page-isolation.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "cohort_cpb_test.h"

/* Sets merge from any order of frees. */
static void cohort_cpb_test_merge_any_order(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int i, pages = 5 * cohort_pages();
	struct page *first[5];

	cohort_test_take(test, pages);
	for (i = 0; i < 5; i++)
		first[i] = ct->page[i * cohort_pages()];
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 5);
	cohort_test_free_shuffled(test);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), 0);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_NULL(test, cohort_test_owner(first[i]));
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_GE(test, cohort_test_buddy_order(first[i]),
				(int)cohort_block_order());
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_sets(), 0);
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
	cohort_domain_drain(ct->dom);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
	KUNIT_EXPECT_NULL(test, cohort_test_owner(first));
	KUNIT_EXPECT_GE(test, cohort_test_buddy_order(first), (int)cohort_block_order());
}

struct cohort_cpb_test_holder {
	struct cohort_magazine *mag;
	struct hrtimer timer;
	struct completion done;
	bool held;
	bool fired;
	bool seen;
};

static enum hrtimer_restart cohort_cpb_test_fires(struct hrtimer *timer)
{
	struct cohort_cpb_test_holder *h =
		container_of(timer, struct cohort_cpb_test_holder, timer);

	WRITE_ONCE(h->fired, true);
	return HRTIMER_NORESTART;
}

/* A magazine's lock is held until the other CPU has its interrupt, or seconds are over. */
static int cohort_cpb_test_holds(void *arg)
{
	struct cohort_cpb_test_holder *h = arg;
	unsigned int i;

	spin_lock(&h->mag->lock);
	WRITE_ONCE(h->held, true);
	for (i = 0; i < 5000 && !READ_ONCE(h->fired); i++)
		mdelay(1);
	h->seen = READ_ONCE(h->fired);
	spin_unlock(&h->mag->lock);
	complete(&h->done);
	return 0;
}

/* What drains a magazine takes interrupts while it waits for the lock. */
static void cohort_cpb_test_drain_waits(struct kunit *test)
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	struct cohort_cpb_test_holder h = { };
	struct cohort_test *ct = test->priv;
	struct task_struct *thread;
	struct zone *zone;

	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "no second CPU");
	cohort_test_take(test, 1);
	zone = page_zone(ct->page[0]);
	h.mag = per_cpu_ptr(zone->cohort->magazine, cpu);
	init_completion(&h.done);
	thread = kthread_create(cohort_cpb_test_holds, &h, "cohort_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	hrtimer_init_on_stack(&h.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	h.timer.function = cohort_cpb_test_fires;
	kthread_bind(thread, cpu);
	wake_up_process(thread);
	while (!READ_ONCE(h.held))
		msleep(20);
	hrtimer_start(&h.timer, ms_to_ktime(10), HRTIMER_MODE_REL_PINNED_HARD);
	cohort_magazine_drain(zone, cpu, 0);
	wait_for_completion(&h.done);
	hrtimer_cancel(&h.timer);
	destroy_hrtimer_on_stack(&h.timer);
	KUNIT_EXPECT_TRUE(test, h.seen);
}

/* A process has gone, and some of its pages are still in use. */
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
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 3);
	cohort_domain_destroy(ct->dom);
	ct->dom = NULL;
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_NULL(test, cohort_test_owner(late[i]));
		KUNIT_EXPECT_EQ(test, page_count(late[i]), 1);
		KUNIT_EXPECT_EQ(test, cohort_test_buddy_order(late[i]), -1);
	}
	cohort_test_free(test, 0, ct->nr);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_GE(test, cohort_test_buddy_order(late[i]),
				(int)cohort_block_order());
}

/* A CPB keeps what its limit says, however often it is refilled. */
static void cohort_cpb_test_limit(struct kunit *test)
{
	unsigned long limit = READ_ONCE(cohort_cpb_limit);
	unsigned int i, over = 0, some = 0;

	WRITE_ONCE(cohort_cpb_limit, COHORT_CPB_LIMIT_MIN);
	for (i = 0; i < 12 * cohort_pages(); i++) {
		cohort_test_take(test, 1);
		over += cohort_cpb_test_pages() > COHORT_CPB_LIMIT_MIN;
		some += cohort_cpb_test_pages() > 0;
	}
	WRITE_ONCE(cohort_cpb_limit, limit);
	KUNIT_EXPECT_EQ(test, over, 0);
	KUNIT_EXPECT_GT(test, some, 0);
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
		dom[i] = cohort_domain_create(COHORT_PROCESS, GFP_KERNEL);
		if (!dom[i])
			break;
		ct->dom = dom[i];
		cohort_test_take(test, 1 + i % cohort_pages());
		nr += cohort_domain_free(dom[i]) > cohort_pages() - 1;
	}
	ct->dom = mine;
	KUNIT_EXPECT_EQ(test, i, ARRAY_SIZE(dom));
	KUNIT_EXPECT_EQ(test, nr, 0);
	KUNIT_EXPECT_LE(test, cohort_cpb_test_pages(),
			READ_ONCE(cohort_cpb_limit) * num_possible_cpus());
	while (i--)
		cohort_domain_destroy(dom[i]);
}

/* CPBs go with the per-CPU lists; reservations are free for all. */
static void cohort_cpb_test_drain(struct kunit *test)
{
	struct cohort_test *ct = test->priv;

	cohort_cpb_test_fill(test);
	drain_all_pages(NULL);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_sets(), 0);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_pages(), 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), cohort_pages() - 1);
	cohort_test_recount(test, page_zone(ct->page[0]), 0);
}

/* A set out of a pageblock whose other pages are free. */
static void cohort_cpb_test_set(struct kunit *test, struct zone *zone, struct cohort_set *set)
{
	unsigned int order = pageblock_order;
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	set->page = cohort_buddy_rmqueue(zone, order, MIGRATE_MOVABLE, 0);
	spin_unlock_irqrestore(&zone->lock, flags);
	KUNIT_ASSERT_NOT_NULL(test, set->page);
	set->order = cohort_block_order();
	while (order-- > set->order)
		cohort_buddy_give(set->page + (1UL << order), order);
}

/* A set whose pageblock is isolated while it is on its way goes there, and is no CPB's. */
static void cohort_cpb_test_keep_isolated(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned long first, end;
	struct cohort_set set;
	struct zone *zone;

	cohort_test_take(test, 1);
	zone = page_zone(ct->page[0]);
	drain_all_pages(zone);
	cohort_cpb_test_set(test, zone, &set);
	cohort_cpb_keep(zone, &set, 1);
	KUNIT_EXPECT_EQ_MSG(test, cohort_cpb_test_pages(), cohort_pages(), "it has room for one");
	drain_all_pages(zone);

	cohort_cpb_test_set(test, zone, &set);
	first = round_down(page_to_pfn(set.page), pageblock_nr_pages);
	end = first + pageblock_nr_pages;
	KUNIT_EXPECT_EQ(test, start_isolate_page_range(first, end, MIGRATE_MOVABLE, 0,
						       GFP_KERNEL), 0);
	cohort_cpb_keep(zone, &set, 1);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_pages(), 0);
	KUNIT_EXPECT_GE(test, cohort_test_buddy_order(set.page), (int)set.order);
	undo_isolate_page_range(first, end, MIGRATE_MOVABLE);
}

static void cohort_cpb_test_boost(unsigned long pages[MAX_NR_ZONES])
{
	struct zone *zone;

	/* The zones of one node; the case is skipped where there are more. */
	for_each_populated_zone(zone)
		swap(zone->watermark_boost, pages[zone_idx(zone)]);
}

/* Memory is short: nothing is kept, and no more taken than is used. */
static void cohort_cpb_test_low_memory(struct kunit *test)
{
	gfp_t gfp = GFP_HIGHUSER_MOVABLE & ~__GFP_KSWAPD_RECLAIM;
	unsigned long boost[MAX_NR_ZONES];
	struct cohort_test *ct = test->priv;
	struct alloc_context ac;
	struct page *page;
	unsigned int i;

	if (nr_online_nodes > 1)
		kunit_skip(test, "more than one node");
	for (i = 0; i < MAX_NR_ZONES; i++)
		boost[i] = totalram_pages();
	cohort_test_context(&ac, gfp);
	cohort_test_take(test, cohort_pages());
	drain_all_pages(NULL);
	/* Threads of the kernel that ask now are refused in the end. */
	KUNIT_ASSERT_TRUE(test, oom_killer_disable(HZ));
	cohort_cpb_test_boost(boost);
	cohort_test_free(test, 0, ct->nr);
	page = cohort_rmqueue(ct->dom, gfp, 0, &ac);
	cohort_cpb_test_boost(boost);
	oom_killer_enable();

	KUNIT_EXPECT_EQ(test, cohort_cpb_test_sets(), 0);
	KUNIT_EXPECT_NULL(test, page);
	if (page)
		__free_page(page);
}

/* A CPU that is gone keeps nothing; the first one of x86 never goes. */
static void cohort_cpb_test_hotplug(struct kunit *test)
{
	unsigned int cpu = cpumask_last(cpu_online_mask);
	struct cohort_test *ct = test->priv;
	unsigned long sets;
	int err;

	if (!cpu || !IS_ENABLED(CONFIG_HOTPLUG_CPU))
		kunit_skip(test, "no second CPU");
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)), 0);
	cohort_cpb_test_fill(test);
	sets = cohort_cpb_test_sets();
	cohort_test_drop(test, 0, 1);
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 1);

	set_cpus_allowed_ptr(current, cpumask_of(0));
	err = remove_cpu(cpu);
	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_LT(test, cohort_cpb_test_sets(), sets);
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
	if (!err)
		KUNIT_EXPECT_EQ(test, add_cpu(cpu), 0);
	set_cpus_allowed_ptr(current, cpumask_of(cpu));
	cohort_cpb_test_fill(test);
}

static struct kunit_case cohort_cpb_home_test_cases[] = {
	KUNIT_CASE(cohort_cpb_test_merge_any_order),
	KUNIT_CASE(cohort_cpb_test_free_in_interrupt),
	KUNIT_CASE(cohort_cpb_test_drain_waits),
	KUNIT_CASE(cohort_cpb_test_exit_in_flight),
	KUNIT_CASE(cohort_cpb_test_limit),
	KUNIT_CASE(cohort_cpb_test_bound_of_reservations),
	KUNIT_CASE(cohort_cpb_test_drain),
	KUNIT_CASE(cohort_cpb_test_keep_isolated),
	KUNIT_CASE(cohort_cpb_test_low_memory),
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
