// SPDX-License-Identifier: GPL-2.0
/*
 * Emptying the page-cache-preferred area.
 *
 * Quick reclaim is algorithm 2 of the paper: two scanners, one from each end,
 * until they meet; but they look at no page that the maps say is free or a
 * client's, and stop as soon as the request can be met.  Dropped pages go in
 * batches (drop.c).
 *
 * Mapped pages wait for a second round, and pages that several processes have
 * mapped for a third: those are many at once before the other CPUs are told to
 * forget them, as telling them takes as long as dropping hundreds of pages.  What it takes
 * to unmap one is up to the users that map its file, so that has an end.
 *
 * Pages that cannot be dropped are moved: for a contiguous piece at once
 * (contig.c), else by tidying (tidy.c).  Those of a memory cgroup that memory.min
 * protects are not dropped for a client, which gets others elsewhere.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/bitmap.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/psi.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>
#include <trace/events/cohort.h>

#include "../../internal.h"
#include "../cohort.h"
#include "pcpa.h"

/* A smaller request is not worth waking the other scanner. */
#define HELP_FROM	1024UL

/* A scan of everything that found too little is not repeated at once. */
#define BARREN		(HZ / 50)

/* A request unmaps pages for so long, and again as long for each chunk's worth that went. */
#define UNMAP_TIME	(HZ / 10)
/* But no longer than this, however many pages go one by one. */
#define UNMAP_LONGEST	HZ

atomic_long_t cohort_quick_ns;

static struct workqueue_struct *reclaim_wq;
static unsigned long barren;		/* jiffies */
static unsigned int barren_order;	/* pieces of smaller ones may be there all the same */

/**
 * struct job - one quick reclaim
 * @walk: where the two scanners are
 * @lock: protects @walk
 * @base: first frame of the area
 * @want: pages the request needs, in blocks of @order
 * @order: what it can use
 * @spare: pages that memory.min protects stay
 * @room: pages it has got, in such blocks
 * @dropped: pages of the cache that went
 * @unmapped: of those, pages that were mapped
 * @paid: as many of them when @end was put off
 * @end: jiffies, when no more are unmapped
 * @last: jiffies, until which that may be put off
 * @help: the scanner from above
 */
struct job {
	struct cohort_walk walk;
	spinlock_t lock;
	unsigned long base;
	unsigned long want;
	unsigned int order;
	bool spare;
	atomic_long_t room;
	atomic_long_t dropped;
	unsigned long unmapped;
	unsigned long paid;
	unsigned long end;
	unsigned long last;
	struct work_struct help;
};

/*
 * Pages of a block of the job's order in which one cannot go give no room, so all of them stay.
 * Of a block above the order of a chunk that is looked at by the chunk.
 */
static void cohort_chunk_sift(const struct job *job, unsigned long c,
			      const struct cohort_look *look, unsigned long *cached)
{
	unsigned long nr = min(1UL << job->order, (unsigned long)COHORT_CHUNK), at, i;

	for (at = 0; job->order && at < COHORT_CHUNK; at += nr) {
		for (i = at; i < at + nr; i++) {
			struct page *page = pfn_to_page(job->base + c * COHORT_CHUNK + i);

			if (!test_bit(i, look->free) &&
			    (!test_bit(i, cached) || cohort_page_stuck(page)))
				break;
		}
		if (i < at + nr)
			bitmap_clear(cached, at, nr);
	}
}

/* Pages of a chunk that may be the page cache's, a bit each; false if there are none. */
static bool cohort_chunk_cached(const struct job *job, unsigned long c, unsigned long *cached)
{
	struct cohort_look look;

	if (!cohort_chunk_look(job->base + c * COHORT_CHUNK, &look))
		return false;
	bitmap_complement(cached, look.free, COHORT_CHUNK);
	if (!bitmap_andnot(cached, cached, look.client, COHORT_CHUNK) ||
	    !bitmap_andnot(cached, cached, look.lent, COHORT_CHUNK) ||
	    !bitmap_andnot(cached, cached, look.given, COHORT_CHUNK))
		return false;
	cohort_chunk_sift(job, c, &look, cached);
	return !bitmap_empty(cached, COHORT_CHUNK);
}

