/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sizes of reclaim: sorting them, and the controller that sets them.  Pure
 * arithmetic like arith.h, and tested on the host like it.
 */
#ifndef _MM_COHORT_ARITH_RIGHTSIZE_H
#define _MM_COHORT_ARITH_RIGHTSIZE_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#endif

/* Bucket 0 is nothing at all, bucket b is 2^(b-1) pages to less than twice that. */
#define COHORT_SIZE_BUCKETS	16

/* The gap between the watermarks, in 1/256 of what stock makes it. */
#define COHORT_GAP_STOCK	256U
#define COHORT_GAP_MAX		512U

/* Pages evicted between two decisions: about three runs of kswapd. */
#define COHORT_SIZER_WINDOW	2048UL

/* Shares are in 1/65536. */
#define COHORT_SHARE_ONE	65536U

/* Share that processes may reclaim themselves before kswapd gets more room: 1 in 16. */
#define COHORT_DIRECT_GOAL	(COHORT_SHARE_ONE / 16)

/* Refaults below one in sixteen of what is evicted are no reason to take room away. */
#define COHORT_REFAULT_LOW	(COHORT_SHARE_ONE / 16)

/**
 * struct cohort_flow - what happened in one window
 * @evicted: pages, by any task
 * @direct: of these, by processes that needed them themselves
 * @refaulted: evicted pages that were read back
 */
struct cohort_flow {
	unsigned long evicted;
	unsigned long direct;
	unsigned long refaulted;
};

/**
 * struct cohort_sizer - the controller of kswapd's runs
 * @gap: in 1/256 of stock's gap between the watermarks
 * @direct_share: of what is evicted, by processes themselves; smoothed
 *
 * COHORT_GAP_STOCK <= gap <= COHORT_GAP_MAX.
 */
struct cohort_sizer {
	unsigned int gap;
	unsigned int direct_share;
};

unsigned int cohort_size_bucket(unsigned long nr);
unsigned int cohort_share(unsigned long part, unsigned long whole);
void cohort_sizer_init(struct cohort_sizer *sizer);
void cohort_sizer_step(struct cohort_sizer *sizer, const struct cohort_flow *flow);
unsigned long cohort_run_missing(unsigned long lacks, unsigned long lru, unsigned long all);
unsigned long cohort_run_target(unsigned long stock, unsigned long missing,
				unsigned long batch);

#endif /* _MM_COHORT_ARITH_RIGHTSIZE_H */
