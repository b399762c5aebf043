// SPDX-License-Identifier: GPL-2.0
/*
 * Several programs are started together; each touches a fresh page every so
 * often until it has its share. Then one exits, and the question is what its
 * memory is good for (A-GPBM, figure 3a).
 *
 * Two answers are recorded. The free lists before and after, which is what the
 * paper shows; and, from /proc/PID/pagemap, the aligned blocks that belonged to
 * one program alone, which no other program's page can blur.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "experiments/exit.h"
#include "experiments/lib.h"
#include "measure/sampler.h"
#include "system/am.h"

#define MAX_PROGRAMS 16
#define MAX_ORDER 10		/* a larger block counts as several of these */
#define PFN_MASK ((1ULL << 55) - 1)
#define PRESENT (1ULL << 63)
#define SETTLE_MS 20		/* no time for compaction to tidy up */

struct board {
	uint32_t go;		/* futex: start touching */
	uint32_t done;		/* futex: programs that have their share */
	uint32_t ns[];		/* of every touch, at most 4.29 s, program by program */
};

static struct board *board;
static pid_t pids[MAX_PROGRAMS];
static char *region;		/* at the same address in every program */

static void __attribute__((noreturn)) program(uint64_t nr)
{
	const struct experiment *exp = &sh->conf.exp;
	uint32_t *ns = board->ns + nr * exp->pages;
	uint64_t i, t;

	while (!__atomic_load_n(&board->go, __ATOMIC_ACQUIRE))
		futex_wait(&board->go, 0, 0);
	for (i = 0; i < exp->pages; i++) {
		t = now_ns();
		*(volatile char *)(region + i * PAGE) = 1;
		t = now_ns() - t;
		ns[i] = t < UINT32_MAX ? t : UINT32_MAX;
		sleep_ns(exp->period_us * NSEC_PER_USEC);
	}
	bump(&board->done);
	for (;;)
		pause();
}

static void start_programs(void)
{
	const struct experiment *exp = &sh->conf.exp;
	uint64_t i;

	if (!exp->programs || exp->programs > MAX_PROGRAMS)
		fatal("experiment: from 1 to %d programs", MAX_PROGRAMS);
	board = experiment_share(sizeof(*board) +
				 exp->programs * exp->pages * sizeof(board->ns[0]));
	region = experiment_map(exp->pages);
	for (i = 0; i < exp->programs; i++) {
		pids[i] = experiment_fork("program", 0, exp->cpus - 1);
		if (!pids[i])
			program(i);
	}
}

/* ---- how long the touches took ---- */
static int compare_ns(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The cost of two looks at the clock: it is in every touch. */
static uint64_t clock_cost(void)
{
	uint64_t best = ~0ULL, t;
	int i;

	for (i = 0; i < 16; i++) {
		t = now_ns();
		t = now_ns() - t;
		best = t < best ? t : best;
	}
	return best;
}

static void record_times(uint64_t nr)
{
	uint64_t pages = sh->conf.exp.pages, sum = 0, i;
	uint32_t *ns = board->ns + nr * pages;

	for (i = 0; i < pages; i++)
		sum += ns[i];
	qsort(ns, pages, sizeof(*ns), compare_ns);
	record(RECORD_PROGRAM, (unsigned long long)now_ns(), (unsigned long long)nr,
	       (unsigned long long)pages, (unsigned long long)sum, ns[pages / 2],
	       ns[pages * 99 / 100], ns[pages - 1], (unsigned long long)clock_cost());
}

/* ---- blocks of one program alone ---- */
static int compare_pfn(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t read_pfns(pid_t pid, uint64_t *pfn)
{
	uint64_t pages = sh->conf.exp.pages, n = 0, i;
	char path[32];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fatal("%s: %s", path, strerror(errno));
	got = pread(fd, pfn, pages * 8, (uintptr_t)region / PAGE * 8);
	close(fd);
	if (got != (ssize_t)(pages * 8))
		fatal("%s: cannot read", path);
	for (i = 0; i < pages; i++)
		if (pfn[i] & PRESENT)
			pfn[n++] = pfn[i] & PFN_MASK;
	qsort(pfn, n, sizeof(*pfn), compare_pfn);
	return n;
}

/* The order of the largest aligned block that starts at *pfn, all its own. */
static int own_order(const uint64_t *pfn, uint64_t left)
{
	int order = 0;
	uint64_t size;

	while (order < MAX_ORDER) {
		size = 2ULL << order;
		if (*pfn & (size - 1) || left < size || pfn[size - 1] != *pfn + size - 1)
			break;
		order++;
	}
	return order;
}

static void record_own_blocks(uint64_t nr, uint64_t *pfn)
{
	uint64_t n = read_pfns(pids[nr], pfn), blocks[MAX_ORDER + 1] = { 0 }, i;
	char text[256];
	size_t used = 0;
	int order;

	for (i = 0; i < n; i += 1ULL << order) {
		order = own_order(pfn + i, n - i);
		blocks[order]++;
	}
	for (order = 0; order <= MAX_ORDER; order++)
		used += snprintf(text + used, sizeof(text) - used, "%s%llu", order ? "," : "",
				 (unsigned long long)blocks[order]);
	record(RECORD_OWN, (unsigned long long)now_ns(), (unsigned long long)nr, text);
}

static void end_program(uint64_t nr)
{
	kill(pids[nr], SIGKILL);
	if (waitpid(pids[nr], NULL, 0) != pids[nr])
		fatal("experiment: program %llu is lost", (unsigned long long)nr);
}

void exit_run(void)
{
	const struct experiment *exp = &sh->conf.exp;
	uint64_t *pfn = experiment_share(exp->pages * sizeof(*pfn)), i;

	start_programs();
	experiment_quiet(exp->quiet_ms);
	sampler_moment("start");
	am_busy(true);
	bump(&board->go);
	experiment_wait(&board->done, exp->programs, pids, exp->programs);
	am_busy(false);
	experiment_quiet(exp->quiet_ms);
	for (i = 0; i < exp->programs; i++) {
		record_times(i);
		record_own_blocks(i, pfn);
	}
	sampler_moment("before");
	end_program(0);
	sleep_ns(SETTLE_MS * NSEC_PER_MSEC);
	sampler_moment("after");
	for (i = 1; i < exp->programs; i++)
		end_program(i);
}
