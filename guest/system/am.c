// SPDX-License-Identifier: GPL-2.0
/*
 * The activity manager: boots the phone's processes, then replays the launch
 * sequence. For each launch it starts or resumes the app, waits until it is
 * ready, lets it be used, goes home. It writes oom_score_adj as Android does,
 * frees the buffers of what left the screen once the next has drawn, and
 * notices processes that died.
 */
#include <string.h>
#include <unistd.h>

#include "apps/buffers.h"
#include "apps/camera.h"
#include "apps/judge.h"
#include "apps/process.h"
#include "base/kernel.h"
#include "base/records.h"
#include "base/util.h"
#include "measure/map.h"
#include "measure/sampler.h"
#include "system/am.h"
#include "system/lmkd.h"
#include "system/zygote.h"

#define NO_APP (-1)
#define BOOT_PARALLEL 6		/* processes that start at the same time */
#define CACHED_STEP 10		/* adj between two neighbours in the LRU list */

static int32_t known_pid[MAX_SLOTS];
static int home = NO_APP;
static int foreground = NO_APP;
static int previous = NO_APP;

static const struct profile *prof(int i)
{
	return &sh->conf.prof[i];
}

static bool alive(int i)
{
	return __atomic_load_n(&sh->slot[i].pid, __ATOMIC_ACQUIRE) > 0;
}

static void assign_adj(int i, int adj)
{
	struct slot *s = &sh->slot[i];

	if (s->adj == adj)
		return;
	s->adj = adj;
	if (alive(i))
		set_adj(s->pid, adj);
}

/* Position in the list of cached apps, 0 for the one used last. */
static int lru_rank(int i)
{
	int k, rank = 0;

	for (k = 0; k < sh->conf.nr_prof; k++)
		if (prof(k)->class == CLASS_APP && k != home && k != previous &&
		    alive(k) && sh->slot[k].last_used > sh->slot[i].last_used)
			rank++;
	return rank;
}

static void update_adjs(void)
{
	int i, adj;

	for (i = 0; i < sh->conf.nr_prof; i++) {
		if (prof(i)->class != CLASS_APP || !alive(i))
			continue;
		adj = ADJ_CACHED + CACHED_STEP * lru_rank(i);
		if (i == foreground)
			adj = ADJ_FOREGROUND;
		else if (i == home)
			adj = ADJ_HOME;
		else if (i == previous)
			adj = ADJ_PREVIOUS;
		assign_adj(i, adj < ADJ_CACHED_MAX ? adj : ADJ_CACHED_MAX);
	}
}

static void died_alone(int i, int pid)
{
	struct slot *s = &sh->slot[i];

	record(RECORD_KILL_OOM, (unsigned long long)now_ns(), sh->launch,
	       prof(i)->name, pid, s->adj,
	       prof(i)->class == CLASS_APP ? "cached" : "service",
	       (unsigned long long)read_vmstat("nr_free_pages") * PAGE_KB,
	       (unsigned long long)read_vmstat("nr_file_pages") * PAGE_KB,
	       (unsigned long long)(read_vmstat("nr_cohort_owned") +
				    read_vmstat("nr_cohort_reserved")) * PAGE_KB);
	/* An app killed in the cache just before it comes to the screen starts cold: no failure. */
	if (s->adj == ADJ_FOREGROUND || prof(i)->class == CLASS_PERSISTENT)
		fatal("out of memory: the kernel killed %s (adj %d) in launch %u",
		      prof(i)->name, s->adj, sh->launch);
}

/* Notice deaths: buffers go, an OOM kill is recorded, the foreground is fatal. */
void am_notice(void)
{
	int i, pid;

	for (i = 0; i < sh->conf.nr_prof; i++) {
		pid = __atomic_load_n(&sh->slot[i].pid, __ATOMIC_ACQUIRE);
		if (pid == known_pid[i])
			continue;
		if (known_pid[i] && sh->slot[i].lmkd_killed != (uint32_t)known_pid[i])
			died_alone(i, known_pid[i]);
		if (known_pid[i])
			buffer_free_all_async(i);
		known_pid[i] = pid;
	}
}

