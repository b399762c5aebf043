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

#include "apps/buffers.h"
#include "apps/camera.h"
#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "measure/cma.h"
#include "measure/stalls.h"
#include "system/allocator.h"
#include "system/role.h"

#define FEW_BUFS 8192
#define MAX_BUFS 65536
#define NR_ORDERS 4
#define COUNTERS SCHEMES "buffer/"
#define TRACEPOINT "/sys/kernel/tracing/events/kmem/mm_page_alloc/id"

static const int orders[NR_ORDERS] = { 9, 8, 4, 0 };

struct buf {
	int fd;
	int slot;
	bool gpu;
};

struct composition {
	uint64_t pieces[NR_ORDERS];
	uint64_t zero_ns;
};

/* One allocation: what it was made of, and the time it took. */
struct result {
	int fd;
	uint64_t bytes, ns, zero_ns;
	uint64_t pieces[NR_ORDERS];
	uint64_t busy;			/* times a range of CMA was in use */
};

/* Those of a phone with few apps; one with many moves to a larger array. */
static struct buf few[FEW_BUFS], *bufs = few;
static int nr_bufs, max_bufs = FEW_BUFS;
static int heap_fd, camera_fd;
static bool camera_cma;			/* the camera's heap is a CMA area */
static int stall_fd = -1;
static int counter_fd[NR_ORDERS + 1];	/* the last one is zero_ns */
static int perf_fd[NR_ORDERS];
static bool have_counters;

static bool open_counters(void)
{
	static const char *const names[] = { "order9", "order8", "order4", "order0",
					     "zero_ns" };
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

static int heap_alloc(int heap, uint64_t bytes)
{
	struct dma_heap_allocation_data data = {
		.len = bytes,
		.fd_flags = O_RDWR | O_CLOEXEC,
	};

	if (ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data))
		return -errno;
	return data.fd;
}

static uint64_t new_stalls(void)
{
	static uint64_t last;
	uint64_t before = last;

	last = stall_count(stall_fd);
	return last - before;
}

static void more_bufs(void)
{
	struct buf *more;

	if (max_bufs == MAX_BUFS)
		fatal("more than %d buffers", MAX_BUFS);
	more = malloc(MAX_BUFS * sizeof(*more));
	if (!more)
		fatal("no memory for buffers");
	bufs = memcpy(more, few, sizeof(few));
	max_bufs = MAX_BUFS;
}

static int keep(int slot, int fd, bool gpu)
{
	if (fd < 0)
		return fd;
	if (nr_bufs == max_bufs)
		more_bufs();
	bufs[nr_bufs++] = (struct buf){ .fd = fd, .slot = slot, .gpu = gpu };
	return 0;
}

/* Pages in pieces of no order that is counted; a failed request has none. */
static uint64_t uncounted(const struct result *r)
{
	uint64_t sum = 0, all = r->bytes / PAGE;
	int i;

	for (i = 0; i < NR_ORDERS; i++)
		sum += r->pieces[i] << orders[i];
	return r->fd >= 0 && all > sum ? all - sum : 0;
}

/* Kernels without counters do not tell it, but of ranges that CMA gave. */
static const char *zero_text(const struct result *r)
{
	static char text[24];

	if (!have_counters && !camera_cma)
		return "null";
	snprintf(text, sizeof(text), "%llu", (unsigned long long)r->zero_ns);
	return text;
}

/* How many pieces of each order, behind a comma each. */
static const char *pieces_text(const struct result *r)
{
	static char text[128];
	size_t len = 0;
	int i;

	for (i = 0; i < NR_ORDERS; i++)
		len += snprintf(text + len, sizeof(text) - len, ",\"o%d\":%llu", orders[i],
				(unsigned long long)r->pieces[i]);
	return text;
}

/* One buffer from a heap, measured. */
static struct result measure(int heap, bool cma, uint64_t bytes)
{
	struct result r = { .bytes = bytes };
	struct composition before, after;
	uint64_t t;
	int i;

