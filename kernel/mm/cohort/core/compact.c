// SPDX-License-Identifier: GPL-2.0
/*
 * Compaction of a room: the pages of its emptiest block move into the free
 * pages of its fuller ones, and the block comes home.  Both ends are known;
 * no memory is scanned for them and none is allocated.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpumask.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>
#include <trace/events/cohort.h>

#include "../../internal.h"
#include "../cohort.h"
#include "../host/compaction.h"

/* Blocks of a process that are tried in a row: other work waits for it, and so does suspend. */
#define COHORT_COMPACT_BLOCKS	64U

/* A process rests after such a row, in times of what it took. */
#define COHORT_COMPACT_REST	4

/* Blocks of a list that are passed over, because they rest, before the next list is looked at. */
#define COHORT_RESTING		64

/* To move a page costs as much as to look at so many mappings; more are not counted. */
#define COHORT_MOVE_COST	8U
#define COHORT_MAPPED_COST	16

/* How long the pages of a block may take to move: a request, or suspend, may wait for it. */
#define COHORT_MOVE_TIME	(HZ / 10)

/* What is free in blocks that are being emptied is no place for pages of others. */
static unsigned long cohort_room_targets(const struct cohort_room *room)
{
	unsigned long nr = room->nr_free;
	const struct cohort_block *blk;

	list_for_each_entry(blk, &room->list[COHORT_BUSY], node)
		nr -= blk->nr_free;
	return nr;
}

/* The emptiest blocks of a room that may be emptied now. */
static unsigned int cohort_candidates(struct cohort_room *room, struct cohort_block **cand)
{
	struct cohort_block *blk, *next, *young;
	unsigned int b, nr = 0, resting;
	unsigned long flags;

	spin_lock_irqsave(&room->zone->lock, flags);
	/* One that is being emptied is not being filled. */
	young = READ_ONCE(room->young);
	if (!cohort_sweep_wanted(cohort_room_targets(room), young ? young->nr_free : 0,
				 cohort_block_order()))
		goto out;
	for (b = COHORT_BUCKETS - 1; b; b--) {
		resting = 0;
		list_for_each_entry_safe(blk, next, &room->list[b], node) {
			/* Strangers have been here. */
			cohort_block_place(blk);
			/* Around a remnant there are other people's pages. */
			if (blk->bucket != b || blk == young || blk->order != cohort_block_order() ||
			    time_before(jiffies, blk->retry)) {
				if (resting++ == COHORT_RESTING)
					break;
				continue;
			}
			cand[nr++] = blk;
			if (nr == COHORT_CANDIDATES)
				goto out;
		}
	}
out:
	spin_unlock_irqrestore(&room->zone->lock, flags);
	return nr;
}

/* What a block is may change meanwhile: frames of its slot exist, whatever it is. */
static unsigned long cohort_block_slot(const struct cohort_block *blk, unsigned int pages)
{
	return round_down(READ_ONCE(blk->pfn), pages);
}

/*
 * What emptying a block costs.  Of the cache, clean inactive pages would be dropped;
 * everything else in use moves.  Either way each mapping is looked at, and a page that many
 * processes map is missed by them all.
 */
static unsigned int cohort_block_cost(const struct cohort_room *room,
				      const struct cohort_block *blk)
{
	bool cache = room->dom->kind == COHORT_CACHE || room->dom->kind == COHORT_HOT;
	unsigned int cost = 0, pages = cohort_pages();
	unsigned long pfn = cohort_block_slot(blk, pages), end = pfn + pages;

	while (pfn < end) {
		struct page *page = pfn_to_page(pfn);
		unsigned long page_flags = READ_ONCE(page->flags);

		if (PageBuddy(page)) {
			pfn += 1UL << min_t(unsigned int, buddy_order_unsafe(page),
					    COHORT_MAX_ORDER);
			continue;
		}
		if (!cache || (page_flags & (BIT(PG_active) | BIT(PG_dirty))))
			cost += COHORT_MOVE_COST;
		/* Negative for what is no page of a process or a file. */
		cost += clamp(atomic_read(&page->_mapcount) + 1, 0, COHORT_MAPPED_COST);
		pfn++;
	}
	return cost;
}

