/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cohort: pages that will be freed together live together.
 *
 * What the memory manager calls.  Every hook is one line behind a static key:
 * with Cohort built in but switched off the hot paths keep their shape, and
 * with CONFIG_COHORT=n the stubs below leave no trace.  The design is in
 * Documentation/mm/cohort.rst, the structures in mm/cohort/cohort.h.
 */
#ifndef _LINUX_COHORT_H
#define _LINUX_COHORT_H

#include <linux/align.h>
#include <linux/gfp.h>
#include <linux/jump_label.h>
#include <linux/mm_types.h>
#include <linux/mmzone.h>
#include <linux/sizes.h>
#include <linux/types.h>

struct address_space;
struct alloc_context;
struct cohort_domain;
struct mm_struct;
struct page;
struct pglist_data;
struct task_struct;
struct vm_area_struct;
struct zone;

/**
 * enum cohort_level - how much of the parked memory to give back
 * @COHORT_GIVE_BACKGROUND: blocks of background processes and of the cache,
 *	and the buffers; a request that found no progress gets a part of them
 * @COHORT_GIVE_ALL: every block there is
 *
 * Empty regions, the level before these, never wait: they return to the buddy
 * allocator when their last page is parked.
 */
enum cohort_level {
	COHORT_GIVE_BACKGROUND = 1,
	COHORT_GIVE_ALL = 2,
};

#ifdef CONFIG_COHORT

DECLARE_STATIC_KEY_FALSE(cohort_key);
DECLARE_STATIC_KEY_FALSE(cohort_region_key);
DECLARE_STATIC_KEY_FALSE(cohort_cpb_key);
DECLARE_STATIC_KEY_FALSE(cohort_buffer_key);
DECLARE_STATIC_KEY_FALSE(cohort_reclaim_key);
DECLARE_STATIC_KEY_FALSE(cohort_scope_key);
DECLARE_STATIC_KEY_FALSE(cohort_sizing_key);
DECLARE_STATIC_KEY_FALSE(cohort_kswapd_off_key);

/* The process is in the background: a bit of mm->flags that nobody else uses. */
#define COHORT_MMF_BACKGROUND	61

/* True while a block may exist: frees have to look. */
static inline bool cohort_enabled(void)
{
	return static_branch_unlikely(&cohort_key);
}

/* True while the region scheme takes new blocks: allocations have to look. */
static inline bool cohort_region_enabled(void)
{
	return static_branch_unlikely(&cohort_region_key);
}

/* True while the contiguous page buffer takes new sets. */
static inline bool cohort_cpb_enabled(void)
{
	return static_branch_unlikely(&cohort_cpb_key);
}

/* True while right-sized reclaim chooses pages. */
static inline bool cohort_scope_enabled(void)
{
	return static_branch_unlikely(&cohort_scope_key);
}

#ifdef CONFIG_COHORT_VNODE
DECLARE_STATIC_KEY_FALSE(cohort_lend_key);

/* True since virtual nodes lent memory for the first time. */
static inline bool cohort_vnode_lending(void)
{
	return static_branch_unlikely(&cohort_lend_key);
}
#else
static inline bool cohort_vnode_lending(void)
{
	return false;
}
#endif

void __cohort_vnode_returned(unsigned long pfn);
struct folio *__cohort_vnode_borrow(struct address_space *mapping, gfp_t gfp);
void __cohort_vnode_moved(unsigned long from, unsigned long to);

#ifdef CONFIG_COHORT_PCPA
DECLARE_STATIC_KEY_FALSE(cohort_pcpa_key);
DECLARE_STATIC_KEY_FALSE(cohort_pcpa_take_key);
DECLARE_STATIC_KEY_FALSE(cohort_trail_key);

/*
 * A process that is a client of the area: a bit of mm->flags that nobody else
 * uses.
 */
#define COHORT_ENTITLED_BIT	60

/* True while there is an area: frees have to look. */
static inline bool cohort_pcpa_there(void)
{
	return static_branch_unlikely(&cohort_pcpa_key);
}

