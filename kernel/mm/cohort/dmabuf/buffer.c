// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of an I/O buffer: pages of the dma-buf system heap counted by
 * order, and the time spent zeroing them apart from the time spent finding
 * them.  Off until /sys/kernel/mm/cohort/buffer/enabled is written.
 *
 * And what the stock heap could do for large pieces, to be compared with: see
 * /sys/kernel/mm/cohort/buffer/compact.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpuset.h>
#include <linux/highmem.h>
#include <linux/kobject.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sysfs.h>

#include "../cohort.h"
#include "../pcpa/pcpa.h"
#include "../region/region.h"
#include "../vnode/vnode.h"
#include "buffer.h"

static DEFINE_STATIC_KEY_FALSE(cohort_buffer_key);
static DEFINE_STATIC_KEY_FALSE(cohort_buffer_compact_key);

/* As the boot line has them: the system heap's own where the first one is 0. */
unsigned int cohort_buffer_orders[COHORT_HEAP_ORDERS] __ro_after_init;

static atomic64_t cohort_buffer_count[MAX_PAGE_ORDER + 1];
static atomic64_t cohort_buffer_zero_ns;

/**
 * cohort_heap_orders() - the orders of which the system heap makes buffers
 * @orders: COHORT_HEAP_ORDERS of them; overwritten if the boot line has others
 */
void cohort_heap_orders(unsigned int *orders)
{
	if (cohort_buffer_orders[0])
		memcpy(orders, cohort_buffer_orders, sizeof(cohort_buffer_orders));
}
EXPORT_SYMBOL_GPL(cohort_heap_orders);

/**
 * cohort_buffer_zero() - zero a piece, let others run, and count the time
 * @page: its first page
 * @nr: pages
 */
void cohort_buffer_zero(struct page *page, unsigned long nr)
{
	u64 start = ktime_get_ns();
	unsigned long i;

	for (i = 0; i < nr; i++) {
		clear_highpage(page + i);
		cond_resched();
	}
	atomic64_add(ktime_get_ns() - start, &cohort_buffer_zero_ns);
}

/*
 * The nearest node that the task's role has; none for tasks with a memory policy, and those
 * whose cpuset has other nodes: they get what is free in theirs.
 */
static int cohort_buffer_node(void)
{
	int nid = numa_mem_id();

	if (cohort_vnode_enabled())
		nid = cohort_vnode_home(nid);
	return !cohort_task_policy() &&
	       cpuset_zone_allowed(NODE_DATA(nid)->node_zones,
				   current_gfp_context(GFP_HIGHUSER)) ? nid : NUMA_NO_NODE;
}

/*
 * The heap asks for large pages without __GFP_RECLAIM, and so without telling
 * kswapd.  Where they are rare that does not matter: the single pages asked
 * for next tell it.  Where a whole buffer is made of large ones nothing would,
 * until memory is down to the min watermark and a task has to reclaim for itself.
 */
static void cohort_buffer_wake_kswapd(int nid)
{
	enum zone_type idx = gfp_zone(GFP_HIGHUSER);
	struct zoneref *z;
	struct zone *zone;

	z = first_zones_zonelist(node_zonelist(nid, GFP_HIGHUSER), idx, NULL);
	zone = zonelist_zone(z);
	if (zone && cohort_blocks_short(zone)) {
		cohort_pack_wake(zone->zone_pgdat);
		wakeup_kswapd(zone, GFP_HIGHUSER, 0, idx);
	}
}

/**
 * cohort_buffer_done() - zero a piece that came from elsewhere, and count it
 * @page: its first page, allocated without __GFP_ZERO
 * @nr: pages
 * @order: of the piece, or -1 if it has none
 */
void cohort_buffer_done(struct page *page, unsigned long nr, int order)
{
	if (!want_init_on_alloc(0))
		cohort_buffer_zero(page, nr);
	if (order >= 0 && static_branch_unlikely(&cohort_buffer_key))
		atomic64_inc(&cohort_buffer_count[order]);
}

/*
 * The heap asks for large pieces with neither reclaim nor compaction.  With the
 * switch on it compacts once for each: its flags have __GFP_NORETRY.
 */
static gfp_t cohort_buffer_flags(gfp_t gfp, unsigned int order)
{
	if (order && static_branch_unlikely(&cohort_buffer_compact_key))
		gfp |= __GFP_RECLAIM;
	return gfp;
}

/* Single pages are what the vmalloc domain is for; larger ones stay whole. */
static struct page *cohort_buffer_pages_noprof(gfp_t gfp, unsigned int order)
{
	struct page *page;
	int nid;

