// SPDX-License-Identifier: GPL-2.0
/*
 * The frames of the page-cache-preferred area and their users.
 *
 * They are fixed blocks, whose free pages the buddy allocator merges and links.  The
 * maps here tell the use of the other pages.  Single pages of page cache come and go
 * through magazines; marked ones go straight back, as marks change under zone->lock only.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/list.h>
#include <linux/mm.h>

#include "../../internal.h"
#include "../cohort.h"
#include "pcpa.h"

/* Cold page cache elsewhere, as a part of the area, above which reclaim spares the area's. */
#define SPARE_SHIFT	2

DEFINE_STATIC_KEY_FALSE(cohort_pcpa_key);
DEFINE_STATIC_KEY_FALSE(cohort_pcpa_take_key);
struct cohort_area cohort_area;

/**
 * cohort_area_lock() - there is an area, and nothing changes in it
 * @flags: interrupt state
 *
 * Return: false if there is none; nothing is locked then.
 */
bool cohort_area_lock(unsigned long *flags)
{
	struct zone *zone;

	while ((zone = READ_ONCE(cohort_area.zone))) {
		spin_lock_irqsave(&zone->lock, *flags);
		if (cohort_area.zone == zone)
			return true;
		spin_unlock_irqrestore(&zone->lock, *flags);
	}
	return false;
}

#ifdef CONFIG_COHORT_DEBUG
/* Now and then will do: all chunks are looked at. */
static void cohort_area_check(void)
{
	unsigned long pfn, client = 0, lent = 0, given = 0;
	static unsigned int turn;

	if (turn++ % 512)
		return;
	for (pfn = cohort_area.base; pfn < cohort_area.base + cohort_area.nr; pfn += COHORT_CHUNK) {
		const struct cohort_chunk *chunk = cohort_chunk_of(pfn);

		if (!chunk)
			continue;
		client += bitmap_weight(chunk->client, COHORT_CHUNK);
		lent += bitmap_weight(chunk->lent, COHORT_CHUNK);
		given += bitmap_weight(chunk->given, COHORT_CHUNK);
		WARN_ON_ONCE(bitmap_intersects(chunk->client, chunk->lent, COHORT_CHUNK));
		WARN_ON_ONCE(bitmap_intersects(chunk->client, chunk->given, COHORT_CHUNK));
	}
	WARN_ON_ONCE(client != cohort_area.nr_client || lent != cohort_area.nr_lent ||
		     given != cohort_area.nr_given);
	cohort_check_room(&cohort_area.room);
}
#else
static inline void cohort_area_check(void) { }
#endif

void cohort_area_unlock(unsigned long flags)
{
	cohort_area_check();
	cohort_zone_show(cohort_area.zone);
	spin_unlock_irqrestore(&cohort_area.zone->lock, flags);
}

static struct cohort_chunk *cohort_chunk_at(const struct cohort_block *blk)
{
	return container_of(blk, struct cohort_chunk, blk);
}

/**
 * cohort_chunk_of() - the chunk of a frame
 * @pfn: any frame number
 *
 * Without a lock for those that only want to know whether there is one.
 *
 * Return: the chunk, or NULL if the frame is not the area's.
 */
struct cohort_chunk *cohort_chunk_of(unsigned long pfn)
{
	struct cohort_block *blk = cohort_block_of(pfn);

	return blk && cohort_block_kept(blk) ? cohort_chunk_at(blk) : NULL;
}

/* what fixed blocks are for */

static unsigned int cohort_bits_clear(unsigned long *map, unsigned long bit, unsigned long end)
{
	unsigned int nr = 0;

	for_each_set_bit_from(bit, map, end) {
		__clear_bit(bit, map);
		nr++;
	}
	return nr;
}

