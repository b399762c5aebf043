// SPDX-License-Identifier: GPL-2.0
/*
 * The page-cache-preferred area: its arithmetic, and a small area on the
 * machine's own memory with a file's pages in it.
 */
#include <kunit/test.h>
#include <linux/anon_inodes.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sizes.h>
#include <linux/swap.h>

#include "../../internal.h"
#include "../cohort.h"
#include "../filemap.h"
#include "../pcpa.h"

#define AREA_PAGES	(4 * pageblock_nr_pages)
#define BLOCK_BYTES	((u64)pageblock_nr_pages << PAGE_SHIFT)

static const struct file_operations no_fops = {};

/* A file with nothing but a page cache. */
struct cache {
	struct file *file;
	struct inode *inode;
	unsigned long nr;
};

/* A turn that outlasts what a busy host does to the case that looks at it. */
#define LONG_TURN_MS	2000

static u64 size_before;
static unsigned int timer_before;

static struct cohort_pcpa_sizes look(void)
{
	struct cohort_pcpa_sizes sizes;

	cohort_pcpa_sizes(&sizes);
	return sizes;
}

static int area_begin(struct kunit *test)
{
	size_before = (u64)look().size << PAGE_SHIFT;
	timer_before = cohort_pcpa_timer_ms;
	if (cohort_pcpa_resize(0, COHORT_ANY_BASE))
		return -EBUSY;
	return cohort_pcpa_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE);
}

/* Also the end of a client's turn: the timer is not what is tested here. */
static void area_settle(void)
{
	unsigned int i;

	for (i = 0; i < 500 && cohort_pcpa_state() != COHORT_PCACHE_ONLY; i++)
		msleep(20);
}

static void area_end(struct kunit *test)
{
	area_settle();
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(0, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(size_before, COHORT_ANY_BASE), 0);
	WRITE_ONCE(cohort_pcpa_timer_ms, timer_before);
}

static void cache_begin(struct kunit *test, struct cache *cache)
{
	cache->nr = 0;
	cache->file = anon_inode_getfile("cohort_pcpa_test", &no_fops, NULL, O_RDONLY);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cache->file));
	cache->inode = new_inode(file_inode(cache->file)->i_sb);
	KUNIT_ASSERT_NOT_NULL(test, cache->inode);
	cache->inode->i_mode = S_IFREG | 0600;
	mapping_set_gfp_mask(cache->inode->i_mapping, GFP_HIGHUSER_MOVABLE);
}

static void cache_end(struct cache *cache)
{
	clear_nlink(cache->inode);
	iput(cache->inode);
	fput(cache->file);
}

static void cache_add(struct kunit *test, struct cache *cache)
{
	struct address_space *mapping = cache->inode->i_mapping;
	struct folio *folio = cohort_filemap_alloc(mapping, GFP_HIGHUSER_MOVABLE, 0);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_ASSERT_EQ(test, filemap_add_folio(mapping, folio, cache->nr++, GFP_KERNEL), 0);
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	folio_put(folio);
}

static void cache_fill(struct kunit *test, struct cache *cache)
{
	while (look().free)
		cache_add(test, cache);
	lru_add_drain_all();
}

/* An area full of page cache. */
static void full_begin(struct kunit *test, struct cache *cache)
{
	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	cache_begin(test, cache);
	cache_fill(test, cache);
}

static void full_end(struct kunit *test, struct cache *cache)
{
	cache_end(cache);
	area_end(test);
}

static struct folio *cache_get(struct kunit *test, struct cache *cache, unsigned long i)
{
	struct folio *folio = filemap_get_folio(cache->inode->i_mapping, i);

	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	return folio;
}

/* arithmetic */

static void cohort_pcpa_test_state(struct kunit *test)
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

static void cohort_pcpa_test_join(struct kunit *test)
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

static void cohort_pcpa_test_refused(struct kunit *test)
{
	u64 memory = PFN_PHYS((u64)totalram_pages());

	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(ALIGN(memory, BLOCK_BYTES), COHORT_ANY_BASE),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(BLOCK_BYTES + PAGE_SIZE, COHORT_ANY_BASE), -EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(BLOCK_BYTES, BLOCK_BYTES / 2), -EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(ALIGN_DOWN(memory - 1, BLOCK_BYTES),
						 COHORT_ANY_BASE), -ENOMEM);
	KUNIT_EXPECT_EQ(test, look().size, 0UL);
}

