// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a small guest on which regions own memory: what free memory of theirs
 * is to others, and what they leave alone.  The word "memory=" of the kernel's command
 * line says which machine this is: "one" node, "two" nodes, "huge" pages beside an
 * area and virtual nodes, or "cma".  Prints "ok WHAT" or "not ok WHAT", a line a claim,
 * and "note NAME VALUE" for what was measured.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "claims.h"
#include "nodes.h"

#define MB (1UL << 20)
#define PAGE 4096UL
#define HUGE (2 * MB)
#define CGROUPS "/sys/fs/cgroup/"
#define UNEVICTABLE "/proc/sys/vm/compact_unevictable_allowed"
#define MPOL_BIND 2
#define DONTNEED_LOCKED 24
#define SLOTS 256		/* pages that a pipe holds */
#define WAIT_MS 30000

/* The number behind the first line that begins with this word, or -1. */
static long number(const char *path, const char *word)
{
	static char text[32768];
	int fd = open(path, O_RDONLY);
	size_t length = strlen(word);
	ssize_t n, all = 0;
	char *at;

	while (fd >= 0 && (n = read(fd, text + all, sizeof(text) - 1 - all)) > 0)
		all += n;
	close(fd);
	text[all] = '\0';
	for (at = text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
		if (!strncmp(at, word, length) && strchr(": \t", at[length]))
			return atol(at + length + 1);
	return -1;
}

static long vmstat(const char *name)
{
	return number("/proc/vmstat", name);
}

static long meminfo_mb(const char *name)
{
	return number("/proc/meminfo", name) / 1024;
}

static void note(const char *name, long value)
{
	printf("note %s %ld\n", name, value);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static char *map(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static char *touch(size_t size)
{
	char *p = map(size);
	size_t i;

	for (i = 0; i < size; i += PAGE)
		p[i] = 1;
	return p;
}

/* Every second page is freed. */
static void make_holes(char *p, size_t size, int how)
{
	size_t i;

	for (i = 0; i < size; i += 2 * PAGE)
		madvise(p + i, PAGE, how);
}

/* A file of holes: page cache without any I/O. */
static int file_of(const char *path, size_t mb)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, mb * MB))
		claim(false, "a file");
	return fd;
}

static void read_file(int fd, size_t mb)
{
	static char buffer[16 * PAGE];
	size_t at;

	for (at = 0; at < mb * MB; at += sizeof(buffer)) {
		if (pread(fd, buffer, sizeof(buffer), at) < 0)
			claim(false, "reading");
		sched_yield();
	}
}

/* Page cache that was used twice. */
static void warm(const char *path, size_t mb)
{
	int fd = file_of(path, mb);

	read_file(fd, mb);
	read_file(fd, mb);
	close(fd);
}

/* Runs it in a process, which says a byte when it is ready; waits for that or for its end. */
static pid_t start(void (*run)(int ready))
{
	int fd[2];
	pid_t pid;
	char c;

	if (pipe(fd))
		return -1;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(fd[0]);
		run(fd[1]);
		fflush(stdout);
		_exit(0);
	}
	close(fd[1]);
	if (read(fd[0], &c, 1) < 0)
		claim(false, "a process");
	close(fd[0]);
	return pid;
}

static void ready_for_good(int ready)
{
	fflush(stdout);
	if (write(ready, "", 1) == 1)
		close(ready);
	pause();
}

/* a process without memory of its own, and one that wants some */

#define PINNED_MB 1200

static void hoards(int ready)
{
	char *p = touch(PINNED_MB * MB);
	int fd[2] = { -1, -1 }, i, held = 0;

	for (i = 0; i < PINNED_MB; i++) {
		struct iovec one = { p + i * MB, PAGE };

		if (i % SLOTS == 0 && (pipe(fd) || fcntl(fd[1], F_SETPIPE_SZ, SLOTS * PAGE) < 0))
			break;
		held += vmsplice(fd[1], &one, 1, 0) == (ssize_t)PAGE;
	}
	claim(held == PINNED_MB, "pipes hold a page of every MiB");
	madvise(p, PINNED_MB * MB, MADV_DONTNEED);
	ready_for_good(ready);
}

