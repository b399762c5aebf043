// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks: the frame table, parking, and the way back to the buddy allocator.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/mm.h>
#include <linux/page-isolation.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>
#include <trace/events/cohort.h>

#include "../internal.h"
#include "cohort.h"

static struct {
	struct cohort_block *slot;
	unsigned long base;		/* frame of slot 0 */
	unsigned long nr;
} cohort_table __read_mostly;

/**
 * cohort_blocks_init() - make the frame table for all memory there is
 *
 * Memory that is hot-added later is not covered: its pages stay with the
 * buddy allocator.
 *
 * Context: may sleep; cohort_mutex held.
 * Return: 0, or -ENOMEM.
 */
int cohort_blocks_init(void)
{
	unsigned long base = ULONG_MAX, end = 0, nr;
	struct zone *zone;

	if (cohort_table.slot)
		return 0;
	for_each_populated_zone(zone) {
		base = min(base, zone->zone_start_pfn);
		end = max(end, zone_end_pfn(zone));
	}
	base = round_down(base, cohort_pages());
	nr = (end - base) >> cohort_order;
	cohort_table.slot = vzalloc(array_size(nr, sizeof(struct cohort_block)));
	if (!cohort_table.slot)
		return -ENOMEM;
	cohort_table.base = base;
	/* Pairs with the data dependency through nr in cohort_block_of(). */
	smp_store_release(&cohort_table.nr, nr);
	return 0;
}

/**
 * cohort_block_of() - slot of a frame
 * @pfn: any frame number
 *
 * Return: the slot, whoever owns it, or NULL if the table does not reach.
 */
struct cohort_block *cohort_block_of(unsigned long pfn)
{
	unsigned long i = (pfn - cohort_table.base) >> cohort_order;

	return i < READ_ONCE(cohort_table.nr) ? &cohort_table.slot[i] : NULL;
}

/**
 * cohort_block_pfn() - first frame of a block
 * @blk: the block
 */
unsigned long cohort_block_pfn(const struct cohort_block *blk)
{
	return cohort_table.base + ((blk - cohort_table.slot) << cohort_order);
}

/**
 * cohort_block_move() - put a block on another list of its domain
 * @dom: owner, locked
 * @blk: the block, on one of @dom's lists
 * @bucket: list to go to
 */
void cohort_block_move(struct cohort_domain *dom, struct cohort_block *blk,
		       unsigned int bucket)
{
	unsigned int old = blk->bucket;

	list_move_tail(&blk->node, &dom->list[bucket]);
	blk->bucket = bucket;
	if (list_empty(&dom->list[old]))
		__clear_bit(old, &dom->nonempty);
	if (bucket != COHORT_BUSY)
		__set_bit(bucket, &dom->nonempty);
}

/**
 * cohort_block_count() - account for pages parked in or taken from a block
 * @dom: owner, locked
 * @blk: the block, its map already changed
 * @delta: pages parked (positive) or taken (negative)
 */
void cohort_block_count(struct cohort_domain *dom, struct cohort_block *blk,
			long delta)
{
	unsigned int bucket;

	dom->nr_parked += delta;
	__mod_zone_page_state(page_zone(pfn_to_page(cohort_block_pfn(blk))),
			      NR_COHORT_FREE, delta);
	if (blk->bucket == COHORT_BUSY)
		return;
	bucket = cohort_bucket(blk->map.nr, cohort_order);
	if (bucket != blk->bucket)
		cohort_block_move(dom, blk, bucket);
}

/**
 * cohort_block_publish() - hand a block from the buddy allocator to a domain
 * @dom: new owner
 * @page: first page; the frames are off the free lists, refcount 0
 *
 * Return: false if the scheme is being switched off or the frames are being
 * isolated; the caller gives the block back.
 */
