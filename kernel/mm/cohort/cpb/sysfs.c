// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/cohort/cpb/: one value a file.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/sysfs.h>

#include "../cohort.h"
#include "cpb.h"

COHORT_ATTR_SWITCH(cpb, cohort_cpb_key, cohort_cpb_switch);

static ssize_t cohort_cpb_order_show(struct kobject *kobj,
				     struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(cohort_cpb_order));
}

static ssize_t cohort_cpb_order_store(struct kobject *kobj,
				      struct kobj_attribute *attr,
				      const char *buf, size_t len)
{
	unsigned int order;
	int err;

	if (kstrtouint(buf, 10, &order) || !cohort_set_order_ok(order))
		return cohort_store_refused("cpb/order", buf, "%d to %d", COHORT_MIN_SET_ORDER,
					    COHORT_MAX_SET_ORDER);
	err = cohort_cpb_set_order(order);
	return err ?: len;
}
COHORT_ATTR_RW(cohort_cpb, order);

static ssize_t cohort_cpb_refill_show(struct kobject *kobj,
				      struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n",
			  cohort_cpb_refills[READ_ONCE(cohort_cpb_remnants)]);
}

static ssize_t cohort_cpb_refill_store(struct kobject *kobj,
				       struct kobj_attribute *attr,
				       const char *buf, size_t len)
{
	int choice = sysfs_match_string(cohort_cpb_refills, buf);

	if (choice < 0)
		return cohort_store_refused("cpb/refill", buf, "%s or %s", cohort_cpb_refills[0],
					    cohort_cpb_refills[1]);
	WRITE_ONCE(cohort_cpb_remnants, choice);
	return len;
}
COHORT_ATTR_RW(cohort_cpb, refill);

static ssize_t cohort_cpb_limit_kb_show(struct kobject *kobj,
					struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", COHORT_KB(READ_ONCE(cohort_cpb_limit)));
}

static ssize_t cohort_cpb_limit_kb_store(struct kobject *kobj,
					 struct kobj_attribute *attr,
					 const char *buf, size_t len)
{
	return cohort_store_kb("cpb/limit_kb", buf, len, &cohort_cpb_limit,
			       COHORT_KB(COHORT_CPB_LIMIT_MIN), COHORT_KB(totalram_pages()));
}
COHORT_ATTR_RW(cohort_cpb, limit_kb);

static ssize_t cohort_cpb_process_sets_show(struct kobject *kobj,
					    struct kobj_attribute *attr, char *buf)
{
	unsigned long nr[COHORT_NR_KINDS];

	cohort_block_stats(nr);
	return sysfs_emit(buf, "%lu\n", nr[COHORT_PROCESS]);
}
COHORT_ATTR_RO(cohort_cpb, process_sets);

static ssize_t cohort_cpb_reserved_kb_show(struct kobject *kobj,
					   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", COHORT_KB(cohort_free_in(COHORT_PROCESS)));
}
COHORT_ATTR_RO(cohort_cpb, reserved_kb);

static ssize_t cohort_cpb_cpu_sets_show(struct kobject *kobj,
					   struct kobj_attribute *attr, char *buf)
{
	unsigned long sets, pages;

	cohort_cpb_stats(&sets, &pages);
	return sysfs_emit(buf, "%lu\n", sets);
}
COHORT_ATTR_RO(cohort_cpb, cpu_sets);

static ssize_t cohort_cpb_cpu_kb_show(struct kobject *kobj,
					 struct kobj_attribute *attr, char *buf)
{
	unsigned long sets, pages;

	cohort_cpb_stats(&sets, &pages);
	return sysfs_emit(buf, "%lu\n", COHORT_KB(pages));
}
COHORT_ATTR_RO(cohort_cpb, cpu_kb);

static struct attribute *cpb_attrs[] = {
	&cohort_cpb_enabled_attr.attr,
	&cohort_cpb_order_attr.attr,
	&cohort_cpb_refill_attr.attr,
	&cohort_cpb_limit_kb_attr.attr,
	&cohort_cpb_process_sets_attr.attr,
	&cohort_cpb_cpu_sets_attr.attr,
	&cohort_cpb_reserved_kb_attr.attr,
	&cohort_cpb_cpu_kb_attr.attr,
	NULL,
};

const struct attribute_group cohort_cpb_group = {
	.name = "cpb",
	.attrs = cpb_attrs,
};
