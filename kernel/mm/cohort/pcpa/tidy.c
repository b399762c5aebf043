// SPDX-License-Identifier: GPL-2.0
/*
 * Moving pages into and out of the page-cache-preferred area, while no request waits.
 *
 * Out go pages that could not be dropped if a client came: dirty ones, loans,
 * while clients are served also what several processes share; and hot ones, which
 * a process would miss.  In comes cold page cache of other places, so that free pages
 * are elsewhere, where all requests can have them: a little at a time, and faster when
 * kswapd runs.  A turn that finds little is followed by a longer pause.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/sched/signal.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>

#include "../../internal.h"
#include "../cohort.h"
#include "../host/compaction.h"
#include "../host/filemap.h"
#include "pcpa.h"

/* Tidying: pages looked at and moved in a turn, and the pauses between turns. */
#define TIDY_LOOK	8192UL
#define TIDY_MOVE	128U
#define TIDY_PAUSE	(HZ / 4)
#define TIDY_PAUSE_MAX	HZ

/* Pages moved in a turn below which the next pause is twice as long. */
#define TIDY_WORTH	32

/* Pages moved in a turn for no other reason than that they are used. */
#define TIDY_HOT	128U

/* What is not unmapped after so long has to wait for another turn, and other work for this one. */
#define TIDY_TURN	(HZ / 4)

/* Turns without anything to do after which it sleeps until pages are taken again. */
#define TIDY_TURNS	40U

/*
 * Pulling: pages looked at and moved at a time, and both in a turn.  More are looked at where
 * reclaim would drop what is in use, as pages of files may be far apart among those of processes.
 */
#define PULL_LOOK	4096UL
#define PULL_LOOK_FAR	65536UL
#define PULL_MOVE	64
#define PULL_LOOKS	8U
#define PULL_TURN	512U

/* A move ends after so long: each page may be one that thousands map, and kswapd waits. */
#define PULL_TIME	(HZ / 10)

/*
 * Page cache elsewhere, as a part of the area, below which pages of files that are in use are
 * pulled as well; and below which any are.  Where there is more, cold ones are found in time, and
 * a client has less to unmap.
 */
#define FEW_SHIFT	2
#define SCARCE_SHIFT	4

/* A look that found little is not repeated at once, nor soon if it took long. */
#define PULL_BARREN	(HZ / 50UL)

/* moving */

/**
 * struct move - how pages are moved out
 * @end: jiffies, when no more are unmapped: their users decide what each takes
 * @reclaim: other memory may be reclaimed for the copies
 */
struct move {
	unsigned long end;
	bool reclaim;
};

/*
 * From elsewhere: the area lends nothing while a client is served; and to a request that does
 * not wait only where nothing else is left, while tidying needs pages to spare.
 */
static struct folio *cohort_tidy_target_outside(struct folio *src, unsigned long private)
{
	const struct move *move = (const struct move *)private;
	struct migration_target_control mtc = {
		.nid = NUMA_NO_NODE,
		.gfp_mask = GFP_HIGHUSER_MOVABLE | __GFP_NOWARN | __GFP_RETRY_MAYFAIL,
		.reason = MR_CONTIG_RANGE,
	};

	/* As if there were no memory: those that are unmapped move, the others stay. */
	if (time_after(jiffies, move->end) || fatal_signal_pending(current))
		return NULL;
	if (!move->reclaim)
		mtc.gfp_mask &= ~__GFP_DIRECT_RECLAIM;
	return alloc_migration_target(src, (unsigned long)&mtc);
}

static void cohort_tidy_target_free(struct folio *dst, unsigned long private)
{
	folio_put(dst);
}

/**
 * cohort_move_out() - move pages of the area elsewhere
 * @list: isolated folios; empty on return
 * @reclaim: other memory may be reclaimed for the copies
 * @end: jiffies; what has not moved by then stays
 *
 * A page that is locked or under writeback stays: a server of FUSE, for one, may keep it
 * so for ever, and its user could make all wait that need memory.
 *
 * Return: pages moved.
 */
