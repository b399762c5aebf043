/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The call of mm/migrate.c.
 */
#ifndef _MM_COHORT_MIGRATE_H
#define _MM_COHORT_MIGRATE_H

#include <linux/cohort.h>

/* The node of a page that a process sends to another one: of its role. */
int __cohort_vnode_sent(int reason, int nid);
#define cohort_vnode_sent(reason, nid) \
	(cohort_vnode_enabled() ? __cohort_vnode_sent(reason, nid) : (nid))

#endif /* _MM_COHORT_MIGRATE_H */
