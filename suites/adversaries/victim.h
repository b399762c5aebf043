/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The victim of a program, another user's process: it faults and frees memory
 * and reads its file. What a round of that costs it, and whether memory that
 * somebody held is back, is asked here.
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
#define VICTIM_UID 1001
#define VICTIM_HEAP (4 * MB)
#define VICTIM_FILE (32 * MB)
#define WARM_ROUNDS 4
/* Of what was available before: the kernel's own caches, and pages on their way. */
#define LOST_PERCENT 3
#define SETTLE_S 20

/* What the victim tells: rounds so far. */
static volatile uint64_t *rounds;
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

static uint64_t meminfo_kb(const char *name)
{
	char line[128];
	uint64_t value = 0;
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			value = strtoull(line + strlen(name) + 1, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		printf("# %s: %s\n", path, strerror(errno));
	close(fd);
}

static void become(uid_t uid)
{
	/* Its files in /proc are its own then, as those of a program that it executes would be. */
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid) || prctl(PR_SET_DUMPABLE, 1))
		die("uid %u", uid);
}

static void victim(int file)
{
	static char buffer[64 * 1024];
	char *p = map(VICTIM_HEAP);
	off_t at;

	become(VICTIM_UID);
	for (;;) {
		touch(p, VICTIM_HEAP);
		madvise(p, VICTIM_HEAP, MADV_DONTNEED);
		for (at = 0; at < (off_t)VICTIM_FILE; at += VICTIM_FILE / 64)
			if (pread(file, buffer, sizeof(buffer), at) < 0)
				_exit(1);
		++*rounds;
	}
}

/* The victim's CPU time, in ns: what else runs on its CPU costs it time, and no memory. */
static uint64_t victim_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* What a round costs the victim now, in us of its CPU time; 0 if it makes none. */
static double round_us(pid_t pid, unsigned int seconds)
{
	uint64_t before = *rounds, ns = victim_ns(pid);

	nap(seconds * 1000);
	if (*rounds == before)
		return 0;
	return (victim_ns(pid) - ns) / 1e3 / (*rounds - before);
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
