// SPDX-License-Identifier: GPL-2.0
/*
 * A map of physical memory: the dominant kind of page in every cell, from
 * /proc/kpageflags. Letters are documented in docs/reference/records.md.
 */
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "measure/map.h"

#define BATCH 512
#define MAX_CELLS 65536
#define BIT(n) (1ULL << (n))
#define KPF_COHORT_PARKED 45	/* set by Cohort only */

enum kind { FREE, ANON, FILE_PAGE, SLAB, TABLE, KERNEL, PARKED, HOLE, NR_KINDS };
static const char letters[] = ".AFSTKP-";

static enum kind kind_of(uint64_t f)
{
	if (f & BIT(KPF_NOPAGE))
		return HOLE;
	if (f & BIT(KPF_COHORT_PARKED))
		return PARKED;
	if (f & BIT(KPF_BUDDY))
		return FREE;
	if (f & BIT(KPF_SLAB))
		return SLAB;
	if (f & BIT(KPF_PGTABLE))
		return TABLE;
	if (f & (BIT(KPF_ANON) | BIT(KPF_SWAPBACKED)))
		return ANON;
	if (f & (BIT(KPF_LRU) | BIT(KPF_MMAP)))
		return FILE_PAGE;
	return KERNEL;
}

/* The letter of a kind that fills half of the cell, else m for mixed. */
static char cell_letter(const uint32_t *count, uint32_t pages)
{
	int k, best = 0;

	for (k = 1; k < NR_KINDS; k++)
		if (count[k] > count[best])
			best = k;
	return count[best] * 2 >= pages ? letters[best] : 'm';
}

static char cells[MAX_CELLS + 1];

static size_t scan(int fd, uint64_t cell_pages)
{
	static uint64_t flags[BATCH];
	uint32_t count[NR_KINDS] = { 0 };
	uint64_t pages = 0, got, i;
	size_t n = 0;
	ssize_t bytes;

	while (n < MAX_CELLS && (bytes = read(fd, flags, sizeof(flags))) > 0) {
		got = bytes / 8;
		for (i = 0; i < got && n < MAX_CELLS; i++) {
			count[kind_of(flags[i])]++;
			if (++pages % cell_pages)
				continue;
			cells[n++] = cell_letter(count, cell_pages);
			memset(count, 0, sizeof(count));
		}
	}
	while (n && cells[n - 1] == '-')
		n--;
	cells[n] = '\0';
	return n;
}

/* One record; nothing on kernels without CONFIG_PROC_PAGE_MONITOR. */
void map_record(uint32_t launch)
{
	uint64_t cell_pages = sh->conf.set.map_cell_pages;
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (cell_pages && scan(fd, cell_pages))
		record(RECORD_MAP, (unsigned long long)now_ns(), launch,
		       (unsigned long long)cell_pages, cells);
	close(fd);
}

#define MAX_RUNS 8192		/* of leftover pages in an area */

/* Runs of pages as JSON, "[first,count],...". */
struct runs {
	char text[MAX_RUNS * 16];
	size_t size;
	uint64_t first;
	uint32_t nr;
	bool open;
};

static void run_step(struct runs *runs, uint64_t page, bool left)
{
	if (left && !runs->open)
		runs->first = page;
	if (!left && runs->open && runs->nr < MAX_RUNS)
		runs->size += snprintf(runs->text + runs->size, sizeof(runs->text) - runs->size,
				       "%s[%llu,%llu]", runs->nr++ ? "," : "",
				       (unsigned long long)runs->first,
				       (unsigned long long)(page - runs->first));
	runs->open = left;
}

/*
 * The pages of an area that are neither free nor a client's: what a reclaim of
 * it had to leave. Page numbers count from the area's first.
 */
void map_area(uint32_t launch, uint64_t base_pfn, uint64_t pages)
{
	static uint64_t flags[BATCH];
	static struct runs runs;
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	uint64_t at = 0;
	ssize_t bytes, i;

	if (fd < 0)
		return;
	runs = (struct runs){ 0 };
	while (at < pages &&
	       (bytes = pread(fd, flags, sizeof(flags), (base_pfn + at) * 8)) > 0) {
		for (i = 0; i < bytes / 8 && at < pages; i++, at++) {
			enum kind kind = kind_of(flags[i]);

			run_step(&runs, at, kind == ANON || kind == FILE_PAGE || kind == SLAB);
		}
	}
	run_step(&runs, at, false);
	record(RECORD_LEFT,
	       launch, (unsigned long long)base_pfn, (unsigned long long)pages, runs.text);
	close(fd);
}
