/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EXPERIMENTS_CREW_H
#define EXPERIMENTS_CREW_H

#include <stdbool.h>
#include <stdint.h>

#define CREW_MAX 64

struct crew_work {
	void *(*begin)(uint64_t nr);	/* in worker nr; what its steps are given */
	void (*step)(void *own, uint64_t nr);
};

void crew_start(const struct crew_work *how, uint64_t workers, bool threads);
uint64_t crew_step(void);
uint64_t crew_busy_ns(void);
void crew_stop(void);

#endif
