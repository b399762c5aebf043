// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a small guest with the nodes "trusted" and "untrusted": a
 * process without privilege leaves no role, one that runs out of memory in a node
 * kills and stalls no process in the other, and a node stays in one piece.
 * Prints "ok WHAT" or "not ok WHAT", a line a claim.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claims.h"

#define MB (1UL << 20)
#define PAGES 256
#define STEP (256UL << 10)
#define TRUSTED 0		/* NUMA nodes */
#define UNTRUSTED 1
#define CGROUPS "/sys/fs/cgroup"
#define NODES "/sys/kernel/mm/cohort/vnode/"
#define THP "/sys/kernel/mm/transparent_hugepage/"
#define MPOL_BIND 2
#define MPOL_MF_MOVE 2

static bool make(const char *path)
{
	return !mkdir(path, 0755);
}

static bool says(const char *path, const char *value)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return false;
	close(fd);
	text[strcspn(text, "\n")] = '\0';
	return !strcmp(text, value);
}

static char *touch(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	memset(p, 1, size);
	return p;
}

/* How many of the pages that lie STEP apart are on this node. */
static int on_node(char *p, int node)
{
	void *page[PAGES];
	int status[PAGES], i, n = 0;

	for (i = 0; i < PAGES; i++)
		page[i] = p + i * STEP;
	syscall(SYS_move_pages, 0, (long)PAGES, page, NULL, status, 0);
	for (i = 0; i < PAGES; i++)
		n += status[i] == node;
	return n;
}

static void move(char *p, int node)
{
	void *page[PAGES];
	int to[PAGES], status[PAGES], i;

	for (i = 0; i < PAGES; i++) {
		page[i] = p + i * STEP;
		to[i] = node;
	}
	syscall(SYS_move_pages, 0, (long)PAGES, page, to, status, MPOL_MF_MOVE);
}

static int unprivileged(void)
{
	unsigned long mask = 1UL << TRUSTED;
	char *p;

	claim(!put("/proc/self/vnode", "untrusted"), "root gives a role");
	if (setuid(1000) || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	claim(put("/proc/self/vnode", "trusted") == -EACCES, "no way up by the role file");
	claim(!put("/proc/self/vnode", "untrusted"), "the owner may write the same role");
	claim(put("/proc/self/vnode", "nobody") == -EINVAL, "unknown roles are refused");
	claim(says("/proc/self/vnode", "untrusted"), "the role is still the same");
	syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64UL);
	p = touch(PAGES * STEP);
	claim(on_node(p, UNTRUSTED) == PAGES, "no way out by a memory policy");
	move(p, TRUSTED);
	claim(on_node(p, TRUSTED) == 0, "no way out by move_pages");
	return 0;
}

static int deputy(void)
{
	int err;

	put("/proc/self/vnode", "untrusted");
	err = put_for_caller("/proc/self/vnode", "trusted");
	claim(err == -EACCES, "no way up by a setuid program that writes to its stderr");
	return err > 0;
}

static pid_t child(int (*run)(void))
{
	pid_t pid = fork();

	if (!pid)
		_exit(run());
	return pid;
}

static int inherits(void)
{
	int status;

	put("/proc/self/vnode", "untrusted");
	if (!fork()) {
		execl("/init", "/init", "child", NULL);
		_exit(1);
	}
	wait(&status);
	return 0;
}

static int bystander(void)
{
	put("/proc/self/vnode", "trusted");
	put("/proc/self/oom_score_adj", "900");
	touch(100 * MB);
	pause();
	return 0;
}

static int hog(void)
{
	put("/proc/self/vnode", "untrusted");
	touch(900 * MB);
	return 0;
}

static void out_of_memory(void)
{
	pid_t spared = child(bystander), killed;
	int status;

	sleep(1);
	killed = child(hog);
	waitpid(killed, &status, 0);
	claim(WIFSIGNALED(status) && WTERMSIG(status) == 9, "the hog is killed");
	claim(waitpid(spared, &status, WNOHANG) == 0, "the bystander lives");
	claim(says("/sys/kernel/mm/cohort/vnode/untrusted/oom_kills", "1") &&
	      says("/sys/kernel/mm/cohort/vnode/trusted/oom_kills", "0"), "kills are counted");
	kill(spared, SIGKILL);
	waitpid(spared, NULL, 0);
}

static void hotplug(void)
{
	claim(says("/sys/kernel/mm/cohort/vnode/untrusted/cpus", "0-1"), "all CPUs are near");
	put("/sys/devices/system/cpu/cpu1/online", "0");
	claim(says("/sys/kernel/mm/cohort/vnode/untrusted/cpus", "0"), "unplugged ones are not");
	put("/sys/devices/system/cpu/cpu1/online", "1");
	claim(says("/sys/kernel/mm/cohort/vnode/untrusted/cpus", "0-1"), "plugged ones are again");
}

/* Time that some task of this cgroup stalled for memory, us. */
static unsigned long stalled(const char *path)
{
	char text[256] = "", *total;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return 0;
	close(fd);
	total = strstr(text, "total=");
	return total ? strtoul(total + strlen("total="), NULL, 10) : 0;
}

