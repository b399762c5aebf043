// SPDX-License-Identifier: GPL-2.0
/*
 * The region scheme: which domain a page belongs to, and where its blocks
 * come from.
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

#include "../../internal.h"
#include "../cohort.h"
#include "region.h"

DEFINE_STATIC_KEY_FALSE(cohort_region_key);
/* For cohort_buffer_order() in heaps that are modules. */
EXPORT_SYMBOL_GPL(cohort_region_key);

/* 1 MiB, whatever a page is, or the least that a region may have. */
unsigned int cohort_region_order __read_mostly = MAX(20 - PAGE_SHIFT, COHORT_MIN_ORDER);
bool cohort_region_vmalloc __read_mostly = true;

/* For so long after one attempt in vain no region is emptied for an area of vmalloc. */
#define COHORT_ROOM_REST	(HZ / 20)

/* And after a long one that was not, for so long at most: the next may be short. */
#define COHORT_ROOM_LONGEST	HZ

/* By node: when the cache, and when others, may be asked for a region next. */
static unsigned long cohort_cache_next[MAX_NUMNODES], cohort_holes_next[MAX_NUMNODES];

/* By kind; a process has its own. */
static struct cohort_domain *cohort_common[COHORT_NR_KINDS] __read_mostly;

/**
 * cohort_region_domain() - a domain that lives as long as the system
 * @kind: which
 *
 * Return: the domain, NULL before the scheme was first on.
 */
struct cohort_domain *cohort_region_domain(enum cohort_kind kind)
{
	return cohort_common[kind];
}

static int cohort_region_init(void)
{
	enum cohort_kind kind;
	int err = 0;

	for (kind = COHORT_PROCESS + 1; kind < COHORT_NR_KINDS && !err; kind++) {
		struct cohort_domain *dom = cohort_common[kind];

		if (!dom)
			dom = cohort_domain_create(kind, GFP_KERNEL);
		if (!dom)
			return -ENOMEM;
		err = cohort_domain_rooms(dom);
		/* Pairs with the data dependency of readers. */
		smp_store_release(&cohort_common[kind], dom);
	}
	return err;
}

/*
 * Pages that must stay free when a domain takes a block.  Pages that can be moved leave
 * the last half of the headroom to I/O buffers and to memory that cannot: they find holes
 * among others of their kind, and are moved on from there.  Compressed swap has its part, too:
 * reclaim writes it while memory is short, and it is in use for as long as its pages are swapped
 * out.  What a process pages out by itself (MADV_PAGEOUT), or a memory cgroup at its limit, is
 * no need of all.
 */
static unsigned long cohort_region_mark(const struct cohort_domain *dom, struct zone *zone)
{
	if (cohort_unmovable(dom) || (dom->kind == COHORT_ZSPAGE && cohort_reclaims_for_all()))
		return min_wmark_pages(zone);
	return low_wmark_pages(zone) + cohort_zone_headroom(zone) / 2;
}

/*
 * One more block.  Never reclaims itself: it runs under readahead, and asking
 * for a high order would reclaim far more than a block.  kswapd is told when blocks
 * are short, as the slow path would do below the low watermark; but not by each page that
 * finds none.
 */
static unsigned int cohort_region_refill(const struct cohort_request *rq,
					 struct cohort_room *room,
					 struct page **page, unsigned int want)
{
	struct zone *zone = room->zone;
	/* What may not wake kswapd may hold the lock of a work queue. */
	bool may_wake = rq->gfp & __GFP_KSWAPD_RECLAIM &&
			time_after(jiffies, READ_ONCE(zone->cohort->told));
	bool few = may_wake && cohort_blocks_short(zone);
	int idx = rq->ac->highest_zoneidx;
	unsigned int nr = 0;
	unsigned long mark;

	if (!cohort_region_enabled())
		return 0;
	if (few)
		cohort_pack_wake(zone->zone_pgdat);
	/*
	 * What is free in a block that one page holds is in no process's account.  Packing
	 * works the excess off, so that this does not last.
	 */
	if (rq->dom->kind == COHORT_PROCESS && !READ_ONCE(room->nr_blocks) &&
	    cohort_node_excess(zone_to_nid(zone)) && !cohort_domain_blocks(rq->dom)) {
		if (may_wake)
			cohort_pack_wake(zone->zone_pgdat);
		return 0;
	}
	/* The lock is not taken in vain for each page while the mark is not met. */
	if (cohort_buddy_has(zone, cohort_block_order()) || cohort_buddy_accept(zone)) {
		mark = cohort_region_mark(rq->dom, zone);
		if (cohort_mark_ok(zone, mark + cohort_pages(), idx) || cohort_buddy_accept(zone))
			nr = cohort_room_acquire(room, idx, mark, page, want);
	}
	if (few || (!nr && may_wake)) {
		WRITE_ONCE(zone->cohort->told, jiffies);
		wakeup_kswapd(zone, rq->gfp, 0, idx);
	}
	return nr;
}

