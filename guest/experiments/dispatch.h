/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EXPERIMENTS_DISPATCH_H
#define EXPERIMENTS_DISPATCH_H

void experiment_run(void);

#endif
