// SPDX-License-Identifier: GPL-2.0
/*
 * Magazines: each CPU has a few single pages of each owner at hand, so that
 * zone->lock is taken once for many, as with the per-CPU lists of the page
 * allocator.  A page in a magazine is in the state of a page on one of those:
 * through free_pages_prepare(), refcount 0, not PageBuddy, in no count.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/mm.h>
#include <linux/page-isolation.h>
#include <linux/pagevec.h>
#include <linux/percpu.h>
#include <linux/vmstat.h>

#include "../../internal.h"
#include "../cohort.h"

/* Without SMP a trylock always succeeds, so interrupts have to stay away. */
static bool cohort_magazine_trylock(struct cohort_magazine *mag, unsigned long *flags)
{
#if defined(CONFIG_SMP) || defined(CONFIG_PREEMPT_RT)
	*flags = 0;
	return spin_trylock(&mag->lock);
#else
	return spin_trylock_irqsave(&mag->lock, *flags);
#endif
}

/* Interrupts stay on while it waits, as the holder may be interrupted for long. */
static void cohort_magazine_lock(struct cohort_magazine *mag, unsigned long *flags)
{
#if defined(CONFIG_SMP) || defined(CONFIG_PREEMPT_RT)
	*flags = 0;
	spin_lock(&mag->lock);
#else
	spin_lock_irqsave(&mag->lock, *flags);
#endif
}

static void cohort_magazine_unlock(struct cohort_magazine *mag, unsigned long flags)
{
#if defined(CONFIG_SMP) || defined(CONFIG_PREEMPT_RT)
	spin_unlock(&mag->lock);
#else
	spin_unlock_irqrestore(&mag->lock, flags);
#endif
}

/* Domains that live as long as the system have numbers up to COHORT_KEPT. */
static unsigned int cohort_slot_of(unsigned int id)
{
	return id <= COHORT_KEPT ? id :
	       COHORT_KEPT + 1 + id % (COHORT_SLOTS - COHORT_KEPT - 1);
}

static bool cohort_any_isolated(const struct zone *zone, struct page **page, unsigned int nr)
{
	unsigned long block = ULONG_MAX;

	if (!cohort_isolated_blocks(zone))
		return false;
	for (; nr--; page++) {
		if (pageblock_start_pfn(page_to_pfn(*page)) == block)
			continue;
		if (is_migrate_isolate_page(*page))
			return true;
		block = pageblock_start_pfn(page_to_pfn(*page));
	}
	return false;
}

/*
 * No page goes in while per-CPU lists are disabled; nor if the task has come to another CPU
 * since it looked for the magazine, whose own may be gone; nor while its owner loses its
 * blocks: a scheme that is switched off says so first, waits for the section which begins
 * under the lock, and drains what was put in.  Fixed blocks may leave one by one.  Nor if one
 * of several was isolated since they were taken: the drain that comes with it waits for the
 * lock.  A page that is freed alone was looked at just before, as for the stock lists.
 */
static bool cohort_magazine_closed(const struct cohort_magazine *mag, struct zone *zone,
				   unsigned int id, struct page **page, unsigned int nr)
{
	if (mag != raw_cpu_ptr(zone->cohort->magazine) || cohort_pcp_disabled(zone) ||
	    (nr > 1 && cohort_any_isolated(zone, page, nr)))
		return true;
	if (id != COHORT_KEPT)
		return !READ_ONCE(cohort_taking);
	while (nr--)
		if (cohort_owner_id(page_to_pfn(page[nr])) != id)
			return true;
	return false;
}

/*
 * As a per-CPU list is refilled from the free lists, so is a magazine from its owner's
 * blocks, under the same hold of its lock.  Pages of another owner that are in the way
 * have to leave first, which is for cohort_magazine_fill().
 */
static bool cohort_rounds_refill(const struct cohort_magazine *mag, struct cohort_rounds *slot,
				 struct cohort_room *room)
{
	unsigned int id = room->dom->id;

	if ((slot->nr && slot->id != id) ||
	    cohort_magazine_closed(mag, room->zone, id, NULL, 0))
		return false;
	slot->nr = cohort_room_take(room, slot->page, COHORT_ROUND);
	slot->id = id;
	return slot->nr;
}

static bool cohort_rounds_ready(const struct cohort_magazine *mag, struct cohort_rounds *slot,
				unsigned int id, struct cohort_room *room)
{
	return (slot->id == id && slot->nr) || (room && cohort_rounds_refill(mag, slot, room));
}

