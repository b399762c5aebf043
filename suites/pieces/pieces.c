// SPDX-License-Identifier: GPL-2.0
/*
 * Pieces of 64 MB, which is all that is kept for them, one after another beside a user without
 * rights that holds pages: whether each is given, and how long the request took.
 *
 *	pieces admit
 *	pieces USER NR
 *
 * The first makes the users' files, once in a guest.  The heap is the one whose memory the guest
 * keeps: that of the contiguous part of the page-cache-preferred area, whose pieces are promised,
 * that of the area, or that of the contiguous memory allocator.  The last one promises nothing, and
 * is asked for a tenth of them, since it takes several times as long over one.
 */
#include <sched.h>

#include "beside.h"

#define CANNOT 4	/* as an exit code */

/* One of the names. */
static const char *find_heap(bool *promised)
{
	static const char cma[] = "reserved";
	char path[64];

	*promised = true;
	if (!access(AREA "contig_size", F_OK) && !says("contig_size", "0"))
		return "pcpa-contig";
	if (!access(AREA "size", F_OK) && !says("size", "0"))
		return "pcpa";
	*promised = false;
	snprintf(path, sizeof(path), HEAPS "%s", cma);
	return access(path, F_OK) ? NULL : cma;
}

static const struct adversary *find_user(const char *name, int *nr)
{
	int i;

	*nr = 1;
	for (i = 0; i < NR_ADVERSARIES; i++)
		if (is(name, adversaries[i].name))
			return &adversaries[i];
	*nr = NR_ADVERSARIES;
	return is(name, "all") ? adversaries : NULL;
}

/* The lab reads them.  What is not asked for any more, as a request had no end, is refused. */
static void print_figures(const struct figures *f, int nr_pieces)
{
	printf("# figure held_kb %lu KiB\n", f->held_kb);
	printf("# figure asked %d\n", nr_pieces);
	printf("# figure refused %d\n", nr_pieces - f->given);
	printf("# figure hung %d\n", f->hung);
	printf("# cost p50_us %u\n", f->us[f->asked / 2]);
	printf("# cost p99_us %u\n", f->us[f->asked * 99 / 100]);
	printf("# cost longest_us %u\n", f->us[f->asked - 1]);
}

/*
 * What is measured is the request: on the one CPU of such a guest the users would run first.  The
 * next request finds the area in other hands, though it comes soon.
 */
static void measure_alone(void)
{
	struct sched_param first = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first))
		claim(false, "it comes before the users");
	put(AREA "timer_ms", "5");
}

int main(int argc, char **argv)
{
	const struct adversary *first;
	const struct figures *figures;
	const char *heap;
	bool promised;
	int nr, nr_pieces = argc == 3 ? atoi(argv[2]) : 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && is(argv[1], "admit")) {
		mkdir("/data", 0755);
		admit();
		return 0;
	}
	first = nr_pieces ? find_user(argv[1], &nr) : NULL;
	if (!first || nr_pieces < 1 || nr_pieces > MOST) {
		fprintf(stderr, "usage: pieces admit | pieces USER NR\n");
		return 2;
	}
	heap = find_heap(&promised);
	if (!heap || (nr == 1 && !there(first)))
		return CANNOT;
	if (!promised)
		nr_pieces = (nr_pieces + 9) / 10;
	measure_alone();
	figures = beside(argv[1], first, nr, heap, nr_pieces, promised);
	if (figures->asked)
		print_figures(figures, nr_pieces);
	return !!nr_wrong;
}
