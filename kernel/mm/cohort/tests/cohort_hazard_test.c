// SPDX-License-Identifier: GPL-2.0
/*
 * Hazards of free memory that has an owner, if nothing is done about
 * them: each case fails without the hook or the rule that it is about.
 *
 * Where memory has to run out, it really does, down to the watermark that is
 * kept for reclaim.  No process is killed for it: there is none that could be.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/oom.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/uaccess.h>

#include "cohort_pcpa_test.h"
#include "cohort_test.h"

static bool cohort_hazard_test_one(struct list_head *pages, gfp_t gfp,
				   unsigned int order)
{
	struct page *page = alloc_pages(gfp | __GFP_NOWARN, order);

	if (page)
		cohort_test_keep(pages, page, order);
	return page;
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

static void cohort_hazard_test_enough(struct list_head *pages)
{
	cohort_test_release(pages, __free_pages);
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

static bool cohort_hazard_test_takes_all(struct kunit *test, gfp_t gfp)
{
	struct cohort_test *ct = test->priv;
	unsigned long before, after;
	LIST_HEAD(pages);

	cohort_test_take(test, 1);
	cohort_hazard_test_nearly_out(test, &pages);
	before = cohort_domain_free(ct->dom);
	while (cohort_hazard_test_one(&pages, gfp, 0))
		;
	after = cohort_domain_free(ct->dom);
	cohort_hazard_test_enough(&pages);
	cohort_test_free(test, 0, ct->nr);
	ct->nr = 0;
	kunit_info(test, "free in the block: %lu, then %lu", before, after);
	return before && !after;
}

static bool cohort_hazard_test_takes_atomic(struct kunit *test)
{
	return cohort_hazard_test_takes_all(test, GFP_NOWAIT);
}

/* A request that cannot wait has all free pages, no matter which domain owns them. */
static void cohort_hazard_test_atomic_starves(struct kunit *test)
{
	cohort_hazard_test_undisturbed(test, cohort_hazard_test_takes_atomic);
}

/* No allocation fails, and so no process is killed, while pages are free in blocks. */
static bool cohort_hazard_test_takes_waiting(struct kunit *test)
{
	return cohort_hazard_test_takes_all(test, GFP_KERNEL | __GFP_RETRY_MAYFAIL);
}

static void cohort_hazard_test_early_oom(struct kunit *test)
{
	cohort_hazard_test_undisturbed(test, cohort_hazard_test_takes_waiting);
}

static bool cohort_hazard_test_one_by_one(struct kunit *test)
{
	struct cohort_domain *cache = cohort_region_domain(COHORT_CACHE);
	unsigned long before, after;
	struct page *page;
	LIST_HEAD(pages);

	page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, numa_mem_id(), NULL, cache);
	KUNIT_ASSERT_NOT_NULL(test, page);
	cohort_domain_drain(cache);
	cohort_hazard_test_nearly_out(test, &pages);
	do {
		before = cohort_domain_free(cache);
	} while (cohort_hazard_test_one(&pages, GFP_KERNEL | __GFP_MOVABLE |
					__GFP_RETRY_MAYFAIL, 0) &&
		 cohort_domain_free(cache) == before);
	after = cohort_domain_free(cache);
	cohort_hazard_test_enough(&pages);
	__free_page(page);
	kunit_info(test, "free in the cache: %lu, then %lu", before, after);
	return after == before - 1;
}

/*
 * Reclaimed cache is free in its region and no watermark counts it: a request
 * for a page that can be moved would reclaim for ever if it did not take these;
 * one by one, not all at once because reclaim got nowhere.
 */
static void cohort_hazard_test_reclaims_in_vain(struct kunit *test)
{
	cohort_hazard_test_undisturbed(test, cohort_hazard_test_one_by_one);
}

/* Filling blocks never takes what is left for requests for single pages. */
static void cohort_hazard_test_refill_keeps_watermark(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int tries;
	unsigned long free;
	struct page *page;
	struct zone *zone;

	/* A room in each zone that has blocks. */
	cohort_test_take(test, 1);
	for_each_populated_zone(zone) {
		struct cohort_room *room = cohort_room_of(ct->dom, zone);

		/* A page freed between the two may be taken. */
		for (tries = 100; room && tries; tries--) {
			free = zone_page_state_snapshot(zone, NR_FREE_PAGES);
			if (!cohort_room_acquire(room, zone_idx(zone), free, &page, 1))
				break;
			cohort_buddy_give(page, 0);
		}
		KUNIT_EXPECT_NE(test, tries, 0);
	}
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 1);
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
	struct cohort_domain *dom;
	struct page *page;

	if (put_user(addr, (unsigned long __user *)addr) ||
	    get_user_pages_fast(addr, 1, 0, &page) != 1)
		return COHORT_NR_KINDS;
	dom = cohort_test_owner(page);
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
 * is until its own oom_score_adj is written.
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

