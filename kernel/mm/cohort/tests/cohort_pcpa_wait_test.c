// SPDX-License-Identifier: GPL-2.0
/*
 * The page-cache-preferred area: what a client waits for, and what the worker that tidies
 * leaves alone.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/swap.h>

#include "cohort_pcpa_test.h"

/* Only a kernel that waits without an end takes as long. */
#define FOR_EVER	(60 * HZ)

/* What another task does meanwhile. */
struct cohort_pcpa_test_task {
	struct completion done;
	unsigned long nr;	/* pages of a piece, or 0: a size */
	unsigned long base;	/* first frame of what the size is for */
	struct page *page;
	int err;
};

static int cohort_pcpa_test_run(void *arg)
{
	struct cohort_pcpa_test_task *task = arg;

	if (task->nr) {
		task->page = cohort_pcpa_alloc(task->nr, GFP_KERNEL);
		task->err = PTR_ERR_OR_ZERO(task->page);
		if (!task->err)
			cohort_pcpa_free(task->page, task->nr);
	} else {
		task->err = cohort_copies_resize(BLOCK_BYTES, PFN_PHYS((u64)task->base));
	}
	complete_all(&task->done);
	return 0;
}

static void cohort_pcpa_test_start(struct kunit *test, struct cohort_pcpa_test_task *task)
{
	struct task_struct *thread;

	init_completion(&task->done);
	thread = kthread_run(cohort_pcpa_test_run, task, "cohort_pcpa_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
}

/* A page that is locked for as long as a user wants is an error in time. */
static void cohort_pcpa_test_locked(struct kunit *test)
{
	struct cohort_pcpa_test_task client = { .nr = AREA_PAGES };
	struct cohort_pcpa_test_cache cache;
	struct folio *folio;

	cohort_pcpa_test_full_begin(test, &cache);
	folio = cohort_pcpa_test_cache_get(test, &cache, cache.nr / 2);
	folio_lock(folio);
	folio_put(folio);
	cohort_pcpa_test_start(test, &client);
	KUNIT_EXPECT_NE_MSG(test, wait_for_completion_timeout(&client.done, FOR_EVER), 0UL,
			    "it waits for the page");
	folio_unlock(folio);
	wait_for_completion(&client.done);
	KUNIT_EXPECT_EQ(test, client.err, -EBUSY);
	cohort_pcpa_test_full_end(test, &cache);
}

/* One page of a file in frames that are otherwise free; locked. */
static struct folio *cohort_pcpa_test_lone(struct kunit *test, struct cohort_pcpa_test_cache *cache,
					   unsigned long *base)
{
	unsigned long i, nr = cohort_area_align();
	struct folio *folio;

	*base = cohort_frames_find(NUMA_NO_NODE, nr, 0, ULONG_MAX);
	KUNIT_ASSERT_NE(test, *base, 0UL);
	folio = page_folio(pfn_to_page(*base + 5));
	KUNIT_ASSERT_EQ(test, filemap_add_folio(cache->inode->i_mapping, folio, cache->nr++,
						GFP_KERNEL), 0);
	folio_mark_uptodate(folio);
	folio_put(folio);
	for (i = 0; i < nr; i++)
		if (i != 5)
			__free_page(pfn_to_page(*base + i));
	lru_add_drain_all();
	return folio;
}

/* What makes room for a size waits for no page, and clients of the area do not wait for it. */
static void cohort_pcpa_test_beside_size(struct kunit *test)
{
	struct cohort_pcpa_test_task size = { .nr = 0 }, client = { .nr = 1 };
	struct cohort_pcpa_test_cache cache;
	struct folio *folio;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_test_cache_begin(test, &cache);
	folio = cohort_pcpa_test_lone(test, &cache, &size.base);
	cohort_pcpa_test_start(test, &size);
	cohort_pcpa_test_start(test, &client);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&client.done, FOR_EVER), 0UL);
	KUNIT_EXPECT_NE_MSG(test, wait_for_completion_timeout(&size.done, FOR_EVER), 0UL,
			    "it waits for the page");
	folio_unlock(folio);
	wait_for_completion(&size.done);
	wait_for_completion(&client.done);
	KUNIT_EXPECT_EQ(test, client.err, 0);
	KUNIT_EXPECT_EQ(test, size.err, -ENOMEM);
	/* The page is not busy any more, and leaves. */
	KUNIT_EXPECT_EQ(test, cohort_copies_resize(BLOCK_BYTES, PFN_PHYS((u64)size.base)), 0);
	KUNIT_EXPECT_EQ(test, cohort_copies_resize(0, COHORT_ANY_BASE), 0);
	cohort_pcpa_test_cache_end(&cache);
	cohort_pcpa_test_end(test);
}