/* an area */

static void cohort_pcpa_test_resize(struct kunit *test)
{
	struct cohort_pcpa_sizes sizes;
	unsigned long parked = global_zone_page_state(NR_COHORT_FREE);

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	sizes = look();
	KUNIT_EXPECT_EQ(test, sizes.size, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, sizes.free, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_EQ(test, look().base, sizes.base);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(2 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES / 2);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(8 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_EQ(test, look().size, 2 * AREA_PAGES);
	KUNIT_EXPECT_EQ(test, look().other, 0UL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(4 * BLOCK_BYTES, (look().base + 512) << PAGE_SHIFT),
			-EINVAL);
	area_end(test);
	KUNIT_EXPECT_LE(test, global_zone_page_state(NR_COHORT_FREE), parked + 256);
}

/* A piece that was split comes back a page at a time, from its middle. */
static void cohort_pcpa_test_partial_free(struct kunit *test)
{
	struct page *page;
	unsigned long i;

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	cohort_pcpa_want();
	page = cohort_pcpa_piece(GFP_KERNEL, 8);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, page_to_pfn(page) % 256, 0UL);
	KUNIT_EXPECT_EQ(test, look().client, 256UL);
	split_page(page, 8);
	for (i = 100; i < 132; i++)
		__free_page(page + i);
	KUNIT_EXPECT_EQ(test, look().client, 224UL);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES - 224);
	__free_pages(page + 255, 0);
	for (i = 0; i < 255; i++)
		if (i < 100 || i >= 132)
			__free_page(page + i);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES);
	page = cohort_pcpa_piece(GFP_KERNEL | __GFP_COMP, 9);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, look().client, 512UL);
	__free_pages(page, 9);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES);
	area_end(test);
}

/* A page that was lent for writing is the page cache's once it is clean. */
static void cohort_pcpa_test_settle(struct kunit *test)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	page = cohort_area_take(0, COHORT_USE_LENT, NULL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_TRUE(test, cohort_area_prep(page, 0, GFP_KERNEL, 0));
	KUNIT_EXPECT_EQ(test, look().lent, 1UL);
	cohort_area_settle(page_to_pfn(page));
	cohort_area_settle(page_to_pfn(page));
	KUNIT_EXPECT_EQ(test, look().lent, 0UL);
	KUNIT_EXPECT_EQ(test, look().cache, 1UL);
	__free_page(page);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES);
	area_end(test);
}

/* Switched off, whoever has pages keeps them; they are ordinary when freed. */
static void cohort_pcpa_test_off_in_use(struct kunit *test)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	page = cohort_pcpa_piece(GFP_KERNEL | __GFP_COMP, 4);
	KUNIT_ASSERT_NOT_NULL(test, page);
	area_end(test);
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	__free_pages(page, 4);
}

static void cohort_pcpa_test_reclaim_stops(struct kunit *test)
{
	struct cache cache;
	unsigned long room;

	full_begin(test, &cache);
	KUNIT_EXPECT_EQ(test, look().cache, AREA_PAGES);
	cohort_pcpa_want();
	room = cohort_quick_reclaim(256, 4);
	KUNIT_EXPECT_GE(test, room, 256UL);
	KUNIT_EXPECT_LE(test, look().free, 1024UL);
	room = cohort_quick_reclaim(AREA_PAGES, 4);
	KUNIT_EXPECT_EQ(test, room, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cache.inode->i_mapping->nrpages, 0UL);
	full_end(test, &cache);
}

