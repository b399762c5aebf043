// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks: from the buddy allocator to a domain, and all the ways back.
 */
#include <linux/memory.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/page-isolation.h>
#include <linux/pagevec.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "cohort_test.h"

/* A free page is in a per-CPU list for a while before it is in the buddy's. */
static bool cohort_block_test_is_buddy(struct page *page)
{
	drain_all_pages(NULL);
	return is_free_buddy_page(page);
}

static void cohort_block_test_goes_home(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk;
	struct cohort_room *room;
	struct page *page;

	cohort_test_take(test, 1);
	page = ct->page[0];
	blk = cohort_test_block(page);
	room = cohort_test_room(test);
	KUNIT_EXPECT_PTR_EQ(test, blk->room, room);
	KUNIT_EXPECT_PTR_EQ(test, room->dom, ct->dom);
	KUNIT_EXPECT_EQ(test, cohort_owner_id(page_to_pfn(page)), ct->dom->id);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 1);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), cohort_pages() - 1);

	cohort_test_free(test, 0, 1);
	KUNIT_EXPECT_NULL(test, blk->room);
	KUNIT_EXPECT_EQ(test, cohort_owner_id(page_to_pfn(page)), 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), 0);
	KUNIT_EXPECT_EQ(test, room->nonempty, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&room->breach));
	KUNIT_EXPECT_TRUE(test, cohort_block_test_is_buddy(page));
}

static void cohort_block_test_taken_in_order(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int i, wrong = 0;

	cohort_test_take(test, cohort_pages());
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 1);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), 0);
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED(page_to_pfn(ct->page[0]), cohort_pages()));
	for (i = 1; i < cohort_pages(); i++)
		wrong += ct->page[i] != ct->page[0] + i;
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

static void cohort_block_test_any_order_of_frees(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *first;

	cohort_test_take(test, 2 * cohort_pages());
	first = ct->page[0];
	cohort_test_free_shuffled(test);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), 0);
	KUNIT_EXPECT_TRUE(test, cohort_block_test_is_buddy(first));
}

/* Free pages merge up to the block, and with the last page the block comes home. */
static void cohort_block_test_merged_pieces(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int o, order = cohort_block_order(), wrong = 0;
	struct cohort_block *blk;
	struct page *page;
	unsigned long flags;

	cohort_test_take(test, cohort_pages());
	page = ct->page[0];
	blk = cohort_test_block(page);
	cohort_test_free(test, 1, cohort_pages() - 1);
	spin_lock_irqsave(&page_zone(page)->lock, flags);
	for (o = 0; o < order; o++) {
		struct page *piece = page + (1 << o);

		wrong += !list_is_singular(&blk->free[o]) || !PageBuddy(piece) ||
			 buddy_order(piece) != o;
	}
	spin_unlock_irqrestore(&page_zone(page)->lock, flags);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, blk->nr_free, cohort_pages() - 1);
	KUNIT_EXPECT_EQ(test, cohort_test_buddy_order(page), -1);

	cohort_test_free(test, 0, 1);
	KUNIT_EXPECT_NULL(test, blk->room);
	KUNIT_EXPECT_EQ(test, blk->nr_free, 0);
	KUNIT_EXPECT_GE(test, cohort_test_buddy_order(page), (int)order);
}

static void cohort_block_test_parked_page(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *page;

	cohort_test_take(test, 2);
	page = ct->page[1];
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	KUNIT_EXPECT_FALSE(test, cohort_page_parked(page));

	/* At hand it is as on a per-CPU list. */
	cohort_test_drop(test, 1, 1);
	KUNIT_EXPECT_FALSE(test, cohort_page_parked(page));
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 1);
	KUNIT_EXPECT_EQ(test, page_count(page), 0);

	cohort_domain_drain(ct->dom);
	KUNIT_EXPECT_TRUE(test, cohort_page_parked(page));
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 0);
	KUNIT_EXPECT_EQ(test, page_count(page), 0);
	KUNIT_EXPECT_TRUE(test, PageBuddy(page));
	KUNIT_EXPECT_TRUE(test, is_free_buddy_page(page));
	KUNIT_EXPECT_EQ(test, buddy_order(page), 0);
	KUNIT_EXPECT_NULL(test, page->mapping);
	KUNIT_EXPECT_EQ(test, page->flags & PAGE_FLAGS_CHECK_AT_PREP & ~__PG_HWPOISON, 0);

	/* It is the smallest piece, so it is the next one taken. */
	cohort_test_take(test, 1);
	KUNIT_EXPECT_PTR_EQ(test, ct->page[2], page);
}