/**
 * cohort_magazine_take() - take a page that is at hand, or of the owner's blocks
 * @zone: its zone
 * @id: its owner
 * @room: the owner's blocks in the zone, NULL if it has none
 *
 * Return: a page with refcount 0 that has to be prepared, or NULL.
 */
struct page *cohort_magazine_take(struct zone *zone, unsigned int id,
				  struct cohort_room *room)
{
	struct cohort_magazine *mag = raw_cpu_ptr(zone->cohort->magazine);
	struct cohort_rounds *slot = &mag->slot[cohort_slot_of(id)];
	struct page *page = NULL;
	unsigned long flags;

	if (!cohort_magazine_trylock(mag, &flags))
		return NULL;
	if (cohort_rounds_ready(mag, slot, id, room)) {
		page = slot->page[--slot->nr];
		slot->idle = false;
	}
	cohort_magazine_unlock(mag, flags);
	return page;
}

/**
 * cohort_magazine_take_bulk() - the same for many, under one hold of the lock
 * @room: the owner's blocks in its zone
 * @page: receives pages with refcount 0 that have to be prepared
 * @nr: how many at most; one hold takes no more than COHORT_ROUNDS
 *
 * Return: number of pages.
 */
unsigned int cohort_magazine_take_bulk(struct cohort_room *room, struct page **page,
				       unsigned int nr)
{
	struct cohort_magazine *mag = raw_cpu_ptr(room->zone->cohort->magazine);
	struct cohort_rounds *slot = &mag->slot[cohort_slot_of(room->dom->id)];
	unsigned int got = 0;
	unsigned long flags;

	nr = min(nr, COHORT_ROUNDS);
	if (!cohort_magazine_trylock(mag, &flags))
		return 0;
	while (got < nr && cohort_rounds_ready(mag, slot, room->dom->id, room))
		page[got++] = slot->page[--slot->nr];
	if (got)
		slot->idle = false;
	cohort_magazine_unlock(mag, flags);
	return got;
}

/* The pages that came first leave: those that came last are warm. */
static unsigned int cohort_rounds_eject(struct cohort_rounds *slot, unsigned int nr,
					struct page **page)
{
	memcpy(page, slot->page, nr * sizeof(*page));
	slot->nr -= nr;
	memmove(slot->page, slot->page + nr, slot->nr * sizeof(*page));
	return nr;
}

/* How many pages have to leave for @nr more of an owner. */
static unsigned int cohort_rounds_over(const struct cohort_rounds *slot, unsigned int id,
				       unsigned int nr, unsigned int limit)
{
	if (slot->id != id)
		return slot->nr;
	return slot->nr + nr > limit ? min(slot->nr, max(nr, limit / 2)) : 0;
}

/* This CPU's magazine, locked, for pages to go in; NULL if they may not. */
static struct cohort_magazine *cohort_magazine_enter(struct zone *zone, unsigned int id,
						     struct page **page, unsigned int nr,
						     unsigned long *flags)
{
	struct cohort_magazine *mag = raw_cpu_ptr(zone->cohort->magazine);

	if (!cohort_magazine_trylock(mag, flags))
		return NULL;
	if (!cohort_magazine_closed(mag, zone, id, page, nr))
		return mag;
	cohort_magazine_unlock(mag, *flags);
	return NULL;
}

static void cohort_rounds_add(struct cohort_rounds *slot, unsigned int id, struct page **page,
			      unsigned int nr)
{
	slot->id = id;
	slot->idle = false;
	memcpy(slot->page + slot->nr, page, nr * sizeof(*page));
	slot->nr += nr;
}

/* The array would be initialised for each page that is freed, and is needed for one in many. */
static noinline void cohort_magazine_exchange(struct cohort_magazine *mag, struct zone *zone,
					      unsigned int id, struct page **page,
					      unsigned int nr, unsigned int over,
					      unsigned long flags)
{
	struct cohort_rounds *slot = &mag->slot[cohort_slot_of(id)];
	struct page *out[COHORT_ROUNDS];

	cohort_rounds_eject(slot, over, out);
	cohort_rounds_add(slot, id, page, nr);
	cohort_magazine_unlock(mag, flags);
	cohort_buddy_free_bulk(zone, out, over);
}

