// SPDX-License-Identifier: GPL-2.0
/*
 * Victims of the OOM killer: what a process has left in the nodes of a role that it left.
 *
 * Pages stay where they are when a process is given a role of less trust.  Where the role
 * that was left runs out of memory, such a process is a victim like those of the role, if
 * it has enough there for its death to help: what one that stayed may have, too, is shared
 * out.  Where no process of the role may be killed any more, no amount is asked for.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/oom.h>
#include <linux/pagemap.h>
#include <linux/pagewalk.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <trace/events/oom.h>

#include "../../internal.h"
#include "vnode.h"

/* Parts of a page, which is shared out among as many processes. */
#define LEFT_UNITS	256UL

/* A part of the nodes that is worth a victim. */
#define LEFT_PART	64

/* Entries that are looked at, in times of the pages that are worth one. */
#define LEFT_LOOKS	256

/**
 * struct cohort_left - what a walk of page tables has found
 * @nodes: where to look
 * @below: these are of more trust than the process, which may hide what it has there
 * @units: anonymous and shared memory there, pages of one that stayed shared out
 * @enough: units at which the walk ends
 * @large: pages that a process has mapped if it may have so much
 * @looks: entries that it may still look at
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
	struct vm_area_struct *vma;
	pgoff_t first, last;
	const void *with, *without;
};

/* Each count may lag behind by what each CPU has seen. */
static unsigned long cohort_left_mapped(struct mm_struct *mm)
{
	return get_mm_counter(mm, MM_ANONPAGES) + get_mm_counter(mm, MM_SHMEMPAGES);
}

/* Has this process a role of these nodes, and may it have what is worth a victim? */
static bool cohort_left_stayed(struct cohort_left *left, struct mm_struct *mm)
{
	if (!left->looks)
		return true;	/* the search is over, whatever it comes to */
	left->looks--;
	return nodes_intersects(cohort_vnode_said(mm)->nodes, *left->nodes) &&
	       cohort_left_mapped(mm) >= left->large;
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

/* A mapping of all of a huge page by one entry counts once, those of its pages each. */
static long cohort_left_sharers(const struct folio *folio)
{
	long all = folio_mapcount(folio);
	long whole = folio_test_large(folio) ? folio_entire_mapcount(folio) : 0;

	return max(whole + (all - whole) / folio_nr_pages(folio), 1L);
}

/* Shared memory that has no name goes with the last process that has it. */
static bool cohort_left_goes(struct vm_area_struct *vma, const struct page *page)
{
	return PageAnon(page) || (vma_is_shmem(vma) && !file_inode(vma->vm_file)->i_nlink);
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

static int cohort_left_walk(pmd_t *pmd, unsigned long addr, unsigned long end,
			    struct mm_walk *walk)
{
	struct cohort_left *left = walk->private;
	spinlock_t *ptl = pmd_trans_huge_lock(pmd, walk->vma);
	pte_t *pte, *first;

	left->vma = walk->vma;
	left->first = linear_page_index(walk->vma, addr);
	left->last = linear_page_index(walk->vma, end - 1);
	left->with = NULL;
	left->without = NULL;
	if (ptl) {
		if (pmd_present(*pmd))
			cohort_left_count(left, pmd_page(*pmd), (end - addr) >> PAGE_SHIFT);
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

static const struct mm_walk_ops cohort_left_ops = {
	.pmd_entry = cohort_left_walk,
	.walk_lock = PGWALK_RDLOCK,
};

/* Its @mm is in use.  For one that may hide it, true also if that cannot be found out. */
static bool cohort_vnode_left_much(struct mm_struct *mm, const nodemask_t *nodes, bool below)
{
	struct cohort_left left = { .nodes = nodes, .below = below };
	unsigned long pages = 0;
	int nid;

	for_each_node_mask(nid, *nodes)
		pages += node_present_pages(nid) / LEFT_PART;
	left.large = pages / 2;
	if (cohort_left_mapped(mm) < left.large)
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

/* May no process be killed whose role has these nodes?  Then the machine would panic. */
static bool cohort_vnode_deserted(const nodemask_t *nodes)
{
	struct task_struct *task;
	bool found = false;

	rcu_read_lock();
	for_each_process(task) {
		found = oom_badness(task, 0) != LONG_MIN &&
			nodes_intersects(cohort_vnode_of(task)->nodes, *nodes);
		if (found)
			break;
	}
	rcu_read_unlock();
	return !found;
}

/**
 * __cohort_vnode_oom_eligible() - would killing this process help?
 * @task: the process
 * @nodemask: the nodes that are short of memory
 *
 * One that was killed is waited for: it has no address space of its own while its pages are
 * freed.  One that has left a role for one of less trust may have much in the nodes it left;
 * where no other process of them is left to kill, it is a victim whatever it has there.
 *
 * Context: any that may take the task lock; sleeps not.
 * Return: false for one that lives in other nodes.
 */
bool __cohort_vnode_oom_eligible(struct task_struct *task, const nodemask_t *nodemask)
{
	struct mm_struct *mm = READ_ONCE(task->signal->oom_mm);	/* stays as long as the signal */
	struct task_struct *alive = mm ? NULL : find_lock_task_mm(task);
	const struct cohort_vnode *role;
	bool eligible, left, below;

	if (alive)
		mm = alive->mm;
	role = cohort_vnode_role_of(alive ?: task, mm);
	eligible = nodes_intersects(role->nodes, *nodemask);
	left = !eligible && mm && cohort_vnode_has_left(alive ?: task, mm);
	if (!alive)
		return eligible || left;
	left = left && mmget_not_zero(mm);
	task_unlock(alive);
	if (left) {
		below = cohort_vnode_below(role, nodemask);
		eligible = cohort_vnode_left_much(mm, nodemask, below) ||
			   (below && cohort_vnode_deserted(nodemask));
		mmput_async(mm);
	}
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
