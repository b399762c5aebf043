// SPDX-License-Identifier: GPL-2.0
/*
 * Victims of the OOM killer: what a process has left in the nodes of a role that it left.
 *
 * Pages stay where they are when a process is given another role, or a cpuset moves it.  Where
 * the role that was left runs out of memory, such a process is a victim like those of the role,
 * if it has enough there for its death to help: what one that stayed may have, too, is shared
 * out.  Where no process of the role may be killed any more, one that left it is, whatever it has
 * there: the machine would panic.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/cpuset.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/oom.h>
#include <linux/pagemap.h>
#include <linux/pagewalk.h>
#include <linux/percpu_counter.h>
#include <linux/pgtable.h>
#include <linux/pid_namespace.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/shmem_fs.h>
#include <trace/events/oom.h>

#include "../../internal.h"
#include "vnode.h"

/* Parts of a page, which is shared out among as many processes. */
#define LEFT_UNITS	256UL

/* A part of the nodes that is worth a victim. */
#define LEFT_PART	64

/* Entries that are looked at, in times of the pages that are worth one. */
#define LEFT_LOOKS	256

/* That kswapd has given a node up is believed for so long, and then it is to try once more. */
#define GIVEN_UP	(10 * HZ)

/* A try that it gives up later than this does not count as one; and the flushers have so long. */
#define GIVE_UP		(60 * HZ)

/**
 * struct cohort_left - what a walk of page tables has found
 * @nodes: where to look
 * @below: these are of more trust than the process, which may hide what it has there
 * @units: page tables, anonymous and shared memory there, pages of one that stayed shared out
 * @enough: units at which the walk ends
 * @large: pages that a process has, tables included, if it may have so much
 * @looks: entries that it may still look at
 * @last_pmd: the entry of the page table that was counted last: several mappings may have it
 * @last_pud: that of the table of those
 * @vma: the mapping that is looked at
 * @first: where the pages of its page table begin
 * @last: where they end
 * @with: family or file of which a large process that stayed has a mapping there, too
 * @without: one of which none has
 */
struct cohort_left {
	const nodemask_t *nodes;
	bool below;
	unsigned long units;
	unsigned long enough;
	unsigned long large;
	unsigned long looks;
	const void *last_pmd, *last_pud;
	struct vm_area_struct *vma;
	pgoff_t first, last;
	const void *with, *without;
};

/* Each count may lag behind by what each CPU has seen. */
static unsigned long cohort_left_mapped(struct mm_struct *mm)
{
	return get_mm_counter(mm, MM_ANONPAGES) + get_mm_counter(mm, MM_SHMEMPAGES);
}

/* A cpuset may have some of the nodes of a role alone. */
static bool cohort_vnode_cpuset_has(const struct task_struct *thread, const nodemask_t *nodes)
{
#ifdef CONFIG_CPUSETS
	return nodes_intersects(thread->mems_allowed, *nodes);
#else
	return true;
#endif
}

/* Does a process of which only the address space is known allocate in one of these nodes? */
static bool cohort_left_lives(const struct mm_struct *mm, const nodemask_t *nodes)
{
	const struct cohort_vnode *role = cohort_vnode_said(mm);
	bool allowed = true;
#ifdef CONFIG_MEMCG
	struct task_struct *owner;

	rcu_read_lock();
	owner = rcu_dereference(mm->owner);
	if (owner) {
		role = cohort_vnode_by_cpuset(owner, cohort_vnode_said(mm));
		allowed = cohort_vnode_cpuset_has(owner, nodes);
	}
	rcu_read_unlock();
#endif
	return allowed && nodes_intersects(role->nodes, *nodes);
}

/* Does this process live in these nodes, and may it have what is worth a victim? */
static bool cohort_left_stayed(struct cohort_left *left, struct mm_struct *mm)
{
	if (!left->looks)
		return true;	/* the search is over, whatever it comes to */
	left->looks--;
	return cohort_left_lives(mm, left->nodes) && cohort_left_mapped(mm) >= left->large;
}

static bool cohort_left_in_family(struct cohort_left *left, struct anon_vma *family)
{
	struct anon_vma_chain *chain;

	anon_vma_interval_tree_foreach(chain, &family->rb_root, left->first, left->last)
		if (cohort_left_stayed(left, chain->vma->vm_mm))
			return true;
	return false;
}

