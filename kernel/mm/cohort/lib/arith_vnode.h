/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Layouts of virtual memory nodes: reading one, and laying it over a map of
 * memory.  Pure arithmetic like arith.h, and tested on the host like it.
 */
#ifndef _MM_COHORT_ARITH_VNODE_H
#define _MM_COHORT_ARITH_VNODE_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
typedef unsigned long long u64;
#endif

#define COHORT_VNODE_MIN	2
#define COHORT_VNODE_MAX	8
#define COHORT_VNODE_NAME	16	/* with the final NUL */

/* Below this a node is all watermarks and per-CPU lists. */
#define COHORT_VNODE_MIN_BYTES	(32ULL << 20)

/**
 * struct cohort_share - what one virtual node was promised
 * @name: lower-case letters, digits, '-' and '_', a letter first
 * @bytes: its size, 0 if it is given otherwise
 * @percent: of all memory, 0 if it is given otherwise
 *
 * The one with neither takes the rest.
 */
struct cohort_share {
	char name[COHORT_VNODE_NAME];
	u64 bytes;
	unsigned int percent;
};

/**
 * struct cohort_layout - the virtual nodes, the most trusted first
 * @nr: how many, COHORT_VNODE_MIN to COHORT_VNODE_MAX
 * @share: their sizes; exactly one takes the rest
 */
struct cohort_layout {
	unsigned int nr;
	struct cohort_share share[COHORT_VNODE_MAX];
};

/**
 * struct cohort_span - memory without a hole
 * @start: first byte
 * @end: one past the last byte
 */
struct cohort_span {
	u64 start, end;
};

const char *cohort_layout_parse(const char *text, struct cohort_layout *layout);
const char *cohort_layout_split(const struct cohort_layout *layout,
				const struct cohort_span *ram, unsigned int nr,
				u64 align, u64 *bound);
int cohort_layout_find(const struct cohort_layout *layout, const char *name,
		       size_t len);
unsigned int cohort_layout_piece(const u64 *bound, unsigned int nr, u64 start,
				 u64 *end);
unsigned int cohort_layout_unusable(const u64 *blocks, unsigned int orders,
				    unsigned int order);
u64 cohort_ram_between(const struct cohort_span *ram, unsigned int nr,
		       u64 start, u64 end);

#endif /* _MM_COHORT_ARITH_VNODE_H */
