/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The page allocator's side of Cohort.  Included once, at the end of
 * mm/page_alloc.c, because it needs that file's static functions.
 */
#ifdef CONFIG_COHORT

#include "cohort/cohort.h"

/* Frames given back under one hold of zone->lock. */
#define COHORT_GIVE_BATCH	32

/* Free blocks looked at for one whose slot has no owner. */
#define COHORT_REMNANT_TRIES	8

/**
 * cohort_buddy_has() - would a block of this order be found?
 * @zone: zone to look in
 * @order: order of a region
 *
 * Without the lock, so that a domain does not contend for nothing on every
 * fault while memory is short of blocks.
 */
bool cohort_buddy_has(struct zone *zone, unsigned int order)
{
	for (; order < NR_PAGE_ORDERS; order++) {
		/* A stale count costs one futile or one missed look. */
		if (data_race(zone->free_area[order].nr_free))
			return true;
	}
	return false;
}

/**
 * cohort_buddy_take() - take a block off the free lists
 * @zone: zone to take from
 * @order: order of the block
 * @mt: MIGRATE_MOVABLE or MIGRATE_UNMOVABLE, by what the pages will be
 *
 * The block is not allocated in the sense of the allocator: refcount 0, no
 * page_owner record, not initialised.  Each page is, one by one, when it
 * leaves the block.  The caller checks watermarks.
 *
 * Return: first page, or NULL.
 */
struct page *cohort_buddy_take(struct zone *zone, unsigned int order, int mt)
{
	enum rmqueue_mode mode = RMQUEUE_NORMAL;
	unsigned long flags;
	struct page *page;

	spin_lock_irqsave(&zone->lock, flags);
	page = __rmqueue(zone, order, mt, 0, &mode);
	spin_unlock_irqrestore(&zone->lock, flags);
	return page;
}

/*
 * A free block smaller than a set, of which no page is split off.  A slot has
 * one owner at a time; not far down the list there is a remnant of another.
 */
static bool cohort_buddy_take_remnant(struct zone *zone, unsigned int order,
				      struct cohort_set *set)
{
	struct list_head *list = &zone->free_area[order].free_list[MIGRATE_MOVABLE];
	unsigned int tries = COHORT_REMNANT_TRIES;
	struct page *page;

	list_for_each_entry(page, list, buddy_list) {
		struct cohort_block *blk = cohort_block_of(page_to_pfn(page));

		if (!tries--)
			break;
		if (!blk || READ_ONCE(blk->dom))
			continue;
		page_del_and_expand(zone, page, order, order, MIGRATE_MOVABLE);
		*set = (struct cohort_set){ page, order };
		return true;
	}
	return false;
}

static bool cohort_buddy_take_whole(struct zone *zone, unsigned int order,
				    unsigned int alloc_flags, struct cohort_set *set)
{
	enum rmqueue_mode mode = RMQUEUE_NORMAL;

	set->page = __rmqueue(zone, order, MIGRATE_MOVABLE, alloc_flags, &mode);
	set->order = order;
	return set->page;
}

/* Smallest first, as a request for single pages would find them. */
static bool cohort_buddy_remnants_first(struct zone *zone, unsigned int order,
					struct cohort_set *set)
{
	unsigned int o;

	for (o = COHORT_MIN_SET_ORDER; o < order; o++)
		if (cohort_buddy_take_remnant(zone, o, set))
			return true;
	return cohort_buddy_take_whole(zone, order, 0, set);
}

/*
 * If there is nothing as large as a set, then the largest there is; but rather
 * that than to mix mobilities within a pageblock.
 */
static bool cohort_buddy_split_first(struct zone *zone, unsigned int order,
				     struct cohort_set *set)
{
	unsigned int o;

	if (cohort_buddy_take_whole(zone, order, ALLOC_NOFRAGMENT, set))
		return true;
	for (o = order - 1; o >= COHORT_MIN_SET_ORDER; o--)
		if (cohort_buddy_take_remnant(zone, o, set))
			return true;
	return cohort_buddy_take_whole(zone, order, 0, set);
}

/**
 * cohort_buddy_take_sets() - take sets off the free lists
 * @zone: zone to take from
 * @order: order of a set
 * @remnants: first look for free blocks that are smaller than a set
 * @want: pages wanted, at most COHORT_REFILL_PAGES
 * @set: receives them; COHORT_REFILL_SETS entries
 *
 * Under one hold of zone->lock, and a block that is taken apart is taken
 * whole: the number of pages may exceed @want by a part of a set.  The state
 * of the frames is that of cohort_buddy_take(), and so are the caller's duties.
 *
 * Return: number of sets.
 */
