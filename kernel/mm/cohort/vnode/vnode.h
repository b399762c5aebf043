/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Virtual memory nodes: what the files of the scheme share.
 */
#ifndef _MM_COHORT_VNODE_H
#define _MM_COHORT_VNODE_H

#include <linux/atomic.h>
#include <linux/cohort.h>
#include <linux/cpumask.h>
#include <linux/kobject.h>
#include <linux/mm_types.h>
#include <linux/nodemask.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "../lib/arith_vnode.h"

/*
 * Of COHORT_VNODE_BITS: the role's number; pages of a role that was left may be in its nodes; the
 * role was said without a right to more trust, so that the process has no more than the default.
 */
#define COHORT_VNODE_ROLE	0xfUL
#define COHORT_VNODE_LEFT	62
#define COHORT_VNODE_BOUND	63

/**
 * struct cohort_vnode - one virtual memory node, which is also a role
 * @name: as the operator calls it
 * @nodes: its NUMA nodes, one on each physical node it has memory of; fixed
 *	before the first process runs
 * @nid: the first of them
 * @cpus: online CPUs of these nodes; changes in CPU hotplug callbacks
 * @lent: its pages that hold page cache of others
 * @hand: frame where taking them back goes on; any value will do
 * @starved: pages that a request did not get back in time, since what memory.min protects is spared
 * @barren: jiffies before which requests for its memory do not look for them again
 * @unusable_pct: share of its free memory that may be in pieces below order 4
 *	before kcompactd compacts it, percent; 0: as the kernel does
 * @tidy_wait: checks to skip before it does that again
 * @tidy_defer: how many next time, as a power of two
 * @oom_kills: processes of this role that the kernel killed
 * @kobj: its directory in sysfs
 *
 * Roles are ordered by trust: the first of the layout is the most trusted.
 */
struct cohort_vnode {
	char name[COHORT_VNODE_NAME];
	nodemask_t nodes;
	int nid;
	struct cpumask cpus;
	atomic_long_t lent;
	unsigned long hand;
	unsigned long starved;
	unsigned long barren;
	unsigned int unusable_pct;
	int tidy_wait, tidy_defer;
	atomic_long_t oom_kills;
	struct kobject *kobj;
};

/**
 * struct cohort_vnode_hope - what was seen of a node by requests that no process is killed for
 * @written: pages that had been written back at the last look
 * @moved: jiffies, when that last changed
 * @looked: jiffies, when the last look was
 * @base: pages that had been written back at @begun
 * @begun: jiffies, since when the flushers have made little progress, and have much to do
 * @tried: jiffies, since when kswapd tries once more; 0: it does not
 * @until: jiffies, up to which it is believed that it gave up; 0: it is not
 *
 * Under oom_lock.
 */
struct cohort_vnode_hope {
	unsigned long written, moved, looked, base, begun, tried, until;
};

extern struct cohort_vnode_hope cohort_vnode_hope[MAX_NUMNODES];
extern struct cohort_vnode cohort_vnodes[COHORT_VNODE_MAX];
extern unsigned int cohort_nr_vnodes;	/* 0: no layout, the scheme is off */

struct cohort_vnode *cohort_vnode_current(void);
int cohort_vnode_present(const nodemask_t *nodes);
int cohort_vnode_home(int nid);
bool cohort_vnode_stays(gfp_t gfp, unsigned int order);
nodemask_t *cohort_vnode_swap_nodes(void);

/*
 * Does the running context allocate for a process, and not to free memory?  A process that has
 * given its address space back on its way out has no role any more.
 */
static inline bool cohort_vnode_for_process(void)
{
	return in_task() && current->mm && !(current->flags & (PF_KTHREAD | PF_MEMALLOC));
}

/*
 * What may wait until a process is killed for it.  What may not and is for user memory, or is not
 * retried, has a smaller request behind it; and so have larger pieces whose failure is not told:
 * those of a socket.  Inside a file system, or under I/O, the kernel's own would wait there, and
 * with it all that wait for a journal; also where a pool is behind it, which all roles share.
 * That it cannot be moved tells it from user memory, as cpusets make a hard wall of what the bulk
 * allocator asks for, and so does a transaction: its metadata is page cache of the block device.
 * Pages of memory for each CPU, asked for with these flags and no others, are of all roles, and so
 * is the mutex under which they are allocated: each fork takes it.
 */