static bool cohort_first_page(struct cohort_domain *dom)
{
	unsigned int nr = READ_ONCE(dom->nr_first);

	if (nr >= cohort_pages() / 2)
		return false;
	WRITE_ONCE(dom->nr_first, nr + 1);
	return true;
}

/**
 * cohort_region_anon() - where an anonymous page of a process belongs
 * @dom: the process's own domain
 */
struct cohort_domain *cohort_region_anon(struct cohort_domain *dom)
{
	switch (READ_ONCE(dom->class)) {
	case COHORT_PERSISTENT:
		return cohort_common[COHORT_SHARED];
	case COHORT_SERVICE:
		return cohort_common[COHORT_SVC];
	default:
		return cohort_first_page(dom) ? cohort_common[COHORT_SMALL] : dom;
	}
}

/**
 * cohort_region_cache() - where a page of the page cache belongs
 * @mapping: its file
 * @gfp: how it is asked for
 *
 * Cache pages that can be dropped are apart from metadata pages: one that a journal
 * pins would keep a whole region of the others.
 *
 * Return: the domain, or NULL.
 */
struct cohort_domain *cohort_region_cache(struct address_space *mapping, gfp_t gfp)
{
	if (!(gfp & __GFP_MOVABLE) || mapping_unevictable(mapping))
		return NULL;
	if (sb_is_blkdev_sb(mapping->host->i_sb))
		return cohort_common[COHORT_METADATA];
	return cohort_common[COHORT_CACHE];
}

/*
 * No block to be had: a hole of another domain.  Better than a page of the free lists, which
 * have no block left either: that one would come from between unmovable pages and make one
 * more small piece of free memory, where compaction cannot help.  A page among others that
 * can be moved is moved by the next sweep or compaction.
 */
static struct page *cohort_region_hole(const struct cohort_request *rq)
{
	static const enum cohort_kind other[] = {
		COHORT_CACHE, COHORT_HOT, COHORT_SMALL, COHORT_SVC, COHORT_SHARED,
	};
	struct page *page = NULL;
	unsigned int i;

	if (!cohort_region_enabled())
		return NULL;
	if (cohort_unmovable(rq->dom))
		return cohort_domain_take_hole(cohort_common[COHORT_VMALLOC], rq);
	for (i = 0; i < ARRAY_SIZE(other) && !page; i++)
		page = cohort_domain_take_hole(cohort_common[other[i]], rq);
	return page;
}

/* An area is asked for page by page: after one attempt in vain the next ones would be, too. */
static bool cohort_region_try(bool (*make)(int nid, int top), unsigned long *next, int nid,
			      int top)
{
	unsigned long begin = jiffies, rest = COHORT_ROOM_REST;
	bool made;

	if (time_before(begin, READ_ONCE(*next)))
		return false;
	made = make(nid, top);
	if (made)
		rest = cohort_rest_after(jiffies - begin, COHORT_ROOM_LONGEST);
	WRITE_ONCE(*next, jiffies + rest);
	return made;
}

/**
 * cohort_region_spare() - a block of the cache, unless the last try was in vain
 * @nid: node it should be of
 * @top: highest zone that helps
 *
 * Context: as for direct compaction.
 * Return: true if a block came home.
 */
bool cohort_region_spare(int nid, int top)
{
	return cohort_region_try(cohort_region_room, &cohort_cache_next[nid], nid, top);
}

/**
 * cohort_region_pack() - a block for a request that may wait, unless the last try was in vain
 * @gfp: the request; one that can do without gets none
 * @nid: node it should be of
 * @top: highest zone that helps
 *
 * Context: as for direct compaction.
 * Return: true if a block came home.
 */
bool cohort_region_pack(gfp_t gfp, int nid, int top)
{
	return !(gfp & __GFP_NORETRY) &&
	       cohort_region_try(cohort_pack_one, &cohort_holes_next[nid], nid, top);
}

/*
 * Where a request could compact by itself: memory of drivers strewn over the free lists is
 * why there are no blocks the next time.  The cache gives a block first; where processes are
 * swapped out and not killed, they have holes.  If it is the mark that keeps blocks from the
 * request, it comes nearer by each block that is packed, as what is free in one does not count.
 */
