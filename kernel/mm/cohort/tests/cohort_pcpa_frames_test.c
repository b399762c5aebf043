// SPDX-License-Identifier: GPL-2.0
/*
 * The frames of the page-cache-preferred area: making it, changing its size, how they look
 * to others, and what becomes of it when some are lost or go bad.
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/memory.h>
#include <linux/mman.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/page-isolation.h>
#include <linux/pagemap.h>
#include <linux/swap.h>

#include "cohort_pcpa_test.h"

static void cohort_pcpa_test_refused(struct kunit *test)
{
	u64 memory = PFN_PHYS((u64)totalram_pages());

	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(ALIGN(memory, BLOCK_BYTES), COHORT_ANY_BASE),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(BLOCK_BYTES + PAGE_SIZE, COHORT_ANY_BASE), -EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(BLOCK_BYTES, BLOCK_BYTES / 2), -EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(ALIGN_DOWN(memory - 1, BLOCK_BYTES),
						 COHORT_ANY_BASE), -ENOMEM);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().size, 0UL);
}

static void cohort_pcpa_test_resize(struct kunit *test)
{
	struct cohort_pcpa_sizes sizes;
	unsigned long base;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	sizes = cohort_pcpa_test_look();
	KUNIT_EXPECT_EQ(test, sizes.size, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, sizes.free, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().base, sizes.base);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(2 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES / 2);
	base = cohort_pcpa_test_look().base;
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(4 * BLOCK_BYTES, PFN_PHYS(base)), 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().size, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().base, base);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(8 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().size, 2 * AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().other, 0UL);
	base = cohort_pcpa_test_look().base;
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(4 * BLOCK_BYTES, PFN_PHYS(base + 512)), -EINVAL);
	cohort_pcpa_test_end(test);
}

/* Switched off, pages in use stay where they are; they are ordinary when freed. */
static void cohort_pcpa_test_off_in_use(struct kunit *test)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	page = cohort_pcpa_piece(GFP_KERNEL | __GFP_COMP, 4);
	KUNIT_ASSERT_NOT_NULL(test, page);
	cohort_pcpa_test_end(test);
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	__free_pages(page, 4);
}

static bool cohort_pcpa_test_whole_chunk(unsigned long pfn)
{
	struct page *page = pfn_to_page(pfn);

	return PageBuddy(page) && buddy_order(page) == COHORT_CHUNK_ORDER &&
	       cohort_page_parked(page);
}

/* Free pages look free to every observer, and reserved. */
static void cohort_pcpa_test_visible(struct kunit *test)
{
	unsigned long base, pfn, wrong = 0;
	struct zone *zone;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	zone = cohort_area.zone;
	base = cohort_pcpa_test_look().base;
	for (pfn = base; pfn < base + AREA_PAGES; pfn += COHORT_CHUNK)
		wrong += !cohort_pcpa_test_whole_chunk(pfn);
	KUNIT_EXPECT_EQ(test, wrong, 0UL);
	KUNIT_EXPECT_EQ(test, zone->cohort_reserved, AREA_PAGES);
	KUNIT_EXPECT_GE(test, zone_page_state_snapshot(zone, NR_FREE_PAGES), AREA_PAGES);
	KUNIT_EXPECT_GE(test, cohort_unusable_free(zone), AREA_PAGES);
	cohort_pcpa_test_end(test);
	KUNIT_EXPECT_EQ(test, zone->cohort_reserved, cohort_pcpa_test_look().free);
}

/* One frame is bad: the others of its piece are the area's as before. */
static void cohort_pcpa_test_poisoned(struct kunit *test)
{
	struct page *page;
	unsigned long i;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_want(0);
	page = cohort_pcpa_piece(GFP_KERNEL, 4);
	KUNIT_ASSERT_NOT_NULL(test, page);
	cohort_dissolve_range(page_to_pfn(page) + 5, page_to_pfn(page) + 6);
	SetPageHWPoison(page + 5);
	split_page(page, 4);
	for (i = 0; i < 16; i++)
		__free_page(page + i);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES - 1);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().size, AREA_PAGES);
	ClearPageHWPoison(page + 5);
	cohort_buddy_give(page + 5, 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().client, 0UL);
	cohort_pcpa_test_end(test);
}

