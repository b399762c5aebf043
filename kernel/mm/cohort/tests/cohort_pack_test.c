// SPDX-License-Identifier: GPL-2.0
/*
 * The supply of whole blocks where much is against it: blocks that rest, owners that have
 * too much free, marks that are being written.
 */
#include <linux/delay.h>
#include <linux/mman.h>
#include <linux/page-isolation.h>
#include <linux/sched/mm.h>
#include <linux/swap.h>

#include "../host/compaction.h"
#include "cohort_test.h"

/* More blocks than are passed over on one list. */
#define PACK_TEST_RESTING	67

/* One page of each block stays, of the last two every second one. */
static bool cohort_pack_test_stays(struct kunit *test, unsigned long addr, unsigned int i)
{
	unsigned long pfn = page_to_pfn(cohort_test_page_at(test, addr + i * PAGE_SIZE));

	if (i >= PACK_TEST_RESTING * cohort_pages())
		return pfn % 2;
	return pfn % cohort_pages() == 0;
}

static struct cohort_room *cohort_pack_test_largest(struct cohort_domain *dom)
{
	struct cohort_room *most = NULL;
	unsigned int i;

	for (i = 0; i < cohort_nr_rooms(); i++) {
		struct cohort_room *room = dom->room[i];

		if (room && (!most || room->nr_blocks > most->nr_blocks))
			most = room;
	}
	return most;
}

/* What free pages the emptiest blocks have, which all rest. */
static unsigned int cohort_pack_test_rest(struct cohort_room *room)
{
	unsigned int top = COHORT_BUCKETS - 1, nr = 0;
	struct cohort_block *blk;

	spin_lock_irq(&room->zone->lock);
	list_for_each_entry(blk, &room->list[top], node) {
		blk->retry = jiffies + 60 * HZ;
		nr++;
	}
	spin_unlock_irq(&room->zone->lock);
	return nr;
}

