/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The call of mm/khugepaged.c.
 */
#ifndef _MM_COHORT_KHUGEPAGED_H
#define _MM_COHORT_KHUGEPAGED_H

#include <linux/cohort.h>

/* Pages by node, of which the huge page comes that has most: those of other roles do not count. */
void __cohort_vnode_collapse(const struct mm_struct *mm, u32 *load);
#define cohort_vnode_collapse(mm, load) \
	COHORT_WHEN(cohort_vnode_enabled(), __cohort_vnode_collapse(mm, load))

#endif /* _MM_COHORT_KHUGEPAGED_H */