static unsigned long cohort_hazard_test_holes(struct kunit *test, unsigned long addr,
					      unsigned int pages)
{
	unsigned int i;

	cohort_test_grow_up(test);
	cohort_test_touch(test, addr, pages);
	lru_add_drain_all();
	for (i = 0; i < pages; i += 2)
		do_madvise(current->mm, addr + i * PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	cohort_domain_drain(current->mm->cohort);
	return cohort_domain_free(current->mm->cohort);
}

static unsigned long cohort_hazard_test_whole(void)
{
	unsigned long whole = 0;
	struct zone *zone;

	for_each_populated_zone(zone)
		whole += cohort_whole(zone);
	return whole;
}

/* What a low zone keeps from requests that may have a higher one is no block for them. */
static void cohort_hazard_test_lowmem_reserve(struct kunit *test)
{
	unsigned long whole, less;
	struct zone *zone;
	long reserve;

	cohort_test_take(test, 1);
	zone = cohort_test_room(test)->zone;
	reserve = zone->lowmem_reserve[ZONE_NORMAL];
	whole = cohort_whole(zone);
	KUNIT_ASSERT_GE(test, whole, 16 * cohort_pages());
	WRITE_ONCE(zone->lowmem_reserve[ZONE_NORMAL], reserve + 8 * cohort_pages());
	less = cohort_whole(zone);
	WRITE_ONCE(zone->lowmem_reserve[ZONE_NORMAL], reserve);
	/* Others take and free blocks meanwhile. */
	KUNIT_EXPECT_LE(test, less, whole - 4 * cohort_pages());
}

/*
 * What a low zone keeps from requests that may have a higher one it keeps in blocks, too; those
 * that can have nothing else get it.
 */
static void cohort_hazard_test_lowmem_parked(struct kunit *test)
{
	unsigned int idx = gfp_zone(GFP_HIGHUSER_MOVABLE);
	struct zone *zone, *other;
	struct page *page;
	long reserve;

	cohort_test_take(test, 2 * cohort_pages());
	cohort_test_free(test, 1, 64);
	zone = cohort_test_room(test)->zone;
	for_each_populated_zone(other)
		if (other != zone && READ_ONCE(other->cohort_soft))
			kunit_skip(test, "another zone has such pages");
	reserve = zone->lowmem_reserve[idx];
	WRITE_ONCE(zone->lowmem_reserve[idx], zone_page_state(zone, NR_FREE_PAGES) + SZ_1M);
	page = cohort_test_breach(GFP_HIGHUSER_MOVABLE, 0);
	WRITE_ONCE(zone->lowmem_reserve[idx], reserve);
	KUNIT_EXPECT_NULL(test, page);
	if (page)
		__free_page(page);
	page = cohort_test_breach(GFP_HIGHUSER_MOVABLE, 0);
	KUNIT_ASSERT_NOT_NULL(test, page);
	__free_page(page);
}

/*
 * A request that may use the reserve takes a free page of a block before, and that is no page
 * of the reserve.
 */
static void cohort_hazard_test_reserve(struct kunit *test)
{
	const gfp_t gfp = (GFP_NOWAIT & ~__GFP_KSWAPD_RECLAIM) | __GFP_MEMALLOC;
	unsigned long mark[NR_WMARK], free;
	struct page *page;
	struct zone *zone;
	unsigned int i;

	cohort_test_take(test, 2 * cohort_pages());
	cohort_test_free(test, 1, 64);
	zone = cohort_test_room(test)->zone;
	/* More than is free without an owner. */
	free = zone_page_state(zone, NR_FREE_PAGES);
	for (i = 0; i < NR_WMARK; i++) {
		mark[i] = zone->_watermark[i];
		WRITE_ONCE(zone->_watermark[i], free);
	}
	page = alloc_pages(gfp, 1);
	for (i = 0; i < NR_WMARK; i++)
		WRITE_ONCE(zone->_watermark[i], mark[i]);
	KUNIT_ASSERT_NOT_NULL(test, page);
	if (page_zone(page) == zone) {
		KUNIT_EXPECT_NE(test, cohort_owner_id(page_to_pfn(page)), 0u);
		KUNIT_EXPECT_FALSE(test, page_is_pfmemalloc(page));
	}
	__free_pages(page, 1);
}

#ifdef CONFIG_COHORT_PCPA
/* What may never leave the area is taken of it where blocks have nothing. */
static void cohort_hazard_test_area_last(struct kunit *test)
{
	struct page *page;

	cohort_test_take(test, 2 * cohort_pages());
	cohort_test_free(test, 1, 64);
	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	page = cohort_test_breach(GFP_ATOMIC, 0);
	KUNIT_ASSERT_TRUE(test, page && !cohort_chunk_of(page_to_pfn(page)));
	__free_page(page);
	cohort_pcpa_test_end(test);
}
#endif

/* A page that is swapped out frees no block until its region is packed. */
static void cohort_hazard_test_swaps_in_vain(struct kunit *test)
{
	unsigned long headroom = cohort_headroom, free, addr;
	unsigned int i, pages = 8 * cohort_pages();
	struct cohort_domain *dom;

	addr = cohort_test_map(test, pages);
	free = cohort_hazard_test_holes(test, addr, pages);
	dom = current->mm->cohort;
	KUNIT_ASSERT_GE(test, free, 3 * cohort_pages());
	/* Whole blocks are few, if a little more is wanted than there is. */
	WRITE_ONCE(cohort_headroom, cohort_hazard_test_whole() + 16 * cohort_pages());
	for (i = 0; i < 100 && cohort_domain_free(dom) >= 2 * cohort_pages(); i++) {
		cohort_pack_wake(NODE_DATA(numa_mem_id()));
		msleep(100);
	}
	WRITE_ONCE(cohort_headroom, headroom);
	KUNIT_EXPECT_LT(test, cohort_domain_free(dom), 3 * cohort_pages());
	for (i = 1; i < pages; i += 2)
		cohort_test_verify(test, addr + i * PAGE_SIZE, 1);
}

/* Reclaim wakes the worker while there are whole blocks enough: it leaves all CPUs alone. */
static void cohort_hazard_test_nothing_to_pack(struct kunit *test)
{
	unsigned long headroom = cohort_headroom, addr = cohort_test_map(test, 1);
	struct page *page;
	bool drained;

	WRITE_ONCE(cohort_headroom, 0);
	/* Further apart no runs are. */
	msleep(3500);
	cohort_test_touch(test, addr, 1);
	page = cohort_test_page_at(test, addr);
	cohort_pack_wake(NODE_DATA(page_to_nid(page)));
	flush_workqueue(cohort_wq);
	drained = PageLRU(page);
	WRITE_ONCE(cohort_headroom, headroom);
	KUNIT_EXPECT_FALSE(test, drained);
}

/* An app that is in front again before it is packed stays as it is. */
static void cohort_hazard_test_comes_back(struct kunit *test)
{
	unsigned int pages = 8 * cohort_pages(), delay = cohort_compact_delay_ms;
	unsigned long addr = cohort_test_map(test, pages), free;
	struct cohort_domain *dom;

	free = cohort_hazard_test_holes(test, addr, pages);
	dom = current->mm->cohort;
	KUNIT_ASSERT_GE(test, free, 3 * cohort_pages());
	WRITE_ONCE(cohort_compact_delay_ms, 10 * MSEC_PER_SEC);
	cohort_test_set_adj(900);
	WRITE_ONCE(cohort_compact_delay_ms, delay);
	cohort_test_set_adj(0);
	flush_delayed_work(&dom->work);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(dom), free);
	cohort_test_set_adj(900);
	flush_delayed_work(&dom->work);
	KUNIT_EXPECT_LT(test, cohort_domain_free(dom), free);
}

