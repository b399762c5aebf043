// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a small guest with the nodes "trusted" and "untrusted", whose kernel has
 * pools of huge pages, userfaultfd, huge ones made of small ones, merging of equal pages, and
 * counters of a CPU: by none of them a page of a process comes into a node that its role has not.
 * Prints "ok WHAT" or "not ok WHAT", a line a claim.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>

#include "claims.h"
#include "nodes.h"

#define MB (1UL << 20)
#define HUGE (2 * MB)
#define TRUSTED 0		/* NUMA nodes */
#define UNTRUSTED 1
#define POOL 4
#define SAME 64			/* pages that are equal */
#define MPOL_PREFERRED 1
#define MPOL_MF_MOVE 2
#define MADV_SOFT_OFFLINE 101
#define NODES "/sys/devices/system/node/"
#define POOL_OF(node) NODES "node" #node "/hugepages/hugepages-2048kB/nr_hugepages"
#define CGROUPS "/sys/fs/cgroup"
#define KSM "/sys/kernel/mm/ksm/"
#define THP "/sys/kernel/mm/transparent_hugepage/"

static long number(const char *path)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return -1;
	close(fd);
	return atol(text);
}

static pid_t child(int (*body)(void))
{
	pid_t pid = fork();

	if (!pid)
		_exit(body());
	return pid;
}

static int on_node(char *p, int n, size_t step, int node)
{
	return pages_on_node(0, p, n, step, node);
}

/* A child that borrows its address space, as a launcher's does before it executes a program. */
static int borrows(void)
{
	char role[32] = "";
	int fd, status;
	pid_t pid;

	put("/proc/self/vnode", "trusted");
	pid = vfork();
	if (!pid)
		_exit(put("/proc/self/vnode", "untrusted") == -EBUSY ? 0 : 1);
	waitpid(pid, &status, 0);
	claim(!status, "no role for a child whose memory is its parent's");
	fd = open("/proc/self/vnode", O_RDONLY);
	if (fd < 0 || read(fd, role, sizeof(role) - 1) < 0)
		return 1;
	claim(!strncmp(role, "trusted", strlen("trusted")), "the parent keeps its role");
	return 0;
}

static char *others;	/* pages of the process that is sent away, in each of the two */
static pid_t owner;

