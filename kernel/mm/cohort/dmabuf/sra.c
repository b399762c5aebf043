// SPDX-License-Identifier: GPL-2.0
/*
 * A statically reserved area: the baseline of the page-cache-preferred area.
 * Frames taken at boot for good, of which the dma-buf heap sra gives one
 * contiguous piece an I/O buffer, and no other user anything.
 */
#define pr_fmt(fmt) "cohort: sra: " fmt

#include <linux/bitmap.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/highmem.h>
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "../cohort.h"
#include "../pcpa/pcpa.h"
#include "buffer.h"
#include "heap.h"

static DEFINE_MUTEX(sra_lock);
static unsigned long sra_base;		/* first frame */
static unsigned long sra_nr;
static unsigned long *sra_used;

static u64 boot_size __initdata;
static u64 boot_base __initdata = COHORT_ANY_BASE;

static void cohort_sra_release(struct cohort_buffer *buffer)
{
	unsigned long i, nr = buffer->len >> PAGE_SHIFT;
	struct page *page = sg_page(buffer->table.sgl);

	for (i = 0; want_init_on_free() && i < nr; i++) {
		if (!PageHWPoison(page + i))
			clear_highpage(page + i);
		cond_resched();
	}
	mutex_lock(&sra_lock);
	bitmap_clear(sra_used, page_to_pfn(page) - sra_base, nr);
	mutex_unlock(&sra_lock);
}

/* Frames that have gone bad are given to no client any more.  Return: whether there are. */
static bool cohort_sra_drop_bad(unsigned long at, unsigned long nr)
{
	unsigned long i;
	bool bad = false;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE) || !atomic_long_read(&num_poisoned_pages))
		return false;
	for (i = at; i < at + nr; i++) {
		if (!PageHWPoison(pfn_to_page(sra_base + i)))
			continue;
		__set_bit(i, sra_used);
		bad = true;
	}
	return bad;
}

/* Return: the first frame's number here, or -1. */
static long cohort_sra_claim(unsigned long nr)
{
	unsigned long at;

	/* Functions of bitmaps count in 32 bits. */
	if (nr > sra_nr)
		return -1;
	mutex_lock(&sra_lock);
	do {
		at = bitmap_find_next_zero_area(sra_used, sra_nr, 0, nr, COHORT_GRANULE - 1);
	} while (at < sra_nr && cohort_sra_drop_bad(at, nr));
	if (at < sra_nr)
		bitmap_set(sra_used, at, nr);
	mutex_unlock(&sra_lock);
	return at < sra_nr ? at : -1;
}

static struct dma_buf *cohort_sra_allocate(struct dma_heap *heap, unsigned long len, u32 fd_flags,
					   u64 heap_flags)
{
	struct cohort_buffer *buffer = cohort_heap_buffer(PAGE_ALIGN(len), true,
							  cohort_sra_release);
	unsigned long nr = PAGE_ALIGN(len) >> PAGE_SHIFT;
	struct page *page;
	long at;

	if (IS_ERR(buffer))
		return ERR_CAST(buffer);
	at = sg_alloc_table(&buffer->table, 1, GFP_KERNEL) ? -1 : cohort_sra_claim(nr);
	if (at < 0) {
		cohort_heap_discard(buffer);
		return ERR_PTR(-ENOMEM);
	}
	page = pfn_to_page(sra_base + at);
	/* The page allocator has not seen them since boot, so that init_on_alloc is not for them. */
	cohort_buffer_zero(page, nr);
	return cohort_heap_one_piece(heap, buffer, page, fd_flags);
}

static const struct dma_heap_ops sra_ops = { .allocate = cohort_sra_allocate };

static int __init cohort_sra_setup(char *text)
{
	const char *why = text ? cohort_pcpa_parse(text, &boot_size, &boot_base) : "no size";

	if (why) {
		pr_err("cohort.sra=%s: %s; staying off\n", text ?: "", why);
		boot_size = 0;
	}
	return 0;
}
early_param("cohort.sra", cohort_sra_setup);

static int __init cohort_sra_reserve(void)
{
	const char *why = cohort_pcpa_refuse(boot_size, boot_base,
					     PFN_PHYS((u64)cohort_area_align()),
					     PFN_PHYS((u64)totalram_pages()));
	unsigned long nr = boot_size >> PAGE_SHIFT;

	if (!nr)
		return 0;
	if (!why) {
		sra_used = bitmap_zalloc(nr, GFP_KERNEL);
		sra_base = cohort_frames_find(NUMA_NO_NODE, nr, boot_base == COHORT_ANY_BASE ?
					      0 : PHYS_PFN(boot_base), ULONG_MAX);
		if (!sra_used || !sra_base)
			why = "no such piece of memory can be emptied";
	}
	if (why) {
		pr_err("%lluM: %s; staying off\n", boot_size >> 20, why);
		return 0;
	}
	sra_nr = nr;
	pr_info("%lluM\n", boot_size >> 20);
	return 0;
}
subsys_initcall_sync(cohort_sra_reserve);

static int __init cohort_sra_heap_init(void)
{
	const struct dma_heap_export_info info = { .name = "sra", .ops = &sra_ops };

	return sra_nr ? PTR_ERR_OR_ZERO(dma_heap_add(&info)) : 0;
}
device_initcall(cohort_sra_heap_init);
