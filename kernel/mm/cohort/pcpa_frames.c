// SPDX-License-Identifier: GPL-2.0
/*
 * Making the page-cache-preferred area, and changing its size.
 *
 * Its frames come from the buddy allocator as one contiguous range, emptied by
 * migration if need be.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/page-isolation.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/swap.h>

#include "../internal.h"
#include "cohort.h"
#include "pcpa.h"

/* Places that are tried before there is no room, and for how long another one is. */
#define FIND_TRIES	16
#define FIND_TIME	(2 * HZ)

/* Memory that must stay available beside an area made at run time: 1 / 2^n. */
#define SPARE_SHIFT	4

DEFINE_MUTEX(cohort_pcpa_mutex);

/* the area as a whole */

static void area_free(struct cohort_area *area)
{
	if (area)
		kvfree(area->mem);
	kfree(area);
}

static struct cohort_area *area_make(unsigned long base, unsigned long nr)
{
	size_t bits = nr / 8, map = cohort_area_map_size(nr);
	struct cohort_area *area = kzalloc(sizeof(*area), GFP_KERNEL);

	if (!area)
		return NULL;
	area->mem = kvzalloc(map + 4 * bits, GFP_KERNEL);
	if (!area->mem) {
		kfree(area);
		return NULL;
	}
	spin_lock_init(&area->lock);
	area->base = base;
	area->nr = nr;
	area->zone = page_zone(pfn_to_page(base));
	area->nid = zone_to_nid(area->zone);
	area->own = area->mem;
	area->client = area->own + BITS_TO_LONGS(nr);
	area->lent = area->client + BITS_TO_LONGS(nr);
	area->held = area->lent + BITS_TO_LONGS(nr);
	cohort_area_map_init(&area->map, nr, area->held + BITS_TO_LONGS(nr));
	return area;
}

/* frames from the buddy allocator */

/* Nothing that is here would have to stay. */
static bool frame_movable(struct page *page)
{
	return !PageReserved(page) &&
	       (PageBuddy(page) || PageLRU(page) || __PageMovable(page) || !page_count(page));
}

static bool block_ok(unsigned long pfn, struct zone *zone)
{
	struct page *page = pfn_to_online_page(pfn);
	unsigned long end = pfn + pageblock_nr_pages;
	int mt;

	if (!page || page_zone(page) != zone ||
	    pfn_to_online_page(end - 1) != page + pageblock_nr_pages - 1 ||
	    page_zone(pfn_to_page(end - 1)) != zone)
		return false;
	mt = get_pageblock_migratetype(page);
	if (is_migrate_cma(mt) || is_migrate_isolate(mt))
		return false;
	for (; pfn < end; pfn++)
		if (!frame_movable(pfn_to_page(pfn)))
			return false;
	return true;
}

