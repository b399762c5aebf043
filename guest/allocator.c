// SPDX-License-Identifier: GPL-2.0
/*
 * The buffer service, as Android's gralloc: one process that makes every
 * dma-buf on behalf of the apps. It owns the file descriptors, so an app that
 * dies leaves no buffer behind, and being the only client of the heap it can
 * say what each buffer was made of.
 *
 * Where the kernel counts the pieces (/sys/kernel/mm/cohort/buffer) it reads
 * those counters. On other kernels it counts its own page allocations with
 * perf tracepoint counters; then zeroing cannot be told apart and is null.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "phone.h"

#define MAX_BUFS 8192
#define NR_ORDERS 3
#define COUNTERS "/sys/kernel/mm/cohort/buffer/"
#define TRACEPOINT "/sys/kernel/tracing/events/kmem/mm_page_alloc/id"

static const int orders[NR_ORDERS] = { 8, 4, 0 };

struct buf {
	int fd;
	int slot;
	bool gpu;
};

struct composition {
	uint64_t pieces[NR_ORDERS];
	uint64_t zero_ns;
};

static struct buf bufs[MAX_BUFS];
static int nr_bufs;
static int heap_fd;
static int counter_fd[NR_ORDERS + 1];	/* the last one is zero_ns */
static int perf_fd[NR_ORDERS];
static bool have_counters;

static bool open_counters(void)
{
	static const char *const names[] = { "order8", "order4", "order0", "zero_ns" };
	char path[96];
	int i;

	if (spit(COUNTERS "enabled", "1"))
		return false;
	for (i = 0; i <= NR_ORDERS; i++) {
		snprintf(path, sizeof(path), COUNTERS "%s", names[i]);
		counter_fd[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (counter_fd[i] < 0)
			return false;
	}
	return true;
}

/* __GFP_HIGHMEM (bit 1) tells the heap's pages from the kernel's own. */
static int open_perf(int id, int order)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = id,
		.disabled = 1,
	};
	char filter[64];
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	snprintf(filter, sizeof(filter), "order == %d && gfp_flags & 2", order);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter))
		fatal("no way to count a buffer's pieces: %s", strerror(errno));
	return fd;
}

static void open_tracepoint(void)
{
	char text[16];
	int i;

	if (slurp(TRACEPOINT, text, sizeof(text)) < 0)
		fatal("%s: %s", TRACEPOINT, strerror(errno));
	for (i = 0; i < NR_ORDERS; i++)
		perf_fd[i] = open_perf(atoi(text), orders[i]);
}

static uint64_t read_counter(int fd)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		fatal("reading a buffer counter: %s", strerror(errno));
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

static void snapshot(struct composition *c)
{
	int i;

	for (i = 0; i < NR_ORDERS; i++) {
		if (have_counters)
			c->pieces[i] = read_counter(counter_fd[i]);
		else if (read(perf_fd[i], &c->pieces[i], 8) != 8)
			fatal("reading a perf counter: %s", strerror(errno));
	}
	c->zero_ns = have_counters ? read_counter(counter_fd[NR_ORDERS]) : 0;
}

