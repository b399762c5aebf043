// SPDX-License-Identifier: GPL-2.0
/*
 * Making the page-cache-preferred area, and changing its size.
 *
 * Its frames come from the buddy allocator as one contiguous range, emptied by
 * migration if need be.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/page-isolation.h>
#include <linux/sched/signal.h>
#include <linux/swap.h>

#include "../../internal.h"
#include "../cohort.h"
#include "../host/contig.h"
#include "pcpa.h"

/* Places that are tried before there is no room, and for how long another one is. */
#define FIND_TRIES	16
#define FIND_TIME	(2 * HZ)

/* How often a place is tried in which a page is busy, and the pauses between. */
#define GRAB_TRIES	4
#define GRAB_PAUSE_MS	20

/* Memory that must stay available beside an area made at run time: 1 / 2^n. */
#define SPARE_SHIFT	4

/*
 * Frames are looked for, which takes seconds, under the first of them only: clients do not
 * wait for that.
 */
DEFINE_MUTEX(cohort_size_mutex);
DEFINE_MUTEX(cohort_pcpa_mutex);

struct task_struct *cohort_frames_task;

/**
 * cohort_area_align() - what an area begins and ends at a multiple of, in pages
 *
 * No chunk has a buddy outside, and no pageblock is the area's in part.
 */
unsigned long cohort_area_align(void)
{
	return max_t(unsigned long, pageblock_nr_pages, 2 * COHORT_CHUNK);
}

/* frames from the buddy allocator */

/* Nothing that is here would have to stay. */
static bool cohort_frame_movable(struct page *page)
{
	return !PageReserved(page) &&
	       (PageBuddy(page) || PageLRU(page) || __PageMovable(page) || !page_count(page));
}

/* Online memory of one zone, in one map of pages, of a type that may be taken. */
static bool cohort_frames_ordinary(unsigned long pfn, unsigned long end, struct zone *zone)
{
	struct page *page = pfn_to_online_page(pfn);

	if (!page || page_zone(page) != zone ||
	    pfn_to_online_page(end - 1) != page + (end - 1 - pfn) ||
	    page_zone(pfn_to_page(end - 1)) != zone)
		return false;
	for (; pfn < end; pfn += pageblock_nr_pages) {
		/* A zone may span holes of any size. */
		page = pfn_to_online_page(pfn);
		if (!page || page_zone(page) != zone)
			return false;
		/* Of CMA, of the reserve for requests that may not wait, or isolated by others. */
		if (!migratetype_is_mergeable(get_pageblock_migratetype(page)))
			return false;
	}
	return true;
}

static bool cohort_frames_kept(unsigned long pfn, unsigned long end)
{
	for (; pfn < end; pfn += COHORT_CHUNK)
		if (cohort_chunk_of(pfn))
			return true;
	return false;
}

static bool cohort_frames_block_ok(unsigned long pfn, struct zone *zone)
{
	unsigned long end = pfn + cohort_area_align();

	if (!cohort_frames_ordinary(pfn, end, zone) || cohort_frames_kept(pfn, end))
		return false;
	for (; pfn < end; pfn++)
		if (!cohort_frame_movable(pfn_to_page(pfn)))
			return false;
	return true;
}

/*
 * No page is waited for by its lock: a server of FUSE may have it for as long as it wants, and
 * the caller could not even be killed.  One that is busy for a moment is tried again.
 */