/* One turns out bad when it is taken: it is no user's, and the others are free again. */
static void cohort_pcpa_test_bad(struct kunit *test)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_want(0);
	page = cohort_area_take(4, COHORT_USE_CLIENT);
	KUNIT_ASSERT_NOT_NULL(test, page);
	SetPageHWPoison(page + 5);
	KUNIT_EXPECT_FALSE(test, cohort_area_prep(page, 4, GFP_KERNEL, 0));
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().client, 0UL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES - 1);
	KUNIT_EXPECT_FALSE(test, PageBuddy(page + 5));
	ClearPageHWPoison(page + 5);
	cohort_buddy_give(page + 5, 0);

	page = cohort_area_take(0, COHORT_USE_LENT);
	KUNIT_ASSERT_NOT_NULL(test, page);
	SetPageHWPoison(page);
	KUNIT_EXPECT_FALSE(test, cohort_area_prep(page, 0, GFP_KERNEL, 0));
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().lent, 0UL);
	ClearPageHWPoison(page);
	cohort_buddy_give(page, 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	cohort_pcpa_test_end(test);
}

/* A frame is worn, or gone already. */
static int cohort_pcpa_test_error(unsigned long pfn, bool gone)
{
	return gone ? memory_failure(pfn, MF_SW_SIMULATED) : soft_offline_page(pfn, 0);
}

static void cohort_pcpa_test_counts(struct kunit *test, unsigned long free, unsigned long client,
				    unsigned long lent)
{
	struct cohort_pcpa_sizes sizes = cohort_pcpa_test_look();

	KUNIT_EXPECT_EQ(test, sizes.size, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, sizes.free, free);
	KUNIT_EXPECT_EQ(test, sizes.client, client);
	KUNIT_EXPECT_EQ(test, sizes.lent, lent);
	KUNIT_EXPECT_EQ(test, sizes.other, 0UL);
}

static void cohort_pcpa_test_errors_begin(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "no CONFIG_MEMORY_FAILURE");
	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
}

/* A free frame is missing, and its chunk goes on with the others. */
static void cohort_pcpa_test_free_goes_bad(struct kunit *test)
{
	unsigned long pfn;
	int gone;

	cohort_pcpa_test_errors_begin(test);
	pfn = cohort_pcpa_test_look().base + 100;
	for (gone = 0; gone < 2; gone++) {
		KUNIT_EXPECT_EQ(test, cohort_pcpa_test_error(pfn, gone), 0);
		KUNIT_EXPECT_TRUE(test, PageHWPoison(pfn_to_page(pfn)));
		cohort_pcpa_test_counts(test, AREA_PAGES - 1, 0, 0);
		KUNIT_EXPECT_EQ(test, unpoison_memory(pfn), 0);
		cohort_pcpa_test_counts(test, AREA_PAGES, 0, 0);
	}
	cohort_pcpa_test_end(test);
}

/*
 * What a client holds can neither be moved nor taken away: it stays the client's, and never
 * becomes free.  The frame counts as the client's still, and is in no other piece.
 */
