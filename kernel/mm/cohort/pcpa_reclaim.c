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
 * What is mapped waits for a second round, and what several processes have
 * mapped for a third: those are many at once before the other CPUs are told to
 * forget them, as telling them takes as long as dropping hundreds of pages.
 *
 * What cannot be dropped is moved: for a contiguous piece at once
 * (pcpa_contig.c), else in the background (pcpa_tidy.c).
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/dax.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>
#include <trace/events/cohort.h>

#include "../internal.h"
#include "cohort.h"
#include "pcpa.h"

/* Folios dropped together: one hold of the LRU's lock. */
#define BATCH		64U

/* Mapped folios dropped together, all locked meanwhile: one TLB flush. */
#define FLUSH_BATCH	512U

/* A smaller request is not worth waking the other scanner. */
#define HELP_FROM	1024UL

/* A scan of everything that found too little is not repeated at once. */
#define BARREN		(HZ / 50)

DEFINE_STATIC_KEY_FALSE(cohort_trail_key);

atomic_long_t cohort_quick_ns;

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
	/* Two at once in one set lose or add one. */
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

/**
 * cohort_busy_why() - what keeps a page from being dropped
 * @folio: the page, referenced; what is told without its lock may be over
 * @shared: that several processes have it mapped is no reason
 */
enum cohort_busy cohort_busy_why(struct folio *folio, bool shared)
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

/* Flags of a page that can be dropped: on the LRU, and none of these. */
#define KEEP_FLAGS	(BIT(PG_dirty) | BIT(PG_writeback) | BIT(PG_swapbacked) | \
			 BIT(PG_unevictable) | BIT(PG_mlocked))

static bool looks_clean(unsigned long flags)
{
	return (flags & (BIT(PG_lru) | KEEP_FLAGS)) == BIT(PG_lru);
}

/* How often pages may be mapped that a round takes. */
enum round {
	ROUND_UNMAPPED,
	ROUND_ONE,
	ROUND_SHARED,
};

static bool maps_ok(const struct page *page, enum round round)
{
	int maps = atomic_read(&page->_mapcount) + 1;

	return maps <= (int)round || round == ROUND_SHARED;
}

/* The same under the lock, and what only holds there. */
static bool may_drop(struct folio *folio, enum round round)
{
	struct address_space *mapping = folio_mapping(folio);

	if (!mapping || !looks_clean(READ_ONCE(folio->flags)) || !maps_ok(&folio->page, round) ||
	    mapping->a_ops->free_folio)
		return false;
	return !folio_needs_release(folio) || filemap_release_folio(folio, GFP_KERNEL);
}

static void batch_add(struct batch *batch, struct page *page, enum round round)
{
	unsigned long flags = READ_ONCE(page->flags);
	struct folio *folio;

	if (!looks_clean(flags) || flags & BIT(PG_locked) ||
	    !maps_ok(page, round))
		return;
	folio = cohort_get_single(page);
	if (!folio)
		return;
	if (!folio_trylock(folio)) {
		folio_put(folio);
		return;
	}
	if (may_drop(folio, round))
		batch->folio[batch->nr++] = folio;
	else
		batch_keep(folio);
}

static void lru_count(struct lruvec *lruvec, const struct folio *folio, long *nr)
{
	enum lru_list lru;

	for_each_lru(lru) {
		if (nr[lru])
			update_lru_size(lruvec, lru, folio_zonenum(folio), -nr[lru]);
		nr[lru] = 0;
	}
}

/* A folio leaves the LRU; those of the multi-generational one count themselves. */
static void lru_leave(struct lruvec *lruvec, struct folio *folio, long *nr)
{
	enum lru_list lru = folio_lru_list(folio);

	if (lru_gen_del_folio(lruvec, folio, false))
		return;
	if (lru != LRU_UNEVICTABLE)
		list_del(&folio->lru);
	nr[lru]++;
}