static void wants(int ready)
{
	touch(900 * MB);
	ready_for_good(ready);
}

static void pinned(void)
{
	long cached, wakes, ms;
	pid_t hoarder, other;

	warm("/data/warm", 300);
	hoarder = start(hoards);
	cached = meminfo_mb("Cached");
	wakes = vmstat("compact_daemon_wake");
	note("free_mb", meminfo_mb("MemFree"));
	claim(meminfo_mb("MemFree") > PINNED_MB, "what it has freed is free memory");
	ms = now_ms();
	other = start(wants);
	ms = now_ms() - ms;
	wakes = vmstat("compact_daemon_wake") - wakes;
	note("cached_mb", cached);
	note("cached_after_mb", meminfo_mb("Cached"));
	note("kcompactd_wakes", wakes);
	/* Some, as kswapd is woken while the packing worker gives the holes up. */
	claim(meminfo_mb("Cached") * 5 > cached * 4, "page cache stays while memory is free");
	claim(wakes <= 5 + ms / 50, "kcompactd is not woken by every fault without a block");
	end(other);
	end(hoarder);
}

/* memory that a group is to keep */

#define KEPT_MB 120

static void reads_kept(int ready)
{
	claim(!put(CGROUPS "kept/cgroup.procs", "0"), "a group with memory.low");
	if (write(ready, "", 1) == 1)
		read_file(file_of("/data/kept", KEPT_MB), KEPT_MB);
}

static void protected(void)
{
	long sweeps = vmstat("cohort_sweep_drop"), kept;
	pid_t reader;

	claim(!put(CGROUPS "cgroup.subtree_control", "+memory") &&
	      !mkdir(CGROUPS "kept", 0755) && !put(CGROUPS "kept/memory.low", "400M"),
	      "memory.low is set");
	reader = start(reads_kept);
	/* Meanwhile, so that their pages share regions. */
	read_file(file_of("/data/other", 2 * KEPT_MB), 2 * KEPT_MB);
	waitpid(reader, NULL, 0);
	kept = number(CGROUPS "kept/memory.stat", "file") / MB;
	read_file(file_of("/data/stream", 2500), 2500);
	sweeps = vmstat("cohort_sweep_drop") - sweeps;
	note("kept_mb", kept);
	note("kept_after_mb", number(CGROUPS "kept/memory.stat", "file") / MB);
	note("sweeps_dropped", sweeps);
	claim(sweeps > 0, "regions of page cache are swept");
	claim(number(CGROUPS "kept/memory.stat", "file") / (long)MB * 10 >= kept * 9,
	      "sweeps leave pages below memory.low alone");
}

/* locked memory */

#define LOCKED_PAGES 8192UL

static void frames(const char *p, uint64_t *frame)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (pread(fd, frame, LOCKED_PAGES * 8, (uintptr_t)p / PAGE * 8) != LOCKED_PAGES * 8)
		claim(false, "pagemap");
	close(fd);
}

/* Pages that moved since then, those that are still there. */
static int moved(const char *p, const uint64_t *before)
{
	static uint64_t now[LOCKED_PAGES];
	size_t i;
	int n = 0;

	frames(p, now);
	for (i = 1; i < LOCKED_PAGES; i += 2)
		n += now[i] != before[i];
	return n;
}

static void to_background(void)
{
	put("/proc/self/oom_score_adj", "0");
	put("/proc/self/oom_score_adj", "900");
}

