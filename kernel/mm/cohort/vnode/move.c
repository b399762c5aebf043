// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that move to other frames: in which nodes these are looked for; and memory that may
 * not go.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpuset.h>
#include <linux/memory.h>
#include <linux/migrate_mode.h>
#include <linux/mm_types.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/rcupdate.h>

#include "../cohort.h"
#include "../host/hugetlb.h"
#include "../host/khugepaged.h"
#include "../host/migrate.h"
#include "vnode.h"

/* For pages as most are, which may be in ZONE_NORMAL at the highest, where the cpuset allows it. */
static bool cohort_vnode_has_room(const struct cohort_vnode *vn)
{
	struct zone *zone;

	for_each_populated_zone(zone)
		if (node_isset(zone_to_nid(zone), vn->nodes) &&
		    node_isset(zone_to_nid(zone), cpuset_current_mems_allowed) &&
		    zone_idx(zone) <= ZONE_NORMAL &&
		    zone_watermark_ok(zone, 0, high_wmark_pages(zone), ZONE_NORMAL, 0))
			return true;
	return false;
}

/**
 * __cohort_vnode_target() - where a page goes that is moved
 * @reason: enum migrate_reason
 * @from: where it is
 * @to: the node that was named, or @from
 * @nodemask: where it may go
 *
 * The role of the process that asked is another's: for a contiguous piece say, or for pages of
 * a process that it sends away, whose node was looked at in __cohort_vnode_sent().  Pages of
 * memory that goes offline stay with their role while that has room, and then find some
 * elsewhere, whichever role the task has: that would be tried for ever.
 *
 * Return: the nodes of its role, or @nodemask; also where the kernel moves it, and the task's
 * cpuset has none of them.  For memory that goes offline all nodes instead, from @from on.
 */
nodemask_t *__cohort_vnode_target(int reason, int from, int to, nodemask_t *nodemask)
{
	struct cohort_vnode *vn = cohort_vnode_of_node(reason == MR_SYSCALL ? to : from);
	bool there = vn && nodes_intersects(vn->nodes, cpuset_current_mems_allowed);

	if (reason == MR_MEMORY_HOTPLUG)
		return vn && cohort_vnode_has_room(vn) ? &vn->nodes : &node_states[N_MEMORY];
	if (!vn || (reason != MR_CONTIG_RANGE && reason != MR_MEMORY_FAILURE &&
		    reason != MR_SYSCALL))
		return nodemask;
	/* A process that may have nothing there sends nothing there either, nor elsewhere. */
	return there || reason == MR_SYSCALL ? &vn->nodes : nodemask;
}

/**
 * __cohort_vnode_demotes_away() - would a page that the kernel sends to a node leave its role?
 * @reason: enum migrate_reason
 * @from: where it is
 * @to: the slower node that was named
 * @nodemask: NULL if it goes there or stays, else where it may go instead
 *
 * It goes to the node that was named if its role has that, and to none else: which of the
 * others are of the role @nodemask has no room to say.  A mask without a node would not do: the
 * allocator forgets one that has none of the task's cpuset.
 */
bool __cohort_vnode_demotes_away(int reason, int from, int to, const nodemask_t *nodemask)
{
	/* A scheme of DAMON, which sends pages to a node that it names, gives no reason: 0. */
	bool damon = reason == MR_COMPACTION && to != from && (current->flags & PF_KTHREAD);
	struct cohort_vnode *vn = NULL;

	if (reason == MR_DEMOTION || damon)
		vn = cohort_vnode_of_node(from);
	return vn && (nodemask || !node_isset(to, vn->nodes));
}

/**
 * __cohort_vnode_huge() - which nodes serve a process that takes a huge page beside the pool
 * @nid: the node of its policy; changed if that is of another role
 * @nodemask: the nodes of its policy, or NULL
 *
 * Return: the nodes.
 */
nodemask_t *__cohort_vnode_huge(int *nid, nodemask_t *nodemask)
{
	int asked = *nid;

	if (cohort_vnode_for_process())
		*nid = cohort_vnode_home(asked);
	return *nid == asked ? nodemask : NULL;
}

