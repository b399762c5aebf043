// SPDX-License-Identifier: GPL-2.0
/*
 * The contiguous page buffer (CPB): the steps A1 to A6 of its paper, and switching it.
 */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "../dmabuf/buffer.h"
#include "../host/filemap.h"
#include "cohort_cpb_test.h"

static unsigned long cohort_cpb_test_event(enum vm_event_item item)
{
	unsigned long *events = kmalloc_array(NR_VM_EVENT_ITEMS, sizeof(long), GFP_KERNEL);
	unsigned long value;

	if (!events)
		return 0;
	all_vm_events(events);
	value = events[item];
	kfree(events);
	return value;
}

/* A1: page cache, and what I/O buffers are made of, go past. */
static void cohort_cpb_test_a1_cache_goes_past(struct kunit *test)
{
	struct address_space *mapping = kunit_kzalloc(test, sizeof(*mapping), GFP_KERNEL);
	struct page *page;
	struct folio *folio;

	KUNIT_ASSERT_NOT_NULL(test, mapping);
	address_space_init_once(mapping);
	mapping_set_gfp_mask(mapping, GFP_HIGHUSER_MOVABLE);
	cohort_cpb_test_fill(test);

	folio = cohort_filemap_alloc(mapping, GFP_HIGHUSER_MOVABLE, 0);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_NULL(test, cohort_test_owner(&folio->page));
	folio_put(folio);

	page = cohort_buffer_alloc(GFP_HIGHUSER, 0);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_NULL(test, cohort_test_owner(page));
	__free_page(page);
}

/* A2: a process is given the pages of its own set, one after the other. */
static void cohort_cpb_test_a2_own_set(struct kunit *test)
{
	unsigned long addr = cohort_test_map(test, 2 * cohort_pages());
	struct page *first, *hole;
	struct cohort_domain *dom;
	unsigned int i;

	cohort_test_touch(test, addr, cohort_pages());
	dom = current->mm->cohort;
	KUNIT_ASSERT_NOT_NULL(test, dom);
	first = cohort_test_page_at(test, addr);
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED(page_to_pfn(first), cohort_pages()));
	for (i = 0; i < cohort_pages(); i++)
		KUNIT_EXPECT_PTR_EQ(test, first + i,
				    cohort_test_page_at(test, addr + i * PAGE_SIZE));
	cohort_domain_drain(dom);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(dom), 1);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(dom), 0);

	/* Pages it frees are its own again, before any other set is begun. */
	lru_add_drain();
	hole = cohort_test_page_at(test, addr + PAGE_SIZE);
	do_madvise(current->mm, addr + PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	cohort_domain_drain(dom);
	KUNIT_EXPECT_TRUE(test, cohort_page_parked(hole));
	cohort_test_touch(test, addr + cohort_pages() * PAGE_SIZE, 1);
	KUNIT_EXPECT_PTR_EQ(test, hole,
			    cohort_test_page_at(test, addr + cohort_pages() * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(dom), 1);
}

/* A2: requests that come in turn do not share a set. */
static void cohort_cpb_test_a2_interleaved(struct kunit *test)
{
	struct cohort_domain *other = cohort_domain_create(COHORT_PROCESS, GFP_KERNEL);
	unsigned int i, first, pages = 4 * cohort_pages(), wrong = 0;
	struct cohort_test *ct = test->priv;
	struct cohort_domain *mine = ct->dom;
	struct page *ended;

	KUNIT_ASSERT_NOT_NULL(test, other);
	for (i = 0; i < pages; i++) {
		ct->dom = i & 1 ? other : mine;
		first = cohort_test_take(test, 1);
		wrong += cohort_test_owner(ct->page[first]) != ct->dom;
	}
	ct->dom = mine;
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(mine), 2);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(other), 2);

	/* One of the two ends: all of its memory is in whole sets again. */
	ended = ct->page[1];
	for (i = 1; i < pages; i += 2)
		cohort_test_free(test, i, 1);
	cohort_domain_drain(other);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(other), 0);
	cohort_domain_destroy(other);
	KUNIT_EXPECT_GE(test, cohort_test_buddy_order(ended), (int)cohort_block_order());
	KUNIT_EXPECT_EQ(test, cohort_test_buddy_order(ct->page[0]), -1);
}

