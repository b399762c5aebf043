// SPDX-License-Identifier: GPL-2.0
/*
 * The top floor: events of the memory manager that more than one scheme wants to
 * know of, and what the command line switches on.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/oom.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/topology.h>
#include <linux/workqueue.h>

#include "../internal.h"
#include "cohort.h"
#include "cpb/cpb.h"
#include "dmabuf/buffer.h"
#include "host/filemap.h"
#include "pcpa/pcpa.h"
#include "region/region.h"
#include "rightsize/rightsize.h"
#include "vnode/vnode.h"

/* A few pages in the lists of CPUs put a kill off once in so long. */
#define PUT_OFF		HZ

/* Blocks are packed for so long in one node before a process is killed. */
#define PACK_FOR	(HZ / 4)

static unsigned int cohort_boot_schemes __initdata;
static bool cohort_boot_bad __initdata;

/**
 * __cohort_free_page() - a page goes back to its owner
 * @page: page that went through free_pages_prepare(), refcount 0
 * @pfn: its frame number
 * @order: its order
 *
 * Context: any but NMI; no zone, pcp or lru lock held.
 * Return: true if the page was taken care of, false if it has no owner.
 */
bool __cohort_free_page(struct page *page, unsigned long pfn, unsigned int order)
{
	if (cohort_vnode_lending() && !order)
		cohort_vnode_returned(pfn);
	return cohort_enabled() && cohort_owned_free(page, pfn, order);
}

/**
 * __cohort_no_kill() - does kswapd kill no process, though all that it may reclaim is young?
 * @pgdat: the node
 * @highest_zoneidx: the highest zone that it balances
 *
 * Nothing says which processes have memory there, and requests that get none have one killed
 * in their virtual node.  No process dies for the headroom of blocks.
 */
bool __cohort_no_kill(struct pglist_data *pgdat, int highest_zoneidx)
{
	int i;

	if (cohort_vnode_enabled())
		return true;
	for (i = 0; i <= highest_zoneidx; i++) {
		struct zone *zone = &pgdat->node_zones[i];

		if (managed_zone(zone) &&
		    zone_watermark_ok(zone, 0, __cohort_high_mark(zone), highest_zoneidx, 0))
			return true;
	}
	return false;
}

/* Has any zone of a node, up to one, enough for a request that would kill a process? */
static bool cohort_node_enough(int nid, int top, unsigned int order)
{
	int i;

	for (i = 0; i <= top; i++) {
		struct zone *zone = &NODE_DATA(nid)->node_zones[i];

		if (managed_zone(zone) &&
		    zone_watermark_ok(zone, order, cohort_own_mark(zone, WMARK_MIN), top, 0))
			return true;
	}
	return false;
}

struct cohort_packs cohort_packs[MAX_NUMNODES];
DECLARE_BITMAP(cohort_packs_busy, MAX_NUMNODES);

/*
 * Blocks that come home are free for a request only above the mark, which may be far.  It goes on
 * until there is enough, which another may have made, or nothing to pack in any domain.
 * Return: there is enough.
 */
static bool cohort_packs_in(int nid, int top, unsigned int order)
{
	struct cohort_packs *packs = &cohort_packs[nid];
	unsigned long end = jiffies + PACK_FOR;
	bool any = false, more = true, enough = false;
	unsigned int at = 0;

	/* Tasks that try in vain, one after the other, are waited for like one. */
	if (time_after(jiffies, packs->until + PUT_OFF))
		WRITE_ONCE(packs->until, jiffies + 2 * PACK_FOR);
	while (more && !enough && time_before(jiffies, end) && !fatal_signal_pending(current)) {
		int got = cohort_pack_look(nid, top, &at);

		if (got > 0)
			WRITE_ONCE(packs->home, jiffies);
		any |= got >= 0;
		more = at || any;
		any &= !!at;
		enough = cohort_node_enough(nid, top, order);
		cond_resched();
	}
	if (enough) {
		WRITE_ONCE(packs->home, jiffies);
		WRITE_ONCE(packs->until, jiffies - PUT_OFF - 1);
	}
	return enough;
}

