// SPDX-License-Identifier: GPL-2.0
/*
 * Domains: taking pages, refilling with blocks, giving memory back.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpuset.h>
#include <linux/mm.h>
#include <linux/compaction.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/writeback.h>
#include <trace/events/cohort.h>

#include "../internal.h"
#include "cohort.h"
#include "pcpa.h"

LIST_HEAD(cohort_domains);
static DEFINE_SPINLOCK(cohort_domains_lock);

/**
 * cohort_domain_create() - a new domain without blocks
 * @kind: lifetime of its pages
 * @nid: only node to take blocks from, or NUMA_NO_NODE
 * @gfp: how to allocate the structure
 *
 * Return: the domain with one reference, or NULL.
 */
struct cohort_domain *cohort_domain_create(enum cohort_kind kind, int nid,
					   gfp_t gfp)
{
	struct cohort_domain *dom = kzalloc(sizeof(*dom), gfp);
	unsigned long flags;
	unsigned int i;

	if (!dom)
		return NULL;
	spin_lock_init(&dom->lock);
	for (i = 0; i <= COHORT_BUSY; i++)
		INIT_LIST_HEAD(&dom->list[i]);
	dom->kind = kind;
	dom->nid = nid;
	refcount_set(&dom->ref, 1);
	INIT_DELAYED_WORK(&dom->work, cohort_compact_work);

	spin_lock_irqsave(&cohort_domains_lock, flags);
	list_add_tail_rcu(&dom->all, &cohort_domains);
	spin_unlock_irqrestore(&cohort_domains_lock, flags);
	return dom;
}

void cohort_domain_put(struct cohort_domain *dom)
{
	if (refcount_dec_and_test(&dom->ref)) {
		WARN_ON_ONCE(dom->nr_blocks);
		kfree_rcu(dom, rcu);
	}
}

/**
 * cohort_domain_destroy() - the lifetime is over
 * @dom: domain that nobody allocates from any more
 *
 * Pages still in use (in LRU batches, swap cache, pinned) keep their frames
 * and are freed to the buddy allocator later.  Drops the first reference.
 */
void cohort_domain_destroy(struct cohort_domain *dom)
{
	unsigned long flags;

	spin_lock_irqsave(&cohort_domains_lock, flags);
	list_del_rcu(&dom->all);
	spin_unlock_irqrestore(&cohort_domains_lock, flags);
	cohort_domain_dissolve(dom, true);
	cohort_domain_put(dom);
}

/* The one with the most parked pages: one that is being emptied was picked for that. */
static struct cohort_block *cohort_emptiest(struct cohort_domain *dom, bool full)
{
	int i;

	for (i = COHORT_BUSY; i >= (full ? 0 : 1); i--)
		if (!list_empty(&dom->list[i]))
			return list_first_entry(&dom->list[i],
						struct cohort_block, node);
	return NULL;
}

/*
 * Blocks until @enough pages are back.  The emptiest first: few blocks are lost, and few
 * pages in use lie between others' from then on.
 */
static unsigned long cohort_dissolve_some(struct cohort_domain *dom, bool full,
					  unsigned long enough)
{
	unsigned long flags, pfn = 0, nr = 0;
	struct cohort_block *blk;
	struct cohort_map map;

	do {
		rcu_read_lock();
		spin_lock_irqsave(&dom->lock, flags);
		blk = cohort_emptiest(dom, full);
		if (blk) {
			pfn = cohort_block_pfn(blk);
			cohort_block_detach(dom, blk, &map);
		}
		spin_unlock_irqrestore(&dom->lock, flags);
		if (blk) {
			trace_cohort_block_dissolve(pfn, map.nr);
			count_vm_events(COHORT_DISSOLVE, dom->kind != COHORT_CPB);
			nr += cohort_block_return(pfn, &map);
		}
		rcu_read_unlock();
	} while (blk && nr < enough);
	return nr;
}

/**
 * cohort_domain_dissolve() - give a domain's blocks back
 * @dom: the domain
 * @full: also blocks without parked pages, which yield nothing now
 *
 * Return: pages given to the buddy allocator.
 */
unsigned long cohort_domain_dissolve(struct cohort_domain *dom, bool full)
{
	return cohort_dissolve_some(dom, full, ULONG_MAX);
}

/**
 * cohort_domain_trim() - give parked pages back until few are left
 * @dom: the domain
 * @keep: parked pages it may keep
 */