unsigned int cohort_move_out(struct list_head *list, bool reclaim, unsigned long end)
{
	struct move move = { .end = end, .reclaim = reclaim };
	unsigned int moved = 0;

	if (list_empty(list))
		return 0;
	migrate_pages(list, cohort_tidy_target_outside, cohort_tidy_target_free,
		      (unsigned long)&move, MIGRATE_ASYNC, MR_CONTIG_RANGE, &moved);
	putback_movable_pages(list);
	count_vm_events(COHORT_PCPA_MIGRATED, moved);
	return moved;
}

/* A page in use: to drop it is more work, and it would be read again. */
static bool cohort_page_hot(struct page *page)
{
	return READ_ONCE(page->flags) & (BIT(PG_active) | BIT(PG_workingset)) ||
	       atomic_read(&page->_mapcount) >= 0;
}

/* pulling, by kswapd and in exchange for what went out */

/**
 * cohort_pull_target() - where a page that is pulled goes, as migrate_pages() asks
 * @src: the page
 * @end: jiffies; none moves after that: to unmap one that thousands map takes milliseconds
 *
 * Return: a page of the area, or NULL.
 */
struct folio *cohort_pull_target(struct folio *src, unsigned long end)
{
	struct page *page;

	if (time_after(jiffies, end))
		return NULL;
	page = folio_is_file_lru(src) ? cohort_area_take_cache() :
					cohort_area_take(0, COHORT_USE_LENT);
	if (!page || !alloc_hooks(cohort_area_prep(page, 0, GFP_HIGHUSER_MOVABLE | __GFP_COMP, 0)))
		return NULL;
	return page_folio(page);
}

/**
 * cohort_pull_readable() - could readers have put a page there?
 * @page: what may be of the page cache
 *
 * Metadata is none of it, which a journal may hold for long.
 *
 * Return: false also for one that left the LRU meanwhile: a page that is made ready for another
 * use has no lock to be taken yet, and its flags are written without regard for others.
 */
bool cohort_pull_readable(struct page *page)
{
	struct folio *folio = cohort_get_single(page);
	struct address_space *mapping;
	bool ok = false;

	if (!folio)
		return false;
	if (folio_test_lru(folio) && folio_trylock(folio)) {
		mapping = folio_mapping(folio);
		ok = mapping && cohort_reads_only(mapping, mapping_gfp_mask(mapping));
		folio_unlock(folio);
	}
	folio_put(folio);
	return ok;
}

/**
 * enum pull - which pages are worth a copy
 * @PULL_COLD: clean pages of files that reclaim might drop next
 * @PULL_FILES: those that are in use as well: where there are no others reclaim drops them, and
 *	as many of the area, which frees nothing elsewhere
 * @PULL_ANY: pages of processes, too: page cache elsewhere is scarce
 */
enum pull {
	PULL_COLD,
	PULL_FILES,
	PULL_ANY,
};

/* None out of a block, in which it would leave a hole. */
static bool cohort_pull_worth(struct page *page, enum pull pull)
{
	unsigned long flags = READ_ONCE(page->flags);
	bool file = !(flags & BIT(PG_swapbacked));

	if (!(flags & BIT(PG_lru)) || flags & (BIT(PG_dirty) | BIT(PG_writeback) |
					       BIT(PG_unevictable) | BIT(PG_locked)))
		return false;
	if (file && pull == PULL_COLD && (cohort_page_hot(page) || flags & BIT(PG_referenced)))
		return false;
	return (file || pull == PULL_ANY) &&
	       cohort_block_after(page_to_pfn(page), -1) == page_to_pfn(page) &&
	       (!file || cohort_pull_readable(page));
}

/* Pages of the page cache of the area's node that lie elsewhere. */
static unsigned long cohort_cache_elsewhere(struct pglist_data *pgdat,
					    const struct cohort_pcpa_sizes *sizes)
{
	unsigned long cache = node_page_state(pgdat, NR_ACTIVE_FILE) +
			      node_page_state(pgdat, NR_INACTIVE_FILE);

	return cache - min(cache, sizes->cache);
}

/* From one page to the end of its pageblock, or until there are so many. Return: the next. */
static unsigned long cohort_pull_block(unsigned long pfn, int nid, int top, unsigned long want,
				       enum pull pull, struct list_head *list, unsigned int *nr)
{
	unsigned long end = ALIGN(pfn + 1, pageblock_nr_pages);
	struct page *page = pfn_to_online_page(pfn);

