/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The contiguous page buffer: what its files share, and what is above them calls.
 */
#ifndef _MM_COHORT_CPB_H
#define _MM_COHORT_CPB_H

#include <linux/types.h>

struct page;
struct zone;

/* Frames on their way: off all lists, refcount 0. */
struct cohort_set {
	struct page *page;
	unsigned int order;
};

/* cpb.c */
extern const char *const cohort_cpb_refills[2];	/* by cohort_cpb_remnants */
extern bool cohort_cpb_remnants;	/* refill prefers remnants to splitting */
extern unsigned int cohort_cpb_order;	/* changes under cohort_mutex, while off */
extern unsigned long cohort_cpb_limit;	/* pages that struct cohort_cpb may hold */
int cohort_cpb_switch(bool on);
int cohort_cpb_set_order(unsigned int order);
void cohort_cpb_keep(struct zone *zone, const struct cohort_set *set, unsigned int nr);
void cohort_cpb_stats(unsigned long *sets, unsigned long *pages);

/* sysfs.c */
extern const struct attribute_group cohort_cpb_group;

#endif /* _MM_COHORT_CPB_H */
