// SPDX-License-Identifier: GPL-2.0
/*
 * Entitled processes: clients of the page-cache-preferred area by right, as the paper's are.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>

#include "../cohort.h"
#include "pcpa.h"

/**
 * cohort_pcpa_is_entitled() - is a process a client?
 * @task: any of its threads
 *
 * Return: 1 or 0, or -ESRCH.
 */
int cohort_pcpa_is_entitled(struct task_struct *task)
{
	struct task_struct *p = find_lock_task_mm(task);
	int yes;

	if (!p)
		return -ESRCH;
	yes = test_bit(COHORT_ENTITLED_BIT, &p->mm->flags);
	task_unlock(p);
	return yes;
}

/**
 * cohort_pcpa_entitle() - make a process a client, or none
 * @task: any of its threads
 * @on: what to do
 *
 * Return: 0, -EBUSY while its address space is its parent's, or -ESRCH.
 */
int cohort_pcpa_entitle(struct task_struct *task, bool on)
{
	struct task_struct *p = cohort_lock_process(task);
	int err = 0;

	if (!p)
		return -ESRCH;
	if (cohort_borrows_mm(p))
		err = -EBUSY;
	else
		assign_bit(COHORT_ENTITLED_BIT, &p->mm->flags, on);
	cohort_unlock_process(p);
	return err;
}