/* perf costs something at every page allocation while it is switched on. */
static void counting(bool on)
{
	int i;

	for (i = 0; !have_counters && i < NR_ORDERS; i++)
		ioctl(perf_fd[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

static int heap_alloc(uint64_t bytes)
{
	struct dma_heap_allocation_data data = {
		.len = bytes,
		.fd_flags = O_RDWR | O_CLOEXEC,
	};

	if (ioctl(heap_fd, DMA_HEAP_IOCTL_ALLOC, &data))
		return -errno;
	return data.fd;
}

static int keep(int slot, int fd, bool gpu)
{
	if (fd < 0)
		return fd;
	if (nr_bufs == MAX_BUFS)
		fatal("more than %d buffers", MAX_BUFS);
	bufs[nr_bufs++] = (struct buf){ .fd = fd, .slot = slot, .gpu = gpu };
	return 0;
}

static void report(int slot, uint64_t bytes, bool ok, uint64_t ns,
		   const struct composition *a, const struct composition *b)
{
	uint64_t n8 = b->pieces[0] - a->pieces[0];
	uint64_t n4 = b->pieces[1] - a->pieces[1];
	uint64_t n0 = b->pieces[2] - a->pieces[2];
	uint64_t sum = n8 * 256 + n4 * 16 + n0, all = bytes / PAGE;
	char zero[24] = "null";

	if (have_counters)
		snprintf(zero, sizeof(zero), "%llu",
			 (unsigned long long)(b->zero_ns - a->zero_ns));
	record("{\"r\":\"buffer\",\"t\":%llu,\"n\":%u,\"app\":\"%s\",\"bytes\":%llu,"
	       "\"ok\":%s,\"ns\":%llu,\"zero_ns\":%s,\"o8\":%llu,\"o4\":%llu,"
	       "\"o0\":%llu,\"other\":%llu}",
	       (unsigned long long)now_ns(), sh->launch, sh->conf.prof[slot].name,
	       (unsigned long long)bytes, ok ? "true" : "false",
	       (unsigned long long)ns, zero, (unsigned long long)n8,
	       (unsigned long long)n4, (unsigned long long)n0,
	       (unsigned long long)(ok && all > sum ? all - sum : 0));
}

static int do_alloc(int slot, uint64_t bytes)
{
	struct composition before, after;
	uint64_t t;
	int fd;

	counting(true);
	snapshot(&before);
	t = now_ns();
	fd = heap_alloc(bytes);
	t = now_ns() - t;
	snapshot(&after);
	counting(false);
	report(slot, bytes, fd >= 0, t, &before, &after);
	return keep(slot, fd, false);
}

/* Free buffers of a slot: of one kind, only one in every nth of them. */
static void drop(int slot, bool gpu, int nth)
{
	int i, n = 0, seen = 0;

	for (i = 0; i < nr_bufs; i++) {
		if (bufs[i].slot == slot && bufs[i].gpu == gpu && seen++ % nth == 0)
			close(bufs[i].fd);
		else
			bufs[n++] = bufs[i];
	}
	nr_bufs = n;
}

static uint64_t gpu_held(int slot)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < nr_bufs; i++)
		n += bufs[i].slot == slot && bufs[i].gpu;
	return n;
}

/*
 * Memory of a GPU driver: single pages that cannot move. Pieces below 64 KiB
 * are made of order-0 pages by the system heap. An app keeps it while it
 * lives, a third is new in each launch.
 */
static int do_gpu(int slot, uint64_t bytes)
{
	uint64_t piece = sh->conf.set.gpu_piece_kb * KB;
	uint64_t held = gpu_held(slot);
	int ret = 0;

	for (; held * piece + piece <= bytes && !ret; held++)
		ret = keep(slot, heap_alloc(piece), true);
	return ret;
}

static void serve(const struct buf_req *req)
{
	struct slot *s = &sh->slot[req->slot];

	if (req->op == BUF_GPU_AGE)
		return drop(req->slot, true, 3);
	if (req->op == BUF_FREE || req->op == BUF_FREE_ALL)
		drop(req->slot, false, 1);
	if (req->op == BUF_FREE_ALL)
		drop(req->slot, true, 1);
	if (req->op != BUF_ALLOC && req->op != BUF_GPU)
		return;
	role_borrow(sh->conf.prof[req->slot].role);
	s->buf_error = req->op == BUF_ALLOC ? do_alloc(req->slot, req->bytes) :
					      do_gpu(req->slot, req->bytes);
	bump(&s->buf_done);
}

void allocator_main(void)
{
	struct rlimit files = { MAX_BUFS + 64, MAX_BUFS + 64 };
	struct buf_req req;

	set_name("gralloc");
	setrlimit(RLIMIT_NOFILE, &files);
	heap_fd = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);
	if (heap_fd < 0)
		fatal("/dev/dma_heap/system: %s", strerror(errno));
	have_counters = open_counters();
	if (!have_counters)
		open_tracepoint();
	mlockall(MCL_CURRENT);
	while (read(sh->gralloc_pipe[0], &req, sizeof(req)) == sizeof(req))
		serve(&req);
	fatal("gralloc: pipe closed");
}

/* ---- the clients' side ---- */
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
