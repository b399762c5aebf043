// SPDX-License-Identifier: GPL-2.0
/*
 * Virtual memory nodes: which processes the OOM killer finds for the nodes of a role, what is
 * known of one that left a role, and what goes to another role's node.
 */
#include <kunit/test.h>
#include <linux/cpuset.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/mempolicy.h>
#include <linux/migrate_mode.h>
#include <linux/mman.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/oom.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../../internal.h"
#include "../cohort.h"
#include "../host/migrate.h"
#include "cohort_pcpa_test.h"
#include "cohort_vnode_test.h"

/* A role of two nodes, where no layout gives any. */
static struct cohort_vnode cohort_vnode_test_wide;

/* Would the OOM killer find this thread for a node, if it has a policy for another one? */
static bool cohort_vnode_test_found(int node, int bound)
{
	struct mempolicy pol = { .mode = MPOL_BIND, .nodes = nodemask_of_node(bound) };
	struct mempolicy *before = current->mempolicy;
	nodemask_t mask = nodemask_of_node(node), mems = cpuset_current_mems_allowed;
	bool found;

	/* As if the machine had them all. */
	set_mems_allowed(NODE_MASK_ALL);
	task_lock(current);
	current->mempolicy = &pol;
	task_unlock(current);
	found = __cohort_vnode_oom_eligible(current, &mask);
	task_lock(current);
	current->mempolicy = before;
	task_unlock(current);
	set_mems_allowed(mems);
	return found;
}

/*
 * In a role of two nodes what is bound to one of them is not killed for the other.  What is bound
 * to another role's node has those of its own role.
 */
static void cohort_vnode_test_policies(struct kunit *test)
{
	const int near = 0, far = MAX_NUMNODES - 1, other = MAX_NUMNODES - 2;
	struct cohort_vnode *vn = &cohort_vnode_test_wide;

	if (cohort_nr_vnodes || other <= near)
		kunit_skip(test, "there is a layout, or there are too few nodes");
	vn->nodes = nodemask_of_node(near);
	node_set(far, vn->nodes);
	vn->nid = near;
	cohort_vnode_set_default(vn);
	KUNIT_EXPECT_TRUE(test, cohort_vnode_test_found(near, near));
	KUNIT_EXPECT_TRUE(test, cohort_vnode_test_found(far, far));
	KUNIT_EXPECT_FALSE(test, cohort_vnode_test_found(near, far));
	KUNIT_EXPECT_FALSE(test, cohort_vnode_test_found(far, near));
	KUNIT_EXPECT_TRUE_MSG(test, cohort_vnode_test_found(near, other), "no policy of its role");
	KUNIT_EXPECT_TRUE(test, cohort_vnode_test_found(far, other));
	KUNIT_EXPECT_FALSE(test, cohort_vnode_test_found(other, other));
	cohort_vnode_set_default(NULL);
}

/* Would a process be killed for some nodes, if its cpuset has these? */
static bool cohort_vnode_test_victim(struct mm_struct *mm, const nodemask_t *mask,
				     nodemask_t cpuset)
{
	nodemask_t mems = cpuset_current_mems_allowed;
	bool found;

	kthread_use_mm(mm);
	set_mems_allowed(cpuset);
	found = __cohort_vnode_oom_eligible(current, mask);
	set_mems_allowed(mems);
	kthread_unuse_mm(mm);
	return found;
}

/*
 * A cpuset may confine a process to one node of its role while its pages are in another one.
 * Where no process is left to kill for that one, this one is.
 */
static void cohort_vnode_test_confined(struct kunit *test)
{
	const int near = 0, far = MAX_NUMNODES - 1;
	nodemask_t mask = nodemask_of_node(near);
	struct cohort_vnode *vn;
	struct mm_struct *mm;
	bool found;

	if (far == near || !IS_ENABLED(CONFIG_CPUSETS))
		kunit_skip(test, "one node, or no cpusets");
	vn = cohort_vnode_test_layout(test);
	mm = mm_alloc();
	KUNIT_ASSERT_NOT_NULL(test, mm);
	/* It has had the first role from the beginning. */
	mm->flags |= 1UL << COHORT_VNODE_SHIFT;
	node_set(far, vn->nodes);
	found = cohort_vnode_test_victim(mm, &mask, nodemask_of_node(far));
	cohort_vnode_test_layout_end();
	mmput(mm);
	KUNIT_EXPECT_TRUE(test, found);
}