	if (!page || cohort_block_after(pfn, -1) == end)
		return end;
	for (; pfn < end && *nr < want; pfn++, page++)
		/* The spans of nodes may overlap. */
		if (page_to_nid(page) == nid && (int)page_zonenum(page) <= top &&
		    cohort_pull_worth(page, pull))
			*nr += cohort_isolate_page(page, list);
	return pfn;
}

static void cohort_pull_collect(struct pglist_data *pgdat, int top, unsigned long want,
				enum pull pull, struct list_head *list)
{
	static unsigned long hand;
	unsigned long pfn = READ_ONCE(hand), looked = 0, next;
	unsigned long most = pull == PULL_COLD ? PULL_LOOK : PULL_LOOK_FAR;
	unsigned int nr = 0;

	for (; looked < most && nr < want; looked += next - pfn, pfn = next) {
		if (pfn < pgdat->node_start_pfn || pfn >= pgdat_end_pfn(pgdat))
			pfn = pgdat->node_start_pfn;
		next = cohort_pull_block(pfn, pgdat->node_id, top, want, pull, list, &nr);
		cond_resched();
	}
	WRITE_ONCE(hand, pfn);
}

/* Return: pages moved. */
static unsigned int cohort_pull_move(struct list_head *list)
{
	unsigned int moved = 0;

	if (list_empty(list))
		return 0;
	migrate_pages(list, cohort_pull_target, cohort_tidy_target_free, jiffies + PULL_TIME,
		      MIGRATE_ASYNC, MR_COMPACTION, &moved);
	putback_movable_pages(list);
	count_vm_events(COHORT_PCPA_PULLED, moved);
	return moved;
}

/* So many cold pages, as far as more than @keep are free. Return: pages moved. */
static unsigned int cohort_pull_in(unsigned int want, unsigned long keep)
{
	const struct zone *zone = READ_ONCE(cohort_area.zone);
	struct cohort_pcpa_sizes sizes;
	LIST_HEAD(list);

	if (!zone || cohort_pcpa_state() != COHORT_PCACHE_ONLY)
		return 0;
	cohort_pcpa_sizes(&sizes);
	if (sizes.free <= keep)
		return 0;
	want = min(want, sizes.free - keep);
	cohort_pull_collect(zone->zone_pgdat, MAX_NR_ZONES - 1, want, PULL_COLD, &list);
	return cohort_pull_move(&list);
}

/* Pages that clients have left are of more use where all requests can have them. */
static unsigned int cohort_pull_turn(void)
{
	unsigned int moved = 0, looks;

	for (looks = 0; looks < PULL_LOOKS && moved < PULL_TURN; looks++) {
		moved += cohort_pull_in(TIDY_MOVE, COHORT_AREA_KEEP);
		cond_resched();
	}
	return moved;
}

/* tidying */

static void cohort_tidy_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(tidy, cohort_tidy_work);
static unsigned long tidy_hand;		/* a multiple of BITS_PER_LONG */
static unsigned long tidy_pause = TIDY_PAUSE;
static unsigned int tidy_turns;		/* left; racy, one more or less does not matter */
static atomic_t tidy_awake;

/*
 * A page of a process that was freed lazily is not backed by swap either, and may be back; nor is
 * one of a driver that knows how to move it.
 */
static bool cohort_tidy_of_file(const struct page *page)
{
	return !(READ_ONCE(page->flags) & BIT(PG_swapbacked)) &&
	       !((unsigned long)READ_ONCE(page->mapping) & PAGE_MAPPING_FLAGS);
}

/*
 * A page of a file that was lent for writing, and has been written back; or one that has gone
 * bad, which no free path would tell of.
 */
static bool cohort_tidy_settled(const struct page *page)
{
	unsigned long flags = READ_ONCE(page->flags);

	return PageHWPoison(page) ||
	       ((flags & BIT(PG_lru)) && cohort_tidy_of_file(page) &&
		!(flags & (BIT(PG_dirty) | BIT(PG_writeback) | BIT(PG_unevictable))));
}

