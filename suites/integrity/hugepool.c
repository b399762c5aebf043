// SPDX-License-Identifier: GPL-2.0
/*
 * hugepool ROUNDS [SEED]
 *
 * The pool of huge pages grows and shrinks while memory is in use, full of files, and
 * compacted. What was got of it is written and compared, also when the pool is told to
 * shrink under it. In the end all of it is given back. How many pages could be had is
 * told, and no check.
 */
#include "load.h"

#define POOL "/proc/sys/vm/nr_hugepages"
#define PAGES (HUGE / PG)

static unsigned long mapped_huge(char **to, unsigned long want)
{
	char *p = mmap(NULL, want * HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);
	unsigned long got;

	if (p == MAP_FAILED)
		return 0;
	/* An advice is refused where a fault would end the process. */
	for (got = 0; got < want; got++)
		if (madvise(p + got * HUGE, HUGE, MADV_POPULATE_WRITE))
			break;
	if (!got)
		munmap(p, want * HUGE);
	*to = p;
	return got;
}

/* The pages outlive that the pool is told to shrink, a child, and their neighbours. */
static void use(char *p, unsigned long n, unsigned long want, long pool, uint64_t tag)
{
	unsigned long i, half = n / 2;
	pid_t pid;

	for (i = 0; i < n * PAGES; i++)
		check_page(p + i * PG, 0, "a huge page that is new");
	fill_run(p, n * PAGES, tag);
	/* Smaller than what is in use: the rest becomes surplus and goes when it is freed. */
	put(POOL, "%ld", pool);
	load_wait(1);
	check_run(p, n * PAGES, tag, "a huge page");
	pid = child();
	if (!pid) {
		check_run(p, PAGES, tag, "a child's huge page");
		_exit(0);
	}
	want_well(pid, "a child");
	if (half)
		munmap(p, half * HUGE);
	check_run(p + half * HUGE, (n - half) * PAGES, tag + half * PAGES,
		  "a huge page beside those that are gone");
	munmap(p + half * HUGE, (want - half) * HUGE);
}

static void want_pool(long pool)
{
	long surplus = 0, i;

	for (i = 0; i < 100; i++) {
		put(POOL, "%ld", pool);
		surplus = meminfo("HugePages_Total") - pool;
		if (!surplus)
			return;
		nap_ms(20);
	}
	die("%ld huge pages stay in the pool", surplus);
}

int main(int argc, char **argv)
{
	long rounds = arg(argc, argv, 1, 8), r, got, all = 0, before = meminfo("HugePages_Total");
	unsigned long want, used, faults = 0;
	char *p;

	begin("hugepool", arg(argc, argv, 2, 18));
	if (get_long(POOL, -1) < 0 || meminfo("Hugepagesize") != HUGE / 1024)
		skip("no pool of huge pages of 2 MiB");
	want = budget_mb() * 4 / 10 / 2;
	load_start(3, budget_mb() / 20, 48);
	for (r = 0; r < rounds; r++) {
		load_wait(2);
		if (r % 3 == 1)
			compact();
		put(POOL, "%lu", before + want / 2 + below(want / 2));
		got = meminfo("HugePages_Total") - before;
		if (got < 0)
			die("the pool has %ld pages less than before", -got);
		all += got;
		used = got ? mapped_huge(&p, got) : 0;
		if (used)
			use(p, used, got, before, ((uint64_t)r << 40) + 1);
		faults += used;
		want_pool(before);
	}
	load_end();
	figure("huge_asked", want * 3 / 4 * rounds, "");
	figure("huge_got", all, "");
	figure("huge_used", faults, "");
	return 0;
}
