// SPDX-License-Identifier: GPL-2.0
/*
 * The low memory killer daemon, in both of Android's ways.
 *
 * minfree: the levels of the old kernel driver; a level is breached when both
 * free memory and file cache are below it. psi: stalls, watermarks and
 * thrashing, after lmkd's mp_event_psi(). Parked pages (nr_cohort_free) count
 * as free in both. The victim is the process with the highest oom_score_adj,
 * the one used longest ago among equals, and never the foreground.
 *
 * Without swap "swap is low" is always true, as anonymous memory can go
 * nowhere. Storage of the deterministic machine answers at once, so stalls are
 * short: an allocation that had to reclaim counts as an event too, and one of
 * the lower minfree levels stays in force.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "phone.h"

#define PSI_PATH "/proc/pressure/memory"
#define DEATH_TIMEOUT_MS 1000
#define PERCEPTIBLE_ADJ 200
#define NO_KILL 1001
#define FLOOR_LEVEL 4		/* the minfree level that psi mode defends too */

struct memory {			/* pages */
	uint64_t free, parked, file, refault, stall;
};

struct marks {			/* pages, all zones */
	uint64_t min, low, high, reserve;
};

static struct marks marks;
static struct memory last;	/* at the check before */
static struct {
	uint64_t since, refault;
} window;			/* refaults are counted over a second */
static char text[16384];

static void read_memory(struct memory *m)
{
	uint64_t file;

	if (slurp("/proc/vmstat", text, sizeof(text)) < 0)
		fatal("lmkd: /proc/vmstat: %s", strerror(errno));
	m->free = vmstat_value(text, "nr_free_pages");
	m->parked = vmstat_value(text, "nr_cohort_free");
	file = vmstat_value(text, "nr_file_pages");
	m->file = file - vmstat_value(text, "nr_shmem");
	m->refault = vmstat_value(text, "workingset_refault_file");
	m->stall = vmstat_value(text, "allocstall_normal") +
		   vmstat_value(text, "allocstall_movable") +
		   vmstat_value(text, "allocstall_dma32");
}

static uint64_t max_protection(const char *list)
{
	uint64_t max = 0, v;
	char *end;

	for (list++; *list && *list != ')'; list = end + strspn(end, ", ")) {
		v = strtoull(list, &end, 10);
		if (end == list)
			break;
		if (v > max)
			max = v;
	}
	return max;
}

/* Watermarks and the reserve no one may count on, from /proc/zoneinfo. */
static void read_marks(void)
{
	static char zones[32768];
	char word[32], rest[200], *line, *save;
	struct marks m = { 0 };

	if (slurp("/proc/zoneinfo", zones, sizeof(zones)) < 0)
		fatal("lmkd: /proc/zoneinfo: %s", strerror(errno));
	for (line = strtok_r(zones, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, " %31s %199[^\n]", word, rest) != 2)
			continue;
		if (!strcmp(word, "min"))
			m.min += strtoull(rest, NULL, 10);
		else if (!strcmp(word, "low"))
			m.low += strtoull(rest, NULL, 10);
		else if (!strcmp(word, "high"))
			m.reserve += strtoull(rest, NULL, 10);
		else if (!strcmp(word, "protection:"))
			m.reserve += max_protection(rest);
	}
	m.high = m.min + 2 * (m.low - m.min);
	marks = m;
}

/* The highest adj that must go at these levels, NO_KILL if none. */
static int minfree_adj(const struct memory *m)
{
	const struct settings *set = &sh->conf.set;
	uint64_t free = m->free + m->parked;
	int i;

	free = free > marks.reserve ? free - marks.reserve : 0;
	for (i = 0; i < MAX_MINFREE; i++)
		if (free * 4 < set->minfree_kb[i] && m->file * 4 < set->minfree_kb[i])
			return set->minfree_adj[i] ? (int)set->minfree_adj[i] : 1;
	return NO_KILL;
}

static int psi_adj(const struct memory *m, bool partial, bool complete)
{
	uint64_t free = m->free + m->parked;
	uint64_t refaults = m->refault - window.refault;
	bool thrashing = refaults * 100 > m->file * sh->conf.set.lmkd_thrashing_pct;

	uint64_t floor = sh->conf.set.minfree_kb[FLOOR_LEVEL] / 4;
	bool bare = free < floor && m->file < floor;

	if (complete || (bare && free < marks.low))
		return 1;
	if (bare)
		return PERCEPTIBLE_ADJ + 1;
	if (!partial && !thrashing && m->stall == last.stall)
		return NO_KILL;
	return free < marks.high ? PERCEPTIBLE_ADJ + 1 : NO_KILL;
}

static int pick(int min_adj)
{
	int i, best = -1;

	for (i = 0; i < sh->conf.nr_prof; i++) {
		struct slot *s = &sh->slot[i];

		if (s->pid <= 0 || s->adj < min_adj || s->lmkd_killed == (uint32_t)s->pid)
			continue;
		if (best < 0 || s->adj > sh->slot[best].adj ||
		    (s->adj == sh->slot[best].adj && s->last_used < sh->slot[best].last_used))
			best = i;
	}
	return best;
}