static void cohort_pcpa_test_client_goes_bad(struct kunit *test)
{
	struct page *page, *half, *whole;
	unsigned long i, pfn;

	cohort_pcpa_test_errors_begin(test);
	cohort_pcpa_want(0);
	page = cohort_pcpa_piece(GFP_KERNEL, 4);
	KUNIT_ASSERT_NOT_NULL(test, page);
	split_page(page, 4);
	pfn = page_to_pfn(page) + 5;
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_error(pfn, false), -EIO);
	KUNIT_EXPECT_FALSE(test, PageHWPoison(page + 5));
	cohort_pcpa_test_counts(test, AREA_PAGES - 16, 16, 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_error(pfn, true), -EBUSY);
	KUNIT_EXPECT_TRUE(test, PageHWPoison(page + 5));
	KUNIT_EXPECT_EQ(test, page_count(page + 5), 1);
	cohort_pcpa_test_counts(test, AREA_PAGES - 16, 16, 0);
	for (i = 0; i < 16; i++)
		__free_page(page + i);
	cohort_pcpa_test_counts(test, AREA_PAGES - 1, 1, 0);
	whole = cohort_pcpa_alloc(AREA_PAGES, GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(whole), -ENOMEM);
	half = cohort_pcpa_alloc(AREA_PAGES / 2, GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(half));
	cohort_pcpa_test_counts(test, AREA_PAGES / 2 - 1, AREA_PAGES / 2 + 1, 0);
	cohort_pcpa_free(half, AREA_PAGES / 2);
	KUNIT_EXPECT_EQ(test, unpoison_memory(pfn), 0);
	cohort_buddy_give(page + 5, 0);
	cohort_pcpa_test_counts(test, AREA_PAGES, 0, 0);
	cohort_pcpa_test_end(test);
}

static const struct address_space_operations cohort_pcpa_test_aops = {
	.migrate_folio = filemap_migrate_folio,
	.error_remove_folio = generic_error_remove_folio,
};

/* A page of a file on a frame that is lent, dirty: until it is clean it stays lent. */
static unsigned long cohort_pcpa_test_lend_page(struct kunit *test,
						struct cohort_pcpa_test_cache *cache)
{
	struct page *page = cohort_area_take(0, COHORT_USE_LENT);
	struct folio *folio;

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_TRUE(test, cohort_area_prep(page, 0, GFP_HIGHUSER_MOVABLE | __GFP_COMP, 0));
	folio = page_folio(page);
	KUNIT_ASSERT_EQ(test, filemap_add_folio(cache->inode->i_mapping, folio, cache->nr++,
						GFP_KERNEL), 0);
	folio_mark_uptodate(folio);
	folio_set_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
	lru_add_drain_all();
	return page_to_pfn(page);
}

/* What tidies comes upon it within a second or two, and holds a chunk meanwhile. */
static void cohort_pcpa_test_settled(unsigned long free)
{
	struct cohort_pcpa_sizes sizes;
	unsigned int i;

	for (i = 0; i < 500; i++) {
		sizes = cohort_pcpa_test_look();
		if (!sizes.lent && sizes.free == free)
			break;
		msleep(20);
	}
}

static struct folio *cohort_pcpa_test_lent_folio(struct folio *src, unsigned long private)
{
	struct page *page = cohort_area_take(0, COHORT_USE_LENT);

	if (!page || !alloc_hooks(cohort_area_prep(page, 0, GFP_HIGHUSER_MOVABLE | __GFP_COMP, 0)))
		return NULL;
	return page_folio(page);
}

/* A page of a process that lies on a frame that is lent stays a loan when it is freed lazily. */
static void cohort_pcpa_test_lazily_freed(struct kunit *test)
{
	unsigned long addr = cohort_test_map(test, 1);
	LIST_HEAD(list);
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_test_touch(test, addr, 1);
	lru_add_drain_all();
	KUNIT_ASSERT_EQ(test, get_user_pages_fast(addr, 1, 0, &page), 1);
	KUNIT_ASSERT_TRUE(test, cohort_isolate_page(page, &list));
	put_page(page);
	KUNIT_ASSERT_EQ(test, migrate_pages(&list, cohort_pcpa_test_lent_folio, NULL, 0,
					    MIGRATE_SYNC, MR_COMPACTION, NULL), 0);
	lru_add_drain_all();
	KUNIT_ASSERT_EQ(test, do_madvise(current->mm, addr, PAGE_SIZE, MADV_FREE), 0);
	lru_add_drain_all();
	cohort_pcpa_tidy_soon();
	cohort_pcpa_test_settled(AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().lent, 0UL);
	KUNIT_EXPECT_EQ_MSG(test, cohort_pcpa_test_look().free, AREA_PAGES,
			    "it has left, and is no page of a file");
	cohort_pcpa_test_end(test);
}

