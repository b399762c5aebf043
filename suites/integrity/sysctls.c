// SPDX-License-Identifier: GPL-2.0
/*
 * sysctls ROUNDS [SEED]
 *
 * What an administrator may turn on a machine that is at work: reserves, marks, lists of CPUs,
 * swappiness, the kind of LRU, huge pages on and off. Beside that a process reads all that the
 * kernel tells of its memory, and compares: a page that it has and has locked is not free.
 */
#include "load.h"

struct knob {
	const char *path;
	const char *values[8];
};

#define VM "/proc/sys/vm"
#define THP "/sys/kernel/mm/transparent_hugepage"

static const struct knob knobs[] = {
	{ VM "/min_free_kbytes", { "1024", "4096", "16384", "49152" } },
	{ VM "/watermark_scale_factor", { "1", "10", "100", "400" } },
	{ VM "/watermark_boost_factor", { "0", "1", "15000", "40000" } },
	{ VM "/percpu_pagelist_high_fraction", { "0", "8", "100", "10000" } },
	{ VM "/lowmem_reserve_ratio", { "256\t256\t32", "16\t16\t16", "1000\t1000\t1000" } },
	{ VM "/vfs_cache_pressure", { "1", "100", "1000" } },
	{ VM "/swappiness", { "0", "60", "100", "200" } },
	{ VM "/compaction_proactiveness", { "0", "20", "100" } },
	{ VM "/extfrag_threshold", { "0", "500", "1000" } },
	{ VM "/compact_unevictable_allowed", { "0", "1" } },
	{ VM "/page-cluster", { "0", "3", "5" } },
	{ VM "/dirty_ratio", { "5", "20", "60" } },
	{ VM "/zone_reclaim_mode", { "0", "1", "7" } },
	{ VM "/defrag_mode", { "0", "1" } },
	{ "/proc/sys/kernel/numa_balancing", { "0", "1" } },
	{ "/sys/kernel/mm/lru_gen/enabled", { "y", "n", "1", "5" } },
	{ THP "/enabled", { "always", "madvise", "never" } },
	{ THP "/defrag", { "always", "defer", "defer+madvise", "never" } },
	{ THP "/khugepaged/defrag", { "0", "1" } },
	{ THP "/hugepages-64kB/enabled", { "always", "inherit", "never" } },
	{ THP "/hugepages-16kB/enabled", { "always", "inherit", "never" } },
};

#define NR_KNOBS ((int)ARRAY_SIZE(knobs))

static char before[NR_KNOBS][256];

/* Reads a file to its end and forgets what it says. */
static void read_through(const char *path, size_t most)
{
	static char text[64 * 1024];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return;
	while (most && (n = read(fd, text, sizeof(text))) > 0)
		most -= (size_t)n < most ? (size_t)n : most;
	close(fd);
}

#define BUDDY (1ULL << 10)
#define HWPOISON (1ULL << 19)
#define NOPAGE (1ULL << 20)
#define COHORT_FREE (1ULL << 45)

/* Locked and looked at twice: if it did not move in between it is in use. */
static unsigned long compare_flags(void)
{
	enum { N = 256 };
	char *p = map_anon(N * PG);
	int flags_fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	int count_fd = open("/proc/kpagecount", O_RDONLY | O_CLOEXEC);
	unsigned long looked = 0, i;

	if (flags_fd < 0 || count_fd < 0 || mlock(p, N * PG)) {
		munmap(p, N * PG);
		goto out;
	}
	for (i = 0; i < N; i++) {
		uint64_t before = pagemap_entry(p + i * PG), flags = 0, count = 0, after, pfn;

		pfn = before & ((1ULL << 55) - 1);
		if (!(before >> 63) || !pfn)
			continue;
		if (pread(flags_fd, &flags, 8, pfn * 8) != 8 ||
		    pread(count_fd, &count, 8, pfn * 8) != 8)
			continue;
		after = pagemap_entry(p + i * PG);
		if (after != before)
			continue;
		looked++;
		if (flags & (BUDDY | NOPAGE | COHORT_FREE))
			die("page %p, frame %llx, is locked, and free by kpageflags %llx",
			    p + i * PG, (unsigned long long)pfn, (unsigned long long)flags);
		if (!count)
			die("page %p, frame %llx, is mapped, and not by kpagecount", p + i * PG,
			    (unsigned long long)pfn);
	}
	munmap(p, N * PG);
out:
	if (flags_fd >= 0)
		close(flags_fd);
	if (count_fd >= 0)
		close(count_fd);
	return looked;
}

static void reader(volatile int *stop, volatile unsigned long *looked)
{
	static const char *const files[] = {
		"/proc/zoneinfo", "/proc/buddyinfo", "/proc/pagetypeinfo", "/proc/vmallocinfo",
		"/proc/meminfo", "/proc/vmstat", "/proc/slabinfo", "/proc/self/smaps",
		"/proc/self/numa_maps", "/proc/swaps", "/sys/kernel/debug/extfrag/extfrag_index",
		"/sys/kernel/debug/extfrag/unusable_index", "/sys/kernel/debug/memblock/memory",
		"/sys/devices/system/node/node0/meminfo", "/sys/devices/system/node/node0/vmstat",
		"/sys/kernel/debug/lru_gen_full",
	};
	unsigned int i;

	while (!*stop) {
		for (i = 0; i < ARRAY_SIZE(files); i++)
			read_through(files[i], 4 * MB);
		*looked += compare_flags();
		read_through("/proc/kpageflags", 8 * MB);
		read_through("/proc/kpagecount", 8 * MB);
		nap_ms(20);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	long rounds = arg(argc, argv, 1, 60), seed = arg(argc, argv, 2, 34), r;
	volatile int *stop = map_shared(PG);
	volatile unsigned long *looked = map_shared(PG);
	unsigned long turned = 0, refused = 0;
	pid_t pid;
	int k;

	begin("sysctls", seed);
	for (k = 0; k < NR_KNOBS; k++)
		if (get_choice(knobs[k].path, before[k], sizeof(before[k])) <= 0)
			before[k][0] = 0;
	load_start(4, budget_mb() / 10, 96);
	pid = child_seeded(seed + 50);
	if (!pid)
		reader(stop, looked);
	for (r = 0; r < rounds; r++) {
		int n = 0, err;

		k = below(NR_KNOBS);
		while (n < 8 && knobs[k].values[n])
			n++;
		if (!n || !before[k][0])
			continue;
		err = put(knobs[k].path, "%s", knobs[k].values[below(n)]);
		turned += !err;
		refused += !!err;
		load_wait(1);
		if (one_in(3))
			put(knobs[k].path, "%s", before[k]);
	}
	/* min_free_kbytes first, as others follow from it. */
	for (k = 0; k < NR_KNOBS; k++)
		if (before[k][0] && put(knobs[k].path, "%s", before[k]))
			say("%s cannot be what it was: %s", knobs[k].path, before[k]);
	*stop = 1;
	want_well(pid, "the reader");
	load_end();
	figure("sysctls_turned", turned, "");
	figure("sysctls_refused", refused, "");
	figure("flags_compared", *looked, "");
	return 0;
}
