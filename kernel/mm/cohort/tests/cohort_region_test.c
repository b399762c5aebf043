// SPDX-License-Identifier: GPL-2.0
/*
 * The region scheme: which pages go where, switching it off and on, and
 * contiguous allocations that run into its memory.
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/swap.h>
#include <linux/vmalloc.h>
#include <linux/zsmalloc.h>

#include "../dmabuf/buffer.h"
#include "../host/filemap.h"
#include "cohort_test.h"

static void cohort_region_test_cache_domain(struct kunit *test)
{
	struct address_space *mapping = cohort_test_mapping(test);
	struct cohort_domain *dom = cohort_region_cache(mapping,
							  GFP_HIGHUSER_MOVABLE);
	struct folio *folio;

	KUNIT_ASSERT_NOT_NULL(test, dom);
	KUNIT_EXPECT_EQ(test, dom->kind, COHORT_CACHE);
	KUNIT_EXPECT_PTR_EQ(test, dom, cohort_region_domain(COHORT_CACHE));

	folio = cohort_cache_alloc(dom, GFP_HIGHUSER_MOVABLE);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_PTR_EQ(test, cohort_test_owner(&folio->page), dom);
	KUNIT_EXPECT_FALSE(test, folio_test_large(folio));
	folio_put(folio);
}

/* Metadata pages, which a journal pins, are not among file pages. */
static void cohort_region_test_buffer_domain(struct kunit *test)
{
	struct address_space *mapping = cohort_test_mapping(test);
	struct cohort_domain *dom;
	struct folio *folio;

	if (!IS_ENABLED(CONFIG_BLOCK))
		kunit_skip(test, "no CONFIG_BLOCK");
	mapping->host->i_sb = blockdev_superblock;
	dom = cohort_region_cache(mapping, GFP_HIGHUSER_MOVABLE);
	KUNIT_ASSERT_NOT_NULL(test, dom);
	KUNIT_EXPECT_EQ(test, dom->kind, COHORT_METADATA);

	folio = cohort_cache_alloc(dom, GFP_HIGHUSER_MOVABLE);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_PTR_EQ(test, cohort_test_owner(&folio->page), dom);
	folio_put(folio);
	/* Journals ask for some of them unmovable. */
	KUNIT_EXPECT_NULL(test, cohort_region_cache(mapping, GFP_HIGHUSER));
}

static void cohort_region_test_cache_not_unevictable(struct kunit *test)
{
	struct address_space *mapping = cohort_test_mapping(test);

	mapping_set_unevictable(mapping);
	KUNIT_EXPECT_NULL(test, cohort_region_cache(mapping, GFP_HIGHUSER_MOVABLE));
}

/* A page of a file that is written is not the kernel's own, however a file system asks for it. */
static void cohort_region_test_cache_asked_unmovable(struct kunit *test)
{
	struct address_space *mapping = cohort_test_mapping(test);
	const gfp_t asked = GFP_NOFS | __GFP_WRITE;
	struct folio *folio;

	KUNIT_EXPECT_NULL(test, cohort_region_cache(mapping, asked));
	mapping->host->i_mode = S_IFREG;
	folio = cohort_filemap_alloc(mapping, asked, 0);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_PTR_EQ(test, cohort_test_owner(&folio->page),
			    cohort_region_domain(COHORT_CACHE));
	folio_put(folio);
	KUNIT_EXPECT_TRUE(test, cohort_cache_gfp(mapping, asked) & __GFP_HARDWALL);
	/* One of a directory is taken with locks that others wait for. */
	mapping->host->i_mode = S_IFDIR;
	KUNIT_EXPECT_TRUE(test, cohort_cache_gfp(mapping, asked) == asked);
}

/* Pages of an area of vmalloc that are in a domain of this kind. */
static unsigned int cohort_region_test_area(struct kunit *test, unsigned int pages,
					    enum cohort_kind kind)
{
	void *area = vmalloc(pages * PAGE_SIZE);
	unsigned int i, nr = 0;

	KUNIT_ASSERT_NOT_NULL(test, area);
	for (i = 0; i < pages; i++) {
		struct page *page = vmalloc_to_page(area + i * PAGE_SIZE);
		struct cohort_domain *dom = cohort_test_owner(page);

		nr += dom && dom->kind == kind;
	}
	vfree(area);
	return nr;
}

