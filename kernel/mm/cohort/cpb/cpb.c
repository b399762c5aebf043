// SPDX-License-Identifier: GPL-2.0
/*
 * The contiguous page buffer (CPB): every process is given its anonymous pages from
 * sets of contiguous pages that are its own, and every CPU keeps some complete
 * sets at hand between the processes and the buddy allocator.
 *
 * After Kim, Min, Kim, Kang, Kim and Eom, "Page Allocation Scheme for
 * Anti-Fragmentation on Smart Devices", whose steps are named A1 to A6 here.
 * A set is a block of order 4 at most, the reservation of a process is its domain.
 *
 * A1 page cache never asks for a domain: it goes past all this.
 * A2 __cohort_rmqueue() takes a page of the process's own sets.
 * A3 cohort_cpb_reserve() hands it a set of this CPU's CPB.
 * A4 cohort_cpb_fill() refills that CPB, whole blocks at a time.
 * A5 __cohort_rmqueue() returns NULL and the stock free lists serve the request.
 * A6 cohort_blocks_breach() takes a page reserved for another process.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpuhotplug.h>
#include <linux/memory.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/compaction.h>
#include <linux/percpu.h>
#include <linux/swap.h>
#include <linux/topology.h>
#include <linux/vmstat.h>

#include "../../internal.h"
#include "../cohort.h"
#include "cpb.h"

DEFINE_STATIC_KEY_FALSE(cohort_cpb_key);

/**
 * struct cohort_cpb - the CPB of one CPU
 * @lock: protects all below; only tried from allocations, outside zone->lock
 * @zone: the only zone it has sets of, the one this CPU's processes prefer;
 *	NULL while the CPU is offline
 * @nr: pages
 * @sets: by order; linked as on a per-CPU list of the page allocator, refcount 0,
 *	without an owner, in no count.  The newest first
 *
 * nr <= cohort_cpb_limit, and all of it goes back where per-CPU lists are drained.
 */
struct cohort_cpb {
	spinlock_t lock;
	struct zone *zone;
	unsigned long nr;
	struct list_head sets[COHORT_MAX_SET_ORDER + 1];
};

static DEFINE_PER_CPU(struct cohort_cpb, cohort_cpb);

const char *const cohort_cpb_refills[2] = { "split", "remnants" };
bool cohort_cpb_remnants __read_mostly;
unsigned int cohort_cpb_order __read_mostly = COHORT_MAX_SET_ORDER;
unsigned long cohort_cpb_limit __read_mostly = 128;

/* The zone that faults on a CPU look into first. */
static struct zone *cohort_cpb_zone(unsigned int cpu)
{
	struct zonelist *zonelist = node_zonelist(cpu_to_mem(cpu), GFP_HIGHUSER_MOVABLE);

	return zonelist_zone(first_zones_zonelist(zonelist, gfp_zone(GFP_HIGHUSER_MOVABLE), NULL));
}

static int cohort_cpb_cpu_prepare(unsigned int cpu)
{
	WRITE_ONCE(per_cpu(cohort_cpb, cpu).zone, cohort_cpb_zone(cpu));
	return 0;
}

static void cohort_cpb_add(struct cohort_cpb *cpb, const struct cohort_set *set)
{
	list_add(&set->page->pcp_list, &cpb->sets[set->order]);
	cpb->nr += 1UL << set->order;
}

/* Largest sets first, and of these the one that came last. */
static bool cohort_cpb_del(struct cohort_cpb *cpb, struct cohort_set *set)
{
	int o;

	for (o = COHORT_MAX_SET_ORDER; o >= 0; o--) {
		set->page = list_first_entry_or_null(&cpb->sets[o], struct page, pcp_list);
		if (!set->page)
			continue;
		set->order = o;
		list_del(&set->page->pcp_list);
		cpb->nr -= 1UL << o;
		return true;
	}
	return false;
}

static void cohort_cpb_empty(struct cohort_cpb *cpb)
{
	struct cohort_set set;
	unsigned long flags;
	bool some;

	do {
		spin_lock_irqsave(&cpb->lock, flags);
		some = cohort_cpb_del(cpb, &set);
		spin_unlock_irqrestore(&cpb->lock, flags);
		if (some)
			cohort_buddy_give(set.page, set.order);
	} while (some);
}