static void cohort_chunk_unmark(struct cohort_chunk *chunk, unsigned long bit, unsigned long n)
{
	if (!(cohort_area.nr_client | cohort_area.nr_lent | cohort_area.nr_given))
		return;
	cohort_area.nr_client -= cohort_bits_clear(chunk->client, bit, bit + n);
	cohort_area.nr_lent -= cohort_bits_clear(chunk->lent, bit, bit + n);
	cohort_area.nr_given -= cohort_bits_clear(chunk->given, bit, bit + n);
}

static void cohort_chunk_freed(struct cohort_block *blk, unsigned long pfn, unsigned int order)
{
	cohort_chunk_unmark(cohort_chunk_at(blk), pfn % COHORT_CHUNK, 1UL << order);
	cohort_area.low = min(cohort_area.low, blk->pfn);
	cohort_area.top = max(cohort_area.top, blk->pfn + COHORT_CHUNK);
}

static void cohort_chunk_left(struct cohort_block *blk)
{
	struct cohort_chunk *chunk = cohort_chunk_at(blk);

	cohort_chunk_unmark(chunk, 0, COHORT_CHUNK);
	chunk->held = false;
}

/* Clients want large pieces, and windows all of their pages. */
static bool cohort_chunk_rests(const struct cohort_block *blk, unsigned long pfn)
{
	const struct cohort_chunk *chunk = cohort_chunk_at(blk);
	unsigned int bit = pfn % COHORT_CHUNK;

	return !READ_ONCE(chunk->held) && cohort_pcpa_state() == COHORT_PCACHE_ONLY &&
	       !test_bit(bit, chunk->client) && !test_bit(bit, chunk->lent) &&
	       !test_bit(bit, chunk->given);
}

const struct cohort_keeper cohort_pcpa_keeper = {
	.freed = cohort_chunk_freed,
	.left = cohort_chunk_left,
	.rests = cohort_chunk_rests,
};

/* looking */

/**
 * cohort_chunk_free_map() - which frames of a chunk are free
 * @chunk: the chunk, its zone locked
 * @map: receives a bit for each
 */
void cohort_chunk_free_map(const struct cohort_chunk *chunk, unsigned long *map)
{
	const struct page *page;
	unsigned int o;

	bitmap_zero(map, COHORT_CHUNK);
	for (o = 0; o <= COHORT_CHUNK_ORDER; o++)
		list_for_each_entry(page, &chunk->blk.free[o], buddy_list)
			bitmap_set(map, page_to_pfn(page) % COHORT_CHUNK, 1U << o);
}

/**
 * cohort_chunk_look() - what becomes of the frames of a chunk
 * @pfn: its first frame
 * @look: receives it
 *
 * Return: false if these frames are not the area's.
 */
bool cohort_chunk_look(unsigned long pfn, struct cohort_look *look)
{
	const struct cohort_chunk *chunk;
	unsigned long flags;

	if (!cohort_area_lock(&flags))
		return false;
	chunk = cohort_chunk_of(pfn);
	if (chunk) {
		cohort_chunk_free_map(chunk, look->free);
		bitmap_copy(look->client, chunk->client, COHORT_CHUNK);
		bitmap_copy(look->lent, chunk->lent, COHORT_CHUNK);
		bitmap_copy(look->given, chunk->given, COHORT_CHUNK);
		look->usable = cohort_block_usable(&chunk->blk);
	}
	cohort_area_unlock(flags);
	return chunk;
}

/* A chunk that pages may be taken of. */
static struct cohort_chunk *cohort_chunk_open(unsigned long pfn)
{
	struct cohort_chunk *chunk = cohort_chunk_of(pfn);

	return chunk && chunk->blk.nr_free && !chunk->held &&
	       cohort_block_usable(&chunk->blk) ? chunk : NULL;
}

/**
 * cohort_chunk_room() - what a chunk has for clients
 * @pfn: its first frame
 * @order: smallest piece they can use, COHORT_CHUNK_ORDER at most
 *
 * Return: pages in free pieces of this order and larger ones.
 */