void cohort_domain_trim(struct cohort_domain *dom, unsigned long keep)
{
	unsigned long nr = READ_ONCE(dom->nr_parked);

	if (nr > keep)
		cohort_dissolve_some(dom, false, nr - keep);
}

/**
 * cohort_dissolve_all() - no domain keeps any block
 *
 * Callers make sure that none is refilled meanwhile.
 */
void cohort_dissolve_all(void)
{
	struct cohort_domain *dom;

	rcu_read_lock();
	list_for_each_entry_rcu(dom, &cohort_domains, all)
		cohort_domain_dissolve(dom, true);
	rcu_read_unlock();
}

/**
 * cohort_parked_in() - parked pages of all domains of a kind
 * @kind: the kind
 *
 * A sum of counts that change meanwhile: for people, not for decisions.
 */
unsigned long cohort_parked_in(enum cohort_kind kind)
{
	struct cohort_domain *dom;
	unsigned long nr = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(dom, &cohort_domains, all)
		if (dom->kind == kind)
			nr += READ_ONCE(dom->nr_parked);
	rcu_read_unlock();
	return nr;
}

/**
 * cohort_parked() - parked pages of all domains
 *
 * Beside those, the statistic counts what is free of the page-cache-preferred
 * area, which has a bound of its own.
 */
unsigned long cohort_parked(void)
{
	unsigned long all = global_zone_page_state(NR_COHORT_FREE);

	return all - min(all, cohort_pcpa_free_pages());
}

/* Pages that are enough for a request whose reclaim made no progress, until the next. */
#define GIVE_ENOUGH	512UL

unsigned long __cohort_give_back(const struct alloc_context *ac,
				 enum cohort_level level)
{
	/* Before anything is killed, and for who asks by name, it is everything. */
	unsigned long enough = ac && level == COHORT_GIVE_BACKGROUND ? GIVE_ENOUGH : ULONG_MAX;
	struct cohort_domain *dom;
	unsigned long nr = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(dom, &cohort_domains, all) {
		if (level == COHORT_GIVE_BACKGROUND && dom->kind != COHORT_CPB &&
		    dom->kind != COHORT_CACHE && dom->kind != COHORT_HOT &&
		    READ_ONCE(dom->class) != COHORT_BACKGROUND)
			continue;
		nr += cohort_dissolve_some(dom, false, enough - nr);
		if (nr >= enough)
			break;
	}
	rcu_read_unlock();
	if (nr)
		count_vm_events(COHORT_GIVE_BACK, nr);
	return nr;
}

/* __GFP_THISNODE is no nodemask but a zonelist without any other node. */
static bool cohort_node_ok(const struct alloc_context *ac, int nid)
{
#ifdef CONFIG_NUMA
	/* Compaction's own requests have none. */
	if (ac->zonelist) {
		int own = zonelist_node_idx(ac->preferred_zoneref);
		struct zonelist *lists = NODE_DATA(own)->node_zonelists;

		if (ac->zonelist == &lists[ZONELIST_NOFALLBACK])
			return nid == own;
	}
#endif
	return !ac->nodemask || node_isset(nid, *ac->nodemask);
}

/**
 * cohort_zone_ok() - may a request have this page?
 * @ac: its zones and nodes
 * @page: any page
 */
bool cohort_zone_ok(const struct alloc_context *ac, struct page *page)
{
	return page_zonenum(page) <= ac->highest_zoneidx &&
	       cohort_node_ok(ac, page_to_nid(page));
}

static struct page *cohort_take_from(struct cohort_domain *dom,
				     struct cohort_block *blk,
				     const struct alloc_context *ac)
{
	struct page *page = cohort_block_page(blk);

	if (!cohort_zone_ok(ac, page))
		return NULL;
	page = pfn_to_page(cohort_block_pfn(blk) + cohort_map_take(&blk->map));
	cohort_block_count(dom, blk, page, -1);
	return page;
}

/* Fullest block first: the others get a chance to become empty. */
static struct page *cohort_take_fullest(struct cohort_domain *dom,
					const struct alloc_context *ac)
{
	unsigned long buckets = dom->nonempty & ~1UL;
	struct cohort_block *blk;
	struct page *page;

	for (; buckets; buckets &= buckets - 1) {
		list_for_each_entry(blk, &dom->list[__ffs(buckets)], node) {
			page = cohort_take_from(dom, blk, ac);
			if (page)
				return page;
		}
	}
	return NULL;
}

