// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous pieces of the page-cache-preferred area, for devices without an
 * IOMMU.
 *
 * The place where the least is to be done is chosen and held: pages that are or
 * become free there go to no other user.  Then it is emptied, by dropping clean pages
 * and moving the rest, until it is empty or time is up; a page that does not go
 * is reported and another place tried.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <trace/events/cohort.h>

#include "../../internal.h"
#include "../cohort.h"
#include "pcpa.h"

/* Pages isolated together. */
#define BATCH		64U

/* Pauses between tries for a page that is busy, while there is time. */
#define RETRY_US	2000

atomic_long_t cohort_busy_count[COHORT_NR_BUSY];
atomic_long_t cohort_contig_ns_max;
const char *const cohort_busy_names[COHORT_NR_BUSY] = {
	"none", "pinned", "writeback", "dirty", "locked", "unevictable", "private",
	"anon", "off_lru", "referenced",
};

static enum cohort_busy cohort_contig_why_busy(struct page *page)
{
	struct folio *folio = cohort_get_single(page);
	enum cohort_busy why;

	if (!folio)
		return COHORT_BUSY_OFF_LRU;
	if (folio_maybe_dma_pinned(folio))
		why = COHORT_BUSY_PINNED;
	else if (folio_test_locked(folio))
		why = COHORT_BUSY_LOCKED;
	else
		why = cohort_busy_why(folio);
	if (why == COHORT_BUSY_NONE || why == COHORT_BUSY_ANON)
		why = folio_test_private(folio) ? COHORT_BUSY_PRIVATE : COHORT_BUSY_REFERENCED;
	folio_put(folio);
	return why;
}

/* The page's file, as far as it can be told without its lock. */
static void cohort_contig_report_busy(unsigned long pfn)
{
	struct page *page = pfn_to_page(pfn);
	enum cohort_busy why = cohort_contig_why_busy(page);
	struct address_space *mapping;
	unsigned long ino = 0;
	dev_t dev = 0;

	rcu_read_lock();
	mapping = READ_ONCE(page->mapping);
	if (mapping && !((unsigned long)mapping & PAGE_MAPPING_FLAGS)) {
		struct folio *folio = cohort_get_single(page);

		if (folio && folio_test_lru(folio) && folio_trylock(folio)) {
			if (folio->mapping == mapping && mapping->host) {
				ino = mapping->host->i_ino;
				dev = mapping->host->i_sb->s_dev;
			}
			folio_unlock(folio);
		}
		if (folio)
			folio_put(folio);
	}
	rcu_read_unlock();
	atomic_long_inc(&cohort_busy_count[why]);
	count_vm_event(COHORT_PCPA_BUSY);
	trace_cohort_pcpa_busy(pfn, cohort_busy_names[why], dev, ino, page_count(page));
}

/**
 * struct window - a place for one contiguous piece
 * @base: first frame of the area
 * @start: first frame of the window
 * @nr: pages
 * @cost: of each granule of the area
 * @granules: how many
 * @deadline: jiffies
 * @list: pages that are about to move
 * @listed: how many
 * @moved: pages that have moved
 */
struct window {
	unsigned long base;
	unsigned long start;
	unsigned long nr;
	u16 *cost;
	unsigned long granules;
	unsigned long deadline;
	struct list_head list;
	unsigned int listed;
	unsigned int moved;
};

/* A page that a balloon holds is offline, and moves. */
static bool cohort_granule_stuck(struct page *page)
{
	return PageHWPoison(page) || (PageOffline(page) && !__PageMovable(page));
}

/* A page to be moved is as much work as five to be dropped. */
static u16 cohort_granule_cost(const struct cohort_look *look, unsigned long pfn)
{
	unsigned long i, cost = 0, first = pfn % COHORT_CHUNK;

	for (i = first; i < first + COHORT_GRANULE; i++, pfn++) {
		if (test_bit(i, look->client) || test_bit(i, look->given) ||
		    cohort_granule_stuck(pfn_to_page(pfn)))
			return COHORT_COST_NEVER;
		if (test_bit(i, look->free))
			continue;
		cost += test_bit(i, look->lent) || PageDirty(pfn_to_page(pfn)) ? 5 : 1;
	}
	return cost;
}