static void cohort_tidy_settle(void)
{
	unsigned long pfn, bit, end = READ_ONCE(cohort_area.base) + READ_ONCE(cohort_area.nr);
	struct cohort_look look;

	for (pfn = cohort_area.base; READ_ONCE(cohort_area.nr_lent) && pfn < end;
	     pfn += COHORT_CHUNK) {
		if (!cohort_chunk_look(pfn, &look))
			continue;
		for_each_set_bit(bit, look.lent, COHORT_CHUNK)
			if (cohort_tidy_settled(pfn_to_page(pfn + bit)))
				cohort_area_settle(pfn + bit);
		cond_resched();
	}
}

/*
 * Dirty pages leave as they are found, and loans; but those for writing have time
 * until a client comes, as they will be clean.  While clients are served, what
 * several processes share leaves, too: a client could not have it.  Hot pages
 * leave a few at a time, so that pages dropped one day are not missed; none while there is
 * so little page cache elsewhere that they would soon be pulled in again.
 */
static bool cohort_page_untidy(struct page *page, bool lent, bool all, unsigned int *heat)
{
	unsigned long flags = READ_ONCE(page->flags);

	if (lent && !all && cohort_tidy_of_file(page))
		return false;
	if (lent || (flags & (BIT(PG_dirty) | BIT(PG_writeback))) == BIT(PG_dirty) ||
	    (all && atomic_read(&page->_mapcount) > 0))
		return true;
	if (!*heat || !cohort_page_hot(page))
		return false;
	--*heat;
	return true;
}

/* Pages of a word of the maps. */
static unsigned int cohort_tidy_word(const struct cohort_look *look, unsigned long pfn, bool all,
				     unsigned int *heat, struct list_head *list)
{
	unsigned long w = BIT_WORD(pfn % COHORT_CHUNK);
	unsigned long used = ~(look->free[w] | look->client[w] | look->given[w]);
	unsigned int nr = 0, bit;

	for_each_set_bit(bit, &used, BITS_PER_LONG) {
		struct page *page = pfn_to_page(pfn + bit);

		if (READ_ONCE(page->flags) & BIT(PG_unevictable) && !cohort_unevictable_moves())
			continue;
		if (cohort_page_untidy(page, test_bit(bit, &look->lent[w]), all, heat))
			nr += cohort_isolate_page(page, list);
	}
	return nr;
}

/* A batch from where the hand is; false if there is no area. */
static bool cohort_tidy_collect(struct list_head *list, unsigned long *look, unsigned int *heat)
{
	bool all = cohort_pcpa_state() == COHORT_ANON_ALLOC, there = false;
	unsigned long nr_area = READ_ONCE(cohort_area.nr), pfn;
	struct zone *zone = READ_ONCE(cohort_area.zone);
	struct cohort_look chunk;
	unsigned int nr = 0;

	if (!zone || !cohort_pcpa_spare(zone_to_nid(zone), 2 * TIDY_MOVE))
		*look = 0;
	for (; *look && nr < TIDY_MOVE; *look -= BITS_PER_LONG) {
		if (tidy_hand >= nr_area)
			tidy_hand = 0;
		pfn = READ_ONCE(cohort_area.base) + tidy_hand;
		if (!nr || pfn % COHORT_CHUNK == 0 || !there)
			there = cohort_chunk_look(ALIGN_DOWN(pfn, COHORT_CHUNK), &chunk);
		if (there)
			nr += cohort_tidy_word(&chunk, pfn, all, heat, list);
		tidy_hand += BITS_PER_LONG;
	}
	return zone;
}

/* Return: pages moved, or -1 if there is no area. */
static int cohort_tidy_once(void)
{
	/* After a longer pause as many more: a dirty page waits no longer. */
	unsigned long look = TIDY_LOOK * (tidy_pause / TIDY_PAUSE);
	unsigned long end = jiffies + TIDY_TURN;
	const struct zone *zone = READ_ONCE(cohort_area.zone);
	struct cohort_pcpa_sizes sizes;
	unsigned int heat = TIDY_HOT;
	int moved = 0, out;
	bool there;

	cohort_pcpa_sizes(&sizes);
	if (zone && cohort_cache_elsewhere(zone->zone_pgdat, &sizes) < sizes.size >> (FEW_SHIFT - 1))
		heat = 0;
	cohort_tidy_settle();
	do {
		LIST_HEAD(list);

		there = cohort_tidy_collect(&list, &look, &heat);
		out = cohort_move_out(&list, false, end);
		if (out)
			cohort_pull_in(out, 0);
		moved += out;
		cond_resched();
	} while (there && look && time_before(jiffies, end));
	return there ? moved : -1;
}