static unsigned long cohort_block_test_on_list(struct list_head *list)
{
	struct list_head *at;
	unsigned long nr = 0;

	list_for_each(at, list)
		nr++;
	return nr;
}

/* Free pages are on the zone's lists or on those of blocks, and in one count. */
static bool cohort_block_test_balance(struct zone *zone, unsigned long *off_lists)
{
	unsigned long flags, sum = 0, free;
	unsigned int o, mt;

	*off_lists = 0;
	spin_lock_irqsave(&zone->lock, flags);
	for (o = 0; o < NR_PAGE_ORDERS; o++) {
		struct free_area *area = &zone->free_area[o];
		unsigned long nr = 0;

		for (mt = 0; mt < MIGRATE_TYPES; mt++)
			nr += cohort_block_test_on_list(&area->free_list[mt]);
		*off_lists += nr != area->nr_free;
		sum += nr << o;
		if (o < COHORT_MAX_ORDER)
			sum += (zone->cohort->pieces[o] + zone->cohort->kept_pieces[o]) << o;
	}
	free = zone_page_state_snapshot(zone, NR_FREE_PAGES);
	spin_unlock_irqrestore(&zone->lock, flags);
	return sum == free;
}

static void cohort_block_test_counters(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned long off_lists;
	struct zone *zone;
	unsigned int i;

	cohort_test_take(test, cohort_pages() + 3);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), cohort_pages() - 3);
	for_each_populated_zone(zone) {
		cohort_test_recount(test, zone, 0);
		/* A CPU may add its part of the statistic between two looks. */
		for (i = 0; i < 100 && !cohort_block_test_balance(zone, &off_lists); i++)
			;
		KUNIT_EXPECT_LT(test, i, 100);
		KUNIT_EXPECT_EQ(test, off_lists, 0);
	}
}

/* The statistic follows the exact count. */
static void cohort_block_test_shown(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct zone *zone;
	unsigned long flags, soft;
	unsigned int i;

	cohort_test_take(test, 3);
	zone = page_zone(ct->page[0]);
	for (i = 0; i < 100; i++) {
		bool equal;

		spin_lock_irqsave(&zone->lock, flags);
		cohort_zone_show(zone);
		soft = zone->cohort_soft;
		equal = zone_page_state_snapshot(zone, NR_COHORT_OWNED) == soft;
		spin_unlock_irqrestore(&zone->lock, flags);
		if (equal)
			break;
	}
	KUNIT_EXPECT_LT(test, i, 100);
	KUNIT_EXPECT_GE(test, soft, cohort_pages() - 3);
}

/* No watermark counts what has an owner. */
static void cohort_block_test_watermark(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned long free, usable;
	struct zone *zone;

	cohort_test_take(test, 1);
	zone = page_zone(ct->page[0]);
	free = zone_page_state(zone, NR_FREE_PAGES);
	usable = free - READ_ONCE(zone->cohort_soft) - READ_ONCE(zone->nr_free_highatomic);
	/* Half a block is more than what others do meanwhile. */
	KUNIT_EXPECT_FALSE(test, zone_watermark_ok(zone, 0, usable + cohort_pages() / 2,
						   zone_idx(zone), 0));
	KUNIT_EXPECT_TRUE(test, zone_watermark_ok(zone, 0, usable - cohort_pages() / 2,
						  zone_idx(zone), 0));
}