static void batch_isolate(struct batch *batch)
{
	unsigned int i, nr = 0, nr_busy = 0;
	struct lruvec *lruvec = NULL;
	struct folio *busy[BATCH];
	long left[NR_LRU_LISTS] = {};

	for (i = 0; i < batch->nr; i++) {
		struct folio *folio = batch->folio[i];

		if (!folio_test_clear_lru(folio)) {
			busy[nr_busy++] = folio;
			continue;
		}
		if (lruvec && !folio_matches_lruvec(folio, lruvec))
			lru_count(lruvec, folio, left);
		lruvec = folio_lruvec_relock_irq(folio, lruvec);
		lru_leave(lruvec, folio, left);
		batch->folio[nr++] = folio;
	}
	if (lruvec) {
		lru_count(lruvec, batch->folio[0], left);
		unlock_page_lruvec_irq(lruvec);
	}
	batch->nr = nr;
	while (nr_busy)
		batch_keep(busy[--nr_busy]);
}

/**
 * struct removal - folios of one file on their way out of the page cache
 * @mapping: the file, its i_lock and i_pages locked
 * @xas: where the last one was stored
 * @next: the index behind it, ULONG_MAX before there was one
 * @values: shadows stored since in its node that the node does not count yet
 * @memcg: who is charged for those that are not accounted yet
 * @pgdat: their node
 * @nr: how many
 * @shadow: of folios evicted now, those of the working set last; or NULL
 * @aged: folios that got a shadow of those, beside the first
 */
struct removal {
	struct address_space *mapping;
	struct xa_state xas;
	pgoff_t next;
	unsigned int values;
	struct mem_cgroup *memcg;
	struct pglist_data *pgdat;
	long nr;
	void *shadow[2];
	unsigned long aged;
};

/* A batch goes at one moment, so that its pages are as old as each other. */
static void *shadow_of(struct removal *rm, struct folio *folio)
{
	void **shadow = &rm->shadow[folio_test_workingset(folio)];

	if (mapping_exiting(rm->mapping) || dax_mapping(rm->mapping))
		return NULL;
	if (lru_gen_enabled())
		return workingset_eviction(folio, NULL);
	if (*shadow)
		rm->aged++;
	else
		*shadow = workingset_eviction(folio, NULL);
	return *shadow;
}

/* The time that passes for what was evicted before. */
static void removal_age(struct removal *rm)
{
	if (rm->aged)
		workingset_age_nonresident(mem_cgroup_lruvec(NULL, rm->pgdat), rm->aged);
	rm->aged = 0;
	memset(rm->shadow, 0, sizeof(rm->shadow));
}

/* A node learns what became of it. */
static void removal_flush(struct removal *rm)
{
	if (!rm->values)
		return;
	rm->xas.xa_node->nr_values += rm->values;
	rm->xas.xa_update(rm->xas.xa_node);
	rm->values = 0;
}

static void removal_account(struct removal *rm)
{
	rm->mapping->nrpages -= rm->nr;
	if (rm->nr && rm->memcg)
		__mod_lruvec_state(mem_cgroup_lruvec(rm->memcg, rm->pgdat), NR_FILE_PAGES,
				   -rm->nr);
	else if (rm->nr)
		__mod_node_page_state(rm->pgdat, NR_FILE_PAGES, -rm->nr);
	rm->nr = 0;
}

static void removal_begin(struct removal *rm, struct folio *folio)
{
	struct address_space *mapping = folio->mapping;

	rm->mapping = mapping;
	rm->memcg = folio_memcg(folio);
	rm->pgdat = folio_pgdat(folio);
	rm->nr = 0;
	rm->values = 0;
	rm->xas = (struct xa_state)__XA_STATE(&mapping->i_pages, folio->index, 0, 0);
	rm->next = ULONG_MAX;
	mapping_set_update(&rm->xas, mapping);
	spin_lock(&mapping->host->i_lock);
	xas_lock_irq(&rm->xas);
}

static void removal_end(struct removal *rm)
{
	struct address_space *mapping = rm->mapping;

	removal_flush(rm);
	removal_account(rm);
	xas_unlock_irq(&rm->xas);
	if (mapping_shrinkable(mapping))
		inode_add_lru(mapping->host);
	spin_unlock(&mapping->host->i_lock);
}

