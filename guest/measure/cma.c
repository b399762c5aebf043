// SPDX-License-Identifier: GPL-2.0
/*
 * How long the kernel looked for a contiguous piece: the CMA heap finds and
 * zeroes in one call, and only its tracepoints tell the two apart. They stay
 * switched on, as to switch them costs more than an allocation.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/records.h"
#include "base/util.h"
#include "measure/cma.h"
#include "measure/stalls.h"

#define TRACING "/sys/kernel/tracing/"

static int pipe_fd = -1;

static void set(const char *path, const char *value)
{
	int err = spit(path, value);

	if (err)
		fatal("%s: %s", path, strerror(-err));
}

/* Is that heap a CMA area? If so its events are taken from here on. */
bool cma_open(const char *heap)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/mm/cma/%s", heap);
	if (access(path, F_OK))
		return false;
	set(TRACING "trace_clock", "mono");
	set(TRACING "buffer_size_kb", "256");
	set(EVENTS "cma/enable", "1");
	pipe_fd = open(TRACING "trace_pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (pipe_fd < 0)
		fatal(TRACING "trace_pipe: %s", strerror(errno));
	return true;
}

/* Everything traced since the last call. */
static size_t take(char *text, size_t size)
{
	size_t got = 0;
	ssize_t n;

	while (got < size - 1 && (n = read(pipe_fd, text + got, size - 1 - got)) > 0)
		got += n;
	text[got] = '\0';
	return got;
}

static char text[256 * KB];

/* Events traced before are of no matter: pieces given back. */
void cma_begin(void)
{
	while (take(text, sizeof(text)) == sizeof(text) - 1)
		;
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
	char *line, *save, *event;
	uint64_t start = 0, ns = 0;
	bool finished = false;

	*busy = 0;
	take(text, sizeof(text));
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