/* A3: the next set comes from the CPB of this CPU, whole. */
static void cohort_cpb_test_a3_set_from_cpb(struct kunit *test)
{
	unsigned int first, pages = cohort_pages();
	struct cohort_test *ct = test->priv;
	unsigned long refills, before;

	cohort_cpb_test_fill(test);
	before = cohort_cpb_test_sets();
	refills = cohort_cpb_test_event(COHORT_REFILL);
	first = cohort_test_take(test, pages);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 2);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), pages - 1);
	KUNIT_EXPECT_PTR_EQ(test, cohort_test_owner(ct->page[first + pages - 1]), ct->dom);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_sets(), before - 1);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_event(COHORT_REFILL), refills);
}

/* No request takes a set of a zone or node it must not have. */
static void cohort_cpb_test_a3_not_allowed(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	nodemask_t none = NODE_MASK_NONE;
	struct alloc_context ac;
	unsigned long before;

	if (!IS_ENABLED(CONFIG_NUMA))
		kunit_skip(test, "the allocator looks at no mask of nodes");
	cohort_cpb_test_fill(test);
	before = cohort_cpb_test_sets();
	cohort_test_context(&ac, GFP_HIGHUSER_MOVABLE);
	ac.nodemask = &none;
	ac.preferred_zoneref = first_zones_zonelist(ac.zonelist, ac.highest_zoneidx, &none);
	KUNIT_EXPECT_NULL(test, cohort_rmqueue(ct->dom, GFP_HIGHUSER_MOVABLE, 0, &ac));
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_sets(), before);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 1);
}

/* A4: all of what was taken apart, though it exceeds the refill. */
static void cohort_cpb_test_a4_refill(struct kunit *test)
{
	unsigned int sets = DIV_ROUND_UP(COHORT_REFILL_PAGES, cohort_pages());
	struct cohort_test *ct = test->priv;
	unsigned long refills = cohort_cpb_test_event(COHORT_REFILL);

	KUNIT_ASSERT_EQ(test, cohort_cpb_test_sets(), 0);
	cohort_test_take(test, 1);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 1);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_sets(), sets - 1);
	KUNIT_EXPECT_EQ(test, 1 + cohort_domain_free(ct->dom) + cohort_cpb_test_pages(),
			sets * cohort_pages());
	KUNIT_EXPECT_GE(test, sets * cohort_pages(), COHORT_REFILL_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_event(COHORT_REFILL), refills + sets);
}

/* A free block smaller than a set, and its neighbours, which are in use. */
static struct page *cohort_cpb_test_remnant(struct kunit *test)
{
	struct page *page = alloc_pages(GFP_HIGHUSER_MOVABLE, COHORT_MAX_SET_ORDER);

	KUNIT_ASSERT_NOT_NULL(test, page);
	split_page(page, COHORT_MAX_SET_ORDER);
	__free_page(page + 2);
	__free_page(page + 3);
	KUNIT_ASSERT_EQ(test, cohort_test_buddy_order(page + 2), 1);
	return page;
}

static void cohort_cpb_test_remnant_end(struct page *page)
{
	unsigned int i;

	for (i = 0; i < COHORT_SET_PAGES; i++)
		if (i != 2 && i != 3)
			__free_page(page + i);
}