/* Blocks that were emptied in vain do not hide those behind them. */
static void cohort_pack_test_behind_resting(struct kunit *test)
{
	unsigned int i, pages = (PACK_TEST_RESTING + 2) * cohort_pages();
	unsigned long addr = cohort_test_map(test, pages);
	struct cohort_block *blk;
	struct cohort_room *room;

	cohort_test_grow_up(test);
	cohort_test_touch(test, addr, pages);
	for (i = 0; i < pages; i++)
		if (!cohort_pack_test_stays(test, addr, i))
			do_madvise(current->mm, addr + i * PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	lru_add_drain_all();
	cohort_domain_drain(current->mm->cohort);
	room = cohort_pack_test_largest(current->mm->cohort);
	KUNIT_ASSERT_NOT_NULL(test, room);
	KUNIT_ASSERT_GT(test, cohort_pack_test_rest(room), 64);
	blk = cohort_pick_victim(room);
	KUNIT_EXPECT_NOT_NULL(test, blk);
	if (blk)
		cohort_unpick(room, blk);
}

/* Compaction passes over a pageblock without a mark only if its search never comes to it. */
static void cohort_pack_test_pageblock_owned(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int i, whole = 0;

	cohort_test_take(test, COHORT_TEST_PAGES);
	for (i = 0; i < ct->nr; i += cohort_pages()) {
		unsigned long pfn = pageblock_start_pfn(page_to_pfn(ct->page[i]));
		unsigned long end = pfn + pageblock_nr_pages;
		bool all = true, own = true;

		for (; pfn < end; pfn += cohort_pages()) {
			all &= cohort_owner_id(pfn) != 0;
			own &= cohort_owner_id(pfn) == ct->dom->id;
		}
		/* Blocks of others come and go. */
		if (!all)
			KUNIT_EXPECT_FALSE(test, cohort_pageblock_all_owned(ct->page[i]));
		if (own)
			KUNIT_EXPECT_TRUE(test, cohort_pageblock_all_owned(ct->page[i]));
		whole += own;
	}
	kunit_info(test, "blocks in pageblocks that have owners throughout: %u", whole);
	cohort_domain_dissolve(ct->dom);
	KUNIT_EXPECT_FALSE(test, cohort_pageblock_all_owned(ct->page[0]));
}

/* Blocks of memory that cannot be moved are given up at any filling. */
static void cohort_pack_test_relieves_unmovable(struct kunit *test)
{
	struct cohort_domain *dom = cohort_region_domain(COHORT_KERNEL);
	unsigned int i, nr = 2 * cohort_pages(), given;
	unsigned long blocks;
	struct page **page;

	page = kunit_kcalloc(test, nr, sizeof(*page), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	for (i = 0; i < nr; i++)
		page[i] = cohort_alloc_pages_noprof(GFP_KERNEL, numa_mem_id(), NULL, dom);
	for (i = 0; i < nr; i++)
		if (page[i] && page_to_pfn(page[i]) % 8 == 0) {
			__free_page(page[i]);
			page[i] = NULL;
		}
	cohort_domain_drain(dom);
	blocks = cohort_domain_blocks(dom);
	given = cohort_room_relieve(cohort_pack_test_largest(dom), 4, false);
	KUNIT_EXPECT_GT(test, given, 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(dom), blocks - given);
	for (i = 0; i < nr; i++)
		if (page[i])
			__free_page(page[i]);
}

/* Owners seem to have more free than they may, or with a @sign of -1 no longer. */
static void cohort_pack_test_excess(struct zone *zone, long sign)
{
	unsigned long nr = node_present_pages(zone_to_nid(zone)) / 8;

	spin_lock_irq(&zone->lock);
	zone->cohort_soft += sign * nr;
	spin_unlock_irq(&zone->lock);
}

static struct zone *cohort_pack_test_zone(struct kunit *test)
{
	struct cohort_test *ct = test->priv;

	cohort_test_take(test, 1);
	return page_zone(ct->page[0]);
}

/* No process gets its first block then: what is free in it would be in no account. */
static void cohort_pack_test_no_first_block(struct kunit *test)
{
	struct cohort_domain *dom = cohort_domain_create(COHORT_PROCESS, GFP_KERNEL);
	struct zone *zone = cohort_pack_test_zone(test);
	struct page *page;

	KUNIT_ASSERT_NOT_NULL(test, dom);
	cohort_pack_test_excess(zone, 1);
	KUNIT_EXPECT_TRUE(test, cohort_node_excess(zone_to_nid(zone)));
	page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, zone_to_nid(zone), NULL, dom);
	cohort_pack_test_excess(zone, -1);
	KUNIT_EXPECT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(dom), 0);
	if (page)
		__free_page(page);
	cohort_domain_destroy(dom);
}

/* Too much that cannot be given up does not put packing off. */
static void cohort_pack_test_excess_in_vain(struct kunit *test)
{
	unsigned long headroom = cohort_headroom, addr = cohort_test_map(test, 1);
	struct zone *zone = cohort_pack_test_zone(test);
	struct page *page;
	unsigned int i;
	bool drained;

	WRITE_ONCE(cohort_headroom, 0);
	cohort_pack_test_excess(zone, 1);
	/* Further apart no runs are. */
	msleep(3500);
	for (i = 0; i < 55; i++) {
		cohort_pack_wake(zone->zone_pgdat);
		flush_workqueue(cohort_wq);
		msleep(60);
	}
	/* The drain has a limit of its own. */
	msleep(1100);
	cohort_test_touch(test, addr, 1);
	page = cohort_test_page_at(test, addr);
	WRITE_ONCE(cohort_headroom, totalram_pages());
	cohort_pack_wake(zone->zone_pgdat);
	flush_workqueue(cohort_wq);
	drained = PageLRU(page);
	WRITE_ONCE(cohort_headroom, headroom);
	cohort_pack_test_excess(zone, -1);
	KUNIT_EXPECT_TRUE(test, drained);
}

/* Does a domain have fewer blocks after so many runs, while owners have too much? */
static bool cohort_pack_test_loses_blocks(struct cohort_domain *dom, unsigned int runs)
{
	unsigned long headroom = cohort_headroom, before = cohort_domain_blocks(dom);
	struct zone *zone = cohort_pack_test_largest(dom)->zone;
	bool fewer = false;

	WRITE_ONCE(cohort_headroom, 0);
	cohort_pack_test_excess(zone, 1);
	while (!fewer && runs--) {
		cohort_pack_wake(zone->zone_pgdat);
		flush_workqueue(cohort_wq);
		msleep(60);
		fewer = cohort_domain_blocks(dom) < before;
	}
	cohort_pack_test_excess(zone, -1);
	WRITE_ONCE(cohort_headroom, headroom);
	return fewer;
}