static int owns(void)
{
	put("/proc/self/vnode", "trusted");
	memset(others, 1, SAME * 4096);
	if (setuid(1000) || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	for (;;)
		pause();
}

static int of_owner(int node)
{
	return pages_on_node(owner, others, SAME, 4096, node);
}

static void send_owner(void)
{
	unsigned long from = 1UL << TRUSTED, to = 1UL << UNTRUSTED;

	syscall(SYS_migrate_pages, owner, 64UL, &from, &to);
}

/* One of the same user, and of another role, sends its pages away. */
static int sends_another(void)
{
	put("/proc/self/vnode", "untrusted");
	if (setuid(1000) || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	send_owner();
	return 0;
}

/* So does one that has its role by a cpuset. */
static int sends_from_cpuset(void)
{
	if (mount("cgroup", CGROUPS, "cgroup2", 0, NULL) ||
	    put(CGROUPS "/cgroup.subtree_control", "+cpuset") || mkdir(CGROUPS "/apps", 0755) ||
	    put(CGROUPS "/apps/cpuset.mems", "1") || put(CGROUPS "/apps/cgroup.procs", "0"))
		return 1;
	return sends_another();
}

static void sent_by_others(void)
{
	char path[64];
	int status;

	others = mmap(NULL, SAME * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	owner = child(owns);
	sleep(1);
	claim(of_owner(TRUSTED) == SAME, "a process has pages in its node");
	waitpid(child(sends_another), &status, 0);
	claim(!status && of_owner(TRUSTED) == SAME, "a process of another role cannot send them away");
	waitpid(child(sends_from_cpuset), &status, 0);
	claim(!status && of_owner(TRUSTED) == SAME, "nor one of another cpuset");
	snprintf(path, sizeof(path), "/proc/%d/vnode", owner);
	put(path, "untrusted");
	send_owner();
	claim(of_owner(UNTRUSTED) == SAME, "what is left behind can be sent after it");
	end(owner);
}

#define ZRAM_MB 256
#define SWAPPED_PAGES 4096	/* at least, of compressed memory */
#define COUNTERS 4000		/* each more than a KiB of the kernel's */

static bool swap_on(void)
{
	static char header[4096];
	unsigned int *info = (unsigned int *)(header + 1024);
	int fd;

	info[0] = 1;
	info[1] = ZRAM_MB * MB / 4096 - 1;
	memcpy(header + 4086, "SWAPSPACE2", 10);
	mkdir("/dev", 0755);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	if (put("/sys/block/zram0/disksize", "256M"))
		return false;
	fd = open("/dev/zram0", O_WRONLY);
	if (fd < 0 || write(fd, header, sizeof(header)) != sizeof(header) || fsync(fd))
		return false;
	close(fd);
	return !syscall(SYS_swapon, "/dev/zram0", 0);
}

/* Pages of a kind in a node; the name of the kind ends with a space. */
static long pages_of(int node, const char *kind)
{
	char path[64], line[128];
	long nr = -1;
	FILE *f;

	snprintf(path, sizeof(path), NODES "node%d/vmstat", node);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, kind, strlen(kind)))
			nr = atol(line + strlen(kind));
	if (f)
		fclose(f);
	return nr;
}

static long compressed(int node)
{
	return pages_of(node, "nr_zspages ");
}

/* What the kernel has for a counter lies near its CPU: for one that is in the trusted node. */
static int counts(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_DUMMY,
		.disabled = 1, .exclude_kernel = 1, .exclude_hv = 1,
	};
	struct rlimit files = { COUNTERS + 64, COUNTERS + 64 };
	long before;
	int i;

	put("/proc/self/vnode", "untrusted");
	if (setrlimit(RLIMIT_NOFILE, &files) || setuid(1000))
		return 1;
	before = pages_of(TRUSTED, "nr_slab_unreclaimable ");
	for (i = 0; i < COUNTERS; i++)
		if (syscall(SYS_perf_event_open, &attr, 0, i % 2, -1, 0UL) < 0)
			return 1;
	claim(before >= 0 && pages_of(TRUSTED, "nr_slab_unreclaimable ") - before < 256,
	      "no way out by memory that names a node");
	return 0;
}

/* A MiB more, of pages that are not alike. */
static void grow(char *p)
{
	static unsigned int seed = 1;
	size_t i;

	for (i = 0; i < MB; i += 16)
		*(unsigned int *)(p + i) = seed = seed * 1103515245 + 12345;
}

