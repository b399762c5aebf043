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

#include "cohort.h"
#include "pcpa.h"
#include "rightsize.h"
#include "vnode.h"

#define COHORT_ATTR_RO(_group, _name)					\
	static struct kobj_attribute _group##_##_name##_attr =		\
		__ATTR(_name, 0444, _group##_##_name##_show, NULL)

#define COHORT_ATTR_RW(_group, _name)					\
	static struct kobj_attribute _group##_##_name##_attr =		\
		__ATTR(_name, 0644, _group##_##_name##_show, _group##_##_name##_store)

#define K(pages) ((pages) << (PAGE_SHIFT - 10))

static struct kobject *cohort_kobj;

/**
 * cohort_store_uint() - what writing a number to an attribute does
 * @buf: the text
 * @len: its length
 * @value: what it sets; readers take no lock
 * @min: smallest number that is taken
 * @max: largest one
 *
 * Return: @len, -EINVAL beyond the bounds, or what kstrtouint() says.
 */
ssize_t cohort_store_uint(const char *buf, size_t len, unsigned int *value,
			  unsigned int min, unsigned int max)
{
	unsigned int number;
	int err = kstrtouint(buf, 10, &number);

	if (err)
		return err;
	if (number < min || number > max)
		return -EINVAL;
	WRITE_ONCE(*value, number);
	return len;
}

/**
 * cohort_store_switch() - what writing to an attribute that is on or off does
 * @buf: the text
 * @len: its length
 * @turn: turns it on or off; 0 or a negative errno
 *
 * Return: @len, or the errno of whoever refused.
 */
ssize_t cohort_store_switch(const char *buf, size_t len, int (*turn)(bool on))
{
	bool on;
	int err = kstrtobool(buf, &on);

	if (!err)
		err = turn(on);
	return err ?: len;
}

/* top level */

static ssize_t cohort_parked_kb_show(struct kobject *kobj,
				     struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", K(global_zone_page_state(NR_COHORT_FREE)));
}
COHORT_ATTR_RO(cohort, parked_kb);

static ssize_t cohort_release_store(struct kobject *kobj,
				    struct kobj_attribute *attr,
				    const char *buf, size_t len)
{
	unsigned int level;
	int err = kstrtouint(buf, 10, &level);

	if (err)
		return err;
	if (level < COHORT_GIVE_BACKGROUND || level > COHORT_GIVE_ALL)
		return -EINVAL;
	cohort_give_back(NULL, level);
	return len;
}
static struct kobj_attribute cohort_release_attr =
	__ATTR(release, 0200, NULL, cohort_release_store);

static struct attribute *cohort_attrs[] = {
	&cohort_parked_kb_attr.attr,
	&cohort_release_attr.attr,
	NULL,
};

static const struct attribute_group cohort_group = { .attrs = cohort_attrs };

/* region/ */

static ssize_t region_enabled_show(struct kobject *kobj,
				   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", static_key_enabled(&cohort_region_key));
}

static ssize_t region_enabled_store(struct kobject *kobj,
				    struct kobj_attribute *attr,
				    const char *buf, size_t len)
{
	return cohort_store_switch(buf, len, cohort_region_switch);
}
COHORT_ATTR_RW(region, enabled);

static ssize_t region_order_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", cohort_region_order);
}
COHORT_ATTR_RO(region, order);

static ssize_t region_parked_max_kb_show(struct kobject *kobj,
					 struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", K(READ_ONCE(cohort_parked_max)));
}

static ssize_t region_parked_max_kb_store(struct kobject *kobj,
					  struct kobj_attribute *attr,
					  const char *buf, size_t len)
{
	unsigned long kb;
	int err = kstrtoul(buf, 10, &kb);

	if (err)
		return err;
	if (kb > K(totalram_pages()))
		return -EINVAL;
	WRITE_ONCE(cohort_parked_max, kb >> (PAGE_SHIFT - 10));
	return len;
}
COHORT_ATTR_RW(region, parked_max_kb);

static ssize_t region_compact_delay_ms_show(struct kobject *kobj,
					    struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(cohort_compact_delay_ms));
}

static ssize_t region_compact_delay_ms_store(struct kobject *kobj,
					     struct kobj_attribute *attr,
					     const char *buf, size_t len)
{
	return cohort_store_uint(buf, len, &cohort_compact_delay_ms, 0, 60 * MSEC_PER_SEC);
}
COHORT_ATTR_RW(region, compact_delay_ms);

