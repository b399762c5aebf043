// SPDX-License-Identifier: GPL-2.0
/*
 * Emptying the page-cache-preferred area.
 *
 * Quick reclaim is algorithm 2 of the paper: two scanners, one from each end,
 * until they meet; but they look at no page that the maps say is free or a
 * client's, and stop as soon as the request can be met.  What they drop goes in
 * batches: off the LRU under one hold of its lock, out of the page cache under
 * one hold of each file's, and straight back to the area.
 *
 * What cannot be dropped is moved: for a contiguous piece at once and within a
 * bounded time, else by the tidying that runs in the background.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/dax.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>
#include <trace/events/cohort.h>

#include "../internal.h"
#include "cohort.h"
#include "pcpa.h"

/* Folios dropped together: one TLB flush, one hold of the LRU's lock. */
#define BATCH		64U

/* A smaller request is not worth waking the other scanner. */
#define HELP_FROM	1024UL

/* A scan of everything that found too little is not repeated at once. */
#define BARREN		(HZ / 50)

/* Tidying: pages looked at and moved in a turn, and the pause between turns. */
#define TIDY_LOOK	8192UL
#define TIDY_MOVE	128U
#define TIDY_PAUSE	(HZ / 4)

/* Pulling: pages looked at in a turn, and the part of the area that is left free. */
#define PULL_LOOK	4096UL
#define PULL_KEEP_SHIFT	4

/* Pauses between tries for a page that is busy, while there is time. */
#define RETRY_US	2000

DEFINE_STATIC_KEY_FALSE(cohort_trail_key);

atomic_long_t cohort_busy_count[COHORT_NR_BUSY];
atomic_long_t cohort_quick_ns;
atomic_long_t cohort_contig_ns_max;
const char *const cohort_busy_names[COHORT_NR_BUSY] = {
	"none", "pinned", "writeback", "dirty", "locked", "unevictable", "private", "shared",
	"anon", "off_lru", "referenced",
};

static struct workqueue_struct *reclaim_wq;
static struct cohort_trail __rcu *trail;
static unsigned long barren;		/* jiffies */

/* refaults */

static u64 trail_hash(const struct address_space *mapping, pgoff_t index)
{
	return hash_64_generic((unsigned long)mapping ^ ((u64)index << 40 | index), 64);
}

/**
 * __cohort_pcpa_refault() - a page that was evicted is read again
 * @mapping: its file
 * @index: its place there
 *
 * A count of what quick reclaims cost; races lose or add a few.
 */
void __cohort_pcpa_refault(const struct address_space *mapping, pgoff_t index)
{
	struct cohort_trail *known;

	rcu_read_lock();
	known = rcu_dereference(trail);
	if (known && data_race(cohort_trail_take(known, trail_hash(mapping, index))))
		count_vm_event(COHORT_PCPA_REFAULT);
	rcu_read_unlock();
}

static void trail_add(const struct address_space *mapping, pgoff_t index)
{
	struct cohort_trail *known;

	rcu_read_lock();
	known = rcu_dereference(trail);
	if (known)
		cohort_trail_put(known, trail_hash(mapping, index));
	rcu_read_unlock();
}

/**
 * cohort_trail_resize() - remember as many pages as the area has
 * @pages: pages of it
 *
 * Never shrinks: what was dropped may still be read again.
 *
 * Context: cohort_pcpa_mutex held.
 * Return: 0 or -ENOMEM.
 */
