// SPDX-License-Identifier: GPL-2.0
/*
 * What goes wrong with memory that is held back, if nothing is done about it:
 * each case fails without the hook or the rule that it is about.
 *
 * Where memory has to run out, it really does, down to the watermark that is
 * kept for reclaim.  Nobody is killed for it: there is nobody who could be.
 */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/oom.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/swap.h>
#include <linux/uaccess.h>

#include "cohort_test.h"

/* A block of which one page is in use and returned. */
static struct page *cohort_hazard_test_block(struct kunit *test,
					     struct cohort_domain *dom)
{
	struct alloc_context ac = { .highest_zoneidx = MAX_NR_ZONES - 1 };
	struct page *page;
	struct zone *zone;

	for_each_populated_zone(zone)
		if (cohort_grow(dom, zone, zone_idx(zone), 0))
			break;
	page = cohort_domain_take(dom, &ac);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_EQ(test, dom->nr_parked, cohort_pages() - 1);
	return page;
}

static void cohort_hazard_test_return(struct page *page)
{
	if (!cohort_free_page(page, page_to_pfn(page), 0))
		cohort_buddy_give(page, 0);
}

static bool cohort_hazard_test_one(struct list_head *pages, gfp_t gfp,
				   unsigned int order)
{
	struct page *page = alloc_pages(gfp | __GFP_NOWARN, order);

	if (!page)
		return false;
	set_page_private(page, order);
	list_add(&page->lru, pages);
	return true;
}

/*
 * Large blocks go first, without waiting: the case is about single pages.
 * Threads of the kernel that ask now are refused in the end.
 */
static void cohort_hazard_test_nearly_out(struct kunit *test, struct list_head *pages)
{
	int order;

	KUNIT_ASSERT_TRUE(test, oom_killer_disable(HZ));
	for (order = MAX_PAGE_ORDER; order; order--)
		while (cohort_hazard_test_one(pages, GFP_NOWAIT, order))
			;
}

static void cohort_hazard_test_release(struct list_head *pages)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, pages, lru) {
		unsigned int order = page_private(page);

		list_del(&page->lru);
		set_page_private(page, 0);
		__free_pages(page, order);
	}
}

static void cohort_hazard_test_enough(struct list_head *pages)
{
	cohort_hazard_test_release(pages);
	oom_killer_enable();
}

/* Such a thread may have got the pages that were looked at: then once more. */
static void cohort_hazard_test_undisturbed(struct kunit *test,
					   bool (*holds)(struct kunit *test))
{
	unsigned int tries;

	for (tries = 3; tries && !holds(test); tries--)
		;
	KUNIT_EXPECT_NE(test, tries, 0);
}

static bool cohort_hazard_test_takes_parked(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned long before, after;
	struct page *page;
	LIST_HEAD(pages);

	page = cohort_hazard_test_block(test, ct->dom);
	cohort_hazard_test_nearly_out(test, &pages);
	before = ct->dom->nr_parked;
	while (cohort_hazard_test_one(&pages, GFP_NOWAIT, 0))
		;
	after = ct->dom->nr_parked;
	cohort_hazard_test_enough(&pages);
	cohort_hazard_test_return(page);
	kunit_info(test, "parked: %lu, then %lu", before, after);
	return before == cohort_pages() - 1 && !after;
}

/* What cannot wait cannot be helped by giving back: it takes the parked page. */
static void cohort_hazard_test_atomic_starves(struct kunit *test)
{
	cohort_hazard_test_undisturbed(test, cohort_hazard_test_takes_parked);
}

/* No allocation fails, and so nobody is killed, while pages are parked. */
static void cohort_hazard_test_early_oom(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *page;
	LIST_HEAD(pages);

	ct->dom->class = COHORT_NORMAL;
	page = cohort_hazard_test_block(test, ct->dom);
	cohort_hazard_test_nearly_out(test, &pages);
	while (cohort_hazard_test_one(&pages, GFP_KERNEL | __GFP_RETRY_MAYFAIL, 0))
		;
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 0);
	cohort_hazard_test_enough(&pages);
	cohort_hazard_test_return(page);
}

