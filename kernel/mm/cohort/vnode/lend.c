// SPDX-License-Identifier: GPL-2.0
/*
 * Idle memory of a virtual node, lent for clean page cache.
 *
 * A less trusted role whose own node is short may read a file into the memory
 * of a more trusted one that has plenty free.  Such a page has a bit in the
 * owner table, which the free path clears.  When the owner is short, lent
 * pages are dropped in the order of their frames, so that what comes back is
 * contiguous, until it has enough: no look at the LRU lists, no regard for the
 * time of their last use.  A lent page that was written to since is not clean: it
 * stays until its owner or the flusher has written it back.
 *
 * The bits are made when lending is first switched on and never freed; they are
 * atomic, and a page with a bit is a page in use.  A lent page that compaction
 * moves within the node stays lent, one that moves into the area does not.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpuset.h>
#include <linux/fs.h>
#include <linux/memblock.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/psi.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/swap.h>

#include "../../internal.h"
#include "../cohort.h"
#include "../host/filemap.h"
#include "vnode.h"

/* Pages isolated at a time: a batch of one TLB flush. */
#define LEND_BATCH	64

/* Of those, mapped ones: their users decide what it takes to unmap one. */
#define LEND_MAPPED	8

/* Pages looked at for one batch: borrowers may keep any number dirty. */
#define LEND_LOOKS	512

/* A request takes back what is lent for so long, and what one more batch takes. */
#define LEND_MS		10

/* The work takes back from one role for so long, and then others have their turn. */
#define LEND_WORK_TIME	(HZ / 4)

/* After so many turns in a row that were over before they brought anything it rests. */
#define LEND_VAIN	16

/* A look at all that is lent that brought less than was wanted is not repeated at once. */
#define LEND_BARREN	(HZ / 5)

/* A node keeps so much of itself free beyond its high watermarks: 1 / 2^n. */
#define LEND_KEEP_SHIFT	4

/* Pages of one role that one look at the free pages is good for, and for how long. */
#define LEND_TURN	(SZ_256K >> PAGE_SHIFT)
#define LEND_TURN_TIME	(HZ / 10)

/**
 * struct lend_turn - what a CPU found when it last looked for a lender
 * @own: the role that asked
 * @from: the lender, NULL: none
 * @left: pages until it looks again
 * @until: jiffies, after which it looks again
 *
 * Of its CPU alone, with preemption off.
 */
struct lend_turn {
	struct cohort_vnode *own, *from;
	unsigned int left;
	unsigned long until;
};

static DEFINE_PER_CPU(struct lend_turn, lend_turn);

/**
 * struct lend_take - what one taking-back is to bring
 * @want: pages
 * @got: of these, dropped so far
 * @deadline: in jiffies, when it ends with less
 * @spare: what memory.min protects stays lent
 */
struct lend_take {
	unsigned long want, got, deadline;
	bool spare;
};

DEFINE_STATIC_KEY_FALSE(cohort_lend_key);

static bool lending;

static void cohort_lend_take_back_work(struct work_struct *work);
static DECLARE_WORK(lend_work, cohort_lend_take_back_work);

/**
 * cohort_lend_headroom() - free pages of nodes beyond their high watermarks
 * @nodes: the nodes
 * @to_lend: holes in blocks do not count, which its own processes may fill
 *
 * Return: pages; negative if it is short.
 */
long cohort_lend_headroom(const nodemask_t *nodes, bool to_lend)
{
	long pages = 0;
	struct zone *zone;

	for_each_populated_zone(zone) {
		unsigned long nr;

		if (!node_isset(zone_to_nid(zone), *nodes))
			continue;
		nr = zone_page_state(zone, NR_FREE_PAGES);
		nr = to_lend ? nr - min(nr, cohort_unusable_free(zone)) : cohort_breachable(zone, nr);
		pages += (long)nr - (long)high_wmark_pages(zone);
	}
	return pages;
}

