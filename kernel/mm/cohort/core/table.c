// SPDX-License-Identifier: GPL-2.0
/*
 * The owner table: one look tells which block a frame is in, if any.  It is made
 * in spans, so that memory that is added later gets its own; and each zone's part
 * of Cohort, which comes and goes with the same memory.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/bitmap.h>
#include <linux/memblock.h>
#include <linux/memory.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../../internal.h"
#include "../cohort.h"

static struct cohort_table cohort_no_table;
struct cohort_table *cohort_table __read_mostly = &cohort_no_table;
unsigned int cohort_slot_order __read_mostly = COHORT_DEFAULT_ORDER;

static unsigned long cohort_orders;	/* bit o: blocks of this order were ever used */
/* Making spans and zones; inside cohort_mutex, and of hotplug of memory. */
static DEFINE_MUTEX(cohort_table_mutex);
static bool cohort_lent;		/* pages were ever lent */
static void (*cohort_lent_back)(unsigned long pfn);

/* No slot is freed or changed: a preempted task finds at worst slots without owners. */
static int cohort_slots_make(struct cohort_table_span *span, unsigned int order,
			     unsigned long start)
{
	unsigned long i, nr = COHORT_SPAN_PAGES >> order;
	char *slot = vzalloc(array_size(nr, cohort_slot_size(order)));

	if (!slot)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		struct cohort_block *blk;

		blk = (struct cohort_block *)(slot + i * cohort_slot_size(order));
		blk->pfn = start + (i << order);
		blk->order = order;
	}
	/* Pairs with the data dependency in cohort_block_of(). */
	smp_store_release(&span->slot[order], slot);
	return 0;
}

static int cohort_lent_make(struct cohort_table_span *span)
{
	unsigned long *lent = bitmap_zalloc(COHORT_SPAN_PAGES, GFP_KERNEL);

	if (!lent)
		return -ENOMEM;
	/* Pairs with the data dependency in cohort_lent_map(). */
	smp_store_release(&span->lent, lent);
	return 0;
}

/* All that any span has. */
static int cohort_span_make(unsigned long i)
{
	struct cohort_table_span *span = cohort_table->span[i];
	unsigned int order;
	int err = 0;

	if (!span) {
		span = kzalloc(sizeof(*span), GFP_KERNEL);
		if (!span)
			return -ENOMEM;
		/* Pairs with the data dependency in cohort_span_of(). */
		smp_store_release(&cohort_table->span[i], span);
	}
	for_each_set_bit(order, &cohort_orders, COHORT_MAX_ORDER + 1)
		if (!err && !span->slot[order])
			err = cohort_slots_make(span, order, i << COHORT_SPAN_SHIFT);
	if (!err && cohort_lent && !span->lent)
		err = cohort_lent_make(span);
	return err;
}

