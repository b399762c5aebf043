/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The static functions of the page allocator that Cohort needs.  Included once, at
 * the end of mm/page_alloc.c.
 */
#ifdef CONFIG_COHORT

#include "../cohort.h"

/* Free blocks looked at for one whose slot has no owner. */
#define COHORT_REMNANT_TRIES	8

/* Pieces of a list that are of a block that is being emptied, before larger ones are taken. */
#define COHORT_OWN_PIECES	8

/**
 * cohort_buddy_has() - would a block of this order be found?
 * @zone: zone to look in
 * @order: order of a block
 *
 * Without the lock, so that a domain does not contend for nothing on every
 * fault while memory is short of blocks.
 */
bool cohort_buddy_has(struct zone *zone, unsigned int order)
{
	unsigned int mt;

	for (; order < NR_PAGE_ORDERS; order++)
		for (mt = 0; mt < MIGRATE_PCPTYPES; mt++)
			/* A stale answer costs one futile or one missed look. */
			if (!free_area_empty(&zone->free_area[order], mt))
				return true;
	return false;
}

/**
 * cohort_buddy_accept() - have a guest accept one more piece of its memory
 * @zone: the zone, not locked
 *
 * Return: false if there is none.
 */
bool cohort_buddy_accept(struct zone *zone)
{
#ifdef CONFIG_UNACCEPTED_MEMORY
	return cohort_zone_unaccepted(zone) && try_to_accept_memory_one(zone);
#else
	return false;
#endif
}

/**
 * cohort_buddy_rmqueue() - take a free block off the zone's lists
 * @zone: its zone, locked
 * @order: order of the block
 * @mt: MIGRATE_MOVABLE or MIGRATE_UNMOVABLE, by what the pages will be
 * @alloc_flags: ALLOC_NOFRAGMENT or 0
 *
 * The block is not allocated in the sense of the allocator: refcount 0, no
 * page_owner record, not initialised.  Each page is, one by one, when it
 * is handed out.  The caller checks watermarks.
 *
 * Return: first page, or NULL.
 */
struct page *cohort_buddy_rmqueue(struct zone *zone, unsigned int order, int mt,
				  unsigned int alloc_flags)
{
	enum rmqueue_mode mode = RMQUEUE_NORMAL;

	/* A boost of the watermarks is for kswapd, which the next request then wakes. */
	return __rmqueue(zone, order, mt, alloc_flags | ALLOC_KSWAPD, &mode);
}

/*
 * Is all of a slot under the lock of this zone?  A node may begin in the middle of one, and what
 * pageblock_pfn_to_page() takes for granted of a zone without holes ends where that does.
 */
static bool cohort_slot_within(struct zone *zone, unsigned long pfn)
{
	unsigned long first = ALIGN_DOWN(pfn, cohort_pages());

	return __pageblock_pfn_to_page(first, first + cohort_pages(), zone);
}

/**
 * cohort_buddy_remnant() - take a free block smaller than a set, splitting none
 * @zone: its zone, locked
 * @order: order of the block
 *
 * A slot has one owner at a time; not far down the list there is a block of another.
 *
 * Return: first page, or NULL.
 */
struct page *cohort_buddy_remnant(struct zone *zone, unsigned int order)
{
	struct list_head *list = &zone->free_area[order].free_list[MIGRATE_MOVABLE];
	unsigned int tries = COHORT_REMNANT_TRIES;
	struct page *page;

	list_for_each_entry(page, list, buddy_list) {
		struct cohort_block *blk = cohort_block_of(page_to_pfn(page));

		if (!tries--)
			break;
		if (!blk || blk->room || !cohort_slot_within(zone, page_to_pfn(page)))
			continue;
		page_del_and_expand(zone, page, order, order, MIGRATE_MOVABLE);
		return page;
	}
	return NULL;
}

/* Pieces of a block itself are no place for what is moved out of it. */
static bool cohort_in_block(struct page *page, unsigned long pfn)
{
	return (page_to_pfn(page) ^ pfn) < cohort_pages();
}

/**
 * cohort_buddy_holds() - are there so many pages that cohort_buddy_pieces() would find?
 * @zone: the zone
 * @pfn: first frame of a block whose own pieces are no place
 * @want: how many, at most a block's
 */