static bool cohort_left_in_file(struct cohort_left *left, struct address_space *file)
{
	struct vm_area_struct *vma;

	vma_interval_tree_foreach(vma, &file->i_mmap, left->first, left->last)
		if (cohort_left_stayed(left, vma->vm_mm))
			return true;
	return false;
}

/*
 * May one that stayed have this page, too?  What a family has by fork, and a file, have a tree
 * of their mappings; a process can see to it that its lock is taken.
 */
static bool cohort_left_shared(struct cohort_left *left, struct folio *folio)
{
	struct anon_vma *family = folio_anon_vma(folio);
	struct address_space *file;
	bool stayed;

	if (folio_test_ksm(folio) || left->with == folio->mapping)
		return true;
	if (left->without == folio->mapping)
		return false;
	if (family) {
		if (!anon_vma_trylock_read(family))
			return !left->below;
		stayed = cohort_left_in_family(left, family);
		anon_vma_unlock_read(family);
	} else {
		file = left->vma->vm_file->f_mapping;
		if (!i_mmap_trylock_read(file))
			return !left->below;
		stayed = cohort_left_in_file(left, file);
		i_mmap_unlock_read(file);
	}
	*(stayed ? &left->with : &left->without) = folio->mapping;
	return stayed;
}

/*
 * The same to the page, with page tables: these are a process's own, and a process with threads,
 * or many CPUs, hides much from the count that lags behind.
 */
static unsigned long cohort_left_has(struct mm_struct *mm)
{
	return percpu_counter_sum_positive(&mm->rss_stat[MM_ANONPAGES]) +
	       percpu_counter_sum_positive(&mm->rss_stat[MM_SHMEMPAGES]) +
	       mm_pgtables_bytes(mm) / PAGE_SIZE;
}

/* A mapping of all of a huge page by one entry counts once, those of its pages each. */
static long cohort_left_sharers(const struct folio *folio)
{
	long all = folio_mapcount(folio);
	long whole = folio_test_large(folio) ? folio_entire_mapcount(folio) : 0;

	return max(whole + (all - whole) / folio_nr_pages(folio), 1L);
}

/* By the file: a segment of System V has operations of its own. */
static bool cohort_left_shmem(const struct vm_area_struct *vma)
{
	return vma->vm_file && shmem_mapping(vma->vm_file->f_mapping);
}

/*
 * Shared memory that has no name goes with the last process that has it.  Of System V's segments
 * none has one, and those that are not marked to be destroyed stay all the same.
 */
static bool cohort_left_goes(struct vm_area_struct *vma, const struct page *page)
{
	return PageAnon(page) ||
	       (cohort_left_shmem(vma) && !file_inode(vma->vm_file)->i_nlink);
}

static void cohort_left_count(struct cohort_left *left, struct page *page, unsigned long nr)
{
	long sharers;

	if (!page || !node_isset(page_to_nid(page), *left->nodes) ||
	    !cohort_left_goes(left->vma, page))
		return;
	sharers = cohort_left_sharers(page_folio(page));
	if (sharers > 1 && !cohort_left_shared(left, page_folio(page)))
		sharers = 1;
	left->units += nr * LEFT_UNITS / sharers;
}

/* A process may map what counts as nothing, at any length. */
static bool cohort_left_looked(struct cohort_left *left, unsigned long nr)
{
	left->looks -= min(nr, left->looks);
	return left->units >= left->enough || !left->looks;
}

/* One of a process's own tables.  It may be freed meanwhile: only where it lies is looked at. */
static void cohort_left_count_table(struct cohort_left *left, const void **last,
				    const void *entry, const struct page *table)
{
	if (*last != entry && node_isset(page_to_nid(table), *left->nodes))
		left->units += LEFT_UNITS;
	*last = entry;
}

/* Huge mappings of this size are devices', and would be split if they were not passed over. */
static int cohort_left_walk_pud(pud_t *pud, unsigned long addr, unsigned long end,
				struct mm_walk *walk)
{
	struct cohort_left *left = walk->private;
	pud_t entry = READ_ONCE(*pud);

	if (!pud_present(entry) || pud_leaf(entry))
		walk->action = ACTION_CONTINUE;
#if CONFIG_PGTABLE_LEVELS > 2
	else
		cohort_left_count_table(left, &left->last_pud, pud, pud_page(entry));
#endif
	return left->units >= left->enough;
}