int cohort_trail_resize(unsigned long pages)
{
	struct cohort_trail *new, *old = rcu_dereference_protected(trail,
						lockdep_is_held(&cohort_pcpa_mutex));

	if (old && pages <= old->mask + 1)
		return 0;
	new = kvzalloc(sizeof(*new) + cohort_trail_size(pages), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	cohort_trail_init(new, pages, new + 1);
	rcu_assign_pointer(trail, new);
	if (!old)
		static_branch_enable(&cohort_trail_key);
	synchronize_rcu();
	kvfree(old);
	return 0;
}

/* one batch of clean pages */

/* Folios with a reference each, locked. */
struct batch {
	struct folio *folio[BATCH];
	unsigned int nr;
};

static void batch_keep(struct folio *folio)
{
	folio_unlock(folio);
	folio_put(folio);
}

static enum cohort_busy busy_locked(struct folio *folio, bool shared)
{
	if (!folio_test_lru(folio))
		return COHORT_BUSY_OFF_LRU;
	if (!folio_mapping(folio) || folio_test_swapbacked(folio))
		return COHORT_BUSY_ANON;
	if (folio_test_writeback(folio))
		return COHORT_BUSY_WRITEBACK;
	if (folio_test_dirty(folio))
		return COHORT_BUSY_DIRTY;
	if (folio_test_unevictable(folio) || folio_test_mlocked(folio))
		return COHORT_BUSY_UNEVICTABLE;
	if (folio_maybe_dma_pinned(folio))
		return COHORT_BUSY_PINNED;
	if (!shared && folio_mapcount(folio) > 1)
		return COHORT_BUSY_SHARED;
	return COHORT_BUSY_NONE;
}

static bool batch_add(struct batch *batch, struct page *page, bool shared)
{
	unsigned long flags = READ_ONCE(page->flags);
	struct folio *folio;

	if (!(flags & BIT(PG_lru)) || flags & (BIT(PG_dirty) | BIT(PG_writeback)))
		return false;
	folio = cohort_get_single(page);
	if (!folio)
		return false;
	if (!folio_trylock(folio)) {
		folio_put(folio);
		return false;
	}
	if (busy_locked(folio, shared) || folio->mapping->a_ops->free_folio ||
	    (folio_needs_release(folio) && !filemap_release_folio(folio, GFP_KERNEL))) {
		batch_keep(folio);
		return false;
	}
	batch->folio[batch->nr++] = folio;
	return true;
}

/* The folios that stay move to the front of the others' places. */
static void batch_unmap(struct batch *batch)
{
	unsigned int i, nr = 0;
	bool flush = false;

	for (i = 0; i < batch->nr; i++) {
		struct folio *folio = batch->folio[i];

		if (folio_mapped(folio)) {
			try_to_unmap(folio, TTU_BATCH_FLUSH);
			flush = true;
		}
		if (folio_mapped(folio) || folio_test_dirty(folio))
			batch_keep(folio);
		else
			batch->folio[nr++] = folio;
	}
	batch->nr = nr;
	if (flush)
		try_to_unmap_flush();
}

static void batch_isolate(struct batch *batch)
{
	struct lruvec *lruvec = NULL;
	unsigned int i, nr = 0;
	struct folio *busy[BATCH];
	unsigned int nr_busy = 0;

	for (i = 0; i < batch->nr; i++) {
		struct folio *folio = batch->folio[i];

		if (!folio_test_clear_lru(folio)) {
			busy[nr_busy++] = folio;
			continue;
		}
		lruvec = folio_lruvec_relock_irq(folio, lruvec);
		lruvec_del_folio(lruvec, folio);
		batch->folio[nr++] = folio;
	}
	if (lruvec)
		unlock_page_lruvec_irq(lruvec);
	batch->nr = nr;
	while (nr_busy)
		batch_keep(busy[--nr_busy]);
}

static void *shadow_of(struct address_space *mapping, struct folio *folio)
{
	if (mapping_exiting(mapping) || dax_mapping(mapping))
		return NULL;
	return workingset_eviction(folio, NULL);
}

/* i_pages and i_lock held; true if the folio is out of the cache, with no reference left. */
static bool remove_one(struct address_space *mapping, struct folio *folio)
{
	/* The cache's reference and ours. */
	if (!folio_ref_freeze(folio, 2))
		return false;
	if (folio_test_dirty(folio)) {
		folio_ref_unfreeze(folio, 2);
		return false;
	}
	folio_clear_active(folio);
	trail_add(mapping, folio->index);
	__filemap_remove_folio(folio, shadow_of(mapping, folio));
	return true;
}

static void mapping_lock(struct address_space *mapping)
{
	spin_lock(&mapping->host->i_lock);
	xa_lock_irq(&mapping->i_pages);
}

static void mapping_unlock(struct address_space *mapping)
{
	xa_unlock_irq(&mapping->i_pages);
	if (mapping_shrinkable(mapping))
		inode_add_lru(mapping->host);
	spin_unlock(&mapping->host->i_lock);
}

/* Neighbours in the area were read together: mostly from one file. */
static void batch_remove(struct batch *batch)
{
	struct address_space *mapping = NULL;
	struct folio *busy[BATCH];
	unsigned int i, nr = 0, nr_busy = 0;

	for (i = 0; i < batch->nr; i++) {
		struct folio *folio = batch->folio[i];

		if (folio->mapping != mapping) {
			if (mapping)
				mapping_unlock(mapping);
			mapping = folio->mapping;
			mapping_lock(mapping);
		}
		if (remove_one(mapping, folio))
			batch->folio[nr++] = folio;
		else
			busy[nr_busy++] = folio;
	}
	if (mapping)
		mapping_unlock(mapping);
	batch->nr = nr;
	while (nr_busy) {
		struct folio *folio = busy[--nr_busy];

		folio_add_lru(folio);
		batch_keep(folio);
	}
}

static void batch_free(struct batch *batch)
{
	struct folio_batch fbatch;
	unsigned int i;

	folio_batch_init(&fbatch);
	for (i = 0; i < batch->nr; i++) {
		folio_unlock(batch->folio[i]);
		if (folio_batch_add(&fbatch, batch->folio[i]) && i + 1 < batch->nr)
			continue;
		mem_cgroup_uncharge_folios(&fbatch);
		free_unref_folios(&fbatch);
	}
}

/* Return: pages that are free now. */
static unsigned int batch_drop(struct batch *batch)
{
	unsigned int nr;

	batch_unmap(batch);
	batch_isolate(batch);
	batch_remove(batch);
	batch_free(batch);
	nr = batch->nr;
	batch->nr = 0;
	return nr;
}

/* quick reclaim */

/**
 * struct job - one quick reclaim
 * @walk: where the two scanners are
 * @lock: protects @walk
 * @base: first frame of the area
 * @want: pages the request needs, in blocks of @order
 * @order: what it can use
 * @shared: also pages that several processes have mapped
 * @room: pages it has got, in such blocks
 * @dropped: pages of the cache that went
 * @help: the scanner from above
 */
struct job {
	struct cohort_walk walk;
	spinlock_t lock;
	unsigned long base;
	unsigned long want;
	unsigned int order;
	bool shared;
	atomic_long_t room;
	atomic_long_t dropped;
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

static void chunk_drop(struct job *job, unsigned long c)
{
	unsigned long cached[BITS_TO_LONGS(COHORT_CHUNK)] = {}, before, after, i, nr = 0;
	struct batch batch = { .nr = 0 };

	if (!chunk_look(job, c, cached, &before))
		return;
	for_each_set_bit(i, cached, COHORT_CHUNK) {
		batch_add(&batch, pfn_to_page(job->base + c * COHORT_CHUNK + i), job->shared);
		if (batch.nr == BATCH)
			nr += batch_drop(&batch);
	}
	nr += batch_drop(&batch);
	chunk_look(job, c, cached, &after);
	atomic_long_add(nr, &job->dropped);
	if (after > before)
		atomic_long_add(after - before, &job->room);
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

/**
 * cohort_quick_reclaim() - make room for a client
 * @want: pages, in blocks of
 * @order: this order, or larger ones
 *
 * Drops clean page cache, first that of one process or none.
 *
 * Context: where GFP_KERNEL may reclaim.
 * Return: pages that are free in such blocks, @want or more if it could be met.
 */
unsigned long cohort_quick_reclaim(unsigned long want, unsigned int order)
{
	struct job job = {
		.want = want, .order = min(order, COHORT_CHUNK_ORDER),
	};
	unsigned long room;
	u64 start = ktime_get_ns();

	if (!job_begin(&job))
		return 0;
	room = atomic_long_read(&job.room);
	if (room >= want || time_before(jiffies, READ_ONCE(barren)))
		return room;
	fs_reclaim_acquire(GFP_KERNEL);
	job_run(&job);
	if (atomic_long_read(&job.room) < want && job_begin(&job)) {
		job.shared = true;
		job_run(&job);
	}
	fs_reclaim_release(GFP_KERNEL);
	room = atomic_long_read(&job.room);
	if (room < want)
		WRITE_ONCE(barren, jiffies + BARREN);
	count_vm_event(COHORT_PCPA_QUICK);
	count_vm_events(COHORT_PCPA_RECLAIMED, atomic_long_read(&job.dropped));
	start = ktime_get_ns() - start;
	atomic_long_add(start, &cohort_quick_ns);
	trace_cohort_quick_reclaim(want, order, room, atomic_long_read(&job.dropped), start);
	return room;
}

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

static unsigned int move_out(struct list_head *list, enum migrate_mode mode)
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

static bool isolate_page(struct page *page, struct list_head *list)
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

/* contiguous pieces */

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
		why = busy_locked(folio, true);
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

static void window_drop(struct window *w)
{
	struct job job = {
		.base = w->base, .want = ULONG_MAX, .shared = true,
		.walk = {
			.lo = w->start / COHORT_CHUNK,
			.hi = DIV_ROUND_UP(w->start + w->nr, COHORT_CHUNK),
		},
	};

	fs_reclaim_acquire(GFP_KERNEL);
	job_run(&job);
	fs_reclaim_release(GFP_KERNEL);
	count_vm_events(COHORT_PCPA_RECLAIMED, atomic_long_read(&job.dropped));
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
			nr += isolate_page(pfn_to_page(w->base + w->start + i), &list);
		any |= move_out(&list, MIGRATE_SYNC_LIGHT);
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
		if (window_empty(w) && cohort_area_unhold(true))
			return 0;
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

/* tidying, in the background */

static void tidy_work(struct work_struct *work);
static DECLARE_DEFERRABLE_WORK(tidy, tidy_work);
static unsigned long tidy_hand;

/* Free memory of which one may take some to make the area clean. */
static bool memory_to_spare(const struct zone *zone)
{
	return zone_watermark_ok((struct zone *)zone, 0,
				 high_wmark_pages(zone) + 2 * TIDY_MOVE, 0, 0);
}

/*
 * Dirty pages leave as they are found, and loans.  While clients are served,
 * what several processes share does, too: a client could not have it.
 */
static bool untidy(const struct cohort_area *area, unsigned long i, bool all)
{
	struct page *page = pfn_to_page(area->base + i);

	if (!test_bit(i, area->own) || test_bit(i, area->client) ||
	    data_race(cohort_area_map_test(&area->map, i)))
		return false;
	if (all && atomic_read(&page->_mapcount) > 0)
		return true;
	return test_bit(i, area->lent) || (PageDirty(page) && !PageWriteback(page));
}

/* A batch from where the hand is; false if the area is gone. */
static bool tidy_collect(struct list_head *list, unsigned long *look)
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
			if (untidy(area, tidy_hand, all))
				nr += isolate_page(pfn_to_page(area->base + tidy_hand), list);
			tidy_hand++;
		}
	} else {
		*look = 0;
	}
	rcu_read_unlock();
	return area;
}

static bool tidy_once(void)
{
	unsigned long look = TIDY_LOOK;
	bool there;

	do {
		LIST_HEAD(list);

		there = tidy_collect(&list, &look);
		move_out(&list, MIGRATE_ASYNC);
		cond_resched();
	} while (there && look);
	return there;
}

static void tidy_work(struct work_struct *work)
{
	if (!tidy_once())
		return;
	if (mutex_trylock(&cohort_pcpa_mutex)) {
		cohort_area_fetch();
		mutex_unlock(&cohort_pcpa_mutex);
	}
	queue_delayed_work(cohort_wq, &tidy, TIDY_PAUSE);
}

/**
 * cohort_pcpa_tidy_soon() - there is something to tidy, perhaps
 *
 * Context: any.
 */
void cohort_pcpa_tidy_soon(void)
{
	if (reclaim_wq)
		mod_delayed_work(cohort_wq, &tidy, TIDY_PAUSE / 4);
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

/* Clean pages of files; others only where those are few. */
static bool worth_pulling(struct page *page, bool scarce)
{
	unsigned long flags = READ_ONCE(page->flags);
	bool file = !(flags & BIT(PG_swapbacked));

	if (!(flags & BIT(PG_lru)) || flags & (BIT(PG_dirty) | BIT(PG_writeback) |
					       BIT(PG_unevictable) | BIT(PG_locked)))
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
			nr += isolate_page(page, list);
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
	struct cohort_pcpa_sizes sizes;
	unsigned int moved = 0;
	unsigned long outside;
	LIST_HEAD(list);

	if (cohort_pcpa_state() != COHORT_PCACHE_ONLY)
		return 0;
	cohort_pcpa_sizes(&sizes);
	if (sizes.free <= sizes.size >> PULL_KEEP_SHIFT ||
	    page_to_nid(pfn_to_page(sizes.base)) != pgdat->node_id)
		return 0;
	outside = node_page_state(pgdat, NR_ACTIVE_FILE) + node_page_state(pgdat, NR_INACTIVE_FILE);
	outside -= min(outside, sizes.cache);
	if (pull_collect(pgdat, BATCH, outside < sizes.size >> PULL_KEEP_SHIFT, &list)) {
		migrate_pages(&list, target_inside, target_free, 0, MIGRATE_ASYNC,
			      MR_COMPACTION, &moved);
		putback_movable_pages(&list);
		count_vm_events(COHORT_PCPA_PULLED, moved);
	}
	return moved;
}

int __init cohort_reclaim_init(void)
{
	reclaim_wq = alloc_workqueue("cohort_pcpa", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 1);
	return reclaim_wq ? 0 : -ENOMEM;
}