/* A shorter one is not freed: readers hold no lock, and it is 8 bytes for 128 MiB. */
static int cohort_table_reach(unsigned long end)
{
	unsigned long nr = DIV_ROUND_UP(end, COHORT_SPAN_PAGES);
	struct cohort_table *old = cohort_table, *table;

	if (nr <= old->nr)
		return 0;
	table = kvzalloc(struct_size(table, span, nr), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	memcpy(table->span, old->span, array_size(old->nr, sizeof(*old->span)));
	table->nr = nr;
	/* Pairs with the data dependency in cohort_span_of(). */
	smp_store_release(&cohort_table, table);
	return 0;
}

static int cohort_table_cover(unsigned long start, unsigned long end)
{
	int err = cohort_table_reach(end);
	unsigned long i;

	for (i = start >> COHORT_SPAN_SHIFT; !err && i << COHORT_SPAN_SHIFT < end; i++)
		err = cohort_span_make(i);
	return err;
}

static int cohort_table_add(unsigned long start, unsigned long end)
{
	int err;

	mutex_lock(&cohort_table_mutex);
	err = cohort_table_cover(start, end);
	mutex_unlock(&cohort_table_mutex);
	return err;
}

static int cohort_table_cover_all(void)
{
	struct zone *zone;
	int err = 0;

	for_each_populated_zone(zone) {
		unsigned long pfn = round_down(zone->zone_start_pfn, MAX_ORDER_NR_PAGES);

		for (; !err && pfn < zone_end_pfn(zone); pfn += MAX_ORDER_NR_PAGES) {
			/* A zone may span holes of any size. */
			if (pfn_in_present_section(max(pfn, zone->zone_start_pfn)))
				err = cohort_table_cover(pfn, pfn + 1);
		}
	}
	return err;
}

/**
 * cohort_spans_init() - a table of all memory there is
 *
 * Context: may sleep; cohort_mutex held.
 * Return: 0, or -ENOMEM with nothing lost: what was made serves the next try.
 */
int cohort_spans_init(void)
{
	int err;

	mutex_lock(&cohort_table_mutex);
	err = cohort_table_reach(max_t(unsigned long, max_possible_pfn, max_pfn)) ?:
	      cohort_table_cover_all();
	mutex_unlock(&cohort_table_mutex);
	return err;
}

/**
 * cohort_table_init() - use blocks of this order, for all memory there is
 * @order: order of a block
 *
 * Context: may sleep; cohort_mutex held, no scheme on.
 * Return: 0, or -ENOMEM with nothing lost.
 */
int cohort_table_init(unsigned int order)
{
	int err;

	cohort_orders |= BIT(order);
	err = cohort_spans_init();
	if (err)
		return err;
	/* A reader that sees the order sees its slots. */
	smp_store_release(&cohort_slot_order, order);
	return 0;
}

/**
 * cohort_table_lend() - a bit for each frame that may be lent
 * @back: told of each page that is freed beside the free hook
 *
 * Context: may sleep; cohort_mutex held.
 * Return: 0, or -ENOMEM with nothing lost.
 */
int cohort_table_lend(void (*back)(unsigned long pfn))
{
	cohort_lent_back = back;
	cohort_lent = true;
	return cohort_spans_init();
}

/**
 * cohort_lent_return() - a page is freed past the free hook: it may have been lent
 * @pfn: its frame
 */
void cohort_lent_return(unsigned long pfn)
{
	if (cohort_lent)
		cohort_lent_back(pfn);
}

/**
 * cohort_lent_next() - the next frame that is lent
 * @pfn: where to begin
 * @end: one past the last frame to look at
 *
 * Return: its number, @end if there is none.
 */
unsigned long cohort_lent_next(unsigned long pfn, unsigned long end)
{
	unsigned long base, size, at;

	for (; pfn < end; pfn = base + COHORT_SPAN_PAGES) {
		const unsigned long *map = cohort_lent_map(pfn);

		base = round_down(pfn, COHORT_SPAN_PAGES);
		size = min(end - base, COHORT_SPAN_PAGES);
		at = map ? find_next_bit(map, size, pfn - base) : size;
		if (at < size)
			return base + at;
	}
	return end;
}

static int cohort_zone_init(struct zone *zone)
{
	struct cohort_zone *cz;
	unsigned int cpu, i;

	if (zone->cohort)
		return 0;
	cz = kzalloc_node(sizeof(*cz), GFP_KERNEL, zone_to_nid(zone));
	if (!cz)
		return -ENOMEM;
	cz->told = jiffies;
	cz->magazine = alloc_percpu(struct cohort_magazine);
	if (!cz->magazine) {
		kfree(cz);
		return -ENOMEM;
	}
	for (i = 0; i <= COHORT_KEPT; i++)
		INIT_LIST_HEAD(&cz->rooms[i]);
	for_each_possible_cpu(cpu)
		spin_lock_init(&per_cpu_ptr(cz->magazine, cpu)->lock);
	/* Readers that see it see its lists and locks. */
	smp_store_release(&zone->cohort, cz);
	return 0;
}

static int cohort_zones_make(void)
{
	struct zone *zone;
	int err = 0;

	mutex_lock(&cohort_table_mutex);
	for_each_populated_zone(zone)
		err = err ?: cohort_zone_init(zone);
	err = err ?: cohort_pack_init();
	mutex_unlock(&cohort_table_mutex);
	return err;
}

/* Domains of processes come and go meanwhile; those with rooms everywhere stay. */
static void cohort_rooms_all(void)
{
	struct cohort_domain *dom;

	rcu_read_lock();
	list_for_each_entry_rcu(dom, &cohort_domains, all) {
		if (dom->kind == COHORT_PROCESS)
			continue;
		rcu_read_unlock();
		cohort_domain_rooms(dom);
		rcu_read_lock();
	}
	rcu_read_unlock();
}

/**
 * cohort_memory_notify() - memory comes and goes
 * @nb: the notifier
 * @action: what happens to it
 * @data: which it is
 *
 * Pages that go offline are isolated already: no block of theirs can be acquired any more, and
 * those there are lose their owners.  But fixed ones do when all is done, of which nothing is
 * handed out meanwhile: it may fail, and they could not be made again around what is in use.
 */
int cohort_memory_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	const struct memory_notify *mem = data;
	unsigned long end = mem->start_pfn + mem->nr_pages;
	int err = 0;

	switch (action) {
	case MEM_GOING_ONLINE:
		err = cohort_table_add(mem->start_pfn, end);
		break;
	case MEM_ONLINE:
		/* A scheme may have been switched on meanwhile, before the zone was told. */
		if (!cohort_table_add(mem->start_pfn, end) && !cohort_zones_make())
			cohort_rooms_all();
		break;
	case MEM_GOING_OFFLINE:
		cohort_range_dissolve(mem->start_pfn, end);
		break;
	case MEM_OFFLINE:
		cohort_fixed_leave(mem->start_pfn, end);
		break;
	}
	return notifier_from_errno(err);
}

