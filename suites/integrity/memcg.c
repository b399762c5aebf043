// SPDX-License-Identifier: GPL-2.0
/*
 * memcg oom|group|move ROUNDS [SEED]
 *
 * Groups with limits. What happens for want of memory in a group stays in it: no process outside
 * is killed or loses a byte. What a group is charged for goes when its tasks do; a group can be
 * removed while pages of it live on.
 */
#include "load.h"

#define ROOT "/sys/fs/cgroup"
#define TOP ROOT "/integrity-mem"
#define GROUPS 3
#define BYSTANDERS 2
#define VICTIMS 3
#define BOUND_KB 2048	/* what CPUs may keep charged at hand, and a little */

static volatile int *stop;
static volatile unsigned long *progress;

static void group_path(char *path, size_t size, int g, const char *file)
{
	snprintf(path, size, TOP "/g%d%s%s", g, *file ? "/" : "", file);
}

static int set_group(int g, const char *file, const char *fmt, ...)
{
	char path[160], text[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	group_path(path, sizeof(path), g, file);
	return put(path, "%s", text);
}

static long long of_group(int g, const char *file, const char *name)
{
	char path[160];

	group_path(path, sizeof(path), g, file);
	return name ? number_in(path, name) : get_long(path, -1);
}

static void enter(int g)
{
	int err = set_group(g, "cgroup.procs", "0");

	if (err)
		die("entering group %d: %s", g, strerror(-err));
}

static void make_group(int g)
{
	char path[160];

	group_path(path, sizeof(path), g, "");
	if (mkdir(path, 0755) && errno != EEXIST)
		die_errno("mkdir %s", path);
}

/* A zombie may still be in it for a moment. */
static void remove_group(int g)
{
	char path[160];
	int i;

	group_path(path, sizeof(path), g, "");
	for (i = 0; i < 500; i++) {
		if (!rmdir(path) || errno == ENOENT)
			return;
		nap_ms(20);
	}
	die_errno("rmdir %s", path);
}

static void open_top(void)
{
	int g;

	put(ROOT "/cgroup.subtree_control", "+memory");
	if (mkdir(TOP, 0755) && errno != EEXIST)
		skip("no cgroups: %s", strerror(errno));
	for (g = 0; g < 64; g++)
		remove_group(g);
	if (put(TOP "/cgroup.subtree_control", "+memory"))
		skip("no memory controller");
}

static void close_top(void)
{
	int i;

	for (i = 0; i < 500; i++) {
		if (!rmdir(TOP))
			return;
		nap_ms(20);
	}
	die_errno("rmdir " TOP);
}

/* Goes on until it is told to stop: its pages are as it wrote them. */
static void watch_own(int me, unsigned long pages)
{
	uint64_t tag = ((uint64_t)me + 1) << 40;
	char *p = map_anon(pages * PG);

	fill_run(p, pages, tag);
	while (!*stop) {
		check_run(p, pages, tag, "pages of a bystander");
		if (one_in(8))
			madvise(p, pages * PG, MADV_PAGEOUT);
		progress[me]++;
		nap_ms(10);
	}
	check_run(p, pages, tag, "in the end");
	_exit(0);
}

static pid_t watcher(int me, int g, unsigned long pages)
{
	pid_t pid = child();

	if (pid)
		return pid;
	if (g >= 0)
		enter(g);
	watch_own(me, pages);
	return 0;
}

/* After the tasks have gone so have their charges, but for what CPUs keep at hand. */
static void want_empty(int g, const char *what)
{
	long long kb = 0;
	int i;

	for (i = 0; i < 400; i++) {
		kb = of_group(g, "memory.current", NULL) / 1024;
		if (kb <= BOUND_KB)
			return;
		set_group(g, "memory.reclaim", "64M");
		if (i % 20 == 10)
			put("/proc/sys/vm/drop_caches", "3");
		nap_ms(50);
	}
	die("%s: group %d has %lld KiB and no task; anon %lld, file %lld, kernel %lld, swap %lld",
	    what, g, kb, of_group(g, "memory.stat", "anon"), of_group(g, "memory.stat", "file"),
	    of_group(g, "memory.stat", "kernel"), of_group(g, "memory.swap.current", NULL));
}

/* Takes more than its group may have, and is killed for it. */
static void hog(int g, unsigned long mb, int kind)
{
	unsigned long pages = mb * MB / PG;
	char *p;

	enter(g);
	put("/proc/self/oom_score_adj", "500");
	if (kind == 1) {
		p = map_memfd(pages * PG, NULL);
	} else {
		p = map_anon(pages * PG);
		if (kind == 2)
			madvise(p, pages * PG, MADV_HUGEPAGE);
	}
	for (;;)
		fill_run(p, pages, 0x5000000);
}

/* With memory.oom.group all of a group's tasks die, else at least the hog. */
static void rounds_of_kills(long rounds, bool whole)
{
	pid_t victims[VICTIMS];
	long long before = vmstat("oom_kill"), inside = 0;
	long r, g, i;

	for (i = 0; i < VICTIMS; i++)
		victims[i] = watcher(i, -1, 512);
	for (r = 0; r < rounds; r++) {
		pid_t hogs[GROUPS], by[GROUPS][BYSTANDERS];
		int status;

		*stop = 0;
		for (g = 0; g < GROUPS; g++) {
			make_group(g);
			set_group(g, "memory.max", "%ldM", 16 + 8 * g);
			set_group(g, "memory.swap.max", "%s", g == 1 ? "4M" : "0");
			set_group(g, "memory.oom.group", "%d", whole);
			for (i = 0; i < BYSTANDERS; i++) {
				progress[VICTIMS + g * BYSTANDERS + i] = 0;
				by[g][i] = watcher(VICTIMS + g * BYSTANDERS + i, g, 128);
			}
		}
		/* All are in their groups before a process is killed there. */
		for (i = 0; i < VICTIMS + GROUPS * BYSTANDERS; i++)
			while (!progress[i]) {
				if (waitpid(-1, &status, WNOHANG) > 0)
					die("a watcher ended with status %x", status);
				nap_ms(5);
			}
		for (g = 0; g < GROUPS; g++) {
			hogs[g] = child();
			if (!hogs[g])
				hog(g, 96, (r + g) % 3);
		}
		for (g = 0; g < GROUPS; g++) {
			if (waitpid(hogs[g], &status, 0) != hogs[g])
				die_errno("waitpid");
			if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
				die("a hog of group %ld ended with status %x", g, status);
		}
		for (i = 0; i < VICTIMS; i++)
			if (waitpid(victims[i], &status, WNOHANG))
				die("one outside of all groups ended, status %x", status);
		for (g = 0; g < GROUPS; g++) {
			for (i = 0; i < BYSTANDERS; i++) {
				if (!whole)
					kill(by[g][i], SIGKILL);
				if (waitpid(by[g][i], &status, 0) != by[g][i])
					die_errno("waitpid");
				if (!WIFSIGNALED(status))
					die("one in group %ld ended with status %x", g, status);
			}
			if (of_group(g, "memory.events", "oom_kill") < 1)
				die("group %ld tells of no kill", g);
			inside += of_group(g, "memory.events", "oom_kill");
			want_empty(g, "after a kill");
			remove_group(g);
		}
	}
	*stop = 1;
	for (i = 0; i < VICTIMS; i++)
		want_well(victims[i], "one outside of all groups");
	if (vmstat("oom_kill") - before > inside)
		die("%lld were killed, %lld of them in groups", vmstat("oom_kill") - before, inside);
	figure("killed_in_groups", inside, "");
}

/* ---- groups that come and go under tasks that move ---- */

static char file_path[PATH_MAX];

static void mover(int me, unsigned long pages, unsigned long file_pages)
{
	uint64_t tag = ((uint64_t)me + 1) << 40;
	char *p = map_anon(pages * PG);
	uint32_t *gen = calloc(pages, sizeof(*gen));
	static char page[PG] __attribute__((aligned(4096)));
	int fd = open(file_path, O_RDONLY | O_CLOEXEC);

	if (!gen || fd < 0)
		die_errno("a mover");
	while (!*stop) {
		unsigned long n = 1 + below(64), at = below(pages - n), i;

		for (i = at; i < at + n; i++) {
			check_page(p + i * PG, gen[i] ? tag + ((uint64_t)gen[i] << 20) + i : 0,
				   "pages of a task that is moved");
			gen[i]++;
			fill_page(p + i * PG, tag + ((uint64_t)gen[i] << 20) + i);
		}
		if (one_in(6)) {
			madvise(p + at * PG, n * PG, MADV_DONTNEED);
			memset(gen + at, 0, n * sizeof(*gen));
		}
		for (i = 0; i < 16; i++) {
			unsigned long k = below(file_pages);

			if (pread(fd, page, PG, k * PG) != PG)
				die_errno("pread");
			check_page(page, (1ULL << 60) + k, "a file");
		}
		if (one_in(10)) {
			int m = memfd_create("moved", MFD_CLOEXEC);

			if (m >= 0 && write(m, page, PG) == PG)
				close(m);
		}
		progress[me]++;
	}
	for (unsigned long i = 0; i < pages; i++)
		check_page(p + i * PG, gen[i] ? tag + ((uint64_t)gen[i] << 20) + i : 0, "in the end");
	_exit(0);
}

static void moves(long rounds)
{
	enum { MOVERS = 5 };
	pid_t pids[MOVERS];
	unsigned long file_pages = 48 * MB / PG, moved = 0, removed = 0;
	long r, g, i, next = GROUPS;
	int ids[GROUPS];
	long long kb = 0, dying = 0;
	bool high = true;

	work_path(file_path, sizeof(file_path), "read");
	close(make_file(file_path, file_pages, 1ULL << 60));
	for (g = 0; g < GROUPS; g++) {
		ids[g] = g;
		make_group(g);
	}
	for (i = 0; i < MOVERS; i++) {
		pids[i] = child();
		if (!pids[i]) {
			enter(ids[i % GROUPS]);
			mover(i, 4 * MB / PG, file_pages);
		}
	}
	/* Each is in a group before one is removed. */
	for (i = 0; i < MOVERS; i++)
		while (!progress[i]) {
			int status;

			if (waitpid(pids[i], &status, WNOHANG) > 0)
				die("a mover ended with status %x", status);
			nap_ms(5);
		}
	for (r = 0; r < rounds; r++) {
		unsigned long seen = progress[r % MOVERS];
		long where = r % GROUPS;

		for (i = 0; i < MOVERS; i++)
			if (one_in(3) && !set_group(ids[below(GROUPS)], "cgroup.procs", "%d", pids[i]))
				moved++;
		if (high && one_in(2))
			set_group(ids[where], "memory.high", "%ldM", 12 + (long)below(40));
		else
			set_group(ids[where], "memory.max", "%ldM", 40 + (long)below(40));
		/* No task is left in it, but what was charged there is. */
		if (r % 4 == 3) {
			long to = (where + 1) % GROUPS;

			for (i = 0; i < MOVERS; i++)
				set_group(ids[to], "cgroup.procs", "%d", pids[i]);
			set_group(ids[to], "memory.max", "max");
			remove_group(ids[where]);
			removed++;
			ids[where] = next++ % 64;
			make_group(ids[where]);
		}
		while (progress[r % MOVERS] == seen) {
			int status;

			if (waitpid(pids[r % MOVERS], &status, WNOHANG) > 0)
				die("a mover ended with status %x", status);
			nap_ms(5);
		}
		nap_ms(20);
	}
	*stop = 1;
	for (i = 0; i < MOVERS; i++)
		want_well(pids[i], "a mover");
	for (g = 0; g < GROUPS; g++) {
		set_group(ids[g], "memory.high", "max");
		set_group(ids[g], "memory.max", "max");
		want_empty(ids[g], "after all moves");
		remove_group(ids[g]);
	}
	finish();
	for (i = 0; i < 200; i++) {
		put("/proc/sys/vm/drop_caches", "3");
		kb = get_long(TOP "/memory.current", -1) / 1024;
		dying = number_in(TOP "/cgroup.stat", "nr_dying_descendants");
		if (kb <= BOUND_KB && dying <= 2)
			break;
		nap_ms(50);
	}
	if (kb > BOUND_KB)
		die("%lld KiB are charged though every group is gone; %lld groups are dying", kb, dying);
	figure("tasks_moved", moved, "");
	figure("groups_removed", removed, "");
	figure("groups_dying", dying, "");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "oom";
	long rounds = arg(argc, argv, 2, 6), seed = arg(argc, argv, 3, 16);

	begin("memcg", seed);
	stop = map_shared(PG);
	progress = map_shared(PG);
	open_top();
	if (!strcmp(what, "oom"))
		rounds_of_kills(rounds, false);
	else if (!strcmp(what, "group"))
		rounds_of_kills(rounds, true);
	else if (!strcmp(what, "move"))
		moves(rounds);
	else
		die("no such part: %s", what);
	close_top();
	return 0;
}
