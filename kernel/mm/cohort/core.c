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
#include <linux/string.h>

#include "cohort.h"
#include "pcpa.h"
#include "rightsize.h"

#define CREATE_TRACE_POINTS
#include <trace/events/cohort.h>

DEFINE_STATIC_KEY_FALSE(cohort_key);
DEFINE_STATIC_KEY_FALSE(cohort_region_key);
DEFINE_STATIC_KEY_FALSE(cohort_cpb_key);

DEFINE_MUTEX(cohort_mutex);
bool cohort_taking;
unsigned int cohort_order __read_mostly = COHORT_MAX_ORDER;
unsigned int cohort_region_order = COHORT_MAX_ORDER;
bool cohort_region_vmalloc __read_mostly = true;
unsigned int cohort_cpb_order = COHORT_MAX_SET_ORDER;
unsigned long cohort_parked_max __read_mostly;
unsigned int cohort_compact_delay_ms = 200;
struct workqueue_struct *cohort_wq;

static unsigned int cohort_boot_schemes __initdata;
static bool cohort_boot_bad __initdata;

/**
 * struct cohort_scheme - a scheme that takes blocks, with one order for all
 * @name: as users call it
 * @key: on while it takes blocks
 * @rival: key of the scheme that cannot be on at the same time
 * @rival_name: its name
 * @order: order of a block
 * @init: makes its domains, or finds them made
 */
struct cohort_scheme {
	const char *name;
	struct static_key_false *key;
	struct static_key_false *rival;
	const char *rival_name;
	const unsigned int *order;
	int (*init)(void);
};

static const struct cohort_scheme cohort_region = {
	.name = "region",
	.key = &cohort_region_key,
	.rival = &cohort_cpb_key,
	.rival_name = "cpb",
	.order = &cohort_region_order,
	.init = cohort_region_init,
};

static const struct cohort_scheme cohort_cpb = {
	.name = "cpb",
	.key = &cohort_cpb_key,
	.rival = &cohort_region_key,
	.rival_name = "region",
	.order = &cohort_cpb_order,
	.init = cohort_cpb_init,
};

static int cohort_scheme_on(const struct cohort_scheme *scheme)
{
	int err;

	if (static_key_enabled(&scheme->rival->key)) {
		pr_err("%s: %s is on, and they exclude each other; staying off\n",
		       scheme->name, scheme->rival_name);
		return -EINVAL;
	}
	err = cohort_blocks_init(*scheme->order) ?: scheme->init();
	if (err) {
		pr_err("%s: no memory for the frame table, staying off\n", scheme->name);
		return err;
	}
	WRITE_ONCE(cohort_taking, true);
	static_branch_enable(&cohort_key);
	static_branch_enable(scheme->key);
	return 0;
}

/*
 * Stop taking blocks, give all back, and only then let frees stop looking.
 * A block published late sees cohort_taking false under its domain's lock.
 * Nobody who still has frames of a block in hand is left behind: another
 * scheme's blocks may be of another order.
 */
static void cohort_scheme_off(const struct cohort_scheme *scheme)
{
	unsigned long nr[COHORT_NR_KINDS];

	static_branch_disable(scheme->key);
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
	synchronize_rcu();
}

static int cohort_switch(const struct cohort_scheme *scheme, bool on)
{
	int err = 0;

	mutex_lock(&cohort_mutex);
	if (on != static_key_enabled(&scheme->key->key)) {
		if (on)
			err = cohort_scheme_on(scheme);
		else
			cohort_scheme_off(scheme);
		if (!err)
			pr_info("%s: %s, order %u\n", scheme->name,
				on ? "on" : "off", *scheme->order);
	}
	mutex_unlock(&cohort_mutex);
	return err;
}

/**
 * cohort_region_switch() - turn the region scheme on or off
 * @on: what to do
 *
 * Context: sleeps.
 * Return: 0, -ENOMEM, or -EINVAL if the contiguous page buffer is on.
 */
int cohort_region_switch(bool on)
{
	return cohort_switch(&cohort_region, on);
}

/**
 * cohort_cpb_switch() - turn the contiguous page buffer on or off
 * @on: what to do
 *
 * Context: sleeps.
 * Return: 0, -ENOMEM, or -EINVAL if the region scheme is on.
 */
int cohort_cpb_switch(bool on)
{
	return cohort_switch(&cohort_cpb, on);
}