/* True while pages are taken from it: allocations have to look. */
static inline bool cohort_pcpa_taking(void)
{
	return static_branch_unlikely(&cohort_pcpa_take_key);
}
#else
static inline bool cohort_pcpa_there(void)
{
	return false;
}

static inline bool cohort_pcpa_taking(void)
{
	return false;
}
#endif

bool __cohort_pcpa_free(struct page *page, unsigned long pfn, unsigned int order);
unsigned long __cohort_pcpa_next(unsigned long pfn);
bool __cohort_pcpa_parked(const struct page *page);
bool __cohort_pcpa_transient(unsigned long pfn);
void cohort_area_disown(unsigned long start_pfn, unsigned long end_pfn);
unsigned long cohort_area_give_free(void);
struct folio *__cohort_pcpa_cache(struct address_space *mapping, gfp_t gfp);
struct page *__cohort_pcpa_rmqueue(gfp_t gfp, unsigned int order,
				   unsigned int alloc_flags,
				   const struct alloc_context *ac, bool last);
unsigned long __cohort_pcpa_pull(struct pglist_data *pgdat);
bool __cohort_pcpa_suffices(unsigned long pfn);
void __cohort_pcpa_refault(const struct address_space *mapping, unsigned long index);
int cohort_pcpa_is_entitled(struct task_struct *task);
int cohort_pcpa_entitle(struct task_struct *task, bool on);
struct page *cohort_pcpa_alloc(unsigned long nr, gfp_t gfp);
void cohort_pcpa_free(struct page *page, unsigned long nr);
bool __cohort_free_page(struct page *page, unsigned long pfn);
unsigned long __cohort_next_pfn(unsigned long pfn);
bool __cohort_page_parked(const struct page *page);
void __cohort_dissolve_range(unsigned long start_pfn, unsigned long end_pfn);
void __cohort_drain(void);
unsigned long __cohort_give_back(const struct alloc_context *ac,
				 enum cohort_level level);
struct page *__cohort_steal_page(gfp_t gfp, unsigned int alloc_flags,
				 const struct alloc_context *ac);
struct page *cohort_rmqueue(struct cohort_domain *dom, gfp_t gfp,
			    unsigned int alloc_flags,
			    const struct alloc_context *ac);
struct cohort_domain *__cohort_anon_domain(struct mm_struct *mm);
struct cohort_domain *__cohort_cache_domain(struct address_space *mapping,
					    gfp_t gfp);
struct cohort_domain *__cohort_kernel_domain(int nid);
unsigned int __cohort_vmalloc_pages(gfp_t gfp, int nid, unsigned int nr,
				    struct page **pages);
struct page *cohort_vmalloc_page_noprof(gfp_t gfp, int nid);
struct page *cohort_zspage_alloc_noprof(gfp_t gfp);
struct folio *__cohort_cache_alloc(struct cohort_domain *dom, gfp_t gfp);
void __cohort_mm_exit(struct mm_struct *mm);
void cohort_class_changed(struct task_struct *task);
void __cohort_shrink_cache(struct pglist_data *pgdat, void *sc);
void __cohort_pull(struct pglist_data *pgdat, void *sc);
bool __cohort_spared(struct folio *folio, void *sc);
void __cohort_kswapd_ran(unsigned long nr);
unsigned long __cohort_kswapd_target(struct pglist_data *pgdat, int highest_zoneidx,
				     int order, unsigned long stock);
unsigned long long __cohort_watermark_gap(unsigned long long stock);
struct page *cohort_alloc_pages_noprof(gfp_t gfp, int nid, nodemask_t *nodemask,
				       struct cohort_domain *dom);
struct page *cohort_buffer_alloc_noprof(gfp_t gfp, unsigned int order);

/**
 * cohort_free_page() - park a page in its block instead of freeing it
 * @page: page that went through free_pages_prepare(), refcount 0
 * @pfn: its frame number
 * @order: its order; blocks hand out order-0 pages only, the area any
 *
 * Context: any but NMI; no zone, pcp or lru lock held.
 * Return: true if the page was parked, false if the buddy allocator gets it.
 */
