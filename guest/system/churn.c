// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel memory churn: short-lived processes and threads (stacks, page tables,
 * task structs), pipes holding pages, files and directories that come and go.
 * A pool of kernel objects is kept and replaced at random, so their pages get
 * different ages.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/heap.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "system/churn.h"

#define MAX_POOL 4096
#define BLOCK 4096		/* bytes that a pipe or a file takes at once */
#define CHILD_PAGES PAGES(24)

static int pool[MAX_POOL][2];

static void short_process(struct rng *r)
{
	uint64_t i, n = rng_range(r, CHILD_PAGES / 2, CHILD_PAGES * 2);
	pid_t pid = fork();
	char *p;

	if (pid < 0)
		fatal("churn: fork: %s", strerror(errno));
	if (!pid) {
		p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (i = 0; p != MAP_FAILED && i < n; i++)
			*(volatile char *)(p + i * PAGE) = 1;
		think(r);
		_exit(0);
	}
}

static void *short_thread(void *unused)
{
	return unused;
}

static void threads(uint64_t n)
{
	pthread_t t[8];
	uint64_t i, k;

	for (; n; n -= k) {
		k = n < 8 ? n : 8;
		for (i = 0; i < k; i++)
			if (pthread_create(&t[i], NULL, short_thread, NULL))
				fatal("churn: thread: %s", strerror(errno));
		for (i = 0; i < k; i++)
			pthread_join(t[i], NULL);
	}
}

/* Replace one pipe of the pool by a new one that holds a few blocks. */
static void refill_pipe(struct rng *r)
{
	static const char data[BLOCK];
	uint64_t i = rng_below(r, sh->conf.set.churn_pool);
	uint64_t n = rng_range(r, 0, 8);

	if (pool[i][0]) {
		close(pool[i][0]);
		close(pool[i][1]);
	}
	if (pipe2(pool[i], O_CLOEXEC | O_NONBLOCK))
		fatal("churn: pipe: %s", strerror(errno));
	while (n--)
		if (write(pool[i][1], data, sizeof(data)) < 0)
			break;
}

static void touch_file(const char *dir, uint64_t id, uint64_t blocks)
{
	static const char data[BLOCK] = { 1 };
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/t%llu", dir, (unsigned long long)id);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		fatal("churn: %s: %s", path, strerror(errno));
	while (blocks--)
		if (write(fd, data, sizeof(data)) < 0)
			fatal("churn: %s: %s", path, strerror(errno));
	close(fd);
}

static void files(struct rng *r, uint64_t n)
{
	while (n--) {
		uint64_t id = rng_below(r, sh->conf.set.churn_pool);

		if (rng_below(r, 4))
			touch_file("/data/tmp", id, rng_range(r, 0, 4));
		else
			touch_file("/tmp", id % 64, rng_range(r, 1, 8));
	}
}

static void work(uint32_t launch)
{
	const struct settings *set = &sh->conf.set;
	uint64_t step, i;
	struct rng r;

	rng_seed(&r, sh->conf.seed, ((uint64_t)launch << 16) | 0xfff0);
	for (step = 0; step < 4; step++) {
		for (i = 0; i < set->churn_forks / 4; i++)
			short_process(&r);
		threads(set->churn_threads / 4);
		for (i = 0; i < set->churn_pipes / 4; i++)
			refill_pipe(&r);
		files(&r, set->churn_files / 4);
		think(&r);
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
}

static void raise_limits(void)
{
	struct rlimit files = { 2 * MAX_POOL + 64, 2 * MAX_POOL + 64 };

	setrlimit(RLIMIT_NOFILE, &files);
	if (sh->conf.set.churn_pool > MAX_POOL || !sh->conf.set.churn_pool)
		fatal("churn_pool must be 1 to %d", MAX_POOL);
}

void churn_main(void)
{
	uint32_t seen = 0;

	set_name("churn");
	raise_limits();
	for (;;) {
		uint32_t now = __atomic_load_n(&sh->launch, __ATOMIC_ACQUIRE);

		if (now == seen) {
			futex_wait(&sh->launch, now, 0);
			continue;
		}
		seen = now;
		work(now);
	}
}
