// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes of reclaim; see arith_rightsize.h.
 */
#include "arith_rightsize.h"

/**
 * cohort_size_bucket() - which bar of a histogram a size belongs to
 * @nr: pages or objects
 *
 * Return: 0 for nothing, else one more than the power of two below or at @nr;
 * the last bucket has everything larger, too.
 */
unsigned int cohort_size_bucket(unsigned long nr)
{
	unsigned int bucket = 0;

	while (nr && bucket < COHORT_SIZE_BUCKETS - 1) {
		nr >>= 1;
		bucket++;
	}
	return bucket;
}

/**
 * cohort_share() - a part of a whole, in 1/65536
 * @part: at most @whole counts
 * @whole: 0 has no parts
 */
unsigned int cohort_share(unsigned long part, unsigned long whole)
{
	if (part >= whole)
		return whole ? COHORT_SHARE_ONE : 0;
	/* Keeps the product within 32 bits, and the error below one in 2^14. */
	while (whole >= 1UL << 15) {
		whole >>= 1;
		part >>= 1;
	}
	return part * COHORT_SHARE_ONE / whole;
}

/* A part of the way from @from to @to: never beyond, never stuck beside it. */
static unsigned int cohort_approach(unsigned int from, unsigned int to, unsigned int part)
{
	if (from < to)
		return from + (to - from + part - 1) / part;
	return from - (from - to + part - 1) / part;
}

/**
 * cohort_sizer_init() - begin as stock
 * @sizer: the controller
 */
void cohort_sizer_init(struct cohort_sizer *sizer)
{
	sizer->gap = COHORT_GAP_STOCK;
	sizer->direct_share = 0;
}

/**
 * cohort_sizer_step() - a window is over
 * @sizer: the controller
 * @flow: what happened in it
 *
 * The law, for the gap g and the smoothed direct share d:
 *
 *	d > 1/16		g goes 1/2 of the way to twice stock's
 *	else refaults matter	g goes 1/8 of the way to stock's
 *	else			g stays
 *
 * Each step is a contraction towards a point inside the bounds, so g never
 * leaves them and never overshoots, whatever comes in.  Time constants are 1.4
 * and 7.5 windows: room is made five times as fast as it is taken away.  g is
 * never below stock's: processes have stock's room at least.
 */
void cohort_sizer_step(struct cohort_sizer *sizer, const struct cohort_flow *flow)
{
	sizer->direct_share = cohort_approach(sizer->direct_share,
					      cohort_share(flow->direct, flow->evicted), 4);
	if (sizer->direct_share > COHORT_DIRECT_GOAL)
		sizer->gap = cohort_approach(sizer->gap, COHORT_GAP_MAX, 2);
	else if (cohort_share(flow->refaulted, flow->evicted) > COHORT_REFAULT_LOW)
		sizer->gap = cohort_approach(sizer->gap, COHORT_GAP_STOCK, 8);
}

/**
 * cohort_run_missing() - pages of a node's LRU lists until one of its zones has enough
 * @lacks: what the zone lacks
 * @lru: its pages on the lists
 * @all: those of all zones that are reclaimed from
 *
 * Return: ~0UL where the lists have none of the zone's.
 */
unsigned long cohort_run_missing(unsigned long lacks, unsigned long lru, unsigned long all)
{
	if (!lacks || lru >= all)
		return lacks;
	if (!lru || lacks >> 40)
		return ~0UL;
	/* Keeps the second product within 64 bits, and the error below one in 2^15. */
	while (lru >> 16) {
		lru >>= 1;
		all >>= 1;
	}
	if (all / lru >= ~0UL / lacks)
		return ~0UL;
	return lacks * (all / lru) + lacks * (all % lru) / lru;
}

/**
 * cohort_run_target() - pages kswapd is to reclaim in one go
 * @stock: what stock aims at, the high watermarks of all zones
 * @missing: pages that are free too few for the high watermark
 * @batch: the least that is worth the way
 *
 * Stock frees as much as the mark is high, however little is missing.
 *
 * Return: at least @batch, and not more than @stock if that is more.
 */
unsigned long cohort_run_target(unsigned long stock, unsigned long missing,
				unsigned long batch)
{
	unsigned long target = missing > batch ? missing : batch;

	if (target > stock)
		return stock > batch ? stock : batch;
	return target;
}
