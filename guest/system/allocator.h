/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SYSTEM_ALLOCATOR_H
#define SYSTEM_ALLOCATOR_H

void allocator_main(void) __attribute__((noreturn));

#endif