/**
 * __cohort_packs_for() - pack blocks for a request for which a process would be killed
 * @ac: the request
 * @gfp: its flags
 * @order: its order; a single page of a block would have been handed out before
 *
 * Compaction leaves blocks alone.  Pages move, and what a driver is told of that may wait for
 * its device, for as long as a user likes: meanwhile others must be able to kill.  So it is
 * done before oom_lock is taken, by one task at a time in each node.  The others wait for it:
 * for a node where nothing comes of it, half a second in any second and a half.
 *
 * Context: as for direct compaction; without oom_lock.
 * Return: true for a task that should wait, as if another killed.
 */
bool __cohort_packs_for(const struct alloc_context *ac, gfp_t gfp, unsigned int order)
{
	bool waits = false, enough;
	int nid = NUMA_NO_NODE;
	struct zoneref *z;
	struct zone *zone;

	lockdep_assert_not_held(&oom_lock);
	/* For none of these is a process killed. */
	if (!order || order > PAGE_ALLOC_COSTLY_ORDER || (gfp & GFP_KERNEL) != GFP_KERNEL ||
	    (gfp & (__GFP_RETRY_MAYFAIL | __GFP_THISNODE)) || ac->highest_zoneidx < ZONE_NORMAL ||
	    (current->flags & PF_DUMPCORE) || !cohort_region_enabled())
		return false;
	for_each_zone_zonelist_nodemask(zone, z, ac->zonelist, ac->highest_zoneidx, ac->nodemask) {
		if (zone_to_nid(zone) == nid || !cohort_cpuset_allows(zone, gfp, ALLOC_CPUSET))
			continue;
		nid = zone_to_nid(zone);
		if (test_and_set_bit_lock(nid, cohort_packs_busy)) {
			waits |= time_before(jiffies, READ_ONCE(cohort_packs[nid].until));
			continue;
		}
		enough = cohort_packs_in(nid, ac->highest_zoneidx, order);
		clear_bit_unlock(nid, cohort_packs_busy);
		if (enough)
			return false;
	}
	return waits && !fatal_signal_pending(current);
}

/**
 * __cohort_drain_for() - empty the lists that CPUs have of the zones of a request
 * @ac: the request
 * @gfp: its flags
 *
 * Zone by zone: a drain of all zones leaves at once while another task is at one, and a
 * process would be killed beside the pages that this one has not come to.
 *
 * Of all that ask in vain the one drains that would kill a process.  What puts a kill off is as
 * much as lies between the marks, or the first that came for a while: after each few pages that
 * reclaim frees into such a list processes would reclaim all over, and no process is killed.
 * So does a block that came home lately in a node of the request, for whichever it was.
 *
 * Context: sleeps.  Caller holds oom_lock.
 * Return: true, for a look at what there is now.
 */
bool __cohort_drain_for(const struct alloc_context *ac, gfp_t gfp)
{
	static unsigned long put_off[MAX_NUMNODES], last = INITIAL_JIFFIES;
	unsigned long *until = NULL;
	long gained = 0, gap = 0;
	bool packed = false;
	struct zoneref *z;
	struct zone *zone;

	/* A zone for it may be on none of the nodes that it may have. */
	if (!zonelist_zone(ac->preferred_zoneref))
		return false;
	/* Without __GFP_FS it kills nothing yet, and asks again at once. */
	if (!(gfp & __GFP_FS) && !cohort_vnode_hopeless(ac->nodemask) &&
	    !time_after(jiffies, last))
		return false;
	last = jiffies;
	for_each_zone_zonelist_nodemask(zone, z, ac->zonelist, ac->highest_zoneidx, ac->nodemask) {
		/* What a cpuset leaves out is neither of use nor a reason. */
		if (!cohort_cpuset_allows(zone, gfp, ALLOC_CPUSET))
			continue;
		if (!until)
			until = &put_off[zone_to_nid(zone)];
		packed |= time_before(jiffies, READ_ONCE(cohort_packs[zone_to_nid(zone)].home) +
					       PUT_OFF);
		gained -= zone_page_state(zone, NR_FREE_PAGES);
		drain_all_pages(zone);
		gained += zone_page_state(zone, NR_FREE_PAGES);
		gap += high_wmark_pages(zone) - min_wmark_pages(zone);
	}
	if (!until || packed)
		return packed;
	if (gained < gap && *until && time_before(jiffies, *until))
		return false;
	*until = jiffies + PUT_OFF;
	return true;
}

