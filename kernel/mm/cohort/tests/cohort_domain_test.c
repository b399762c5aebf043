// SPDX-License-Identifier: GPL-2.0
/*
 * Domains: which block the next page comes from, when another block is taken,
 * and what strangers get.
 */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "cohort_test.h"

static void cohort_domain_test_fullest_first(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *wanted;

	/* One full block, one just begun; then a hole in the full one. */
	cohort_test_take(test, cohort_pages() + 4);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 2);
	wanted = ct->page[7];
	cohort_test_free(test, 7, 1);
	cohort_test_take(test, 1);
	KUNIT_EXPECT_PTR_EQ(test, ct->page[ct->nr - 1], wanted);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 2);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), cohort_pages() - 4);
}

/* A domain has a room in each zone, and its pages are of the zones that may be. */
static void cohort_domain_test_room_per_zone(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct alloc_context ac;
	struct page *page;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++) {
		cohort_test_context(&ac, GFP_HIGHUSER_MOVABLE);
		ac.highest_zoneidx = i;
		ac.preferred_zoneref = first_zones_zonelist(ac.zonelist, i, NULL);
		page = cohort_rmqueue(ct->dom, GFP_HIGHUSER_MOVABLE, 0, &ac);
		if (!page)
			continue;
		ct->page[ct->nr++] = page;
		KUNIT_EXPECT_LE(test, (int)page_zonenum(page), i);
		if (cohort_test_owner(page) != ct->dom)
			continue;
		KUNIT_EXPECT_PTR_EQ(test, cohort_test_block(page)->room,
				    cohort_room_of(ct->dom, page_zone(page)));
		KUNIT_EXPECT_PTR_EQ(test, cohort_test_block(page)->room->zone, page_zone(page));
	}
	KUNIT_EXPECT_GT(test, ct->nr, 0);
}

static void cohort_domain_test_node_limit(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	nodemask_t none = NODE_MASK_NONE;
	struct alloc_context ac;

	if (!IS_ENABLED(CONFIG_NUMA))
		kunit_skip(test, "the allocator looks at no mask of nodes");
	cohort_test_take(test, 1);
	cohort_test_context(&ac, GFP_HIGHUSER_MOVABLE);
	ac.nodemask = &none;
	ac.preferred_zoneref = first_zones_zonelist(ac.zonelist, ac.highest_zoneidx, &none);
	KUNIT_EXPECT_NULL(test, cohort_rmqueue(ct->dom, GFP_HIGHUSER_MOVABLE, 0, &ac));
	KUNIT_EXPECT_NULL(test, __cohort_breach(GFP_HIGHUSER_MOVABLE, 0, 0, &ac));
}

/* Reserves are not for filling blocks, and only movable pages live in them. */
static void cohort_domain_test_not_for_all(struct kunit *test)
{
	unsigned int flags = memalloc_noreclaim_save();
	struct cohort_test *ct = test->priv;
	struct page *page;

	page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, numa_mem_id(), NULL, ct->dom);
	memalloc_noreclaim_restore(flags);
	KUNIT_ASSERT_NOT_NULL(test, page);
	__free_page(page);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);

	page = cohort_alloc_pages_noprof(GFP_KERNEL, numa_mem_id(), NULL, ct->dom);
	KUNIT_ASSERT_NOT_NULL(test, page);
	__free_page(page);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
}

/* A page at hand that is bad leaves none named twice: what fills the rest would keep both. */
static void cohort_domain_test_more_bad(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *page[4] = { }, *bad;
	unsigned int i, got;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "no CONFIG_MEMORY_FAILURE");
	cohort_test_take(test, 1 + ARRAY_SIZE(page));
	bad = ct->page[ARRAY_SIZE(page)];
	cohort_test_drop(test, 1, ARRAY_SIZE(page));
	KUNIT_ASSERT_EQ(test, cohort_test_at_hand(ct->dom->id), ARRAY_SIZE(page));
	SetPageHWPoison(bad);
	got = cohort_room_more(ct->dom, GFP_HIGHUSER_MOVABLE, ct->page[0], page,
			       ARRAY_SIZE(page));
	ClearPageHWPoison(bad);
	KUNIT_EXPECT_EQ(test, got, ARRAY_SIZE(page) - 1);
	/* Else it was not at hand any more, and is free. */
	if (got == ARRAY_SIZE(page) - 1)
		cohort_buddy_give(bad, 0);
	for (i = got; i < ARRAY_SIZE(page); i++)
		KUNIT_EXPECT_NULL(test, page[i]);
	for (i = 0; i < got; i++)
		__free_page(page[i]);
}

