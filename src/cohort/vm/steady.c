// SPDX-License-Identifier: GPL-2.0
/*
 * steady: loaded into QEMU so that a run under -icount depends on nothing of
 * the host.
 *
 * With one thread for all virtual CPUs and an instruction counter for a clock,
 * a run repeats as long as QEMU's main loop keeps out of it.  It does not: each
 * timer the CPU thread serves also wakes the main loop, and if the host makes
 * that late or slow, it finds the next timer due before the CPU thread does,
 * serves it itself and kicks the CPUs, which cuts their time slices short.
 *
 * Here the main loop's poll returns only while the CPU thread waits for an
 * interrupt.  The main loop then works at points of the guest's own choosing,
 * and nothing else changes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

/* The guest is dead and spins, most likely: let QEMU end. */
#define GIVE_UP_S 60

typedef int (*wait_fn)(pthread_cond_t *cond, pthread_mutex_t *mutex);
typedef int (*wake_fn)(pthread_cond_t *cond);
typedef int (*ppoll_fn)(struct pollfd *fds, nfds_t n,
			const struct timespec *timeout, const sigset_t *mask);

static wait_fn real_wait;
static wake_fn real_broadcast, real_signal;
static ppoll_fn real_ppoll;

/*
 * @idle: the CPU thread waits and was not woken; true before it exists
 * @halt: what it waits on
 * @lock, @became_idle: for the main loop to wait for @idle
 */
static atomic_bool idle = true;
static _Atomic(pthread_cond_t *) halt;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t became_idle = PTHREAD_COND_INITIALIZER;

__attribute__((constructor)) static void steady_init(void)
{
	/* Without the version glibc hands out its oldest condition variables. */
	real_wait = (wait_fn)dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
	real_broadcast = (wake_fn)dlvsym(RTLD_NEXT, "pthread_cond_broadcast", "GLIBC_2.3.2");
	real_signal = (wake_fn)dlvsym(RTLD_NEXT, "pthread_cond_signal", "GLIBC_2.3.2");
	real_ppoll = (ppoll_fn)dlsym(RTLD_NEXT, "ppoll");
}

static bool in_main_thread(void)
{
	return getpid() == gettid();
}

static void set_idle(bool value)
{
	pthread_mutex_lock(&lock);
	atomic_store(&idle, value);
	if (value)
		real_signal(&became_idle);
	pthread_mutex_unlock(&lock);
}

/* Of all threads but the main one, only the CPU thread waits like this. */
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	int err;

	if (in_main_thread())
		return real_wait(cond, mutex);
	atomic_store(&halt, cond);
	set_idle(true);
	err = real_wait(cond, mutex);
	set_idle(false);
	return err;
}

static void note_wake(pthread_cond_t *cond)
{
	if (cond == atomic_load(&halt))
		set_idle(false);
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	note_wake(cond);
	return real_broadcast(cond);
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	note_wake(cond);
	return real_signal(cond);
}

static void wait_until_idle(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += GIVE_UP_S;
	pthread_mutex_lock(&lock);
	while (!atomic_load(&idle) &&
	       pthread_cond_timedwait(&became_idle, &lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&lock);
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
	  const sigset_t *mask)
{
	int ready = real_ppoll(fds, n, timeout, mask);

	if (in_main_thread())
		wait_until_idle();
	return ready;
}
