// SPDX-License-Identifier: GPL-2.0
/*
 * heaps ROUNDS [SEED]
 *
 * Buffers of every dma-buf heap there is: pages that are new are zero, what is written stays, in
 * this process and in others that were given the buffer, while memory is short and compacted; all
 * is back in the end. A heap may refuse; the heap `system` may not refuse small ones.
 */
#include "load.h"
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>

#define SLOTS 24

struct buffer {
	int fd;
	char *p;
	unsigned long pages;
	uint64_t tag;
};

static struct buffer buffers[SLOTS];
static int heaps[16], nr_heaps, system_heap = -1;
static char heap_names[16][64];
static unsigned long made[16], refused[16], held;

static int make_buffer(int heap, size_t size)
{
	struct dma_heap_allocation_data data = { .len = size, .fd_flags = O_RDWR | O_CLOEXEC };

	if (ioctl(heaps[heap], DMA_HEAP_IOCTL_ALLOC, &data))
		return -errno;
	return data.fd;
}

static void sync_buffer(int fd, uint64_t flags)
{
	struct dma_buf_sync sync = { .flags = flags };

	while (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync))
		if (errno != EINTR && errno != EAGAIN)
			die_errno("DMA_BUF_IOCTL_SYNC");
}

static void check_buffer(const struct buffer *b, const char *what)
{
	sync_buffer(b->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ);
	check_run(b->p, b->pages, b->tag, what);
	sync_buffer(b->fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ);
}

static void drop_buffer(struct buffer *b)
{
	check_buffer(b, "a buffer before it is freed");
	munmap(b->p, b->pages * PG);
	close(b->fd);
	held -= b->pages;
	b->p = NULL;
}

static void new_buffer(struct buffer *b, int heap, unsigned long pages)
{
	unsigned long i;
	int fd = make_buffer(heap, pages * PG);

	if (fd < 0) {
		if (fd != -ENOMEM && fd != -EBUSY && fd != -EINVAL && fd != -EDQUOT)
			die("heap %s: %s", heap_names[heap], strerror(-fd));
		if (heap == system_heap && pages <= 16)
			die("heap system refuses %lu pages: %s", pages, strerror(-fd));
		refused[heap]++;
		return;
	}
	made[heap]++;
	b->fd = fd;
	b->pages = pages;
	b->tag = rnd() >> 8;
	b->p = mmap(NULL, pages * PG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (b->p == MAP_FAILED)
		die_errno("mmap of a buffer");
	sync_buffer(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW);
	/* What another process had written would be told here. */
	for (i = 0; i < pages; i++)
		check_page(b->p + i * PG, 0, heap_names[heap]);
	fill_run(b->p, pages, b->tag);
	sync_buffer(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW);
	held += pages;
}

/* All heaps that can be opened. */
static void open_heaps(void)
{
	DIR *d = opendir("/dev/dma_heap");
	struct dirent *e;
	int fd;

	while (d && (e = readdir(d)) && nr_heaps < 16) {
		if (e->d_name[0] == '.')
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!strcmp(e->d_name, "system"))
			system_heap = nr_heaps;
		snprintf(heap_names[nr_heaps], sizeof(heap_names[0]), "%.60s", e->d_name);
		heaps[nr_heaps++] = fd;
	}
	if (!nr_heaps)
		skip("no heaps");
	closedir(d);
}

static void check_in_child(const struct buffer *b)
{
	pid_t pid = child();
	char *p;

	if (!pid) {
		p = mmap(NULL, b->pages * PG, PROT_READ, MAP_SHARED, b->fd, 0);
		if (p == MAP_FAILED)
			die_errno("mmap by a child");
		check_run(p, b->pages, b->tag, "a buffer in a child");
		_exit(0);
	}
	want_well(pid, "a child with a buffer");
}

/* A buffer is replaced by another one, for which others may have to go. */
static void replace(struct buffer *b, unsigned long most)
{
	unsigned long pages = one_in(3) ? 1 + below(16) : 1 + below(2048);
	int heap = one_in(2) && system_heap >= 0 ? system_heap : (int)below(nr_heaps), k;

	if (b->p && one_in(3))
		check_in_child(b);
	if (b->p)
		drop_buffer(b);
	for (k = 0; held + pages > most && k < SLOTS; k++)
		if (buffers[k].p)
			drop_buffer(&buffers[k]);
	if (held + pages <= most)
		new_buffer(b, heap, pages);
}

/* A client that dies with its buffers, at times while it asks. */
static void killed_client(void)
{
	pid_t pid = child();
	int k;

	if (!pid) {
		for (k = 0; k < 8; k++)
			make_buffer(below(nr_heaps), (1 + below(512)) * PG);
		for (;;)
			pause();
	}
	nap_ms(below(30));
	end_child(pid);
}

int main(int argc, char **argv)
{
	long rounds = arg(argc, argv, 1, 100), r, k;
	unsigned long most;

	begin("heaps", arg(argc, argv, 2, 20));
	open_heaps();
	most = budget_mb() / 5 * MB / PG;
	load_start(3, budget_mb() / 8, 64);
	for (r = 0; r < rounds; r++) {
		replace(&buffers[below(SLOTS)], most);
		if (r % 6 == 5)
			killed_client();
		if (r % 10 == 9)
			compact();
		if (r % 4 == 0)
			load_wait(1);
		load_lives();
	}
	for (k = 0; k < SLOTS; k++)
		if (buffers[k].p)
			drop_buffer(&buffers[k]);
	load_end();
	for (k = 0; k < nr_heaps; k++)
		say("heap %s: %lu made, %lu refused", heap_names[k], made[k], refused[k]);
	return 0;
}
