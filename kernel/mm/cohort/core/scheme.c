// SPDX-License-Identifier: GPL-2.0
/*
 * Switching schemes that take blocks on and off.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "../cohort.h"

#define CREATE_TRACE_POINTS
#include <trace/events/cohort.h>

DEFINE_STATIC_KEY_FALSE(cohort_owner_key);
DEFINE_STATIC_KEY_FALSE(cohort_key);

DEFINE_MUTEX(cohort_mutex);
const struct cohort_scheme *cohort_scheme;
bool cohort_taking;
unsigned int cohort_compact_delay_ms = 200;
struct workqueue_struct *cohort_wq;
struct workqueue_struct *cohort_process_wq;

/**
 * cohort_owner_switch() - frames may have an owner of another sort, or may not any more
 * @key: says so of this sort alone; counts, if there are several of it
 * @on: which of the two
 *
 * The free path looks at one key for all sorts.
 *
 * Context: sleeps.
 */
void cohort_owner_switch(struct static_key_false *key, bool on)
{
	if (on) {
		static_branch_inc(&cohort_owner_key);
		static_branch_inc(key);
	} else {
		static_branch_dec(key);
		static_branch_dec(&cohort_owner_key);
	}
}

static int cohort_scheme_on(const struct cohort_scheme *scheme)
{
	int err;

	if (cohort_scheme && cohort_scheme != scheme &&
	    static_key_enabled(&cohort_scheme->key->key)) {
		pr_err("%s: %s is on, and they exclude each other; staying off\n",
		       scheme->name, cohort_scheme->name);
		return -EINVAL;
	}
	if (*scheme->order > pageblock_order) {
		pr_err("%s: blocks of order %u are larger than a pageblock; staying off\n",
		       scheme->name, *scheme->order);
		return -EINVAL;
	}
	/* With little memory and large pageblocks all requests look like those that cannot be moved. */
	if (page_group_by_mobility_disabled) {
		pr_err("%s: too little memory to group pages by mobility; staying off\n",
		       scheme->name);
		return -EINVAL;
	}
	/* Memory that comes from here on tells of itself. */
	err = cohort_zones_init() ?: cohort_table_init(*scheme->order) ?: scheme->init();
	if (err) {
		pr_err("%s: no memory for the frame table, staying off\n", scheme->name);
		return err;
	}
	WRITE_ONCE(cohort_scheme, scheme);
	cohort_owner_switch(&cohort_key, true);
	/*
	 * A reader that sees it sees the scheme; and links and unlinks free pages of the
	 * blocks that it takes.
	 */
	smp_store_release(&cohort_taking, true);
	static_branch_enable(scheme->key);
	/* Classes written while the key was off. */
	cohort_each_process(cohort_class_note);
	return 0;
}

static void cohort_drain_all(void)
{
	struct zone *zone;
	int cpu;

	for_each_populated_zone(zone)
		for_each_possible_cpu(cpu)
			cohort_zone_drain(cpu, zone);
}

/*
 * Stop taking blocks, give all up, and only then let frees stop looking.  A block
 * is acquired under zone->lock, where cohort_taking is seen to be false.  No page of
 * a magazine is left behind: the blocks of another scheme may be of another order.
 */
static void cohort_scheme_off(const struct cohort_scheme *scheme)
{
	unsigned long nr[COHORT_NR_KINDS];

	static_branch_disable(scheme->key);
	WRITE_ONCE(cohort_taking, false);
	synchronize_rcu();
	for (;;) {
		cohort_drain_all();
		cohort_dissolve_all();
		if (!cohort_block_stats(nr))
			break;
		/* A process domain is being destroyed by a task that was preempted. */
		schedule_timeout_uninterruptible(1);
	}
	cohort_owner_switch(&cohort_key, false);
	synchronize_rcu();
	/* A free that still saw an owner may have put its page into a magazine. */
	cohort_drain_all();
}

/**
 * cohort_scheme_switch() - turn a scheme that takes blocks on or off
 * @scheme: the scheme
 * @on: what to do
 *
 * Context: sleeps.
 * Return: 0, -ENOMEM, or -EINVAL if another one is on.
 */
int cohort_scheme_switch(const struct cohort_scheme *scheme, bool on)
{
	int err = 0;

	mutex_lock(&cohort_mutex);
	if (on != static_key_enabled(&scheme->key->key)) {
		if (on)
			err = cohort_scheme_on(scheme);
		else
			cohort_scheme_off(scheme);
		if (!err)
			pr_info("%s: %s, order %u\n", scheme->name,
				on ? "on" : "off", *scheme->order);
	}
	mutex_unlock(&cohort_mutex);
	return err;
}
