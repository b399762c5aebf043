// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/cohort/pcpa/: the area.  All may read how large it is; what it is used for
 * tells that a camera is on, so only root may read that.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/sysfs.h>
#include <linux/vmstat.h>

#include "../cohort.h"
#include "pcpa.h"

/* Pages that a CPU has at hand are free, which decisions need not know. */
static void cohort_pcpa_shown(struct cohort_pcpa_sizes *sizes)
{
	const struct zone *zone = READ_ONCE(cohort_area.zone);
	unsigned long nr;

	cohort_pcpa_sizes(sizes);
	nr = zone ? min(sizes->cache, cohort_magazine_nr(zone, COHORT_KEPT)) : 0;
	sizes->free += nr;
	sizes->cache -= nr;
}

static ssize_t cohort_pcpa_store_size(const char *name, const char *buf, size_t len,
				      int (*resize)(u64 size, u64 base))
{
	u64 size, base;

	if (cohort_pcpa_parse(buf, &size, &base))
		return cohort_store_refused(name, buf, "a size, or size@base");
	return resize(size, base) ?: len;
}

static ssize_t cohort_pcpa_size_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct cohort_pcpa_sizes sizes;

	cohort_pcpa_sizes(&sizes);
	return sysfs_emit(buf, "%lu\n", sizes.size << PAGE_SHIFT);
}

static ssize_t cohort_pcpa_size_store(struct kobject *kobj, struct kobj_attribute *attr,
				      const char *buf, size_t len)
{
	return cohort_pcpa_store_size("pcpa/size", buf, len, cohort_pcpa_resize);
}
COHORT_ATTR_RW(cohort_pcpa, size);

static ssize_t cohort_pcpa_base_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct cohort_pcpa_sizes sizes;

	cohort_pcpa_sizes(&sizes);
	return sysfs_emit(buf, "%llu\n", (u64)PFN_PHYS((u64)sizes.base));
}
COHORT_ATTR_ROOT(cohort_pcpa, base);

static ssize_t cohort_pcpa_below_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	u64 end = cohort_pcpa_below == ULONG_MAX ? 0 : PFN_PHYS((u64)cohort_pcpa_below);

	return sysfs_emit(buf, "%llu\n", end);
}
COHORT_ATTR_RO(cohort_pcpa, below);

static ssize_t cohort_pcpa_contig_size_show(struct kobject *kobj, struct kobj_attribute *attr,
					    char *buf)
{
	struct cohort_copies_stat stat;

	cohort_copies_stats(&stat);
	return sysfs_emit(buf, "%lu\n", stat.size << PAGE_SHIFT);
}

static ssize_t cohort_pcpa_contig_size_store(struct kobject *kobj, struct kobj_attribute *attr,
					     const char *buf, size_t len)
{
	return cohort_pcpa_store_size("pcpa/contig_size", buf, len, cohort_copies_resize);
}
COHORT_ATTR_RW(cohort_pcpa, contig_size);

static ssize_t cohort_pcpa_contig_client_kb_show(struct kobject *kobj,
						 struct kobj_attribute *attr, char *buf)
{
	struct cohort_copies_stat stat;

	cohort_copies_stats(&stat);
	return sysfs_emit(buf, "%lu\n", COHORT_KB(stat.client));
}
COHORT_ATTR_ROOT(cohort_pcpa, contig_client_kb);

static ssize_t cohort_pcpa_min_order_show(struct kobject *kobj,
					  struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(cohort_pcpa_min_order));
}

static ssize_t cohort_pcpa_min_order_store(struct kobject *kobj, struct kobj_attribute *attr,
					   const char *buf, size_t len)
{
	unsigned int order;

	if (kstrtouint(buf, 10, &order) || !cohort_pcpa_order_ok(order))
		return cohort_store_refused("pcpa/min_order", buf, "0 to %d", COHORT_CHUNK_ORDER);
	WRITE_ONCE(cohort_pcpa_min_order, order);
	return len;
}
COHORT_ATTR_RW(cohort_pcpa, min_order);

static ssize_t cohort_pcpa_timer_ms_show(struct kobject *kobj,
					 struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(cohort_pcpa_timer_ms));
}

static ssize_t cohort_pcpa_timer_ms_store(struct kobject *kobj, struct kobj_attribute *attr,
					  const char *buf, size_t len)
{
	return cohort_store_uint("pcpa/timer_ms", buf, len, &cohort_pcpa_timer_ms, 1,
				 COHORT_TIMER_MAX_MS);
}
COHORT_ATTR_RW(cohort_pcpa, timer_ms);

static ssize_t cohort_pcpa_user_max_show(struct kobject *kobj, struct kobj_attribute *attr,
					 char *buf)
{
	return sysfs_emit(buf, "%lu\n", READ_ONCE(cohort_pcpa_user_max) << PAGE_SHIFT);
}

static ssize_t cohort_pcpa_user_max_store(struct kobject *kobj, struct kobj_attribute *attr,
					  const char *buf, size_t len)
{
	u64 size, base;

	if (cohort_pcpa_parse(buf, &size, &base) || base != COHORT_ANY_BASE ||
	    size & ~PAGE_MASK)
		return cohort_store_refused("pcpa/user_max", buf, "a size in whole pages");
	WRITE_ONCE(cohort_pcpa_user_max, PHYS_PFN(size));
	return len;
}
COHORT_ATTR_RW(cohort_pcpa, user_max);