static void cohort_chunk_costs(const struct window *w, unsigned long first)
{
	unsigned long g, nr = COHORT_CHUNK / COHORT_GRANULE;
	struct cohort_look look;
	bool there = cohort_chunk_look(w->base + first * COHORT_GRANULE, &look) && look.usable;

	for (g = first; g < first + nr; g++)
		w->cost[g] = there ? cohort_granule_cost(&look, w->base + g * COHORT_GRANULE) :
				     COHORT_COST_NEVER;
}

static int cohort_window_costs(struct window *w)
{
	unsigned long nr = cohort_area.nr, g;

	lockdep_assert_held(&cohort_pcpa_mutex);
	if (!nr || w->nr > nr)
		return -ENOMEM;
	w->base = cohort_area.base;
	w->granules = nr / COHORT_GRANULE;
	w->cost = kvmalloc_array(w->granules, sizeof(*w->cost), GFP_KERNEL);
	if (!w->cost)
		return -ENOMEM;
	for (g = 0; g < w->granules; g += COHORT_CHUNK / COHORT_GRANULE) {
		cohort_chunk_costs(w, g);
		cond_resched();
	}
	return 0;
}

/* As aligned as its size is, up to a chunk. */
static bool cohort_window_find(struct window *w)
{
	unsigned long len = DIV_ROUND_UP(w->nr, COHORT_GRANULE);
	unsigned long step = clamp(w->nr & -w->nr, COHORT_GRANULE, COHORT_CHUNK);
	unsigned long at = cohort_area_window(w->cost, w->granules, len, step / COHORT_GRANULE);

	w->start = w->base + at * COHORT_GRANULE;
	return at < w->granules;
}

/* Pages at hand of some CPU are free afterwards.  What is spared is to move. */
static void cohort_window_drop(const struct window *w, bool spare)
{
	cohort_area_drop(w->start, w->start + w->nr, w->deadline, spare);
	cohort_fixed_drain(cohort_area.zone);
}

/* A visit to each page of a window that is in use. */
static void cohort_window_each(struct window *w, void (*visit)(struct window *w, unsigned long pfn))
{
	unsigned long pfn, end = w->start + w->nr;
	struct cohort_look look;
	bool there = false;

	for (pfn = w->start; pfn < end; pfn++) {
		if (pfn == w->start || pfn % COHORT_CHUNK == 0) {
			cond_resched();
			there = cohort_chunk_look(ALIGN_DOWN(pfn, COHORT_CHUNK), &look);
		}
		if (!there || !test_bit(pfn % COHORT_CHUNK, look.free))
			visit(w, pfn);
	}
}

static void cohort_window_move_out(struct window *w)
{
	w->moved += cohort_move_out(&w->list, true, w->deadline);
	w->listed = 0;
	cond_resched();
}

static void cohort_window_isolate(struct window *w, unsigned long pfn)
{
	struct page *page = pfn_to_online_page(pfn);

	if (!page || time_after(jiffies, w->deadline))
		return;
	w->listed += cohort_isolate_page(page, &w->list);
	if (w->listed == BATCH)
		cohort_window_move_out(w);
}

static bool cohort_window_move(struct window *w)
{
	w->moved = 0;
	cohort_window_each(w, cohort_window_isolate);
	cohort_window_move_out(w);
	return w->moved;
}

/* Until the window is empty, or nothing has moved for a share of the time. */
static bool cohort_window_empty(struct window *w)
{
	unsigned long patience = jiffies + msecs_to_jiffies(COHORT_CONTIG_MS / 8);

	cohort_window_drop(w, true);
	if (cohort_area_held(w->start, w->nr) == w->nr)
		return true;
	lru_add_drain_all();
	while (cohort_area_held(w->start, w->nr) < w->nr) {
		/* The timer waits for a request that takes longer than its turn. */
		cohort_pcpa_want(0);
		cohort_pcpa_got(0);
		if (cohort_window_move(w))
			patience = jiffies + msecs_to_jiffies(COHORT_CONTIG_MS / 8);
		if (cohort_area_held(w->start, w->nr) == w->nr)
			return true;
		if (time_after(jiffies, patience) || time_after(jiffies, w->deadline) ||
		    fatal_signal_pending(current))
			return false;
		usleep_range(RETRY_US, 2 * RETRY_US);
		lru_add_drain_all();
		/* What did not move, for want of memory elsewhere, goes all the same. */
		cohort_window_drop(w, false);
	}
	return true;
}

