// SPDX-License-Identifier: GPL-2.0
/*
 * poison ROUNDS [SEED]
 *
 * Frames that go bad softly: pages of a process, of its files and of shared memory are taken from
 * their frames, which no process may have any more; frames that were just freed are taken as well.
 * No byte is lost by that. In the end the frames are declared good again where that is possible.
 */
#include "load.h"

#define PAGES 1024UL
#define MAX_BAD 4096
#define SOFT "/sys/devices/system/memory/soft_offline_page"
#define UNPOISON "/sys/kernel/debug/hwpoison/unpoison-pfn"
#define HWPOISON (1ULL << 19)

static uint64_t bad[MAX_BAD];
static unsigned int nr_bad;
static unsigned long taken, refused, taken_free;

static uint64_t pfn_of(const void *page)
{
	uint64_t entry = pagemap_entry(page);

	return entry >> 63 ? entry & ((1ULL << 55) - 1) : 0;
}

static bool is_poisoned(uint64_t pfn)
{
	uint64_t flags = 0;
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (pread(fd, &flags, 8, pfn * 8) != 8)
		flags = 0;
	close(fd);
	return flags & HWPOISON;
}

static void remember(uint64_t pfn)
{
	if (pfn && nr_bad < MAX_BAD && is_poisoned(pfn))
		bad[nr_bad++] = pfn;
}

/* No frame that is bad may be this process's. */
static void want_none_bad(char *p, unsigned long pages)
{
	unsigned long i;
	unsigned int k;

	for (i = 0; i < pages; i++) {
		uint64_t pfn = pfn_of(p + i * PG);

		for (k = 0; pfn && k < nr_bad; k++)
			if (bad[k] == pfn)
				die("frame %llx is bad and at %p", (unsigned long long)pfn,
				    p + i * PG);
	}
}

static char *make_memory(int kind, uint64_t tag)
{
	char path[PATH_MAX], *p;
	int fd;

	switch (kind) {
	case 0:
		p = map_anon(PAGES * PG);
		madvise(p, PAGES * PG, MADV_NOHUGEPAGE);
		break;
	case 1:
		p = map_huge_aligned(PAGES * PG);
		madvise(p, PAGES * PG, MADV_HUGEPAGE);
		break;
	case 2:
		p = map_memfd(PAGES * PG, NULL);
		break;
	default:
		work_path(path, sizeof(path), "poison");
		fd = make_file(path, PAGES, tag);
		fsync(fd);
		p = mmap(NULL, PAGES * PG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED)
			die_errno("mmap");
		close(fd);
		return p;
	}
	fill_run(p, PAGES, tag);
	return p;
}

static void take_mapped(char *p, uint64_t tag)
{
	unsigned long at;
	uint64_t pfn;
	int i;

	for (i = 0; i < 24; i++) {
		at = below(PAGES);
		check_page(p + at * PG, tag + at, "before its frame goes bad");
		pfn = pfn_of(p + at * PG);
		if (!pfn)
			continue;
		if (!madvise(p + at * PG, PG, MADV_SOFT_OFFLINE))
			taken++;
		else if ((errno == EPERM || errno == EINVAL) && !taken && !refused)
			skip("MADV_SOFT_OFFLINE: %s", strerror(errno));
		else
			refused++;
		remember(pfn);
		check_page(p + at * PG, tag + at, "after its frame went bad");
	}
	check_run(p, PAGES, tag, "all of it");
	want_none_bad(p, PAGES);
}

/* Frames that were this process's: free by now, at hand of a CPU, or another's. */
static void take_freed(char *p)
{
	uint64_t pfns[16];
	int i;

	for (i = 0; i < 16; i++)
		pfns[i] = pfn_of(p + below(PAGES) * PG);
	munmap(p, PAGES * PG);
	for (i = 0; i < 16; i++) {
		if (!pfns[i])
			continue;
		taken_free += !put(SOFT, "0x%llx", (unsigned long long)pfns[i] * PG);
		remember(pfns[i]);
	}
}

/* A frame that went away twice is listed twice: the second time is refused. */
static unsigned long make_good(void)
{
	unsigned long good = 0;
	unsigned int k;

	for (k = 0; k < nr_bad; k++)
		if (is_poisoned(bad[k]))
			good += !put(UNPOISON, "0x%llx", (unsigned long long)bad[k]);
	return good;
}

int main(int argc, char **argv)
{
	long rounds = arg(argc, argv, 1, 12), r;
	char *p;

	begin("poison", arg(argc, argv, 2, 37));
	if (access(SOFT, F_OK))
		skip("no frames that go bad");
	load_start(3, budget_mb() / 10, 48);
	for (r = 0; r < rounds; r++) {
		uint64_t tag = ((uint64_t)r + 1) << 32;

		p = make_memory(r % 4, tag);
		take_mapped(p, tag);
		if (r % 4 < 2)
			take_freed(p);
		else
			munmap(p, PAGES * PG);
		p = map_anon(8 * MB);
		fill_run(p, 8 * MB / PG, 1);
		want_none_bad(p, 8 * MB / PG);
		munmap(p, 8 * MB);
		if (r % 3 == 2)
			compact();
		load_wait(1);
	}
	figure("frames_good_again", make_good(), "");
	load_wait(1);
	load_end();
	figure("frames_taken", taken, "");
	figure("frames_refused", refused, "");
	figure("free_frames_taken", taken_free, "");
	return 0;
}
