/* SPDX-License-Identifier: GPL-2.0 */
#ifndef APPS_JUDGE_H
#define APPS_JUDGE_H

#include <stdint.h>

#include "apps/app.h"

void scroll_begin(struct app *a);
void scroll_end(struct app *a);
void judge_record(uint32_t launch, int apps);

#endif
