// SPDX-License-Identifier: GPL-2.0
/*
 * The contiguous page buffer: every process is given its anonymous pages from
 * sets of contiguous pages that are its own, and every CPU keeps some complete
 * sets at hand between the processes and the buddy allocator.
 *
 * After Kim, Min, Kim, Kang, Kim and Eom, "Page Allocation Scheme for
 * Anti-Fragmentation on Smart Devices", whose steps are named A1 to A6 here.
 * The reservation of a process is its domain, the buffer of a CPU is a domain
 * too, and both are refilled, given back, stolen from and switched off as any
 * other.
 *
 * A1 page cache never asks for a domain: it goes past all this.
 * A2 cohort_rmqueue() takes a parked page of the process's own sets.
 * A3 cohort_cpb_reserve() hands it a set of this CPU's buffer.
 * A4 cohort_cpb_fill() refills the buffer, whole blocks at a time.
 * A5 cohort_rmqueue() returns NULL and the stock free lists serve the request.
 * A6 __cohort_steal_page() takes a page reserved for another process.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpuhotplug.h>
#include <linux/mm.h>
#include <linux/compaction.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/swap.h>
#include <linux/topology.h>
#include <linux/vmstat.h>

#include "../internal.h"
#include "cohort.h"

/**
 * struct cohort_cpb - the contiguous page buffer of one CPU
 * @dom: its sets, all of them complete; made once, never freed
 * @zone: the only zone it has sets of, the one this CPU's processes prefer;
 *	NULL while the CPU is offline
 *
 * dom->nr_parked <= cohort_cpb_limit, but for the set of a task that was
 * moved to another CPU between looking and putting.
 *
 * All that is reserved and not used, in pages:
 *
 *	NR_COHORT_FREE <= limit * CPUs			the buffers
 *			+ (set - 1) * reservations	one set begun each
 *			+ holes				freed by living processes
 *	NR_COHORT_FREE <= parked_max + (COHORT_REFILL_PAGES + set) * CPUs
 *
 * A process has one reservation, COHORT_SHARDS at most if its threads fault on
 * several CPUs at once.  The second line holds because at parked_max no set is
 * taken any more, and a page freed by a process that lives dissolves its set;
 * what a process frees while it exits comes on top until it has exited.
 *
 * @zone is read and acted upon under rcu_read_lock(), so that a CPU that goes
 * offline can wait for those who found it open.
 */
struct cohort_cpb {
	struct cohort_domain *dom;
	struct zone *zone;
};

static DEFINE_PER_CPU(struct cohort_cpb, cohort_cpb);

const char *const cohort_cpb_refills[2] = { "split", "remnants" };
bool cohort_cpb_remnants __read_mostly;
unsigned long cohort_cpb_limit __read_mostly = 128;

/**
 * cohort_cpb_buffer() - buffer of a CPU
 * @cpu: the CPU
 *
 * Return: its domain, NULL before the scheme was first on.
 */
struct cohort_domain *cohort_cpb_buffer(unsigned int cpu)
{
	return per_cpu(cohort_cpb, cpu).dom;
}

/**
 * cohort_cpb_cpu_prepare() - a CPU comes: open its buffer
 * @cpu: the CPU
 */
int cohort_cpb_cpu_prepare(unsigned int cpu)
{
	struct zonelist *zonelist = node_zonelist(cpu_to_mem(cpu),
						  GFP_HIGHUSER_MOVABLE);
	struct zoneref *z = first_zones_zonelist(zonelist,
						 gfp_zone(GFP_HIGHUSER_MOVABLE), NULL);

	WRITE_ONCE(per_cpu(cohort_cpb, cpu).zone, zonelist_zone(z));
	return 0;
}

/**
 * cohort_cpb_cpu_dead() - a CPU has gone: its sets go home
 * @cpu: the CPU
 */
int cohort_cpb_cpu_dead(unsigned int cpu)
{
	WRITE_ONCE(per_cpu(cohort_cpb, cpu).zone, NULL);
	/* A task that read the zone may have been moved off the CPU. */
	synchronize_rcu();
	cohort_domain_dissolve(cohort_cpb_buffer(cpu), true);
	return 0;
}