/* Two chunks are free that are no neighbours: a piece of two needs others. */
static void cohort_pcpa_test_two_chunks(struct kunit *test)
{
	const gfp_t gfp = GFP_HIGHUSER | __GFP_COMP;
	unsigned int order = COHORT_CHUNK_ORDER + 1;
	struct cohort_pcpa_test_cache cache;
	struct alloc_context ac;
	struct page *page;
	unsigned long i;

	if (order > pageblock_order)
		kunit_skip(test, "no piece is larger than a chunk");
	cohort_pcpa_test_full_begin(test, &cache);
	for (i = 0; i < cache.nr; i++) {
		struct folio *folio = cohort_pcpa_test_cache_get(test, &cache, i);
		unsigned long chunk = (folio_pfn(folio) - cohort_area.base) / COHORT_CHUNK;

		folio_put(folio);
		if (chunk == 0 || chunk == 2)
			invalidate_mapping_pages(cache.inode->i_mapping, i, i);
	}
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, 2 * COHORT_CHUNK);
	cohort_test_map(test, 1);
	set_bit(COHORT_ENTITLED_BIT, &current->mm->flags);
	cohort_test_context(&ac, gfp);
	page = __cohort_pcpa_rmqueue(gfp, order, 0, &ac, false);
	KUNIT_EXPECT_NOT_NULL(test, page);
	if (page)
		__free_pages(page, order);
	clear_bit(COHORT_ENTITLED_BIT, &current->mm->flags);
	cohort_pcpa_test_full_end(test, &cache);
}

/* What lies on a frame that is lent moves away, and is lost if that is too late. */
static void cohort_pcpa_test_lent_goes_bad(struct kunit *test)
{
	struct cohort_pcpa_test_cache cache;
	unsigned long pfn;
	int gone;

	cohort_pcpa_test_errors_begin(test);
	cohort_pcpa_test_cache_begin(test, &cache);
	cache.inode->i_mapping->a_ops = &cohort_pcpa_test_aops;
	for (gone = 0; gone < 2; gone++) {
		pfn = cohort_pcpa_test_lend_page(test, &cache);
		cohort_pcpa_test_counts(test, AREA_PAGES - 1, 0, 1);
		KUNIT_EXPECT_EQ(test, cohort_pcpa_test_error(pfn, gone), 0);
		KUNIT_EXPECT_TRUE(test, PageHWPoison(pfn_to_page(pfn)));
		KUNIT_EXPECT_EQ_MSG(test, cache.inode->i_mapping->nrpages, 1UL,
				    "one has moved, the other is lost");
		cohort_pcpa_test_settled(AREA_PAGES - 1);
		cohort_pcpa_test_counts(test, AREA_PAGES - 1, 0, 0);
		KUNIT_EXPECT_EQ(test, unpoison_memory(pfn), 0);
		cohort_pcpa_test_counts(test, AREA_PAGES, 0, 0);
	}
	cohort_pcpa_test_cache_end(&cache);
	cohort_pcpa_test_end(test);
}

/* Memory that was to go offline and did not is the area's as before. */
static void cohort_pcpa_test_offline(struct kunit *test)
{
	struct memory_notify mem = { .nr_pages = pageblock_nr_pages };

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	mem.start_pfn = cohort_pcpa_test_look().base;
	cohort_memory_notify(NULL, MEM_GOING_OFFLINE, &mem);
	cohort_memory_notify(NULL, MEM_CANCEL_OFFLINE, &mem);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().other, 0UL);
	cohort_memory_notify(NULL, MEM_OFFLINE, &mem);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES - pageblock_nr_pages);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().other, pageblock_nr_pages);
	cohort_pcpa_test_end(test);
}

