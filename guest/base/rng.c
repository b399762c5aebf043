// SPDX-License-Identifier: GPL-2.0
/* splitmix64: one stream a process and launch, all from the run's seed. */
#include "base/rng.h"

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

void rng_seed(struct rng *r, uint64_t seed, uint64_t stream)
{
	r->s = mix(seed + 0x9e3779b97f4a7c15ULL) ^ mix(stream * 0xd1342543de82ef95ULL + 1);
}

uint64_t rng_next(struct rng *r)
{
	r->s += 0x9e3779b97f4a7c15ULL;
	return mix(r->s);
}

/* Uniform in [0, n); the modulo bias is below 2^-40 for what we draw. */
uint64_t rng_below(struct rng *r, uint64_t n)
{
	return n ? rng_next(r) % n : 0;
}

uint64_t rng_range(struct rng *r, uint64_t lo, uint64_t hi)
{
	return hi > lo ? lo + rng_below(r, hi - lo + 1) : lo;
}

/* In [0, n), density falling as x^(-3/4): three quarters of draws in a third. */
uint64_t rng_skewed(struct rng *r, uint64_t n)
{
	uint64_t u = rng_below(r, 1 << 16);
	uint64_t u2 = (u * u) >> 16;

	return (n * ((u2 * u2) >> 16)) >> 16;
}
