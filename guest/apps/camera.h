/* SPDX-License-Identifier: GPL-2.0 */
#ifndef APPS_CAMERA_H
#define APPS_CAMERA_H

#include <stdbool.h>
#include <stdint.h>

struct camera_cost {
	uint64_t stalls, own;		/* entries into direct reclaim, the camera's own of them */
	uint64_t file, free;		/* pages */
	uint64_t in_kb, out_kb;		/* traffic to the flash */
};

bool camera_wanted(void);
bool camera_is(int slot);
void camera_open(int slot);
void camera_announce(int slot);
void camera_cost_begin(struct camera_cost *c);
void camera_cost_end(const struct camera_cost *a, int slot);
void area_record(uint32_t launch, const char *when);

#endif
