// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/cohort/vnode/: the layout, and a directory a node.
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sysfs.h>
#include <linux/vmstat.h>

#include "../cohort.h"
#include "vnode.h"

/* vnode/ */

static ssize_t cohort_vnode_layout_show(struct kobject *kobj, struct kobj_attribute *attr,
					char *buf)
{
	return sysfs_emit(buf, "%s\n", cohort_vnode_layout());
}
COHORT_ATTR_RO(cohort_vnode, layout);

static ssize_t cohort_vnode_default_show(struct kobject *kobj, struct kobj_attribute *attr,
					 char *buf)
{
	return sysfs_emit(buf, "%s\n", cohort_vnode_default()->name);
}

static ssize_t cohort_vnode_default_store(struct kobject *kobj, struct kobj_attribute *attr,
					  const char *buf, size_t len)
{
	struct cohort_vnode *vn = cohort_vnode_find(buf);

	if (!vn)
		return cohort_store_refused("vnode/default", buf, "the name of a role");
	cohort_vnode_set_default(vn);
	return len;
}
COHORT_ATTR_RW(cohort_vnode, default);

static ssize_t cohort_vnode_lend_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", cohort_vnode_lends());
}

static ssize_t cohort_vnode_lend_store(struct kobject *kobj, struct kobj_attribute *attr,
				       const char *buf, size_t len)
{
	return cohort_store_switch("vnode/lend", buf, len, cohort_vnode_lend);
}
COHORT_ATTR_RW(cohort_vnode, lend);

static struct attribute *vnode_attrs[] = {
	&cohort_vnode_layout_attr.attr,
	&cohort_vnode_default_attr.attr,
	&cohort_vnode_lend_attr.attr,
	NULL,
};

static const struct attribute_group vnode_group = { .attrs = vnode_attrs };

/* vnode/NAME/ */

static struct cohort_vnode *cohort_vnode_at(const struct kobject *kobj)
{
	unsigned int i = 0;

	while (i + 1 < cohort_nr_vnodes && cohort_vnodes[i].kobj != kobj)
		i++;
	return &cohort_vnodes[i];
}

static unsigned long cohort_zone_free(struct zone *zone)
{
	return zone_page_state(zone, NR_FREE_PAGES);
}

/* Where a free page is linked they are exact; the statistics lag behind. */
static unsigned long cohort_zone_parked(struct zone *zone)
{
	return cohort_unusable_free(zone);
}

static unsigned long cohort_vnode_in_zones(const struct cohort_vnode *vn,
					   unsigned long (*of)(struct zone *zone))
{
	unsigned long pages = 0;
	struct zone *zone;

	for_each_populated_zone(zone)
		if (node_isset(zone_to_nid(zone), vn->nodes))
			pages += of(zone);
	return pages;
}

static unsigned long cohort_vnode_on_nodes(const struct cohort_vnode *vn, enum node_stat_item item)
{
	unsigned long pages = 0;
	int nid;

	for_each_node_mask(nid, vn->nodes)
		pages += node_page_state(NODE_DATA(nid), item);
	return pages;
}

/* The kernel counts shared memory and the swap cache as pages of files. */
static unsigned long cohort_vnode_cache(const struct cohort_vnode *vn)
{
	unsigned long file = cohort_vnode_on_nodes(vn, NR_FILE_PAGES);
	unsigned long none = cohort_vnode_on_nodes(vn, NR_SHMEM);

#ifdef CONFIG_SWAP
	none += cohort_vnode_on_nodes(vn, NR_SWAPCACHE);
#endif
	/* The counts lag, each by itself. */
	return file - min(file, none);
}

static ssize_t cohort_vnode_nodes_show(struct kobject *kobj, struct kobj_attribute *attr,
				       char *buf)
{
	return sysfs_emit(buf, "%*pbl\n", nodemask_pr_args(&cohort_vnode_at(kobj)->nodes));
}
COHORT_ATTR_RO(cohort_vnode, nodes);

