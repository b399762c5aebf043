/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The call of alloc_contig_range(), for mm/page_alloc.c.
 */
#ifndef _MM_COHORT_CONTIG_H
#define _MM_COHORT_CONTIG_H

#include <linux/cohort.h>
#include <linux/migrate_mode.h>

/* A task that empties frames and waits for no page in them, or NULL. */
extern struct task_struct *cohort_frames_task;
#define cohort_contig_mode(mode) \
	(IS_BUILTIN(CONFIG_COHORT_PCPA) && READ_ONCE(cohort_frames_task) == current ? \
	 MIGRATE_ASYNC : (mode))

#endif /* _MM_COHORT_CONTIG_H */