/* Memory that goes offline takes its chunks along; the others serve on. */
static void cohort_pcpa_test_lost(struct kunit *test)
{
	unsigned long base, half = AREA_PAGES / 2;
	struct cohort_pcpa_test_cache cache;
	struct page *page;

	cohort_pcpa_test_full_begin(test, &cache);
	base = cohort_pcpa_test_look().base;
	cohort_fixed_leave(base, base + pageblock_nr_pages);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().other, pageblock_nr_pages);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().cache, AREA_PAGES - pageblock_nr_pages);
	KUNIT_EXPECT_FALSE(test, __cohort_pcpa_transient(base));
	page = cohort_pcpa_alloc(AREA_PAGES, GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(page), -ENOMEM);
	page = cohort_pcpa_alloc(half, GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(page));
	cohort_pcpa_free(page, half);
	cohort_quick_reclaim(AREA_PAGES, 4);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES - pageblock_nr_pages);
	cohort_pcpa_test_full_end(test, &cache);
}

/* A search for contiguous memory finds other memory. */
static void cohort_pcpa_test_beside(struct kunit *test)
{
	unsigned long base, nr = cohort_area_align(), at, i;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	base = cohort_pcpa_test_look().base;
	KUNIT_EXPECT_EQ(test, cohort_frames_find(NUMA_NO_NODE, nr, base, ULONG_MAX), 0UL);
	at = cohort_frames_find(NUMA_NO_NODE, nr, 0, ULONG_MAX);
	KUNIT_EXPECT_TRUE(test, at && (at + nr <= base || at >= base + AREA_PAGES));
	for (i = 0; at && i < nr; i++)
		__free_page(pfn_to_page(at + i));
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().other, 0UL);
	cohort_pcpa_test_end(test);
}

/* A window from the middle of one chunk to that of another. */
static void cohort_pcpa_test_window(struct kunit *test)
{
	unsigned long start, nr = 300, i;
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_want(0);
	start = cohort_pcpa_test_look().base + 112;
	KUNIT_ASSERT_TRUE(test, cohort_area_hold(start, nr));
	KUNIT_EXPECT_EQ(test, cohort_area_held(start, nr), nr);
	KUNIT_EXPECT_EQ(test, cohort_chunk_room(cohort_pcpa_test_look().base, 0), 0UL);
	KUNIT_EXPECT_TRUE(test, cohort_area_unhold(start, nr, true));
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().client, nr);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES - nr);
	KUNIT_EXPECT_EQ(test, cohort_chunk_room(cohort_pcpa_test_look().base, 4), 112UL);
	page = pfn_to_page(start);
	for (i = 0; i < nr; i++)
		cohort_buddy_give(page + i, 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().client, 0UL);
	KUNIT_EXPECT_TRUE(test, cohort_pcpa_test_whole_chunk(cohort_pcpa_test_look().base));
	cohort_pcpa_test_end(test);
}

/* Whole pieces of regions as large are none of the area's: a small piece breaks no chunk. */
static void cohort_pcpa_test_broken_first(struct kunit *test)
{
	struct page *first, *second;
	unsigned long *pieces;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_want(0);
	first = cohort_pcpa_piece(GFP_KERNEL, 4);
	KUNIT_ASSERT_NOT_NULL(test, first);
	pieces = &page_zone(first)->cohort->pieces[COHORT_CHUNK_ORDER];
	*pieces += 8;
	second = cohort_pcpa_piece(GFP_KERNEL, 4);
	*pieces -= 8;
	KUNIT_EXPECT_TRUE(test, second && page_to_pfn(second) / COHORT_CHUNK ==
					  page_to_pfn(first) / COHORT_CHUNK);
	__free_pages(first, 4);
	if (second)
		__free_pages(second, 4);
	cohort_pcpa_test_end(test);
}

/* A window is claimed chunk by chunk; if the last ones are lost the others are free again. */
static void cohort_pcpa_test_window_lost(struct kunit *test)
{
	unsigned long base, lost;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_want(0);
	base = cohort_pcpa_test_look().base;
	lost = base + 2 * COHORT_CHUNK;
	KUNIT_ASSERT_TRUE(test, cohort_area_hold(base, 4 * COHORT_CHUNK));
	cohort_fixed_leave(lost, lost + 2 * COHORT_CHUNK);
	KUNIT_EXPECT_FALSE(test, cohort_area_unhold(base, 4 * COHORT_CHUNK, true));
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().client, 0UL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES - 2 * COHORT_CHUNK);
	KUNIT_EXPECT_TRUE(test, cohort_pcpa_test_whole_chunk(base));
	KUNIT_EXPECT_FALSE(test, cohort_area_hold(base, 4 * COHORT_CHUNK));
	KUNIT_EXPECT_EQ_MSG(test, cohort_chunk_room(base, 0), COHORT_CHUNK, "none of it is held");
	cohort_pcpa_test_end(test);
}

