/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEASURE_SAMPLER_H
#define MEASURE_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

void sampler_hello(void);
void sampler_sample(uint32_t launch, int alive, int cached);
void sampler_moment(const char *when);
void sampler_sizes(void);
size_t sampler_buddy(char *p, size_t size);
void sampler_owned(char *p, size_t size);

#endif
