// SPDX-License-Identifier: GPL-2.0
/*
 * Virtual memory nodes: memory split at boot (boot.c), and processes that stay in
 * their part of it.
 *
 * A process has the role its address space says, which fork and exec copy; 0
 * is the default role.  A cpuset whose memory lies in other nodes overrules it: that
 * is how Android and systemd say it.  The role is looked at where a page is
 * allocated and where a victim is chosen; pages already placed stay.
 *
 * The layout is fixed before the first process runs.  Only the default role
 * and the role of a process change later; each is one word, read without a
 * lock.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpuset.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/oom.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/swap.h>

#include "../cohort.h"
#include "vnode.h"

struct cohort_vnode cohort_vnodes[COHORT_VNODE_MAX];
unsigned int cohort_nr_vnodes __ro_after_init;

static struct cohort_vnode *default_vnode __read_mostly;
static u64 default_moved;		/* when it last became another one; 0: never */

/**
 * cohort_vnode_find() - a virtual node by its name
 * @name: its name, perhaps with a newline
 *
 * Return: the node, NULL if there is none.
 */
struct cohort_vnode *cohort_vnode_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < cohort_nr_vnodes; i++)
		if (sysfs_streq(name, cohort_vnodes[i].name))
			return &cohort_vnodes[i];
	return NULL;
}

/**
 * cohort_vnode_of_node() - the virtual node that a NUMA node belongs to
 * @nid: the NUMA node
 *
 * Return: the virtual node, NULL if it has none: memory added later.
 */
struct cohort_vnode *cohort_vnode_of_node(int nid)
{
	unsigned int i;

	for (i = 0; i < cohort_nr_vnodes; i++)
		if (node_isset(nid, cohort_vnodes[i].nodes))
			return &cohort_vnodes[i];
	return NULL;
}

/**
 * cohort_vnode_begin() - the roles are there from now on
 * @nr: how many; cohort_vnodes tells of each
 * @name: the default one
 */
void __init cohort_vnode_begin(unsigned int nr, const char *name)
{
	cohort_nr_vnodes = nr;
	default_vnode = cohort_vnode_find(name);
}

/**
 * cohort_vnode_default() - the role of processes that were given none
 */
struct cohort_vnode *cohort_vnode_default(void)
{
	return READ_ONCE(default_vnode);
}

/**
 * cohort_vnode_set_default() - another role for processes that were given none
 * @vn: the role
 */
void cohort_vnode_set_default(struct cohort_vnode *vn)
{
	if (vn != cohort_vnode_default())
		WRITE_ONCE(default_moved, ktime_get_boottime_ns());
	/* A process that has the new one already is told by the time. */
	smp_store_release(&default_vnode, vn);
}

#ifdef CONFIG_CPUSETS
/**
 * cohort_vnode_by_cpuset() - the role of one thread
 * @task: the thread
 * @vn: the role that was given to its process
 *
 * Return: that of the node a cpuset confines it to, @vn if it leaves that one open.
 */
struct cohort_vnode *cohort_vnode_by_cpuset(struct task_struct *task, struct cohort_vnode *vn)
{
	unsigned int i;

	if (!cpusets_enabled() || nodes_intersects(vn->nodes, task->mems_allowed))
		return vn;
	for (i = 0; i < cohort_nr_vnodes; i++)
		if (nodes_intersects(cohort_vnodes[i].nodes, task->mems_allowed))
			return &cohort_vnodes[i];
	return vn;
}
#endif

/**
 * cohort_vnode_said() - the role that was given to a process, whatever a cpuset says
 * @mm: its address space, NULL if that is gone
 */
struct cohort_vnode *cohort_vnode_said(const struct mm_struct *mm)
{
	unsigned long flags = mm ? READ_ONCE(mm->flags) : 0;
	unsigned int role = flags >> COHORT_VNODE_SHIFT & COHORT_VNODE_ROLE;
	struct cohort_vnode *vn = cohort_vnode_default();

	if (!role)
		return vn;
	return flags & BIT(COHORT_VNODE_BOUND) ? max(vn, &cohort_vnodes[role - 1]) :
						 &cohort_vnodes[role - 1];
}

