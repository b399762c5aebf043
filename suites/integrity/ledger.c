// SPDX-License-Identifier: GPL-2.0
/*
 * ledger ROUNDS [SEED]
 *
 * Where memory is, before and after: in each round processes take memory in all ways there
 * are, and are killed in the midst of it. When they are gone and caches are dropped, what
 * no counter accounts for may not have grown, and the free memory that is told has to be
 * the sum of the free pieces that are told: buddyinfo's, and those of blocks with an owner.
 */
#include "load.h"
#include <sys/shm.h>
#include <sys/socket.h>

#define DRIFT_KB (8 * 1024)	/* of five rounds that move a gigabyte */
#define PIECES_KB (2 * 1024)	/* between two files read one after the other */

/* Single pages that CPUs have at hand. */
static long pcp_kb(void)
{
	FILE *f = fopen("/proc/zoneinfo", "re");
	char line[256];
	long pages = 0, n;
	bool in_cpu = false;

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, "cpu:"))
			in_cpu = true;
		else if (in_cpu && sscanf(line, " count: %ld", &n) == 1)
			pages += n, in_cpu = false;
	}
	fclose(f);
	return pages * 4;
}

static long zram_kb(void)
{
	char text[256];
	long long orig, compr, used;

	if (get_text("/sys/block/zram0/mm_stat", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%lld %lld %lld", &orig, &compr, &used) != 3)
		return 0;
	return used / 1024;
}

/* What no counter accounts for. */
static long gap_kb(long *free_kb)
{
	static const char *const known[] = {
		"Buffers", "Cached", "SwapCached", "AnonPages", "Slab", "PageTables",
		"SecPageTables", "Percpu", "VmallocUsed",
	};
	long kb = meminfo("MemTotal"), i;

	*free_kb = meminfo("MemFree");
	kb -= *free_kb + pcp_kb() + zram_kb() + get_long(COHORT "/cpb/cpu_kb", 0);
	for (i = 0; i < (long)ARRAY_SIZE(known); i++)
		kb -= meminfo(known[i]);
	kb -= meminfo("HugePages_Total") * meminfo("Hugepagesize");
	return kb;
}

/* Numbers of free pieces, by order. */
static long sum_of(const char *counts)
{
	long kb = 0, n;
	int order = 0;
	char *end;

	for (;; counts = end) {
		n = strtol(counts, &end, 10);
		if (end == counts)
			return kb;
		kb += n << order++ << 2;
	}
}

/* Free memory by its pieces: behind `zone`, a name, and in one line for blocks with an owner. */
static long pieces_kb(void)
{
	FILE *f = fopen("/proc/buddyinfo", "re");
	char line[512];
	long kb = 0;
	int used;

	if (!f)
		die_errno("buddyinfo");
	while (fgets(line, sizeof(line), f)) {
		used = 0;
		sscanf(line, "Node %*d, zone %*s%n", &used);
		kb += used ? sum_of(line + used) : 0;
	}
	fclose(f);
	return get_text(COHORT "/owned_free", line, sizeof(line)) > 0 ? kb + sum_of(line) : kb;
}

/* The sum of the pieces is what is free: at some moment of a quiet machine. */
static void compare_pieces(void)
{
	long best = LONG_MAX, i;

	for (i = 0; i < 100; i++) {
		long diff, free_kb;

		put("/proc/sys/vm/stat_refresh", "1");
		free_kb = meminfo("MemFree");
		diff = pieces_kb() - free_kb;
		if (labs(diff) < labs(best))
			best = diff;
		if (labs(best) <= PIECES_KB)
			break;
		nap_ms(50);
	}
	figure("pieces_off", labs(best), "KiB");
	if (labs(best) > PIECES_KB)
		die("pieces of free memory differ from MemFree by %ld KiB", best);
}

static void *sleeper(void *unused)
{
	pause();
	return unused;
}

static char chunk[64 * 1024];

/* Every third page kept, and some of the others taken again. */
static void take_holes(char *p, unsigned long pages)
{
	unsigned long i;

	fill_run(p, pages, 1);
	for (i = 0; i < pages; i++)
		if (i % 3)
			madvise(p + i * PG, PG, MADV_DONTNEED);
	fill_run(p, pages / 2, 7);
}

static void fill_descriptor(int fd)
{
	while (write(fd, chunk, sizeof(chunk)) > 0)
		;
}

static void take_pipes(unsigned long nr)
{
	int fds[2];

	for (; nr && !pipe2(fds, O_NONBLOCK); nr--) {
		fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
		fill_descriptor(fds[1]);
	}
}

static void take_sockets(unsigned long nr)
{
	int fds[2], size = 4 << 20;

	for (; nr && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds); nr--) {
		setsockopt(fds[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
		fill_descriptor(fds[0]);
	}
}

/* Stacks of the kernel, and tables of pages of zeros far from one another. */
static void take_stacks_and_tables(void)
{
	size_t span = 1UL << 40, i;
	pthread_attr_t attr;
	pthread_t thread;
	char *p;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	for (i = 0; i < 200 && !pthread_create(&thread, &attr, sleeper, NULL); i++)
		;
	p = mmap(NULL, span, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		die_errno("a terabyte");
	madvise(p, span, MADV_NOHUGEPAGE);
	for (i = 0; i < 2000; i++)
		check_page(p + i * 256 * HUGE, 0, "a page of zeros");
}

static void take_files(void)
{
	char path[PATH_MAX];
	int fd, i;

	for (i = 0; i < 400; i++) {
		work_path(path, sizeof(path), "s-%d-%d", (int)getpid(), i);
		fd = open(path, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || write(fd, chunk, 4096 + below(32768)) < 0)
			die_errno("%s", path);
		close(fd);
		if (i % 2)
			unlink(path);
	}
}

static void take_segment(unsigned long pages)
{
	int id = shmget(IPC_PRIVATE, pages * PG, IPC_CREAT | 0600);
	char *p = shmat(id, NULL, 0);

	shmctl(id, IPC_RMID, NULL);
	if (p == (void *)-1)
		die_errno("shmat");
	fill_run(p, pages, 1);
}

static void consumer(int kind, unsigned long mb)
{
	unsigned long pages = mb * MB / PG;
	char *p;

	switch (kind) {
	case 0:
		return take_holes(map_anon(pages * PG), pages);
	case 1:
		p = map_huge_aligned(pages * PG);
		madvise(p, pages * PG, MADV_HUGEPAGE);
		return take_holes(p, pages);
	case 2:
		p = map_memfd(pages * PG, NULL);
		fill_run(p, pages, 1);
		madvise(p, pages * PG, MADV_PAGEOUT);
		break;
	case 3:
		return take_pipes(clamp(mb, 1, 100));
	case 4:
		return take_sockets(mb / 8);
	case 5:
		return take_stacks_and_tables();
	case 6:
		return take_files();
	default:
		take_segment(pages);
	}
}

#define CONSUMERS 8

static void one_round(long r, unsigned long mb)
{
	volatile int *ready = map_shared(PG);
	pid_t pids[CONSUMERS];
	int k, status;

	for (k = 0; k < CONSUMERS; k++) {
		pids[k] = child_seeded(r * 100 + k);
		if (pids[k])
			continue;
		consumer(k, mb);
		ready[k] = 1;
		if ((r + k) % 3 == 0)
			_exit(0);
		/* Killed in the midst: while it forks, or makes more of the same. */
		for (;;) {
			pid_t pid = fork();

			if (!pid) {
				char *p = map_anon(MB);

				fill_run(p, MB / PG, 9);
				_exit(0);
			}
			if (pid > 0)
				waitpid(pid, &status, 0);
		}
	}
	for (k = 0; k < CONSUMERS; k++)
		while (!ready[k]) {
			if (waitpid(pids[k], &status, WNOHANG) > 0 && !ready[k])
				die("consumer %d ended early, status %x, oom_kill %lld", k,
				    status, vmstat("oom_kill"));
			nap_ms(5);
		}
	nap_ms(100);
	for (k = 0; k < CONSUMERS; k++) {
		kill(pids[k], SIGKILL);
		waitpid(pids[k], &status, 0);
	}
	munmap((void *)ready, PG);
}

/* Little by little everything is where it belongs; the least of many looks counts. */
static long settled(long *free_kb)
{
	long least = LONG_MAX, most_free = 0, i, same = 0;

	sync();
	for (i = 0; i < 60 && same < 8; i++) {
		long f, gap;

		put("/proc/sys/vm/drop_caches", "3");
		if (i % 8 == 0)
			compact();
		put("/proc/sys/vm/stat_refresh", "1");
		nap_ms(250);
		gap = gap_kb(&f);
		same = gap < least - 256 ? 0 : same + 1;
		if (gap < least)
			least = gap;
		if (f > most_free)
			most_free = f;
	}
	*free_kb = most_free;
	return least;
}

int main(int argc, char **argv)
{
	long rounds = arg(argc, argv, 1, 5), seed = arg(argc, argv, 2, 17), r;
	long gap[32], free_kb[32], mb, worst = 0;

	begin("ledger", seed);
	if (rounds > 30)
		rounds = 30;
	mb = budget_mb() / 12;
	/* The first round is before: caches of the kernel have come to their size then. */
	for (r = 0; r <= rounds; r++) {
		work_anew();
		one_round(r, mb);
		empty_work();
		gap[r] = settled(&free_kb[r]);
		compare_pieces();
		say("round %ld: %ld KiB free, %ld KiB unaccounted for, slab %ld, vmalloc %ld", r,
		    free_kb[r], gap[r], meminfo("Slab"), meminfo("VmallocUsed"));
		if (gap[r] - gap[0] > worst)
			worst = gap[r] - gap[0];
	}
	finish();
	figure("gap_grown", worst, "KiB");
	figure("free_lost", free_kb[0] - free_kb[rounds], "KiB");
	if (gap[rounds] - gap[0] > DRIFT_KB)
		die("%ld KiB are lost after %ld rounds", gap[rounds] - gap[0], rounds);
	if (free_kb[0] - free_kb[rounds] > 3 * DRIFT_KB)
		die("%ld KiB less are free after %ld rounds", free_kb[0] - free_kb[rounds], rounds);
	no_kills();
	return 0;
}