static inline bool cohort_free_page(struct page *page, unsigned long pfn,
				    unsigned int order)
{
	if (cohort_pcpa_there() && __cohort_pcpa_free(page, pfn, order))
		return true;
	if (cohort_vnode_lending() && !order)
		__cohort_vnode_returned(pfn);
	return cohort_enabled() && !order && __cohort_free_page(page, pfn);
}

/**
 * cohort_next_pfn() - where compaction goes on
 * @pfn: frame its scanner stands on
 *
 * Compaction would move pages out of a block one by one into plain buddy
 * pages; blocks are compacted by their own domain.  The block may go away
 * between two calls; the answer never lies before @pfn.
 *
 * Return: @pfn, or the first frame after the block that holds it.
 */
static inline unsigned long cohort_next_pfn(unsigned long pfn)
{
	if (cohort_pcpa_there())
		pfn = __cohort_pcpa_next(pfn);
	return cohort_enabled() ? __cohort_next_pfn(pfn) : pfn;
}

/**
 * cohort_page_parked() - is this page parked in a block?
 * @page: any page; the answer may be stale when it arrives
 *
 * For /proc/kpageflags.
 */
static inline bool cohort_page_parked(const struct page *page)
{
	if (cohort_pcpa_there() && __cohort_pcpa_parked(page))
		return true;
	return cohort_enabled() && __cohort_page_parked(page);
}

/**
 * cohort_dissolve_range() - no block may cover these frames any longer
 * @start_pfn: first frame
 * @end_pfn: one past the last frame
 *
 * For isolation (CMA, offline) and hwpoison: parked pages become buddy pages,
 * pages in use are freed to the buddy allocator when their time comes.
 *
 * Context: no locks of the page allocator held.
 */
static inline void cohort_dissolve_range(unsigned long start_pfn,
					 unsigned long end_pfn)
{
	if (cohort_pcpa_there())
		cohort_area_disown(start_pfn, end_pfn);
	if (cohort_enabled())
		__cohort_dissolve_range(start_pfn, end_pfn);
}

/**
 * cohort_drain() - return what no process has reserved
 *
 * Beside the per-CPU lists of the page allocator, whenever those are drained.
 *
 * Context: no locks of the page allocator held.
 */
static inline void cohort_drain(void)
{
	if (cohort_cpb_enabled())
		__cohort_drain();
}

/**
 * cohort_give_back() - return parked pages to the buddy allocator
 * @ac: the request that is short of memory
 * @level: how far to go
 *
 * Return: pages given back, in any zone; 0 the next time if nothing changed,
 * so a request they do not help retries once and no more.
 */
static inline unsigned long cohort_give_back(const struct alloc_context *ac,
					     enum cohort_level level)
{
	unsigned long nr = cohort_enabled() ? __cohort_give_back(ac, level) : 0;

	if (cohort_pcpa_there() && level == COHORT_GIVE_ALL)
		nr += cohort_area_give_free();
	return nr;
}

/**
 * cohort_steal_page() - one parked page before a request reclaims or fails
 * @gfp: the request
 * @order: its order; only single pages are parked
 * @alloc_flags: ALLOC_* of the request
 * @ac: its context
 *
 * Atomic requests cannot give blocks back and must not starve beside them.
 * Others spare themselves direct reclaim: a sweep moves a page that landed in
 * a cache region on, and unmovable pages go where unmovable ones are.
 */
static inline struct page *cohort_steal_page(gfp_t gfp, unsigned int order,
					     unsigned int alloc_flags,
					     const struct alloc_context *ac)
{
	if (cohort_pcpa_taking() && !order) {
		struct page *page = __cohort_pcpa_rmqueue(gfp, 0, alloc_flags, ac, true);

		if (page)
			return page;
	}
	if (cohort_enabled() && !order)
		return __cohort_steal_page(gfp, alloc_flags, ac);
	return NULL;
}

/**
 * cohort_pcpa_rmqueue() - the area, where the free lists had nothing
 * @gfp: the request
 * @order: its order
 * @alloc_flags: ALLOC_* of the request
 * @ac: its context
 *
 * A large piece for an entitled process; or a single page that can be moved,
 * on loan, before kswapd is woken.
 */
