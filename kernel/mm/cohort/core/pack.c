// SPDX-License-Identifier: GPL-2.0
/*
 * A supply of whole blocks.  One worker a node packs the holes that blocks have,
 * so that whole ones come home, before domains, I/O buffers and huge pages look for
 * them in vain.  kswapd makes blocks that packing cannot: the headroom raises its
 * target, and not the zone's watermarks, by which low memory killers decide.  Last come
 * blocks that have no owner (unowned.c).
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/mm.h>
#include <linux/psi.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/compaction.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>

#include "../../internal.h"
#include "../cohort.h"

/* Blocks a run of the worker empties at most. */
#define COHORT_PACK_ROUNDS	64

/* Attempts for a request that finds no block, at one room or at several. */
#define COHORT_PACK_TRIES	3

/* Owners may have one part in so many of memory free; what is more is given up. */
#define COHORT_SOFT_PART	16

/* Domains that a request looks at. */
#define COHORT_PACK_LOOKS	512

/* Blocks given up under one hold of zone->lock. */
#define COHORT_RELIEF		4U

/* Runs in vain are 2^n times as far apart, up to this n. */
#define COHORT_PACK_DEFER	6

/* All CPUs' LRU batches are drained so often at most: any process can start packing. */
#define COHORT_DRAIN_EVERY	HZ

/**
 * struct cohort_packer - what packs the blocks of a node
 * @work: the run
 * @nid: the node
 * @next: jiffies before which it is not run again
 * @fails: runs in a row that brought no block home
 * @relief: the same as @next for what owners have too much of: where nothing cures that,
 *	whole blocks are to be made all the same
 * @vain: runs in a row after which it was still too much; with COHORT_PACK_DEFER of them,
 *	what many processes have a little of each is given up, too
 * @unowned: frame in each zone at which the search for blocks without an owner goes on
 * @unowned_next: the same as @next for these blocks
 * @unowned_fails: runs in a row that made none of them whole
 */
struct cohort_packer {
	struct work_struct work;
	int nid;
	unsigned long next;
	unsigned int fails;
	unsigned long relief;
	unsigned int vain;
	unsigned long unowned[MAX_NR_ZONES];
	unsigned long unowned_next;
	unsigned int unowned_fails;
};

unsigned long cohort_headroom __read_mostly = COHORT_HEADROOM_OF_MEMORY;
static struct cohort_packer *cohort_packers[MAX_NUMNODES];

/* Pages in ordinary pieces of an order and of those above. */
static unsigned long cohort_in_pieces(const struct zone *zone, unsigned int o)
{
	unsigned long nr = 0;

	for (; o < NR_PAGE_ORDERS; o++)
		/* A stale count costs one wakeup too many or too few. */
		nr += data_race(zone->free_area[o].nr_free) << o;
	return nr;
}

/* What the lists have more than the count of free pages: it is without isolated ones. */
static unsigned long cohort_zone_isolated(struct zone *zone)
{
	unsigned long most = cohort_isolated_blocks(zone) << pageblock_order, all;

	if (!most)
		return 0;
	all = cohort_in_pieces(zone, 0) + cohort_unusable_free(zone) + cohort_zone_unaccepted(zone);
	return min(most, all - min(all, zone_page_state_snapshot(zone, NR_FREE_PAGES)));
}

/*
 * What CMA may have of the whole blocks.  Where it has none its free pages are in small pieces,
 * as what can be moved takes them one by one.
 */
static unsigned long cohort_zone_cma(struct zone *zone)
{
#ifdef CONFIG_CMA
	unsigned int o;

	for (o = cohort_block_order(); o < NR_PAGE_ORDERS; o++)
		/* A stale answer costs one wakeup too many or too few. */
		if (!free_area_empty(&zone->free_area[o], MIGRATE_CMA))
			return zone_page_state(zone, NR_FREE_CMA_PAGES);
#endif
	return 0;
}