/*
 * The nodes of the role of a process.  In khugepaged, whose own cpuset has all nodes, that of
 * the process counts.  NULL where a cpuset may give the role and the process is not known.
 */
static const nodemask_t *cohort_vnode_nodes_of(const struct mm_struct *mm)
{
	const nodemask_t *nodes = NULL;
#ifdef CONFIG_MEMCG
	struct task_struct *owner;

	rcu_read_lock();
	owner = rcu_dereference(mm->owner);
	if (owner)
		nodes = &cohort_vnode_role_of(owner, mm)->nodes;
	rcu_read_unlock();
#endif
	return nodes || cpusets_enabled() ? nodes : cohort_vnode_nodes(mm, true);
}

/**
 * __cohort_vnode_sent() - where pages of a process go that are sent to a node
 * @mm: its address space
 * @nid: the node that was named
 *
 * Whichever process sends them: one of the same user may, of any role.
 *
 * Return: @nid if its role has it, else a node that it has; where its role is not known, of
 * that of the process that sends them.
 */
int __cohort_vnode_sent(const struct mm_struct *mm, int nid)
{
	const nodemask_t *nodes = cohort_vnode_nodes_of(mm);

	if (!nodes)
		return cohort_vnode_for_process() ? cohort_vnode_home(nid) : nid;
	return node_isset(nid, *nodes) ? nid : cohort_vnode_present(nodes);
}

/**
 * __cohort_vnode_keeps() - do pages of a process stay in a node that they are sent from?
 * @mm: its address space
 * @from: the node
 * @to: the node that was named; changed if that is of another role
 */
bool __cohort_vnode_keeps(const struct mm_struct *mm, int from, int *to)
{
	*to = __cohort_vnode_sent(mm, *to);
	return *to == from;
}

/**
 * __cohort_vnode_collapse() - in which nodes a huge page is looked for that replaces small ones
 * @mm: their address space
 * @load: how many there are in each node; those of other roles are 0 afterwards
 *
 * A process has pages in another role's node that it shares with its parent, or had in a role
 * that it left: one of them is enough for a huge page.
 */
void __cohort_vnode_collapse(const struct mm_struct *mm, u32 *load)
{
	const nodemask_t *nodes = cohort_vnode_nodes_of(mm);
	bool any = false;
	int nid;

	if (!nodes)
		return;
	for (nid = 0; nid < MAX_NUMNODES; nid++) {
		if (!node_isset(nid, *nodes))
			load[nid] = 0;
		any |= load[nid];
	}
	if (any)
		return;
	for_each_node_mask(nid, *nodes)
		load[nid] = 1;
}

/**
 * cohort_vnode_needs() - would a role have no memory without this node?
 * @vn: the role
 * @nid: one of its nodes
 * @state: which memory: any, or what the kernel may use for itself
 */
bool cohort_vnode_needs(const struct cohort_vnode *vn, int nid, enum node_states state)
{
	nodemask_t others;

	nodes_and(others, vn->nodes, node_states[state]);
	node_clear(nid, others);
	return nodes_empty(others);
}

/*
 * Without memory each page fault of a role would fail, and be tried again for ever: no other
 * node may serve it, and no kill would help.
 */
static int cohort_vnode_memory_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	const struct memory_notify *mem = data;
	const struct cohort_vnode *vn = NULL;
	enum node_states state = N_NORMAL_MEMORY;
	int nid = mem->status_change_nid_normal;

	/* The last of a node that is for page tables, too, or the last of all. */
	if (nid == NUMA_NO_NODE) {
		nid = mem->status_change_nid;
		state = N_MEMORY;
	}
	if (action == MEM_GOING_OFFLINE && nid != NUMA_NO_NODE)
		vn = cohort_vnode_of_node(nid);
	if (!vn || !cohort_vnode_needs(vn, nid, state))
		return NOTIFY_OK;
	pr_notice_ratelimited("vnode: the last memory of %s stays online\n", vn->name);
	return notifier_from_errno(-EBUSY);
}

/**
 * cohort_vnode_watch_memory() - each role keeps some memory from now on
 */
void __init cohort_vnode_watch_memory(void)
{
	hotplug_memory_notifier(cohort_vnode_memory_notify, DEFAULT_CALLBACK_PRI);
}