unsigned long cohort_chunk_room(unsigned long pfn, unsigned int order)
{
	unsigned long flags, room = 0;
	struct cohort_chunk *chunk;

	if (!cohort_area_lock(&flags))
		return 0;
	chunk = cohort_chunk_open(pfn);
	for (; chunk && order <= COHORT_CHUNK_ORDER; order++)
		room += list_count_nodes(&chunk->blk.free[order]) << order;
	cohort_area_unlock(flags);
	return room;
}

/* taking */

static void cohort_chunk_mark(struct page *page, unsigned long n, enum cohort_use use)
{
	unsigned long pfn = page_to_pfn(page), bit = pfn % COHORT_CHUNK;
	struct cohort_chunk *chunk = cohort_chunk_of(pfn);

	if (use == COHORT_USE_CLIENT) {
		bitmap_set(chunk->client, bit, n);
		cohort_area.nr_client += n;
	} else if (use == COHORT_USE_LENT) {
		bitmap_set(chunk->lent, bit, n);
		cohort_area.nr_lent += n;
	} else if (use == COHORT_USE_GIVEN) {
		bitmap_set(chunk->given, bit, n);
		cohort_area.nr_given += n;
	}
}

/* Lowest first: clients begin at the other end. */
static unsigned int cohort_area_lowest(struct page **page, unsigned int want)
{
	unsigned long pfn = cohort_area.low, end = cohort_area.base + cohort_area.nr;
	bool none = true;
	unsigned int nr = 0;

	for (; pfn < end && nr < want; pfn += COHORT_CHUNK) {
		const struct cohort_chunk *chunk = cohort_chunk_of(pfn);

		none &= !chunk || !chunk->blk.nr_free;
		if (none)
			cohort_area.low = pfn;
		else if (cohort_chunk_open(pfn))
			nr += cohort_block_take(&cohort_chunk_of(pfn)->blk, page + nr, want - nr);
	}
	return nr;
}

/* Some chunk is neither whole nor used up. */
static bool cohort_area_has_broken(void)
{
	return cohort_area.room.nr_free > cohort_area.room.nr_whole * COHORT_CHUNK;
}

/* What is smaller than a chunk comes out of broken ones while there are any. */
static struct page *cohort_area_broken(unsigned int order)
{
	unsigned long pfn = cohort_area.base + cohort_area.nr;
	struct page *page = NULL;

	while (!page && pfn > cohort_area.base) {
		struct cohort_chunk *chunk;

		pfn -= COHORT_CHUNK;
		chunk = cohort_chunk_open(pfn);
		if (chunk && chunk->blk.nr_free < COHORT_CHUNK)
			page = cohort_block_piece(&chunk->blk, order);
	}
	return page;
}

/* From the high end. */
static struct page *cohort_area_whole(unsigned int order)
{
	unsigned long pfn = cohort_area.top;
	bool passed = true;

	while (pfn > cohort_area.base) {
		struct cohort_chunk *chunk;

		pfn -= COHORT_CHUNK;
		chunk = cohort_chunk_of(pfn);
		if (chunk && chunk->blk.nr_free == COHORT_CHUNK) {
			if (cohort_chunk_open(pfn))
				return cohort_block_piece(&chunk->blk, order);
			passed = false;
		}
		if (passed)
			cohort_area.top = pfn;
	}
	return NULL;
}

static bool cohort_chunks_whole(unsigned long pfn, unsigned long end)
{
	for (; pfn < end; pfn += COHORT_CHUNK) {
		struct cohort_chunk *chunk = cohort_chunk_open(pfn);

		if (!chunk || chunk->blk.nr_free != COHORT_CHUNK)
			return false;
	}
	return true;
}

/* Several whole chunks in a row. */
static struct page *cohort_area_large(unsigned int order)
{
	unsigned long n = 1UL << order, at, pfn;

	pfn = ALIGN_DOWN(cohort_area.base + cohort_area.nr, n);
	for (; pfn >= cohort_area.base + n; pfn -= n) {
		if (!cohort_chunks_whole(pfn - n, pfn))
			continue;
		for (at = pfn - n; at < pfn; at += COHORT_CHUNK)
			cohort_block_piece(&cohort_chunk_of(at)->blk, COHORT_CHUNK_ORDER);
		return pfn_to_page(pfn - n);
	}
	return NULL;
}