/**
 * cohort_whole() - pages of a zone that are free in whole blocks, and may be taken
 * @zone: the zone
 *
 * Without the lock.  As many pages as the min watermark has must stay free, and in a low
 * zone what is reserved there; they are in whole blocks where all else is.
 */
unsigned long cohort_whole(struct zone *zone)
{
	unsigned long nr = cohort_in_pieces(zone, cohort_block_order());
	unsigned long kept = zone->_watermark[WMARK_MIN];

	/* Blocks are not taken of it. */
	kept += cohort_zone_cma(zone);
	/* Nor of the reserve for requests that may not wait; its small pieces, too, are taken off. */
	kept += READ_ONCE(zone->nr_free_highatomic);
	/* Isolated pieces are in the lists as well, and free for none. */
	kept += cohort_zone_isolated(zone);
	/* Requests that may have a higher zone leave that much to those that may not. */
	kept += zone->lowmem_reserve[ZONE_NORMAL];
	/* A guest accepts more, all of it in large pieces, when others ask for it. */
	return nr - min(nr, kept) + cohort_zone_unaccepted(zone);
}

/**
 * cohort_zone_headroom() - a zone's part of the headroom, in pages
 * @zone: the zone
 *
 * What was not set to a size is a part of memory, which comes and goes.
 */
unsigned long cohort_zone_headroom(struct zone *zone)
{
	unsigned long all = READ_ONCE(cohort_headroom), managed = zone_managed_pages(zone);

	return all == COHORT_HEADROOM_OF_MEMORY ? managed / COHORT_HEADROOM_PART :
	       mult_frac(all, managed, totalram_pages());
}

/**
 * cohort_blocks_short() - are there fewer whole blocks than are to be kept ready?
 * @zone: the zone
 */
bool cohort_blocks_short(struct zone *zone)
{
	return cohort_whole(zone) < max_t(unsigned long, cohort_zone_headroom(zone),
					  cohort_pages());
}

/**
 * cohort_packing() - does the scheme that is on want whole blocks kept ready?
 */
bool cohort_packing(void)
{
	/* Pairs with the release in cohort_scheme_on(). */
	return smp_load_acquire(&cohort_taking) && READ_ONCE(cohort_scheme)->packed;
}

/*
 * Pages of blocks are free for all in need, so they count, but for half of the gap between
 * the marks at most: requests keep the stock marks, and were the zone balanced below the
 * low one, each would go the slow way.
 */
static unsigned long cohort_zone_counted(const struct zone *zone)
{
	/* Without a boost, which may come between two looks; the marks are written one by one. */
	unsigned long high = READ_ONCE(zone->_watermark[WMARK_HIGH]);
	unsigned long low = READ_ONCE(zone->_watermark[WMARK_LOW]);

	return min(READ_ONCE(zone->cohort_soft), (high - min(high, low)) / 2);
}

/**
 * __cohort_high_mark() - from how much on a zone is no longer short of memory
 * @zone: the zone
 *
 * Where kswapd stops at the latest: per-CPU lists stay short below it.
 */
unsigned long __cohort_high_mark(const struct zone *zone)
{
	unsigned long mark = high_wmark_pages(zone);

	return mark - min(mark, cohort_zone_counted(zone));
}

/*
 * Is so much of a zone there to be reclaimed?  Without what each CPU has not added yet, as
 * each page that finds no block asks; and where nothing is, what is free does not count.
 * What demotion could do, on machines with memory of several kinds, is left out.
 */
static bool cohort_zone_gives(struct zone *zone, unsigned long nr)
{
	unsigned long lru = zone_page_state(zone, NR_ZONE_INACTIVE_FILE) +
			    zone_page_state(zone, NR_ZONE_ACTIVE_FILE);
	long swap = get_nr_swap_pages();

	/* Runs in vain: what there is may be protected, and kswapd would give the node up. */
	if (READ_ONCE(zone->zone_pgdat->kswapd_failures))
		return false;
	if (swap > 0 && READ_ONCE(vm_swappiness))
		lru += min(zone_page_state(zone, NR_ZONE_INACTIVE_ANON) +
			   zone_page_state(zone, NR_ZONE_ACTIVE_ANON), (unsigned long)swap);
	return lru >= nr;
}

