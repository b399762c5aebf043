// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks: where their free pages are linked, and the ways into and out of
 * ownership.  Everything here runs under zone->lock.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/page-isolation.h>
#include <linux/vmstat.h>
#include <trace/events/cohort.h>

#include "../../internal.h"
#include "../cohort.h"
#include "../host/compaction.h"

/**
 * cohort_block_owned() - block of a frame that has an owner
 * @pfn: any frame number
 *
 * Return: the block, or NULL if the frame has no owner.
 */
struct cohort_block *cohort_block_owned(unsigned long pfn)
{
	struct cohort_block *blk = cohort_block_of(pfn);

	if (!blk || !blk->room || (pfn ^ blk->pfn) >> blk->order)
		return NULL;
	return blk;
}

/**
 * cohort_block_move() - put a block on another list of its room
 * @blk: a block with an owner
 * @bucket: list to go to
 */
void cohort_block_move(struct cohort_block *blk, unsigned int bucket)
{
	struct cohort_room *room = blk->room;
	unsigned int old = blk->bucket;

	list_move_tail(&blk->node, &room->list[bucket]);
	blk->bucket = bucket;
	if (list_empty(&room->list[old]))
		__clear_bit(old, &room->nonempty);
	if (bucket != COHORT_BUSY)
		__set_bit(bucket, &room->nonempty);
}

/**
 * cohort_block_place() - put a block on the list it belongs to
 * @blk: a block with an owner
 */
void cohort_block_place(struct cohort_block *blk)
{
	unsigned int bucket;

	if (cohort_block_kept(blk))
		return;
	bucket = cohort_bucket(blk->nr_free, cohort_block_order());
	if (blk->bucket != COHORT_BUSY && blk->bucket != bucket)
		cohort_block_move(blk, bucket);
}

/* @pieces free pieces of an order more in a block, or one fewer. */
static void cohort_block_count(struct cohort_block *blk, unsigned int order, int pieces)
{
	struct cohort_room *room = blk->room;
	struct cohort_zone *cz = room->zone->cohort;
	bool had = room->nr_free;
	int delta = pieces * (1 << order);

	if (cohort_block_kept(blk))
		cz->kept_pieces[order] += pieces;
	else
		cz->pieces[order] += pieces;
	if (order == blk->order)
		room->nr_whole += pieces;
	blk->nr_free += delta;
	room->nr_free += delta;
	if (!had)
		list_add_tail(&room->breach, &cz->rooms[room->dom->kind]);
	else if (!room->nr_free)
		list_del_init(&room->breach);
}

/*
 * Isolated pages are in no count of free pages, and so not in the one that is
 * taken off that count either.
 */
static void cohort_zone_count(struct cohort_block *blk, int delta, int mt)
{
	struct zone *zone = blk->room->zone;
	unsigned long *count = cohort_block_kept(blk) ? &zone->cohort_reserved :
							&zone->cohort_soft;

	if (!is_migrate_isolate(mt))
		WRITE_ONCE(*count, *count + delta);
}

/**
 * __cohort_link() - a free piece of memory is linked on a list
 * @page: its first page
 * @zone: its zone, locked
 * @order: its order
 * @mt: migratetype of its pageblock
 *
 * Return: true if it was linked on a list of its block, false if it has none.
 */
bool __cohort_link(struct page *page, struct zone *zone, unsigned int order, int mt)
{
	struct cohort_block *blk = cohort_block_owned(page_to_pfn(page));

	/* A block as large as free pages can be is whole here, where nothing merges further. */
	if (!blk || (order == blk->order && !__cohort_home(page_to_pfn(page))))
		return false;
	list_add(&page->buddy_list, &blk->free[order]);
	cohort_block_count(blk, order, 1);
	cohort_zone_count(blk, 1 << order, mt);
	cohort_block_place(blk);
	return true;
}

/**
 * __cohort_unlinked() - a free piece of memory was taken off its list
 * @page: its first page
 * @zone: its zone, locked
 * @order: its order
 * @mt: migratetype of its pageblock
 *
 * Return: true if it was on a list of its block, false if on one of the zone.
 */
