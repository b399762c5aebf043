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

/* With all of memory under it. */
static void open_uffd(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register r = {
		.range = { (uintptr_t)memory, pages * PG }, .mode = UFFDIO_REGISTER_MODE_WP,
	};

	fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		skip("no userfaultfd, or none for writes: %s", strerror(errno));
	if (ioctl(fd, UFFDIO_REGISTER, &r))
		die_errno("UFFDIO_REGISTER");
}

static void protect(unsigned long at, unsigned long n, uint64_t mode)
{
	struct uffdio_writeprotect wp = {
		.range = { (uintptr_t)memory + at * PG, n * PG }, .mode = mode,
	};

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
		protect(i, 1, 0);
	}
	return NULL;
}

static void disturb(void)
{
	unsigned long n = 1 + below(pages / 4), at = below(pages - n);

	madvise(memory + at * PG, n * PG, MADV_PAGEOUT);
	if (one_in(3))
		compact();
}

struct job {
	struct tagged t;
	unsigned char *wrote;
	unsigned long n;
	uint64_t seed;
};

/* Half of memory is huge pages. */
static struct job new_job(void)
{
	struct job job = { .wrote = calloc(pages, 1) };

	memory = map_huge_aligned(pages * PG);
	madvise(memory, pages / 2 * PG, MADV_HUGEPAGE);
	if (!job.wrote)
		die("calloc");
	job.t = tagged_of(memory, pages);
	write_tagged(&job.t, 0, pages);
	return job;
}

static void *writer(void *arg)
{
	struct job *j = arg;
	uint64_t state = j->seed;
	unsigned long k, i;

	for (k = 0; k < j->n; k++) {
		state = mix(state);
		i = state % pages;
		check_tagged(&j->t, i, 1, "a page before it is written");
		if (state >> 63)
			continue;
		j->t.tags[i] = state | 1;
		j->wrote[i] = 1;
		fill_page(memory + i * PG, j->t.tags[i]);
	}
	return NULL;
}

static void begin_round(struct job *job)
{
	memset(job->wrote, 0, pages);
	job->n = 64 + below(1024);
	job->seed = rnd();
}

static void check_told(const struct job *job)
{
	unsigned long i;

	for (i = 0; i < pages; i++) {
		if (job->wrote[i] && !told[i])
			die("a write to page %lu was not told, pagemap %llx", i,
			    (unsigned long long)pagemap_entry(memory + i * PG));
		if (told[i] && !job->wrote[i])
			die("page %lu is told as written", i);
	}
}

static void round_of_writes(struct job *job)
{
	pthread_t w;
	int i;

	begin_round(job);
	memset((void *)told, 0, pages);
	protect(0, pages, UFFDIO_WRITEPROTECT_MODE_WP);
	for (i = 0; i < 6; i++)
		disturb();
	if (pthread_create(&w, NULL, writer, job))
		die("pthread_create");
	disturb();
	pthread_join(w, NULL);
	check_told(job);
}

static void writes_told(long seconds)
{
	struct job job = new_job();
	unsigned long rounds = 0;
	pthread_t h;
	uint64_t end;

	open_uffd();
	told = calloc(pages, 1);
	if (!told || pthread_create(&h, NULL, handler, NULL))
		die("calloc or pthread_create");
	for (end = now_ms() + seconds * 1000; now_ms() < end || rounds < 3; rounds++) {
		round_of_writes(&job);
		load_lives();
	}
	stop = 1;
	pthread_join(h, NULL);
	protect(0, pages, 0);
	check_tagged(&job.t, 0, pages, "in the end");
	figure("write_rounds", rounds, "");
}

static void round_of_dirt(struct job *job, int map, uint64_t *entries)
{
	unsigned long i;

	begin_round(job);
	if (put("/proc/self/clear_refs", "4"))
		skip("no soft-dirty bits");
	for (i = 0; i < 4; i++)
		disturb();
	writer(job);
	for (i = 0; i < 4; i++)
		disturb();
	if (pread(map, entries, pages * 8, (uintptr_t)memory / PG * 8) != (ssize_t)(pages * 8))
		die_errno("pagemap");
	for (i = 0; i < pages; i++)
		if (job->wrote[i] && !(entries[i] >> 55 & 1))
			die("page %lu was written and is not dirty, pagemap %llx", i,
			    (unsigned long long)entries[i]);
}

static void soft_dirty(long seconds)
{
	uint64_t *entries = calloc(pages, sizeof(*entries)), end;
	int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	struct job job = new_job();
	unsigned long rounds = 0;

	if (!entries || map < 0)
		die("calloc or pagemap");
	for (end = now_ms() + seconds * 1000; now_ms() < end || rounds < 3; rounds++) {
		round_of_dirt(&job, map, entries);
		load_lives();
	}
	check_tagged(&job.t, 0, pages, "in the end");
	figure("dirty_rounds", rounds, "");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "wp";
	long seconds = arg(argc, argv, 2, 10);

	begin("uffd", arg(argc, argv, 3, 26));
	pages = clamp(budget_mb() / 16, 4, 32) * MB / PG & ~511UL;
	load_start(2, budget_mb() / 5, 48);
	if (!strcmp(what, "dirty"))
		soft_dirty(seconds);
	else
		writes_told(seconds);
	load_end();
	return 0;
}