/* A piece above the order of a chunk is of several: what one has by itself is no room for it. */
static unsigned long cohort_job_room(const struct job *job, unsigned long c)
{
	unsigned long pfn = job->base + c * COHORT_CHUNK, nr = 1UL << job->order, at;

	if (nr <= COHORT_CHUNK)
		return cohort_chunk_room(pfn, job->order);
	pfn = ALIGN_DOWN(pfn, nr);
	for (at = pfn; at < pfn + nr; at += COHORT_CHUNK)
		if (cohort_chunk_room(at, COHORT_CHUNK_ORDER) < COHORT_CHUNK)
			return 0;
	return nr;
}

/* A batch goes at once, or joins those that are to go. Return: how many. */
static unsigned int cohort_batch_out(struct cohort_batch *batch, struct list_head *list)
{
	return list ? cohort_batch_list(batch, list) : cohort_batch_drop(batch);
}

/* For one that waits, or will come; not for a contiguous piece, which wants all that there is. */
static bool cohort_job_for_client(const struct job *job)
{
	return job->want != ULONG_MAX;
}

/* Free pages stay with clients, although none was given any for as long as the timer waits. */
static void cohort_job_at_it(const struct job *job)
{
	if (!cohort_job_for_client(job))
		return;
	cohort_pcpa_want(0);
	cohort_pcpa_got(0);
}

/* The same with the pages of a chunk that the round takes. */
static unsigned int cohort_chunk_take(struct job *job, unsigned long c, const unsigned long *cached,
				      enum cohort_round round, struct list_head *list)
{
	struct cohort_batch batch = { .nr = 0, .spare = job->spare };
	unsigned int nr = 0;
	unsigned long i;

	for_each_set_bit(i, cached, COHORT_CHUNK) {
		cohort_batch_add(&batch, pfn_to_page(job->base + c * COHORT_CHUNK + i), round);
		if (batch.nr < COHORT_BATCH)
			continue;
		nr += cohort_batch_out(&batch, list);
		cohort_job_at_it(job);
	}
	nr += cohort_batch_out(&batch, list);
	cohort_job_at_it(job);
	return nr;
}

static void cohort_chunk_drop(struct job *job, unsigned long c)
{
	unsigned long before = cohort_job_room(job, c), after;
	DECLARE_BITMAP(cached, COHORT_CHUNK);

	if (!cohort_chunk_cached(job, c, cached))
		return;
	atomic_long_add(cohort_chunk_take(job, c, cached, COHORT_ROUND_UNMAPPED, NULL),
			&job->dropped);
	after = cohort_job_room(job, c);
	if (after > before)
		atomic_long_add(after - before, &job->room);
}

static unsigned int cohort_chunk_list(struct job *job, unsigned long c, enum cohort_round round,
				      struct list_head *list)
{
	DECLARE_BITMAP(cached, COHORT_CHUNK);

	return cohort_chunk_cached(job, c, cached) ?
	       cohort_chunk_take(job, c, cached, round, list) : 0;
}

static bool cohort_chunk_next(struct job *job, bool down, unsigned long *c)
{
	bool more;

	if (atomic_long_read(&job->room) >= job->want)
		return false;
	spin_lock(&job->lock);
	/* For both scanners: the other one's task is not killed. */
	if (fatal_signal_pending(current))
		job->walk.hi = job->walk.lo;
	more = cohort_walk_next(&job->walk, down, c);
	spin_unlock(&job->lock);
	return more;
}

