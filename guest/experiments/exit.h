/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EXPERIMENTS_EXIT_H
#define EXPERIMENTS_EXIT_H

void exit_run(void);

#endif
