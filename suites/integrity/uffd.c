// SPDX-License-Identifier: GPL-2.0
/*
 * uffd wp|dirty SECONDS [SEED]
 *
 * What user space is told of its pages while the kernel moves them:
 *   wp       writes are told, each of them and no other: also of pages that were swapped out,
 *            compacted or taken out of a huge page since they were protected
 *   dirty    the soft-dirty bit of a page that was written is set, whatever happened to the page
 */
#include "load.h"
#include <linux/userfaultfd.h>
#include <poll.h>

static int fd;
static char *memory;
static unsigned long pages;
static volatile int stop;
static volatile unsigned char *told;

static int open_uffd(uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int f = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (f < 0)
		skip("no userfaultfd: %s", strerror(errno));
	if (ioctl(f, UFFDIO_API, &api)) {
		close(f);
		return -1;
	}
	return f;
}

static void unprotect(uint64_t at, unsigned long n)
{
	struct uffdio_writeprotect wp = { .range = { at, n * PG } };

	while (ioctl(fd, UFFDIO_WRITEPROTECT, &wp))
		if (errno != EAGAIN)
			die_errno("UFFDIO_WRITEPROTECT");
}

static void *handler(void *unused)
{
	while (!stop) {
		struct pollfd p = { fd, POLLIN, 0 };
		struct uffd_msg m;
		unsigned long i;

		if (poll(&p, 1, 100) <= 0 || read(fd, &m, sizeof(m)) != sizeof(m))
			continue;
		if (m.event != UFFD_EVENT_PAGEFAULT)
			die("event %d", m.event);
		i = (m.arg.pagefault.address - (uintptr_t)memory) / PG;
		if (i >= pages)
			die("a fault at %llx", (unsigned long long)m.arg.pagefault.address);
		if (!(m.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP))
			die("page %lu is told as missing", i);
		told[i] = 1;
		unprotect((uintptr_t)memory + i * PG, 1);
	}
	return NULL;
}

static void register_all(uint64_t mode)
{
	struct uffdio_register r = { .range = { (uintptr_t)memory, pages * PG }, .mode = mode };

	if (ioctl(fd, UFFDIO_REGISTER, &r))
		die_errno("UFFDIO_REGISTER");
}

static unsigned long disturb(unsigned long most)
{
	unsigned long n = 1 + below(most), at = below(pages - n);

	madvise(memory + at * PG, n * PG, MADV_PAGEOUT);
	if (one_in(3))
		compact();
	return n;
}

struct job {
	uint64_t *tags;
	unsigned char *wrote;
	unsigned long n;
	uint64_t seed;
};

static void *writer(void *arg)
{
	struct job *j = arg;
	uint64_t state = j->seed;
	unsigned long k;

	for (k = 0; k < j->n; k++) {
		unsigned long i;

		state = mix(state);
		i = state % pages;
		check_page(memory + i * PG, j->tags[i], "a page before it is written");
		if (state >> 63)
			continue;
		j->tags[i] = state | 1;
		j->wrote[i] = 1;
		fill_page(memory + i * PG, j->tags[i]);
	}
	return NULL;
}

