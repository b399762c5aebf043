// SPDX-License-Identifier: GPL-2.0
/*
 * Domains: where they come from, where they go, and their sums.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "../cohort.h"

#define COHORT_DOMAINS_AT_ONCE	64

LIST_HEAD(cohort_domains);
static DEFINE_SPINLOCK(cohort_domains_lock);
static atomic_t cohort_next_id = ATOMIC_INIT(COHORT_KEPT);

/* The numbers of processes may come round again: pages at hand then have the wrong owner. */
static unsigned int cohort_new_id(enum cohort_kind kind)
{
	unsigned int id;

	if (kind != COHORT_PROCESS)
		return kind;
	do {
		id = atomic_inc_return(&cohort_next_id);
	} while (id <= COHORT_KEPT);
	return id;
}

/**
 * cohort_domain_create() - a new domain without blocks
 * @kind: lifetime of its pages
 * @gfp: how to allocate the structure
 *
 * Return: the domain with one reference, or NULL.
 */
struct cohort_domain *cohort_domain_create(enum cohort_kind kind, gfp_t gfp)
{
	struct cohort_domain *dom;
	unsigned long flags;

	dom = kzalloc(struct_size(dom, room, cohort_nr_rooms()), gfp);
	if (!dom)
		return NULL;
	dom->kind = kind;
	dom->id = cohort_new_id(kind);
	refcount_set(&dom->ref, 1);
	INIT_DELAYED_WORK(&dom->work, cohort_compact_work);
	dom->rest = jiffies;

	spin_lock_irqsave(&cohort_domains_lock, flags);
	list_add_tail_rcu(&dom->all, &cohort_domains);
	spin_unlock_irqrestore(&cohort_domains_lock, flags);
	return dom;
}

static void cohort_domain_free_rcu(struct rcu_head *rcu)
{
	struct cohort_domain *dom = container_of(rcu, struct cohort_domain, rcu);
	unsigned int i;

	for (i = 0; i < cohort_nr_rooms(); i++)
		kfree(dom->room[i]);
	kfree(dom);
}

void cohort_domain_put(struct cohort_domain *dom)
{
	if (refcount_dec_and_test(&dom->ref)) {
		WARN_ON_ONCE(cohort_domain_blocks(dom));
		call_rcu(&dom->rcu, cohort_domain_free_rcu);
	}
}

/**
 * cohort_domain_drain() - no magazine keeps pages of a domain
 * @dom: the domain
 */
void cohort_domain_drain(struct cohort_domain *dom)
{
	unsigned int i, cpu;

	for (i = 0; i < cohort_nr_rooms(); i++) {
		struct cohort_room *room = READ_ONCE(dom->room[i]);

		if (!room)
			continue;
		for_each_online_cpu(cpu)
			cohort_magazine_drain(room->zone, cpu, dom->id);
	}
}

static void cohort_domain_give_up(struct cohort_domain *dom, bool close)
{
	unsigned int i;

	cohort_domain_drain(dom);
	for (i = 0; i < cohort_nr_rooms(); i++) {
		struct cohort_room *room = READ_ONCE(dom->room[i]);

		if (room)
			cohort_room_dissolve(room, close);
	}
}

/**
 * cohort_domain_destroy() - the lifetime is over
 * @dom: domain that nothing is allocated from any more
 *
 * Pages still in use (in LRU batches, swap cache, pinned) keep their frames
 * and are ordinary pages when they are freed.  Drops the first reference.
 */
void cohort_domain_destroy(struct cohort_domain *dom)
{
	unsigned long flags;

	/* As long as it has blocks it is found, so that no switch waits for a task that is stopped. */
	cohort_domain_give_up(dom, true);
	spin_lock_irqsave(&cohort_domains_lock, flags);
	list_del_rcu(&dom->all);
	spin_unlock_irqrestore(&cohort_domains_lock, flags);
	cohort_domain_put(dom);
}

/**
 * cohort_domain_dissolve() - a domain gives its blocks up
 * @dom: the domain
 */
void cohort_domain_dissolve(struct cohort_domain *dom)
{
	cohort_domain_give_up(dom, false);
}

/* Has it blocks, or a room that found none it could take? */
static bool cohort_domain_holds(const struct cohort_domain *dom)
{
	unsigned int i;

	for (i = 0; i < cohort_nr_rooms(); i++) {
		const struct cohort_room *room = READ_ONCE(dom->room[i]);

		if (room && (READ_ONCE(room->nr_blocks) || READ_ONCE(room->closed)))
			return true;
	}
	return false;
}

/* Some of these, from the first one on, with a reference each. */
static unsigned int cohort_domains_holding(struct cohort_domain **some, unsigned int nr)
{
	struct cohort_domain *dom;
	unsigned int found = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(dom, &cohort_domains, all) {
		if (!cohort_domain_holds(dom) || !refcount_inc_not_zero(&dom->ref))
			continue;
		some[found++] = dom;
		if (found == nr)
			break;
	}
	rcu_read_unlock();
	return found;
}

/**
 * cohort_dissolve_all() - no domain keeps any block, and each may take some again
 *
 * Callers make sure that none is acquired meanwhile.  Many domains are looked for at once, as
 * each look walks over all that have been dissolved.
 *
 * Context: may be scheduled away; processes may have millions of sets together.
 */
void cohort_dissolve_all(void)
{
	struct cohort_domain *some[COHORT_DOMAINS_AT_ONCE];
	unsigned int i, nr;

	while ((nr = cohort_domains_holding(some, ARRAY_SIZE(some)))) {
		for (i = 0; i < nr; i++) {
			cohort_domain_dissolve(some[i]);
			cohort_domain_put(some[i]);
			cond_resched();
		}
	}
}

/**
 * cohort_domain_free() - free pages in the blocks of a domain
 * @dom: the domain
 */
unsigned long cohort_domain_free(const struct cohort_domain *dom)
{
	unsigned long nr = 0;
	unsigned int i;

	for (i = 0; i < cohort_nr_rooms(); i++) {
		const struct cohort_room *room = READ_ONCE(dom->room[i]);

		nr += room ? READ_ONCE(room->nr_free) : 0;
	}
	return nr;
}

/**
 * cohort_domain_blocks() - blocks of a domain
 * @dom: the domain
 */
unsigned int cohort_domain_blocks(const struct cohort_domain *dom)
{
	unsigned int i, nr = 0;

	for (i = 0; i < cohort_nr_rooms(); i++) {
		const struct cohort_room *room = READ_ONCE(dom->room[i]);

		nr += room ? READ_ONCE(room->nr_blocks) : 0;
	}
	return nr;
}

/**
 * cohort_free_in() - free pages in blocks of all domains of a kind
 * @kind: the kind
 *
 * A sum of counts that change meanwhile: for people, not for decisions.
 */
unsigned long cohort_free_in(enum cohort_kind kind)
{
	struct cohort_domain *dom;
	unsigned long nr = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(dom, &cohort_domains, all)
		if (dom->kind == kind)
			nr += cohort_domain_free(dom);
	rcu_read_unlock();
	return nr;
}

/**
 * cohort_soft() - free pages in blocks of all domains; those that are kept are not
 */
unsigned long cohort_soft(void)
{
	unsigned long nr = 0;
	struct zone *zone;

	for_each_populated_zone(zone)
		nr += READ_ONCE(zone->cohort_soft);
	return nr;
}
