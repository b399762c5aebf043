// SPDX-License-Identifier: GPL-2.0
/*
 * The domain of a process, and its class.  Android writes oom_score_adj whenever the
 * role of a process changes; that is all Cohort needs to know.
 *
 * The rule: a class decides where the next page goes.  Pages already placed
 * stay where they are.  So a child of the zygote starts in the shared domain
 * and moves to its own with the first write of oom_score_adj, and a service
 * that comes to the foreground uses its own domain until it is a service
 * again.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <trace/events/cohort.h>

#include "../cohort.h"

/**
 * cohort_lock_process() - hold a process while something is said of its address space
 * @task: any thread of it, pinned
 *
 * No child is being forked meanwhile: one has heard already what is said of its parent, or
 * has its number and can be told by itself.
 *
 * Return: a thread that has the address space, or NULL, and nothing is held.
 */
struct task_struct *cohort_lock_process(struct task_struct *task)
{
	struct task_struct *alive;

	read_lock(&tasklist_lock);
	alive = find_lock_task_mm(task);
	if (!alive)
		read_unlock(&tasklist_lock);
	return alive;
}

/**
 * cohort_unlock_process() - let go of it
 * @alive: what cohort_lock_process() returned
 */
void cohort_unlock_process(struct task_struct *alive)
{
	task_unlock(alive);
	read_unlock(&tasklist_lock);
}

/**
 * cohort_borrows_mm() - is this a vfork child that executes no other program yet?
 * @task: the task
 *
 * What is said of it is not said of its parent, whose memory it uses.
 */
bool cohort_borrows_mm(struct task_struct *task)
{
	/* Threads of the kernel use the field otherwise; and one may be waited for with memory. */
	return !(task->flags & PF_KTHREAD) && in_vfork(task);
}

static enum cohort_class cohort_class_now(const struct task_struct *task)
{
	return cohort_class_of(READ_ONCE(task->signal->oom_score_adj));
}

#ifdef CONFIG_MEMCG
/* Under RCU. */
static const struct task_struct *cohort_mm_owner(const struct mm_struct *mm)
{
	return rcu_dereference(mm->owner);
}

/* Neither a vfork child speaks for what it borrows nor a thread of the kernel. */
static bool cohort_speaks_for_mm(struct task_struct *task)
{
	const struct task_struct *owner = cohort_mm_owner(task->mm);

	return !owner || owner->signal == task->signal;
}
#else
static const struct task_struct *cohort_mm_owner(const struct mm_struct *mm)
{
	return current;
}

static bool cohort_speaks_for_mm(struct task_struct *task)
{
	return !(task->flags & PF_KTHREAD) && !cohort_borrows_mm(task);
}
#endif

/* A fault may be another process's: it writes into this one's memory. */
static enum cohort_class cohort_class_of_mm(const struct mm_struct *mm)
{
	const struct task_struct *owner;
	enum cohort_class class;

	rcu_read_lock();
	owner = cohort_mm_owner(mm);
	class = owner ? cohort_class_now(owner) : COHORT_NORMAL;
	rcu_read_unlock();
	return class;
}

/* The first anonymous page of an address space makes its domain. */
static struct cohort_domain *cohort_mm_create(struct mm_struct *mm)
{
	struct cohort_domain *dom, *old;
	enum cohort_class class;

	dom = cohort_domain_create(COHORT_PROCESS, GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT);
	if (!dom)
		return NULL;
	old = cmpxchg(&mm->cohort, NULL, dom);
	if (old) {
		cohort_domain_destroy(dom);
		return old;
	}
	/* After it can be found, and until it holds: a write in between is not lost. */
	do {
		class = cohort_class_of_mm(mm);
		WRITE_ONCE(dom->class, class);
		smp_mb();	/* pairs with the one in cohort_class_note() */
	} while (class != cohort_class_of_mm(mm));
	return dom;
}

/**
 * cohort_mm_domain() - a process's own domain
 * @mm: its address space
 *
 * Return: the domain, NULL if there is no memory for it.
 */
struct cohort_domain *cohort_mm_domain(struct mm_struct *mm)
{
	return READ_ONCE(mm->cohort) ?: cohort_mm_create(mm);
}

/**
 * __cohort_mm_exit() - the pages of an address space are unmapped
 * @mm: address space that has a domain, after exit_mmap()
 */
void __cohort_mm_exit(struct mm_struct *mm)
{
	struct cohort_domain *dom = mm->cohort;

	mm->cohort = NULL;
	if (cancel_delayed_work(&dom->work))
		cohort_domain_put(dom);
	cohort_domain_destroy(dom);
}

/**
 * cohort_class_note() - the role of a process may have changed
 * @task: one of its threads, locked, with an address space
 */
void cohort_class_note(struct task_struct *task)
{
	enum cohort_class class = cohort_class_now(task);
	struct cohort_domain *dom;

	smp_mb();	/* pairs with the one in cohort_mm_create() */
	dom = READ_ONCE(task->mm->cohort);
	if (!dom || READ_ONCE(dom->class) == class)
		return;
	trace_cohort_class_change(task_pid_nr(task), dom->class, class);
	WRITE_ONCE(dom->class, class);
	if (class == COHORT_BACKGROUND)
		cohort_compact_queue(dom, READ_ONCE(cohort_compact_delay_ms));
}

/**
 * cohort_each_process() - have all processes looked at
 * @note: called with each task locked, which has an address space
 *
 * For what is written while nothing looks.
 */
void cohort_each_process(void (*note)(struct task_struct *task))
{
	struct task_struct *task, *p;

	rcu_read_lock();
	for_each_process(task) {
		p = find_lock_task_mm(task);
		if (!p)
			continue;
		if (cohort_speaks_for_mm(p))
			note(p);
		task_unlock(p);
	}
	rcu_read_unlock();
}