static long cohort_lend_keeps(const struct cohort_vnode *vn)
{
	long pages = 0;
	int nid;

	for_each_node_mask(nid, vn->nodes)
		pages += node_present_pages(nid);
	return pages >> LEND_KEEP_SHIFT;
}

/* borrowing */

/* All three: false if the frame is out of the table's reach. */

static bool cohort_lent_test(unsigned long pfn)
{
	const unsigned long *map = cohort_lent_map(pfn);

	return map && test_bit(cohort_span_bit(pfn), map);
}

static bool cohort_lent_set(unsigned long pfn)
{
	unsigned long *map = cohort_lent_map(pfn);

	return map && !test_and_set_bit(cohort_span_bit(pfn), map);
}

static bool cohort_lent_clear(unsigned long pfn)
{
	return cohort_lent_test(pfn) && test_and_clear_bit(cohort_span_bit(pfn),
							   cohort_lent_map(pfn));
}

static struct folio *cohort_lend_page(struct cohort_vnode *vn, gfp_t gfp)
{
	struct page *page;

	gfp &= ~__GFP_RECLAIM;
	page = __alloc_pages_noprof(gfp | __GFP_COMP | __GFP_NOWARN | __GFP_NOMEMALLOC,
				    0, vn->nid, &vn->nodes);
	if (!page)
		return NULL;
	/*
	 * From elsewhere: the allocator forgets its nodes if a cpuset has none of them.  Or of the
	 * area: what is dropped there is free for page cache and clients, and not for the owner.
	 */
	if (!node_isset(page_to_nid(page), vn->nodes) ||
	    cohort_owner_id(page_to_pfn(page)) == COHORT_KEPT ||
	    !cohort_lent_set(page_to_pfn(page))) {
		__free_page(page);
		return NULL;
	}
	atomic_long_inc(&vn->lent);
	return page_folio(page);
}

/* A role that has idle memory, NULL if none has or if @own has enough itself. */
static struct cohort_vnode *cohort_lend_find(const struct cohort_vnode *own)
{
	struct cohort_vnode *vn;

	if (cohort_lend_headroom(&own->nodes, false) > 0)
		return NULL;
	for (vn = cohort_vnodes; vn < own; vn++)
		if (cohort_lend_headroom(&vn->nodes, true) > cohort_lend_keeps(vn))
			return vn;
	return NULL;
}

/*
 * A CPU asks once for LEND_TURN pages of one role: counting free pages costs
 * more than allocating one.  What a lender keeps is mostly far more than all CPUs
 * together take of it until they ask again.
 */
static struct cohort_vnode *cohort_lender_of(struct cohort_vnode *own)
{
	struct lend_turn *turn = get_cpu_ptr(&lend_turn);
	struct cohort_vnode *from;

	if (turn->own != own || !turn->left || time_after(jiffies, turn->until)) {
		turn->own = own;
		turn->left = LEND_TURN;
		turn->until = jiffies + LEND_TURN_TIME;
		turn->from = cohort_lend_find(own);
	}
	turn->left--;
	from = turn->from;
	put_cpu_ptr(&lend_turn);
	return from;
}

/*
 * A cpuset is a limit beside the role: what it leaves out is not lent to its processes.  One
 * that binds or spreads its pages on purpose gets them as it said.
 */
static bool cohort_lend_allowed(const struct cohort_vnode *vn)
{
	return !cohort_task_policy() && !cpuset_do_page_mem_spread() &&
	       nodes_intersects(vn->nodes, cpuset_current_mems_allowed);
}

/**
 * cohort_vnode_borrow() - a page of a more trusted node for the page cache
 * @mapping: file it will belong to
 * @gfp: the request
 *
 * Return: a folio, or NULL: no role lends, a cpuset or a policy does not allow it, or the own
 * node has memory.
 */
struct folio *cohort_vnode_borrow(struct address_space *mapping, gfp_t gfp)
{
	struct folio *folio = NULL;
	struct cohort_vnode *from;

