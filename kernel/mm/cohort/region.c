// SPDX-License-Identifier: GPL-2.0
/*
 * The region scheme: which domain a page belongs to, when process domains
 * come and go, and which cache regions reclaim takes whole.
 *
 * After Kim, Kwon, Kim and Jeong, "Controlling Physical Memory Fragmentation
 * in Mobile Systems", ISMM 2015.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <trace/events/cohort.h>

#include "../internal.h"
#include "cohort.h"

static struct cohort_domain *cohort_shared __read_mostly;
static struct cohort_domain *cohort_service __read_mostly;
static struct cohort_domain *cohort_small __read_mostly;
static struct cohort_domain *cohort_buffer __read_mostly;
static struct cohort_domain *cohort_vmalloc __read_mostly;
static struct cohort_domain *cohort_kernel[MAX_NUMNODES] __read_mostly;
static struct cohort_domain *cohort_zspage __read_mostly;
static struct cohort_domain *cohort_cache[MAX_NUMNODES] __read_mostly;
static struct cohort_domain *cohort_hot[MAX_NUMNODES] __read_mostly;

static int cohort_region_make(struct cohort_domain **dom, enum cohort_kind kind,
			      int nid)
{
	if (!*dom)
		*dom = cohort_domain_create(kind, nid, GFP_KERNEL);
	return *dom ? 0 : -ENOMEM;
}

/**
 * cohort_region_init() - make the domains that live as long as the system
 *
 * Context: cohort_mutex held, may sleep.
 * Return: 0, or -ENOMEM with nothing lost: what was made serves the next try.
 */
int cohort_region_init(void)
{
	int nid, err;

	err = cohort_region_make(&cohort_shared, COHORT_SHARED, NUMA_NO_NODE) ?:
	      cohort_region_make(&cohort_service, COHORT_SVC, NUMA_NO_NODE) ?:
	      cohort_region_make(&cohort_small, COHORT_SMALL, NUMA_NO_NODE) ?:
	      cohort_region_make(&cohort_buffer, COHORT_BUFFER, NUMA_NO_NODE) ?:
	      cohort_region_make(&cohort_vmalloc, COHORT_VMALLOC, NUMA_NO_NODE) ?:
	      cohort_region_make(&cohort_zspage, COHORT_ZSPAGE, NUMA_NO_NODE);
	for_each_node_state(nid, N_MEMORY) {
		if (!err)
			err = cohort_region_make(&cohort_kernel[nid], COHORT_KERNEL, nid) ?:
			      cohort_region_make(&cohort_cache[nid], COHORT_CACHE, nid) ?:
			      cohort_region_make(&cohort_hot[nid], COHORT_HOT, nid);
	}
	return err;
}

/* The first anonymous page of an address space makes its domain. */
static struct cohort_domain *cohort_mm_create(struct mm_struct *mm)
{
	struct cohort_domain *dom, *old;

	dom = cohort_domain_create(COHORT_PROCESS, NUMA_NO_NODE,
				   GFP_NOWAIT | __GFP_NOWARN);
	if (!dom)
		return NULL;
	dom->class = cohort_class_of(current->signal->oom_score_adj);
	old = cmpxchg(&mm->cohort, NULL, dom);
	if (old) {
		cohort_domain_destroy(dom);
		return old;
	}
	return dom;
}

static bool cohort_first_page(struct cohort_domain *dom)
{
	unsigned int nr = READ_ONCE(dom->nr_first);

	if (nr >= cohort_pages() / 2)
		return false;
	WRITE_ONCE(dom->nr_first, nr + 1);
	return true;
}

struct cohort_domain *__cohort_anon_domain(struct mm_struct *mm)
{
	struct cohort_domain *dom = READ_ONCE(mm->cohort);

	if (unlikely(!dom)) {
		dom = cohort_mm_create(mm);
		if (!dom)
			return NULL;
	}
	/* Its reservation, whatever the process is. */
	if (cohort_cpb_enabled())
		return likely(READ_ONCE(dom->nr_waits) < COHORT_CROWD) ?
		       dom : cohort_cpb_shard(dom);
	if (!cohort_region_enabled())
		return NULL;
	switch (READ_ONCE(dom->class)) {
	case COHORT_PERSISTENT:
		return cohort_shared;
	case COHORT_SERVICE:
		return cohort_service;
	default:
		return cohort_first_page(dom) ? cohort_small : dom;
	}
}

void __cohort_mm_exit(struct mm_struct *mm)
{
	struct cohort_domain *dom = mm->cohort;

	mm->cohort = NULL;
	if (cancel_delayed_work(&dom->work))
		cohort_domain_put(dom);
	cohort_cpb_exit(dom);
	cohort_domain_destroy(dom);
}