/**
 * cohort_cpb_init() - make the buffers of all CPUs there may ever be
 *
 * Context: cohort_mutex held, may sleep.
 * Return: 0, or a negative errno with nothing lost: what was made serves the
 * next try.
 */
int cohort_cpb_init(void)
{
	static bool hotplug;
	unsigned int cpu;
	int err;

	for_each_possible_cpu(cpu) {
		struct cohort_cpb *cpb = per_cpu_ptr(&cohort_cpb, cpu);

		if (!cpb->dom)
			cpb->dom = cohort_domain_create(COHORT_CPB, NUMA_NO_NODE,
							GFP_KERNEL);
		if (!cpb->dom)
			return -ENOMEM;
	}
	if (hotplug)
		return 0;
	err = cpuhp_setup_state(CPUHP_BP_PREPARE_DYN, "mm/cohort:prepare",
				cohort_cpb_cpu_prepare, cohort_cpb_cpu_dead);
	hotplug = err >= 0;
	return min(err, 0);
}

static struct cohort_domain *cohort_cpb_add_shard(struct cohort_domain *dom,
						  unsigned int i)
{
	struct cohort_domain *shard, *old;

	shard = cohort_domain_create(COHORT_PROCESS, NUMA_NO_NODE,
				     GFP_NOWAIT | __GFP_NOWARN);
	if (!shard)
		return dom;
	shard->class = READ_ONCE(dom->class);
	old = cmpxchg(&dom->shard[i], NULL, shard);
	if (old) {
		cohort_domain_destroy(shard);
		return old;
	}
	return shard;
}

/**
 * cohort_cpb_shard() - the reservation of a process for faults on this CPU
 * @dom: domain of a process whose threads have waited for each other
 *
 * Of such there are up to COHORT_SHARDS, each for every so many-th CPU.
 */
struct cohort_domain *cohort_cpb_shard(struct cohort_domain *dom)
{
	unsigned int i = raw_smp_processor_id() % COHORT_SHARDS;

	if (!i--)
		return dom;
	return READ_ONCE(dom->shard[i]) ?: cohort_cpb_add_shard(dom, i);
}

/**
 * cohort_cpb_set_class() - the role of a process has changed
 * @dom: domain of the process
 * @class: what it is now
 *
 * What that means to the domain, it means to the other reservations.
 */
void cohort_cpb_set_class(struct cohort_domain *dom, enum cohort_class class)
{
	unsigned int i;

	for (i = 0; i < COHORT_SHARDS - 1; i++) {
		struct cohort_domain *shard = READ_ONCE(dom->shard[i]);

		if (!shard)
			continue;
		WRITE_ONCE(shard->class, class);
		if (class == COHORT_BACKGROUND)
			cohort_compact_queue(shard, READ_ONCE(cohort_compact_delay_ms));
	}
}

/**
 * cohort_cpb_exit() - a process has gone
 * @dom: its domain, from which nobody allocates any more
 */
void cohort_cpb_exit(struct cohort_domain *dom)
{
	unsigned int i;

	for (i = 0; i < COHORT_SHARDS - 1; i++) {
		struct cohort_domain *shard = dom->shard[i];

		if (!shard)
			continue;
		if (cancel_delayed_work(&shard->work))
			cohort_domain_put(shard);
		cohort_domain_destroy(shard);
	}
}

/* Largest sets first, and of these the one that came last: its pages are warm. */
static struct cohort_block *cohort_cpb_newest(struct cohort_domain *dom)
{
	if (!dom->nonempty)
		return NULL;
	return list_last_entry(&dom->list[__fls(dom->nonempty)],
			       struct cohort_block, node);
}

