// SPDX-License-Identifier: GPL-2.0
/*
 * For the stress: processes by the hundred, a fork bomb and a hog in control
 * groups of their own, pages of a process that go bad, contiguous memory on
 * demand, and every task that can be in the way of a quick reclaim. Each undoes
 * what it did; what it does must never end the run.
 */
#include <asm/mman.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kernel.h"
#include "base/records.h"
#include "base/rng.h"
#include "base/shared.h"
#include "base/util.h"
#include "stress/storms.h"

#define POISON "/sys/kernel/debug/hwpoison/"
#define CMA "/sys/kernel/debug/cma/reserved/"

#define STORM 100		/* processes; more take a debug kernel longer than a guest may be silent */
#define STORM_PAGES 24
#define BOMB_PIDS "48"
#define BOMB_MS 300
#define HOG_LIMIT "16M"
#define HOG_MB 48
#define CMA_PAGES "2048"
#define HEAPS "/dev/dma_heap/"
#define AREA_FILE "/data/area"
#define AREA_PAGES 2048
#define AREA_MS 200
#define AREA_BUFFERS 4

static void touch_pages(char *p, uint64_t pages)
{
	while (pages--)
		*(volatile char *)(p + pages * PAGE) = 1;
}

static char *fresh(uint64_t pages)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* A child that does not outlive its job, whatever that does to it. */
static int in_child(void (*job)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		set_adj(getpid(), ADJ_CACHED_MAX);
		job();
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	return status;
}

static void live_shortly(void)
{
	char *p = fresh(STORM_PAGES);

	if (!p)
		return;
	touch_pages(p, STORM_PAGES);
	/* Memory of the bomb must not pile up: it would eat all of memory, not its pids. */
	munmap(p, STORM_PAGES * PAGE);
}

void storm_processes(void)
{
	int i;

	for (i = 0; i < STORM; i++)
		in_child(live_shortly);
}

static bool group_write(const char *group, const char *file, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), CGROUPS "/%s/%s", group, file);
	return !spit(path, value);
}

/* A group below a limit of that controller, if the kernel has it. */
static bool group_make(const char *group, const char *controller, const char *file,
		       const char *limit)
{
	return !cgroup_make(group, controller) && group_write(group, file, limit);
}

bool storm_bomb_prepare(void)
{
	return group_make("bomb", "+pids", "pids.max", BOMB_PIDS);
}

bool storm_hog_prepare(void)
{
	return group_make("hog", "+memory", "memory.max", HOG_LIMIT);
}

static void bomb(void)
{
	if (!group_write("bomb", "cgroup.procs", "0"))
		_exit(1);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		live_shortly();
		if (fork() < 0)
			sleep_ns(NSEC_PER_MSEC);
	}
}

/*
 * Its orphans are ours, not PID 1's, which would take them for native processes.
 * On a busy host it may not have begun when it is to end: a process that joins
 * the group after it was killed is killed the next time.
 */
void storm_bomb(void)
{
	pid_t pid;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!fork()) {
		set_adj(getpid(), ADJ_CACHED_MAX);
		bomb();
	}
	sleep_ns(BOMB_MS * NSEC_PER_MSEC);
	do {
		if (!group_write("bomb", "cgroup.kill", "1"))
			fatal("stress: the fork bomb cannot be killed");
		sleep_ns(NSEC_PER_MSEC);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
	} while (!pid);
}

static void hog(void)
{
	char *p = fresh(HOG_MB * MB / PAGE);

	if (p && group_write("hog", "cgroup.procs", "0"))
		touch_pages(p, HOG_MB * MB / PAGE);
}

/* Out of memory inside the group: the hog dies, or is swapped out. */
void storm_hog(void)
{
	in_child(hog);
}

static uint64_t pfn_of(const char *p)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || pread(fd, &entry, sizeof(entry), (uintptr_t)p / PAGE * 8) != 8)
		entry = 0;
	if (fd >= 0)
		close(fd);
	return entry & ((1ULL << 55) - 1);
}

/* The contents of a page with too many corrected errors move elsewhere. */
static void bad_page_soft(void)
{
	char *p = fresh(8);

	if (!p)
		return;
	memset(p, 0x5a, 8 * PAGE);
	if (!madvise(p + PAGE, PAGE, MADV_SOFT_OFFLINE) && p[PAGE] != 0x5a)
		_exit(2);
}

/* The frame stays out of use: a page less for each. */
static void bad_page_hard(void)
{
	char value[32], *p = fresh(8);

	if (!p)
		return;
	touch_pages(p, 8);
	snprintf(value, sizeof(value), "%llu", (unsigned long long)pfn_of(p + PAGE));
	spit(POISON "corrupt-pfn", value);
	touch_pages(p, 8);	/* its owner is killed, if it was not yet */
}

void storm_bad_page(void)
{
	int status = in_child(bad_page_soft);

	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		fatal("stress: a page lost its contents when it was taken out of use");
	if (!access(POISON "corrupt-pfn", W_OK))
		in_child(bad_page_hard);
}

bool storm_cma_prepare(void)
{
	return !access(CMA "alloc", W_OK);
}