static void cohort_region_test_vmalloc_domain(struct kunit *test)
{
	unsigned int pages = 3 * cohort_pages();

	KUNIT_EXPECT_EQ(test, cohort_region_test_area(test, pages, COHORT_VMALLOC), pages);
}

/* A stack of a thread is one: as short-lived as anything of the kernel's. */
static void cohort_region_test_small_area(struct kunit *test)
{
	unsigned int small = COHORT_SMALL_AREA;

	KUNIT_EXPECT_EQ(test, cohort_region_test_area(test, small, COHORT_KERNEL), small);
	KUNIT_EXPECT_EQ(test, cohort_region_test_area(test, small + 1, COHORT_VMALLOC),
			small + 1);
}

/* The pages of a large area come under few holds of a lock, and are no others for it. */
static void cohort_region_test_more(struct kunit *test)
{
	struct page *page[COHORT_ROUND + 1], *kernel = alloc_page(GFP_KERNEL);
	struct cohort_domain *dom;
	unsigned int i, j, got;

	KUNIT_ASSERT_NOT_NULL(test, kernel);
	page[0] = cohort_vmalloc_page_noprof(GFP_KERNEL, NUMA_NO_NODE);
	KUNIT_ASSERT_NOT_NULL(test, page[0]);
	dom = cohort_test_owner(page[0]);
	KUNIT_ASSERT_NOT_NULL(test, dom);
	KUNIT_EXPECT_EQ(test, dom->kind, COHORT_VMALLOC);
	KUNIT_EXPECT_EQ(test, cohort_room_more(dom, GFP_KERNEL, kernel, page + 1, 1), 0);
	got = cohort_room_more(dom, GFP_KERNEL | __GFP_ZERO, page[0], page + 1, COHORT_ROUND);
	if (!got) {
		/* That was the last one there was: the next one is of one more block. */
		__free_page(kernel);
		kernel = cohort_vmalloc_page_noprof(GFP_KERNEL, NUMA_NO_NODE);
		KUNIT_ASSERT_NOT_NULL(test, kernel);
		got = cohort_room_more(dom, GFP_KERNEL | __GFP_ZERO, kernel, page + 1,
				       COHORT_ROUND);
	}
	KUNIT_EXPECT_GT(test, got, 0);
	for (i = 1; i <= got; i++) {
		KUNIT_EXPECT_PTR_EQ(test, cohort_test_owner(page[i]), dom);
		KUNIT_EXPECT_EQ(test, page_count(page[i]), 1);
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(page_address(page[i]), 0, PAGE_SIZE), NULL);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_PTR_NE(test, page[i], page[j]);
	}
	for (i = 0; i <= got; i++)
		__free_page(page[i]);
	__free_page(kernel);
}

static bool cohort_region_test_is_kernel(struct kunit *test, gfp_t gfp,
					 unsigned int order)
{
	struct page *page = alloc_pages(gfp, order);
	struct cohort_domain *dom;
	bool is;

	KUNIT_ASSERT_NOT_NULL(test, page);
	dom = cohort_test_owner(page);
	is = dom && dom->kind == COHORT_KERNEL;
	__free_pages(page, order);
	return is;
}

/* Requests without a domain: the kernel's own single pages, from any context. */
static void cohort_region_test_kernel_domain(struct kunit *test)
{
	gfp_t gfp = GFP_KERNEL | __GFP_ZERO;

	KUNIT_EXPECT_TRUE(test, cohort_region_test_is_kernel(test, gfp, 0));
	KUNIT_EXPECT_TRUE(test, cohort_region_test_is_kernel(test, GFP_ATOMIC, 0));
	KUNIT_EXPECT_TRUE(test, cohort_region_test_is_kernel(test, gfp | __GFP_THISNODE, 0));
	KUNIT_EXPECT_TRUE(test, cohort_region_test_is_kernel(test, gfp | __GFP_RECLAIMABLE, 0));
	KUNIT_EXPECT_FALSE(test, cohort_region_test_is_kernel(test, gfp, 1));
	KUNIT_EXPECT_FALSE(test, cohort_region_test_is_kernel(test, gfp | __GFP_DMA32, 0));
	KUNIT_EXPECT_FALSE(test, cohort_region_test_is_kernel(test, GFP_HIGHUSER_MOVABLE, 0));
}

