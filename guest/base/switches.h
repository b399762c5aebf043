/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BASE_SWITCHES_H
#define BASE_SWITCHES_H

void switches_record(void);

#endif