static char *room_to_grow(void)
{
	return mmap(NULL, 2048 * MB, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static long *most;	/* compressed pages that the trusted node had while another one was full */

/* Grows until it is killed: its node has no page left, of reserves neither. */
static int grows_without_end(void)
{
	size_t at;
	char *p;

	put("/proc/self/vnode", "untrusted");
	p = room_to_grow();
	for (at = 0; at < 2048 * MB; at += MB) {
		grow(p + at);
		if (compressed(TRUSTED) > *most)
			*most = compressed(TRUSTED);
	}
	return 0;
}

static void without_reserves(void)
{
	int status;

	most = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	put("/proc/sys/vm/min_free_kbytes", "128");
	waitpid(child(grows_without_end), &status, 0);
	printf("note most_compressed %ld\n", *most);
	claim(*most < SWAPPED_PAGES / 16, "nor does it leave where no page is left");
}

/* Grows until its node has swapped enough out. */
static int grows(void)
{
	size_t at;
	char *p;

	put("/proc/self/vnode", "untrusted");
	p = room_to_grow();
	for (at = 0; at < 2048 * MB && compressed(0) + compressed(1) < SWAPPED_PAGES; at += MB)
		grow(p + at);
	claim(compressed(UNTRUSTED) > SWAPPED_PAGES / 2, "pages are swapped out to memory");
	claim(compressed(TRUSTED) < SWAPPED_PAGES / 16, "what a role swaps out stays in its node");
	return 0;
}

static char *map_huge(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
}

/* Huge pages of the pool of its own node, which the process sends to another one. */
static int sends(void)
{
	unsigned long from = 1UL << UNTRUSTED, to = 1UL << TRUSTED;
	void *page[POOL];
	int node[POOL], status[POOL], i;
	char *p;

	put("/proc/self/vnode", "untrusted");
	if (setuid(1000) || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	p = map_huge(POOL * HUGE);
	if (p == MAP_FAILED)
		return 1;
	memset(p, 1, POOL * HUGE);
	claim(on_node(p, POOL, HUGE, UNTRUSTED) == POOL, "there is a pool of huge pages");
	for (i = 0; i < POOL; i++) {
		page[i] = p + i * HUGE;
		node[i] = TRUSTED;
	}
	syscall(SYS_move_pages, 0, (long)POOL, page, node, status, MPOL_MF_MOVE);
	claim(on_node(p, POOL, HUGE, UNTRUSTED) == POOL, "no way out by moving huge pages");
	syscall(SYS_migrate_pages, 0, 64UL, &from, &to);
	claim(on_node(p, POOL, HUGE, UNTRUSTED) == POOL, "nor by moving all pages");
	return 0;
}

static int faults_of(void *p, size_t size)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = (unsigned long)p, .len = size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &range))
		return fd;
	return -1;
}

struct copy {
	int fd;
	struct uffdio_copy arg;
};

static void *copies(void *arg)
{
	struct copy *copy = arg;

	ioctl(copy->fd, UFFDIO_COPY, &copy->arg);
	return NULL;
}

/*
 * A copy waits for its source, which never comes: its faults are the kernel's, so that root has
 * asked for them; a user has a file of its own FUSE server instead.
 */
static int waits(void)
{
	unsigned long there = 1UL << TRUSTED;
	char *from = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *to = map_huge(POOL * HUGE);	/* all that there are, so that none is had of them */
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = (unsigned long)from, .len = HUGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int slow = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct copy copy = { .fd = faults_of(to, HUGE) };
	pthread_t thread;

	put("/proc/self/vnode", "untrusted");
	copy.arg.src = (unsigned long)from;
	copy.arg.dst = (unsigned long)to;
	copy.arg.len = HUGE;
	if (to == MAP_FAILED || copy.fd < 0 || slow < 0 || ioctl(slow, UFFDIO_API, &api) ||
	    ioctl(slow, UFFDIO_REGISTER, &range) || setuid(1000) ||
	    syscall(SYS_mbind, to, HUGE, MPOL_PREFERRED, &there, 64UL, 0) ||
	    pthread_create(&thread, NULL, copies, &copy))
		return 1;
	sleep(2);
	claim(number(POOL_OF(1)) == POOL + 1, "a huge page waits beside the pool");
	claim(number(POOL_OF(0)) == 0, "no way out by a copy that waits");
	return 0;
}

static int touches(void)
{
	put("/proc/self/vnode", "untrusted");
	memset(others, 1, HUGE);
	return 0;
}

/* A huge page of another role's is bad, and the pool has no other one: it moves all the same. */
static int offlines(void)
{
	int status;

	put("/proc/self/vnode", "trusted");
	put(POOL_OF(1), "1");
	others = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB,
		      -1, 0);
	if (others == MAP_FAILED)
		return 1;
	waitpid(child(touches), &status, 0);
	claim(!status && *(volatile char *)others && on_node(others, 1, HUGE, UNTRUSTED) == 1,
	      "a huge page is another role's");
	claim(!madvise(others, HUGE, MADV_SOFT_OFFLINE) && *(volatile char *)others &&
	      on_node(others, 1, HUGE, UNTRUSTED) == 1, "one that goes offline moves within its role");
	put(POOL_OF(1), "0");
	return 0;
}

