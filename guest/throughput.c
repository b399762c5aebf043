// SPDX-License-Identifier: GPL-2.0
/*
 * How many fresh pages a second 1, 2, 4, ... CPUs can have at once: each CPU's
 * worker touches its memory, gives it back and starts again, first as processes
 * of their own, then as threads of one.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phone.h"

#define MAX_WORKERS 64

struct board {
	uint32_t ready, go, done;	/* futexes */
	struct {
		uint64_t touch_ns, free_ns;
	} worker[MAX_WORKERS];
};

static struct board *board;

static void work(uint64_t nr)
{
	const struct experiment *exp = &sh->conf.exp;
	char *base = experiment_map(exp->pages);
	uint64_t touching = 0, freeing = 0, round, i, t;

	bump(&board->ready);
	while (!__atomic_load_n(&board->go, __ATOMIC_ACQUIRE))
		futex_wait(&board->go, 0, 0);
	for (round = 0; round < exp->rounds; round++) {
		t = now_ns();
		for (i = 0; i < exp->pages; i++)
			*(volatile char *)(base + i * PAGE) = 1;
		touching += now_ns() - t;
		t = now_ns();
		madvise(base, exp->pages * PAGE, MADV_DONTNEED);
		freeing += now_ns() - t;
	}
	board->worker[nr].touch_ns = touching;
	board->worker[nr].free_ns = freeing;
	bump(&board->done);
}

static void *thread(void *arg)
{
	uint64_t nr = (uintptr_t)arg;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(nr, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	work(nr);
	return NULL;
}

static void __attribute__((noreturn)) all_threads(uint64_t workers)
{
	pthread_t t;
	uint64_t i;

	for (i = 0; i < workers; i++)
		if (pthread_create(&t, NULL, thread, (void *)(uintptr_t)i))
			fatal("experiment: pthread_create: %s", strerror(errno));
	for (;;)
		pause();
}

static uint64_t start_workers(uint64_t workers, bool threads, pid_t *pids)
{
	uint64_t i;

	if (threads) {
		pids[0] = experiment_fork("worker", 0, workers - 1);
		if (!pids[0])
			all_threads(workers);
		return 1;
	}
	for (i = 0; i < workers; i++) {
		pids[i] = experiment_fork("worker", i, i);
		if (pids[i])
			continue;
		work(i);
		for (;;)
			pause();
	}
	return workers;
}

static void report(uint64_t workers, bool threads)
{
	uint64_t pages = sh->conf.exp.pages * sh->conf.exp.rounds, touching = 0, freeing = 0, i;
	double rate = 0;

	for (i = 0; i < workers; i++) {
		rate += pages * 1e9 / board->worker[i].touch_ns;
		touching += board->worker[i].touch_ns;
		freeing += board->worker[i].free_ns;
	}
	record("{\"r\":\"throughput\",\"t\":%llu,\"kind\":\"%s\",\"cpus\":%llu,"
	       "\"pages\":%llu,\"per_s\":%.1f,\"touch_ns\":%llu,\"free_ns\":%llu}",
	       (unsigned long long)now_ns(), threads ? "thread" : "process",
	       (unsigned long long)workers, (unsigned long long)(workers * pages), rate,
	       (unsigned long long)touching, (unsigned long long)freeing);
}

static void measure(uint64_t workers, bool threads)
{
	pid_t pids[MAX_WORKERS] = { 0 };
	uint64_t nr, i;

	memset(board, 0, sizeof(*board));
	nr = start_workers(workers, threads, pids);
	experiment_wait(&board->ready, workers, pids, nr);
	experiment_quiet(sh->conf.exp.quiet_ms);
	bump(&board->go);
	experiment_wait(&board->done, workers, pids, nr);
	for (i = 0; i < nr; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	report(workers, threads);
}

void throughput_run(void)
{
	uint64_t cpus = sysconf(_SC_NPROCESSORS_ONLN), workers;

	board = experiment_share(sizeof(*board));
	for (workers = 1; workers <= cpus && workers <= MAX_WORKERS; workers *= 2)
		measure(workers, false);
	for (workers = 1; workers <= cpus && workers <= MAX_WORKERS; workers *= 2)
		measure(workers, true);
}