static bool cohort_vnode_test_left(struct mm_struct *mm)
{
	return test_and_clear_bit(COHORT_VNODE_LEFT, &mm->flags);
}

/* Towards more trust, too, pages stay behind; not where the role is what it was. */
static void cohort_vnode_test_raised(struct kunit *test)
{
	struct mm_struct *mm;

	cohort_vnode_test_layout(test);
	mm = mm_alloc();
	KUNIT_ASSERT_NOT_NULL(test, mm);
	cohort_vnodes[1].nodes = nodemask_of_node(MAX_NUMNODES - 1);
	cohort_vnodes[1].nid = MAX_NUMNODES - 1;
	strscpy(cohort_vnodes[0].name, "high", COHORT_VNODE_NAME);
	strscpy(cohort_vnodes[1].name, "low", COHORT_VNODE_NAME);
	cohort_nr_vnodes = 2;
	kthread_use_mm(mm);
	KUNIT_EXPECT_EQ(test, cohort_vnode_move(current, "low", true), 0);
	KUNIT_EXPECT_TRUE(test, cohort_vnode_test_left(mm));
	KUNIT_EXPECT_EQ(test, cohort_vnode_move(current, "low", false), 0);
	KUNIT_EXPECT_FALSE(test, cohort_vnode_test_left(mm));
	KUNIT_EXPECT_EQ(test, cohort_vnode_move(current, "high", false), -EACCES);
	KUNIT_EXPECT_FALSE(test, cohort_vnode_test_left(mm));
	KUNIT_EXPECT_EQ(test, cohort_vnode_move(current, "high", true), 0);
	KUNIT_EXPECT_TRUE(test, cohort_vnode_test_left(mm));
	kthread_unuse_mm(mm);
	mmput(mm);
	cohort_vnode_test_layout_end();
}

/* A child has what its parent left in the default role's nodes, though it began later. */
static void cohort_vnode_test_fork(struct kunit *test)
{
	struct mm_struct *new = kunit_kzalloc(test, sizeof(*new), GFP_KERNEL);
	struct mm_struct *old = mm_alloc();

	KUNIT_ASSERT_NOT_NULL(test, new);
	KUNIT_ASSERT_NOT_NULL(test, old);
	if (cohort_nr_vnodes)
		kunit_skip(test, "there is a layout");
	cohort_vnode_set_default(&cohort_vnode_test_wide);
	cohort_vnode_set_default(NULL);
	kthread_use_mm(old);
	set_bit(COHORT_VNODE_LEFT, &old->flags);
	/* A program that is executed has nothing of before; any task may be a child. */
	__cohort_mm_inherit(current, new);
	KUNIT_EXPECT_FALSE(test, test_bit(COHORT_VNODE_LEFT, &new->flags));
	clear_bit(COHORT_VNODE_LEFT, &old->flags);
	__cohort_mm_inherit(&init_task, new);
	KUNIT_EXPECT_TRUE(test, test_bit(COHORT_VNODE_LEFT, &new->flags));
	kthread_unuse_mm(old);
	mmput(old);
}

