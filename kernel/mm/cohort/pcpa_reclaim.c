// SPDX-License-Identifier: GPL-2.0
/*
 * Emptying the page-cache-preferred area.
 *
 * Quick reclaim is algorithm 2 of the paper: two scanners, one from each end,
 * until they meet; but they look at no page that the maps say is free or a
 * client's, and stop as soon as the request can be met.  What they drop goes in
 * batches (pcpa_drop.c).
 *
 * What is mapped waits for a second round, and what several processes have
 * mapped for a third: those are many at once before the other CPUs are told to
 * forget them, as telling them takes as long as dropping hundreds of pages.
 *
 * What cannot be dropped is moved: for a contiguous piece at once
 * (pcpa_contig.c), else in the background (pcpa_tidy.c).
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>
#include <trace/events/cohort.h>

#include "../internal.h"
#include "cohort.h"
#include "pcpa.h"

/* Mapped folios dropped together, all locked meanwhile: one TLB flush. */
#define FLUSH_BATCH	512U

/* A smaller request is not worth waking the other scanner. */
#define HELP_FROM	1024UL

/* A scan of everything that found too little is not repeated at once. */
#define BARREN		(HZ / 50)

atomic_long_t cohort_quick_ns;

static struct workqueue_struct *reclaim_wq;
static unsigned long barren;		/* jiffies */

/**
 * struct job - one quick reclaim
 * @walk: where the two scanners are
 * @lock: protects @walk
 * @base: first frame of the area
 * @want: pages the request needs, in blocks of @order
 * @order: what it can use
 * @room: pages it has got, in such blocks
 * @dropped: pages of the cache that went
 * @unmapped: of those, pages that were mapped
 * @help: the scanner from above
 */
struct job {
	struct cohort_walk walk;
	spinlock_t lock;
	unsigned long base;
	unsigned long want;
	unsigned int order;
	atomic_long_t room;
	atomic_long_t dropped;
	unsigned long unmapped;
	struct work_struct help;
};

/* Pages of a chunk that may be the page cache's, a bit each; false if there are none. */
static bool chunk_look(const struct job *job, unsigned long c, unsigned long *cached,
		       unsigned long *room)
{
	unsigned long flags, i, any = 0, w = c * BITS_TO_LONGS(COHORT_CHUNK);
	struct cohort_area *area = cohort_area_lock(&flags);

	*room = 0;
	if (!area)
		return false;
	if (area->base == job->base && (c + 1) * COHORT_CHUNK <= area->nr) {
		for (i = 0; i < BITS_TO_LONGS(COHORT_CHUNK); i++, w++)
			any |= cached[i] = area->own[w] & ~area->map.bits[w] &
					   ~area->client[w] & ~area->lent[w];
		*room = cohort_area_map_room(&area->map, c, job->order);
	}
	cohort_area_unlock(area, flags);
	return any;
}

/* A batch goes at once, or joins those that are to go. Return: how many. */
static unsigned int batch_out(struct cohort_batch *batch, struct list_head *list)
{
	return list ? cohort_batch_list(batch, list) : cohort_batch_drop(batch);
}

/* The same with the pages of a chunk that the round takes. */
static unsigned int chunk_take(struct job *job, unsigned long c, const unsigned long *cached,
			       enum cohort_round round, struct list_head *list)
{
	struct cohort_batch batch = { .nr = 0 };
	unsigned int nr = 0;
	unsigned long i;

	for_each_set_bit(i, cached, COHORT_CHUNK) {
		cohort_batch_add(&batch, pfn_to_page(job->base + c * COHORT_CHUNK + i), round);
		if (batch.nr == COHORT_BATCH)
			nr += batch_out(&batch, list);
	}
	return nr + batch_out(&batch, list);
}

static void chunk_drop(struct job *job, unsigned long c)
{
	unsigned long cached[BITS_TO_LONGS(COHORT_CHUNK)] = {}, before, after;

	if (!chunk_look(job, c, cached, &before))
		return;
	atomic_long_add(chunk_take(job, c, cached, COHORT_ROUND_UNMAPPED, NULL),
			&job->dropped);
	chunk_look(job, c, cached, &after);
	if (after > before)
		atomic_long_add(after - before, &job->room);
}

static unsigned int chunk_list(struct job *job, unsigned long c, enum cohort_round round,
			       struct list_head *list)
{
	unsigned long cached[BITS_TO_LONGS(COHORT_CHUNK)] = {}, room;

	return chunk_look(job, c, cached, &room) ?
	       chunk_take(job, c, cached, round, list) : 0;
}

static bool next_chunk(struct job *job, bool down, unsigned long *c)
{
	bool more;

	if (atomic_long_read(&job->room) >= job->want)
		return false;
	spin_lock(&job->lock);
	more = cohort_walk_next(&job->walk, down, c);
	spin_unlock(&job->lock);
	return more;
}

static void scan(struct job *job, bool down)
{
	unsigned int noreclaim = memalloc_noreclaim_save();
	unsigned long c;

	lru_add_drain();
	while (next_chunk(job, down, &c)) {
		chunk_drop(job, c);
		cond_resched();
	}
	memalloc_noreclaim_restore(noreclaim);
}

static void help_work(struct work_struct *work)
{
	scan(container_of(work, struct job, help), true);
}