static const char *class_name(const struct profile *p, int adj)
{
	if (p->class == CLASS_APP)
		return adj >= ADJ_PREVIOUS ? "cached" : "normal";
	if (p->class == CLASS_NORMAL)
		return "normal";
	return p->class == CLASS_SERVICE ? "service" : "persistent";
}

static void wait_death(int pidfd)
{
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };

	syscall(SYS_process_mrelease, pidfd, 0);
	poll(&fd, 1, DEATH_TIMEOUT_MS);
}

/* `m` is the memory when it was decided; the free lists are those of now. */
static void report(int victim, int pid, int adj, uint64_t t, const struct memory *m)
{
	const struct profile *p = &sh->conf.prof[victim];
	static char zones[2048];

	sampler_buddy(zones, sizeof(zones));
	record("{\"r\":\"kill\",\"t\":%llu,\"n\":%u,\"app\":\"%s\",\"pid\":%d,\"adj\":%d,"
	       "\"class\":\"%s\",\"by\":\"lmkd\",\"free_kb\":%llu,\"file_kb\":%llu,"
	       "\"parked_kb\":%llu,\"ns\":%llu,\"buddy\":[%s]}", (unsigned long long)t,
	       sh->launch, p->name, pid, adj, class_name(p, adj),
	       (unsigned long long)m->free * 4, (unsigned long long)m->file * 4,
	       (unsigned long long)m->parked * 4, (unsigned long long)(now_ns() - t), zones);
}

static bool kill_one(int min_adj, const struct memory *m)
{
	int victim = pick(min_adj), pid, pidfd, adj;
	struct slot *s;
	uint64_t t;

	if (victim < 0)
		return false;
	s = &sh->slot[victim];
	pid = s->pid;
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return false;
	s->lmkd_killed = pid;
	syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	t = now_ns();
	adj = s->adj;
	wait_death(pidfd);
	report(victim, pid, adj, t, m);
	close(pidfd);
	return true;
}

static void check(bool partial, bool complete)
{
	uint64_t now = now_ns();
	struct memory m;
	int adj;

	do {
		read_memory(&m);
		adj = sh->conf.set.lmkd_psi ? psi_adj(&m, partial, complete) :
					      minfree_adj(&m);
		partial = complete = false;	/* one event, one kill */
		last = m;
	} while (adj != NO_KILL && kill_one(adj, &m));
	if (now - window.since > NSEC_PER_MSEC * 1000) {
		window.since = now;
		window.refault = m.refault;
	}
}

static int psi_trigger(const char *kind, uint64_t ms)
{
	char trigger[64];
	int fd = open(PSI_PATH, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	snprintf(trigger, sizeof(trigger), "%s %llu 1000000", kind,
		 (unsigned long long)ms * 1000);
	if (fd < 0 || write(fd, trigger, strlen(trigger) + 1) < 0)
		fatal("lmkd: %s: %s", PSI_PATH, strerror(errno));
	return fd;
}

static void loop(struct pollfd *fds, int nr)
{
	const struct settings *set = &sh->conf.set;
	char drain[64];

	for (;;) {
		uint32_t busy = __atomic_load_n(&sh->busy, __ATOMIC_ACQUIRE);

		if (poll(fds, nr, busy ? set->lmkd_poll_ms : set->lmkd_idle_ms) < 0)
			continue;
		if (fds[0].revents && read(fds[0].fd, drain, sizeof(drain)) < 0)
			fatal("lmkd: pipe: %s", strerror(errno));
		if (fds[0].revents)
			read_marks();	/* a policy may have moved them */
		check(nr > 1 && fds[1].revents & POLLPRI, nr > 1 && fds[2].revents & POLLPRI);
	}
}

void lmkd_main(void)
{
	const struct settings *set = &sh->conf.set;
	struct sched_param fifo = { .sched_priority = 1 };
	struct pollfd fds[3] = { { .fd = sh->lmkd_pipe[0], .events = POLLIN } };
	int nr = 1;

	set_name("lmkd");
	read_marks();
	read_memory(&last);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	sched_setscheduler(0, SCHED_FIFO, &fifo);
	if (set->lmkd_psi) {
		fds[1].fd = psi_trigger("some", set->lmkd_psi_partial_ms);
		fds[2].fd = psi_trigger("full", set->lmkd_psi_complete_ms);
		fds[1].events = fds[2].events = POLLPRI;
		nr = 3;
	}
	loop(fds, nr);
	for (;;)
		pause();
}

/* Tell lmkd that sh->busy changed, so that it takes the other period. */
void lmkd_wake(void)
{
	if (write(sh->lmkd_pipe[1], "", 1) != 1)
		fatal("lmkd pipe: %s", strerror(errno));
}
