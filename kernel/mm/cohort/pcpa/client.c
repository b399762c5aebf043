// SPDX-License-Identifier: GPL-2.0
/*
 * The users of the page-cache-preferred area, and the order they are served in.
 *
 * After Kim, Koo, Lee and Geraci, "Memory Management Scheme to Improve
 * Utilization Efficiency and Provide Fast Contiguous Allocation without a
 * Statically Reserved Area", TODAES 2015, algorithms 1 and 3.  The page cache of
 * all processes while no client needs the area; then clients, until none has
 * asked for a while.  Beyond the paper: pages that can be moved away are lent
 * before any task reclaims for lack of memory, so that an area that finds no
 * clean page cache is not memory lost.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/cpuset.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mempolicy.h>
#include <linux/oom.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/stringify.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>

#include "../../internal.h"
#include "../cohort.h"
#include "../host/filemap.h"
#include "pcpa.h"

/* A client's single request clears so much at once: the next ones find it. */
#define AHEAD		COHORT_CHUNK

/* Free pages that the page cache may still need are not lent. */
#define LEND_KEEP	64UL

/* Part of the area that may be given to what would get no page, and may never leave. */
#define GIVE_SHIFT	2

/* Part of the area that may be lent for files that are being written. */
#define WRITE_SHIFT	2

/* Free pages elsewhere, above the low watermark, that files take which are mapped. */
#define MAPPED_SPARE	64UL

/* Clean cache elsewhere, as a part of the area, that is dropped before one lends. */
#define PLENTY_SHIFT	2

/* So long what is given before a kill is given at once. */
#define HOPELESS_TIME	(HZ / 10)

int cohort_pcpa_node = NUMA_NO_NODE;
unsigned long cohort_pcpa_below = ULONG_MAX;
unsigned int cohort_pcpa_min_order = 4;
unsigned int cohort_pcpa_timer_ms = 500;
unsigned long cohort_pcpa_user_max;

static DEFINE_SPINLOCK(fsm_lock);
static struct cohort_pcpa_fsm fsm;

/* Until then reclaim is not tried for each page: a moment ago it had none to give. */
static unsigned long hopeless = INITIAL_JIFFIES;

/* Pages that requests under way want; the most since the timer was set, and the time before. */
static unsigned long wanted, wanted_most[2];

/* A size of the command line, and perhaps its place. */
struct boot_size {
	u64 size;
	u64 base;
	bool given;
};

static struct boot_size boot_area __initdata = { .base = COHORT_ANY_BASE };
static struct boot_size boot_contig __initdata = { .base = COHORT_ANY_BASE };
static bool boot_bad __initdata;

/* state and timer */

static void cohort_pcpa_timer_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(timer, cohort_pcpa_timer_work);

static void cohort_pcpa_set_timer(void)
{
	queue_delayed_work(system_wq, &timer, msecs_to_jiffies(READ_ONCE(cohort_pcpa_timer_ms)));
}

static void cohort_pcpa_timer_work(struct work_struct *work)
{
	unsigned long flags;
	bool again;

	spin_lock_irqsave(&fsm_lock, flags);
	again = cohort_pcpa_timeout(&fsm);
	WRITE_ONCE(wanted_most[1], again ? wanted_most[0] : 0);
	WRITE_ONCE(wanted_most[0], wanted);
	spin_unlock_irqrestore(&fsm_lock, flags);
	if (again)
		cohort_pcpa_set_timer();
}

/**
 * cohort_pcpa_state() - the users that are served now
 */
enum cohort_pcpa_state cohort_pcpa_state(void)
{
	return READ_ONCE(fsm.state);
}

/**
 * cohort_pcpa_want() - a client asks for pages
 * @pages: how many, until cohort_pcpa_done(); 0: it is at it, and they are known
 *
 * From now on free pages are for clients.
 */
