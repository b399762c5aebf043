/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calls of mm/compaction.c.
 */
#ifndef _MM_COHORT_COMPACTION_H
#define _MM_COHORT_COMPACTION_H

#include <linux/cohort.h>

/* Has all of a pageblock an owner?  Neither scanner finds anything there. */
bool cohort_pageblock_all_owned(const struct page *page);
#define cohort_all_owned(page)	(cohort_enabled() && cohort_pageblock_all_owned(page))

/* May pages that are mlocked move? */
bool cohort_unevictable_moves(void);

/* Shall kcompactd compact a node now?  Is it to stay in one piece? */
bool __cohort_vnode_compact_due(struct pglist_data *pgdat);
bool __cohort_vnode_stays_whole(const struct pglist_data *pgdat);
#define cohort_vnode_compact_due(pgdat) \
	(cohort_vnode_enabled() && __cohort_vnode_compact_due(pgdat))
/* kcompactd waits for no page there: a server of FUSE may keep one locked. */
#define cohort_compact_mode(cc) \
	((cc)->order < 0 && current->flags & PF_KTHREAD && \
	 cohort_vnode_stays_whole((cc)->zone->zone_pgdat) ? MIGRATE_ASYNC : (cc)->mode)
#define cohort_vnode_stays_whole(pgdat) \
	(cohort_vnode_enabled() && __cohort_vnode_stays_whole(pgdat))

#endif /* _MM_COHORT_COMPACTION_H */