/* A huge mapping has its page table put by, for when it is split: one of those of its PMD table. */
static void cohort_left_count_huge(struct cohort_left *left, struct mm_walk *walk, pmd_t *pmd,
				   unsigned long addr, unsigned long nr)
{
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	pgtable_t table = pmd_huge_pte(walk->mm, pmd);

	if (table)
		cohort_left_count_table(left, &left->last_pmd, pmd, table);
	if (pmd_present(*pmd))
		cohort_left_count(left, vm_normal_page_pmd(walk->vma, addr, *pmd), nr);
#endif
}

/* Of files, of devices, and of pages that are all zero, the tables alone count. */
static bool cohort_left_tables_alone(struct vm_area_struct *vma, pmd_t entry)
{
	if (vma->vm_flags & VM_PFNMAP)
		return true;
	return !vma->anon_vma && !cohort_left_shmem(vma) &&
	       !(pmd_leaf(entry) && vma_is_anonymous(vma));
}

static int cohort_left_walk(pmd_t *pmd, unsigned long addr, unsigned long end,
			    struct mm_walk *walk)
{
	struct cohort_left *left = walk->private;
	pmd_t table = pmdp_get_lockless(pmd);
	pte_t *pte, *first;
	spinlock_t *ptl;

	if (pmd_present(table) && !pmd_leaf(table))
		cohort_left_count_table(left, &left->last_pmd, pmd, pmd_page(table));
	if (cohort_left_tables_alone(walk->vma, table))
		return cohort_left_looked(left, 1);
	left->vma = walk->vma;
	left->first = linear_page_index(walk->vma, addr);
	left->last = linear_page_index(walk->vma, end - 1);
	left->with = NULL;
	left->without = NULL;
	ptl = pmd_trans_huge_lock(pmd, walk->vma);
	if (ptl) {
		cohort_left_count_huge(left, walk, pmd, addr, (end - addr) >> PAGE_SHIFT);
		spin_unlock(ptl);
		return cohort_left_looked(left, 1);
	}
	first = pte_offset_map_lock(walk->mm, pmd, addr, &ptl);
	if (!first)
		return 0;
	for (pte = first; addr < end; pte++, addr += PAGE_SIZE) {
		pte_t entry = ptep_get(pte);

		if (pte_present(entry))
			cohort_left_count(left, vm_normal_page(walk->vma, addr, entry), 1);
	}
	pte_unmap_unlock(first, ptl);
	return cohort_left_looked(left, pte - first);
}

/* Else what has no pages of its own would be passed over, and its tables with it. */
static int cohort_left_skips_none(unsigned long start, unsigned long end, struct mm_walk *walk)
{
	return 0;
}

static const struct mm_walk_ops cohort_left_ops = {
	.pud_entry = cohort_left_walk_pud,
	.pmd_entry = cohort_left_walk,
	.test_walk = cohort_left_skips_none,
	.walk_lock = PGWALK_RDLOCK,
};

/**
 * cohort_vnode_left_much() - has a process enough in some nodes for its death to help?
 * @mm: its address space, in use
 * @nodes: the nodes
 * @below: it has less trust than they, and may hide it: true also if that cannot be found out
 *
 * Context: any; sleeps not.
 */
bool cohort_vnode_left_much(struct mm_struct *mm, const nodemask_t *nodes, bool below)
{
	struct cohort_left left = { .nodes = nodes, .below = below };
	unsigned long pages = 0;
	int nid;

	for_each_node_mask(nid, *nodes)
		pages += node_present_pages(nid) / LEFT_PART;
	left.large = pages / 2;
	if (cohort_left_has(mm) < left.large)
		return false;
	if (!mmap_read_trylock(mm))
		return below;
	left.enough = pages * LEFT_UNITS;
	left.looks = pages * LEFT_LOOKS;
	walk_page_range(mm, 0, -1, &cohort_left_ops, &left);
	mmap_read_unlock(mm);
	return left.units >= left.enough || (!left.looks && below);
}

/* Is one of these nodes of more trust than the role? */
static bool cohort_vnode_below(const struct cohort_vnode *role, const nodemask_t *nodes)
{
	const struct cohort_vnode *vn = cohort_vnodes;

	while (vn < role && !nodes_intersects(vn->nodes, *nodes))
		vn++;
	return vn < role;
}

/*
 * Does a thread of this process allocate in one of these nodes?  Each has a cpuset and a policy
 * of its own.  A policy that names no node of the role is none.
 */
