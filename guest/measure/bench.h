/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEASURE_BENCH_H
#define MEASURE_BENCH_H

void bench_fault(const char *when);

#endif
