/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EXPERIMENTS_THROUGHPUT_H
#define EXPERIMENTS_THROUGHPUT_H

void throughput_run(void);

#endif