bool __cohort_unlinked(struct page *page, struct zone *zone, unsigned int order, int mt)
{
	struct cohort_block *blk = cohort_block_owned(page_to_pfn(page));

	if (!blk)
		return false;
	cohort_block_count(blk, order, -1);
	cohort_zone_count(blk, -(1 << order), mt);
	return true;
}

/**
 * __cohort_moved() - the pageblock of a free piece of memory changes its migratetype
 * @page: its first page
 * @zone: its zone, locked
 * @order: its order
 * @old: what it was
 * @new: what it will be
 *
 * Return: true if it stays on the list of its block.
 */
bool __cohort_moved(struct page *page, struct zone *zone, unsigned int order, int old, int new)
{
	struct cohort_block *blk = cohort_block_owned(page_to_pfn(page));

	if (!blk)
		return false;
	cohort_zone_count(blk, -(1 << order), old);
	cohort_zone_count(blk, 1 << order, new);
	return true;
}

/**
 * __cohort_owned_pageblock() - has anything in a pageblock an owner?
 * @page: any page of it
 *
 * Without the lock a guess.
 */
bool __cohort_owned_pageblock(const struct page *page)
{
	unsigned long at = pageblock_start_pfn(page_to_pfn(page));
	unsigned long end = at + pageblock_nr_pages;

	for (; at < end; at += cohort_pages()) {
		struct cohort_block *blk = cohort_block_of(at);

		if (blk && READ_ONCE(blk->id))
			return true;
	}
	return false;
}

/* Has all of a slot an owner?  Around a remnant there are frames without. */
static bool cohort_slot_owned(const struct cohort_block *blk)
{
	return READ_ONCE(blk->id) &&
	       (cohort_block_kept(blk) || READ_ONCE(blk->order) == cohort_block_order());
}

/**
 * cohort_pageblock_all_owned() - has all of a pageblock an owner?
 * @page: any page of it
 *
 * The searches of compaction begin at free pieces of the zone's lists and do not come to such
 * a one.  To any other they come again and again until that is marked.  Without the lock a guess.
 */
bool cohort_pageblock_all_owned(const struct page *page)
{
	unsigned long at = pageblock_start_pfn(page_to_pfn(page));
	unsigned long end = at + pageblock_nr_pages;

	for (; at < end; at += cohort_pages()) {
		struct cohort_block *blk = cohort_block_of(at);

		if (!blk || !cohort_slot_owned(blk))
			return false;
	}
	return true;
}

/**
 * __cohort_hole() - a free piece of a pageblock that may be turned over
 * @page: its first page, zone->lock held
 * @nr: its size, pages
 * @num_movable: counts pages of the pageblock that can be moved
 *
 * What is free in a block is not there for what takes the pageblock; and it goes with
 * what is in use around it.
 *
 * Return: true if it has an owner.
 */
bool __cohort_hole(const struct page *page, int nr, int *num_movable)
{
	struct cohort_block *blk = cohort_block_owned(page_to_pfn(page));

	if (blk && !cohort_unmovable(blk->room->dom))
		*num_movable += nr;
	return blk;
}

/**
 * __cohort_merge() - up to which order does a page merge inside a block?
 * @pfn: first frame that is freed, zone->lock held
 * @order: order that is freed
 *
 * A page of an owned block merges with its buddies as any other does, until all of the
 * block is free: then the block has come home, and is an ordinary free page, if it is not
 * fixed; of that no more is ever freed in one piece.  Something larger that is freed in
 * one piece takes its blocks' owners away at once.
 *
 * Return: order of the block, 0 if the page has no owner.
 */
unsigned int __cohort_merge(unsigned long pfn, unsigned int order)
{
	struct cohort_block *blk = cohort_block_of(pfn);
	unsigned long end = pfn + (1UL << order);

	if (blk && cohort_block_kept(blk)) {
		cohort_keeper->freed(blk, pfn, order);
		return blk->order;
	}
	if (blk && blk->room) {
		if ((pfn ^ blk->pfn) >> blk->order == 0 && order < blk->order)
			return blk->order;
		if ((pfn ^ blk->pfn) >> order == 0)
			cohort_block_leave(blk);
	}
	for (pfn += cohort_pages(); pfn < end; pfn += cohort_pages()) {
		blk = cohort_block_of(pfn);
		if (blk && blk->room)
			cohort_block_leave(blk);
	}
	return 0;
}