static void cohort_block_test_stats(struct kunit *test)
{
	unsigned long nr[COHORT_NR_KINDS], before, all, sum = 0;
	unsigned int kind;

	cohort_block_stats(nr);
	before = nr[COHORT_PROCESS];
	cohort_test_take(test, cohort_pages() + 1);
	all = cohort_block_stats(nr);
	for (kind = 0; kind < COHORT_NR_KINDS; kind++)
		sum += nr[kind];
	KUNIT_EXPECT_EQ(test, all, sum);
	KUNIT_EXPECT_EQ(test, nr[COHORT_PROCESS], before + 2);
}

/* Holes do not turn a pageblock over: they go with the pages around them. */
static void cohort_block_test_holes_are_movable(struct kunit *test)
{
	int movable = 0, size = cohort_pages() / 2;
	struct cohort_test *ct = test->priv;
	struct page *own, *hole;
	unsigned long flags;
	struct zone *zone;

	own = cohort_alloc_pages_noprof(GFP_KERNEL, numa_mem_id(), NULL,
					cohort_region_domain(COHORT_VMALLOC));
	KUNIT_ASSERT_NOT_NULL(test, own);
	cohort_domain_drain(cohort_region_domain(COHORT_VMALLOC));
	cohort_test_take(test, 1);
	hole = ct->page[0] + size;
	KUNIT_ASSERT_TRUE(test, cohort_page_parked(hole));
	zone = page_zone(hole);
	spin_lock_irqsave(&zone->lock, flags);
	KUNIT_EXPECT_TRUE(test, cohort_hole(hole, size, &movable));
	KUNIT_EXPECT_EQ(test, movable, size);
	KUNIT_EXPECT_TRUE(test, cohort_hole(own, 1, &movable));
	KUNIT_EXPECT_EQ(test, movable, size);
	spin_unlock_irqrestore(&zone->lock, flags);
	__free_page(own);
}

static void cohort_block_test_dissolve_in_use(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *page, *parked;
	struct cohort_block *blk;

	cohort_test_take(test, 3);
	page = ct->page[1];
	parked = page + 2;
	blk = cohort_test_block(page);
	cohort_domain_dissolve(ct->dom);
	KUNIT_EXPECT_NULL(test, blk->room);
	KUNIT_EXPECT_EQ(test, blk->nr_free, 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), 0);
	KUNIT_EXPECT_FALSE(test, cohort_page_parked(parked));
	cohort_test_recount(test, page_zone(page), 0);
	/* Those in use keep their frames until freed, then they are the buddy's. */
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	KUNIT_EXPECT_FALSE(test, cohort_block_test_is_buddy(page));
	cohort_test_free(test, 0, 3);
	KUNIT_EXPECT_TRUE(test, cohort_block_test_is_buddy(page));
	KUNIT_EXPECT_FALSE(test, cohort_page_parked(page));
	KUNIT_EXPECT_GE(test, cohort_test_buddy_order(page), (int)cohort_block_order());
}

static void cohort_block_test_dissolve_range(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *one, *other;
	struct cohort_room *room;
	unsigned long pfn;

	cohort_test_take(test, cohort_pages() + 1);
	one = cohort_test_block(ct->page[0]);
	other = cohort_test_block(ct->page[cohort_pages()]);
	KUNIT_ASSERT_PTR_NE(test, one, other);
	room = other->room;

	/* One frame inside is enough, and the neighbour is left alone. */
	pfn = page_to_pfn(ct->page[0]) + cohort_pages() / 2;
	cohort_dissolve_range(pfn, pfn + 1);
	KUNIT_EXPECT_NULL(test, one->room);
	KUNIT_EXPECT_PTR_EQ(test, other->room, room);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 1);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), cohort_pages() - 1);
	cohort_test_free(test, 0, cohort_pages());
	KUNIT_EXPECT_TRUE(test, cohort_block_test_is_buddy(pfn_to_page(pfn)));
}

