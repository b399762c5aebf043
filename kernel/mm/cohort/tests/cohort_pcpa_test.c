// SPDX-License-Identifier: GPL-2.0
/*
 * The page-cache-preferred area: a small one on the machine's own memory, with a
 * file's pages in it.
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
#include "../host/filemap.h"
#include "../pcpa/pcpa.h"
#include "../vnode/vnode.h"
#include "cohort_test.h"

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

/* With what CPUs have at hand. */
static struct cohort_pcpa_sizes look(void)
{
	struct cohort_pcpa_sizes sizes;

	if (cohort_area.zone)
		cohort_fixed_drain(cohort_area.zone);
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
	page = cohort_area_take(0, COHORT_USE_LENT);
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

/* Switched off, pages in use stay where they are; they are ordinary when freed. */
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

/* A page with a reference more: another place if there is one, else an error in time. */
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

/* as blocks */

static bool whole_chunk(unsigned long pfn)
{
	struct page *page = pfn_to_page(pfn);

	return PageBuddy(page) && buddy_order(page) == COHORT_CHUNK_ORDER &&
	       cohort_page_parked(page);
}

/* Free pages look free to every observer, and reserved. */
static void cohort_pcpa_test_visible(struct kunit *test)
{
	unsigned long pfn, wrong = 0;
	struct zone *zone;

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES);
	zone = cohort_area.zone;
	for (pfn = look().base; pfn < look().base + AREA_PAGES; pfn += COHORT_CHUNK)
		wrong += !whole_chunk(pfn);
	KUNIT_EXPECT_EQ(test, wrong, 0UL);
	KUNIT_EXPECT_EQ(test, zone->cohort_reserved, AREA_PAGES);
	KUNIT_EXPECT_GE(test, zone_page_state_snapshot(zone, NR_FREE_PAGES), AREA_PAGES);
	KUNIT_EXPECT_GE(test, cohort_unusable_free(zone), AREA_PAGES);
	area_end(test);
	KUNIT_EXPECT_EQ(test, zone->cohort_reserved, size_before >> PAGE_SHIFT);
}

/* A loan of a virtual node that a migration has brought here ends with the page. */
static void cohort_pcpa_test_lent_once(struct kunit *test)
{
#ifdef CONFIG_COHORT_VNODE
	struct page *page;
	unsigned long *map, pfn;

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	mutex_lock(&cohort_mutex);
	KUNIT_EXPECT_EQ(test, cohort_table_lend(cohort_vnode_returned), 0);
	mutex_unlock(&cohort_mutex);
	cohort_owner_switch(&cohort_lend_key, true);
	page = cohort_area_take_cache();
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_TRUE(test, cohort_area_prep(page, 0, GFP_KERNEL, 0));
	pfn = page_to_pfn(page);
	map = cohort_lent_map(pfn);
	KUNIT_ASSERT_NOT_NULL(test, map);
	set_bit(cohort_span_bit(pfn), map);
	KUNIT_EXPECT_EQ(test, cohort_lent_next(pfn - 1, pfn + 1), pfn);
	__free_page(page);
	KUNIT_EXPECT_FALSE(test, test_bit(cohort_span_bit(pfn), map));
	area_end(test);
#else
	kunit_skip(test, "no virtual nodes");
#endif
}

/* One frame is bad: the others of its piece are the area's as before. */
static void cohort_pcpa_test_poisoned(struct kunit *test)
{
	struct page *page;
	unsigned long i;

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	cohort_pcpa_want();
	page = cohort_pcpa_piece(GFP_KERNEL, 4);
	KUNIT_ASSERT_NOT_NULL(test, page);
	cohort_dissolve_range(page_to_pfn(page) + 5, page_to_pfn(page) + 6);
	SetPageHWPoison(page + 5);
	split_page(page, 4);
	for (i = 0; i < 16; i++)
		__free_page(page + i);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES - 1);
	KUNIT_EXPECT_EQ(test, look().size, AREA_PAGES);
	ClearPageHWPoison(page + 5);
	cohort_buddy_give(page + 5, 0);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, look().client, 0UL);
	area_end(test);
}

/* Memory that goes offline takes its chunks along; the others serve on. */
static void cohort_pcpa_test_lost(struct kunit *test)
{
	unsigned long base, half = AREA_PAGES / 2;
	struct cache cache;
	struct page *page;

	full_begin(test, &cache);
	base = look().base;
	cohort_fixed_leave(base, base + pageblock_nr_pages);
	KUNIT_EXPECT_EQ(test, look().other, pageblock_nr_pages);
	KUNIT_EXPECT_EQ(test, look().cache, AREA_PAGES - pageblock_nr_pages);
	KUNIT_EXPECT_FALSE(test, __cohort_pcpa_transient(base));
	page = cohort_pcpa_alloc(AREA_PAGES, GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(page), -ENOMEM);
	page = cohort_pcpa_alloc(half, GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(page));
	cohort_pcpa_free(page, half);
	cohort_quick_reclaim(AREA_PAGES, 4);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES - pageblock_nr_pages);
	full_end(test, &cache);
}

/* A search for contiguous memory finds other memory. */
static void cohort_pcpa_test_beside(struct kunit *test)
{
	unsigned long base, nr = cohort_area_align(), at, i;

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	base = look().base;
	KUNIT_EXPECT_EQ(test, cohort_frames_find(NUMA_NO_NODE, nr, base), 0UL);
	at = cohort_frames_find(NUMA_NO_NODE, nr, 0);
	KUNIT_EXPECT_TRUE(test, at && (at + nr <= base || at >= base + AREA_PAGES));
	for (i = 0; at && i < nr; i++)
		__free_page(pfn_to_page(at + i));
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, look().other, 0UL);
	area_end(test);
}

