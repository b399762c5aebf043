/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages with a tag each, processes that are watched, and a load of processes that fault and check
 * until they are told to stop.
 */
#ifndef INTEGRITY_LOAD_H
#define INTEGRITY_LOAD_H

#include "base.h"

/* ---- pages with a tag each: what the tag says is what the page has to hold ---- */

struct tagged {
	char *p;
	unsigned long pages;
	uint64_t *tags;		/* 0: a page of zeros */
};

/* The tags are private memory: a child's are its own. */
static inline struct tagged tagged_of(char *p, unsigned long pages)
{
	struct tagged t = { p, pages, (uint64_t *)map_anon(pages * sizeof(*t.tags)) };

	return t;
}

static inline void check_tagged(const struct tagged *t, unsigned long at, unsigned long n,
				const char *what)
{
	unsigned long i;

	for (i = at; i < at + n; i++)
		check_page(t->p + i * PG, t->tags[i], what);
}

static inline void write_tagged(struct tagged *t, unsigned long at, unsigned long n)
{
	unsigned long i;

	for (i = at; i < at + n; i++) {
		t->tags[i] = rnd() | 1;
		fill_page(t->p + i * PG, t->tags[i]);
	}
}

static inline void drop_tagged(struct tagged *t, unsigned long at, unsigned long n, int advice)
{
	if (madvise(t->p + at * PG, n * PG, advice))
		die_errno("dropping pages by advice %d", advice);
	memset(t->tags + at, 0, n * sizeof(*t->tags));
}

/* ---- a crew: processes that go round until they are told to stop ---- */

#define CREW 16

struct crew {
	volatile int *stop;
	volatile unsigned long *rounds;
	pid_t pids[CREW];
	int nr;
};

/* Each process is a number; its work is a function that does not return. */
static inline void crew_start(struct crew *c, int nr, uint64_t seed, void (*work)(int me))
{
	c->stop = map_shared(PG);
	c->rounds = map_shared(PG);
	/* These pages are of the group of this process, not of a child's. */
	*c->stop = 0;
	c->rounds[0] = 0;
	for (c->nr = 0; c->nr < nr; c->nr++) {
		c->pids[c->nr] = child_seeded(seed * 100 + c->nr);
		if (!c->pids[c->nr])
			work(c->nr);
	}
}

/* A process that ended is found at once, not in the end. */
static inline void crew_lives(const struct crew *c)
{
	int i, status;

	for (i = 0; i < c->nr; i++)
		if (waitpid(c->pids[i], &status, WNOHANG) > 0)
			die("process %d ended early, status %x; oom_kill is %lld", i, status,
			    vmstat("oom_kill"));
}

/* Waits until each has gone round `n` times more, on a machine however slow. */
static inline void crew_wait(const struct crew *c, unsigned long n)
{
	unsigned long before[CREW];
	int i;

	for (i = 0; i < c->nr; i++)
		before[i] = c->rounds[i];
	for (i = 0; i < c->nr; i++)
		while (c->rounds[i] < before[i] + n) {
			crew_lives(c);
			nap_ms(5);
		}
}

/* All rounds of a crew, each of which has to end well. */
static inline unsigned long crew_end(struct crew *c)
{
	unsigned long all = 0;
	int i;

	*c->stop = 1;
	for (i = 0; i < c->nr; i++) {
		want_well(c->pids[i], "a process of a crew");
		all += c->rounds[i];
	}
	c->nr = 0;
	return all;
}

/* ---- the load ---- */

#define LOAD_FILE (1ULL << 60)

static struct crew load;
static unsigned long load_set_mb, load_file_pages;

static inline void load_anon(uint64_t tag)
{
	unsigned long pages = 16 + below(1008), i;
	char *p = map_anon(pages * PG);
	bool gone[1024] = { 0 };

	if (one_in(3))
		madvise(p, pages * PG, MADV_HUGEPAGE);
	fill_run(p, pages, tag);
	for (i = 0; i < pages; i += 2 + below(30)) {
		gone[i] = one_in(2);
		if (madvise(p + i * PG, PG, gone[i] ? MADV_DONTNEED : MADV_COLD) && gone[i])
			die_errno("MADV_DONTNEED");
	}
	/* What was DONTNEED is zero, what was COLD is as it was. */
	for (i = 0; i < pages; i++)
		check_page(p + i * PG, gone[i] ? 0 : tag + i, "load, anonymous");
	munmap(p, pages * PG);
}

