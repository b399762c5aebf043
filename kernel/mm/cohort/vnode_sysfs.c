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

#include "cohort.h"
#include "vnode.h"

#define VNODE_ATTR_RO(_name)						\
	static struct kobj_attribute _name##_attr = __ATTR_RO(_name)
#define VNODE_ATTR_RW(_name)						\
	static struct kobj_attribute _name##_attr =			\
		__ATTR(_name, 0644, _name##_show, _name##_store)

#define K(pages) ((pages) << (PAGE_SHIFT - 10))

/* vnode/ */

static ssize_t layout_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%s\n", cohort_vnode_layout());
}
VNODE_ATTR_RO(layout);

static ssize_t default_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%s\n", cohort_vnode_default()->name);
}

static ssize_t default_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t len)
{
	struct cohort_vnode *vn = cohort_vnode_find(buf);

	if (!vn)
		return -EINVAL;
	cohort_vnode_set_default(vn);
	return len;
}
VNODE_ATTR_RW(default);

static ssize_t lend_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", cohort_vnode_lends());
}

static ssize_t lend_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t len)
{
	return cohort_store_switch(buf, len, cohort_vnode_lend);
}
VNODE_ATTR_RW(lend);

static struct attribute *vnode_attrs[] = {
	&layout_attr.attr,
	&default_attr.attr,
	&lend_attr.attr,
	NULL,
};

static const struct attribute_group vnode_group = { .attrs = vnode_attrs };

/* vnode/NAME/ */

static struct cohort_vnode *vnode_at(const struct kobject *kobj)
{
	unsigned int i = 0;

	while (i + 1 < cohort_nr_vnodes && cohort_vnodes[i].kobj != kobj)
		i++;
	return &cohort_vnodes[i];
}

static unsigned long managed(const struct cohort_vnode *vn)
{
	unsigned long pages = 0;
	struct zone *zone;

	for_each_populated_zone(zone)
		if (node_isset(zone_to_nid(zone), vn->nodes))
			pages += zone_managed_pages(zone);
	return pages;
}

static unsigned long in_zones(const struct cohort_vnode *vn, enum zone_stat_item item)
{
	unsigned long pages = 0;
	struct zone *zone;

	for_each_populated_zone(zone)
		if (node_isset(zone_to_nid(zone), vn->nodes))
			pages += zone_page_state(zone, item);
	return pages;
}

static unsigned long on_nodes(const struct cohort_vnode *vn, enum node_stat_item item)
{
	unsigned long pages = 0;
	int nid;

	for_each_node_mask(nid, vn->nodes)
		pages += node_page_state(NODE_DATA(nid), item);
	return pages;
}

static ssize_t nodes_show(struct kobject *kobj, struct kobj_attribute *attr,
			  char *buf)
{
	return sysfs_emit(buf, "%*pbl\n", nodemask_pr_args(&vnode_at(kobj)->nodes));
}
VNODE_ATTR_RO(nodes);

static ssize_t cpus_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	return sysfs_emit(buf, "%*pbl\n", cpumask_pr_args(&vnode_at(kobj)->cpus));
}
VNODE_ATTR_RO(cpus);

static ssize_t oom_kills_show(struct kobject *kobj, struct kobj_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&vnode_at(kobj)->oom_kills));
}
VNODE_ATTR_RO(oom_kills);

static ssize_t unusable_pct_show(struct kobject *kobj, struct kobj_attribute *attr,
				 char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(vnode_at(kobj)->unusable_pct));
}

static ssize_t unusable_pct_store(struct kobject *kobj, struct kobj_attribute *attr,
				  const char *buf, size_t len)
{
	struct cohort_vnode *vn = vnode_at(kobj);
	ssize_t done = cohort_store_uint(buf, len, &vn->unusable_pct, 0, 100);

	if (done > 0)
		cohort_vnode_tidy_now(vn);
	return done;
}
VNODE_ATTR_RW(unusable_pct);

#define VNODE_KB(_name, _pages)						\
static ssize_t _name##_show(struct kobject *kobj,			\
			    struct kobj_attribute *attr, char *buf)	\
{									\
	const struct cohort_vnode *vn = vnode_at(kobj);			\
									\
	return sysfs_emit(buf, "%lu\n", K(_pages));			\
}									\
VNODE_ATTR_RO(_name)

VNODE_KB(size_kb, managed(vn));
VNODE_KB(free_kb, in_zones(vn, NR_FREE_PAGES));
VNODE_KB(parked_kb, in_zones(vn, NR_COHORT_FREE));
VNODE_KB(lent_kb, (unsigned long)atomic_long_read(&vn->lent));
VNODE_KB(anon_kb, on_nodes(vn, NR_ANON_MAPPED));
VNODE_KB(file_kb, on_nodes(vn, NR_FILE_PAGES) - on_nodes(vn, NR_SHMEM));

static struct attribute *node_attrs[] = {
	&nodes_attr.attr,
	&cpus_attr.attr,
	&oom_kills_attr.attr,
	&unusable_pct_attr.attr,
	&size_kb_attr.attr,
	&free_kb_attr.attr,
	&parked_kb_attr.attr,
	&lent_kb_attr.attr,
	&anon_kb_attr.attr,
	&file_kb_attr.attr,
	NULL,
};

static const struct attribute_group node_group = { .attrs = node_attrs };

static int __init add_node(struct kobject *parent, struct cohort_vnode *vn)
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
		err = add_node(dir, &cohort_vnodes[i]);
	return err;
}
