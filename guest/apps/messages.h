/* SPDX-License-Identifier: GPL-2.0 */
#ifndef APPS_MESSAGES_H
#define APPS_MESSAGES_H

#include "base/conf.h"

void messages_show(const struct profile *p);

#endif
