/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EXPERIMENTS_LIB_H
#define EXPERIMENTS_LIB_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

void experiment_quiet(uint64_t ms);
void experiment_wait(uint32_t *done, uint32_t want, const pid_t *pids, uint64_t nr);
void *experiment_share(size_t size);
pid_t experiment_fork(const char *name, uint64_t first_cpu, uint64_t last_cpu);
char *experiment_map(uint64_t pages);
void experiment_touch(char *base, uint64_t pages);

#endif
