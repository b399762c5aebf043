// SPDX-License-Identifier: GPL-2.0
/*
 * Fixed blocks: frames that stay their owner's when all of them are free.  Their keeper
 * says what may have pages of them, and is told what becomes of these.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../cohort.h"

const struct cohort_keeper *cohort_keeper;

/* The owner of all of them, which nothing packs or breaches. */
struct cohort_domain cohort_kept = { .kind = COHORT_KEPT, .id = COHORT_KEPT };

/**
 * cohort_keeper_on() - there will be fixed blocks
 * @keeper: what they are for; one only, and the same whenever there are any
 *
 * Context: may sleep.
 * Return: 0, or -ENOMEM.
 */
int cohort_keeper_on(const struct cohort_keeper *keeper)
{
	int err;

	mutex_lock(&cohort_mutex);
	err = cohort_zones_init() ?: cohort_spans_init();
	if (!err) {
		cohort_keeper = keeper;
		cohort_owner_switch(&cohort_key, true);
	}
	mutex_unlock(&cohort_mutex);
	return err;
}

/**
 * cohort_fixed_drain() - no magazine keeps pages of fixed blocks
 * @zone: zone of the blocks
 */
void cohort_fixed_drain(struct zone *zone)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		cohort_magazine_drain(zone, cpu, COHORT_KEPT);
}

/**
 * cohort_keeper_off() - there are no fixed blocks any more
 * @zone: where they were
 *
 * Context: may sleep.
 */
void cohort_keeper_off(struct zone *zone)
{
	cohort_fixed_drain(zone);
	cohort_owner_switch(&cohort_key, false);
}

static int cohort_fixed_make_one(struct cohort_table_span *span, unsigned long pfn, size_t head)
{
	struct cohort_block *blk;
	void *mem;

	if (!span->fixed) {
		void *fixed = kcalloc(COHORT_SPAN_FIXED, sizeof(*span->fixed), GFP_KERNEL);

		if (!fixed)
			return -ENOMEM;
		/* Pairs with the data dependency in cohort_fixed_in(). */
		smp_store_release(&span->fixed, fixed);
	}
	if (cohort_fixed_in(span, pfn))
		return 0;
	mem = kzalloc(head + cohort_slot_size(COHORT_FIXED_ORDER + 1), GFP_KERNEL);
	if (!mem)
		return -ENOMEM;
	blk = mem + head;
	blk->pfn = pfn;
	blk->order = COHORT_FIXED_ORDER;
	/* Pairs with the data dependency in cohort_fixed_in(). */
	smp_store_release(&span->fixed[cohort_span_bit(pfn) >> COHORT_FIXED_ORDER], blk);
	return 0;
}

/**
 * cohort_fixed_make() - places for fixed blocks, which have no owner yet
 * @start: first frame, a multiple of COHORT_FIXED_PAGES
 * @end: one past the last
 * @head: bytes of the keeper's own in front of each; the same always
 *
 * Context: may sleep; one caller at a time.
 * Return: 0, or -ENOMEM with nothing lost.
 */
int cohort_fixed_make(unsigned long start, unsigned long end, size_t head)
{
	int err = 0;

	for (; !err && start < end; start += COHORT_FIXED_PAGES) {
		struct cohort_table_span *span = cohort_span_of(start);

		err = span ? cohort_fixed_make_one(span, start, head) : -ENOMEM;
	}
	return err;
}

/**
 * cohort_fixed_enter() - frames become a fixed block
 * @room: its owner, of cohort_kept
 * @pfn: first frame; none is free, and cohort_fixed_make() has made the place
 *
 * Blocks of domains that had some of the frames are given up: a frame that is in use
 * cannot become one's again.
 */
void cohort_fixed_enter(struct cohort_room *room, unsigned long pfn)
{
	struct cohort_block *blk = cohort_fixed_in(cohort_span_of(pfn), pfn);
	unsigned long flags;

	cohort_range_dissolve(pfn, pfn + COHORT_FIXED_PAGES);
	spin_lock_irqsave(&room->zone->lock, flags);
	cohort_block_enter(room, blk, pfn, COHORT_FIXED_ORDER);
	spin_unlock_irqrestore(&room->zone->lock, flags);
}

/**
 * cohort_fixed_leave() - frames are no fixed blocks any more
 * @start: first frame
 * @end: one past the last
 *
 * Free frames of them are free for all, the rest when they are freed.
 */
void cohort_fixed_leave(unsigned long start, unsigned long end)
{
	unsigned long flags, pfn;

	for (pfn = start; pfn < end; pfn = (pfn | (COHORT_FIXED_PAGES - 1)) + 1) {
		struct cohort_block *blk;
		struct zone *zone;

		if (cohort_owner_id(pfn) != COHORT_KEPT)
			continue;
		zone = page_zone(pfn_to_page(pfn));
		spin_lock_irqsave(&zone->lock, flags);
		blk = cohort_block_owned(pfn);
		if (blk && cohort_block_kept(blk)) {
			cohort_block_dissolve(blk);
			cohort_zone_show(zone);
		}
		spin_unlock_irqrestore(&zone->lock, flags);
	}
}