/**
 * cohort_pick_victim() - choose the block to empty next
 * @room: the room
 *
 * Of the emptiest few the one that is cheapest to empty.  The block
 * being filled is excepted: its pages are the youngest of the domain, and its
 * free pages are about to be used.
 *
 * Looks at the candidates without the lock: a wrong guess costs time only.
 *
 * Return: a block on the busy list, from which until cohort_unpick() only a
 * breach takes that finds nothing else in the room; NULL if no block can be freed.
 */
struct cohort_block *cohort_pick_victim(struct cohort_room *room)
{
	struct cohort_block *cand[COHORT_CANDIDATES], *victim = NULL;
	unsigned int i, nr = cohort_candidates(room, cand);
	unsigned int least = UINT_MAX;
	unsigned long flags;

	for (i = 0; i < nr; i++) {
		unsigned int cost = cohort_block_cost(room, cand[i]);

		if (cost < least) {
			least = cost;
			victim = cand[i];
		}
	}
	if (!victim)
		return NULL;

	spin_lock_irqsave(&room->zone->lock, flags);
	if (victim->room == room && victim->bucket != COHORT_BUSY) {
		/* It was acquired again meanwhile. */
		if (victim == room->young)
			room->young = NULL;
		cohort_block_move(victim, COHORT_BUSY);
	} else {
		victim = NULL;
	}
	spin_unlock_irqrestore(&room->zone->lock, flags);
	return victim;
}

/**
 * cohort_unpick() - emptying a block is over
 * @room: the room it was picked from
 * @blk: the block
 *
 * Return: true if the block went home, false if it is in use again.
 */
bool cohort_unpick(struct cohort_room *room, struct cohort_block *blk)
{
	unsigned long flags;
	unsigned int cpu;
	bool kept;

	/* Pages moved away, or freed meanwhile, may be at hand somewhere. */
	for_each_online_cpu(cpu)
		cohort_magazine_drain(room->zone, cpu, room->dom->id);
	spin_lock_irqsave(&room->zone->lock, flags);
	kept = blk->room == room && blk->bucket == COHORT_BUSY;
	if (kept) {
		blk->retry = jiffies + COHORT_RETRY;
		cohort_block_move(blk, cohort_bucket(blk->nr_free, cohort_block_order()));
		cohort_check_room(room);
	}
	spin_unlock_irqrestore(&room->zone->lock, flags);
	return !kept;
}

/* On the LRU, or of a driver that knows how to move it: zsmalloc. */
static bool cohort_movable(struct folio *folio)
{
	return folio_test_lru(folio) || __folio_test_movable(folio);
}

/**
 * cohort_get_single() - a reference to a folio of one page
 * @page: any page; what it belongs to may change until the reference is there
 *
 * Return: its folio, or NULL if it is free or in a larger one.
 */
struct folio *cohort_get_single(struct page *page)
{
	struct folio *folio = page_folio(page);

	if (!folio_try_get(folio))
		return NULL;
	if (folio_page(folio, 0) == page && !folio_test_large(folio))
		return folio;
	folio_put(folio);
	return NULL;
}

/* The same, and it can be moved: of a page that cannot no reference is taken. */
static struct folio *cohort_get_movable(struct page *page)
{
	struct folio *folio;

	if (!(PageLRU(page) || __PageMovable(page)))
		return NULL;
	folio = cohort_get_single(page);
	if (!folio || cohort_movable(folio))
		return folio;
	folio_put(folio);
	return NULL;
}

/**
 * cohort_isolate_page() - take one page off the LRU, or from a driver that can move it
 * @page: any page
 * @list: receives its folio
 *
 * Return: false if it is on no LRU list and no driver's, in a larger folio or pinned.
 */
bool cohort_isolate_page(struct page *page, struct list_head *list)
{
	struct folio *folio = cohort_get_movable(page);
	bool done;

	if (!folio)
		return false;
	done = !folio_maybe_dma_pinned(folio) && isolate_folio_to_list(folio, list);
	folio_put(folio);
	return done;
}

