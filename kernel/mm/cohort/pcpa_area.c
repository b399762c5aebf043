// SPDX-License-Identifier: GPL-2.0
/*
 * The frames of the page-cache-preferred area: who has which.
 *
 * They are handed out page by page or block by block.  A page that is freed
 * comes back here from the free path.  To give a frame back is to clear its bit:
 * free ones go to the buddy allocator at once, the others when they are freed;
 * so nobody has to be evicted for that.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/vmstat.h>

#include "../internal.h"
#include "cohort.h"
#include "pcpa.h"

/* Cold page cache elsewhere, as a part of the area, above which reclaim spares the area's. */
#define SPARE_SHIFT	2

DEFINE_STATIC_KEY_FALSE(cohort_pcpa_key);
DEFINE_STATIC_KEY_FALSE(cohort_pcpa_take_key);
struct cohort_area __rcu *cohort_area;

/**
 * cohort_area_lock() - the area, locked
 * @flags: interrupt state
 *
 * Enters an RCU read-side section, too.
 *
 * Return: the area, or NULL (nothing is locked then).
 */
struct cohort_area *cohort_area_lock(unsigned long *flags)
{
	struct cohort_area *area;

	rcu_read_lock();
	while ((area = rcu_dereference(cohort_area))) {
		spin_lock_irqsave(&area->lock, *flags);
		if (!area->dead)
			return area;
		spin_unlock_irqrestore(&area->lock, *flags);
	}
	rcu_read_unlock();
	return NULL;
}

void cohort_area_unlock(struct cohort_area *area, unsigned long flags)
{
	cohort_area_check(area);
	spin_unlock_irqrestore(&area->lock, flags);
	rcu_read_unlock();
}

static void count_free(const struct cohort_area *area, long delta)
{
	__mod_zone_page_state(area->zone, NR_COHORT_FREE, delta);
}

/* frames on their way back */

/* Takes what is free out of a part of a chunk, and its marks off the rest. */
static void disown_part(struct cohort_area *area, unsigned long first, unsigned long last,
			struct cohort_map *gone)
{
	unsigned long i;

	memset(gone, 0, sizeof(*gone));
	for (i = first; i < last; i++) {
		if (!__test_and_clear_bit(i, area->own))
			continue;
		area->nr_own--;
		area->nr_client -= __test_and_clear_bit(i, area->client);
		area->nr_lent -= __test_and_clear_bit(i, area->lent);
		if (__test_and_clear_bit(i, area->held)) {
			area->nr_held--;
			cohort_map_put(gone, i % COHORT_CHUNK);
		} else if (cohort_area_map_test(&area->map, i)) {
			cohort_area_map_clear(&area->map, i, 1);
			count_free(area, -1);
			cohort_map_put(gone, i % COHORT_CHUNK);
		}
	}
}

static void give_chunk(unsigned long pfn, const struct cohort_map *gone)
{
	if (gone->nr == COHORT_CHUNK)
		cohort_buddy_give(pfn_to_page(pfn), COHORT_CHUNK_ORDER);
	else if (gone->nr)
		cohort_buddy_give_map(pfn, gone);
}

/**
 * cohort_area_disown() - frames are not the area's any longer
 * @start: first frame; the area may reach less far, or be elsewhere
 * @end: one past the last
 *
 * Context: no locks of the page allocator held.
 */
void cohort_area_disown(unsigned long start, unsigned long end)
{
	struct cohort_area *area;
	struct cohort_map gone;
	unsigned long flags;

	while ((area = cohort_area_lock(&flags))) {
		unsigned long base = area->base, first, last;

		if (start < base)
			start = base;
		if (end > base + area->nr)
			end = base + area->nr;
		if (start >= end) {
			cohort_area_unlock(area, flags);
			break;
		}
		first = start - base;
		last = min(end - base, ALIGN(first + 1, COHORT_CHUNK));
		disown_part(area, first, last, &gone);
		cohort_area_unlock(area, flags);
		give_chunk(base + ALIGN_DOWN(first, COHORT_CHUNK), &gone);
		start = base + last;
	}
}

