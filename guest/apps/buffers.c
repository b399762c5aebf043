// SPDX-License-Identifier: GPL-2.0
/* Buffers as an app asks for them: the clients' side of the buffer service. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "apps/buffers.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"

static void send(const struct buf_req *req)
{
	if (write(sh->gralloc_pipe[1], req, sizeof(*req)) != sizeof(*req))
		fatal("gralloc pipe: %s", strerror(errno));
}

static int call(enum buf_op op, int slot, uint64_t bytes)
{
	struct buf_req req = { .op = op, .slot = slot, .bytes = bytes };
	struct slot *s = &sh->slot[slot];
	uint32_t seen = __atomic_load_n(&s->buf_done, __ATOMIC_ACQUIRE);

	send(&req);
	while (__atomic_load_n(&s->buf_done, __ATOMIC_ACQUIRE) == seen)
		futex_wait(&s->buf_done, seen, 0);
	return s->buf_error;
}

int buffer_alloc(int slot, uint64_t bytes)
{
	return call(BUF_ALLOC, slot, bytes);
}

int buffer_camera(int slot, uint64_t bytes)
{
	return call(BUF_CAMERA, slot, bytes);
}

int buffer_gpu(int slot, uint64_t bytes)
{
	return call(BUF_GPU, slot, bytes);
}

static void tell(enum buf_op op, int slot)
{
	struct buf_req req = { .op = op, .slot = slot };

	send(&req);
}

/* It left the screen: surfaces and codec buffers go, GPU memory stays. */
void buffer_free_async(int slot)
{
	tell(BUF_FREE, slot);
}

void buffer_free_all_async(int slot)
{
	tell(BUF_FREE_ALL, slot);
}

/* Share num/den of the buffers of one launch, GPU pages in between. */
void buffers_build(const struct app *a, struct rng *r, uint64_t num, uint64_t den)
{
	const struct profile *p = a->prof;
	uint64_t total = rng_range(r, p->buf_min_kb, p->buf_max_kb) * num / den;
	uint64_t all = total, piece;

	tell(BUF_GPU_AGE, a->slot);
	while (total >= p->piece_align_kb && p->piece_align_kb) {
		piece = rng_range(r, p->piece_min_kb, p->piece_max_kb);
		piece -= piece % p->piece_align_kb;
		if (piece > total)
			piece = total - total % p->piece_align_kb;
		buffer_alloc(a->slot, piece * KB);
		total -= piece;
		buffer_gpu(a->slot, p->gpu_kb * KB * (all - total) / all);
		think(r);
	}
}
