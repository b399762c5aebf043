/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SYSTEM_AM_H
#define SYSTEM_AM_H

#include <stdbool.h>
#include <stdint.h>

void am_boot(void);
void am_launch(uint32_t n);
void am_sample(uint32_t launch);
void am_notice(void);
void am_busy(bool busy);
void wait_scaled_ms(uint64_t ms);

#endif