/* A pageblock with blocks of this process that can be isolated, isolated. */
static unsigned long cohort_block_test_isolate(struct kunit *test, unsigned long addr,
					       unsigned int pages)
{
	unsigned long first;
	unsigned int i;

	for (i = 0; i < pages; i += cohort_pages() / 2) {
		first = page_to_pfn(cohort_test_page_at(test, addr + i * PAGE_SIZE));
		first = round_down(first, pageblock_nr_pages);
		if (!start_isolate_page_range(first, first + pageblock_nr_pages,
					      MIGRATE_MOVABLE, 0, GFP_KERNEL))
			return first;
	}
	kunit_skip(test, "no pageblock can be isolated");
	return 0;
}

static unsigned long cohort_block_test_free_in(unsigned long first)
{
	unsigned long pfn, nr = 0;

	for (pfn = first; pfn < first + pageblock_nr_pages; pfn += cohort_pages()) {
		struct cohort_block *blk = cohort_block_of(pfn);

		nr += blk->room ? blk->nr_free : 0;
	}
	return nr;
}

/* Nothing is handed out of what is being isolated, and the counts leave it out. */
static void cohort_block_test_isolation(struct kunit *test)
{
	unsigned int i, wrong = 0, pages = 4 * pageblock_nr_pages, more = 2 * cohort_pages();
	unsigned long addr = cohort_test_map(test, pages + more), first, isolated;
	struct cohort_domain *dom;
	struct zone *zone;
	LIST_HEAD(breached);
	struct page *page, *next;

	cohort_test_grow_up(test);
	cohort_test_touch(test, addr, pages);
	dom = current->mm->cohort;
	lru_add_drain_all();
	for (i = 0; i < pages; i += 2)
		do_madvise(current->mm, addr + i * PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	cohort_domain_drain(dom);
	first = cohort_block_test_isolate(test, addr + PAGE_SIZE, pages);
	zone = page_zone(pfn_to_page(first));
	isolated = cohort_block_test_free_in(first);
	KUNIT_EXPECT_GT(test, isolated, 0);
	cohort_test_recount(test, zone, isolated);

	for (i = 0; i < more; i++) {
		unsigned long at = addr + (pages + i) * PAGE_SIZE;

		cohort_test_touch(test, at, 1);
		wrong += page_to_pfn(cohort_test_page_at(test, at)) - first < pageblock_nr_pages;
		page = cohort_test_breach(GFP_HIGHUSER_MOVABLE, 0);
		if (!page)
			continue;
		wrong += page_to_pfn(page) - first < pageblock_nr_pages;
		list_add(&page->lru, &breached);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	list_for_each_entry_safe(page, next, &breached, lru) {
		list_del(&page->lru);
		__free_page(page);
	}
	/* Pages freed there go straight to the buddy allocator. */
	KUNIT_EXPECT_EQ(test, cohort_block_test_free_in(first), isolated);
	for (i = 1; i < pages; i++) {
		unsigned long at = addr + i * PAGE_SIZE;

		if (i % 2 &&
		    page_to_pfn(cohort_test_page_at(test, at)) - first < pageblock_nr_pages)
			break;
	}
	do_madvise(current->mm, addr + i * PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	isolated = cohort_block_test_free_in(first);
	cohort_test_recount(test, zone, isolated);

	undo_isolate_page_range(first, first + pageblock_nr_pages, MIGRATE_MOVABLE);
	cohort_domain_drain(dom);
	cohort_test_recount(test, zone, 0);
}

static void cohort_block_test_switching_off_is_refused(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *page;

	WRITE_ONCE(cohort_taking, false);
	page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, numa_mem_id(), NULL, ct->dom);
	WRITE_ONCE(cohort_taking, true);

	/* A hole of others or the stock allocator serves it. */
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
	KUNIT_EXPECT_PTR_NE(test, cohort_test_owner(page), ct->dom);
	__free_page(page);
}

static void cohort_block_test_next_pfn(struct kunit *test)
{
	int order = cohort_block_order();
	struct cohort_test *ct = test->priv;
	unsigned long first;

	cohort_test_take(test, 1);
	first = page_to_pfn(ct->page[0]);
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(first, -1), first + cohort_pages());
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(first + cohort_pages() - 1, order),
			first + cohort_pages());
	/* A piece smaller than the one wanted may be in the way. */
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(first + 1, order + 1), first + 1);

	cohort_domain_dissolve(ct->dom);
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(first + 1, -1), first + 1);
}

