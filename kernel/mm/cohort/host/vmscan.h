/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whole-region reclaim of the cache domain, and what kswapd aims at.  Included once,
 * at the end of mm/vmscan.c, because it needs that file's scan_control,
 * shrink_folio_list() and pgdat_balanced().
 */
#ifdef CONFIG_COHORT

#include "../cohort.h"
#include "../pcpa/pcpa.h"
#include "../region/region.h"
#include "../rightsize/rightsize.h"

/**
 * __cohort_kswapd_size() - what kswapd aims at in one go
 * @pgdat: node
 * @sc: its run, with what stock would aim at
 */
void __cohort_kswapd_size(struct pglist_data *pgdat, struct scan_control *sc)
{
	cohort_sizer_progress(pgdat->node_id, sc->nr_reclaimed);
	sc->nr_to_reclaim = cohort_kswapd_target(pgdat, sc->reclaim_idx, sc->order,
						 sc->nr_to_reclaim);
}

/*
 * What kswapd's walk counts goes to the memory cgroup that it is at, and pages of a region are
 * of others: no walk is there while they are looked at, and references are told one by one.
 */
static struct lru_gen_mm_walk *cohort_change_walk(struct lru_gen_mm_walk *walk)
{
#ifdef CONFIG_LRU_GEN
	if (current->reclaim_state)
		swap(current->reclaim_state->mm_walk, walk);
#endif
	return walk;
}

/* So long a task drops a region at most. */
#define COHORT_DROP_TIME	(HZ / 10)

/*
 * Those of one memory cgroup, which counts them, as stock does with what is of one LRU list.
 * Pages of no group count for the root; without memory cgroups there is none.
 */
static unsigned int cohort_drop_group(struct pglist_data *pgdat, struct scan_control *sc,
				      struct list_head *victims,
				      struct list_head *survivors)
{
	struct folio *folio, *next, *first = list_first_entry(victims, struct folio, lru);
	unsigned int most = current_is_kswapd() ? UINT_MAX : SWAP_CLUSTER_MAX;
	struct mem_cgroup *memcg = get_mem_cgroup_from_folio(first), *own = folio_memcg(first);
	int by = current_is_kswapd() ? 0 : PGSCAN_DIRECT - PGSCAN_KSWAPD;
	struct lru_gen_mm_walk *walk;
	struct reclaim_stat stat;
	long isolated = 0;
	unsigned int nr;
	LIST_HEAD(group);

	list_for_each_entry_safe(folio, next, victims, lru) {
		if (folio_memcg(folio) != own)
			continue;
		if (!most--)
			break;
		list_move_tail(&folio->lru, &group);
		isolated++;
	}
	count_vm_events(PGSCAN_KSWAPD + by, isolated);
	count_memcg_events(memcg, PGSCAN_KSWAPD + by, isolated);
	count_vm_events(PGSCAN_FILE, isolated);
	walk = cohort_change_walk(NULL);
	nr = shrink_folio_list(&group, pgdat, sc, &stat, false);
	cohort_change_walk(walk);
	/* Pages off the list: reclaimed ones, and poisoned ones, not counted as such. */
	isolated -= list_count_nodes(&group);
	mod_node_page_state(pgdat, NR_ISOLATED_FILE, -isolated);
	count_vm_events(PGSTEAL_KSWAPD + by, nr);
	count_memcg_events(memcg, PGSTEAL_KSWAPD + by, nr);
	count_vm_events(PGSTEAL_FILE, nr);
	list_splice_tail_init(&group, survivors);
	mem_cgroup_put(memcg);
	return nr;
}

/* A task that waits for memory does not wait for as long as pages have mappings to be asked. */
static bool cohort_drop_over(unsigned long end)
{
	return !current_is_kswapd() &&
	       (time_after(jiffies, end) || fatal_signal_pending(current));
}

/*
 * Drop what the LRU would drop too (shrink_folio_list() looks at references),
 * hand what it keeps to the survivors.  Where time runs out, none moves.
 */
static unsigned int cohort_drop_victims(struct pglist_data *pgdat,
					struct scan_control *sc,
					struct list_head *victims,
					struct list_head *survivors)
{
	unsigned long end = jiffies + COHORT_DROP_TIME;
	unsigned int nr = 0;