/*
 * Unmovable pages cannot be compacted later, but those taken together are
 * mostly freed together: go on with the block being filled, and leave holes
 * alone while they are few.
 */
static struct page *cohort_take_locked(struct cohort_domain *dom,
				       const struct alloc_context *ac)
{
	struct cohort_block *young = dom->young;

	if (dom->kind == COHORT_VMALLOC) {
		if (young && young->map.nr && young->bucket != COHORT_BUSY)
			return cohort_take_from(dom, young, ac);
		if (dom->nr_parked < COHORT_SPARE_BLOCKS * cohort_pages())
			return NULL;
	}
	return cohort_take_fullest(dom, ac);
}

/*
 * The set a process is filling, which is a word of a map, without looking for
 * it: this is every page fault.  It keeps its place among the lists until its
 * last page is taken.
 */
static struct page *cohort_take_young(struct cohort_domain *dom,
				      const struct alloc_context *ac)
{
	struct cohort_block *blk = dom->young;
	unsigned long bits;
	struct page *page;

	if (!blk || !blk->map.nr || !cohort_zone_ok(ac, cohort_block_page(blk)))
		return NULL;
	bits = blk->map.bits[0];
	blk->map.bits[0] = bits & (bits - 1);
	page = pfn_to_page(cohort_block_pfn(blk) + __ffs(bits));
	if (!--blk->map.nr) {
		dom->young = NULL;
		cohort_block_move(dom, blk, 0);
	}
	dom->nr_parked--;
	__dec_zone_page_state(page, NR_COHORT_FREE);
	return page;
}

/* The next set to be filled is the fullest one with a hole. */
static struct page *cohort_take_set(struct cohort_domain *dom,
				    const struct alloc_context *ac)
{
	struct page *page = cohort_take_young(dom, ac);
	struct cohort_block *blk;

	if (page)
		return page;
	page = cohort_take_fullest(dom, ac);
	if (page) {
		blk = cohort_block_of(page_to_pfn(page));
		cohort_domain_fill(dom, blk->map.nr ? blk : NULL);
	}
	return page;
}

/**
 * cohort_domain_take() - take one parked page
 * @dom: the domain
 * @ac: zones and nodes the page may come from
 *
 * Return: a page with refcount 0 that cohort_prep_page() must see, or NULL.
 */
struct page *cohort_domain_take(struct cohort_domain *dom,
				const struct alloc_context *ac)
{
	unsigned long flags;
	struct page *page;

	if (!spin_trylock_irqsave(&dom->lock, flags)) {
		WRITE_ONCE(dom->nr_waits, READ_ONCE(dom->nr_waits) + 1);
		spin_lock_irqsave(&dom->lock, flags);
	}
	page = cohort_cpb_enabled() ? cohort_take_set(dom, ac) :
				      cohort_take_locked(dom, ac);
	spin_unlock_irqrestore(&dom->lock, flags);
	return page;
}

/**
 * cohort_domain_take_hole() - take a page that was left alone
 * @dom: the domain
 * @ac: zones and nodes the page may come from
 *
 * Return: like cohort_domain_take().
 */
struct page *cohort_domain_take_hole(struct cohort_domain *dom,
				     const struct alloc_context *ac)
{
	struct page *page = NULL;
	unsigned long flags;

	if (!READ_ONCE(dom->nr_parked))
		return NULL;
	spin_lock_irqsave(&dom->lock, flags);
	page = cohort_take_fullest(dom, ac);
	spin_unlock_irqrestore(&dom->lock, flags);
	return page;
}

static int cohort_migratetype(const struct cohort_domain *dom)
{
	return cohort_unmovable(dom) ? MIGRATE_UNMOVABLE : MIGRATE_MOVABLE;
}

/* Slab that can be shrunk cannot be moved either. */
static bool cohort_mobility_ok(const struct cohort_domain *dom,
			       const struct alloc_context *ac)
{
	return (ac->migratetype == MIGRATE_MOVABLE) == !cohort_unmovable(dom);
}

/**
 * cohort_grow() - one more block for a domain
 * @dom: the domain
 * @zone: where to take it from
 * @highest_zoneidx: of the request, for the lowmem reserve
 * @mark: pages that have to stay free
 *
 * Return: true if @dom has a block more.
 */
