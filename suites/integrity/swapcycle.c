// SPDX-License-Identifier: GPL-2.0
/*
 * swapcycle ROUNDS [SEED]
 *
 * Swap is taken away and given again under processes whose pages are there: swapoff
 * has to bring each page back to where it belongs, while some of these processes
 * write, fork, exit, and lock.
 */
#include "load.h"
#include <sys/swap.h>

#define DEVICE "/dev/zram0"
#define NR 4

static struct crew crew;
static unsigned long pages;

static void with_child(struct tagged *t, unsigned long at, unsigned long n)
{
	pid_t pid = child();

	if (!pid) {
		check_tagged(t, at, n, "a child's, swapped");
		fill_run(t->p + at * PG, n, 5);
		madvise(t->p + at * PG, n * PG, MADV_PAGEOUT);
		check_run(t->p + at * PG, n, 5, "a child's own, swapped");
		_exit(0);
	}
	write_tagged(t, at, n / 2);
	want_well(pid, "a child");
}

static void one(int me)
{
	bool shared = me == NR - 1;
	struct tagged t = tagged_of(shared ? map_shared(pages * PG) : map_anon(pages * PG), pages);

	write_tagged(&t, 0, pages);
	while (!*crew.stop) {
		unsigned long n = 1 + below(512), at = below(pages - n);

		madvise(t.p, pages * PG, MADV_PAGEOUT);
		check_tagged(&t, at, n, "swapped");
		write_tagged(&t, at, n / 2);
		if (one_in(3) && !shared) {
			with_child(&t, at, n);
		} else if (one_in(3)) {
			mlock(t.p + at * PG, n * PG);
			check_tagged(&t, at, n, "locked after swap");
			munlock(t.p + at * PG, n * PG);
		} else if (one_in(3) && !shared) {
			drop_tagged(&t, at, n, MADV_DONTNEED);
		}
		crew.rounds[me]++;
		nap_ms(1);
	}
	check_tagged(&t, 0, pages, "in the end");
	_exit(0);
}

int main(int argc, char **argv)
{
	long rounds = arg(argc, argv, 1, 8), r, used, most = 0;
	unsigned long off = 0, refused = 0;

	begin("swapcycle", arg(argc, argv, 2, 30));
	if (meminfo("SwapTotal") < 64 * 1024)
		skip("no swap");
	/* All of it has room in memory, as there will be no swap now and then. */
	pages = clamp(budget_mb() * 4 / 10 / NR, 4, 24) * MB / PG;
	crew_start(&crew, NR, rnd() >> 16, one);
	for (r = 0; r < rounds; r++) {
		crew_wait(&crew, 2);
		used = meminfo("SwapTotal") - meminfo("SwapFree");
		if (used > most)
			most = used;
		if (swapoff(DEVICE)) {
			if (errno != ENOMEM && errno != EINTR)
				die_errno("swapoff");
			refused++;
			continue;
		}
		off++;
		nap_ms(50 + below(100));
		if (swapon(DEVICE, 0))
			die_errno("swapon");
	}
	crew_end(&crew);
	if (meminfo("SwapTotal") < 64 * 1024)
		die("swap stays away");
	no_kills();
	finish();
	figure("swapoffs", off, "");
	figure("swapoffs_refused", refused, "");
	figure("swapped_most", most / 1024.0, "MiB");
	return 0;
}