/* Was a process given a role with a right to it, whatever the default one is? */
static bool cohort_vnode_given(const struct mm_struct *mm)
{
	unsigned long flags = READ_ONCE(mm->flags);

	return flags >> COHORT_VNODE_SHIFT & COHORT_VNODE_ROLE &&
	       !(flags & BIT(COHORT_VNODE_BOUND));
}

/**
 * cohort_vnode_has_left() - may a process have pages in the nodes of a role that it left?
 * @task: one of its threads
 * @mm: its address space
 *
 * One that was given no role, or by itself alone, has left the default one, too, if that was
 * another when it began.
 */
bool cohort_vnode_has_left(const struct task_struct *task, const struct mm_struct *mm)
{
	return test_bit(COHORT_VNODE_LEFT, &mm->flags) ||
	       (!cohort_vnode_given(mm) &&
		task->group_leader->start_boottime <= READ_ONCE(default_moved));
}

/**
 * cohort_vnode_inherit() - a child shares what its parent has in nodes of a role that it left
 * @mm: the child's address space; current is the parent
 * @exec: it is that of a program that current executes, which has nothing of before
 *
 * The parent may be gone when that is asked, and the child is younger than the default role.
 */
void cohort_vnode_inherit(struct mm_struct *mm, bool exec)
{
	if (!current->mm)
		return;
	if (exec)
		clear_bit(COHORT_VNODE_LEFT, &mm->flags);
	else if (cohort_vnode_has_left(current, current->mm))
		set_bit(COHORT_VNODE_LEFT, &mm->flags);
}

/**
 * cohort_vnode_role_of() - the role of a task
 * @task: the task
 * @mm: its address space, NULL if that is gone
 */
struct cohort_vnode *cohort_vnode_role_of(struct task_struct *task, const struct mm_struct *mm)
{
	return cohort_vnode_by_cpuset(task, cohort_vnode_said(mm));
}

/**
 * cohort_vnode_of() - the role of a process
 * @task: any thread of it, pinned or under RCU
 *
 * Context: takes the task lock of one of its threads.
 */
struct cohort_vnode *cohort_vnode_of(struct task_struct *task)
{
	struct task_struct *alive = find_lock_task_mm(task);
	struct cohort_vnode *vn;

	if (!alive)
		return cohort_vnode_role_of(task, NULL);
	vn = cohort_vnode_role_of(task, alive->mm);
	task_unlock(alive);
	return vn;
}

/**
 * cohort_vnode_name() - the role of a process, for /proc
 * @task: any thread of it, pinned
 *
 * Return: its name, "none" without a layout.
 */
const char *cohort_vnode_name(struct task_struct *task)
{
	return cohort_nr_vnodes ? cohort_vnode_of(task)->name : "none";
}

/**
 * cohort_vnode_move() - give a process a role
 * @task: any thread of it, pinned
 * @name: the role, perhaps with a newline
 * @may: towards more trust, too
 *
 * Pages already there stay.  Trust that a cpuset lends its members goes with the cpuset, and that
 * of the default role with the default: what was said without a right to more stays a bound.
 *
 * Return: 0, -ENODEV without a layout, -EINVAL for no such role, -EACCES if
 * the caller may not, -EBUSY while the address space is its parent's, or -ESRCH.
 */
int cohort_vnode_move(struct task_struct *task, const char *name, bool may)
{
	struct cohort_vnode *vn = cohort_vnode_find(name), *said, *role;
	struct task_struct *alive;
	int err = 0;

	if (!cohort_nr_vnodes)
		return -ENODEV;
	if (!vn)
		return -EINVAL;
	alive = cohort_lock_process(task);
	if (!alive)
		return -ESRCH;
	if (cohort_borrows_mm(alive)) {
		cohort_unlock_process(alive);
		return -EBUSY;
	}
	said = cohort_vnode_said(alive->mm);
	role = cohort_vnode_by_cpuset(alive, said);
	if (!may && vn < max(role, said)) {
		err = -EACCES;
	} else {
		/* One that was given a role with a right stays below that by itself. */
		bool given = may || cohort_vnode_given(alive->mm);

		if (vn != role || vn != said || cohort_vnode_has_left(alive, alive->mm))
			set_bit(COHORT_VNODE_LEFT, &alive->mm->flags);
		set_mask_bits(&alive->mm->flags,
			      COHORT_VNODE_ROLE << COHORT_VNODE_SHIFT | BIT(COHORT_VNODE_BOUND),
			      (vn - cohort_vnodes + 1UL) << COHORT_VNODE_SHIFT |
			      (given ? 0 : BIT(COHORT_VNODE_BOUND)));
	}
	cohort_unlock_process(alive);
	return err;
}