/* Spared while the area has free pages and others have cold ones, and no client has come. */
static void cohort_pcpa_test_suffices(struct kunit *test)
{
	struct cache cache, others;
	unsigned long base, i;

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	base = look().base;
	cache_begin(test, &others);
	cache_fill(test, &others);
	/* Twice what it takes: counters lag, and what tidies moves some of them in. */
	for (i = 0; i < 2 * AREA_PAGES; i++)
		cache_add(test, &others);
	lru_add_drain_all();
	KUNIT_EXPECT_FALSE_MSG(test, __cohort_pcpa_suffices(base), "nothing is free");
	invalidate_mapping_pages(others.inode->i_mapping, 0, AREA_PAGES - 1);
	KUNIT_EXPECT_TRUE(test, __cohort_pcpa_suffices(base));
	KUNIT_EXPECT_TRUE(test, __cohort_pcpa_suffices(base + AREA_PAGES - 1));
	KUNIT_EXPECT_FALSE(test, __cohort_pcpa_suffices(base + AREA_PAGES));
	WRITE_ONCE(cohort_pcpa_timer_ms, LONG_TURN_MS);
	cohort_pcpa_want();
	KUNIT_EXPECT_FALSE_MSG(test, __cohort_pcpa_suffices(base), "a client has come");
	area_settle();
	cache_begin(test, &cache);
	cache_fill(test, &cache);
	KUNIT_EXPECT_FALSE_MSG(test, __cohort_pcpa_suffices(base), "nothing is free");
	cache_end(&others);
	full_end(test, &cache);
}

/* Room is there before the client is; if none comes the page cache is back. */
static void cohort_pcpa_test_announced(struct kunit *test)
{
	struct cache cache;
	unsigned int i;

	full_begin(test, &cache);
	KUNIT_EXPECT_EQ(test, look().free, 0UL);
	WRITE_ONCE(cohort_pcpa_timer_ms, LONG_TURN_MS);
	cohort_pcpa_announce(1024);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_state(), COHORT_ANON_ALLOC);
	for (i = 0; i < 500 && look().free < 1024; i++)
		msleep(20);
	KUNIT_EXPECT_GE(test, look().free, 1024UL);
	KUNIT_EXPECT_LE(test, look().free, 1024UL + 2 * COHORT_CHUNK);
	KUNIT_EXPECT_EQ(test, look().client, 0UL);
	area_settle();
	KUNIT_EXPECT_EQ(test, cohort_pcpa_state(), COHORT_PCACHE_ONLY);
	cache_fill(test, &cache);
	KUNIT_EXPECT_EQ(test, look().free, 0UL);
	full_end(test, &cache);
}

/* Dirty, locked and referenced pages stay, whole and where they are. */
static void cohort_pcpa_test_reclaim_spares(struct kunit *test)
{
	struct folio *dirty, *locked, *held;
	struct cache cache;

	full_begin(test, &cache);
	dirty = cache_get(test, &cache, 10);
	locked = cache_get(test, &cache, 20);
	held = cache_get(test, &cache, 30);
	folio_set_dirty(dirty);
	folio_lock(locked);
	cohort_pcpa_want();
	cohort_quick_reclaim(AREA_PAGES, 0);
	KUNIT_EXPECT_EQ(test, cache.inode->i_mapping->nrpages, 3UL);
	KUNIT_EXPECT_PTR_EQ(test, folio_mapping(held), cache.inode->i_mapping);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES - 3);
	folio_clear_dirty(dirty);
	folio_unlock(locked);
	folio_put(dirty);
	folio_put(locked);
	folio_put(held);
	full_end(test, &cache);
}

static void cohort_pcpa_test_contiguous(struct kunit *test)
{
	unsigned long half = AREA_PAGES / 2;
	struct page *one, *two, *three;
	struct cache cache;

	full_begin(test, &cache);
	one = cohort_pcpa_alloc(half, GFP_KERNEL);
	two = cohort_pcpa_alloc(half, GFP_KERNEL);
	three = cohort_pcpa_alloc(1, GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(one));
	KUNIT_ASSERT_FALSE(test, IS_ERR(two));
	KUNIT_EXPECT_EQ(test, PTR_ERR(three), -ENOMEM);
	KUNIT_EXPECT_EQ(test, page_count(one + half - 1), 1);
	KUNIT_EXPECT_EQ(test, look().client, AREA_PAGES);
	cohort_pcpa_free(one, half);
	cohort_pcpa_free(two, half);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES);
	full_end(test, &cache);
}

