// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous pieces of the page-cache-preferred area, for devices without an
 * IOMMU.
 *
 * The place where the least is to be done is chosen and held: what is free there
 * or becomes so is nobody else's.  Then it is emptied, by dropping what is clean
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

#include "../internal.h"
#include "cohort.h"
#include "pcpa.h"

/* Pages isolated together. */
#define BATCH		64U

/* Pauses between tries for a page that is busy, while there is time. */
#define RETRY_US	2000

atomic_long_t cohort_busy_count[COHORT_NR_BUSY];
atomic_long_t cohort_contig_ns_max;
const char *const cohort_busy_names[COHORT_NR_BUSY] = {
	"none", "pinned", "writeback", "dirty", "locked", "unevictable", "private", "shared",
	"anon", "off_lru", "referenced",
};

static enum cohort_busy why_busy(struct page *page)
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
		why = cohort_busy_why(folio, true);
	if (why == COHORT_BUSY_NONE || why == COHORT_BUSY_ANON)
		why = folio_test_private(folio) ? COHORT_BUSY_PRIVATE : COHORT_BUSY_REFERENCED;
	folio_put(folio);
	return why;
}

/* The page's file, as far as it can be told without its lock. */
static void report_busy(unsigned long pfn)
{
	struct page *page = pfn_to_page(pfn);
	enum cohort_busy why = why_busy(page);
	struct address_space *mapping;
	unsigned long ino = 0;
	dev_t dev = 0;

	rcu_read_lock();
	mapping = READ_ONCE(page->mapping);
	if (mapping && !((unsigned long)mapping & PAGE_MAPPING_FLAGS)) {
		struct folio *folio = cohort_get_single(page);

		if (folio && folio_trylock(folio)) {
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
 * @start: first page, as an index in the area
 * @nr: pages
 * @cost: of each granule of the area
 * @granules: how many
 * @deadline: jiffies
 */
struct window {
	unsigned long base;
	unsigned long start;
	unsigned long nr;
	u16 *cost;
	unsigned long granules;
	unsigned long deadline;
};

/* A page to be moved is as much work as five to be dropped. */
static u16 granule_cost(const struct cohort_area *area, unsigned long first)
{
	unsigned long i, cost = 0;

	for (i = first; i < first + COHORT_GRANULE; i++) {
		if (!test_bit(i, area->own) || test_bit(i, area->client))
			return COHORT_COST_NEVER;
		if (cohort_area_map_test(&area->map, i))
			continue;
		cost += test_bit(i, area->lent) || PageDirty(pfn_to_page(area->base + i)) ? 5 : 1;
	}
	return cost;
}

static int window_costs(struct window *w)
{
	struct cohort_area *area;
	unsigned long flags, g, nr = 0;

	area = cohort_area_lock(&flags);
	if (area) {
		nr = area->nr;
		cohort_area_unlock(area, flags);
	}
	if (!nr || w->nr > nr)
		return -ENOMEM;
	w->granules = nr / COHORT_GRANULE;
	w->cost = kvmalloc_array(w->granules, sizeof(*w->cost), GFP_KERNEL);
	if (!w->cost)
		return -ENOMEM;
	rcu_read_lock();
	area = rcu_dereference(cohort_area);
	w->base = area->base;
	for (g = 0; g < w->granules; g++)
		w->cost[g] = granule_cost(area, g * COHORT_GRANULE);
	rcu_read_unlock();
	return 0;
}

/* As aligned as its size is, up to a chunk. */
static bool window_find(struct window *w)
{
	unsigned long len = DIV_ROUND_UP(w->nr, COHORT_GRANULE);
	unsigned long step = clamp(w->nr & -w->nr, COHORT_GRANULE, COHORT_CHUNK);
	unsigned long at = cohort_area_window(w->cost, w->granules, len, step / COHORT_GRANULE);

	w->start = at * COHORT_GRANULE;
	return at < w->granules;
}

static void window_drop(const struct window *w)
{
	cohort_area_drop(w->base, w->start, w->start + w->nr);
}

/* The next page of the window that is in use; w->nr if there is none. */
static unsigned long window_used(const struct window *w, unsigned long from)
{
	struct cohort_area *area;
	unsigned long i = w->nr;

	rcu_read_lock();
	area = rcu_dereference(cohort_area);
	if (area)
		i = find_next_zero_bit(area->held, w->start + w->nr, w->start + from) - w->start;
	rcu_read_unlock();
	return i;
}

static bool window_move(struct window *w)
{
	unsigned long i = 0;
	bool any = false;

	while ((i = window_used(w, i)) < w->nr && time_before(jiffies, w->deadline)) {
		unsigned int nr = 0;
		LIST_HEAD(list);

		for (; i < w->nr && nr < BATCH; i = window_used(w, i + 1))
			nr += cohort_isolate_page(pfn_to_page(w->base + w->start + i), &list);
		any |= cohort_move_out(&list, MIGRATE_SYNC_LIGHT);
		cond_resched();
	}
	return any;
}

/* Until the window is empty, or nothing has moved for a share of the time. */
static bool window_empty(struct window *w)
{
	unsigned long patience = jiffies + msecs_to_jiffies(COHORT_CONTIG_MS / 8);

	window_drop(w);
	if (cohort_area_held() == w->nr)
		return true;
	lru_add_drain_all();
	while (cohort_area_held() < w->nr) {
		if (window_move(w))
			patience = jiffies + msecs_to_jiffies(COHORT_CONTIG_MS / 8);
		if (cohort_area_held() == w->nr)
			return true;
		if (time_after(jiffies, patience) || time_after(jiffies, w->deadline) ||
		    fatal_signal_pending(current))
			return false;
		usleep_range(RETRY_US, 2 * RETRY_US);
		lru_add_drain_all();
		window_drop(w);
	}
	return true;
}

/* Whatever stands in the way does so for this request. */
static void window_blame(struct window *w)
{
	unsigned long i = 0;

	while ((i = window_used(w, i)) < w->nr) {
		report_busy(w->base + w->start + i);
		w->cost[(w->start + i) / COHORT_GRANULE] = COHORT_COST_NEVER;
		i++;
	}
}

static int window_try(struct window *w)
{
	int err = -ENOMEM;

	while (window_find(w)) {
		if (!cohort_area_hold(w->start, w->nr))
			return -EAGAIN;
		/* A frame may still have been taken away, by hwpoison for one. */
		if (window_empty(w))
			return cohort_area_unhold(true) ? 0 : -EAGAIN;
		window_blame(w);
		cohort_area_unhold(false);
		err = fatal_signal_pending(current) ? -EINTR : -EBUSY;
		if (err == -EINTR || time_after(jiffies, w->deadline))
			break;
	}
	return err;
}

static bool window_prep(const struct window *w, gfp_t gfp)
{
	unsigned long i, bad, pfn = w->base + w->start;

	for (i = 0; i < w->nr; i++)
		if (!cohort_area_prep(pfn_to_page(pfn + i), 0, gfp, 0))
			break;
	if (i == w->nr)
		return true;
	/* A page turned out to be bad: it has left; the others are free again. */
	for (bad = i++; i < w->nr; i++)
		__cohort_pcpa_free(pfn_to_page(pfn + i), pfn + i, 0);
	while (bad--)
		__free_page(pfn_to_page(pfn + bad));
	return false;
}

static void note_longest(unsigned long ns)
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
		.nr = nr, .deadline = jiffies + msecs_to_jiffies(COHORT_CONTIG_MS),
	};
	u64 start = ktime_get_ns();

	*err = mutex_lock_killable(&cohort_pcpa_mutex);
	if (*err)
		return NULL;
	cohort_pcpa_want();
	do {
		kvfree(w.cost);
		w.cost = NULL;
		*err = window_costs(&w) ?: window_try(&w);
	} while (*err == -EAGAIN && time_before(jiffies, w.deadline));
	if (*err == -EAGAIN)
		*err = -EBUSY;
	if (!*err && !window_prep(&w, gfp))
		*err = -EBUSY;
	mutex_unlock(&cohort_pcpa_mutex);
	kvfree(w.cost);
	start = ktime_get_ns() - start;
	note_longest(start);
	trace_cohort_pcpa_contig(nr, *err, start);
	count_vm_event(*err ? COHORT_PCPA_CONTIG_FAIL : COHORT_PCPA_CONTIG_OK);
	if (*err)
		return NULL;
	cohort_pcpa_got(nr);
	return pfn_to_page(w.base + w.start);
}