/* A piece that is refused is not the end of the large ones. */
static void cohort_region_test_buffer_order(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, cohort_buffer_order(0, 3 * SZ_1M), MAX_PAGE_ORDER);
	KUNIT_EXPECT_EQ(test, cohort_buffer_order(0, 3 * SZ_1M - PAGE_SIZE), 0);
	KUNIT_EXPECT_EQ(test, cohort_buffer_order(4, SZ_64K), 4);
	KUNIT_EXPECT_EQ(test, cohort_region_switch(false), 0);
	KUNIT_EXPECT_EQ(test, cohort_buffer_order(0, 3 * SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, cohort_region_switch(true), 0);
}

/* Compressed swap is written by tasks that reclaim. */
static void cohort_region_test_zspage_domain(struct kunit *test)
{
	unsigned int flags = memalloc_noreclaim_save();
	struct page *page = cohort_zspage_alloc(GFP_NOWAIT | __GFP_MOVABLE |
						__GFP_HIGHMEM);
	struct cohort_domain *dom;

	memalloc_noreclaim_restore(flags);
	KUNIT_ASSERT_NOT_NULL(test, page);
	dom = cohort_test_owner(page);
	KUNIT_EXPECT_TRUE(test, dom && dom->kind == COHORT_ZSPAGE);
	__free_page(page);
}

#define COHORT_REGION_TEST_OBJECTS	(4 * COHORT_BLOCK_PAGES)

/* Each object is a page, and says which it is. */
static unsigned int cohort_region_test_zs_wrong(struct zs_pool *pool,
						unsigned long *handle)
{
	unsigned int i, wrong = 0;

	for (i = 1; i < COHORT_REGION_TEST_OBJECTS; i += 2) {
		wrong += *(unsigned int *)zs_map_object(pool, handle[i], ZS_MM_RO) != i;
		zs_unmap_object(pool, handle[i]);
	}
	return wrong;
}

/* They are on no LRU, but move: zsmalloc knows how. */
static void cohort_region_test_zspage_compact(struct kunit *test)
{
	struct zs_pool *pool;
	struct cohort_domain *dom = NULL;
	unsigned long *handle, parked;
	unsigned int i;
	void *object;

	if (!IS_ENABLED(CONFIG_ZSMALLOC))
		kunit_skip(test, "no CONFIG_ZSMALLOC");
	handle = kunit_kcalloc(test, COHORT_REGION_TEST_OBJECTS, sizeof(*handle), GFP_KERNEL);
	pool = zs_create_pool("cohort_test");
	KUNIT_ASSERT_NOT_NULL(test, handle);
	KUNIT_ASSERT_NOT_NULL(test, pool);
	for (i = 0; i < COHORT_REGION_TEST_OBJECTS; i++) {
		handle[i] = zs_malloc(pool, PAGE_SIZE, GFP_KERNEL | __GFP_HIGHMEM |
				      __GFP_MOVABLE);
		KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(handle[i]));
		object = zs_map_object(pool, handle[i], ZS_MM_WO);
		*(unsigned int *)object = i;
		dom = cohort_test_owner(virt_to_page(object));
		zs_unmap_object(pool, handle[i]);
	}
	KUNIT_ASSERT_NOT_NULL(test, dom);
	KUNIT_EXPECT_EQ(test, dom->kind, COHORT_ZSPAGE);
	for (i = 0; i < COHORT_REGION_TEST_OBJECTS; i += 2)
		zs_free(pool, handle[i]);

	cohort_domain_drain(dom);
	parked = cohort_domain_free(dom);
	KUNIT_EXPECT_GE(test, parked, COHORT_REGION_TEST_OBJECTS / 2 - cohort_pages());
	KUNIT_EXPECT_GE(test, cohort_domain_compact(dom, true, UINT_MAX), 1);
	cohort_domain_drain(dom);
	KUNIT_EXPECT_LE(test, cohort_domain_free(dom), parked - cohort_pages());
	KUNIT_EXPECT_EQ(test, cohort_region_test_zs_wrong(pool, handle), 0);
	for (i = 1; i < COHORT_REGION_TEST_OBJECTS; i += 2)
		zs_free(pool, handle[i]);
	zs_destroy_pool(pool);
}

