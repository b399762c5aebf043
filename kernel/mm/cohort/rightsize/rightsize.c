// SPDX-License-Identifier: GPL-2.0
/*
 * Right-sized reclaim: how much kswapd frees in a go, and when it begins.
 *
 * Stock aims at as many pages as its high mark is high, each time, however few
 * are missing.  Memory that is free beyond need is page cache that has to be
 * read again.  Here kswapd aims at what is missing.
 *
 * When kinds of pages mix, stock raises all marks (the boost) so that kswapd
 * frees more, and processes that ask meanwhile reclaim for themselves though
 * thousands of pages are free above the mark that protects the reserves.  Here
 * the boost is kswapd's alone.  Where processes still reclaim by themselves, the
 * controller of arith_rightsize.c moves the marks apart, and back while evicted
 * pages return.
 *
 * Which pages go is the other half, in scope.c.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/atomic.h>
#include <linux/buffer_head.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/sysctl.h>
#include <linux/compaction.h>
#include <linux/sysfs.h>
#include <linux/swap.h>
#include <linux/tracepoint.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>
#include <trace/events/vmscan.h>

#include "../../internal.h"
#include "../cohort.h"
#include "rightsize.h"

DEFINE_STATIC_KEY_FALSE(cohort_sizing_key);

static bool cohort_rightsize_on;		/* under cohort_mutex, as are: */
static bool cohort_scope_wanted = true;
static bool cohort_sizing_wanted = true;

/* Pages evicted in this window, by any task and by processes themselves. */
static atomic_long_t cohort_evicted;
static atomic_long_t cohort_direct;

/* Only the work changes these two, while sizing is on; others read the copies below. */
static struct cohort_sizer cohort_sizer;
static unsigned long cohort_refaulted;		/* at the end of the last window */

static unsigned int cohort_gap = COHORT_GAP_STOCK;	/* in force */

/* What was told of each node's kswapd since it woke up; by itself alone. */
static unsigned long cohort_kswapd_told[MAX_NUMNODES];

static unsigned long cohort_refaults(void)
{
	return global_node_page_state(WORKINGSET_REFAULT_ANON) +
	       global_node_page_state(WORKINGSET_REFAULT_FILE);
}

static void cohort_gap_set(unsigned int gap)
{
	if (gap == READ_ONCE(cohort_gap))
		return;
	WRITE_ONCE(cohort_gap, gap);
	setup_per_zone_wmarks();
}

static void cohort_sizer_window(void)
{
	unsigned long refaults = cohort_refaults();
	struct cohort_flow flow = {
		.evicted = atomic_long_xchg(&cohort_evicted, 0),
		.direct = atomic_long_xchg(&cohort_direct, 0),
		.refaulted = refaults - cohort_refaulted,
	};

	cohort_refaulted = refaults;
	cohort_sizer_step(&cohort_sizer, &flow);
	cohort_gap_set(cohort_sizer.gap);
}

/*
 * A kswapd that was preempted before it queued this may do so after the end: then the key is off,
 * and what cohort_sizing_stop() left stays.  One that runs meanwhile it waits for.
 */
static void cohort_sizer_work(struct work_struct *work)
{
	if (static_key_enabled(&cohort_sizing_key))
		cohort_sizer_window();
}
static DECLARE_WORK(cohort_sizer_item, cohort_sizer_work);

/**
 * cohort_sizer_note() - pages were evicted
 * @nr: how many
 *
 * Also late, when sizing was switched off meanwhile.
 */
void cohort_sizer_note(unsigned long nr)
{
	if (atomic_long_add_return(nr, &cohort_evicted) >= COHORT_SIZER_WINDOW)
		/* The marks wait for memory that goes offline; packing must not wait behind it. */
		queue_work(system_unbound_wq, &cohort_sizer_item);
}

static void cohort_probe_own_reclaim(void *unused, unsigned long nr)
{
	atomic_long_add(nr, &cohort_direct);
	cohort_sizer_note(nr);
}

/**
 * cohort_sizer_progress() - kswapd goes on
 * @nid: its node
 * @nr: pages it reclaimed since it woke up
 *
 * Direct reclaim is told of call by call.  Told of at its end alone, a long run would leave the
 * windows meanwhile to processes, and would be one window itself.
 *
 * Context: the node's kswapd.
 */
void cohort_sizer_progress(int nid, unsigned long nr)
{
	/* It may be of a run that was going on when sizing was switched off. */
	unsigned long told = min(cohort_kswapd_told[nid], nr);

	cohort_kswapd_told[nid] = nr;
	if (nr > told)
		cohort_sizer_note(nr - told);
}

/**
 * cohort_sizer_ran() - kswapd is done with a node for now
 * @nid: the node
 * @nr: pages it reclaimed since it woke up
 */
void cohort_sizer_ran(int nid, unsigned long nr)
{
	if (!static_branch_unlikely(&cohort_sizing_key))
		return;
	cohort_sizer_progress(nid, nr);
	cohort_kswapd_told[nid] = 0;
}