static void cohort_quick_scan(struct job *job, bool down)
{
	unsigned int noreclaim = memalloc_noreclaim_save();
	unsigned long c;

	lru_add_drain();
	while (cohort_chunk_next(job, down, &c)) {
		cohort_chunk_drop(job, c);
		cond_resched();
	}
	memalloc_noreclaim_restore(noreclaim);
}

static void cohort_quick_help_work(struct work_struct *work)
{
	cohort_quick_scan(container_of(work, struct job, help), true);
}

static void cohort_quick_run(struct job *job)
{
	unsigned long room = atomic_long_read(&job->room);
	bool help = reclaim_wq && job->want > room && job->want - room >= HELP_FROM &&
		    num_online_cpus() > 1;

	spin_lock_init(&job->lock);
	if (help) {
		INIT_WORK_ONSTACK(&job->help, cohort_quick_help_work);
		queue_work(reclaim_wq, &job->help);
	}
	cohort_quick_scan(job, false);
	if (help) {
		cancel_work_sync(&job->help);
		destroy_work_on_stack(&job->help);
	}
}

/* Free room that the area has already, and the length of the walk. */
static bool cohort_quick_begin(struct job *job)
{
	unsigned long c, room = 0, step = max(1UL, (1UL << job->order) / COHORT_CHUNK);

	job->base = READ_ONCE(cohort_area.base);
	job->walk.lo = 0;
	job->walk.hi = READ_ONCE(cohort_area.nr) / COHORT_CHUNK;
	for (c = 0; c < job->walk.hi && room < job->want; c += step) {
		room += cohort_job_room(job, c);
		cond_resched();
	}
	atomic_long_set(&job->room, room);
	return job->walk.hi;
}

static bool cohort_job_over(const struct job *job)
{
	return time_after(jiffies, job->end) || fatal_signal_pending(current);
}

static unsigned long cohort_earlier(unsigned long a, unsigned long b)
{
	return time_before(a, b) ? a : b;
}

/* As much of the list as there is time for. */
static void cohort_job_drop(struct job *job, struct list_head *list)
{
	while (!list_empty(list) && !cohort_job_over(job)) {
		unsigned int nr = cohort_list_drop(list);

		job->unmapped += nr;
		atomic_long_add(nr, &job->dropped);
		if (cohort_job_for_client(job) && job->unmapped - job->paid >= COHORT_CHUNK) {
			job->paid = job->unmapped;
			job->end = cohort_earlier(jiffies + UNMAP_TIME, job->last);
		}
		cohort_job_at_it(job);
		cond_resched();
	}
}

/*
 * Mapped pages between two chunks, until the request is met as far as the list
 * tells: a page of it may miss a neighbour, and then it goes on.  Those on the list are
 * not locked: another task may have its turn.
 */
static void cohort_quick_unmap(struct job *job, unsigned long lo, unsigned long hi,
			       enum cohort_round round)
{
	unsigned int noreclaim = memalloc_noreclaim_save(), nr = 0;
	LIST_HEAD(list);

	for (; lo < hi && atomic_long_read(&job->room) < job->want && !cohort_job_over(job); lo++) {
		bool last;

		nr += cohort_chunk_list(job, lo, round, &list);
		last = lo + 1 == hi || atomic_long_read(&job->room) + nr >= job->want;
		if (cohort_flush_due(nr, last)) {
			cohort_job_drop(job, &list);
			nr = 0;
			if (cohort_job_for_client(job))
				cohort_quick_begin(job);
		}
		cond_resched();
	}
	cohort_list_back(&list);
	memalloc_noreclaim_restore(noreclaim);
}

/**
 * cohort_area_drop() - drop whatever is clean between two pages of the area
 * @start: first frame
 * @end: one past the last; others of the same chunks go, too
 * @deadline: jiffies, when no more mapped pages go
 * @spare: not pages of memory cgroups that memory.min protects
 *
 * Context: where GFP_KERNEL may reclaim.
 */