static void command(int i, enum op op)
{
	struct slot *s = &sh->slot[i];

	s->op = op;
	s->launch = sh->launch;
	__atomic_add_fetch(&s->seq, 1, __ATOMIC_SEQ_CST);
	futex_wake(&s->seq);
}

static void start(int i, int adj)
{
	struct slot *s = &sh->slot[i];

	s->adj = adj;
	s->done = s->seq;
	s->majflt = s->cpu_ns = 0;
	s->lmkd_killed = 0;
	command(i, OP_START);
	zygote_fork(i);
}

static void wake_some(struct rng *r, bool cached, uint64_t n);

/* The camera asks for its buffers: the camera service and its like are at work, too. */
static void camera_opens(void)
{
	static uint32_t last;
	uint32_t launch = __atomic_load_n(&sh->camera_opens, __ATOMIC_ACQUIRE);
	struct rng r;

	if (launch == last)
		return;
	last = launch;
	rng_seed(&r, sh->conf.seed, ((uint64_t)launch << 16) | 0xfffe);
	wake_some(&r, false, sh->conf.camera.woken);
}

/* Wait until the app has done its command; false if it died instead. */
static bool wait_idle(int i)
{
	uint64_t limit = now_ns() + sh->conf.set.launch_timeout_ms * NSEC_PER_MSEC;
	bool lived = false;	/* or it may be about to be forked */
	uint32_t seen;

	for (;;) {
		seen = __atomic_load_n(&sh->am_event, __ATOMIC_ACQUIRE);
		lived |= known_pid[i] != 0;
		am_notice();
		camera_opens();
		if (slot_idle(&sh->slot[i]))
			return true;
		if (!known_pid[i] && (lived || sh->slot[i].lmkd_killed))
			return false;
		if (now_ns() > limit)
			fatal("no progress: %s not ready after %llu ms in launch %u",
			      prof(i)->name,
			      (unsigned long long)sh->conf.set.launch_timeout_ms, sh->launch);
		futex_wait(&sh->am_event, seen, NSEC_PER_MSEC * 1000);
	}
}

/* ---- boot ---- */
void am_boot(void)
{
	int i, first = 0;

	for (i = 0; i < sh->conf.nr_prof; i++) {
		if (prof(i)->class == CLASS_APP && !prof(i)->home)
			continue;
		start(i, prof(i)->home ? ADJ_HOME : prof(i)->adj);
		if (prof(i)->home)
			home = i;
		while (i - first >= BOOT_PARALLEL)
			wait_idle(first++);
	}
	for (i = 0; i < sh->conf.nr_prof; i++)
		if (alive(i))
			wait_idle(i);
	if (home == NO_APP)
		fatal("phone.conf: no app with home=1");
}

/* Services come back at once, normal processes when a broadcast wakes one. */
static void restart_dead(uint32_t launch)
{
	bool normal = launch % sh->conf.set.normal_restart == 0;
	int i;

	am_notice();	/* the record tells which killer it was, and start() forgets it */
	for (i = 0; i < sh->conf.nr_prof; i++) {
		if (prof(i)->class == CLASS_APP || alive(i) || known_pid[i])
			continue;
		if (prof(i)->class == CLASS_NORMAL && !normal)
			continue;
		if (prof(i)->class == CLASS_NORMAL)
			normal = false;
		start(i, prof(i)->adj);
	}
}

/* ---- one launch ---- */
static void wake_some(struct rng *r, bool cached, uint64_t n)
{
	uint64_t tries = n * 4;
	int i;

	while (n && tries--) {
		i = rng_below(r, sh->conf.nr_prof);
		if (i == foreground || i == home || !known_pid[i] ||
		    (prof(i)->class == CLASS_APP) != cached || !slot_idle(&sh->slot[i]))
			continue;
		command(i, OP_WORK);
		n--;
	}
}

/* To the screen: true if the app had to be started. */
static bool bring_up(int app)
{
	foreground = app;
	if (alive(app))
		wait_idle(app);
	am_notice();
	if (!alive(app)) {
		start(app, ADJ_FOREGROUND);
		return true;
	}
	assign_adj(app, ADJ_FOREGROUND);
	command(app, OP_RESUME);
	return false;
}

/*
 * Wait until it is ready. lmkd may have chosen it just before it came to the
 * screen, as happens on a phone; then it starts cold. Returns true if it did.
 */