/**
 * cohort_zone_aim() - how much is free when kswapd has done enough
 * @zone: the zone
 * @mark: as stock has it
 *
 * The headroom stands on top: what the marks have is not for domains and I/O buffers to
 * take.  It is not asked for where there is little to reclaim: kswapd would never rest.
 */
unsigned long cohort_zone_aim(struct zone *zone, unsigned long mark)
{
	unsigned long headroom = cohort_zone_headroom(zone);

	mark -= min(mark, cohort_zone_counted(zone));
	if (cohort_packing() && cohort_zone_gives(zone, 2 * headroom))
		mark += headroom;
	return mark;
}

/**
 * cohort_pack_drain() - pages in LRU batches can be isolated afterwards
 */
void cohort_pack_drain(void)
{
	static unsigned long next = INITIAL_JIFFIES;

	if (time_before(jiffies, READ_ONCE(next)))
		return;
	WRITE_ONCE(next, jiffies + COHORT_DRAIN_EVERY);
	lru_add_drain_all();
}

/* Rooms have an order by their holes, those with as many by their address. */
struct cohort_holes {
	unsigned long nr;
	const struct cohort_room *room;
};

static bool cohort_fewer_holes(const struct cohort_holes *a, const struct cohort_holes *b)
{
	return a->nr < b->nr || (a->nr == b->nr && a->room < b->room);
}

/*
 * What a room is looked for: to pack it, for a request, as whole blocks are few, or holes many;
 * or to give blocks up: those that are mostly free, or in the end all.
 */
enum cohort_look_for {
	COHORT_FOR_REQUEST, COHORT_FOR_BLOCKS, COHORT_FOR_HOLES, COHORT_FOR_RELIEF, COHORT_FOR_ALL,
};

/* The cache is swept by reclaim, which also drops pages: it is packed where none is asked for. */
static bool cohort_packed(const struct cohort_domain *dom, enum cohort_look_for what)
{
	return what >= COHORT_FOR_RELIEF ||
	       (!cohort_unmovable(dom) &&
		(what == COHORT_FOR_HOLES || dom->kind != COHORT_CACHE));
}

/* From how many holes on a room is looked at? */
static unsigned long cohort_least_holes(enum cohort_look_for what)
{
	if (what == COHORT_FOR_ALL)
		return 1;
	/* Of a block that is mostly free there is something to be given up. */
	return cohort_pages() >> (what == COHORT_FOR_RELIEF);
}

/*
 * The room of a node that has most holes, or if @below is told what comes behind that, in
 * zones up to @top.  One that is to be packed does not rest.  A user has as many domains as
 * processes, in order of their numbers: a request looks at some of them, behind number @at, which
 * is that of the last one afterwards, or 0 at the end of all.
 */
static struct cohort_room *cohort_most_holes(int nid, int top, enum cohort_look_for what,
					     const struct cohort_holes *below, unsigned int *at)
{
	unsigned int i, left = COHORT_PACK_LOOKS, after = at ? *at : 0;
	struct cohort_holes most = { .nr = cohort_least_holes(what) };
	struct cohort_room *found = NULL;
	struct cohort_domain *dom;
	unsigned int last = 0;

	if (at)
		*at = 0;
	rcu_read_lock();
	list_for_each_entry_rcu(dom, &cohort_domains, all) {
		if (at && dom->id > COHORT_KEPT && dom->id <= after)
			continue;
		if (at && !left--) {
			*at = last;
			break;
		}
		if (dom->id > COHORT_KEPT)
			last = dom->id;
		if (!cohort_packed(dom, what))
			continue;
		for (i = nid * MAX_NR_ZONES; i <= nid * MAX_NR_ZONES + top; i++) {
			struct cohort_room *room = READ_ONCE(dom->room[i]);
			struct cohort_holes holes = { .room = room };

			if (room)
				holes.nr = READ_ONCE(room->nr_free);
			if (cohort_fewer_holes(&holes, &most) ||
			    (below && !cohort_fewer_holes(&holes, below)) ||
			    (what < COHORT_FOR_RELIEF &&
			     time_before(jiffies, READ_ONCE(room->retry))))
				continue;
			most = holes;
			found = room;
		}
	}
	if (found && !refcount_inc_not_zero(&found->dom->ref))
		found = NULL;
	rcu_read_unlock();
	return found;
}