/**
 * __cohort_dissolve_range() - nothing may own these frames any longer
 * @start_pfn: first frame
 * @end_pfn: one past the last frame
 *
 * For hwpoison: a block that lost a frame for good would never come home, nor would what
 * is lent: a poisoned page does not reach the free hook.  Fixed blocks need not, and go on
 * with the other frames.
 *
 * Context: no locks of the page allocator held.
 */
void __cohort_dissolve_range(unsigned long start_pfn, unsigned long end_pfn)
{
	unsigned long pfn;

	for (pfn = start_pfn; pfn < end_pfn; pfn++)
		cohort_lent_return(pfn);
	cohort_range_dissolve(start_pfn, end_pfn);
}

/**
 * __cohort_breach() - a free page that has an owner, where the ordinary ones do not do
 * @gfp: the request
 * @order: its order
 * @alloc_flags: ALLOC_* of the request
 * @ac: its context
 */
struct page *__cohort_breach(gfp_t gfp, unsigned int order, unsigned int alloc_flags,
			     const struct alloc_context *ac)
{
	bool reserve = gfp_pfmemalloc_allowed(gfp) &&
		       !(alloc_flags & (ALLOC_NO_WATERMARKS | ALLOC_OOM));
	bool area = !reserve && cohort_pcpa_taking() && order <= COHORT_BREACH_ORDER;
	bool loan = area && cohort_pcpa_will_leave(order, ac);
	struct page *page = NULL;

	/* What leaves again is lent of the area; of what stays, that which nothing else serves. */
	if (loan)
		page = __cohort_pcpa_rmqueue(gfp, order, alloc_flags, ac, true);
	if (!page && cohort_enabled())
		page = cohort_blocks_breach(gfp, order, alloc_flags, ac);
	if (!page && area && !loan)
		page = __cohort_pcpa_rmqueue(gfp, order, alloc_flags, ac, true);
	return page;
}

static struct folio *cohort_area_folio(struct address_space *mapping, gfp_t gfp)
{
	int nid = numa_mem_id();

	return __cohort_pcpa_cache(mapping, gfp, cohort_vnode_bind(gfp, 0, &nid, NULL));
}

/**
 * __cohort_cache_folio() - a single page for the page cache
 * @mapping: its file
 * @gfp: how it is asked for
 */
struct folio *__cohort_cache_folio(struct address_space *mapping, gfp_t gfp)
{
	struct cohort_domain *dom = NULL;
	struct folio *folio = NULL;

	if (cohort_pcpa_taking())
		folio = cohort_area_folio(mapping, gfp);
	if (!folio && cohort_vnode_lending())
		folio = cohort_vnode_borrow(mapping, gfp);
	if (folio)
		return folio;
	if (cohort_region_enabled())
		dom = cohort_region_cache(mapping, gfp);
	return dom ? cohort_cache_alloc(dom, gfp) : filemap_alloc_folio_noprof(gfp, 0);
}

static struct page *cohort_zspage_within(gfp_t gfp, nodemask_t *nodes)
{
	if (cohort_region_enabled())
		return cohort_region_zspage(gfp, nodes);
	return nodes ? __alloc_pages_noprof(gfp, 0, first_node(*nodes), nodes) :
		       alloc_pages_noprof(gfp, 0);
}

/* The node nearest to this CPU. */
static int cohort_zspage_nearest(const nodemask_t *nodes)
{
	int here = numa_mem_id(), best = first_node(*nodes), nid;

	for_each_node_mask(nid, *nodes)
		if (node_distance(here, nid) < node_distance(here, best))
			best = nid;
	return best;
}

/*
 * With the reserves, for which the page allocator forgets which nodes were allowed; but not that a
 * request is for one node alone.
 */
static struct page *cohort_zspage_reserve(gfp_t gfp, const nodemask_t *nodes)
{
	nodemask_t left = *nodes, node;
	struct page *page = NULL;

