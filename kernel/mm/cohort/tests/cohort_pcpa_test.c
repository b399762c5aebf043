// SPDX-License-Identifier: GPL-2.0
/* The page-cache-preferred area: its users, and what they get of it. */
#include <kunit/test.h>
#include <linux/anon_inodes.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/swap.h>

#include "../dmabuf/heap.h"
#include "../host/filemap.h"
#include "../vnode/vnode.h"
#include "cohort_pcpa_test.h"

static const struct file_operations no_fops = {};

static u64 size_before;
static unsigned int timer_before;

struct cohort_pcpa_sizes cohort_pcpa_test_look(void)
{
	struct cohort_pcpa_sizes sizes;

	if (cohort_area.zone)
		cohort_fixed_drain(cohort_area.zone);
	cohort_pcpa_sizes(&sizes);
	return sizes;
}

int cohort_pcpa_test_begin(struct kunit *test)
{
	size_before = (u64)cohort_pcpa_test_look().size << PAGE_SHIFT;
	timer_before = cohort_pcpa_timer_ms;
	if (cohort_pcpa_resize(0, COHORT_ANY_BASE))
		return -EBUSY;
	return cohort_pcpa_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE);
}

void cohort_pcpa_test_wait(void)
{
	unsigned int i;

	for (i = 0; i < 500 && cohort_pcpa_state() != COHORT_PCACHE_ONLY; i++)
		msleep(20);
}

void cohort_pcpa_test_end(struct kunit *test)
{
	cohort_pcpa_test_wait();
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(0, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_resize(size_before, COHORT_ANY_BASE), 0);
	WRITE_ONCE(cohort_pcpa_timer_ms, timer_before);
}

void cohort_pcpa_test_cache_begin(struct kunit *test, struct cohort_pcpa_test_cache *cache)
{
	cache->nr = 0;
	cache->file = anon_inode_getfile("cohort_pcpa_test", &no_fops, NULL, O_RDONLY);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cache->file));
	cache->inode = new_inode(file_inode(cache->file)->i_sb);
	KUNIT_ASSERT_NOT_NULL(test, cache->inode);
	cache->inode->i_mode = S_IFREG | 0600;
	mapping_set_gfp_mask(cache->inode->i_mapping, GFP_HIGHUSER_MOVABLE);
}

void cohort_pcpa_test_cache_end(struct cohort_pcpa_test_cache *cache)
{
	clear_nlink(cache->inode);
	iput(cache->inode);
	fput(cache->file);
}

static void cohort_pcpa_test_cache_add(struct kunit *test, struct cohort_pcpa_test_cache *cache)
{
	struct address_space *mapping = cache->inode->i_mapping;
	struct folio *folio = cohort_filemap_alloc(mapping, GFP_HIGHUSER_MOVABLE, 0);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_ASSERT_EQ(test, filemap_add_folio(mapping, folio, cache->nr++, GFP_KERNEL), 0);
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	folio_put(folio);
}

static void cohort_pcpa_test_cache_fill(struct kunit *test, struct cohort_pcpa_test_cache *cache)
{
	while (cohort_pcpa_test_look().free)
		cohort_pcpa_test_cache_add(test, cache);
	lru_add_drain_all();
}

void cohort_pcpa_test_full_begin(struct kunit *test, struct cohort_pcpa_test_cache *cache)
{
	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_test_cache_begin(test, cache);
	cohort_pcpa_test_cache_fill(test, cache);
}

void cohort_pcpa_test_full_end(struct kunit *test, struct cohort_pcpa_test_cache *cache)
{
	cohort_pcpa_test_cache_end(cache);
	cohort_pcpa_test_end(test);
}

struct folio *cohort_pcpa_test_cache_get(struct kunit *test, struct cohort_pcpa_test_cache *cache,
					 unsigned long i)
{
	struct folio *folio = filemap_get_folio(cache->inode->i_mapping, i);

	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	return folio;
}

