/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calls of mm/migrate.c and mm/mempolicy.c.
 */
#ifndef _MM_COHORT_MIGRATE_H
#define _MM_COHORT_MIGRATE_H

#include <linux/cohort.h>
#include <linux/migrate_mode.h>

/* The node of a page that is sent to another one: of the role of the process that has it. */
int __cohort_vnode_sent(const struct mm_struct *mm, int nid);
#define cohort_vnode_sent(mm, nid) \
	(cohort_vnode_enabled() ? __cohort_vnode_sent(mm, nid) : (nid))

bool __cohort_vnode_keeps(const struct mm_struct *mm, int from, int *to);
#define cohort_vnode_keeps(mm, from, to) \
	(cohort_vnode_enabled() && __cohort_vnode_keeps(mm, from, to))

/* Where a page goes that is moved: what the kernel moves for itself stays with its role. */
nodemask_t *__cohort_vnode_target(int reason, int from, int to, nodemask_t *nodemask);
#define cohort_vnode_target(reason, from, to, mask) \
	(cohort_vnode_enabled() ? __cohort_vnode_target(reason, from, to, mask) : (mask))

/* A page that is demoted, and would leave its role, has no place. */
bool __cohort_vnode_demotes_away(int reason, int from, int to, const nodemask_t *nodemask);
#define cohort_target_alloc(reason, from, gfp, order, nid, mask) \
	(cohort_vnode_enabled() && __cohort_vnode_demotes_away(reason, from, nid, mask) ? NULL : \
	 __folio_alloc(gfp, order, nid, cohort_vnode_target(reason, from, nid, mask)))

/*
 * The same for a page of a pool.  The nodes of a role have the memory that goes offline among
 * them, and a pool would give its pages of that again and again: stock's mask has not.
 */
#define cohort_vnode_huge_target(reason, from, to, mask) \
	((reason) == MR_MEMORY_HOTPLUG ? (mask) : cohort_vnode_target(reason, from, to, mask))

#endif /* _MM_COHORT_MIGRATE_H */