static bool cohort_cpb_pop(struct cohort_domain *dom, struct cohort_set *set)
{
	struct cohort_block *blk;
	struct cohort_map map;
	unsigned long flags;

	/* Nobody else fills the buffer of this CPU: spare the lock. */
	if (!READ_ONCE(dom->nr_parked))
		return false;
	spin_lock_irqsave(&dom->lock, flags);
	blk = cohort_cpb_newest(dom);
	if (blk) {
		set->page = cohort_block_page(blk);
		set->order = blk->order;
		cohort_block_detach(dom, blk, &map);
	}
	spin_unlock_irqrestore(&dom->lock, flags);
	return blk;
}

/* A3: a set of this CPU's buffer for a process. */
static bool cohort_cpb_reserve(struct cohort_domain *dom, gfp_t gfp,
			       unsigned int alloc_flags,
			       const struct alloc_context *ac)
{
	struct cohort_cpb *cpb = raw_cpu_ptr(&cohort_cpb);
	struct zone *zone = READ_ONCE(cpb->zone);
	struct cohort_set set;

	/* Whoever would rather have another zone or node takes no set from here. */
	if (!zone || zone != zonelist_zone(ac->preferred_zoneref) ||
	    !cohort_zone_allowed(zone, gfp, alloc_flags, ac))
		return false;
	while (cohort_cpb_pop(cpb->dom, &set)) {
		if (cohort_block_publish(dom, set.page, set.order))
			return true;
		cohort_buddy_give_sets(zone, &set, 1);
	}
	return false;
}

/* The sets that have been in the buffer for longest go, largest first. */
static unsigned int cohort_cpb_shed(struct cohort_domain *dom, unsigned int nr,
				    struct cohort_set *set)
{
	struct cohort_block *blk;
	struct cohort_map map;
	unsigned int i;

	for (i = 0; i < nr && dom->nonempty; i++) {
		blk = list_first_entry(&dom->list[__fls(dom->nonempty)],
				       struct cohort_block, node);
		set[i].page = cohort_block_page(blk);
		set[i].order = blk->order;
		cohort_block_detach(dom, blk, &map);
	}
	return i;
}

/* Room for one more set. */
static void cohort_cpb_spill(struct cohort_cpb *cpb, struct zone *zone)
{
	struct cohort_domain *dom = cpb->dom;
	struct cohort_set set[COHORT_REFILL_SETS];
	unsigned long flags;
	unsigned int nr;

	do {
		spin_lock_irqsave(&dom->lock, flags);
		nr = cohort_spill(dom->nr_blocks, dom->nr_parked, cohort_pages(),
				  READ_ONCE(cohort_cpb_limit));
		nr = cohort_cpb_shed(dom, min(nr, COHORT_REFILL_SETS), set);
		spin_unlock_irqrestore(&dom->lock, flags);
		if (nr)
			cohort_buddy_give_sets(zone, set, nr);
	} while (nr);
}

/**
 * cohort_cpb_put() - a set is complete again: keep it in this CPU's buffer
 * @page: first page of a whole set, which is in no block
 *
 * The buffer keeps nothing while its zone is below the high watermark: reclaim
 * would not see what it has achieved.
 *
 * Context: any but NMI; rcu_read_lock() held.
 * Return: false if the set has to go to the buddy allocator.
 */
bool cohort_cpb_put(struct page *page)
{
	struct cohort_cpb *cpb = raw_cpu_ptr(&cohort_cpb);
	struct zone *zone = page_zone(page);

	if (READ_ONCE(cpb->zone) != zone ||
	    zone_page_state(zone, NR_FREE_PAGES) < high_wmark_pages(zone))
		return false;
	if (READ_ONCE(cpb->dom->nr_parked) + cohort_pages() >
	    READ_ONCE(cohort_cpb_limit))
		cohort_cpb_spill(cpb, zone);
	return cohort_block_publish(cpb->dom, page, cohort_order);
}

/**
 * cohort_cpb_over() - is so much parked that a page freed must not be?
 *
 * Not for a process that exits: the page's neighbours follow.
 */
bool cohort_cpb_over(void)
{
	return !cohort_may_refill(cohort_parked(),
				  READ_ONCE(cohort_parked_max)) &&
	       !(current->flags & PF_EXITING);
}

