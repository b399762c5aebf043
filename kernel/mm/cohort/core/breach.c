// SPDX-License-Identifier: GPL-2.0
/*
 * Breaching: the free pages of blocks are free for all, before anything is reclaimed.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/mm.h>
#include <linux/vmstat.h>

#include "../../internal.h"
#include "../cohort.h"

/* Blocks of each list of a room that are looked at in vain, and rooms of each kind. */
#define COHORT_BREACH_BLOCKS	8

/* The order of kinds mixes lifetimes least. */
static const enum cohort_kind cohort_breach_movable[] = {
	COHORT_CACHE, COHORT_HOT, COHORT_SMALL, COHORT_SVC, COHORT_SHARED,
	COHORT_PROCESS, COHORT_ZSPAGE, COHORT_METADATA, COHORT_VMALLOC, COHORT_KERNEL,
};

static const enum cohort_kind cohort_breach_unmovable[] = {
	COHORT_KERNEL, COHORT_VMALLOC, COHORT_METADATA, COHORT_ZSPAGE, COHORT_SHARED,
	COHORT_SVC, COHORT_SMALL, COHORT_PROCESS, COHORT_HOT, COHORT_CACHE,
};

/* Of the blocks on one list of a room. */
static struct cohort_block *cohort_list_breach(struct cohort_room *room, unsigned int list,
					       unsigned int order, struct page **piece)
{
	unsigned int left = COHORT_BREACH_BLOCKS;
	struct cohort_block *blk, *next;

	list_for_each_entry_safe(blk, next, &room->list[list], node) {
		/* Strangers have been here. */
		cohort_block_place(blk);
		if (blk->bucket != list)
			continue;
		if (!left--) {
			/* The next request begins with others. */
			list_rotate_to_front(&blk->node, &room->list[list]);
			return NULL;
		}
		if (!cohort_block_usable(blk))
			continue;
		*piece = cohort_block_piece(blk, order);
		if (*piece)
			return blk;
	}
	return NULL;
}

/* Of the emptiest blocks, as large pieces are there; last of those that are being emptied. */
static struct cohort_block *cohort_room_emptiest(struct cohort_room *room, unsigned int order,
						 struct page **piece)
{
	struct cohort_block *blk = NULL;
	unsigned int b;

	for (b = COHORT_BUCKETS - 1; b && !blk; b--)
		blk = cohort_list_breach(room, b, order, piece);
	return blk ?: cohort_list_breach(room, COHORT_BUSY, order, piece);
}

static struct page *cohort_room_breach(struct cohort_room *room, unsigned int order,
				       bool unmovable)
{
	struct cohort_block *blk;
	struct page *page = NULL;

	if (!order && unmovable == cohort_unmovable(room->dom)) {
		blk = cohort_room_fullest(room);
		if (blk)
			return cohort_block_piece(blk, 0);
	}
	blk = cohort_room_emptiest(room, order, &page);
	/* One block is spoiled, not one for each page. */
	if (blk && unmovable && !cohort_unmovable(room->dom))
		room->zone->cohort->taint = blk;
	return page;
}

/* Has any block a free piece so large?  Else none is looked at.  Fixed ones are not breached. */
static bool cohort_zone_has_piece(const struct cohort_zone *cz, unsigned int order)
{
	for (; order < cohort_block_order(); order++)
		if (cz->pieces[order])
			return true;
	return false;
}

static struct page *cohort_zone_breach(struct zone *zone, unsigned int order, bool unmovable)
{
	const enum cohort_kind *kind = unmovable ? cohort_breach_unmovable :
						   cohort_breach_movable;
	struct cohort_zone *cz = zone->cohort;
	struct cohort_room *room;
	struct page *page = NULL;
	unsigned int i, left;

	if (!cohort_zone_has_piece(cz, order))
		return NULL;
	for (i = 0; i < COHORT_NR_KINDS; i++) {
		if (unmovable && cz->taint && !cohort_kind_unmovable(kind[i]) &&
		    cohort_block_usable(cz->taint)) {
			page = cohort_block_piece(cz->taint, order);
			if (page)
				return page;
		}
		left = COHORT_BREACH_BLOCKS;
		list_for_each_entry(room, &cz->rooms[kind[i]], breach) {
			page = cohort_room_breach(room, order, unmovable);
			if (page)
				return page;
			if (!left--) {
				/* The next request begins with others. */
				list_rotate_to_front(&room->breach, &cz->rooms[kind[i]]);
				break;
			}
		}
	}
	return NULL;
}

/*
 * What would rather have a large piece, as a large folio does, makes do with single pages.  A
 * packet that is received has the flags of a huge page that may not reclaim, but cannot be moved
 * and cannot make do.  Nor can that for which a process would be killed, though its last look
 * says that it may not wait.
 */
static bool cohort_opportunist(gfp_t gfp, unsigned int alloc_flags)
{
	const gfp_t light = __GFP_MOVABLE | __GFP_NOMEMALLOC;

	if (cohort_before_kill(alloc_flags))
		return false;
	return (gfp & __GFP_NORETRY) || (gfp & (light | __GFP_DIRECT_RECLAIM)) == light;
}

/**
 * cohort_blocks_breach() - a free page of a block, for a request the ordinary ones cannot serve
 * @gfp: the request
 * @order: its order
 * @alloc_flags: ALLOC_* of the request
 * @ac: its context
 *
 * No watermark counts pages of blocks, so none stands in the way; zonelist, nodemask
 * and cpuset do.
 */
struct page *cohort_blocks_breach(gfp_t gfp, unsigned int order, unsigned int alloc_flags,
				  const struct alloc_context *ac)
{
	bool unmovable = ac->migratetype != MIGRATE_MOVABLE;
	struct zoneref *z = ac->preferred_zoneref;
	unsigned long flags;
	struct page *page;
	struct zone *zone;

	if (order > COHORT_BREACH_ORDER || (order && cohort_opportunist(gfp, alloc_flags)))
		return NULL;
	for_next_zone_zonelist_nodemask(zone, z, ac->highest_zoneidx, ac->nodemask) {
		unsigned long soft = READ_ONCE(zone->cohort_soft);

		if (!soft || cohort_zone_kept(zone, soft, alloc_flags, ac) ||
		    !cohort_cpuset_allows(zone, gfp, alloc_flags))
			continue;
		spin_lock_irqsave(&zone->lock, flags);
		page = cohort_zone_breach(zone, order, unmovable);
		cohort_zone_show(zone);
		spin_unlock_irqrestore(&zone->lock, flags);
		if (page && cohort_hand_out(page, order, gfp, alloc_flags,
					    zonelist_zone(ac->preferred_zoneref))) {
			count_vm_event(COHORT_BREACH);
			return page;
		}
	}
	return NULL;
}
