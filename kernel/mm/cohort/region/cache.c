// SPDX-License-Identifier: GPL-2.0
/*
 * Whole regions of the page cache: which one reclaim takes next, what of it is
 * dropped, and where the rest goes.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/psi.h>
#include <linux/sched/mm.h>
#include <linux/vmstat.h>
#include <trace/events/cohort.h>

#include "../../internal.h"
#include "../cohort.h"
#include "region.h"

/*
 * Two regions' worth of holes: with one, the emptiest region is still so full
 * that most of the work is moving pages.
 */
static bool cohort_cache_wanted(const struct cohort_room *room)
{
	return room && cohort_sweep_wanted(READ_ONCE(room->nr_free), 0, cohort_block_order() + 1);
}

/* Of a node's zones the highest first: it is what most requests can use. */
static struct cohort_room *cohort_cache_pick(enum cohort_kind kind, int nid,
					     int highest_zoneidx, struct cohort_block **blk)
{
	struct cohort_domain *dom = cohort_region_domain(kind);
	int i;

	for (i = highest_zoneidx; dom && i >= 0; i--) {
		struct zone *zone = &NODE_DATA(nid)->node_zones[i];
		struct cohort_room *room;

		if (!populated_zone(zone))
			continue;
		room = cohort_room_of(dom, zone);
		if (!cohort_cache_wanted(room))
			continue;
		*blk = cohort_pick_victim(room);
		if (*blk)
			return room;
	}
	return NULL;
}

/* Pages the LRU would drop: not a lazily freed one, which may turn anonymous again. */
static bool cohort_cache_droppable(struct folio *folio)
{
	return !__folio_test_movable(folio) && !folio_test_anon(folio) &&
	       folio_is_file_lru(folio) && !folio_test_active(folio) &&
	       !folio_test_dirty(folio) && !folio_test_writeback(folio) &&
	       !folio_test_unevictable(folio) && !cohort_protected(folio, true);
}

/**
 * cohort_cache_victims() - isolate one region of the cache for reclaim
 * @nid: node under reclaim
 * @highest_zoneidx: highest zone that helps
 * @ask: is it to be found out which memory cgroups are protected?  kswapd knows
 * @blk: the region, to be passed to cohort_cache_settle()
 * @victims: receives clean inactive folios
 * @survivors: receives active, dirty and otherwise needed ones
 *
 * Return: its room, or NULL if no region is worth it; then nothing is isolated.
 */
struct cohort_room *cohort_cache_victims(int nid, int highest_zoneidx, bool ask,
					 struct cohort_block **blk,
					 struct list_head *victims,
					 struct list_head *survivors)
{
	struct cohort_room *room = cohort_cache_pick(COHORT_CACHE, nid, highest_zoneidx, blk) ?:
				   cohort_cache_pick(COHORT_HOT, nid, highest_zoneidx, blk);
	struct folio *folio, *next;
	LIST_HEAD(list);

	if (!room)
		return NULL;
	if (ask)
		cohort_protect(true);
	cohort_isolate(*blk, &list);
	list_for_each_entry_safe(folio, next, &list, lru)
		list_move_tail(&folio->lru,
			       cohort_cache_droppable(folio) ? victims : survivors);
	return room;
}

/**
 * cohort_cache_settle() - move the survivors of a region and release it
 * @room: from cohort_cache_victims()
 * @blk: the region
 * @survivors: folios to move; empty on return
 * @dropped: folios that were reclaimed
 *
 * Return: true if the region went home.
 */
bool cohort_cache_settle(struct cohort_room *room, struct cohort_block *blk,
			 struct list_head *survivors, unsigned int dropped)
{
	struct zone *zone = room->zone;
	struct cohort_room *hot = cohort_room_of(cohort_region_domain(COHORT_HOT), zone);
	unsigned int moved;
	bool freed;

	/* A zone that came while memory was short has not all rooms. */
	if (!hot)
		hot = room;
	/*
	 * A page that survives once is likely to stay: kept apart from pages
	 * that come and go, it need not move with every sweep.
	 */
	moved = cohort_evacuate(hot, hot != room ? room : NULL, survivors, false);
	freed = cohort_unpick(room, blk);

	count_vm_event(COHORT_SWEEP);
	count_vm_events(COHORT_SWEEP_FREE, freed);
	count_vm_events(COHORT_SWEEP_DROP, dropped);
	trace_cohort_cache_sweep(READ_ONCE(blk->pfn), dropped, moved, freed);
	return freed;
}

/**
 * cohort_region_room() - a block for a request that finds none, now
 * @nid: node it should be of
 * @highest_zoneidx: highest zone that helps
 *
 * For memory that cannot be moved: taken from between other pages, it would
 * leave small pieces behind when it is freed.  The pages of the emptiest cache
 * region move into the holes of the others.  Nothing is dropped; there is
 * memory enough, only in pieces.
 *
 * Context: as for direct compaction.
 * Return: true if a region went home.
 */
bool cohort_region_room(int nid, int highest_zoneidx)
{
	struct cohort_room *room;
	struct cohort_block *blk;
	LIST_HEAD(victims);
	LIST_HEAD(survivors);
	unsigned long stall;
	unsigned int flags;
	bool freed;

	room = cohort_cache_victims(nid, highest_zoneidx, false, &blk, &victims, &survivors);
	if (!room)
		return false;
	list_splice_tail_init(&victims, &survivors);
	psi_memstall_enter(&stall);
	flags = memalloc_noreclaim_save();
	freed = cohort_cache_settle(room, blk, &survivors, 0);
	memalloc_noreclaim_restore(flags);
	psi_memstall_leave(&stall);
	return freed;
}