/* A page that goes bad: a free one of a block, and one in use. */
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

/* Compaction of domains, for any cause: batches of all CPUs are not drained for each. */
static void cohort_hazard_test_drains_seldom(struct kunit *test)
{
	unsigned long addr = cohort_test_map(test, 1), late = jiffies + 2 * HZ;
	struct page *page;

	msleep(1100);
	cohort_pack_drain();
	cohort_test_touch(test, addr, 1);
	page = cohort_test_page_at(test, addr);
	cohort_pack_drain();
	KUNIT_EXPECT_FALSE(test, PageLRU(page) && time_before(jiffies, late));
	msleep(1100);
	cohort_pack_drain();
	KUNIT_EXPECT_TRUE(test, PageLRU(page));
}

static const struct address_space_operations cohort_hazard_test_aops = {
	.migrate_folio = filemap_migrate_folio,
};

/* What another task moves meanwhile. */
struct cohort_hazard_test_move {
	struct completion done;
	struct cohort_room *room;
	struct list_head list;
};

static int cohort_hazard_test_moves(void *arg)
{
	struct cohort_hazard_test_move *move = arg;

	cohort_evacuate(move->room, NULL, &move->list, true);
	complete_all(&move->done);
	return 0;
}

/* Only a kernel that waits without an end takes as long. */
static void cohort_hazard_test_moves_in_time(struct kunit *test, struct folio *folio,
					     struct cohort_hazard_test_move *move)
{
	struct task_struct *thread;

