// SPDX-License-Identifier: GPL-2.0
/*
 * A virtual node that stays in one piece.
 *
 * A small node is nearly full all the time, so what its processes free and the
 * flusher drops are holes between pages that stay: no large piece, though
 * no other role's page is there.  kcompactd would leave it at that, as it looks
 * at huge pages and at nine tenths of the free memory.  Where an operator says
 * how much of it may be in pieces too small, kcompactd of the node compacts it
 * whenever it finds more.
 */
#include <linux/mmzone.h>
#include <linux/wait.h>

#include "../host/compaction.h"
#include "vnode.h"

/* I/O buffers are made of pieces of this order at least: 64 KiB. */
#define TIDY_ORDER	4

/* Checks from one compaction to the next at most, 1 << n: four seconds. */
#define TIDY_DEFER_MAX	3

/* Blocks by order of all zones of the node. */
static void cohort_vnode_count_blocks(const struct pglist_data *pgdat, u64 *blocks)
{
	int i, order;

	memset(blocks, 0, NR_PAGE_ORDERS * sizeof(*blocks));
	for (i = 0; i < MAX_NR_ZONES; i++) {
		const struct free_area *area = pgdat->node_zones[i].free_area;

		for (order = 0; order < NR_PAGE_ORDERS; order++)
			/* A guess will do: the lock is not held for it. */
			blocks[order] += data_race(area[order].nr_free);
	}
}

/**
 * __cohort_vnode_compact_due() - is it time to compact this node?
 * @pgdat: the node whose kcompactd asks
 *
 * Asked every half a second.  While the node stays above its limit, because
 * its processes are at work or its pages do not move, the next compaction
 * comes after twice as many checks.
 *
 * Context: kcompactd of the node.  No other task writes the waiting times, but
 * for that of another physical node: then one of them may come a check late.
 */
bool __cohort_vnode_compact_due(struct pglist_data *pgdat)
{
	struct cohort_vnode *vn = cohort_vnode_of_node(pgdat->node_id);
	u64 blocks[NR_PAGE_ORDERS];
	unsigned int limit;

	if (!vn)
		return false;
	limit = READ_ONCE(vn->unusable_pct);
	if (!limit)
		return false;
	cohort_vnode_count_blocks(pgdat, blocks);
	if (cohort_layout_unusable(blocks, NR_PAGE_ORDERS, TIDY_ORDER) <= limit) {
		vn->tidy_wait = 0;
		vn->tidy_defer = 0;
		return false;
	}
	if (vn->tidy_wait) {
		vn->tidy_wait--;
		return false;
	}
	vn->tidy_wait = (1 << vn->tidy_defer) - 1;
	vn->tidy_defer = min(vn->tidy_defer + 1, TIDY_DEFER_MAX);
	return true;
}

/**
 * cohort_vnode_tidy_now() - have kcompactd of a node look at once
 * @vn: the node, whose limit is another now
 *
 * It may sleep for as long as vm.compaction_proactiveness is 0.
 *
 * Context: any.
 */
void cohort_vnode_tidy_now(const struct cohort_vnode *vn)
{
	int nid;

	for_each_node_mask(nid, vn->nodes) {
		struct pglist_data *pgdat = NODE_DATA(nid);

		WRITE_ONCE(pgdat->proactive_compact_trigger, true);
		wake_up_interruptible(&pgdat->kcompactd_wait);
	}
}

/**
 * __cohort_vnode_stays_whole() - does an operator want this node in one piece?
 * @pgdat: the node
 */
bool __cohort_vnode_stays_whole(const struct pglist_data *pgdat)
{
	const struct cohort_vnode *vn = cohort_vnode_of_node(pgdat->node_id);

	return vn && READ_ONCE(vn->unusable_pct);
}