/* Pages of an owner go to this CPU's magazine, or into their blocks if that is closed. */
static void cohort_magazine_put(struct zone *zone, unsigned int id, struct page **page,
				unsigned int nr, unsigned int limit)
{
	struct cohort_magazine *mag;
	struct cohort_rounds *slot;
	unsigned long flags;
	unsigned int over;

	mag = cohort_magazine_enter(zone, id, page, nr, &flags);
	if (!mag) {
		cohort_buddy_free_bulk(zone, page, nr);
		return;
	}
	slot = &mag->slot[cohort_slot_of(id)];
	over = cohort_rounds_over(slot, id, nr, limit);
	if (over) {
		cohort_magazine_exchange(mag, zone, id, page, nr, over, flags);
		return;
	}
	cohort_rounds_add(slot, id, page, nr);
	cohort_magazine_unlock(mag, flags);
}

/**
 * cohort_magazine_fill() - put pages at hand
 * @zone: their zone
 * @id: their owner
 * @page: the pages; the last one is the next to be taken
 * @nr: how many, at most COHORT_ROUND
 */
void cohort_magazine_fill(struct zone *zone, unsigned int id, struct page **page,
			  unsigned int nr)
{
	/* One alone would not be looked at once more: it may be isolated by now. */
	if (nr > 1)
		cohort_magazine_put(zone, id, page, nr, COHORT_ROUNDS);
	else
		cohort_buddy_free_bulk(zone, page, nr);
}

/* Reclaim wants to see what it has freed; and less is at hand where less is free. */
static unsigned int cohort_rounds_limit(const struct zone *zone)
{
	unsigned long few = BIT(ZONE_RECLAIM_ACTIVE) | BIT(ZONE_BELOW_HIGH);

	return READ_ONCE(zone->flags) & few ? COHORT_ROUND : COHORT_ROUNDS;
}

/* Single pages of an owner that are freed together; the last one is warmest. */
static void cohort_magazine_return(struct zone *zone, unsigned int id, struct page **page,
				   unsigned int nr)
{
	__count_vm_events(PGFREE, nr);
	cohort_magazine_put(zone, id, page, nr, cohort_rounds_limit(zone));
}

/*
 * Larger pieces, pages of a pageblock that is being isolated, and what a keeper wants back
 * at once do not wait.
 */
static bool cohort_may_wait_at_hand(const struct cohort_block *blk, const struct page *page,
				    unsigned long pfn, unsigned int order)
{
	return !order && !is_migrate_isolate(get_pageblock_migratetype(page)) &&
	       (!cohort_block_kept(blk) || cohort_keeper->rests(blk, pfn));
}

/**
 * cohort_owned_free() - a page goes back to its block
 * @page: page that went through free_pages_prepare(), refcount 0
 * @pfn: its frame number
 * @order: its order
 *
 * A single page goes to this CPU's magazine.  The pages of a pageblock that is being
 * isolated go straight to the buddy allocator, and while the per-CPU lists are disabled,
 * so do all.
 *
 * Return: false if it is in no block.
 */
bool cohort_owned_free(struct page *page, unsigned long pfn, unsigned int order)
{
	const struct cohort_block *blk = cohort_block_of(pfn);
	unsigned int id = blk ? cohort_block_id(blk, pfn) : 0;

	if (!id)
		return false;
	if (cohort_may_wait_at_hand(blk, page, pfn, order))
		cohort_magazine_return(page_zone(page), id, &page, 1);
	else
		cohort_buddy_free(page, order);
	return true;
}

/*
 * The free hook of many: those that go to one magazine go there under one hold of its
 * lock.  The rest of the batch is for the page allocator, and the free hook of one.
 */
void __cohort_free_folios(struct folio_batch *folios)
{
	struct page *page[PAGEVEC_SIZE];
	unsigned int i, id, nr = 0, left = 0, last = 0;
	struct zone *zone = NULL;

	for (i = 0; i < folios->nr; i++) {
		struct folio *folio = folios->folios[i];
		unsigned long pfn = folio_pfn(folio);
		const struct cohort_block *blk = cohort_block_of(pfn);

		id = blk ? cohort_block_id(blk, pfn) : 0;
		if (!id || !cohort_may_wait_at_hand(blk, &folio->page, pfn, folio_order(folio))) {
			folios->folios[left++] = folio;
			continue;
		}
		if (nr && (id != last || folio_zone(folio) != zone || nr == COHORT_ROUND)) {
			cohort_magazine_return(zone, last, page, nr);
			nr = 0;
		}
		last = id;
		zone = folio_zone(folio);
		if (cohort_free_prepare(&folio->page))
			page[nr++] = &folio->page;
	}
	if (nr)
		cohort_magazine_return(zone, last, page, nr);
	folios->nr = left;
}