void cohort_pcpa_want(unsigned long pages)
{
	unsigned long flags;
	bool turn;

	spin_lock_irqsave(&fsm_lock, flags);
	turn = cohort_pcpa_request(&fsm);
	if (turn)
		wanted_most[1] = wanted_most[0] = 0;
	wanted += pages;
	WRITE_ONCE(wanted_most[0], max(wanted_most[0], wanted));
	spin_unlock_irqrestore(&fsm_lock, flags);
	if (turn) {
		cohort_pcpa_set_timer();
		cohort_pcpa_tidy_for_client();
	}
}

/**
 * cohort_pcpa_done() - a client's request is over
 * @pages: how many it was for, as it said to cohort_pcpa_want()
 */
void cohort_pcpa_done(unsigned long pages)
{
	unsigned long flags;

	spin_lock_irqsave(&fsm_lock, flags);
	wanted -= pages;
	spin_unlock_irqrestore(&fsm_lock, flags);
}

/**
 * cohort_pcpa_got() - a client was given pages
 * @pages: how many; 0: none yet, and it is still at it
 */
void cohort_pcpa_got(unsigned long pages)
{
	unsigned long flags;

	spin_lock_irqsave(&fsm_lock, flags);
	cohort_pcpa_granted(&fsm);
	spin_unlock_irqrestore(&fsm_lock, flags);
	cohort_pcpa_announced_met(pages);
	count_vm_events(COHORT_PCPA_CLIENT, pages);
}

/**
 * cohort_pcpa_spare() - are there free pages outside of the area?
 * @nid: node
 * @pages: so many, in one zone, before kswapd is woken
 */
bool cohort_pcpa_spare(int nid, unsigned long pages)
{
	struct zone *zones = NODE_DATA(nid)->node_zones;
	int z;

	for (z = 0; z < MAX_NR_ZONES; z++)
		if (populated_zone(&zones[z]) &&
		    zone_watermark_ok(&zones[z], 0, low_wmark_pages(&zones[z]) + pages,
				      MAX_NR_ZONES - 1, 0))
			return true;
	return false;
}

/* page cache */

/* Nodes of the task's role, its cpuset and its memory policy. */
static bool cohort_pcpa_node_ok(int nid, const nodemask_t *nodes)
{
	if (cohort_task_policy() || cpuset_do_page_mem_spread())
		return false;
	return (!nodes || node_isset(nid, *nodes)) &&
	       (!cpusets_enabled() || node_isset(nid, cpuset_current_mems_allowed));
}

/*
 * Memory of another machine's part is worse than an ordinary page of the own one, while there
 * is such.  Virtual nodes are no farther from one another than from themselves.
 */
static bool cohort_pcpa_far(int nid)
{
	int own = numa_mem_id();

	return node_distance(own, nid) > LOCAL_DISTANCE && cohort_pcpa_spare(own, 0);
}

static int cohort_area_node(void)
{
	struct zone *zone = READ_ONCE(cohort_area.zone);

	return zone ? zone_to_nid(zone) : NUMA_NO_NODE;
}

/*
 * A mapped page is used again, is more work to drop, and a task waits for it
 * when it is read again: it goes elsewhere while that costs no process anything.
 */
static bool cohort_pcpa_better_elsewhere(struct address_space *mapping, int nid)
{
	return mapping_mapped(mapping) && cohort_pcpa_spare(nid, MAPPED_SPARE);
}

/**
 * __cohort_pcpa_cache() - a page of the area for the page cache
 * @mapping: file it will belong to
 * @gfp: the request
 * @nodes: nodes of the task's role, NULL for all
 *
 * Return: a folio, or NULL: it is to come from elsewhere.
 */
struct folio *__cohort_pcpa_cache(struct address_space *mapping, gfp_t gfp,
				  const nodemask_t *nodes)
{
	struct page *page;
	int nid;

	if (cohort_pcpa_state() != COHORT_PCACHE_ONLY || !cohort_reads_only(mapping, gfp))
		return NULL;
	nid = cohort_area_node();
	if (nid == NUMA_NO_NODE || (IS_ENABLED(CONFIG_NUMA) && !cohort_pcpa_node_ok(nid, nodes)) ||
	    cohort_pcpa_far(nid) || cohort_pcpa_better_elsewhere(mapping, nid))
		return NULL;
	page = cohort_area_take_cache();
	if (!page || !cohort_area_prep(page, 0, gfp | __GFP_COMP, 0))
		return NULL;
	count_vm_event(COHORT_PCPA_CACHE);
	cohort_pcpa_tidy_soon();
	return page_folio(page);
}