/* A piece that was split comes back a page at a time, from its middle. */
static void cohort_pcpa_test_partial_free(struct kunit *test)
{
	struct page *page;
	unsigned long i;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_pcpa_want(0);
	page = cohort_pcpa_piece(GFP_KERNEL, 8);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, page_to_pfn(page) % 256, 0UL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().client, 256UL);
	split_page(page, 8);
	for (i = 100; i < 132; i++)
		__free_page(page + i);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().client, 224UL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES - 224);
	__free_pages(page + 255, 0);
	for (i = 0; i < 255; i++)
		if (i < 100 || i >= 132)
			__free_page(page + i);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	page = cohort_pcpa_piece(GFP_KERNEL | __GFP_COMP, 9);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().client, 512UL);
	__free_pages(page, 9);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	cohort_pcpa_test_end(test);
}

/* A page that was lent for writing is the page cache's once it is clean. */
static void cohort_pcpa_test_settle(struct kunit *test)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	page = cohort_area_take(0, COHORT_USE_LENT);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_TRUE(test, cohort_area_prep(page, 0, GFP_KERNEL, 0));
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().lent, 1UL);
	cohort_area_settle(page_to_pfn(page));
	cohort_area_settle(page_to_pfn(page));
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().lent, 0UL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().cache, 1UL);
	__free_page(page);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	cohort_pcpa_test_end(test);
}

static void cohort_pcpa_test_reclaim_stops(struct kunit *test)
{
	struct cohort_pcpa_test_cache cache;
	unsigned long room;

	cohort_pcpa_test_full_begin(test, &cache);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().cache, AREA_PAGES);
	cohort_pcpa_want(0);
	room = cohort_quick_reclaim(256, 4);
	KUNIT_EXPECT_GE(test, room, 256UL);
	KUNIT_EXPECT_LE(test, cohort_pcpa_test_look().free, 1024UL);
	room = cohort_quick_reclaim(AREA_PAGES, 4);
	KUNIT_EXPECT_EQ(test, room, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cache.inode->i_mapping->nrpages, 0UL);
	cohort_pcpa_test_full_end(test, &cache);
}

/* Dirty, locked and referenced pages stay, whole and where they are. */
static void cohort_pcpa_test_reclaim_spares(struct kunit *test)
{
	struct folio *dirty, *locked, *held;
	struct cohort_pcpa_test_cache cache;

	cohort_pcpa_test_full_begin(test, &cache);
	dirty = cohort_pcpa_test_cache_get(test, &cache, 10);
	locked = cohort_pcpa_test_cache_get(test, &cache, 20);
	held = cohort_pcpa_test_cache_get(test, &cache, 30);
	folio_set_dirty(dirty);
	folio_lock(locked);
	cohort_pcpa_want(0);
	cohort_quick_reclaim(AREA_PAGES, 0);
	KUNIT_EXPECT_EQ(test, cache.inode->i_mapping->nrpages, 3UL);
	KUNIT_EXPECT_PTR_EQ(test, folio_mapping(held), cache.inode->i_mapping);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES - 3);
	folio_clear_dirty(dirty);
	folio_unlock(locked);
	folio_put(dirty);
	folio_put(locked);
	folio_put(held);
	cohort_pcpa_test_full_end(test, &cache);
}

static void cohort_pcpa_test_contiguous(struct kunit *test)
{
	unsigned long half = AREA_PAGES / 2;
	struct page *one, *two, *three;
	struct cohort_pcpa_test_cache cache;

	cohort_pcpa_test_full_begin(test, &cache);
	one = cohort_pcpa_alloc(half, GFP_KERNEL);
	two = cohort_pcpa_alloc(half, GFP_KERNEL);
	three = cohort_pcpa_alloc(1, GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(one));
	KUNIT_ASSERT_FALSE(test, IS_ERR(two));
	KUNIT_EXPECT_EQ(test, PTR_ERR(three), -ENOMEM);
	KUNIT_EXPECT_EQ(test, page_count(one + half - 1), 1);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().client, AREA_PAGES);
	cohort_pcpa_free(one, half);
	cohort_pcpa_free(two, half);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	cohort_pcpa_test_full_end(test, &cache);
}

/* A driver that is inside a file system may not drop page cache for its piece. */
static void cohort_pcpa_test_may_not_reclaim(struct kunit *test)
{
	struct page *page;
	unsigned int flags;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	flags = memalloc_nofs_save();
	page = cohort_pcpa_alloc(1, GFP_KERNEL);
	memalloc_nofs_restore(flags);
	KUNIT_EXPECT_EQ(test, PTR_ERR(page), -EINVAL);
	if (!IS_ERR(page))
		cohort_pcpa_free(page, 1);
	cohort_pcpa_test_end(test);
}

