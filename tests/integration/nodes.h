/* SPDX-License-Identifier: GPL-2.0 */
/* Where the pages of a process lie, for the small guests that have several nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/*
 * How many pages of a process, 0 for the own one, that lie so far apart, are on this node.  One
 * that is being moved, by kcompactd for one, is nowhere for a moment.
 */
static inline int pages_on_node(pid_t pid, char *p, int nr, size_t step, int node)
{
	void **page = malloc(nr * sizeof(*page));
	int *status = malloc(nr * sizeof(*status));
	int i, n, moving, tries = 0;

	if (!page || !status)
		exit(1);
	for (i = 0; i < nr; i++)
		page[i] = p + i * step;
	do {
		if (tries)
			usleep(10000);
		syscall(SYS_move_pages, pid, (long)nr, page, NULL, status, 0);
		for (i = 0, n = 0, moving = 0; i < nr; i++) {
			n += status[i] == node;
			moving += status[i] < 0;
		}
	} while (moving && ++tries < 1000);
	if (moving)
		printf("note pages_that_are_nowhere %d\n", moving);
	free(page);
	free(status);
	return n;
}