/**
 * __cohort_home() - does a page that has merged to the order of its block stay there?
 * @pfn: first frame of the merged piece, zone->lock held
 *
 * All of a block is free: it loses its owner, and merges on as any other page, if it is
 * not fixed.
 */
bool __cohort_home(unsigned long pfn)
{
	struct cohort_block *blk = cohort_block_owned(pfn);

	if (!blk)
		return false;
	if (cohort_block_kept(blk))
		return true;
	trace_cohort_block_free(pfn, blk->order);
	count_vm_event(COHORT_BLOCK_FREE);
	cohort_block_leave(blk);
	return false;
}

/**
 * cohort_block_enter() - frames get an owner
 * @room: the owner
 * @blk: slot of the frames, which has none
 * @pfn: first frame; none is free in the buddy allocator's eyes
 * @order: their order
 */
void cohort_block_enter(struct cohort_room *room, struct cohort_block *blk,
			unsigned long pfn, unsigned int order)
{
	unsigned int o, lists = order + (room->dom->kind == COHORT_KEPT);

	VM_WARN_ON_ONCE(blk->room);
	for (o = 0; o < lists; o++)
		INIT_LIST_HEAD(&blk->free[o]);
	blk->room = room;
	blk->nr_free = 0;
	blk->retry = jiffies;
	blk->bucket = 0;
	WRITE_ONCE(blk->pfn, pfn);
	WRITE_ONCE(blk->order, order);
	list_add_tail(&blk->node, &room->list[0]);
	__set_bit(0, &room->nonempty);
	room->nr_blocks++;
	room->young = blk;
	/* A reader that sees the number sees the frames it is about. */
	smp_store_release(&blk->id, room->dom->id);
	trace_cohort_block_take(pfn, order, room->dom->kind);
}

/**
 * cohort_block_leave() - frames lose their owner
 * @blk: their block, without a page on its lists
 */
void cohort_block_leave(struct cohort_block *blk)
{
	struct cohort_room *room = blk->room;
	struct cohort_zone *cz = room->zone->cohort;

	VM_WARN_ON_ONCE(blk->nr_free);
	list_del(&blk->node);
	if (list_empty(&room->list[blk->bucket]))
		__clear_bit(blk->bucket, &room->nonempty);
	if (room->young == blk)
		room->young = NULL;
	if (cz->taint == blk)
		cz->taint = NULL;
	room->nr_blocks--;
	if (cohort_block_kept(blk))
		cohort_keeper->left(blk);
	WRITE_ONCE(blk->id, 0);
	blk->room = NULL;
	cohort_check_room(room);
}

/**
 * cohort_block_dissolve() - give a block up
 * @blk: a block with an owner
 *
 * Its free pages become ordinary ones; pages in use will when they are freed.
 *
 * Return: number of free pages it had.
 */
unsigned long cohort_block_dissolve(struct cohort_block *blk)
{
	struct zone *zone = blk->room->zone;
	unsigned long nr = blk->nr_free;
	struct list_head *chunks = zone->cohort->chunks;
	unsigned int o, lists = cohort_block_lists(blk);
	struct page *page, *next;

	trace_cohort_block_dissolve(blk->pfn, nr);
	for (o = 0; o < lists; o++) {
		INIT_LIST_HEAD(&chunks[o]);
		list_for_each_entry(page, &blk->free[o], buddy_list) {
			cohort_block_count(blk, o, -1);
			cohort_zone_count(blk, -(1 << o), get_pageblock_migratetype(page));
		}
		list_splice_init(&blk->free[o], &chunks[o]);
	}
	cohort_block_leave(blk);
	for (o = 0; o < blk->order; o++)
		list_for_each_entry_safe(page, next, &chunks[o], buddy_list)
			cohort_buddy_relink(zone, page, o);
	/* All of it in one piece has a buddy outside. */
	if (lists > blk->order && !list_empty(&chunks[o]))
		cohort_buddy_rejoin(zone, list_first_entry(&chunks[o], struct page, buddy_list), o);
	return nr;
}