static inline void load_shared(uint64_t tag)
{
	unsigned long pages = 16 + below(240);
	char *p = map_memfd(pages * PG, NULL);

	fill_run(p, pages, tag);
	if (one_in(2))
		madvise(p, pages * PG, MADV_PAGEOUT);
	check_run(p, pages, tag, "load, memfd");
	munmap(p, pages * PG);
}

static inline void load_fork(uint64_t tag)
{
	unsigned long pages = 16 + below(112);
	char *p = map_anon(pages * PG);
	pid_t pid;

	fill_run(p, pages, tag);
	pid = child();
	if (!pid) {
		check_run(p, pages, tag, "load, child's");
		fill_run(p, pages / 2, tag + 1000000);
		check_run(p, pages / 2, tag + 1000000, "load, child's own");
		_exit(0);
	}
	fill_run(p, pages / 4, tag + 2000000);
	want_well(pid, "a child of the load");
	check_run(p, pages / 4, tag + 2000000, "load, parent's own");
	check_run(p + pages / 4 * PG, pages - pages / 4, tag + pages / 4, "load, parent's");
	munmap(p, pages * PG);
}

static inline void load_file(int fd)
{
	static char buffer[PG] __attribute__((aligned(4096)));
	unsigned long n = 1 + below(256), at = below(load_file_pages), i;
	char *p;

	if (at + n > load_file_pages)
		n = load_file_pages - at;
	if (one_in(2)) {
		p = mmap(NULL, n * PG, PROT_READ, MAP_SHARED, fd, at * PG);
		if (p == MAP_FAILED)
			die_errno("mmap of a file");
		check_run(p, n, LOAD_FILE + at, "load, mapped file");
		munmap(p, n * PG);
	} else {
		for (i = 0; i < n; i++) {
			if (pread(fd, buffer, PG, (at + i) * PG) != PG)
				die_errno("pread");
			check_page(buffer, LOAD_FILE + at + i, "load, file");
		}
	}
	if (one_in(8))
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* The set that stays is checked and written, in runs, some of which are dropped or paged out. */
static inline void load_set(struct tagged *set)
{
	unsigned long n = 1 + below(256), at = below(set->pages);

	if (at + n > set->pages)
		n = set->pages - at;
	check_tagged(set, at, n, "load, set");
	write_tagged(set, at, n);
	if (one_in(4) && n > 1)
		drop_tagged(set, at, n / 2, MADV_DONTNEED);
	else if (one_in(6))
		madvise(set->p + at * PG, n * PG, MADV_PAGEOUT);
}

/* A process of the load: a set that stays, and short-lived things beside it. */
static inline void load_one(int me)
{
	unsigned long pages = load_set_mb * MB / PG, i;
	struct tagged set = tagged_of(map_anon(pages * PG), pages);
	uint64_t tag = ((uint64_t)(me + 1) << 40) + (1ULL << 39);
	char path[PATH_MAX];
	int fd;

	work_path(path, sizeof(path), "load");
	fd = load_file_pages ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	/* All of the set is used before the first round counts. */
	for (i = 0; i < pages && !*load.stop; i++)
		write_tagged(&set, i, 1);
	while (!*load.stop) {
		load_set(&set);
		switch (below(6)) {
		case 0: case 1:
			load_anon(tag);
			break;
		case 2:
			load_shared(tag);
			break;
		case 3:
			load_fork(tag);
			break;
		default:
			if (fd >= 0)
				load_file(fd);
		}
		load.rounds[me]++;
	}
	check_tagged(&set, 0, pages, "load, set in the end");
	_exit(0);
}

/* So many processes with `set_mb` each, and a file of `file_mb` among them. */
static inline void load_start(int nr, unsigned long set_mb, unsigned long file_mb)
{
	char path[PATH_MAX];
	int fd;

	load_set_mb = set_mb ? set_mb : 1;
	load_file_pages = file_mb * MB / PG;
	if (load_file_pages) {
		work_path(path, sizeof(path), "load");
		fd = make_file(path, load_file_pages, LOAD_FILE);
		fsync(fd);
		close(fd);
	}
	crew_start(&load, nr, rnd() >> 16, load_one);
}

static inline void load_lives(void)
{
	crew_lives(&load);
}

static inline void load_wait(unsigned long n)
{
	crew_wait(&load, n);
}

/* The end of a program that had a load. */
static inline void load_end(void)
{
	if (!crew_end(&load))
		die("the load did nothing");
	no_kills();
	finish();
}

#endif