static int cohort_frames_grab(unsigned long base, unsigned long nr)
{
	unsigned int tries = GRAB_TRIES;
	int err;

	for (;;) {
		WRITE_ONCE(cohort_frames_task, current);
		err = alloc_contig_range(base, base + nr, MIGRATE_MOVABLE,
					 GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
		WRITE_ONCE(cohort_frames_task, NULL);
		if (err != -EBUSY || !--tries || fatal_signal_pending(current))
			return err;
		msleep(GRAB_PAUSE_MS);
	}
}

/* From the top down: what lies lowest is what devices with short addresses need. */
static unsigned long cohort_frames_find_in_zone(struct zone *zone, unsigned long nr,
						unsigned long below)
{
	unsigned long align = cohort_area_align();
	unsigned long lowest = ALIGN(zone->zone_start_pfn, align);
	unsigned long pfn = ALIGN_DOWN(min(zone_end_pfn(zone), below), align);
	unsigned long end = pfn;
	unsigned long deadline = jiffies + FIND_TIME;
	unsigned int tries = FIND_TRIES;

	while (pfn > lowest && end >= lowest + nr) {
		pfn -= align;
		if (!cohort_frames_block_ok(pfn, zone)) {
			end = pfn;
		} else if (end - pfn == nr) {
			if (!cohort_frames_grab(pfn, nr))
				return pfn;
			if (!--tries || time_after(jiffies, deadline) ||
			    fatal_signal_pending(current))
				break;
			end -= align;
		}
		cond_resched();
	}
	return 0;
}

/**
 * cohort_frames_find() - contiguous frames, emptied
 * @nid: node, NUMA_NO_NODE for any
 * @nr: how many, a multiple of cohort_area_align()
 * @base: the first of them, 0 for any
 * @below: none is this one or beyond; ULONG_MAX for any
 *
 * Context: sleeps, migrates, does not kill; waits for no page that is locked.
 * Return: the first frame; each is allocated with one reference. 0 if there are none.
 */
unsigned long cohort_frames_find(int nid, unsigned long nr, unsigned long base,
				 unsigned long below)
{
	struct pglist_data *pgdat;
	int z;

	/* A page in a batch of some CPU looks as if it could not be moved. */
	lru_add_drain_all();
	if (base)
		return base < below && nr <= below - base && pfn_to_online_page(base) &&
		       cohort_frames_ordinary(base, base + nr, page_zone(pfn_to_page(base))) &&
		       !cohort_frames_kept(base, base + nr) &&
		       !cohort_frames_grab(base, nr) ? base : 0;
	for_each_online_pgdat(pgdat) {
		if (nid != NUMA_NO_NODE && pgdat->node_id != nid)
			continue;
		/* What clients have cannot move: nothing of ZONE_MOVABLE, unless it is asked for. */
		for (z = gfp_zone(GFP_HIGHUSER); z >= 0; z--) {
			struct zone *zone = &pgdat->node_zones[z];

			if (populated_zone(zone) && zone_managed_pages(zone) > nr)
				base = cohort_frames_find_in_zone(zone, nr, below);
			if (base)
				return base;
		}
	}
	return 0;
}

/* sizes */

/**
 * cohort_frames_free() - frames of cohort_frames_find() go back
 * @base: the first
 * @nr: how many, whole pageblocks
 */
void cohort_frames_free(unsigned long base, unsigned long nr)
{
	unsigned long done;

	for (done = 0; done < nr; done += pageblock_nr_pages) {
		free_contig_range(base + done, pageblock_nr_pages);
		cond_resched();
	}
}

static void cohort_area_reach(unsigned long base, unsigned long nr, struct zone *zone)
{
	struct zone *lock = zone ?: cohort_area.zone;
	unsigned long flags;

	spin_lock_irqsave(&lock->lock, flags);
	WRITE_ONCE(cohort_area.base, base);
	WRITE_ONCE(cohort_area.nr, nr);
	WRITE_ONCE(cohort_area.zone, zone);
	cohort_area.low = base;
	cohort_area.top = base + nr;
	spin_unlock_irqrestore(&lock->lock, flags);
}

/* The whole of it; nothing has to leave. */
static void cohort_area_off(void)
{
	struct zone *zone = cohort_area.zone;

	lockdep_assert_held(&cohort_pcpa_mutex);
	if (!zone)
		return;
	static_branch_disable(&cohort_pcpa_take_key);
	cohort_fixed_leave(cohort_area.base, cohort_area.base + cohort_area.nr);
	cohort_area_reach(0, 0, NULL);
	static_branch_disable(&cohort_pcpa_key);
	cohort_keeper_off(zone);
}

static void cohort_area_shrink(unsigned long nr)
{
	unsigned long base = cohort_area.base;

	cohort_fixed_leave(base + nr, base + cohort_area.nr);
	cohort_fixed_drain(cohort_area.zone);
	cohort_area_reach(base, nr, cohort_area.zone);
}

/* Frames that were found become the area's, and free: the free path finds their chunks. */
static void cohort_area_enter(unsigned long start, unsigned long nr)
{
	unsigned long pfn;

	lockdep_assert_held(&cohort_pcpa_mutex);
	for (pfn = start; pfn < start + nr; pfn += COHORT_CHUNK)
		cohort_fixed_enter(&cohort_area.room, pfn);
	cohort_frames_free(start, nr);
	cohort_fixed_drain(cohort_area.room.zone);
}

static int cohort_chunks_make(unsigned long start, unsigned long nr)
{
	int err = cohort_fixed_make(start, start + nr, offsetof(struct cohort_chunk, blk));

	if (err)
		cohort_frames_free(start, nr);
	return err;
}

/* New frames next to those there are; the area may begin elsewhere then, if it @moves. */
static int cohort_area_extend(unsigned long nr, bool moves)
{
	struct zone *zone = cohort_area.zone;
	unsigned long more = nr - cohort_area.nr, base = cohort_area.base, got;

	got = cohort_frames_find(zone_to_nid(zone), more, base + cohort_area.nr,
				 cohort_pcpa_below);
	if (!got && moves && base > more) {
		got = cohort_frames_find(zone_to_nid(zone), more, base - more,
					 cohort_pcpa_below);
		base = got ? got : base;
	}
	if (!got)
		return -EBUSY;
	if (page_zone(pfn_to_page(got)) != zone) {
		cohort_frames_free(got, more);
		return -EBUSY;
	}
	if (cohort_chunks_make(got, more))
		return -ENOMEM;
	mutex_lock(&cohort_pcpa_mutex);
	cohort_area_reach(base, nr, zone);
	cohort_area_enter(got, more);
	mutex_unlock(&cohort_pcpa_mutex);
	return 0;
}

static int cohort_area_new(unsigned long nr, unsigned long base)
{
	struct zone *zone;

	base = cohort_frames_find(cohort_pcpa_node, nr, base, cohort_pcpa_below);
	if (!base)
		return -ENOMEM;
	if (cohort_keeper_on(&cohort_pcpa_keeper)) {
		cohort_frames_free(base, nr);
		return -ENOMEM;
	}
	zone = page_zone(pfn_to_page(base));
	if (cohort_chunks_make(base, nr)) {
		cohort_keeper_off(zone);
		return -ENOMEM;
	}
	mutex_lock(&cohort_pcpa_mutex);
	cohort_area_off();
	memset(&cohort_area.room, 0, sizeof(cohort_area.room));
	cohort_room_init(&cohort_area.room, &cohort_kept, zone);
	static_branch_enable(&cohort_pcpa_key);
	cohort_area_reach(base, nr, zone);
	cohort_area_enter(base, nr);
	static_branch_enable(&cohort_pcpa_take_key);
	mutex_unlock(&cohort_pcpa_mutex);
	return 0;
}

/* Less than there was, or nothing. */
static void cohort_area_less(unsigned long nr)
{
	mutex_lock(&cohort_pcpa_mutex);
	if (nr)
		cohort_area_shrink(nr);
	else
		cohort_area_off();
	mutex_unlock(&cohort_pcpa_mutex);
}

/**
 * cohort_pcpa_memory_for() - does enough stay available if so much is set aside?
 * @more: pages
 *
 * Free pages of the area are available already, but not for this.
 */
bool cohort_pcpa_memory_for(unsigned long more)
{
	return si_mem_available() > (long)(more + READ_ONCE(cohort_area.room.nr_free) +
					   (totalram_pages() >> SPARE_SHIFT));
}

static int cohort_area_grow(unsigned long nr, unsigned long base)
{
	unsigned long had = cohort_area.nr;
	int err = -EBUSY;

	if (!cohort_pcpa_memory_for(nr - had))
		return -ENOMEM;
	if (had)
		err = cohort_area_extend(nr, !base);
	if (err == -EBUSY && (!had || cohort_pcpa_memory_for(nr)))
		err = cohort_area_new(nr, base);
	return err == -EBUSY ? -ENOMEM : err;
}

/**
 * cohort_size_check() - may so much memory be set aside there?
 * @size: bytes
 * @base: its address, COHORT_ANY_BASE for any
 * @what: what it is for, in the message
 *
 * Return: 0, or -EINVAL and a message.
 */
int cohort_size_check(u64 size, u64 base, const char *what)
{
	u64 memory = PFN_PHYS((u64)totalram_pages()), align = PFN_PHYS((u64)cohort_area_align());
	const char *why = cohort_pcpa_refuse(size, base, align, memory);

	if (!why)
		return 0;
	pr_err("%lluM%s: %s (memory %lluM, multiples of %lluM)\n", size >> 20, what, why,
	       memory >> 20, align >> 20);
	return -EINVAL;
}

/**
 * cohort_size_tell() - a message of what became of a size
 * @size: bytes
 * @what: what it is for
 * @why: what stood in the way, NULL if nothing did
 */
void cohort_size_tell(u64 size, const char *what, const char *why)
{
	if (why)
		pr_err("%lluM%s: %s; it stays as it was\n", size >> 20, what, why);
	else
		pr_info("%lluM%s\n", size >> 20, what);
}

/**
 * cohort_pcpa_resize() - make, change or give back the area
 * @size: bytes; 0 gives it back
 * @base: its address, COHORT_ANY_BASE for any
 *
 * Context: sleeps.
 * Return: 0, -EINVAL for a size or base that cannot be, -ENOMEM, -EINTR; nothing has
 * changed then.
 */
int cohort_pcpa_resize(u64 size, u64 base)
{
	unsigned long nr = size >> PAGE_SHIFT, pfn, had;
	int err = cohort_size_check(size, base, "");

	err = err ?: mutex_lock_killable(&cohort_size_mutex);
	if (err)
		return err;
	had = cohort_area.nr;
	pfn = base == COHORT_ANY_BASE ? 0 : PHYS_PFN(base);
	if (had && pfn && pfn != cohort_area.base)
		err = -EINVAL;
	else if (nr < had)
		cohort_area_less(nr);
	else if (nr > had)
		err = cohort_reclaim_init() ?: cohort_trail_resize(nr) ?:
		      cohort_area_grow(nr, pfn);
	if (nr)
		cohort_pcpa_tidy_soon();
	cohort_size_tell(size, "", !err ? NULL : err == -EINVAL ? "the area has another base" :
			 "no such piece of memory can be emptied");
	mutex_unlock(&cohort_size_mutex);
	return err;
}