/**
 * cohort_isolate_frames() - take pages of a block off the LRU
 * @pfn: its first frame
 * @list: receives the folios, each with a reference; those of the LRU are
 *	counted as isolated
 *
 * Return: number of folios on @list.
 */
unsigned int cohort_isolate_frames(unsigned long pfn, struct list_head *list)
{
	unsigned int i, nr = 0, pages = cohort_pages();

	for (i = 0; i < pages; i++) {
		struct folio *folio = cohort_get_movable(pfn_to_page(pfn + i));

		if (!folio)
			continue;
		if ((!folio_test_unevictable(folio) || cohort_unevictable_moves()) &&
		    !folio_maybe_dma_pinned(folio) && isolate_folio_to_list(folio, list))
			nr++;
		folio_put(folio);
	}
	return nr;
}

/**
 * cohort_isolate() - take a picked block's pages off the LRU
 * @blk: the block
 * @list: receives the folios, as of cohort_isolate_frames()
 *
 * Return: number of folios on @list.
 */
unsigned int cohort_isolate(struct cohort_block *blk, struct list_head *list)
{
	return cohort_isolate_frames(cohort_block_slot(blk, cohort_pages()), list);
}

/*
 * Where pages that move go, a batch at a time: free pages of a room; and if they come
 * from another one, of one more block, and last of the fuller blocks of that room.  If they
 * have no owner, small pieces of the zone outside of their block, which begins at @pfn.  None
 * after @end: to unmap a page that thousands map takes milliseconds.
 */
struct cohort_targets {
	struct zone *zone;
	struct cohort_room *room;
	struct cohort_room *from;
	unsigned long pfn;
	unsigned long end;
	bool grown;
	struct page *page[COHORT_ROUND];
	unsigned int nr;
};

static unsigned int cohort_targets_find(struct cohort_targets *to)
{
	struct zone *zone = to->zone;
	unsigned int nr;

	if (!to->room)
		return cohort_buddy_pieces(zone, to->pfn, to->page, COHORT_ROUND);
	nr = cohort_room_take(to->room, to->page, COHORT_ROUND);
	if (nr || !to->from)
		return nr;
	if (!to->grown)
		nr = cohort_room_acquire(to->room, zone_idx(zone), min_wmark_pages(zone),
					 to->page, COHORT_ROUND);
	to->grown = true;
	return nr ?: cohort_room_take(to->from, to->page, COHORT_ROUND);
}

static struct folio *cohort_target_take_noprof(struct folio *src, unsigned long private)
{
	struct cohort_targets *to = (struct cohort_targets *)private;
	struct zone *zone = to->zone;

	for (;;) {
		struct page *page;

		if (time_after(jiffies, to->end))
			return NULL;
		if (!to->nr)
			to->nr = cohort_targets_find(to);
		if (!to->nr)
			return NULL;
		page = to->page[--to->nr];
		if (cohort_hand_out(page, 0, GFP_HIGHUSER_MOVABLE, 0, zone))
			return page_folio(page);
	}
}

static struct folio *cohort_target_take(struct folio *src, unsigned long private)
{
	return alloc_hooks(cohort_target_take_noprof(src, private));
}

static void cohort_target_put(struct folio *dst, unsigned long private)
{
	folio_put(dst);
}

/*
 * Is a folio locked for as long as the kernel needs, and no longer?  A page of a file that
 * found no place elsewhere may be in any block, and a server of FUSE may keep it locked.  One
 * of a block device is, but its buffers are locked while they are written, for as long as the
 * device takes: behind a loop device may be such a server, too.
 */
static bool cohort_lock_is_short(struct folio *folio)
{
	return folio_test_anon(folio) || __folio_test_movable(folio);
}

static unsigned int cohort_targets_fill(struct cohort_targets *to, struct list_head *list,
					enum migrate_mode mode)
{
	unsigned int moved = 0;

	if (list_empty(list))
		return 0;
	migrate_pages(list, cohort_target_take, cohort_target_put, (unsigned long)to, mode,
		      MR_COMPACTION, &moved);
	putback_movable_pages(list);
	return moved;
}