/* A process of whose pages @holes of @of are free again.  Return: its domain. */
static struct cohort_domain *cohort_pack_test_holes(struct kunit *test, unsigned int pages,
						    unsigned int of, unsigned int holes)
{
	unsigned long addr = cohort_test_map(test, pages);
	unsigned int i;

	cohort_test_grow_up(test);
	cohort_test_touch(test, addr, pages);
	for (i = 0; i < pages; i++)
		if (i % of < holes)
			do_madvise(current->mm, addr + i * PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	lru_add_drain_all();
	cohort_domain_drain(current->mm->cohort);
	return current->mm->cohort;
}

/* Holes that are not worth giving a block up for are packed while owners have too much. */
static void cohort_pack_test_excess_is_packed(struct kunit *test)
{
	struct cohort_domain *dom = cohort_pack_test_holes(test, 8 * cohort_pages(), 8, 3);

	KUNIT_ASSERT_GT(test, cohort_domain_blocks(dom), 4);
	/* The last runs may have put it off. */
	KUNIT_EXPECT_TRUE(test, cohort_pack_test_loses_blocks(dom, 70));
}

/* A little that each of many has is too little to be packed, and is given up in the end. */
static void cohort_pack_test_excess_of_many(struct kunit *test)
{
	struct cohort_domain *dom = cohort_pack_test_holes(test, 3 * cohort_pages(), 16, 1);

	KUNIT_ASSERT_LT(test, cohort_domain_free(dom), cohort_pages());
	/* First what others have more of is tried, and then less and less often. */
	KUNIT_EXPECT_TRUE(test, cohort_pack_test_loses_blocks(dom, 300));
}

static unsigned long cohort_pack_test_headroom(void)
{
	unsigned long sum = 0;
	struct zone *zone;

	for_each_populated_zone(zone)
		sum += cohort_zone_headroom(zone);
	return sum;
}

/* Memory that a balloon has taken is not in the part of memory that is kept ready. */
static void cohort_pack_test_balloon(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct zone *zone = cohort_pack_test_zone(test);
	long nr = zone_managed_pages(zone) / 2;
	unsigned long sum;

	KUNIT_ASSERT_EQ(test, cohort_headroom, COHORT_HEADROOM_OF_MEMORY);
	adjust_managed_page_count(ct->page[0], -nr);
	sum = cohort_pack_test_headroom();
	KUNIT_EXPECT_LE(test, sum, totalram_pages() / COHORT_HEADROOM_PART);
	adjust_managed_page_count(ct->page[0], nr);
	KUNIT_EXPECT_GT(test, cohort_pack_test_headroom(), sum);
}

/* The marks are written one by one, the lower ones first. */
static void cohort_pack_test_marks(struct kunit *test)
{
	struct zone *zone = cohort_pack_test_zone(test);
	unsigned long low = zone->_watermark[WMARK_LOW], high = high_wmark_pages(zone);

	cohort_pack_test_excess(zone, 1);
	WRITE_ONCE(zone->_watermark[WMARK_LOW], 2 * high);
	KUNIT_EXPECT_LE(test, __cohort_high_mark(zone), high);
	KUNIT_EXPECT_GE(test, __cohort_high_mark(zone), high / 2);
	WRITE_ONCE(zone->_watermark[WMARK_LOW], low);
	cohort_pack_test_excess(zone, -1);
}

/* What finds no block gets one that is packed for it, of the holes that processes have. */
static void cohort_pack_test_one(struct kunit *test)
{
	struct cohort_domain *dom = cohort_pack_test_holes(test, 8 * cohort_pages(), 4, 3);
	struct cohort_room *room = cohort_pack_test_largest(dom);
	unsigned int i, before = cohort_domain_blocks(dom);

	KUNIT_ASSERT_NOT_NULL(test, room);
	/* Others may have more holes than it. */
	for (i = 0; i < 64 && cohort_domain_blocks(dom) == before; i++)
		if (!cohort_pack_one(zone_to_nid(room->zone), MAX_NR_ZONES - 1))
			break;
	KUNIT_EXPECT_LT(test, cohort_domain_blocks(dom), before);
	KUNIT_EXPECT_FALSE(test, current->flags & PF_MEMALLOC);
}

/* A user has as many domains as processes: those behind many without a block are looked at, too. */
static void cohort_pack_test_behind_many(struct kunit *test)
{
	struct cohort_domain **many, *dom;
	unsigned int i, before, nr = 600;
	struct cohort_room *room;

	many = kunit_kcalloc(test, nr, sizeof(*many), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, many);
	for (i = 0; i < nr; i++) {
		many[i] = cohort_domain_create(COHORT_PROCESS, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, many[i]);
	}
	dom = cohort_pack_test_holes(test, 8 * cohort_pages(), 4, 3);
	room = cohort_pack_test_largest(dom);
	before = cohort_domain_blocks(dom);
	KUNIT_EXPECT_NOT_NULL(test, room);
	for (i = 0; room && i < 64 && cohort_domain_blocks(dom) == before; i++)
		cohort_pack_one(zone_to_nid(room->zone), MAX_NR_ZONES - 1);
	KUNIT_EXPECT_LT(test, cohort_domain_blocks(dom), before);
	for (i = 0; i < nr; i++)
		cohort_domain_destroy(many[i]);
}

static unsigned long cohort_pack_test_packed(void)
{
	unsigned long events[NR_VM_EVENT_ITEMS];

	all_vm_events(events);
	return events[COHORT_PACK];
}

/* Blocks that a last look before a kill packs. */
static unsigned long cohort_pack_test_packs_for(const struct alloc_context *ac, unsigned int order)
{
	unsigned long packed = cohort_pack_test_packed();

	__cohort_packs_for(ac, GFP_KERNEL, order);
	return cohort_pack_test_packed() - packed;
}

/*
 * Before a process is killed for a piece of several pages one is made of the holes.  For a
 * single page none is; but the packing worker may make one meanwhile.
 */
static void cohort_pack_test_before_a_kill(struct kunit *test)
{
	struct cohort_domain *dom = cohort_pack_test_holes(test, 8 * cohort_pages(), 4, 3);
	struct cohort_room *room = cohort_pack_test_largest(dom);
	unsigned long single = 1, several, start, least = 1;
	struct alloc_context ac;
	unsigned int tries;

	KUNIT_ASSERT_NOT_NULL(test, room);
	cohort_test_context(&ac, GFP_KERNEL);
	if (zone_idx(room->zone) > ac.highest_zoneidx)
		kunit_skip(test, "no such request may have the zone");
	/* The very first look, which is the last before a kill. */
	msleep(1100);
	if (!cohort_pack_test_largest(dom))
		kunit_skip(test, "the packing worker came first");
	/* One block would not do. */
	cohort_test_boost(true);
	start = jiffies;
	several = cohort_pack_test_packs_for(&ac, 2);
	/* Unless that is all that there was time for. */
	if (time_before(jiffies, start + HZ / 4))
		least = 2;
	cohort_test_boost(false);
	for (tries = 0; single && tries < 4; tries++)
		single = cohort_pack_test_packs_for(&ac, 0);
	KUNIT_EXPECT_GE(test, several, least);
	KUNIT_EXPECT_EQ(test, single, 0);
}

/* Does a page lie in a block of its domain? */
static bool cohort_pack_test_gets_block(struct cohort_domain *dom, struct zone *zone)
{
	struct page *page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, zone_to_nid(zone),
						      NULL, dom);
	bool own = page && cohort_test_owner(page) == dom;

	if (page)
		__free_page(page);
	return own;
}