/* What a zone lacks as pgdat_balanced() counts, which asks for memory that cannot be moved. */
static unsigned long cohort_zone_lacks(struct zone *zone, int highest_zoneidx)
{
	unsigned long want, have;

	want = sysctl_numa_balancing_mode & NUMA_BALANCING_MEMORY_TIERING ?
	       promo_wmark_pages(zone) : high_wmark_pages(zone);
	if (cohort_enabled())
		want = cohort_zone_aim(zone, want);
	want += zone->lowmem_reserve[highest_zoneidx];
	have = zone_page_state_snapshot(zone, NR_FREE_PAGES);
	have -= min(have, cohort_unusable_free(zone) + zone_page_state(zone, NR_FREE_CMA_PAGES) +
			  READ_ONCE(zone->nr_free_highatomic));
	return want > have ? want - have : 0;
}

/* Pages that kswapd may reclaim; zone_reclaimable_pages() has free ones where there are none. */
static unsigned long cohort_zone_lists(struct zone *zone)
{
	unsigned long nr = zone_page_state(zone, NR_ZONE_INACTIVE_FILE) +
			   zone_page_state(zone, NR_ZONE_ACTIVE_FILE);

	if (get_nr_swap_pages() > 0)
		nr += zone_page_state(zone, NR_ZONE_INACTIVE_ANON) +
		      zone_page_state(zone, NR_ZONE_ACTIVE_ANON);
	return nr;
}

/**
 * cohort_kswapd_target() - pages kswapd aims at in one go
 * @pgdat: node
 * @highest_zoneidx: highest zone that may be used
 * @order: what it was woken for
 * @stock: what it would aim at
 *
 * One zone that is all right is enough for a node to be; so what is missing is what it takes
 * for the one that is soonest all right.  Reclaim goes by the node's LRU lists: a zone gets of it
 * its share of them.
 */
unsigned long cohort_kswapd_target(struct pglist_data *pgdat, int highest_zoneidx,
				   int order, unsigned long stock)
{
	unsigned long lru = 0, missing = ULONG_MAX;
	struct zone *zone;
	int i;

	/* Then it looks for buffer heads in zones that the request has no use for. */
	if (buffer_heads_over_limit)
		return stock;
	for (i = 0; i <= highest_zoneidx; i++)
		lru += cohort_zone_lists(&pgdat->node_zones[i]);
	for (i = 0; i <= highest_zoneidx; i++) {
		zone = &pgdat->node_zones[i];
		if (managed_zone(zone))
			missing = min(missing, cohort_run_missing(
						cohort_zone_lacks(zone, highest_zoneidx),
						cohort_zone_lists(zone), lru));
	}
	return cohort_run_target(stock, missing,
				 max(compact_gap(order), SWAP_CLUSTER_MAX));
}

/**
 * __cohort_watermark_gap() - pages between two watermarks of a zone
 * @zone: zone
 * @stock: as stock has it
 *
 * Not wider than the widest that an administrator can ask for: with more than half of the zone
 * between two marks it would never be balanced.
 */
unsigned long __cohort_watermark_gap(struct zone *zone, unsigned long stock)
{
	unsigned long most = mult_frac(zone_managed_pages(zone), COHORT_GAP_WIDEST, 10000UL);

	return min(stock * READ_ONCE(cohort_gap) / COHORT_GAP_STOCK, max(stock, most));
}

static int cohort_sizing_start(void)
{
	int err = register_trace_mm_vmscan_direct_reclaim_end(cohort_probe_own_reclaim, NULL);

	if (err) {
		pr_err("rightsize: no probe of direct reclaim (%d), staying off\n", err);
		return err;
	}
	cohort_sizer_init(&cohort_sizer);
	cohort_refaulted = cohort_refaults();
	atomic_long_set(&cohort_evicted, 0);
	atomic_long_set(&cohort_direct, 0);
	static_branch_enable(&cohort_sizing_key);
	static_branch_inc(&cohort_reclaim_key);
	return 0;
}

static void cohort_sizing_stop(void)
{
	static_branch_dec(&cohort_reclaim_key);
	static_branch_disable(&cohort_sizing_key);
	unregister_trace_mm_vmscan_direct_reclaim_end(cohort_probe_own_reclaim, NULL);
	tracepoint_synchronize_unregister();
	cancel_work_sync(&cohort_sizer_item);
	cohort_sizer.gap = COHORT_GAP_STOCK;
	cohort_gap_set(COHORT_GAP_STOCK);
}

static void cohort_scope_note_task(struct task_struct *task)
{
	cohort_scope_note(task->mm, task->signal->oom_score_adj);
}

/* Bring the parts to where the switches say; with cohort_mutex. */
static int cohort_rightsize_apply(void)
{
	bool sizing = cohort_rightsize_on && cohort_sizing_wanted;
	bool scope = cohort_rightsize_on && cohort_scope_wanted;
	int err = 0;

	lockdep_assert_held(&cohort_mutex);
	if (sizing != static_key_enabled(&cohort_sizing_key)) {
		if (sizing)
			err = cohort_sizing_start();
		else
			cohort_sizing_stop();
	}
	if (err)
		return err;
	if (scope == static_key_enabled(&cohort_scope_key))
		return 0;
	if (scope) {
		static_branch_enable(&cohort_scope_key);
		/* Roles written while the key was off. */
		cohort_each_process(cohort_scope_note_task);
	} else {
		static_branch_disable(&cohort_scope_key);
	}
	return 0;
}

