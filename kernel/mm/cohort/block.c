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

/*
 * A table for each order that was ever used.  None is freed or changed: a task
 * that was preempted in a free finds at worst a table without owners.
 */
struct cohort_table {
	struct cohort_block *slot;
	unsigned long base;		/* frame of slot 0 */
	unsigned long nr;
	unsigned int order;
};

static struct cohort_table cohort_tables[COHORT_MAX_ORDER + 1];
static struct cohort_table *cohort_table __read_mostly = &cohort_tables[0];

static int cohort_table_make(struct cohort_table *table, unsigned int order)
{
	unsigned long base = ULONG_MAX, end = 0;
	struct zone *zone;

	for_each_populated_zone(zone) {
		base = min(base, zone->zone_start_pfn);
		end = max(end, zone_end_pfn(zone));
	}
	table->order = order;
	table->base = round_down(base, 1UL << order);
	table->nr = (end - table->base) >> order;
	table->slot = vzalloc(array_size(table->nr, sizeof(struct cohort_block)));
	return table->slot ? 0 : -ENOMEM;
}

/**
 * cohort_blocks_init() - use blocks of this order, for all memory there is
 * @order: order of a block
 *
 * Memory that is hot-added later is not covered: its pages stay with the
 * buddy allocator.
 *
 * Context: may sleep; cohort_mutex held, no scheme on.
 * Return: 0, or -ENOMEM.
 */
