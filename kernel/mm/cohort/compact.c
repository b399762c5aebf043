// SPDX-License-Identifier: GPL-2.0
/*
 * Compaction of a domain: the pages of its emptiest block move into the
 * parked pages of its fuller ones, and the block goes home.  Both ends are
 * known from the maps; no page frame is scanned and no page is allocated.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <trace/events/cohort.h>

#include "../internal.h"
#include "cohort.h"

/* The emptiest blocks of a domain that may be emptied now. */
static unsigned int cohort_candidates(struct cohort_domain *dom,
				      struct cohort_block **cand)
{
	unsigned int b, nr = 0;
	struct cohort_block *blk;
	unsigned long flags;

	spin_lock_irqsave(&dom->lock, flags);
	if (!cohort_sweep_wanted(dom->nr_parked, dom->young ? dom->young->map.nr : 0,
				 cohort_order))
		goto out;
	for (b = COHORT_BUCKETS - 1; b; b--) {
		list_for_each_entry(blk, &dom->list[b], node) {
			/* Around a remnant there are other people's pages. */
			if (blk == dom->young || blk->order != cohort_order ||
			    time_before(jiffies, blk->retry))
				continue;
			cand[nr++] = blk;
			if (nr == COHORT_CANDIDATES)
				goto out;
		}
	}
out:
	spin_unlock_irqrestore(&dom->lock, flags);
	return nr;
}

/*
 * Pages that would have to move.  Of the cache, clean inactive pages would
 * be dropped; everything else in use moves.
 */
static unsigned int cohort_survivors(const struct cohort_domain *dom,
				     const struct cohort_block *blk)
{
	bool cache = dom->kind == COHORT_CACHE || dom->kind == COHORT_HOT;
	unsigned long pfn = cohort_block_pfn(blk);
	unsigned int i, nr = 0;

	for (i = 0; i < cohort_pages(); i++) {
		unsigned long page_flags = READ_ONCE(pfn_to_page(pfn + i)->flags);

		if (cohort_map_test(&blk->map, i))
			continue;
		nr += !cache || (page_flags & (BIT(PG_active) | BIT(PG_dirty)));
	}
	return nr;
}

/**
 * cohort_pick_victim() - choose the block to empty next
 * @dom: the domain
 *
 * Of the emptiest few the one that needs the fewest pages moved.  The block
 * being filled is excepted: its pages are the youngest of the domain, and its
 * parked pages are about to be used.
 *
 * Looks at the candidates without the lock: a wrong guess costs time only.
 *
 * Return: a block on the busy list, from which nothing is taken until
 * cohort_unpick(), or NULL if no block can be freed.
 */
struct cohort_block *cohort_pick_victim(struct cohort_domain *dom)
{
	struct cohort_block *cand[COHORT_CANDIDATES], *victim = NULL;
	unsigned int i, nr = cohort_candidates(dom, cand);
	unsigned int least = UINT_MAX;
	unsigned long flags;

	for (i = 0; i < nr; i++) {
		unsigned int cost = cohort_survivors(dom, cand[i]);

		if (cost < least) {
			least = cost;
			victim = cand[i];
		}
	}
	if (!victim)
		return NULL;

	spin_lock_irqsave(&dom->lock, flags);
	if (victim->dom == dom && victim->bucket != COHORT_BUSY) {
		/* Somebody has begun to fill it meanwhile. */
		if (victim == dom->young)
			cohort_domain_fill(dom, NULL);
		cohort_block_move(dom, victim, COHORT_BUSY);
	} else {
		victim = NULL;
	}
	spin_unlock_irqrestore(&dom->lock, flags);
	return victim;
}

/**
 * cohort_unpick() - emptying a block is over
 * @dom: the domain it was picked from
 * @blk: the block
 *
 * Return: true if the block went home, false if it is in use again.
 */
bool cohort_unpick(struct cohort_domain *dom, struct cohort_block *blk)
{
	unsigned long flags;
	bool kept;

	spin_lock_irqsave(&dom->lock, flags);
	kept = blk->dom == dom && blk->bucket == COHORT_BUSY;
	if (kept) {
		blk->retry = jiffies + COHORT_RETRY;
		cohort_block_move(dom, blk,
				  cohort_bucket(blk->map.nr, cohort_order));
		cohort_check_domain(dom);
	}
	spin_unlock_irqrestore(&dom->lock, flags);
	return !kept;
}