void cohort_area_drop(unsigned long start, unsigned long end, unsigned long deadline, bool spare)
{
	unsigned long chunks = DIV_ROUND_UP(end, COHORT_CHUNK) - start / COHORT_CHUNK;
	struct job job = {
		.base = ALIGN_DOWN(start, COHORT_CHUNK), .want = ULONG_MAX,
		.walk = { .hi = chunks }, .end = deadline,
		.spare = spare && cohort_protect(false),
	};
	unsigned long stall;

	psi_memstall_enter(&stall);
	fs_reclaim_acquire(GFP_KERNEL);
	cohort_quick_run(&job);
	cohort_quick_unmap(&job, 0, chunks, COHORT_ROUND_SHARED);
	fs_reclaim_release(GFP_KERNEL);
	psi_memstall_leave(&stall);
	count_vm_events(COHORT_PCPA_RECLAIMED, atomic_long_read(&job.dropped));
}

/* All rounds.  What is done in advance stalls no task. */
static void cohort_quick_rounds(struct job *job, bool waited)
{
	unsigned long chunks = job->walk.hi, stall;

	if (waited)
		psi_memstall_enter(&stall);
	fs_reclaim_acquire(GFP_KERNEL);
	job->spare = cohort_protect(false);
	cohort_quick_run(job);
	job->end = jiffies + UNMAP_TIME;
	job->last = jiffies + UNMAP_LONGEST;
	cohort_quick_unmap(job, 0, chunks, COHORT_ROUND_ONE);
	cohort_quick_unmap(job, 0, chunks, COHORT_ROUND_SHARED);
	fs_reclaim_release(GFP_KERNEL);
	if (waited)
		psi_memstall_leave(&stall);
}

static bool cohort_barren(unsigned int order)
{
	return order >= READ_ONCE(barren_order) && time_before(jiffies, READ_ONCE(barren));
}

static unsigned long cohort_make_room(unsigned long want, unsigned int order, bool waited)
{
	struct job job = {
		.want = want, .order = order,
	};
	struct zone *zone = READ_ONCE(cohort_area.zone);
	unsigned long room;
	u64 start = ktime_get_ns();

	/* Pages at hand are a part of larger pieces. */
	if (zone)
		cohort_fixed_drain(zone);
	if (!cohort_quick_begin(&job))
		return 0;
	room = atomic_long_read(&job.room);
	if (room >= want || (waited && cohort_barren(order)))
		return room;
	cohort_quick_rounds(&job, waited);
	room = atomic_long_read(&job.room);
	/* One that was killed has not looked at all of it. */
	if (room < want && waited && !fatal_signal_pending(current)) {
		WRITE_ONCE(barren_order, order);
		WRITE_ONCE(barren, jiffies + BARREN);
	}
	count_vm_event(COHORT_PCPA_QUICK);
	count_vm_events(COHORT_PCPA_RECLAIMED, atomic_long_read(&job.dropped));
	start = ktime_get_ns() - start;
	atomic_long_add(start, &cohort_quick_ns);
	trace_cohort_quick_reclaim(want, order, room, atomic_long_read(&job.dropped),
				   job.unmapped, start);
	return room;
}

/**
 * cohort_quick_reclaim() - make room for a client
 * @want: pages, in blocks of
 * @order: this order, or larger ones
 *
 * Drops clean page cache: unmapped pages first, pages that many processes map last.  Mapped
 * ones go for a tenth of a second, and as long again whenever that brought COHORT_CHUNK pages,
 * up to a second.  Pages that could not become part of such a block stay.
 *
 * Context: where GFP_KERNEL may reclaim.
 * Return: pages that are free in such blocks, @want or more if it could be met.
 */
unsigned long cohort_quick_reclaim(unsigned long want, unsigned int order)
{
	return cohort_make_room(want, order, true);
}

/* in advance */

/**
 * struct announced - what clients are about to ask for
 * @lock: for the rest
 * @pages: less what clients have been given since
 * @nr: announcements so far
 * @made: of these, the ones that room was made for
 * @until: jiffies; if there are no others, they were in vain from then on
 */