/* loans */

static bool cohort_pcpa_cache_is_scarce(const struct cohort_pcpa_sizes *sizes)
{
	unsigned long outside = global_node_page_state(NR_ACTIVE_FILE) +
				global_node_page_state(NR_INACTIVE_FILE);

	outside -= min(outside, sizes->cache);
	return outside < sizes->size >> PLENTY_SHIFT;
}

/* Zones, nodes and cpuset of a request have the area in them; a client's heap names none. */
static bool cohort_area_allowed(gfp_t gfp, unsigned int alloc_flags,
				const struct alloc_context *ac)
{
	struct zone *zone = READ_ONCE(cohort_area.zone);

	return zone && (!ac || (zone_idx(zone) <= ac->highest_zoneidx &&
				cohort_node_ok(ac, zone_to_nid(zone)) &&
				cohort_zone_allowed(zone, gfp, alloc_flags, ac)));
}

/**
 * cohort_pcpa_will_leave() - may a page be lent of the area for this request?
 * @order: its order
 * @ac: its context
 *
 * It is moved away, as single pages are, when a client needs its place.
 */
bool cohort_pcpa_will_leave(unsigned int order, const struct alloc_context *ac)
{
	return !order && ac->migratetype == MIGRATE_MOVABLE &&
	       !(current->flags & (PF_MEMALLOC | PF_MEMALLOC_PIN));
}

static bool cohort_pcpa_may_lend(gfp_t gfp, bool last)
{
	struct cohort_pcpa_sizes sizes;

	if (!last && !(gfp & __GFP_DIRECT_RECLAIM))
		return false;
	cohort_pcpa_sizes(&sizes);
	if (sizes.free <= LEND_KEEP)
		return false;
	/* Dirty for a while; written back it is page cache like any other. */
	if (gfp & __GFP_WRITE)
		return sizes.lent < sizes.size >> WRITE_SHIFT;
	/* While there is clean cache elsewhere, kswapd has something to fill the area with. */
	return last || cohort_pcpa_cache_is_scarce(&sizes);
}

/*
 * Algorithm 1, the client's part: the ordinary free lists had nothing, so what
 * clean page cache there is in the area makes room.
 */
static struct page *cohort_pcpa_client_page(gfp_t gfp, unsigned int order, unsigned int alloc_flags,
					    const struct alloc_context *ac)
{
	struct page *page;

	if (!cohort_area_allowed(gfp, alloc_flags, ac))
		return NULL;
	cohort_pcpa_want(1UL << order);
	page = cohort_area_take(order, COHORT_USE_CLIENT);
	if (!page) {
		cohort_quick_reclaim(max(1UL << order, AHEAD), order);
		page = cohort_area_take(order, COHORT_USE_CLIENT);
	}
	cohort_pcpa_done(1UL << order);
	if (!page || !cohort_area_prep(page, order, gfp, alloc_flags))
		return NULL;
	/* Without a context it is the heap's.  Freed, it is uncharged, whichever task has it then. */
	if (!ac && memcg_kmem_charge_page(page, COHORT_CHARGE_GFP, order)) {
		__free_pages(page, order);
		return NULL;
	}
	cohort_pcpa_got(1UL << order);
	return page;
}

static bool cohort_pcpa_may_reclaim(gfp_t gfp)
{
	const gfp_t need = __GFP_DIRECT_RECLAIM | __GFP_FS | __GFP_IO;

	return (gfp & need) == need && !(current->flags & PF_MEMALLOC) && in_task();
}

