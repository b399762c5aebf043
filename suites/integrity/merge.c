// SPDX-License-Identifier: GPL-2.0
/*
 * merge SECONDS [SEED]
 *
 * KSM beside compaction: four processes have pages of only sixteen contents, which are
 * merged, written, merged again and unmerged in the end. Every page is compared.
 */
#include "load.h"

#define KSM "/sys/kernel/mm/ksm"
#define NR 4

static struct crew crew;
static unsigned long pages;

static void write_alike(struct tagged *t, unsigned long at, unsigned long n)
{
	unsigned long i;

	for (i = at; i < at + n; i++) {
		t->tags[i] = one_in(32) ? 0 : 1 + below(16);
		set_page(t->p + i * PG, t->tags[i]);
	}
}

static void one(int me)
{
	struct tagged t = tagged_of(map_anon(pages * PG), pages);

	if (madvise(t.p, pages * PG, MADV_MERGEABLE))
		die_errno("MADV_MERGEABLE");
	write_alike(&t, 0, pages);
	while (!*crew.stop) {
		unsigned long n = 1 + below(64), at = below(pages - n);

		check_tagged(&t, at, n, "pages that may be merged");
		write_alike(&t, at, n / 4);
		if (one_in(20))
			madvise(t.p + at * PG, n * PG, MADV_PAGEOUT);
		if (one_in(60)) {
			madvise(t.p + at * PG, n * PG, MADV_UNMERGEABLE);
			check_tagged(&t, at, n, "unmerged pages");
			madvise(t.p + at * PG, n * PG, MADV_MERGEABLE);
		}
		crew.rounds[me]++;
		nap_ms(2);
	}
	check_tagged(&t, 0, pages, "in the end");
	_exit(0);
}

int main(int argc, char **argv)
{
	long seconds = arg(argc, argv, 1, 15), most = 0, merged;
	long run = get_long(KSM "/run", -1), scan = get_long(KSM "/pages_to_scan", 100);
	long rest = get_long(KSM "/sleep_millisecs", 20);
	uint64_t end;

	begin("merge", arg(argc, argv, 2, 13));
	if (run < 0)
		skip("no KSM");
	pages = clamp(budget_mb() / 10 / NR, 1, 12) * MB / PG;
	put(KSM "/pages_to_scan", "4000");
	put(KSM "/sleep_millisecs", "10");
	if (put(KSM "/run", "1"))
		die("KSM cannot be started");
	crew_start(&crew, NR, rnd() >> 16, one);
	for (end = now_ms() + seconds * 1000; now_ms() < end; nap_ms(100)) {
		merged = get_long(KSM "/pages_sharing", 0);
		if (merged > most)
			most = merged;
		compact();
		crew_lives(&crew);
	}
	/* All is taken apart while they still write. */
	put(KSM "/run", "2");
	crew_end(&crew);
	put(KSM "/run", "%ld", run);
	put(KSM "/pages_to_scan", "%ld", scan);
	put(KSM "/sleep_millisecs", "%ld", rest);
	no_kills();
	finish();
	figure("merged_most", most, "pages");
	return 0;
}