/* A buffer larger than memory is refused before it is counted, charged or looked for. */
static void cohort_pcpa_test_larger_than_memory(struct kunit *test)
{
#ifdef CONFIG_DMABUF_HEAPS
	const unsigned long lens[] = {
		1UL << 44, (1UL << 44) + PAGE_SIZE, 1UL << 62, PAGE_ALIGN_DOWN(ULONG_MAX),
		(totalram_pages() + 1) << PAGE_SHIFT,
	};
	struct cohort_buffer *buffer;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		buffer = cohort_heap_buffer(lens[i], false, NULL);
		KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(buffer), -ENOMEM, "%#lx bytes", lens[i]);
		if (!IS_ERR(buffer))
			cohort_heap_discard(buffer);
	}
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(cohort_heap_buffer(BIT(32), true, NULL)), -EINVAL);
	buffer = cohort_heap_buffer(PAGE_SIZE, true, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(buffer));
	cohort_heap_discard(buffer);
#else
	kunit_skip(test, "no heaps");
#endif
}

/* A page with a reference more: another place if there is one, else an error in time. */
static void cohort_pcpa_test_busy(struct kunit *test)
{
	unsigned long start;
	struct folio *held;
	struct page *page;
	struct cohort_pcpa_test_cache cache;

	cohort_pcpa_test_full_begin(test, &cache);
	held = cohort_pcpa_test_cache_get(test, &cache, cache.nr / 8);
	page = cohort_pcpa_alloc(AREA_PAGES / 2, GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(page));
	cohort_pcpa_free(page, AREA_PAGES / 2);
	start = jiffies;
	page = cohort_pcpa_alloc(AREA_PAGES, GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(page), -EBUSY);
	KUNIT_EXPECT_LE(test, jiffies_to_msecs(jiffies - start), 2 * COHORT_CONTIG_MS);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().client, 0UL);
	folio_put(held);
	page = cohort_pcpa_alloc(AREA_PAGES, GFP_KERNEL);
	KUNIT_EXPECT_FALSE(test, IS_ERR(page));
	if (!IS_ERR(page))
		cohort_pcpa_free(page, AREA_PAGES);
	cohort_pcpa_test_full_end(test, &cache);
}

/* A loan of a virtual node that a migration has brought here ends with the page. */
static void cohort_pcpa_test_lent_once(struct kunit *test)
{
#ifdef CONFIG_COHORT_VNODE
	struct page *page;
	unsigned long *map, pfn;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
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
	cohort_owner_switch(&cohort_lend_key, false);
	cohort_pcpa_test_end(test);
#else
	kunit_skip(test, "no virtual nodes");
#endif
}

/* A page that can be moved is on loan, whether its request waits or not. */
static void cohort_pcpa_test_lent_movable(struct kunit *test)
{
	gfp_t gfp = GFP_NOWAIT | __GFP_MOVABLE;
	struct alloc_context ac;
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_test_context(&ac, gfp);
	KUNIT_EXPECT_NULL(test, __cohort_pcpa_rmqueue(gfp, 0, 0, &ac, false));
	page = __cohort_pcpa_rmqueue(gfp, 0, 0, &ac, true);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().lent, 1UL);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().other, 0UL);
	__free_page(page);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().lent, 0UL);
	cohort_pcpa_test_end(test);
}

/* A driver that gives its one page away, and has moved it to another. */
static struct page *cohort_pcpa_test_drivers;

static bool cohort_pcpa_test_driver_isolate(struct page *page, isolate_mode_t mode)
{
	return true;
}

static void cohort_pcpa_test_driver_putback(struct page *page)
{
}

static int cohort_pcpa_test_driver_migrate(struct page *dst, struct page *src,
					   enum migrate_mode mode);

static const struct movable_operations cohort_pcpa_test_driver = {
	.isolate_page = cohort_pcpa_test_driver_isolate,
	.putback_page = cohort_pcpa_test_driver_putback,
	.migrate_page = cohort_pcpa_test_driver_migrate,
};