static bool cohort_hazard_test_background_pays(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned long parked, parked_back;
	struct page *page, *page_back;
	struct cohort_domain *back;
	LIST_HEAD(pages);

	back = cohort_domain_create(COHORT_PROCESS, NUMA_NO_NODE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, back);
	back->class = COHORT_BACKGROUND;
	ct->dom->class = COHORT_NORMAL;
	page = cohort_hazard_test_block(test, ct->dom);
	page_back = cohort_hazard_test_block(test, back);
	cohort_hazard_test_nearly_out(test, &pages);
	while (back->nr_parked &&
	       cohort_hazard_test_one(&pages, GFP_KERNEL | __GFP_RETRY_MAYFAIL, 0))
		;
	parked_back = back->nr_parked;
	parked = ct->dom->nr_parked;
	cohort_hazard_test_enough(&pages);
	cohort_hazard_test_return(page_back);
	cohort_hazard_test_return(page);
	cohort_domain_destroy(back);
	kunit_info(test, "parked: %lu, in the background %lu", parked, parked_back);
	return parked == cohort_pages() - 1 && !parked_back;
}

/* A process that nobody looks at pays before one that is in use. */
static void cohort_hazard_test_background_first(struct kunit *test)
{
	cohort_hazard_test_undisturbed(test, cohort_hazard_test_background_pays);
}

static bool cohort_hazard_test_one_by_one(struct kunit *test)
{
	unsigned long before, after;
	struct cohort_domain *cache;
	struct page *page;
	LIST_HEAD(pages);

	cache = cohort_domain_create(COHORT_CACHE, NUMA_NO_NODE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cache);
	page = cohort_hazard_test_block(test, cache);
	cohort_hazard_test_nearly_out(test, &pages);
	do {
		before = cache->nr_parked;
	} while (cohort_hazard_test_one(&pages, GFP_KERNEL | __GFP_MOVABLE |
					__GFP_RETRY_MAYFAIL, 0) &&
		 cache->nr_parked == before);
	after = cache->nr_parked;
	cohort_hazard_test_enough(&pages);
	cohort_hazard_test_return(page);
	cohort_domain_destroy(cache);
	kunit_info(test, "parked: %lu, then %lu", before, after);
	return after == before - 1;
}

/*
 * Reclaimed cache parks and free memory does not rise: whoever reclaims for a
 * page that can be moved would reclaim for ever if it did not take these; one
 * by one, not all at once because reclaim got nowhere.
 */
static void cohort_hazard_test_reclaims_in_vain(struct kunit *test)
{
	cohort_hazard_test_undisturbed(test, cohort_hazard_test_one_by_one);
}

/* Filling blocks never takes what is left for those who need single pages. */
static void cohort_hazard_test_refill_keeps_watermark(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int tries;
	unsigned long free;
	struct zone *zone;

	for_each_populated_zone(zone) {
		/* What somebody frees between the two may be taken. */
		for (tries = 100; tries; tries--) {
			free = zone_page_state_snapshot(zone, NR_FREE_PAGES);
			if (!cohort_grow(ct->dom, zone, zone_idx(zone), free))
				break;
			cohort_domain_dissolve(ct->dom, true);
		}
		KUNIT_EXPECT_NE(test, tries, 0);
	}
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
}

/**
 * struct cohort_hazard_test_child - what a child of fork() saw
 * @addr: a page of its parent's
 * @inherited: mm->cohort before its first fault
 * @own: mm->cohort after it
 * @first: kind of domain of the page it wrote first, as the zygote's child
 * @later: and of one that it wrote after its oom_score_adj was written
 */
struct cohort_hazard_test_child {
	unsigned long addr;
	struct cohort_domain *inherited;
	struct cohort_domain *own;
	enum cohort_kind first;
	enum cohort_kind later;
};

static enum cohort_kind cohort_hazard_test_kind_at(unsigned long addr)
{
	struct cohort_domain *dom = NULL;
	struct page *page;

