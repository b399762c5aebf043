/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cohort: what drivers call.  Contiguous pages of the page-cache-preferred area, which
 * holds page cache until a client needs them, and pages of I/O buffers.
 */
#ifndef _LINUX_COHORT_PCPA_H
#define _LINUX_COHORT_PCPA_H

#include <linux/align.h>
#include <linux/cohort.h>
#include <linux/gfp.h>
#include <linux/sizes.h>

struct page *cohort_pcpa_alloc(unsigned long nr, gfp_t gfp);
void cohort_pcpa_free(struct page *page, unsigned long nr);

struct page *cohort_buffer_alloc_noprof(gfp_t gfp, unsigned int order);
#define cohort_buffer_alloc(gfp, order) \
	alloc_hooks(IS_ENABLED(CONFIG_COHORT) ? cohort_buffer_alloc_noprof(gfp, order) : \
						alloc_pages_noprof(gfp, order))

/* The system heap's table of orders, which the boot line may overwrite. */
#ifdef CONFIG_COHORT
#define cohort_heap_table __ro_after_init unsigned int
void cohort_heap_orders(unsigned int *orders);
#else
#define cohort_heap_table const unsigned int
#define cohort_heap_orders(orders) do { } while (0)
#endif

/**
 * cohort_buffer_order() - how large the next piece of an I/O buffer may be
 * @order: of the last piece
 * @left: bytes of the buffer that are missing
 *
 * The heap never asks for more than it got last, as on the free lists nothing
 * larger turns up.  With regions memory is short for a moment, not in pieces:
 * as soon as kswapd has caught up, or an app has died, there are blocks.  So the
 * heap asks anew after each MiB, and not for every page.
 *
 * Return: the largest order to ask for.
 */
static inline unsigned int cohort_buffer_order(unsigned int order, unsigned long left)
{
	return cohort_region_enabled() && IS_ALIGNED(left, SZ_1M) ? MAX_PAGE_ORDER : order;
}

#endif /* _LINUX_COHORT_PCPA_H */