/* What a process says of itself does not outlast the default role. */
static void cohort_vnode_test_default_said(struct kunit *test)
{
	struct mm_struct *mm;

	cohort_vnode_test_layout(test);
	mm = mm_alloc();
	KUNIT_ASSERT_NOT_NULL(test, mm);
	strscpy(cohort_vnodes[0].name, "high", COHORT_VNODE_NAME);
	strscpy(cohort_vnodes[1].name, "low", COHORT_VNODE_NAME);
	cohort_vnodes[1].nodes = nodemask_of_node(MAX_NUMNODES - 1);
	cohort_nr_vnodes = 2;
	cohort_vnode_set_default(&cohort_vnodes[0]);
	kthread_use_mm(mm);
	KUNIT_EXPECT_EQ(test, cohort_vnode_move(current, "high", false), 0);
	cohort_vnode_set_default(&cohort_vnodes[1]);
	KUNIT_EXPECT_PTR_EQ(test, cohort_vnode_said(mm), &cohort_vnodes[1]);
	KUNIT_EXPECT_EQ(test, cohort_vnode_move(current, "high", true), 0);
	KUNIT_EXPECT_PTR_EQ(test, cohort_vnode_said(mm), &cohort_vnodes[0]);
	/* What was given with a right to it is not lost by saying it again. */
	KUNIT_EXPECT_EQ(test, cohort_vnode_move(current, "high", false), 0);
	KUNIT_EXPECT_PTR_EQ(test, cohort_vnode_said(mm), &cohort_vnodes[0]);
	/* Less trust than the default has is kept. */
	KUNIT_EXPECT_EQ(test, cohort_vnode_move(current, "low", false), 0);
	cohort_vnode_set_default(&cohort_vnodes[0]);
	KUNIT_EXPECT_PTR_EQ(test, cohort_vnode_said(mm), &cohort_vnodes[1]);
	kthread_unuse_mm(mm);
	mmput(mm);
	cohort_vnode_set_default(NULL);
	cohort_vnode_test_layout_end();
}

/*
 * Where no process is left to kill for a node, one is that left it for more trust; the machine
 * would panic.
 */
static void cohort_vnode_test_raised_last(struct kunit *test)
{
	const int high = MAX_NUMNODES - 1;
	nodemask_t mask = node_states[N_MEMORY];
	struct cohort_vnode *vn;
	struct mm_struct *mm;
	bool found;

	if (!high)
		kunit_skip(test, "one node");
	vn = cohort_vnode_test_layout(test);
	mm = mm_alloc();
	KUNIT_ASSERT_NOT_NULL(test, mm);
	vn[1].nodes = vn->nodes;
	vn->nodes = nodemask_of_node(high);
	cohort_nr_vnodes = 2;
	mm->flags |= 1UL << COHORT_VNODE_SHIFT | BIT(COHORT_VNODE_LEFT);
	found = cohort_vnode_test_victim(mm, &mask, NODE_MASK_ALL);
	cohort_vnode_test_layout_end();
	mmput(mm);
	KUNIT_EXPECT_TRUE(test, found);
}

/* What each CPU has counted for itself is not hidden, nor is what holds page tables alone. */
static void cohort_vnode_test_hidden(struct kunit *test)
{
	const int nid = first_node(node_states[N_MEMORY]);
	nodemask_t nodes = nodemask_of_node(nid);
	struct mm_struct *mm = mm_alloc();
	bool none, counted, tables;
	s32 more;

	KUNIT_ASSERT_NOT_NULL(test, mm);
	more = node_present_pages(nid);
	/* It cannot be walked. */
	mmap_write_lock(mm);
	none = cohort_vnode_left_much(mm, &nodes, true);
	this_cpu_add(*mm->rss_stat[MM_ANONPAGES].counters, more);
	counted = cohort_vnode_left_much(mm, &nodes, true);
	this_cpu_sub(*mm->rss_stat[MM_ANONPAGES].counters, more);
	atomic_long_add((long)more << PAGE_SHIFT, &mm->pgtables_bytes);
	tables = cohort_vnode_left_much(mm, &nodes, true);
	atomic_long_sub((long)more << PAGE_SHIFT, &mm->pgtables_bytes);
	mmap_write_unlock(mm);
	mmput(mm);
	KUNIT_EXPECT_FALSE(test, none);
	KUNIT_EXPECT_TRUE(test, counted);
	KUNIT_EXPECT_TRUE(test, tables);
}