/**
 * cohort_area_give_free() - free pages to whoever needs them
 *
 * Whole pageblocks, the rest page by page; they are fetched back when memory is
 * plentiful again.
 *
 * Return: pages given.
 */
unsigned long cohort_area_give_free(void)
{
	unsigned long flags, nr = 0, c = 0;
	struct cohort_area *area;
	struct cohort_map gone;

	while ((area = cohort_area_lock(&flags))) {
		unsigned long i, base = area->base;

		while (c < area->nr / COHORT_CHUNK && !area->map.chunk[c])
			c++;
		if (c >= area->nr / COHORT_CHUNK) {
			cohort_area_unlock(area, flags);
			break;
		}
		memset(&gone, 0, sizeof(gone));
		for (i = c * COHORT_CHUNK; i < (c + 1) * COHORT_CHUNK; i++) {
			if (!cohort_area_map_test(&area->map, i))
				continue;
			cohort_area_map_clear(&area->map, i, 1);
			__clear_bit(i, area->own);
			area->nr_own--;
			count_free(area, -1);
			cohort_map_put(&gone, i % COHORT_CHUNK);
		}
		cohort_area_unlock(area, flags);
		give_chunk(base + c * COHORT_CHUNK, &gone);
		nr += gone.nr;
	}
	if (nr) {
		count_vm_events(COHORT_PCPA_GIVEN, nr);
		cohort_pcpa_tidy_soon();
	}
	return nr;
}

/* taking and parking */

/**
 * cohort_area_mark() - whose pages are they?
 * @area: the area, locked
 * @i: first page
 * @n: how many
 * @use: whose
 */
void cohort_area_mark(struct cohort_area *area, unsigned long i, unsigned long n,
		 enum cohort_use use)
{
	if (use == COHORT_USE_CLIENT) {
		bitmap_set(area->client, i, n);
		area->nr_client += n;
	} else if (use == COHORT_USE_LENT) {
		bitmap_set(area->lent, i, n);
		area->nr_lent += n;
	}
}

/**
 * cohort_area_take() - free pages of the area
 * @order: how many; single pages only but for clients
 * @use: what for
 * @ac: zones and nodes they may come from, or NULL
 *
 * Return: pages in the state of parked ones, for cohort_area_prep(), or NULL.
 */
struct page *cohort_area_take(unsigned int order, enum cohort_use use,
			      const struct alloc_context *ac)
{
	struct cohort_area *area;
	unsigned long flags, i;
	struct page *page = NULL;

	area = cohort_area_lock(&flags);
	if (!area)
		return NULL;
	if (area->map.nr_set && (!ac || cohort_zone_ok(ac, pfn_to_page(area->base)))) {
		i = use == COHORT_USE_CLIENT ? cohort_area_map_find(&area->map, order) :
					       cohort_area_map_lowest(&area->map);
		if (i < area->map.nr) {
			cohort_area_map_clear(&area->map, i, 1UL << order);
			count_free(area, -(1L << order));
			cohort_area_mark(area, i, 1UL << order, use);
			page = pfn_to_page(area->base + i);
		}
	}
	cohort_area_unlock(area, flags);
	return page;
}

/**
 * cohort_area_prep() - make pages that were taken ready for use
 * @page: the first, from cohort_area_take()
 * @order: how many
 * @gfp: the request
 * @alloc_flags: ALLOC_* of the request
 *
 * Return: false if one of them is bad; it leaves the area, the others are free again.
 */
bool cohort_area_prep(struct page *page, unsigned int order, gfp_t gfp,
		      unsigned int alloc_flags)
{
	unsigned long pfn = page_to_pfn(page), i;

	if (cohort_prep_pages(page, order, gfp, alloc_flags, page_zone(page)))
		return true;
	for (i = 0; i < 1UL << order; i++)
		if (PageHWPoison(page + i) || !__cohort_pcpa_free(page + i, pfn + i, 0))
			cohort_area_disown(pfn + i, pfn + i + 1);
	return false;
}