/* The first set is for the process that asked, the rest for the buffer. */
static bool cohort_cpb_share(struct cohort_domain *dom, struct zone *zone,
			     const struct cohort_set *set, unsigned int nr)
{
	struct cohort_cpb *cpb = raw_cpu_ptr(&cohort_cpb);
	bool buffer = READ_ONCE(cpb->zone) == zone, served = false;

	for (; nr--; set++) {
		struct cohort_domain *to = served ? cpb->dom : dom;

		if ((!served || buffer) &&
		    cohort_block_publish(to, set->page, set->order)) {
			served = true;
			count_vm_event(COHORT_REFILL);
		} else {
			cohort_buddy_give_sets(zone, set, 1);
		}
	}
	return served;
}

/*
 * How many pages may be taken from a zone?  A refill above the low watermark.
 * Below it, or from a zone the buffer is not for, only what is needed now; and
 * kswapd is told, as the slow path would do.
 */
static unsigned int cohort_cpb_quota(struct zone *zone, gfp_t gfp,
				     const struct alloc_context *ac)
{
	bool buffer = READ_ONCE(raw_cpu_ptr(&cohort_cpb)->zone) == zone;
	unsigned int want = buffer ? COHORT_REFILL_PAGES : 1;

	if (zone_watermark_ok(zone, 0, low_wmark_pages(zone) + want + cohort_pages(),
			      ac->highest_zoneidx, 0))
		return want;
	if (gfp & __GFP_KSWAPD_RECLAIM)
		wakeup_kswapd(zone, gfp, 0, ac->highest_zoneidx);
	return zone_watermark_ok(zone, 0, cohort_low_mark(zone) + cohort_pages(),
				 ac->highest_zoneidx, 0);
}

/* A4: as many pages as the paper's refill, and all of the block taken apart. */
static bool cohort_cpb_fill(struct cohort_domain *dom, gfp_t gfp,
			    unsigned int alloc_flags,
			    const struct alloc_context *ac)
{
	struct cohort_set set[COHORT_REFILL_SETS];
	struct zoneref *z = ac->preferred_zoneref;
	struct zone *zone;

	if (!cohort_may_refill(cohort_parked(),
			       READ_ONCE(cohort_parked_max)))
		return false;
	for_next_zone_zonelist_nodemask(zone, z, ac->highest_zoneidx,
					ac->nodemask) {
		unsigned int nr, want;

		if (!cohort_zone_allowed(zone, gfp, alloc_flags, ac) ||
		    !cohort_buddy_has(zone, COHORT_MIN_SET_ORDER))
			continue;
		want = cohort_cpb_quota(zone, gfp, ac);
		if (!want)
			continue;
		if (!cohort_buddy_has(zone, cohort_order + COHORT_AHEAD))
			wakeup_kcompactd(zone->zone_pgdat, cohort_order + COHORT_AHEAD,
					 ac->highest_zoneidx);
		nr = cohort_buddy_take_sets(zone, cohort_order,
					    READ_ONCE(cohort_cpb_remnants), want, set);
		if (nr && cohort_cpb_share(dom, zone, set, nr))
			return true;
	}
	return false;
}

/**
 * cohort_cpb_refill() - one more set for a process
 * @dom: reservation of the process
 * @gfp: the request
 * @alloc_flags: ALLOC_* of the request
 * @ac: its context
 *
 * The scheme cannot go off, and the order of a set not change, while a set is
 * between two owners.
 *
 * Return: true if @dom has a set more.
 */
bool cohort_cpb_refill(struct cohort_domain *dom, gfp_t gfp,
		       unsigned int alloc_flags, const struct alloc_context *ac)
{
	bool got;

	rcu_read_lock();
	got = READ_ONCE(cohort_taking) &&
	      (cohort_cpb_reserve(dom, gfp, alloc_flags, ac) ||
	       cohort_cpb_fill(dom, gfp, alloc_flags, ac));
	rcu_read_unlock();
	return got;
}

void __cohort_drain(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		cohort_domain_dissolve(cohort_cpb_buffer(cpu), true);
}
