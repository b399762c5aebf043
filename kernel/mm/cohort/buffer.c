// SPDX-License-Identifier: GPL-2.0
/*
 * What an I/O buffer costs: pages of the dma-buf system heap counted by
 * order, and the time spent zeroing them apart from the time spent finding
 * them.  Off until /sys/kernel/mm/cohort/buffer/enabled is written.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/highmem.h>
#include <linux/ktime.h>
#include <linux/mm.h>

#include "cohort.h"

DEFINE_STATIC_KEY_FALSE(cohort_buffer_key);

static atomic64_t cohort_buffer_count[MAX_PAGE_ORDER + 1];
static atomic64_t cohort_buffer_zero_ns;

static void cohort_buffer_zero(struct page *page, unsigned int order)
{
	u64 start = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < 1U << order; i++)
		clear_highpage(page + i);
	atomic64_add(ktime_get_ns() - start, &cohort_buffer_zero_ns);
}

/* Single pages are what the vmalloc domain is for; larger ones stay whole. */
static struct page *cohort_buffer_pages_noprof(gfp_t gfp, unsigned int order)
{
	if (cohort_region_enabled() && !order)
		return cohort_alloc_pages_noprof(gfp, numa_node_id(), NULL,
						 __cohort_vmalloc_domain());
	return alloc_pages_noprof(gfp, order);
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
	struct page *page;

	if (!static_branch_unlikely(&cohort_buffer_key))
		return cohort_buffer_pages_noprof(gfp, order);

	page = cohort_buffer_pages_noprof(gfp & ~__GFP_ZERO, order);
	if (!page)
		return NULL;
	if ((gfp & __GFP_ZERO) && !want_init_on_alloc(gfp & ~__GFP_ZERO))
		cohort_buffer_zero(page, order);
	atomic64_inc(&cohort_buffer_count[order]);
	return page;
}

/**
 * cohort_buffer_read() - a counter as text
 * @which: an order, or MAX_PAGE_ORDER + 1 for the nanoseconds spent zeroing
 * @buf: sysfs page
 */
ssize_t cohort_buffer_read(unsigned int which, char *buf)
{
	s64 value = which > MAX_PAGE_ORDER ?
		    atomic64_read(&cohort_buffer_zero_ns) :
		    atomic64_read(&cohort_buffer_count[which]);

	return sysfs_emit(buf, "%lld\n", value);
}