	while (!page && !nodes_empty(left)) {
		int nid = cohort_zspage_nearest(&left);

		node_clear(nid, left);
		node = nodemask_of_node(nid);
		page = cohort_zspage_within(gfp | __GFP_THISNODE, &node);
	}
	return page;
}

/**
 * cohort_zspage_alloc() - a page for compressed memory
 * @gfp: flags
 *
 * What a role swaps out stays in its node: no reclaim could drop it from another's.  A task that
 * reclaims has the reserves of all its nodes when none has a page above its watermark.
 */
struct page *cohort_zspage_alloc_noprof(gfp_t gfp)
{
	nodemask_t *nodes = cohort_vnode_enabled() ? cohort_vnode_swap_nodes() : NULL;
	struct page *page;

	if (!nodes || !(current->flags & PF_MEMALLOC))
		return cohort_zspage_within(gfp, nodes);
	page = cohort_zspage_within(gfp | __GFP_NOMEMALLOC | __GFP_NOWARN, nodes);
	return page ?: cohort_zspage_reserve(gfp, nodes);
}
EXPORT_SYMBOL_GPL(cohort_zspage_alloc_noprof);

/**
 * __cohort_anon_domain() - where anonymous pages of an address space belong
 * @mm: owner of the page, not necessarily current->mm
 *
 * Return: a domain, NULL for the stock allocator.
 */
struct cohort_domain *__cohort_anon_domain(struct mm_struct *mm)
{
	struct cohort_domain *dom = cohort_mm_domain(mm);

	/* With the contiguous page buffer, its reservation, whatever the process is. */
	if (!dom || cohort_cpb_enabled())
		return dom;
	return cohort_region_enabled() ? cohort_region_anon(dom) : NULL;
}

static void cohort_role_note(struct task_struct *task)
{
	if (cohort_scope_enabled())
		cohort_scope_note(task->mm, task->signal->oom_score_adj);
	cohort_class_note(task);
}

/**
 * __cohort_class_changed() - oom_score_adj was written
 * @task: any thread of the process; caller holds oom_adj_mutex
 *
 * Sharers of an address space that did not vfork get the same value from
 * __set_oom_adj(), so the last write speaks for all of them.
 */
void __cohort_class_changed(struct task_struct *task)
{
	struct task_struct *p;

	if (cohort_borrows_mm(task))
		return;
	p = find_lock_task_mm(task);
	if (!p)
		return;
	cohort_role_note(p);
	task_unlock(p);
}

/**
 * __cohort_mm_inherit() - a process forks, or executes a program
 * @task: the process, or its parent as long as that has no child
 * @mm: its new address space, NULL if it has that of its parent, or none
 *
 * oom_score_adj is inherited, too, and so is what it means.  An address space is made long
 * before it is used, and hears again then: meanwhile another role may have been given.  A
 * program's does so under the task lock, a child's when it gets its number, under
 * tasklist_lock, which is held to give a role: no child is in between.
 */
