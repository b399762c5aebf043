// SPDX-License-Identifier: GPL-2.0
/*
 * thp SECONDS [SEED]
 *
 * Huge pages made and taken apart: by faults, by collapse, by khugepaged at its keenest,
 * by partial unmapping, protection, discarding, swapping and moving, in private memory
 * and in tmpfs, while memory is compacted. Every page is compared.
 */
#include "load.h"

#define THP "/sys/kernel/mm/transparent_hugepage"
#define SCAN THP "/khugepaged/pages_to_scan"
#define REST THP "/khugepaged/scan_sleep_millisecs"
#define NR 4
#define PAGES (HUGE / PG)

static struct crew crew;
static volatile unsigned long *huge_kb;
static unsigned long huge_pages;

static void protect(const struct tagged *t, unsigned long at, unsigned long n)
{
	if (mprotect(t->p + at * PG, n * PG, PROT_READ) && errno != ENOMEM)
		die_errno("mprotect");
	check_tagged(t, at, n, "a protected part");
	if (mprotect(t->p + at * PG, n * PG, PROT_READ | PROT_WRITE))
		die_errno("mprotect back");
}

/* A part goes away and comes back at the same place. */
static void move(const struct tagged *t, unsigned long at, unsigned long n)
{
	char *from = t->p + at * PG;
	char *aside = mmap(NULL, n * PG, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tagged moved = { aside, n, t->tags + at };

	if (aside == MAP_FAILED)
		die_errno("mmap aside");
	if (mremap(from, n * PG, n * PG, MREMAP_MAYMOVE | MREMAP_FIXED, aside) != aside)
		die_errno("mremap");
	check_tagged(&moved, 0, n, "a moved part");
	if (mremap(aside, n * PG, n * PG, MREMAP_MAYMOVE | MREMAP_FIXED, from) != from)
		die_errno("mremap back");
}

static void with_child(struct tagged *t, unsigned long at, unsigned long n, bool shared)
{
	pid_t pid = child();

	if (!pid) {
		check_tagged(t, at, n, "a child's part");
		if (!shared)
			fill_run(t->p + at * PG, n, 99);
		_exit(0);
	}
	if (!shared)
		write_tagged(t, at, 1);
	want_well(pid, "a child");
}

/* Something is done to a huge page, or to some of its pages. */
static void act(struct tagged *t, unsigned long first, bool shared)
{
	unsigned long n = 1 + below(300), at = first + below(PAGES - n);
	char *huge = t->p + first * PG;

	switch (below(8)) {
	case 0:
		return drop_tagged(t, at, n, shared ? MADV_REMOVE : MADV_DONTNEED);
	case 1:
		return protect(t, at, n);
	case 2:
		madvise(huge, HUGE, MADV_PAGEOUT);
		break;
	case 3:
		madvise(t->p + at * PG, n * PG, MADV_PAGEOUT);
		break;
	case 4:
		return move(t, at, n);
	case 5:
		return with_child(t, at, n, shared);
	case 6:
		madvise(huge, HUGE, MADV_COLLAPSE);
		break;
	default:
		madvise(huge, HUGE, MADV_NOHUGEPAGE);
		madvise(huge, HUGE, MADV_HUGEPAGE);
	}
}

static void one(int me)
{
	unsigned long pages = huge_pages * PAGES;
	struct tagged t = tagged_of(map_huge_aligned(pages * PG), pages);
	bool shared = me == NR - 1;
	long long kb;
	int fd;

	if (shared) {
		munmap(map_memfd(pages * PG, &fd), pages * PG);
		if (mmap(t.p, pages * PG, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
		    t.p)
			die_errno("mmap");
	}
	madvise(t.p, pages * PG, MADV_HUGEPAGE);
	while (!*crew.stop || !crew.rounds[me]) {
		unsigned long first = below(huge_pages) * PAGES;

		check_tagged(&t, first, PAGES, "before a huge page is written");
		write_tagged(&t, first, PAGES);
		kb = one_in(4) ? number_in("/proc/self/smaps_rollup", "AnonHugePages") : 0;
		if (kb > (long long)huge_kb[me])
			huge_kb[me] = kb;
		act(&t, first, shared);
		check_tagged(&t, first, PAGES, "after an act");
		crew.rounds[me]++;
	}
	check_tagged(&t, 0, pages, "in the end");
	_exit(0);
}

int main(int argc, char **argv)
{
	long seconds = arg(argc, argv, 1, 20), scan = get_long(SCAN, -1), rest = get_long(REST, -1);
	unsigned long huge = 0, i;
	char shmem[64] = "";
	uint64_t end;

	begin("thp", arg(argc, argv, 2, 19));
	if (access(THP "/enabled", F_OK))
		skip("no huge pages");
	get_choice(THP "/shmem_enabled", shmem, sizeof(shmem));
	put(THP "/shmem_enabled", "advise");
	put(SCAN, "8192");
	put(REST, "50");
	huge_kb = map_shared(PG);
	huge_pages = clamp(budget_mb() * 6 / 10 / NR / 2, 2, 64);
	crew_start(&crew, NR, rnd() >> 16, one);
	for (end = now_ms() + seconds * 1000; now_ms() < end; nap_ms(500)) {
		compact();
		crew_lives(&crew);
	}
	figure("thp_rounds", crew_end(&crew), "");
	for (i = 0; i < NR; i++)
		huge += huge_kb[i];
	figure("thp_huge", huge / 1024.0, "MiB");
	put(THP "/shmem_enabled", "%s", shmem);
	put(SCAN, "%ld", scan);
	put(REST, "%ld", rest);
	no_kills();
	finish();
	return 0;
}
