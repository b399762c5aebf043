/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cohort: pages that will be freed together live together.
 *
 * The calls of the memory manager: a predicate, which is a static key, and an entry for each
 * event.  Without CONFIG_COHORT, or without the option of a scheme, the predicate is constant and
 * the compiler drops the call, so no stubs are needed.  Each entry is described where it is
 * defined: in mm/cohort/hooks.c if several schemes hear of the event.  Drivers include
 * <linux/cohort_pcpa.h>.
 */
#ifndef _LINUX_COHORT_H
#define _LINUX_COHORT_H

#include <linux/gfp.h>
#include <linux/jump_label.h>
#include <linux/mm_types.h>
#include <linux/mmzone.h>
#include <linux/sched.h>

struct alloc_context;
struct cohort_domain;
struct folio_batch;
struct scan_control;
#define COHORT_ALLOC_BREACH	(IS_ENABLED(CONFIG_COHORT) ? 1U << 30 : 0) /* ALLOC_*: owned, too */
#define COHORT_ALLOC_LAST	(COHORT_ALLOC_BREACH | COHORT_ALLOC_BREACH >> 1) /* or it kills */

/*
 * Bits of mm->flags, at the end of a long that is full below 32: the role of a process,
 * 0 the default one, else its number; a client; in the background; left a role; said its own.
 */
#define COHORT_VNODE_SHIFT	56
#define COHORT_VNODE_BITS	(0xcfULL << COHORT_VNODE_SHIFT)
#define COHORT_ENTITLED_BIT	60
#define COHORT_MMF_BACKGROUND	61

DECLARE_STATIC_KEY_FALSE(cohort_owner_key);
DECLARE_STATIC_KEY_FALSE(cohort_key);
DECLARE_STATIC_KEY_FALSE(cohort_region_key);
DECLARE_STATIC_KEY_FALSE(cohort_cpb_key);
DECLARE_STATIC_KEY_FALSE(cohort_reclaim_key);
DECLARE_STATIC_KEY_FALSE(cohort_scope_key);
DECLARE_STATIC_KEY_FALSE(cohort_sizing_key);
DECLARE_STATIC_KEY_FALSE(cohort_kswapd_off_key);
DECLARE_STATIC_KEY_FALSE(cohort_vnode_key);
DECLARE_STATIC_KEY_FALSE(cohort_lend_key);
DECLARE_STATIC_KEY_FALSE(cohort_pcpa_key);
DECLARE_STATIC_KEY_FALSE(cohort_pcpa_take_key);
DECLARE_STATIC_KEY_FALSE(cohort_copies_key);

#define COHORT_IS(option, key)	(IS_BUILTIN(option) && static_branch_unlikely(&(key)))
#define COHORT_WHEN(is, call)	do { if (is) call; } while (0)

/* May a frame have an owner: a block, the area, or a node that lent it?  May there be a block? */
#define cohort_owners()		COHORT_IS(CONFIG_COHORT, cohort_owner_key)
#define cohort_enabled()	COHORT_IS(CONFIG_COHORT, cohort_key)
/* Does the region scheme, or the contiguous page buffer, take new blocks? */
#define cohort_region_enabled()	COHORT_IS(CONFIG_COHORT, cohort_region_key)
#define cohort_cpb_enabled()	COHORT_IS(CONFIG_COHORT, cohort_cpb_key)
#define cohort_placing()	(cohort_region_enabled() || cohort_cpb_enabled())
/* Right-sized reclaim: does it choose pages, does it size runs? */
#define cohort_scope_enabled()	COHORT_IS(CONFIG_COHORT, cohort_scope_key)
#define cohort_sizing()		COHORT_IS(CONFIG_COHORT, cohort_sizing_key)
/* Are there virtual nodes?  Did one ever lend memory? */
#define cohort_vnode_enabled()	COHORT_IS(CONFIG_COHORT_VNODE, cohort_vnode_key)
#define cohort_vnode_lending()	COHORT_IS(CONFIG_COHORT_VNODE, cohort_lend_key)
/* Is there an area?  Are pages taken from it?  Are evicted pages copied? */
#define cohort_pcpa_there()	COHORT_IS(CONFIG_COHORT_PCPA, cohort_pcpa_key)
#define cohort_pcpa_taking()	COHORT_IS(CONFIG_COHORT_PCPA, cohort_pcpa_take_key)
#define cohort_copies()		COHORT_IS(CONFIG_COHORT_PCPA, cohort_copies_key)