/* A room whose blocks do not come home rests.  Requests pack beside the worker. */
static bool cohort_pack_room(struct cohort_room *room, bool may_wait)
{
	unsigned int blocks = 0, moved = 0, fails;
	/* A file system in user space may keep a page of the cache locked for good. */
	bool wait = may_wait && room->dom->kind != COHORT_HOT && room->dom->kind != COHORT_CACHE;
	bool tried = cohort_compact_block(room, wait, &blocks, &moved);

	count_vm_events(COHORT_PACK, blocks);
	if (blocks) {
		WRITE_ONCE(room->fails, 0);
		return true;
	}
	count_vm_events(COHORT_PACK_FAIL, 1);
	fails = READ_ONCE(room->fails);
	if (tried)
		WRITE_ONCE(room->fails, ++fails);
	if (!tried || fails >= COHORT_CANDIDATES)
		WRITE_ONCE(room->retry, jiffies + (COHORT_RETRY << min(fails, COHORT_REST_MAX)));
	return false;
}

/**
 * cohort_pack_look() - one look of a request for holes, and a try to pack what it finds
 * @nid: node the block should be of
 * @top: highest zone that helps
 * @at: 0 for a look at the first domains; behind those that were looked at, 0 at the end of all
 *
 * Context: as for direct compaction.
 * Return: 1 if a block came home, 0 if none did, -ENOENT if there was nothing to pack.
 */
int cohort_pack_look(int nid, int top, unsigned int *at)
{
	struct cohort_room *room;
	unsigned long stall;
	unsigned int flags;
	int home = -ENOENT;

	psi_memstall_enter(&stall);
	flags = memalloc_noreclaim_save();
	room = cohort_most_holes(nid, top, COHORT_FOR_REQUEST, NULL, at);
	if (room) {
		home = cohort_pack_room(room, false);
		cohort_domain_put(room->dom);
	}
	memalloc_noreclaim_restore(flags);
	psi_memstall_leave(&stall);
	return home;
}

/**
 * cohort_pack_one() - one block for a request that finds none, now
 * @nid: node it should be of
 * @top: highest zone that helps
 *
 * A block of the room with most holes, but for the cache's: what the worker does, which shares
 * the CPUs with kswapd and with what asks for memory, so that a burst outruns it.  Where there are
 * many domains each request looks at others.
 *
 * Context: as for direct compaction.
 * Return: true if a block came home.
 */
bool cohort_pack_one(int nid, int top)
{
	static unsigned int looked[MAX_NUMNODES];
	unsigned int tries = COHORT_PACK_TRIES, at = READ_ONCE(looked[nid]), begin;
	int home = 0;

	/* A room that has no block to be emptied rests from then on; others may come up again. */
	while (home <= 0 && tries--) {
		begin = at;
		home = cohort_pack_look(nid, top, &at);
		/* That was all of them. */
		if (home < 0 && !begin && !at)
			break;
	}
	WRITE_ONCE(looked[nid], at);
	return home > 0;
}

/*
 * Up to which zone of a node, of those @above one, are whole blocks few?  Memory that cannot
 * be moved has none of ZONE_MOVABLE, so there have to be enough without; but none are kept
 * ready for what only has a low zone.  Negative if they are not few.
 */