static void cohort_tidy_work(struct work_struct *work)
{
	struct cohort_pcpa_sizes sizes;
	int moved = cohort_tidy_once();

	if (moved >= 0)
		moved += cohort_pull_turn();
	cohort_pcpa_sizes(&sizes);
	if (moved > 0 || sizes.lent)
		WRITE_ONCE(tidy_turns, TIDY_TURNS);
	else
		WRITE_ONCE(tidy_turns, READ_ONCE(tidy_turns) - !!READ_ONCE(tidy_turns));
	tidy_pause = moved < TIDY_WORTH ? min(2 * tidy_pause, TIDY_PAUSE_MAX) : TIDY_PAUSE;
	if (moved >= 0 && READ_ONCE(tidy_turns))
		queue_delayed_work(cohort_wq, &tidy, tidy_pause);
	else
		atomic_set(&tidy_awake, 0);
}

/**
 * cohort_pcpa_tidy_soon() - there is something to tidy, perhaps
 *
 * An area whose pages do not change, and that has nothing on loan, soon wakes no CPU.
 *
 * Context: any.
 */
void cohort_pcpa_tidy_soon(void)
{
	if (READ_ONCE(tidy_turns) != TIDY_TURNS)
		WRITE_ONCE(tidy_turns, TIDY_TURNS);
	if (!atomic_read(&tidy_awake) && !atomic_xchg(&tidy_awake, 1))
		queue_delayed_work(cohort_wq, &tidy, TIDY_PAUSE);
}

/**
 * cohort_pcpa_tidy_for_client() - a client has come
 *
 * Context: any but NMI.
 */
void cohort_pcpa_tidy_for_client(void)
{
	WRITE_ONCE(tidy_turns, TIDY_TURNS);
	atomic_set(&tidy_awake, 1);
	/* Sooner, never later: clients may come again and again within the pause. */
	if (!delayed_work_pending(&tidy) ||
	    time_after(READ_ONCE(tidy.timer.expires), jiffies + TIDY_PAUSE))
		mod_delayed_work(cohort_wq, &tidy, TIDY_PAUSE);
}

/* pulling, by kswapd */

/**
 * __cohort_pcpa_pull() - fill free pages of the area from elsewhere
 * @pgdat: node under reclaim
 * @top: the highest zone that is
 *
 * Pages of the area that reclaim drops are free only there.  Clean page cache of
 * other places moves in, and those places are free for all: for a copy each,
 * nothing is lost.
 *
 * Context: kswapd, no lock held.
 * Return: pages moved.
 */
unsigned long __cohort_pcpa_pull(struct pglist_data *pgdat, int top)
{
	const struct zone *zone = READ_ONCE(cohort_area.zone);
	static unsigned long barren[PULL_ANY + 1];
	struct cohort_pcpa_sizes sizes;
	enum pull pull = PULL_COLD;
	unsigned long elsewhere, start = jiffies;
	unsigned int moved;
	LIST_HEAD(list);

	if (!zone || zone->zone_pgdat != pgdat || cohort_pcpa_state() != COHORT_PCACHE_ONLY)
		return 0;
	cohort_pcpa_sizes(&sizes);
	if (sizes.free <= COHORT_AREA_KEEP)
		return 0;
	elsewhere = cohort_cache_elsewhere(pgdat, &sizes);
	if (elsewhere < sizes.size >> SCARCE_SHIFT)
		pull = PULL_ANY;
	else if (elsewhere < sizes.size >> FEW_SHIFT &&
		 time_before(jiffies, READ_ONCE(barren[PULL_COLD])))
		pull = PULL_FILES;
	if (time_before(jiffies, READ_ONCE(barren[pull])))
		return 0;
	cohort_pull_collect(pgdat, top, PULL_MOVE, pull, &list);
	moved = cohort_pull_move(&list);
	if (moved < PULL_MOVE / 4)
		WRITE_ONCE(barren[pull], jiffies + max(PULL_BARREN, 4 * (jiffies - start)));
	return moved;
}