/* Without a block to be had, a page goes among others that can be moved. */
static void cohort_region_test_hole(struct kunit *test)
{
	struct address_space *mapping = cohort_test_mapping(test);
	unsigned long addr;
	struct cohort_domain *dom;
	struct folio *folio;

	dom = cohort_region_cache(mapping, GFP_HIGHUSER_MOVABLE);
	folio = cohort_cache_alloc(dom, GFP_HIGHUSER_MOVABLE);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	addr = cohort_test_map(test, 1);
	cohort_test_grow_up(test);
	cohort_domain_drain(dom);
	KUNIT_ASSERT_GT(test, cohort_domain_free(dom), 0);

	WRITE_ONCE(cohort_taking, false);
	cohort_test_touch(test, addr, 1);
	WRITE_ONCE(cohort_taking, true);
	KUNIT_EXPECT_PTR_EQ(test, cohort_test_domain_at(test, addr), dom);
	folio_put(folio);
}

static bool cohort_region_test_reclaims;

static int cohort_region_test_migrate(struct address_space *mapping, struct folio *dst,
				      struct folio *src, enum migrate_mode mode)
{
	cohort_region_test_reclaims |= !(current->flags & PF_MEMALLOC);
	return filemap_migrate_folio(mapping, dst, src, mode);
}

static const struct address_space_operations cohort_region_test_aops = {
	.migrate_folio = cohort_region_test_migrate,
};

/* One more page of a file, with its index in it. */
static void cohort_region_test_cached(struct kunit *test, struct address_space *mapping,
				      pgoff_t index)
{
	struct cohort_domain *dom = cohort_region_cache(mapping, GFP_HIGHUSER_MOVABLE);
	struct folio *folio = cohort_cache_alloc(dom, GFP_HIGHUSER_MOVABLE);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	*(pgoff_t *)folio_address(folio) = index;
	KUNIT_ASSERT_EQ(test, filemap_add_folio(mapping, folio, index, GFP_KERNEL), 0);
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	folio_put(folio);
}

/* A page of the file is active, as one that was used twice. */
static void cohort_region_test_use(struct kunit *test, struct address_space *mapping,
				   pgoff_t index)
{
	struct folio *folio = filemap_get_folio(mapping, index);

	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	folio_mark_accessed(folio);
	folio_mark_accessed(folio);
	folio_put(folio);
}