static inline struct page *cohort_pcpa_rmqueue(gfp_t gfp, unsigned int order,
					       unsigned int alloc_flags,
					       const struct alloc_context *ac)
{
	if (cohort_pcpa_taking())
		return __cohort_pcpa_rmqueue(gfp, order, alloc_flags, ac, false);
	return NULL;
}

/**
 * cohort_pcpa_transient() - must this page be able to leave at any time?
 * @pfn: its frame
 *
 * Those are not pinned for long; what a client has may be.
 */
static inline bool cohort_pcpa_transient(unsigned long pfn)
{
	return cohort_pcpa_there() && __cohort_pcpa_transient(pfn);
}

/**
 * cohort_pcpa_refault() - a page of a file is read that was there before
 * @mapping: the file
 * @index: the page's place
 */
static inline void cohort_pcpa_refault(const struct address_space *mapping,
				       unsigned long index)
{
#ifdef CONFIG_COHORT_PCPA
	if (static_branch_unlikely(&cohort_trail_key))
		__cohort_pcpa_refault(mapping, index);
#endif
}

/**
 * cohort_anon_domain() - where anonymous pages of @mm belong
 * @mm: owner of the page, not necessarily current->mm
 * @order: order wanted; large folios go past the domains
 *
 * Return: a domain, NULL for the stock allocator.
 */
static inline struct cohort_domain *cohort_anon_domain(struct mm_struct *mm,
						       unsigned int order)
{
	if (cohort_enabled() && !order)
		return __cohort_anon_domain(mm);
	return NULL;
}

/**
 * cohort_kernel_domain() - where a page belongs whose caller did not say
 * @gfp: the request
 * @order: its order; slab that wants more than a page goes past the domains
 * @nid: preferred node
 *
 * Only what the kernel keeps for itself, or until it is shrunk: what can be moved,
 * and what must lie low in memory, goes past the domains as well.
 *
 * Return: a domain, NULL for the stock allocator.
 */
static inline struct cohort_domain *cohort_kernel_domain(gfp_t gfp,
						unsigned int order, int nid)
{
	if (cohort_region_enabled() && !order &&
	    !(gfp & (__GFP_MOVABLE | __GFP_DMA | __GFP_DMA32)))
		return __cohort_kernel_domain(nid);
	return NULL;
}

/**
 * cohort_mm_exit() - the last user of @mm is gone and its pages are unmapped
 * @mm: address space after exit_mmap()
 */
static inline void cohort_mm_exit(struct mm_struct *mm)
{
	/* Not the static key: the domain outlives switching off. */
	if (mm->cohort)
		__cohort_mm_exit(mm);
}

/**
 * cohort_shrink_cache() - reclaim whole regions of the cache domain, fill the area
 * @pgdat: node under reclaim
 * @sc: struct scan_control of the reclaimer
 *
 * Called after a batch of LRU reclaim with no lock held.  Without it, cache
 * pages freed one by one would park in half-used regions, free memory would
 * not rise, and reclaim would not stop.
 */
static inline void cohort_shrink_cache(struct pglist_data *pgdat, void *sc)
{
	if (cohort_pcpa_taking())
		__cohort_pull(pgdat, sc);
	if (cohort_region_enabled())
		__cohort_shrink_cache(pgdat, sc);
}

/**
 * cohort_spared() - would it help nobody to reclaim a page now?
 * @folio: folio of an LRU list, whose lock is held
 * @sc: struct scan_control of the reclaimer
 */
static inline bool cohort_spared(struct folio *folio, void *sc)
{
	return cohort_pcpa_taking() && __cohort_spared(folio, sc);
}

/**
 * cohort_kswapd_ran() - kswapd is done with a node for now
 * @nr: pages it reclaimed since it woke up
 */
static inline void cohort_kswapd_ran(unsigned long nr)
{
	if (static_branch_unlikely(&cohort_reclaim_key))
		__cohort_kswapd_ran(nr);
}

/**
 * cohort_kswapd_stopped() - is kswapd to stay asleep?
 *
 * For measurements without it; it still wakes where processes wait for it
 * because the reserves are half gone.
 */