	counting(true);
	snapshot(&before);
	if (cma)
		cma_begin();
	t = now_ns();
	r.fd = heap_alloc(heap, bytes);
	r.ns = now_ns() - t;
	r.zero_ns = cma ? r.ns - cma_end(&r.busy) : 0;
	snapshot(&after);
	counting(false);
	if (cma)
		return r;
	for (i = 0; i < NR_ORDERS; i++)
		r.pieces[i] = after.pieces[i] - before.pieces[i];
	r.zero_ns = after.zero_ns - before.zero_ns;
	return r;
}

static int do_alloc(int slot, uint64_t bytes)
{
	struct result r = measure(heap_fd, false, bytes);

	record(RECORD_BUFFER, (unsigned long long)now_ns(), sh->launch, sh->conf.prof[slot].name,
	       (unsigned long long)r.bytes, r.fd >= 0 ? "true" : "false",
	       (unsigned long long)r.ns, zero_text(&r), pieces_text(&r),
	       (unsigned long long)uncounted(&r));
	return keep(slot, r.fd, false);
}

static void camera_record(int slot, const char *heap, const struct result *r, bool whole)
{
	record(RECORD_CAMERA, (unsigned long long)now_ns(), sh->launch, sh->conf.prof[slot].name,
	       heap, (unsigned long long)r->busy, whole ? "true" : "false",
	       (unsigned long long)r->bytes, r->fd >= 0 ? "true" : "false",
	       (unsigned long long)r->ns, zero_text(r), pieces_text(r),
	       (unsigned long long)(whole ? 0 : uncounted(r)));
}

/*
 * A piece of the camera's from its own heap, and where that refuses from the
 * system heap, as a driver does that would rather be slow than fail. Memory
 * from a heap that counts no pieces is contiguous: one piece.
 */
static int do_camera(int slot, uint64_t bytes)
{
	struct result r = measure(camera_fd, camera_cma, bytes);
	bool whole = true;
	int i;

	for (i = 0; i < NR_ORDERS; i++)
		whole &= !r.pieces[i];
	camera_record(slot, sh->conf.camera.heap, &r, whole);
	if (r.fd < 0) {
		r = measure(heap_fd, false, bytes);
		camera_record(slot, "system", &r, false);
	}
	return keep(slot, r.fd, false);
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
		ret = keep(slot, heap_alloc(heap_fd, piece), true);
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
	if (req->op != BUF_ALLOC && req->op != BUF_CAMERA && req->op != BUF_GPU)
		return;
	role_borrow(sh->conf.prof[req->slot].role);
	if (req->op == BUF_ALLOC)
		s->buf_error = do_alloc(req->slot, req->bytes);
	else if (req->op == BUF_CAMERA)
		s->buf_error = do_camera(req->slot, req->bytes);
	else
		s->buf_error = do_gpu(req->slot, req->bytes);
	if (stall_fd >= 0)
		__atomic_add_fetch(&sh->camera_stalls, new_stalls(), __ATOMIC_ACQ_REL);
	bump(&s->buf_done);
}

static int open_heap(const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/dma_heap/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fatal("%s: %s: has the kernel of this policy that heap?", path, strerror(errno));
	return fd;
}

static void open_camera(void)
{
	camera_fd = open_heap(sh->conf.camera.heap);
	camera_cma = cma_open(sh->conf.camera.heap);
	stall_fd = stall_counter(STALL_RECLAIM);
}

void allocator_main(void)
{
	struct rlimit files = { MAX_BUFS + 64, MAX_BUFS + 64 };
	struct buf_req req;

	set_name("gralloc");
	setrlimit(RLIMIT_NOFILE, &files);
	/* The compositor's and the camera's buffers are made here: this process is the client. */
	if (sh->conf.entitled)
		set_knob(ENTITLED, "1");
	heap_fd = open_heap("system");
	if (camera_wanted())
		open_camera();
	have_counters = open_counters();
	if (!have_counters)
		open_tracepoint();
	mlockall(MCL_CURRENT);
	while (read(sh->gralloc_pipe[0], &req, sizeof(req)) == sizeof(req))
		serve(&req);
	fatal("gralloc: pipe closed");
}
