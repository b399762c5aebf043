// SPDX-License-Identifier: GPL-2.0
/*
 * Moving pages into and out of the page-cache-preferred area, in the background.
 *
 * Out go pages that could not be dropped if a client came: dirty ones, loans,
 * while clients are served also what several processes share.  In comes, when
 * kswapd runs, clean page cache of other places, so that free pages of the area
 * are as good as free pages elsewhere.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>

#include "../internal.h"
#include "cohort.h"
#include "pcpa.h"

/* Tidying: pages looked at and moved in a turn, and the pause between turns. */
#define TIDY_LOOK	8192UL
#define TIDY_MOVE	128U
#define TIDY_PAUSE	(HZ / 4)

/* Pages moved in a turn for no other reason than that somebody uses them. */
#define TIDY_HOT	128U

/* Turns without anything to do after which it sleeps until pages are taken again. */
#define TIDY_TURNS	40U

/* Pulling: pages looked at and moved in a turn, and the part of the area that is left free. */
#define PULL_LOOK	4096UL
#define PULL_MOVE	64
#define PULL_KEEP_SHIFT	4

/* A look that found little is not repeated at once. */
#define PULL_BARREN	(HZ / 50)

/* moving */

/* Never from the area: it lends neither to clients' requests nor to those that do not wait. */
static struct folio *target_outside(struct folio *src, unsigned long private)
{
	gfp_t gfp = GFP_HIGHUSER_MOVABLE | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;

	return __folio_alloc_node(private ? gfp : gfp & ~__GFP_DIRECT_RECLAIM, 0,
				  folio_nid(src));
}

static void target_free(struct folio *dst, unsigned long private)
{
	folio_put(dst);
}

/**
 * cohort_move_out() - move pages of the area elsewhere
 * @list: isolated folios; empty on return
 * @mode: MIGRATE_ASYNC neither waits for pages nor reclaims memory for copies
 *
 * Return: pages moved.
 */
unsigned int cohort_move_out(struct list_head *list, enum migrate_mode mode)
{
	unsigned int moved = 0;

	if (list_empty(list))
		return 0;
	migrate_pages(list, target_outside, target_free, mode != MIGRATE_ASYNC, mode,
		      MR_CONTIG_RANGE, &moved);
	putback_movable_pages(list);
	count_vm_events(COHORT_PCPA_MIGRATED, moved);
	return moved;
}

/**
 * cohort_isolate_page() - take one page off the LRU
 * @page: any page
 * @list: receives its folio
 */
bool cohort_isolate_page(struct page *page, struct list_head *list)
{
	struct folio *folio;
	bool done;

	if (!PageLRU(page))
		return false;
	folio = cohort_get_single(page);
	if (!folio)
		return false;
	done = folio_test_lru(folio) && !folio_maybe_dma_pinned(folio) &&
	       isolate_folio_to_list(folio, list);
	folio_put(folio);
	return done;
}

/* tidying, in the background */

static void tidy_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(tidy, tidy_work);
static unsigned long tidy_hand;
static unsigned int tidy_turns;		/* left; racy, one more or less does not matter */
static atomic_t tidy_awake;

/* Free memory of which one may take some to make the area clean. */
static bool memory_to_spare(struct zone *zone)
{
	return zone_watermark_ok(zone, 0, high_wmark_pages(zone) + 2 * TIDY_MOVE, 0, 0);
}

/* A page in use: to drop it is more work, and it would be read again. */
static bool hot(struct page *page)
{
	return READ_ONCE(page->flags) & BIT(PG_active) || atomic_read(&page->_mapcount) >= 0;
}

/*
 * Dirty pages leave as they are found, and loans.  While clients are served,
 * what several processes share does, too: a client could not have it.  Hot pages
 * leave a few at a time, so that what is dropped one day is what nobody misses.
 */
static bool untidy(const struct cohort_area *area, unsigned long i, bool all,
		   unsigned int *heat)
{
	struct page *page = pfn_to_page(area->base + i);

	if (!test_bit(i, area->own) || test_bit(i, area->client))
		return false;
	/* A wrong guess is found out when the page is isolated. */
	if (data_race(cohort_area_map_test(&area->map, i)))
		return false;
	if (test_bit(i, area->lent) || (PageDirty(page) && !PageWriteback(page)) ||
	    (all && atomic_read(&page->_mapcount) > 0))
		return true;
	if (!*heat || !hot(page))
		return false;
	--*heat;
	return true;
}

/* A batch from where the hand is; false if the area is gone. */
static bool tidy_collect(struct list_head *list, unsigned long *look, unsigned int *heat)
{
	bool all = cohort_pcpa_state() == COHORT_ANON_ALLOC;
	const struct cohort_area *area;
	unsigned int nr = 0;

	rcu_read_lock();
	area = rcu_dereference(cohort_area);
	if (area && memory_to_spare(area->zone)) {
		for (; *look && nr < TIDY_MOVE; --*look) {
			if (tidy_hand >= area->nr)
				tidy_hand = 0;
			if (untidy(area, tidy_hand, all, heat))
				nr += cohort_isolate_page(pfn_to_page(area->base + tidy_hand), list);
			tidy_hand++;
		}
	} else {
		*look = 0;
	}
	rcu_read_unlock();
	return area;
}