static void cohort_cpb_drain(unsigned int cpu, struct zone *zone)
{
	struct cohort_cpb *cpb = per_cpu_ptr(&cohort_cpb, cpu);

	/* Not without the lock, as for magazines: what is being kept has seen the lists enabled. */
	if (READ_ONCE(cpb->zone) == zone)
		cohort_cpb_empty(cpb);
}

static int cohort_cpb_cpu_dead(unsigned int cpu)
{
	struct cohort_cpb *cpb = per_cpu_ptr(&cohort_cpb, cpu);

	WRITE_ONCE(cpb->zone, NULL);
	/* A task that read the zone may have been moved off the CPU. */
	synchronize_rcu();
	cohort_cpb_empty(cpb);
	return 0;
}

/* Memory has come or gone, and with it perhaps a zone. */
static int cohort_cpb_memory_notify(struct notifier_block *nb, unsigned long action, void *arg)
{
	unsigned int cpu;

	if (action != MEM_ONLINE && action != MEM_OFFLINE)
		return NOTIFY_OK;
	/* CPUs neither come nor go while memory does. */
	for_each_online_cpu(cpu) {
		if (READ_ONCE(per_cpu(cohort_cpb, cpu).zone) == cohort_cpb_zone(cpu))
			continue;
		cohort_cpb_cpu_dead(cpu);
		cohort_cpb_cpu_prepare(cpu);
	}
	return NOTIFY_OK;
}

static int cohort_cpb_init(void)
{
	static bool made;
	unsigned int cpu, o;
	int err;

	if (made)
		return 0;
	for_each_possible_cpu(cpu) {
		struct cohort_cpb *cpb = per_cpu_ptr(&cohort_cpb, cpu);

		spin_lock_init(&cpb->lock);
		for (o = 0; o <= COHORT_MAX_SET_ORDER; o++)
			INIT_LIST_HEAD(&cpb->sets[o]);
	}
	err = cpuhp_setup_state(CPUHP_BP_PREPARE_DYN, "mm/cohort:prepare",
				cohort_cpb_cpu_prepare, cohort_cpb_cpu_dead);
	if (err < 0)
		return err;
	hotplug_memory_notifier(cohort_cpb_memory_notify, DEFAULT_CALLBACK_PRI);
	made = true;
	return 0;
}

/* Without SMP a trylock always succeeds, so interrupts stay away everywhere. */
static bool cohort_cpb_pop(struct cohort_cpb *cpb, struct cohort_set *set)
{
	unsigned long flags;
	bool some;

	if (!READ_ONCE(cpb->nr) || !spin_trylock_irqsave(&cpb->lock, flags))
		return false;
	some = cohort_cpb_del(cpb, set);
	spin_unlock_irqrestore(&cpb->lock, flags);
	return some;
}

/* False if they were set aside for what may not wait, or for isolation, since they were taken. */
static bool cohort_cpb_usable(const struct cohort_set *set)
{
	return migratetype_is_mergeable(get_pageblock_migratetype(set->page));
}

/* Frames get an owner; false if others of their slot have one.  Under zone->lock. */
static bool cohort_cpb_enter(struct cohort_room *room, const struct cohort_set *set)
{
	unsigned long pfn = page_to_pfn(set->page);
	struct cohort_block *blk = cohort_block_of(pfn);

	if (!blk || blk->room || room->closed || !READ_ONCE(cohort_taking))
		return false;
	if (!cohort_cpb_usable(set))
		return false;
	cohort_block_enter(room, blk, pfn, set->order);
	return true;
}

static unsigned int cohort_cpb_pages(const struct cohort_set *set, struct page **page)
{
	unsigned int i, nr = 1U << set->order;

	for (i = 0; i < nr; i++)
		page[i] = set->page + nr - 1 - i;
	return nr;
}

/* A3: a set of this CPU's CPB for a process. */
static unsigned int cohort_cpb_reserve(struct cohort_room *room, struct page **page)
{
	struct cohort_cpb *cpb = raw_cpu_ptr(&cohort_cpb);
	struct zone *zone = room->zone;
	struct cohort_set set;
	unsigned long flags;
	bool entered;

	if (READ_ONCE(cpb->zone) != zone)
		return 0;
	while (cohort_cpb_pop(cpb, &set)) {
		spin_lock_irqsave(&zone->lock, flags);
		entered = cohort_cpb_enter(room, &set);
		spin_unlock_irqrestore(&zone->lock, flags);
		if (entered)
			return cohort_cpb_pages(&set, page);
		cohort_buddy_give(set.page, set.order);
	}
	return 0;
}

