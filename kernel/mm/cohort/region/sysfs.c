// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/cohort/region/: one value a file.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/sysfs.h>

#include "../cohort.h"
#include "region.h"

COHORT_ATTR_SWITCH(region, cohort_region_key, cohort_region_switch);

static ssize_t cohort_region_order_show(struct kobject *kobj,
					struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", cohort_region_order);
}
COHORT_ATTR_RO(cohort_region, order);

static ssize_t cohort_region_headroom_kb_show(struct kobject *kobj,
					      struct kobj_attribute *attr, char *buf)
{
	unsigned long nr = READ_ONCE(cohort_headroom);

	if (nr == COHORT_HEADROOM_OF_MEMORY)
		nr = totalram_pages() / COHORT_HEADROOM_PART;
	return sysfs_emit(buf, "%lu\n", COHORT_KB(nr));
}

static ssize_t cohort_region_headroom_kb_store(struct kobject *kobj,
					       struct kobj_attribute *attr,
					       const char *buf, size_t len)
{
	return cohort_store_kb("region/headroom_kb", buf, len, &cohort_headroom, 0,
			       COHORT_KB(totalram_pages()) / 4);
}
COHORT_ATTR_RW(cohort_region, headroom_kb);

static ssize_t cohort_region_compact_delay_ms_show(struct kobject *kobj,
						   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(cohort_compact_delay_ms));
}

static ssize_t cohort_region_compact_delay_ms_store(struct kobject *kobj,
						    struct kobj_attribute *attr,
						    const char *buf, size_t len)
{
	return cohort_store_uint("region/compact_delay_ms", buf, len, &cohort_compact_delay_ms, 0,
				 60 * MSEC_PER_SEC);
}
COHORT_ATTR_RW(cohort_region, compact_delay_ms);

#define REGION_KIND(_name, _kind)					\
static ssize_t cohort_region_##_name##_blocks_show(struct kobject *kobj, \
				struct kobj_attribute *attr, char *buf)	\
{									\
	unsigned long nr[COHORT_NR_KINDS];				\
									\
	cohort_block_stats(nr);						\
	return sysfs_emit(buf, "%lu\n", nr[_kind]);			\
}									\
COHORT_ATTR_RO(cohort_region, _name##_blocks);				\
									\
static ssize_t cohort_region_##_name##_parked_kb_show(struct kobject *kobj, \
				struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%lu\n", COHORT_KB(cohort_free_in(_kind)));	\
}									\
COHORT_ATTR_RO(cohort_region, _name##_parked_kb)

REGION_KIND(process, COHORT_PROCESS);
REGION_KIND(shared, COHORT_SHARED);
REGION_KIND(service, COHORT_SVC);
REGION_KIND(small, COHORT_SMALL);
REGION_KIND(cache, COHORT_CACHE);
REGION_KIND(hot, COHORT_HOT);
REGION_KIND(metadata, COHORT_METADATA);
REGION_KIND(vmalloc, COHORT_VMALLOC);
REGION_KIND(kernel, COHORT_KERNEL);
REGION_KIND(zspage, COHORT_ZSPAGE);

static struct attribute *region_attrs[] = {
	&cohort_region_enabled_attr.attr,
	&cohort_region_order_attr.attr,
	&cohort_region_headroom_kb_attr.attr,
	&cohort_region_compact_delay_ms_attr.attr,
	&cohort_region_process_blocks_attr.attr,
	&cohort_region_process_parked_kb_attr.attr,
	&cohort_region_shared_blocks_attr.attr,
	&cohort_region_shared_parked_kb_attr.attr,
	&cohort_region_service_blocks_attr.attr,
	&cohort_region_service_parked_kb_attr.attr,
	&cohort_region_small_blocks_attr.attr,
	&cohort_region_small_parked_kb_attr.attr,
	&cohort_region_cache_blocks_attr.attr,
	&cohort_region_cache_parked_kb_attr.attr,
	&cohort_region_hot_blocks_attr.attr,
	&cohort_region_hot_parked_kb_attr.attr,
	&cohort_region_metadata_blocks_attr.attr,
	&cohort_region_metadata_parked_kb_attr.attr,
	&cohort_region_vmalloc_blocks_attr.attr,
	&cohort_region_vmalloc_parked_kb_attr.attr,
	&cohort_region_kernel_blocks_attr.attr,
	&cohort_region_kernel_parked_kb_attr.attr,
	&cohort_region_zspage_blocks_attr.attr,
	&cohort_region_zspage_parked_kb_attr.attr,
	NULL,
};

const struct attribute_group cohort_region_group = {
	.name = "region",
	.attrs = region_attrs,
};