static ssize_t cohort_vnode_cpus_show(struct kobject *kobj, struct kobj_attribute *attr,
				      char *buf)
{
	return sysfs_emit(buf, "%*pbl\n", cpumask_pr_args(&cohort_vnode_at(kobj)->cpus));
}
COHORT_ATTR_RO(cohort_vnode, cpus);

static ssize_t cohort_vnode_oom_kills_show(struct kobject *kobj, struct kobj_attribute *attr,
					   char *buf)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&cohort_vnode_at(kobj)->oom_kills));
}
COHORT_ATTR_RO(cohort_vnode, oom_kills);

static ssize_t cohort_vnode_unusable_pct_show(struct kobject *kobj, struct kobj_attribute *attr,
					      char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(cohort_vnode_at(kobj)->unusable_pct));
}

static ssize_t cohort_vnode_unusable_pct_store(struct kobject *kobj, struct kobj_attribute *attr,
					       const char *buf, size_t len)
{
	struct cohort_vnode *vn = cohort_vnode_at(kobj);
	ssize_t done = cohort_store_uint("vnode/*/unusable_pct", buf, len, &vn->unusable_pct, 0, 100);

	if (done > 0)
		cohort_vnode_tidy_now(vn);
	return done;
}
COHORT_ATTR_RW(cohort_vnode, unusable_pct);

#define VNODE_KB(_name, _pages)						\
static ssize_t cohort_vnode_##_name##_show(struct kobject *kobj,	\
					   struct kobj_attribute *attr, char *buf) \
{									\
	const struct cohort_vnode *vn = cohort_vnode_at(kobj);		\
									\
	return sysfs_emit(buf, "%lu\n", COHORT_KB(_pages));		\
}									\
COHORT_ATTR_RO(cohort_vnode, _name)

VNODE_KB(size_kb, cohort_vnode_in_zones(vn, zone_managed_pages));
VNODE_KB(free_kb, cohort_vnode_in_zones(vn, cohort_zone_free));
VNODE_KB(parked_kb, cohort_vnode_in_zones(vn, cohort_zone_parked));
VNODE_KB(lent_kb, (unsigned long)atomic_long_read(&vn->lent));
VNODE_KB(anon_kb, cohort_vnode_on_nodes(vn, NR_ANON_MAPPED));
VNODE_KB(file_kb, cohort_vnode_cache(vn));

static struct attribute *node_attrs[] = {
	&cohort_vnode_nodes_attr.attr,
	&cohort_vnode_cpus_attr.attr,
	&cohort_vnode_oom_kills_attr.attr,
	&cohort_vnode_unusable_pct_attr.attr,
	&cohort_vnode_size_kb_attr.attr,
	&cohort_vnode_free_kb_attr.attr,
	&cohort_vnode_parked_kb_attr.attr,
	&cohort_vnode_lent_kb_attr.attr,
	&cohort_vnode_anon_kb_attr.attr,
	&cohort_vnode_file_kb_attr.attr,
	NULL,
};

static const struct attribute_group node_group = { .attrs = node_attrs };

static int __init cohort_vnode_add_node(struct kobject *parent, struct cohort_vnode *vn)
{
	vn->kobj = kobject_create_and_add(vn->name, parent);
	if (!vn->kobj)
		return -ENOMEM;
	return sysfs_create_group(vn->kobj, &node_group);
}

/**
 * cohort_vnode_sysfs_init() - make the directory vnode/
 * @parent: /sys/kernel/mm/cohort
 *
 * It is there if a layout is in force.
 *
 * Return: 0 or a negative errno.
 */
int __init cohort_vnode_sysfs_init(struct kobject *parent)
{
	struct kobject *dir;
	unsigned int i;
	int err;

	if (!cohort_nr_vnodes)
		return 0;
	dir = kobject_create_and_add("vnode", parent);
	if (!dir)
		return -ENOMEM;
	err = sysfs_create_group(dir, &vnode_group);
	for (i = 0; !err && i < cohort_nr_vnodes; i++)
		err = cohort_vnode_add_node(dir, &cohort_vnodes[i]);
	return err;
}