static void locks(int ready)
{
	static uint64_t before[LOCKED_PAGES];
	char *p = touch(LOCKED_PAGES * PAGE);
	long until;

	claim(!mlock(p, LOCKED_PAGES * PAGE), "memory is locked");
	make_holes(p, LOCKED_PAGES * PAGE, DONTNEED_LOCKED);
	/* It drains what is on its way to the list of the unevictable. */
	put("/proc/sys/vm/compact_memory", "1");
	frames(p, before);
	to_background();
	usleep(3000000);
	claim(!moved(p, before), "locked pages stay, if compact_unevictable_allowed says so");
	put(UNEVICTABLE, "1");
	until = now_ms() + WAIT_MS;
	do {
		to_background();
		usleep(500000);
	} while (!moved(p, before) && now_ms() < until);
	note("locked_pages_moved", moved(p, before));
	claim(moved(p, before), "else they move when the process goes to the background");
	close(ready);
}

static void locked(void)
{
	put(UNEVICTABLE, "0");
	end(start(locks));
	put(UNEVICTABLE, "1");
}

/* What is counted as isolated, each CPU's part of it too; one look, as reclaim goes on. */
static long isolated_pages(void)
{
	put("/proc/sys/vm/stat_refresh", "1");
	return vmstat("nr_isolated_file") + vmstat("nr_isolated_anon");
}

static void isolated(void)
{
	long until = now_ms() + WAIT_MS, left;

	while ((left = isolated_pages()) && now_ms() < until)
		usleep(100000);
	note("isolated_pages", left);
	claim(!left, "nothing is left isolated");
}

/* two nodes */

#define BOUND_PAGES (64 * MB / PAGE)

static bool bind_to(int node)
{
	unsigned long mask = 1UL << node;

	return !syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64UL);
}

static long node_stat(int node, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/vmstat", node);
	return number(path, name);
}

/* The node that this CPU would not have chosen. */
static int other_node(void)
{
	unsigned int cpu, here = 0;

	syscall(SYS_getcpu, &cpu, &here, NULL);
	return !here;
}

static void stays_in(int node)
{
	long without = vmstat("cohort_fallback"), migrated, until;
	char *p;

	p = touch(BOUND_PAGES * PAGE);
	without = vmstat("cohort_fallback") - without;
	note("pages_without_a_block", without);
	claim(without < (long)BOUND_PAGES / 20, "it has blocks there");
	make_holes(p, BOUND_PAGES * PAGE, MADV_DONTNEED);
	migrated = vmstat("cohort_migrate");
	to_background();
	until = now_ms() + WAIT_MS;
	while (vmstat("cohort_migrate") - migrated < 2000 && now_ms() < until)
		usleep(100000);
	usleep(500000);
	note("pages_packed", vmstat("cohort_migrate") - migrated);
	claim(vmstat("cohort_migrate") - migrated >= 2000, "they are packed");
	claim(pages_on_node(0, p + PAGE, BOUND_PAGES / 2, 2 * PAGE, node) == BOUND_PAGES / 2,
	      "its pages stay in their node");
}

static void has_policy(int ready)
{
	int node = other_node();

	claim(bind_to(node), "a process is bound to the other node");
	stays_in(node);
	close(ready);
}

static void has_cpuset(int ready)
{
	int node = other_node();

	claim(!put(CGROUPS "cgroup.subtree_control", "+cpuset") &&
	      !mkdir(CGROUPS "set", 0755) && !put(CGROUPS "set/cpuset.mems", node ? "1" : "0") &&
	      !put(CGROUPS "set/cgroup.procs", "0"), "a process has the other node in its cpuset");
	stays_in(node);
	close(ready);
}

static void has_role(int ready)
{
	int node = other_node();

	claim(!put("/proc/self/vnode", node ? "untrusted" : "trusted"),
	      "a process has the role of the other node");
	stays_in(node);
	close(ready);
}

static void rests(int ready)
{
	char *p;

	bind_to(0);
	p = touch(40 * MB);
	make_holes(p, 40 * MB, MADV_DONTNEED);
	ready_for_good(ready);
}