/* One of the three switches; on error it stays as it was. */
static int cohort_rightsize_set(bool *which, bool on)
{
	bool was;
	int err;

	mutex_lock(&cohort_mutex);
	was = *which;
	*which = on;
	err = cohort_rightsize_apply();
	if (err)
		*which = was;
	if (!err && which == &cohort_rightsize_on && was != on)
		pr_info("rightsize: %s\n", on ? "on" : "off");
	mutex_unlock(&cohort_mutex);
	return err;
}

/**
 * cohort_rightsize_switch() - turn right-sized reclaim on or off
 * @on: what to do
 *
 * Goes with every other scheme.
 *
 * Context: sleeps.
 * Return: 0 or a negative errno; without tracepoints in the kernel -ENOSYS.
 */
int cohort_rightsize_switch(bool on)
{
	return cohort_rightsize_set(&cohort_rightsize_on, on);
}

/* /sys/kernel/mm/cohort/rightsize/ */

static ssize_t cohort_store_bool(const char *name, const char *buf, size_t len, bool *which)
{
	bool on;

	if (kstrtobool(buf, &on))
		return cohort_store_refused(name, buf, "0 or 1");
	return cohort_rightsize_set(which, on) ?: len;
}

#define RIGHTSIZE_SWITCH(_name, _which)					\
static ssize_t cohort_rightsize_##_name##_show(struct kobject *kobj,	\
					       struct kobj_attribute *attr, char *buf) \
{									\
	return sysfs_emit(buf, "%d\n", READ_ONCE(_which));		\
}									\
									\
static ssize_t cohort_rightsize_##_name##_store(struct kobject *kobj,	\
						struct kobj_attribute *attr, \
						const char *buf, size_t len) \
{									\
	return cohort_store_bool("rightsize/" #_name, buf, len, &(_which)); \
}									\
COHORT_ATTR_RW(cohort_rightsize, _name)

RIGHTSIZE_SWITCH(enabled, cohort_rightsize_on);
RIGHTSIZE_SWITCH(scope, cohort_scope_wanted);
RIGHTSIZE_SWITCH(sizing, cohort_sizing_wanted);

static ssize_t cohort_rightsize_background_adj_show(struct kobject *kobj,
						    struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(cohort_background_adj));
}

static ssize_t cohort_rightsize_background_adj_store(struct kobject *kobj,
						     struct kobj_attribute *attr,
						     const char *buf, size_t len)
{
	int adj;

	if (kstrtoint(buf, 10, &adj) || adj < COHORT_BACKGROUND_MIN ||
	    adj > OOM_SCORE_ADJ_MAX + 1)
		return cohort_store_refused("rightsize/background_adj", buf, "%d to %d",
					    COHORT_BACKGROUND_MIN, OOM_SCORE_ADJ_MAX + 1);
	WRITE_ONCE(cohort_background_adj, adj);
	return len;
}
COHORT_ATTR_RW(cohort_rightsize, background_adj);

static ssize_t cohort_rightsize_read_around_pages_show(struct kobject *kobj,
						       struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(cohort_read_around_pages));
}

static ssize_t cohort_rightsize_read_around_pages_store(struct kobject *kobj,
							struct kobj_attribute *attr,
							const char *buf, size_t len)
{
	return cohort_store_uint("rightsize/read_around_pages", buf, len,
				 &cohort_read_around_pages, 0, COHORT_READ_AROUND_MAX);
}
COHORT_ATTR_RW(cohort_rightsize, read_around_pages);

#define RIGHTSIZE_VALUE(_name, _value)					\
static ssize_t cohort_rightsize_##_name##_show(struct kobject *kobj,	\
					       struct kobj_attribute *attr, char *buf) \
{									\
	return sysfs_emit(buf, "%u\n", READ_ONCE(_value));		\
}									\
COHORT_ATTR_RO(cohort_rightsize, _name)

RIGHTSIZE_VALUE(gap, cohort_gap);
RIGHTSIZE_VALUE(direct_share, cohort_sizer.direct_share);

static struct attribute *rightsize_attrs[] = {
	&cohort_rightsize_enabled_attr.attr,
	&cohort_rightsize_scope_attr.attr,
	&cohort_rightsize_sizing_attr.attr,
	&cohort_rightsize_background_adj_attr.attr,
	&cohort_rightsize_read_around_pages_attr.attr,
	&cohort_rightsize_gap_attr.attr,
	&cohort_rightsize_direct_share_attr.attr,
	NULL,
};

const struct attribute_group cohort_rightsize_group = {
	.name = "rightsize",
	.attrs = rightsize_attrs,
};