	if (!cohort_vnode_stays(gfp, 0) || !cohort_reads_only(mapping, gfp))
		return NULL;
	/* Switching lending off waits for pages that are being lent. */
	rcu_read_lock();
	if (READ_ONCE(lending)) {
		from = cohort_lender_of(cohort_vnode_current());
		if (from && cohort_lend_allowed(from))
			folio = cohort_lend_page(from, gfp);
	}
	rcu_read_unlock();
	return folio;
}

static struct cohort_vnode *cohort_vnode_of_pfn(unsigned long pfn)
{
	return cohort_vnode_of_node(page_to_nid(pfn_to_page(pfn)));
}

/**
 * cohort_vnode_returned() - a page is being freed that may have been lent
 * @pfn: its frame number
 *
 * Context: any but NMI.
 */
void cohort_vnode_returned(unsigned long pfn)
{
	struct cohort_vnode *vn;

	if (!cohort_lent_clear(pfn))
		return;
	vn = cohort_vnode_of_pfn(pfn);
	if (vn)
		atomic_long_dec(&vn->lent);
}

/**
 * __cohort_vnode_moved() - a page that may be lent was migrated
 * @from: its old frame, about to be freed
 * @to: its new frame
 *
 * Within its node it stays lent, but not in the area: what is dropped there is free for page cache
 * and clients alone, and the owner has the old frame back.
 */
void __cohort_vnode_moved(unsigned long from, unsigned long to)
{
	struct cohort_vnode *vn;

	if (!cohort_lent_test(from) || cohort_owner_id(to) == COHORT_KEPT)
		return;
	vn = cohort_vnode_of_pfn(to);
	if (vn && vn == cohort_vnode_of_pfn(from) && cohort_lent_set(to))
		atomic_long_inc(&vn->lent);
}

/* taking back */

static bool cohort_lend_isolate(struct page *page, struct list_head *list)
{
	return !(READ_ONCE(page->flags) & (BIT(PG_dirty) | BIT(PG_writeback))) &&
	       cohort_isolate_page(page, list);
}

/* What is isolated, but for what memory.min protects if that is to be spared. */
static unsigned long cohort_lend_drop(struct pglist_data *pgdat, struct list_head *list, bool spare)
{
	struct folio *folio, *next;
	unsigned long nr;
	LIST_HEAD(kept);

	if (spare)
		list_for_each_entry_safe(folio, next, list, lru)
			if (cohort_protected(folio, false))
				list_move(&folio->lru, &kept);
	nr = reclaim_clean_pages_from_list(&pgdat->node_zones[0], list);
	list_splice(&kept, list);
	putback_movable_pages(list);
	return nr;
}

/* Up to a batch of lent pages between two frames; where to go on in @pfn. */
static void cohort_lend_drop_batch(struct pglist_data *pgdat, unsigned long *pfn,
				   unsigned long end, struct lend_take *take)
{
	unsigned long nr = 0, mapped = 0, looks = LEND_LOOKS;
	struct page *page;
	LIST_HEAD(list);

	for (; nr < LEND_BATCH && mapped < LEND_MAPPED && looks--; ++*pfn) {
		*pfn = cohort_lent_next(*pfn, end);
		if (*pfn >= end)
			break;
		page = pfn_to_page(*pfn);
		/* The spans of nodes may overlap. */
		if (page_to_nid(page) != pgdat->node_id || !cohort_lend_isolate(page, &list))
			continue;
		nr++;
		mapped += page_mapped(page);
	}
	if (nr)
		take->got += cohort_lend_drop(pgdat, &list, take->spare);
}

static bool cohort_lend_over(const struct lend_take *take)
{
	return take->got >= take->want || time_after(jiffies, take->deadline) ||
	       fatal_signal_pending(current);
}

/* One round over the lent pages of a node at most. */
static void cohort_lend_take_from_node(struct cohort_vnode *vn, struct pglist_data *pgdat,
				       struct lend_take *take)
{
	unsigned long start = pgdat->node_start_pfn;
	unsigned long end = pgdat_end_pfn(pgdat);
	unsigned long from = READ_ONCE(vn->hand), pfn;