/* Return: pages moved, or -1 if there is no area. */
static int tidy_once(void)
{
	unsigned long look = TIDY_LOOK;
	unsigned int heat = TIDY_HOT;
	int moved = 0;
	bool there;

	do {
		LIST_HEAD(list);

		there = tidy_collect(&list, &look, &heat);
		moved += cohort_move_out(&list, MIGRATE_ASYNC);
		cond_resched();
	} while (there && look);
	return there ? moved : -1;
}

static void tidy_work(struct work_struct *work)
{
	struct cohort_pcpa_sizes sizes;
	int moved = tidy_once();

	if (mutex_trylock(&cohort_pcpa_mutex)) {
		cohort_area_fetch();
		mutex_unlock(&cohort_pcpa_mutex);
	}
	cohort_pcpa_sizes(&sizes);
	if (moved > 0 || sizes.other || sizes.lent)
		WRITE_ONCE(tidy_turns, TIDY_TURNS);
	else
		WRITE_ONCE(tidy_turns, READ_ONCE(tidy_turns) - !!READ_ONCE(tidy_turns));
	if (moved >= 0 && READ_ONCE(tidy_turns))
		queue_delayed_work(cohort_wq, &tidy, TIDY_PAUSE);
	else
		atomic_set(&tidy_awake, 0);
}

/**
 * cohort_pcpa_tidy_soon() - there is something to tidy, perhaps
 *
 * An area that nobody uses wakes no CPU.
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

/* pulling, by kswapd */

static struct folio *target_inside(struct folio *src, unsigned long private)
{
	struct alloc_context ac = { .highest_zoneidx = MAX_NR_ZONES - 1 };
	enum cohort_use use = folio_is_file_lru(src) ? COHORT_USE_CACHE : COHORT_USE_LENT;
	struct page *page = cohort_area_take(0, use, &ac);

	if (!page || !cohort_area_prep(page, 0, GFP_HIGHUSER_MOVABLE | __GFP_COMP, 0))
		return NULL;
	return page_folio(page);
}

/* Clean pages of files that reclaim might drop next; others only where those are few. */
static bool worth_pulling(struct page *page, bool scarce)
{
	unsigned long flags = READ_ONCE(page->flags);
	bool file = !(flags & BIT(PG_swapbacked));

	if (!(flags & BIT(PG_lru)) || flags & (BIT(PG_dirty) | BIT(PG_writeback) |
					       BIT(PG_unevictable) | BIT(PG_locked)))
		return false;
	if (file && !scarce && (hot(page) || flags & BIT(PG_referenced)))
		return false;
	return (file || scarce) && cohort_next_pfn(page_to_pfn(page)) == page_to_pfn(page);
}

static unsigned int pull_collect(struct pglist_data *pgdat, unsigned long want, bool scarce,
				 struct list_head *list)
{
	static unsigned long hand;
	unsigned long pfn = READ_ONCE(hand), look;
	unsigned int nr = 0;

	for (look = PULL_LOOK; look && nr < want; look--, pfn++) {
		struct page *page;

		if (pfn < pgdat->node_start_pfn || pfn >= pgdat_end_pfn(pgdat))
			pfn = pgdat->node_start_pfn;
		page = pfn_to_online_page(pfn);
		if (page && worth_pulling(page, scarce))
			nr += cohort_isolate_page(page, list);
	}
	WRITE_ONCE(hand, pfn);
	return nr;
}

/**
 * __cohort_pcpa_pull() - fill free pages of the area from elsewhere
 * @pgdat: node under reclaim
 *
 * What reclaim drops of the area is free only there.  Clean page cache of
 * other places moves in, and those places are free for all: for a copy each,
 * nothing is lost.
 *
 * Context: kswapd, no lock held.
 * Return: pages moved.
 */
unsigned long __cohort_pcpa_pull(struct pglist_data *pgdat)
{
	static unsigned long barren;
	struct cohort_pcpa_sizes sizes;
	unsigned int nr, moved = 0;
	unsigned long outside;
	LIST_HEAD(list);

	if (cohort_pcpa_state() != COHORT_PCACHE_ONLY || time_before(jiffies, READ_ONCE(barren)))
		return 0;
	cohort_pcpa_sizes(&sizes);
	if (sizes.free <= sizes.size >> PULL_KEEP_SHIFT ||
	    page_to_nid(pfn_to_page(sizes.base)) != pgdat->node_id)
		return 0;
	outside = node_page_state(pgdat, NR_ACTIVE_FILE) + node_page_state(pgdat, NR_INACTIVE_FILE);
	outside -= min(outside, sizes.cache);
	nr = pull_collect(pgdat, PULL_MOVE, outside < sizes.size >> PULL_KEEP_SHIFT, &list);
	if (nr < PULL_MOVE / 4)
		WRITE_ONCE(barren, jiffies + PULL_BARREN);
	if (nr) {
		migrate_pages(&list, target_inside, target_free, 0, MIGRATE_ASYNC,
			      MR_COMPACTION, &moved);
		putback_movable_pages(&list);
		count_vm_events(COHORT_PCPA_PULLED, moved);
	}
	return moved;
}
