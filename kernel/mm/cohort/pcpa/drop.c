// SPDX-License-Identifier: GPL-2.0
/*
 * Dropping clean page cache of the area in batches: off the LRU under one hold
 * of its lock, out of the page cache under one hold of each file's, and
 * straight back to the area.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/dax.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "../../internal.h"
#include "../cohort.h"
#include "pcpa.h"

/* After so long mapped pages that are locked are dropped, and not joined by others. */
#define LOCKED_MS	4

static void cohort_batch_keep(struct folio *folio)
{
	folio_unlock(folio);
	folio_put(folio);
}

/**
 * cohort_busy_why() - what keeps a page from being dropped
 * @folio: the page, referenced; what is told without its lock may be over
 */
enum cohort_busy cohort_busy_why(struct folio *folio)
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
	return COHORT_BUSY_NONE;
}

/* Flags of a page that can be dropped: on the LRU, and none of these. */
#define KEEP_FLAGS	(BIT(PG_dirty) | BIT(PG_writeback) | BIT(PG_swapbacked) | \
			 BIT(PG_unevictable) | BIT(PG_mlocked))

static bool cohort_batch_looks_clean(unsigned long flags)
{
	return (flags & (BIT(PG_lru) | KEEP_FLAGS)) == BIT(PG_lru);
}

/**
 * cohort_page_stuck() - would no round drop a page, as it looks now?
 * @page: a page of the area that is not free
 *
 * Without a reference, so a guess: of the page cache's reference, one for each mapping and that
 * of a file system's private data it has more, or it has not such flags.
 */
bool cohort_page_stuck(const struct page *page)
{
	int known = 2 + atomic_read(&page->_mapcount) + PagePrivate(page);

	return !cohort_batch_looks_clean(READ_ONCE(page->flags)) || PageLocked(page) ||
	       page_ref_count(page) > known;
}

static bool cohort_batch_maps_ok(const struct page *page, enum cohort_round round)
{
	int maps = atomic_read(&page->_mapcount) + 1;

	return maps <= (int)round || round == COHORT_ROUND_SHARED;
}

/*
 * The same under the lock, and what only holds there.  A file system is not to wait for a
 * server to release a page.
 */
static bool cohort_batch_may_drop(const struct cohort_batch *batch, struct folio *folio,
				  enum cohort_round round)
{
	struct address_space *mapping = folio_mapping(folio);

	if (!mapping || !cohort_batch_looks_clean(READ_ONCE(folio->flags)) ||
	    !cohort_batch_maps_ok(&folio->page, round) || mapping->a_ops->free_folio)
		return false;
	/* A group that is dropped from is protected when it has no more. */
	if (batch->spare && cohort_protected(folio, false))
		return false;
	return !folio_needs_release(folio) || filemap_release_folio(folio, GFP_NOWAIT);
}

/**
 * cohort_batch_add() - take a page along if it can be dropped
 * @batch: not full
 * @page: a page of the area
 * @round: how often it may be mapped
 */
void cohort_batch_add(struct cohort_batch *batch, struct page *page,
		      enum cohort_round round)
{
	unsigned long flags = READ_ONCE(page->flags);
	struct folio *folio;

	if (!cohort_batch_looks_clean(flags) || flags & BIT(PG_locked) ||
	    !cohort_batch_maps_ok(page, round))
		return;
	folio = cohort_get_single(page);
	if (!folio)
		return;
	/* As for cohort_pull_readable(). */
	if (!folio_test_lru(folio) || !folio_trylock(folio)) {
		folio_put(folio);
		return;
	}
	if (cohort_batch_may_drop(batch, folio, round))
		batch->folio[batch->nr++] = folio;
	else
		cohort_batch_keep(folio);
}

static void cohort_lru_count(struct lruvec *lruvec, const struct folio *folio, long *nr)
{
	enum lru_list lru;

	for_each_lru(lru) {
		if (nr[lru])
			update_lru_size(lruvec, lru, folio_zonenum(folio), -nr[lru]);
		nr[lru] = 0;
	}
}

/* A folio leaves the LRU; those of the multi-generational one count themselves. */
static void cohort_lru_leave(struct lruvec *lruvec, struct folio *folio, long *nr)
{
	enum lru_list lru = folio_lru_list(folio);

	if (lru_gen_del_folio(lruvec, folio, false))
		return;
	if (lru != LRU_UNEVICTABLE)
		list_del(&folio->lru);
	nr[lru]++;
}

static void cohort_batch_isolate(struct cohort_batch *batch)
{
	unsigned int i, nr = 0, nr_busy = 0;
	struct lruvec *lruvec = NULL;
	struct folio *busy[COHORT_BATCH];
	long left[NR_LRU_LISTS] = {};

	for (i = 0; i < batch->nr; i++) {
		struct folio *folio = batch->folio[i];

		if (!folio_test_clear_lru(folio)) {
			busy[nr_busy++] = folio;
			continue;
		}
		if (lruvec && !folio_matches_lruvec(folio, lruvec))
			cohort_lru_count(lruvec, folio, left);
		lruvec = folio_lruvec_relock_irq(folio, lruvec);
		cohort_lru_leave(lruvec, folio, left);
		batch->folio[nr++] = folio;
	}
	if (lruvec) {
		cohort_lru_count(lruvec, batch->folio[0], left);
		unlock_page_lruvec_irq(lruvec);
	}
	batch->nr = nr;
	while (nr_busy)
		cohort_batch_keep(busy[--nr_busy]);
}