bool cohort_block_publish(struct cohort_domain *dom, struct page *page)
{
	unsigned long flags, pfn = page_to_pfn(page);
	struct cohort_block *blk = cohort_block_of(pfn);

	if (!blk)
		return false;
	spin_lock_irqsave(&dom->lock, flags);
	WRITE_ONCE(blk->dom, dom);
	/*
	 * Pairs with the barrier in __cohort_dissolve_range(): either isolation
	 * sees the owner and dissolves, or we see the isolated pageblock.
	 */
	smp_mb();
	if (!READ_ONCE(cohort_taking) ||
	    is_migrate_isolate(get_pageblock_migratetype(page))) {
		WRITE_ONCE(blk->dom, NULL);
		spin_unlock_irqrestore(&dom->lock, flags);
		return false;
	}
	cohort_map_fill(&blk->map, cohort_order);
	blk->retry = jiffies;
	blk->bucket = COHORT_BUCKETS - 1;
	list_add_tail(&blk->node, &dom->list[blk->bucket]);
	__set_bit(blk->bucket, &dom->nonempty);
	dom->nr_blocks++;
	dom->young = blk;
	cohort_block_count(dom, blk, cohort_pages());
	spin_unlock_irqrestore(&dom->lock, flags);
	trace_cohort_block_take(pfn, cohort_order, dom->kind);
	return true;
}

/**
 * cohort_block_detach() - a block leaves its domain
 * @dom: owner, locked
 * @blk: the block
 * @map: receives the pages that are parked and now the caller's to return
 *
 * From here on pages of the block that are in use are freed to the buddy
 * allocator.
 */
void cohort_block_detach(struct cohort_domain *dom, struct cohort_block *blk,
			 struct cohort_map *map)
{
	*map = blk->map;
	list_del(&blk->node);
	if (list_empty(&dom->list[blk->bucket]))
		__clear_bit(blk->bucket, &dom->nonempty);
	if (dom->young == blk)
		dom->young = NULL;
	dom->nr_blocks--;
	dom->nr_parked -= map->nr;
	__mod_zone_page_state(page_zone(pfn_to_page(cohort_block_pfn(blk))),
			      NR_COHORT_FREE, -(long)map->nr);
	memset(&blk->map, 0, sizeof(blk->map));
	WRITE_ONCE(blk->dom, NULL);
	cohort_check_domain(dom);
}

/**
 * cohort_block_return() - give detached pages to the buddy allocator
 * @pfn: first frame of the block
 * @map: its parked pages, from cohort_block_detach()
 *
 * Context: no domain lock held.
 * Return: number of pages given.
 */
unsigned long cohort_block_return(unsigned long pfn, const struct cohort_map *map)
{
	struct page *page = pfn_to_page(pfn);

	if (map->nr == cohort_pages())
		cohort_buddy_give(page, cohort_order);
	else
		cohort_buddy_give_map(page, map);
	return map->nr;
}

/*
 * The free hook.  A page whose block belongs to a domain is parked there; the
 * last one sends the block home.
 */
bool __cohort_free_page(struct page *page, unsigned long pfn)
{
	struct cohort_block *blk = cohort_block_of(pfn);
	struct cohort_domain *dom;
	struct cohort_map map;
	unsigned long flags;
	bool empty;

	if (!blk || !READ_ONCE(blk->dom))
		return false;

	rcu_read_lock();
	dom = READ_ONCE(blk->dom);
	if (!dom) {
		rcu_read_unlock();
		return false;
	}
	spin_lock_irqsave(&dom->lock, flags);
	if (blk->dom != dom) {
		spin_unlock_irqrestore(&dom->lock, flags);
		rcu_read_unlock();
		return false;
	}
	cohort_map_put(&blk->map, pfn & (cohort_pages() - 1));
	empty = blk->map.nr == cohort_pages();
	cohort_block_count(dom, blk, 1);
	if (empty)
		cohort_block_detach(dom, blk, &map);
	__count_vm_event(PGFREE);
	spin_unlock_irqrestore(&dom->lock, flags);
	rcu_read_unlock();

	if (empty) {
		pfn = round_down(pfn, cohort_pages());
		trace_cohort_block_free(pfn, cohort_order);
		count_vm_event(COHORT_BLOCK_FREE);
		cohort_block_return(pfn, &map);
	}
	return true;
}

unsigned long __cohort_next_pfn(unsigned long pfn)
{
	struct cohort_block *blk = cohort_block_of(pfn);

	if (!blk || !READ_ONCE(blk->dom))
		return pfn;
	return (pfn | (cohort_pages() - 1)) + 1;
}

