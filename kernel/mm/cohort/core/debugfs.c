// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/cohort/: which block is whose, for people and for pictures.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/debugfs.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "../cohort.h"

/* As the files of sysfs name them; processes have a number each besides. */
static const char *const cohort_owner_names[] = {
	[COHORT_PROCESS] = "process",
	[COHORT_SHARED] = "shared",
	[COHORT_SVC] = "service",
	[COHORT_SMALL] = "small",
	[COHORT_CACHE] = "cache",
	[COHORT_HOT] = "hot",
	[COHORT_METADATA] = "metadata",
	[COHORT_VMALLOC] = "vmalloc",
	[COHORT_KERNEL] = "kernel",
	[COHORT_ZSPAGE] = "zspage",
	[COHORT_KEPT] = "area",
};
static_assert(ARRAY_SIZE(cohort_owner_names) == COHORT_KEPT + 1);

static unsigned long cohort_blocks_step(void)
{
	return 1UL << min(cohort_block_order(), COHORT_FIXED_ORDER);
}

/*
 * The first block with an owner from a frame on.  The position is a frame's number, in steps
 * of the smallest block there may be: each block is told of where its first frame lies.
 */
static void *cohort_blocks_find(loff_t *pos)
{
	unsigned long step = cohort_blocks_step();
	unsigned long pfn = round_down((unsigned long)*pos, step);
	unsigned long end = READ_ONCE(cohort_table)->nr << COHORT_SPAN_SHIFT;

	while (pfn < end) {
		struct cohort_block *blk = cohort_block_of(pfn);

		*pos = pfn;
		if (blk && READ_ONCE(blk->id) && READ_ONCE(blk->pfn) - pfn < step)
			return blk;
		/* Where there is no memory there is no span. */
		pfn = cohort_span_of(pfn) ? pfn + step :
		      round_down(pfn, COHORT_SPAN_PAGES) + COHORT_SPAN_PAGES;
		cond_resched();
	}
	*pos = end;
	return NULL;
}

static void *cohort_blocks_start(struct seq_file *m, loff_t *pos)
{
	return cohort_blocks_find(pos);
}

static void *cohort_blocks_next(struct seq_file *m, void *v, loff_t *pos)
{
	*pos += cohort_blocks_step();
	return cohort_blocks_find(pos);
}

static void cohort_blocks_stop(struct seq_file *m, void *v)
{
}

/* Without locks: a block may change its owner, or lose it, while it is told of. */
static int cohort_blocks_show(struct seq_file *m, void *v)
{
	const struct cohort_block *blk = v;
	unsigned int id = READ_ONCE(blk->id);

	if (!id)
		return SEQ_SKIP;
	seq_printf(m, "%lu %u %s %u %u\n", READ_ONCE(blk->pfn), READ_ONCE(blk->order),
		   cohort_owner_names[id <= COHORT_KEPT ? id : COHORT_PROCESS],
		   id <= COHORT_KEPT ? 0 : id - COHORT_KEPT, READ_ONCE(blk->nr_free));
	return 0;
}

static const struct seq_operations cohort_blocks_sops = {
	.start = cohort_blocks_start,
	.next = cohort_blocks_next,
	.stop = cohort_blocks_stop,
	.show = cohort_blocks_show,
};
DEFINE_SEQ_ATTRIBUTE(cohort_blocks);

/**
 * cohort_debugfs_init() - make /sys/kernel/debug/cohort/
 */
void __init cohort_debugfs_init(void)
{
	debugfs_create_file("blocks", 0400, debugfs_create_dir("cohort", NULL), NULL,
			    &cohort_blocks_fops);
}
