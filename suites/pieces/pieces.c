// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers of 64 MB, one after another beside a user without rights that holds pages: whether each
 * is given, and how long the request took.
 *
 *	pieces admit
 *	pieces USER NR
 *
 * The first makes the users' files, once in a guest.  The heap is the one that the guest keeps
 * memory for: that of the contiguous part of the page-cache-preferred area, that of the area, whose
 * buffers are of several pieces, or that of the contiguous memory allocator.  The last one promises
 * nothing and is asked a tenth as often, since a request takes several times as long there.
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

static int last_of(int percent, int asked)
{
	return (asked * percent + 99) / 100 - 1;
}

/* The lab reads them.  What is not asked for any more, as a request had no end, is refused. */
static void print_figures(const struct figures *f, int nr_pieces)
{
	long pages = f->given * (KEPT_MB * MB / PAGE);

	printf("# figure held_kb %lu KiB\n", f->held_kb);
	printf("# figure others_kb %u KiB\n", f->others_kb[f->asked / 2]);
	printf("# figure asked %d\n", nr_pieces);
	printf("# figure refused %d\n", nr_pieces - f->given);
	printf("# figure hung %d\n", f->hung);
	if (f->area_pages && pages)
		printf("# figure of_area %.3f share\n", 1.0 * f->area_pages / pages);
	printf("# figure longest_us %u us\n", f->us[f->asked - 1]);
	printf("# cost p50_us %u\n", f->us[last_of(50, f->asked)]);
	printf("# cost p99_us %u\n", f->us[last_of(99, f->asked)]);
}

/* What is measured is the request: on the one CPU of such a guest the users would run first. */
static void come_first(void)
{
	struct sched_param first = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first))
		claim(false, "it comes before the users");
}

/* Of all of them each is there. */
static bool all_there(const struct adversary *first, int nr)
{
	bool all = true;
	int i;

	for (i = 0; i < nr; i++)
		all &= there(&first[i]);
	return all;
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
		return !!nr_wrong;
	}
	first = nr_pieces ? find_user(argv[1], &nr) : NULL;
	if (!first || nr_pieces < 1 || nr_pieces > MOST) {
		fprintf(stderr, "usage: pieces admit | pieces USER NR\n");
		return 2;
	}
	heap = find_heap(&promised);
	if (!heap || !all_there(first, nr))
		return CANNOT;
	if (!promised)
		nr_pieces = (nr_pieces + 9) / 10;
	come_first();
	figures = beside(argv[1], first, nr, heap, nr_pieces, promised);
	if (figures->asked)
		print_figures(figures, nr_pieces);
	if (is(argv[1], "reader"))
		claim(figures->others_kb[figures->asked / 2], "others use what the heap has");
	return !!nr_wrong;
}