/* A page is freed, after free_pages_prepare(): true if it was taken care of. */
bool __cohort_free_page(struct page *page, unsigned long pfn, unsigned int order);
#define cohort_free_page(...)	(cohort_owners() && __cohort_free_page(__VA_ARGS__))
/* Many are: those in blocks leave the batch.  Pages that may be lent go one by one. */
void __cohort_free_folios(struct folio_batch *folios);
#define cohort_free_folios(f) \
	COHORT_WHEN(cohort_enabled() && !cohort_vnode_lending(), __cohort_free_folios(f))

/* Under zone->lock, a free piece is linked, was unlinked, gets another migratetype: */
bool __cohort_link(struct page *page, struct zone *zone, unsigned int order, int mt);
bool __cohort_unlinked(struct page *page, struct zone *zone, unsigned int order, int mt);
bool __cohort_moved(struct page *page, struct zone *zone, unsigned int order, int old, int new);
#define cohort_link(...)	(cohort_enabled() && __cohort_link(__VA_ARGS__))
#define cohort_unlinked(...)	(cohort_enabled() && __cohort_unlinked(__VA_ARGS__))
#define cohort_moved(...)	(cohort_enabled() && __cohort_moved(__VA_ARGS__))

/* The order of the block in which a page merges, 0 for none; does it stay there? */
unsigned int __cohort_merge(unsigned long pfn, unsigned int order);
bool __cohort_home(unsigned long pfn);
#define cohort_merge(...)	(cohort_enabled() ? __cohort_merge(__VA_ARGS__) : 0)
#define cohort_home(pfn, order, limit) (IS_BUILTIN(CONFIG_COHORT) && (limit) && \
	(order) == (limit) && ((limit) = 0, __cohort_home(pfn)))
/* Up to which order are pages freed in one piece?  Fixed blocks are not larger. */
#define COHORT_FREE_ORDER	8
#define cohort_free_order(o)	(cohort_enabled() ? min_t(int, o, COHORT_FREE_ORDER) : (o))

/* Has anything in a pageblock an owner?  Is this page free and has one?  Then it is counted. */
bool __cohort_owned_pageblock(const struct page *page);
bool __cohort_page_parked(const struct page *page);
bool __cohort_hole(const struct page *page, int nr, int *num_movable);
#define cohort_owned_pageblock(page) (cohort_enabled() && __cohort_owned_pageblock(page))
#define cohort_page_parked(page) (cohort_enabled() && __cohort_page_parked(page))
#define cohort_hole(...)	(cohort_enabled() && __cohort_hole(__VA_ARGS__))
/* Where a scanner of compaction goes on that stands on a frame. */
unsigned long cohort_block_after(unsigned long pfn, int order);
#define cohort_next_pfn(pfn, order) (cohort_enabled() ? cohort_block_after(pfn, order) : (pfn))

/* All free pages of a zone that have an owner are looked at, under zone->lock. */
void __cohort_each_free(struct zone *zone, void (*visit)(struct page *page));
#define cohort_each_free(...)	COHORT_WHEN(cohort_enabled(), __cohort_each_free(__VA_ARGS__))

/* Frames are poisoned: their blocks, if they are not fixed, would never come home. */
void __cohort_dissolve_range(unsigned long start_pfn, unsigned long end_pfn);
#define cohort_dissolve_range(a, b) COHORT_WHEN(cohort_owners(), __cohort_dissolve_range(a, b))

/* The per-CPU lists of a zone are drained; is there a reason to? */
void cohort_zone_drain(unsigned int cpu, struct zone *zone);
bool __cohort_drain_due(unsigned int cpu, const struct zone *zone);
#define cohort_drain_zone(...)	COHORT_WHEN(cohort_enabled(), cohort_zone_drain(__VA_ARGS__))
#define cohort_drain_due(...)	(cohort_enabled() && __cohort_drain_due(__VA_ARGS__))
bool __cohort_packs_for(const struct alloc_context *ac, gfp_t gfp, unsigned int order);
#define cohort_packs_for(...)	(cohort_enabled() && __cohort_packs_for(__VA_ARGS__))
bool __cohort_drain_for(const struct alloc_context *ac, gfp_t gfp);
#define cohort_drain_for(...) \
	((cohort_enabled() || cohort_vnode_enabled()) && __cohort_drain_for(__VA_ARGS__))
/* What this CPU has at hand and does not use goes back, now and then. */
bool __cohort_age(struct zone *zone);
#define cohort_age(zone)	(cohort_enabled() && __cohort_age(zone))

