// SPDX-License-Identifier: GPL-2.0
/*
 * The low memory killer daemon, in both of Android's ways.
 *
 * minfree: the levels of the old kernel driver; a level is breached when both
 * free memory and file cache are below it. psi: stalls, watermarks and
 * thrashing, after lmkd's mp_event_psi(). Free memory is MemFree, as on any
 * phone: what is free in owned blocks and in the page-cache-preferred area is in it. The
 * victim is the process with the highest oom_score_adj, the one used longest ago
 * among equals, and never the foreground.
 *
 * "Swap is low" below a tenth of it, and without swap always, as anonymous
 * memory can go nowhere; with swap left only thrashing kills. Storage of the deterministic machine answers at once, so stalls are
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
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "measure/sampler.h"
#include "system/lmkd.h"
#include "system/role.h"

#define PSI_PATH "/proc/pressure/memory"
#define PSI_FDS 2			/* triggers of a domain: some, full */
#define DEATH_TIMEOUT_MS 1000
#define PERCEPTIBLE_ADJ 200
#define NO_KILL 1001
#define SWAP_LOW_PCT 10		/* ro.lmk.swap_free_low_percentage */
#define FLOOR_LEVEL 4		/* the minfree level that psi mode defends too */

struct memory {			/* pages */
	uint64_t free;			/* MemFree */
	uint64_t parked;		/* of it; only told */
	uint64_t file, refault, stall;
	uint64_t lower;			/* page cache of more trusted nodes */
};

struct marks {			/* pages, all zones */
	uint64_t min, low, high, reserve;
};

/*
 * Memory that is watched by itself: all of it, or that of one virtual node,
 * whose shortage is the matter of its own processes alone.
 */
struct domain {
	const struct role *role;	/* with a virtual node, or NULL for everything */
	struct marks marks;
	struct memory last;		/* at the check before */
	uint64_t scale_pct;		/* of the machine's memory: levels shrink with it */
	uint64_t cache_pct;		/* with more trusted nodes: those of page cache do */
	struct {
		uint64_t since, refault;
	} window;			/* refaults are counted over a second */
};

static struct domain domains[MAX_ROLES];
static int nr_domains;
static char text[16384];

static bool more_trusted(const struct domain *d, const struct domain *than)
{
	return d->role && d->role->nodes < than->role->nodes;
}

/*
 * The page cache in more trusted nodes belongs to all roles: the framework and the
 * libraries that all processes map are read by the system first.
 */
static uint64_t cache_of_more_trusted(const struct domain *than)
{
	uint64_t kb = 0;
	int i;

	for (i = 0; i < nr_domains; i++)
		if (more_trusted(&domains[i], than))
			kb += role_vnode_kb(domains[i].role, "file_kb");
	return kb / PAGE_KB;
}

/* Each line "WORD REST" about the zones that are the domain's. */
static void read_zones(const struct domain *d,
		       void (*take)(const char *word, const char *rest, void *to), void *to)
{
	static char zones[32768];
	char word[32], rest[200], *line, *save;
	unsigned int node;
	bool mine = true;

	if (slurp("/proc/zoneinfo", zones, sizeof(zones)) < 0)
		fatal("lmkd: /proc/zoneinfo: %s", strerror(errno));
	for (line = strtok_r(zones, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "Node %u, zone", &node) == 1)
			mine = !d->role || d->role->nodes >> node & 1;
		if (mine && sscanf(line, " %31s %199[^\n]", word, rest) == 2)
			take(word, rest, to);
	}
}

