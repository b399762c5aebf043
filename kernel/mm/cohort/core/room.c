// SPDX-License-Identifier: GPL-2.0
/*
 * Rooms: taking pages from a domain's blocks, and acquiring blocks.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpuset.h>
#include <linux/kmsan.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/writeback.h>
#include <trace/events/kmem.h>

#include "../../internal.h"
#include "../cohort.h"

/* Blocks being isolated that are passed over before looking for one is given up. */
#define COHORT_UNUSABLE_BLOCKS	64

static unsigned int cohort_room_index(struct zone *zone)
{
	return zone_to_nid(zone) * MAX_NR_ZONES + zone_idx(zone);
}

/**
 * cohort_room_of() - a domain's room in a zone
 * @dom: the domain
 * @zone: the zone
 *
 * Return: the room, or NULL if there is none yet.
 */
struct cohort_room *cohort_room_of(struct cohort_domain *dom, struct zone *zone)
{
	return READ_ONCE(dom->room[cohort_room_index(zone)]);
}

/**
 * cohort_room_init() - a room without blocks
 * @room: zeroed memory
 * @dom: its domain
 * @zone: its zone
 */
void cohort_room_init(struct cohort_room *room, struct cohort_domain *dom, struct zone *zone)
{
	unsigned int i;

	room->dom = dom;
	room->zone = zone;
	room->retry = jiffies;
	INIT_LIST_HEAD(&room->breach);
	for (i = 0; i <= COHORT_BUSY; i++)
		INIT_LIST_HEAD(&room->list[i]);
}

static struct cohort_room *cohort_room_create(struct cohort_domain *dom, struct zone *zone,
					      gfp_t gfp)
{
	struct cohort_room **place = &dom->room[cohort_room_index(zone)];
	struct cohort_room *room = kzalloc(sizeof(*room), gfp), *old;

	if (!room)
		return NULL;
	cohort_room_init(room, dom, zone);
	old = cmpxchg(place, NULL, room);
	if (!old)
		return room;
	kfree(room);
	return old;
}

/**
 * cohort_domain_rooms() - make a domain's rooms in all zones there are
 * @dom: a domain that lives as long as the system
 *
 * Return: 0, or -ENOMEM.
 */
int cohort_domain_rooms(struct cohort_domain *dom)
{
	struct zone *zone;

	for_each_populated_zone(zone)
		if (zone->cohort && !cohort_room_of(dom, zone) &&
		    !cohort_room_create(dom, zone, GFP_KERNEL))
			return -ENOMEM;
	return 0;
}

/* A process's rooms are made on demand; the kernel's own pages are not waited for so. */
static struct cohort_room *cohort_room_need(struct cohort_domain *dom, struct zone *zone)
{
	struct cohort_room *room = cohort_room_of(dom, zone);

	if (!room && dom->kind == COHORT_PROCESS)
		room = cohort_room_create(dom, zone, GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT);
	return room;
}

/**
 * cohort_room_fullest() - the block of a room to take the next page of
 * @room: the room, its zone locked
 *
 * The others get a chance to come home.
 *
 * Return: the block, or NULL.
 */
struct cohort_block *cohort_room_fullest(struct cohort_room *room)
{
	unsigned long buckets = room->nonempty & ~1UL;
	unsigned int left = COHORT_UNUSABLE_BLOCKS;
	struct cohort_block *blk, *next;

	for (; buckets; buckets &= buckets - 1) {
		unsigned int b = __ffs(buckets);

		list_for_each_entry_safe(blk, next, &room->list[b], node) {
			/* Strangers have been here. */
			cohort_block_place(blk);
			if (!blk->nr_free)
				continue;
			if (cohort_block_usable(blk))
				return blk;
			if (!left--)
				return NULL;
		}
	}
	return NULL;
}

/*
 * Pages of drivers cannot be compacted later, but those taken together are
 * mostly freed together: go on with the block being filled.
 */
static struct cohort_block *cohort_room_next(struct cohort_room *room)
{
	struct cohort_block *young = room->young;

	if (room->dom->kind == COHORT_VMALLOC && young && young->nr_free &&
	    young->bucket != COHORT_BUSY && cohort_block_usable(young))
		return young;
	return cohort_room_fullest(room);
}

