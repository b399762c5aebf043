/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEASURE_MAP_H
#define MEASURE_MAP_H

#include <stdint.h>

void map_record(uint32_t launch);
void map_area(uint32_t launch, uint64_t base_pfn, uint64_t pages);

#endif