/* On the LRU, or of a driver that knows how to move it: zsmalloc. */
static bool cohort_movable(struct folio *folio)
{
	return folio_test_lru(folio) || __folio_test_movable(folio);
}

/**
 * cohort_get_single() - a reference to a folio of one page
 * @page: any page; what it belongs to may change until the reference is there
 *
 * Return: its folio, or NULL if it is free or in a larger one.
 */
struct folio *cohort_get_single(struct page *page)
{
	struct folio *folio = page_folio(page);

	if (!folio_try_get(folio))
		return NULL;
	if (folio_page(folio, 0) == page && !folio_test_large(folio))
		return folio;
	folio_put(folio);
	return NULL;
}

/**
 * cohort_isolate_page() - take one page off the LRU
 * @page: any page
 * @list: receives its folio
 *
 * Return: false if it is on no LRU list, in a larger folio or pinned.
 */
bool cohort_isolate_page(struct page *page, struct list_head *list)
{
	struct folio *folio;
	bool done;

	if (!PageLRU(page))
		return false;
	folio = cohort_get_single(page);
	if (!folio)
		return false;
	done = folio_test_lru(folio) && !folio_maybe_dma_pinned(folio) &&
	       isolate_folio_to_list(folio, list);
	folio_put(folio);
	return done;
}

/**
 * cohort_isolate() - take a block's pages off the LRU
 * @blk: a picked block
 * @list: receives the folios, each with a reference; those of the LRU are
 *	counted as isolated
 *
 * Reads the map without the lock: a page parked meanwhile has no reference to
 * take, and none is handed out of a picked block.
 *
 * Return: number of folios on @list.
 */
unsigned int cohort_isolate(struct cohort_block *blk, struct list_head *list)
{
	unsigned long pfn = cohort_block_pfn(blk);
	unsigned int i, nr = 0;

	for (i = 0; i < cohort_pages(); i++) {
		struct page *page = pfn_to_page(pfn + i);
		struct folio *folio;

		if (cohort_map_test(&blk->map, i) ||
		    !(PageLRU(page) || __PageMovable(page)))
			continue;
		folio = cohort_get_single(page);
		if (!folio)
			continue;
		if (cohort_movable(folio) && isolate_folio_to_list(folio, list))
			nr++;
		folio_put(folio);
	}
	return nr;
}

/* Destination of a migration: a parked page of the same domain. */
static struct folio *cohort_target_take(struct folio *src, unsigned long private)
{
	struct cohort_domain *dom = (struct cohort_domain *)private;
	struct alloc_context ac = { .highest_zoneidx = folio_zonenum(src) };
	struct page *page;

	while ((page = cohort_domain_take(dom, &ac))) {
		if (cohort_prep_page(page, GFP_HIGHUSER_MOVABLE, 0, page_zone(page)))
			return page_folio(page);
		cohort_dissolve_range(page_to_pfn(page), page_to_pfn(page) + 1);
	}
	return NULL;
}

static void cohort_target_put(struct folio *dst, unsigned long private)
{
	folio_put(dst);
}

/**
 * cohort_evacuate() - move isolated folios into parked pages of their domain
 * @dom: the domain
 * @list: isolated folios; empty on return, those not moved are on the LRU again
 * @may_wait: false in reclaim: never sleep on a page, never touch a busy one
 *
 * Return: number of folios moved.
 */
unsigned int cohort_evacuate(struct cohort_domain *dom, struct list_head *list,
			     bool may_wait)
{
	unsigned int moved = 0;

	if (list_empty(list))
		return 0;
	migrate_pages(list, cohort_target_take, cohort_target_put,
		      (unsigned long)dom,
		      may_wait ? MIGRATE_SYNC_LIGHT : MIGRATE_ASYNC,
		      MR_COMPACTION, &moved);
	putback_movable_pages(list);
	count_vm_events(COHORT_MIGRATE, moved);
	return moved;
}

static void cohort_forget_young(struct cohort_domain *dom)
{
	unsigned long flags;

	spin_lock_irqsave(&dom->lock, flags);
	cohort_domain_fill(dom, NULL);
	spin_unlock_irqrestore(&dom->lock, flags);
}

/* Empty one block; false if there is none to be emptied. */
static bool cohort_compact_block(struct cohort_domain *dom, bool may_wait,
				 unsigned int *blocks, unsigned int *moved)
{
	struct cohort_block *blk = cohort_pick_victim(dom);
	LIST_HEAD(list);

	if (!blk)
		return false;
	cohort_isolate(blk, &list);
	*moved += cohort_evacuate(dom, &list, may_wait);
	*blocks += cohort_unpick(dom, blk);
	return true;
}