/* A driver's page, on loan, that is moved when the case wants it; what it sees meanwhile. */
static struct page *cohort_pcpa_test_loan;
static bool cohort_pcpa_test_stays;
static unsigned int cohort_pcpa_test_tries, cohort_pcpa_test_in_vain;

static bool cohort_pcpa_test_loan_isolate(struct page *page, isolate_mode_t mode)
{
	return true;
}

static void cohort_pcpa_test_loan_putback(struct page *page)
{
}

static int cohort_pcpa_test_loan_migrate(struct page *dst, struct page *src,
					 enum migrate_mode mode);

static const struct movable_operations cohort_pcpa_test_lender = {
	.isolate_page = cohort_pcpa_test_loan_isolate,
	.putback_page = cohort_pcpa_test_loan_putback,
	.migrate_page = cohort_pcpa_test_loan_migrate,
};

static int cohort_pcpa_test_loan_migrate(struct page *dst, struct page *src,
					 enum migrate_mode mode)
{
	cohort_pcpa_test_tries++;
	cohort_pcpa_test_in_vain += cohort_pcpa_state() == COHORT_PCACHE_ONLY;
	if (READ_ONCE(cohort_pcpa_test_stays))
		return -EAGAIN;
	get_page(dst);
	__SetPageMovable(dst, &cohort_pcpa_test_lender);
	__ClearPageMovable(src);
	if (PageOffline(src))
		__ClearPageOffline(src);
	put_page(src);
	cohort_pcpa_test_loan = dst;
	return MIGRATEPAGE_SUCCESS;
}

static void cohort_pcpa_test_lend(struct kunit *test, bool stays)
{
	struct page *page = cohort_area_take(0, COHORT_USE_LENT);

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_TRUE(test, cohort_area_prep(page, 0, GFP_HIGHUSER_MOVABLE, 0));
	lock_page(page);
	__SetPageMovable(page, &cohort_pcpa_test_lender);
	unlock_page(page);
	cohort_pcpa_test_loan = page;
	cohort_pcpa_test_stays = stays;
	cohort_pcpa_test_tries = 0;
	cohort_pcpa_test_in_vain = 0;
}

static void cohort_pcpa_test_lend_end(void)
{
	struct page *page = cohort_pcpa_test_loan;

	lock_page(page);
	__ClearPageMovable(page);
	unlock_page(page);
	put_page(page);
}

/* A request has its own two seconds, whatever time another one took before. */
static void cohort_pcpa_test_own_time(struct kunit *test)
{
	struct cohort_pcpa_test_task client = { .nr = AREA_PAGES };

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	mutex_lock(&cohort_pcpa_mutex);
	cohort_pcpa_test_start(test, &client);
	msleep(COHORT_CONTIG_MS + COHORT_CONTIG_MS / 4);
	/* Only now: what tidies would have moved it. */
	cohort_pcpa_test_lend(test, false);
	mutex_unlock(&cohort_pcpa_mutex);
	wait_for_completion(&client.done);
	KUNIT_EXPECT_EQ(test, client.err, 0);
	cohort_pcpa_test_lend_end();
	cohort_pcpa_test_end(test);
}