/*
 * Binding
 *
 *	user processes that may wait	stay in their node; a memory policy
 *	or do without: huge pages,	chooses among the NUMA nodes of that
 *	balancing, larger fragments,
 *	pieces of a driver
 *	what is swapped out to memory	stays in the node it is reclaimed from
 *	kernel threads, interrupts,	begin in the node of their role and
 *	other requests that may not	go on in the others: no trusted process
 *	wait; inside a file system or	may wait for them
 *	under I/O the kernel's own
 *	what SLUB asks of a node first	is of the role, or refused: it asks again
 *	DMA zones, a node by name	as asked: not every node has the zone
 */

/**
 * cohort_vnode_stays() - may this request be served by its own node only?
 * @gfp: the request, of the running context
 * @order: its order
 */
bool cohort_vnode_stays(gfp_t gfp, unsigned int order)
{
	/* The bulk allocator asks before it looks at what the task is in the middle of. */
	return cohort_vnode_for_process() &&
	       cohort_vnode_gfp_stays(current_gfp_context(gfp), order);
}

/**
 * cohort_vnode_current() - the role of the running task
 *
 * What it takes in a role that a cpuset gives stays there when the cpuset is another one.
 */
struct cohort_vnode *cohort_vnode_current(void)
{
	struct mm_struct *mm = current->mm;
	struct cohort_vnode *said = cohort_vnode_said(mm);
	struct cohort_vnode *vn = cohort_vnode_by_cpuset(current, said);

	if (vn != said && mm && !test_bit(COHORT_VNODE_LEFT, &mm->flags))
		set_bit(COHORT_VNODE_LEFT, &mm->flags);
	return vn;
}

/**
 * cohort_vnode_present() - a node of some that has memory
 * @nodes: a role's
 *
 * Return: the first, if all of them are offline.
 */
int cohort_vnode_present(const nodemask_t *nodes)
{
	int nid;

	for_each_node_mask(nid, *nodes)
		if (node_state(nid, N_MEMORY))
			return nid;
	return first_node(*nodes);
}

/**
 * cohort_vnode_home() - which node the current task's memory comes from
 * @nid: the node that is nearest
 *
 * Return: @nid if its role has it, else one that it has.
 */
int cohort_vnode_home(int nid)
{
	const struct cohort_vnode *vn = cohort_vnode_current();

	return node_isset(nid, vn->nodes) ? nid : cohort_vnode_present(&vn->nodes);
}

/* Was this mask chosen by the scheme: by an earlier look, to lend, or for what has to move? */
static bool cohort_vnode_chosen(const nodemask_t *nodemask)
{
	return nodemask == &node_states[N_MEMORY] ||
	       ((void *)nodemask >= (void *)cohort_vnodes &&
		(void *)nodemask < (void *)(cohort_vnodes + COHORT_VNODE_MAX));
}

/*
 * What the role has of the nodes that a policy allows, as for a cpuset; all it has
 * if that is none.  A request that may not wait may hold a lock that a console takes.
 */
static nodemask_t *cohort_vnode_within(struct cohort_vnode *vn, const nodemask_t *allowed,
				       nodemask_t *both, bool may_print)
{
	nodes_and(*both, *allowed, vn->nodes);
	if (!nodes_empty(*both))
		return both;
	if (may_print)
		pr_notice_once("vnode: %s (%d) has a memory policy for nodes %*pbl that its role does not have; it gets those of %s\n",
			       current->comm, current->pid, nodemask_pr_args(allowed), vn->name);
	return &vn->nodes;
}

/* A pool of huge pages is of a size for each node, which root has set. */
static bool cohort_vnode_for_pool(gfp_t gfp)
{
	return (gfp & (__GFP_NOWARN | __GFP_NOMEMALLOC)) == __GFP_NOWARN;
}