/* Free pages that a block may be taken from, but for one and a half. */
static unsigned long cohort_domain_test_mark(struct zone *zone)
{
	return zone_page_state(zone, NR_FREE_PAGES) - READ_ONCE(zone->cohort_soft) -
	       READ_ONCE(zone->cohort_reserved) - READ_ONCE(zone->nr_free_highatomic) -
	       cohort_pages() - cohort_pages() / 2;
}

/* Two that come at once do not overshoot the mark together: it is looked at under the lock. */
static void cohort_domain_test_mark_is_kept(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct page *page[2];
	struct cohort_room *room;
	struct zone *zone;
	unsigned long mark;

	cohort_test_take(test, 1);
	room = cohort_test_room(test);
	zone = room->zone;
	drain_all_pages(NULL);
	mark = cohort_domain_test_mark(zone);
	KUNIT_EXPECT_EQ(test, cohort_room_acquire(room, zone_idx(zone), mark + cohort_pages(),
						  page, 1), 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 1);
	KUNIT_ASSERT_EQ(test, cohort_room_acquire(room, zone_idx(zone), mark, page, 1), 1);
	KUNIT_EXPECT_EQ(test, cohort_room_acquire(room, zone_idx(zone), mark, page + 1, 1), 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 2);
	cohort_buddy_free_bulk(zone, page, 1);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 1);
}

/*
 * Where free pages are no larger than a block, a merge that makes it whole has no look at
 * the block behind it: it comes home as it is linked.
 */
static void cohort_domain_test_whole_is_linked(struct kunit *test)
{
	unsigned int order = cohort_block_order();
	struct cohort_test *ct = test->priv;
	struct cohort_room *room;
	struct cohort_block *blk;
	struct page *page = NULL;
	unsigned long flags;
	bool linked = false;

	cohort_test_take(test, 1);
	room = cohort_test_room(test);
	spin_lock_irqsave(&room->zone->lock, flags);
	page = cohort_buddy_rmqueue(room->zone, order, MIGRATE_MOVABLE, 0);
	if (page) {
		blk = cohort_block_of(page_to_pfn(page));
		cohort_block_enter(room, blk, page_to_pfn(page), order);
		linked = __cohort_link(page, room->zone, order, get_pageblock_migratetype(page));
		/* Else its first page is on a list that the block does not have. */
		if (linked)
			list_del(&page->buddy_list);
		else
			cohort_buddy_merge(room->zone, page, order);
	}
	spin_unlock_irqrestore(&room->zone->lock, flags);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_FALSE(test, linked);
	KUNIT_EXPECT_EQ(test, cohort_owner_id(page_to_pfn(page)), 0U);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 1);
}

/* Three blocks: the first nearly empty, the second half, the third young. */
static void cohort_domain_test_three_blocks(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int pages = cohort_pages();

	cohort_test_take(test, 2 * pages + 1);
	KUNIT_ASSERT_EQ(test, cohort_domain_blocks(ct->dom), 3);
	cohort_test_free(test, 0, pages - 2);
	cohort_test_free(test, pages, pages / 2);
}

static void cohort_domain_test_pick(struct kunit *test)
{
	struct cohort_block *emptiest, *picked;
	struct cohort_test *ct = test->priv;
	struct cohort_room *room;

	cohort_domain_test_three_blocks(test);
	room = cohort_test_room(test);
	emptiest = cohort_test_block(ct->page[cohort_pages() - 1]);
	picked = cohort_pick_victim(room);
	KUNIT_ASSERT_NOT_NULL(test, picked);
	KUNIT_EXPECT_PTR_EQ(test, picked, emptiest);
	KUNIT_EXPECT_EQ(test, picked->bucket, COHORT_BUSY);

	/* Nothing is taken from it, though it has the lowest frames. */
	cohort_test_take(test, cohort_pages() / 2 + 1);
	KUNIT_EXPECT_EQ(test, picked->nr_free, cohort_pages() - 2);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 3);

	KUNIT_EXPECT_FALSE(test, cohort_unpick(room, picked));
	KUNIT_EXPECT_PTR_EQ(test, picked->room, room);
	KUNIT_EXPECT_NE(test, picked->bucket, COHORT_BUSY);
	/* It was in vain: the block rests before it is picked again. */
	picked = cohort_pick_victim(room);
	KUNIT_EXPECT_PTR_NE(test, picked, emptiest);
	if (picked)
		cohort_unpick(room, picked);
}