/* Pages in the way move; one may be pinned, and then this fails. */
void storm_cma(void)
{
	if (!spit(CMA "alloc", CMA_PAGES) && spit(CMA "free", CMA_PAGES))
		fatal("stress: contiguous memory cannot be returned");
}

/* ---- the page-cache-preferred area: each for ever, until it is killed ---- */
static int area_open(void)
{
	int fd = open(AREA_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, AREA_PAGES * PAGE))
		_exit(1);
	return fd;
}

static void area_read(struct rng *r)
{
	static char buffer[64 * PAGE];
	int fd = area_open();

	for (;;)
		if (pread(fd, buffer, sizeof(buffer), rng_below(r, AREA_PAGES) * PAGE) < 0)
			_exit(1);
}

static void area_write(struct rng *r)
{
	static char buffer[4 * PAGE];
	int fd = area_open();

	for (;;) {
		if (pwrite(fd, buffer, sizeof(buffer), rng_below(r, AREA_PAGES) * PAGE) < 0)
			_exit(1);
		if (!rng_below(r, 64))
			fdatasync(fd);
	}
}

/* Pages cut off come back as holes. */
static void area_truncate(struct rng *r)
{
	int fd = area_open();

	for (;;) {
		if (ftruncate(fd, rng_below(r, AREA_PAGES) * PAGE) ||
		    ftruncate(fd, AREA_PAGES * PAGE))
			_exit(1);
		sleep_ns(2 * NSEC_PER_MSEC);
	}
}

static void beyond_the_end(int sig)
{
	(void)sig;
	_exit(0);
}

static void area_map(struct rng *r)
{
	volatile char *p;
	int fd = area_open();

	signal(SIGBUS, beyond_the_end);	/* truncated meanwhile */
	for (;;) {
		uint64_t i, first = rng_below(r, AREA_PAGES - 256);

		p = mmap(NULL, 256 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, first * PAGE);
		if (p == MAP_FAILED)
			_exit(1);
		for (i = 0; i < 256; i++)
			if (rng_below(r, 8))
				(void)p[i * PAGE];
			else
				p[i * PAGE] = 1;
		munmap((void *)p, 256 * PAGE);
	}
}

/* A page in a pipe is referenced until a reader takes it. */
static void area_pin(struct rng *r)
{
	static char buffer[16 * PAGE];
	int pipe_fd[2], fd = area_open();
	char *p = mmap(NULL, AREA_PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED || pipe2(pipe_fd, O_NONBLOCK | O_CLOEXEC))
		_exit(1);
	for (;;) {
		struct iovec iov = { p + rng_below(r, AREA_PAGES - 8) * PAGE, 8 * PAGE };

		if (vmsplice(pipe_fd[1], &iov, 1, SPLICE_F_NONBLOCK) < 0 ||
		    !rng_below(r, 4)) {
			sleep_ns(NSEC_PER_MSEC);
			if (read(pipe_fd[0], buffer, sizeof(buffer)) < 0 && errno != EAGAIN)
				_exit(1);
		}
	}
}

static int area_alloc(const char *heap, uint64_t bytes)
{
	struct dma_heap_allocation_data data = { .len = bytes, .fd_flags = O_RDWR | O_CLOEXEC };
	int fd = open(heap, O_RDONLY | O_CLOEXEC), ret;

	ret = fd < 0 ? -1 : ioctl(fd, DMA_HEAP_IOCTL_ALLOC, &data);
	if (fd >= 0)
		close(fd);
	return ret ? -1 : (int)data.fd;
}

static void area_client(struct rng *r)
{
	int fd[AREA_BUFFERS], i;

	for (;;) {
		/* While the area is off an announcement has no taker. */
		if (rng_below(r, 2))
			spit(PCPA "announce", "4M");
		for (i = 0; i < AREA_BUFFERS; i++)
			fd[i] = area_alloc(rng_below(r, 2) ? HEAPS "pcpa" : HEAPS "pcpa-contig",
					   rng_range(r, 1, 2 * MB / PAGE) * PAGE);
		for (i = 0; i < AREA_BUFFERS; i++)
			if (fd[i] >= 0)
				close(fd[i]);
		sleep_ns(rng_range(r, 1, 100) * NSEC_PER_MSEC);
	}
}

bool storm_area_prepare(void)
{
	return !access(HEAPS "pcpa", R_OK);
}

void storm_area(void)
{
	static void (*const jobs[])(struct rng *) = {
		area_read, area_write, area_truncate, area_map, area_map, area_pin,
		area_client, area_client,
	};
	pid_t pid[sizeof(jobs) / sizeof(jobs[0])];
	size_t i, n = sizeof(jobs) / sizeof(jobs[0]);
	struct rng r;

	for (i = 0; i < n; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			set_adj(getpid(), ADJ_CACHED_MAX);
			rng_seed(&r, sh->conf.seed, 0xa4ea + i);
			jobs[i](&r);
		}
	}
	sleep_ns(AREA_MS * NSEC_PER_MSEC);
	for (i = 0; i < n; i++)
		if (pid[i] > 0)
			kill(pid[i], SIGKILL);
	for (i = 0; i < n; i++)
		if (pid[i] > 0)
			waitpid(pid[i], NULL, 0);
	unlink(AREA_FILE);
}