static bool cohort_pcpa_test_isolated(unsigned long pfn)
{
	return get_pageblock_migratetype(pfn_to_page(pfn)) == MIGRATE_ISOLATE;
}

/* What is being isolated is free, and cannot be had: a piece is made elsewhere at once. */
static void cohort_pcpa_test_beside_isolated(struct kunit *test)
{
	unsigned long end, last;
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	end = cohort_pcpa_test_look().base + AREA_PAGES;
	last = end - cohort_area_align();
	KUNIT_ASSERT_EQ(test, start_isolate_page_range(last, end, MIGRATE_MOVABLE, 0, GFP_KERNEL),
			0);
	page = cohort_pcpa_alloc(COHORT_CHUNK, GFP_KERNEL);
	undo_isolate_page_range(last, end, MIGRATE_MOVABLE);
	KUNIT_EXPECT_FALSE(test, IS_ERR(page));
	if (!IS_ERR(page)) {
		KUNIT_EXPECT_LT(test, page_to_pfn(page), last);
		cohort_pcpa_free(page, COHORT_CHUNK);
	}
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	cohort_pcpa_test_end(test);
}

/* An area that cannot grow is as it was, and so is the memory that it did not get. */
static void cohort_pcpa_test_not_grown(struct kunit *test)
{
	unsigned long nr = cohort_area_align(), base;
	u64 bytes = PFN_PHYS((u64)nr);

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	KUNIT_ASSERT_EQ(test, cohort_pcpa_resize(0, COHORT_ANY_BASE), 0);
	base = cohort_frames_find(NUMA_NO_NODE, 2 * nr, 0, ULONG_MAX);
	KUNIT_ASSERT_NE(test, base, 0UL);
	cohort_frames_free(base, nr);
	KUNIT_ASSERT_EQ(test, cohort_pcpa_resize(bytes, PFN_PHYS((u64)base)), 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(2 * bytes, PFN_PHYS((u64)base)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().size, nr);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, nr);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().other, 0UL);
	KUNIT_EXPECT_FALSE(test, cohort_pcpa_test_isolated(base));
	KUNIT_EXPECT_FALSE(test, cohort_pcpa_test_isolated(base + nr));
	cohort_frames_free(base + nr, nr);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(2 * bytes, PFN_PHYS((u64)base)), 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, 2 * nr);
	cohort_pcpa_test_end(test);
}

/*
 * The reserve for requests that may not wait stays: its pageblocks would come back as others, and
 * the zone go on to count these as reserved.
 */
static void cohort_pcpa_test_beside_highatomic(struct kunit *test)
{
	unsigned long nr = cohort_area_align(), at, pfn, got;
	int err = 0, tries = 50;

	at = cohort_frames_find(NUMA_NO_NODE, nr, 0, ULONG_MAX);
	KUNIT_ASSERT_NE(test, at, 0UL);
	for (pfn = at; pfn < at + nr; pfn += pageblock_nr_pages)
		set_pageblock_migratetype(pfn_to_page(pfn), MIGRATE_HIGHATOMIC);
	cohort_frames_free(at, nr);
	got = cohort_frames_find(NUMA_NO_NODE, nr, at, ULONG_MAX);
	KUNIT_EXPECT_EQ(test, got, 0UL);
	/* To be taken makes them ordinary again; others may hold a page of them for a moment. */
	while (!got && tries--) {
		err = alloc_contig_range(at, at + nr, MIGRATE_MOVABLE, GFP_KERNEL);
		if (!err)
			break;
		msleep(100);
	}
	KUNIT_ASSERT_EQ(test, err, 0);
	cohort_frames_free(at, nr);
}