static int cohort_pcpa_test_driver_migrate(struct page *dst, struct page *src,
					   enum migrate_mode mode)
{
	get_page(dst);
	__SetPageMovable(dst, &cohort_pcpa_test_driver);
	__ClearPageMovable(src);
	put_page(src);
	cohort_pcpa_test_drivers = dst;
	return MIGRATEPAGE_SUCCESS;
}

/* A page on loan that is on no LRU list leaves like any other, if its driver can move it. */
static void cohort_pcpa_test_lent_to_driver(struct kunit *test)
{
	struct page *page;
	LIST_HEAD(list);

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	page = cohort_area_take(0, COHORT_USE_LENT);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_TRUE(test, cohort_area_prep(page, 0, GFP_HIGHUSER_MOVABLE, 0));
	lock_page(page);
	__SetPageMovable(page, &cohort_pcpa_test_driver);
	unlock_page(page);
	cohort_pcpa_test_drivers = page;
	KUNIT_EXPECT_TRUE(test, cohort_isolate_page(page, &list));
	KUNIT_EXPECT_EQ_MSG(test, cohort_move_out(&list, true, jiffies - 1), 0, "time is up");
	KUNIT_EXPECT_PTR_EQ(test, cohort_pcpa_test_drivers, page);
	KUNIT_EXPECT_TRUE(test, cohort_isolate_page(page, &list));
	KUNIT_EXPECT_EQ(test, cohort_move_out(&list, true, jiffies + HZ), 1);
	KUNIT_EXPECT_PTR_NE(test, cohort_pcpa_test_drivers, page);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().lent, 0UL);
	page = cohort_pcpa_test_drivers;
	lock_page(page);
	__ClearPageMovable(page);
	unlock_page(page);
	put_page(page);
	cohort_pcpa_test_end(test);
}

/* An entitled process gets its I/O buffers here, not its huge pages. */
static void cohort_pcpa_test_entitled_to(struct kunit *test)
{
	const unsigned int order = COHORT_CHUNK_ORDER;
	struct alloc_context ac;
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_test_map(test, 1);
	set_bit(COHORT_ENTITLED_BIT, &current->mm->flags);
	cohort_test_context(&ac, GFP_TRANSHUGE);
	KUNIT_EXPECT_NULL(test, __cohort_pcpa_rmqueue(GFP_TRANSHUGE, order, 0, &ac, false));
	cohort_test_context(&ac, GFP_HIGHUSER | __GFP_COMP);
	page = __cohort_pcpa_rmqueue(GFP_HIGHUSER | __GFP_COMP, order, 0, &ac, false);
	KUNIT_EXPECT_NOT_NULL(test, page);
	if (page)
		__free_pages(page, order);
	clear_bit(COHORT_ENTITLED_BIT, &current->mm->flags);
	cohort_pcpa_test_end(test);
}

static unsigned long cohort_pcpa_test_give_all(struct list_head *list,
						const struct alloc_context *ac)
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
	const gfp_t other_way = GFP_NOWAIT | __GFP_NORETRY | __GFP_NOMEMALLOC;
	nodemask_t none = NODE_MASK_NONE;
	struct zoneref no_zone = { }, *near;
	struct alloc_context ac;
	struct page *page, *next;
	LIST_HEAD(list);

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_test_context(&ac, GFP_NOWAIT);
	ac.nodemask = &none;
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_give_all(&list, &ac), 0UL);
	ac.nodemask = NULL;
	near = ac.preferred_zoneref;
	ac.preferred_zoneref = &no_zone;
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_give_all(&list, &ac), 0UL);
	ac.preferred_zoneref = near;
	KUNIT_EXPECT_NULL(test, __cohort_pcpa_rmqueue(other_way, 0, 0, &ac, true));
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_give_all(&list, &ac), AREA_PAGES / 4);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().other, AREA_PAGES / 4);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().cache, 0UL);
	list_for_each_entry_safe(page, next, &list, lru)
		__free_page(page);
	INIT_LIST_HEAD(&list);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().other, 0UL);
	WRITE_ONCE(cohort_pcpa_timer_ms, LONG_TURN_MS);
	cohort_pcpa_want(0);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_give_all(&list, &ac), 0UL);
	cohort_pcpa_test_end(test);
}