/**
 * cohort_block_usable() - may pages be handed out of this block?
 * @blk: a block with an owner
 *
 * Those that are being isolated must stay.
 */
bool cohort_block_usable(const struct cohort_block *blk)
{
	return !is_migrate_isolate(get_pageblock_migratetype(pfn_to_page(blk->pfn)));
}

/**
 * cohort_block_take() - take single pages out of a block
 * @blk: a block with an owner, usable
 * @page: receives them, the one to be used first at the beginning
 * @want: how many at most
 *
 * Small free pieces first: the rest is in large ones.
 *
 * Return: number of pages.
 */
unsigned int cohort_block_take(struct cohort_block *blk, struct page **page,
			       unsigned int want)
{
	struct zone *zone = blk->room->zone;
	unsigned int i, o = 0, nr = 0, low;

	while (o < cohort_block_lists(blk) && nr < want) {
		struct page *piece;

		piece = list_first_entry_or_null(&blk->free[o], struct page, buddy_list);
		if (!piece) {
			o++;
			continue;
		}
		low = min_t(unsigned int, o, ilog2(want - nr));
		cohort_buddy_split(zone, piece, low, o);
		for (i = 0; i < 1U << low; i++)
			page[nr++] = piece + i;
	}
	cohort_block_place(blk);
	return nr;
}

/**
 * cohort_block_piece() - take one piece out of a block
 * @blk: a block with an owner, usable
 * @order: order of the piece
 *
 * Return: its first page, refcount 0, or NULL.
 */
struct page *cohort_block_piece(struct cohort_block *blk, unsigned int order)
{
	struct page *piece = NULL;
	unsigned int o;

	for (o = order; o < cohort_block_lists(blk) && !piece; o++)
		piece = list_first_entry_or_null(&blk->free[o], struct page, buddy_list);
	if (!piece)
		return NULL;
	cohort_buddy_split(blk->room->zone, piece, order, o - 1);
	cohort_block_place(blk);
	return piece;
}

static void cohort_zone_show_item(struct zone *zone, enum zone_stat_item item,
				  unsigned long now, unsigned long *shown)
{
	if (now == *shown)
		return;
	__mod_zone_page_state(zone, item, now - *shown);
	*shown = now;
}

/**
 * cohort_zone_show() - let the statistics follow the counts
 * @zone: a zone
 */
void cohort_zone_show(struct zone *zone)
{
	struct cohort_zone *cz = zone->cohort;

	if (!cz)
		return;
	cohort_zone_show_item(zone, NR_COHORT_OWNED, zone->cohort_soft, &cz->shown);
	cohort_zone_show_item(zone, NR_COHORT_RESERVED, zone->cohort_reserved,
			      &cz->shown_reserved);
}

static void cohort_block_each_free(struct cohort_block *blk,
				   void (*visit)(struct page *page))
{
	struct page *piece;
	unsigned int o, i;

	for (o = 0; o < cohort_block_lists(blk); o++)
		list_for_each_entry(piece, &blk->free[o], buddy_list)
			for (i = 0; i < 1U << o; i++)
				visit(piece + i);
}

/**
 * __cohort_each_free() - have all free pages looked at that have an owner
 * @zone: their zone, locked
 * @visit: called with each
 */
void __cohort_each_free(struct zone *zone, void (*visit)(struct page *page))
{
	struct cohort_block *blk;
	struct cohort_room *room;
	unsigned int kind, i;

	for (kind = 0; zone->cohort && kind <= COHORT_KEPT; kind++)
		list_for_each_entry(room, &zone->cohort->rooms[kind], breach)
			for (i = 0; i <= COHORT_BUSY; i++)
				list_for_each_entry(blk, &room->list[i], node)
					cohort_block_each_free(blk, visit);
}

/**
 * __cohort_page_parked() - is this page free in a block?
 * @page: any page; the answer may be stale when it arrives
 */
bool __cohort_page_parked(const struct page *page)
{
	return cohort_owner_id(page_to_pfn(page)) && is_free_buddy_page(page);
}

