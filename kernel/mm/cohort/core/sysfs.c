// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/cohort/: one value a file.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/sysfs.h>
#include <linux/vmstat.h>

#include "../cohort.h"

/* A message shows so much of what was written. */
#define STORE_SHOWN	40

struct kobject *cohort_kobj;

/**
 * cohort_store_refused() - what was written to an attribute cannot be
 * @name: the attribute, with its group
 * @buf: the text
 * @expected: what can be, a format with its values behind it
 *
 * Return: -EINVAL, and a message.
 */
ssize_t cohort_store_refused(const char *name, const char *buf, const char *expected, ...)
{
	int shown = min_t(size_t, strcspn(buf, "\n"), STORE_SHOWN);
	struct va_format vaf = { .fmt = expected };
	va_list args;

	va_start(args, expected);
	vaf.va = &args;
	pr_err_ratelimited("%s=%*pE: expected %pV; it stays as it was\n", name, shown, buf, &vaf);
	va_end(args);
	return -EINVAL;
}

/**
 * cohort_store_uint() - what writing a number to an attribute does
 * @name: the attribute, with its group
 * @buf: the text
 * @len: its length
 * @value: what it sets; readers take no lock
 * @min: smallest number that is taken
 * @max: largest one
 *
 * Return: @len, or -EINVAL and a message for what is no number within the bounds.
 */
ssize_t cohort_store_uint(const char *name, const char *buf, size_t len,
			  unsigned int *value, unsigned int min, unsigned int max)
{
	unsigned int number;

	if (kstrtouint(buf, 10, &number) || number < min || number > max)
		return cohort_store_refused(name, buf, "%u to %u", min, max);
	WRITE_ONCE(*value, number);
	return len;
}

/**
 * cohort_store_kb() - what writing a size in KiB to an attribute does
 * @name: the attribute, with its group
 * @buf: the text
 * @len: its length
 * @pages: what it sets, in pages; readers take no lock
 * @min: smallest size that is taken, in KiB
 * @max: largest one
 *
 * Return: @len, or -EINVAL and a message for what is no number within the bounds.
 */
ssize_t cohort_store_kb(const char *name, const char *buf, size_t len,
			unsigned long *pages, unsigned long min, unsigned long max)
{
	unsigned long kb;

	if (kstrtoul(buf, 10, &kb) || kb < min || kb > max)
		return cohort_store_refused(name, buf, "%lu to %lu", min, max);
	WRITE_ONCE(*pages, kb >> (PAGE_SHIFT - 10));
	return len;
}

/**
 * cohort_store_switch() - what writing to an attribute that is on or off does
 * @name: the attribute, with its group
 * @buf: the text
 * @len: its length
 * @turn: turns it on or off; 0 or a negative errno
 *
 * Return: @len, or the errno of a refusal.
 */
ssize_t cohort_store_switch(const char *name, const char *buf, size_t len,
			    int (*turn)(bool on))
{
	bool on;

	if (kstrtobool(buf, &on))
		return cohort_store_refused(name, buf, "0 or 1");
	return turn(on) ?: len;
}

/* top level */

static ssize_t cohort_parked_kb_show(struct kobject *kobj,
				     struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", COHORT_KB(cohort_soft() +
						  global_zone_page_state(NR_COHORT_RESERVED)));
}
COHORT_ATTR_RO(cohort, parked_kb);

/* Free pieces of blocks by order: what buddyinfo leaves out. */
static ssize_t cohort_owned_free_show(struct kobject *kobj,
				      struct kobj_attribute *attr, char *buf)
{
	unsigned long nr[NR_PAGE_ORDERS] = { };
	unsigned int order;
	int len = 0;

	cohort_block_pieces(nr);
	for (order = 0; order < NR_PAGE_ORDERS; order++)
		len += sysfs_emit_at(buf, len, "%lu%c", nr[order],
				     order + 1 < NR_PAGE_ORDERS ? ' ' : '\n');
	return len;
}
COHORT_ATTR_RO(cohort, owned_free);

static struct attribute *cohort_attrs[] = {
	&cohort_parked_kb_attr.attr,
	&cohort_owned_free_attr.attr,
	NULL,
};

static const struct attribute_group cohort_group = { .attrs = cohort_attrs };

/* health/: what could be built right now */

static unsigned long cohort_free_from(unsigned int order)
{
	unsigned long pages = 0;
	struct zone *zone;

	for_each_populated_zone(zone) {
		unsigned int i;

		for (i = order; i < NR_PAGE_ORDERS; i++)
			pages += READ_ONCE(zone->free_area[i].nr_free) << i;
	}
	return pages;
}

#define HEALTH_ORDER(_order)						\
static ssize_t cohort_health_order##_order##_kb_show(struct kobject *kobj, \
				struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%lu\n", COHORT_KB(cohort_free_from(_order)));	\
}									\
COHORT_ATTR_RO(cohort_health, order##_order##_kb)

HEALTH_ORDER(0);
HEALTH_ORDER(4);
HEALTH_ORDER(8);

static ssize_t cohort_health_piece_kb_show(struct kobject *kobj,
					   struct kobj_attribute *attr, char *buf)
{
	int order = MAX_PAGE_ORDER;

	while (order >= 0 && !cohort_free_from(order))
		order--;
	return sysfs_emit(buf, "%lu\n", order < 0 ? 0 : COHORT_KB(1UL << order));
}
COHORT_ATTR_RO(cohort_health, piece_kb);

static struct attribute *health_attrs[] = {
	&cohort_health_order0_kb_attr.attr,
	&cohort_health_order4_kb_attr.attr,
	&cohort_health_order8_kb_attr.attr,
	&cohort_health_piece_kb_attr.attr,
	NULL,
};

static const struct attribute_group health_group = {
	.name = "health",
	.attrs = health_attrs,
};

/**
 * cohort_sysfs_add() - a scheme's files
 * @group: its group, with a name
 *
 * Return: 0 or a negative errno.
 */
int cohort_sysfs_add(const struct attribute_group *group)
{
	return sysfs_create_group(cohort_kobj, group);
}

/**
 * cohort_sysfs_init() - make /sys/kernel/mm/cohort/
 *
 * Return: 0 or a negative errno.
 */
int __init cohort_sysfs_init(void)
{
	int err;

	cohort_kobj = kobject_create_and_add("cohort", mm_kobj);
	if (!cohort_kobj)
		return -ENOMEM;
	err = sysfs_create_group(cohort_kobj, &cohort_group) ?:
	      sysfs_create_group(cohort_kobj, &health_group);
	if (err)
		kobject_put(cohort_kobj);
	return err;
}
