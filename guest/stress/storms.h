/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STRESS_STORMS_H
#define STRESS_STORMS_H

#include <stdbool.h>

void storm_processes(void);
bool storm_bomb_prepare(void);
bool storm_hog_prepare(void);
void storm_bomb(void);
void storm_hog(void);
void storm_bad_page(void);
bool storm_cma_prepare(void);
void storm_cma(void);
bool storm_area_prepare(void);
void storm_area(void);

#endif