/* A page that somebody holds: another place if there is one, else an error in time. */
static void cohort_pcpa_test_busy(struct kunit *test)
{
	unsigned long start;
	struct folio *held;
	struct page *page;
	struct cache cache;

	full_begin(test, &cache);
	held = cache_get(test, &cache, cache.nr / 8);
	page = cohort_pcpa_alloc(AREA_PAGES / 2, GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(page));
	cohort_pcpa_free(page, AREA_PAGES / 2);
	start = jiffies;
	page = cohort_pcpa_alloc(AREA_PAGES, GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(page), -EBUSY);
	KUNIT_EXPECT_LE(test, jiffies_to_msecs(jiffies - start), 2 * COHORT_CONTIG_MS);
	KUNIT_EXPECT_EQ(test, look().client, 0UL);
	folio_put(held);
	page = cohort_pcpa_alloc(AREA_PAGES, GFP_KERNEL);
	KUNIT_EXPECT_FALSE(test, IS_ERR(page));
	if (!IS_ERR(page))
		cohort_pcpa_free(page, AREA_PAGES);
	full_end(test, &cache);
}

/* The timer, on the machine's own clock. */
static void cohort_pcpa_test_timer(struct kunit *test)
{
	struct page *page;
	unsigned long start;

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	WRITE_ONCE(cohort_pcpa_timer_ms, 200);
	start = jiffies;
	cohort_pcpa_want();
	page = cohort_pcpa_piece(GFP_KERNEL | __GFP_COMP, 4);
	KUNIT_ASSERT_NOT_NULL(test, page);
	area_settle();
	KUNIT_EXPECT_EQ(test, cohort_pcpa_state(), COHORT_PCACHE_ONLY);
	/* Two turns: in the first a client got something. */
	KUNIT_EXPECT_GE(test, jiffies_to_msecs(jiffies - start), 380);
	__free_pages(page, 4);
	area_end(test);
}

/* Before a process is killed the area's free pages are everybody's; later they come back. */
static void cohort_pcpa_test_given(struct kunit *test)
{
	unsigned int i;

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	KUNIT_EXPECT_EQ(test, cohort_give_back(NULL, COHORT_GIVE_BACKGROUND), 0UL);
	/* The worker may have a batch of them in its hands, or fetch one already. */
	KUNIT_EXPECT_GT(test, cohort_give_back(NULL, COHORT_GIVE_ALL), AREA_PAGES / 2);
	KUNIT_EXPECT_LE(test, look().free, AREA_PAGES / 2);
	/* Frames are the area's again a moment before their pages are free. */
	for (i = 0; i < 500 && look().free != AREA_PAGES; i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES);
	area_end(test);
}

static struct kunit_case cohort_pcpa_test_cases[] = {
	KUNIT_CASE(cohort_pcpa_test_state),
	KUNIT_CASE(cohort_pcpa_test_join),
	KUNIT_CASE(cohort_pcpa_test_refused),
	KUNIT_CASE(cohort_pcpa_test_resize),
	KUNIT_CASE(cohort_pcpa_test_partial_free),
	KUNIT_CASE(cohort_pcpa_test_settle),
	KUNIT_CASE(cohort_pcpa_test_off_in_use),
	KUNIT_CASE(cohort_pcpa_test_reclaim_stops),
	KUNIT_CASE(cohort_pcpa_test_reclaim_spares),
	KUNIT_CASE(cohort_pcpa_test_contiguous),
	KUNIT_CASE(cohort_pcpa_test_busy),
	KUNIT_CASE_SLOW(cohort_pcpa_test_suffices),
	KUNIT_CASE_SLOW(cohort_pcpa_test_announced),
	KUNIT_CASE_SLOW(cohort_pcpa_test_timer),
	KUNIT_CASE_SLOW(cohort_pcpa_test_given),
	{}
};

static struct kunit_suite cohort_pcpa_test_suite = {
	.name = "cohort_pcpa",
	.test_cases = cohort_pcpa_test_cases,
};
kunit_test_suite(cohort_pcpa_test_suite);
