/* SPDX-License-Identifier: GPL-2.0 */
#ifndef APPS_BUFFERS_H
#define APPS_BUFFERS_H

#include <stdint.h>

#include "apps/app.h"

/* What a client writes into the pipe of the buffer service. */
enum buf_op { BUF_ALLOC, BUF_CAMERA, BUF_GPU, BUF_GPU_AGE, BUF_FREE, BUF_FREE_ALL };

struct buf_req {
	uint32_t op;
	int32_t slot;
	uint64_t bytes;
};

int buffer_alloc(int slot, uint64_t bytes);
int buffer_camera(int slot, uint64_t bytes);
int buffer_gpu(int slot, uint64_t bytes);
void buffer_free_async(int slot);
void buffer_free_all_async(int slot);
void buffers_build(const struct app *a, struct rng *r, uint64_t num, uint64_t den);

#endif