/**
 * cohort_block_after() - where compaction goes on
 * @pfn: frame its scanner stands on
 * @order: what it compacts for, -1 for all
 *
 * Compaction would move pages out of a block one by one into ordinary free pages, and
 * fill a block's holes with pages of strangers.  A block is taken apart for a
 * larger piece only.
 *
 * Return: @pfn, or the first frame after the block that holds it.
 */
unsigned long cohort_block_after(unsigned long pfn, int order)
{
	struct cohort_block *blk = cohort_block_of(pfn);
	unsigned int own;

	if (!blk || !cohort_owner_id(pfn))
		return pfn;
	own = READ_ONCE(blk->order);
	if (order >= 0 && own < order && !cohort_block_kept(blk))
		return pfn;
	return (pfn | ((1UL << own) - 1)) + 1;
}

/* Has a block of a domain any frame from one to another?  A remnant may begin behind the first. */
static bool cohort_block_touches(const struct cohort_block *blk, unsigned long pfn,
				 unsigned long end)
{
	unsigned long first;

	if (!blk || !READ_ONCE(blk->id) || cohort_block_kept(blk))
		return false;
	first = READ_ONCE(blk->pfn);
	return first < end && first + (1UL << READ_ONCE(blk->order)) > pfn;
}

/**
 * cohort_range_dissolve() - no block has these frames any longer
 * @start_pfn: first frame
 * @end_pfn: one past the last frame
 *
 * Context: no locks of the page allocator held.
 */
void cohort_range_dissolve(unsigned long start_pfn, unsigned long end_pfn)
{
	unsigned long flags, pfn;

	/* Fixed blocks are for good: one that has lost a frame goes on with the others. */
	for (pfn = start_pfn; pfn < end_pfn; pfn = (pfn | (cohort_pages() - 1)) + 1) {
		struct cohort_block *blk = cohort_block_of(pfn);
		struct zone *zone;

		if (!cohort_block_touches(blk, pfn, end_pfn))
			continue;
		zone = page_zone(pfn_to_page(READ_ONCE(blk->pfn)));
		spin_lock_irqsave(&zone->lock, flags);
		if (blk->room && cohort_block_touches(blk, pfn, end_pfn)) {
			cohort_block_dissolve(blk);
			cohort_zone_show(zone);
		}
		spin_unlock_irqrestore(&zone->lock, flags);
	}
}

#ifdef CONFIG_COHORT_DEBUG
static unsigned int cohort_check_block(const struct cohort_block *blk)
{
	unsigned int o, nr = 0;
	struct page *page;

	for (o = 0; o < cohort_block_lists(blk); o++) {
		list_for_each_entry(page, &blk->free[o], buddy_list) {
			WARN_ON_ONCE(!PageBuddy(page) || buddy_order(page) != o);
			WARN_ON_ONCE((page_to_pfn(page) ^ blk->pfn) >> blk->order);
			nr += 1U << o;
		}
	}
	WARN_ON_ONCE(nr != blk->nr_free ||
		     nr >= (1U << blk->order) + cohort_block_kept(blk));
	return nr;
}

/**
 * cohort_check_room() - recount a room
 * @room: the room
 *
 * The invariants of struct cohort_room and struct cohort_block.
 */
void cohort_check_room(struct cohort_room *room)
{
	unsigned long parked = 0, blocks = 0;
	struct cohort_block *blk;
	unsigned int i;

	lockdep_assert_held(&room->zone->lock);
	/* A large process has thousands of sets, and all of them go at its exit. */
	if (room->nr_blocks > 64 && room->nr_blocks % 16)
		return;
	for (i = 0; i <= COHORT_BUSY; i++) {
		if (i != COHORT_BUSY)
			WARN_ON_ONCE(test_bit(i, &room->nonempty) ==
				     list_empty(&room->list[i]));
		list_for_each_entry(blk, &room->list[i], node) {
			WARN_ON_ONCE(blk->room != room || blk->bucket != i);
			parked += cohort_check_block(blk);
			blocks++;
		}
	}
	WARN_ON_ONCE(parked != room->nr_free || blocks != room->nr_blocks);
	WARN_ON_ONCE(list_empty(&room->breach) != !room->nr_free);
}
#endif