#define REGION_KIND(_name, _kind)					\
static ssize_t region_##_name##_blocks_show(struct kobject *kobj,	\
				struct kobj_attribute *attr, char *buf)	\
{									\
	unsigned long nr[COHORT_NR_KINDS];				\
									\
	cohort_block_stats(nr);						\
	return sysfs_emit(buf, "%lu\n", nr[_kind]);			\
}									\
COHORT_ATTR_RO(region, _name##_blocks);					\
									\
static ssize_t region_##_name##_parked_kb_show(struct kobject *kobj,	\
				struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%lu\n", K(cohort_parked_in(_kind)));	\
}									\
COHORT_ATTR_RO(region, _name##_parked_kb)

REGION_KIND(process, COHORT_PROCESS);
REGION_KIND(shared, COHORT_SHARED);
REGION_KIND(service, COHORT_SVC);
REGION_KIND(small, COHORT_SMALL);
REGION_KIND(cache, COHORT_CACHE);
REGION_KIND(hot, COHORT_HOT);
REGION_KIND(buffer, COHORT_BUFFER);
REGION_KIND(vmalloc, COHORT_VMALLOC);
REGION_KIND(kernel, COHORT_KERNEL);
REGION_KIND(zspage, COHORT_ZSPAGE);

static struct attribute *region_attrs[] = {
	&region_enabled_attr.attr,
	&region_order_attr.attr,
	&region_parked_max_kb_attr.attr,
	&region_compact_delay_ms_attr.attr,
	&region_process_blocks_attr.attr,
	&region_process_parked_kb_attr.attr,
	&region_shared_blocks_attr.attr,
	&region_shared_parked_kb_attr.attr,
	&region_service_blocks_attr.attr,
	&region_service_parked_kb_attr.attr,
	&region_small_blocks_attr.attr,
	&region_small_parked_kb_attr.attr,
	&region_cache_blocks_attr.attr,
	&region_cache_parked_kb_attr.attr,
	&region_hot_blocks_attr.attr,
	&region_hot_parked_kb_attr.attr,
	&region_buffer_blocks_attr.attr,
	&region_buffer_parked_kb_attr.attr,
	&region_vmalloc_blocks_attr.attr,
	&region_vmalloc_parked_kb_attr.attr,
	&region_kernel_blocks_attr.attr,
	&region_kernel_parked_kb_attr.attr,
	&region_zspage_blocks_attr.attr,
	&region_zspage_parked_kb_attr.attr,
	NULL,
};

static const struct attribute_group region_group = {
	.name = "region",
	.attrs = region_attrs,
};

/* cpb/ */

static ssize_t cpb_enabled_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", static_key_enabled(&cohort_cpb_key));
}

static ssize_t cpb_enabled_store(struct kobject *kobj,
				 struct kobj_attribute *attr,
				 const char *buf, size_t len)
{
	return cohort_store_switch(buf, len, cohort_cpb_switch);
}
COHORT_ATTR_RW(cpb, enabled);

static ssize_t cpb_order_show(struct kobject *kobj,
			      struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(cohort_cpb_order));
}

static ssize_t cpb_order_store(struct kobject *kobj,
			       struct kobj_attribute *attr,
			       const char *buf, size_t len)
{
	unsigned int order;
	int err = kstrtouint(buf, 10, &order);

	if (!err)
		err = cohort_cpb_set_order(order);
	return err ?: len;
}
COHORT_ATTR_RW(cpb, order);

static ssize_t cpb_refill_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n",
			  cohort_cpb_refills[READ_ONCE(cohort_cpb_remnants)]);
}

static ssize_t cpb_refill_store(struct kobject *kobj,
				struct kobj_attribute *attr,
				const char *buf, size_t len)
{
	int choice = sysfs_match_string(cohort_cpb_refills, buf);

	if (choice < 0)
		return choice;
	WRITE_ONCE(cohort_cpb_remnants, choice);
	return len;
}
COHORT_ATTR_RW(cpb, refill);

static ssize_t cpb_limit_kb_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", K(READ_ONCE(cohort_cpb_limit)));
}

static ssize_t cpb_limit_kb_store(struct kobject *kobj,
				  struct kobj_attribute *attr,
				  const char *buf, size_t len)
{
	unsigned long kb;
	int err = kstrtoul(buf, 10, &kb);

	if (err)
		return err;
	if (kb < K(COHORT_CPB_LIMIT_MIN) || kb > K(totalram_pages()))
		return -EINVAL;
	WRITE_ONCE(cohort_cpb_limit, kb >> (PAGE_SHIFT - 10));
	return len;
}
COHORT_ATTR_RW(cpb, limit_kb);

static ssize_t cpb_parked_max_kb_show(struct kobject *kobj,
				      struct kobj_attribute *attr, char *buf)
{
	return region_parked_max_kb_show(kobj, attr, buf);
}

static ssize_t cpb_parked_max_kb_store(struct kobject *kobj,
				       struct kobj_attribute *attr,
				       const char *buf, size_t len)
{
	return region_parked_max_kb_store(kobj, attr, buf, len);
}
COHORT_ATTR_RW(cpb, parked_max_kb);