static bool cohort_vnode_lives(struct task_struct *task, struct cohort_vnode *said,
			       const nodemask_t *nodes)
{
	const struct cohort_vnode *role;
	struct task_struct *thread;
	bool lives = false;

	rcu_read_lock();
	for_each_thread(task, thread) {
		role = cohort_vnode_by_cpuset(thread, said);
		lives = nodes_intersects(role->nodes, *nodes) &&
			cohort_vnode_cpuset_has(thread, nodes) &&
			(mempolicy_in_oom_domain(thread, nodes) ||
			 !mempolicy_in_oom_domain(thread, &role->nodes));
		if (lives)
			break;
	}
	rcu_read_unlock();
	return lives;
}

/* Does it, and may it be killed? */
static bool cohort_vnode_killable(struct task_struct *task, const nodemask_t *nodes)
{
	struct task_struct *alive;
	struct cohort_vnode *said;

	if (oom_badness(task, 0) == LONG_MIN)
		return false;
	alive = find_lock_task_mm(task);
	if (!alive)
		return false;
	said = cohort_vnode_said(alive->mm);
	task_unlock(alive);
	return cohort_vnode_lives(task, said, nodes);
}

/* The process that was found last: a look at it is as good as one at all. */
static pid_t killable_pid;

/* Under RCU. */
static bool cohort_vnode_any_killable(const nodemask_t *nodes)
{
	struct task_struct *task;

	task = find_task_by_pid_ns(READ_ONCE(killable_pid), &init_pid_ns);
	if (task && cohort_vnode_killable(task, nodes))
		return true;
	for_each_process(task) {
		if (!cohort_vnode_killable(task, nodes))
			continue;
		WRITE_ONCE(killable_pid, task->pid);
		return true;
	}
	return false;
}

/* Nodes that had no such process, and the jiffies until which they are not looked at again. */
static DEFINE_SPINLOCK(deserted_lock);
static nodemask_t deserted_nodes;
static unsigned long deserted_until;

/*
 * May no process be killed whose role has these nodes?  Then the machine would panic.  The OOM
 * killer asks for each candidate: what is found out holds for as long as it took, and a jiffy.
 */
static bool cohort_vnode_deserted(const nodemask_t *nodes)
{
	unsigned long start = jiffies;
	bool deserted;

	spin_lock(&deserted_lock);
	deserted = nodes_equal(*nodes, deserted_nodes) && time_before(start, deserted_until);
	spin_unlock(&deserted_lock);
	if (deserted)
		return true;
	rcu_read_lock();
	deserted = !cohort_vnode_any_killable(nodes);
	rcu_read_unlock();
	if (deserted) {
		spin_lock(&deserted_lock);
		deserted_nodes = *nodes;
		deserted_until = jiffies + (jiffies - start) + 1;
		spin_unlock(&deserted_lock);
	}
	return deserted;
}

/* Would it help to kill a process that has this role now?  Its @mm is in use. */
static bool cohort_vnode_left_victim(struct mm_struct *mm, const struct cohort_vnode *role,
				     const nodemask_t *nodes)
{
	return cohort_vnode_left_much(mm, nodes, cohort_vnode_below(role, nodes)) ||
	       cohort_vnode_deserted(nodes);
}

struct cohort_vnode_hope cohort_vnode_hope[MAX_NUMNODES];

/*
 * Do the flushers make pages of a node clean, of which there are as many as lie between its
 * marks?  Storage that has brought nothing for long may never; nor does what a healthy device
 * brings, a page now and then, speak for a dead one.
 */
static bool cohort_vnode_flushed(struct pglist_data *pgdat, struct cohort_vnode_hope *hope)
{
	unsigned long nr = node_page_state(pgdat, NR_FILE_DIRTY) +
			   node_page_state(pgdat, NR_WRITEBACK);
	unsigned long written = node_page_state(pgdat, NR_WRITTEN), gap = 0;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++)
		gap += high_wmark_pages(&pgdat->node_zones[i]) -
		       min_wmark_pages(&pgdat->node_zones[i]);
	if (written != hope->written || time_after(jiffies, hope->looked + GIVEN_UP))
		hope->moved = jiffies;
	if (nr <= gap || written - hope->base > gap ||
	    time_after(jiffies, hope->looked + GIVE_UP)) {
		hope->begun = jiffies;
		hope->base = written;
	}
	hope->written = written;
	hope->looked = jiffies;
	return nr > gap && time_before(jiffies, hope->moved + GIVEN_UP) &&
	       time_before(jiffies, hope->begun + GIVE_UP);
}

