// SPDX-License-Identifier: GPL-2.0
/*
 * Switching schemes on and off.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/sched.h>

#include "cohort.h"

#define CREATE_TRACE_POINTS
#include <trace/events/cohort.h>

DEFINE_STATIC_KEY_FALSE(cohort_key);
DEFINE_STATIC_KEY_FALSE(cohort_region_key);

DEFINE_MUTEX(cohort_mutex);
bool cohort_taking;
unsigned int cohort_order __read_mostly = COHORT_MAX_ORDER;
unsigned long cohort_parked_max __read_mostly;
unsigned int cohort_compact_delay_ms = 200;
struct workqueue_struct *cohort_wq;

static unsigned int cohort_boot_schemes __initdata;
static bool cohort_boot_bad __initdata;

static int cohort_region_on(void)
{
	int err = cohort_blocks_init();

	if (!err)
		err = cohort_region_init();
	if (err)
		return err;
	WRITE_ONCE(cohort_taking, true);
	static_branch_enable(&cohort_key);
	static_branch_enable(&cohort_region_key);
	return 0;
}

/*
 * Stop taking blocks, give all back, and only then let frees stop looking.
 * A block published late sees cohort_taking false under its domain's lock.
 */
static void cohort_region_off(void)
{
	unsigned long nr[COHORT_NR_KINDS];

	static_branch_disable(&cohort_region_key);
	WRITE_ONCE(cohort_taking, false);
	synchronize_rcu();
	for (;;) {
		cohort_dissolve_all();
		if (!cohort_block_stats(nr))
			break;
		/* A process domain is being destroyed by a task that was preempted. */
		schedule_timeout_uninterruptible(1);
	}
	static_branch_disable(&cohort_key);
}

/**
 * cohort_region_switch() - turn the region scheme on or off
 * @on: what to do
 *
 * Context: sleeps.
 * Return: 0, or -ENOMEM.
 */
int cohort_region_switch(bool on)
{
	int err = 0;

	mutex_lock(&cohort_mutex);
	if (on != static_key_enabled(&cohort_region_key)) {
		if (on)
			err = cohort_region_on();
		else
			cohort_region_off();
		if (err)
			pr_err("region: no memory for the frame table, staying off\n");
		else
			pr_info("region: %s, order %u\n", on ? "on" : "off",
				cohort_order);
	}
	mutex_unlock(&cohort_mutex);
	return err;
}

static int __init cohort_setup(char *text)
{
	if (!text || cohort_parse_schemes(text, &cohort_boot_schemes)) {
		pr_err("cohort=%s: unknown scheme, expected off or region; staying off\n",
		       text ?: "");
		cohort_boot_bad = true;
	}
	return 0;
}
early_param("cohort", cohort_setup);

static int __init cohort_order_setup(char *text)
{
	long order;

	if (!text || kstrtol(text, 10, &order) || !cohort_order_ok(order)) {
		pr_err("cohort.region_order=%s: expected %d to %d; staying off\n",
		       text ?: "", COHORT_MIN_ORDER, COHORT_MAX_ORDER);
		cohort_boot_bad = true;
		return 0;
	}
	cohort_order = order;
	return 0;
}
early_param("cohort.region_order", cohort_order_setup);

/* Last stop before a process is killed for lack of memory. */
static int cohort_oom(struct notifier_block *nb, unsigned long unused, void *freed)
{
	*(unsigned long *)freed += cohort_give_back(NULL, COHORT_GIVE_ALL);
	return NOTIFY_OK;
}

static struct notifier_block cohort_oom_nb = { .notifier_call = cohort_oom };

static int __init cohort_init(void)
{
	int err;

	cohort_wq = alloc_workqueue("cohort", WQ_UNBOUND | WQ_FREEZABLE, 1);
	if (!cohort_wq)
		return -ENOMEM;
	/*
	 * A bound against runaway, three times what a phone has on average:
	 * domains that reach it scatter their pages.
	 */
	cohort_parked_max = totalram_pages() / 16;
	err = register_oom_notifier(&cohort_oom_nb);
	if (err)
		goto out_destroy_wq;
	err = cohort_sysfs_init();
	if (err)
		goto out_unregister;
	if (cohort_boot_bad || !(cohort_boot_schemes & COHORT_SCHEME_REGION))
		return 0;
	return cohort_region_switch(true);

out_unregister:
	unregister_oom_notifier(&cohort_oom_nb);
out_destroy_wq:
	destroy_workqueue(cohort_wq);
	return err;
}
subsys_initcall(cohort_init);
