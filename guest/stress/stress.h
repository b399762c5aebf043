/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STRESS_STRESS_H
#define STRESS_STRESS_H

#include <stdbool.h>

bool stress_wanted(void);
void stress_baseline(void);
void stress_main(void) __attribute__((noreturn));
void stress_finish(void) __attribute__((noreturn));

#endif