	if (!cohort_region_enabled())
		return alloc_pages_noprof(cohort_buffer_flags(gfp, order), order);
	if (!order)
		return cohort_vmalloc_page_noprof(gfp, NUMA_NO_NODE);
	nid = cohort_buffer_node();
	cohort_buffer_wake_kswapd(nid == NUMA_NO_NODE ? numa_mem_id() : nid);
	page = alloc_pages_noprof(gfp, order);
	if (!page && nid != NUMA_NO_NODE && order <= cohort_block_order() &&
	    cohort_region_drop(nid, current_gfp_context(GFP_HIGHUSER)))
		page = alloc_pages_noprof(gfp, order);
	return page;
}

static struct page *cohort_buffer_piece(gfp_t gfp, unsigned int order, bool area)
{
	struct page *page = cohort_buffer_pages_noprof(gfp, order);

	return page || !area || !cohort_pcpa_taking() ? page : cohort_pcpa_heap_page(gfp, order);
}

static struct page *cohort_buffer_measured(gfp_t gfp, unsigned int order, bool area)
{
	struct page *page;

	if (!static_branch_unlikely(&cohort_buffer_key))
		return cohort_buffer_piece(gfp, order, area);
	page = cohort_buffer_piece(gfp & ~__GFP_ZERO, order, area);
	if (!page)
		return NULL;
	if ((gfp & __GFP_ZERO) && !want_init_on_alloc(gfp & ~__GFP_ZERO))
		cohort_buffer_zero(page, 1UL << order);
	atomic64_inc(&cohort_buffer_count[order]);
	return page;
}

/**
 * cohort_buffer_alloc() - allocate pages of an I/O buffer
 * @gfp: flags, usually with __GFP_ZERO
 * @order: order of the piece
 *
 * The same pages as alloc_pages() gives; while measuring, zeroing happens
 * here instead of inside the allocator.
 */
struct page *cohort_buffer_alloc_noprof(gfp_t gfp, unsigned int order)
{
	return cohort_buffer_measured(gfp, order, true);
}
EXPORT_SYMBOL_GPL(cohort_buffer_alloc_noprof);

/**
 * cohort_buffer_ordinary() - the same, and not of the area
 * @gfp: flags, usually with __GFP_ZERO
 * @order: order of the piece
 */
struct page *cohort_buffer_ordinary_noprof(gfp_t gfp, unsigned int order)
{
	return cohort_buffer_measured(gfp, order, false);
}

/* /sys/kernel/mm/cohort/buffer/ */

/* @which: an order, or MAX_PAGE_ORDER + 1 for the nanoseconds spent zeroing. */
static ssize_t cohort_buffer_read(unsigned int which, char *buf)
{
	s64 value = which > MAX_PAGE_ORDER ?
		    atomic64_read(&cohort_buffer_zero_ns) :
		    atomic64_read(&cohort_buffer_count[which]);

	return sysfs_emit(buf, "%lld\n", value);
}

static int cohort_buffer_measure(bool on)
{
	if (on)
		static_branch_enable(&cohort_buffer_key);
	else
		static_branch_disable(&cohort_buffer_key);
	return 0;
}

COHORT_ATTR_SWITCH(buffer, cohort_buffer_key, cohort_buffer_measure);

static int cohort_buffer_compact(bool on)
{
	if (on)
		static_branch_enable(&cohort_buffer_compact_key);
	else
		static_branch_disable(&cohort_buffer_compact_key);
	return 0;
}

COHORT_ATTR_KEY(buffer, compact, cohort_buffer_compact_key, cohort_buffer_compact);

#define BUFFER_COUNTER(_name, _which)					\
static ssize_t cohort_buffer_##_name##_show(struct kobject *kobj,	\
					    struct kobj_attribute *attr, char *buf) \
{									\
	return cohort_buffer_read(_which, buf);				\
}									\
COHORT_ATTR_ROOT(cohort_buffer, _name)

BUFFER_COUNTER(order0, 0);
BUFFER_COUNTER(order4, 4);
BUFFER_COUNTER(order8, 8);
BUFFER_COUNTER(order9, 9);
BUFFER_COUNTER(zero_ns, MAX_PAGE_ORDER + 1);

static struct attribute *buffer_attrs[] = {
	&cohort_buffer_enabled_attr.attr,
	&cohort_buffer_compact_attr.attr,
	&cohort_buffer_order0_attr.attr,
	&cohort_buffer_order4_attr.attr,
	&cohort_buffer_order8_attr.attr,
	&cohort_buffer_order9_attr.attr,
	&cohort_buffer_zero_ns_attr.attr,
	NULL,
};

const struct attribute_group cohort_buffer_group = {
	.name = "buffer",
	.attrs = buffer_attrs,
};
