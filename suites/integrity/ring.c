// SPDX-License-Identifier: GPL-2.0
/*
 * ring ROUNDS [SEED]
 *
 * Buffers that are registered with io_uring are pinned for long: the memory around them is given
 * back, compacted and swapped, children are forked, and what direct I/O reads and writes by them
 * has to be what the process sees at these addresses.
 */
#include "load.h"
#include <linux/io_uring.h>

#define BUFFERS 12
#define PAGES 48UL		/* of a buffer */
#define DEPTH 16

struct ring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static void open_ring(struct ring *r)
{
	struct io_uring_params p = { 0 };
	size_t size;
	char *m;

	r->fd = syscall(SYS_io_uring_setup, DEPTH, &p);
	if (r->fd < 0)
		skip("no io_uring: %s", strerror(errno));
	if (!(p.features & IORING_FEAT_SINGLE_MMAP))
		skip("an old io_uring");
	size = p.sq_off.array + p.sq_entries * sizeof(unsigned int);
	if (p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe) > size)
		size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd,
		 IORING_OFF_SQ_RING);
	r->sqes = mmap(NULL, p.sq_entries * sizeof(*r->sqes), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
	if (m == MAP_FAILED || r->sqes == MAP_FAILED)
		die_errno("mmap of a ring");
	r->sq_tail = (unsigned int *)(m + p.sq_off.tail);
	r->sq_mask = (unsigned int *)(m + p.sq_off.ring_mask);
	r->sq_array = (unsigned int *)(m + p.sq_off.array);
	r->cq_head = (unsigned int *)(m + p.cq_off.head);
	r->cq_tail = (unsigned int *)(m + p.cq_off.tail);
	r->cq_mask = (unsigned int *)(m + p.cq_off.ring_mask);
	r->cqes = (struct io_uring_cqe *)(m + p.cq_off.cqes);
}

static void add(struct ring *r, int op, int file, int buffer, void *at, unsigned int len, off_t off)
{
	unsigned int tail = *r->sq_tail, i = tail & *r->sq_mask;
	struct io_uring_sqe *s = &r->sqes[i];

	memset(s, 0, sizeof(*s));
	s->opcode = op;
	s->fd = file;
	s->addr = (uintptr_t)at;
	s->len = len;
	s->off = off;
	s->buf_index = buffer;
	s->user_data = len;
	r->sq_array[i] = i;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static void complete(struct ring *r, unsigned int n)
{
	unsigned int seen = 0, submitted = 0;

	while (seen < n) {
		int done = syscall(SYS_io_uring_enter, r->fd, n - submitted, 1, IORING_ENTER_GETEVENTS,
				   NULL, 0);
		unsigned int head = *r->cq_head;

		if (done < 0 && errno != EINTR && errno != EAGAIN && errno != EBUSY)
			die_errno("io_uring_enter");
		if (done > 0)
			submitted += done;
		while (head != __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE)) {
			struct io_uring_cqe *c = &r->cqes[head++ & *r->cq_mask];

			if (c->res != (int)c->user_data)
				die("a request of %llu bytes ended with %d",
				    (unsigned long long)c->user_data, c->res);
			seen++;
		}
		__atomic_store_n(r->cq_head, head, __ATOMIC_RELEASE);
	}
}

/* Buffers in the midst of memory that goes. */
static char *surroundings(int kind, size_t size)
{
	char *p;

	switch (kind) {
	case 0:
		return map_anon(size);
	case 1:
		p = map_huge_aligned(size);
		madvise(p, size, MADV_HUGEPAGE);
		return p;
	default:
		return map_memfd(size, NULL);
	}
}