static void writes_told(long seconds)
{
	struct job job;
	unsigned long round = 0, i, written = 0;
	pthread_t h, w;
	uint64_t end;

	fd = open_uffd(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
	if (fd < 0)
		skip("no write protection");
	memory = map_huge_aligned(pages * PG);
	madvise(memory, pages / 2 * PG, MADV_HUGEPAGE);
	told = calloc(pages, 1);
	job.wrote = calloc(pages, 1);
	job.tags = calloc(pages, sizeof(*job.tags));
	if (!told || !job.wrote || !job.tags)
		die("calloc");
	for (i = 0; i < pages; i++) {
		job.tags[i] = 0xabc00000 + i;
		fill_page(memory + i * PG, job.tags[i]);
	}
	register_all(UFFDIO_REGISTER_MODE_WP);
	if (pthread_create(&h, NULL, handler, NULL))
		die("pthread_create");
	for (end = now_ms() + seconds * 1000; now_ms() < end || round < 3; round++) {
		struct uffdio_writeprotect wp = {
			.range = { (uintptr_t)memory, pages * PG },
			.mode = UFFDIO_WRITEPROTECT_MODE_WP,
		};

		memset((void *)told, 0, pages);
		memset(job.wrote, 0, pages);
		while (ioctl(fd, UFFDIO_WRITEPROTECT, &wp))
			if (errno != EAGAIN)
				die_errno("UFFDIO_WRITEPROTECT");
		for (i = 0; i < 6; i++)
			disturb(pages / 4);
		job.n = 64 + below(1024);
		job.seed = rnd();
		if (pthread_create(&w, NULL, writer, &job))
			die("pthread_create");
		disturb(pages / 4);
		pthread_join(w, NULL);
		for (i = 0; i < pages; i++) {
			if (job.wrote[i] && !told[i])
				die("round %lu: a write to page %lu was not told, pagemap %llx", round, i,
				    (unsigned long long)pagemap_entry(memory + i * PG));
			if (told[i] && !job.wrote[i])
				die("round %lu: page %lu is told as written", round, i);
			written += job.wrote[i];
		}
		load_lives();
	}
	stop = 1;
	pthread_join(h, NULL);
	unprotect((uintptr_t)memory, pages);
	for (i = 0; i < pages; i++)
		check_page(memory + i * PG, job.tags[i], "in the end");
	figure("writes_told", written, "");
}

static void soft_dirty(long seconds)
{
	uint64_t *entries = calloc(pages, sizeof(*entries)), end;
	struct job job;
	unsigned long round = 0, i, written = 0, more = 0;
	int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	memory = map_huge_aligned(pages * PG);
	madvise(memory, pages / 2 * PG, MADV_HUGEPAGE);
	job.wrote = calloc(pages, 1);
	job.tags = calloc(pages, sizeof(*job.tags));
	if (!entries || !job.wrote || !job.tags || map < 0)
		die("calloc or pagemap");
	for (i = 0; i < pages; i++) {
		job.tags[i] = 0xdef00000 + i;
		fill_page(memory + i * PG, job.tags[i]);
	}
	if (put("/proc/self/clear_refs", "4"))
		skip("no soft-dirty bits");
	for (end = now_ms() + seconds * 1000; now_ms() < end || round < 3; round++) {
		memset(job.wrote, 0, pages);
		put("/proc/self/clear_refs", "4");
		for (i = 0; i < 4; i++)
			disturb(pages / 4);
		job.n = 64 + below(1024);
		job.seed = rnd();
		writer(&job);
		for (i = 0; i < 4; i++)
			disturb(pages / 4);
		if (pread(map, entries, pages * 8, (uintptr_t)memory / PG * 8) != (ssize_t)(pages * 8))
			die_errno("pagemap");
		for (i = 0; i < pages; i++) {
			bool dirty = entries[i] >> 55 & 1;

			if (job.wrote[i] && !dirty) {
				if (!round && !written)
					skip("this kernel tells no soft-dirty bits");
				die("round %lu: page %lu was written and is not dirty, pagemap %llx", round,
				    i, (unsigned long long)entries[i]);
			}
			written += job.wrote[i];
			more += dirty && !job.wrote[i];
		}
		load_lives();
	}
	for (i = 0; i < pages; i++)
		check_page(memory + i * PG, job.tags[i], "in the end");
	figure("dirty_written", written, "");
	figure("dirty_besides", more, "");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "wp";
	long seconds = arg(argc, argv, 2, 10), seed = arg(argc, argv, 3, 26);

	begin("uffd", seed);
	pages = budget_mb() * MB / 16 / PG & ~511UL;
	if (pages > 8192)
		pages = 8192;
	if (pages < 1024)
		pages = 1024;
	load_start(2, budget_mb() / 5, 48);
	if (!strcmp(what, "wp"))
		writes_told(seconds);
	else if (!strcmp(what, "dirty"))
		soft_dirty(seconds);
	else
		die("no such part: %s", what);
	load_end();
	return 0;
}