void __cohort_mm_inherit(struct task_struct *task, struct mm_struct *mm)
{
	u64 mask = (IS_ENABLED(CONFIG_COHORT_VNODE) ? COHORT_VNODE_BITS : 0) |
		   (IS_ENABLED(CONFIG_COHORT_PCPA) ? BIT_ULL(COHORT_ENTITLED_BIT) : 0);

	if (!mm)
		return;
	if (mask && current->mm)
		set_mask_bits(&mm->flags, mask, READ_ONCE(current->mm->flags) & mask);
	cohort_vnode_inherit(mm, task == current);
	if (cohort_scope_enabled())
		cohort_scope_note(mm, READ_ONCE(task->signal->oom_score_adj));
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

struct folio *cohort_cache_alloc(struct cohort_domain *dom, gfp_t gfp)
{
	return page_rmappable_folio(cohort_alloc_pages_noprof(gfp | __GFP_COMP,
							numa_node_id(), NULL, dom));
}
#endif

static int __init cohort_refuse(const char *name, const char *text, const char *expected)
{
	pr_err("%s=%s: expected %s; staying off\n", name, text ?: "", expected);
	cohort_boot_bad = true;
	return 0;
}

static int __init cohort_setup(char *text)
{
	if (!text || cohort_parse_schemes(text, &cohort_boot_schemes)) {
		pr_err("cohort=%s: unknown scheme, expected off, region, cpb or rightsize; staying off\n",
		       text ?: "");
		cohort_boot_bad = true;
	}
	return 0;
}
early_param("cohort", cohort_setup);

static int __init cohort_order_setup(const char *name, const char *text, bool (*ok)(long order),
				     int min, int max, unsigned int *value)
{
	char expected[16];
	long order;

	if (!text || kstrtol(text, 10, &order) || !ok(order)) {
		snprintf(expected, sizeof(expected), "%d to %d", min, max);
		return cohort_refuse(name, text, expected);
	}
	*value = order;
	return 0;
}

static int __init cohort_region_order_setup(char *text)
{
	return cohort_order_setup("cohort.region_order", text, cohort_order_ok,
				  COHORT_MIN_ORDER, COHORT_MAX_ORDER, &cohort_region_order);
}
early_param("cohort.region_order", cohort_region_order_setup);

static int __init cohort_heap_orders_setup(char *text)
{
	if (!text || cohort_parse_heap_orders(text, cohort_buffer_orders))
		return cohort_refuse("cohort.heap_orders", text,
				     "three orders that fall from 9 at most to 0");
	return 0;
}
early_param("cohort.heap_orders", cohort_heap_orders_setup);

static int __init cohort_region_vmalloc_setup(char *text)
{
	if (!text || kstrtobool(text, &cohort_region_vmalloc))
		return cohort_refuse("cohort.region_vmalloc", text, "0 or 1");
	return 0;
}
early_param("cohort.region_vmalloc", cohort_region_vmalloc_setup);

static int __init cohort_cpb_order_setup(char *text)
{
	return cohort_order_setup("cohort.cpb_order", text, cohort_set_order_ok,
				  COHORT_MIN_SET_ORDER, COHORT_MAX_SET_ORDER,
				  &cohort_cpb_order);
}
early_param("cohort.cpb_order", cohort_cpb_order_setup);

static int __init cohort_cpb_refill_setup(char *text)
{
	int choice = text ? match_string(cohort_cpb_refills, 2, text) : -EINVAL;

	if (choice < 0)
		return cohort_refuse("cohort.cpb_refill", text, "split or remnants");
	cohort_cpb_remnants = choice;
	return 0;
}
early_param("cohort.cpb_refill", cohort_cpb_refill_setup);

static void __init cohort_boot(void)
{
	const unsigned int both = COHORT_SCHEME_REGION | COHORT_SCHEME_CPB;

	if ((cohort_boot_schemes & both) == both) {
		pr_err("region and cpb exclude each other; staying off\n");
		return;
	}
	if (cohort_boot_schemes & COHORT_SCHEME_REGION)
		cohort_region_switch(true);
	if (cohort_boot_schemes & COHORT_SCHEME_CPB)
		cohort_cpb_switch(true);
	if (cohort_boot_schemes & COHORT_SCHEME_RIGHTSIZE)
		cohort_rightsize_switch(true);
}

static int __init cohort_groups_init(void)
{
	return cohort_sysfs_add(&cohort_region_group) ?:
	       cohort_sysfs_add(&cohort_cpb_group) ?:
	       cohort_sysfs_add(&cohort_buffer_group) ?:
	       cohort_sysfs_add(&cohort_reclaim_group) ?:
	       cohort_sysfs_add(&cohort_rightsize_group);
}

static int __init cohort_init(void)
{
	int err;

	cohort_wq = alloc_workqueue("cohort", WQ_UNBOUND | WQ_FREEZABLE, 1);
	cohort_process_wq = alloc_workqueue("cohort_process", WQ_UNBOUND | WQ_FREEZABLE, 1);
	if (!cohort_wq || !cohort_process_wq)
		return -ENOMEM;
	err = cohort_sysfs_init() ?: cohort_groups_init() ?:
	      cohort_vnode_sysfs_init(cohort_kobj) ?: cohort_pcpa_sysfs_init(cohort_kobj);
	/* Files that were made before one that failed switch things on that queue work. */
	if (err)
		return err;
	cohort_debugfs_init();
	cohort_pcpa_init();
	if (!cohort_boot_bad)
		cohort_boot();
	return 0;
}
subsys_initcall(cohort_init);
