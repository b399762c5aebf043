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

/*
 * Everybody touches, then everybody gives back: `phase` counts both, and only
 * the time from the first touch to the last is measured.
 */
struct board {
	uint32_t ready, phase, done;	/* futexes */
	struct {
		uint64_t start, end, free_ns;
	} worker[MAX_WORKERS];
};

static struct board *board;

static void await_phase(uint32_t want)
{
	uint32_t seen;

	while ((seen = __atomic_load_n(&board->phase, __ATOMIC_ACQUIRE)) < want)
		futex_wait(&board->phase, seen, 0);
}

static void work(uint64_t nr)
{
	const struct experiment *exp = &sh->conf.exp;
	char *base = experiment_map(exp->pages);
	uint64_t round, i, t;

	bump(&board->ready);
	for (round = 0; round < exp->rounds; round++) {
		await_phase(2 * round + 1);
		board->worker[nr].start = now_ns();
		for (i = 0; i < exp->pages; i++)
			*(volatile char *)(base + i * PAGE) = 1;
		board->worker[nr].end = now_ns();
		bump(&board->done);
		await_phase(2 * round + 2);
		t = now_ns();
		madvise(base, exp->pages * PAGE, MADV_DONTNEED);
		board->worker[nr].free_ns += now_ns() - t;
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

/* From the first start to the last end of this round. */
static uint64_t round_ns(uint64_t workers)
{
	uint64_t first = ~0ULL, last = 0, i;

	for (i = 0; i < workers; i++) {
		first = board->worker[i].start < first ? board->worker[i].start : first;
		last = board->worker[i].end > last ? board->worker[i].end : last;
	}
	return last - first;
}

static uint64_t run_rounds(uint64_t workers, const pid_t *pids, uint64_t nr)
{
	uint64_t rounds = sh->conf.exp.rounds, ns = 0, phase;

	for (phase = 1; phase <= 2 * rounds; phase++) {
		bump(&board->phase);
		experiment_wait(&board->done, phase * workers, pids, nr);
		if (phase % 2)
			ns += round_ns(workers);
	}
	return ns;
}

static void measure(uint64_t workers, bool threads)
{
	const struct experiment *exp = &sh->conf.exp;
	uint64_t nr, ns, freeing = 0, i;
	pid_t pids[MAX_WORKERS] = { 0 };

	memset(board, 0, sizeof(*board));
	nr = start_workers(workers, threads, pids);
	experiment_wait(&board->ready, workers, pids, nr);
	experiment_quiet(exp->quiet_ms);
	ns = run_rounds(workers, pids, nr);
	for (i = 0; i < nr; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	for (i = 0; i < workers; i++)
		freeing += board->worker[i].free_ns;
	record("{\"r\":\"throughput\",\"t\":%llu,\"kind\":\"%s\",\"cpus\":%llu,"
	       "\"pages\":%llu,\"ns\":%llu,\"free_ns\":%llu}",
	       (unsigned long long)now_ns(), threads ? "thread" : "process",
	       (unsigned long long)workers,
	       (unsigned long long)(workers * exp->pages * exp->rounds),
	       (unsigned long long)ns, (unsigned long long)freeing);
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