static struct announced {
	spinlock_t lock;
	unsigned long pages;
	unsigned long nr, made;
	unsigned long until;
} announced = { .lock = __SPIN_LOCK_UNLOCKED(announced.lock) };

/* Under the lock: room was made, or a client took some of it. */
static void cohort_pcpa_announced_hold(void)
{
	announced.until = jiffies + msecs_to_jiffies(READ_ONCE(cohort_pcpa_timer_ms));
}

static void cohort_pcpa_announced_work(struct work_struct *work)
{
	unsigned long want, nr;

	spin_lock_irq(&announced.lock);
	want = announced.pages;
	nr = announced.nr;
	spin_unlock_irq(&announced.lock);
	if (want && cohort_pcpa_taking()) {
		cohort_make_room(want, READ_ONCE(cohort_pcpa_min_order), false);
		/* The timer runs from here: what was dropped is not to be read in again. */
		cohort_pcpa_want(0);
		cohort_pcpa_got(0);
	}
	spin_lock_irq(&announced.lock);
	announced.made = nr;
	cohort_pcpa_announced_hold();
	spin_unlock_irq(&announced.lock);
}
static DECLARE_WORK(announced_item, cohort_pcpa_announced_work);

/* Under the lock: room was made for all of them, and no client came in time. */
static bool cohort_pcpa_announced_vain(void)
{
	return announced.made == announced.nr && time_after(jiffies, announced.until);
}

/* What is announced holds until room was made for it; all together are no more than the area. */
static void cohort_pcpa_announced_add(unsigned long pages)
{
	unsigned long flags;

	spin_lock_irqsave(&announced.lock, flags);
	if (cohort_pcpa_announced_vain())
		announced.pages = 0;
	announced.pages = min(announced.pages + pages, READ_ONCE(cohort_area.nr));
	announced.nr++;
	spin_unlock_irqrestore(&announced.lock, flags);
}

/**
 * cohort_pcpa_announced_pages() - what clients have announced and were not given yet
 */
unsigned long cohort_pcpa_announced_pages(void)
{
	unsigned long flags, pages;

	spin_lock_irqsave(&announced.lock, flags);
	pages = cohort_pcpa_announced_vain() ? 0 : announced.pages;
	spin_unlock_irqrestore(&announced.lock, flags);
	return pages;
}

/**
 * cohort_pcpa_announced_met() - clients were given pages
 * @pages: how many
 *
 * Context: any.
 */
void cohort_pcpa_announced_met(unsigned long pages)
{
	unsigned long flags;

	if (!pages || !READ_ONCE(announced.pages))
		return;
	spin_lock_irqsave(&announced.lock, flags);
	announced.pages -= min(announced.pages, pages);
	cohort_pcpa_announced_hold();
	spin_unlock_irqrestore(&announced.lock, flags);
}

/**
 * cohort_pcpa_announce() - a client is about to ask for pages
 * @pages: how many, all its requests together; what others have announced comes on top
 *
 * Room is made asynchronously while the client still waits for storage and
 * for others.  If it does not come the page cache is back after the timer.
 *
 * Context: any.
 */
void cohort_pcpa_announce(unsigned long pages)
{
	cohort_pcpa_want(0);
	cohort_pcpa_got(0);
	cohort_pcpa_announced_add(pages);
	queue_work(system_unbound_wq, &announced_item);
}

/**
 * cohort_reclaim_init() - what quick reclaim needs, once there is an area
 *
 * Context: caller holds cohort_size_mutex.
 * Return: 0 or -ENOMEM.
 */
int cohort_reclaim_init(void)
{
	if (!reclaim_wq)
		reclaim_wq = alloc_workqueue("cohort_pcpa",
					     WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 1);
	return reclaim_wq ? 0 : -ENOMEM;
}