/**
 * struct removal - folios of one file on their way out of the page cache
 * @mapping: the file, its i_lock and i_pages locked
 * @xas: where the last one was stored
 * @next: the index behind it, ULONG_MAX before there was one
 * @values: shadows stored since in its node that the node does not count yet
 * @memcg: the cgroup charged for those that are not accounted yet
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
static void *cohort_removal_shadow(struct removal *rm, struct folio *folio)
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
static void cohort_removal_age(struct removal *rm)
{
	if (rm->aged)
		workingset_age_nonresident(mem_cgroup_lruvec(NULL, rm->pgdat), rm->aged);
	rm->aged = 0;
	memset(rm->shadow, 0, sizeof(rm->shadow));
}

/* A node learns what became of it. */
static void cohort_removal_flush(struct removal *rm)
{
	if (!rm->values)
		return;
	rm->xas.xa_node->nr_values += rm->values;
	rm->xas.xa_update(rm->xas.xa_node);
	rm->values = 0;
}

static void cohort_removal_account(struct removal *rm)
{
	rm->mapping->nrpages -= rm->nr;
	if (rm->nr && rm->memcg)
		__mod_lruvec_state(mem_cgroup_lruvec(rm->memcg, rm->pgdat), NR_FILE_PAGES,
				   -rm->nr);
	else if (rm->nr)
		__mod_node_page_state(rm->pgdat, NR_FILE_PAGES, -rm->nr);
	rm->nr = 0;
}

static void cohort_removal_begin(struct removal *rm, struct folio *folio)
{
	struct address_space *mapping = folio->mapping;

	rm->mapping = mapping;
	rm->memcg = folio_memcg(folio);
	rm->pgdat = folio_pgdat(folio);
	rm->nr = 0;
	rm->values = 0;
	rm->xas = (struct xa_state)__XA_STATE(&mapping->i_pages, folio->index, 0, 0);
	rm->next = ULONG_MAX;
	/* What mapping_set_update() does, which older releases keep in mm/filemap.c. */
	if (!dax_mapping(mapping) && !shmem_mapping(mapping)) {
		xas_set_update(&rm->xas, workingset_update_node);
		xas_set_lru(&rm->xas, &shadow_nodes);
	}
	spin_lock(&mapping->host->i_lock);
	xas_lock_irq(&rm->xas);
}

static void cohort_removal_end(struct removal *rm)
{
	struct address_space *mapping = rm->mapping;

	cohort_removal_flush(rm);
	cohort_removal_account(rm);
	xas_unlock_irq(&rm->xas);
	if (mapping_shrinkable(mapping))
		inode_add_lru(mapping->host);
	spin_unlock(&mapping->host->i_lock);
}

/*
 * The folio stands behind the last one in a node of the tree in which nothing is
 * marked: the slot is all there is to change.
 */
static bool cohort_removal_next(struct removal *rm, struct folio *folio, void *shadow)
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
static void cohort_removal_store(struct removal *rm, struct folio *folio, void *shadow)
{
	if (!cohort_removal_next(rm, folio, shadow)) {
		cohort_removal_flush(rm);
		xas_set(&rm->xas, folio->index);
		xas_store(&rm->xas, shadow);
		xas_init_marks(&rm->xas);
	}
	/* A node may go with its last entry: only a shadow leaves the walk where it is. */
	rm->next = shadow && rm->xas.xa_node ? folio->index + 1 : ULONG_MAX;
	folio->mapping = NULL;
}

/* True if the folio is out of the cache, with no reference left. */
static bool cohort_removal_take(struct removal *rm, struct folio *folio)
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
	cohort_trail_note(rm->mapping, folio->index);
	if (cohort_copies())
		cohort_copies_evict(rm->mapping, folio, false);
	cohort_removal_store(rm, folio, cohort_removal_shadow(rm, folio));
	if (folio_memcg(folio) != rm->memcg) {
		cohort_removal_account(rm);
		rm->memcg = folio_memcg(folio);
	}
	rm->nr++;
	return true;
}

/*
 * The work of __filemap_remove_folio() for the folios of a file that lie side by
 * side: with one walk down the tree, and one sum for the statistics.
 */
