// SPDX-License-Identifier: GPL-2.0
/*
 * Windows of the page-cache-preferred area: frames that are being emptied for one
 * contiguous piece.  Pages that are or become free stay free, taken for nothing else:
 * not only in the window but in all of the chunks that have a part of it.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/mm.h>

#include "../cohort.h"
#include "pcpa.h"

static unsigned long cohort_chunk_end(unsigned long pfn, unsigned long end)
{
	return min(ALIGN(pfn + 1, COHORT_CHUNK), end);
}

/* Neither a client nor what would have to stay is there. */
static bool cohort_chunk_may_hold(unsigned long pfn, unsigned long end)
{
	const struct cohort_chunk *chunk = cohort_chunk_of(pfn);
	unsigned long from = pfn % COHORT_CHUNK, to = from + (end - pfn);

	return chunk && find_next_bit(chunk->client, to, from) == to &&
	       find_next_bit(chunk->given, to, from) == to;
}

/* One chunk at a time under the lock, however long the window is: no other is under way. */
static bool cohort_chunk_hold(unsigned long pfn, unsigned long end, bool held)
{
	struct cohort_chunk *chunk;
	unsigned long flags;
	bool ok;

	if (!cohort_area_lock(&flags))
		return false;
	chunk = cohort_chunk_of(pfn);
	ok = chunk && (!held || cohort_chunk_may_hold(pfn, end));
	if (ok)
		WRITE_ONCE(chunk->held, held);
	cohort_area_unlock(flags);
	return ok;
}

static void cohort_chunks_unhold(unsigned long pfn, unsigned long end)
{
	for (; pfn < end; pfn = cohort_chunk_end(pfn, end))
		cohort_chunk_hold(pfn, cohort_chunk_end(pfn, end), false);
}

/**
 * cohort_area_hold() - what is or becomes free in a window is kept for one piece
 * @start: first frame
 * @nr: pages
 *
 * Return: false if the area does not reach so far, or what is there would have to stay.
 */
bool cohort_area_hold(unsigned long start, unsigned long nr)
{
	unsigned long pfn, end = start + nr;

	for (pfn = start; pfn < end; pfn = cohort_chunk_end(pfn, end)) {
		if (cohort_chunk_hold(pfn, cohort_chunk_end(pfn, end), true))
			continue;
		cohort_chunks_unhold(start, pfn);
		return false;
	}
	return true;
}

/**
 * cohort_area_held() - pages of a window that are free
 * @start: first frame
 * @nr: pages
 */
unsigned long cohort_area_held(unsigned long start, unsigned long nr)
{
	unsigned long pfn, next, end = start + nr, free = 0;
	struct cohort_look look;

	for (pfn = start; pfn < end; pfn = next) {
		next = cohort_chunk_end(pfn, end);
		if (!cohort_chunk_look(ALIGN_DOWN(pfn, COHORT_CHUNK), &look))
			continue;
		free += bitmap_weight(look.free, next - ALIGN_DOWN(pfn, COHORT_CHUNK)) -
			bitmap_weight(look.free, pfn % COHORT_CHUNK);
	}
	return free;
}

/* A free piece that lies in a window, at least partly; the rest of it is free again. */
static unsigned long cohort_piece_claim(struct page *page, unsigned int order,
					unsigned long start, unsigned long end)
{
	unsigned long pfn = page_to_pfn(page), last = pfn + (1UL << order), nr = 0;

	if (last <= start || pfn >= end)
		return 0;
	cohort_buddy_split(cohort_area.zone, page, order, order);
	for (; pfn < last; pfn++) {
		if (pfn >= start && pfn < end)
			nr++;
		else
			cohort_buddy_merge(cohort_area.zone, pfn_to_page(pfn), 0);
	}
	return nr;
}

/* Pages given back are fewer than the piece, and merge to nothing as large. */
static unsigned long cohort_chunk_claim(struct cohort_chunk *chunk, unsigned long start,
					unsigned long end)
{
	struct page *page, *next;
	unsigned long nr = 0;
	unsigned int o;

	for (o = 0; o <= COHORT_CHUNK_ORDER; o++)
		list_for_each_entry_safe(page, next, &chunk->blk.free[o], buddy_list)
			nr += cohort_piece_claim(page, o, start, end);
	bitmap_set(chunk->client, start % COHORT_CHUNK, end - start);
	cohort_area.nr_client += end - start;
	return nr;
}

static bool cohort_chunk_free_between(const struct cohort_chunk *chunk, unsigned long start,
				      unsigned long end)
{
	unsigned long from = start % COHORT_CHUNK, to = from + (end - start);
	DECLARE_BITMAP(free, COHORT_CHUNK);

	if (!chunk || !cohort_block_usable(&chunk->blk))
		return false;
	cohort_chunk_free_map(chunk, free);
	return find_next_zero_bit(free, to, from) >= to;
}

/* All that the window has of a chunk, or nothing. */
static bool cohort_chunk_keep(unsigned long start, unsigned long end)
{
	struct cohort_chunk *chunk;
	unsigned long flags;
	bool ok;

	if (!cohort_area_lock(&flags))
		return false;
	chunk = cohort_chunk_of(start);
	ok = cohort_chunk_free_between(chunk, start, end) &&
	     !WARN_ON_ONCE(cohort_chunk_claim(chunk, start, end) != end - start);
	cohort_area_unlock(flags);
	return ok;
}

/* All of the window or nothing: what is not free now may be in use for good. */
static bool cohort_window_keep(unsigned long start, unsigned long end)
{
	unsigned long pfn, next;

	for (pfn = start; pfn < end; pfn = next) {
		next = cohort_chunk_end(pfn, end);
		if (!cohort_chunk_keep(pfn, next))
			break;
		cond_resched();
	}
	if (pfn >= end)
		return true;
	while (pfn-- > start) {
		cohort_buddy_give(pfn_to_page(pfn), 0);
		cond_resched();
	}
	return false;
}

/**
 * cohort_area_unhold() - a window is over
 * @start: first frame
 * @nr: pages
 * @keep: its pages become a client's; else they are free for all
 *
 * Context: may be scheduled away.
 * Return: true if they are a client's: all of them were free.
 */
bool cohort_area_unhold(unsigned long start, unsigned long nr, bool keep)
{
	keep = keep && cohort_window_keep(start, start + nr);
	cohort_chunks_unhold(start, start + nr);
	return keep;
}