/* The area stays the clients' while a piece takes longer than a turn of the timer. */
static void cohort_pcpa_test_own_turn(struct kunit *test)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_test_lend(test, true);
	WRITE_ONCE(cohort_pcpa_timer_ms, 20);
	page = cohort_pcpa_alloc(AREA_PAGES, GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(page), -EBUSY);
	KUNIT_EXPECT_GT(test, cohort_pcpa_test_tries, 0U);
	/* A busy host makes some of them late. */
	KUNIT_EXPECT_LT(test, 2 * cohort_pcpa_test_in_vain, cohort_pcpa_test_tries);
	WRITE_ONCE(cohort_pcpa_test_stays, false);
	cohort_pcpa_test_lend_end();
	cohort_pcpa_test_end(test);
}

/* A driver's page that moves is moved out while files have the area, too. */
static void cohort_pcpa_test_loan_leaves(struct kunit *test)
{
	unsigned int i;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_test_lend(test, false);
	cohort_pcpa_tidy_soon();
	for (i = 0; i < 500 && cohort_pcpa_test_look().lent; i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().lent, 0UL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_state(), COHORT_PCACHE_ONLY);
	cohort_pcpa_test_lend_end();
	cohort_pcpa_test_end(test);
}

/* So does what a balloon holds, for a piece of all of the area. */
static void cohort_pcpa_test_balloon(struct kunit *test)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_test_lend(test, false);
	__SetPageOffline(cohort_pcpa_test_loan);
	page = cohort_pcpa_alloc(AREA_PAGES, GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(page), 0);
	if (!IS_ERR(page))
		cohort_pcpa_free(page, AREA_PAGES);
	else
		__ClearPageOffline(cohort_pcpa_test_loan);
	cohort_pcpa_test_lend_end();
	cohort_pcpa_test_end(test);
}

/* Pages outside of the area. */
static void cohort_pcpa_test_outside_add(struct kunit *test, struct cohort_pcpa_test_cache *cache)
{
	struct address_space *mapping = cache->inode->i_mapping;
	struct folio *folio = filemap_alloc_folio(GFP_HIGHUSER_MOVABLE, 0);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_ASSERT_EQ(test, filemap_add_folio(mapping, folio, cache->nr++, GFP_KERNEL), 0);
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	folio_put(folio);
}

static unsigned int cohort_pcpa_test_inside(struct kunit *test,
					    struct cohort_pcpa_test_cache *cache)
{
	unsigned long i;
	unsigned int nr = 0;

	for (i = 0; i < cache->nr; i++) {
		struct folio *folio = cohort_pcpa_test_cache_get(test, cache, i);

		nr += !!cohort_chunk_of(folio_pfn(folio));
		folio_put(folio);
	}
	return nr;
}

/* Pages of files are pulled in, those of a block device beside them are not. */
static void cohort_pcpa_test_pulled(struct kunit *test)
{
	struct cohort_pcpa_test_cache files, device;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_test_cache_begin(test, &files);
	cohort_pcpa_test_cache_begin(test, &device);
	device.inode->i_mode = S_IFBLK | 0600;
	for (i = 0; i < 512; i++) {
		cohort_pcpa_test_outside_add(test, &files);
		cohort_pcpa_test_outside_add(test, &device);
	}
	lru_add_drain_all();
	/* None of a zone that is not asked for; a look is at a part of the node. */
	for (i = 0; i < 32; i++, msleep(20))
		KUNIT_EXPECT_EQ(test, __cohort_pcpa_pull(cohort_area.zone->zone_pgdat, -1), 0UL);
	for (i = 0; i < 500 && cohort_pcpa_test_inside(test, &files) < 128; i++) {
		__cohort_pcpa_pull(cohort_area.zone->zone_pgdat, MAX_NR_ZONES - 1);
		msleep(20);
	}
	KUNIT_EXPECT_GE(test, cohort_pcpa_test_inside(test, &files), 128U);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_inside(test, &device), 0U);
	cohort_pcpa_test_cache_end(&device);
	cohort_pcpa_test_cache_end(&files);
	cohort_pcpa_test_end(test);
}

