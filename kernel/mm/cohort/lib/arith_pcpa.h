/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pure arithmetic of the page-cache-preferred area; see arith.h.
 */
#ifndef _MM_COHORT_ARITH_PCPA_H
#define _MM_COHORT_ARITH_PCPA_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef uint64_t u64;
typedef uint16_t u16;
#endif

/* A chunk is what one look of a quick reclaim covers, and the largest piece. */
#define COHORT_CHUNK_ORDER	8
#define COHORT_CHUNK		(1UL << COHORT_CHUNK_ORDER)

/* A contiguous piece begins at a granule at least. */
#define COHORT_GRANULE_ORDER	4
#define COHORT_GRANULE		(1UL << COHORT_GRANULE_ORDER)

/* The cost of a granule that cannot be emptied. */
#define COHORT_COST_NEVER	((u16)~0)

unsigned long cohort_area_window(const u16 *cost, unsigned long nr, unsigned long len,
				 unsigned long step);

/**
 * enum cohort_pcpa_state - the users that get free pages of the area
 * @COHORT_PCACHE_ONLY: the page cache of all processes
 * @COHORT_ANON_ALLOC: entitled clients
 */
enum cohort_pcpa_state {
	COHORT_PCACHE_ONLY,
	COHORT_ANON_ALLOC,
};

/**
 * struct cohort_pcpa_fsm - algorithms 1 and 3 of the paper
 * @state: the users that are served
 * @used: a client got pages since the timer was set (ANON_ALLOC_flag)
 *
 * used implies state == COHORT_ANON_ALLOC.
 */
struct cohort_pcpa_fsm {
	enum cohort_pcpa_state state;
	bool used;
};

bool cohort_pcpa_request(struct cohort_pcpa_fsm *fsm);
void cohort_pcpa_granted(struct cohort_pcpa_fsm *fsm);
bool cohort_pcpa_timeout(struct cohort_pcpa_fsm *fsm);

/**
 * struct cohort_walk - two scanners on their way towards each other
 * @lo: next chunk from below
 * @hi: one past the next chunk from above
 *
 * Chunks below lo and from hi on were visited, each by one of the two.
 */
struct cohort_walk {
	unsigned long lo;
	unsigned long hi;
};

bool cohort_walk_next(struct cohort_walk *walk, bool down, unsigned long *chunk);

/**
 * struct cohort_trail - pages that a quick reclaim dropped, to know them again
 * @mask: sets minus one; a power of two
 * @slot: two fingerprints a set, the younger first; 0 is none
 *
 * Forgets the oldest of a set; takes one page in 2^15 for another.
 */
struct cohort_trail {
	unsigned long mask;
	u16 (*slot)[2];
};

size_t cohort_trail_size(unsigned long pages);
void cohort_trail_init(struct cohort_trail *trail, unsigned long pages, void *mem);
void cohort_trail_put(struct cohort_trail *trail, u64 hash);
bool cohort_trail_take(struct cohort_trail *trail, u64 hash);

/* Mapped pages dropped together at most: one TLB flush. */
#define COHORT_FLUSH_MAX	512U

bool cohort_flush_due(unsigned int nr, bool last);

bool cohort_pcpa_order_ok(long order);
const char *cohort_pcpa_parse(const char *text, u64 *size, u64 *base);
const char *cohort_pcpa_refuse(u64 size, u64 base, u64 align, u64 memory);

#define COHORT_ANY_BASE		((u64)~0)

#endif /* _MM_COHORT_ARITH_PCPA_H */