/**
 * cohort_cpb_set_order() - order of a set from the next switching on
 * @order: the order
 *
 * Context: sleeps.
 * Return: 0, -EINVAL if no set has this order, or -EBUSY while the scheme is on.
 */
int cohort_cpb_set_order(unsigned int order)
{
	int err = 0;

	if (!cohort_set_order_ok(order))
		return -EINVAL;
	mutex_lock(&cohort_mutex);
	if (static_key_enabled(&cohort_cpb_key))
		err = -EBUSY;
	else
		cohort_cpb_order = order;
	mutex_unlock(&cohort_mutex);
	return err;
}

static int __init cohort_setup(char *text)
{
	if (!text || cohort_parse_schemes(text, &cohort_boot_schemes)) {
		pr_err("cohort=%s: unknown scheme, expected off, region, cpb or rightsize; staying off\n",
		       text ?: "");
		cohort_boot_bad = true;
	}
	return 0;
}
early_param("cohort", cohort_setup);

static int __init cohort_region_order_setup(char *text)
{
	long order;

	if (!text || kstrtol(text, 10, &order) || !cohort_order_ok(order)) {
		pr_err("cohort.region_order=%s: expected %d to %d; staying off\n",
		       text ?: "", COHORT_MIN_ORDER, COHORT_MAX_ORDER);
		cohort_boot_bad = true;
		return 0;
	}
	cohort_region_order = order;
	return 0;
}
early_param("cohort.region_order", cohort_region_order_setup);

static int __init cohort_region_vmalloc_setup(char *text)
{
	if (!text || kstrtobool(text, &cohort_region_vmalloc)) {
		pr_err("cohort.region_vmalloc=%s: expected 0 or 1; staying off\n",
		       text ?: "");
		cohort_boot_bad = true;
	}
	return 0;
}
early_param("cohort.region_vmalloc", cohort_region_vmalloc_setup);

static int __init cohort_cpb_order_setup(char *text)
{
	long order;

	if (!text || kstrtol(text, 10, &order) || !cohort_set_order_ok(order)) {
		pr_err("cohort.cpb_order=%s: expected %d to %d; staying off\n",
		       text ?: "", COHORT_MIN_SET_ORDER, COHORT_MAX_SET_ORDER);
		cohort_boot_bad = true;
		return 0;
	}
	cohort_cpb_order = order;
	return 0;
}
early_param("cohort.cpb_order", cohort_cpb_order_setup);

static int __init cohort_cpb_refill_setup(char *text)
{
	int choice = text ? match_string(cohort_cpb_refills, 2, text) : -EINVAL;

	if (choice < 0) {
		pr_err("cohort.cpb_refill=%s: expected split or remnants; staying off\n",
		       text ?: "");
		cohort_boot_bad = true;
		return 0;
	}
	cohort_cpb_remnants = choice;
	return 0;
}
early_param("cohort.cpb_refill", cohort_cpb_refill_setup);

/* Last stop before a process is killed for lack of memory. */
static int cohort_oom(struct notifier_block *nb, unsigned long unused, void *freed)
{
	*(unsigned long *)freed += cohort_give_back(NULL, COHORT_GIVE_ALL);
	return NOTIFY_OK;
}

static struct notifier_block cohort_oom_nb = { .notifier_call = cohort_oom };

static void __init cohort_boot(void)
{
	const unsigned int both = COHORT_SCHEME_REGION | COHORT_SCHEME_CPB;

	if ((cohort_boot_schemes & both) == both) {
		pr_err("region and cpb exclude each other; staying off\n");
		return;
	}
	if (cohort_boot_schemes & COHORT_SCHEME_REGION)
		cohort_region_switch(true);
	if (cohort_boot_schemes & COHORT_SCHEME_CPB)
		cohort_cpb_switch(true);
	if (cohort_boot_schemes & COHORT_SCHEME_RIGHTSIZE)
		cohort_rightsize_switch(true);
}

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
	err = cohort_pcpa_init();
	if (err)
		pr_err("pcpa: no memory, staying off\n");
	if (!cohort_boot_bad)
		cohort_boot();
	return 0;

out_unregister:
	unregister_oom_notifier(&cohort_oom_nb);
out_destroy_wq:
	destroy_workqueue(cohort_wq);
	return err;
}
subsys_initcall(cohort_init);
