// SPDX-License-Identifier: GPL-2.0
/*
 * The yield of each reclaim, by its task and its purpose: histograms in
 * /sys/kernel/mm/cohort/reclaim/.
 *
 * All but one are fed by tracepoints the kernel has, whose probes are there
 * only while they are measured.  The pages of a kswapd run have none; mm/vmscan.c
 * calls cohort_kswapd_ran().
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/kobject.h>
#include <linux/percpu.h>
#include <linux/swap.h>
#include <linux/sysfs.h>
#include <linux/tracepoint.h>
#include <trace/events/kmem.h>
#include <trace/events/vmscan.h>

#include "../cohort.h"
#include "rightsize.h"

DEFINE_STATIC_KEY_FALSE(cohort_reclaim_key);
DEFINE_STATIC_KEY_FALSE(cohort_kswapd_off_key);

/**
 * struct cohort_sizes - what one CPU has seen since measuring began
 * @count: reclaims by kind and bucket
 * @sum: pages (slab: objects) by kind
 * @order: allocations by order
 *
 * Plain counters: a probe that interrupts another may lose one.
 */
struct cohort_sizes {
	unsigned long count[COHORT_NR_SIZES][COHORT_SIZE_BUCKETS];
	unsigned long sum[COHORT_NR_SIZES];
	unsigned long order[NR_PAGE_ORDERS];
};

static DEFINE_PER_CPU(struct cohort_sizes, cohort_sizes);
static bool cohort_measuring;	/* under cohort_mutex */

static void cohort_size_note(enum cohort_size kind, unsigned long nr)
{
	this_cpu_inc(cohort_sizes.count[kind][cohort_size_bucket(nr)]);
	this_cpu_add(cohort_sizes.sum[kind], nr);
}

/**
 * __cohort_kswapd_ran() - kswapd is done with a node for now
 * @nid: the node
 * @nr: pages it reclaimed since it woke up
 */
void __cohort_kswapd_ran(int nid, unsigned long nr)
{
	/* Sizing calls this, too, whether or not sizes are counted. */
	if (READ_ONCE(cohort_measuring))
		cohort_size_note(COHORT_SIZE_KSWAPD, nr);
	cohort_sizer_ran(nid, nr);
}

static void cohort_probe_direct(void *unused, unsigned long nr)
{
	cohort_size_note(COHORT_SIZE_DIRECT, nr);
}

static void cohort_probe_node(void *unused, unsigned long nr)
{
	cohort_size_note(COHORT_SIZE_NODE, nr);
}

static void cohort_probe_lru(void *unused, int nid, unsigned long nr_scanned,
			     unsigned long nr, struct reclaim_stat *stat,
			     int priority, int file)
{
	cohort_size_note(current_is_kswapd() ? COHORT_SIZE_LRU_KSWAPD :
					       COHORT_SIZE_LRU_OTHER, nr);
}

static void cohort_probe_slab(void *unused, struct shrinker *shrinker, int nid,
			      int nr, long left_over, long deferred, long total)
{
	cohort_size_note(current_is_kswapd() ? COHORT_SIZE_SLAB_KSWAPD :
					       COHORT_SIZE_SLAB_OTHER, max(nr, 0));
}

static void cohort_probe_alloc(void *unused, struct page *page,
			       unsigned int order, gfp_t gfp, int migratetype)
{
	if (page && order < NR_PAGE_ORDERS)
		this_cpu_inc(cohort_sizes.order[order]);
}

#define COHORT_PROBES	5

/* The first @nr of the probes, in the order in which they are added. */
static void cohort_probes_remove(unsigned int nr)
{
	switch (nr) {
	case COHORT_PROBES:
		unregister_trace_mm_page_alloc(cohort_probe_alloc, NULL);
		fallthrough;
	case 4:
		unregister_trace_mm_shrink_slab_end(cohort_probe_slab, NULL);
		fallthrough;
	case 3:
		unregister_trace_mm_vmscan_lru_shrink_inactive(cohort_probe_lru, NULL);
		fallthrough;
	case 2:
		unregister_trace_mm_vmscan_node_reclaim_end(cohort_probe_node, NULL);
		fallthrough;
	case 1:
		unregister_trace_mm_vmscan_direct_reclaim_end(cohort_probe_direct, NULL);
	}
	tracepoint_synchronize_unregister();
}