/* Stalls and refaults are counted by the kernel for the machine only. */
static void read_memory(const struct domain *d, struct memory *m)
{
	m->lower = 0;
	if (slurp("/proc/vmstat", text, sizeof(text)) < 0)
		fatal("lmkd: /proc/vmstat: %s", strerror(errno));
	m->refault = vmstat_value(text, "workingset_refault_file");
	m->stall = vmstat_value(text, "allocstall_normal") +
		   vmstat_value(text, "allocstall_movable") +
		   vmstat_value(text, "allocstall_dma32");
	if (d->role) {
		m->free = role_vnode_kb(d->role, "free_kb") / PAGE_KB;
		m->parked = role_vnode_kb(d->role, "parked_kb") / PAGE_KB;
		m->file = role_vnode_kb(d->role, "file_kb") / PAGE_KB;
		m->lower = cache_of_more_trusted(d);
		return;
	}
	m->free = vmstat_value(text, "nr_free_pages");
	m->parked = vmstat_value(text, "nr_cohort_owned") +
		    vmstat_value(text, "nr_cohort_reserved");
	m->file = vmstat_cache(text);
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

static void take_mark(const char *word, const char *rest, void *to)
{
	struct marks *m = to;

	if (!strcmp(word, "min"))
		m->min += strtoull(rest, NULL, 10);
	else if (!strcmp(word, "low"))
		m->low += strtoull(rest, NULL, 10);
	else if (!strcmp(word, "high"))
		m->reserve += strtoull(rest, NULL, 10);
	else if (!strcmp(word, "protection:"))
		m->reserve += max_protection(rest);
}

/* Watermarks, and the reserve that must not be counted on. */
static void read_marks(struct domain *d)
{
	struct marks m = { 0 };

	read_zones(d, take_mark, &m);
	m.high = m.min + 2 * (m.low - m.min);
	d->marks = m;
}

static bool watched(const char *vnode)
{
	int i;

	for (i = 0; i < nr_domains; i++)
		if (!strcmp(domains[i].role->vnode, vnode))
			return true;
	return false;
}

static void scale_cache(struct domain *d)
{
	int i;

	d->cache_pct = d->scale_pct;
	for (i = 0; i < nr_domains; i++)
		if (more_trusted(&domains[i], d))
			d->cache_pct += domains[i].scale_pct;
}

static void find_domains(void)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * PAGE_KB;
	int i;

	for (i = 0; i < sh->conf.nr_roles; i++) {
		const struct role *role = &sh->conf.role[i];

		if (role->kind != ROLE_VNODE || watched(role->vnode))
			continue;
		domains[nr_domains].scale_pct = role_vnode_kb(role, "size_kb") * 100 / all;
		domains[nr_domains++].role = role;
	}
	if (!nr_domains)
		domains[nr_domains++].scale_pct = 100;
	for (i = 0; i < nr_domains; i++) {
		scale_cache(&domains[i]);
		read_marks(&domains[i]);
		read_memory(&domains[i], &domains[i].last);
	}
}

/* Are both short of a level of a whole machine? */
static bool below(const struct domain *d, const struct memory *m, uint64_t free, uint64_t level)
{
	return free < level * d->scale_pct / 100 &&
	       m->file + m->lower < level * d->cache_pct / 100;
}

/* The highest adj that must go at these levels, NO_KILL if none. */
static int minfree_adj(const struct domain *d, const struct memory *m)
{
	const struct settings *set = &sh->conf.set;
	uint64_t free = m->free > d->marks.reserve ? m->free - d->marks.reserve : 0;
	int i;

	for (i = 0; i < MAX_MINFREE; i++)
		if (below(d, m, free, set->minfree_kb[i] / PAGE_KB))
			return set->minfree_adj[i] ? (int)set->minfree_adj[i] : 1;
	return NO_KILL;
}

static bool swap_is_low(void)
{
	struct sysinfo info;

	return sysinfo(&info) || info.freeswap <= info.totalswap * SWAP_LOW_PCT / 100;
}

static int psi_adj(const struct domain *d, const struct memory *m, bool partial, bool complete)
{
	uint64_t refaults = m->refault - d->window.refault;
	bool thrashing = refaults * 100 > m->file * sh->conf.set.lmkd_thrashing_pct;
	bool bare = below(d, m, m->free, sh->conf.set.minfree_kb[FLOOR_LEVEL] / PAGE_KB);

	if (complete || (bare && m->free < d->marks.low))
		return 1;
	if (bare)
		return PERCEPTIBLE_ADJ + 1;
	if (!partial && !thrashing && m->stall == d->last.stall)
		return NO_KILL;
	if (!thrashing && !swap_is_low())
		return NO_KILL;
	return m->free < d->marks.high ? PERCEPTIBLE_ADJ + 1 : NO_KILL;
}

static bool lives_in(const struct domain *d, int slot)
{
	int role = sh->conf.prof[slot].role;

	if (!d->role)
		return true;
	return role != NO_ROLE && !strcmp(sh->conf.role[role].vnode, d->role->vnode);
}

/* Is slot `i` a better victim than `best`? Protected processes come last. */
static bool rather(int i, int best)
{
	const struct slot *a = &sh->slot[i], *b = &sh->slot[best];
	bool spared = role_protected(sh->conf.prof[i].role);

	if (spared != role_protected(sh->conf.prof[best].role))
		return !spared;
	return a->adj > b->adj || (a->adj == b->adj && a->last_used < b->last_used);
}