/**
 * cohort_zones_init() - Cohort's part of every zone there is
 *
 * Context: may sleep; cohort_mutex held.
 * Return: 0, or -ENOMEM with nothing lost.
 */
int cohort_zones_init(void)
{
	static bool notified;

	if (cohort_zones_make())
		return -ENOMEM;
	if (!notified)
		hotplug_memory_notifier(cohort_memory_notify, DEFAULT_CALLBACK_PRI);
	notified = true;
	return 0;
}

static void cohort_span_count(const struct cohort_table_span *span, unsigned long *nr)
{
	unsigned int order = cohort_block_order();
	const char *slot = READ_ONCE(span->slot[order]);
	unsigned long at;

	for (at = 0; slot && at < COHORT_SPAN_PAGES >> order; at++) {
		const struct cohort_block *blk = (const void *)(slot + at * cohort_slot_size(order));
		const struct cohort_room *room = READ_ONCE(blk->room);

		if (room)
			nr[room->dom->kind]++;
	}
}

/**
 * cohort_block_stats() - count blocks by kind of domain
 * @nr: receives the counts
 *
 * Walks the table without locks: for people, not for decisions.
 *
 * Context: may be scheduled away.
 * Return: all blocks together.
 */
unsigned long cohort_block_stats(unsigned long nr[COHORT_NR_KINDS])
{
	const struct cohort_table *table = READ_ONCE(cohort_table);
	unsigned long i, sum = 0;
	unsigned int kind;

	memset(nr, 0, sizeof(*nr) * COHORT_NR_KINDS);
	for (i = 0; i < table->nr; i++) {
		const struct cohort_table_span *span = READ_ONCE(table->span[i]);

		if (!span)
			continue;
		rcu_read_lock();
		cohort_span_count(span, nr);
		rcu_read_unlock();
		cond_resched();
	}
	for (kind = 0; kind < COHORT_NR_KINDS; kind++)
		sum += nr[kind];
	return sum;
}

/**
 * cohort_block_pieces() - count free pieces of blocks by order
 * @nr: counts are added to it, by order
 *
 * Without locks: for people, not for decisions.
 */
void cohort_block_pieces(unsigned long nr[NR_PAGE_ORDERS])
{
	struct zone *zone;
	unsigned int o;

	for_each_populated_zone(zone)
		for (o = 0; zone->cohort && o < min(NR_PAGE_ORDERS, COHORT_MAX_ORDER + 1); o++)
			nr[o] += READ_ONCE(zone->cohort->pieces[o]) +
				 READ_ONCE(zone->cohort->kept_pieces[o]);
}