int cohort_blocks_init(unsigned int order)
{
	struct cohort_table *table = &cohort_tables[order];
	int err = table->slot ? 0 : cohort_table_make(table, order);

	if (err)
		return err;
	WRITE_ONCE(cohort_order, order);
	/* Pairs with the data dependency in cohort_block_of(). */
	smp_store_release(&cohort_table, table);
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
	const struct cohort_table *table = READ_ONCE(cohort_table);
	unsigned long i = (pfn - table->base) >> table->order;

	return i < table->nr ? &table->slot[i] : NULL;
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
 * cohort_domain_fill() - a domain begins to fill a block
 * @dom: the domain, locked
 * @blk: the block, or NULL for none
 *
 * A set that is being filled keeps its place until it is full; when another
 * takes its turn, it goes where it belongs.
 */
void cohort_domain_fill(struct cohort_domain *dom, struct cohort_block *blk)
{
	struct cohort_block *old = dom->young;
	unsigned int bucket;

	dom->young = blk;
	if (!old || old == blk || old->bucket == COHORT_BUSY)
		return;
	bucket = cohort_bucket(old->map.nr, cohort_order);
	if (bucket != old->bucket)
		cohort_block_move(dom, old, bucket);
}

/**
 * cohort_block_count() - account for pages parked in or taken from a block
 * @dom: owner, locked
 * @blk: the block, its map already changed
 * @page: any page of it
 * @delta: pages parked (positive) or taken (negative)
 */
void cohort_block_count(struct cohort_domain *dom, struct cohort_block *blk,
			struct page *page, long delta)
{
	unsigned int bucket;

	dom->nr_parked += delta;
	__mod_zone_page_state(page_zone(page), NR_COHORT_FREE, delta);
	if (blk->bucket == COHORT_BUSY)
		return;
	bucket = cohort_bucket(blk->map.nr, cohort_order);
	if (bucket != blk->bucket)
		cohort_block_move(dom, blk, bucket);
}

static void cohort_block_fill(struct cohort_block *blk, unsigned long pfn,
			      unsigned int order)
{
	blk->pfn = round_down(pfn, cohort_pages());
	blk->first = pfn - blk->pfn;
	blk->order = order;
	blk->retry = jiffies;
	if (order == cohort_order)
		cohort_map_fill(&blk->map, order);
	else
		cohort_map_fill_part(&blk->map, blk->first, order);
	blk->bucket = cohort_bucket(blk->map.nr, cohort_order);
}

/**
 * cohort_block_publish() - hand frames from the buddy allocator to a domain
 * @dom: new owner
 * @page: first page; the frames are off the free lists, refcount 0
 * @order: their order, smaller than a block's for a remnant
 *
 * Return: false if the scheme is being switched off, the frames are being
 * isolated, or other frames of the slot have an owner; the caller gives the
 * frames back.
 */
bool cohort_block_publish(struct cohort_domain *dom, struct page *page,
			  unsigned int order)
{
	unsigned long flags, pfn = page_to_pfn(page);
	struct cohort_block *blk = cohort_block_of(pfn);

	if (!blk)
		return false;
	spin_lock_irqsave(&dom->lock, flags);
	/*
	 * Of two remnants in one slot the first wins.
	 *
	 * The barrier pairs with the one in __cohort_dissolve_range(): either
	 * isolation sees the owner and dissolves, or we see the isolated
	 * pageblock.
	 */
	if (cmpxchg(&blk->dom, NULL, dom)) {
		spin_unlock_irqrestore(&dom->lock, flags);
		return false;
	}
	if (!READ_ONCE(cohort_taking) ||
	    is_migrate_isolate(get_pageblock_migratetype(page))) {
		WRITE_ONCE(blk->dom, NULL);
		spin_unlock_irqrestore(&dom->lock, flags);
		return false;
	}
	cohort_block_fill(blk, pfn, order);
	list_add_tail(&blk->node, &dom->list[blk->bucket]);
	__set_bit(blk->bucket, &dom->nonempty);
	dom->nr_blocks++;
	cohort_domain_fill(dom, blk);
	cohort_block_count(dom, blk, page, 1L << order);
	spin_unlock_irqrestore(&dom->lock, flags);
	trace_cohort_block_take(pfn, order, dom->kind);
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
	__mod_zone_page_state(page_zone(cohort_block_page(blk)), NR_COHORT_FREE,
			      -(long)map->nr);
	memset(&blk->map, 0, sizeof(blk->map));
	/* The next owner writes to the block under another lock. */
	smp_store_release(&blk->dom, NULL);
	cohort_check_domain(dom);
}

/**
 * cohort_block_return() - give detached pages to the buddy allocator
 * @pfn: first frame of the slot
 * @map: its parked pages, from cohort_block_detach()
 *
 * Context: no domain lock held.
 * Return: number of pages given.
 */
unsigned long cohort_block_return(unsigned long pfn, const struct cohort_map *map)
{
	if (map->nr == cohort_pages())
		cohort_buddy_give(pfn_to_page(pfn), cohort_order);
	else if (map->nr)
		cohort_buddy_give_map(pfn, map);
	return map->nr;
}

/*
 * All pages of a block are parked.  A whole set stays in this CPU's buffer if
 * that has room; a remnant goes where it can merge with its neighbours.
 */
static void cohort_block_go_home(unsigned long pfn, const struct cohort_map *map)
{
	trace_cohort_block_free(pfn, cohort_order);
	count_vm_event(COHORT_BLOCK_FREE);
	if (cohort_cpb_enabled() && map->nr == cohort_pages() &&
	    cohort_cpb_put(pfn_to_page(pfn)))
		return;
	cohort_block_return(pfn, map);
}

static void cohort_block_give_up(unsigned long pfn, const struct cohort_map *map)
{
	trace_cohort_block_dissolve(pfn, map->nr);
	count_vm_event(COHORT_DISSOLVE);
	cohort_block_return(pfn, map);
}

/*
 * The free hook.  A page whose block belongs to a domain is parked there; the
 * last one sends the block home.  The scheme cannot go off between the two.
 */
bool __cohort_free_page(struct page *page, unsigned long pfn)
{
	struct cohort_block *blk = cohort_block_of(pfn);
	bool empty, over = false;
	struct cohort_domain *dom;
	struct cohort_map map;
	unsigned long flags;
	unsigned int bit;

	if (!blk || !READ_ONCE(blk->dom))
		return false;

	rcu_read_lock();
	dom = READ_ONCE(blk->dom);
	if (!dom) {
		rcu_read_unlock();
		return false;
	}
	spin_lock_irqsave(&dom->lock, flags);
	bit = pfn & (cohort_pages() - 1);
	if (blk->dom != dom || !cohort_part_has(blk->first, blk->order, bit)) {
		spin_unlock_irqrestore(&dom->lock, flags);
		rcu_read_unlock();
		return false;
	}
	cohort_map_put(&blk->map, bit);
	cohort_block_count(dom, blk, page, 1);
	empty = blk->map.nr == 1U << blk->order;
	if (!empty && cohort_cpb_enabled())
		over = cohort_cpb_over();
	if (empty || over)
		cohort_block_detach(dom, blk, &map);
	__count_vm_event(PGFREE);
	spin_unlock_irqrestore(&dom->lock, flags);

	if (empty)
		cohort_block_go_home(pfn - bit, &map);
	else if (over)
		cohort_block_give_up(pfn - bit, &map);
	rcu_read_unlock();
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
	struct cohort_domain *dom;
	unsigned long flags, pfn;
	struct cohort_map map;

	rcu_read_lock();
	while ((dom = READ_ONCE(blk->dom))) {
		spin_lock_irqsave(&dom->lock, flags);
		if (blk->dom != dom) {
			spin_unlock_irqrestore(&dom->lock, flags);
			continue;
		}
		pfn = cohort_block_pfn(blk);
		cohort_block_detach(dom, blk, &map);
		spin_unlock_irqrestore(&dom->lock, flags);
		cohort_block_give_up(pfn, &map);
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
	const struct cohort_table *table = READ_ONCE(cohort_table);
	unsigned long i, sum = 0;

	memset(nr, 0, sizeof(*nr) * COHORT_NR_KINDS);
	rcu_read_lock();
	for (i = 0; i < table->nr; i++) {
		struct cohort_domain *dom = READ_ONCE(table->slot[i].dom);

		if (dom) {
			nr[dom->kind]++;
			sum++;
		}
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
	/* A large process has thousands of sets, and all of them go at its exit. */
	if (dom->nr_blocks > 64 && dom->nr_blocks % 16)
		return;
	for (i = 0; i <= COHORT_BUSY; i++) {
		if (i != COHORT_BUSY)
			WARN_ON_ONCE(test_bit(i, &dom->nonempty) ==
				     list_empty(&dom->list[i]));
		list_for_each_entry(blk, &dom->list[i], node) {
			WARN_ON_ONCE(blk->dom != dom || blk->bucket != i);
			WARN_ON_ONCE(!cohort_map_ok(&blk->map, cohort_order) ||
				     blk->map.nr > 1U << blk->order);
			WARN_ON_ONCE(dom->kind == COHORT_CPB &&
				     blk->map.nr != 1U << blk->order);
			WARN_ON_ONCE(i != COHORT_BUSY && blk != dom->young &&
				     i != cohort_bucket(blk->map.nr, cohort_order));
			parked += blk->map.nr;
			blocks++;
		}
	}
	WARN_ON_ONCE(parked != dom->nr_parked || blocks != dom->nr_blocks);
}
#endif