	if (from < start || from >= end)
		from = start;
	for (pfn = from; pfn < end && !cohort_lend_over(take); cond_resched())
		cohort_lend_drop_batch(pgdat, &pfn, end, take);
	if (pfn >= end && atomic_long_read(&vn->lent) > 0)
		for (pfn = start; pfn < from && !cohort_lend_over(take); cond_resched())
			cohort_lend_drop_batch(pgdat, &pfn, from, take);
	WRITE_ONCE(vn->hand, pfn);
}

/* The node in which taking back goes on. */
static int cohort_lend_first(const struct cohort_vnode *vn)
{
	unsigned long hand = READ_ONCE(vn->hand);
	int nid;

	for_each_node_mask(nid, vn->nodes)
		if (hand >= NODE_DATA(nid)->node_start_pfn && hand < pgdat_end_pfn(NODE_DATA(nid)))
			return nid;
	return first_node(vn->nodes);
}

static void cohort_lend_take_from(struct cohort_vnode *vn, struct lend_take *take)
{
	int first = cohort_lend_first(vn), nid = first;

	lru_add_drain();
	do {
		if (cohort_lend_over(take) || atomic_long_read(&vn->lent) <= 0)
			return;
		cohort_lend_take_from_node(vn, NODE_DATA(nid), take);
		nid = next_node_in(nid, vn->nodes);
	} while (nid != first);
}

/* What there is time for, added to @got.  True if that was not enough. */
static bool cohort_lend_take_some(struct cohort_vnode *vn, long want, bool spare,
				  unsigned long *got, bool *late)
{
	struct lend_take take = {
		.want = want,
		.deadline = jiffies + LEND_WORK_TIME,
		.spare = spare,
	};

	if (want <= 0 || atomic_long_read(&vn->lent) <= 0)
		return false;
	cohort_lend_take_from(vn, &take);
	*got += take.got;
	if (take.got >= take.want)
		return false;
	*late |= time_after(jiffies, take.deadline);
	return true;
}

/*
 * Until the owner has what it keeps, or all of it if lending was switched off.  Where nothing
 * else is lent any more, or takes long to unmap, requests that had not the time to find that out
 * have what memory.min protects.
 */
static unsigned long cohort_lend_take_turn(struct cohort_vnode *vn, bool *late)
{
	long want = cohort_lend_keeps(vn) - cohort_lend_headroom(&vn->nodes, true);
	bool spare = READ_ONCE(lending) && cohort_protect(false);
	unsigned long starved = xchg(&vn->starved, 0), got = 0;

	if (!READ_ONCE(lending))
		want = atomic_long_read(&vn->lent);
	if (cohort_lend_take_some(vn, want, spare, &got, late) && spare && starved > got)
		cohort_lend_take_some(vn, starved - got, false, &got, late);
	return got;
}

static void cohort_lend_take_back_work(struct work_struct *work)
{
	static unsigned int vain;
	unsigned long got = 0;
	bool late = false;
	unsigned int i;

	for (i = 0; i < cohort_nr_vnodes; i++)
		got += cohort_lend_take_turn(&cohort_vnodes[i], &late);
	/* A host may be busy, or much of what is lent dirty, for one turn and more. */
	vain = got ? 0 : vain + 1;
	if (late && vain < LEND_VAIN)
		queue_work(system_unbound_wq, work);
}

/*
 * For the owner of a node.  Of what is lent, that which memory.min protects goes last, when there
 * is nothing else: the owner's own processes would be killed for it.  Where there is too much to
 * find that out in time, the work does.
 */
static unsigned long cohort_lend_take_for(struct cohort_vnode *vn, unsigned long want)
{
	struct lend_take take = {
		.want = want,
		.deadline = jiffies + msecs_to_jiffies(LEND_MS),
		.spare = cohort_protect(false),
	};

	cohort_lend_take_from(vn, &take);
	if (take.spare && !cohort_lend_over(&take)) {
		take.deadline = jiffies + msecs_to_jiffies(LEND_MS);
		take.spare = false;
		cohort_lend_take_from(vn, &take);
	}
	if (take.spare && take.got < want)
		WRITE_ONCE(vn->starved, want - take.got);
	return take.got;
}