/*
 * A page that left the LRU may be another's by now, and is not locked.  One that thousands map
 * takes long to move, and the next has to wait for another turn.
 */
static void cohort_pcpa_test_pulled_late(struct kunit *test)
{
	struct cohort_pcpa_test_cache files;
	struct folio *folio, *target;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_test_cache_begin(test, &files);
	cohort_pcpa_test_outside_add(test, &files);
	lru_add_drain_all();
	folio = cohort_pcpa_test_cache_get(test, &files, 0);
	KUNIT_EXPECT_TRUE(test, cohort_pull_readable(&folio->page));
	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(folio));
	KUNIT_EXPECT_FALSE(test, cohort_pull_readable(&folio->page));
	folio_putback_lru(folio);
	KUNIT_EXPECT_NULL(test, cohort_pull_target(folio, jiffies - 1));
	target = cohort_pull_target(folio, jiffies + HZ);
	KUNIT_EXPECT_NOT_NULL(test, target);
	if (target)
		folio_put(target);
	folio_put(folio);
	cohort_pcpa_test_cache_end(&files);
	cohort_pcpa_test_end(test);
}

/* Where there is little page cache elsewhere, pages that are in use are pulled in as well. */
static void cohort_pcpa_test_pulled_in_use(struct kunit *test)
{
	const unsigned int nr = AREA_PAGES / 8;
	struct cohort_pcpa_test_cache files;
	struct folio *folio;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_test_cache_begin(test, &files);
	if (global_node_page_state(NR_ACTIVE_FILE) + global_node_page_state(NR_INACTIVE_FILE) >
	    nr / 2) {
		cohort_pcpa_test_cache_end(&files);
		cohort_pcpa_test_end(test);
		kunit_skip(test, "there are other files' pages");
	}
	for (i = 0; i < nr; i++)
		cohort_pcpa_test_outside_add(test, &files);
	lru_add_drain_all();
	for (i = 0; i < nr; i++) {
		folio = cohort_pcpa_test_cache_get(test, &files, i);
		folio_mark_accessed(folio);
		folio_mark_accessed(folio);
		folio_put(folio);
	}
	lru_add_drain_all();
	for (i = 0; i < 500 && cohort_pcpa_test_inside(test, &files) < nr / 2; i++) {
		/* After a look for cold ones. */
		__cohort_pcpa_pull(cohort_area.zone->zone_pgdat, MAX_NR_ZONES - 1);
		__cohort_pcpa_pull(cohort_area.zone->zone_pgdat, MAX_NR_ZONES - 1);
		msleep(20);
	}
	KUNIT_EXPECT_GE(test, cohort_pcpa_test_inside(test, &files), nr / 2);
	cohort_pcpa_test_cache_end(&files);
	cohort_pcpa_test_end(test);
}

/* What one client announces comes on top of another's, though room for that has been made. */
static void cohort_pcpa_test_two_announced(struct kunit *test)
{
	struct cohort_pcpa_test_cache cache;
	unsigned long want;
	unsigned int i;

	cohort_pcpa_test_full_begin(test, &cache);
	WRITE_ONCE(cohort_pcpa_timer_ms, LONG_TURN_MS);
	for (want = 512; want <= 1024; want += 512) {
		cohort_pcpa_announce(512);
		for (i = 0; i < 500 && cohort_pcpa_test_look().free < want; i++)
			msleep(20);
		KUNIT_EXPECT_GE(test, cohort_pcpa_test_look().free, want);
	}
	cohort_pcpa_test_full_end(test, &cache);
}

/* A file system that takes its time for each page, and looks which users the area serves. */
static bool cohort_pcpa_test_release_slowly(struct folio *folio, gfp_t gfp)
{
	folio_detach_private(folio);
	mdelay(4);
	cohort_pcpa_test_tries++;
	cohort_pcpa_test_in_vain += cohort_pcpa_state() == COHORT_PCACHE_ONLY;
	return true;
}