static int cohort_node_short(int nid, int above)
{
	struct pglist_data *pgdat = NODE_DATA(nid);
	unsigned long whole = 0, want = 0;
	bool some = false;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++) {
		if (populated_zone(&pgdat->node_zones[i])) {
			whole += cohort_whole(&pgdat->node_zones[i]);
			want += cohort_zone_headroom(&pgdat->node_zones[i]);
			some = true;
		}
		if (some && i >= ZONE_NORMAL && i > above &&
		    whole < max_t(unsigned long, want, cohort_pages()))
			return i;
	}
	return -1;
}

/**
 * cohort_node_excess() - have owners more free pages of a node than they may keep from others?
 * @nid: the node
 */
bool cohort_node_excess(int nid)
{
	struct pglist_data *pgdat = NODE_DATA(nid);
	unsigned long soft = 0, most = 0;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++) {
		soft += READ_ONCE(pgdat->node_zones[i].cohort_soft);
		most += zone_managed_pages(&pgdat->node_zones[i]) / COHORT_SOFT_PART;
	}
	return soft > most;
}

/*
 * From below: where the low zones have nothing to pack, the next one has its turn.  And
 * whatever there is while owners have too much: no process has a first block meanwhile.
 */
static struct cohort_room *cohort_pack_next(int nid, bool excess)
{
	struct cohort_room *room = NULL;
	int top = -1;

	while (!room && (top = cohort_node_short(nid, top)) >= 0)
		room = cohort_most_holes(nid, top, COHORT_FOR_BLOCKS, NULL, NULL);
	if (!room && excess && cohort_node_excess(nid))
		room = cohort_most_holes(nid, MAX_NR_ZONES - 1, COHORT_FOR_HOLES, NULL, NULL);
	return room;
}

/*
 * Memory that a process has freed around pages that are pinned is free, but only for what
 * breaches; and reclaim would go on in front of it.
 */
static unsigned int cohort_pack_relieve(int nid, enum cohort_look_for what, unsigned long end)
{
	unsigned int nr = 0, rounds = COHORT_PACK_ROUNDS, given;
	struct cohort_holes below = { .nr = ULONG_MAX };
	struct cohort_room *room;

	while (rounds-- && time_before(jiffies, end) && cohort_node_excess(nid) &&
	       (room = cohort_most_holes(nid, MAX_NR_ZONES - 1, what, &below, NULL))) {
		given = cohort_room_relieve(room, COHORT_RELIEF, what == COHORT_FOR_ALL);
		/* Its blocks are in use by more than half, or it has none left: the next one. */
		if (!given) {
			below.nr = READ_ONCE(room->nr_free);
			below.room = room;
		}
		nr += given;
		cohort_domain_put(room->dom);
		cond_resched();
	}
	return nr;
}

/* When the next run may be, after one that brought @home blocks. */
static unsigned long cohort_pack_after(unsigned int *fails, unsigned int home)
{
	*fails = home ? 0 : min(*fails + 1, COHORT_PACK_DEFER);
	return jiffies + (HZ / 20 << *fails);
}

/* Blocks without an owner, where those of owners do not bring enough. */
static unsigned int cohort_pack_unowned(struct cohort_packer *packer, unsigned long end)
{
	struct zone *zone = NODE_DATA(packer->nid)->node_zones;
	unsigned int rounds = COHORT_PACK_ROUNDS, home = 0;
	bool looked = false;
	int i;

	if (time_before(jiffies, packer->unowned_next))
		return 0;
	for (i = 0; i < MAX_NR_ZONES; i++) {
		/* A zone that is all reserve brings none. */
		if (zone_managed_pages(&zone[i]) <= zone[i].lowmem_reserve[ZONE_NORMAL])
			continue;
		/* Those of a higher zone are of no use for what must be in a lower one. */
		while (rounds && time_before(jiffies, end) && cohort_packing() &&
		       cohort_node_short(packer->nid, i - 1) >= 0) {
			looked = true;
			if (!cohort_unowned_pack(&zone[i], &packer->unowned[i], end))
				break;
			rounds--;
			home++;
		}
	}
	count_vm_events(COHORT_PACK, home);
	if (looked)
		packer->unowned_next = cohort_pack_after(&packer->unowned_fails, home);
	return home;
}