/* Page tables of a mapping that has nothing else, a part of the node that is worth a victim. */
static void cohort_vnode_test_tables(struct kunit *test)
{
	const int nid = first_node(node_states[N_MEMORY]);
	unsigned long nr = node_present_pages(nid) / 32, addr, i;
	nodemask_t nodes = nodemask_of_node(nid);
	char c;

	if (num_node_state(N_MEMORY) > 1)
		kunit_skip(test, "tables may be in several nodes");
	/* Several mappings of one table, that have a page each, are not much. */
	for (i = 0; i < nr && nr < 32768; i++) {
		addr = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE,
				     MAP_ANONYMOUS | MAP_PRIVATE, 0);
		KUNIT_ASSERT_FALSE(test, !addr || IS_ERR_VALUE(addr));
		KUNIT_ASSERT_EQ(test, copy_from_user(&c, (char __user *)addr, 1), 0UL);
	}
	add_mm_counter(current->mm, MM_ANONPAGES, nr);
	KUNIT_EXPECT_FALSE(test, cohort_vnode_left_much(current->mm, &nodes, false));
	add_mm_counter(current->mm, MM_ANONPAGES, -(long)nr);
	addr = kunit_vm_mmap(test, NULL, 0, nr * PMD_SIZE, PROT_READ,
			     MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE, 0);
	KUNIT_ASSERT_NE(test, addr, 0UL);
	KUNIT_EXPECT_FALSE(test, cohort_vnode_left_much(current->mm, &nodes, false));
	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_EQ(test, copy_from_user(&c, (char __user *)addr + i * PMD_SIZE, 1), 0UL);
	KUNIT_EXPECT_TRUE(test, cohort_vnode_left_much(current->mm, &nodes, false));
}

/*
 * Inside a file system no process is killed for a request: the kernel's own goes on elsewhere,
 * as others wait for what its process holds.  Page cache stays.
 */
static void cohort_vnode_test_journal(struct kunit *test)
{
	struct cohort_vnode *vn = &cohort_vnode_test_wide;
	int own = MAX_NUMNODES - 1, cache = MAX_NUMNODES - 1;
	nodemask_t both;

	if (cohort_nr_vnodes || MAX_NUMNODES == 1)
		kunit_skip(test, "there is a layout, or only one node");
	vn->nodes = nodemask_of_node(0);
	vn->nid = 0;
	cohort_vnode_set_default(vn);
	KUNIT_EXPECT_NULL(test, cohort_vnode_test_bind(GFP_NOFS | __GFP_NOFAIL, &own, NULL, &both));
	KUNIT_EXPECT_EQ(test, own, 0);
	KUNIT_EXPECT_PTR_EQ(test, cohort_vnode_test_bind(GFP_HIGHUSER_MOVABLE & ~__GFP_FS, &cache,
							 NULL, &both), &vn->nodes);
	KUNIT_EXPECT_EQ(test, cache, 0);
	KUNIT_EXPECT_PTR_EQ(test, cohort_vnode_test_bind(GFP_KERNEL, &own, NULL, &both),
			    &vn->nodes);
	cohort_vnode_set_default(NULL);
}

#ifdef CONFIG_COHORT_PCPA
/* A page in use, of the area or of other memory. */
static struct page *cohort_vnode_test_target(struct kunit *test, bool area)
{
	struct page *page = area ? cohort_area_take_cache() : alloc_page(GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	if (area)
		KUNIT_ASSERT_TRUE(test, cohort_area_prep(page, 0, GFP_KERNEL, 0));
	return page;
}
#endif

/* A loan that is pulled into the area of its owner's node is none there; elsewhere it is. */
static void cohort_vnode_test_moves(struct kunit *test)
{
#ifdef CONFIG_COHORT_PCPA
	struct cohort_vnode *vn = cohort_vnode_test_layout(test);
	unsigned long from, to, *map;
	struct page *page;
	int area;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	page = alloc_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	from = page_to_pfn(page);
	map = cohort_lent_map(from);
	KUNIT_ASSERT_NOT_NULL(test, map);
	set_bit(cohort_span_bit(from), map);
	for (area = 1; area >= 0; area--) {
		struct page *target = cohort_vnode_test_target(test, area);

		to = page_to_pfn(target);
		atomic_long_set(&vn->lent, 1);
		__cohort_vnode_moved(from, to);
		KUNIT_EXPECT_EQ(test, test_bit(cohort_span_bit(to), cohort_lent_map(to)), !area);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&vn->lent), area ? 1L : 2L);
		__free_page(target);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&vn->lent), 1L);
	}
	__free_page(page);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&vn->lent), 0L);
	cohort_pcpa_test_end(test);
	cohort_vnode_test_layout_end();
#else
	kunit_skip(test, "no area");
#endif
}

/*
 * What a process swaps out while it reclaims stays in its role; what it writes to a disk of
 * compressed memory need not, and a thread of the kernel has no role.
 */