/* I/O buffers, not huge pages or large folios of files: those can be moved and are not asked for. */
static bool cohort_pcpa_entitled_to(gfp_t gfp, unsigned int order)
{
	return !(gfp & __GFP_MOVABLE) && order >= READ_ONCE(cohort_pcpa_min_order) &&
	       order <= pageblock_order && current->mm &&
	       test_bit(COHORT_ENTITLED_BIT, &current->mm->flags);
}

/*
 * A request that does not wait would fail.  Its page may never leave, so only a part of the
 * area is for that, and nothing for a request that has another way.
 */
static bool cohort_pcpa_may_give(gfp_t gfp)
{
	struct cohort_pcpa_sizes sizes;

	cohort_pcpa_sizes(&sizes);
	return !(gfp & (__GFP_DIRECT_RECLAIM | __GFP_NORETRY)) && sizes.free > LEND_KEEP &&
	       READ_ONCE(cohort_area.nr_given) < sizes.size >> GIVE_SHIFT;
}

/* The task that has frozen all others, before it lets devices sleep: it kills no process. */
static bool cohort_pcpa_hibernates(gfp_t gfp)
{
	return current->flags & PF_SUSPEND_TASK && gfp & __GFP_IO;
}

/* As in __alloc_pages_may_oom(): for other requests no process is killed, and they may fail. */
static bool cohort_pcpa_kills(gfp_t gfp, const struct alloc_context *ac)
{
	return (gfp & __GFP_NOFAIL) ||
	       (!(gfp & (__GFP_RETRY_MAYFAIL | __GFP_THISNODE)) &&
		ac->highest_zoneidx >= ZONE_NORMAL && !(current->flags & PF_DUMPCORE));
}

/*
 * Is far more free than clients have wanted at a time, lately, or announce?  One with a small quota
 * can keep the area closed for ever, and no process dies beside what no client wants.
 */
static bool cohort_pcpa_unwanted(void)
{
	unsigned long most = max(READ_ONCE(wanted_most[0]), READ_ONCE(wanted_most[1]));
	struct cohort_pcpa_sizes sizes;

	cohort_pcpa_sizes(&sizes);
	return sizes.free / 2 > most + cohort_pcpa_announced_pages();
}

/*
 * Is a process about to be killed for a request, or would one have been, a moment ago?  To let each
 * page be asked for as long, by all of reclaim, would stand still beside free memory.
 */
static bool cohort_pcpa_last_resort(gfp_t gfp, unsigned int alloc_flags)
{
	const gfp_t kind = gfp & (__GFP_DIRECT_RECLAIM | __GFP_NORETRY);

	return cohort_before_kill(alloc_flags) ||
	       (kind == __GFP_DIRECT_RECLAIM && time_before(jiffies, READ_ONCE(hopeless)));
}

static bool cohort_pcpa_may_have(gfp_t gfp, unsigned int order, unsigned int alloc_flags,
				 const struct alloc_context *ac, bool lend, bool last)
{
	bool resort = last && cohort_pcpa_last_resort(gfp, alloc_flags);

	if (cohort_pcpa_state() != COHORT_PCACHE_ONLY && !(resort && cohort_pcpa_unwanted()))
		return false;
	/* Hibernation takes pages until there are none, and each would come after reclaim. */
	if (last && cohort_pcpa_hibernates(gfp))
		return false;
	/* It has waited, or another one has in its place, whatever its flags say now. */
	if (resort)
		return cohort_pcpa_kills(gfp, ac) || (lend && cohort_pcpa_may_lend(gfp, last));
	return lend ? cohort_pcpa_may_lend(gfp, last) :
		      last && !order && cohort_pcpa_may_give(gfp);
}

/**
 * __cohort_pcpa_rmqueue() - a page of the area, where the free lists had nothing
 * @gfp: the request
 * @order: its order
 * @alloc_flags: ALLOC_* of the request
 * @ac: its context
 * @last: there is nothing else, and @order is COHORT_BREACH_ORDER at most
 *
 * A large piece for an entitled process; or a single page that can be moved, on loan,
 * before kswapd is woken.  At last also what cannot leave, for a request that would fail, a
 * part of the area at most; and all that is free, before a process is killed for it, and for
 * a moment after that.
 */