static unsigned long give_all(struct list_head *list, const struct alloc_context *ac)
{
	unsigned long nr = 0;
	struct page *page;

	while ((page = __cohort_pcpa_rmqueue(GFP_NOWAIT, 0, 0, ac, true))) {
		list_add(&page->lru, list);
		nr++;
	}
	return nr;
}

/* Requests that would fail get a part, none under a client, none that may not be there. */
static void cohort_pcpa_test_given(struct kunit *test)
{
	nodemask_t none = NODE_MASK_NONE;
	struct alloc_context ac;
	struct page *page, *next;
	LIST_HEAD(list);

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	cohort_test_context(&ac, GFP_NOWAIT);
	ac.nodemask = &none;
	KUNIT_EXPECT_EQ(test, give_all(&list, &ac), 0UL);
	ac.nodemask = NULL;
	KUNIT_EXPECT_EQ(test, give_all(&list, &ac), AREA_PAGES / 4);
	KUNIT_EXPECT_EQ(test, look().other, AREA_PAGES / 4);
	KUNIT_EXPECT_EQ(test, look().cache, 0UL);
	list_for_each_entry_safe(page, next, &list, lru)
		__free_page(page);
	INIT_LIST_HEAD(&list);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, look().other, 0UL);
	WRITE_ONCE(cohort_pcpa_timer_ms, LONG_TURN_MS);
	cohort_pcpa_want();
	KUNIT_EXPECT_EQ(test, give_all(&list, &ac), 0UL);
	area_end(test);
}

/* A window from the middle of one chunk to that of another. */
static void cohort_pcpa_test_window(struct kunit *test)
{
	unsigned long start, nr = 300, i;
	struct page *page;

	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	cohort_pcpa_want();
	start = look().base + 112;
	KUNIT_ASSERT_TRUE(test, cohort_area_hold(start, nr));
	KUNIT_EXPECT_EQ(test, cohort_area_held(start, nr), nr);
	KUNIT_EXPECT_EQ(test, cohort_chunk_room(look().base, 0), 0UL);
	KUNIT_EXPECT_TRUE(test, cohort_area_unhold(start, nr, true));
	KUNIT_EXPECT_EQ(test, look().client, nr);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES - nr);
	KUNIT_EXPECT_EQ(test, cohort_chunk_room(look().base, 4), 112UL);
	page = pfn_to_page(start);
	for (i = 0; i < nr; i++)
		cohort_buddy_give(page + i, 0);
	KUNIT_EXPECT_EQ(test, look().client, 0UL);
	KUNIT_EXPECT_TRUE(test, whole_chunk(look().base));
	area_end(test);
}

/* Blocks of a scheme and the area come and go in any order. */
static void cohort_pcpa_test_beside_blocks(struct kunit *test)
{
	bool was_on = static_key_enabled(&cohort_region_key);

	KUNIT_ASSERT_EQ(test, cohort_region_switch(true), 0);
	KUNIT_ASSERT_EQ(test, area_begin(test), 0);
	KUNIT_EXPECT_EQ(test, cohort_region_switch(false), 0);
	KUNIT_EXPECT_TRUE(test, cohort_enabled());
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_soft(), 0UL);
	KUNIT_ASSERT_EQ(test, cohort_region_switch(true), 0);
	KUNIT_EXPECT_EQ(test, look().free, AREA_PAGES);
	area_end(test);
	KUNIT_EXPECT_TRUE(test, cohort_enabled());
	KUNIT_EXPECT_EQ(test, cohort_region_switch(was_on), 0);
}

static struct kunit_case cohort_pcpa_test_cases[] = {
	KUNIT_CASE(cohort_pcpa_test_refused),
	KUNIT_CASE(cohort_pcpa_test_resize),
	KUNIT_CASE(cohort_pcpa_test_partial_free),
	KUNIT_CASE(cohort_pcpa_test_settle),
	KUNIT_CASE(cohort_pcpa_test_off_in_use),
	KUNIT_CASE(cohort_pcpa_test_reclaim_stops),
	KUNIT_CASE(cohort_pcpa_test_reclaim_spares),
	KUNIT_CASE(cohort_pcpa_test_contiguous),
	KUNIT_CASE(cohort_pcpa_test_busy),
	KUNIT_CASE(cohort_pcpa_test_visible),
	KUNIT_CASE(cohort_pcpa_test_lent_once),
	KUNIT_CASE(cohort_pcpa_test_poisoned),
	KUNIT_CASE(cohort_pcpa_test_lost),
	KUNIT_CASE(cohort_pcpa_test_beside),
	KUNIT_CASE(cohort_pcpa_test_window),
	KUNIT_CASE(cohort_pcpa_test_beside_blocks),
	KUNIT_CASE_SLOW(cohort_pcpa_test_given),
	KUNIT_CASE_SLOW(cohort_pcpa_test_suffices),
	KUNIT_CASE_SLOW(cohort_pcpa_test_announced),
	KUNIT_CASE_SLOW(cohort_pcpa_test_timer),
	{}
};

static struct kunit_suite cohort_pcpa_test_suite = {
	.name = "cohort_pcpa",
	.test_cases = cohort_pcpa_test_cases,
};
kunit_test_suite(cohort_pcpa_test_suite);