static void cohort_domain_test_picked_goes_home(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *picked;
	struct cohort_room *room;

	cohort_domain_test_three_blocks(test);
	room = cohort_test_room(test);
	picked = cohort_pick_victim(room);
	KUNIT_ASSERT_NOT_NULL(test, picked);
	cohort_test_free(test, 0, cohort_pages());
	KUNIT_EXPECT_NULL(test, picked->room);
	KUNIT_EXPECT_TRUE(test, cohort_unpick(room, picked));
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 2);
}

static void cohort_domain_test_picked_is_dissolved(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *picked;
	struct cohort_room *room;

	cohort_domain_test_three_blocks(test);
	room = cohort_test_room(test);
	picked = cohort_pick_victim(room);
	KUNIT_ASSERT_NOT_NULL(test, picked);
	cohort_domain_dissolve(ct->dom);
	KUNIT_EXPECT_NULL(test, picked->room);
	KUNIT_EXPECT_TRUE(test, cohort_unpick(room, picked));
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
}

static void cohort_domain_test_nothing_to_pick(struct kunit *test)
{
	cohort_test_take(test, 1);
	KUNIT_EXPECT_NULL(test, cohort_pick_victim(cohort_test_room(test)));
	cohort_test_take(test, cohort_pages());
	KUNIT_EXPECT_NULL(test, cohort_pick_victim(cohort_test_room(test)));
}