static unsigned int cohort_evacuate_to(struct cohort_targets *to, struct list_head *list,
				       bool may_wait)
{
	struct folio *folio, *next;
	LIST_HEAD(wait);
	unsigned int moved;

	to->end = jiffies + COHORT_MOVE_TIME;
	list_for_each_entry_safe(folio, next, list, lru)
		if (may_wait && cohort_lock_is_short(folio))
			list_move_tail(&folio->lru, &wait);
	moved = cohort_targets_fill(to, &wait, MIGRATE_SYNC_LIGHT);
	moved += cohort_targets_fill(to, list, MIGRATE_ASYNC);
	if (to->nr)
		cohort_buddy_free_bulk(to->zone, to->page, to->nr);
	count_vm_events(COHORT_MIGRATE, moved);
	return moved;
}

/**
 * cohort_evacuate() - move isolated folios into free pages of a room
 * @room: the room
 * @from: the room they are in, if that is another one of the zone, else NULL: @room may
 *	take one more block for them, down to the min watermark, and what finds no place
 *	there moves within @from
 * @list: isolated folios; empty on return, those not moved are on the LRU again
 * @may_wait: false in reclaim: never sleep on a page, never touch a busy one; else not
 *	on one that a user may keep busy
 *
 * Return: number of folios moved.
 */
unsigned int cohort_evacuate(struct cohort_room *room, struct cohort_room *from,
			     struct list_head *list, bool may_wait)
{
	struct cohort_targets to = { .zone = room->zone, .room = room, .from = from };

	return cohort_evacuate_to(&to, list, may_wait);
}

/**
 * cohort_evacuate_unowned() - move isolated folios that have no owner into small pieces
 * @zone: their zone
 * @pfn: first frame of the block they are in
 * @list: isolated folios; empty on return
 *
 * Return: number of folios moved.
 */
unsigned int cohort_evacuate_unowned(struct zone *zone, unsigned long pfn, struct list_head *list)
{
	struct cohort_targets to = { .zone = zone, .pfn = pfn };

	return cohort_evacuate_to(&to, list, true);
}

/**
 * cohort_compact_block() - empty the block of a room that is cheapest to empty
 * @room: the room
 * @may_wait: may sleep on pages
 * @blocks: counts blocks that came home
 * @moved: counts pages that moved
 *
 * Return: false if there is no block to be emptied.
 */
bool cohort_compact_block(struct cohort_room *room, bool may_wait,
			  unsigned int *blocks, unsigned int *moved)
{
	struct cohort_block *blk = cohort_pick_victim(room);
	LIST_HEAD(list);

	if (!blk)
		return false;
	cohort_isolate(blk, &list);
	*moved += cohort_evacuate(room, NULL, &list, may_wait);
	*blocks += cohort_unpick(room, blk);
	return true;
}

/*
 * The block being filled is spared: it would be acquired again at once.  But a process
 * acquires no first one as long as owners have too much.
 */
static struct cohort_block *cohort_first_old(struct cohort_room *room, unsigned int bucket,
					     bool resting)
{
	struct cohort_block *blk, *next;
	unsigned int left = COHORT_RESTING;

	list_for_each_entry_safe(blk, next, &room->list[bucket], node) {
		if (!left--) {
			/* The next look begins with others. */
			list_rotate_to_front(&blk->node, &room->list[bucket]);
			break;
		}
		/* Strangers have been here. */
		cohort_block_place(blk);
		if (blk->bucket != bucket || (resting && !time_before(jiffies, blk->retry)))
			continue;
		if (blk != room->young || room->dom->kind == COHORT_PROCESS)
			return blk;
	}
	return NULL;
}

/**
 * cohort_room_relieve() - give the emptiest blocks of a room up
 * @room: the room
 * @most: how many
 * @full: also those that are mostly in use
 *
 * For blocks that packing would not bring home, since something in them is pinned: what is
 * free around that is no use to the owner that is worth keeping it from others.
 *
 * Return: how many; of pages that packing can move, only such that are free by more than half,
 * or that have just been emptied in vain, or @full ones.
 */
