// SPDX-License-Identifier: GPL-2.0
/*
 * How long the kernel looked for a contiguous piece: the CMA heap finds and
 * zeroes in one call, and only its tracepoints tell the two apart.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phone.h"

#define TRACING "/sys/kernel/tracing/"
#define CMA_EVENTS EVENTS "cma/enable"

static void set(const char *path, const char *value)
{
	int err = spit(path, value);

	if (err)
		fatal("%s: %s", path, strerror(-err));
}

/* Whether that heap is a CMA area; if so its events are ready to be taken. */
bool cma_open(const char *heap)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/mm/cma/%s", heap);
	if (access(path, F_OK))
		return false;
	set(TRACING "trace_clock", "mono");
	set(TRACING "buffer_size_kb", "256");
	return true;
}

void cma_begin(void)
{
	int fd = open(TRACING "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);	/* forget the last */

	if (fd < 0)
		fatal(TRACING "trace: %s", strerror(errno));
	close(fd);
	set(CMA_EVENTS, "1");
}

/* The time stamp in a line of the trace, "... 12.345678: cma_alloc_start: ...". */
static uint64_t stamp_ns(const char *line, const char *event)
{
	const char *at = event - 2;	/* the colon before the event's name */

	while (at > line && at[-1] != ' ')
		at--;
	return (uint64_t)(strtod(at, NULL) * 1e6 + 0.5) * NSEC_PER_USEC;
}

/* Time between start and finish of the call, and how often a range was busy. */
uint64_t cma_end(uint64_t *busy)
{
	static char text[256 * KB];
	char *line, *save, *event;
	uint64_t start = 0, ns = 0;
	bool finished = false;

	set(CMA_EVENTS, "0");
	*busy = 0;
	if (slurp(TRACING "trace", text, sizeof(text)) < 0)
		fatal(TRACING "trace: %s", strerror(errno));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if ((event = strstr(line, "cma_alloc_start:")))
			start = stamp_ns(line, event);
		*busy += !!strstr(line, "cma_alloc_busy_retry:");
		event = strstr(line, "cma_alloc_finish:");
		if (!event || !start)
			continue;
		ns += stamp_ns(line, event) - start;
		finished = true;
	}
	if (!finished)
		fatal("the trace of a CMA allocation is not whole");
	return ns;
}
