// SPDX-License-Identifier: GPL-2.0
/* The loop of every process that zygote forks: wait for a command, do it. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "apps/camera.h"
#include "apps/process.h"
#include "apps/service.h"
#include "base/kernel.h"
#include "base/util.h"
#include "measure/stalls.h"

bool slot_idle(const struct slot *s)
{
	return __atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) ==
	       __atomic_load_n(&s->done, __ATOMIC_ACQUIRE);
}

/*
 * One stream for a process and a launch: what an app does in launch n is the
 * same whether or not it had been killed before, which pairs the policies.
 */
static void seed_for(struct rng *r, const struct app *a, uint32_t launch, uint32_t op)
{
	rng_seed(r, sh->conf.seed, ((uint64_t)launch << 16) | (a->slot << 4) | op);
}

static void obey(struct app *a, uint32_t op, uint32_t launch)
{
	bool is_app = a->prof->class == CLASS_APP;
	struct rng r;

	a->launch = launch;
	seed_for(&r, a, launch, op);
	switch (op) {
	case OP_START:
		is_app ? app_start(a, &r) : service_start(a, &r);
		break;
	case OP_RESUME:
		app_resume(a, &r);
		break;
	case OP_USE:
		app_use(a, &r);
		break;
	case OP_BACKGROUND:
		app_background(a, &r);
		break;
	case OP_WORK:
		is_app ? app_work(a, &r) : service_work(a, &r);
		break;
	}
}

static uint64_t ran_ns(const struct rusage *ru)
{
	uint64_t us = (ru->ru_utime.tv_sec + ru->ru_stime.tv_sec) * 1000000ULL;

	return (us + ru->ru_utime.tv_usec + ru->ru_stime.tv_usec) * NSEC_PER_USEC;
}

static enum faulting faulting(const struct app *a, uint32_t op)
{
	if (a->prof->class != CLASS_APP)
		return FAULTS_SYSTEM;
	return op == OP_WORK ? FAULTS_BACKGROUND : FAULTS_FOREGROUND;
}

/* `stalls` counts the camera's own, -1 in other processes; `last` is what was counted before. */
static void account(struct slot *s, enum faulting by, int stalls, uint64_t *last)
{
	struct rusage ru;
	uint64_t now;

	getrusage(RUSAGE_SELF, &ru);
	__atomic_add_fetch(&sh->majflt[by], ru.ru_majflt - s->majflt, __ATOMIC_RELAXED);
	s->majflt = ru.ru_majflt;
	s->cpu_ns = ran_ns(&ru);
	if (stalls < 0)
		return;
	now = stall_count(stalls);
	__atomic_add_fetch(&sh->camera_stalls, now - *last, __ATOMIC_ACQ_REL);
	*last = now;
}

void process_run(int slot)
{
	struct slot *s = &sh->slot[slot];
	struct app a = { .slot = slot, .prof = &sh->conf.prof[slot] };
	int stalls = camera_is(slot) ? stall_counter(STALL_RECLAIM) : -1;
	uint64_t stalled = 0;
	uint32_t seq;

	set_adj(getpid(), s->adj);
	set_name(a.prof->name);
	for (;;) {
		seq = __atomic_load_n(&s->seq, __ATOMIC_ACQUIRE);
		if (seq == s->done) {
			futex_wait(&s->seq, seq, 0);
			continue;
		}
		obey(&a, s->op, s->launch);
		account(s, faulting(&a, s->op), stalls, &stalled);
		__atomic_store_n(&s->done, seq, __ATOMIC_RELEASE);
		bump(&sh->am_event);
	}
}
