// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks without an owner.  A request that finds no block is served by the free lists, and
 * blocks around something pinned are given up: in the end free memory lies in pieces between
 * pages that cannot be moved, beside blocks full of pages that can.  These move into the pieces,
 * and their blocks are whole.
 *
 * Compaction of the zone ends at one block, or goes through all memory and moves also what lies
 * beside pages that cannot be moved.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/gfp.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched.h>
#include <linux/swap.h>

#include "../../internal.h"
#include "../cohort.h"
#include "../host/compaction.h"

/* Blocks of a zone that stay in pieces in one search: what is in them does not move. */
#define COHORT_UNOWNED_VAIN	4

/* Has any part of a block an owner?  A fixed block may be smaller. */
static bool cohort_any_owned(unsigned long pfn, unsigned long end)
{
	unsigned long step = 1UL << min(cohort_block_order(), COHORT_FIXED_ORDER);

	for (; pfn < end; pfn += step)
		if (cohort_owner_id(pfn))
			return true;
	return false;
}

/*
 * Would a page of order 0 be isolated and moved?  A guess, since no reference is held.  One
 * that is pinned, or read from while it is looked at, is not.
 */
static bool cohort_looks_movable(struct page *page)
{
	unsigned long flags = READ_ONCE(page->flags);
	int refs = page_count(page);

	/* What a slab has in this place may look like a driver's mark. */
	if (PageSlab(page))
		return false;
	if (__PageMovable(page))
		return !(flags & BIT(PG_isolated));
	if (!(flags & BIT(PG_lru)) || refs >= GUP_PIN_COUNTING_BIAS)
		return false;
	if (flags & BIT(PG_unevictable) && !cohort_unevictable_moves())
		return false;
	return !PageAnon(page) || flags & BIT(PG_swapcache) ||
	       refs <= atomic_read(&page->_mapcount) + 1;
}

/**
 * cohort_unowned_used() - how many pages of a block without an owner are in use?
 * @zone: the zone
 * @pfn: first frame of the block
 *
 * Without the lock: a wrong guess costs time only.
 *
 * Return: 0 if there are none, if one of them cannot be moved now or is of a larger folio, if
 * a part of the block has an owner, and if it is not all in a movable pageblock of the zone.
 */
unsigned int cohort_unowned_used(struct zone *zone, unsigned long pfn)
{
	unsigned long end = pfn + cohort_pages();
	struct page *page;
	unsigned int used = 0;

	/* What a zone without holes is asked for must be inside. */
	if (pfn < zone->zone_start_pfn || end > zone_end_pfn(zone))
		return 0;
	page = pageblock_pfn_to_page(pfn, end, zone);
	if (!page || get_pageblock_migratetype(page) != MIGRATE_MOVABLE ||
	    cohort_any_owned(pfn, end))
		return 0;
	while (pfn < end) {
		page = pfn_to_page(pfn);
		if (PageBuddy(page)) {
			pfn += 1UL << min_t(unsigned int, buddy_order_unsafe(page),
					    COHORT_MAX_ORDER);
			continue;
		}
		if (PageCompound(page))
			return 0;
		/* What is in the list of a CPU has no reference, and is not in use. */
		if (page_count(page)) {
			if (!cohort_looks_movable(page))
				return 0;
			used++;
		}
		pfn++;
	}
	return used;
}

/* Is all of a block in one free piece? */
static bool cohort_unowned_whole(unsigned long pfn)
{
	unsigned int order;

	for (order = cohort_block_order(); order < NR_PAGE_ORDERS; order++) {
		struct page *page = pfn_to_page(round_down(pfn, 1UL << order));

		if (PageBuddy(page) && buddy_order_unsafe(page) >= order)
			return true;
	}
	return false;
}

/* Return: the block is whole. */
static bool cohort_unowned_empty(struct zone *zone, unsigned long pfn, unsigned int used)
{
	LIST_HEAD(list);

	/* Those that moved before the place is used up would be in the way of the next block. */
	if (!cohort_buddy_holds(zone, pfn, used))
		return false;
	/* Some are on their way elsewhere. */
	if (cohort_isolate_frames(pfn, &list) < used) {
		putback_movable_pages(&list);
		return false;
	}
	if (cohort_evacuate_unowned(zone, pfn, &list) < used)
		return false;
	/* Where they were is in the list of this CPU, or of one that the worker ran on before. */
	lru_add_drain_cpu_zone(zone);
	if (!cohort_unowned_whole(pfn))
		drain_all_pages(zone);
	return cohort_unowned_whole(pfn);
}

/*
 * Free pages in pieces smaller than a block.  Those of all migrate types are counted, but of
 * orders only of which one is in a movable pageblock.
 */
static unsigned long cohort_unowned_pieces(struct zone *zone)
{
	unsigned int order = cohort_block_order();
	unsigned long nr = 0;

	while (order--)
		if (!free_area_empty(&zone->free_area[order], MIGRATE_MOVABLE))
			/* A stale count costs one look too many or too few. */
			nr += data_race(zone->free_area[order].nr_free) << order;
	return nr;
}

/* Some pieces are the block's own, or of pageblocks of what cannot be moved. */
static bool cohort_unowned_room(struct zone *zone)
{
	return cohort_unowned_pieces(zone) >= 2 * cohort_pages() &&
	       cohort_mark_ok(zone, min_wmark_pages(zone) + cohort_pages(), zone_idx(zone));
}

/**
 * cohort_unowned_pack() - make a whole block of what has no owner
 * @zone: the zone
 * @next: frame at which the search goes on; updated
 * @end: jiffies at which it ends
 *
 * Context: may sleep.
 * Return: false if none was made: no place, no such block, or no time.
 */
bool cohort_unowned_pack(struct zone *zone, unsigned long *next, unsigned long end)
{
	unsigned long pfn, pages = cohort_pages(), left = zone->spanned_pages / pages + 1;
	unsigned int used, vain = 0;

	while (left-- && vain < COHORT_UNOWNED_VAIN && time_before(jiffies, end) &&
	       cohort_unowned_room(zone)) {
		if (*next < zone->zone_start_pfn || *next >= zone_end_pfn(zone))
			*next = round_down(zone->zone_start_pfn, pages);
		pfn = *next;
		*next += pages;
		used = cohort_unowned_used(zone, pfn);
		if (used && cohort_unowned_empty(zone, pfn, used))
			return true;
		vain += !!used;
		cond_resched();
	}
	return false;
}