static ssize_t cohort_pcpa_announce_store(struct kobject *kobj, struct kobj_attribute *attr,
					  const char *buf, size_t len)
{
	u64 size, base;

	if (cohort_pcpa_parse(buf, &size, &base) || base != COHORT_ANY_BASE || !PHYS_PFN(size))
		return cohort_store_refused("pcpa/announce", buf, "a size of a page or more");
	if (!cohort_pcpa_taking())
		return -ENODEV;
	cohort_pcpa_announce(min(PHYS_PFN(size), totalram_pages()));
	return len;
}
static struct kobj_attribute cohort_pcpa_announce_attr =
	__ATTR(announce, 0200, NULL, cohort_pcpa_announce_store);

static ssize_t cohort_pcpa_state_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", cohort_pcpa_state() == COHORT_PCACHE_ONLY ?
				       "pcache_only" : "anon_alloc");
}
COHORT_ATTR_ROOT(cohort_pcpa, state);

#define PCPA_KB(_name, _field)						\
static ssize_t cohort_pcpa_##_name##_show(struct kobject *kobj,		\
					  struct kobj_attribute *attr, char *buf) \
{									\
	struct cohort_pcpa_sizes sizes;					\
									\
	cohort_pcpa_shown(&sizes);					\
	return sysfs_emit(buf, "%lu\n", COHORT_KB(sizes._field));	\
}									\
COHORT_ATTR_ROOT(cohort_pcpa, _name)

PCPA_KB(free_kb, free);
PCPA_KB(cache_kb, cache);
PCPA_KB(client_kb, client);
PCPA_KB(lent_kb, lent);
PCPA_KB(other_kb, lent + sizes.other);

#ifdef CONFIG_VM_EVENT_COUNTERS
static int cohort_pcpa_emit_events(char *buf, int at)
{
	static const struct {
		const char *name;
		enum vm_event_item item;
	} events[] = {
		{ "cached", COHORT_PCPA_CACHE },
		{ "lent", COHORT_PCPA_LENT },
		{ "pulled", COHORT_PCPA_PULLED },
		{ "given", COHORT_PCPA_GIVEN },
		{ "granted", COHORT_PCPA_CLIENT },
		{ "reclaims", COHORT_PCPA_QUICK },
		{ "reclaimed", COHORT_PCPA_RECLAIMED },
		{ "refaults", COHORT_PCPA_REFAULT },
		{ "migrated", COHORT_PCPA_MIGRATED },
		{ "contig_ok", COHORT_PCPA_CONTIG_OK },
		{ "contig_fail", COHORT_PCPA_CONTIG_FAIL },
		{ "busy", COHORT_PCPA_BUSY },
	};
	unsigned long *sums = kcalloc(NR_VM_EVENT_ITEMS, sizeof(*sums), GFP_KERNEL);
	unsigned int i;

	if (!sums)
		return -ENOMEM;
	all_vm_events(sums);
	for (i = 0; i < ARRAY_SIZE(events); i++)
		at += sysfs_emit_at(buf, at, "%s %lu\n", events[i].name, sums[events[i].item]);
	kfree(sums);
	return at;
}
#else
static int cohort_pcpa_emit_events(char *buf, int at)
{
	return at;
}
#endif

static ssize_t cohort_pcpa_stats_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	int at = cohort_pcpa_emit_events(buf, 0);
	struct cohort_copies_stat stat;
	unsigned int i;

	if (at < 0)
		return at;
	cohort_copies_stats(&stat);
	for (i = COHORT_BUSY_NONE + 1; i < COHORT_NR_BUSY; i++)
		at += sysfs_emit_at(buf, at, "busy_%s %ld\n", cohort_busy_names[i],
				    atomic_long_read(&cohort_busy_count[i]));
	at += sysfs_emit_at(buf, at, "copies_stored %lu\ncopies_hits %lu\ncopies_dropped %lu\n",
			    stat.stored, stat.hits, stat.dropped);
	at += sysfs_emit_at(buf, at, "reclaim_ns %ld\n", atomic_long_read(&cohort_quick_ns));
	at += sysfs_emit_at(buf, at, "contig_ns_max %ld\n",
			    atomic_long_read(&cohort_contig_ns_max));
	return at;
}
COHORT_ATTR_ROOT(cohort_pcpa, stats);

static struct attribute *pcpa_attrs[] = {
	&cohort_pcpa_size_attr.attr,
	&cohort_pcpa_base_attr.attr,
	&cohort_pcpa_below_attr.attr,
	&cohort_pcpa_contig_size_attr.attr,
	&cohort_pcpa_contig_client_kb_attr.attr,
	&cohort_pcpa_min_order_attr.attr,
	&cohort_pcpa_timer_ms_attr.attr,
	&cohort_pcpa_user_max_attr.attr,
	&cohort_pcpa_announce_attr.attr,
	&cohort_pcpa_state_attr.attr,
	&cohort_pcpa_free_kb_attr.attr,
	&cohort_pcpa_cache_kb_attr.attr,
	&cohort_pcpa_client_kb_attr.attr,
	&cohort_pcpa_lent_kb_attr.attr,
	&cohort_pcpa_other_kb_attr.attr,
	&cohort_pcpa_stats_attr.attr,
	NULL,
};

static const struct attribute_group pcpa_group = {
	.name = "pcpa",
	.attrs = pcpa_attrs,
};

/**
 * cohort_pcpa_sysfs_init() - make the directory pcpa/
 * @parent: /sys/kernel/mm/cohort
 *
 * Return: 0 or a negative errno.
 */
int __init cohort_pcpa_sysfs_init(struct kobject *parent)
{
	return sysfs_create_group(parent, &pcpa_group);
}
