/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEASURE_CMA_H
#define MEASURE_CMA_H

#include <stdbool.h>
#include <stdint.h>

bool cma_open(const char *heap);
void cma_begin(void);
uint64_t cma_end(uint64_t *busy);

#endif