static void cohort_batch_remove(struct cohort_batch *batch)
{
	struct removal rm = { .mapping = NULL };
	struct folio *busy[COHORT_BATCH];
	unsigned int i, nr = 0, nr_busy = 0;

	for (i = 0; i < batch->nr; i++) {
		struct folio *folio = batch->folio[i];

		if (folio->mapping != rm.mapping) {
			if (rm.mapping)
				cohort_removal_end(&rm);
			cohort_removal_begin(&rm, folio);
		}
		if (cohort_removal_take(&rm, folio))
			batch->folio[nr++] = folio;
		else
			busy[nr_busy++] = folio;
	}
	if (rm.mapping) {
		cohort_removal_end(&rm);
		cohort_removal_age(&rm);
	}
	batch->nr = nr;
	while (nr_busy) {
		struct folio *folio = busy[--nr_busy];

		folio_add_lru(folio);
		cohort_batch_keep(folio);
	}
}

/* As the free path does it, but home under one hold of zone->lock. */
static void cohort_batch_free(struct cohort_batch *batch)
{
	struct page *page[COHORT_BATCH];
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
	for (i = 0; i < batch->nr; i++) {
		cohort_lent_return(folio_pfn(batch->folio[i]));
		if (free_pages_prepare(&batch->folio[i]->page, 0))
			page[nr++] = &batch->folio[i]->page;
	}
	count_vm_events(PGFREE, nr);
	if (nr)
		cohort_buddy_free_bulk(page_zone(page[0]), page, nr);
}

/* The isolated pages go. Return: pages that are free now. */
static unsigned int cohort_batch_free_isolated(struct cohort_batch *batch)
{
	unsigned int nr;

	cohort_batch_remove(batch);
	cohort_batch_free(batch);
	nr = batch->nr;
	batch->nr = 0;
	return nr;
}

/**
 * cohort_batch_drop() - drop a batch of unmapped pages
 * @batch: the pages; empty on return
 *
 * Return: pages that are free now.
 */
unsigned int cohort_batch_drop(struct cohort_batch *batch)
{
	cohort_batch_isolate(batch);
	return cohort_batch_free_isolated(batch);
}

/* mapped pages */

static void cohort_list_keep(struct folio *folio)
{
	list_del(&folio->lru);
	folio_add_lru(folio);
	folio_put(folio);
}

/* What was so when it joined the list may have changed since. */
static bool cohort_list_lock(struct folio *folio)
{
	if (!folio_trylock(folio))
		return false;
	if (folio->mapping && !(READ_ONCE(folio->flags) & KEEP_FLAGS))
		return true;
	folio_unlock(folio);
	return false;
}

/*
 * Folios of the list are locked and unmapped, one at least, until the first has been locked for
 * long: their users decide what each takes.  What stays mapped goes back to the LRU.
 */
static void cohort_list_unmap(struct list_head *list, struct list_head *unmapped)
{
	unsigned long end = jiffies + msecs_to_jiffies(LOCKED_MS);
	struct folio *folio, *next;

	list_for_each_entry_safe(folio, next, list, lru) {
		if (cohort_list_lock(folio)) {
			try_to_unmap(folio, TTU_BATCH_FLUSH);
			list_move_tail(&folio->lru, unmapped);
		} else {
			cohort_list_keep(folio);
		}
		if (time_after(jiffies, end))
			break;
	}
	try_to_unmap_flush();
	list_for_each_entry_safe(folio, next, unmapped, lru) {
		if (!folio_mapped(folio) && !folio_test_dirty(folio))
			continue;
		folio_unlock(folio);
		cohort_list_keep(folio);
	}
}

/**
 * cohort_list_drop() - drop pages that are mapped
 * @list: from cohort_batch_list(); shorter on return, and empty if that did not take long
 *
 * Return: pages that are free now.
 */
unsigned int cohort_list_drop(struct list_head *list)
{
	struct cohort_batch batch = { .nr = 0 };
	struct folio *folio, *next;
	unsigned int nr = 0;
	LIST_HEAD(unmapped);

	cohort_list_unmap(list, &unmapped);
	list_for_each_entry_safe(folio, next, &unmapped, lru) {
		list_del(&folio->lru);
		batch.folio[batch.nr++] = folio;
		if (batch.nr == COHORT_BATCH)
			nr += cohort_batch_free_isolated(&batch);
	}
	return nr + cohort_batch_free_isolated(&batch);
}

/**
 * cohort_list_back() - mapped pages go back to the LRU
 * @list: from cohort_batch_list(); empty on return
 */
void cohort_list_back(struct list_head *list)
{
	struct folio *folio, *next;

	list_for_each_entry_safe(folio, next, list, lru)
		cohort_list_keep(folio);
}

/**
 * cohort_batch_list() - collect a batch of mapped pages
 * @batch: the pages; empty on return
 * @list: receives them, isolated and no longer locked, for cohort_list_drop()
 *
 * Return: folios that joined the list.
 */
unsigned int cohort_batch_list(struct cohort_batch *batch, struct list_head *list)
{
	unsigned int i, nr;

	cohort_batch_isolate(batch);
	nr = batch->nr;
	for (i = 0; i < nr; i++) {
		list_add_tail(&batch->folio[i]->lru, list);
		folio_unlock(batch->folio[i]);
	}
	batch->nr = 0;
	return nr;
}
