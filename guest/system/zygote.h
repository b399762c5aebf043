/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SYSTEM_ZYGOTE_H
#define SYSTEM_ZYGOTE_H

void zygote_main(void) __attribute__((noreturn));
void zygote_fork(int slot);

#endif