static unsigned int cohort_pack_run(struct cohort_packer *packer, bool excess)
{
	unsigned int rounds = COHORT_PACK_ROUNDS, home = 0;
	unsigned long end = jiffies + COHORT_PACK_TIME;
	struct cohort_room *room;

	cohort_pack_drain();
	if (excess)
		home = cohort_pack_relieve(packer->nid, packer->vain == COHORT_PACK_DEFER ?
					   COHORT_FOR_ALL : COHORT_FOR_RELIEF, end);
	while (rounds-- && time_before(jiffies, end) && cohort_packing() &&
	       (room = cohort_pack_next(packer->nid, excess))) {
		home += cohort_pack_room(room, true);
		cohort_domain_put(room->dom);
		cond_resched();
	}
	return home + cohort_pack_unowned(packer, end);
}

/*
 * When more is given up: with one block that came home, of whichever owner, what is too much may
 * stay for ever.  What blocks of any filling can be given up are so, one run after the other.
 */
static void cohort_pack_relieved(struct cohort_packer *packer, unsigned int home)
{
	packer->relief = cohort_pack_after(&packer->vain, !cohort_node_excess(packer->nid));
	if (home && packer->vain == COHORT_PACK_DEFER)
		packer->relief = jiffies + HZ / 20;
}

static void cohort_pack_work(struct work_struct *work)
{
	struct cohort_packer *packer = container_of(work, struct cohort_packer, work);
	bool few = cohort_packing() && cohort_node_short(packer->nid, -1) >= 0;
	bool much = cohort_node_excess(packer->nid);
	bool excess = much && !time_before(jiffies, packer->relief);
	unsigned int home;

	if (!much)
		packer->vain = 0;
	/* Each batch of reclaim wakes it: a run with nothing to do is none in vain. */
	if (!few && !excess) {
		WRITE_ONCE(packer->next, jiffies + HZ / 20);
		return;
	}
	home = cohort_pack_run(packer, excess);
	if (excess)
		cohort_pack_relieved(packer, home);
	/* Memory enough, but in pieces: pack what is in no block. */
	if (few && !home)
		wakeup_kcompactd(NODE_DATA(packer->nid), cohort_block_order(),
				 MAX_NR_ZONES - 1);
	WRITE_ONCE(packer->next, cohort_pack_after(&packer->fails, home || !few));
}

/**
 * cohort_pack_wake() - pack what holes there are
 * @pgdat: the node
 *
 * For when whole blocks become few, or memory is reclaimed: pages that are reclaimed or
 * swapped out one by one are free in their blocks, and count in full only when these
 * come home.
 *
 * Context: any; no locks of the page allocator held.
 */
void cohort_pack_wake(struct pglist_data *pgdat)
{
	struct cohort_packer *packer = cohort_packers[pgdat->node_id];

	if (READ_ONCE(cohort_taking) && packer && !work_pending(&packer->work) &&
	    !time_before(jiffies, READ_ONCE(packer->next)))
		queue_work(cohort_wq, &packer->work);
}

/**
 * cohort_pack_init() - a worker for each node with memory
 *
 * Context: may sleep; one caller at a time.
 * Return: 0, or -ENOMEM.
 */
int cohort_pack_init(void)
{
	struct cohort_packer *packer;
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		if (cohort_packers[nid])
			continue;
		packer = kzalloc_node(sizeof(*packer), GFP_KERNEL, nid);
		if (!packer)
			return -ENOMEM;
		INIT_WORK(&packer->work, cohort_pack_work);
		packer->nid = nid;
		packer->next = jiffies;
		packer->relief = jiffies;
		packer->unowned_next = jiffies;
		WRITE_ONCE(cohort_packers[nid], packer);
	}
	return 0;
}