/* The role file says trusted, the cpuset has the untrusted node only. */
static int in_cpuset(void)
{
	char *p;

	put("/proc/self/vnode", "trusted");
	claim(!put(CGROUPS "/apps/cgroup.procs", "0"), "a cpuset is entered");
	claim(says("/proc/self/vnode", "untrusted"), "a cpuset gives the role of its node");
	p = touch(PAGES * STEP);
	claim(on_node(p, UNTRUSTED) == PAGES, "memory comes from the cpuset's node");
	touch(900 * MB);
	return 0;
}

static int beside(void)
{
	put(CGROUPS "/phone/cgroup.procs", "0");
	put("/proc/self/vnode", "trusted");
	touch(100 * MB);
	pause();
	return 0;
}

static void cpusets(void)
{
	int status;
	pid_t calm;

	claim(!mount("cgroup", CGROUPS, "cgroup2", 0, NULL) &&
	      !put(CGROUPS "/cgroup.subtree_control", "+cpuset") &&
	      make(CGROUPS "/apps") && make(CGROUPS "/phone") &&
	      !put(CGROUPS "/apps/cpuset.mems", "1"), "there are cpusets");
	calm = child(beside);
	waitpid(child(in_cpuset), &status, 0);
	claim(WIFSIGNALED(status) && WTERMSIG(status) == 9, "a hog in a cpuset is killed");
	claim(waitpid(calm, &status, WNOHANG) == 0, "who is in the other node lives");
	claim(stalled(CGROUPS "/apps/memory.pressure") > 0, "its role stalled");
	claim(stalled(CGROUPS "/phone/memory.pressure") == 0, "the other role did not stall");
	kill(calm, SIGKILL);
	waitpid(calm, NULL, 0);
}

/* Share of the node's free memory in blocks below order 4, percent. */
static unsigned long unusable(int node)
{
	unsigned long all = 0, small = 0, blocks;
	FILE *f = fopen("/proc/buddyinfo", "r");
	char line[256], *at;
	int nid, order;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Node %d, zone %*s", &nid) != 1 || nid != node)
			continue;
		at = strstr(line, "zone") + strlen("zone");
		at += strspn(at, " ");
		at += strcspn(at, " ");
		for (order = 0; *at && *at != '\n'; order++, at += strspn(at, " ")) {
			blocks = strtoul(at, &at, 10) << order;
			all += blocks;
			small += order < 4 ? blocks : 0;
		}
	}
	if (f)
		fclose(f);
	return all ? small * 100 / all : 100;
}

/* Pages that compaction has looked at since boot. */
static unsigned long compacted(void)
{
	unsigned long n = 0;
	FILE *f = fopen("/proc/vmstat", "r");
	char line[96];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "compact_migrate_scanned %lu", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* Every other page of so much of the node is freed. */
static void make_holes(size_t size)
{
	char *p = touch(size);
	size_t at;

	madvise(p, size, MADV_NOHUGEPAGE);
	for (at = 0; at < size; at += 8192)
		madvise(p + at, 4096, MADV_DONTNEED);
}

/* The role's node has free pages, and none that are huge; the other node has. */
static int huge(void)
{
	size_t whole = 96 * MB;
	char *p;

	put("/proc/self/vnode", "trusted");
	make_holes(190 * MB);
	put(THP "enabled", "always");
	put(THP "defrag", "never");
	p = touch(whole);
	claim(on_node(p + whole - PAGES * STEP, TRUSTED) == PAGES,
	      "no way out by huge pages that may not wait");
	put(THP "defrag", "madvise");
	put(THP "enabled", "madvise");
	return 0;
}

/*
 * How many holes compaction closes depends on the owner of their blocks; that it tries
 * is asked.
 */
static int tidies(void)
{
	unsigned long before;
	int i;

	put("/proc/self/vnode", "trusted");
	make_holes(120 * MB);
	claim(unusable(TRUSTED) > 20, "a node full of holes");
	claim(put(NODES "trusted/unusable_pct", "101") == -EINVAL &&
	      put(NODES "trusted/unusable_pct", "-1") == -EINVAL &&
	      says(NODES "trusted/unusable_pct", "0"), "no share but a percentage");
	claim(!put("/proc/sys/vm/compaction_proactiveness", "0"), "nothing compacts by itself");
	sleep(2);
	before = compacted();
	claim(!put(NODES "trusted/unusable_pct", "10"), "a share of holes is set");
	for (i = 0; i < 40 && compacted() == before; i++)
		sleep(1);
	claim(i < 40, "kcompactd compacts the node");
	return 0;
}

int main(int argc, char **argv)
{
	int status;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1 && !strcmp(argv[1], "child")) {
		claim(says("/proc/self/vnode", "untrusted"), "a child has the role after exec");
		return 0;
	}
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	if (access("/sys/kernel/mm/cohort/vnode", F_OK)) {
		claim(says("/sys/devices/system/node/online", "0") &&
		      says("/proc/self/vnode", "none"), "no nodes at all");
	} else {
		waitpid(child(unprivileged), NULL, 0);
		waitpid(child(deputy), &status, 0);
		claim(!status, "a setuid program was tried");
		waitpid(child(inherits), NULL, 0);
		out_of_memory();
		cpusets();
		waitpid(child(huge), NULL, 0);
		waitpid(child(tidies), NULL, 0);
		hotplug();
	}
	printf("done\n");
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}
