// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of quick reclaims: which of the pages they dropped are read again.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include "../cohort.h"
#include "pcpa.h"

static struct cohort_trail __rcu *trail;

static u64 cohort_trail_hash(const struct address_space *mapping, pgoff_t index)
{
	return hash_64_generic(cohort_place_key(mapping, index), 64);
}

/**
 * __cohort_pcpa_refault() - a page that was evicted is read again
 * @folio: new in the page cache, locked
 *
 * A count of what quick reclaims cost; races lose or add a few.  Where there is a copy of
 * it, nothing is read.
 */
void __cohort_pcpa_refault(struct folio *folio)
{
	bool copied = cohort_copies() && cohort_copies_refault(folio);
	struct cohort_trail *known;

	rcu_read_lock();
	known = rcu_dereference(trail);
	/* Two at once in one set lose or add one. */
	if (known && data_race(cohort_trail_take(known, cohort_trail_hash(folio->mapping,
									  folio->index))))
		count_vm_events(COHORT_PCPA_REFAULT, !copied);
	rcu_read_unlock();
}

/**
 * cohort_trail_note() - a quick reclaim dropped a page
 * @mapping: its file
 * @index: its place there
 */
void cohort_trail_note(const struct address_space *mapping, pgoff_t index)
{
	struct cohort_trail *known;

	rcu_read_lock();
	known = rcu_dereference(trail);
	if (known)
		cohort_trail_put(known, cohort_trail_hash(mapping, index));
	rcu_read_unlock();
}

/**
 * cohort_trail_resize() - remember as many pages as the area has
 * @pages: pages of it
 *
 * Never shrinks: what was dropped may still be read again.  Without an area nothing asks.
 *
 * Context: cohort_size_mutex held.
 * Return: 0 or -ENOMEM.
 */
int cohort_trail_resize(unsigned long pages)
{
	struct cohort_trail *new, *old = rcu_dereference_protected(trail,
						lockdep_is_held(&cohort_size_mutex));

	if (old && pages <= old->mask + 1)
		return 0;
	new = kvzalloc(sizeof(*new) + cohort_trail_size(pages), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	cohort_trail_init(new, pages, new + 1);
	rcu_assign_pointer(trail, new);
	synchronize_rcu();
	kvfree(old);
	return 0;
}