bool cohort_grow(struct cohort_domain *dom, struct zone *zone, int highest_zoneidx,
		 unsigned long mark)
{
	struct page *page;
	bool grown = false;

	if (!zone_watermark_ok(zone, 0, mark + cohort_pages(), highest_zoneidx, 0))
		return false;
	/* The order may change while schemes are off, but not before we are done. */
	rcu_read_lock();
	page = READ_ONCE(cohort_taking) ?
	       cohort_buddy_take(zone, cohort_order, cohort_migratetype(dom)) : NULL;
	if (page) {
		grown = cohort_block_publish(dom, page, cohort_order);
		if (!grown)
			cohort_buddy_give(page, cohort_order);
	}
	rcu_read_unlock();
	if (grown)
		count_vm_event(COHORT_REFILL);
	return grown;
}

/**
 * cohort_low_mark() - free pages below which no domain takes a block
 * @zone: zone to take from
 *
 * A block leaves half of the gap below the low watermark to those who need
 * single pages, or domains filling up in a burst would drive them into
 * direct reclaim.
 */
unsigned long cohort_low_mark(const struct zone *zone)
{
	return (min_wmark_pages(zone) + low_wmark_pages(zone)) / 2;
}

/**
 * cohort_zone_allowed() - may this request take a block from a zone?
 * @zone: a zone of the request's zonelist and nodemask
 * @gfp: the request
 * @alloc_flags: ALLOC_* of the request
 * @ac: its context
 */
bool cohort_zone_allowed(struct zone *zone, gfp_t gfp, unsigned int alloc_flags,
			 const struct alloc_context *ac)
{
	if (cpusets_enabled() && (alloc_flags & ALLOC_CPUSET) &&
	    !__cpuset_zone_allowed(zone, gfp))
		return false;
	return !ac->spread_dirty_pages || node_dirty_ok(zone->zone_pgdat);
}

/*
 * One more block for the domain.  Never reclaims itself: it runs under
 * readahead, and asking for a high order would reclaim far more than a block.
 * Below the low watermark kswapd is told, as the slow path would do.
 */
static bool cohort_refill(struct cohort_domain *dom, gfp_t gfp,
			  unsigned int alloc_flags,
			  const struct alloc_context *ac)
{
	struct zoneref *z = ac->preferred_zoneref;
	struct zone *zone;

	if (cohort_cpb_enabled())
		return cohort_cpb_refill(dom, gfp, alloc_flags, ac);
	if (!cohort_may_refill(cohort_parked(),
			       cohort_parked_max))
		return false;
	for_next_zone_zonelist_nodemask(zone, z, ac->highest_zoneidx,
					ac->nodemask) {
		if (dom->nid != NUMA_NO_NODE && zone_to_nid(zone) != dom->nid)
			continue;
		if (!cohort_zone_allowed(zone, gfp, alloc_flags, ac))
			continue;
		if (!cohort_buddy_has(zone, cohort_order)) {
			/* Memory enough, but in pieces: pack what is in no region. */
			if (gfp & __GFP_KSWAPD_RECLAIM)
				wakeup_kcompactd(zone->zone_pgdat, cohort_order,
						 ac->highest_zoneidx);
			continue;
		}
		if (cohort_grow(dom, zone, ac->highest_zoneidx, low_wmark_pages(zone)))
			return true;
		if (gfp & __GFP_KSWAPD_RECLAIM)
			wakeup_kswapd(zone, gfp, 0, ac->highest_zoneidx);
		if (cohort_grow(dom, zone, ac->highest_zoneidx, cohort_low_mark(zone)))
			return true;
	}
	return false;
}

/*
 * Those who reclaim may use the reserves, which are not for filling blocks.  But
 * they write the compressed swap; cohort_refill() keeps to the watermarks.
 */
static bool cohort_may_take(const struct cohort_domain *dom)
{
	return !(current->flags & PF_MEMALLOC) || dom->kind == COHORT_ZSPAGE;
}

/*
 * Once a request, where it could compact by itself: memory of drivers strewn
 * over the free lists is why there are no blocks the next time.
 */
static bool cohort_make_room(const struct cohort_domain *dom, gfp_t gfp)
{
	return dom->kind == COHORT_VMALLOC && cohort_region_enabled() &&
	       (gfp & GFP_KERNEL) == GFP_KERNEL && !(gfp & __GFP_NORETRY) &&
	       cohort_region_room(numa_mem_id());
}