/* Pages of the window stay out of everybody's sight. */
static void park_held(struct cohort_area *area, unsigned long i)
{
	__set_bit(i, area->held);
	__set_bit(i, area->client);
	area->nr_held++;
	area->nr_client++;
}

static void park_one(struct cohort_area *area, unsigned long i)
{
	area->nr_client -= __test_and_clear_bit(i, area->client);
	area->nr_lent -= __test_and_clear_bit(i, area->lent);
	if (i >= area->hold_start && i < area->hold_end) {
		park_held(area, i);
		return;
	}
	cohort_area_map_set(&area->map, i, 1);
	count_free(area, 1);
}

static bool covers(const struct cohort_area *area, unsigned long pfn)
{
	return pfn - area->base < READ_ONCE(area->nr);
}

/*
 * The free hook.  A piece comes back as a whole or in parts; a part of it may
 * have been given back meanwhile, and then the caller frees it page by page.
 */
bool __cohort_pcpa_free(struct page *page, unsigned long pfn, unsigned int order)
{
	unsigned long flags, i, n = 1UL << order, k;
	struct cohort_area *area;
	bool ours;

	rcu_read_lock();
	area = rcu_dereference(cohort_area);
	ours = area && covers(area, pfn);
	rcu_read_unlock();
	if (!ours)
		return false;
	area = cohort_area_lock(&flags);
	if (!area)
		return false;
	i = pfn - area->base;
	ours = covers(area, pfn) && i + n <= area->nr &&
	       find_next_zero_bit(area->own, i + n, i) == i + n;
	for (k = 0; ours && k < n; k++)
		park_one(area, i + k);
	if (ours)
		__count_vm_events(PGFREE, n);
	cohort_area_unlock(area, flags);
	return ours;
}

/* Pages that follow each other and need nothing but their bits; 0 if there is more to do. */
static unsigned long plain_run(const struct cohort_area *area, const unsigned long *pfn,
			       unsigned int nr)
{
	unsigned long i = pfn[0] - area->base, n = 1, end;

	while (n < nr && pfn[n] == pfn[0] + n)
		n++;
	end = i + n;
	if (!covers(area, pfn[0]) || end > area->nr ||
	    (end > area->hold_start && i < area->hold_end) ||
	    find_next_zero_bit(area->own, end, i) < end ||
	    find_next_bit(area->client, end, i) < end || find_next_bit(area->lent, end, i) < end)
		return 0;
	return n;
}

/* Return: how many of them are done. */
static unsigned int park_some(struct cohort_area *area, const unsigned long *pfn,
			      unsigned int nr)
{
	unsigned long n = plain_run(area, pfn, nr);

	if (n) {
		cohort_area_map_set(&area->map, pfn[0] - area->base, n);
		count_free(area, n);
	} else if (covers(area, pfn[0]) && test_bit(pfn[0] - area->base, area->own)) {
		park_one(area, pfn[0] - area->base);
		n = 1;
	}
	return n;
}

/**
 * cohort_area_park() - the same for many single pages
 * @pfn: their frames; those that are not the area's any longer go to the buddy
 *	allocator
 * @nr: how many
 */
void cohort_area_park(const unsigned long *pfn, unsigned int nr)
{
	struct cohort_area *area;
	unsigned long flags;
	unsigned int n = 0, some;

	while (n < nr && (area = cohort_area_lock(&flags))) {
		do {
			some = park_some(area, pfn + n, nr - n);
			n += some;
		} while (some && n < nr);
		cohort_area_unlock(area, flags);
		if (n < nr)
			cohort_buddy_give(pfn_to_page(pfn[n++]), 0);
	}
	while (n < nr)
		cohort_buddy_give(pfn_to_page(pfn[n++]), 0);
	count_vm_events(PGFREE, nr);
}