static inline bool cohort_kswapd_stopped(void)
{
	return static_branch_unlikely(&cohort_kswapd_off_key);
}

/**
 * cohort_kswapd_target() - pages kswapd aims at in one go
 * @pgdat: node
 * @highest_zoneidx: highest zone that may be used
 * @order: what it was woken for
 * @stock: what it would aim at
 */
static inline unsigned long cohort_kswapd_target(struct pglist_data *pgdat,
						 int highest_zoneidx, int order,
						 unsigned long stock)
{
	if (static_branch_unlikely(&cohort_sizing_key))
		return __cohort_kswapd_target(pgdat, highest_zoneidx, order, stock);
	return stock;
}

/**
 * cohort_watermark_gap() - pages between two watermarks of a zone
 * @stock: as stock has it
 */
static inline unsigned long long cohort_watermark_gap(unsigned long long stock)
{
	if (static_branch_unlikely(&cohort_sizing_key))
		return __cohort_watermark_gap(stock);
	return stock;
}

/**
 * cohort_own_mark() - how much must stay free when a process takes a page
 * @zone: zone
 * @which: the watermark it is held to
 *
 * At the mark that protects the reserves a boost says nothing about need: it
 * is there for kswapd, which was woken at the mark above.
 */
static inline unsigned long cohort_own_mark(const struct zone *zone, unsigned int which)
{
	if (static_branch_unlikely(&cohort_sizing_key) && which == WMARK_MIN)
		return zone->_watermark[WMARK_MIN];
	return wmark_pages(zone, which);
}

/**
 * cohort_touched_stays() - is one use enough for a mapped file page to stay?
 */
static inline bool cohort_touched_stays(void)
{
	return cohort_scope_enabled();
}

/**
 * cohort_mm_background() - is what this process touches no reason to keep it?
 * @mm: address space; its process is in the background or was when it died
 */
static inline bool cohort_mm_background(const struct mm_struct *mm)
{
	return IS_ENABLED(CONFIG_64BIT) && cohort_scope_enabled() &&
	       test_bit(COHORT_MMF_BACKGROUND, &mm->flags);
}

/**
 * cohort_vmalloc_pages() - single pages of a vmalloc area
 * @gfp: flags
 * @nid: preferred node or NUMA_NO_NODE
 * @nr: pages wanted
 * @pages: receives them
 *
 * Return: pages allocated; the caller gets the rest elsewhere.
 */
static inline unsigned int cohort_vmalloc_pages(gfp_t gfp, int nid,
						unsigned int nr,
						struct page **pages)
{
	if (cohort_region_enabled())
		return __cohort_vmalloc_pages(gfp, nid, nr, pages);
	return 0;
}

#define cohort_buffer_alloc(...) \
	alloc_hooks(cohort_buffer_alloc_noprof(__VA_ARGS__))

/**
 * cohort_buffer_order() - how large the next piece of an I/O buffer may be
 * @order: of the last piece
 * @left: bytes of the buffer that are missing
 *
 * The heap never asks for more than it got last, as on the free lists nothing
 * larger turns up.  With regions memory is short for a moment, not in pieces:
 * as soon as kswapd has caught up, or an app has died, there are blocks.  So the
 * heap asks anew after each MiB, and not for every page.
 *
 * Return: the largest order to ask for.
 */
static inline unsigned int cohort_buffer_order(unsigned int order, unsigned long left)
{
	if (cohort_region_enabled() && IS_ALIGNED(left, SZ_1M))
		return MAX_PAGE_ORDER;
	return order;
}

#define cohort_zspage_alloc(...) \
	alloc_hooks(cohort_zspage_alloc_noprof(__VA_ARGS__))

#else /* !CONFIG_COHORT */

static inline bool cohort_free_page(struct page *page, unsigned long pfn,
				    unsigned int order)
{
	return false;
}

static inline unsigned long cohort_next_pfn(unsigned long pfn)
{
	return pfn;
}

static inline bool cohort_page_parked(const struct page *page)
{
	return false;
}

static inline void cohort_dissolve_range(unsigned long start_pfn,
					 unsigned long end_pfn) { }