/**
 * cohort_pages_reverse() - pages for a magazine, which is used from its end
 * @page: the pages, the one to be used first at the beginning
 * @nr: how many
 */
void cohort_pages_reverse(struct page **page, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr / 2; i++)
		swap(page[i], page[nr - 1 - i]);
}

/**
 * cohort_room_take() - take pages of a room's own blocks
 * @room: the room
 * @page: receives single pages; the last one is the one to be used first
 * @want: how many at most
 *
 * Return: number of pages.
 */
unsigned int cohort_room_take(struct cohort_room *room, struct page **page,
			      unsigned int want)
{
	struct cohort_block *blk;
	unsigned int nr = 0;
	unsigned long flags;

	if (!READ_ONCE(room->nr_free))
		return 0;
	spin_lock_irqsave(&room->zone->lock, flags);
	while (nr < want && (blk = cohort_room_next(room)))
		nr += cohort_block_take(blk, page + nr, want - nr);
	cohort_zone_show(room->zone);
	spin_unlock_irqrestore(&room->zone->lock, flags);
	cohort_pages_reverse(page, nr);
	return nr;
}

static int cohort_migratetype(const struct cohort_domain *dom)
{
	return cohort_unmovable(dom) ? MIGRATE_UNMOVABLE : MIGRATE_MOVABLE;
}

/**
 * cohort_room_acquire() - one more block for a room
 * @room: the room
 * @highest_zoneidx: of the request, for the lowmem reserve
 * @mark: pages that have to stay free
 * @page: receives pages of the block
 * @want: how many at most, a power of two
 *
 * The mark is looked at under the lock, so that requests that come together do not
 * overshoot it together.
 *
 * Return: @want, or half a block if that is less; 0 if there is no block to be had.
 */
unsigned int cohort_room_acquire(struct cohort_room *room, int highest_zoneidx,
				 unsigned long mark, struct page **page, unsigned int want)
{
	struct zone *zone = room->zone;
	struct cohort_block *blk;
	struct page *first = NULL;
	unsigned int i, order;
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	/* Pairs with the release in cohort_scheme_on(). */
	if (!smp_load_acquire(&cohort_taking) || room->closed)
		goto out;
	/* From here on it stays: a scheme that is switched off waits for the lock. */
	order = cohort_block_order();
	want = min(want, 1U << (order - 1));
	if (cohort_mark_ok(zone, mark + (1UL << order), highest_zoneidx))
		first = cohort_buddy_rmqueue(zone, order, cohort_migratetype(room->dom), 0);
	if (!first)
		goto out;
	blk = cohort_block_of(page_to_pfn(first));
	if (!blk || WARN_ON_ONCE(cohort_block_kept(blk))) {
		/* Memory the table does not reach: the next block would be the same. */
		room->closed = true;
		cohort_buddy_merge(zone, first, order);
		first = NULL;
		goto out;
	}
	cohort_block_enter(room, blk, page_to_pfn(first), order);
	cohort_buddy_expand(zone, first, ilog2(want), order);
	for (i = 0; i < want; i++)
		page[i] = first + want - 1 - i;
	cohort_check_room(room);
out:
	cohort_zone_show(zone);
	spin_unlock_irqrestore(&zone->lock, flags);
	if (first)
		count_vm_event(COHORT_REFILL);
	return first ? want : 0;
}

/* Domains whose blocks nothing takes any more give them up, one a hold of the lock. */
static bool cohort_room_dissolve_one(struct cohort_room *room, bool close)
{
	struct cohort_block *blk = NULL;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&room->zone->lock, flags);
	room->closed = close;
	for (i = 0; i <= COHORT_BUSY && !blk; i++)
		blk = list_first_entry_or_null(&room->list[i], struct cohort_block, node);
	if (blk)
		cohort_block_dissolve(blk);
	cohort_zone_show(room->zone);
	spin_unlock_irqrestore(&room->zone->lock, flags);
	return blk;
}

/**
 * cohort_room_dissolve() - give all blocks of a room up
 * @room: the room
 * @close: take no block any more
 *
 * Context: may be scheduled away.
 */