	if (put_user(addr, (unsigned long __user *)addr) ||
	    get_user_pages_fast(addr, 1, 0, &page) != 1)
		return COHORT_NR_KINDS;
	dom = cohort_test_block(page)->dom;
	put_page(page);
	return dom ? dom->kind : COHORT_NR_KINDS;
}

static int cohort_hazard_test_in_child(void *arg)
{
	struct cohort_hazard_test_child *seen = arg;

	seen->inherited = current->mm->cohort;
	seen->first = cohort_hazard_test_kind_at(seen->addr);
	seen->own = current->mm->cohort;
	cohort_test_set_adj(0);
	if (seen->own)
		seen->own->nr_first = cohort_pages();
	seen->later = cohort_hazard_test_kind_at(seen->addr + PAGE_SIZE);
	do_exit(0);
}

static void cohort_hazard_test_fork(struct kunit *test,
				    struct cohort_hazard_test_child *seen)
{
	struct kernel_clone_args args = {
		.exit_signal = SIGCHLD,
		.fn = cohort_hazard_test_in_child,
		.fn_arg = seen,
	};
	pid_t pid;

	kernel_sigaction(SIGCHLD, SIG_DFL);
	pid = kernel_clone(&args);
	if (pid > 0)
		kernel_wait(pid, NULL);
	kernel_sigaction(SIGCHLD, SIG_IGN);
	KUNIT_ASSERT_GT(test, pid, 0);
}

/*
 * fork() copies the whole of mm_struct.  A child with its parent's domain would
 * put its pages there, and destroy it when it exits.
 */
static void cohort_hazard_test_mm_is_copied(struct kunit *test)
{
	struct cohort_hazard_test_child seen = { };
	struct cohort_domain *dom;

	seen.addr = cohort_test_map(test, 2);
	cohort_test_grow_up(test);
	cohort_test_touch(test, seen.addr, 2);
	dom = current->mm->cohort;
	cohort_hazard_test_fork(test, &seen);
	KUNIT_EXPECT_NULL(test, seen.inherited);
	KUNIT_EXPECT_NOT_NULL(test, seen.own);
	KUNIT_EXPECT_PTR_NE(test, seen.own, dom);
	KUNIT_EXPECT_PTR_EQ(test, current->mm->cohort, dom);
	KUNIT_EXPECT_PTR_EQ(test, cohort_test_domain_at(test, seen.addr), dom);
	cohort_test_verify(test, seen.addr, 2);
}

/*
 * The rule for class changes, across a real fork: a child is what its parent
 * is until somebody writes its own oom_score_adj.
 */
static void cohort_hazard_test_zygote_forks(struct kunit *test)
{
	int adj = current->signal->oom_score_adj;
	struct cohort_hazard_test_child seen = { };

	seen.addr = cohort_test_map(test, 2);
	cohort_test_set_adj(-1000);
	cohort_test_touch(test, seen.addr, 2);
	cohort_hazard_test_fork(test, &seen);
	cohort_test_set_adj(adj);
	KUNIT_EXPECT_EQ(test, seen.first, COHORT_SHARED);
	KUNIT_EXPECT_EQ(test, seen.later, COHORT_PROCESS);
}

