/* SPDX-License-Identifier: GPL-2.0 */
#ifndef APPS_SERVICE_H
#define APPS_SERVICE_H

#include "apps/app.h"

void service_start(struct app *a, struct rng *r);
void service_work(struct app *a, struct rng *r);

#endif
