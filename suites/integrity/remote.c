// SPDX-License-Identifier: GPL-2.0
/*
 * remote SECONDS [SEED]
 *
 * A process reads and writes the memory of another by /proc/PID/mem, while that is paged
 * out by both (process_madvise) and compacted. What either wrote is what the other finds.
 */
#include "load.h"

#define FIXED (1ULL << 50)

static struct crew crew;
static struct tagged letters;	/* the half that the other process writes */
static char *own;		/* the half that stays as it is */
static unsigned long pages;	/* of each half */
static volatile bool *ready;

static void fork_and_write(unsigned long at, unsigned long n)
{
	pid_t pid = child();

	if (!pid) {
		check_run(own + at * PG, n, FIXED + at, "a child's");
		fill_run(own + at * PG, n, 3);
		_exit(0);
	}
	want_well(pid, "a child");
}

static void owner(void)
{
	fill_run(own, pages, FIXED);
	write_tagged(&letters, 0, pages);
	*ready = true;
	while (!crew.stop[1]) {
		unsigned long n = 1 + below(128), at = below(pages - n);

		check_run(own + at * PG, n, FIXED + at, "its own");
		if (one_in(4))
			fork_and_write(at, n);
		else
			madvise((one_in(3) ? own : letters.p) + at * PG, n * PG,
				one_in(3) ? MADV_COLD : MADV_PAGEOUT);
		crew.rounds[0]++;
	}
	check_run(own, pages, FIXED, "its own in the end");
	check_tagged(&letters, 0, pages, "what the other wrote");
	_exit(0);
}

/* Reads what it wrote before, and writes something else. */
static void exchange(int mem, unsigned long at, unsigned long n)
{
	static char buffer[64 * PG] __attribute__((aligned(4096)));
	struct tagged here = { buffer, n, letters.tags + at };
	off_t there = (uintptr_t)letters.p + at * PG;

	if (pread(mem, buffer, n * PG, (uintptr_t)own + at * PG) != (ssize_t)(n * PG))
		die_errno("reading what stays");
	check_run(buffer, n, FIXED + at, "read from the other");
	if (pread(mem, buffer, n * PG, there) != (ssize_t)(n * PG))
		die_errno("reading what was written");
	check_tagged(&here, 0, n, "what it wrote before");
	write_tagged(&here, 0, n);
	if (pwrite(mem, buffer, n * PG, there) != (ssize_t)(n * PG))
		die_errno("writing");
}

static void other(pid_t pid)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0), mem;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem = open(path, O_RDWR | O_CLOEXEC);
	if (mem < 0 || pidfd < 0)
		die_errno("the other's memory");
	while (!crew.stop[0]) {
		unsigned long n = 1 + below(64), at = below(pages - n);
		struct iovec there = { (one_in(2) ? own : letters.p) + at * PG, n * PG };

		exchange(mem, at, n);
		if (one_in(4))
			syscall(SYS_process_madvise, pidfd, &there, 1UL,
				one_in(3) ? MADV_COLD : MADV_PAGEOUT, 0UL);
		crew.rounds[1]++;
	}
	_exit(0);
}

static void one(int me)
{
	if (!me)
		owner();
	while (!*ready)
		nap_ms(5);
	other(crew.pids[0]);
}

int main(int argc, char **argv)
{
	long seconds = arg(argc, argv, 1, 12);
	uint64_t end;

	begin("remote", arg(argc, argv, 2, 25));
	pages = clamp(budget_mb() / 12, 4, 64) * MB / PG;
	ready = map_shared(PG);
	own = map_anon(pages * PG);
	letters.p = map_anon(pages * PG);
	letters.tags = map_shared(pages * sizeof(*letters.tags));
	letters.pages = pages;
	load_start(2, budget_mb() / 4, 48);
	crew_start(&crew, 2, rnd() >> 16, one);
	for (end = now_ms() + seconds * 1000; now_ms() < end; nap_ms(100)) {
		compact();
		crew_lives(&crew);
		load_lives();
	}
	crew_wait(&crew, 1);
	/* First the process that writes: the owner compares all that was written. */
	crew.stop[0] = 1;
	want_well(crew.pids[1], "the other");
	crew.stop[1] = 1;
	want_well(crew.pids[0], "the owner");
	figure("remote_rounds", crew.rounds[1], "");
	load_end();
	return 0;
}
