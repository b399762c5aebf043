/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whole-region reclaim of the cache domain.  Included once, at the end of
 * mm/vmscan.c, because it needs that file's scan_control and
 * shrink_folio_list().
 */
#ifdef CONFIG_COHORT

#include "cohort/cohort.h"

/*
 * Drop what the LRU would drop too (shrink_folio_list() looks at references),
 * hand what it keeps to the survivors.
 */
static unsigned int cohort_drop_victims(struct pglist_data *pgdat,
					struct scan_control *sc,
					struct list_head *victims,
					struct list_head *survivors)
{
	struct reclaim_stat stat;
	unsigned int nr;

	nr = shrink_folio_list(victims, pgdat, sc, &stat, false);
	mod_node_page_state(pgdat, NR_ISOLATED_FILE, -(long)nr);
	count_vm_events(PGSTEAL_KSWAPD, nr);
	count_vm_events(PGSTEAL_FILE, nr);
	list_splice_tail_init(victims, survivors);
	return nr;
}

/* kswapd's part: region by region until it has what it wants. */
static void cohort_sweep(struct pglist_data *pgdat, struct scan_control *sc)
{
	struct cohort_domain *dom;
	struct cohort_block *blk;
	unsigned int sweeps = COHORT_SWEEPS;

	do {
		LIST_HEAD(victims);
		LIST_HEAD(survivors);
		unsigned int nr;

		dom = cohort_cache_victims(pgdat->node_id, &blk, &victims, &survivors);
		if (!dom)
			break;
		nr = cohort_drop_victims(pgdat, sc, &victims, &survivors);
		sc->nr_reclaimed += nr;
		cohort_cache_settle(dom, blk, &survivors, nr);
	} while (--sweeps && sc->nr_reclaimed < sc->nr_to_reclaim);
}

/* What kswapd dropped of the area does not help those who need other memory. */
void __cohort_pull(struct pglist_data *pgdat, void *private)
{
	struct scan_control *sc = private;

	if (current_is_kswapd() && !cgroup_reclaim(sc))
		sc->nr_reclaimed += __cohort_pcpa_pull(pgdat);
}

/*
 * A page of the area that is dropped is free only there.  As long as the area
 * has free pages for readers nobody gains anything by it; but for a memory cgroup
 * at its limit, who wants it less charged.
 */
bool __cohort_spared(struct folio *folio, void *private)
{
	struct scan_control *sc = private;

	return !cgroup_reclaim(sc) && __cohort_pcpa_suffices(folio_pfn(folio));
}

/*
 * Only global reclaim: a region mixes memory cgroups, and a group at its
 * limit must not evict pages of the others.  File pages move only where file
 * system calls are allowed.
 */
void __cohort_shrink_cache(struct pglist_data *pgdat, void *private)
{
	struct scan_control *sc = private;

	if (cgroup_reclaim(sc) || !(sc->gfp_mask & __GFP_FS))
		return;
	/* A movable page can be taken from where it was parked. */
	if (!current_is_kswapd() &&
	    gfp_migratetype(sc->gfp_mask) == MIGRATE_MOVABLE)
		return;
	/*
	 * A task that reclaims for itself has dropped its batch already; it
	 * only needs the pages free, and the others stay cached.
	 */
	if (current_is_kswapd())
		cohort_sweep(pgdat, sc);
	else
		cohort_region_room(pgdat->node_id);
	if (current_is_kswapd() && total_swap_pages)
		cohort_compact_swapped();
	cohort_compact_low();
}

#endif /* CONFIG_COHORT */