/* It has a slot to itself, and no other page of it. */
static void cohort_cpb_test_a4_remnant(struct kunit *test)
{
	struct page *page = cohort_cpb_test_remnant(test);
	bool was = cohort_cpb_remnants;
	struct cohort_test *ct = test->priv;
	unsigned long pfn, end, wrong = 0;
	struct cohort_block *blk;

	WRITE_ONCE(cohort_cpb_remnants, true);
	cohort_test_take(test, 1);
	WRITE_ONCE(cohort_cpb_remnants, was);
	blk = cohort_test_block(ct->page[0]);
	KUNIT_EXPECT_LT(test, blk->order, cohort_block_order());
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED(blk->pfn, 1UL << blk->order));
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), (1UL << blk->order) - 1);

	/* Its neighbours are none of it, used or free. */
	pfn = round_down(blk->pfn, cohort_pages());
	for (end = pfn + cohort_pages(); pfn < end; pfn++) {
		bool inside = pfn - blk->pfn < 1UL << blk->order;

		wrong += (cohort_owner_id(pfn) == ct->dom->id) != inside;
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	cohort_test_free_shuffled(test);
	KUNIT_EXPECT_NULL(test, blk->room);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
	cohort_cpb_test_remnant_end(page);
	/* All sixteen have found each other. */
	KUNIT_EXPECT_GE(test, cohort_test_buddy_order(page), COHORT_MAX_SET_ORDER);
}

/* Blocks smaller than a set are looked for first, or last. */
static void cohort_cpb_test_a4_preference(struct kunit *test)
{
	struct page *page = cohort_cpb_test_remnant(test);
	bool was = cohort_cpb_remnants;
	struct cohort_test *ct = test->priv;

	WRITE_ONCE(cohort_cpb_remnants, true);
	cohort_test_take(test, 1);
	KUNIT_EXPECT_LT(test, cohort_test_block(ct->page[0])->order, cohort_block_order());
	cohort_test_free(test, 0, 1);
	drain_all_pages(NULL);

	WRITE_ONCE(cohort_cpb_remnants, false);
	cohort_test_take(test, 1);
	KUNIT_EXPECT_EQ(test, cohort_test_block(ct->page[1])->order, cohort_block_order());
	WRITE_ONCE(cohort_cpb_remnants, was);
	cohort_cpb_test_remnant_end(page);
}

/* What lies in a slot that another zone has a part of is not taken: two locks would guard it. */
static void cohort_cpb_test_remnant_of_two_zones(struct kunit *test)
{
	struct page *page = cohort_cpb_test_remnant(test), *last = page + COHORT_SET_PAGES - 1;
	enum zone_type its = page_zonenum(last);
	struct zone *zone = page_zone(page);
	unsigned int i, nr, wrong = 0;
	struct page *found[8];
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	set_page_zone(last, its ? its - 1 : its + 1);
	for (nr = 0; nr < ARRAY_SIZE(found); nr++) {
		found[nr] = cohort_buddy_remnant(zone, 1);
		if (!found[nr])
			break;
		wrong += found[nr] == page + 2;
	}
	set_page_zone(last, its);
	spin_unlock_irqrestore(&zone->lock, flags);
	for (i = 0; i < nr; i++)
		cohort_buddy_give(found[i], 1);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	cohort_cpb_test_remnant_end(page);
}

/* A5: no set to be had: the stock allocator serves. */
static void cohort_cpb_test_a5_fall_through(struct kunit *test)
{
	unsigned long before = cohort_cpb_test_event(COHORT_FALLBACK);
	struct cohort_test *ct = test->priv;
	struct page *page;

	WRITE_ONCE(cohort_taking, false);
	page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, numa_mem_id(), NULL, ct->dom);
	WRITE_ONCE(cohort_taking, true);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_NULL(test, cohort_test_owner(page));
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_event(COHORT_FALLBACK), before + 1);
	__free_page(page);
}