void cohort_room_dissolve(struct cohort_room *room, bool close)
{
	/* A large process has many sets. */
	while (cohort_room_dissolve_one(room, close))
		cond_resched();
}

/**
 * cohort_cpuset_allows() - does the task's cpuset let a request have pages of a zone?
 * @zone: the zone
 * @gfp: the request
 * @alloc_flags: ALLOC_* of the request
 */
bool cohort_cpuset_allows(struct zone *zone, gfp_t gfp, unsigned int alloc_flags)
{
	return !cpusets_enabled() || !(alloc_flags & ALLOC_CPUSET) ||
	       __cpuset_zone_allowed(zone, gfp);
}

/**
 * cohort_zone_kept() - does a low zone keep its free pages for requests that can have no other?
 * @zone: the zone
 * @owned: free pages that have an owner and are there for the request
 * @alloc_flags: ALLOC_* of the request
 * @ac: its context
 *
 * As many as it would if those had no owner.  Not from those that free memory.
 */
bool cohort_zone_kept(struct zone *zone, unsigned long owned, unsigned int alloc_flags,
		      const struct alloc_context *ac)
{
	int top = ac->highest_zoneidx;

	return zone->lowmem_reserve[top] && !(current->flags & PF_MEMALLOC) &&
	       !__zone_watermark_ok(zone, 0, min_wmark_pages(zone), top, alloc_flags,
				    zone_page_state(zone, NR_FREE_PAGES) + owned);
}

static __always_inline bool cohort_zone_fits(struct zone *zone, unsigned long owned, gfp_t gfp,
					     unsigned int alloc_flags,
					     const struct alloc_context *ac)
{
	return cohort_cpuset_allows(zone, gfp, alloc_flags) &&
	       !(zone->lowmem_reserve[ac->highest_zoneidx] &&
		 cohort_zone_kept(zone, owned, alloc_flags, ac)) &&
	       (!ac->spread_dirty_pages || node_dirty_ok(zone->zone_pgdat));
}

/**
 * cohort_zone_allowed() - may this request take a page from a zone, fixed blocks included?
 * @zone: a zone of the request's zonelist and nodemask
 * @gfp: the request
 * @alloc_flags: ALLOC_* of the request
 * @ac: its context
 */
bool cohort_zone_allowed(struct zone *zone, gfp_t gfp, unsigned int alloc_flags,
			 const struct alloc_context *ac)
{
	return cohort_zone_fits(zone, cohort_unusable_free(zone), gfp, alloc_flags, ac);
}

/* The same for a page of a domain's block: what fixed ones have free does not count. */
static bool cohort_zone_serves(struct zone *zone, const struct cohort_request *rq)
{
	return cohort_zone_fits(zone, READ_ONCE(zone->cohort_soft), rq->gfp, rq->alloc_flags,
				rq->ac);
}

/* Slab that can be shrunk cannot be moved either. */
static bool cohort_mobility_ok(const struct cohort_domain *dom,
			       const struct alloc_context *ac)
{
	return (ac->migratetype == MIGRATE_MOVABLE) == !cohort_unmovable(dom);
}

/*
 * Tasks that reclaim may use the reserves, which are not for filling blocks.  But
 * they write the compressed swap; acquiring keeps to the watermarks.
 */
static bool cohort_may_take(const struct cohort_domain *dom)
{
	return !(current->flags & PF_MEMALLOC) || dom->kind == COHORT_ZSPAGE;
}

/*
 * Pages that can be moved go where most free memory is CMA's, as in __rmqueue(): blocks
 * are not taken of it, and with one more block the rest would have to be reclaimed.
 */
static bool cohort_cma_first(const struct cohort_request *rq, struct zone *zone)
{
	unsigned long cma = zone_page_state(zone, NR_FREE_CMA_PAGES);

	return cma && (rq->alloc_flags & ALLOC_CMA) &&
	       2 * cma + cohort_unusable_free(zone) > zone_page_state(zone, NR_FREE_PAGES);
}

/* The array would be initialised for each page, and is needed for one in many. */
static noinline struct page *cohort_zone_refill(const struct cohort_request *rq,
						struct zone *zone)
{
	/* While memory goes offline none may be at hand: the others would go back at once. */
	unsigned int nr, want = cohort_pcp_disabled(zone) ? 1 : COHORT_ROUND;
	struct cohort_room *room = cohort_room_need(rq->dom, zone);
	struct page *page[COHORT_ROUND];

