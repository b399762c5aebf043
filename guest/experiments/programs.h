/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EXPERIMENTS_PROGRAMS_H
#define EXPERIMENTS_PROGRAMS_H

void programs_run(void);

#endif
