/* SPDX-License-Identifier: GPL-2.0 */
/* Random numbers of the property tests: the same seed gives the same run anywhere. */
#ifndef COHORT_TESTS_RANDOM_H
#define COHORT_TESTS_RANDOM_H

#include <stdint.h>

static uint64_t state;

/* splitmix64 */
static uint64_t next(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

#endif /* COHORT_TESTS_RANDOM_H */
