/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
	uint64_t s;
};

void rng_seed(struct rng *r, uint64_t seed, uint64_t stream);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n);
uint64_t rng_range(struct rng *r, uint64_t lo, uint64_t hi);
uint64_t rng_skewed(struct rng *r, uint64_t n);

#endif