int main(int argc, char **argv)
{
	long rounds = arg(argc, argv, 1, 24), seed = arg(argc, argv, 2, 23), r, b, i;
	unsigned long apart, size, done = 0;
	char path[PATH_MAX];
	struct ring ring;
	int file;

	begin("ring", seed);
	open_ring(&ring);
	work_path(path, sizeof(path), "ring");
	file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
	if (file < 0)
		skip("no direct I/O: %s", strerror(errno));
	if (fallocate(file, 0, 0, BUFFERS * PAGES * PG))
		die_errno("fallocate");
	apart = budget_mb() * MB / 10 / BUFFERS & ~(HUGE - 1);
	if (apart < HUGE)
		apart = HUGE;
	if (apart > 8 * MB)
		apart = 8 * MB;
	size = apart * BUFFERS;
	load_start(3, budget_mb() / 8, 64);
	for (r = 0; r < rounds; r++) {
		char *m = surroundings(r % 3, size), *buffers[BUFFERS];
		struct iovec iov[BUFFERS];
		uint64_t tag = ((uint64_t)r + 1) << 32;
		pid_t pid;

		fill_run(m, size / PG, tag);
		for (b = 0; b < BUFFERS; b++) {
			buffers[b] = m + b * apart + (1 + below(apart / PG - PAGES - 2)) * PG;
			iov[b].iov_base = buffers[b];
			iov[b].iov_len = PAGES * PG;
		}
		if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, iov, BUFFERS)) {
			if (errno == EPERM || errno == ENOMEM)
				skip("buffers cannot be registered: %s", strerror(errno));
			die_errno("IORING_REGISTER_BUFFERS");
		}
		/* All that is not registered goes. */
		for (b = 0; b < BUFFERS; b++) {
			char *from = m + b * apart, *to = m + (b + 1) * apart;

			madvise(from, buffers[b] - from, r % 2 ? MADV_PAGEOUT : MADV_DONTNEED);
			madvise(buffers[b] + PAGES * PG, to - buffers[b] - PAGES * PG,
				r % 2 ? MADV_PAGEOUT : MADV_DONTNEED);
		}
		compact();
		for (b = 0; b < BUFFERS; b++) {
			fill_run(buffers[b], PAGES, tag + b * 1000 + 500000);
			add(&ring, IORING_OP_WRITE_FIXED, file, b, buffers[b], PAGES * PG, b * PAGES * PG);
		}
		complete(&ring, BUFFERS);
		/* Pages that are pinned may not become shared with a child. */
		pid = child();
		if (!pid) {
			if (r % 3 != 2)
				fill_run(buffers[0], PAGES, 3);
			nap_ms(20);
			_exit(0);
		}
		for (b = 0; b < BUFFERS; b++)
			fill_run(buffers[b], PAGES, 7);
		madvise(m, size, MADV_PAGEOUT);
		/* Each gets what another has written. */
		for (b = 0; b < BUFFERS; b++)
			add(&ring, IORING_OP_READ_FIXED, file, b, buffers[b], PAGES * PG,
			    (b + 5) % BUFFERS * PAGES * PG);
		complete(&ring, BUFFERS);
		for (b = 0; b < BUFFERS; b++)
			check_run(buffers[b], PAGES, tag + (b + 5) % BUFFERS * 1000 + 500000,
				  "a registered buffer");
		want_well(pid, "a child");
		/* A part of a buffer's mapping goes while it is registered: its pages stay with the
		 * ring, and the process has other ones. */
		if (r % 3 != 2) {
			if (madvise(buffers[1], PG, MADV_DONTNEED))
				die_errno("MADV_DONTNEED");
			add(&ring, IORING_OP_READ_FIXED, file, 1, buffers[1], PG, 0);
			complete(&ring, 1);
			check_page(buffers[1], 0, "a page that took the place of a pinned one");
		}
		done += 2 * BUFFERS * PAGES;
		if (syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_BUFFERS, NULL, 0))
			die_errno("IORING_UNREGISTER_BUFFERS");
		for (b = 2; b < BUFFERS; b++)
			for (i = 0; i < (long)PAGES; i += 8)
				check_page(buffers[b] + i * PG,
					   tag + (b + 5) % BUFFERS * 1000 + 500000 + i,
					   "a buffer that is no longer registered");
		munmap(m, size);
		load_lives();
	}
	load_end();
	figure("pages_by_ring", done, "");
	return 0;
}