	while (!list_empty(victims) && !cohort_drop_over(end))
		nr += cohort_drop_group(pgdat, sc, victims, survivors);
	/* To move what there is no time to drop would take longer. */
	if (!list_empty(victims)) {
		list_splice_tail_init(victims, survivors);
		putback_movable_pages(survivors);
	}
	return nr;
}

/* One region; false if none is worth it. */
static bool cohort_sweep_one(struct pglist_data *pgdat, struct scan_control *sc, bool *freed)
{
	struct cohort_block *blk;
	struct cohort_room *room;
	LIST_HEAD(victims);
	LIST_HEAD(survivors);
	unsigned int nr;

	room = cohort_cache_victims(pgdat->node_id, sc->reclaim_idx, !current_is_kswapd(), &blk,
				    &victims, &survivors);
	if (!room)
		return false;
	nr = cohort_drop_victims(pgdat, sc, &victims, &survivors);
	sc->nr_reclaimed += nr;
	*freed = cohort_cache_settle(room, blk, &survivors, nr);
	return true;
}

/*
 * kswapd's part: region by region until it has what it wants.  What it reclaimed in this round it
 * does not know before the end of a memory cgroup, so it asks whether the node has enough.
 */
static void cohort_sweep(struct pglist_data *pgdat, struct scan_control *sc)
{
	unsigned int sweeps = COHORT_SWEEPS;
	bool freed;

	while (sweeps-- && !pgdat_balanced(pgdat, sc->order, sc->reclaim_idx) &&
	       cohort_sweep_one(pgdat, sc, &freed) && sc->nr_reclaimed < sc->nr_to_reclaim)
		;
}

/*
 * Is any page of a memory cgroup protected, by memory.min alone or by @low, too?  The root
 * counts what its children use of theirs, without which no group further down is.
 */
static bool cohort_protects(bool low)
{
#ifdef CONFIG_MEMCG
	return !mem_cgroup_disabled() &&
	       (atomic_long_read(&root_mem_cgroup->memory.children_min_usage) > 0 ||
		(low && atomic_long_read(&root_mem_cgroup->memory.children_low_usage) > 0));
#else
	return false;
#endif
}

/**
 * cohort_protect() - how much of each memory cgroup is protected now
 * @low: by memory.low, too, and not by memory.min alone
 *
 * As direct reclaim does before it asks which ones are; a walk only where some are.
 *
 * Context: may be scheduled away.
 * Return: true if there are any.
 */
bool cohort_protect(bool low)
{
	struct mem_cgroup *memcg;

	if (!cohort_protects(low))
		return false;
	memcg = mem_cgroup_iter(NULL, NULL, NULL);
	do {
		mem_cgroup_calculate_protection(NULL, memcg);
	} while ((memcg = mem_cgroup_iter(NULL, memcg, NULL)));
	return true;
}

/**
 * cohort_protected() - would reclaim leave a folio alone because of its memory cgroup?
 * @folio: isolated, or locked and on a list
 * @low: by memory.low, too, and not by memory.min alone
 *
 * As it was when cohort_protect() looked last.
 */
bool cohort_protected(struct folio *folio, bool low)
{
	struct mem_cgroup *memcg;
	bool kept;

	rcu_read_lock();
	memcg = folio_memcg(folio);
	kept = memcg && (mem_cgroup_below_min(NULL, memcg) ||
			 (low && mem_cgroup_below_low(NULL, memcg)));
	rcu_read_unlock();
	return kept;
}

/**
 * cohort_region_drop() - a whole region of the page cache, now
 * @nid: node it should be of
 * @gfp: what is asked for, without what this context must not do
 *
 * For a large piece of an I/O buffer, in whose place single pages would be asked for
 * and reclaimed one by one.  What kswapd would drop next is dropped a little earlier:
 * dropping a page takes a fifth of the time of moving it.
 *
 * Context: as for direct reclaim with GFP_KERNEL; in another, nothing is done.
 * Return: true if a region went home.
 */
