// SPDX-License-Identifier: GPL-2.0
/*
 * How many fresh pages a second 1, 2, 4, ... CPUs can have at once: each CPU's
 * worker touches its memory, gives it back and starts again, first as processes
 * of their own, then as threads of one. Only the touching is in the throughput.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "experiments/crew.h"
#include "experiments/lib.h"
#include "experiments/throughput.h"

static void *begin(uint64_t nr)
{
	return experiment_map(sh->conf.exp.pages);
}

static void step(void *own, uint64_t nr)
{
	if (nr % 2)
		madvise(own, sh->conf.exp.pages * PAGE, MADV_DONTNEED);
	else
		experiment_touch(own, sh->conf.exp.pages);
}

static void measure(uint64_t workers, bool threads)
{
	static const struct crew_work work = { begin, step };
	const struct experiment *exp = &sh->conf.exp;
	uint64_t ns = 0, freeing = 0, i;

	crew_start(&work, workers, threads);
	experiment_quiet(exp->quiet_ms);
	for (i = 0; i < exp->rounds; i++) {
		ns += crew_step();
		crew_step();
		freeing += crew_busy_ns();
	}
	crew_stop();
	record(RECORD_THROUGHPUT, (unsigned long long)now_ns(), threads ? "thread" : "process",
	       (unsigned long long)workers,
	       (unsigned long long)(workers * exp->pages * exp->rounds),
	       (unsigned long long)ns, (unsigned long long)freeing);
}

void throughput_run(void)
{
	uint64_t cpus = sysconf(_SC_NPROCESSORS_ONLN), workers;

	for (workers = 1; workers <= cpus && workers <= CREW_MAX; workers *= 2)
		measure(workers, false);
	for (workers = 1; workers <= cpus && workers <= CREW_MAX; workers *= 2)
		measure(workers, true);
}
