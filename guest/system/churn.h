/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SYSTEM_CHURN_H
#define SYSTEM_CHURN_H

void churn_main(void) __attribute__((noreturn));

#endif