/* A6: before a request has to wait, it is given what another process reserved. */
static void cohort_cpb_test_a6_breach(struct kunit *test)
{
	unsigned long before;
	struct page *page;

	cohort_test_take(test, 1);
	before = cohort_test_domains();
	page = cohort_test_breach(GFP_HIGHUSER_MOVABLE, 0);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	KUNIT_EXPECT_EQ(test, cohort_test_domains(), before - 1);
	/* It is still a page of that set, and comes back to it. */
	KUNIT_ASSERT_NOT_NULL(test, cohort_test_owner(page));
	KUNIT_EXPECT_EQ(test, cohort_test_owner(page)->kind, COHORT_PROCESS);
	__free_page(page);
	drain_all_pages(NULL);
	KUNIT_EXPECT_EQ(test, cohort_test_domains(), before);

	/* Also one that cannot be moved, and more than one. */
	page = cohort_test_breach(GFP_ATOMIC, 1);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, cohort_test_domains(), before - 2);
	__free_pages(page, 1);
	KUNIT_EXPECT_EQ(test, cohort_test_domains(), before);
}

/* A stranger takes all that is free in a set, as compaction does. */
static void cohort_cpb_test_isolate(struct cohort_block *blk, struct list_head *pieces)
{
	struct zone *zone = blk->room->zone;
	struct page *page, *next;
	unsigned long flags;
	unsigned int o;

	spin_lock_irqsave(&zone->lock, flags);
	for (o = 0; o < cohort_block_lists(blk); o++)
		list_for_each_entry_safe(page, next, &blk->free[o], buddy_list)
			if (__isolate_free_page(page, o))
				cohort_test_keep(pieces, page, o);
	spin_unlock_irqrestore(&zone->lock, flags);
}

/* Of so many sets nine had many free pages, which strangers have taken. Return: the first other. */
static unsigned int cohort_cpb_test_taken(struct kunit *test, unsigned int sets,
					  struct list_head *pieces)
{
	unsigned int i, pages = cohort_pages();
	struct cohort_test *ct = test->priv;

	cohort_test_take(test, sets * pages);
	KUNIT_ASSERT_EQ(test, cohort_domain_blocks(ct->dom), sets);
	for (i = 0; i < 9; i++) {
		cohort_test_free(test, i * pages + 4, pages - 4);
		cohort_cpb_test_isolate(cohort_test_block(ct->page[i * pages]), pieces);
	}
	return i;
}

/* The tenth and last one has two. */
static void cohort_cpb_test_strangers(struct kunit *test, struct list_head *pieces)
{
	struct cohort_test *ct = test->priv;

	cohort_test_free(test, cohort_cpb_test_taken(test, 10, pieces) * cohort_pages(), 2);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), 2);
}

/* Sets that strangers have emptied hide none with a free page. */
static void cohort_cpb_test_a6_strangers(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	LIST_HEAD(pieces);
	LIST_HEAD(pages);

	cohort_cpb_test_strangers(test, &pieces);
	cohort_test_breach_all(&pages, GFP_ATOMIC, 0);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(ct->dom), 0);
	cohort_test_release(&pages, __free_pages);
	cohort_test_release(&pieces, cohort_buddy_give);
}

/* Nor are they given up for what was free in them. */
static void cohort_cpb_test_relieve_strangers(struct kunit *test)
{
	LIST_HEAD(pieces);

	cohort_cpb_test_strangers(test, &pieces);
	KUNIT_EXPECT_EQ(test, cohort_room_relieve(cohort_test_room(test), UINT_MAX, false), 0);
	/* In the end the tenth is, for the two that are free in it. */
	KUNIT_EXPECT_EQ(test, cohort_room_relieve(cohort_test_room(test), UINT_MAX, true), 1);
	cohort_test_release(&pieces, cohort_buddy_give);
}

/* Nor are they chosen to be emptied, in the place of those with free pages. */
static void cohort_cpb_test_pick_strangers(struct kunit *test)
{
	unsigned int i, pages = cohort_pages();
	struct cohort_block *blk;
	LIST_HEAD(pieces);

	for (i = cohort_cpb_test_taken(test, 12, &pieces); i < 12; i++)
		cohort_test_free(test, i * pages, pages / 2);
	blk = cohort_pick_victim(cohort_test_room(test));
	KUNIT_EXPECT_NOT_NULL(test, blk);
	if (blk) {
		KUNIT_EXPECT_EQ(test, blk->nr_free, pages / 2);
		cohort_unpick(cohort_test_room(test), blk);
	}
	cohort_test_release(&pieces, cohort_buddy_give);
}