struct page *__cohort_pcpa_rmqueue(gfp_t gfp, unsigned int order, unsigned int alloc_flags,
				   const struct alloc_context *ac, bool last)
{
	bool lend = cohort_pcpa_will_leave(order, ac);
	struct page *page;

	if (order && !last)
		return cohort_pcpa_entitled_to(gfp, order) && cohort_pcpa_may_reclaim(gfp) ?
		       cohort_pcpa_client_page(gfp, order, alloc_flags, ac) : NULL;
	if (!cohort_pcpa_may_have(gfp, order, alloc_flags, ac, lend, last) ||
	    !cohort_area_allowed(gfp, alloc_flags, ac))
		return NULL;
	page = cohort_area_take(order, lend ? COHORT_USE_LENT : COHORT_USE_GIVEN);
	if (page && last && cohort_before_kill(alloc_flags))
		WRITE_ONCE(hopeless, jiffies + HOPELESS_TIME);
	if (!page || !cohort_area_prep(page, order, gfp, alloc_flags))
		return NULL;
	count_vm_events(lend ? COHORT_PCPA_LENT : COHORT_PCPA_GIVEN, 1 << order);
	/* What may not wake kswapd may hold the lock of a work queue or of a timer. */
	if (gfp & __GFP_KSWAPD_RECLAIM)
		cohort_pcpa_tidy_soon();
	return page;
}

/**
 * cohort_pcpa_heap_page() - the same for the system heap's large pieces
 * @gfp: the request, which says that it does not want to reclaim
 * @order: its order
 *
 * The heap asks for large pieces without reclaim because that takes long as a
 * rule; its callers may sleep all the same.  What they get is charged to the task's memory
 * cgroup, so that its limit holds for the area, too.
 *
 * Return: pages for an entitled process, or NULL.
 */
struct page *cohort_pcpa_heap_page(gfp_t gfp, unsigned int order)
{
	gfp = current_gfp_context(gfp);
	if (!cohort_pcpa_taking() || !cohort_pcpa_entitled_to(gfp, order) ||
	    !cohort_pcpa_may_reclaim(gfp | __GFP_RECLAIM))
		return NULL;
	return cohort_pcpa_client_page(gfp, order, 0, NULL);
}

/**
 * cohort_pcpa_piece() - a piece of the area that is free already
 * @gfp: how to prepare it
 * @order: its order
 *
 * Return: its first page, or NULL.
 */
struct page *cohort_pcpa_piece(gfp_t gfp, unsigned int order)
{
	struct page *page = cohort_area_take(order, COHORT_USE_CLIENT);

	if (!page || !alloc_hooks(cohort_area_prep(page, order, gfp, 0)))
		return NULL;
	cohort_pcpa_got(1UL << order);
	return page;
}

/* drivers */

/**
 * cohort_pcpa_alloc() - contiguous pages for a driver
 * @nr: pages
 * @gfp: GFP_KERNEL, perhaps with __GFP_ZERO
 *
 * Each page has a reference of its own.
 *
 * Context: sleeps, at most COHORT_CONTIG_MS and what one page takes to move.
 * Return: the first page, or ERR_PTR(): -ENOMEM without an area or if too much of it is
 * clients', given, poisoned or offline, -EBUSY if a page did not go away, -EINTR, -EINVAL where
 * such a request may not reclaim.
 */
struct page *cohort_pcpa_alloc(unsigned long nr, gfp_t gfp)
{
	struct page *page;
	int err = 0;

	gfp = current_gfp_context(gfp);
	if (!nr || !cohort_pcpa_may_reclaim(gfp))
		return ERR_PTR(-EINVAL);
	page = cohort_copies() ? cohort_copies_piece(nr, gfp) : NULL;
	if (page) {
		count_vm_event(COHORT_PCPA_CONTIG_OK);
		return page;
	}
	page = cohort_pcpa_taking() ? cohort_pcpa_contig(nr, gfp, &err) : NULL;
	return page ?: ERR_PTR(err ?: -ENOMEM);
}
EXPORT_SYMBOL_GPL(cohort_pcpa_alloc);

