// SPDX-License-Identifier: GPL-2.0
/*
 * odirect SECONDS [SEED]
 *
 * Direct I/O from and into memory that is moved meanwhile: four threads write and read slots of a
 * file by their own parts of one mapping, another makes the kernel compact all memory without an
 * end, pages the mapping out, and sends its pages from node to node where there are several.
 * Beside that the file's other half is read and written through the cache.
 */
#include "load.h"

#define THREADS 4
#define SLOT 32UL		/* pages of a request at most */

static char *memory;
static unsigned long pages;	/* of a thread */
static int direct, cached;
static volatile int stop;
static volatile unsigned long done[THREADS], moves;
static long seed;

static void io(bool write_it, void *at, unsigned long n, unsigned long page)
{
	ssize_t k = write_it ? pwrite(direct, at, n * PG, page * PG) :
			       pread(direct, at, n * PG, page * PG);

	if (k != (ssize_t)(n * PG))
		die_errno("direct %s of %lu pages: %zd", write_it ? "write" : "read", n, k);
}

static void *worker(void *number)
{
	int me = (intptr_t)number;
	char *own = memory + me * pages * PG;
	uint64_t *in_file = calloc(pages, sizeof(uint64_t)), state = mix(seed * 77 + me);
	unsigned long first = me * pages, i;
	char page[PG] __attribute__((aligned(4096)));

	if (!in_file)
		die("calloc");
	while (!stop || !done[me]) {
		unsigned long n, at, to;
		uint64_t tag;

		state = mix(state);
		n = 1 + state % SLOT;
		at = (state >> 8) % (pages - n);
		to = (state >> 24) % (pages - n);
		tag = (state >> 20) | 1;
		fill_run(own + at * PG, n, tag);
		io(true, own + at * PG, n, first + to);
		for (i = 0; i < n; i++)
			in_file[to + i] = tag + i;
		/* Back into another place. */
		at = (state >> 36) % (pages - n);
		if (state >> 63)
			madvise(own + at * PG, n * PG, MADV_DONTNEED);
		io(false, own + at * PG, n, first + to);
		check_run(own + at * PG, n, tag, "what direct I/O read");
		/* Through the cache it is the same. */
		if ((state >> 50) % 4 == 0) {
			if (pread(cached, page, PG, (first + to) * PG) != PG)
				die_errno("pread");
			check_page(page, tag, "the same through the cache");
		}
		if ((state >> 52) % 8 == 0) {
			in_file[to] = tag + 12345;
			fill_page(page, tag + 12345);
			if (pwrite(cached, page, PG, (first + to) * PG) != PG)
				die_errno("pwrite");
			io(false, own + at * PG, 1, first + to);
			check_page(own + at * PG, tag + 12345, "what the cache has, by direct I/O");
		}
		done[me]++;
	}
	for (i = 0; i < pages; i++) {
		if (!in_file[i])
			continue;
		io(false, own, 1, first + i);
		check_page(own, in_file[i], "the file in the end");
	}
	return NULL;
}

static void *mover(void *unused)
{
	uint64_t state = mix(seed);
	int nodes[16], nr = nodes_online(nodes, 16);

	while (!stop) {
		unsigned long n = 64, at, i;
		void *which[64];
		int to[64], status[64];

		state = mix(state);
		compact();
		at = state % (THREADS * pages - n);
		if (state >> 62 == 1)
			madvise(memory + at * PG, n * PG, MADV_PAGEOUT);
		if (nr > 1) {
			for (i = 0; i < n; i++) {
				which[i] = memory + (at + i) * PG;
				to[i] = nodes[(state >> 32) % nr];
			}
			syscall(SYS_move_pages, 0, n, which, to, status, 2 /* MPOL_MF_MOVE */);
		}
		moves++;
		nap_ms(1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long seconds = arg(argc, argv, 1, 20), i;
	pthread_t threads[THREADS + 1];
	unsigned long all = 0;
	char path[PATH_MAX];
	uint64_t end;

	seed = arg(argc, argv, 2, 24);
	begin("odirect", seed);
	pages = budget_mb() * MB / 20 / THREADS / PG;
	if (pages > 4096)
		pages = 4096;
	if (pages < 256)
		pages = 256;
	work_path(path, sizeof(path), "direct");
	cached = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (direct < 0)
		skip("no direct I/O: %s", strerror(errno));
	if (fallocate(cached, 0, 0, THREADS * pages * PG))
		die_errno("fallocate");
	load_start(2, budget_mb() / 4, 48);
	memory = map_huge_aligned((THREADS * pages * PG + HUGE - 1) & ~(HUGE - 1));
	madvise(memory, 2 * pages * PG, MADV_HUGEPAGE);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, worker, (void *)(intptr_t)i))
			die("pthread_create");
	if (pthread_create(&threads[THREADS], NULL, mover, NULL))
		die("pthread_create");
	for (end = now_ms() + seconds * 1000; now_ms() < end; nap_ms(100))
		load_lives();
	stop = 1;
	for (i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < THREADS; i++)
		all += done[i];
	load_end();
	figure("direct_requests", all, "");
	figure("compactions", moves, "");
	return 0;
}