static struct page *cohort_area_for_client(unsigned int order)
{
	unsigned long at, n = min(1UL << order, COHORT_CHUNK);
	struct page *page = NULL;

	if (order > COHORT_CHUNK_ORDER)
		page = cohort_area_large(order);
	else if (order < COHORT_CHUNK_ORDER && cohort_area_has_broken())
		page = cohort_area_broken(order);
	if (!page && order <= COHORT_CHUNK_ORDER)
		page = cohort_area_whole(order);
	for (at = 0; page && at < 1UL << order; at += n)
		cohort_chunk_mark(page + at, n, COHORT_USE_CLIENT);
	return page;
}

/* From the low end, too. */
static struct page *cohort_area_for_others(unsigned int order, enum cohort_use use)
{
	unsigned long pfn = cohort_area.low, end = cohort_area.base + cohort_area.nr;
	struct page *page = NULL;

	if (!order)
		cohort_area_lowest(&page, 1);
	for (; order && !page && pfn < end; pfn += COHORT_CHUNK) {
		struct cohort_chunk *chunk = cohort_chunk_open(pfn);

		if (chunk)
			page = cohort_block_piece(&chunk->blk, order);
	}
	if (page)
		cohort_chunk_mark(page, 1UL << order, use);
	return page;
}

/**
 * cohort_area_take() - free pages of the area
 * @order: how many; COHORT_BREACH_ORDER at most but for clients
 * @use: what for; not the page cache
 *
 * Return: pages with refcount 0, for cohort_area_prep(), or NULL.
 */
struct page *cohort_area_take(unsigned int order, enum cohort_use use)
{
	struct page *page;
	unsigned long flags;

	if (!cohort_area_lock(&flags))
		return NULL;
	page = use == COHORT_USE_CLIENT ? cohort_area_for_client(order) :
					  cohort_area_for_others(order, use);
	cohort_area_unlock(flags);
	return page;
}

/**
 * cohort_area_take_cache() - a free page of the area for the page cache
 *
 * Return: a page as from cohort_area_take().
 */
struct page *cohort_area_take_cache(void)
{
	struct zone *zone = READ_ONCE(cohort_area.zone);
	struct page *page[COHORT_ROUND];
	unsigned long flags;
	unsigned int nr;

	page[0] = zone ? cohort_magazine_take(zone, COHORT_KEPT, NULL) : NULL;
	if (page[0])
		return page[0];
	/* The lock is all CPUs', and a full area would be asked for each page that is read. */
	if (!READ_ONCE(cohort_area.room.nr_free) || !cohort_area_lock(&flags))
		return NULL;
	nr = cohort_area_lowest(page, COHORT_ROUND);
	cohort_area_unlock(flags);
	if (!nr)
		return NULL;
	cohort_pages_reverse(page, nr);
	if (--nr)
		cohort_magazine_fill(page_zone(page[0]), COHORT_KEPT, page, nr);
	return page[nr];
}

static bool cohort_page_prep(struct page *page, gfp_t gfp, unsigned int alloc_flags)
{
	struct cohort_chunk *chunk;
	unsigned long flags;

	if (cohort_prep_pages(page, 0, gfp, alloc_flags, page_zone(page)))
		return true;
	if (!cohort_area_lock(&flags))
		return false;
	chunk = cohort_chunk_of(page_to_pfn(page));
	if (chunk)
		cohort_chunk_unmark(chunk, page_to_pfn(page) % COHORT_CHUNK, 1);
	cohort_area_unlock(flags);
	return false;
}

/**
 * cohort_area_prep() - make pages that were taken ready for use
 * @page: the first, from cohort_area_take()
 * @order: how many
 * @gfp: the request
 * @alloc_flags: ALLOC_* of the request
 *
 * Return: false if one of them is bad: that one stays out, no user's, and the others are
 * free again.
 */