static unsigned int cohort_hazard_test_holes(struct kunit *test, unsigned long addr,
					     unsigned int pages)
{
	unsigned int i;

	cohort_test_grow_up(test);
	cohort_test_touch(test, addr, pages);
	for (i = 0; i < pages; i += 2)
		do_madvise(current->mm, addr + i * PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	lru_add_drain_all();
	return READ_ONCE(current->mm->cohort->nr_parked);
}

/* A page that is swapped out frees nothing until its region goes home. */
static void cohort_hazard_test_swaps_in_vain(struct kunit *test)
{
	unsigned int i, parked, pages = 8 * cohort_pages();
	unsigned long addr = cohort_test_map(test, pages);
	struct cohort_domain *dom;

	parked = cohort_hazard_test_holes(test, addr, pages);
	dom = current->mm->cohort;
	KUNIT_ASSERT_GE(test, parked, 3 * cohort_pages());
	for (i = 0; i < 4; i++)
		cohort_compact_swapped();
	KUNIT_EXPECT_LT(test, dom->nr_parked, 3 * cohort_pages());
	for (i = 1; i < pages; i += 2)
		cohort_test_verify(test, addr + i * PAGE_SIZE, 1);
}

/* Slab that was shrunk, one page in two, frees nothing until it is given back. */
static void cohort_hazard_test_shrinks_in_vain(struct kunit *test)
{
	LIST_HEAD(shrunk);
	LIST_HEAD(kept);
	unsigned int i;

	for (i = 0; i < 4 * COHORT_KERNEL_HOLES; i++)
		KUNIT_ASSERT_TRUE(test, cohort_hazard_test_one(i % 2 ? &kept : &shrunk,
							       GFP_KERNEL | __GFP_RECLAIMABLE, 0));
	cohort_hazard_test_release(&shrunk);
	KUNIT_EXPECT_GE(test, cohort_parked_in(COHORT_KERNEL), COHORT_KERNEL_HOLES + cohort_pages());
	/* It does not look more often than that. */
	schedule_timeout_uninterruptible(COHORT_RETRY + 1);
	cohort_compact_low();
	KUNIT_EXPECT_LT(test, cohort_parked_in(COHORT_KERNEL),
			COHORT_KERNEL_HOLES + cohort_pages());
	cohort_hazard_test_release(&kept);
}

/* A page that goes bad: neither the LRU nor the free lists know a parked one. */
static void cohort_hazard_test_soft_offline(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned long addr, bad;
	struct page *page;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "no CONFIG_MEMORY_FAILURE");
	cohort_test_take(test, 2);
	bad = page_to_pfn(ct->page[0]) + cohort_pages() / 2;
	KUNIT_EXPECT_TRUE(test, cohort_page_parked(pfn_to_page(bad)));
	KUNIT_EXPECT_EQ(test, soft_offline_page(bad, 0), 0);
	KUNIT_EXPECT_TRUE(test, PageHWPoison(pfn_to_page(bad)));
	KUNIT_EXPECT_EQ(test, unpoison_memory(bad), 0);

	addr = cohort_test_map(test, 1);
	cohort_test_grow_up(test);
	cohort_test_touch(test, addr, 1);
	lru_add_drain_all();
	page = cohort_test_page_at(test, addr);
	KUNIT_EXPECT_EQ(test, soft_offline_page(page_to_pfn(page), 0), 0);
	KUNIT_EXPECT_TRUE(test, PageHWPoison(page));
	KUNIT_EXPECT_PTR_NE(test, cohort_test_page_at(test, addr), page);
	cohort_test_verify(test, addr, 1);
	KUNIT_EXPECT_EQ(test, unpoison_memory(page_to_pfn(page)), 0);
}

static struct kunit_case cohort_hazard_test_cases[] = {
	KUNIT_CASE(cohort_hazard_test_atomic_starves),
	KUNIT_CASE(cohort_hazard_test_early_oom),
	KUNIT_CASE(cohort_hazard_test_background_first),
	KUNIT_CASE(cohort_hazard_test_reclaims_in_vain),
	KUNIT_CASE(cohort_hazard_test_refill_keeps_watermark),
	KUNIT_CASE(cohort_hazard_test_mm_is_copied),
	KUNIT_CASE(cohort_hazard_test_zygote_forks),
	KUNIT_CASE(cohort_hazard_test_swaps_in_vain),
	KUNIT_CASE(cohort_hazard_test_shrinks_in_vain),
	KUNIT_CASE(cohort_hazard_test_soft_offline),
	{}
};

static struct kunit_suite cohort_hazard_test_suite = {
	.name = "cohort_hazard",
	.suite_init = cohort_test_suite_init,
	.suite_exit = cohort_test_suite_exit,
	.init = cohort_test_init,
	.exit = cohort_test_exit,
	.test_cases = cohort_hazard_test_cases,
};
kunit_test_suite(cohort_hazard_test_suite);