	if (!room)
		return NULL;
	nr = cohort_room_take(room, page, want);
	if (!nr && !cohort_cma_first(rq, zone))
		nr = READ_ONCE(cohort_scheme)->refill(rq, room, page, want);
	if (!nr)
		return NULL;
	if (--nr)
		cohort_magazine_fill(zone, rq->dom->id, page, nr);
	return page[nr];
}

/* A page of the domain in this zone: at hand, of its blocks, of one more block. */
static struct page *cohort_zone_take(const struct cohort_request *rq, struct zone *zone)
{
	return cohort_magazine_take(zone, rq->dom->id, cohort_room_of(rq->dom, zone)) ?:
	       cohort_zone_refill(rq, zone);
}

/**
 * cohort_hand_out() - make pages of a block ready for use
 * @page: the first of them, refcount 0, in no free list
 * @order: how many
 * @gfp: the request
 * @alloc_flags: ALLOC_* of the request
 * @preferred: zone the request would have liked, for NUMA statistics
 *
 * Return: false if a page is bad: it stays out, and its block does not wait for it.
 */
bool cohort_hand_out(struct page *page, unsigned int order, gfp_t gfp,
		     unsigned int alloc_flags, struct zone *preferred)
{
	unsigned long pfn = page_to_pfn(page);

	if (cohort_prep_pages(page, order, gfp, alloc_flags, preferred))
		return true;
	cohort_range_dissolve(pfn, pfn + (1UL << order));
	return false;
}

static bool cohort_hand_out_one(const struct cohort_request *rq, struct page *page)
{
	return cohort_hand_out(page, 0, rq->gfp, rq->alloc_flags,
			       zonelist_zone(rq->ac->preferred_zoneref));
}

static bool cohort_node_has(int nid, const struct cohort_request *rq)
{
	int top = rq->ac->highest_zoneidx, i;

	for (i = top; i >= 0; i--) {
		struct zone *near = &NODE_DATA(nid)->node_zones[i];

		if (managed_zone(near) && zone_watermark_ok(near, 0, low_wmark_pages(near), top,
							    rq->alloc_flags))
			return true;
	}
	return false;
}

/*
 * Memory of another node is worse than an ordinary page of the own one, whichever zone has
 * that: blocks there are for when stock would go there, too.
 */
static __always_inline bool cohort_zone_far(struct zone *zone, const struct cohort_request *rq)
{
	int own = zonelist_node_idx(rq->ac->preferred_zoneref);

	return zone_to_nid(zone) != own && cohort_node_has(own, rq);
}

static struct page *cohort_zones_take(const struct cohort_request *rq)
{
	const struct alloc_context *ac = rq->ac;
	struct zoneref *z = ac->preferred_zoneref;
	struct zone *zone;
	struct page *page;

	for_next_zone_zonelist_nodemask(zone, z, ac->highest_zoneidx, ac->nodemask) {
		if (cohort_zone_far(zone, rq))
			break;
		if (!zone->cohort || !cohort_zone_serves(zone, rq))
			continue;
		while ((page = cohort_zone_take(rq, zone)))
			if (cohort_hand_out_one(rq, page))
				return page;
	}
	return NULL;
}

static struct page *cohort_hole_take(const struct cohort_request *rq)
{
	const struct cohort_scheme *scheme = READ_ONCE(cohort_scheme);
	struct page *page;

	if (!scheme->hole || cohort_cma_first(rq, zonelist_zone(rq->ac->preferred_zoneref)))
		return NULL;
	page = scheme->hole(rq);
	if (!page || !cohort_hand_out_one(rq, page))
		return NULL;
	count_vm_event(COHORT_BREACH);
	return page;
}

/**
 * __cohort_rmqueue() - a page for a domain, before the ordinary free pages are tried
 * @dom: domain that should own the page
 * @gfp: the request, order 0
 * @alloc_flags: ALLOC_* of the request
 * @ac: prepared by the page allocator
 *
 * Return: a page ready for use, or NULL for the stock path.
 */
