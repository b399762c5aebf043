// SPDX-License-Identifier: GPL-2.0
/*
 * Memory pressure from inside a process: in every launch it reads on in a big
 * file, over and over, or allocates a big heap, fills it with zeroes and frees
 * it. How much of that it gets done, and in what time, is counted. Or it takes as
 * much CPU time and no memory, to tell what memory does from what CPUs do.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "apps/pressure.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"

#define PRESSURE_FILE "/data/pressure"
#define CHUNK (256 * KB)
#define HELD_STEP (64 * KB * KB)
#define SPINS 20000

/* Without POSIX timers the kernel has no clock of a thread's CPU time, but it counts that. */
static uint64_t thread_ns(void)
{
	struct rusage used;

	if (getrusage(RUSAGE_THREAD, &used))
		fatal("pressure: getrusage: %s", strerror(errno));
	return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000ULL +
	       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000ULL;
}

static __thread uint64_t counted;	/* CPU time of this thread that is counted */

static void count(struct slot *s, uint64_t bytes, uint64_t since)
{
	__atomic_add_fetch(&s->work_bytes, bytes, __ATOMIC_RELAXED);
	__atomic_add_fetch(&s->work_ns, now_ns() - since, __ATOMIC_RELAXED);
	__atomic_add_fetch(&s->work_cpu_ns, thread_ns() - counted, __ATOMIC_RELAXED);
	counted = thread_ns();
}

/* The machine's free memory while the process holds a heap of this size. */
static void hold(struct slot *s, uint64_t bytes)
{
	struct sysinfo machine;

	if (sysinfo(&machine))
		fatal("pressure: sysinfo: %s", strerror(errno));
	__atomic_store_n(&s->held_free_kb, machine.freeram * machine.mem_unit / KB,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&s->held_kb, bytes / KB, __ATOMIC_RELAXED);
}

static void flood(struct slot *s, int fd, uint64_t *at, uint64_t kb)
{
	static char buf[CHUNK];
	uint64_t t;
	ssize_t n;

	for (; kb >= CHUNK / KB; kb -= CHUNK / KB) {
		t = now_ns();
		n = pread(fd, buf, CHUNK, *at);
		if (n < 0)
			fatal(PRESSURE_FILE ": %s", strerror(errno));
		*at = n < (ssize_t)CHUNK ? 0 : *at + n;
		count(s, n, t);
	}
}

static void zero(struct slot *s, uint64_t kb)
{
	uint64_t at, t, size = kb * KB;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		fatal("pressure: %s", strerror(errno));
	madvise(p, size, MADV_NOHUGEPAGE);
	for (at = 0; at + CHUNK <= size; at += CHUNK) {
		t = now_ns();
		memset(p + at, 0, CHUNK);
		count(s, CHUNK, t);
		if ((at + CHUNK) % HELD_STEP == 0)
			hold(s, at + CHUNK);
	}
	hold(s, size);
	munmap(p, size);
}

static void burn(struct slot *s, uint64_t ms)
{
	uint64_t until = thread_ns() + ms * 1000000, t;
	volatile int spin;

	while (thread_ns() < until) {
		t = now_ns();
		for (spin = 0; spin < SPINS; spin++)
			;
		count(s, 0, t);
	}
}

static void press(struct slot *s, const struct profile *p, int fd, uint64_t *at, bool heap)
{
	if (p->burn_ms) {
		if (heap)
			burn(s, p->burn_ms);
		return;
	}
	if (p->flood_kb)
		flood(s, fd, at, p->flood_kb);
	if (p->zero_kb && heap)
		zero(s, p->zero_kb);
}

static uint32_t next_launch(uint32_t last)
{
	uint32_t n;

	while ((n = __atomic_load_n(&sh->launch, __ATOMIC_ACQUIRE)) == last)
		futex_wait(&sh->launch, last, 0);
	return n;
}

/*
 * The CPUs of what is not on the screen, as Android's cpuset for it. The CPUs of
 * the emulated machine take turns, and the first is served first: a busy process on
 * it would keep the others from running, whatever their priority.
 */
static void to_the_background(void)
{
	uint64_t cpus = get_nprocs(), wanted = sh->conf.set.pressure_cpus, i;
	cpu_set_t set;

	if (setpriority(PRIO_PROCESS, 0, sh->conf.set.pressure_nice))
		fatal("pressure: setpriority: %s", strerror(errno));
	if (!wanted)
		return;
	CPU_ZERO(&set);
	for (i = wanted < cpus ? cpus - wanted : 0; i < cpus; i++)
		CPU_SET(i, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fatal("pressure: sched_setaffinity: %s", strerror(errno));
}

static void *work(void *arg)
{
	struct slot *s = arg;
	const struct profile *p = &sh->conf.prof[s - sh->slot];
	int fd = p->flood_kb ? open(PRESSURE_FILE, O_RDONLY | O_CLOEXEC) : -1;
	uint32_t n = 0;
	uint64_t at = 0;

	if (p->flood_kb && fd < 0)
		fatal(PRESSURE_FILE ": %s", strerror(errno));
	to_the_background();
	for (;;) {
		n = next_launch(n);
		if (n < sh->conf.set.pressure_from)
			continue;
		press(s, p, fd, &at, n % p->zero_every == 0);
	}
	return NULL;
}

/* Beside the process's own loop, which goes on to take commands. */
void pressure_start(int slot)
{
	const struct profile *p = &sh->conf.prof[slot];
	pthread_t thread;

	if (!sh->conf.set.pressure_from || (!p->flood_kb && !p->zero_kb && !p->burn_ms))
		return;
	if (pthread_create(&thread, NULL, work, &sh->slot[slot]))
		fatal("pressure: no thread");
}