/**
 * cohort_vnode_nodes() - where a task allocates for another address space
 * @mm: the address space: a traced process's, or of a program that is about to run
 * @any: there is no policy that names nodes
 *
 * Return: the nodes of its role, or of the one that the task's cpuset has instead; NULL where
 * the page allocator cuts a policy to the same role.
 */
nodemask_t *cohort_vnode_nodes(const struct mm_struct *mm, bool any)
{
	struct cohort_vnode *vn = cohort_vnode_by_cpuset(current, cohort_vnode_said(mm));

	if (!any && cohort_vnode_for_process() && vn == cohort_vnode_current())
		return NULL;
	return &vn->nodes;
}

/*
 * User memory that was asked for by node, and may be had elsewhere: pages that a process may send
 * away, as move_pages(2) does, and larger pieces that a driver takes of the node nearest to it.
 */
static bool cohort_vnode_may_stray(gfp_t gfp, unsigned int order)
{
	const gfp_t piece = __GFP_HARDWALL | __GFP_NORETRY;

	return ((gfp & __GFP_MOVABLE) || (order && (gfp & piece) == piece)) &&
	       !cohort_vnode_for_pool(gfp);
}

/* The kernel's own by node, for a process: what may not wait is asked for again, of any node. */
static bool cohort_vnode_refused(gfp_t gfp)
{
	return cohort_vnode_for_process() && !(gfp & (__GFP_DIRECT_RECLAIM | __GFP_HARDWALL));
}

/**
 * cohort_vnode_swap_nodes() - which nodes hold what the running context swaps out to memory
 *
 * A process that reclaims does so in its own node, kswapd in the one it is for.  One that writes
 * to compressed memory as to a disk may be in the middle of a transaction.
 *
 * Return: the nodes of that role; NULL, all, for what does not reclaim.
 */
nodemask_t *cohort_vnode_swap_nodes(void)
{
	struct cohort_vnode *vn = NULL;

	if (current_is_kswapd()) {
		const struct pglist_data *pgdat = kthread_data(current);

		vn = cohort_vnode_of_node(pgdat->node_id);
	} else if (in_task() && current->mm &&
		   (current->flags & (PF_KTHREAD | PF_MEMALLOC)) == PF_MEMALLOC) {
		vn = cohort_vnode_current();
	}
	return vn ? &vn->nodes : NULL;
}

/**
 * __cohort_vnode_bind() - which nodes serve this request
 * @gfp: the request
 * @order: its order
 * @nid: the node to begin with; changed if it is in another role's memory
 * @nodemask: what a memory policy allows, or NULL
 * @both: room for the answer, as long as the request lasts
 *
 * Return: the nodes for the request, NULL for all.
 */
nodemask_t *__cohort_vnode_bind(gfp_t gfp, unsigned int order, int *nid, nodemask_t *nodemask,
				nodemask_t *both)
{
	struct cohort_vnode *vn;
	bool stays;

	if ((gfp & (__GFP_DMA | __GFP_DMA32)) || cohort_vnode_chosen(nodemask))
		return nodemask;
	stays = cohort_vnode_stays(gfp, order);
	vn = in_task() ? cohort_vnode_current() : cohort_vnode_default();
	if (gfp & __GFP_THISNODE) {
		if (node_isset(*nid, vn->nodes))
			return nodemask;
		if (stays && cohort_vnode_may_stray(gfp, order))
			*nid = cohort_vnode_present(&vn->nodes);
		else if (cohort_vnode_refused(gfp))
			return &vn->nodes;	/* the node's zonelist has none of these */
		return nodemask;
	}
	/*
	 * A kernel thread that names nodes works on memory of others: khugepaged.  A process's
	 * policy names some also where it does not wait: many preferred ones are tried so first.
	 */
	if (nodemask && (!cohort_vnode_for_process() || nodes_subset(*nodemask, vn->nodes)))
		return nodemask;
	if (!node_isset(*nid, vn->nodes))
		*nid = cohort_vnode_present(&vn->nodes);
	if (nodemask)
		return cohort_vnode_within(vn, nodemask, both, gfpflags_allow_blocking(gfp));
	return stays ? &vn->nodes : NULL;
}