bool cohort_buddy_holds(struct zone *zone, unsigned long pfn, unsigned int want)
{
	unsigned int order, nr = 0;
	struct page *piece;
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	for (order = 0; order < cohort_block_order() && nr < want; order++)
		list_for_each_entry(piece, &zone->free_area[order].free_list[MIGRATE_MOVABLE],
				    buddy_list) {
			if (!cohort_in_block(piece, pfn))
				nr += 1U << order;
			if (nr >= want)
				break;
		}
	spin_unlock_irqrestore(&zone->lock, flags);
	return nr >= want;
}

/**
 * cohort_buddy_pieces() - single pages of free pieces smaller than a block
 * @zone: the zone
 * @pfn: first frame of a block whose own pieces are no place
 * @page: receives the pages
 * @want: how many at most
 *
 * The smallest pieces come first, and from the end of @page on: a magazine is used that way.
 * Pageblocks of what cannot be moved are left alone, since that needs their pieces.
 *
 * Return: number of pages; 0 also where no more than the min watermark is free.
 */
unsigned int cohort_buddy_pieces(struct zone *zone, unsigned long pfn, struct page **page,
				 unsigned int want)
{
	int order, low, i, own, nr = 0;
	struct page *piece, *next;
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	if (!cohort_mark_ok(zone, min_wmark_pages(zone) + want, zone_idx(zone)))
		goto out;
	for (order = 0; order < (int)cohort_block_order(); order++) {
		struct list_head *list = &zone->free_area[order].free_list[MIGRATE_MOVABLE];

		own = 0;
		list_for_each_entry_safe(piece, next, list, buddy_list) {
			if (nr == want)
				goto out;
			if (cohort_in_block(piece, pfn)) {
				if (own++ == COHORT_OWN_PIECES)
					break;
				/* Not in the way of the next batch. */
				list_move_tail(&piece->buddy_list, list);
				continue;
			}
			low = min(order, ilog2(want - nr));
			page_del_and_expand(zone, piece, low, order, MIGRATE_MOVABLE);
			for (i = 0; i < 1 << low; i++)
				page[nr++] = piece + i;
			/* What is left of it is in smaller ones. */
			if (low < order) {
				order = low - 1;
				break;
			}
		}
	}
out:
	spin_unlock_irqrestore(&zone->lock, flags);
	cohort_pages_reverse(page, nr);
	return nr;
}

/**
 * cohort_buddy_expand() - all of a block but its beginning becomes free
 * @zone: its zone, locked
 * @page: first page of the block, off all lists
 * @low: order of what stays off
 * @high: order of the block
 */
void cohort_buddy_expand(struct zone *zone, struct page *page, unsigned int low,
			 unsigned int high)
{
	int mt = get_pageblock_migratetype(page);

	account_freepages(zone, expand(zone, page, low, high, mt), mt);
}

/**
 * cohort_buddy_split() - take the beginning of a free piece, wherever it is linked
 * @zone: its zone, locked
 * @page: first page of the piece
 * @low: order to take
 * @high: order of the piece
 */
void cohort_buddy_split(struct zone *zone, struct page *page, unsigned int low,
			unsigned int high)
{
	page_del_and_expand(zone, page, low, high, get_pageblock_migratetype(page));
}

/**
 * cohort_buddy_merge() - free pages that are off all lists
 * @zone: their zone, locked
 * @page: the first of them
 * @order: how many
 */
void cohort_buddy_merge(struct zone *zone, struct page *page, unsigned int order)
{
	split_large_buddy(zone, page, page_to_pfn(page), order, FPI_NONE);
}

/**
 * cohort_buddy_relink() - a free piece that has lost its owner joins the zone's
 * @zone: its zone, locked
 * @page: first page; PageBuddy, in NR_FREE_PAGES, on a list that ends here
 * @order: its order
 */
void cohort_buddy_relink(struct zone *zone, struct page *page, unsigned int order)
{
	list_del(&page->buddy_list);
	__add_to_free_list(page, zone, order, get_pageblock_migratetype(page), false);
}

/**
 * cohort_buddy_rejoin() - the same for one that may merge with what is around it
 * @zone: its zone, locked
 * @page: first page; PageBuddy, in NR_FREE_PAGES, on a list that ends here
 * @order: its order
 */