struct page *__cohort_rmqueue(struct cohort_domain *dom, gfp_t gfp, unsigned int alloc_flags,
			      const struct alloc_context *ac)
{
	const struct cohort_request rq = { dom, gfp, alloc_flags, ac };
	const struct cohort_scheme *scheme = READ_ONCE(cohort_scheme);
	struct page *page;

	if (!cohort_mobility_ok(dom, ac) ||
	    !zonelist_zone(ac->preferred_zoneref) || !cohort_may_take(dom))
		return NULL;
	page = cohort_zones_take(&rq);
	if (!page && scheme->room && scheme->room(&rq))
		page = cohort_zones_take(&rq);
	if (!page)
		page = cohort_hole_take(&rq);
	if (!page)
		count_vm_event(COHORT_FALLBACK);
	return page;
}

/**
 * cohort_room_more() - more pages like one that has just been allocated
 * @dom: the domain the request was for
 * @gfp: the request, without __GFP_ACCOUNT
 * @like: what it brought
 * @page: receives more, ready for use; NULL behind them, where a page was bad
 * @nr: how many at most
 *
 * What may be taken of a zone for one page may be for the next; no watermark counts pages
 * of blocks.  One more block is for the next request of a single page.
 *
 * Return: number of pages.
 */
unsigned int cohort_room_more(struct cohort_domain *dom, gfp_t gfp, const struct page *like,
			      struct page **page, unsigned int nr)
{
	struct zone *zone = page_zone(like);
	struct cohort_room *room = cohort_room_of(dom, zone);
	unsigned int i, got, ready = 0;

	if (!room || !cohort_may_take(dom) || cohort_owner_id(page_to_pfn(like)) != dom->id)
		return 0;
	got = cohort_magazine_take_bulk(room, page, nr);
	for (i = 0; i < got; i++) {
		if (!cohort_hand_out(page[i], 0, gfp, 0, zone))
			continue;
		trace_mm_page_alloc(page[i], 0, gfp, gfp_migratetype(gfp));
		kmsan_alloc_page(page[i], 0, gfp);
		page[ready++] = page[i];
	}
	/* What fills the rest takes a page that is named there for one that it has. */
	memset(page + ready, 0, (got - ready) * sizeof(*page));
	return ready;
}

/**
 * cohort_domain_take_hole() - a page of a domain that is not the request's own
 * @dom: the domain
 * @rq: the request
 *
 * Return: a page with refcount 0 that has to be prepared, or NULL.
 */
struct page *cohort_domain_take_hole(struct cohort_domain *dom,
				     const struct cohort_request *rq)
{
	const struct alloc_context *ac = rq->ac;
	struct zoneref *z = ac->preferred_zoneref;
	struct page *page;
	struct zone *zone;

	for_next_zone_zonelist_nodemask(zone, z, ac->highest_zoneidx, ac->nodemask) {
		struct cohort_room *room = cohort_room_of(dom, zone);

		if (cohort_zone_far(zone, rq))
			break;
		if (!room || !READ_ONCE(room->nr_free) || !cohort_zone_serves(zone, rq))
			continue;
		/* As many at a time as for the domain's own requests: the lock is all CPUs'. */
		page = cohort_magazine_take(zone, dom->id, room);
		if (page || cohort_room_take(room, &page, 1))
			return page;
	}
	return NULL;
}

/**
 * cohort_node_ok() - may a request have pages of a node?
 * @ac: its zones and nodes
 * @nid: the node
 *
 * __GFP_THISNODE is no nodemask but a zonelist without any other node.
 */
bool cohort_node_ok(const struct alloc_context *ac, int nid)
{
	/* A cpuset may leave a request no zone at all. */
	if (ac->zonelist && !zonelist_zone(ac->preferred_zoneref))
		return false;
#ifdef CONFIG_NUMA
	if (ac->zonelist) {
		int own = zonelist_node_idx(ac->preferred_zoneref);
		struct zonelist *lists = NODE_DATA(own)->node_zonelists;

		if (ac->zonelist == &lists[ZONELIST_NOFALLBACK])
			return nid == own;
	}
#endif
	return !ac->nodemask || node_isset(nid, *ac->nodemask);
}