static void cohort_domain_test_compact(struct kunit *test)
{
	unsigned int i, home, pages = 4 * cohort_pages();
	struct cohort_domain *dom;
	long isolated = cohort_test_isolated();
	unsigned long addr, parked;

	addr = cohort_test_map(test, pages);
	cohort_test_grow_up(test);
	cohort_test_touch(test, addr, pages);
	for (i = 0; i < pages; i += 2)
		do_madvise(current->mm, addr + i * PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	dom = current->mm->cohort;
	KUNIT_ASSERT_NOT_NULL(test, dom);
	/* Pages in batches are on no LRU yet, and freed ones not yet free. */
	lru_add_drain_all();
	cohort_domain_drain(dom);
	parked = cohort_domain_free(dom);
	KUNIT_ASSERT_GE(test, parked, pages / 2 - cohort_pages() / 2);

	KUNIT_EXPECT_EQ(test, cohort_domain_compact(dom, true, 0), 0);
	home = cohort_domain_compact(dom, true, 1);
	KUNIT_EXPECT_LE(test, home, 1);
	KUNIT_EXPECT_GE(test, home + cohort_domain_compact(dom, true, UINT_MAX), 1);
	cohort_domain_drain(dom);
	KUNIT_EXPECT_LE(test, cohort_domain_free(dom), parked - cohort_pages());
	KUNIT_EXPECT_EQ(test, cohort_test_isolated(), isolated);
	for (i = 1; i < pages; i += 2)
		cohort_test_verify(test, addr + i * PAGE_SIZE, 1);
}

/* Free pages are free for all, in any context, down to the kernel's own reserve. */
static void cohort_domain_test_breach_orders(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int order;

	cohort_test_take(test, 1);
	for (order = 0; order <= COHORT_BREACH_ORDER; order++) {
		struct page *page = cohort_test_breach(GFP_ATOMIC, order);
		struct cohort_domain *dom;

		KUNIT_ASSERT_NOT_NULL(test, page);
		KUNIT_EXPECT_EQ(test, page_count(page), 1);
		KUNIT_EXPECT_TRUE(test, IS_ALIGNED(page_to_pfn(page), 1 << order));
		KUNIT_EXPECT_FALSE(test, cohort_page_parked(page));
		dom = cohort_test_owner(page);
		KUNIT_EXPECT_NOT_NULL(test, dom);
		__free_pages(page, order);
	}
	KUNIT_EXPECT_NULL(test, cohort_test_breach(GFP_ATOMIC, COHORT_BREACH_ORDER + 1));
	cohort_test_recount(test, page_zone(ct->page[0]), 0);
}

/* A large piece that is only better than single pages is no reason to mix lifetimes. */
static void cohort_domain_test_breach_opportunist(struct kunit *test)
{
	const gfp_t packet = GFP_ATOMIC | __GFP_NOMEMALLOC | __GFP_NOWARN;
	const gfp_t advised = GFP_TRANSHUGE_LIGHT | __GFP_DIRECT_RECLAIM;

	cohort_test_take(test, 1);
	KUNIT_EXPECT_NULL(test, cohort_test_breach(GFP_ATOMIC | __GFP_NORETRY, 3));
	cohort_test_gets(test, cohort_test_breach(GFP_ATOMIC | __GFP_NORETRY, 0), 0);
	/* As a large folio is asked for; and as one is for which a process would be killed. */
	KUNIT_EXPECT_NULL(test, cohort_test_breach(GFP_TRANSHUGE_LIGHT, 2));
	cohort_test_gets(test, cohort_test_breach(GFP_TRANSHUGE, 2), 2);
	cohort_test_gets(test, cohort_test_breach_last(advised, 2), 2);
	/* A packet that is received would be lost. */
	cohort_test_gets(test, cohort_test_breach(packet, 1), 1);
}

/* A domain that lives as long as the system has a page in use, and free ones. */
static struct page *cohort_domain_test_common(struct kunit *test, enum cohort_kind kind,
					      gfp_t gfp)
{
	struct cohort_domain *dom = cohort_region_domain(kind);
	struct page *page = cohort_alloc_pages_noprof(gfp, numa_mem_id(), NULL, dom);

	KUNIT_ASSERT_NOT_NULL(test, page);
	cohort_domain_drain(dom);
	KUNIT_EXPECT_GT(test, cohort_domain_free(dom), 0);
	return page;
}

static void cohort_domain_test_breach_kind(struct kunit *test, enum cohort_kind kind,
					   gfp_t gfp)
{
	struct page *own = cohort_domain_test_common(test, kind, gfp);
	struct page *page;

	cohort_test_take(test, 1);
	page = cohort_test_breach(gfp, 0);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_PTR_EQ(test, cohort_test_owner(page), cohort_region_domain(kind));
	__free_page(page);
	__free_page(own);
}

static void cohort_domain_test_breach_unmovable(struct kunit *test)
{
	cohort_domain_test_breach_kind(test, COHORT_KERNEL, GFP_KERNEL);
}

static void cohort_domain_test_breach_movable(struct kunit *test)
{
	cohort_domain_test_breach_kind(test, COHORT_CACHE, GFP_HIGHUSER_MOVABLE);
}

/* A page of a block that a stranger had comes back to the block. */
static void cohort_domain_test_breach_returns(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk;
	unsigned long before;
	struct page *page;

	cohort_test_take(test, 1);
	WRITE_ONCE(cohort_taking, false);
	cohort_domain_dissolve(cohort_region_domain(COHORT_CACHE));
	cohort_domain_dissolve(cohort_region_domain(COHORT_HOT));
	cohort_domain_dissolve(cohort_region_domain(COHORT_SMALL));
	cohort_domain_dissolve(cohort_region_domain(COHORT_SVC));
	cohort_domain_dissolve(cohort_region_domain(COHORT_SHARED));
	before = cohort_domain_free(ct->dom);
	page = cohort_test_breach(GFP_HIGHUSER_MOVABLE, 2);
	WRITE_ONCE(cohort_taking, true);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_PTR_EQ(test, cohort_test_owner(page), ct->dom);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), before - 4);
	blk = cohort_test_block(page);
	__free_pages(page, 2);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), before);
	KUNIT_EXPECT_PTR_EQ(test, blk->room->dom, ct->dom);
}

/* Pages that cannot be moved spoil one block, not one each. */
static void cohort_domain_test_breach_taint(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk[8] = { };
	struct page *page[8] = { };
	enum cohort_kind kind;
	unsigned int i;

	cohort_test_take(test, 3 * cohort_pages());
	for (i = 0; i < 3; i++)
		cohort_test_free(test, i * cohort_pages(), cohort_pages() / 2);
	WRITE_ONCE(cohort_taking, false);
	for (kind = COHORT_PROCESS + 1; kind < COHORT_NR_KINDS; kind++)
		cohort_domain_dissolve(cohort_region_domain(kind));
	for (i = 0; i < ARRAY_SIZE(page); i++) {
		page[i] = cohort_test_breach(GFP_ATOMIC, 0);
		blk[i] = page[i] ? cohort_test_block(page[i]) : NULL;
	}
	WRITE_ONCE(cohort_taking, true);
	KUNIT_ASSERT_NOT_NULL(test, page[0]);
	KUNIT_EXPECT_PTR_EQ(test, blk[0]->room->dom, ct->dom);
	KUNIT_EXPECT_PTR_EQ(test, page_zone(page[0])->cohort->taint, blk[0]);
	for (i = 1; i < ARRAY_SIZE(page); i++)
		KUNIT_EXPECT_PTR_EQ(test, blk[i], blk[0]);
	for (i = 0; i < ARRAY_SIZE(page); i++)
		if (page[i])
			__free_page(page[i]);
	cohort_domain_dissolve(ct->dom);
	KUNIT_EXPECT_PTR_NE(test, page_zone(page[0])->cohort->taint, blk[0]);
}