bool cohort_area_prep(struct page *page, unsigned int order, gfp_t gfp,
		      unsigned int alloc_flags)
{
	unsigned long i;

	if (!order)
		return cohort_page_prep(page, gfp, alloc_flags);
	if (cohort_prep_pages(page, order, gfp, alloc_flags, page_zone(page)))
		return true;
	for (i = 0; i < 1UL << order; i++)
		if (cohort_page_prep(page + i, gfp, alloc_flags))
			__free_page(page + i);
	return false;
}

/**
 * cohort_area_settle() - what was lent is clean page cache now
 * @pfn: its frame; if it has changed hands meanwhile, it is counted wrong until
 *	it is freed
 */
void cohort_area_settle(unsigned long pfn)
{
	struct cohort_chunk *chunk;
	unsigned long flags;

	if (!cohort_area_lock(&flags))
		return;
	chunk = cohort_chunk_of(pfn);
	if (chunk)
		cohort_area.nr_lent -= __test_and_clear_bit(pfn % COHORT_CHUNK, chunk->lent);
	cohort_area_unlock(flags);
}

/* what others ask */

/* Without the lock: a guess.  Pages that a CPU has at hand are taken for page cache. */
void cohort_pcpa_sizes(struct cohort_pcpa_sizes *sizes)
{
	unsigned long there = (unsigned long)READ_ONCE(cohort_area.room.nr_blocks) * COHORT_CHUNK;
	unsigned long used;

	sizes->base = READ_ONCE(cohort_area.base);
	sizes->size = READ_ONCE(cohort_area.nr);
	sizes->free = READ_ONCE(cohort_area.room.nr_free);
	sizes->client = READ_ONCE(cohort_area.nr_client);
	sizes->lent = READ_ONCE(cohort_area.nr_lent);
	sizes->other = READ_ONCE(cohort_area.nr_given);
	used = sizes->free + sizes->client + sizes->lent + sizes->other;
	sizes->cache = there - min(there, used);
	sizes->other += sizes->size - min(sizes->size, there);
}

bool __cohort_pcpa_transient(unsigned long pfn)
{
	const struct cohort_chunk *chunk = cohort_chunk_of(pfn);
	unsigned int bit = pfn % COHORT_CHUNK;

	return chunk && !test_bit(bit, chunk->client) && !test_bit(bit, chunk->given);
}

/*
 * Free pages enough, as much page cache of other places as the area has pages, and of
 * it so much that is cold that what looks for it does not walk over the area's again and
 * again.
 */
static bool cohort_area_is_spared(void)
{
	const struct zone *zone = READ_ONCE(cohort_area.zone);
	struct cohort_pcpa_sizes sizes;
	unsigned long cold, warm;

	if (!zone)
		return false;
	cold = node_page_state(zone->zone_pgdat, NR_INACTIVE_FILE);
	warm = node_page_state(zone->zone_pgdat, NR_ACTIVE_FILE);
	cohort_pcpa_sizes(&sizes);
	return sizes.free > COHORT_AREA_KEEP &&
	       cold > sizes.cache + (sizes.size >> SPARE_SHIFT) &&
	       cold + warm > sizes.cache + sizes.size;
}

/**
 * __cohort_pcpa_suffices() - is a page the area's, while that has free ones enough?
 * @pfn: any page
 * @skipped: pages that were skipped before it under the same hold of a lock
 *
 * Where there is little to reclaim elsewhere the answer is no: free pages of the
 * area are lent then, and a reclaim that skips its pages would skip nearly all.  It is
 * no, too, after so many that interrupts were off for long.
 *
 * Context: any.
 */
bool __cohort_pcpa_suffices(unsigned long pfn, unsigned long skipped)
{
	return skipped < COHORT_SPARE_MAX && cohort_pcpa_state() == COHORT_PCACHE_ONLY &&
	       cohort_chunk_of(pfn) && cohort_area_is_spared();
}