unsigned int cohort_room_relieve(struct cohort_room *room, unsigned int most, bool full)
{
	unsigned int nr = 0, last = 0;
	unsigned long flags;
	int b;

	if (!full && !cohort_unmovable(room->dom))
		last = cohort_bucket(cohort_pages() / 2, cohort_block_order());
	spin_lock_irqsave(&room->zone->lock, flags);
	for (b = COHORT_BUCKETS - 1; b && nr < most; b--) {
		struct cohort_block *blk = cohort_first_old(room, b, b <= last);

		if (!blk)
			continue;
		cohort_block_dissolve(blk);
		nr++;
		b++;
	}
	cohort_zone_show(room->zone);
	spin_unlock_irqrestore(&room->zone->lock, flags);
	return nr;
}

static void cohort_room_compact(struct cohort_room *room, bool background, bool may_wait,
				unsigned long end, unsigned int *left, unsigned int *blocks,
				unsigned int *moved)
{
	unsigned int rounds = READ_ONCE(room->nr_blocks);

	for (; rounds && *left && time_before(jiffies, end); rounds--, --*left) {
		/* A process in the background fills no block: none is spared.  It may come back. */
		if (background && READ_ONCE(room->dom->class) != COHORT_BACKGROUND)
			break;
		if (background)
			WRITE_ONCE(room->young, NULL);
		if (!cohort_compact_block(room, may_wait, blocks, moved))
			break;
		cond_resched();
	}
}

/**
 * cohort_domain_compact() - bring home what blocks can be brought home
 * @dom: the domain
 * @may_wait: may sleep on pages
 * @most: how many are tried
 *
 * Return: blocks emptied.
 */
unsigned int cohort_domain_compact(struct cohort_domain *dom, bool may_wait, unsigned int most)
{
	bool background = READ_ONCE(dom->class) == COHORT_BACKGROUND;
	unsigned long end = jiffies + COHORT_PACK_TIME;
	unsigned int i, blocks = 0, moved = 0;

	cohort_domain_drain(dom);
	for (i = 0; i < cohort_nr_rooms(); i++) {
		struct cohort_room *room = READ_ONCE(dom->room[i]);

		if (room)
			cohort_room_compact(room, background, may_wait, end, &most, &blocks,
					    &moved);
	}
	trace_cohort_domain_compact(dom->kind, blocks, moved, cohort_domain_free(dom));
	count_vm_events(COHORT_COMPACT, blocks);
	return blocks;
}

/* A process decides how long a run takes, and by what it writes how many there are. */
static bool cohort_compact_run(struct cohort_domain *dom)
{
	unsigned long start = jiffies;
	bool home = cohort_domain_compact(dom, true, COHORT_COMPACT_BLOCKS);

	WRITE_ONCE(dom->rest, jiffies + COHORT_COMPACT_REST * (jiffies - start));
	return home;
}

void cohort_compact_work(struct work_struct *work)
{
	struct cohort_domain *dom = container_of(to_delayed_work(work),
						 struct cohort_domain, work);

	/* It may have been queued while it ran, and it may be in front again. */
	if (time_before(jiffies, READ_ONCE(dom->rest))) {
		cohort_compact_queue(dom, 0);
	} else if (READ_ONCE(dom->class) == COHORT_BACKGROUND &&
		   cohort_sweep_wanted(cohort_domain_free(dom), 0, cohort_block_order())) {
		/* Pages in another CPU's LRU batch cannot be isolated. */
		cohort_pack_drain();
		/* That takes a while. */
		if (READ_ONCE(dom->class) == COHORT_BACKGROUND && cohort_compact_run(dom))
			cohort_compact_queue(dom, 0);
	}
	cohort_domain_put(dom);
}

/**
 * cohort_compact_queue() - compact a domain soon
 * @dom: the domain
 * @delay_ms: how long its process may still settle
 *
 * Not before it has rested from the last run.
 *
 * Context: any.
 */
void cohort_compact_queue(struct cohort_domain *dom, unsigned int delay_ms)
{
	unsigned long delay = msecs_to_jiffies(delay_ms), now = jiffies;
	unsigned long rest = READ_ONCE(dom->rest);

	if (time_after(rest, now + delay))
		delay = rest - now;
	if (!refcount_inc_not_zero(&dom->ref))
		return;
	if (!queue_delayed_work(cohort_process_wq, &dom->work, delay))
		cohort_domain_put(dom);
}