static void cohort_vnode_test_swaps(struct kunit *test)
{
	struct cohort_vnode *vn = &cohort_vnode_test_wide;
	nodemask_t *nodes, *written;
	unsigned int flags;

	if (cohort_nr_vnodes)
		kunit_skip(test, "there is a layout");
	cohort_vnode_set_default(vn);
	KUNIT_EXPECT_NULL(test, cohort_vnode_swap_nodes());
	cohort_vnode_test_process(true);
	written = cohort_vnode_swap_nodes();
	flags = memalloc_noreclaim_save();
	nodes = cohort_vnode_swap_nodes();
	memalloc_noreclaim_restore(flags);
	cohort_vnode_test_process(false);
	KUNIT_EXPECT_NULL(test, written);
	KUNIT_EXPECT_PTR_EQ(test, nodes, &vn->nodes);
	cohort_vnode_set_default(NULL);
}

/*
 * On its way out a process has given its address space back, and what its role was with it; in
 * the middle of a file system it may not wait for its own node.
 */
static void cohort_vnode_test_unbound(struct kunit *test)
{
	nodemask_t *own, *journal, *metadata, *left, *swaps, both;
	unsigned int flags;
	struct mm_struct *mm;
	int nid = 0;

	if (cohort_nr_vnodes)
		kunit_skip(test, "there is a layout");
	cohort_vnode_test_wide.nodes = nodemask_of_node(0);
	cohort_vnode_set_default(&cohort_vnode_test_wide);
	cohort_vnode_test_process(true);
	own = __cohort_vnode_bind(GFP_KERNEL, 0, &nid, NULL, &both);
	flags = memalloc_nofs_save();
	journal = __cohort_vnode_bind(GFP_KERNEL, 0, &nid, NULL, &both);
	current->journal_info = &flags;
	metadata = __cohort_vnode_bind(GFP_USER | __GFP_MOVABLE, 0, &nid, NULL, &both);
	current->journal_info = NULL;
	memalloc_nofs_restore(flags);
	mm = current->mm;
	current->mm = NULL;
	left = __cohort_vnode_bind(GFP_KERNEL, 0, &nid, NULL, &both);
	swaps = cohort_vnode_swap_nodes();
	current->mm = mm;
	cohort_vnode_test_process(false);
	cohort_vnode_set_default(NULL);
	KUNIT_EXPECT_PTR_EQ(test, own, &cohort_vnode_test_wide.nodes);
	KUNIT_EXPECT_NULL(test, journal);
	KUNIT_EXPECT_NULL(test, metadata);
	KUNIT_EXPECT_NULL(test, left);
	KUNIT_EXPECT_NULL(test, swaps);
}

/*
 * Pages of memory that goes offline stay with their role while that has room, whichever process
 * says so; and then go anywhere, which its role does not change.
 */
static void cohort_vnode_test_offlined(struct kunit *test)
{
	const int other = MAX_NUMNODES - 1;
	nodemask_t others = nodemask_of_node(other), both, *target, *bound;
	nodemask_t mems = cpuset_current_mems_allowed;
	struct cohort_vnode *vn;
	int nid = 0;

	if (!other)
		kunit_skip(test, "one node");
	vn = cohort_vnode_test_layout(test);
	target = __cohort_vnode_target(MR_MEMORY_HOTPLUG, vn->nid, other, &others);
	KUNIT_EXPECT_PTR_EQ(test, target, &vn->nodes);
	/* Nor does room help that the cpuset leaves out. */
	node_set(other, vn->nodes);
	set_mems_allowed(others);
	target = __cohort_vnode_target(MR_MEMORY_HOTPLUG, vn->nid, other, &others);
	set_mems_allowed(mems);
	KUNIT_EXPECT_TRUE(test, !IS_ENABLED(CONFIG_CPUSETS) ||
			  target == &node_states[N_MEMORY]);
	/* A role without memory has no room. */
	vn->nodes = others;
	vn->nid = other;
	target = __cohort_vnode_target(MR_MEMORY_HOTPLUG, other, other, &others);
	KUNIT_EXPECT_PTR_EQ(test, target, &node_states[N_MEMORY]);
	bound = cohort_vnode_test_bind(GFP_HIGHUSER_MOVABLE, &nid, target, &both);
	KUNIT_EXPECT_PTR_EQ(test, bound, &node_states[N_MEMORY]);
	KUNIT_EXPECT_EQ(test, nid, 0);
	cohort_vnode_test_layout_end();
}