/*
 * Cache pages that can be dropped, and block device pages, which hold
 * metadata: one that a journal pins would keep a whole region of the others.
 */
struct cohort_domain *__cohort_cache_domain(struct address_space *mapping,
					    gfp_t gfp)
{
	if (!(gfp & __GFP_MOVABLE) || mapping_unevictable(mapping))
		return NULL;
	if (sb_is_blkdev_sb(mapping->host->i_sb))
		return cohort_buffer;
	return cohort_cache[numa_mem_id()];
}

/**
 * cohort_region_hole() - no block to be had: a hole of somebody else
 * @dom: domain that should own the page
 * @ac: zones and nodes the page may come from
 *
 * Better than a page of the free lists, which has no block left either: that
 * one would come from between unmovable pages and make one more small piece of
 * free memory, where compaction cannot help.  A page among others that can be
 * moved is moved by the next sweep or compaction.
 *
 * Return: like cohort_domain_take().
 */
struct page *cohort_region_hole(struct cohort_domain *dom,
				const struct alloc_context *ac)
{
	int nid = numa_mem_id();
	struct cohort_domain *other[] = {
		cohort_cache[nid], cohort_hot[nid], cohort_small,
		cohort_service, cohort_shared,
	};
	struct page *page = NULL;
	unsigned int i;

	if (!cohort_region_enabled())
		return NULL;
	if (cohort_unmovable(dom))
		return cohort_domain_take_hole(cohort_vmalloc, ac);
	for (i = 0; i < ARRAY_SIZE(other) && !page; i++)
		if (other[i])
			page = cohort_domain_take_hole(other[i], ac);
	return page;
}

/*
 * Pages of the kernel's own, taken one by one.  Tasks with a memory policy spread or bind
 * their pages on purpose; they keep the stock path.
 */
static struct page *cohort_single_alloc(struct cohort_domain *dom, gfp_t gfp,
					   int nid)
{
#ifdef CONFIG_NUMA
	if (nid == NUMA_NO_NODE && current->mempolicy)
		return alloc_pages_noprof(gfp, 0);
#endif
	return cohort_alloc_pages_noprof(gfp, nid == NUMA_NO_NODE ? numa_node_id() : nid,
					 NULL, dom);
}

/**
 * cohort_vmalloc_page() - one page of vmalloc or driver memory
 * @gfp: flags
 * @nid: preferred node or NUMA_NO_NODE
 */
struct page *cohort_vmalloc_page_noprof(gfp_t gfp, int nid)
{
	if (!cohort_region_enabled() || !cohort_region_vmalloc)
		return alloc_pages_node_noprof(nid, gfp, 0);
	return cohort_single_alloc(cohort_vmalloc, gfp, nid);
}

unsigned int __cohort_vmalloc_pages(gfp_t gfp, int nid, unsigned int nr,
				    struct page **pages)
{
	struct cohort_domain *dom = cohort_vmalloc;
	unsigned int i;

	if (!cohort_region_vmalloc)
		return 0;
	if (nr <= COHORT_SMALL_AREA)
		dom = cohort_kernel[nid == NUMA_NO_NODE ? numa_mem_id() : nid];
	for (i = 0; i < nr; i++) {
		if (!(gfp & __GFP_NOFAIL) && fatal_signal_pending(current))
			break;
		pages[i] = cohort_single_alloc(dom, gfp, nid);
		if (!pages[i])
			break;
		if (gfpflags_allow_blocking(gfp))
			cond_resched();
	}
	return i;
}

/**
 * __cohort_kernel_domain() - where the kernel's own single pages belong
 * @nid: preferred node
 *
 * Slab, page tables, pipe buffers: packed as densely as may be, as they are
 * many kinds with many lifetimes, and left to the free lists one of them pins
 * what is free around it.  Inodes, directory entries and nodes of the page cache
 * are not better for it that they can be shrunk: it is done object by object.
 *
 * Return: a domain whose pages are all of @nid, or NULL.
 */
struct cohort_domain *__cohort_kernel_domain(int nid)
{
	return cohort_region_vmalloc ? cohort_kernel[nid] : NULL;
}

/**
 * cohort_zspage_alloc() - a page for compressed memory
 * @gfp: flags
 *
 * Movable, though on no LRU, and in use for as long as what it holds is swapped
 * out: next to pages that come and go it would be what stays behind.
 */
struct page *cohort_zspage_alloc_noprof(gfp_t gfp)
{
	if (!cohort_region_enabled())
		return alloc_pages_noprof(gfp, 0);
	return cohort_single_alloc(cohort_zspage, gfp, NUMA_NO_NODE);
}
EXPORT_SYMBOL_GPL(cohort_zspage_alloc_noprof);