/* A page that stands in the way does so for this request. */
static void cohort_window_blame(struct window *w, unsigned long pfn)
{
	if (pfn_to_online_page(pfn))
		cohort_contig_report_busy(pfn);
	w->cost[(pfn - w->base) / COHORT_GRANULE] = COHORT_COST_NEVER;
}

static int cohort_window_try(struct window *w)
{
	int err = -ENOMEM;

	while (cohort_window_find(w)) {
		if (!cohort_area_hold(w->start, w->nr))
			return -EAGAIN;
		/* A frame may still have been taken away, by hwpoison for one. */
		if (cohort_window_empty(w))
			return cohort_area_unhold(w->start, w->nr, true) ? 0 : -EAGAIN;
		cohort_window_each(w, cohort_window_blame);
		cohort_area_unhold(w->start, w->nr, false);
		err = fatal_signal_pending(current) ? -EINTR : -EBUSY;
		if (err == -EINTR || time_after(jiffies, w->deadline))
			break;
	}
	return err;
}

static bool cohort_window_prep(const struct window *w, gfp_t gfp)
{
	unsigned long i, bad, pfn = w->start;

	for (i = 0; i < w->nr; i++) {
		if (!alloc_hooks(cohort_area_prep(pfn_to_page(pfn + i), 0, gfp, 0)))
			break;
		cond_resched();
	}
	if (i == w->nr)
		return true;
	/* A page turned out to be bad: it stays out; the others are free again. */
	for (bad = i++; i < w->nr; i++)
		if (alloc_hooks(cohort_area_prep(pfn_to_page(pfn + i), 0, gfp, 0)))
			__free_page(pfn_to_page(pfn + i));
	while (bad--)
		__free_page(pfn_to_page(pfn + bad));
	return false;
}

static void cohort_contig_note_longest(unsigned long ns)
{
	long old = atomic_long_read(&cohort_contig_ns_max);

	while (ns > old && !atomic_long_try_cmpxchg(&cohort_contig_ns_max, &old, ns))
		;
}

/**
 * cohort_pcpa_contig() - one contiguous piece
 * @nr: pages; it is aligned to their largest power of two, up to 1 MiB
 * @gfp: how to prepare them
 * @err: receives the error
 *
 * Return: the first of its pages, each with a reference, or NULL.
 */
struct page *cohort_pcpa_contig(unsigned long nr, gfp_t gfp, int *err)
{
	struct window w = {
		.nr = nr, .list = LIST_HEAD_INIT(w.list),
	};
	u64 start = ktime_get_ns();
	unsigned long wanted;

	*err = mutex_lock_killable(&cohort_pcpa_mutex);
	if (*err)
		return NULL;
	/* Not before: another request may have had all of the time. */
	w.deadline = jiffies + msecs_to_jiffies(COHORT_CONTIG_MS);
	/* What cannot fit is not wanted of the others. */
	wanted = nr <= cohort_area.nr ? nr : 0;
	cohort_pcpa_want(wanted);
	do {
		kvfree(w.cost);
		w.cost = NULL;
		*err = cohort_window_costs(&w) ?: cohort_window_try(&w);
	} while (*err == -EAGAIN && time_before(jiffies, w.deadline));
	if (*err == -EAGAIN)
		*err = -EBUSY;
	if (!*err && !cohort_window_prep(&w, gfp))
		*err = -EBUSY;
	cohort_pcpa_done(wanted);
	mutex_unlock(&cohort_pcpa_mutex);
	kvfree(w.cost);
	start = ktime_get_ns() - start;
	cohort_contig_note_longest(start);
	trace_cohort_pcpa_contig(nr, *err, start);
	count_vm_event(*err ? COHORT_PCPA_CONTIG_FAIL : COHORT_PCPA_CONTIG_OK);
	if (*err)
		return NULL;
	cohort_pcpa_got(nr);
	return pfn_to_page(w.start);
}