/*
 * The folio stands behind the last one in a node of the tree in which nothing is
 * marked: the slot is all there is to change.
 */
static bool removal_next(struct removal *rm, struct folio *folio, void *shadow)
{
	struct xa_node *node = rm->xas.xa_node;
	unsigned int offset = folio->index & XA_CHUNK_MASK, mark;

	if (!shadow || !offset || folio->index != rm->next || !rm->xas.xa_update)
		return false;
	for (mark = 0; mark < XA_MAX_MARKS; mark++)
		if (!bitmap_empty(node->marks[mark], XA_CHUNK_SIZE))
			return false;
	rcu_assign_pointer(node->slots[offset], shadow);
	rm->xas.xa_index++;
	rm->xas.xa_offset = offset;
	rm->values++;
	return true;
}

/* Neighbours in the area are neighbours in the file, mostly. */
static void removal_store(struct removal *rm, struct folio *folio, void *shadow)
{
	if (!removal_next(rm, folio, shadow)) {
		removal_flush(rm);
		xas_set(&rm->xas, folio->index);
		xas_store(&rm->xas, shadow);
		xas_init_marks(&rm->xas);
	}
	/* A node may go with its last entry: only a shadow leaves the walk where it is. */
	rm->next = shadow && rm->xas.xa_node ? folio->index + 1 : ULONG_MAX;
	folio->mapping = NULL;
}

/* True if the folio is out of the cache, with no reference left. */
static bool remove_one(struct removal *rm, struct folio *folio)
{
	/* The cache's reference and ours. */
	if (!folio_ref_freeze(folio, 2))
		return false;
	if (folio_test_dirty(folio)) {
		folio_ref_unfreeze(folio, 2);
		return false;
	}
	if (folio_test_active(folio))
		folio_clear_active(folio);
	trail_add(rm->mapping, folio->index);
	removal_store(rm, folio, shadow_of(rm, folio));
	if (folio_memcg(folio) != rm->memcg) {
		removal_account(rm);
		rm->memcg = folio_memcg(folio);
	}
	rm->nr++;
	return true;
}

/*
 * What __filemap_remove_folio() does, for the folios of a file that lie side by
 * side: with one walk down the tree, and one sum for the statistics.
 */
static void batch_remove(struct batch *batch)
{
	struct removal rm = { .mapping = NULL };
	struct folio *busy[BATCH];
	unsigned int i, nr = 0, nr_busy = 0;

	for (i = 0; i < batch->nr; i++) {
		struct folio *folio = batch->folio[i];

		if (folio->mapping != rm.mapping) {
			if (rm.mapping)
				removal_end(&rm);
			removal_begin(&rm, folio);
		}
		if (remove_one(&rm, folio))
			batch->folio[nr++] = folio;
		else
			busy[nr_busy++] = folio;
	}
	if (rm.mapping) {
		removal_end(&rm);
		removal_age(&rm);
	}
	batch->nr = nr;
	while (nr_busy) {
		struct folio *folio = busy[--nr_busy];

		folio_add_lru(folio);
		batch_keep(folio);
	}
}

/* As the free path does it, but home under one hold of the area's lock. */
static void batch_free(struct batch *batch)
{
	unsigned long pfn[BATCH];
	unsigned int i, nr = 0;
	struct folio_batch fbatch;

	folio_batch_init(&fbatch);
	for (i = 0; i < batch->nr; i++) {
		/* A reader may wait without a reference. */
		folio_unlock(batch->folio[i]);
		if (folio_batch_add(&fbatch, batch->folio[i]) && i + 1 < batch->nr)
			continue;
		mem_cgroup_uncharge_folios(&fbatch);
		folio_batch_reinit(&fbatch);
	}
	for (i = 0; i < batch->nr; i++)
		if (free_pages_prepare(&batch->folio[i]->page, 0))
			pfn[nr++] = folio_pfn(batch->folio[i]);
	cohort_area_park(pfn, nr);
}

/* What was isolated goes. Return: pages that are free now. */
static unsigned int batch_drop(struct batch *batch)
{
	unsigned int nr;

	batch_remove(batch);
	batch_free(batch);
	nr = batch->nr;
	batch->nr = 0;
	return nr;
}

