// SPDX-License-Identifier: GPL-2.0
/*
 * cpuplug ROUNDS [SEED]
 *
 * CPUs go and come back under processes that fault, free and check. What a CPU had at
 * hand may neither be lost nor be in two places; threads that were bound to it go on.
 */
#include "load.h"

#define ONLINE "/sys/devices/system/cpu/cpu1/online"

static volatile int stop;
static volatile unsigned long turns[2];

/* Bound to a CPU: what it frees is at hand there when the CPU goes. */
static void *bound(void *number)
{
	int cpu = (intptr_t)number;
	uint64_t state = mix(cpu + 5);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	while (!stop) {
		unsigned long n = 64 + (state = mix(state)) % 512, i;
		char *p = map_anon(n * PG);

		/* Again and again: a CPU that went away is none of a thread's any more. */
		pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
		fill_run(p, n, state);
		for (i = 0; i < n; i += 3)
			madvise(p + i * PG, PG, MADV_DONTNEED);
		for (i = 0; i < n; i++)
			check_page(p + i * PG, i % 3 ? state + i : 0, "bound to a CPU");
		munmap(p, n * PG);
		turns[cpu]++;
	}
	return NULL;
}

/* What is done late for one CPU that went may keep it from coming back for a while. */
static void bring_back(void)
{
	int err = -1, i;

	for (i = 0; i < 50 && err; i++) {
		err = put(ONLINE, "1");
		if (err)
			nap_ms(50);
	}
	if (err)
		die("online: %s", strerror(-err));
}

/* Has the CPU gone, and come back? */
static bool plug(long r)
{
	int err = put(ONLINE, "0"), i;

	if (err && err != -EBUSY)
		die("offline: %s", strerror(-err));
	if (r % 4 == 1)
		compact();
	if (r % 4 == 2)
		put("/proc/sys/vm/drop_caches", "1");
	load_wait(1);
	if (!err)
		bring_back();
	load_wait(1);
	/* At once after the other: what is done late for the one meets the next. */
	for (i = 0; i < 3 && r % 5 == 4; i++) {
		put(ONLINE, "0");
		put(ONLINE, "1");
	}
	return !err;
}

int main(int argc, char **argv)
{
	long rounds = arg(argc, argv, 1, 20), r, i;
	unsigned long off = 0;
	pthread_t threads[2];

	begin("cpuplug", arg(argc, argv, 2, 28));
	if (get_long(ONLINE, -1) != 1)
		skip("no CPU 1 that can go");
	load_start(6, budget_mb() / 20, 48);
	for (i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, bound, (void *)i))
			die("pthread_create");
	for (r = 0; r < rounds; r++)
		off += plug(r);
	if (get_long(ONLINE, -1) != 1)
		bring_back();
	stop = 1;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	load_end();
	figure("cpu_unplugged", off, "");
	figure("cpu_refused", rounds - off, "");
	figure("bound_turns", turns[0] + turns[1], "");
	return 0;
}
