// SPDX-License-Identifier: GPL-2.0
/*
 * What a user of the heaps may have: buffers are charged to the memory cgroup that asked for
 * them, and a user without rights has so much of them at most.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "../pcpa/pcpa.h"
#include "heap.h"

/* Bytes charged at a time: what memory cgroups count in has 32 bits. */
#define CHARGE_STEP	SZ_1G

/**
 * struct cohort_payer - a user with buffers
 * @node: on the list of all
 * @uid: the user
 * @pages: of its buffers
 */
struct cohort_payer {
	struct list_head node;
	kuid_t uid;
	unsigned long pages;
};

static LIST_HEAD(payers);
static DEFINE_MUTEX(payers_lock);

/* users */

/*
 * A user with a range of ids has as many of them as it likes in a namespace of its own, and
 * all are that user's.  Those of a namespace that root made are what root made them.
 */
static kuid_t cohort_payer_uid(void)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_uid();

	for (; ns->parent; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

static struct cohort_payer *cohort_payer_find(kuid_t uid)
{
	struct cohort_payer *payer;

	list_for_each_entry(payer, &payers, node)
		if (uid_eq(payer->uid, uid))
			return payer;
	return NULL;
}

static bool cohort_payer_may(const struct cohort_payer *payer, unsigned long pages)
{
	unsigned long max = READ_ONCE(cohort_pcpa_user_max);

	return !max || (pages <= max && payer->pages <= max - pages) ||
	       capable(CAP_SYS_RESOURCE);
}

static void cohort_payer_leave(struct cohort_payer *payer, unsigned long pages)
{
	payer->pages -= pages;
	if (payer->pages)
		return;
	list_del(&payer->node);
	kfree(payer);
}

static int cohort_payer_pays(struct cohort_buffer *buffer)
{
	struct cohort_payer *payer, *new = kzalloc(sizeof(*new), GFP_KERNEL);
	unsigned long pages = buffer->len >> PAGE_SHIFT;
	kuid_t uid = cohort_payer_uid();
	int err = 0;

	if (!new)
		return -ENOMEM;
	mutex_lock(&payers_lock);
	payer = cohort_payer_find(uid);
	if (!payer) {
		payer = new;
		new = NULL;
		payer->uid = uid;
		list_add(&payer->node, &payers);
	}
	if (cohort_payer_may(payer, pages))
		payer->pages += pages;
	else
		err = -EDQUOT;
	if (err)
		cohort_payer_leave(payer, 0);
	else
		buffer->payer = payer;
	mutex_unlock(&payers_lock);
	kfree(new);
	return err;
}

static void cohort_payer_ends(struct cohort_buffer *buffer)
{
	mutex_lock(&payers_lock);
	cohort_payer_leave(buffer->payer, buffer->len >> PAGE_SHIFT);
	mutex_unlock(&payers_lock);
}

/* memory cgroups */

#ifdef CONFIG_MEMCG
static void cohort_buffer_uncharge(struct cohort_buffer *buffer)
{
	unsigned long left, part;

	if (!buffer->objcg)
		return;
	for (left = buffer->charged; left; left -= part) {
		part = min(left, CHARGE_STEP);
		obj_cgroup_uncharge(buffer->objcg, part);
	}
	obj_cgroup_put(buffer->objcg);
	buffer->objcg = NULL;
}

static int cohort_buffer_charge(struct cohort_buffer *buffer)
{
	unsigned long part;
	int err = 0;

	buffer->objcg = memcg_kmem_online() ? get_obj_cgroup_from_current() : NULL;
	while (buffer->objcg && !err && buffer->charged < buffer->len) {
		part = min(buffer->len - buffer->charged, CHARGE_STEP);
		err = obj_cgroup_charge(buffer->objcg, COHORT_CHARGE_GFP, part);
		if (!err)
			buffer->charged += part;
	}
	if (err)
		cohort_buffer_uncharge(buffer);
	return err;
}
#else
static void cohort_buffer_uncharge(struct cohort_buffer *buffer) { }

static int cohort_buffer_charge(struct cohort_buffer *buffer)
{
	return 0;
}
#endif

/**
 * cohort_quota_take() - a buffer is about to be made for the current task
 * @buffer: its length is set
 *
 * Context: may sleep, and reclaim memory of the task's memory cgroup.
 * Return: 0, -EDQUOT if its user has too much, -ENOMEM if its memory cgroup has.
 */
int cohort_quota_take(struct cohort_buffer *buffer)
{
	int err = cohort_payer_pays(buffer);

	if (err)
		return err;
	err = cohort_buffer_charge(buffer);
	if (err)
		cohort_payer_ends(buffer);
	return err;
}

/**
 * cohort_quota_return() - a buffer is gone, whichever task had it last
 * @buffer: after cohort_quota_take()
 */
void cohort_quota_return(struct cohort_buffer *buffer)
{
	cohort_buffer_uncharge(buffer);
	cohort_payer_ends(buffer);
}
