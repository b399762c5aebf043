/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BASE_RECORDS_H
#define BASE_RECORDS_H

#include "base/record_kinds.h"

void records_open(void);
void record(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void records_flush(void);
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void fatal(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