/* What is free in a block that is being emptied is free for all, too. */
static void cohort_domain_test_breach_busy(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *picked;
	struct cohort_room *room;
	enum cohort_kind kind;
	LIST_HEAD(pages);

	cohort_domain_test_three_blocks(test);
	room = cohort_test_room(test);
	picked = cohort_pick_victim(room);
	KUNIT_ASSERT_NOT_NULL(test, picked);
	WRITE_ONCE(cohort_taking, false);
	for (kind = COHORT_PROCESS + 1; kind < COHORT_NR_KINDS; kind++)
		cohort_domain_dissolve(cohort_region_domain(kind));
	cohort_test_breach_all(&pages, GFP_HIGHUSER_MOVABLE, 0);
	WRITE_ONCE(cohort_taking, true);
	KUNIT_EXPECT_EQ(test, picked->nr_free, 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), 0);
	cohort_test_release(&pages, __free_pages);
	KUNIT_EXPECT_FALSE(test, cohort_unpick(room, picked));
	KUNIT_EXPECT_EQ(test, picked->nr_free, cohort_pages() - 2);
	cohort_test_recount(test, room->zone, 0);
}

/* What is free of CMA, which the request cannot have, is no part of what a low zone keeps. */
static void cohort_domain_test_breach_low_zone(struct kunit *test)
{
	unsigned int idx = gfp_zone(GFP_HIGHUSER_MOVABLE);
	struct zone *zone, *other;
	long reserve, most;
	struct page *page;

	if (!IS_ENABLED(CONFIG_CMA))
		kunit_skip(test, "no CONFIG_CMA");
	cohort_test_take(test, 1);
	zone = cohort_test_room(test)->zone;
	for_each_populated_zone(other)
		if (other != zone && READ_ONCE(other->cohort_soft))
			kunit_skip(test, "another zone has such pages");
	reserve = zone->lowmem_reserve[idx];
	most = zone_page_state(zone, NR_FREE_PAGES) - min_wmark_pages(zone);
	WRITE_ONCE(zone->lowmem_reserve[idx], most - 1024);
	mod_zone_page_state(zone, NR_FREE_CMA_PAGES, 2048);
	page = cohort_test_breach(GFP_HIGHUSER_MOVABLE, 0);
	mod_zone_page_state(zone, NR_FREE_CMA_PAGES, -2048);
	WRITE_ONCE(zone->lowmem_reserve[idx], reserve);
	KUNIT_EXPECT_NULL(test, page);
	if (page)
		__free_page(page);
}

/* Pages outlive the domain: in batches, in the swap cache, pinned. */
static void cohort_domain_test_destroy_in_use(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk;

	cohort_test_take(test, cohort_pages() + 2);
	blk = cohort_test_block(ct->page[0]);
	cohort_domain_destroy(ct->dom);
	ct->dom = NULL;
	synchronize_rcu();
	KUNIT_EXPECT_NULL(test, blk->room);
	cohort_test_free_shuffled(test);
	KUNIT_EXPECT_EQ(test, blk->nr_free, 0);
}

/* No magazine keeps a page of a domain that is gone. */
static void cohort_domain_test_destroy_drains(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int id = ct->dom->id;
	struct page *page;

	cohort_test_take(test, cohort_pages());
	page = ct->page[0];
	cohort_test_drop(test, 0, 10);
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(id), 10);
	cohort_domain_destroy(ct->dom);
	ct->dom = NULL;
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(id), 0);
	cohort_test_drop(test, 0, ct->nr);
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(id), 0);
	KUNIT_EXPECT_GE(test, cohort_test_buddy_order(page), (int)cohort_block_order());
}

