// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a small guest whose power is cut while the page-cache-preferred area is
 * emptied: processes write files and have them synced, others map and dirty pages of
 * the area, a client takes it again and again. "synced NAME BYTES SEED" is a promise of
 * the file system, which has to hold whatever the area did with the pages.
 *
 * cut_after=N cut_us=M on the kernel's command line: M microseconds into the Nth request.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "area.h"

#define WRITERS 3
#define FILES 400
#define BIG_MB 420
#define DIRTY_MB 24
#define PIECE_MB 64

/* What a file says: the host computes the same. */
static uint32_t next(uint32_t x)
{
	return x * 1664525u + 1013904223u;
}

/* A word for each page: one that is stale, empty or another file's shows. */
static void fill(uint32_t *word, size_t bytes, uint32_t seed)
{
	size_t i;

	for (i = 0; i < bytes / sizeof(*word); i++) {
		if (i % (PAGE / sizeof(*word)) == 0)
			seed = next(seed);
		word[i] = seed;
	}
}

static atomic_int *promises;	/* of all processes */

/* A line goes out whole: other processes write to the same console. */
static void promise(const char *name, size_t bytes, uint32_t seed)
{
	char line[96];
	int n = snprintf(line, sizeof(line), "synced %s %zu %u\n", name, bytes, seed);

	if (write(STDOUT_FILENO, line, n) != n)
		_exit(1);
	++*promises;
}

/* Pages are dirty, in the journal and under writeback while others are reclaimed. */
static void writer(int who)
{
	static uint32_t word[512 * 1024 / sizeof(uint32_t)];
	uint32_t seed = 7919u * (who + 1);
	int i;

	for (i = 0; i < FILES; i++) {
		size_t bytes = PAGE * (1 + (seed >> 8) % (sizeof(word) / PAGE));
		char name[32], path[64];
		int fd;

		snprintf(name, sizeof(name), "w%d-%d", who, i);
		snprintf(path, sizeof(path), "/data/kept/%s", name);
		fill(word, bytes, seed);
		fd = open(path, O_WRONLY | O_CREAT, 0600);
		if (fd < 0 || write(fd, word, bytes) != (ssize_t)bytes || fsync(fd))
			_exit(1);
		close(fd);
		promise(name, bytes, seed);
		seed = next(seed);
	}
	_exit(0);
}

/* Mapped pages that are written again and again, in a file that is never synced. */
static void dirtier(void)
{
	int fd = open("/data/dirty", O_RDWR | O_CREAT, 0600);
	uint32_t at = 1;
	char *p;

	if (fd < 0 || ftruncate(fd, DIRTY_MB * MB))
		_exit(1);
	p = mmap(NULL, DIRTY_MB * MB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (;;) {
		at = next(at);
		p[(at >> 4) % (DIRTY_MB * MB)]++;
	}
}

/* Holes: page cache of the area without any I/O. */
static void reader(void)
{
	static char buffer[256 * 1024];
	int fd = open("/data/big", O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, BIG_MB * MB))
		_exit(1);
	for (;;)
		if (read(fd, buffer, sizeof(buffer)) <= 0)
			lseek(fd, 0, SEEK_SET);
}

static pid_t begin_job(void (*job)(void))
{
	pid_t pid = fork();

	if (!pid)
		job();
	return pid;
}

static void begin_writer(int who)
{
	if (!fork())
		writer(who);
}

static void cut(long us)
{
	if (fork())
		return;
	usleep(us);
	/* As power goes: no sync, no unmount. */
	reboot(RB_AUTOBOOT);
	_exit(1);
}

static long word_of(const char *name)
{
	const char *value = getenv(name);

	return value ? atol(value) : 0;
}

static void ask(const char *heap, size_t bytes)
{
	int fd = heap_alloc(heap, bytes);

	if (fd >= 0)
		close(fd);
}

int main(void)
{
	long after = word_of("cut_after"), us = word_of("cut_us"), n;
	int i;

	begin();
	mkdir("/data/kept", 0755);
	sync();
	promises = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (promises == MAP_FAILED)
		return 1;
	begin_job(reader);
	begin_job(dirtier);
	for (i = 0; i < WRITERS; i++)
		begin_writer(i);
	/* A busy host comes late to the first files. */
	for (n = 1; ; n += *promises >= 3) {
		usleep(100000);
		if (n == after)
			cut(us);
		ask("pcpa-contig", PIECE_MB * MB);
		ask("pcpa", 2 * PIECE_MB * MB);
	}
}
