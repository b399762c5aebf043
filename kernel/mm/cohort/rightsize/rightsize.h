/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Right-sized reclaim: what it measures, and what it decides.
 */
#ifndef _MM_COHORT_RIGHTSIZE_H
#define _MM_COHORT_RIGHTSIZE_H

#include <linux/minmax.h>
#include <linux/mmzone.h>
#include <linux/sizes.h>

#include "../lib/arith_rightsize.h"

struct attribute_group;

/* Cached apps; home and the previous one are what comes next. */
#define COHORT_BACKGROUND_ADJ	900

/* An app that is seen or heard is never in the background: nothing would be recent. */
#define COHORT_BACKGROUND_MIN	200

/* Pages read with one that was evicted: as much as a fault maps, half of VM_READAHEAD_PAGES. */
#define COHORT_READ_AROUND	MAX(SZ_64K >> PAGE_SHIFT, 1U)
#define COHORT_READ_AROUND_MAX	4096U

/* The widest gap of vm.watermark_scale_factor, in 1/10,000 of a zone. */
#define COHORT_GAP_WIDEST	3000UL

/**
 * enum cohort_size - kinds of reclaim that are measured apart
 * @COHORT_SIZE_KSWAPD: one run of kswapd, in pages
 * @COHORT_SIZE_DIRECT: one direct reclaim
 * @COHORT_SIZE_NODE: one node reclaim, in front of a request that must stay local
 * @COHORT_SIZE_LRU_KSWAPD: one batch from the LRU lists, taken by kswapd
 * @COHORT_SIZE_LRU_OTHER: one taken by any other task
 * @COHORT_SIZE_SLAB_KSWAPD: one call of a shrinker by kswapd, in objects
 * @COHORT_SIZE_SLAB_OTHER: one by any other task
 * @COHORT_NR_SIZES: how many there are
 */
enum cohort_size {
	COHORT_SIZE_KSWAPD,
	COHORT_SIZE_DIRECT,
	COHORT_SIZE_NODE,
	COHORT_SIZE_LRU_KSWAPD,
	COHORT_SIZE_LRU_OTHER,
	COHORT_SIZE_SLAB_KSWAPD,
	COHORT_SIZE_SLAB_OTHER,
	COHORT_NR_SIZES,
};

/* reclaim_stat.c */
extern const struct attribute_group cohort_reclaim_group;
int cohort_reclaim_measure(bool on);
unsigned long cohort_reclaim_sizes(enum cohort_size kind,
				   unsigned long count[COHORT_SIZE_BUCKETS]);
void cohort_reclaim_orders(unsigned long count[NR_PAGE_ORDERS]);

/* scope.c */
extern int cohort_background_adj;
extern unsigned int cohort_read_around_pages;
void cohort_scope_note(struct mm_struct *mm, int oom_score_adj);

/* rightsize.c */
extern const struct attribute_group cohort_rightsize_group;
int cohort_rightsize_switch(bool on);
unsigned long cohort_kswapd_target(struct pglist_data *pgdat, int highest_zoneidx, int order,
				   unsigned long stock);
void cohort_sizer_progress(int nid, unsigned long nr);
void cohort_sizer_ran(int nid, unsigned long nr);
void cohort_sizer_note(unsigned long nr);

#endif /* _MM_COHORT_RIGHTSIZE_H */