/* Numbers of processes share slots: what one does is no use by the other, nor none. */
static void cohort_domain_test_shared_slot(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int other = ct->dom->id + COHORT_SLOTS - COHORT_KEPT - 1;
	struct zone *zone;

	cohort_test_take(test, 4);
	zone = page_zone(ct->page[0]);
	migrate_disable();
	cohort_test_drop(test, 0, 3);
	cohort_magazine_drain(zone, raw_smp_processor_id(), other);
	__cohort_age(zone);
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 3);
	KUNIT_EXPECT_NULL(test, cohort_magazine_take(zone, other, NULL));
	__cohort_age(zone);
	migrate_enable();
	KUNIT_EXPECT_EQ(test, cohort_test_at_hand(ct->dom->id), 0);
}

/* How many of these come to this CPU's list, and how many are left when it has aged. */
static void cohort_test_pcp_age(struct page **page, unsigned int nr, int *before, int *after)
{
	struct zone *zone = page_zone(page[0]);
	struct per_cpu_pages *pcp;

	migrate_disable();
	drain_local_pages(zone);
	pcp = this_cpu_ptr(zone->per_cpu_pageset);
	while (nr--)
		__free_page(page[nr]);
	*before = READ_ONCE(pcp->count);
	decay_pcp_high(zone, pcp);
	*after = READ_ONCE(pcp->count);
	migrate_enable();
}

/*
 * What no request comes for leaves the lists of the page allocator, too.  Interrupts use them
 * as well: one try in a few is not disturbed.
 */
static void cohort_domain_test_pcp_ages(struct kunit *test)
{
	unsigned int tries = 20, i;
	struct page *page[32];
	int before, after;

	do {
		for (i = 0; i < ARRAY_SIZE(page); i++) {
			page[i] = alloc_page(GFP_HIGHUSER_MOVABLE);
			if (!page[i])
				break;
		}
		KUNIT_ASSERT_GT(test, i, 0);
		cohort_test_pcp_age(page, i, &before, &after);
	} while (--tries && (before != ARRAY_SIZE(page) || after != ARRAY_SIZE(page) / 2));
	KUNIT_EXPECT_EQ(test, before, (int)ARRAY_SIZE(page));
	KUNIT_EXPECT_EQ(test, after, (int)ARRAY_SIZE(page) / 2);
}

static struct kunit_case cohort_domain_test_cases[] = {
	KUNIT_CASE(cohort_domain_test_fullest_first),
	KUNIT_CASE(cohort_domain_test_room_per_zone),
	KUNIT_CASE(cohort_domain_test_node_limit),
	KUNIT_CASE(cohort_domain_test_not_for_all),
	KUNIT_CASE(cohort_domain_test_more_bad),
	KUNIT_CASE(cohort_domain_test_whole_is_linked),
	KUNIT_CASE(cohort_domain_test_mark_is_kept),
	KUNIT_CASE(cohort_domain_test_pick),
	KUNIT_CASE(cohort_domain_test_picked_goes_home),
	KUNIT_CASE(cohort_domain_test_picked_is_dissolved),
	KUNIT_CASE(cohort_domain_test_nothing_to_pick),
	KUNIT_CASE(cohort_domain_test_compact),
	KUNIT_CASE(cohort_domain_test_breach_orders),
	KUNIT_CASE(cohort_domain_test_breach_opportunist),
	KUNIT_CASE(cohort_domain_test_breach_unmovable),
	KUNIT_CASE(cohort_domain_test_breach_movable),
	KUNIT_CASE(cohort_domain_test_breach_returns),
	KUNIT_CASE(cohort_domain_test_breach_taint),
	KUNIT_CASE(cohort_domain_test_breach_busy),
	KUNIT_CASE(cohort_domain_test_breach_low_zone),
	KUNIT_CASE(cohort_domain_test_destroy_in_use),
	KUNIT_CASE(cohort_domain_test_destroy_drains),
	KUNIT_CASE(cohort_domain_test_shared_slot),
	KUNIT_CASE(cohort_domain_test_pcp_ages),
	{}
};

static struct kunit_suite cohort_domain_test_suite = {
	.name = "cohort_domain",
	.suite_init = cohort_test_suite_init,
	.suite_exit = cohort_test_suite_exit,
	.init = cohort_test_init,
	.exit = cohort_test_exit,
	.test_cases = cohort_domain_test_cases,
};
kunit_test_suite(cohort_domain_test_suite);