bool cohort_region_drop(int nid, gfp_t gfp)
{
	struct scan_control sc = {
		.gfp_mask = gfp,
		.reclaim_idx = gfp_zone(gfp),
		.priority = DEF_PRIORITY,
		.may_unmap = 1,
	};
	unsigned long stall;
	unsigned int flags;
	bool freed = false;

	if ((current->flags & PF_MEMALLOC) || (gfp & GFP_KERNEL) != GFP_KERNEL ||
	    fatal_signal_pending(current))
		return false;
	psi_memstall_enter(&stall);
	fs_reclaim_acquire(gfp);
	flags = memalloc_noreclaim_save();
	/* A search that finds no region has reclaimed nothing, and is no stall. */
	if (cohort_sweep_one(NODE_DATA(nid), &sc, &freed))
		__count_zid_vm_events(ALLOCSTALL, sc.reclaim_idx, 1);
	memalloc_noreclaim_restore(flags);
	fs_reclaim_release(gfp);
	psi_memstall_leave(&stall);
	return freed;
}

/* Pages of the area that kswapd dropped do not help requests for other memory. */
static void cohort_pull(struct pglist_data *pgdat, struct scan_control *sc)
{
	if (current_is_kswapd() && !cgroup_reclaim(sc))
		sc->nr_reclaimed += __cohort_pcpa_pull(pgdat, sc->reclaim_idx);
}

/**
 * __cohort_spared() - would it gain nothing to reclaim a page now?
 * @folio: folio of an LRU list, whose lock is held
 * @sc: the reclaim
 * @skipped: pages that this hold of the lock has skipped already
 *
 * A page of the area that is dropped is free only there.  As long as the area
 * has free pages for readers dropping it gains nothing; but for a memory cgroup
 * at its limit, which wants less charged to it.
 */
bool __cohort_spared(struct folio *folio, struct scan_control *sc, unsigned long skipped)
{
	return IS_ENABLED(CONFIG_COHORT_PCPA) && !cgroup_reclaim(sc) &&
	       __cohort_pcpa_suffices(folio_pfn(folio), skipped);
}

/*
 * Only global reclaim: a region mixes memory cgroups, and a group at its
 * limit must not evict pages of the others.  File pages move only where file
 * system calls are allowed; the worker that packs is told by all.
 */
static void cohort_shrink_regions(struct pglist_data *pgdat, struct scan_control *sc, bool file)
{
	if (cgroup_reclaim(sc))
		return;
	cohort_pack_wake(pgdat);
	if (!(sc->gfp_mask & __GFP_FS))
		return;
	/*
	 * A task that reclaims for itself has dropped its batch already; it
	 * only needs the pages free, and the others stay cached.  What it dropped went
	 * home to blocks in single pages, so for a piece of several one is packed.  Where
	 * reclaim chooses anonymous pages it spares files, which a sweep would drop.
	 */
	if (current_is_kswapd()) {
		if (file)
			cohort_sweep(pgdat, sc);
	} else if (gfp_migratetype(sc->gfp_mask) != MIGRATE_MOVABLE &&
		   sc->nr_reclaimed < sc->nr_to_reclaim &&
		   (cohort_region_spare(pgdat->node_id, sc->reclaim_idx) ||
		    (sc->order && cohort_region_pack(sc->gfp_mask, pgdat->node_id,
						     sc->reclaim_idx)))) {
		sc->nr_reclaimed = sc->nr_to_reclaim;
	}
}

/**
 * cohort_reclaims_for_all() - does the task reclaim, and not for a memory cgroup alone?
 */
bool cohort_reclaims_for_all(void)
{
	struct reclaim_state *state = current->reclaim_state;

	return state && !cgroup_reclaim(container_of(state, struct scan_control, reclaim_state));
}

/**
 * __cohort_shrink_cache() - reclaim whole regions of the cache domain, fill the area
 * @pgdat: node under reclaim
 * @sc: the reclaim
 * @file: was the batch of file pages?
 *
 * Called after a batch of LRU reclaim with no lock held.  Without it, cache
 * pages freed one by one would park in half-used regions, free memory would
 * not rise, and reclaim would not stop.
 */
void __cohort_shrink_cache(struct pglist_data *pgdat, struct scan_control *sc, bool file)
{
	if (cohort_pcpa_taking())
		cohort_pull(pgdat, sc);
	if (cohort_region_enabled())
		cohort_shrink_regions(pgdat, sc, file);
	else if (cohort_enabled())
		cohort_pack_wake(pgdat);
}

#endif /* CONFIG_COHORT */