static bool cohort_cpb_remnant(struct zone *zone, unsigned int order, struct cohort_set *set)
{
	set->page = cohort_buddy_remnant(zone, order);
	set->order = order;
	return set->page;
}

static bool cohort_cpb_whole(struct zone *zone, unsigned int alloc_flags,
			     struct cohort_set *set)
{
	set->order = cohort_block_order();
	set->page = cohort_buddy_rmqueue(zone, set->order, MIGRATE_MOVABLE, alloc_flags);
	return set->page;
}

/* Smallest first, as a request for single pages would find them. */
static bool cohort_cpb_remnants_first(struct zone *zone, struct cohort_set *set)
{
	unsigned int o;

	for (o = COHORT_MIN_SET_ORDER; o < cohort_block_order(); o++)
		if (cohort_cpb_remnant(zone, o, set))
			return true;
	return cohort_cpb_whole(zone, 0, set);
}

/*
 * If there is nothing as large as a set, then the largest there is; but rather
 * that than to mix mobilities within a pageblock.
 */
static bool cohort_cpb_split_first(struct zone *zone, struct cohort_set *set)
{
	unsigned int o;

	if (cohort_cpb_whole(zone, ALLOC_NOFRAGMENT, set))
		return true;
	for (o = cohort_block_order() - 1; o >= COHORT_MIN_SET_ORDER; o--)
		if (cohort_cpb_remnant(zone, o, set))
			return true;
	return cohort_cpb_whole(zone, 0, set);
}

/*
 * Sets off the free lists under one hold of zone->lock, until @want pages are there; a
 * block that is taken apart is taken whole.  The first has its owner then.
 */
static unsigned int cohort_cpb_take(struct cohort_room *room, unsigned int want,
				    unsigned long mark, int highest_zoneidx,
				    struct cohort_set *set)
{
	bool remnants = READ_ONCE(cohort_cpb_remnants);
	struct zone *zone = room->zone;
	unsigned int nr = 0, pages = 0;
	unsigned long flags;

	spin_lock_irqsave(&zone->lock, flags);
	if (!cohort_mark_ok(zone, mark + want, highest_zoneidx))
		goto out;
	while (pages < want &&
	       (remnants ? cohort_cpb_remnants_first(zone, &set[nr]) :
			   cohort_cpb_split_first(zone, &set[nr]))) {
		if (!nr && !cohort_cpb_enter(room, &set[0])) {
			cohort_buddy_merge(zone, set[0].page, set[0].order);
			break;
		}
		pages += 1U << set[nr++].order;
	}
out:
	spin_unlock_irqrestore(&zone->lock, flags);
	return nr;
}

/**
 * cohort_cpb_keep() - the CPB keeps the sets that it has room for, as per-CPU lists do
 * @zone: their zone
 * @set: the sets
 * @nr: how many; the others go back
 *
 * A set that was isolated on its way would be neither free nor to be moved.  What isolates frames
 * drains afterwards, which takes the lock: behind the drain it is known here.
 */
void cohort_cpb_keep(struct zone *zone, const struct cohort_set *set, unsigned int nr)
{
	struct cohort_cpb *cpb = raw_cpu_ptr(&cohort_cpb);
	unsigned long flags;

	if (!nr)
		return;
	if (READ_ONCE(cpb->zone) == zone && spin_trylock_irqsave(&cpb->lock, flags)) {
		bool closed = cpb != raw_cpu_ptr(&cohort_cpb) || cohort_pcp_disabled(zone);
		unsigned long most = closed ? 0 : READ_ONCE(cohort_cpb_limit);

		for (; nr && cpb->nr + (1UL << set->order) <= most && cohort_cpb_usable(set); nr--)
			cohort_cpb_add(cpb, set++);
		spin_unlock_irqrestore(&cpb->lock, flags);
	}
	for (; nr; nr--, set++)
		cohort_buddy_give(set->page, set->order);
}

/*
 * Free pages below which no set is taken.  Half of the gap below the low watermark is
 * left to requests for single pages, or reservations filling up in a burst would drive
 * these into direct reclaim.
 */
static unsigned long cohort_cpb_low_mark(const struct zone *zone)
{
	return (min_wmark_pages(zone) + low_wmark_pages(zone)) / 2;
}

/*
 * A4: as many pages as the paper's refill, and all of the block taken apart.  Below the low
 * watermark only what is needed now; and kswapd is told, as the slow path would do.
 * kcompactd is told once a tick that large pieces are few: where it can make none, each of
 * many tellings is a pass over the zone that empties the buffers of all CPUs.
 */