/* Memory that cannot be moved gets a block although none is free: the cache is packed. */
static void cohort_region_test_room(struct kunit *test)
{
	struct address_space *mapping = cohort_test_mapping(test);
	pgoff_t i, wrong = 0, nr = 4 * cohort_pages();
	long isolated = cohort_test_isolated();
	int nid = numa_mem_id();
	struct folio *folio;
	unsigned long begin;
	bool made;

	mapping->a_ops = &cohort_region_test_aops;
	for (i = 0; i < nr; i++)
		cohort_region_test_cached(test, mapping, i);
	for (i = 0; i < nr; i++)
		if (i % 4)
			invalidate_mapping_pages(mapping, i, i);
	lru_add_drain_all();
	cohort_domain_drain(cohort_region_domain(COHORT_CACHE));

	cohort_region_test_reclaims = false;
	begin = jiffies;
	KUNIT_EXPECT_FALSE(test, cohort_region_spare(nid, -1));
	made = cohort_region_spare(nid, MAX_NR_ZONES - 1);
	KUNIT_EXPECT_TRUE_MSG(test, !made || time_after(jiffies, begin + HZ / 20), "no rest");
	msleep(1100);
	KUNIT_EXPECT_TRUE(test, made || cohort_region_spare(nid, MAX_NR_ZONES - 1));
	KUNIT_EXPECT_FALSE(test, cohort_region_test_reclaims);
	KUNIT_EXPECT_EQ(test, cohort_test_isolated(), isolated);
	for (i = 0; i < nr; i += 4) {
		folio = filemap_get_folio(mapping, i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
		wrong += *(pgoff_t *)folio_address(folio) != i;
		folio_put(folio);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	truncate_inode_pages(mapping, 0);
}

/* An anonymous page that the process gave up, and may want again, in a hole of the cache. */
static void cohort_region_test_lazy_page(struct kunit *test, unsigned long addr)
{
	struct cohort_domain *cache = cohort_region_domain(COHORT_CACHE);
	struct folio *folio;

	cohort_test_grow_up(test);
	cohort_domain_drain(cache);
	WRITE_ONCE(cohort_taking, false);
	cohort_test_touch(test, addr, 1);
	WRITE_ONCE(cohort_taking, true);
	KUNIT_ASSERT_PTR_EQ(test, cohort_test_domain_at(test, addr), cache);
	lru_add_drain_all();
	KUNIT_ASSERT_EQ(test, do_madvise(current->mm, addr, PAGE_SIZE, MADV_FREE), 0);
	lru_add_drain_all();
	folio = page_folio(cohort_test_page_at(test, addr));
	KUNIT_ASSERT_FALSE(test, folio_test_swapbacked(folio));
}

/* How often a folio that is anonymous came up: among the victims, and at all. */
static void cohort_region_test_sweep(unsigned int *victim, unsigned int *seen)
{
	struct cohort_room *room;
	struct cohort_block *blk;
	struct folio *folio;
	LIST_HEAD(survivors);
	LIST_HEAD(victims);

	room = cohort_cache_victims(numa_mem_id(), MAX_NR_ZONES - 1, false, &blk, &victims,
				    &survivors);
	if (!room)
		return;
	list_for_each_entry(folio, &victims, lru)
		*victim += folio_test_anon(folio);
	list_splice_tail_init(&victims, &survivors);
	list_for_each_entry(folio, &survivors, lru)
		*seen += folio_test_anon(folio);
	cohort_cache_settle(room, blk, &survivors, 0);
}

/* A sweep drops clean file pages, and none that a process may write to again. */
static void cohort_region_test_lazily_freed(struct kunit *test)
{
	struct address_space *mapping = cohort_test_mapping(test);
	unsigned int victim = 0, seen = 0, rounds = 16;
	unsigned long addr = cohort_test_map(test, 1);
	pgoff_t i, nr = 4 * cohort_pages();
	long isolated = cohort_test_isolated();

	mapping->a_ops = &cohort_region_test_aops;
	cohort_region_test_cached(test, mapping, 0);
	cohort_region_test_lazy_page(test, addr);
	for (i = 1; i < nr; i++)
		cohort_region_test_cached(test, mapping, i);
	invalidate_mapping_pages(mapping, 0, cohort_pages() - 8);
	for (i = 0; i < nr; i++)
		if (i % 4)
			invalidate_mapping_pages(mapping, i, i);
	lru_add_drain_all();
	/* Other regions are dearer to empty. */
	for (i = cohort_pages(); i < nr; i += 4)
		cohort_region_test_use(test, mapping, i);
	lru_add_drain_all();
	cohort_domain_drain(cohort_region_domain(COHORT_CACHE));

	while (!seen && rounds--)
		cohort_region_test_sweep(&victim, &seen);
	KUNIT_EXPECT_EQ(test, victim, 0);
	KUNIT_EXPECT_EQ(test, seen, 1);
	KUNIT_EXPECT_EQ(test, cohort_test_isolated(), isolated);
	cohort_test_verify(test, addr, 1);
	truncate_inode_pages(mapping, 0);
}

/* The rooms that a domain has, hidden as in a zone that came after it was made. */
static void cohort_region_test_hide(struct cohort_domain *dom, struct cohort_room **kept)
{
	unsigned int i;

	cohort_domain_drain(dom);
	for (i = 0; i < cohort_nr_rooms(); i++)
		kept[i] = xchg(&dom->room[i], NULL);
}

static void cohort_region_test_unhide(struct cohort_domain *dom, struct cohort_room **kept)
{
	unsigned int i;

	for (i = 0; i < cohort_nr_rooms(); i++)
		WRITE_ONCE(dom->room[i], kept[i]);
}

/* Memory of which a domain knows nothing: reclaim and readers come by all the same. */
static void cohort_region_test_no_room(struct kunit *test)
{
	struct cohort_domain *cache = cohort_region_domain(COHORT_CACHE);
	struct cohort_domain *hot = cohort_region_domain(COHORT_HOT);
	unsigned int victim = 0, seen = 0;
	struct cohort_room **kept;
	struct page *page;

	kept = kunit_kcalloc(test, 2 * cohort_nr_rooms(), sizeof(*kept), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, kept);
	cohort_region_test_hide(hot, kept);
	cohort_region_test_sweep(&victim, &seen);
	cohort_region_test_hide(cache, kept + cohort_nr_rooms());
	cohort_region_test_sweep(&victim, &seen);
	KUNIT_EXPECT_FALSE(test, cohort_region_room(numa_mem_id(), MAX_NR_ZONES - 1));
	page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, numa_mem_id(), NULL, cache);
	cohort_region_test_unhide(cache, kept + cohort_nr_rooms());
	cohort_region_test_unhide(hot, kept);
	KUNIT_ASSERT_NOT_NULL(test, page);
	__free_page(page);
}

/* A process that stays small shares regions; one that grows has its own. */
static void cohort_region_test_anon_domain(struct kunit *test)
{
	unsigned int first = cohort_pages() / 2, pages = first + 8;
	unsigned long addr = cohort_test_map(test, pages);
	struct cohort_domain *dom;

	KUNIT_EXPECT_NULL(test, current->mm->cohort);
	/* Large folios are contiguous by themselves. */
	KUNIT_EXPECT_NULL(test, cohort_anon_domain(current->mm, 4));
	KUNIT_EXPECT_NULL(test, current->mm->cohort);

	cohort_test_touch(test, addr, pages);
	dom = current->mm->cohort;
	KUNIT_ASSERT_NOT_NULL(test, dom);
	KUNIT_EXPECT_EQ(test, dom->kind, COHORT_PROCESS);
	KUNIT_EXPECT_EQ(test, cohort_test_domain_at(test, addr)->kind, COHORT_SMALL);
	KUNIT_EXPECT_PTR_EQ(test, dom,
			    cohort_test_domain_at(test, addr + first * PAGE_SIZE));
	KUNIT_EXPECT_PTR_EQ(test, dom,
			    cohort_test_domain_at(test, addr + (pages - 1) * PAGE_SIZE));
	KUNIT_EXPECT_PTR_EQ(test, cohort_anon_domain(current->mm, 0), dom);
}

/*
 * Memory in use when the scheme goes off stays as it is, and no block is left;
 * on again, the same processes get blocks again.
 */
static void cohort_region_test_off_and_on(struct kunit *test)
{
	unsigned int half = cohort_pages() + 7, pages = 2 * half;
	unsigned long nr[COHORT_NR_KINDS], addr;
	struct page *page;

	addr = cohort_test_map(test, pages);
	cohort_test_touch(test, addr, half);
	page = cohort_test_page_at(test, addr);
	KUNIT_ASSERT_NOT_NULL(test, cohort_test_owner(page));
	KUNIT_EXPECT_GT(test, cohort_block_stats(nr), 0);

	KUNIT_ASSERT_EQ(test, cohort_region_switch(false), 0);
	KUNIT_EXPECT_FALSE(test, cohort_enabled());
	KUNIT_EXPECT_FALSE(test, cohort_region_enabled());
	KUNIT_EXPECT_EQ(test, cohort_block_stats(nr), 0);
	KUNIT_EXPECT_EQ(test, cohort_soft(), 0);
	KUNIT_EXPECT_EQ(test, cohort_test_domains(), 0);
	KUNIT_EXPECT_NULL(test, cohort_anon_domain(current->mm, 0));
	cohort_test_touch(test, addr + half * PAGE_SIZE, half / 2);
	KUNIT_EXPECT_EQ(test, cohort_block_stats(nr), 0);

	KUNIT_ASSERT_EQ(test, cohort_region_switch(true), 0);
	KUNIT_EXPECT_TRUE(test, cohort_region_enabled());
	cohort_test_touch(test, addr + half * PAGE_SIZE, half);
	KUNIT_EXPECT_PTR_EQ(test, current->mm->cohort,
			    cohort_test_domain_at(test, addr + (pages - 1) * PAGE_SIZE));
	cohort_test_verify(test, addr, pages);
}

static void cohort_region_test_switch_twice(struct kunit *test)
{
	unsigned int i;

	KUNIT_EXPECT_EQ(test, cohort_region_switch(true), 0);
	KUNIT_EXPECT_TRUE(test, cohort_region_enabled());
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, cohort_region_switch(i & 1), 0);
		KUNIT_EXPECT_EQ(test, cohort_region_switch(i & 1), 0);
		KUNIT_EXPECT_EQ(test, cohort_region_enabled(), (bool)(i & 1));
	}
}