void cohort_buddy_rejoin(struct zone *zone, struct page *page, unsigned int order)
{
	list_del(&page->buddy_list);
	__ClearPageBuddy(page);
	set_page_private(page, 0);
	account_freepages(zone, -(1 << order), get_pageblock_migratetype(page));
	cohort_buddy_merge(zone, page, order);
}

/**
 * cohort_buddy_free() - free what may not wait in a magazine
 * @page: page that went through free_pages_prepare()
 * @order: its order
 */
void cohort_buddy_free(struct page *page, unsigned int order)
{
	free_one_page(page_zone(page), page, page_to_pfn(page), order, FPI_NONE);
}

/**
 * cohort_free_prepare() - what is done to every single page that is freed
 * @page: the page, refcount 0
 *
 * Return: false if it is bad and must stay out.
 */
bool cohort_free_prepare(struct page *page)
{
	return free_pages_prepare(page, 0);
}

/* Order of the piece that pages in a row make, from the first one on; a block at most. */
static unsigned int cohort_piece_order(struct page **page, unsigned int nr)
{
	unsigned long pfn = page_to_pfn(page[0]);
	unsigned int n = 1, most = min(nr, cohort_pages());

	if (pfn)
		most = min_t(unsigned long, most, pfn & -pfn);
	while (n < most && page[n] == page[0] + n)
		n++;
	return ilog2(n);
}

/**
 * cohort_buddy_free_bulk() - single pages go back into their blocks
 * @zone: zone of all of them
 * @page: the pages; as from a magazine
 * @nr: how many
 *
 * Pages freed in a row were mostly taken in a row: pieces are put together before the
 * buddy allocator would, one merge for each page.
 */
void cohort_buddy_free_bulk(struct zone *zone, struct page **page, unsigned int nr)
{
	unsigned int i, order;
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	for (i = 0; i < nr; i += 1U << order) {
		order = cohort_piece_order(page + i, nr - i);
		cohort_buddy_merge(zone, page[i], order);
	}
	cohort_zone_show(zone);
	spin_unlock_irqrestore(&zone->lock, flags);
}

/* Pages that can be moved first: blocks without an owner are in pieces for their sake. */
static void cohort_pcp_drain(struct zone *zone, struct per_cpu_pages *pcp, int nr)
{
	/* Interrupts try the lock, and without SMP that always succeeds. */
	bool up = !IS_ENABLED(CONFIG_SMP) && !IS_ENABLED(CONFIG_PREEMPT_RT);
	unsigned long flags = 0;

	if (up)
		local_irq_save(flags);
	spin_lock(&pcp->lock);
	free_pcppages_bulk(zone, nr, pcp, order_to_pindex(MIGRATE_MOVABLE, 0));
	spin_unlock(&pcp->lock);
	if (up)
		local_irq_restore(flags);
}

/**
 * cohort_pcp_age() - half of what this CPU's list of a zone holds becomes free
 * @zone: the zone
 *
 * Where most single pages have a domain, few requests come to that list.  What is freed to it
 * would stay, in no count of free pages, and keep what is free around it in pieces.  As much
 * at once as decay_pcp_high() may free, by which this is called.
 *
 * Return: true if there was any, for the next time.
 */
bool cohort_pcp_age(struct zone *zone)
{
	struct per_cpu_pages *pcp = this_cpu_ptr(zone->per_cpu_pageset);
	int count = READ_ONCE(pcp->count), batch = READ_ONCE(pcp->batch);
	int keep = max(count / 2, count - (batch << CONFIG_PCP_BATCH_SCALE_MAX)), left;

	/* A huge page goes as a whole, so it is counted anew. */
	while ((left = READ_ONCE(pcp->count) - keep) > 0)
		cohort_pcp_drain(zone, pcp, min(left, batch));
	return count;
}

/**
 * cohort_buddy_give() - free pages that were counted as freed before
 * @page: the first of them
 * @order: how many
 */
void cohort_buddy_give(struct page *page, unsigned int order)
{
	struct zone *zone = page_zone(page);
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	cohort_buddy_merge(zone, page, order);
	spin_unlock_irqrestore(&zone->lock, flags);
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