/*
 * Has kswapd given a node up, and not long ago?  It does not run then until some reclaim brings
 * pages, whatever has become free to reclaim: so it is to try once more, which the request wakes
 * it for.
 */
static bool cohort_vnode_given_up(struct pglist_data *pgdat, struct cohort_vnode_hope *hope)
{
	if (READ_ONCE(pgdat->kswapd_failures) < MAX_RECLAIM_RETRIES)
		return false;
	if (hope->until && time_before(jiffies, hope->until))
		return true;
	if (hope->tried && time_before(jiffies, hope->tried + GIVE_UP)) {
		hope->tried = 0;
		hope->until = (jiffies + GIVEN_UP) | 1;
		return true;
	}
	hope->tried = jiffies | 1;
	WRITE_ONCE(pgdat->kswapd_failures, 0);
	return false;
}

/* What the task's cpuset leaves out helps it not, and there it is not short either. */
static nodemask_t cohort_vnode_short_of(const nodemask_t *nodemask)
{
	nodemask_t nodes;

	nodes_and(nodes, *nodemask, cpuset_current_mems_allowed);
	return nodes_empty(nodes) ? *nodemask : nodes;
}

/**
 * __cohort_vnode_hopeless() - has kswapd given up all nodes of a request?
 * @nodemask: the nodes
 *
 * For what asks from inside a file system: it cannot reclaim slab of inodes, nor wait for dirty
 * pages.  kswapd and the flushers can, and no process is killed beside what they may free.
 *
 * Context: caller holds oom_lock.
 */
bool __cohort_vnode_hopeless(const nodemask_t *nodemask)
{
	nodemask_t short_of = cohort_vnode_short_of(nodemask);
	bool hopeless = true;
	int nid;

	/* All of them: kswapd threads of several nodes try at the same time. */
	for_each_node_mask(nid, short_of) {
		if (!node_state(nid, N_MEMORY))
			continue;
		hopeless &= !cohort_vnode_flushed(NODE_DATA(nid), &cohort_vnode_hope[nid]);
		hopeless &= cohort_vnode_given_up(NODE_DATA(nid), &cohort_vnode_hope[nid]);
	}
	return hopeless;
}

/**
 * __cohort_vnode_oom_eligible() - would killing this process help?
 * @task: the process
 * @nodemask: the nodes that are short of memory
 *
 * One that was killed is waited for: it has no address space of its own while its pages are
 * freed.  One that has left a role may have much in the nodes it left, and so may one whose cpuset
 * or policy has other nodes of its role now; where no other process of them is left to kill, it
 * is a victim whatever it has there.
 *
 * Context: any that may take the task lock; sleeps not.
 * Return: false for one that lives in other nodes.
 */
bool __cohort_vnode_oom_eligible(struct task_struct *task, const nodemask_t *nodemask)
{
	struct mm_struct *mm = READ_ONCE(task->signal->oom_mm);	/* stays as long as the signal */
	struct task_struct *alive = mm ? NULL : find_lock_task_mm(task);
	nodemask_t short_of = cohort_vnode_short_of(nodemask);
	struct cohort_vnode *said, *role;
	bool eligible, left, in_use;

	if (alive)
		mm = alive->mm;
	said = cohort_vnode_said(mm);
	role = cohort_vnode_by_cpuset(alive ?: task, said);
	left = mm && (role != said || nodes_intersects(role->nodes, short_of) ||
		      cohort_vnode_has_left(alive ?: task, mm));
	in_use = mm && mmget_not_zero(mm);
	if (alive)
		task_unlock(alive);
	eligible = cohort_vnode_lives(task, said, &short_of);
	/* What is not in use any more is being freed. */
	if (!eligible && left)
		eligible = !in_use || cohort_vnode_left_victim(mm, role, &short_of);
	if (in_use)
		mmput_async(mm);
	return eligible;
}

/* The OOM killer holds the task lock, or @task is current. */
static void cohort_vnode_count_victim(void *unused, struct task_struct *task, uid_t uid)
{
	atomic_long_inc(&cohort_vnode_role_of(task, task->mm)->oom_kills);
}

/**
 * cohort_vnode_count_victims() - count the kills of each role from now on
 */
void __init cohort_vnode_count_victims(void)
{
	if (register_trace_mark_victim(cohort_vnode_count_victim, NULL))
		pr_warn("vnode: kills are not counted\n");
}
