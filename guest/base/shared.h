/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the phone's processes share.
 *
 * init maps one struct shared before it forks anything; every process finds
 * its configuration, its mailbox and the record ring there. All times are
 * CLOCK_MONOTONIC nanoseconds. Nothing reads the host: no wall clock, no
 * random device, no addresses as data, so that one seed gives one run.
 */
#ifndef BASE_SHARED_H
#define BASE_SHARED_H

#include <stdint.h>

#include "base/conf.h"
#include "base/units.h"

#define RING_SIZE (2 * MB)

enum op { OP_NONE, OP_START, OP_RESUME, OP_USE, OP_BACKGROUND, OP_WORK };

/*
 * A slot is one process of the phone. Its mailbox holds one command: the
 * activity manager writes op, arg and then seq; the process answers by
 * setting done = seq. So seq == done means idle.
 */
struct slot {
	uint32_t seq;
	uint32_t done;
	uint32_t op;
	uint32_t launch;		/* number of the launch it works for */
	int32_t pid;			/* 0: not running; written by zygote */
	int32_t adj;
	uint32_t lmkd_killed;		/* pid lmkd killed, 0 if none */
	uint64_t majflt;
	uint64_t cpu_ns;		/* it ran so far */
	uint64_t last_used;		/* launch number, for LRU order */
	uint32_t buf_done;		/* answers of the buffer allocator */
	int32_t buf_error;
	uint64_t work_bytes, work_ns;	/* memory pressure it made, and how long that took */
	uint64_t work_cpu_ns;		/* CPU time of that */
	uint64_t held_kb, held_free_kb;	/* heap it holds or last held, free memory of the machine then */
};

/* Work that page faults are counted by. */
enum faulting { FAULTS_FOREGROUND, FAULTS_BACKGROUND, FAULTS_SYSTEM, NR_FAULTING };

struct shared {
	struct conf conf;
	struct slot slot[MAX_SLOTS];
	uint32_t am_event;		/* bumped whenever am should look */
	uint32_t busy;			/* a launch is being served */
	uint32_t launch;		/* current launch number */
	uint32_t fatal;
	uint32_t stress_stop;		/* the launches are done */
	uint32_t stress_over;		/* processes may die now */
	uint32_t camera_opens;		/* launch whose camera asks for its buffers now */
	uint64_t media_at;		/* bytes of media read so far */
	uint64_t camera_stalls;		/* of the camera and of its buffers' service */
	uint64_t majflt[NR_FAULTING];	/* of all slots so far, those that are gone included */
	int32_t zygote_pipe[2];
	int32_t gralloc_pipe[2];
	int32_t lmkd_pipe[2];
	/* record ring, records.c */
	uint32_t ring_lock;
	uint32_t ring_used;
	char ring[RING_SIZE];
};

extern struct shared *sh;

#endif
