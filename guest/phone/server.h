/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PHONE_SERVER_H
#define PHONE_SERVER_H

void am_main(void) __attribute__((noreturn));

#endif