/*
 * What is demoted goes to a slower node of its role or stays, as does what a scheme of DAMON
 * sends away.
 */
static void cohort_vnode_test_demoted(struct kunit *test)
{
	const int other = MAX_NUMNODES - 1;
	nodemask_t both = nodemask_of_node(other);
	bool away, within, second, compacted, damon;
	struct cohort_vnode *vn;

	if (!other)
		kunit_skip(test, "one node");
	vn = cohort_vnode_test_layout(test);
	away = __cohort_vnode_demotes_away(MR_DEMOTION, vn->nid, other, NULL);
	/* The thread that this is runs in the kernel, as a scheme of DAMON does. */
	damon = __cohort_vnode_demotes_away(MR_COMPACTION, vn->nid, other, NULL);
	compacted = __cohort_vnode_demotes_away(MR_COMPACTION, vn->nid, vn->nid, NULL);
	node_set(other, vn->nodes);
	within = __cohort_vnode_demotes_away(MR_DEMOTION, vn->nid, other, NULL);
	second = __cohort_vnode_demotes_away(MR_DEMOTION, vn->nid, other, &both);
	cohort_vnode_test_layout_end();
	KUNIT_EXPECT_TRUE(test, away);
	KUNIT_EXPECT_TRUE(test, damon);
	KUNIT_EXPECT_FALSE(test, compacted);
	KUNIT_EXPECT_FALSE(test, within);
	KUNIT_EXPECT_TRUE(test, second);
}

/* What is free in the blocks of a role's processes is theirs: it is not idle, to be lent. */
static void cohort_vnode_test_holes_stay(struct kunit *test)
{
	struct cohort_vnode *vn = &cohort_vnode_test_wide;
	unsigned long flags, more;
	long lends[2], has[2];
	struct zone *zone;
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	page = alloc_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	zone = page_zone(page);
	vn->nodes = nodemask_of_node(page_to_nid(page));
	more = zone_page_state(zone, NR_FREE_PAGES) / 4;
	/* What others take and free meanwhile is far less. */
	spin_lock_irqsave(&zone->lock, flags);
	lends[0] = cohort_lend_headroom(&vn->nodes, true);
	has[0] = cohort_lend_headroom(&vn->nodes, false);
	zone->cohort_soft += more;
	lends[1] = cohort_lend_headroom(&vn->nodes, true);
	has[1] = cohort_lend_headroom(&vn->nodes, false);
	zone->cohort_soft -= more;
	spin_unlock_irqrestore(&zone->lock, flags);
	KUNIT_EXPECT_GT(test, has[1], has[0] - (long)more / 2);
	KUNIT_EXPECT_LT(test, lends[1], lends[0] - (long)more / 2);
	__free_page(page);
	cohort_pcpa_test_end(test);
}

/*
 * A node that kswapd has given up is given up once kswapd has tried anew, and not while the
 * flushers make pages clean.
 */