/* For a device that does not reach all of memory: below an address, also when it grows. */
static void cohort_pcpa_test_below(struct kunit *test)
{
	unsigned long nr = cohort_area_align(), at, before = cohort_pcpa_below;
	u64 bytes = PFN_PHYS((u64)nr);

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	KUNIT_ASSERT_EQ(test, cohort_pcpa_resize(0, COHORT_ANY_BASE), 0);
	at = cohort_frames_find(NUMA_NO_NODE, 2 * nr, 0, ULONG_MAX);
	KUNIT_ASSERT_NE(test, at, 0UL);
	cohort_frames_free(at, 2 * nr);
	KUNIT_EXPECT_EQ(test, cohort_frames_find(NUMA_NO_NODE, nr, at, at + nr - 1), 0UL);
	cohort_pcpa_below = at + nr + nr / 2;
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(bytes, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_LE(test, cohort_pcpa_test_look().base + nr, at + nr);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(2 * bytes, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_LE(test, cohort_pcpa_test_look().base + 2 * nr, at + nr);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(0, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(bytes, PFN_PHYS((u64)(at + nr))), -ENOMEM);
	cohort_pcpa_below = before;
	cohort_pcpa_test_end(test);
}

/* Blocks of a scheme and the area come and go in any order. */
static void cohort_pcpa_test_beside_blocks(struct kunit *test)
{
	bool was_on = static_key_enabled(&cohort_region_key);

	KUNIT_ASSERT_EQ(test, cohort_region_switch(true), 0);
	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	KUNIT_EXPECT_EQ(test, cohort_region_switch(false), 0);
	KUNIT_EXPECT_TRUE(test, cohort_enabled());
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_soft(), 0UL);
	KUNIT_ASSERT_EQ(test, cohort_region_switch(true), 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	cohort_pcpa_test_end(test);
	KUNIT_EXPECT_TRUE(test, cohort_enabled());
	KUNIT_EXPECT_EQ(test, cohort_region_switch(was_on), 0);
}

static struct kunit_case cohort_pcpa_frames_test_cases[] = {
	KUNIT_CASE(cohort_pcpa_test_refused),
	KUNIT_CASE(cohort_pcpa_test_resize),
	KUNIT_CASE(cohort_pcpa_test_off_in_use),
	KUNIT_CASE(cohort_pcpa_test_visible),
	KUNIT_CASE(cohort_pcpa_test_poisoned),
	KUNIT_CASE(cohort_pcpa_test_bad),
	KUNIT_CASE(cohort_pcpa_test_free_goes_bad),
	KUNIT_CASE(cohort_pcpa_test_client_goes_bad),
	KUNIT_CASE(cohort_pcpa_test_lent_goes_bad),
	KUNIT_CASE_SLOW(cohort_pcpa_test_lazily_freed),
	KUNIT_CASE(cohort_pcpa_test_two_chunks),
	KUNIT_CASE(cohort_pcpa_test_offline),
	KUNIT_CASE(cohort_pcpa_test_lost),
	KUNIT_CASE(cohort_pcpa_test_beside),
	KUNIT_CASE(cohort_pcpa_test_window),
	KUNIT_CASE(cohort_pcpa_test_broken_first),
	KUNIT_CASE(cohort_pcpa_test_window_lost),
	KUNIT_CASE(cohort_pcpa_test_beside_isolated),
	KUNIT_CASE(cohort_pcpa_test_not_grown),
	KUNIT_CASE(cohort_pcpa_test_below),
	KUNIT_CASE(cohort_pcpa_test_beside_highatomic),
	KUNIT_CASE(cohort_pcpa_test_beside_blocks),
	{}
};

static struct kunit_suite cohort_pcpa_frames_test_suite = {
	.name = "cohort_pcpa_frames",
	.test_cases = cohort_pcpa_frames_test_cases,
};
kunit_test_suite(cohort_pcpa_frames_test_suite);
