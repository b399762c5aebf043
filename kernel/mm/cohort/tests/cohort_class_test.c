// SPDX-License-Identifier: GPL-2.0
/*
 * Process classes: oom_score_adj decides where the next page goes, and pages
 * already placed stay where they are.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "cohort_test.h"

struct cohort_class_test_param {
	int adj;
	enum cohort_class class;
	enum cohort_kind kind;
};

static const struct cohort_class_test_param cohort_class_test_params[] = {
	{ -1000, COHORT_PERSISTENT, COHORT_SHARED },
	{ -900, COHORT_PERSISTENT, COHORT_SHARED },
	{ -700, COHORT_PERSISTENT, COHORT_SHARED },
	{ -699, COHORT_NORMAL, COHORT_PROCESS },
	{ 0, COHORT_NORMAL, COHORT_PROCESS },
	{ 499, COHORT_NORMAL, COHORT_PROCESS },
	{ 500, COHORT_SERVICE, COHORT_SVC },
	{ 501, COHORT_NORMAL, COHORT_PROCESS },
	{ 599, COHORT_NORMAL, COHORT_PROCESS },
	{ 600, COHORT_BACKGROUND, COHORT_PROCESS },
	{ 700, COHORT_BACKGROUND, COHORT_PROCESS },
	{ 800, COHORT_SERVICE, COHORT_SVC },
	{ 899, COHORT_BACKGROUND, COHORT_PROCESS },
	{ 900, COHORT_BACKGROUND, COHORT_PROCESS },
	{ 1000, COHORT_BACKGROUND, COHORT_PROCESS },
};

static void cohort_class_test_desc(const struct cohort_class_test_param *param,
				   char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "adj %d", param->adj);
}

KUNIT_ARRAY_PARAM(cohort_class_test, cohort_class_test_params, cohort_class_test_desc);

static void cohort_class_test_first_page(struct kunit *test)
{
	const struct cohort_class_test_param *param = test->param_value;
	struct cohort_domain *dom;
	unsigned long addr;

	KUNIT_EXPECT_EQ(test, cohort_class_of(param->adj), param->class);

	addr = cohort_test_map(test, 1);
	cohort_test_set_adj(param->adj);
	cohort_test_grow_up(test);
	cohort_test_touch(test, addr, 1);
	KUNIT_EXPECT_EQ(test, current->mm->cohort->class, param->class);
	dom = cohort_test_domain_at(test, addr);
	KUNIT_ASSERT_NOT_NULL(test, dom);
	KUNIT_EXPECT_EQ(test, dom->kind, param->kind);
}

/* A class decides about the next page only. */
static void cohort_class_test_next_page(struct kunit *test)
{
	static const struct {
		int adj;
		enum cohort_kind kind;
	} step[] = {
		{ 0, COHORT_PROCESS }, { -800, COHORT_SHARED }, { 500, COHORT_SVC },
		{ 200, COHORT_PROCESS }, { 800, COHORT_SVC }, { 950, COHORT_PROCESS },
	};
	struct cohort_domain *dom[ARRAY_SIZE(step)];
	unsigned long addr = cohort_test_map(test, ARRAY_SIZE(step));
	unsigned int i;

	cohort_test_grow_up(test);
	for (i = 0; i < ARRAY_SIZE(step); i++) {
		cohort_test_set_adj(step[i].adj);
		cohort_test_touch(test, addr + i * PAGE_SIZE, 1);
		dom[i] = cohort_test_domain_at(test, addr + i * PAGE_SIZE);
		KUNIT_ASSERT_NOT_NULL(test, dom[i]);
		KUNIT_EXPECT_EQ(test, dom[i]->kind, step[i].kind);
	}
	for (i = 0; i < ARRAY_SIZE(step); i++)
		KUNIT_EXPECT_PTR_EQ(test, dom[i],
				    cohort_test_domain_at(test, addr + i * PAGE_SIZE));
	KUNIT_EXPECT_PTR_EQ(test, dom[0], current->mm->cohort);
	KUNIT_EXPECT_PTR_EQ(test, dom[3], current->mm->cohort);
	KUNIT_EXPECT_PTR_EQ(test, dom[5], current->mm->cohort);
}

/*
 * A child of the zygote starts with the zygote's oom_score_adj; the activity
 * manager writes its own a moment later.
 */
static void cohort_class_test_zygote_child(struct kunit *test)
{
	unsigned long addr = cohort_test_map(test, 2);

	cohort_test_set_adj(-1000);
	cohort_test_grow_up(test);
	cohort_test_touch(test, addr, 1);
	KUNIT_EXPECT_EQ(test, cohort_test_domain_at(test, addr)->kind, COHORT_SHARED);

	cohort_test_set_adj(0);
	cohort_test_touch(test, addr + PAGE_SIZE, 1);
	KUNIT_EXPECT_PTR_EQ(test, cohort_test_domain_at(test, addr + PAGE_SIZE),
			    current->mm->cohort);
	KUNIT_EXPECT_EQ(test, cohort_test_domain_at(test, addr)->kind, COHORT_SHARED);
}

