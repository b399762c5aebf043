// SPDX-License-Identifier: GPL-2.0
/*
 * Roles: groups of processes that a policy keeps apart, by a virtual memory
 * node or by a memory cgroup. The workload gives each process its role; a policy
 * that does not know the role leaves its processes alone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "system/role.h"

static void cgroup_value(const char *role, const char *file, uint64_t kb)
{
	char path[96], value[32];
	int err;

	snprintf(path, sizeof(path), CGROUPS "/%s/%s", role, file);
	snprintf(value, sizeof(value), "%llu", (unsigned long long)(kb * KB));
	err = spit(path, value);
	if (err)
		fatal("%s: %s", path, strerror(-err));
}

static void make_cgroup(const struct role *role, const char *controller)
{
	int err = cgroup_make(role->name, controller);

	if (err)
		fatal("cgroup %s: %s", role->name, strerror(-err));
}

static void protect(const struct role *role)
{
	make_cgroup(role, "+memory");
	cgroup_value(role->name, "memory.min", role->min_kb);
	cgroup_value(role->name, "memory.low", role->low_kb);
	if (role->max_kb)
		cgroup_value(role->name, "memory.max", role->max_kb);
}

/* A list of nodes, "0" or "0,2-3", as a mask. */
static uint64_t parse_nodes(const char *list)
{
	uint64_t mask = 0, from, to;
	char *end;

	for (; *list && *list != '\n'; list = *end == ',' ? end + 1 : end) {
		from = to = strtoull(list, &end, 10);
		if (*end == '-')
			to = strtoull(end + 1, &end, 10);
		for (; from <= to && from < 64; from++)
			mask |= 1ULL << from;
	}
	return mask;
}

uint64_t role_vnode_kb(const struct role *role, const char *file)
{
	char path[96], text[64];

	snprintf(path, sizeof(path), VNODES "%s/%s", role->vnode, file);
	if (slurp(path, text, sizeof(text)) < 0)
		fatal("%s: %s", path, strerror(errno));
	return strtoull(text, NULL, 10);
}

static void find_vnode(struct role *role)
{
	char path[96], text[64];

	snprintf(path, sizeof(path), VNODES "%s/nodes", role->vnode);
	if (slurp(path, text, sizeof(text)) < 0)
		fatal("the kernel has no virtual node %s", role->vnode);
	role->nodes = parse_nodes(text);
	/* The kernel counts the stalls of every cgroup, controllers or not. */
	if (sh->conf.set.lmkd_psi)
		make_cgroup(role, NULL);
}

/* Before the first process of the phone: groups are made, nodes looked up. */
void roles_setup(void)
{
	struct conf *conf = &sh->conf;
	int i;

	for (i = 0; i < conf->nr_roles; i++) {
		struct role *role = &conf->role[i];

		if (role->kind == ROLE_VNODE)
			find_vnode(role);
		else if (role->kind == ROLE_CGROUP)
			protect(role);
	}
}

/* The record by which the lab tells the roles apart. */
void roles_record(void)
{
	const struct conf *conf = &sh->conf;
	int i;

	for (i = 0; i < conf->nr_prof; i++)
		if (conf->prof[i].role != NO_ROLE)
			record(RECORD_ROLE,
			       conf->prof[i].name, conf->role[conf->prof[i].role].name,
			       (unsigned long long)conf->role[conf->prof[i].role].nodes);
}

static void enter_vnode(const struct role *role)
{
	int err = spit("/proc/self/vnode", role->vnode);

	if (err)
		fatal("role %s: %s", role->name, strerror(-err));
}

static void enter_cgroup(const struct role *role)
{
	char path[96];
	int err;

	snprintf(path, sizeof(path), CGROUPS "/%s/cgroup.procs", role->name);
	err = spit(path, "0");
	if (err)
		fatal("role %s: %s", role->name, strerror(-err));
}

/* The calling process takes the role; its children will have it. */
void role_enter(int index)
{
	const struct role *role = &sh->conf.role[index];

	if (index == NO_ROLE)
		return;
	if (role->kind == ROLE_VNODE)
		enter_vnode(role);
	if (role->kind == ROLE_CGROUP || (role->kind == ROLE_VNODE && sh->conf.set.lmkd_psi))
		enter_cgroup(role);
}

/*
 * Memory is charged to the process it is made for: the buffer service takes the
 * role of its client while it serves, and zygote that of its child while it forks.
 * Pages of dma-bufs have no cgroup, and stalls stay those of the task that waited.
 */
void role_borrow(int index)
{
	static int borrowed = NO_ROLE;

	if (index == NO_ROLE || index == borrowed ||
	    sh->conf.role[index].kind != ROLE_VNODE)
		return;
	enter_vnode(&sh->conf.role[index]);
	borrowed = index;
}

/* Victims in a protected cgroup are picked last. */
bool role_protected(int index)
{
	return index != NO_ROLE && sh->conf.role[index].kind == ROLE_CGROUP &&
	       sh->conf.role[index].min_kb;
}
