/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The call of mm/hugetlb.c.
 */
#ifndef _MM_COHORT_HUGETLB_H
#define _MM_COHORT_HUGETLB_H

#include <linux/cohort.h>

/* The nodes for a huge page that a process takes beside the pool, and the one to begin with. */
nodemask_t *__cohort_vnode_huge(int *nid, nodemask_t *nodemask);
#define cohort_vnode_huge(nid, mask) \
	(cohort_vnode_enabled() ? __cohort_vnode_huge(nid, mask) : (mask))

#endif /* _MM_COHORT_HUGETLB_H */
