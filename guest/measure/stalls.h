/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEASURE_STALLS_H
#define MEASURE_STALLS_H

#include <stdint.h>

#define EVENTS "/sys/kernel/tracing/events/"
#define STALL_RECLAIM EVENTS "vmscan/mm_vmscan_direct_reclaim_begin/id"
#define STALL_COMPACT EVENTS "compaction/mm_compaction_begin/id"

int stall_counter(const char *tracepoint);
uint64_t stall_count(int fd);

#endif