/* Eight sets have many free pages, but no piece of order 3; the last one, with fewer, has. */
static void cohort_cpb_test_behind(struct kunit *test, unsigned int nr)
{
	unsigned int i, pages = cohort_pages();
	struct cohort_test *ct = test->priv;
	struct cohort_block *last;
	LIST_HEAD(list);

	cohort_test_take(test, 9 * pages);
	KUNIT_ASSERT_EQ(test, cohort_domain_blocks(ct->dom), 9);
	for (i = 0; i < 8 * pages; i++)
		if (i % 8 != 3)
			cohort_test_free(test, i, 1);
	cohort_test_free(test, i, nr);
	last = cohort_test_block(ct->page[i + nr]);
	KUNIT_EXPECT_EQ(test, last->nr_free, nr);
	/* What one request does not see the next one does. */
	for (i = 0; i < 2; i++)
		cohort_test_breach_all(&list, GFP_ATOMIC, 3);
	KUNIT_EXPECT_EQ(test, last->nr_free, nr - 8);
	cohort_test_release(&list, __free_pages);
	cohort_test_free(test, 0, ct->nr);
	ct->nr = 0;
}

/* On a list behind theirs; and on the same one. */
static void cohort_cpb_test_a6_behind(struct kunit *test)
{
	cohort_cpb_test_behind(test, 8);
	cohort_cpb_test_behind(test, 14);
}

static void cohort_cpb_test_excludes_region(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, cohort_region_switch(true), -EINVAL);
	KUNIT_EXPECT_FALSE(test, cohort_region_enabled());
	KUNIT_EXPECT_TRUE(test, cohort_cpb_enabled());

	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(false), 0);
	KUNIT_ASSERT_EQ(test, cohort_region_switch(true), 0);
	KUNIT_EXPECT_EQ(test, cohort_cpb_switch(true), -EINVAL);
	KUNIT_EXPECT_FALSE(test, cohort_cpb_enabled());
	KUNIT_ASSERT_EQ(test, cohort_region_switch(false), 0);

	/* With few pageblocks no request says that it can be moved. */
	page_group_by_mobility_disabled = 1;
	KUNIT_EXPECT_EQ(test, cohort_region_switch(true), -EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_cpb_switch(true), -EINVAL);
	page_group_by_mobility_disabled = 0;
	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(true), 0);
}

static void cohort_cpb_test_orders(struct kunit *test)
{
	unsigned int order, before = cohort_cpb_order;
	struct cohort_test *ct = test->priv;

	KUNIT_EXPECT_EQ(test, cohort_cpb_set_order(3), -EBUSY);
	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(false), 0);
	KUNIT_EXPECT_EQ(test, cohort_cpb_set_order(0), -EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_cpb_set_order(5), -EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_cpb_order, before);
	for (order = COHORT_MIN_SET_ORDER; order <= COHORT_MAX_SET_ORDER; order++) {
		KUNIT_ASSERT_EQ(test, cohort_cpb_set_order(order), 0);
		KUNIT_ASSERT_EQ(test, cohort_cpb_switch(true), 0);
		KUNIT_EXPECT_EQ(test, cohort_pages(), 1U << order);
		cohort_cpb_test_a4_refill(test);
		cohort_test_take(test, 3 * cohort_pages());
		KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 4);
		cohort_test_recount(test, page_zone(ct->page[0]), 0);
		cohort_test_free_shuffled(test);
		ct->nr = 0;
		KUNIT_EXPECT_EQ(test, cohort_domain_blocks(ct->dom), 0);
		KUNIT_ASSERT_EQ(test, cohort_cpb_switch(false), 0);
		KUNIT_EXPECT_EQ(test, cohort_soft(), 0);
		KUNIT_EXPECT_EQ(test, cohort_cpb_test_sets(), 0);
	}
	cohort_cpb_set_order(before);
	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(true), 0);
}

