/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SYSTEM_ROLE_H
#define SYSTEM_ROLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/conf.h"

void roles_setup(void);
void roles_record(void);
void role_enter(int index);
void role_borrow(int index);
bool role_protected(int index);
uint64_t role_vnode_kb(const struct role *role, const char *file);

#endif
