// SPDX-License-Identifier: GPL-2.0
/* guest/apps/heap.c by itself: the waits of a heap that grows by so many pages, in such bursts. */
#include <stdio.h>
#include <stdlib.h>

#include "apps/heap.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"

static struct shared block;
struct shared *sh = &block;
static unsigned long waits;

void fatal(const char *fmt, ...)
{
	printf("%s\n", fmt);
	exit(1);
}

void sleep_ns(uint64_t ns)
{
	waits++;
}

int main(int argc, char **argv)
{
	struct heap heap;
	struct rng rng;

	if (argc != 3)
		return 2;
	sh->conf.set.burst_pages = atoi(argv[2]);
	rng_seed(&rng, 1, 1);
	heap_init(&heap, atoi(argv[1]) * PAGE_KB);
	heap_grow(&heap, &rng, atoi(argv[1]));
	printf("%lu\n", waits);
	return 0;
}