unsigned int cohort_buddy_take_sets(struct zone *zone, unsigned int order,
				    bool remnants, unsigned int want,
				    struct cohort_set *set)
{
	unsigned int nr = 0, pages = 0;
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	while (pages < want &&
	       (remnants ? cohort_buddy_remnants_first(zone, order, &set[nr]) :
			   cohort_buddy_split_first(zone, order, &set[nr])))
		pages += 1U << set[nr++].order;
	spin_unlock_irqrestore(&zone->lock, flags);
	return nr;
}

/**
 * cohort_buddy_give_sets() - give sets back under one hold of zone->lock
 * @zone: zone of all of them
 * @set: the sets
 * @nr: how many
 */
void cohort_buddy_give_sets(struct zone *zone, const struct cohort_set *set,
			    unsigned int nr)
{
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	for (; nr--; set++)
		split_large_buddy(zone, set->page, page_to_pfn(set->page),
				  set->order, FPI_NONE);
	spin_unlock_irqrestore(&zone->lock, flags);
}

/**
 * cohort_buddy_give() - give a whole block back
 * @page: first page; every page of the block is parked by nobody
 * @order: order of the block
 */
void cohort_buddy_give(struct page *page, unsigned int order)
{
	struct zone *zone = page_zone(page);
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	split_large_buddy(zone, page, page_to_pfn(page), order, FPI_NONE);
	spin_unlock_irqrestore(&zone->lock, flags);
}

/**
 * cohort_buddy_give_map() - give the parked pages of a block back
 * @pfn: first frame of its slot
 * @map: which pages; at least one, and all of one zone
 */
void cohort_buddy_give_map(unsigned long pfn, const struct cohort_map *map)
{
	struct zone *zone = page_zone(pfn_to_page(pfn + cohort_map_lowest(map)));
	struct cohort_map left = *map;
	unsigned long flags;

	while (left.nr) {
		unsigned int batch = min(left.nr, COHORT_GIVE_BATCH);

		spin_lock_irqsave(&zone->lock, flags);
		while (batch--) {
			unsigned long at = pfn + cohort_map_take(&left);
			struct page *page = pfn_to_page(at);

			__free_one_page(page, at, zone, 0,
					get_pfnblock_migratetype(page, at), FPI_NONE);
		}
		spin_unlock_irqrestore(&zone->lock, flags);
	}
}

/**
 * cohort_prep_pages() - what rmqueue() does to pages on their way out
 * @page: the first of them, refcount 0, in no free list
 * @order: how many
 * @gfp: the request
 * @alloc_flags: ALLOC_* of the request
 * @preferred: zone the request would have liked, for NUMA statistics
 *
 * Return: false if a page is bad or poisoned and must not be used.
 */
bool cohort_prep_pages(struct page *page, unsigned int order, gfp_t gfp,
		       unsigned int alloc_flags, struct zone *preferred)
{
	unsigned long i;

	if (check_new_pages(page, order))
		return false;
	for (i = 0; i < 1UL << order; i++)
		if (PageHWPoison(page + i))
			return false;
	__count_zid_vm_events(PGALLOC, page_zonenum(page), 1 << order);
	zone_statistics(preferred, page_zone(page), 1);
	prep_new_page(page, order, gfp, alloc_flags);
	return true;
}

/**
 * cohort_prep_page() - the same for one page
 * @page: page taken from a block, refcount 0
 * @gfp: the request
 * @alloc_flags: ALLOC_* of the request
 * @preferred: zone the request would have liked, for NUMA statistics
 *
 * Return: false if the page is bad or poisoned and must not be used.
 */
bool cohort_prep_page(struct page *page, gfp_t gfp, unsigned int alloc_flags,
		      struct zone *preferred)
{
	return cohort_prep_pages(page, 0, gfp, alloc_flags, preferred);
}

/**
 * cohort_alloc_pages() - allocate one page for a domain
 * @gfp: flags of the request
 * @nid: preferred node
 * @nodemask: allowed nodes, NULL for all
 * @dom: domain that should own the page
 *
 * The stock allocator with one more place to look first; it falls back to
 * the ordinary free lists with all their guarantees.
 */
struct page *cohort_alloc_pages_noprof(gfp_t gfp, int nid, nodemask_t *nodemask,
				       struct cohort_domain *dom)
{
	return __alloc_pages_dom(gfp, 0, nid, nodemask, dom);
}

#endif /* CONFIG_COHORT */
