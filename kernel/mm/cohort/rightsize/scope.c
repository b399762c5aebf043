// SPDX-License-Identifier: GPL-2.0
/*
 * Which pages reclaim takes first, and what comes back with a page that had
 * been taken: the scope of right-sized reclaim.
 *
 *	background	what processes in the background touch of files is no
 *			reason to keep it, nor that they die: vma_has_recency() says
 *			no for them, which aging, eviction, faults and unmapping
 *			of both LRUs ask already
 *	touched		a mapped file page that was used while it was inactive
 *			becomes active the first time reclaim meets it, as it
 *			does under MGLRU; stock asks for a second use
 *	read-around	a fault on a page that had been evicted reads what
 *			follows it, fewer pages than a first read takes around
 *			it, unless it was evicted lately from the working set;
 *			and goes on beyond only for a reader that reads on
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/blk-cgroup.h>
#include <linux/pagemap.h>
#include <linux/sched/coredump.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/xarray.h>

#include "../../internal.h"
#include "../cohort.h"
#include "../host/filemap.h"
#include "rightsize.h"

DEFINE_STATIC_KEY_FALSE(cohort_scope_key);

int cohort_background_adj __read_mostly = COHORT_BACKGROUND_ADJ;
unsigned int cohort_read_around_pages __read_mostly = COHORT_READ_AROUND;

/**
 * cohort_scope_note() - the role of a process changed
 * @mm: its address space
 * @oom_score_adj: what was written
 *
 * Where nothing asks for roles, none is noted; switching on looks at all processes once.
 */
void cohort_scope_note(struct mm_struct *mm, int oom_score_adj)
{
	if (oom_score_adj >= READ_ONCE(cohort_background_adj))
		set_bit(COHORT_MMF_BACKGROUND, &mm->flags);
	else
		clear_bit(COHORT_MMF_BACKGROUND, &mm->flags);
}

/**
 * __cohort_of_file() - has a mapping pages of a file alone?
 * @vma: a mapping of a process in the background
 *
 * Uses of these count for nothing.  What was written to a private mapping is anonymous, and
 * shared memory is swapped as that is: they age as all else, or are only swapped in again.
 */
bool __cohort_of_file(const struct vm_area_struct *vma)
{
	return vma->vm_file && !READ_ONCE(vma->anon_vma) &&
	       !shmem_mapping(vma->vm_file->f_mapping);
}

/* Evicted, and not of a working set that went too early: alone when it is missed. */
static bool cohort_missed_alone(struct address_space *mapping, pgoff_t index)
{
	void *shadow = xa_load(&mapping->i_pages, index);
	bool workingset = false;

	return xa_is_value(shadow) &&
	       !(workingset_test_recent(shadow, true, &workingset, false) && workingset);
}

/**
 * __cohort_read_around() - how far to read with a page that a fault misses
 * @ractl: the readahead; its index is the page, its window stock's
 *
 * Most of what is read around a refault had been evicted without being used
 * and would be again.  But a page of the working set that went too early was
 * not alone: what lies around it is missing as well, and stock's window brings
 * it back in one go.  A first read of a page, and files whose window is small,
 * are left as they are.
 *
 * Nor is the window a reason to read more: only where as much lies in the cache
 * before it, as a reader that goes through the file leaves it, does its last
 * quarter start readahead.
 *
 * Context: sleeps not; the mapping is kept by the file.
 */
void __cohort_read_around(struct readahead_control *ractl)
{
	unsigned int pages = READ_ONCE(cohort_read_around_pages);
	pgoff_t index = readahead_index(ractl), miss;
	struct file_ra_state *ra = ractl->ra;

	if (!pages || pages >= ra->size || !cohort_missed_alone(ractl->mapping, index))
		return;
	/* Where it finds no gap it names the last page it looked at. */
	rcu_read_lock();
	miss = page_cache_prev_miss(ractl->mapping, index - 1, pages + 1);
	rcu_read_unlock();
	ra->start = index;
	ra->size = pages;
	ra->async_size = index - 1 - miss >= pages ? max(pages / 4, 1U) : 0;
}

/**
 * __cohort_read_on() - a fault met the page that starts readahead
 * @vm_flags: of the area of memory
 * @ractl: the readahead; its index is the page
 * @folio: that page
 *
 * Stock reads a whole window on, and from where the next page is missing if it
 * was an older window that left the mark.  Where that page had been evicted this
 * brings back mostly unmissed pages.  So after a window that lay around a
 * page @cohort_read_around_pages are read, and after one that followed another,
 * stock's; the mark of an older window is taken away and that is all.
 *
 * Context: reads, if at all, as stock's readahead does.
 * Return: true if there is nothing left to do.
 */
bool __cohort_read_on(vm_flags_t vm_flags, struct readahead_control *ractl,
		      struct folio *folio)
{
	unsigned int pages = READ_ONCE(cohort_read_around_pages);
	struct file_ra_state *ra = ractl->ra;
	pgoff_t index = readahead_index(ractl), next = ra->start + ra->size;
	bool follows = index == round_down(next - ra->async_size, folio_nr_pages(folio));

	if (!pages || pages >= ra->ra_pages || (vm_flags & VM_SEQ_READ) ||
	    folio_test_writeback(folio) || blk_cgroup_congested())
		return false;
	/* Readahead makes windows that are followed from their first page on. */
	if (follows && ra->async_size == ra->size)
		return false;
	if (!follows) {
		rcu_read_lock();
		next = page_cache_next_miss(ractl->mapping, index + 1, ra->ra_pages);
		rcu_read_unlock();
	}
	if (!cohort_missed_alone(ractl->mapping, next))
		return false;
	folio_clear_readahead(folio);
	if (follows) {
		ra->start = next;
		ra->size = pages;
		ra->async_size = pages;
		ractl->_index = next;
		page_cache_ra_order(ractl, ra, folio_order(folio));
	}
	return true;
}
