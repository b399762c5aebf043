/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EXPERIMENTS_SCALE_H
#define EXPERIMENTS_SCALE_H

void scale_run(void);

#endif