static bool wait_ready(int app)
{
	if (wait_idle(app))
		return false;
	start(app, ADJ_FOREGROUND);
	if (!wait_idle(app))
		fatal("%s was killed while starting in launch %u", prof(app)->name, sh->launch);
	return true;
}

static void launch_app(int app, struct rng *r)
{
	struct slot *s = &sh->slot[app];
	uint64_t t, majflt = s->majflt, cpu = s->cpu_ns;
	struct camera_cost cost;
	bool cold;

	camera_cost_begin(&cost);
	t = now_ns();
	camera_announce(app);
	cold = bring_up(app);
	s->last_used = sh->launch;
	update_adjs();
	wake_some(r, false, sh->conf.set.services_woken);
	wake_some(r, true, sh->conf.set.cached_woken);
	cold |= wait_ready(app);
	t = now_ns() - t;
	buffer_free_async(home);	/* it was visible until now */
	if (cold)
		majflt = cpu = 0;
	record(RECORD_LAUNCH, (unsigned long long)now_ns(), sh->launch,
	       prof(app)->name, cold ? "cold" : "resume", (unsigned long long)t,
	       (unsigned long long)(s->cpu_ns - cpu), (unsigned long long)(s->majflt - majflt));
	camera_cost_end(&cost, app);
	if (camera_is(app))
		area_record(sh->launch, "start");
}

/* While it is, lmkd looks more often. */
void am_busy(bool busy)
{
	__atomic_store_n(&sh->busy, busy, __ATOMIC_RELEASE);
	lmkd_wake();
}

/* The app's time on the screen: it works first, then the phone is quiet. */
static void use_app(int app, uint64_t end)
{
	command(app, OP_USE);
	if (!wait_idle(app))
		fatal("%s was killed while in use in launch %u", prof(app)->name, sh->launch);
	am_busy(false);
	sleep_until(end > now_ns() ? end : now_ns());
	am_notice();
}

/* Waits of people and apps: full length in virtual time, shorter in real. */
void wait_scaled_ms(uint64_t ms)
{
	sleep_ns(ms * NSEC_PER_MSEC / sh->conf.set.time_scale);
}

static void go_home(int app)
{
	am_busy(true);
	bring_up(home);
	previous = app;
	sh->slot[home].last_used = sh->launch;
	update_adjs();
	command(app, OP_BACKGROUND);
	wait_ready(home);
	buffer_free_async(app);
	if (known_pid[app])	/* or the kernel has killed it meanwhile */
		wait_idle(app);
	am_busy(false);
	wait_scaled_ms(sh->conf.set.home_ms);
}

void am_sample(uint32_t launch)
{
	uint64_t every = sh->conf.set.maps ? sh->conf.launches / sh->conf.set.maps : 0;
	int i, nr_alive = 0, cached = 0;

	for (i = 0; i < sh->conf.nr_prof; i++) {
		nr_alive += alive(i);
		cached += alive(i) && prof(i)->class == CLASS_APP && i != home && i != foreground;
	}
	sampler_sample(launch, nr_alive, cached);
	area_record(launch, "use");
	judge_record(launch, cached + (foreground != NO_APP));
	if (sh->conf.set.maps && (launch == 1 || every == 0 || launch % every == 0))
		map_record(launch);
}

/* Everything that is clean, after writing the rest. */
static void drop_caches(void)
{
	sync();
	if (spit("/proc/sys/vm/drop_caches", "3"))
		fatal("cannot drop caches");
}

void am_launch(uint32_t n)
{
	const struct settings *set = &sh->conf.set;
	int app = sh->conf.launch[n - 1];
	uint64_t end = now_ns() + set->foreground_ms * NSEC_PER_MSEC / set->time_scale;
	struct rng r;

	rng_seed(&r, sh->conf.seed, ((uint64_t)n << 16) | 0xffff);
	__atomic_store_n(&sh->launch, n, __ATOMIC_RELEASE);
	futex_wake(&sh->launch);
	if (n == set->drop_caches_at)
		drop_caches();
	am_busy(true);
	restart_dead(n);
	launch_app(app, &r);
	use_app(app, end);
	am_sample(n);
	go_home(app);
	records_flush();
}
