// SPDX-License-Identifier: GPL-2.0
/*
 * Stalls of one thread. The kernel's counters know those of all processes
 * together; perf counts the tracepoints that the calling thread meets.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/records.h"
#include "base/util.h"
#include "measure/stalls.h"

/* Counts from here on; `tracepoint` is one of STALL_*. */
int stall_counter(const char *tracepoint)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
	};
	char text[16];
	int fd;

	if (slurp(tracepoint, text, sizeof(text)) < 0)
		fatal("%s: %s", tracepoint, strerror(errno));
	attr.config = strtoull(text, NULL, 10);
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		fatal("no way to count stalls: %s", strerror(errno));
	return fd;
}

uint64_t stall_count(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) != sizeof(count))
		fatal("reading a stall counter: %s", strerror(errno));
	return count;
}