bool __cohort_page_parked(const struct page *page)
{
	unsigned long pfn = page_to_pfn(page);
	struct cohort_block *blk = cohort_block_of(pfn);

	/* A picture of memory in motion; nothing depends on it. */
	return blk && data_race(cohort_map_test(&blk->map,
						pfn & (cohort_pages() - 1)));
}

static void cohort_block_dissolve(struct cohort_block *blk)
{
	unsigned long flags, pfn = cohort_block_pfn(blk);
	struct cohort_domain *dom;
	struct cohort_map map;

	rcu_read_lock();
	while ((dom = READ_ONCE(blk->dom))) {
		spin_lock_irqsave(&dom->lock, flags);
		if (blk->dom != dom) {
			spin_unlock_irqrestore(&dom->lock, flags);
			continue;
		}
		cohort_block_detach(dom, blk, &map);
		spin_unlock_irqrestore(&dom->lock, flags);
		trace_cohort_block_dissolve(pfn, map.nr);
		count_vm_event(COHORT_DISSOLVE);
		cohort_block_return(pfn, &map);
		break;
	}
	rcu_read_unlock();
}

void __cohort_dissolve_range(unsigned long start_pfn, unsigned long end_pfn)
{
	unsigned long pfn;

	/* Pairs with cohort_block_publish(). */
	smp_mb();
	start_pfn = round_down(start_pfn, cohort_pages());
	for (pfn = start_pfn; pfn < end_pfn; pfn += cohort_pages()) {
		struct cohort_block *blk = cohort_block_of(pfn);

		if (blk)
			cohort_block_dissolve(blk);
	}
}

/**
 * cohort_block_stats() - count blocks by kind of domain
 * @nr: receives the counts
 *
 * Walks the table without locks: for people, not for decisions.
 *
 * Return: all blocks together.
 */
unsigned long cohort_block_stats(unsigned long nr[COHORT_NR_KINDS])
{
	unsigned long i, sum = 0;

	memset(nr, 0, sizeof(*nr) * COHORT_NR_KINDS);
	rcu_read_lock();
	for (i = 0; i < READ_ONCE(cohort_table.nr); i++) {
		struct cohort_domain *dom = READ_ONCE(cohort_table.slot[i].dom);

		if (dom) {
			nr[dom->kind]++;
			sum++;
		}
	}
	rcu_read_unlock();
	return sum;
}

/**
 * cohort_block_parked() - count parked pages of one kind of domain
 * @kind: the kind
 *
 * Like cohort_block_stats(), for people.
 */
unsigned long cohort_block_parked(enum cohort_kind kind)
{
	unsigned long i, sum = 0;

	rcu_read_lock();
	for (i = 0; i < READ_ONCE(cohort_table.nr); i++) {
		struct cohort_block *blk = &cohort_table.slot[i];
		struct cohort_domain *dom = READ_ONCE(blk->dom);

		if (dom && dom->kind == kind)
			sum += data_race(blk->map.nr);
	}
	rcu_read_unlock();
	return sum;
}

#ifdef CONFIG_COHORT_DEBUG
/**
 * cohort_check_domain() - recount a domain
 * @dom: the domain, locked
 *
 * sum(map.nr) == nr_parked, blocks on lists == nr_blocks, each map agrees
 * with its bucket, nonempty mirrors the lists.
 */
void cohort_check_domain(struct cohort_domain *dom)
{
	unsigned long parked = 0, blocks = 0;
	struct cohort_block *blk;
	unsigned int i;

	lockdep_assert_held(&dom->lock);
	for (i = 0; i <= COHORT_BUSY; i++) {
		if (i != COHORT_BUSY)
			WARN_ON_ONCE(test_bit(i, &dom->nonempty) ==
				     list_empty(&dom->list[i]));
		list_for_each_entry(blk, &dom->list[i], node) {
			WARN_ON_ONCE(blk->dom != dom || blk->bucket != i);
			WARN_ON_ONCE(!cohort_map_ok(&blk->map, cohort_order));
			WARN_ON_ONCE(i != COHORT_BUSY &&
				     i != cohort_bucket(blk->map.nr, cohort_order));
			parked += blk->map.nr;
			blocks++;
		}
	}
	WARN_ON_ONCE(parked != dom->nr_parked || blocks != dom->nr_blocks);
}
#endif