/**
 * cohort_area_settle() - what was lent is clean page cache now
 * @pfn: its frame; if it has changed hands meanwhile, it is counted wrong until
 *	it is freed
 */
void cohort_area_settle(unsigned long pfn)
{
	struct cohort_area *area;
	unsigned long flags;

	area = cohort_area_lock(&flags);
	if (!area)
		return;
	if (covers(area, pfn))
		area->nr_lent -= __test_and_clear_bit(pfn - area->base, area->lent);
	cohort_area_unlock(area, flags);
}

/* windows for one piece */

/**
 * cohort_area_hold() - what is or becomes free in a window is kept for one piece
 * @start: first page
 * @nr: pages
 *
 * Return: false if the area does not reach so far, or clients have pages of it.
 */
bool cohort_area_hold(unsigned long start, unsigned long nr)
{
	struct cohort_area *area;
	unsigned long flags, i;
	bool ok;

	area = cohort_area_lock(&flags);
	if (!area)
		return false;
	ok = start + nr <= area->nr && area->hold_start == area->hold_end &&
	     find_next_bit(area->client, start + nr, start) == start + nr &&
	     find_next_zero_bit(area->own, start + nr, start) == start + nr;
	if (ok) {
		area->hold_start = start;
		area->hold_end = start + nr;
		for (i = start; i < start + nr; i++) {
			if (!cohort_area_map_test(&area->map, i))
				continue;
			cohort_area_map_clear(&area->map, i, 1);
			count_free(area, -1);
			park_held(area, i);
		}
	}
	cohort_area_unlock(area, flags);
	return ok;
}

/**
 * cohort_area_held() - pages of the window that are free
 */
unsigned long cohort_area_held(void)
{
	unsigned long flags, nr = 0;
	struct cohort_area *area;

	area = cohort_area_lock(&flags);
	if (area) {
		nr = area->nr_held;
		cohort_area_unlock(area, flags);
	}
	return nr;
}

/**
 * cohort_area_unhold() - the window is over
 * @keep: its pages stay a client's; else they are free for all
 *
 * Return: true if all of them were free.
 */
bool cohort_area_unhold(bool keep)
{
	struct cohort_area *area;
	unsigned long flags, i, end;
	bool all;

	area = cohort_area_lock(&flags);
	if (!area)
		return false;
	end = area->hold_end;
	all = end > area->hold_start && area->nr_held == end - area->hold_start;
	i = area->hold_start;
	area->hold_end = i;
	for_each_set_bit_from(i, area->held, end) {
		__clear_bit(i, area->held);
		area->nr_held--;
		if (!all || !keep)
			park_one(area, i);
	}
	cohort_area_unlock(area, flags);
	return all;
}

/* Pages of the area that hold page cache; a guess without the lock. */
static unsigned long cache_pages(const struct cohort_area *area)
{
	return READ_ONCE(area->nr_own) - READ_ONCE(area->map.nr_set) -
	       READ_ONCE(area->nr_client) - READ_ONCE(area->nr_lent);
}

void cohort_pcpa_sizes(struct cohort_pcpa_sizes *sizes)
{
	struct cohort_area *area;
	unsigned long flags;

	memset(sizes, 0, sizeof(*sizes));
	area = cohort_area_lock(&flags);
	if (!area)
		return;
	sizes->base = area->base;
	sizes->size = area->nr;
	sizes->free = area->map.nr_set;
	sizes->client = area->nr_client;
	sizes->lent = area->nr_lent;
	sizes->cache = cache_pages(area);
	sizes->other = area->nr - area->nr_own;
	cohort_area_unlock(area, flags);
}

/**
 * cohort_pcpa_free_pages() - pages of the area that nobody has
 */
unsigned long cohort_pcpa_free_pages(void)
{
	const struct cohort_area *area;
	unsigned long nr = 0;

	if (!cohort_pcpa_there())
		return 0;
	rcu_read_lock();
	area = rcu_dereference(cohort_area);
	if (area)
		nr = READ_ONCE(area->map.nr_set);
	rcu_read_unlock();
	return nr;
}