static struct page *cohort_pcpa_test_or_kill(gfp_t gfp, unsigned int order)
{
	return cohort_pcpa_test_last_look(gfp & ~__GFP_DIRECT_RECLAIM, order, COHORT_ALLOC_LAST);
}

/* A request for which a process would be killed has all that is free, in pieces, too. */
static void cohort_pcpa_test_before_a_kill(struct kunit *test)
{
	struct page *page, *next;
	unsigned int order;
	LIST_HEAD(list);

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	/* For these stock kills no process. */
	KUNIT_EXPECT_NULL(test, cohort_pcpa_test_or_kill(GFP_KERNEL | __GFP_RETRY_MAYFAIL, 0));
	if (IS_ENABLED(CONFIG_ZONE_DMA32))
		KUNIT_EXPECT_NULL(test, cohort_pcpa_test_or_kill(GFP_KERNEL | __GFP_DMA32, 0));
	for (order = 0; order <= COHORT_BREACH_ORDER; order++) {
		page = cohort_pcpa_test_or_kill(GFP_KERNEL, order);
		KUNIT_ASSERT_NOT_NULL(test, page);
		KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().other, 1UL << order);
		__free_pages(page, order);
	}
	while ((page = cohort_pcpa_test_or_kill(GFP_KERNEL, COHORT_BREACH_ORDER)))
		list_add(&page->lru, &list);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().other, AREA_PAGES);
	list_for_each_entry_safe(page, next, &list, lru)
		__free_pages(page, COHORT_BREACH_ORDER);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	WRITE_ONCE(cohort_pcpa_timer_ms, LONG_TURN_MS);
	for (order = 0; order < AREA_PAGES; order++, cohort_pcpa_done(COHORT_GRANULE))
		cohort_pcpa_want(COHORT_GRANULE);
	page = cohort_pcpa_test_or_kill(GFP_KERNEL, 0);
	KUNIT_ASSERT_NOT_NULL_MSG(test, page, "a client with a small quota comes again and again");
	__free_page(page);
	cohort_pcpa_want(AREA_PAGES);
	KUNIT_EXPECT_NULL_MSG(test, cohort_pcpa_test_or_kill(GFP_KERNEL, 0), "a client has come");
	cohort_pcpa_done(AREA_PAGES);
	cohort_pcpa_test_end(test);
}

/* The page allocator's last look comes here with pieces as large as it kills for. */
static void cohort_pcpa_test_breach(struct kunit *test)
{
	struct alloc_context ac;
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	cohort_test_context(&ac, GFP_KERNEL);
	page = __cohort_breach(GFP_KERNEL & ~__GFP_DIRECT_RECLAIM, COHORT_BREACH_ORDER,
			       ALLOC_WMARK_HIGH | COHORT_ALLOC_LAST, &ac);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_NOT_NULL(test, cohort_chunk_of(page_to_pfn(page)));
	__free_pages(page, COHORT_BREACH_ORDER);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, AREA_PAGES);
	cohort_pcpa_test_end(test);
}

/* Spared while the area has free pages and others have cold ones, and no client has come. */
static void cohort_pcpa_test_suffices(struct kunit *test)
{
	struct cohort_pcpa_test_cache cache, others;
	unsigned long base, i;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	base = cohort_pcpa_test_look().base;
	cohort_pcpa_test_cache_begin(test, &others);
	cohort_pcpa_test_cache_fill(test, &others);
	/* Twice what it takes: counters lag, and what tidies moves some of them in. */
	for (i = 0; i < 2 * AREA_PAGES; i++)
		cohort_pcpa_test_cache_add(test, &others);
	lru_add_drain_all();
	KUNIT_EXPECT_FALSE_MSG(test, __cohort_pcpa_suffices(base, 0), "nothing is free");
	invalidate_mapping_pages(others.inode->i_mapping, 0, AREA_PAGES - 1);
	KUNIT_EXPECT_TRUE(test, __cohort_pcpa_suffices(base, 0));
	KUNIT_EXPECT_TRUE(test, __cohort_pcpa_suffices(base + AREA_PAGES - 1, 0));
	KUNIT_EXPECT_TRUE(test, __cohort_pcpa_suffices(base, COHORT_SPARE_MAX - 1));
	KUNIT_EXPECT_FALSE_MSG(test, __cohort_pcpa_suffices(base, COHORT_SPARE_MAX),
			       "the lock has been held for long");
	KUNIT_EXPECT_FALSE(test, __cohort_pcpa_suffices(base + AREA_PAGES, 0));
	WRITE_ONCE(cohort_pcpa_timer_ms, LONG_TURN_MS);
	cohort_pcpa_want(0);
	KUNIT_EXPECT_FALSE_MSG(test, __cohort_pcpa_suffices(base, 0), "a client has come");
	cohort_pcpa_test_wait();
	cohort_pcpa_test_cache_begin(test, &cache);
	cohort_pcpa_test_cache_fill(test, &cache);
	KUNIT_EXPECT_FALSE_MSG(test, __cohort_pcpa_suffices(base, 0), "nothing is free");
	cohort_pcpa_test_cache_end(&others);
	cohort_pcpa_test_full_end(test, &cache);
}

