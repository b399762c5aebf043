/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEASURE_WORK_H
#define MEASURE_WORK_H

#include <stdint.h>

void pressure_record(uint32_t launch);

#endif