/**
 * cohort_domain_compact() - free what whole blocks can be freed
 * @dom: the domain
 * @may_wait: may sleep on pages
 *
 * Return: blocks emptied.
 */
unsigned int cohort_domain_compact(struct cohort_domain *dom, bool may_wait)
{
	unsigned int blocks = 0, moved = 0, rounds = READ_ONCE(dom->nr_blocks);

	while (rounds--) {
		/* A process in the background fills no block: none is spared. */
		if (READ_ONCE(dom->class) == COHORT_BACKGROUND)
			cohort_forget_young(dom);
		if (!cohort_compact_block(dom, may_wait, &blocks, &moved))
			break;
		cond_resched();
	}
	trace_cohort_domain_compact(dom->kind, blocks, moved, READ_ONCE(dom->nr_parked));
	count_vm_events(COHORT_COMPACT, blocks);
	return blocks;
}

void cohort_compact_work(struct work_struct *work)
{
	struct cohort_domain *dom = container_of(to_delayed_work(work),
						 struct cohort_domain, work);

	/* Pages in another CPU's LRU batch cannot be isolated. */
	if (cohort_compact_wanted(READ_ONCE(dom->nr_parked), cohort_order)) {
		lru_add_drain_all();
		cohort_domain_compact(dom, true);
	}
	cohort_domain_put(dom);
}

/**
 * cohort_compact_low() - memory is low: compact whatever has room
 *
 * A process domain is compacted when its process goes to the background, the
 * cache by reclaim; the others, and apps that stay in use, have no moment of
 * their own but this one.  What shrinkers free parks between slab that cannot be
 * moved, and reclaim would go on for memory it has freed already: beyond what the
 * kernel soon fills again it is given back.
 */
void cohort_compact_low(void)
{
	static unsigned long next;
	struct cohort_domain *dom;

	if (time_before(jiffies, READ_ONCE(next)))
		return;
	WRITE_ONCE(next, jiffies + COHORT_RETRY);
	rcu_read_lock();
	list_for_each_entry_rcu(dom, &cohort_domains, all) {
		if (dom->kind == COHORT_KERNEL)
			cohort_domain_trim(dom, COHORT_KERNEL_HOLES);
		if (dom->kind == COHORT_CACHE || cohort_unmovable(dom) ||
		    !cohort_compact_wanted(READ_ONCE(dom->nr_parked), cohort_order))
			continue;
		cohort_compact_queue(dom, 0);
	}
	rcu_read_unlock();
}

/* Of the domains whose pages are swapped out, the one with the most holes. */
static struct cohort_domain *cohort_most_swapped(void)
{
	unsigned long most = 2UL << cohort_order;
	struct cohort_domain *dom, *found = NULL;

	rcu_read_lock();
	list_for_each_entry_rcu(dom, &cohort_domains, all) {
		unsigned long nr = READ_ONCE(dom->nr_parked);

		if (dom->kind > COHORT_SMALL || nr < most)
			continue;
		most = nr;
		found = dom;
	}
	if (found && !refcount_inc_not_zero(&found->ref))
		found = NULL;
	rcu_read_unlock();
	return found;
}

/**
 * cohort_compact_swapped() - make swapping out free memory
 *
 * A page that is swapped out parks in the region of its process.  Left there,
 * free memory does not rise, and reclaim swaps out more: on a phone with zram,
 * twice as much.
 *
 * Context: kswapd, after a batch of reclaim.
 */
void cohort_compact_swapped(void)
{
	struct cohort_domain *dom = cohort_most_swapped();
	unsigned int blocks = 0, moved = 0;

	if (!dom)
		return;
	cohort_compact_block(dom, false, &blocks, &moved);
	trace_cohort_domain_compact(dom->kind, blocks, moved, READ_ONCE(dom->nr_parked));
	count_vm_events(COHORT_COMPACT, blocks);
	cohort_domain_put(dom);
}

/**
 * cohort_compact_queue() - compact a domain soon
 * @dom: the domain
 * @delay_ms: how long its process may still settle
 *
 * Context: any.
 */
void cohort_compact_queue(struct cohort_domain *dom, unsigned int delay_ms)
{
	if (!refcount_inc_not_zero(&dom->ref))
		return;
	if (!queue_delayed_work(cohort_wq, &dom->work, msecs_to_jiffies(delay_ms)))
		cohort_domain_put(dom);
}