/*
 * The last whole blocks are for buffers, for what cannot be moved, and for what reclaim swaps
 * out: not for what a process pages out by itself.
 */
static void cohort_pack_test_last_blocks(struct kunit *test)
{
	struct cohort_domain *zspage = cohort_region_domain(COHORT_ZSPAGE);
	struct cohort_domain *dom = cohort_domain_create(COHORT_PROCESS, GFP_KERNEL);
	struct zone *zone = cohort_pack_test_zone(test);
	unsigned long headroom = cohort_headroom;
	bool process, written, paged_out, reclaimed;
	/* It is a part of something larger, of which the rest is nothing here. */
	struct reclaim_state state[32] = {};
	unsigned int flags;

	KUNIT_ASSERT_NOT_NULL(test, dom);
	cohort_domain_dissolve(zspage);
	WRITE_ONCE(cohort_headroom, 2 * totalram_pages());
	process = cohort_pack_test_gets_block(dom, zone);
	written = cohort_pack_test_gets_block(zspage, zone);
	flags = memalloc_noreclaim_save();
	paged_out = cohort_pack_test_gets_block(zspage, zone);
	current->reclaim_state = &state[31];
	reclaimed = cohort_pack_test_gets_block(zspage, zone);
	current->reclaim_state = NULL;
	memalloc_noreclaim_restore(flags);
	WRITE_ONCE(cohort_headroom, headroom);
	KUNIT_EXPECT_FALSE(test, process);
	KUNIT_EXPECT_FALSE(test, written);
	KUNIT_EXPECT_FALSE(test, paged_out);
	KUNIT_EXPECT_TRUE(test, reclaimed);
	cohort_domain_destroy(dom);
}

