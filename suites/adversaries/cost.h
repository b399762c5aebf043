/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a program costs its victim. Three things can make a round take longer:
 *
 *   CPU time   of the victim itself: it faults, it reclaims, it spins for a lock
 *   waits      it is asleep in the round: for a page that is locked, read or
 *              written, for reclaim of others, for a lock
 *   threads    of the kernel have the CPU in its place: reclaim, compaction,
 *              packing, writeback
 *
 * A fourth one is left out, the CPU time of the program beside it: a user has
 * that by right, by how many of its processes can run. It is not the same under
 * two policies, as a program that waits more runs less, so a clock on the wall
 * would find a victim slower where the program waits less. Nor is the program
 * stopped for a measure: what it does at this moment is what is measured.
 *
 * So a wait is time on the wall less CPU time, less the time for which the victim
 * stood in the queue of the CPU. The last is what cpu.pressure of a group of one
 * process says, to the microsecond and on any kernel that has PSI; memory.pressure
 * knows reclaim and thrashing only, and neither locks nor pages that others hold.
 * What kernel threads take is in none of these: on one CPU they have their part of
 * it, and the users all have less. How much less is told by itself, as the time in
 * which users have a millisecond.
 */
#ifndef COST_H
#define COST_H

#include <dirent.h>

#include "victim.h"

#define KERNEL_THREAD 0x00200000UL	/* PF_KTHREAD in /proc/PID/stat */
#define PATIENCE_MS 60000		/* for the end of a round */
#define POLL_MS 5

struct cost {
	double cpu_us, wait_us;	/* of a round */
	double users_us;	/* until users have had a millisecond of the CPU */
};

static bool is_kernel_thread(const char *pid)
{
	char path[300], text[512] = "";
	unsigned long flags = 0;
	const char *rest;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	/* A name may have blanks and parentheses. */
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags) != 1)
		return false;
	return flags & KERNEL_THREAD;
}

/* CPU time of all kernel threads there are: one that ends takes its own along. */
static double kernel_threads_ns(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	double ns = 0;
	clockid_t clock;

	if (!proc)
		die("/proc");
	while ((entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0 && is_kernel_thread(entry->d_name) &&
		    !clock_getcpuclockid(pid, &clock))
			ns += clock_ns(clock);
	}
	closedir(proc);
	return ns;
}

/* The end of the victim's next round; false if there is none. */
static bool next_moment(struct moment *moment)
{
	unsigned int ms;

	told->asked = true;
	for (ms = 0; told->asked && ms < PATIENCE_MS; ms += POLL_MS)
		nap(POLL_MS);
	*moment = told->moment;
	return !told->asked;
}

/* What whole rounds cost for so long; false if the victim makes none. */
static bool cost_now(unsigned int seconds, struct cost *cost)
{
	double wall_ns, threads_ns, busy_ns, all_ns;
	struct moment from, to;
	uint64_t rounds;

	if (!next_moment(&from))
		return false;
	all_ns = clock_ns(CLOCK_MONOTONIC);
	threads_ns = kernel_threads_ns();
	nap(seconds * 1000);
	if (!next_moment(&to))
		return false;
	threads_ns = kernel_threads_ns() - threads_ns;
	all_ns = (clock_ns(CLOCK_MONOTONIC) - all_ns) * sysconf(_SC_NPROCESSORS_ONLN);
	rounds = to.rounds - from.rounds;
	wall_ns = to.wall_ns - from.wall_ns;
	busy_ns = to.cpu_ns - from.cpu_ns + to.queued_ns - from.queued_ns;
	cost->cpu_us = (to.cpu_ns - from.cpu_ns) / 1e3 / rounds;
	cost->wait_us = wall_ns > busy_ns ? (wall_ns - busy_ns) / 1e3 / rounds : 0;
	cost->users_us = 1e3 / (1 - (threads_ns > 0 ? threads_ns / all_ns : 0));
	return true;
}

/* Costs are compared between policies; what of a round are waits is told beside. */
static void tell_cost(const struct cost *cost)
{
	printf("# cost round_us %.1f\n", cost->cpu_us);
	printf("# cost whole_us %.1f\n", cost->cpu_us + cost->wait_us);
	printf("# cost users_us %.1f\n", cost->users_us);
	printf("# figure wait_us %.1f us\n", cost->wait_us);
}

#endif
