// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of an operation of the memory manager, and its scaling: pages that are
 * faulted in and given back, a file's pages that are read for the first time,
 * dropped and read from the cache, processes that are forked and exit, pages that
 * go through a pipe; by one worker and by many, processes and threads.
 *
 * On a kernel with lock statistics each step's are told line by line. With turns,
 * the schemes are switched on and off in turn on one kernel, so that all of them
 * meet the same host.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "experiments/crew.h"
#include "experiments/lib.h"
#include "experiments/scale.h"

#define LOCK_STAT "/proc/lock_stat"
#define PIPE_PAGES 16UL
#define PAGES_PER_FORK 32UL

struct worker {
	char *base;			/* anonymous memory */
	int file;			/* sparse, so that a read makes no I/O */
	int pipe[2];
	struct iovec part[PIPE_PAGES];	/* each of them all of buf */
	char buf[PAGE] __attribute__((aligned(PAGE)));
};

static void touch(struct worker *w)
{
	experiment_touch(w->base, sh->conf.exp.pages);
}

static void give_back(struct worker *w)
{
	madvise(w->base, sh->conf.exp.pages * PAGE, MADV_DONTNEED);
}

static void read_file(struct worker *w)
{
	uint64_t i;

	for (i = 0; i < sh->conf.exp.pages; i++)
		if (pread(w->file, w->buf, PAGE, i * PAGE) != (ssize_t)PAGE)
			fatal("scale: pread: %s", strerror(errno));
}

static void drop_file(struct worker *w)
{
	posix_fadvise(w->file, 0, 0, POSIX_FADV_DONTNEED);
}

static void fork_all(struct worker *w)
{
	uint64_t i;
	pid_t pid;

	for (i = 0; i < sh->conf.exp.pages / PAGES_PER_FORK; i++) {
		pid = fork();
		if (!pid)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			fatal("scale: fork: %s", strerror(errno));
	}
}

/*
 * All pages of the pipe are copied from one page and to it: an emulated TLB has one place for an
 * address, and a run of pages here and one of a block that meet in it cost ten times as much.
 */
static void pipe_all(struct worker *w)
{
	const ssize_t all = PIPE_PAGES * PAGE;
	uint64_t i;

	for (i = 0; i < sh->conf.exp.pages; i += PIPE_PAGES)
		if (writev(w->pipe[1], w->part, PIPE_PAGES) != all ||
		    readv(w->pipe[0], w->part, PIPE_PAGES) != all)
			fatal("scale: pipe: %s", strerror(errno));
}

/* Even steps do, odd ones undo; where there is nothing to undo, both do. */
static const struct operation {
	const char *name, *undone;
	void (*step)(struct worker *w);
	void (*undo)(struct worker *w);
	uint64_t pages;			/* for each time it counts */
} operations[] = {
	{ "fault", "free", touch, give_back, 1 },
	{ "fill", "drop", read_file, drop_file, 1 },
	{ "read", "read", read_file, read_file, 1 },
	{ "fork", "fork", fork_all, fork_all, PAGES_PER_FORK },
	{ "pipe", "pipe", pipe_all, pipe_all, 1 },
};

static const struct operation *op;	/* what the crew does now */

static void *begin(uint64_t nr)
{
	struct worker *w = aligned_alloc(PAGE, sizeof(*w));
	char path[32];
	size_t i;

	snprintf(path, sizeof(path), "/data/scale-%llu", (unsigned long long)nr);
	if (!w)
		fatal("scale: no memory");
	memset(w->buf, 1, sizeof(w->buf));
	for (i = 0; i < PIPE_PAGES; i++)
		w->part[i] = (struct iovec){ w->buf, sizeof(w->buf) };
	w->base = experiment_map(sh->conf.exp.pages);
	w->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (w->file < 0 || ftruncate(w->file, sh->conf.exp.pages * PAGE) ||
	    pipe2(w->pipe, O_CLOEXEC))
		fatal("scale: %s: %s", path, strerror(errno));
	return w;
}

static void step(void *own, uint64_t nr)
{
	if (nr % 2)
		op->undo(own);
	else
		op->step(own);
}

/* Where and under what a step was made. */
struct place {
	const char *scheme, *kind;
	uint64_t workers;
};

static void locks_reset(void)
{
	if (!access(LOCK_STAT, W_OK) && spit(LOCK_STAT, "0"))
		fatal("scale: cannot reset " LOCK_STAT);
}

/* The lines of classes: "NAME: NUMBERS". */
static void locks_record(const char *name, const struct place *at)
{
	char line[512], text[6 * sizeof(line)];
	FILE *f = fopen(LOCK_STAT, "re");

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strchr(line, ':'))
			continue;
		record(RECORD_LOCK, name, at->kind,
		       (unsigned long long)at->workers, json_text(text, sizeof(text), line));
	}
	fclose(f);
}

static void step_record(const char *name, const struct place *at, uint64_t ns)
{
	uint64_t n = at->workers * sh->conf.exp.pages / op->pages;

	record(RECORD_SCALE, at->scheme, name, at->kind,
	       (unsigned long long)at->workers, (unsigned long long)n,
	       (unsigned long long)ns);
}

static void one_step(const char *name, const struct place *at)
{
	uint64_t ns;

	locks_reset();
	ns = crew_step();
	locks_record(name, at);
	step_record(name, at, ns);
	records_flush();
}

/* The first round warms up. */
static void measure(const struct place *at)
{
	static const struct crew_work work = { begin, step };
	uint64_t i;

	crew_start(&work, at->workers, !strcmp(at->kind, "thread"));
	experiment_quiet(sh->conf.exp.quiet_ms);
	crew_step();
	crew_step();
	for (i = 0; i < sh->conf.exp.rounds; i++) {
		one_step(op->name, at);
		one_step(op->undone, at);
	}
	crew_stop();
}

static void turn(const char *scheme, const char *value)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), SCHEMES "%s/enabled", scheme);
	err = spit(path, value);
	if (err)
		fatal("scale: write %s to %s: %s", value, path, strerror(-err));
}

static void measure_in_turn(struct place *at)
{
	static const char *const schemes[] = { "region", "cpb" };
	uint64_t turns = sh->conf.exp.turns;
	size_t i;

	if (!turns)
		measure(at);
	while (turns--) {
		at->scheme = "none";
		measure(at);
		for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
			at->scheme = schemes[i];
			turn(at->scheme, "1");
			measure(at);
			turn(at->scheme, "0");
		}
	}
}

static void measure_kinds(uint64_t workers)
{
	struct place at = { "booted", "process", workers };

	measure_in_turn(&at);
	if (workers == 1)
		return;
	at = (struct place){ "booted", "thread", workers };
	measure_in_turn(&at);
}

void scale_run(void)
{
	const struct experiment *exp = &sh->conf.exp;
	uint64_t workers;

	if (exp->tasks > CREW_MAX || exp->step < 2)
		fatal("scale: at most %d tasks, steps of at least 2", CREW_MAX);
	for (op = operations; op < operations + sizeof(operations) / sizeof(*op); op++)
		for (workers = 1; workers <= exp->tasks; workers *= exp->step)
			measure_kinds(workers);
}
