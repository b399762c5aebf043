/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Page cache allocation with the mapping in hand, for mm/filemap.c and
 * mm/readahead.c.
 */
#ifndef _MM_COHORT_FILEMAP_H
#define _MM_COHORT_FILEMAP_H

#include <linux/cohort.h>
#include <linux/fs.h>
#include <linux/pagemap.h>
#include <linux/sched.h>

struct folio *__cohort_cache_folio(struct address_space *mapping, gfp_t gfp);

/*
 * f2fs asks for a page of a file that it writes as for memory of its own.  That it can be moved,
 * and is a process's, its mapping says.
 */
static inline gfp_t cohort_cache_gfp(struct address_space *mapping, gfp_t gfp)
{
	if ((gfp & __GFP_WRITE) && mapping->host && S_ISREG(mapping->host->i_mode))
		gfp |= mapping_gfp_mask(mapping) & (__GFP_MOVABLE | __GFP_HARDWALL);
	return gfp;
}

/**
 * cohort_filemap_alloc() - allocate a folio for a mapping
 * @mapping: file it will belong to
 * @gfp: flags
 * @order: order; large folios go past the cache domain
 */
static inline struct folio *
cohort_filemap_alloc_noprof(struct address_space *mapping, gfp_t gfp,
			    unsigned int order)
{
	if (cohort_owners() || cohort_vnode_enabled())
		gfp = cohort_cache_gfp(mapping, gfp);
	if (cohort_owners() && !order)
		return __cohort_cache_folio(mapping, gfp);
	return filemap_alloc_folio_noprof(gfp, order);
}

/* Pages of a file that are read, not written: those can be dropped. */
static inline bool cohort_reads_only(struct address_space *mapping, gfp_t gfp)
{
	return (gfp & __GFP_MOVABLE) && !(gfp & __GFP_WRITE) && mapping->host &&
	       S_ISREG(mapping->host->i_mode) && !mapping_unevictable(mapping) &&
	       !(current->flags & PF_MEMALLOC_PIN);
}

/* There are copies, or have been: a reader may be between its page and this. */
DECLARE_STATIC_KEY_FALSE(cohort_copies_once_key);
#define cohort_copies_once()	COHORT_IS(CONFIG_COHORT_PCPA, cohort_copies_once_key)
/* Is there nothing to read, as a copy was there?  Is anything of a file in memory? */
int __cohort_copies_filled(struct folio *folio, bool mark);
#define cohort_copies_filled(folio, mark) \
	(cohort_copies_once() && folio_test_uptodate(folio) ? \
	 __cohort_copies_filled(folio, mark) : 0)
/* A page that is not in memory is cut in part; its file keeps readers out. */
void cohort_copies_cut(struct address_space *mapping, pgoff_t index);
#define cohort_cut(...)	COHORT_WHEN(cohort_copies(), cohort_copies_cut(__VA_ARGS__))
/* A direct write ends: is there anything of the file in memory that it made stale? */
bool cohort_copies_written(struct address_space *mapping, loff_t pos, size_t count);
#define cohort_cached(mapping, pos, count) \
	(cohort_copies() ? cohort_copies_written(mapping, pos, count) : (mapping)->nrpages)

void __cohort_read_around(struct readahead_control *ractl);
bool __cohort_read_on(vm_flags_t vm_flags, struct readahead_control *ractl,
		      struct folio *folio);

/**
 * cohort_read_around() - how far to read with a page that a fault misses
 * @ractl: the readahead; its index is the page, its window stock's
 */
static inline void cohort_read_around(struct readahead_control *ractl)
{
	if (cohort_scope_enabled())
		__cohort_read_around(ractl);
}

/**
 * cohort_read_on() - a fault met the page that starts readahead
 * @vm_flags: of the area of memory, which may be gone: its lock is dropped
 * @ractl: the readahead; its index is the page
 * @folio: that page
 *
 * Return: true if there is nothing left to do.
 */
static inline bool cohort_read_on(vm_flags_t vm_flags, struct readahead_control *ractl,
				  struct folio *folio)
{
	return cohort_scope_enabled() && __cohort_read_on(vm_flags, ractl, folio);
}

#define cohort_filemap_alloc(...) \
	alloc_hooks(cohort_filemap_alloc_noprof(__VA_ARGS__))

#endif /* _MM_COHORT_FILEMAP_H */