static int cohort_probes_add(void)
{
	unsigned int nr = 0;
	int err;

	err = register_trace_mm_vmscan_direct_reclaim_end(cohort_probe_direct, NULL);
	if (!err && ++nr)
		err = register_trace_mm_vmscan_node_reclaim_end(cohort_probe_node, NULL);
	if (!err && ++nr)
		err = register_trace_mm_vmscan_lru_shrink_inactive(cohort_probe_lru, NULL);
	if (!err && ++nr)
		err = register_trace_mm_shrink_slab_end(cohort_probe_slab, NULL);
	if (!err && ++nr)
		err = register_trace_mm_page_alloc(cohort_probe_alloc, NULL);
	if (err) {
		pr_err("reclaim: no probes (%d), not measuring\n", err);
		cohort_probes_remove(nr);
	}
	return err;
}

static void cohort_sizes_reset(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(&cohort_sizes, cpu), 0, sizeof(struct cohort_sizes));
}

/**
 * cohort_reclaim_measure() - count sizes, from zero, or stop counting
 * @on: what to do
 *
 * Context: sleeps.
 * Return: 0 or a negative errno; without tracepoints in the kernel -ENOSYS.
 */
int cohort_reclaim_measure(bool on)
{
	int err = 0;

	mutex_lock(&cohort_mutex);
	if (on != cohort_measuring) {
		if (on) {
			cohort_sizes_reset();
			err = cohort_probes_add();
		} else {
			cohort_probes_remove(COHORT_PROBES);
		}
		if (!err) {
			cohort_measuring = on;
			if (on)
				static_branch_inc(&cohort_reclaim_key);
			else
				static_branch_dec(&cohort_reclaim_key);
		}
	}
	mutex_unlock(&cohort_mutex);
	return err;
}

static unsigned long cohort_sizes_sum(size_t offset)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*(unsigned long *)((char *)per_cpu_ptr(&cohort_sizes, cpu) +
						    offset));
	return sum;
}

/**
 * cohort_reclaim_sizes() - reclaims of one kind so far
 * @kind: which
 * @count: receives how many, by bucket
 *
 * Return: the sum of their sizes.
 */
unsigned long cohort_reclaim_sizes(enum cohort_size kind,
				   unsigned long count[COHORT_SIZE_BUCKETS])
{
	unsigned int i;

	for (i = 0; i < COHORT_SIZE_BUCKETS; i++)
		count[i] = cohort_sizes_sum(offsetof(struct cohort_sizes, count[kind][i]));
	return cohort_sizes_sum(offsetof(struct cohort_sizes, sum[kind]));
}

/**
 * cohort_reclaim_orders() - allocations so far
 * @count: receives how many, by order
 *
 * Pages from bulk requests and refills of the CPUs' lists are not in it.
 */
void cohort_reclaim_orders(unsigned long count[NR_PAGE_ORDERS])
{
	unsigned int i;

	for (i = 0; i < NR_PAGE_ORDERS; i++)
		count[i] = cohort_sizes_sum(offsetof(struct cohort_sizes, order[i]));
}

/* /sys/kernel/mm/cohort/reclaim/ */

static ssize_t cohort_emit_counts(char *buf, const unsigned long *count, unsigned int nr)
{
	ssize_t len = 0;
	unsigned int i;

	for (i = 0; i < nr; i++)
		len += sysfs_emit_at(buf, len, "%lu%c", count[i], i + 1 < nr ? ' ' : '\n');
	return len;
}

static ssize_t cohort_reclaim_enabled_show(struct kobject *kobj,
					   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(cohort_measuring));
}

static ssize_t cohort_reclaim_enabled_store(struct kobject *kobj, struct kobj_attribute *attr,
					    const char *buf, size_t len)
{
	return cohort_store_switch("reclaim/enabled", buf, len, cohort_reclaim_measure);
}
COHORT_ATTR_RW(cohort_reclaim, enabled);

