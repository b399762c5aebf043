// SPDX-License-Identifier: GPL-2.0
/* The processes that are up from boot on: they work whenever an app starts. */
#include "apps/pressure.h"
#include "apps/service.h"
#include "base/shared.h"

static uint64_t pages(uint64_t kb)
{
	return kb * KB / PAGE;
}

void service_start(struct app *a, struct rng *r)
{
	heap_init(&a->heap, a->prof->heap_kb * 2);
	heap_grow(&a->heap, r, pages(a->prof->heap_kb));
	file_touch(&system_image, r, pages(sh->conf.set.service_file_kb));
	pressure_start(a->slot);
}

void service_work(struct app *a, struct rng *r)
{
	const struct settings *set = &sh->conf.set;

	heap_churn(&a->heap, r, pages(set->service_churn_kb) / 2);
	file_touch(&system_image, r, pages(set->service_file_kb));
	heap_churn(&a->heap, r, pages(set->service_churn_kb) / 2);
	db_write(a->prof->name, r, set->service_db_writes);
}
