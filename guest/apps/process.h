/* SPDX-License-Identifier: GPL-2.0 */
#ifndef APPS_PROCESS_H
#define APPS_PROCESS_H

#include <stdbool.h>

#include "base/shared.h"

void process_run(int slot) __attribute__((noreturn));
bool slot_idle(const struct slot *s);

#endif