/*
 * Two regions' worth of holes: with one, the emptiest region is still so full
 * that most of the work is moving pages.
 */
static bool cohort_cache_wanted(const struct cohort_domain *dom)
{
	return cohort_compact_wanted(READ_ONCE(dom->nr_parked), cohort_order + 1);
}

/**
 * cohort_cache_victims() - isolate one region of the cache for reclaim
 * @nid: node under reclaim
 * @blk: the region, to be passed to cohort_cache_settle()
 * @victims: receives clean inactive folios
 * @survivors: receives active, dirty and otherwise needed ones
 *
 * Return: the domain, or NULL if no region is worth it; then nothing is isolated.
 */
struct cohort_domain *cohort_cache_victims(int nid, struct cohort_block **blk,
					   struct list_head *victims,
					   struct list_head *survivors)
{
	struct cohort_domain *dom = cohort_cache[nid];
	struct folio *folio, *next;
	LIST_HEAD(list);

	if (!cohort_cache_wanted(dom))
		dom = cohort_hot[nid];
	if (!cohort_cache_wanted(dom))
		return NULL;
	*blk = cohort_pick_victim(dom);
	if (!*blk)
		return NULL;
	cohort_isolate(*blk, &list);
	list_for_each_entry_safe(folio, next, &list, lru) {
		bool drop = !__folio_test_movable(folio) &&
			    folio_is_file_lru(folio) && !folio_test_active(folio) &&
			    !folio_test_dirty(folio) && !folio_test_writeback(folio) &&
			    !folio_test_unevictable(folio);

		list_move_tail(&folio->lru, drop ? victims : survivors);
	}
	return dom;
}

/**
 * cohort_cache_settle() - move the survivors of a region and release it
 * @dom: from cohort_cache_victims()
 * @blk: the region
 * @survivors: folios to move; empty on return
 * @dropped: folios that were reclaimed
 *
 * Return: true if the region went home.
 */
bool cohort_cache_settle(struct cohort_domain *dom, struct cohort_block *blk,
			 struct list_head *survivors, unsigned int dropped)
{
	struct cohort_domain *hot = cohort_hot[dom->nid];
	unsigned int moved;
	bool freed;

	/*
	 * What survives once is likely to stay: kept apart from pages that
	 * come and go, it need not move with every sweep.
	 */
	if (hot != dom && !list_empty(survivors) &&
	    READ_ONCE(hot->nr_parked) < cohort_pages()) {
		struct zone *zone = page_zone(pfn_to_page(cohort_block_pfn(blk)));

		cohort_grow(hot, zone, zone_idx(zone), min_wmark_pages(zone));
	}
	moved = cohort_evacuate(hot, survivors, false);
	freed = cohort_unpick(dom, blk);

	count_vm_event(COHORT_SWEEP);
	count_vm_events(COHORT_SWEEP_FREE, freed);
	count_vm_events(COHORT_SWEEP_DROP, dropped);
	trace_cohort_cache_sweep(cohort_block_pfn(blk), dropped, moved, freed);
	return freed;
}

/**
 * cohort_region_room() - a block for somebody who finds none, now
 * @nid: node it should be of
 *
 * For memory that cannot be moved: taken from between other pages, it would
 * leave small pieces behind when it is freed.  The pages of the emptiest cache
 * region move into the holes of the others.  Nothing is dropped; there is
 * memory enough, only in pieces.
 *
 * Context: as for direct compaction.
 * Return: true if a region went home.
 */
bool cohort_region_room(int nid)
{
	struct cohort_domain *dom;
	struct cohort_block *blk;
	LIST_HEAD(victims);
	LIST_HEAD(survivors);

	dom = cohort_cache_victims(nid, &blk, &victims, &survivors);
	if (!dom)
		return false;
	list_splice_tail_init(&victims, &survivors);
	return cohort_cache_settle(dom, blk, &survivors, 0);
}

#ifndef CONFIG_NUMA
struct folio *cohort_vma_alloc_folio_noprof(gfp_t gfp, int order,
					    struct vm_area_struct *vma)
{
	struct cohort_domain *dom = cohort_anon_domain(vma->vm_mm, order);

	if (!dom)
		return folio_alloc_noprof(gfp, order);
	return page_rmappable_folio(cohort_alloc_pages_noprof(gfp | __GFP_COMP,
							numa_node_id(), NULL, dom));
}
EXPORT_SYMBOL(cohort_vma_alloc_folio_noprof);

struct folio *__cohort_cache_alloc(struct cohort_domain *dom, gfp_t gfp)
{
	return page_rmappable_folio(cohort_alloc_pages_noprof(gfp | __GFP_COMP,
							numa_node_id(), NULL, dom));
}
#endif