/* Blocks are not taken of the reserve for requests that may not wait. */
static void cohort_pack_test_highatomic(struct kunit *test)
{
	struct zone *zone = cohort_pack_test_zone(test);
	unsigned long flags, whole, less;

	spin_lock_irqsave(&zone->lock, flags);
	whole = cohort_whole(zone);
	zone->nr_free_highatomic += 8 * cohort_pages();
	less = cohort_whole(zone);
	zone->nr_free_highatomic -= 8 * cohort_pages();
	spin_unlock_irqrestore(&zone->lock, flags);
	KUNIT_ASSERT_GE(test, whole, 8 * cohort_pages());
	KUNIT_EXPECT_LE(test, less, whole - 4 * cohort_pages());
}

/* Free pages of CMA are taken off only where they may be among the whole blocks. */
static void cohort_pack_test_cma(struct kunit *test)
{
#ifdef CONFIG_CMA
	struct zone *zone = cohort_pack_test_zone(test);
	struct free_area *area = &zone->free_area[NR_PAGE_ORDERS - 1];
	unsigned long flags, whole, small, large;
	struct list_head *piece = NULL;

	spin_lock_irqsave(&zone->lock, flags);
	whole = cohort_whole(zone);
	mod_zone_page_state(zone, NR_FREE_CMA_PAGES, 8 * cohort_pages());
	small = cohort_whole(zone);
	if (!list_empty(&area->free_list[MIGRATE_MOVABLE])) {
		piece = area->free_list[MIGRATE_MOVABLE].next;
		list_move(piece, &area->free_list[MIGRATE_CMA]);
	}
	large = cohort_whole(zone);
	if (piece)
		list_move(piece, &area->free_list[MIGRATE_MOVABLE]);
	mod_zone_page_state(zone, NR_FREE_CMA_PAGES, -8 * (long)cohort_pages());
	spin_unlock_irqrestore(&zone->lock, flags);
	KUNIT_EXPECT_EQ(test, small, whole);
	KUNIT_ASSERT_NOT_NULL(test, piece);
	KUNIT_EXPECT_LE(test, large, whole - 4 * cohort_pages());
#endif
}

/* A zone whose last memory goes offline has no lists of CPUs that could be looked at. */
static void cohort_pack_test_no_pcp(struct kunit *test)
{
	struct zone *zone = kunit_kzalloc(test, sizeof(*zone), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, zone);
	KUNIT_EXPECT_TRUE(test, cohort_pcp_disabled(zone));
}

/* A pageblock that was free throughout, isolated: its first page. */
static struct page *cohort_pack_test_isolate(struct kunit *test)
{
	struct page *page = alloc_pages(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN,
					pageblock_order);
	unsigned long pfn;

	if (!page)
		kunit_skip(test, "memory is in pieces");
	pfn = page_to_pfn(page);
	__free_pages(page, pageblock_order);
	drain_all_pages(page_zone(page));
	if (start_isolate_page_range(pfn, pfn + pageblock_nr_pages, MIGRATE_MOVABLE, 0, GFP_KERNEL))
		kunit_skip(test, "another user has a page of it already");
	return page;
}

