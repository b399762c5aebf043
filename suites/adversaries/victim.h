/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The victim of a program, another user's process: it faults and frees memory
 * and reads its file. Where it stands is asked at the end of a round; whether
 * memory that a program held is back is asked here, too.
 */
#ifndef VICTIM_H
#define VICTIM_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MB (1024UL * 1024UL)
#define PAGE 4096UL
#define GROUPS "/sys/fs/cgroup"
#define VICTIM_UID 1001
#define VICTIM_HEAP (4 * MB)
#define VICTIM_FILE (32 * MB)
/* A control group of its own, which no controller has: the kernel tells of stalls by group. */
#define VICTIM_GROUP GROUPS "/victim"
#define WARM_ROUNDS 4
/* Of what was available before: the kernel's own caches, and pages on their way. */
#define LOST_PERCENT 3
#define SETTLE_S 20

/* The end of one of the victim's rounds. */
struct moment {
	uint64_t rounds;	/* so far */
	uint64_t wall_ns;
	uint64_t cpu_ns;	/* CPU time that it had */
	uint64_t queued_ns;	/* for which it could have run, and something else did */
};

/* What the victim tells: rounds so far, and the end of the next one if that is asked for. */
static volatile struct told {
	uint64_t rounds;
	bool asked;
	struct moment moment;
} *told;
static unsigned int checks;

static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf(": %s\n", strerror(errno));
	exit(1);
}

static void check(bool good, const char *what)
{
	printf("%sok %u - %s\n", good ? "" : "not ", ++checks, what);
}

static void nap(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static char *map(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void touch(char *p, size_t size)
{
	size_t at;

	for (at = 0; at < size; at += PAGE)
		p[at] = 1;
}

/* A file of that size, of an earlier case if there is one, all of it read. */
static int make_file(const char *path, size_t size)
{
	static char block[64 * 1024];
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;
	size_t at;

	if (fd < 0 || fstat(fd, &st))
		die("%s", path);
	for (at = st.st_size; at < size; at += sizeof(block))
		if (pwrite(fd, block, sizeof(block), at) != sizeof(block))
			die("%s", path);
	fsync(fd);
	for (at = 0; at < size; at += sizeof(block))
		if (pread(fd, block, sizeof(block), at) < 0)
			die("%s", path);
	return fd;
}

/* A number by its name, out of /proc/meminfo or /proc/vmstat. */
static uint64_t number_of(const char *path, const char *name)
{
	size_t length = strlen(name);
	char line[128];
	uint64_t value = 0;
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, length) && strchr(": ", line[length]))
			value = strtoull(line + length + 1, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

static uint64_t meminfo_kb(const char *name)
{
	return number_of("/proc/meminfo", name);
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (!done)
		printf("# %s: %s\n", path, strerror(errno));
	close(fd);
	return done;
}

static void become(uid_t uid)
{
	/* Its files in /proc are its own then, as those of a program that it executes would be. */
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid) || prctl(PR_SET_DUMPABLE, 1))
		die("uid %u", uid);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	return clock_gettime(clock, &ts) ? 0 : ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Of a group of one process some is waiting for a CPU when that one is. */
static uint64_t queued_ns(int pressure)
{
	char text[256] = "";
	const char *total;

	if (pread(pressure, text, sizeof(text) - 1, 0) < 0)
		return 0;
	total = strstr(text, "total=");
	return total ? strtoull(total + strlen("total="), NULL, 10) * 1000 : 0;
}

static void victim(int file)
{
	static char buffer[64 * 1024];
	char *p = map(VICTIM_HEAP);
	int pressure;
	off_t at;

	mkdir(VICTIM_GROUP, 0755);
	pressure = open(VICTIM_GROUP "/cpu.pressure", O_RDONLY | O_CLOEXEC);
	if (pressure < 0 || !write_text(VICTIM_GROUP "/cgroup.procs", "0"))
		die(VICTIM_GROUP);
	become(VICTIM_UID);
	/* Its rounds are the same ones, whatever others have. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (;;) {
		touch(p, VICTIM_HEAP);
		madvise(p, VICTIM_HEAP, MADV_DONTNEED);
		for (at = 0; at < (off_t)VICTIM_FILE; at += VICTIM_FILE / 64)
			if (pread(file, buffer, sizeof(buffer), at) < 0)
				_exit(1);
		++told->rounds;
		if (!told->asked)
			continue;
		told->moment = (struct moment){
			told->rounds, clock_ns(CLOCK_MONOTONIC),
			clock_ns(CLOCK_PROCESS_CPUTIME_ID), queued_ns(pressure),
		};
		told->asked = false;
	}
}

static uint64_t available_kb(void)
{
	sync();
	write_text("/proc/sys/vm/drop_caches", "3");
	return meminfo_kb("MemAvailable");
}

/* What is freed behind a process, by a worker or after a grace period, has time to come back. */
static uint64_t settled_kb(uint64_t wanted)
{
	uint64_t kb = available_kb();
	int i;

	for (i = 0; i < SETTLE_S && kb < wanted; i++) {
		nap(1000);
		kb = available_kb();
	}
	return kb;
}

#endif