/* Memory in use stays as it is when the scheme goes off, and no set is left. */
static void cohort_cpb_test_off_and_on(struct kunit *test)
{
	unsigned long nr[COHORT_NR_KINDS], addr = cohort_test_map(test, 64);

	cohort_test_touch(test, addr, 20);
	KUNIT_EXPECT_GT(test, cohort_block_stats(nr), 0);
	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(false), 0);
	KUNIT_EXPECT_FALSE(test, cohort_enabled());
	KUNIT_EXPECT_EQ(test, cohort_block_stats(nr), 0);
	KUNIT_EXPECT_EQ(test, cohort_soft(), 0);
	cohort_test_touch(test, addr + 20 * PAGE_SIZE, 20);
	KUNIT_EXPECT_EQ(test, cohort_block_stats(nr), 0);

	/* The same processes reserve again. */
	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(true), 0);
	cohort_test_touch(test, addr + 40 * PAGE_SIZE, 24);
	KUNIT_EXPECT_PTR_EQ(test, current->mm->cohort,
			    cohort_test_domain_at(test, addr + 63 * PAGE_SIZE));
	cohort_test_verify(test, addr, 64);
}

/* Memory that goes takes each set along, also one that does not begin where its slot does. */
static void cohort_cpb_test_remnant_goes(struct kunit *test)
{
	struct page *page = cohort_cpb_test_remnant(test);
	bool was = cohort_cpb_remnants;
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk = cohort_test_block(page);
	unsigned long pfn = page_to_pfn(page);
	unsigned int i;

	WRITE_ONCE(cohort_cpb_remnants, true);
	for (i = 0; i < COHORT_TEST_PAGES && !READ_ONCE(blk->room); i++)
		cohort_test_take(test, 1);
	WRITE_ONCE(cohort_cpb_remnants, was);
	KUNIT_EXPECT_NE(test, cohort_owner_id(pfn + 2), 0U);
	KUNIT_EXPECT_EQ(test, cohort_owner_id(pfn), 0U);
	cohort_range_dissolve(pfn + 4, pfn + cohort_pages());
	KUNIT_EXPECT_NE_MSG(test, cohort_owner_id(pfn + 2), 0U, "it has none of these frames");
	cohort_range_dissolve(pfn, pfn + cohort_pages());
	KUNIT_EXPECT_NULL(test, blk->room);
	KUNIT_EXPECT_EQ(test, cohort_owner_id(pfn + 2), 0U);
	cohort_test_free(test, 0, ct->nr);
	cohort_cpb_test_remnant_end(page);
}

/* System compaction would scatter what a set keeps together. */
static void cohort_cpb_test_compaction_goes_past(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned long pfn;

	cohort_test_take(test, 1);
	pfn = page_to_pfn(ct->page[0]);
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(pfn, cohort_block_order()), pfn + cohort_pages());
	/* For something larger it has to be moved. */
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(pfn, cohort_block_order() + 1), pfn);
}

/* A process in the background has no set that its pages could do without. */
static void cohort_cpb_test_background(struct kunit *test)
{
	unsigned int i, pages = 8 * cohort_pages(), delay = cohort_compact_delay_ms;
	unsigned long addr = cohort_test_map(test, pages);
	struct cohort_domain *dom;

	cohort_test_touch(test, addr, pages);
	dom = current->mm->cohort;
	KUNIT_ASSERT_NOT_NULL(test, dom);
	lru_add_drain_all();
	for (i = 0; i < pages; i++)
		if (i % 4)
			do_madvise(current->mm, addr + i * PAGE_SIZE, PAGE_SIZE,
				   MADV_DONTNEED);
	cohort_domain_drain(dom);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(dom), 8);
	KUNIT_EXPECT_EQ(test, cohort_domain_free(dom), 6 * cohort_pages());

	cohort_test_set_adj(0);
	WRITE_ONCE(cohort_compact_delay_ms, 0);
	cohort_test_set_adj(900);
	WRITE_ONCE(cohort_compact_delay_ms, delay);
	flush_delayed_work(&dom->work);
	cohort_domain_drain(dom);
	KUNIT_EXPECT_EQ(test, cohort_domain_blocks(dom), 2);
	KUNIT_EXPECT_LT(test, cohort_domain_free(dom), cohort_pages());
	for (i = 0; i < pages; i += 4)
		cohort_test_verify(test, addr + i * PAGE_SIZE, 1);
}

