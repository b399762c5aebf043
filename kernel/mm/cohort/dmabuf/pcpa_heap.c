// SPDX-License-Identifier: GPL-2.0
/*
 * The dma-buf heaps of the page-cache-preferred area.
 *
 *	pcpa		for devices behind an IOMMU: pieces of the area, as large
 *			as they come, and ordinary pages for what it has not
 *	pcpa-contig	one piece, or an error in bounded time
 *
 * A process that may open the heap is entitled, as far as its memory cgroup and its user may
 * have more (quota.c): its file has an owner and a mode.  Unlike
 * an entitled process's other requests these do not try the ordinary free
 * lists first, so that starting a camera takes nothing away from others.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/init.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "../cohort.h"
#include "../pcpa/pcpa.h"
#include "buffer.h"
#include "heap.h"

/* Orders of a piece, as the system heap has them: what IOMMUs like. */
static const unsigned int orders[] = { COHORT_CHUNK_ORDER, 4, 0 };

#define SMALL_GFP	GFP_HIGHUSER
#define LARGE_GFP	(((GFP_HIGHUSER | __GFP_NOWARN | __GFP_NORETRY) & ~__GFP_RECLAIM) | \
			 __GFP_COMP)

static void cohort_heap_release_pieces(struct cohort_buffer *buffer)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(&buffer->table, sg, i) {
		__free_pages(sg_page(sg), compound_order(sg_page(sg)));
		cond_resched();
	}
}

static void cohort_heap_release_run(struct cohort_buffer *buffer)
{
	cohort_pcpa_free(sg_page(buffer->table.sgl), buffer->len >> PAGE_SHIFT);
}

static struct page *cohort_heap_area_piece(unsigned long left, unsigned int max_order)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		struct page *page;

		if (orders[i] > max_order || left < 1UL << orders[i] ||
		    orders[i] < READ_ONCE(cohort_pcpa_min_order))
			continue;
		page = cohort_pcpa_piece(SMALL_GFP | __GFP_COMP, orders[i]);
		if (page)
			return page;
	}
	return NULL;
}

static struct page *cohort_heap_other_piece(unsigned long left, unsigned int max_order)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		gfp_t gfp = (orders[i] ? LARGE_GFP : SMALL_GFP) | __GFP_ZERO;
		struct page *page;

		if (orders[i] > max_order || left < 1UL << orders[i])
			continue;
		page = cohort_buffer_ordinary(gfp, orders[i]);
		if (page)
			return page;
	}
	return NULL;
}

static void cohort_heap_free_list(struct list_head *pages)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, pages, lru) {
		__free_pages(page, compound_order(page));
		cond_resched();
	}
}

/*
 * Pieces of the area, if it has any, as far as it goes, largest first; then others.
 * Return: how many, or a negative errno with nothing allocated.
 */
static int cohort_heap_collect_pieces(unsigned long left, bool area, struct list_head *pages)
{
	unsigned int max_area = orders[0], max_other = orders[0];
	int nr = 0;

	while (left) {
		struct page *page = NULL;
		unsigned int order;

		if (fatal_signal_pending(current)) {
			cohort_heap_free_list(pages);
			return -EINTR;
		}
		/* To find that there is none is a look at all of the area: once. */
		if (area)
			page = cohort_heap_area_piece(left, max_area);
		area = page;
		if (page) {
			max_area = compound_order(page);
			cohort_buffer_done(page, 1UL << max_area, max_area);
		} else {
			page = cohort_heap_other_piece(left, max_other);
			if (!page) {
				cohort_heap_free_list(pages);
				return -ENOMEM;
			}
		}
		list_add_tail(&page->lru, pages);
		order = compound_order(page);
		left -= 1UL << order;
		if (!area)
			max_other = cohort_buffer_order(order, left << PAGE_SHIFT);
		nr++;
		cond_resched();
	}
	return nr;
}

static int cohort_heap_collect(unsigned long pages, struct list_head *list)
{
	unsigned long wanted = min(pages, READ_ONCE(cohort_area.nr));
	int nr;

	if (!cohort_pcpa_taking())
		return cohort_heap_collect_pieces(pages, false, list);
	cohort_pcpa_want(wanted);
	cohort_quick_reclaim(pages, READ_ONCE(cohort_pcpa_min_order));
	nr = cohort_heap_collect_pieces(pages, true, list);
	cohort_pcpa_done(wanted);
	return nr;
}

static struct dma_buf *cohort_heap_pieces_allocate(struct dma_heap *heap, unsigned long len,
						   u32 fd_flags, u64 heap_flags)
{
	struct cohort_buffer *buffer = cohort_heap_buffer(PAGE_ALIGN(len), false,
							  cohort_heap_release_pieces);
	struct page *page, *next;
	struct scatterlist *sg;
	LIST_HEAD(pages);
	int nr;

	if (IS_ERR(buffer))
		return ERR_CAST(buffer);
	nr = cohort_heap_collect(buffer->len >> PAGE_SHIFT, &pages);
	if (nr < 0 || sg_alloc_table(&buffer->table, nr, GFP_KERNEL)) {
		if (nr >= 0)
			cohort_heap_free_list(&pages);
		cohort_heap_discard(buffer);
		return ERR_PTR(nr < 0 ? nr : -ENOMEM);
	}
	sg = buffer->table.sgl;
	list_for_each_entry_safe(page, next, &pages, lru) {
		list_del(&page->lru);
		sg_set_page(sg, page, page_size(page), 0);
		sg = sg_next(sg);
	}
	return cohort_heap_export(heap, buffer, fd_flags);
}

static struct dma_buf *cohort_heap_contig_allocate(struct dma_heap *heap, unsigned long len,
						   u32 fd_flags, u64 heap_flags)
{
	struct cohort_buffer *buffer = cohort_heap_buffer(PAGE_ALIGN(len), true,
							  cohort_heap_release_run);
	unsigned long nr = PAGE_ALIGN(len) >> PAGE_SHIFT;
	struct page *page;

	if (IS_ERR(buffer))
		return ERR_CAST(buffer);
	page = sg_alloc_table(&buffer->table, 1, GFP_KERNEL) ? ERR_PTR(-ENOMEM) :
							       cohort_pcpa_alloc(nr, GFP_KERNEL);
	if (IS_ERR(page)) {
		cohort_heap_discard(buffer);
		return ERR_CAST(page);
	}
	cohort_buffer_done(page, nr, -1);
	return cohort_heap_one_piece(heap, buffer, page, fd_flags);
}

static const struct dma_heap_ops pieces_ops = { .allocate = cohort_heap_pieces_allocate };
static const struct dma_heap_ops contig_ops = { .allocate = cohort_heap_contig_allocate };

static int __init cohort_pcpa_heaps_init(void)
{
	const struct dma_heap_export_info infos[] = {
		{ .name = "pcpa", .ops = &pieces_ops },
		{ .name = "pcpa-contig", .ops = &contig_ops },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(infos); i++) {
		struct dma_heap *heap = dma_heap_add(&infos[i]);

		if (IS_ERR(heap))
			return PTR_ERR(heap);
	}
	return 0;
}
device_initcall(cohort_pcpa_heaps_init);
