/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SYSTEM_SWAP_H
#define SYSTEM_SWAP_H

void swap_on(void);

#endif
