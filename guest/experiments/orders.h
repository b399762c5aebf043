/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EXPERIMENTS_ORDERS_H
#define EXPERIMENTS_ORDERS_H

void orders_run(void);

#endif