static inline void cohort_drain(void) { }

static inline unsigned long cohort_give_back(const struct alloc_context *ac,
					     enum cohort_level level)
{
	return 0;
}

static inline struct page *cohort_steal_page(gfp_t gfp, unsigned int order,
					     unsigned int alloc_flags,
					     const struct alloc_context *ac)
{
	return NULL;
}

static inline struct page *cohort_rmqueue(struct cohort_domain *dom, gfp_t gfp,
					  unsigned int alloc_flags,
					  const struct alloc_context *ac)
{
	return NULL;
}

static inline struct page *cohort_pcpa_rmqueue(gfp_t gfp, unsigned int order,
					       unsigned int alloc_flags,
					       const struct alloc_context *ac)
{
	return NULL;
}

static inline bool cohort_pcpa_transient(unsigned long pfn)
{
	return false;
}

static inline void cohort_pcpa_refault(const struct address_space *mapping,
				       unsigned long index) { }

static inline void cohort_mm_exit(struct mm_struct *mm) { }
static inline void cohort_class_changed(struct task_struct *task) { }
static inline void cohort_shrink_cache(struct pglist_data *pgdat, void *sc) { }

static inline bool cohort_spared(struct folio *folio, void *sc)
{
	return false;
}

static inline void cohort_kswapd_ran(unsigned long nr) { }

static inline bool cohort_kswapd_stopped(void)
{
	return false;
}

static inline unsigned long cohort_kswapd_target(struct pglist_data *pgdat,
						 int highest_zoneidx, int order,
						 unsigned long stock)
{
	return stock;
}

static inline unsigned long long cohort_watermark_gap(unsigned long long stock)
{
	return stock;
}

static inline unsigned long cohort_own_mark(const struct zone *zone, unsigned int which)
{
	return wmark_pages(zone, which);
}

static inline bool cohort_touched_stays(void)
{
	return false;
}

static inline bool cohort_mm_background(const struct mm_struct *mm)
{
	return false;
}

static inline unsigned int cohort_vmalloc_pages(gfp_t gfp, int nid,
						unsigned int nr,
						struct page **pages)
{
	return 0;
}

#define cohort_buffer_alloc(...) alloc_pages(__VA_ARGS__)

static inline unsigned int cohort_buffer_order(unsigned int order, unsigned long left)
{
	return order;
}

#define cohort_zspage_alloc(...) alloc_page(__VA_ARGS__)

#endif /* CONFIG_COHORT */

#ifdef CONFIG_COHORT_VNODE

DECLARE_STATIC_KEY_FALSE(cohort_vnode_key);

/*
 * The role of a process: bits of mm->flags that nobody else uses, 0 the default
 * role, else its number.  So it needs no field, and a remote fault finds it.
 */
#define COHORT_VNODE_SHIFT	56
#define COHORT_VNODE_BITS	(0xfUL << COHORT_VNODE_SHIFT)

/* A line of /proc/PID/vnode with its NUL. */
#define COHORT_VNODE_LINE	24

bool cohort_vnode_wanted(void);
int cohort_vnode_nid(u64 start, int phys_nid, u64 *end);
void cohort_vnode_commit(void);
const char *cohort_vnode_name(struct task_struct *task);
int cohort_vnode_move(struct task_struct *task, const char *name);
nodemask_t *__cohort_vnode_bind(gfp_t gfp, int *nid, nodemask_t *nodemask);
bool __cohort_vnode_oom_eligible(struct task_struct *task,
				 const nodemask_t *nodemask);
bool __cohort_vnode_take_back(gfp_t gfp, unsigned int order,
			      const nodemask_t *nodemask);
bool __cohort_vnode_compact_due(struct pglist_data *pgdat);
bool __cohort_vnode_stays_whole(const struct pglist_data *pgdat);

/**
 * cohort_vnode_bind() - keep a request in the memory of its role
 * @gfp: the request
 * @nid: the node to begin with; may be changed
 * @nodemask: what a memory policy allows, or NULL
 *
 * In front of everything else, so that reclaim, kswapd and the OOM killer see
 * the nodes too.
 *
 * Return: the nodes for the request, NULL for all.
 */
