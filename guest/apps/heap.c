// SPDX-License-Identifier: GPL-2.0
/*
 * Anonymous memory of a process: demand faults in small bursts with short
 * waits in between, so that several processes' faults interleave, and extents
 * given back with madvise() as a garbage collector does.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "apps/heap.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"

void heap_init(struct heap *h, uint64_t max_kb)
{
	h->max = max_kb * KB / PAGE;
	h->used = 0;
	h->base = mmap(NULL, h->max * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (h->base == MAP_FAILED)
		fatal("mmap of a heap: %s", strerror(errno));
}

/*
 * Where memory is swapped to compressed memory, what is in a page decides how
 * much that holds: a part of it is noise, once for each frame it gets.
 */
static void fill(volatile uint64_t *word, uint64_t page)
{
	uint64_t *last = (uint64_t *)word + sh->conf.fill_bytes / sizeof(*word);
	uint64_t *p, noise = page + 1;

	for (p = (uint64_t *)word + 1; p <= last; p++) {
		noise ^= noise << 13;
		noise ^= noise >> 7;
		noise ^= noise << 17;
		*p = noise;
	}
}

static void touch(struct heap *h, uint64_t page)
{
	volatile uint64_t *word = (uint64_t *)(h->base + page * PAGE);

	*word = page + 1;
	if (sh->conf.fill_bytes && !word[1])
		fill(word, page);
}

/* The wait of a process for a lock, a message or a frame. */
void think(struct rng *r)
{
	uint64_t us = rng_range(r, sh->conf.set.think_us / 2,
				sh->conf.set.think_us * 3 / 2);

	if (sh->conf.real_time)
		sched_yield();
	else
		sleep_ns(us * NSEC_PER_USEC);
}

static void burst_end(struct rng *r, uint64_t *left)
{
	if (--*left)
		return;
	think(r);
	*left = rng_range(r, sh->conf.set.burst_pages / 2,
			  sh->conf.set.burst_pages * 3 / 2);
	*left += !*left;		/* half of one page is none */
}

/* Fault in the next pages; stops silently at the heap's limit. */
void heap_grow(struct heap *h, struct rng *r, uint64_t pages)
{
	uint64_t left = 1 + rng_below(r, sh->conf.set.burst_pages);

	while (pages-- && h->used < h->max) {
		touch(h, h->used++);
		burst_end(r, &left);
	}
}

static uint64_t drop_extent(struct heap *h, struct rng *r, uint64_t *len)
{
	uint64_t at = rng_below(r, h->used);

	*len = rng_range(r, 1, sh->conf.set.extent_pages);
	if (at + *len > h->used)
		*len = h->used - at;
	madvise(h->base + at * PAGE, *len * PAGE, MADV_DONTNEED);
	return at;
}

/* Give back about that many pages in scattered extents. */
void heap_trim(struct heap *h, struct rng *r, uint64_t pages)
{
	uint64_t len;

	while (pages && h->used) {
		drop_extent(h, r, &len);
		pages -= len < pages ? len : pages;
	}
}

/* Free an extent here, fault another one in: same size, new places. */
void heap_churn(struct heap *h, struct rng *r, uint64_t pages)
{
	uint64_t left = 1 + rng_below(r, sh->conf.set.burst_pages);
	uint64_t last = 0, last_len = 0, at, len, i;

	while (pages && h->used) {
		at = drop_extent(h, r, &len);
		for (i = 0; i < last_len; i++) {
			touch(h, last + i);
			burst_end(r, &left);
		}
		last = at;
		last_len = len;
		pages -= len < pages ? len : pages;
	}
	for (i = 0; i < last_len; i++)
		touch(h, last + i);
}

/* Use the whole heap: only pages that had been given back fault. */
void heap_touch(struct heap *h, struct rng *r)
{
	uint64_t left = 1 + rng_below(r, sh->conf.set.burst_pages);
	unsigned char vec[256];
	uint64_t at, i, n;

	for (at = 0; at < h->used; at += n) {
		n = h->used - at < sizeof(vec) ? h->used - at : sizeof(vec);
		mincore(h->base + at * PAGE, n * PAGE, vec);
		for (i = 0; i < n; i++) {
			touch(h, at + i);
			if (!(vec[i] & 1))
				burst_end(r, &left);
		}
	}
}

/* Pages of a window that moves through the heap, without a wait. */
void heap_show(struct heap *h, uint64_t from, uint64_t pages)
{
	uint64_t used = h->used, i;

	for (i = 0; i < pages && used; i++)
		touch(h, (from + i) % used);
}