static void cohort_pack_test_undo_isolate(struct page *page)
{
	unsigned long pfn = page_to_pfn(page);

	undo_isolate_page_range(pfn, pfn + pageblock_nr_pages, MIGRATE_MOVABLE);
}

/* Pieces that are isolated are in the lists, and at hand for none. */
static void cohort_pack_test_isolated(struct kunit *test)
{
	struct page *page = cohort_pack_test_isolate(test);
	unsigned long isolated, whole;
	struct zone *zone = page_zone(page);

	isolated = cohort_whole(zone);
	cohort_pack_test_undo_isolate(page);
	whole = cohort_whole(zone);
	KUNIT_EXPECT_LE(test, isolated, whole - pageblock_nr_pages / 2);
}

/*
 * Pages that were isolated since they were taken of their block do not stay at hand.  Of the
 * pageblocks of a process some can be isolated.
 */
static void cohort_pack_test_fill_isolated(struct kunit *test)
{
	struct cohort_domain *dom = cohort_pack_test_holes(test, 4 * pageblock_nr_pages, 2, 1);
	struct cohort_room *room = cohort_pack_test_largest(dom);
	struct page **page = kunit_kcalloc(test, 16 * COHORT_ROUND, sizeof(*page), GFP_KERNEL);
	unsigned int nr = 0, some = 0;
	unsigned long pfn = 0, isolated = 0;
	int err = -EBUSY;

	KUNIT_ASSERT_NOT_NULL(test, room);
	KUNIT_ASSERT_NOT_NULL(test, page);
	for (; err && nr < 16 * COHORT_ROUND; nr += some) {
		some = cohort_room_take(room, page + nr, COHORT_ROUND);
		if (!some)
			break;
		pfn = pageblock_start_pfn(page_to_pfn(page[nr]));
		err = start_isolate_page_range(pfn, pfn + pageblock_nr_pages, MIGRATE_MOVABLE, 0,
					       GFP_KERNEL);
	}
	nr -= some;
	if (!err) {
		cohort_magazine_fill(room->zone, dom->id, page + nr, some);
		isolated = cohort_magazine_nr(room->zone, dom->id);
		undo_isolate_page_range(pfn, pfn + pageblock_nr_pages, MIGRATE_MOVABLE);
	} else {
		cohort_buddy_free_bulk(room->zone, page + nr, some);
	}
	cohort_buddy_free_bulk(room->zone, page, nr);
	if (err)
		kunit_skip(test, "no pageblock can be isolated");
	KUNIT_EXPECT_EQ(test, isolated, 0UL);
}

static struct kunit_case cohort_pack_test_cases[] = {
	KUNIT_CASE(cohort_pack_test_behind_resting),
	KUNIT_CASE(cohort_pack_test_pageblock_owned),
	KUNIT_CASE(cohort_pack_test_relieves_unmovable),
	KUNIT_CASE(cohort_pack_test_no_first_block),
	KUNIT_CASE_SLOW(cohort_pack_test_excess_in_vain),
	KUNIT_CASE_SLOW(cohort_pack_test_excess_is_packed),
	KUNIT_CASE_SLOW(cohort_pack_test_excess_of_many),
	KUNIT_CASE(cohort_pack_test_one),
	KUNIT_CASE(cohort_pack_test_behind_many),
	KUNIT_CASE_SLOW(cohort_pack_test_before_a_kill),
	KUNIT_CASE(cohort_pack_test_last_blocks),
	KUNIT_CASE(cohort_pack_test_balloon),
	KUNIT_CASE(cohort_pack_test_marks),
	KUNIT_CASE(cohort_pack_test_highatomic),
	KUNIT_CASE(cohort_pack_test_cma),
	KUNIT_CASE(cohort_pack_test_no_pcp),
	KUNIT_CASE(cohort_pack_test_isolated),
	KUNIT_CASE(cohort_pack_test_fill_isolated),
	{}
};

static struct kunit_suite cohort_pack_test_suite = {
	.name = "cohort_pack",
	.suite_init = cohort_test_suite_init,
	.suite_exit = cohort_test_suite_exit,
	.init = cohort_test_init,
	.exit = cohort_test_exit,
	.test_cases = cohort_pack_test_cases,
};
kunit_test_suite(cohort_pack_test_suite);