static unsigned int cohort_cpb_fill(const struct cohort_request *rq,
				    struct cohort_room *room, struct page **page)
{
	struct cohort_set set[COHORT_REFILL_SETS];
	unsigned int nr, order = cohort_block_order();
	int idx = rq->ac->highest_zoneidx;
	struct zone *zone = room->zone;

	if (!cohort_buddy_has(zone, COHORT_MIN_SET_ORDER))
		return 0;
	if (!cohort_buddy_has(zone, order + COHORT_AHEAD) &&
	    time_after(jiffies, READ_ONCE(zone->cohort->told))) {
		WRITE_ONCE(zone->cohort->told, jiffies);
		wakeup_kcompactd(zone->zone_pgdat, order + COHORT_AHEAD, idx);
	}
	/* What this CPU's buffer is not of the zone for would all go back. */
	nr = cohort_cpb_take(room, raw_cpu_read(cohort_cpb.zone) == zone ? COHORT_REFILL_PAGES : 1,
			     low_wmark_pages(zone) + cohort_pages(), idx, set);
	if (!nr) {
		if (rq->gfp & __GFP_KSWAPD_RECLAIM)
			wakeup_kswapd(zone, rq->gfp, 0, idx);
		nr = cohort_cpb_take(room, 1, cohort_cpb_low_mark(zone) + cohort_pages(), idx, set);
	}
	if (!nr)
		return 0;
	count_vm_events(COHORT_REFILL, nr);
	cohort_cpb_keep(zone, set + 1, nr - 1);
	return cohort_cpb_pages(set, page);
}

/* The order of a set cannot change while one is between two owners. */
static unsigned int cohort_cpb_refill(const struct cohort_request *rq,
				      struct cohort_room *room,
				      struct page **page, unsigned int want)
{
	unsigned int nr = 0;

	BUILD_BUG_ON(COHORT_SET_PAGES > COHORT_ROUND);
	rcu_read_lock();
	/* Another scheme may have been switched on since this one was asked for. */
	if (cohort_cpb_enabled() && READ_ONCE(cohort_taking))
		nr = cohort_cpb_reserve(room, page) ?: cohort_cpb_fill(rq, room, page);
	rcu_read_unlock();
	return nr;
}

/**
 * cohort_cpb_stats() - what the CPBs of all CPUs have
 * @sets: receives the number of sets
 * @pages: receives their pages
 */
void cohort_cpb_stats(unsigned long *sets, unsigned long *pages)
{
	unsigned int cpu, o;

	*sets = 0;
	*pages = 0;
	for_each_possible_cpu(cpu) {
		struct cohort_cpb *cpb = per_cpu_ptr(&cohort_cpb, cpu);
		unsigned long flags;

		if (!READ_ONCE(cpb->nr))
			continue;
		spin_lock_irqsave(&cpb->lock, flags);
		*pages += cpb->nr;
		for (o = 0; o <= COHORT_MAX_SET_ORDER; o++)
			*sets += list_count_nodes(&cpb->sets[o]);
		spin_unlock_irqrestore(&cpb->lock, flags);
	}
}

static const struct cohort_scheme cohort_cpb_scheme = {
	.name = "cpb",
	.key = &cohort_cpb_key,
	.order = &cohort_cpb_order,
	.init = cohort_cpb_init,
	.refill = cohort_cpb_refill,
	.drain = cohort_cpb_drain,
};

/**
 * cohort_cpb_switch() - turn the CPB on or off
 * @on: what to do
 *
 * Context: sleeps.
 * Return: 0, -ENOMEM, or -EINVAL if the region scheme is on.
 */
int cohort_cpb_switch(bool on)
{
	return cohort_scheme_switch(&cohort_cpb_scheme, on);
}

/**
 * cohort_cpb_set_order() - order of a set from the next switching on
 * @order: the order
 *
 * Context: sleeps.
 * Return: 0, -EINVAL if no set has this order, or -EBUSY while the scheme is on.
 */
int cohort_cpb_set_order(unsigned int order)
{
	int err = 0;

	if (!cohort_set_order_ok(order))
		return -EINVAL;
	mutex_lock(&cohort_mutex);
	if (static_key_enabled(&cohort_cpb_key))
		err = -EBUSY;
	else
		cohort_cpb_order = order;
	mutex_unlock(&cohort_mutex);
	return err;
}