static void cohort_vnode_test_hopeless(struct kunit *test)
{
	struct pglist_data *pgdat = NODE_DATA(first_node(node_states[N_MEMORY]));
	nodemask_t nodes = nodemask_of_node(pgdat->node_id);
	const long dirty = totalram_pages() / 4;
	struct cohort_vnode_hope *hope = &cohort_vnode_hope[pgdat->node_id];
	nodemask_t more = nodes, far = nodemask_of_node(MAX_NUMNODES - 1);
	nodemask_t mems = cpuset_current_mems_allowed;
	bool stale, dirtied, stuck, trickle, slow, fresh, confined;

	mutex_lock(&oom_lock);
	memset(hope, 0, sizeof(*hope));
	WRITE_ONCE(pgdat->kswapd_failures, MAX_RECLAIM_RETRIES);
	hope->until = jiffies + HZ;
	/* The first look is at dirty pages. */
	mod_node_page_state(pgdat, NR_FILE_DIRTY, dirty);
	dirtied = __cohort_vnode_hopeless(&nodes);
	mod_node_page_state(pgdat, NR_FILE_DIRTY, -dirty);
	hope->until = 0;
	stale = __cohort_vnode_hopeless(&nodes);
	KUNIT_EXPECT_LT(test, READ_ONCE(pgdat->kswapd_failures), MAX_RECLAIM_RETRIES);
	/* It takes its time. */
	hope->tried -= 30 * HZ;
	WRITE_ONCE(pgdat->kswapd_failures, MAX_RECLAIM_RETRIES);
	slow = __cohort_vnode_hopeless(&nodes);
	mod_node_page_state(pgdat, NR_FILE_DIRTY, dirty);
	dirtied |= __cohort_vnode_hopeless(&nodes);
	/* Nothing was written since. */
	hope->moved -= 30 * HZ;
	stuck = __cohort_vnode_hopeless(&nodes);
	/* A page is written now and then, for long. */
	hope->moved = jiffies;
	hope->begun -= 120 * HZ;
	trickle = __cohort_vnode_hopeless(&nodes);
	mod_node_page_state(pgdat, NR_FILE_DIRTY, -dirty);
	fresh = __cohort_vnode_hopeless(&nodes);
	WRITE_ONCE(pgdat->kswapd_failures, 0);
	/* A node that the cpuset leaves out is no hope. */
	node_set(MAX_NUMNODES - 1, more);
	set_mems_allowed(far);
	confined = __cohort_vnode_hopeless(&more);
	set_mems_allowed(mems);
	memset(hope, 0, sizeof(*hope));
	mutex_unlock(&oom_lock);
	KUNIT_EXPECT_FALSE(test, stale);
	KUNIT_EXPECT_TRUE(test, slow);
	KUNIT_EXPECT_FALSE(test, dirtied);
	KUNIT_EXPECT_TRUE(test, stuck);
	KUNIT_EXPECT_TRUE(test, trickle);
	KUNIT_EXPECT_TRUE(test, fresh);
	KUNIT_EXPECT_TRUE(test, confined || MAX_NUMNODES == 1 || !IS_ENABLED(CONFIG_CPUSETS));
}

/* Where nothing is lent any more the free path does not look; it does until then. */
static void cohort_vnode_test_lends_no_more(struct kunit *test)
{
	/* It lends already. */
	struct cohort_vnode *vn = cohort_vnode_test_layout(test);

	KUNIT_EXPECT_EQ(test, cohort_vnode_lend(true), 0);
	atomic_long_inc(&vn->lent);
	KUNIT_EXPECT_EQ(test, cohort_vnode_lend(false), 0);
	KUNIT_EXPECT_TRUE(test, cohort_vnode_lending());
	atomic_long_dec(&vn->lent);
	KUNIT_EXPECT_EQ(test, cohort_vnode_lend(false), 0);
	KUNIT_EXPECT_FALSE(test, cohort_vnode_lending());
	cohort_owner_switch(&cohort_lend_key, true);
	cohort_vnode_test_layout_end();
}

static struct kunit_case cohort_vnode_left_test_cases[] = {
	KUNIT_CASE(cohort_vnode_test_policies),
	KUNIT_CASE(cohort_vnode_test_confined),
	KUNIT_CASE(cohort_vnode_test_raised),
	KUNIT_CASE(cohort_vnode_test_fork),
	KUNIT_CASE(cohort_vnode_test_default_said),
	KUNIT_CASE(cohort_vnode_test_raised_last),
	KUNIT_CASE(cohort_vnode_test_hidden),
	KUNIT_CASE(cohort_vnode_test_tables),
	KUNIT_CASE(cohort_vnode_test_journal),
	KUNIT_CASE(cohort_vnode_test_moves),
	KUNIT_CASE(cohort_vnode_test_swaps),
	KUNIT_CASE(cohort_vnode_test_unbound),
	KUNIT_CASE(cohort_vnode_test_offlined),
	KUNIT_CASE(cohort_vnode_test_demoted),
	KUNIT_CASE(cohort_vnode_test_holes_stay),
	KUNIT_CASE(cohort_vnode_test_hopeless),
	KUNIT_CASE(cohort_vnode_test_lends_no_more),
	{}
};

static struct kunit_suite cohort_vnode_left_test_suite = {
	.name = "cohort_vnode_left",
	.test_cases = cohort_vnode_left_test_cases,
};
kunit_test_suite(cohort_vnode_left_test_suite);