static const struct address_space_operations cohort_pcpa_test_slow_aops = {
	.release_folio = cohort_pcpa_test_release_slowly,
};

/* So few that no other thread helps. */
#define TURN_PAGES	960UL
#define TURN_TIMER_MS	30

/* Room for so many pages, and for as many more. */
static void cohort_pcpa_test_asked(struct kunit *test)
{
	cohort_pcpa_want(0);
	KUNIT_EXPECT_GE(test, cohort_quick_reclaim(TURN_PAGES, 4), TURN_PAGES);
	KUNIT_EXPECT_GE(test, cohort_quick_reclaim(2 * TURN_PAGES, 4), 2 * TURN_PAGES);
}

/* The same, where what the first one announced is over when the second one does. */
static void cohort_pcpa_test_announced(struct kunit *test)
{
	unsigned long want;
	unsigned int i;

	for (want = TURN_PAGES; want <= 2 * TURN_PAGES; want += TURN_PAGES) {
		cohort_pcpa_announce(want);
		for (i = 0; i < 500 && cohort_pcpa_test_look().free < want; i++)
			msleep(20);
		KUNIT_EXPECT_GE(test, cohort_pcpa_test_look().free, want);
		msleep(10 * TURN_TIMER_MS);
	}
}

/* While room is made, slowly, the area does not go back to files. */
static void cohort_pcpa_test_turn(struct kunit *test, void (*make)(struct kunit *test))
{
	const struct address_space_operations *aops;
	struct cohort_pcpa_test_cache cache;
	unsigned long i;

	cohort_pcpa_test_full_begin(test, &cache);
	for (i = 0; i < AREA_PAGES; i += 16) {
		struct folio *folio = cohort_pcpa_test_cache_get(test, &cache, i);

		folio_attach_private(folio, test);
		folio_put(folio);
	}
	aops = cache.inode->i_mapping->a_ops;
	cache.inode->i_mapping->a_ops = &cohort_pcpa_test_slow_aops;
	cohort_pcpa_test_tries = 0;
	cohort_pcpa_test_in_vain = 0;
	WRITE_ONCE(cohort_pcpa_timer_ms, TURN_TIMER_MS);
	make(test);
	KUNIT_EXPECT_GE(test, cohort_pcpa_test_tries, (unsigned int)(2 * TURN_PAGES / 16));
	/* A busy host makes some of them late. */
	KUNIT_EXPECT_LT(test, 2 * cohort_pcpa_test_in_vain, cohort_pcpa_test_tries);
	cohort_quick_reclaim(AREA_PAGES, 0);
	cache.inode->i_mapping->a_ops = aops;
	cohort_pcpa_test_full_end(test, &cache);
}

/* Nor for pieces that need not be contiguous. */
static void cohort_pcpa_test_scattered_turn(struct kunit *test)
{
	cohort_pcpa_test_turn(test, cohort_pcpa_test_asked);
}

static void cohort_pcpa_test_announced_turn(struct kunit *test)
{
	cohort_pcpa_test_turn(test, cohort_pcpa_test_announced);
}

