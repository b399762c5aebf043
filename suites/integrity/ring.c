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

static struct {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
} ring;

static int file;
static char *buffers[BUFFERS];

static void open_ring(void)
{
	struct io_uring_params p = { 0 };
	size_t size;
	char *m;

	ring.fd = syscall(SYS_io_uring_setup, DEPTH, &p);
	if (ring.fd < 0)
		skip("no io_uring: %s", strerror(errno));
	if (!(p.features & IORING_FEAT_SINGLE_MMAP))
		skip("an old io_uring");
	size = p.sq_off.array + p.sq_entries * sizeof(unsigned int);
	if (p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe) > size)
		size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd,
		 IORING_OFF_SQ_RING);
	ring.sqes = mmap(NULL, p.sq_entries * sizeof(*ring.sqes), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
	if (m == MAP_FAILED || ring.sqes == MAP_FAILED)
		die_errno("mmap of a ring");
	ring.sq_tail = (unsigned int *)(m + p.sq_off.tail);
	ring.sq_mask = (unsigned int *)(m + p.sq_off.ring_mask);
	ring.sq_array = (unsigned int *)(m + p.sq_off.array);
	ring.cq_head = (unsigned int *)(m + p.cq_off.head);
	ring.cq_tail = (unsigned int *)(m + p.cq_off.tail);
	ring.cq_mask = (unsigned int *)(m + p.cq_off.ring_mask);
	ring.cqes = (struct io_uring_cqe *)(m + p.cq_off.cqes);
}

/* So many pages of a buffer, at a page of the file. */
static void add(int op, int buffer, unsigned int pages, off_t page)
{
	unsigned int tail = *ring.sq_tail, i = tail & *ring.sq_mask;
	struct io_uring_sqe *s = &ring.sqes[i];

	memset(s, 0, sizeof(*s));
	s->opcode = op;
	s->fd = file;
	s->addr = (uintptr_t)buffers[buffer];
	s->len = pages * PG;
	s->off = page * PG;
	s->buf_index = buffer;
	s->user_data = pages * PG;
	ring.sq_array[i] = i;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static void complete(unsigned int n)
{
	unsigned int seen = 0, submitted = 0;

	while (seen < n) {
		int done = syscall(SYS_io_uring_enter, ring.fd, n - submitted, 1,
				   IORING_ENTER_GETEVENTS, NULL, 0);
		unsigned int head = *ring.cq_head;

		if (done < 0 && errno != EINTR && errno != EAGAIN && errno != EBUSY)
			die_errno("io_uring_enter");
		if (done > 0)
			submitted += done;
		while (head != __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE)) {
			struct io_uring_cqe *c = &ring.cqes[head++ & *ring.cq_mask];

			if (c->res != (int)c->user_data)
				die("a request of %llu bytes ended with %d",
				    (unsigned long long)c->user_data, c->res);
			seen++;
		}
		__atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
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

static uint64_t buffer_tag(uint64_t tag, int b)
{
	return tag + b * 1000 + 500000;
}

/* Buffers here and there in memory, of which all that is not registered goes. */
static void place_buffers(char *m, size_t apart, int advice)
{
	struct iovec iov[BUFFERS];
	char *end;
	int b;

	for (b = 0; b < BUFFERS; b++) {
		buffers[b] = m + b * apart + (1 + below(apart / PG - PAGES - 2)) * PG;
		iov[b] = (struct iovec){ buffers[b], PAGES * PG };
	}
	if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, iov, BUFFERS))
		die_errno("IORING_REGISTER_BUFFERS");
	for (b = 0; b < BUFFERS; b++) {
		end = buffers[b] + PAGES * PG;
		madvise(m + b * apart, buffers[b] - (m + b * apart), advice);
		madvise(end, m + (b + 1) * apart - end, advice);
	}
	compact();
}

static void write_all(uint64_t tag)
{
	int b;

	for (b = 0; b < BUFFERS; b++) {
		fill_run(buffers[b], PAGES, buffer_tag(tag, b));
		add(IORING_OP_WRITE_FIXED, b, PAGES, b * PAGES);
	}
	complete(BUFFERS);
}

/* Each gets what another has written, while a child has the same memory. */
static void read_all(char *m, size_t size, uint64_t tag, bool shared)
{
	pid_t pid = child();
	int b;

	/* Pages that are pinned may not become shared with a child. */
	if (!pid) {
		if (!shared)
			fill_run(buffers[0], PAGES, 3);
		nap_ms(20);
		_exit(0);
	}
	for (b = 0; b < BUFFERS; b++)
		fill_run(buffers[b], PAGES, 7);
	madvise(m, size, MADV_PAGEOUT);
	for (b = 0; b < BUFFERS; b++)
		add(IORING_OP_READ_FIXED, b, PAGES, (b + 5) % BUFFERS * PAGES);
	complete(BUFFERS);
	for (b = 0; b < BUFFERS; b++)
		check_run(buffers[b], PAGES, buffer_tag(tag, (b + 5) % BUFFERS),
			  "a registered buffer");
	want_well(pid, "a child");
}

/* A page that is dropped stays with the ring, and the process has another one. */
static void replace_page(void)
{
	if (madvise(buffers[1], PG, MADV_DONTNEED))
		die_errno("MADV_DONTNEED");
	add(IORING_OP_READ_FIXED, 1, 1, 0);
	complete(1);
	check_page(buffers[1], 0, "a page that took the place of a pinned one");
}

static void one_round(long r, size_t apart)
{
	uint64_t tag = ((uint64_t)r + 1) << 32;
	size_t size = apart * BUFFERS;
	bool shared = r % 3 == 2;
	char *m = surroundings(r % 3, size);
	int b;

	fill_run(m, size / PG, tag);
	place_buffers(m, apart, r % 2 ? MADV_PAGEOUT : MADV_DONTNEED);
	write_all(tag);
	read_all(m, size, tag, shared);
	if (!shared)
		replace_page();
	if (syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_BUFFERS, NULL, 0))
		die_errno("IORING_UNREGISTER_BUFFERS");
	for (b = 2; b < BUFFERS; b++)
		check_run(buffers[b], PAGES, buffer_tag(tag, (b + 5) % BUFFERS),
			  "a buffer that is no longer registered");
	munmap(m, size);
}

int main(int argc, char **argv)
{
	long rounds = arg(argc, argv, 1, 18), r;
	char path[PATH_MAX];
	size_t apart;

	begin("ring", arg(argc, argv, 2, 23));
	open_ring();
	work_path(path, sizeof(path), "ring");
	file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
	if (file < 0)
		skip("no direct I/O: %s", strerror(errno));
	if (fallocate(file, 0, 0, BUFFERS * PAGES * PG))
		die_errno("fallocate");
	apart = clamp(budget_mb() / 10 / BUFFERS, 2, 8) * MB & ~(HUGE - 1);
	load_start(3, budget_mb() / 8, 64);
	for (r = 0; r < rounds; r++) {
		one_round(r, apart);
		load_lives();
	}
	load_end();
	return 0;
}
