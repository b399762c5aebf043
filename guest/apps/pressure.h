/* SPDX-License-Identifier: GPL-2.0 */
#ifndef APPS_PRESSURE_H
#define APPS_PRESSURE_H

void pressure_start(int slot);

#endif