/* Pages around one that a user holds are dropped only where they make a piece of the order. */
static void cohort_pcpa_test_held_in_each(struct kunit *test)
{
	struct folio *held[AREA_PAGES / COHORT_CHUNK];
	struct cohort_pcpa_test_cache cache;
	unsigned long i, nr = 0;

	cohort_pcpa_test_full_begin(test, &cache);
	for (i = 0; i < AREA_PAGES; i++) {
		struct folio *folio = cohort_pcpa_test_cache_get(test, &cache, i);

		if (folio_pfn(folio) % COHORT_CHUNK == 0 && nr < ARRAY_SIZE(held))
			held[nr++] = folio;
		else
			folio_put(folio);
	}
	KUNIT_EXPECT_EQ(test, nr, ARRAY_SIZE(held));
	WRITE_ONCE(cohort_pcpa_timer_ms, LONG_TURN_MS);
	cohort_pcpa_want(0);
	KUNIT_EXPECT_EQ(test, cohort_quick_reclaim(COHORT_CHUNK, COHORT_CHUNK_ORDER), 0UL);
	KUNIT_EXPECT_EQ(test, cache.inode->i_mapping->nrpages, AREA_PAGES);
	/* What was in vain is not tried again at once; but smaller pieces are there. */
	KUNIT_EXPECT_GE(test, cohort_quick_reclaim(COHORT_CHUNK, 4), COHORT_CHUNK);
	while (nr)
		folio_put(held[--nr]);
	cohort_pcpa_test_full_end(test, &cache);
}

struct page *cohort_pcpa_test_last_look(gfp_t gfp, unsigned int order, unsigned int alloc_flags)
{
	struct alloc_context ac;

	cohort_test_context(&ac, gfp);
	return __cohort_pcpa_rmqueue(gfp, order, ALLOC_WMARK_MIN | ALLOC_CPUSET | alloc_flags, &ac,
				     true);
}

/* After a page before a kill the next ones are there before reclaim, for a moment. */
static void cohort_pcpa_test_hopeless(struct kunit *test)
{
	struct page *page, *next;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	/* Longer than what another test has left. */
	schedule_timeout_uninterruptible(HZ / 5);
	KUNIT_EXPECT_NULL_MSG(test, cohort_pcpa_test_last_look(GFP_KERNEL, 0, 0),
			      "it may reclaim");
	page = cohort_pcpa_test_last_look(GFP_KERNEL, 0, COHORT_ALLOC_LAST);
	KUNIT_ASSERT_NOT_NULL(test, page);
	next = cohort_pcpa_test_last_look(GFP_KERNEL, 0, 0);
	KUNIT_EXPECT_NOT_NULL_MSG(test, next, "it would try in vain what the first one did");
	KUNIT_EXPECT_NULL_MSG(test,
			      cohort_pcpa_test_last_look(GFP_KERNEL | __GFP_NORETRY, 0, 0),
			      "it can do without");
	if (next)
		__free_page(next);
	__free_page(page);
	schedule_timeout_uninterruptible(HZ / 5);
	KUNIT_EXPECT_NULL_MSG(test, cohort_pcpa_test_last_look(GFP_KERNEL, 0, 0),
			      "it was long ago");
	cohort_pcpa_test_end(test);
}

static struct kunit_case cohort_pcpa_wait_test_cases[] = {
	KUNIT_CASE(cohort_pcpa_test_locked),
	KUNIT_CASE_SLOW(cohort_pcpa_test_beside_size),
	KUNIT_CASE_SLOW(cohort_pcpa_test_hopeless),
	KUNIT_CASE_SLOW(cohort_pcpa_test_own_time),
	KUNIT_CASE(cohort_pcpa_test_own_turn),
	KUNIT_CASE(cohort_pcpa_test_loan_leaves),
	KUNIT_CASE(cohort_pcpa_test_balloon),
	KUNIT_CASE(cohort_pcpa_test_pulled_late),
	KUNIT_CASE_SLOW(cohort_pcpa_test_pulled),
	KUNIT_CASE_SLOW(cohort_pcpa_test_pulled_in_use),
	KUNIT_CASE_SLOW(cohort_pcpa_test_two_announced),
	KUNIT_CASE(cohort_pcpa_test_scattered_turn),
	KUNIT_CASE_SLOW(cohort_pcpa_test_announced_turn),
	KUNIT_CASE(cohort_pcpa_test_held_in_each),
	{}
};

static struct kunit_suite cohort_pcpa_wait_test_suite = {
	.name = "cohort_pcpa_wait",
	.test_cases = cohort_pcpa_wait_test_cases,
};
kunit_test_suite(cohort_pcpa_wait_test_suite);