static char *same_pages(void)
{
	char *p = mmap(NULL, SAME * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	for (i = 0; i < SAME; i++)
		memset(p + i * 4096, 'a' + i % 7, 4096);
	madvise(p, SAME * 4096, MADV_MERGEABLE);
	return p;
}

/* One of another role has the same pages. */
static int other(void)
{
	put("/proc/self/vnode", "untrusted");
	same_pages();
	pause();
	return 0;
}

static int merged(void)
{
	long scans;
	char *p;
	int i;

	put("/proc/self/vnode", "trusted");
	p = same_pages();
	put(KSM "pages_to_scan", "4096");
	put(KSM "run", "1");
	scans = number(KSM "full_scans") + 4;
	for (i = 0; i < 60 && number(KSM "full_scans") < scans; i++)
		sleep(1);
	claim(number(KSM "pages_sharing") > SAME, "equal pages are merged");
	claim(on_node(p, SAME, 4096, TRUSTED) == SAME, "those of a role stay in its node");
	put(KSM "run", "2");
	return 0;
}

/* Memory with a page in each part that may be huge. */
static char *sparse(void)
{
	size_t size = SAME * HUGE;
	char *p = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	int i;

	p += -(unsigned long)p % HUGE;
	for (i = 0; i < SAME; i++)
		p[i * HUGE] = 1;
	return p;
}

static int collapse(char *p)
{
	int i;

	if (setuid(1000) || madvise(p, SAME * HUGE, MADV_HUGEPAGE))
		return 1;
	for (i = 0; i < 60; i++) {
		if (on_node(p + MB, SAME, HUGE, TRUSTED) + on_node(p + MB, SAME, HUGE, UNTRUSTED) ==
		    SAME)
			break;
		sleep(1);
	}
	claim(i < 60, "single pages become huge ones");
	return 0;
}

/* It has left a role, and has pages in the node of that one. */
static int collapses(void)
{
	char *p;
	int bad;

	put("/proc/self/vnode", "trusted");
	p = sparse();
	put("/proc/self/vnode", "untrusted");
	bad = collapse(p);
	claim(on_node(p + MB, SAME, HUGE, TRUSTED) == 0, "not in the node of the role that was left");
	return bad;
}

/* Its role is that of the node which its cpuset has. */
static int collapses_in_cpuset(void)
{
	char *p;
	int bad;

	put("/proc/self/vnode", "trusted");
	claim(!put(CGROUPS "/apps/cgroup.procs", "0"), "a process has the other node in its cpuset");
	p = sparse();
	bad = collapse(p);
	claim(on_node(p + MB, SAME, HUGE, TRUSTED) == 0, "nor out of its cpuset");
	return bad;
}

int main(void)
{
	int status;
	pid_t pid;

	setvbuf(stdout, NULL, _IONBF, 0);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	waitpid(child(borrows), &status, 0);
	claim(!status, "a process has borrowed");
	waitpid(child(counts), &status, 0);
	claim(!status, "a process has counters");
	sent_by_others();
	put(POOL_OF(1), "4");
	waitpid(child(sends), &status, 0);
	claim(!status, "a process has huge pages");
	waitpid(child(waits), &status, 0);
	claim(!status, "a process has copied");
	waitpid(child(offlines), &status, 0);
	claim(!status, "a process has a page of another role");
	claim(number(KSM "merge_across_nodes") == 0, "pages are merged within nodes");
	pid = child(other);
	sleep(1);
	waitpid(child(merged), &status, 0);
	end(pid);
	put(THP "enabled", "madvise");
	put(THP "khugepaged/pages_to_scan", "100000");
	put(THP "khugepaged/scan_sleep_millisecs", "100");
	put(THP "khugepaged/alloc_sleep_millisecs", "100");
	waitpid(child(collapses), &status, 0);
	claim(!status, "a process has parts that may be huge");
	waitpid(child(collapses_in_cpuset), &status, 0);
	claim(!status, "so has one in a cpuset");
	claim(swap_on(), "there is swap in memory");
	waitpid(child(grows), &status, 0);
	claim(!status, "a process has grown");
	without_reserves();
	printf("done\n");
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}
