// SPDX-License-Identifier: GPL-2.0
/*
 * Process classes.  Android writes oom_score_adj whenever the role of a
 * process changes; that is all Cohort needs to know.
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

#include "cohort.h"
#include "rightsize.h"

/**
 * cohort_class_changed() - oom_score_adj of @task was written
 * @task: any thread of the process; caller holds oom_adj_mutex
 *
 * Sharers of an address space that did not vfork get the same value from
 * __set_oom_adj(), so the last write speaks for all of them.
 */
void cohort_class_changed(struct task_struct *task)
{
	enum cohort_class class = cohort_class_of(task->signal->oom_score_adj);
	struct task_struct *p = find_lock_task_mm(task);
	struct cohort_domain *dom;

	if (!p)
		return;
	cohort_scope_note(p->mm, task->signal->oom_score_adj);
	dom = READ_ONCE(p->mm->cohort);
	if (dom && dom->class != class) {
		trace_cohort_class_change(task_pid_nr(p), dom->class, class);
		WRITE_ONCE(dom->class, class);
		cohort_cpb_set_class(dom, class);
		if (class == COHORT_BACKGROUND)
			cohort_compact_queue(dom, READ_ONCE(cohort_compact_delay_ms));
	}
	task_unlock(p);
}
