// SPDX-License-Identifier: GPL-2.0
/*
 * poison ROUNDS [SEED]
 *
 * Frames that go bad softly: pages of a process, of its files and of shared memory are taken from
 * their frames, which no process may have any more; frames that were just freed are taken as well.
 * No byte is lost by that. In the end the frames are declared good again where that is possible.
 */
#include "load.h"

#define MAX_BAD 4096
#define SOFT "/sys/devices/system/memory/soft_offline_page"
#define UNPOISON "/sys/kernel/debug/hwpoison/unpoison-pfn"
#define HWPOISON (1ULL << 19)

static uint64_t bad[MAX_BAD];
static unsigned int nr_bad;

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
				die("frame %llx is bad and at %p", (unsigned long long)pfn, p + i * PG);
	}
}

int main(int argc, char **argv)
{
	enum { KINDS = 4, PAGES = 1024 };
	long rounds = arg(argc, argv, 1, 12), seed = arg(argc, argv, 2, 37), r;
	long before = meminfo("HardwareCorrupted");
	unsigned long taken = 0, refused = 0, freed = 0, freed_refused = 0, good = 0;
	unsigned int k;

	begin("poison", seed);
	if (access(SOFT, F_OK))
		skip("no frames that go bad");
	load_start(3, budget_mb() / 10, 48);
	for (r = 0; r < rounds; r++) {
		uint64_t tag = ((uint64_t)r + 1) << 32;
		char *p, path[PATH_MAX];
		int fd = -1, kind = r % KINDS, i;

		switch (kind) {
		case 0:
			p = map_anon(PAGES * PG);
			madvise(p, PAGES * PG, MADV_NOHUGEPAGE);
			fill_run(p, PAGES, tag);
			break;
		case 1:
			p = map_huge_aligned(PAGES * PG);
			madvise(p, PAGES * PG, MADV_HUGEPAGE);
			fill_run(p, PAGES, tag);
			break;
		case 2:
			fd = memfd_create("poison", MFD_CLOEXEC);
			if (fd < 0 || ftruncate(fd, PAGES * PG))
				die_errno("memfd");
			p = mmap(NULL, PAGES * PG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			if (p == MAP_FAILED)
				die_errno("mmap");
			fill_run(p, PAGES, tag);
			break;
		default:
			work_path(path, sizeof(path), "poison");
			fd = make_file(path, PAGES, tag);
			p = mmap(NULL, PAGES * PG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			if (p == MAP_FAILED)
				die_errno("mmap");
			fsync(fd);
		}
		for (i = 0; i < 24; i++) {
			unsigned long at = below(PAGES);
			uint64_t pfn;

			check_page(p + at * PG, tag + at, "before its frame goes bad");
			pfn = pfn_of(p + at * PG);
			if (!pfn)
				continue;
			if (madvise(p + at * PG, PG, MADV_SOFT_OFFLINE)) {
				if ((errno == EPERM || errno == EINVAL) && !taken && !refused)
					skip("MADV_SOFT_OFFLINE: %s", strerror(errno));
				refused++;
			} else {
				taken++;
			}
			remember(pfn);
			check_page(p + at * PG, tag + at, "after its frame went bad");
		}
		check_run(p, PAGES, tag, "all of it");
		want_none_bad(p, PAGES);
		/* Frames that were this process's: free by now, at hand of a CPU, or taken. */
		if (kind < 2) {
			uint64_t pfns[16];

			for (i = 0; i < 16; i++)
				pfns[i] = pfn_of(p + below(PAGES) * PG);
			munmap(p, PAGES * PG);
			for (i = 0; i < 16; i++) {
				if (!pfns[i])
					continue;
				if (put(SOFT, "0x%llx", (unsigned long long)pfns[i] * PG))
					freed_refused++;
				else
					freed++;
				remember(pfns[i]);
			}
		} else {
			munmap(p, PAGES * PG);
		}
		if (fd >= 0)
			close(fd);
		p = map_anon(8 * MB);
		fill_run(p, 8 * MB / PG, 1);
		want_none_bad(p, 8 * MB / PG);
		munmap(p, 8 * MB);
		if (r % 3 == 2)
			compact();
		load_wait(1);
	}
	if (!nr_bad)
		say("no frame went bad");
	/* Also frames that went away twice are in the list twice: the second time is refused. */
	for (k = 0; k < nr_bad && !access(UNPOISON, F_OK); k++)
		if (is_poisoned(bad[k]) && !put(UNPOISON, "0x%llx", (unsigned long long)bad[k]))
			good++;
	load_wait(1);
	load_end();
	figure("frames_taken", taken, "");
	figure("frames_refused", refused, "");
	figure("free_frames_taken", freed, "");
	figure("free_frames_refused", freed_refused, "");
	figure("frames_good_again", good, "");
	figure("corrupted_left", meminfo("HardwareCorrupted") - before, "KiB");
	return 0;
}