static void fills_its_node(int ready)
{
	put("/proc/self/oom_score_adj", "1000");
	bind_to(1);
	touch(4096 * MB);
	close(ready);
}

static void placement(void)
{
	long owned, ms;
	pid_t rester;
	int status;

	end(start(has_policy));
	end(start(has_cpuset));
	rester = start(rests);
	owned = node_stat(0, "nr_cohort_owned");
	ms = now_ms();
	waitpid(start(fills_its_node), &status, 0);
	note("killed_after_ms", now_ms() - ms);
	note("owned_pages", owned);
	note("owned_pages_after", node_stat(0, "nr_cohort_owned"));
	claim(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	      "a process bound to a full node is killed");
	claim(owned > 3000 && node_stat(0, "nr_cohort_owned") * 4 >= owned * 3,
	      "regions of the other node are not given up for it");
	claim(!waitpid(rester, NULL, WNOHANG), "a process in the other node lives");
	end(rester);
}

/* huge pages */

#define HUGE_PAGES 300

static void uses_huge(int ready)
{
	long fallback = vmstat("thp_fault_fallback"), huge = vmstat("thp_fault_alloc");
	char *p = map((HUGE_PAGES + 1) * HUGE);
	unsigned int i;

	p = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
	claim(!madvise(p, HUGE_PAGES * HUGE, MADV_HUGEPAGE), "huge pages are asked for");
	for (i = 0; i < HUGE_PAGES; i++)
		p[i * HUGE] = 1;
	huge = vmstat("thp_fault_alloc") - huge;
	fallback = vmstat("thp_fault_fallback") - fallback;
	note("huge", huge);
	note("huge_fallback", fallback);
	claim(huge >= HUGE_PAGES && !fallback, "no huge page is refused");
	close(ready);
}

static void makes_holes(int ready)
{
	char *p = touch(240 * MB);

	make_holes(p, 240 * MB, MADV_DONTNEED);
	ready_for_good(ready);
}

static void huge_pages(void)
{
	pid_t holes;

	end(start(has_role));
	holes = start(makes_holes);
	warm("/data/warm", 400);
	note("owned_pages", vmstat("nr_cohort_owned"));
	end(start(uses_huge));
	end(holes);
}

/* free memory of CMA */

static void wants_cma(int ready)
{
	touch(450 * MB);
	ready_for_good(ready);
}

static void cma(void)
{
	long cached, reclaimed;
	pid_t pid;

	warm("/data/warm", 250);
	cached = meminfo_mb("Cached");
	reclaimed = vmstat("pgsteal_kswapd");
	note("cma_free_mb", meminfo_mb("CmaFree"));
	pid = start(wants_cma);
	reclaimed = vmstat("pgsteal_kswapd") - reclaimed;
	note("cma_free_after_mb", meminfo_mb("CmaFree"));
	note("cached_mb", cached);
	note("cached_after_mb", meminfo_mb("Cached"));
	note("reclaimed_pages", reclaimed);
	claim(meminfo_mb("CmaFree") * 2 < meminfo_mb("CmaTotal"), "movable pages use free CMA");
	claim(meminfo_mb("Cached") * 10 > cached * 9, "before page cache is reclaimed");
	end(pid);
}

static bool machine_is(const char *name)
{
	static char text[4096];
	int fd = open("/proc/cmdline", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	char word[32];

	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	snprintf(word, sizeof(word), "memory=%s", name);
	return strstr(text, word);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	claim(!mount("/dev/pmem0", "/data", "ext4", 0, NULL), "a file system");
	if (machine_is("one")) {
		locked();
		pinned();
		protected();
		isolated();
	} else if (machine_is("two")) {
		placement();
	} else if (machine_is("huge")) {
		huge_pages();
	} else if (machine_is("cma")) {
		cma();
	}
	printf("done\n");
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