/**
 * cohort_pcpa_free() - give the pages back
 * @page: from cohort_pcpa_alloc()
 * @nr: how many
 *
 * Context: may be scheduled away.
 */
void cohort_pcpa_free(struct page *page, unsigned long nr)
{
	if (cohort_copies() && cohort_copies_free(page, nr))
		return;
	while (nr--) {
		__free_page(page++);
		cond_resched();
	}
}
EXPORT_SYMBOL_GPL(cohort_pcpa_free);

/* at boot */

static int __init cohort_boot_refuse(const char *name, const char *text, const char *why)
{
	pr_err("%s=%s: %s; staying off\n", name, text ?: "", why);
	boot_bad = true;
	return 0;
}

static int __init cohort_boot_size(const char *name, char *text, struct boot_size *boot)
{
	const char *why = "given twice";

	if (!boot->given)
		why = text ? cohort_pcpa_parse(text, &boot->size, &boot->base) : "no size";
	boot->given = true;
	return why ? cohort_boot_refuse(name, text, why) : 0;
}

static int __init cohort_pcpa_size_setup(char *text)
{
	return cohort_boot_size("cohort.pcpa", text, &boot_area);
}
early_param("cohort.pcpa", cohort_pcpa_size_setup);

static int __init cohort_pcpa_contig_setup(char *text)
{
	return cohort_boot_size("cohort.pcpa_contig", text, &boot_contig);
}
early_param("cohort.pcpa_contig", cohort_pcpa_contig_setup);

static int __init cohort_pcpa_node_setup(char *text)
{
	int nid;

	if (!text || kstrtoint(text, 10, &nid) || nid < 0 || nid >= MAX_NUMNODES)
		return cohort_boot_refuse("cohort.pcpa_node", text, "no node");
	cohort_pcpa_node = nid;
	return 0;
}
early_param("cohort.pcpa_node", cohort_pcpa_node_setup);

static int __init cohort_pcpa_below_setup(char *text)
{
	u64 end, base;

	if (!text || cohort_pcpa_parse(text, &end, &base) || base != COHORT_ANY_BASE ||
	    !PHYS_PFN(end))
		return cohort_boot_refuse("cohort.pcpa_below", text, "no address");
	cohort_pcpa_below = PHYS_PFN(end);
	return 0;
}
early_param("cohort.pcpa_below", cohort_pcpa_below_setup);

static int __init cohort_pcpa_min_order_setup(char *text)
{
	long order;

	if (!text || kstrtol(text, 10, &order) || !cohort_pcpa_order_ok(order))
		return cohort_boot_refuse("cohort.pcpa_min_order", text,
					  "expected 0 to " __stringify(COHORT_CHUNK_ORDER));
	cohort_pcpa_min_order = order;
	return 0;
}
early_param("cohort.pcpa_min_order", cohort_pcpa_min_order_setup);

static int __init cohort_pcpa_timer_ms_setup(char *text)
{
	unsigned int ms;

	if (!text || kstrtouint(text, 10, &ms) || !ms || ms > COHORT_TIMER_MAX_MS)
		return cohort_boot_refuse("cohort.pcpa_timer_ms", text,
					  "expected 1 to " __stringify(COHORT_TIMER_MAX_MS));
	cohort_pcpa_timer_ms = ms;
	return 0;
}
early_param("cohort.pcpa_timer_ms", cohort_pcpa_timer_ms_setup);

/* Memory is still empty, but for what the kernel began with. */
void __init cohort_pcpa_init(void)
{
	if (!boot_bad && boot_area.size)
		cohort_pcpa_resize(boot_area.size, boot_area.base);
	if (!boot_bad && boot_contig.size)
		cohort_copies_resize(boot_contig.size, boot_contig.base);
}