static ssize_t cohort_reclaim_kswapd_show(struct kobject *kobj,
					  struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", !static_key_enabled(&cohort_kswapd_off_key));
}

static int cohort_reclaim_kswapd_switch(bool on)
{
	if (on)
		static_branch_disable(&cohort_kswapd_off_key);
	else
		static_branch_enable(&cohort_kswapd_off_key);
	return 0;
}

static ssize_t cohort_reclaim_kswapd_store(struct kobject *kobj, struct kobj_attribute *attr,
					   const char *buf, size_t len)
{
	return cohort_store_switch("reclaim/kswapd", buf, len, cohort_reclaim_kswapd_switch);
}
COHORT_ATTR_RW(cohort_reclaim, kswapd);

static ssize_t cohort_reclaim_alloc_orders_show(struct kobject *kobj, struct kobj_attribute *attr,
						char *buf)
{
	unsigned long count[NR_PAGE_ORDERS];

	cohort_reclaim_orders(count);
	return cohort_emit_counts(buf, count, NR_PAGE_ORDERS);
}
COHORT_ATTR_RO(cohort_reclaim, alloc_orders);

#define RECLAIM_SIZES(_name, _sum, _kind)				\
static ssize_t cohort_reclaim_##_name##_sizes_show(struct kobject *kobj, \
						   struct kobj_attribute *attr, char *buf) \
{									\
	unsigned long count[COHORT_SIZE_BUCKETS];			\
									\
	cohort_reclaim_sizes(_kind, count);				\
	return cohort_emit_counts(buf, count, COHORT_SIZE_BUCKETS);	\
}									\
COHORT_ATTR_RO(cohort_reclaim, _name##_sizes);				\
									\
static ssize_t cohort_reclaim_##_name##_##_sum##_show(struct kobject *kobj, \
						      struct kobj_attribute *attr, char *buf) \
{									\
	unsigned long count[COHORT_SIZE_BUCKETS];			\
									\
	return sysfs_emit(buf, "%lu\n", cohort_reclaim_sizes(_kind, count)); \
}									\
COHORT_ATTR_RO(cohort_reclaim, _name##_##_sum)

RECLAIM_SIZES(kswapd, pages, COHORT_SIZE_KSWAPD);
RECLAIM_SIZES(direct, pages, COHORT_SIZE_DIRECT);
RECLAIM_SIZES(node, pages, COHORT_SIZE_NODE);
RECLAIM_SIZES(lru_kswapd, pages, COHORT_SIZE_LRU_KSWAPD);
RECLAIM_SIZES(lru_other, pages, COHORT_SIZE_LRU_OTHER);
RECLAIM_SIZES(slab_kswapd, objects, COHORT_SIZE_SLAB_KSWAPD);
RECLAIM_SIZES(slab_other, objects, COHORT_SIZE_SLAB_OTHER);

static struct attribute *reclaim_attrs[] = {
	&cohort_reclaim_enabled_attr.attr,
	&cohort_reclaim_kswapd_attr.attr,
	&cohort_reclaim_alloc_orders_attr.attr,
	&cohort_reclaim_kswapd_sizes_attr.attr,
	&cohort_reclaim_kswapd_pages_attr.attr,
	&cohort_reclaim_direct_sizes_attr.attr,
	&cohort_reclaim_direct_pages_attr.attr,
	&cohort_reclaim_node_sizes_attr.attr,
	&cohort_reclaim_node_pages_attr.attr,
	&cohort_reclaim_lru_kswapd_sizes_attr.attr,
	&cohort_reclaim_lru_kswapd_pages_attr.attr,
	&cohort_reclaim_lru_other_sizes_attr.attr,
	&cohort_reclaim_lru_other_pages_attr.attr,
	&cohort_reclaim_slab_kswapd_sizes_attr.attr,
	&cohort_reclaim_slab_kswapd_objects_attr.attr,
	&cohort_reclaim_slab_other_sizes_attr.attr,
	&cohort_reclaim_slab_other_objects_attr.attr,
	NULL,
};

const struct attribute_group cohort_reclaim_group = {
	.name = "reclaim",
	.attrs = reclaim_attrs,
};
