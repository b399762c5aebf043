/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers of the small guests that look at the page-cache-preferred area and use its heaps. */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "claims.h"

#define MB (1UL << 20)
#define PAGE 4096UL
#define AREA "/sys/kernel/mm/cohort/pcpa/"
#define HEAPS "/dev/dma_heap/"

static inline void get(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n < 0 ? 0 : n] = '\0';
	if (fd >= 0)
		close(fd);
}

static inline bool says(const char *name, const char *value)
{
	char path[96], text[64];

	snprintf(path, sizeof(path), AREA "%s", name);
	get(path, text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	return !strcmp(text, value);
}

static inline long kb(const char *name)
{
	char path[96], text[64];

	snprintf(path, sizeof(path), AREA "%s", name);
	get(path, text, sizeof(text));
	return atol(text);
}

static inline long stat_of(const char *name)
{
	static char text[4096];
	char key[64], *at;

	get(AREA "stats", text, sizeof(text));
	snprintf(key, sizeof(key), "%s ", name);
	for (at = text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
		if (!strncmp(at, key, strlen(key)))
			return atol(at + strlen(key));
	return -1;
}

static inline double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static inline int open_heap(const char *heap)
{
	char path[64];

	snprintf(path, sizeof(path), HEAPS "%s", heap);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static inline int heap_alloc(const char *heap, size_t bytes)
{
	struct dma_heap_allocation_data data = { .len = bytes, .fd_flags = O_RDWR | O_CLOEXEC };
	int fd = open_heap(heap), err = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, DMA_HEAP_IOCTL_ALLOC, &data))
		err = -errno;
	close(fd);
	return err ?: (int)data.fd;
}

static inline bool zeroed(int fd, size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned long i, sum = 0;

	if (p == MAP_FAILED)
		return false;
	for (i = 0; i < bytes; i += 512)
		sum += p[i];
	memset(p, 0x5a, bytes);
	munmap(p, bytes);
	return !sum;
}

/* With what a request costs, if the guest's storage has that. */
static inline const char *storage(void)
{
	return access("/dev/dm-0", F_OK) ? "/dev/pmem0" : "/dev/dm-0";
}

/* File systems of the kernel, and the empty ext4 at /data. */
static inline void begin(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mkdir("/data", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	if (mount(storage(), "/data", "ext4", 0, NULL))
		printf("not ok mount: %s\n", strerror(errno));
}