/* A page is asked for: of the request's domain; after the free lists had none; or of another. */
struct page *__cohort_rmqueue(struct cohort_domain *dom, gfp_t gfp, unsigned int alloc_flags,
			      const struct alloc_context *ac);
struct page *__cohort_pcpa_rmqueue(gfp_t gfp, unsigned int order, unsigned int alloc_flags,
				   const struct alloc_context *ac, bool last);
struct page *__cohort_breach(gfp_t gfp, unsigned int order, unsigned int alloc_flags,
			     const struct alloc_context *ac);
#define cohort_rmqueue(...)	(cohort_enabled() ? __cohort_rmqueue(__VA_ARGS__) : NULL)
#define cohort_pcpa_rmqueue(...) \
	(cohort_pcpa_taking() ? __cohort_pcpa_rmqueue(__VA_ARGS__, false) : NULL)
#define cohort_breach(...)	(cohort_owners() ? __cohort_breach(__VA_ARGS__) : NULL)

/* Where an anonymous page belongs, and one whose caller did not say; NULL: anywhere. */
struct cohort_domain *__cohort_anon_domain(struct mm_struct *mm);
struct cohort_domain *__cohort_kernel_domain(void);
#define cohort_anon_domain(mm, order) \
	(cohort_placing() && !(order) ? __cohort_anon_domain(mm) : NULL)
#define cohort_kernel_domain(gfp, order) \
	(cohort_region_enabled() && !(order) && \
	 !((gfp) & (__GFP_MOVABLE | __GFP_DMA | __GFP_DMA32)) ? __cohort_kernel_domain() : NULL)

/* Single pages of a vmalloc area; a page for compressed memory. */
unsigned int __cohort_vmalloc_pages(gfp_t gfp, int nid, unsigned int nr, struct page **pages);
struct page *cohort_zspage_alloc_noprof(gfp_t gfp);
#define cohort_vmalloc_pages(...) \
	(cohort_region_enabled() ? __cohort_vmalloc_pages(__VA_ARGS__) : 0)
#define cohort_zspage_alloc(gfp) \
	alloc_hooks(IS_ENABLED(CONFIG_COHORT) ? cohort_zspage_alloc_noprof(gfp) : \
						alloc_pages_noprof(gfp, 0))

/* oom_score_adj of a process was written, under oom_adj_mutex. */
void __cohort_class_changed(struct task_struct *task);
#define cohort_class_changed(task) \
	COHORT_WHEN(cohort_placing() || cohort_scope_enabled(), __cohort_class_changed(task))

/* A batch of LRU reclaim is over; would it help to reclaim a folio now? */
void __cohort_shrink_cache(struct pglist_data *pgdat, struct scan_control *sc, bool file);
bool __cohort_spared(struct folio *folio, struct scan_control *sc, unsigned long skipped);
#define cohort_shrink_cache(...) COHORT_WHEN(cohort_owners(), __cohort_shrink_cache(__VA_ARGS__))
#define cohort_spared(...)	(cohort_pcpa_taking() && __cohort_spared(__VA_ARGS__))

/* kswapd: how much is free when it has done enough, what it aims at, what it did; the gap. */
unsigned long cohort_zone_aim(struct zone *zone, unsigned long mark);
void __cohort_kswapd_size(struct pglist_data *pgdat, struct scan_control *sc);
void __cohort_kswapd_ran(int nid, unsigned long nr);
unsigned long __cohort_high_mark(const struct zone *zone);
#define cohort_high_mark(z)	(cohort_enabled() ? __cohort_high_mark(z) : high_wmark_pages(z))
#define cohort_balance_mark(zone, mark) (cohort_enabled() ? cohort_zone_aim(zone, mark) : (mark))
#define cohort_kswapd_size(...)	COHORT_WHEN(cohort_sizing(), __cohort_kswapd_size(__VA_ARGS__))
#define cohort_kswapd_ran(...) \
	COHORT_WHEN(COHORT_IS(CONFIG_COHORT, cohort_reclaim_key), __cohort_kswapd_ran(__VA_ARGS__))
#define cohort_kswapd_stopped()	COHORT_IS(CONFIG_COHORT, cohort_kswapd_off_key)
unsigned long __cohort_watermark_gap(struct zone *zone, unsigned long stock);
#define cohort_watermark_gap(z, gap) (cohort_sizing() ? __cohort_watermark_gap(z, gap) : (gap))

/* The mark for a process that takes a page: a boost of the lowest one is kswapd's. */
#define cohort_own_mark(zone, which) (cohort_sizing() && (which) == WMARK_MIN ? \
	(zone)->_watermark[WMARK_MIN] : wmark_pages(zone, which))

