// SPDX-License-Identifier: GPL-2.0
/*
 * Victims of the OOM killer: what a process has left in the nodes of a role that it left.
 *
 * Pages stay where they are when a process is given a role of less trust.  Where the role
 * that was left runs out of memory, such a process is a victim like those of the role, if
 * it has enough there for its death to help: what it shares with others is shared out.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/oom.h>
#include <linux/pagewalk.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <trace/events/oom.h>

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
 * @units: anonymous memory there, each page shared out among those that map it
 * @enough: units at which the walk ends
 * @looks: entries that it may still look at
 */
struct cohort_left {
	const nodemask_t *nodes;
	unsigned long units;
	unsigned long enough;
	unsigned long looks;
};

/* A mapping of all of a huge page by one entry counts once, those of its pages each. */
static long cohort_left_sharers(const struct folio *folio)
{
	long all = folio_mapcount(folio);
	long whole = folio_test_large(folio) ? folio_entire_mapcount(folio) : 0;

	return max(whole + (all - whole) / folio_nr_pages(folio), 1L);
}

static void cohort_left_count(struct cohort_left *left, struct page *page, unsigned long nr)
{
	if (!page || !PageAnon(page) || !node_isset(page_to_nid(page), *left->nodes))
		return;
	left->units += nr * LEFT_UNITS / cohort_left_sharers(page_folio(page));
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

/* True also if that cannot be found out, as a process could see to it.  Its @mm is in use. */
static bool cohort_vnode_left_much(struct mm_struct *mm, const nodemask_t *nodes)
{
	struct cohort_left left = { .nodes = nodes };
	unsigned long pages = 0;
	int nid;

	for_each_node_mask(nid, *nodes)
		pages += node_present_pages(nid) / LEFT_PART;
	/* The count may lag behind by what each CPU has seen. */
	if (get_mm_counter(mm, MM_ANONPAGES) < pages / 2)
		return false;
	if (!mmap_read_trylock(mm))
		return true;
	left.enough = pages * LEFT_UNITS;
	left.looks = pages * LEFT_LOOKS;
	walk_page_range(mm, 0, -1, &cohort_left_ops, &left);
	mmap_read_unlock(mm);
	return left.units >= left.enough || !left.looks;
}

/**
 * __cohort_vnode_oom_eligible() - would killing this process help?
 * @task: the process
 * @nodemask: the nodes that are short of memory
 *
 * One that was killed is waited for: it has no address space of its own while its pages are
 * freed.  One that has left a role for one of less trust may have much in the nodes it left.
 *
 * Context: any that may take the task lock; sleeps not.
 * Return: false for one that lives in other nodes.
 */
bool __cohort_vnode_oom_eligible(struct task_struct *task, const nodemask_t *nodemask)
{
	struct mm_struct *mm = READ_ONCE(task->signal->oom_mm);	/* stays as long as the signal */
	struct task_struct *alive = mm ? NULL : find_lock_task_mm(task);
	bool eligible, left;

	if (alive)
		mm = alive->mm;
	eligible = nodes_intersects(cohort_vnode_role_of(alive ?: task, mm)->nodes, *nodemask);
	left = !eligible && mm && cohort_vnode_has_left(alive ?: task, mm);
	if (!alive)
		return eligible || left;
	left = left && mmget_not_zero(mm);
	task_unlock(alive);
	if (left) {
		eligible = cohort_vnode_left_much(mm, nodemask);
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
