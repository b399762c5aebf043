/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEASURE_PROFILE_H
#define MEASURE_PROFILE_H

void profile_start(void);
void profile_report(void);

#endif