	folio_lock(folio);
	thread = kthread_run(cohort_hazard_test_moves, move, "cohort_test");
	if (!IS_ERR(thread))
		KUNIT_EXPECT_NE_MSG(test, wait_for_completion_timeout(&move->done, 30 * HZ), 0UL,
				    "it waits for the page");
	folio_unlock(folio);
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	wait_for_completion(&move->done);
}

static void cohort_hazard_test_put_file(void *file)
{
	fput(file);
}

/* Of a file in memory, whose pages may move. */
static struct address_space *cohort_hazard_test_mapping(struct kunit *test)
{
	struct address_space *mapping = kunit_kzalloc(test, sizeof(*mapping), GFP_KERNEL);
	struct file *file = shmem_kernel_file_setup("cohort_test", PAGE_SIZE, 0);

	KUNIT_ASSERT_NOT_NULL(test, mapping);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, cohort_hazard_test_put_file, file), 0);
	address_space_init_once(mapping);
	mapping->host = file_inode(file);
	mapping->a_ops = &cohort_hazard_test_aops;
	mapping_set_gfp_mask(mapping, GFP_HIGHUSER_MOVABLE);
	return mapping;
}

/* One of the case's pages, in its block, becomes the file's and is isolated. */
static struct folio *cohort_hazard_test_isolate(struct kunit *test, struct address_space *mapping,
						struct list_head *list)
{
	struct cohort_test *ct = test->priv;
	struct folio *folio;

	cohort_test_take(test, 8);
	folio = page_folio(ct->page[7]);
	ct->page[7] = NULL;
	KUNIT_ASSERT_EQ(test, filemap_add_folio(mapping, folio, 0, GFP_KERNEL), 0);
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	lru_add_drain_all();
	KUNIT_ASSERT_TRUE(test, cohort_isolate_page(&folio->page, list));
	return folio;
}

/*
 * A page of a file that found no place elsewhere, in a process's block, locked for as long as
 * a server of FUSE wants: what packs blocks, and all that is queued behind it, goes on.
 */
static void cohort_hazard_test_locked_file(struct kunit *test)
{
	struct cohort_hazard_test_move move = { .list = LIST_HEAD_INIT(move.list) };
	struct address_space *mapping = cohort_hazard_test_mapping(test);
	struct folio *folio = cohort_hazard_test_isolate(test, mapping, &move.list);

	init_completion(&move.done);
	move.room = cohort_test_room(test);
	cohort_hazard_test_moves_in_time(test, folio, &move);
	folio_put(folio);
	truncate_inode_pages(mapping, 0);
}

/* A page of the swap cache that no process maps has a mapping without an inode. */
static void cohort_hazard_test_swap_cache(struct kunit *test)
{
	struct address_space *mapping = cohort_hazard_test_mapping(test);
	struct inode *inode = mapping->host;
	struct folio *folio;
	LIST_HEAD(list);

	folio = cohort_hazard_test_isolate(test, mapping, &list);
	mapping->host = NULL;
	/* Whether it moves does not matter. */
	cohort_evacuate(cohort_test_room(test), NULL, &list, true);
	mapping->host = inode;
	KUNIT_EXPECT_TRUE(test, list_empty(&list));
	folio_put(folio);
	truncate_inode_pages(mapping, 0);
}

static struct kunit_case cohort_hazard_test_cases[] = {
	KUNIT_CASE(cohort_hazard_test_atomic_starves),
	KUNIT_CASE(cohort_hazard_test_early_oom),
	KUNIT_CASE(cohort_hazard_test_reclaims_in_vain),
	KUNIT_CASE(cohort_hazard_test_refill_keeps_watermark),
	KUNIT_CASE(cohort_hazard_test_mm_is_copied),
	KUNIT_CASE(cohort_hazard_test_zygote_forks),
	KUNIT_CASE(cohort_hazard_test_lowmem_reserve),
	KUNIT_CASE(cohort_hazard_test_lowmem_parked),
	KUNIT_CASE(cohort_hazard_test_reserve),
#ifdef CONFIG_COHORT_PCPA
	KUNIT_CASE(cohort_hazard_test_area_last),
#endif
	KUNIT_CASE(cohort_hazard_test_swaps_in_vain),
	KUNIT_CASE_SLOW(cohort_hazard_test_nothing_to_pack),
	KUNIT_CASE(cohort_hazard_test_comes_back),
	KUNIT_CASE(cohort_hazard_test_soft_offline),
	KUNIT_CASE(cohort_hazard_test_locked_file),
	KUNIT_CASE(cohort_hazard_test_swap_cache),
	KUNIT_CASE_SLOW(cohort_hazard_test_drains_seldom),
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
