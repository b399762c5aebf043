// SPDX-License-Identifier: GPL-2.0
/*
 * Which pages reclaim takes first, and what comes back with a page that had
 * been taken: the scope of right-sized reclaim.
 *
 *	background	what processes in the background touch is no reason to
 *			keep it, nor is it that they die: vma_has_recency() says
 *			no for them, which aging, eviction, faults and unmapping
 *			of both LRUs ask already
 *	touched		a mapped file page that was used while it was inactive
 *			becomes active the first time reclaim meets it, as it
 *			does under MGLRU; stock asks for a second use
 *	read-around	a fault on a page that had been evicted reads what
 *			follows it, fewer pages than a first read takes around
 *			it, unless it was evicted lately from the working set
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/pagemap.h>
#include <linux/sched/coredump.h>
#include <linux/swap.h>
#include <linux/xarray.h>

#include "cohort.h"
#include "filemap.h"
#include "rightsize.h"

DEFINE_STATIC_KEY_FALSE(cohort_scope_key);

int cohort_background_adj __read_mostly = COHORT_BACKGROUND_ADJ;
unsigned int cohort_read_around_pages __read_mostly = COHORT_READ_AROUND;

/**
 * cohort_scope_note() - the role of a process changed
 * @mm: its address space
 * @oom_score_adj: what was written
 *
 * Noted whether or not anybody chooses pages now, so that switching on finds
 * most processes where they belong.
 */
void cohort_scope_note(struct mm_struct *mm, int oom_score_adj)
{
	if (!IS_ENABLED(CONFIG_64BIT))
		return;
	if (oom_score_adj >= READ_ONCE(cohort_background_adj))
		set_bit(COHORT_MMF_BACKGROUND, &mm->flags);
	else
		clear_bit(COHORT_MMF_BACKGROUND, &mm->flags);
}

/**
 * __cohort_read_around() - how far to read with a page that a fault misses
 * @ractl: the readahead; its index is the page, its window stock's
 *
 * Most of what is read around a refault had been evicted without being used
 * and would be again.  But a page of the working set that went too early was
 * not alone: what lies around it is missing as well, and stock's window brings
 * it back in one go.  The last quarter still starts readahead when it is
 * reached.  A first read of a page, and files whose window is small, are left
 * as they are.
 */
void __cohort_read_around(struct readahead_control *ractl)
{
	unsigned int pages = READ_ONCE(cohort_read_around_pages);
	struct file_ra_state *ra = ractl->ra;
	bool workingset = false;
	void *shadow;

	if (!pages || pages >= ra->size)
		return;
	shadow = xa_load(&ractl->mapping->i_pages, readahead_index(ractl));
	if (!xa_is_value(shadow) ||
	    (workingset_test_recent(shadow, true, &workingset, false) && workingset))
		return;
	ra->start = readahead_index(ractl);
	ra->size = pages;
	ra->async_size = pages / 4;
}