static inline bool cohort_vnode_gfp_stays(gfp_t gfp, unsigned int order)
{
	const gfp_t kills = __GFP_DIRECT_RECLAIM | __GFP_FS;
	bool user = gfp & __GFP_MOVABLE;

	if ((gfp & kills) == __GFP_DIRECT_RECLAIM && (!user || current->journal_info))
		return false;
	if (gfp == (GFP_KERNEL | __GFP_HIGHMEM) && !order)
		return false;
	if (!user && (gfp & __GFP_HIGH))
		gfp &= ~__GFP_HARDWALL;
	return (gfp & kills) == kills || (gfp & (__GFP_HARDWALL | __GFP_NORETRY)) ||
	       (order && (gfp & (__GFP_NOWARN | __GFP_HIGH)) == __GFP_NOWARN);
}

struct cohort_vnode *cohort_vnode_of(struct task_struct *task);
struct cohort_vnode *cohort_vnode_find(const char *name);
struct cohort_vnode *cohort_vnode_of_node(int nid);
struct cohort_vnode *cohort_vnode_default(void);
void cohort_vnode_set_default(struct cohort_vnode *vn);
void cohort_vnode_begin(unsigned int nr, const char *name);
const char *cohort_vnode_name(struct task_struct *task);
int cohort_vnode_move(struct task_struct *task, const char *name, bool may);
struct cohort_vnode *cohort_vnode_said(const struct mm_struct *mm);
#ifdef CONFIG_CPUSETS
struct cohort_vnode *cohort_vnode_by_cpuset(struct task_struct *task, struct cohort_vnode *vn);
#else
static inline struct cohort_vnode *cohort_vnode_by_cpuset(struct task_struct *task,
							  struct cohort_vnode *vn)
{
	return vn;
}
#endif
struct cohort_vnode *cohort_vnode_role_of(struct task_struct *task, const struct mm_struct *mm);
bool cohort_vnode_has_left(const struct task_struct *task, const struct mm_struct *mm);

#ifdef CONFIG_COHORT_VNODE
void cohort_vnode_inherit(struct mm_struct *mm, bool exec);
#else
static inline void cohort_vnode_inherit(struct mm_struct *mm, bool exec)
{
}
#endif

/* What was said of an address space: the role's number, 0 for none. */
static inline unsigned int cohort_vnode_number(const struct mm_struct *mm)
{
	return READ_ONCE(mm->flags) >> COHORT_VNODE_SHIFT & COHORT_VNODE_ROLE;
}

/* boot.c */
const char *cohort_vnode_layout(void);
bool __cohort_vnode_wanted(void);
int cohort_vnode_nid(u64 start, int phys_nid, u64 *end);
void cohort_vnode_commit(void);

/* left.c */
bool cohort_vnode_left_much(struct mm_struct *mm, const nodemask_t *nodes, bool below);
void cohort_vnode_count_victims(void);

/* lend.c */
void cohort_vnode_returned(unsigned long pfn);
struct folio *cohort_vnode_borrow(struct address_space *mapping, gfp_t gfp);
long cohort_lend_headroom(const nodemask_t *nodes, bool to_lend);
bool cohort_vnode_lends(void);
int cohort_vnode_lend(bool on);

/* move.c */
bool cohort_vnode_needs(const struct cohort_vnode *vn, int nid, enum node_states state);
void cohort_vnode_watch_memory(void);

/* tidy.c */
void cohort_vnode_tidy_now(const struct cohort_vnode *vn);

#ifdef CONFIG_COHORT_VNODE
int cohort_vnode_sysfs_init(struct kobject *parent);
#else
static inline int cohort_vnode_sysfs_init(struct kobject *parent)
{
	return 0;
}
#endif

#endif /* _MM_COHORT_VNODE_H */
