// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a small guest with the nodes "trusted" and "untrusted": a
 * process without privilege gets no more trust, one that runs out of memory in a node
 * kills and stalls no process in the other, memory in a role that was left is not out of
 * reach, lent memory is counted where it lies and comes back, and a node stays in one piece.
 * Prints "ok WHAT" or "not ok WHAT", a line a claim.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claims.h"
#include "nodes.h"

#define MB (1UL << 20)
#define PAGES 256
#define STEP (256UL << 10)
#define TABLES 128
#define TABLE_COVERS (2 * MB)
#define TRUSTED 0		/* NUMA nodes */
#define UNTRUSTED 1
#define SECOND 2		/* the untrusted role's on the machine's second node, if there is one */
#define CGROUPS "/sys/fs/cgroup"
#define NODES "/sys/kernel/mm/cohort/vnode/"
#define LRU_GEN "/sys/kernel/mm/lru_gen/"
#define THP "/sys/kernel/mm/transparent_hugepage/"
#define MPOL_PREFERRED 1
#define MPOL_BIND 2
#define MPOL_INTERLEAVE 3
#define MPOL_PREFERRED_MANY 5
#define MPOL_MF_MOVE 2
#define LISTS "/proc/sys/vm/percpu_pagelist_high_fraction"
#define LENDER NODES "trusted/lent_kb"
#define RESERVE "/proc/sys/vm/min_free_kbytes"
#define LOAN "/data/loan"
#define LOAN_SIZE (96 * MB)
#define HELD (448 * MB)		/* more than half of the untrusted node */
#define FORKS 40
#define MAPPINGS 8000		/* so that a fork takes some ms */
#define FAMILY 64		/* each has less than what is worth a victim */

static pid_t warden;		/* a trusted process of another user */
static pid_t slow;		/* exits late */
static char *held;		/* its memory; the address is of every process */
static int kind = MAP_PRIVATE;	/* of memory that is mapped */

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

