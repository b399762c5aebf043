// SPDX-License-Identifier: GPL-2.0
/*
 * A map of physical memory: the dominant kind of page in every cell, from
 * /proc/kpageflags, and the dominant owner, from what Cohort tells of its
 * blocks. Letters are documented in docs/reference/records.md.
 */
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <stdio.h>
#include <stdlib.h>
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

#define BLOCKS "/sys/kernel/debug/cohort/blocks"

/* As the kernel names owners; processes are told apart by the last octal digit of their number. */
static const struct {
	const char *name;
	char letter;
} owners[] = {
	{ "shared", 's' }, { "service", 'v' }, { "small", 'f' }, { "cache", 'c' },
	{ "hot", 'h' }, { "metadata", 'b' }, { "vmalloc", 'd' }, { "kernel", 'k' },
	{ "zspage", 'z' }, { "area", 'a' },
};

static char owner_letter(const char *name, unsigned long id)
{
	size_t i;

	if (id)
		return (char)('0' + id % 8);
	for (i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
		if (!strcmp(name, owners[i].name))
			return owners[i].letter;
	return '?';
}

/* The cell that blocks are put into: they come by address. */
struct owner_cell {
	uint64_t at;
	uint64_t pages;		/* of a cell */
	uint32_t count[128];	/* by letter; frames of no block are not counted */
};

/* The letter of an owner that has half of the cell, else m for mixed, or . for none. */
static void owner_settle(struct owner_cell *cell, char *map, size_t nr_cells)
{
	uint64_t owned = 0;
	int c, best = '.';

	for (c = 0; c < 128; c++) {
		owned += cell->count[c];
		if (cell->count[c] > cell->count[best])
			best = c;
	}
	if (cell->at < nr_cells && owned * 2 >= cell->pages)
		map[cell->at] = cell->count[best] * 2 >= cell->pages ? (char)best : 'm';
	memset(cell->count, 0, sizeof(cell->count));
}

static void owner_add(struct owner_cell *cell, char *map, size_t nr_cells, char letter,
		      uint64_t pfn, uint64_t pages)
{
	while (pages) {
		uint64_t part = cell->pages - pfn % cell->pages;

		if (part > pages)
			part = pages;
		if (pfn / cell->pages != cell->at) {
			owner_settle(cell, map, nr_cells);
			cell->at = pfn / cell->pages;
		}
		cell->count[(unsigned char)letter] += (uint32_t)part;
		pfn += part;
		pages -= part;
	}
}

/* ,"owners":"..." of as many cells, or nothing on kernels that do not tell. */
static char *owners_of(size_t nr_cells, uint64_t cell_pages)
{
	static const char key[] = ",\"owners\":\"";
	struct owner_cell cell = { .pages = cell_pages };
	FILE *f = fopen(BLOCKS, "re");
	char name[16], *text = NULL, *map;
	unsigned long pfn, id;
	unsigned int order;

	if (!f)
		return NULL;
	text = malloc(sizeof(key) + nr_cells + 1);
	if (!text)
		goto out;
	map = stpcpy(text, key);
	memset(map, '.', nr_cells);
	strcpy(map + nr_cells, "\"");
	while (fscanf(f, "%lu %u %15s %lu %*u\n", &pfn, &order, name, &id) == 4)
		owner_add(&cell, map, nr_cells, owner_letter(name, id), pfn, 1ULL << order);
	owner_settle(&cell, map, nr_cells);
out:
	fclose(f);
	return text;
}

/* One record; nothing on kernels without CONFIG_PROC_PAGE_MONITOR. */
void map_record(uint32_t launch)
{
	uint64_t cell_pages = sh->conf.set.map_cell_pages;
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	size_t nr_cells;
	char *text;

	if (fd < 0)
		return;
	nr_cells = cell_pages ? scan(fd, cell_pages) : 0;
	close(fd);
	if (!nr_cells)
		return;
	text = owners_of(nr_cells, cell_pages);
	record(RECORD_MAP, (unsigned long long)now_ns(), launch, (unsigned long long)cell_pages,
	       cells, text ? text : "");
	free(text);
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
