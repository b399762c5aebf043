/* SPDX-License-Identifier: GPL-2.0 */
#ifndef APPS_HEAP_H
#define APPS_HEAP_H

#include <stdint.h>

#include "base/rng.h"

struct heap {
	char *base;
	uint64_t max;			/* pages mapped */
	uint64_t used;			/* pages below are or were touched */
};

void heap_init(struct heap *h, uint64_t max_kb);
void heap_grow(struct heap *h, struct rng *r, uint64_t pages);
void heap_trim(struct heap *h, struct rng *r, uint64_t pages);
void heap_churn(struct heap *h, struct rng *r, uint64_t pages);
void heap_touch(struct heap *h, struct rng *r);
void heap_show(struct heap *h, uint64_t from, uint64_t pages);
void think(struct rng *r);

#endif