/* What may not wake kswapd may hold the lock of a work queue. */
static void cohort_lend_wake(gfp_t gfp)
{
	if (gfp & __GFP_KSWAPD_RECLAIM)
		queue_work(system_unbound_wq, &lend_work);
}

/**
 * __cohort_vnode_take_back() - the owner of a node is short of memory
 * @gfp: its request
 * @order: its order
 * @nodemask: its nodes
 *
 * Return: true if pages came back.
 */
bool __cohort_vnode_take_back(gfp_t gfp, unsigned int order, const nodemask_t *nodemask)
{
	const gfp_t reclaim = __GFP_DIRECT_RECLAIM | __GFP_FS | __GFP_IO;
	struct cohort_vnode *vn;
	unsigned long want = max(2UL << order, 4UL * LEND_BATCH), got, stall;

	if (!in_task() || (current->flags & PF_MEMALLOC))
		return false;
	vn = cohort_vnode_current();
	if (!nodes_subset(*nodemask, vn->nodes) || atomic_long_read(&vn->lent) <= 0 ||
	    time_before(jiffies, READ_ONCE(vn->barren)))
		return false;
	/* A node that has too many dirty pages gives none to be written, whatever is free. */
	if ((gfp & __GFP_WRITE) && cohort_lend_headroom(nodemask, false) > 0)
		return false;
	cohort_lend_wake(gfp);
	if ((gfp & reclaim) != reclaim || !gfpflags_allow_blocking(gfp))
		return false;
	psi_memstall_enter(&stall);
	fs_reclaim_acquire(gfp);
	got = cohort_lend_take_for(vn, want);
	fs_reclaim_release(gfp);
	psi_memstall_leave(&stall);
	if (READ_ONCE(vn->starved))
		cohort_lend_wake(gfp);
	/*
	 * What is still lent its borrowers hold, or it takes long to unmap: a trickle of it is
	 * not worth a walk for each page.
	 */
	if (got < want && atomic_long_read(&vn->lent) > 0)
		WRITE_ONCE(vn->barren, jiffies + LEND_BARREN);
	return got > 0;
}

/**
 * cohort_vnode_lends() - is lending switched on?
 */
bool cohort_vnode_lends(void)
{
	return READ_ONCE(lending);
}

/* Once nothing is lent the free path does not look any more. */
static void cohort_lend_rest(void)
{
	unsigned int i;

	mutex_lock(&cohort_mutex);
	for (i = 0; i < cohort_nr_vnodes; i++)
		if (atomic_long_read(&cohort_vnodes[i].lent))
			break;
	if (i == cohort_nr_vnodes && !lending && cohort_vnode_lending())
		cohort_owner_switch(&cohort_lend_key, false);
	mutex_unlock(&cohort_mutex);
}

/**
 * cohort_vnode_lend() - switch lending on or off
 * @on: what to do; off takes back what is clean, before it returns if that takes no longer than
 *	a part of a second a role, and costs nothing from then on, or after one more off
 *
 * Context: sleeps.
 * Return: 0 or -ENOMEM.
 */
int cohort_vnode_lend(bool on)
{
	static DEFINE_MUTEX(writers);
	int err = 0;

	mutex_lock(&writers);
	mutex_lock(&cohort_mutex);
	if (on && !cohort_vnode_lending()) {
		err = cohort_table_lend(cohort_vnode_returned);
		if (!err)
			cohort_owner_switch(&cohort_lend_key, true);
	}
	if (!err)
		WRITE_ONCE(lending, on);
	mutex_unlock(&cohort_mutex);
	if (!err && !on && cohort_vnode_lending()) {
		synchronize_rcu();
		queue_work(system_unbound_wq, &lend_work);
		flush_work(&lend_work);
		cohort_lend_rest();
	}
	mutex_unlock(&writers);
	return err;
}
