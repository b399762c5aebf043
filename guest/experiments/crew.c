// SPDX-License-Identifier: GPL-2.0
/*
 * A crew: workers that go in lock step, each on a CPU of its own, as processes or
 * as threads of one. Everything a worker does between two steps is timed.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/records.h"
#include "base/util.h"
#include "experiments/crew.h"
#include "experiments/lib.h"

static struct board {
	uint32_t ready, phase, done;	/* futexes */
	struct {
		uint64_t start, end;
	} worker[CREW_MAX];
} *board;

static struct {
	const struct crew_work *work;
	uint64_t workers, nr_pids;
	pid_t pid[CREW_MAX];
} crew;

static void await_phase(uint32_t want)
{
	uint32_t seen;

	while ((seen = __atomic_load_n(&board->phase, __ATOMIC_ACQUIRE)) < want)
		futex_wait(&board->phase, seen, 0);
}

static void __attribute__((noreturn)) work(uint64_t nr)
{
	void *own = crew.work->begin(nr);
	uint64_t step;

	bump(&board->ready);
	for (step = 0;; step++) {
		await_phase(step + 1);
		board->worker[nr].start = now_ns();
		crew.work->step(own, step);
		board->worker[nr].end = now_ns();
		bump(&board->done);
	}
}

static void *thread(void *arg)
{
	uint64_t nr = (uintptr_t)arg;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(nr, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	work(nr);
}

static void __attribute__((noreturn)) all_threads(void)
{
	pthread_t t;
	uint64_t i;

	for (i = 0; i < crew.workers; i++)
		if (pthread_create(&t, NULL, thread, (void *)(uintptr_t)i))
			fatal("experiment: pthread_create: %s", strerror(errno));
	for (;;)
		pause();
}

static void start_processes(void)
{
	uint64_t i;

	for (i = 0; i < crew.workers; i++) {
		crew.pid[i] = experiment_fork("worker", i, i);
		if (!crew.pid[i])
			work(i);
	}
	crew.nr_pids = crew.workers;
}

static void start_threads(void)
{
	crew.pid[0] = experiment_fork("worker", 0, crew.workers - 1);
	if (!crew.pid[0])
		all_threads();
	crew.nr_pids = 1;
}

/* So many workers have begun when this returns. */
void crew_start(const struct crew_work *how, uint64_t workers, bool threads)
{
	if (!board)
		board = experiment_share(sizeof(*board));
	memset(board, 0, sizeof(*board));
	crew.work = how;
	crew.workers = workers;
	if (threads)
		start_threads();
	else
		start_processes();
	experiment_wait(&board->ready, workers, crew.pid, crew.nr_pids);
}

/* All workers do the next step; from the first start to the last end of it. */
uint64_t crew_step(void)
{
	uint64_t first = ~0ULL, last = 0, i;

	bump(&board->phase);
	experiment_wait(&board->done, board->phase * crew.workers, crew.pid, crew.nr_pids);
	for (i = 0; i < crew.workers; i++) {
		first = board->worker[i].start < first ? board->worker[i].start : first;
		last = board->worker[i].end > last ? board->worker[i].end : last;
	}
	return last - first;
}

/* The time of the last step, summed over the workers. */
uint64_t crew_busy_ns(void)
{
	uint64_t ns = 0, i;

	for (i = 0; i < crew.workers; i++)
		ns += board->worker[i].end - board->worker[i].start;
	return ns;
}

void crew_stop(void)
{
	uint64_t i;

	for (i = 0; i < crew.nr_pids; i++) {
		kill(crew.pid[i], SIGKILL);
		waitpid(crew.pid[i], NULL, 0);
	}
}