static bool cohort_region_make_room(const struct cohort_request *rq)
{
	int nid = zonelist_node_idx(rq->ac->preferred_zoneref), top = rq->ac->highest_zoneidx;

	if (rq->dom->kind != COHORT_VMALLOC || !cohort_region_enabled() ||
	    (rq->gfp & GFP_KERNEL) != GFP_KERNEL || (rq->gfp & __GFP_NORETRY))
		return false;
	return cohort_region_spare(nid, top) ||
	       cohort_region_pack(rq->gfp, nid, top);
}

/*
 * Pages of the kernel's own, taken one by one.  Tasks with a memory policy spread or bind
 * their pages on purpose; they keep the stock path.
 */
static struct page *cohort_single_alloc(struct cohort_domain *dom, gfp_t gfp,
					   int nid)
{
	if (nid == NUMA_NO_NODE && cohort_task_policy())
		return alloc_pages_noprof(gfp, 0);
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
		return nid == NUMA_NO_NODE ? alloc_pages_noprof(gfp, 0) :
					     alloc_pages_node_noprof(nid, gfp, 0);
	return cohort_single_alloc(cohort_common[COHORT_VMALLOC], gfp, nid);
}

/**
 * __cohort_vmalloc_pages() - single pages of a vmalloc area
 * @gfp: flags
 * @nid: preferred node or NUMA_NO_NODE
 * @nr: pages wanted
 * @pages: receives them
 *
 * Return: pages allocated; the caller gets the rest elsewhere.
 */
unsigned int __cohort_vmalloc_pages(gfp_t gfp, int nid, unsigned int nr,
				    struct page **pages)
{
	struct cohort_domain *dom = cohort_common[COHORT_VMALLOC];
	bool bulk = !(gfp & __GFP_ACCOUNT) && !cohort_task_policy();
	unsigned int i = 0;

	if (!cohort_region_vmalloc)
		return 0;
	if (nr <= COHORT_SMALL_AREA)
		dom = cohort_common[COHORT_KERNEL];
	while (i < nr) {
		if (!(gfp & __GFP_NOFAIL) && fatal_signal_pending(current))
			break;
		pages[i] = cohort_single_alloc(dom, gfp, nid);
		if (!pages[i])
			break;
		i++;
		if (bulk && i < nr)
			i += cohort_room_more(dom, gfp, pages[i - 1], pages + i, nr - i);
		if (gfpflags_allow_blocking(gfp))
			cond_resched();
	}
	return i;
}

/**
 * __cohort_kernel_domain() - where the kernel's own single pages belong
 *
 * Slab, page tables, pages of pipes: packed as densely as may be, as they are
 * many kinds with many lifetimes, and left to the free lists one of them pins
 * what is free around it.  Inodes, directory entries and nodes of the page cache
 * are not better for it that they can be shrunk: it is done object by object.
 *
 * Return: the domain, or NULL.
 */
struct cohort_domain *__cohort_kernel_domain(void)
{
	return cohort_region_vmalloc ? cohort_common[COHORT_KERNEL] : NULL;
}

/**
 * cohort_region_zspage() - a page for compressed memory
 * @gfp: flags
 * @nodes: where it may come from, or NULL
 *
 * Movable, though on no LRU, and in use for as long as what it holds is swapped
 * out: next to pages that come and go it would be what stays behind.
 */
struct page *cohort_region_zspage(gfp_t gfp, nodemask_t *nodes)
{
	struct cohort_domain *dom = cohort_common[COHORT_ZSPAGE];

	if (!nodes)
		return cohort_single_alloc(dom, gfp, NUMA_NO_NODE);
	return cohort_alloc_pages_noprof(gfp, first_node(*nodes), nodes, dom);
}

static const struct cohort_scheme cohort_region_scheme = {
	.name = "region",
	.packed = true,
	.key = &cohort_region_key,
	.order = &cohort_region_order,
	.init = cohort_region_init,
	.refill = cohort_region_refill,
	.room = cohort_region_make_room,
	.hole = cohort_region_hole,
};

/**
 * cohort_region_switch() - turn the region scheme on or off
 * @on: what to do
 *
 * Context: sleeps.
 * Return: 0, -ENOMEM, or -EINVAL if the contiguous page buffer is on, or a region larger
 * than a pageblock.
 */
int cohort_region_switch(bool on)
{
	return cohort_scheme_switch(&cohort_region_scheme, on);
}