/* Memory that was added after the table was made, until it gets its span. */
static void cohort_block_test_beyond_the_table(struct kunit *test)
{
	unsigned long pfn = cohort_table->nr << COHORT_SPAN_SHIFT;

	KUNIT_EXPECT_NULL(test, cohort_block_of(pfn));
	KUNIT_EXPECT_EQ(test, cohort_owner_id(pfn), 0);
	pfn = ULONG_MAX - 1;
	KUNIT_EXPECT_NULL(test, cohort_block_of(pfn));
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(pfn, -1), pfn);
	cohort_dissolve_range(ULONG_MAX - 2 * COHORT_BLOCK_PAGES,
			      ULONG_MAX - COHORT_BLOCK_PAGES);
}

/* Memory may come that firmware did not tell of. */
static void cohort_block_test_table_grows(struct kunit *test)
{
	struct memory_notify mem = {
		.start_pfn = cohort_table->nr << COHORT_SPAN_SHIFT,
		.nr_pages = COHORT_SPAN_PAGES,
	};
	struct cohort_block *known = cohort_block_of(0);

	KUNIT_EXPECT_EQ(test, cohort_memory_notify(NULL, MEM_GOING_ONLINE, &mem),
			notifier_from_errno(0));
	KUNIT_EXPECT_NOT_NULL(test, cohort_block_of(mem.start_pfn));
	KUNIT_EXPECT_EQ(test, cohort_owner_id(mem.start_pfn), 0);
	KUNIT_EXPECT_PTR_EQ(test, cohort_block_of(0), known);
}

/* A block that lost a frame would never come home. */
static void cohort_block_test_hwpoison(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk;
	struct page *page;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "no CONFIG_MEMORY_FAILURE");
	cohort_test_take(test, 2);
	page = ct->page[0] + cohort_pages() / 2;
	blk = cohort_test_block(page);
	KUNIT_EXPECT_EQ(test, memory_failure(page_to_pfn(page), MF_SW_SIMULATED), 0);
	KUNIT_EXPECT_TRUE(test, PageHWPoison(page));
	KUNIT_EXPECT_NULL(test, blk->room);
	KUNIT_EXPECT_EQ(test, unpoison_memory(page_to_pfn(page)), 0);
}

/* A CPU keeps no more than a magazine has room for, and what it keeps can be drained. */
static void cohort_block_test_magazine(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int i, most = 0;

	cohort_test_take(test, 4 * cohort_pages());
	for (i = 0; i < ct->nr; i++) {
		cohort_test_drop(test, i, 1);
		most = max(most, cohort_test_at_hand(ct->dom->id));
	}
	KUNIT_EXPECT_LE(test, most, COHORT_ROUNDS);
	KUNIT_EXPECT_GE(test, most, COHORT_ROUND);
	KUNIT_EXPECT_GT(test, cohort_test_at_hand(ct->dom->id), 0);
	drain_all_pages(NULL);
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
}

/* What has not been used between two looks goes back. */
static void cohort_block_test_magazine_ages(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct zone *zone;

	cohort_test_take(test, 8);
	zone = page_zone(ct->page[0]);
	migrate_disable();
	cohort_test_drop(test, 0, 4);
	KUNIT_EXPECT_TRUE(test, __cohort_age(zone));
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 4);
	cohort_test_drop(test, 4, 2);
	__cohort_age(zone);
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 6);
	__cohort_age(zone);
	migrate_enable();
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), cohort_pages() - 2);
}