/**
 * cohort_rmqueue() - a page for a domain, before the stock free lists are tried
 * @dom: domain that should own the page
 * @gfp: the request, order 0
 * @alloc_flags: ALLOC_* of the request
 * @ac: prepared by the page allocator
 *
 * Return: a page ready for use, or NULL for the stock path.
 */
struct page *cohort_rmqueue(struct cohort_domain *dom, gfp_t gfp,
			    unsigned int alloc_flags,
			    const struct alloc_context *ac)
{
	bool tried = false;
	struct page *page;

	if (!cohort_mobility_ok(dom, ac) ||
	    !zonelist_zone(ac->preferred_zoneref) || !cohort_may_take(dom))
		return NULL;
again:
	do {
		while ((page = cohort_domain_take(dom, ac))) {
			if (cohort_prep_page(page, gfp, alloc_flags,
					     zonelist_zone(ac->preferred_zoneref)))
				return page;
			/* A bad page stays out; its block must not wait for it. */
			cohort_dissolve_range(page_to_pfn(page),
					      page_to_pfn(page) + 1);
		}
	} while (cohort_refill(dom, gfp, alloc_flags, ac));

	if (!tried && cohort_make_room(dom, gfp)) {
		tried = true;
		goto again;
	}

	page = cohort_region_hole(dom, ac);
	if (page) {
		if (cohort_prep_page(page, gfp, alloc_flags,
				     zonelist_zone(ac->preferred_zoneref))) {
			count_vm_event(COHORT_STEAL);
			return page;
		}
		cohort_dissolve_range(page_to_pfn(page), page_to_pfn(page) + 1);
	}
	count_vm_event(COHORT_FALLBACK);
	return NULL;
}

/*
 * Who may take pages of a domain that is not its own?  A request that can
 * wait takes what can be moved away again, or what cannot be moved anyway;
 * one that cannot wait takes anything.
 */
static bool cohort_may_steal(const struct cohort_domain *dom, gfp_t gfp,
			     const struct alloc_context *ac)
{
	if (!READ_ONCE(dom->nr_parked))
		return false;
	if (!(gfp & __GFP_DIRECT_RECLAIM))
		return true;
	if (ac->migratetype == MIGRATE_MOVABLE)
		return dom->kind == COHORT_CACHE || dom->kind == COHORT_HOT ||
		       cohort_cpb_enabled();
	return cohort_unmovable(dom);
}

/*
 * A page of somebody else's.  The set of a buffer that loses one is no set any
 * more: its other pages go to the free lists, where everybody finds them.
 */
static struct page *cohort_steal_from(struct cohort_domain *dom,
				      const struct alloc_context *ac)
{
	struct cohort_block *blk;
	unsigned long flags, pfn;
	struct cohort_map rest;
	struct page *page;

	/* We may have interrupted the holder's CPU twin: never spin. */
	if (!spin_trylock_irqsave(&dom->lock, flags))
		return NULL;
	rest.nr = 0;
	page = cohort_take_fullest(dom, ac);
	if (page && dom->kind == COHORT_CPB) {
		blk = cohort_block_of(page_to_pfn(page));
		pfn = cohort_block_pfn(blk);
		cohort_block_detach(dom, blk, &rest);
	}
	spin_unlock_irqrestore(&dom->lock, flags);
	if (rest.nr)
		cohort_block_return(pfn, &rest);
	return page;
}

struct page *__cohort_steal_page(gfp_t gfp, unsigned int alloc_flags,
				 const struct alloc_context *ac)
{
	struct cohort_domain *dom;
	struct page *page = NULL;

	if (!zonelist_zone(ac->preferred_zoneref))
		return NULL;
	rcu_read_lock();
	list_for_each_entry_rcu(dom, &cohort_domains, all) {
		if (cohort_may_steal(dom, gfp, ac))
			page = cohort_steal_from(dom, ac);
		if (page)
			break;
	}
	rcu_read_unlock();
	if (!page)
		return NULL;
	if (!cohort_prep_page(page, gfp, alloc_flags,
			      zonelist_zone(ac->preferred_zoneref))) {
		cohort_dissolve_range(page_to_pfn(page), page_to_pfn(page) + 1);
		return NULL;
	}
	count_vm_event(COHORT_STEAL);
	return page;
}