/* mapped pages */

/* All of the list, isolated and locked, is unmapped; what stays goes back to the LRU. */
static void list_unmap(struct list_head *list)
{
	struct folio *folio, *next;

	list_for_each_entry(folio, list, lru)
		try_to_unmap(folio, TTU_BATCH_FLUSH);
	try_to_unmap_flush();
	list_for_each_entry_safe(folio, next, list, lru) {
		if (!folio_mapped(folio) && !folio_test_dirty(folio))
			continue;
		list_del(&folio->lru);
		folio_add_lru(folio);
		batch_keep(folio);
	}
}

static unsigned int list_drop(struct list_head *list)
{
	struct batch batch = { .nr = 0 };
	struct folio *folio, *next;
	unsigned int nr = 0;

	list_unmap(list);
	list_for_each_entry_safe(folio, next, list, lru) {
		list_del(&folio->lru);
		batch.folio[batch.nr++] = folio;
		if (batch.nr == BATCH)
			nr += batch_drop(&batch);
	}
	return nr + batch_drop(&batch);
}

/* Return: folios that joined the list. */
static unsigned int batch_to_list(struct batch *batch, struct list_head *list)
{
	unsigned int i, nr;

	batch_isolate(batch);
	nr = batch->nr;
	for (i = 0; i < nr; i++)
		list_add_tail(&batch->folio[i]->lru, list);
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

static void chunk_drop(struct job *job, unsigned long c)
{
	unsigned long cached[BITS_TO_LONGS(COHORT_CHUNK)] = {}, before, after, i, nr = 0;
	struct batch batch = { .nr = 0 };

	if (!chunk_look(job, c, cached, &before))
		return;
	for_each_set_bit(i, cached, COHORT_CHUNK) {
		batch_add(&batch, pfn_to_page(job->base + c * COHORT_CHUNK + i),
			  ROUND_UNMAPPED);
		if (batch.nr == BATCH) {
			batch_isolate(&batch);
			nr += batch_drop(&batch);
		}
	}
	batch_isolate(&batch);
	nr += batch_drop(&batch);
	chunk_look(job, c, cached, &after);
	atomic_long_add(nr, &job->dropped);
	if (after > before)
		atomic_long_add(after - before, &job->room);
}

/* Mapped pages of a chunk join those that are to go. Return: how many. */
static unsigned int chunk_list(struct job *job, unsigned long c, enum round round,
			       struct list_head *list)
{
	unsigned long cached[BITS_TO_LONGS(COHORT_CHUNK)] = {}, room, i;
	struct batch batch = { .nr = 0 };
	unsigned int nr = 0;

	if (!chunk_look(job, c, cached, &room))
		return 0;
	for_each_set_bit(i, cached, COHORT_CHUNK) {
		batch_add(&batch, pfn_to_page(job->base + c * COHORT_CHUNK + i), round);
		if (batch.nr == BATCH)
			nr += batch_to_list(&batch, list);
	}
	return nr + batch_to_list(&batch, list);
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
static void job_unmap(struct job *job, unsigned long lo, unsigned long hi, enum round round)
{
	unsigned int noreclaim = memalloc_noreclaim_save(), nr = 0;
	LIST_HEAD(list);

	for (; lo < hi && atomic_long_read(&job->room) < job->want; lo++) {
		nr += chunk_list(job, lo, round, &list);
		if (nr && (nr >= FLUSH_BATCH || lo + 1 == hi ||
			   atomic_long_read(&job->room) + nr >= job->want)) {
			nr = list_drop(&list);
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
	job_unmap(&job, start / COHORT_CHUNK, DIV_ROUND_UP(end, COHORT_CHUNK), ROUND_SHARED);
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
	job_unmap(&job, 0, chunks, ROUND_ONE);
	job_unmap(&job, 0, chunks, ROUND_SHARED);
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

int __init cohort_reclaim_init(void)
{
	reclaim_wq = alloc_workqueue("cohort_pcpa", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 1);
	return reclaim_wq ? 0 : -ENOMEM;
}
