// SPDX-License-Identifier: GPL-2.0
/*
 * What experiments have in common. One is the part of a workload after its launches:
 * of a paper, on a phone that has been used. The activity manager runs it; the phone
 * goes on meanwhile, its dead are noticed and their buffers freed.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kernel.h"
#include "base/records.h"
#include "base/util.h"
#include "experiments/lib.h"
#include "system/am.h"

#define WATCH_NS (100 * NSEC_PER_MSEC)

/* Nothing happens but what the kernel and lmkd do by themselves. */
void experiment_quiet(uint64_t ms)
{
	uint64_t end = now_ns() + ms * NSEC_PER_MSEC, now;

	while ((now = now_ns()) < end) {
		am_notice();
		sleep_until(now + WATCH_NS < end ? now + WATCH_NS : end);
	}
}

/* Wait until so many of them have said so; fatal if one has died instead. */
void experiment_wait(uint32_t *done, uint32_t want, const pid_t *pids, uint64_t nr)
{
	uint32_t seen;
	uint64_t i;

	while ((seen = __atomic_load_n(done, __ATOMIC_ACQUIRE)) < want) {
		am_notice();
		for (i = 0; i < nr; i++)
			if (waitpid(pids[i], NULL, WNOHANG) == pids[i])
				fatal("experiment: process %llu died", (unsigned long long)i);
		futex_wait(done, seen, WATCH_NS);
	}
	am_notice();
}

/* Memory the experiment's processes share, there before anything is measured. */
void *experiment_share(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		fatal("experiment: %s", strerror(errno));
	return p;
}

/*
 * Fork a process of the experiment, in the foreground for every task that looks
 * for a victim. It may use the CPUs first to last.
 */
pid_t experiment_fork(const char *name, uint64_t first_cpu, uint64_t last_cpu)
{
	cpu_set_t cpus;
	uint64_t cpu;
	pid_t pid = fork();

	if (pid < 0)
		fatal("experiment: fork: %s", strerror(errno));
	if (pid)
		return pid;
	set_adj(getpid(), ADJ_FOREGROUND);
	set_name(name);
	CPU_ZERO(&cpus);
	for (cpu = first_cpu; cpu <= last_cpu; cpu++)
		CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fatal("experiment: CPUs %llu to %llu: %s", (unsigned long long)first_cpu,
		      (unsigned long long)last_cpu, strerror(errno));
	return 0;
}

char *experiment_map(uint64_t pages)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		fatal("experiment: %s", strerror(errno));
	return p;
}

/* Every page is faulted in. */
void experiment_touch(char *base, uint64_t pages)
{
	uint64_t i;

	for (i = 0; i < pages; i++)
		*(volatile char *)(base + i * PAGE) = 1;
}