static bool cohort_magazine_empty(const struct cohort_magazine *mag)
{
	unsigned int i;

	for (i = 0; i < COHORT_SLOTS; i++)
		if (READ_ONCE(mag->slot[i].nr))
			return false;
	return true;
}

/*
 * The pages of some slots go back into their blocks: those of an owner, 0 for any, and
 * perhaps only what has not been used since the last look.
 */
static void cohort_magazine_empty_slots(struct zone *zone, struct cohort_magazine *mag,
					unsigned int id, bool aged)
{
	unsigned int i = id ? cohort_slot_of(id) : 0;
	unsigned int end = id ? i + 1 : COHORT_SLOTS;
	struct page *out[COHORT_ROUNDS];
	unsigned long flags;

	/*
	 * Not without the lock: what is being filled has seen the magazine open.
	 * Interrupts that try the lock go on without it.
	 */
	cohort_magazine_lock(mag, &flags);
	for (; i < end; i++) {
		struct cohort_rounds *slot = &mag->slot[i];
		unsigned int nr = slot->nr;
		bool used = aged && !slot->idle;

		if (id && slot->id != id)
			continue;
		slot->idle = true;
		if (!nr || used)
			continue;
		cohort_rounds_eject(slot, nr, out);
		cohort_magazine_unlock(mag, flags);
		cohort_buddy_free_bulk(zone, out, nr);
		cohort_magazine_lock(mag, &flags);
	}
	cohort_magazine_unlock(mag, flags);
}

/**
 * cohort_magazine_drain() - put a magazine's pages back into their blocks
 * @zone: zone of the magazine
 * @cpu: its CPU
 * @id: only pages of this owner; 0 for all
 *
 * A process that exits asks for those of all CPUs: most have none, and their locks are left
 * alone.  A page that comes meanwhile might as well come afterwards, but for fixed blocks.
 */
void cohort_magazine_drain(struct zone *zone, unsigned int cpu, unsigned int id)
{
	struct cohort_magazine *mag = per_cpu_ptr(zone->cohort->magazine, cpu);
	const struct cohort_rounds *slot = &mag->slot[cohort_slot_of(id)];

	if (id && id != COHORT_KEPT && (READ_ONCE(slot->id) != id || !READ_ONCE(slot->nr)))
		return;
	cohort_magazine_empty_slots(zone, mag, id, false);
}

/**
 * __cohort_age() - what this CPU has not used lately goes back
 * @zone: zone of the magazine
 *
 * Called as often as this CPU's list of the page allocator shrinks, which ages with it.
 *
 * Return: true if there is something left, for the next time.
 */
bool __cohort_age(struct zone *zone)
{
	struct cohort_magazine *mag;
	bool more;

	if (!zone->cohort)
		return false;
	more = cohort_packing() && cohort_pcp_age(zone);
	mag = raw_cpu_ptr(zone->cohort->magazine);
	if (cohort_magazine_empty(mag))
		return more;
	cohort_magazine_empty_slots(zone, mag, 0, true);
	return more || !cohort_magazine_empty(mag);
}

/**
 * cohort_magazine_nr() - pages of an owner that any CPU has at hand
 * @zone: their zone
 * @id: their owner
 *
 * Return: a guess, as no lock is taken.
 */
unsigned long cohort_magazine_nr(const struct zone *zone, unsigned int id)
{
	unsigned long nr = 0;
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		const struct cohort_magazine *mag = per_cpu_ptr(zone->cohort->magazine, cpu);
		const struct cohort_rounds *slot = &mag->slot[cohort_slot_of(id)];

		if (READ_ONCE(slot->id) == id)
			nr += READ_ONCE(slot->nr);
	}
	return nr;
}

/**
 * cohort_zone_drain() - what a CPU has at hand goes back
 * @cpu: the CPU
 * @zone: only what is of this zone
 */
void cohort_zone_drain(unsigned int cpu, struct zone *zone)
{
	const struct cohort_scheme *scheme = READ_ONCE(cohort_scheme);

	if (!zone->cohort)
		return;
	if (scheme && scheme->drain)
		scheme->drain(cpu, zone);
	cohort_magazine_drain(zone, cpu, 0);
}

/**
 * __cohort_drain_due() - has a CPU anything at hand?
 * @cpu: the CPU
 * @zone: only what is of this zone
 */
bool __cohort_drain_due(unsigned int cpu, const struct zone *zone)
{
	const struct cohort_scheme *scheme = READ_ONCE(cohort_scheme);

	return zone->cohort && ((scheme && scheme->drain) ||
				!cohort_magazine_empty(per_cpu_ptr(zone->cohort->magazine, cpu)));
}
