/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/units.h"

uint64_t now_ns(void);
void sleep_ns(uint64_t ns);
void sleep_until(uint64_t ns);
void futex_wait(uint32_t *word, uint32_t seen, uint64_t timeout_ns);
void futex_wake(uint32_t *word);
void bump(uint32_t *word);
void power_off(void) __attribute__((noreturn));
ssize_t slurp(const char *path, char *buf, size_t size);
int spit(const char *path, const char *value);
void set_name(const char *name);

#endif