static void job_run(struct job *job)
{
	unsigned long room = atomic_long_read(&job->room);
	bool help = job->want > room && job->want - room >= HELP_FROM &&
		    num_online_cpus() > 1;

	spin_lock_init(&job->lock);
	if (help) {
		INIT_WORK_ONSTACK(&job->help, help_work);
		queue_work(reclaim_wq, &job->help);
	}
	scan(job, false);
	if (help) {
		cancel_work_sync(&job->help);
		destroy_work_on_stack(&job->help);
	}
}

/* What the area has already, and how far it reaches. */
static bool job_begin(struct job *job)
{
	unsigned long flags, c, room = 0;
	struct cohort_area *area = cohort_area_lock(&flags);

	if (!area)
		return false;
	job->base = area->base;
	job->walk.lo = 0;
	job->walk.hi = area->nr / COHORT_CHUNK;
	for (c = 0; c < job->walk.hi && room < job->want; c++)
		room += cohort_area_map_room(&area->map, c, job->order);
	atomic_long_set(&job->room, room);
	cohort_area_unlock(area, flags);
	return true;
}

/*
 * Mapped pages between two chunks, until the request is met as far as the list
 * tells: a page of it may miss a neighbour, and then it goes on.
 */
static void job_unmap(struct job *job, unsigned long lo, unsigned long hi, enum cohort_round round)
{
	unsigned int noreclaim = memalloc_noreclaim_save(), nr = 0;
	LIST_HEAD(list);

	for (; lo < hi && atomic_long_read(&job->room) < job->want; lo++) {
		nr += chunk_list(job, lo, round, &list);
		if (nr && (nr >= FLUSH_BATCH || lo + 1 == hi ||
			   atomic_long_read(&job->room) + nr >= job->want)) {
			nr = cohort_list_drop(&list);
			job->unmapped += nr;
			atomic_long_add(nr, &job->dropped);
			nr = 0;
			if (job->want != ULONG_MAX)
				job_begin(job);
		}
		cond_resched();
	}
	memalloc_noreclaim_restore(noreclaim);
}

/**
 * cohort_area_drop() - drop whatever is clean between two pages of the area
 * @base: first frame of the area
 * @start: first page
 * @end: one past the last; others of the same chunks go, too
 *
 * Context: where GFP_KERNEL may reclaim.
 */
void cohort_area_drop(unsigned long base, unsigned long start, unsigned long end)
{
	struct job job = {
		.base = base, .want = ULONG_MAX,
		.walk = {
			.lo = start / COHORT_CHUNK, .hi = DIV_ROUND_UP(end, COHORT_CHUNK),
		},
	};

	fs_reclaim_acquire(GFP_KERNEL);
	job_run(&job);
	job_unmap(&job, start / COHORT_CHUNK, DIV_ROUND_UP(end, COHORT_CHUNK), COHORT_ROUND_SHARED);
	fs_reclaim_release(GFP_KERNEL);
	count_vm_events(COHORT_PCPA_RECLAIMED, atomic_long_read(&job.dropped));
}

/**
 * cohort_quick_reclaim() - make room for a client
 * @want: pages, in blocks of
 * @order: this order, or larger ones
 *
 * Drops clean page cache: first what nobody has mapped, at last what many have.
 *
 * Context: where GFP_KERNEL may reclaim.
 * Return: pages that are free in such blocks, @want or more if it could be met.
 */
unsigned long cohort_quick_reclaim(unsigned long want, unsigned int order)
{
	struct job job = {
		.want = want, .order = min(order, COHORT_CHUNK_ORDER),
	};
	unsigned long room, chunks;
	u64 start = ktime_get_ns();

	if (!job_begin(&job))
		return 0;
	room = atomic_long_read(&job.room);
	if (room >= want || time_before(jiffies, READ_ONCE(barren)))
		return room;
	chunks = job.walk.hi;
	fs_reclaim_acquire(GFP_KERNEL);
	job_run(&job);
	job_unmap(&job, 0, chunks, COHORT_ROUND_ONE);
	job_unmap(&job, 0, chunks, COHORT_ROUND_SHARED);
	fs_reclaim_release(GFP_KERNEL);
	room = atomic_long_read(&job.room);
	if (room < want)
		WRITE_ONCE(barren, jiffies + BARREN);
	count_vm_event(COHORT_PCPA_QUICK);
	count_vm_events(COHORT_PCPA_RECLAIMED, atomic_long_read(&job.dropped));
	start = ktime_get_ns() - start;
	atomic_long_add(start, &cohort_quick_ns);
	trace_cohort_quick_reclaim(want, order, room, atomic_long_read(&job.dropped),
				   job.unmapped, start);
	return room;
}

/* in advance */

static atomic_long_t announced;

static void announced_work(struct work_struct *work)
{
	unsigned long want = atomic_long_xchg(&announced, 0);

	if (want && cohort_pcpa_taking())
		cohort_quick_reclaim(want, READ_ONCE(cohort_pcpa_min_order));
}
static DECLARE_WORK(announced_item, announced_work);

/**
 * cohort_pcpa_announce() - a client is about to ask for pages
 * @pages: how many, all its requests together
 *
 * Room is made in the background while the client still waits for storage and
 * for others.  If it does not come the page cache is back after the timer.
 *
 * Context: any.
 */
void cohort_pcpa_announce(unsigned long pages)
{
	cohort_pcpa_want();
	atomic_long_set(&announced, pages);
	queue_work(system_unbound_wq, &announced_item);
}

int __init cohort_reclaim_init(void)
{
	reclaim_wq = alloc_workqueue("cohort_pcpa", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 1);
	return reclaim_wq ? 0 : -ENOMEM;
}