/* Room is there before the client is; if none comes the page cache is back. */
static void cohort_pcpa_test_announced(struct kunit *test)
{
	struct cohort_pcpa_test_cache cache;
	unsigned int i;

	cohort_pcpa_test_full_begin(test, &cache);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, 0UL);
	WRITE_ONCE(cohort_pcpa_timer_ms, LONG_TURN_MS);
	cohort_pcpa_announce(1024);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_state(), COHORT_ANON_ALLOC);
	for (i = 0; i < 500 && cohort_pcpa_test_look().free < 1024; i++)
		msleep(20);
	KUNIT_EXPECT_GE(test, cohort_pcpa_test_look().free, 1024UL);
	KUNIT_EXPECT_LE(test, cohort_pcpa_test_look().free, 1024UL + 2 * COHORT_CHUNK);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().client, 0UL);
	cohort_pcpa_test_wait();
	KUNIT_EXPECT_EQ(test, cohort_pcpa_state(), COHORT_PCACHE_ONLY);
	cohort_pcpa_test_cache_fill(test, &cache);
	KUNIT_EXPECT_EQ(test, cohort_pcpa_test_look().free, 0UL);
	cohort_pcpa_test_full_end(test, &cache);
}

/* The timer, on the machine's own clock. */
static void cohort_pcpa_test_timer(struct kunit *test)
{
	struct page *page;
	unsigned long start;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	WRITE_ONCE(cohort_pcpa_timer_ms, 200);
	start = jiffies;
	cohort_pcpa_want(0);
	page = cohort_pcpa_piece(GFP_KERNEL | __GFP_COMP, 4);
	KUNIT_ASSERT_NOT_NULL(test, page);
	cohort_pcpa_test_wait();
	KUNIT_EXPECT_EQ(test, cohort_pcpa_state(), COHORT_PCACHE_ONLY);
	/* Two turns: in the first a client got something. */
	KUNIT_EXPECT_GE(test, jiffies_to_msecs(jiffies - start), 380);
	__free_pages(page, 4);
	cohort_pcpa_test_end(test);
}

static struct kunit_case cohort_pcpa_test_cases[] = {
	KUNIT_CASE(cohort_pcpa_test_partial_free),
	KUNIT_CASE(cohort_pcpa_test_settle),
	KUNIT_CASE(cohort_pcpa_test_reclaim_stops),
	KUNIT_CASE(cohort_pcpa_test_reclaim_spares),
	KUNIT_CASE(cohort_pcpa_test_contiguous),
	KUNIT_CASE(cohort_pcpa_test_may_not_reclaim),
	KUNIT_CASE(cohort_pcpa_test_larger_than_memory),
	KUNIT_CASE(cohort_pcpa_test_busy),
	KUNIT_CASE(cohort_pcpa_test_lent_once),
	KUNIT_CASE(cohort_pcpa_test_lent_movable),
	KUNIT_CASE(cohort_pcpa_test_lent_to_driver),
	KUNIT_CASE(cohort_pcpa_test_entitled_to),
	KUNIT_CASE(cohort_pcpa_test_breach),
	KUNIT_CASE_SLOW(cohort_pcpa_test_given),
	KUNIT_CASE_SLOW(cohort_pcpa_test_before_a_kill),
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