#define CPB_SETS(_name, _kind)						\
static ssize_t cpb_##_name##_show(struct kobject *kobj,			\
				  struct kobj_attribute *attr, char *buf) \
{									\
	unsigned long nr[COHORT_NR_KINDS];				\
									\
	cohort_block_stats(nr);						\
	return sysfs_emit(buf, "%lu\n", nr[_kind]);			\
}									\
COHORT_ATTR_RO(cpb, _name)

CPB_SETS(process_sets, COHORT_PROCESS);
CPB_SETS(buffer_sets, COHORT_CPB);

#define CPB_PARKED(_name, _kind)					\
static ssize_t cpb_##_name##_show(struct kobject *kobj,			\
				  struct kobj_attribute *attr, char *buf) \
{									\
	return sysfs_emit(buf, "%lu\n", K(cohort_parked_in(_kind)));	\
}									\
COHORT_ATTR_RO(cpb, _name)

CPB_PARKED(reserved_kb, COHORT_PROCESS);
CPB_PARKED(buffer_kb, COHORT_CPB);

static struct attribute *cpb_attrs[] = {
	&cpb_enabled_attr.attr,
	&cpb_order_attr.attr,
	&cpb_refill_attr.attr,
	&cpb_limit_kb_attr.attr,
	&cpb_parked_max_kb_attr.attr,
	&cpb_process_sets_attr.attr,
	&cpb_buffer_sets_attr.attr,
	&cpb_reserved_kb_attr.attr,
	&cpb_buffer_kb_attr.attr,
	NULL,
};

static const struct attribute_group cpb_group = {
	.name = "cpb",
	.attrs = cpb_attrs,
};

/* buffer/ */

static ssize_t buffer_enabled_show(struct kobject *kobj,
				   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", static_key_enabled(&cohort_buffer_key));
}

static int buffer_measure(bool on)
{
	if (on)
		static_branch_enable(&cohort_buffer_key);
	else
		static_branch_disable(&cohort_buffer_key);
	return 0;
}

static ssize_t buffer_enabled_store(struct kobject *kobj,
				    struct kobj_attribute *attr,
				    const char *buf, size_t len)
{
	return cohort_store_switch(buf, len, buffer_measure);
}
COHORT_ATTR_RW(buffer, enabled);

#define BUFFER_COUNTER(_name, _which)					\
static ssize_t buffer_##_name##_show(struct kobject *kobj,		\
				     struct kobj_attribute *attr, char *buf) \
{									\
	return cohort_buffer_read(_which, buf);				\
}									\
COHORT_ATTR_RO(buffer, _name)

BUFFER_COUNTER(order0, 0);
BUFFER_COUNTER(order4, 4);
BUFFER_COUNTER(order8, 8);
BUFFER_COUNTER(zero_ns, MAX_PAGE_ORDER + 1);

static struct attribute *buffer_attrs[] = {
	&buffer_enabled_attr.attr,
	&buffer_order0_attr.attr,
	&buffer_order4_attr.attr,
	&buffer_order8_attr.attr,
	&buffer_zero_ns_attr.attr,
	NULL,
};

static const struct attribute_group buffer_group = {
	.name = "buffer",
	.attrs = buffer_attrs,
};

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
static ssize_t health_order##_order##_kb_show(struct kobject *kobj,	\
				struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%lu\n", K(cohort_free_from(_order)));	\
}									\
COHORT_ATTR_RO(health, order##_order##_kb)

HEALTH_ORDER(0);
HEALTH_ORDER(4);
HEALTH_ORDER(8);

static ssize_t health_piece_kb_show(struct kobject *kobj,
				    struct kobj_attribute *attr, char *buf)
{
	int order = MAX_PAGE_ORDER;

	while (order >= 0 && !cohort_free_from(order))
		order--;
	return sysfs_emit(buf, "%lu\n", order < 0 ? 0 : K(1UL << order));
}
COHORT_ATTR_RO(health, piece_kb);

static struct attribute *health_attrs[] = {
	&health_order0_kb_attr.attr,
	&health_order4_kb_attr.attr,
	&health_order8_kb_attr.attr,
	&health_piece_kb_attr.attr,
	NULL,
};

static const struct attribute_group health_group = {
	.name = "health",
	.attrs = health_attrs,
};

static const struct attribute_group *cohort_groups[] = {
	&cohort_group,
	&region_group,
	&cpb_group,
	&buffer_group,
	&health_group,
	&cohort_reclaim_group,
	&cohort_rightsize_group,
	NULL,
};

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
	err = sysfs_create_groups(cohort_kobj, cohort_groups) ?:
	      cohort_vnode_sysfs_init(cohort_kobj) ?:
	      cohort_pcpa_sysfs_init(cohort_kobj);
	if (err)
		kobject_put(cohort_kobj);
	return err;
}
