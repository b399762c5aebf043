/* SPDX-License-Identifier: GPL-2.0 */
#ifndef APPS_APP_H
#define APPS_APP_H

#include <stdint.h>

#include "apps/files.h"
#include "apps/heap.h"
#include "base/conf.h"

/* A process of the phone, an app or a service. */
struct app {
	int slot;
	uint32_t launch;		/* the one it works for now */
	const struct profile *prof;
	struct heap heap;
	struct mapped code, res;
};

void app_start(struct app *a, struct rng *r);
void app_resume(struct app *a, struct rng *r);
void app_use(struct app *a, struct rng *r);
void app_background(struct app *a, struct rng *r);
void app_work(struct app *a, struct rng *r);

#endif