static inline nodemask_t *cohort_vnode_bind(gfp_t gfp, int *nid,
					    nodemask_t *nodemask)
{
	if (static_branch_unlikely(&cohort_vnode_key))
		return __cohort_vnode_bind(gfp, nid, nodemask);
	return nodemask;
}

/**
 * cohort_vnode_inherit() - a child has the role of its parent, over exec it stays
 * @mm: new address space, not in use yet; current has one
 */
static inline void cohort_vnode_inherit(struct mm_struct *mm)
{
	mm->flags |= READ_ONCE(current->mm->flags) & COHORT_VNODE_BITS;
}

/**
 * cohort_vnode_take_back() - lent memory before anybody reclaims
 * @gfp: the request that found its nodes short
 * @order: its order
 * @nodemask: its nodes
 *
 * Context: where @gfp may be allocated.
 * Return: true if it is worth looking again.
 */
static inline bool cohort_vnode_take_back(gfp_t gfp, unsigned int order,
					  const nodemask_t *nodemask)
{
	return cohort_vnode_lending() && nodemask &&
	       __cohort_vnode_take_back(gfp, order, nodemask);
}

/**
 * cohort_vnode_moved() - a page was migrated
 * @from: its old frame
 * @to: its new frame
 */
static inline void cohort_vnode_moved(unsigned long from, unsigned long to)
{
	if (cohort_vnode_lending())
		__cohort_vnode_moved(from, to);
}

/**
 * cohort_vnode_compact_due() - shall kcompactd compact this node now?
 * @pgdat: its node
 */
static inline bool cohort_vnode_compact_due(struct pglist_data *pgdat)
{
	return static_branch_unlikely(&cohort_vnode_key) && __cohort_vnode_compact_due(pgdat);
}

/**
 * cohort_vnode_stays_whole() - does an operator want this node in one piece?
 * @pgdat: the node
 */
static inline bool cohort_vnode_stays_whole(const struct pglist_data *pgdat)
{
	return static_branch_unlikely(&cohort_vnode_key) && __cohort_vnode_stays_whole(pgdat);
}

/**
 * cohort_vnode_decides() - does the role decide who may be killed?
 * @nodemask: the nodes that are short of memory, or NULL
 */
static inline bool cohort_vnode_decides(const nodemask_t *nodemask)
{
	return static_branch_unlikely(&cohort_vnode_key) && nodemask;
}

#else /* !CONFIG_COHORT_VNODE */

static inline bool cohort_vnode_wanted(void)
{
	return false;
}

static inline void cohort_vnode_commit(void) { }
static inline void cohort_vnode_inherit(struct mm_struct *mm) { }

static inline nodemask_t *cohort_vnode_bind(gfp_t gfp, int *nid,
					    nodemask_t *nodemask)
{
	return nodemask;
}

static inline bool cohort_vnode_take_back(gfp_t gfp, unsigned int order,
					  const nodemask_t *nodemask)
{
	return false;
}

static inline void cohort_vnode_moved(unsigned long from, unsigned long to) { }

static inline bool cohort_vnode_compact_due(struct pglist_data *pgdat)
{
	return false;
}

static inline bool cohort_vnode_stays_whole(const struct pglist_data *pgdat)
{
	return false;
}

static inline bool cohort_vnode_decides(const nodemask_t *nodemask)
{
	return false;
}

static inline bool __cohort_vnode_oom_eligible(struct task_struct *task,
					       const nodemask_t *nodemask)
{
	return true;
}

#endif /* CONFIG_COHORT_VNODE */

#ifdef CONFIG_COHORT_PCPA
/**
 * cohort_pcpa_inherit() - a child of a client is one, over exec it stays
 * @mm: new address space, not in use yet; current has one
 */
static inline void cohort_pcpa_inherit(struct mm_struct *mm)
{
	mm->flags |= READ_ONCE(current->mm->flags) & (1UL << COHORT_ENTITLED_BIT);
}
#else
static inline void cohort_pcpa_inherit(struct mm_struct *mm) { }
#endif
#endif /* _LINUX_COHORT_H */
