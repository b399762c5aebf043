/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SYSTEM_LMKD_H
#define SYSTEM_LMKD_H

void lmkd_main(void) __attribute__((noreturn));
void lmkd_wake(void);

#endif