/* The pages of a folio batch are at hand together, with others among them or without. */
static void cohort_block_test_batch(struct kunit *test)
{
	struct folio *stranger = folio_alloc(GFP_KERNEL, 1);
	struct cohort_test *ct = test->priv;
	struct folio_batch batch;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, stranger);
	cohort_test_take(test, 8);
	folio_batch_init(&batch);
	for (i = 0; i < 7; i++) {
		if (i == 3)
			folio_batch_add(&batch, stranger);
		folio_batch_add(&batch, page_folio(ct->page[i]));
		ct->page[i] = NULL;
	}
	folios_put(&batch);
	KUNIT_EXPECT_EQ(test, folio_batch_count(&batch), 0);
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 7);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), cohort_pages() - 8);
	cohort_domain_drain(ct->dom);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), cohort_pages() - 1);
}

/* Pages that are freed in a row make the pieces that one by one they would have made. */
static void cohort_block_test_in_a_row(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk;
	struct zone *zone;
	unsigned int i, first = 3, nr = 14;

	cohort_test_take(test, cohort_pages());
	zone = page_zone(ct->page[0]);
	blk = cohort_test_block(ct->page[0]);
	for (i = first; i < first + nr; i++)
		KUNIT_EXPECT_TRUE(test, put_page_testzero(ct->page[i]) &&
					cohort_free_prepare(ct->page[i]));
	cohort_buddy_free_bulk(zone, ct->page + first, nr);
	memset(ct->page + first, 0, nr * sizeof(ct->page[0]));
	KUNIT_EXPECT_EQ(test, blk->nr_free, nr);
	/* 3; 4 to 7; 8 to 15; 16. */
	KUNIT_EXPECT_EQ(test, list_count_nodes(&blk->free[0]), 2);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&blk->free[1]), 0);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&blk->free[2]), 1);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&blk->free[3]), 1);
	cohort_test_recount(test, zone, 0);
}

/* While per-CPU lists are disabled, as for memory that goes offline, it keeps nothing. */
static void cohort_block_test_magazine_closed(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct zone *zone;

	cohort_test_take(test, 8);
	zone = page_zone(ct->page[0]);
	cohort_test_drop(test, 0, 4);
	zone_pcp_disable(zone);
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 0);
	cohort_test_drop(test, 4, 3);
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 0);
	zone_pcp_enable(zone);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), cohort_pages() - 1);
}

static struct kunit_case cohort_block_test_cases[] = {
	KUNIT_CASE(cohort_block_test_goes_home),
	KUNIT_CASE(cohort_block_test_taken_in_order),
	KUNIT_CASE(cohort_block_test_any_order_of_frees),
	KUNIT_CASE(cohort_block_test_merged_pieces),
	KUNIT_CASE(cohort_block_test_parked_page),
	KUNIT_CASE(cohort_block_test_counters),
	KUNIT_CASE(cohort_block_test_shown),
	KUNIT_CASE(cohort_block_test_watermark),
	KUNIT_CASE(cohort_block_test_stats),
	KUNIT_CASE(cohort_block_test_holes_are_movable),
	KUNIT_CASE(cohort_block_test_dissolve_in_use),
	KUNIT_CASE(cohort_block_test_dissolve_range),
	KUNIT_CASE(cohort_block_test_isolation),
	KUNIT_CASE(cohort_block_test_switching_off_is_refused),
	KUNIT_CASE(cohort_block_test_next_pfn),
	KUNIT_CASE(cohort_block_test_beyond_the_table),
	KUNIT_CASE(cohort_block_test_table_grows),
	KUNIT_CASE(cohort_block_test_hwpoison),
	KUNIT_CASE(cohort_block_test_magazine),
	KUNIT_CASE(cohort_block_test_magazine_ages),
	KUNIT_CASE(cohort_block_test_batch),
	KUNIT_CASE(cohort_block_test_in_a_row),
	KUNIT_CASE(cohort_block_test_magazine_closed),
	{}
};

static struct kunit_suite cohort_block_test_suite = {
	.name = "cohort_block",
	.suite_init = cohort_test_suite_init,
	.suite_exit = cohort_test_suite_exit,
	.init = cohort_test_init,
	.exit = cohort_test_exit,
	.test_cases = cohort_block_test_cases,
};
kunit_test_suite(cohort_block_test_suite);