static int frames_grab(unsigned long base, unsigned long nr)
{
	return alloc_contig_range(base, base + nr, MIGRATE_MOVABLE,
				  GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
}

/* From the top down: what lies lowest is what devices with short addresses need. */
static unsigned long find_in_zone(struct zone *zone, unsigned long nr)
{
	unsigned long lowest = ALIGN(zone->zone_start_pfn, pageblock_nr_pages);
	unsigned long pfn = ALIGN_DOWN(zone_end_pfn(zone), pageblock_nr_pages);
	unsigned long end = pfn;
	unsigned long deadline = jiffies + FIND_TIME;
	unsigned int tries = FIND_TRIES;

	while (pfn > lowest && end >= lowest + nr) {
		pfn -= pageblock_nr_pages;
		if (!block_ok(pfn, zone)) {
			end = pfn;
		} else if (end - pfn == nr) {
			if (!frames_grab(pfn, nr))
				return pfn;
			if (!--tries || time_after(jiffies, deadline) ||
			    fatal_signal_pending(current))
				break;
			end -= pageblock_nr_pages;
		}
		cond_resched();
	}
	return 0;
}

/**
 * cohort_frames_find() - contiguous frames, emptied
 * @nid: node, NUMA_NO_NODE for any
 * @nr: how many, a multiple of a pageblock
 * @base: the first of them, 0 for any
 *
 * Context: sleeps, migrates, does not kill.
 * Return: the first frame; each is allocated with one reference. 0 if there are none.
 */
unsigned long cohort_frames_find(int nid, unsigned long nr, unsigned long base)
{
	struct pglist_data *pgdat;
	int z;

	if (base)
		return pfn_to_online_page(base) && pfn_to_online_page(base + nr - 1) &&
		       page_zone(pfn_to_page(base)) == page_zone(pfn_to_page(base + nr - 1)) &&
		       !frames_grab(base, nr) ? base : 0;
	for_each_online_pgdat(pgdat) {
		if (nid != NUMA_NO_NODE && pgdat->node_id != nid)
			continue;
		for (z = MAX_NR_ZONES - 1; z >= 0; z--) {
			struct zone *zone = &pgdat->node_zones[z];

			if (populated_zone(zone) && zone_managed_pages(zone) > nr)
				base = find_in_zone(zone, nr);
			if (base)
				return base;
		}
	}
	return 0;
}

/* sizes */

/* Everything that is the area's, under its lock or while nobody sees it yet. */
static void own_run(struct cohort_area *area, unsigned long first, unsigned long n)
{
	bitmap_set(area->own, first, n);
	area->nr_own += n;
}

/* @to takes over the frames that @from has. */
static void inherit(struct cohort_area *to, const struct cohort_area *from)
{
	unsigned long shift = from->base - to->base, i;

	for (i = 0; i < from->nr; i++) {
		if (!test_bit(i, from->own))
			continue;
		own_run(to, i + shift, 1);
		if (cohort_area_map_test(&from->map, i))
			cohort_area_map_set(&to->map, i + shift, 1);
		if (test_bit(i, from->client))
			cohort_area_mark(to, i + shift, 1, COHORT_USE_CLIENT);
		if (test_bit(i, from->lent))
			cohort_area_mark(to, i + shift, 1, COHORT_USE_LENT);
	}
}

/*
 * Frames that are @area's and still allocated become free: through the free
 * path, which finds them to be the area's.
 */
static void publish(struct cohort_area *area, bool extend)
{
	struct cohort_area *old = rcu_dereference_protected(cohort_area,
							    lockdep_is_held(&cohort_pcpa_mutex));
	unsigned long flags;

	if (old) {
		spin_lock_irqsave(&old->lock, flags);
		if (extend)
			inherit(area, old);
		old->dead = true;
		rcu_assign_pointer(cohort_area, area);
		spin_unlock_irqrestore(&old->lock, flags);
		synchronize_rcu();
		area_free(old);
	} else {
		rcu_assign_pointer(cohort_area, area);
	}
}

static void free_frames(unsigned long base, unsigned long nr)
{
	unsigned long done;

	for (done = 0; done < nr; done += pageblock_nr_pages) {
		free_contig_range(base + done, pageblock_nr_pages);
		cond_resched();
	}
}

/* The whole of it; nobody has to leave. */
static void area_off(void)
{
	struct cohort_area *area = rcu_dereference_protected(cohort_area,
							     lockdep_is_held(&cohort_pcpa_mutex));

	if (!area)
		return;
	static_branch_disable(&cohort_pcpa_take_key);
	cohort_area_disown(area->base, area->base + area->nr);
	rcu_assign_pointer(cohort_area, NULL);
	static_branch_disable(&cohort_pcpa_key);
	synchronize_rcu();
	area_free(area);
}

static void area_shrink(unsigned long nr)
{
	struct cohort_area *area;
	unsigned long flags, start = 0, end = 0;

	area = cohort_area_lock(&flags);
	if (area) {
		start = area->base + nr;
		end = area->base + area->nr;
		cohort_area_unlock(area, flags);
	}
	cohort_area_disown(start, end);
	area = cohort_area_lock(&flags);
	if (area) {
		WRITE_ONCE(area->nr, nr);
		area->map.nr = nr;
		area->map.low = min(area->map.low, nr / COHORT_CHUNK);
		cohort_area_unlock(area, flags);
	}
}

/* New frames next to those there are; the area may begin elsewhere then. */
static int area_extend(const struct cohort_area *old, unsigned long nr)
{
	unsigned long more = nr - old->nr, base = old->base, got;
	struct cohort_area *area;

	got = cohort_frames_find(old->nid, more, base + old->nr);
	if (!got && base > more) {
		got = cohort_frames_find(old->nid, more, base - more);
		base = got ? got : base;
	}
	if (!got)
		return -EBUSY;
	if (page_zone(pfn_to_page(got)) != old->zone) {
		free_frames(got, more);
		return -EBUSY;
	}
	area = area_make(base, nr);
	if (!area) {
		free_frames(got, more);
		return -ENOMEM;
	}
	own_run(area, got - base, more);
	publish(area, true);
	free_frames(got, more);
	return 0;
}

static int area_new(unsigned long nr, unsigned long base)
{
	struct cohort_area *area;

	base = cohort_frames_find(cohort_pcpa_node, nr, base);
	if (!base)
		return -ENOMEM;
	area = area_make(base, nr);
	if (!area) {
		free_frames(base, nr);
		return -ENOMEM;
	}
	area_off();
	own_run(area, 0, nr);
	static_branch_enable(&cohort_pcpa_key);
	publish(area, false);
	free_frames(base, nr);
	static_branch_enable(&cohort_pcpa_take_key);
	return 0;
}

/* What is free in the area is available already, but not for this. */
static bool memory_for(unsigned long more)
{
	return si_mem_available() > (long)(more + cohort_pcpa_free_pages() +
					   (totalram_pages() >> SPARE_SHIFT));
}

static int area_grow(const struct cohort_area *old, unsigned long nr, unsigned long base)
{
	int err = -EBUSY;

	if (!memory_for(nr - (old ? old->nr : 0)))
		return -ENOMEM;
	if (old && !base)
		err = area_extend(old, nr);
	if (err == -EBUSY && (!old || memory_for(nr)))
		err = area_new(nr, base);
	return err == -EBUSY ? -ENOMEM : err;
}

/**
 * cohort_pcpa_resize() - make, change or give back the area
 * @size: bytes; 0 gives it back
 * @base: its address, COHORT_ANY_BASE for any
 *
 * Context: sleeps.
 * Return: 0, -EINVAL for a size or base that cannot be, -ENOMEM; nothing has
 * changed then.
 */
int cohort_pcpa_resize(u64 size, u64 base)
{
	u64 memory = PFN_PHYS((u64)totalram_pages()), align = PFN_PHYS((u64)pageblock_nr_pages);
	const char *why = cohort_pcpa_refuse(size, base, align, memory);
	unsigned long nr = size >> PAGE_SHIFT, pfn;
	const struct cohort_area *old;
	int err = 0;

	if (why) {
		pr_err("%lluM: %s (%lluM, pageblock %lluM)\n", size >> 20, why, memory >> 20,
		       align >> 20);
		return -EINVAL;
	}
	mutex_lock(&cohort_pcpa_mutex);
	old = rcu_dereference_protected(cohort_area, lockdep_is_held(&cohort_pcpa_mutex));
	pfn = base == COHORT_ANY_BASE ? 0 : PHYS_PFN(base);
	if (old && pfn && pfn != old->base)
		err = -EINVAL;
	else if (!nr)
		area_off();
	else if (old && nr < old->nr)
		area_shrink(nr);
	else if (!old || nr > old->nr)
		err = cohort_trail_resize(nr) ?: area_grow(old, nr, pfn);
	if (nr)
		cohort_pcpa_tidy_soon();
	if (err)
		pr_err("%lluM: %s; it stays as it was\n", size >> 20,
		       err == -EINVAL ? "the area has another base" :
					"no such piece of memory can be emptied");
	else
		pr_info("%lluM\n", size >> 20);
	mutex_unlock(&cohort_pcpa_mutex);
	return err;
}

/* Frames of one pageblock that were given back come home. */
static void fetch_block(unsigned long pfn)
{
	struct cohort_area *area;
	unsigned long flags;

	if (frames_grab(pfn, pageblock_nr_pages))
		return;
	area = cohort_area_lock(&flags);
	if (area) {
		own_run(area, pfn - area->base, pageblock_nr_pages);
		cohort_area_unlock(area, flags);
	}
	free_contig_range(pfn, pageblock_nr_pages);
}

/* Something was given back there, and no client would be in the way. */
static bool worth_fetching(const struct cohort_area *area, unsigned long i)
{
	unsigned long end = i + pageblock_nr_pages;

	return find_next_zero_bit(area->own, end, i) < end &&
	       find_next_bit(area->client, end, i) == end;
}

/**
 * cohort_area_fetch() - try to fetch back one pageblock of what was given
 *
 * Another one each time, as one that cannot be emptied now takes long.
 * Isolating it takes what the area still has there, too.
 *
 * Context: cohort_pcpa_mutex held.
 */
void cohort_area_fetch(void)
{
	const struct cohort_area *area = rcu_dereference_protected(cohort_area,
							lockdep_is_held(&cohort_pcpa_mutex));
	static unsigned long hand;
	unsigned long looked;

	if (!area || READ_ONCE(area->nr_own) == area->nr || !memory_for(pageblock_nr_pages))
		return;
	for (looked = 0; looked < area->nr; looked += pageblock_nr_pages) {
		hand = hand + pageblock_nr_pages < area->nr ? hand + pageblock_nr_pages : 0;
		if (worth_fetching(area, hand)) {
			fetch_block(area->base + hand);
			break;
		}
	}
}