/* what others ask */

static bool area_bit(unsigned long pfn, bool (*is)(const struct cohort_area *, unsigned long))
{
	const struct cohort_area *area;
	bool yes;

	rcu_read_lock();
	area = rcu_dereference(cohort_area);
	yes = area && covers(area, pfn) && is(area, pfn - area->base);
	rcu_read_unlock();
	return yes;
}

static bool is_own(const struct cohort_area *area, unsigned long i)
{
	return test_bit(i, area->own);
}

static bool is_parked(const struct cohort_area *area, unsigned long i)
{
	/* A picture of memory in motion; nothing depends on it. */
	return data_race(cohort_area_map_test(&area->map, i)) || test_bit(i, area->held);
}

static bool is_transient(const struct cohort_area *area, unsigned long i)
{
	return test_bit(i, area->own) && !test_bit(i, area->client);
}

/*
 * Free pages enough, as much page cache of other places as the area has pages, and of
 * it so much that is cold that who looks for it does not walk over the area's again and
 * again.
 */
static bool is_spared(const struct cohort_area *area, unsigned long i)
{
	struct pglist_data *pgdat = NODE_DATA(area->nid);
	unsigned long inside = cache_pages(area);
	unsigned long cold = node_page_state(pgdat, NR_INACTIVE_FILE);

	return READ_ONCE(area->map.nr_set) > COHORT_AREA_KEEP &&
	       cold > inside + (area->nr >> SPARE_SHIFT) &&
	       cold + node_page_state(pgdat, NR_ACTIVE_FILE) > inside + area->nr;
}

/* Compaction goes on behind the pageblock. */
unsigned long __cohort_pcpa_next(unsigned long pfn)
{
	return area_bit(pfn, is_own) ? (pfn | (pageblock_nr_pages - 1)) + 1 : pfn;
}

bool __cohort_pcpa_parked(const struct page *page)
{
	return area_bit(page_to_pfn(page), is_parked);
}

bool __cohort_pcpa_transient(unsigned long pfn)
{
	return area_bit(pfn, is_transient);
}

/**
 * __cohort_pcpa_suffices() - is a page the area's, while that has free ones enough?
 * @pfn: any page
 *
 * Where there is little to reclaim elsewhere the answer is no: free pages of the
 * area are lent then, and those who skip its pages would skip nearly all.
 *
 * Context: any.
 */
bool __cohort_pcpa_suffices(unsigned long pfn)
{
	return cohort_pcpa_state() == COHORT_PCACHE_ONLY && area_bit(pfn, is_spared);
}

#ifdef CONFIG_COHORT_DEBUG
/**
 * cohort_area_check() - recount the area
 * @area: the area, locked
 */
void cohort_area_check(struct cohort_area *area)
{
	static unsigned int turn;

	lockdep_assert_held(&area->lock);
	/* Now and then will do, whoever counts. */
	if (data_race(turn++) % 512)
		return;
	WARN_ON_ONCE(!cohort_area_map_ok(&area->map));
	WARN_ON_ONCE(bitmap_weight(area->own, area->nr) != area->nr_own);
	WARN_ON_ONCE(bitmap_weight(area->client, area->nr) != area->nr_client);
	WARN_ON_ONCE(bitmap_weight(area->lent, area->nr) != area->nr_lent);
	WARN_ON_ONCE(bitmap_weight(area->held, area->nr) != area->nr_held);
	WARN_ON_ONCE(bitmap_intersects(area->client, area->lent, area->nr));
	WARN_ON_ONCE(bitmap_intersects(area->client, area->map.bits, area->nr));
	WARN_ON_ONCE(bitmap_intersects(area->lent, area->map.bits, area->nr));
	WARN_ON_ONCE(!bitmap_subset(area->map.bits, area->own, area->nr));
}
#endif
