/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Virtual memory nodes out of physical ones.  Included once, inside
 * mm/numa_emulation.c, because it needs that file's emu_setup_memblk().
 */
#include "../vnode/vnode.h"

/* Is there a layout that fits this machine? */
#define cohort_vnode_wanted()	(IS_ENABLED(CONFIG_COHORT_VNODE) && __cohort_vnode_wanted())

/* The block of memory that begins lowest. */
static int __init cohort_vnode_first(const struct numa_meminfo *pi)
{
	int i, first = 0;

	for (i = 1; i < pi->nr_blks; i++)
		if (pi->blk[i].start < pi->blk[first].start)
			first = i;
	return first;
}

/*
 * Second part of the scheme, node generation: every virtual node gets one
 * emulated node on each physical node it has memory of, so that an emulated
 * node never spans two.
 */
static int __init cohort_vnode_generate(struct numa_meminfo *ei,
					struct numa_meminfo *pi)
{
	while (pi->nr_blks) {
		int at = cohort_vnode_first(pi);
		const struct numa_memblk *blk = &pi->blk[at];
		u64 end = blk->end;
		int nid = cohort_vnode_nid(blk->start, blk->nid, &end);
		int err;

		if (nid < 0)
			return nid;
		err = emu_setup_memblk(ei, pi, nid, at, end - blk->start);
		if (err)
			return err;
	}
	return 0;
}