static int pick(const struct domain *d, int min_adj)
{
	int i, best = -1;

	for (i = 0; i < sh->conf.nr_prof; i++) {
		struct slot *s = &sh->slot[i];

		if (s->pid <= 0 || s->adj < min_adj ||
		    s->lmkd_killed == (uint32_t)s->pid || !lives_in(d, i))
			continue;
		if (best < 0 || rather(i, best))
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
	static char zones[2048], owned[300];

	sampler_buddy(zones, sizeof(zones));
	sampler_owned(owned, sizeof(owned));
	record(RECORD_KILL_LMKD, (unsigned long long)t,
	       sh->launch, p->name, pid, adj, class_name(p, adj),
	       (unsigned long long)m->free * PAGE_KB, (unsigned long long)m->file * PAGE_KB,
	       (unsigned long long)m->parked * PAGE_KB, (unsigned long long)(now_ns() - t), zones, owned);
}

static bool kill_one(const struct domain *d, int min_adj, const struct memory *m)
{
	int victim = pick(d, min_adj), pid, pidfd, adj;
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

static void check(struct domain *d, bool partial, bool complete)
{
	uint64_t now = now_ns();
	struct memory m;
	int adj;

	do {
		read_memory(d, &m);
		adj = sh->conf.set.lmkd_psi ? psi_adj(d, &m, partial, complete) :
					      minfree_adj(d, &m);
		partial = complete = false;	/* one event, one kill */
		d->last = m;
	} while (adj != NO_KILL && kill_one(d, adj, &m));
	if (now - d->window.since > NSEC_PER_MSEC * 1000) {
		d->window.since = now;
		d->window.refault = m.refault;
	}
}

/* Stalls of all processes, or of the processes of one role. */
static int psi_trigger(const struct domain *d, const char *kind, uint64_t ms)
{
	char trigger[64], path[96] = PSI_PATH;
	int fd;

	if (d->role)
		snprintf(path, sizeof(path), CGROUPS "/%s/memory.pressure", d->role->name);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	snprintf(trigger, sizeof(trigger), "%s %llu 1000000", kind,
		 (unsigned long long)ms * 1000);
	if (fd < 0 || write(fd, trigger, strlen(trigger) + 1) < 0)
		fatal("lmkd: %s: %s", path, strerror(errno));
	return fd;
}

/* Was this trigger of a domain hit? Never without triggers. */
static bool hit(const struct pollfd *fds, int nr, int domain, int which)
{
	int i = 1 + PSI_FDS * domain + which;

	return i < nr && fds[i].revents & POLLPRI;
}

static void loop(struct pollfd *fds, int nr)
{
	const struct settings *set = &sh->conf.set;
	char drain[64];
	int i;

	for (;;) {
		uint32_t busy = __atomic_load_n(&sh->busy, __ATOMIC_ACQUIRE);

		if (poll(fds, nr, busy ? set->lmkd_poll_ms : set->lmkd_idle_ms) < 0)
			continue;
		if (fds[0].revents && read(fds[0].fd, drain, sizeof(drain)) < 0)
			fatal("lmkd: pipe: %s", strerror(errno));
		for (i = 0; i < nr_domains; i++) {
			if (fds[0].revents)
				read_marks(&domains[i]);	/* a policy may have moved them */
			check(&domains[i], hit(fds, nr, i, 0), hit(fds, nr, i, 1));
		}
	}
}

void lmkd_main(void)
{
	const struct settings *set = &sh->conf.set;
	struct sched_param fifo = { .sched_priority = 1 };
	struct pollfd fds[1 + PSI_FDS * MAX_ROLES] = {
		{ .fd = sh->lmkd_pipe[0], .events = POLLIN },
	};
	int i, nr = 1;

	set_name("lmkd");
	find_domains();
	mlockall(MCL_CURRENT | MCL_FUTURE);
	sched_setscheduler(0, SCHED_FIFO, &fifo);
	for (i = 0; set->lmkd_psi && i < nr_domains; i++) {
		fds[nr].events = fds[nr + 1].events = POLLPRI;
		fds[nr++].fd = psi_trigger(&domains[i], "some", set->lmkd_psi_partial_ms);
		fds[nr++].fd = psi_trigger(&domains[i], "full", set->lmkd_psi_complete_ms);
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