/* Memory that is not touched yet. */
static char *map(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE,
		    kind | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static char *touch(size_t size)
{
	char *p = map(size);

	memset(p, 1, size);
	return p;
}

/* How many of the pages that lie STEP apart are on this node. */
static int on_node(char *p, int node)
{
	return pages_on_node(0, p, PAGES, STEP, node);
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

static unsigned long number(const char *path)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return 0;
	close(fd);
	return strtoul(text, NULL, 10);
}

/* Pages that the process's policy chose, on this node. */
static int chosen(int mode, unsigned long nodes, int node)
{
	char *p;
	int n;

	syscall(SYS_set_mempolicy, mode, &nodes, 64UL);
	p = touch(PAGES * STEP);
	n = on_node(p, node);
	munmap(p, PAGES * STEP);
	return n;
}

/* Page tables that a node has, kB. */
static long tables_kb(int node)
{
	char path[64], text[4096] = "", *line;
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return -1;
	close(fd);
	line = strstr(text, "PageTables:");
	return line ? atol(line + strlen("PageTables:")) : -1;
}

/* Each page has a table of its own, which the kernel takes for the process. */
static void many_preferred(void)
{
	unsigned long there = 1UL << TRUSTED;
	size_t size = TABLES * TABLE_COVERS;
	long before, after;
	char *p;
	int i;

	claim(chosen(MPOL_PREFERRED_MANY, there, UNTRUSTED) == PAGES,
	      "no way out by many preferred nodes");
	before = tables_kb(TRUSTED);
	p = map(size);
	madvise(p, size, MADV_NOHUGEPAGE);
	for (i = 0; i < TABLES; i++)
		p[i * TABLE_COVERS] = 1;
	after = tables_kb(TRUSTED);
	claim(before >= 0 && after - before < TABLES,
	      "nor for the page tables of a process that has them");
	munmap(p, size);
}

static void policies(void)
{
	unsigned long there = 1UL << TRUSTED, asked = 0;
	int mode;

	claim(chosen(MPOL_PREFERRED, there, UNTRUSTED) == PAGES, "no way out by a preferred node");
	claim(chosen(MPOL_INTERLEAVE, there | 1UL << UNTRUSTED, UNTRUSTED) == PAGES,
	      "no way out by interleaving");
	claim(chosen(MPOL_BIND, there, UNTRUSTED) == PAGES, "no way out by a memory policy");
	claim(!syscall(SYS_get_mempolicy, &mode, &asked, 64UL, NULL, 0UL) &&
	      mode == MPOL_BIND && asked == there, "its policy is the one it chose");
	many_preferred();
	syscall(SYS_set_mempolicy, 0, NULL, 0UL);
}

static void mappings(void)
{
	unsigned long there = 1UL << TRUSTED, here = 1UL << UNTRUSTED;
	size_t size = PAGES * STEP;
	int fd = syscall(SYS_memfd_create, "shared", 0);
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	syscall(SYS_mbind, p, size, MPOL_BIND, &there, 64UL, 0);
	memset(p, 1, size);
	claim(on_node(p, UNTRUSTED) == PAGES, "no way out by mbind");
	syscall(SYS_mbind, p, size, MPOL_BIND, &there, 64UL, MPOL_MF_MOVE);
	claim(on_node(p, TRUSTED) == 0, "no way out by mbind that moves");
	syscall(SYS_migrate_pages, 0, 64UL, &here, &there);
	claim(on_node(p, TRUSTED) == 0, "no way out by migrate_pages");
	move(p, TRUSTED);
	claim(on_node(p, TRUSTED) == 0, "no way out by move_pages");
	munmap(p, size);
	claim(fd >= 0 && !ftruncate(fd, size), "there is shared memory");
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memset(p, 1, size);
	claim(on_node(p, UNTRUSTED) == PAGES, "no way out by shared memory");
	munmap(p, size);
	close(fd);
}

/* Processes of other users, and what root sets. */
static void others(void)
{
	unsigned long there = 1UL << TRUSTED, here = 1UL << UNTRUSTED;
	int to = UNTRUSTED, status;
	char role[64];
	void *page = &warden;

	snprintf(role, sizeof(role), "/proc/%d/vnode", warden);
	claim(put(role, "untrusted") == -EACCES, "no role for a process of another user");
	claim(syscall(SYS_move_pages, warden, 1L, &page, &to, &status, MPOL_MF_MOVE) < 0 &&
	      errno == EPERM, "no page of another user is moved");
	claim(syscall(SYS_migrate_pages, warden, 64UL, &there, &here) < 0 && errno == EPERM,
	      "no process of another user is moved");
	claim(put(NODES "lend", "1") == -EACCES && put(NODES "default", "untrusted") == -EACCES &&
	      put(NODES "trusted/unusable_pct", "1") == -EACCES, "what root sets stays");
}

static int unprivileged(void)
{

	claim(!put("/proc/self/vnode", "untrusted"), "root gives a role");
	if (setuid(1000) || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	claim(put("/proc/self/vnode", "trusted") == -EACCES, "no way up by the role file");
	claim(!put("/proc/self/vnode", "untrusted"), "the owner may write the same role");
	claim(put("/proc/self/vnode", "nobody") == -EINVAL, "unknown roles are refused");
	claim(says("/proc/self/vnode", "untrusted"), "the role is still the same");
	policies();
	mappings();
	others();
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

static int guard(void)
{
	put("/proc/self/vnode", "trusted");
	pause();
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

/* Was in the role that runs out of memory, and holds its lock for most of the time. */
static int comes_back(void)
{
	char *p;

	put("/proc/self/vnode", "trusted");
	put("/proc/self/vnode", "untrusted");
	put("/proc/self/vnode", "trusted");
	put("/proc/self/oom_score_adj", "900");
	p = touch(100 * MB);
	while (!mprotect(p, 100 * MB, PROT_READ))
		mprotect(p, 100 * MB, PROT_READ | PROT_WRITE);
	return 1;
}

static int hog(void)
{
	put("/proc/self/vnode", "untrusted");
	touch(900 * MB);
	return 0;
}

static void bind_to(int node)
{
	unsigned long nodes = 1UL << node;

	syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, 64UL);
}

/* Its policy names no node of its role, and so means none. */
static int hog_bound_away(void)
{
	put("/proc/self/vnode", "untrusted");
	bind_to(TRUSTED);
	touch(900 * MB);
	return 0;
}

static int hog_of_first(void)
{
	put("/proc/self/vnode", "untrusted");
	bind_to(UNTRUSTED);
	touch(900 * MB);
	return 0;
}

/* Of the same role, with nothing in its first node. */
static int bound_to_second(void)
{
	put("/proc/self/vnode", "untrusted");
	put("/proc/self/oom_score_adj", "900");
	bind_to(SECOND);
	touch(100 * MB);
	pause();
	return 0;
}

static int small_there(void)
{
	put("/proc/self/vnode", "untrusted");
	touch(16 * MB);
	pause();
	return 0;
}

static void out_of_memory(int (*run)(void), int (*hogs)(void), const char *lives)
{
	pid_t spared = child(run), killed;
	int status;

	sleep(1);
	killed = child(hogs);
	waitpid(killed, &status, 0);
	claim(WIFSIGNALED(status) && WTERMSIG(status) == 9, "the hog is killed");
	claim(waitpid(spared, &status, WNOHANG) == 0, lives);
	end(spared);
}

/* A child that has stopped itself, or is gone. */
static pid_t stopped(int (*run)(void))
{
	pid_t pid = child(run);

	waitpid(pid, NULL, WUNTRACED);
	return pid;
}

static void end_all(void)
{
	kill(-1, SIGKILL);
	while (wait(NULL) > 0)
		;
}

/* What a process that forks all the time has begun and done; the pages are its children's, too. */
struct forks {
	volatile int nr;
	volatile pid_t pid[FORKS];
};

static struct forks *forks;

/* Each fork takes long, as there is so much to copy. */
static int forks_slowly(void)
{
	char *p = map(2 * MAPPINGS * 4096UL);
	int i;

	for (i = 0; i < MAPPINGS; i++)
		mprotect(p + 2 * i * 4096UL, 4096, PROT_NONE);
	while (forks->nr < FORKS) {
		pid_t pid = fork();

		if (!pid)
			pause();
		forks->pid[forks->nr] = pid;
		forks->nr++;
	}
	return 0;
}

/* Wait until so many children are there. */
static bool forked(int nr)
{
	int tries = 3000;

	while (forks->nr < nr && tries--)
		usleep(10000);
	return forks->nr >= nr;
}

/* A role is taken from the parent in the middle of a fork: the child has it no more either. */
static void forking(void)
{
	char path[64];
	int i, round, first, missed = 0;
	pid_t pid;

	forks = mmap(NULL, sizeof(*forks), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = child(forks_slowly);
	for (round = 0; round < FORKS / 4 - 1; round++) {
		first = 4 * round + 2;
		if (!forked(first - 1))
			break;
		snprintf(path, sizeof(path), "/proc/%d/vnode", pid);
		put(path, "trusted");
		/* A child is begun with this role, which takes longer than that. */
		forked(first);
		usleep(2000);
		put(path, "untrusted");
		/* One that was there before has the old role; the next is the one that is begun. */
		first = forks->nr;
		forked(first + 2);
		for (i = first; i < first + 2; i++) {
			snprintf(path, sizeof(path), "/proc/%d/vnode", forks->pid[i]);
			missed += !says(path, "untrusted");
		}
	}
	printf("note children_that_were_missed %d\n", missed);
	claim(round == FORKS / 4 - 1 && !missed, "no child is missed that is being forked");
	end_all();
	munmap(forks, sizeof(*forks));
}

/* Stays in its role, with less memory than any other process of these claims. */
static int stays(void)
{
	put("/proc/self/vnode", "trusted");
	touch(16 * MB);
	return raise(SIGSTOP);
}

/* Shared memory of System V that goes with the last process that has it. */
static void segment(size_t size)
{
	int id = shmget(IPC_PRIVATE, size, 0600);
	char *p = shmat(id, NULL, 0);

	shmctl(id, IPC_RMID, NULL);
	if (p != (void *)-1)
		memset(p, 1, size);
}

static bool segments;

/* A user's process leaves a node that it has nearly filled. */
static bool leave(void)
{
	put("/proc/self/vnode", "trusted");
	while (number(NODES "trusted/free_kb") > 40 << 10) {
		if (segments)
			segment(4 * MB);
		else
			touch(MB);
	}
	return !setuid(1000) && !prctl(PR_SET_DUMPABLE, 1) &&
	       !put("/proc/self/vnode", "untrusted");
}

static int leaves(void)
{
	return leave() && raise(SIGSTOP);
}

/* The child has the memory of its parent, which is gone. */
static int leaves_a_child(void)
{
	if (leave() && !fork())
		pause();
	return 0;
}

static int comes_late(void)
{
	put("/proc/self/vnode", "trusted");
	touch(72 * MB);
	return 0;
}

/* So have all these of a parent that lives. */
static int leaves_a_family(void)
{
	int i;

	if (!leave())
		return 1;
	for (i = 0; i < FAMILY; i++)
		if (!fork())
			pause();
	return raise(SIGSTOP);
}

static int leaves_shared(void)
{
	kind = MAP_SHARED;
	return leaves();
}

static int leaves_segments(void)
{
	segments = true;
	return leaves();
}

/*
 * Leavers and their children are children of this process in the end.  What several have is free
 * when the last is gone, and shared memory when its process is: one more may die meanwhile.
 */
static void leaving(int (*leaver)(void), const char *killed, bool alone)
{
	int status, late, i;
	pid_t spared, gone;

	spared = stopped(stays);
	stopped(leaver);
	claim(number(NODES "trusted/free_kb") < 48 << 10, "a node is left nearly full");
	waitpid(child(comes_late), &late, 0);
	for (i = 0; i < 10 && !(gone = waitpid(-1, &status, WNOHANG)); i++)
		sleep(1);
	claim(gone > 0 && gone != spared && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	      killed);
	if (alone)
		claim(!late, "the memory is for the role that was left");
	claim(waitpid(spared, &status, WNOHANG) == 0, "a process that stayed lives");
	end_all();
}

static int leaves_little(void)
{
	put("/proc/self/vnode", "trusted");
	touch(3 * MB);
	put("/proc/self/vnode", "untrusted");
	return raise(SIGSTOP);
}

static int must_have(void)
{
	put("/proc/self/oom_score_adj", "-1000");
	return comes_late();
}

/* None of them has enough to be a victim, and those of the role may not be killed. */
static void leaving_little(void)
{
	int late;

	while (number(NODES "trusted/free_kb") > 40 << 10)
		stopped(leaves_little);
	waitpid(child(must_have), &late, 0);
	claim(!late, "what is left by many is had before the machine panics");
	end_all();
}

/* Has been in the role that runs out of memory, and has nothing there. */
static int was_there(void)
{
	put("/proc/self/vnode", "trusted");
	put("/proc/self/vnode", "untrusted");
	touch(300 * MB);
	return raise(SIGSTOP);
}

/* It leaves kswapd time. */
static int slow_hog(void)
{
	int i;

	put("/proc/self/vnode", "untrusted");
	for (i = 0; i < 900; i++) {
		touch(MB);
		usleep(1000);
	}
	return 0;
}

/* kswapd kills, and no request says which nodes are short. */
static void kept_young(void)
{
	claim(!put(LRU_GEN "enabled", "7") && !put(LRU_GEN "min_ttl_ms", "60000"),
	      "what is young is kept");
	out_of_memory(bystander, slow_hog, "the bystander lives where kswapd kills");
	put(LRU_GEN "min_ttl_ms", "0");
	put(LRU_GEN "enabled", "0");
}

static int wants_too_much(void)
{
	put("/proc/self/vnode", "trusted");
	touch(270 * MB);
	return 0;
}

static void leaving_with_all(void)
{
	pid_t spared = stopped(was_there);
	int status;

	waitpid(child(wants_too_much), &status, 0);
	claim(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the node's own process is killed");
	claim(waitpid(spared, &status, WNOHANG) == 0, "what has nothing left there lives");
	end_all();
}

/* Root gives it more trust when it has nearly filled its node. */
static int is_raised(void)
{
	put("/proc/self/vnode", "untrusted");
	/* More than what stays free for those that may not wait, less than what the next asks for. */
	while (number(NODES "untrusted/free_kb") > 60 << 10)
		touch(MB);
	put("/proc/self/vnode", "trusted");
	return raise(SIGSTOP);
}

static int comes_late_there(void)
{
	put("/proc/self/vnode", "untrusted");
	touch(72 * MB);
	return 0;
}

static void raising(void)
{
	pid_t spared = child(small_there), raised, gone;
	int late, status, i;

	sleep(1);
	raised = stopped(is_raised);
	waitpid(child(comes_late_there), &late, 0);
	claim(!late, "the memory that a raised process left is for its old role");
	for (i = 0; i < 10 && !(gone = waitpid(raised, &status, WNOHANG)); i++)
		sleep(1);
	claim(gone == raised && WIFSIGNALED(status), "a process that was raised is killed for it");
	claim(waitpid(spared, &status, WNOHANG) == 0, "one that was not raised lives");
	end_all();
}

static int exits_late(void)
{
	put("/proc/self/vnode", "untrusted");
	put("/proc/self/oom_score_adj", "500");
	memset(held, 1, HELD);
	return raise(SIGSTOP);
}

/*
 * Runs out of memory while it reads another process's, which is therefore not freed when that
 * process is killed, but by the OOM killer's reaper two seconds later.
 */
static int reads(void)
{
	char path[32], *p;
	ssize_t n;

	put("/proc/self/vnode", "untrusted");
	snprintf(path, sizeof(path), "/proc/%d/mem", slow);
	p = map(HELD);
	n = pread(open(path, O_RDONLY), p, HELD, (off_t)held);
	return n <= 0 || n >= (ssize_t)HELD;
}

static void slow_exit(void)
{
	unsigned long before = number(NODES "untrusted/oom_kills");
	int status;

	held = map(HELD);
	slow = stopped(exits_late);
	waitpid(child(reads), &status, 0);
	claim(!status, "its reader outlives a process that exits late");
	waitpid(slow, &status, 0);
	claim(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
	      number(NODES "untrusted/oom_kills") == before + 1,
	      "no second process is killed while the first one exits");
	munmap(held, HELD);
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

/* A cpuset is a thread's own, and so is the role that it gives. */
static void *fills_from_thread(void *unused)
{
	if (!put(CGROUPS "/mixed/far/cgroup.threads", "0"))
		touch(900 * MB);
	return unused;
}

static int hog_by_thread(void)
{
	pthread_t thread;

	put("/proc/self/vnode", "trusted");
	if (put(CGROUPS "/mixed/cgroup.procs", "0") ||
	    pthread_create(&thread, NULL, fills_from_thread, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}

static void cpuset_of_thread(void)
{
	claim(make(CGROUPS "/mixed") && make(CGROUPS "/mixed/far") &&
	      !put(CGROUPS "/mixed/far/cgroup.type", "threaded") &&
	      !put(CGROUPS "/mixed/cgroup.subtree_control", "+cpuset") &&
	      !put(CGROUPS "/mixed/far/cpuset.mems", "1"), "there is a cpuset for threads");
	out_of_memory(small_there, hog_by_thread,
		      "what fills a node by one thread is killed before others");
}

/* An untrusted process, in a cpuset that has the trusted node only, and back again. */
static int lent_trust(void)
{
	int root = open(CGROUPS "/cgroup.procs", O_WRONLY);

	put("/proc/self/vnode", "untrusted");
	claim(!put(CGROUPS "/front/cgroup.procs", "0") && says("/proc/self/vnode", "trusted"),
	      "a cpuset gives more trust");
	if (setuid(1000) || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	claim(put("/proc/self/vnode", "trusted") == -EACCES, "trust of a cpuset is not kept");
	/* It is root's file, whatever process writes to it. */
	claim(!put_fd(root, "0") && says("/proc/self/vnode", "untrusted"),
	      "trust of a cpuset goes with it");
	return 0;
}

static void cpuset_of_trust(void)
{
	int status;

	claim(make(CGROUPS "/front") && !put(CGROUPS "/front/cpuset.mems", "0"),
	      "there is a cpuset of the trusted node");
	waitpid(child(lent_trust), &status, 0);
	claim(!status, "a process was in it");
}

/* A cgroup of the user's own, below one that leaves it the untrusted node. */
static int delegated(void)
{
	put("/proc/self/vnode", "trusted");
	claim(!put(CGROUPS "/jail/own/cgroup.procs", "0"), "a cgroup of the user is entered");
	if (setuid(1000) || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	claim(put(CGROUPS "/phone/cgroup.procs", "0") == -EACCES, "no way into another cgroup");
	put(CGROUPS "/jail/own/cpuset.mems", "0");
	claim(says("/proc/self/vnode", "untrusted"), "no way out by the user's own cpuset");
	claim(chosen(MPOL_BIND, 1UL << TRUSTED, UNTRUSTED) == PAGES, "its memory says so, too");
	return 0;
}

static void delegation(void)
{
	claim(make(CGROUPS "/jail") && !put(CGROUPS "/jail/cpuset.mems", "1") &&
	      !put(CGROUPS "/jail/cgroup.subtree_control", "+cpuset") &&
	      make(CGROUPS "/jail/own") &&
	      !chown(CGROUPS "/jail/own/cgroup.procs", 1000, 1000) &&
	      !chown(CGROUPS "/jail/own/cpuset.mems", 1000, 1000), "a cgroup is the user's");
	waitpid(child(delegated), NULL, 0);
}

/*
 * Lending.  The file has no blocks, so reading it fills the page cache with zeroes; the
 * reader's own node is nearly full before.
 */
static void read_loan(void)
{
	static char buffer[1 << 16];
	int fd = open(LOAN, O_RDONLY);

	while (number(NODES "untrusted/free_kb") > 24 << 10)
		touch(MB);
	while (fd >= 0 && read(fd, buffer, sizeof(buffer)) > 0)
		;
	close(fd);
}

/* Which node the pages of the file come from is the cpuset's to say, not the lender's. */
static int borrows_in_cpuset(void)
{
	put(CGROUPS "/apps/cgroup.procs", "0");
	read_loan();
	claim(says(LENDER, "0"), "a cpuset that leaves the lender out borrows nothing");
	claim(says(NODES "untrusted/lent_kb", "0"), "nothing of its own is taken for lent");
	return 0;
}

static int borrows(void)
{
	put("/proc/self/vnode", "untrusted");
	if (setuid(1000))
		return 1;
	read_loan();
	claim(number(LENDER) > 16 << 10, "the trusted node lends");
	return 0;
}

/* Has a policy of its own besides, which is for the node it would have anyway. */
static int wants_back(void)
{
	unsigned long mask = 1UL << TRUSTED, lent = number(LENDER), free_kb;
	char *p;

	put("/proc/self/vnode", "trusted");
	syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64UL);
	free_kb = number(NODES "trusted/free_kb");
	printf("note owner_free_kb %lu\nnote owner_lent_kb %lu\n", free_kb, lent);
	p = touch((free_kb + lent / 2) << 10);
	claim(on_node(p, TRUSTED) == PAGES, "the owner has its node's memory");
	claim(number(LENDER) < lent * 3 / 4, "what was lent comes back for it");
	return 0;
}

static void make_loan(void)
{
	int fd = open(LOAN, O_RDWR | O_CREAT | O_TRUNC, 0644);

	claim(fd >= 0 && !ftruncate(fd, LOAN_SIZE), "there is a file to read");
	close(fd);
}

static void lending(void)
{
	char kept[24];
	int status, i;

	mkdir("/dev", 0755);
	mkdir("/data", 0755);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	if (mount("/dev/pmem0", "/data", "ext4", 0, NULL))
		return;
	snprintf(kept, sizeof(kept), "%lu", number(RESERVE));
	put(RESERVE, "8192");
	claim(!put(NODES "lend", "1"), "lending is switched on");
	make_loan();
	waitpid(child(borrows_in_cpuset), NULL, 0);
	unlink(LOAN);
	make_loan();
	waitpid(child(borrows), NULL, 0);
	waitpid(child(wants_back), &status, 0);
	claim(WIFEXITED(status), "the owner lives");
	unlink(LOAN);
	/* What a worker has in hand comes home a moment later. */
	for (i = 0; i < 500 && number(LENDER) + number(NODES "untrusted/lent_kb"); i++) {
		put("/proc/sys/vm/drop_caches", "1");
		usleep(20000);
	}
	claim(says(LENDER, "0") && says(NODES "untrusted/lent_kb", "0"), "all loans end");
	put(NODES "lend", "0");
	put(RESERVE, kept);
}

/* A role with nodes on two of the machine's own: a policy chooses among them, and no others. */
static int spread(void)
{
	const unsigned long first = 1UL << UNTRUSTED, second = 1UL << SECOND;

	put("/proc/self/vnode", "untrusted");
	claim(says(NODES "trusted/nodes", "0") && says(NODES "untrusted/nodes", "1-2"),
	      "a virtual node has memory of both nodes");
	if (setuid(1000) || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	claim(chosen(MPOL_BIND, first, UNTRUSTED) == PAGES, "a policy for one of them is kept");
	claim(chosen(MPOL_BIND, second, SECOND) == PAGES, "a policy for the other is kept");
	claim(chosen(MPOL_BIND, second | 1UL << TRUSTED, SECOND) == PAGES,
	      "of a policy's nodes the role's own are used");
	claim(chosen(MPOL_BIND, 1UL << TRUSTED, TRUSTED) == 0, "a policy for another role is not");
	return 0;
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Of a node, in kB: " count: %lu" are pages in the lists of its CPUs, " min %lu" its marks. */
static unsigned long zoneinfo_kb(int node, const char *what)
{
	FILE *f = fopen("/proc/zoneinfo", "r");
	unsigned long pages, sum = 0;
	char line[128];
	int nid = -1;

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "Node %d, zone", &nid);
		if (nid == node && sscanf(line, what, &pages) == 1)
			sum += pages;
	}
	if (f)
		fclose(f);
	return sum * 4;
}

static int frees_there(void)
{
	put("/proc/self/vnode", "trusted");
	run_on(1);
	touch(64 * MB);		/* and its exit frees it */
	return 0;
}

static int wants_all(void)
{
	unsigned long free_kb, listed_kb;

	put("/proc/self/vnode", "trusted");
	run_on(0);
	free_kb = number(NODES "trusted/free_kb") - zoneinfo_kb(TRUSTED, " min %lu");
	listed_kb = zoneinfo_kb(TRUSTED, " count: %lu");
	printf("note lists_kb %lu\n", listed_kb);
	claim(listed_kb > 4096, "pages lie in the lists of CPUs");
	touch((free_kb + listed_kb / 2) << 10);
	return 0;
}

/* Reclaim finds nothing then, and drains no list. */
static void lists(void)
{
	int status;

	put(THP "enabled", "never");
	put(LISTS, "8");
	waitpid(child(frees_there), NULL, 0);
	waitpid(child(wants_all), &status, 0);
	claim(WIFEXITED(status), "pages in the list of another CPU are no reason to kill");
	put(LISTS, "0");
	put(THP "enabled", "madvise");
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

/*
 * The role's node has free pages, and few that are huge; the other node has.  What is left free
 * is more than a boost of the watermarks, as that is no memory to a process that reclaims.
 */
static int huge(void)
{
	size_t whole = 72 * MB;
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
		claim(access("/sys/devices/system/node/node2", F_OK) &&
		      says("/proc/self/vnode", "none"), "no virtual nodes at all");
	} else if (!access("/sys/devices/system/node/node2", F_OK)) {
		waitpid(child(spread), NULL, 0);
		out_of_memory(bound_to_second, hog_of_first,
			      "a process bound to the role's other node lives");
	} else {
		warden = child(guard);
		waitpid(child(unprivileged), NULL, 0);
		end(warden);
		waitpid(child(deputy), &status, 0);
		claim(!status, "a setuid program was tried");
		waitpid(child(inherits), NULL, 0);
		forking();
		/* Before any kill: where nothing can be reclaimed kswapd gives the node up. */
		kept_young();
		out_of_memory(bystander, hog, "the bystander lives");
		claim(says(NODES "untrusted/oom_kills", "2") && says(NODES "trusted/oom_kills", "0"),
		      "kills are counted");
		out_of_memory(comes_back, hog, "a process that came back to trust lives");
		out_of_memory(small_there, hog_bound_away,
			      "no policy for another role's node hides a hog");
		leaving(leaves, "a process is killed for the memory it left", true);
		leaving(leaves_a_child, "a child is killed for the memory its parent left", true);
		leaving(leaves_a_family, "a family is killed for the memory it left", false);
		leaving(leaves_shared, "a process is killed for shared memory that it left", false);
		leaving(leaves_segments, "a process is killed for segments that it left", false);
		leaving_little();
		leaving_with_all();
		raising();
		slow_exit();
		cpusets();
		cpuset_of_trust();
		cpuset_of_thread();
		delegation();
		lending();
		lists();
		waitpid(child(huge), NULL, 0);
		waitpid(child(tidies), NULL, 0);
		hotplug();
	}
	printf("done\n");
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}