static void cohort_class_test_background_is_compacted(struct kunit *test)
{
	unsigned long addr = cohort_test_map(test, 1);
	unsigned int delay = cohort_compact_delay_ms;
	bool pending_before, pending;
	struct cohort_domain *dom;

	cohort_test_set_adj(0);
	cohort_test_touch(test, addr, 1);
	dom = current->mm->cohort;
	KUNIT_ASSERT_NOT_NULL(test, dom);

	WRITE_ONCE(cohort_compact_delay_ms, 10 * MSEC_PER_SEC);
	cohort_test_set_adj(599);
	pending_before = delayed_work_pending(&dom->work);
	cohort_test_set_adj(600);
	pending = delayed_work_pending(&dom->work);
	WRITE_ONCE(cohort_compact_delay_ms, delay);

	KUNIT_EXPECT_FALSE(test, pending_before);
	KUNIT_EXPECT_TRUE(test, pending);
	/* The end of the address space cancels it. */
}

/* One that was compacted for long rests, however often it says that it is in the background. */
static void cohort_class_test_rests(struct kunit *test)
{
	unsigned long addr = cohort_test_map(test, 1), soon, later;
	unsigned int delay = cohort_compact_delay_ms;
	struct cohort_domain *dom;

	cohort_test_set_adj(0);
	cohort_test_touch(test, addr, 1);
	dom = current->mm->cohort;
	KUNIT_ASSERT_NOT_NULL(test, dom);
	WRITE_ONCE(cohort_compact_delay_ms, 10 * MSEC_PER_SEC);
	cohort_test_set_adj(900);
	soon = dom->work.timer.expires - jiffies;
	cohort_test_set_adj(0);
	if (cancel_delayed_work(&dom->work))
		cohort_domain_put(dom);
	WRITE_ONCE(dom->rest, jiffies + 100 * HZ);
	cohort_test_set_adj(900);
	later = dom->work.timer.expires - jiffies;
	WRITE_ONCE(cohort_compact_delay_ms, delay);
	KUNIT_EXPECT_LE(test, soon, 10 * HZ);
	KUNIT_EXPECT_GT(test, later, 90 * HZ);
}

/* A write that found no domain to tell is not lost. */
static void cohort_class_test_late_write(struct kunit *test)
{
	unsigned long addr = cohort_test_map(test, 1);

	KUNIT_ASSERT_NULL(test, current->mm->cohort);
	current->signal->oom_score_adj = 900;
	cohort_test_touch(test, addr, 1);
	KUNIT_ASSERT_NOT_NULL(test, current->mm->cohort);
	KUNIT_EXPECT_EQ(test, current->mm->cohort->class, COHORT_BACKGROUND);
}

/* What a vfork child writes is for the program that it will execute. */
static void cohort_class_test_vfork(struct kunit *test)
{
	struct task_struct *task = kmemdup(current, sizeof(*task), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, task);
	/* Any value that is not NULL: no child is waited for. */
	task->vfork_done = (struct completion *)task;
	KUNIT_EXPECT_FALSE(test, cohort_borrows_mm(task));
	task->flags &= ~PF_KTHREAD;
	KUNIT_EXPECT_TRUE(test, cohort_borrows_mm(task));
	task->vfork_done = NULL;
	KUNIT_EXPECT_FALSE(test, cohort_borrows_mm(task));
	kfree(task);
}

/* Another process faults pages in: a pager, a debugger.  Its class is not the owner's. */
static void cohort_class_test_foreign_fault(struct kunit *test)
{
#ifdef CONFIG_MEMCG
	struct mm_struct *mm = mm_alloc();
	struct cohort_domain *dom;

	KUNIT_ASSERT_NOT_NULL(test, mm);
	rcu_assign_pointer(mm->owner, &init_task);
	current->signal->oom_score_adj = -900;
	dom = cohort_mm_domain(mm);
	KUNIT_EXPECT_TRUE(test, dom && dom->class == COHORT_NORMAL);
	cohort_each_process(cohort_class_note);
	mmput(mm);
#else
	kunit_skip(test, "an address space has no owner");
#endif
}

/* A kernel thread has no pages to place. */
static void cohort_class_test_without_mm(struct kunit *test)
{
	KUNIT_EXPECT_NULL(test, current->mm);
	cohort_test_set_adj(900);
	KUNIT_EXPECT_NULL(test, current->mm);
}

static struct kunit_case cohort_class_test_cases[] = {
	KUNIT_CASE_PARAM(cohort_class_test_first_page, cohort_class_test_gen_params),
	KUNIT_CASE(cohort_class_test_next_page),
	KUNIT_CASE(cohort_class_test_zygote_child),
	KUNIT_CASE(cohort_class_test_background_is_compacted),
	KUNIT_CASE(cohort_class_test_rests),
	KUNIT_CASE(cohort_class_test_late_write),
	KUNIT_CASE(cohort_class_test_vfork),
	KUNIT_CASE(cohort_class_test_foreign_fault),
	KUNIT_CASE(cohort_class_test_without_mm),
	{}
};

static struct kunit_suite cohort_class_test_suite = {
	.name = "cohort_class",
	.suite_init = cohort_test_suite_init,
	.suite_exit = cohort_test_suite_exit,
	.init = cohort_test_wait,
	.test_cases = cohort_class_test_cases,
};
kunit_test_suite(cohort_class_test_suite);