/*
 * The work of CMA and memory offlining, over blocks with pages in use.  Isolation
 * works on whole pageblocks, and in one of them there may be another owner's
 * page that cannot move.
 */
static void cohort_region_test_contig_range(struct kunit *test)
{
	unsigned int i, pages = 4 * pageblock_nr_pages;
	unsigned long addr, first;
	struct zone *zone;
	int err = -EBUSY;

	if (!IS_ENABLED(CONFIG_CONTIG_ALLOC))
		kunit_skip(test, "no CONFIG_CONTIG_ALLOC");
	addr = cohort_test_map(test, pages);
	cohort_test_grow_up(test);
	cohort_test_touch(test, addr, pages);
	lru_add_drain_all();

	for (i = 0; i < pages && err; i += cohort_pages()) {
		first = page_to_pfn(cohort_test_page_at(test, addr + i * PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, cohort_owner_id(first), current->mm->cohort->id);
		first = round_down(first, pageblock_nr_pages);
		err = alloc_contig_range(first, first + pageblock_nr_pages,
					 MIGRATE_MOVABLE, GFP_KERNEL);
	}
	KUNIT_ASSERT_EQ(test, err, 0);
	for (i = 0; i < pageblock_nr_pages; i += cohort_pages())
		KUNIT_EXPECT_EQ(test, cohort_page_parked(pfn_to_page(first + i)), false);
	free_contig_range(first, pageblock_nr_pages);
	for_each_populated_zone(zone)
		cohort_test_recount(test, zone, 0);
	cohort_test_verify(test, addr, pages);
}

static void cohort_region_test_contig_pages(struct kunit *test)
{
	unsigned int nr = 2 * pageblock_nr_pages, pages = 3 * cohort_pages();
	unsigned long addr;
	struct page *page;

	if (!IS_ENABLED(CONFIG_CONTIG_ALLOC))
		kunit_skip(test, "no CONFIG_CONTIG_ALLOC");
	addr = cohort_test_map(test, pages);
	cohort_test_touch(test, addr, pages);
	page = alloc_contig_pages(nr, GFP_KERNEL, numa_mem_id(), NULL);
	KUNIT_EXPECT_NOT_NULL(test, page);
	cohort_test_verify(test, addr, pages);
	if (page)
		free_contig_range(page_to_pfn(page), nr);
}

static struct kunit_case cohort_region_test_cases[] = {
	KUNIT_CASE(cohort_region_test_cache_domain),
	KUNIT_CASE(cohort_region_test_buffer_domain),
	KUNIT_CASE(cohort_region_test_cache_not_unevictable),
	KUNIT_CASE(cohort_region_test_cache_asked_unmovable),
	KUNIT_CASE(cohort_region_test_vmalloc_domain),
	KUNIT_CASE(cohort_region_test_more),
	KUNIT_CASE(cohort_region_test_small_area),
	KUNIT_CASE(cohort_region_test_kernel_domain),
	KUNIT_CASE(cohort_region_test_buffer_order),
	KUNIT_CASE(cohort_region_test_zspage_domain),
	KUNIT_CASE(cohort_region_test_zspage_compact),
	KUNIT_CASE(cohort_region_test_hole),
	KUNIT_CASE(cohort_region_test_room),
	KUNIT_CASE(cohort_region_test_lazily_freed),
	KUNIT_CASE(cohort_region_test_no_room),
	KUNIT_CASE(cohort_region_test_anon_domain),
	KUNIT_CASE(cohort_region_test_off_and_on),
	KUNIT_CASE(cohort_region_test_switch_twice),
	KUNIT_CASE(cohort_region_test_contig_range),
	KUNIT_CASE(cohort_region_test_contig_pages),
	{}
};

static struct kunit_suite cohort_region_test_suite = {
	.name = "cohort_region",
	.suite_init = cohort_test_suite_init,
	.suite_exit = cohort_test_suite_exit,
	.init = cohort_test_wait,
	.test_cases = cohort_region_test_cases,
};
kunit_test_suite(cohort_region_test_suite);