/* More domains than one look finds: none keeps a set. */
static void cohort_cpb_test_off_with_many(struct kunit *test)
{
	unsigned int i, blocks = 0, many = 150;
	struct cohort_domain **dom;
	struct page **page;

	dom = kunit_kcalloc(test, many, sizeof(*dom), GFP_KERNEL);
	page = kunit_kcalloc(test, many, sizeof(*page), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, dom && page);
	for (i = 0; i < many; i++) {
		dom[i] = cohort_domain_create(COHORT_PROCESS, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, dom[i]);
		page[i] = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, numa_mem_id(), NULL,
						    dom[i]);
		KUNIT_ASSERT_NOT_NULL(test, page[i]);
		blocks += cohort_domain_blocks(dom[i]);
	}
	KUNIT_EXPECT_EQ(test, blocks, many);
	KUNIT_EXPECT_EQ(test, cohort_cpb_switch(false), 0);
	for (blocks = i = 0; i < many; i++)
		blocks += cohort_domain_blocks(dom[i]);
	KUNIT_EXPECT_EQ(test, blocks, 0);
	KUNIT_EXPECT_EQ(test, cohort_cpb_switch(true), 0);
	for (i = 0; i < many; i++) {
		__free_page(page[i]);
		cohort_domain_destroy(dom[i]);
	}
}

static struct kunit_case cohort_cpb_step_test_cases[] = {
	KUNIT_CASE(cohort_cpb_test_a1_cache_goes_past),
	KUNIT_CASE(cohort_cpb_test_a2_own_set),
	KUNIT_CASE(cohort_cpb_test_a2_interleaved),
	KUNIT_CASE(cohort_cpb_test_a3_set_from_cpb),
	KUNIT_CASE(cohort_cpb_test_a3_not_allowed),
	KUNIT_CASE(cohort_cpb_test_a4_refill),
	KUNIT_CASE(cohort_cpb_test_a4_remnant),
	KUNIT_CASE(cohort_cpb_test_a4_preference),
	KUNIT_CASE(cohort_cpb_test_remnant_goes),
	KUNIT_CASE(cohort_cpb_test_remnant_of_two_zones),
	KUNIT_CASE(cohort_cpb_test_a5_fall_through),
	KUNIT_CASE(cohort_cpb_test_a6_breach),
	KUNIT_CASE(cohort_cpb_test_a6_strangers),
	KUNIT_CASE(cohort_cpb_test_a6_behind),
	KUNIT_CASE(cohort_cpb_test_relieve_strangers),
	KUNIT_CASE(cohort_cpb_test_pick_strangers),
	KUNIT_CASE(cohort_cpb_test_excludes_region),
	KUNIT_CASE(cohort_cpb_test_orders),
	KUNIT_CASE(cohort_cpb_test_off_and_on),
	KUNIT_CASE(cohort_cpb_test_off_with_many),
	KUNIT_CASE(cohort_cpb_test_compaction_goes_past),
	KUNIT_CASE(cohort_cpb_test_background),
	{}
};

static struct kunit_suite cohort_cpb_step_test_suite = {
	.name = "cohort_cpb_step",
	.suite_init = cohort_cpb_test_suite_init,
	.suite_exit = cohort_cpb_test_suite_exit,
	.init = cohort_cpb_test_init,
	.exit = cohort_test_exit,
	.test_cases = cohort_cpb_step_test_cases,
};
kunit_test_suite(cohort_cpb_step_test_suite);