/* Is one use enough for a mapped file page to stay?  And one by this mapping none? */
#define cohort_touched_stays()	cohort_scope_enabled()
bool __cohort_of_file(const struct vm_area_struct *vma);
#define cohort_vma_background(vma) (cohort_scope_enabled() && \
	test_bit(COHORT_MMF_BACKGROUND, &(vma)->vm_mm->flags) && __cohort_of_file(vma))

/* Must a page be able to leave at any time?  One that was evicted is read again; is evicted. */
bool __cohort_pcpa_transient(unsigned long pfn);
void __cohort_pcpa_refault(struct folio *folio);
#define cohort_pcpa_transient(pfn) (cohort_pcpa_there() && __cohort_pcpa_transient(pfn))
#define cohort_pcpa_refault(folio, gfp, shadow) COHORT_WHEN((shadow) && !((gfp) & __GFP_WRITE) && \
	(cohort_pcpa_there() || cohort_copies()), __cohort_pcpa_refault(folio))
void cohort_copies_evict(const struct address_space *mapping, struct folio *folio, bool keep);
#define cohort_page_evicted(mapping, folio, shadow) \
	COHORT_WHEN(cohort_copies() && (shadow), cohort_copies_evict(mapping, folio, true))

/* Which nodes serve a request; lent memory comes back before any is reclaimed; a page moved. */
nodemask_t *__cohort_vnode_bind(gfp_t gfp, unsigned int order, int *nid, nodemask_t *mask,
				nodemask_t *both);
bool __cohort_vnode_take_back(gfp_t gfp, unsigned int order, const nodemask_t *nodemask);
#define cohort_vnode_bind(gfp, order, nid, mask) (cohort_vnode_enabled() ? \
	__cohort_vnode_bind(gfp, order, nid, mask, &(nodemask_t){}) : (mask))
#define cohort_vnode_take_back(gfp, order, nodemask) \
	(cohort_vnode_lending() && (nodemask) && __cohort_vnode_take_back(gfp, order, nodemask))
void __cohort_vnode_moved(unsigned long from, unsigned long to);
#define cohort_vnode_moved(a, b) COHORT_WHEN(cohort_vnode_lending(), __cohort_vnode_moved(a, b))

/* Does the role decide which process may be killed?  This one?  Any?  Is kswapd to kill none? */
bool __cohort_vnode_oom_eligible(struct task_struct *task, const nodemask_t *nodemask);
#define cohort_vnode_decides(nodemask) (cohort_vnode_enabled() && (nodemask))
bool __cohort_vnode_hopeless(const nodemask_t *nodemask);
#define cohort_vnode_hopeless(mask) (cohort_vnode_decides(mask) && __cohort_vnode_hopeless(mask))
bool __cohort_no_kill(struct pglist_data *pgdat, int highest_zoneidx);
#define cohort_no_kill(...) \
	((cohort_enabled() || cohort_vnode_enabled()) && __cohort_no_kill(__VA_ARGS__))

/* A new address space has the role of its parent's, and is a client as it was; exec, too. */
void __cohort_mm_inherit(struct task_struct *task, struct mm_struct *mm);
#define cohort_mm_inherit(...)	COHORT_WHEN(IS_ENABLED(CONFIG_COHORT), __cohort_mm_inherit(__VA_ARGS__))

#ifdef CONFIG_COHORT
/* Free pages of owners, which no watermark counts; what of all that is free fixed blocks keep. */
#define cohort_unusable_free(zone) (cohort_enabled() ? \
	READ_ONCE((zone)->cohort_soft) + READ_ONCE((zone)->cohort_reserved) : 0)

static inline unsigned long cohort_breachable(const struct zone *zone, unsigned long free)
{
	return free - (cohort_enabled() ? min(free, READ_ONCE(zone->cohort_reserved)) : 0);
}

#define cohort_mm_init(mm)	((mm)->cohort = NULL)	/* a new address space has none yet */
/* The pages of an address space are unmapped.  Its domain outlives switching off. */
void __cohort_mm_exit(struct mm_struct *mm);
#define cohort_mm_exit(mm)	COHORT_WHEN((mm)->cohort, __cohort_mm_exit(mm))
#else
#define cohort_unusable_free(zone) 0UL
#define cohort_breachable(zone, free) (free)
#define cohort_mm_init(mm)	do { } while (0)
#define cohort_mm_exit(mm)	do { } while (0)
#endif

#endif /* _LINUX_COHORT_H */
