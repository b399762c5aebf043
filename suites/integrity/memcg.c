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
#define BYSTANDERS (2 * GROUPS)
#define OUTSIDERS 3
#define MOVERS 5
#define IDS 64	/* numbers of groups, used in turn */
#define FILE_PAGES (48 * MB / PG)
#define FILE_TAG (1ULL << 60)
#define BOUND_KB 2048	/* what CPUs may keep charged at hand, and a little */

static struct crew outside, inside, movers;

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
static void remove_path(const char *path)
{
	int i;

	for (i = 0; i < 500; i++) {
		if (!rmdir(path) || errno == ENOENT)
			return;
		nap_ms(20);
	}
	die_errno("rmdir %s", path);
}

static void remove_group(int g)
{
	char path[160];

	group_path(path, sizeof(path), g, "");
	remove_path(path);
}

static void open_top(void)
{
	int g;

	put(ROOT "/cgroup.subtree_control", "+memory");
	if (mkdir(TOP, 0755) && errno != EEXIST)
		skip("no cgroups: %s", strerror(errno));
	for (g = 0; g < IDS; g++)
		remove_group(g);
	if (put(TOP "/cgroup.subtree_control", "+memory"))
		skip("no memory controller");
}

/* Goes on until it is told to stop: its pages are as it wrote them. */
static void watch_own(const struct crew *crew, int me, unsigned long pages)
{
	uint64_t tag = ((uint64_t)me + 1) << 40;
	char *p = map_anon(pages * PG);

	fill_run(p, pages, tag);
	while (!*crew->stop) {
		check_run(p, pages, tag, "pages of a bystander");
		if (one_in(8))
			madvise(p, pages * PG, MADV_PAGEOUT);
		crew->rounds[me]++;
		nap_ms(10);
	}
	check_run(p, pages, tag, "in the end");
	_exit(0);
}

static void stands_outside(int me)
{
	watch_own(&outside, me, 512);
}

static void stands_inside(int me)
{
	enter(me % GROUPS);
	watch_own(&inside, me, 128);
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

static void make_groups(bool whole)
{
	int g;

	for (g = 0; g < GROUPS; g++) {
		make_group(g);
		set_group(g, "memory.max", "%dM", 16 + 8 * g);
		set_group(g, "memory.swap.max", "%s", g == 1 ? "4M" : "0");
		set_group(g, "memory.oom.group", "%d", whole);
	}
}

static void want_killed(pid_t pid, const char *what, int g)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		die_errno("waitpid");
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		die("%s of group %d ended with status %x", what, g, status);
}

/* With memory.oom.group all of a group's tasks die, else at least the hog. */
static long long round_of_kills(long r, bool whole)
{
	pid_t hogs[GROUPS];
	long long killed = 0, of_one;
	int g, i;

	make_groups(whole);
	crew_start(&inside, BYSTANDERS, r, stands_inside);
	/* All are in their groups before a process is killed there. */
	crew_wait(&inside, 1);
	for (g = 0; g < GROUPS; g++) {
		hogs[g] = child();
		if (!hogs[g])
			hog(g, 96, (r + g) % 3);
	}
	for (g = 0; g < GROUPS; g++)
		want_killed(hogs[g], "a hog", g);
	crew_lives(&outside);
	for (i = 0; i < BYSTANDERS; i++) {
		if (!whole)
			kill(inside.pids[i], SIGKILL);
		want_killed(inside.pids[i], "a bystander", i % GROUPS);
	}
	for (g = 0; g < GROUPS; g++) {
		of_one = of_group(g, "memory.events", "oom_kill");
		if (of_one < 1)
			die("group %d tells of no kill", g);
		killed += of_one;
		want_empty(g, "after a kill");
		remove_group(g);
	}
	return killed;
}

static void kills(long rounds, bool whole)
{
	long long before = vmstat("oom_kill"), killed = 0, all;
	long r;

	crew_start(&outside, OUTSIDERS, rnd() >> 16, stands_outside);
	for (r = 0; r < rounds; r++)
		killed += round_of_kills(r, whole);
	crew_end(&outside);
	all = vmstat("oom_kill") - before;
	if (all > killed)
		die("%lld were killed, %lld of them in groups", all, killed);
	figure("killed_in_groups", killed, "");
}

/* ---- groups that come and go under tasks that move ---- */

static void read_file(int fd)
{
	static char page[PG] __attribute__((aligned(4096)));
	unsigned long i, at;

	for (i = 0; i < 16; i++) {
		at = below(FILE_PAGES);
		if (pread(fd, page, PG, at * PG) != PG)
			die_errno("pread");
		check_page(page, FILE_TAG + at, "a file");
	}
}

static void mover(int me)
{
	unsigned long pages = 4 * MB / PG;
	struct tagged t = tagged_of(map_anon(pages * PG), pages);
	char path[PATH_MAX];
	int fd;

	enter(me % GROUPS);
	work_path(path, sizeof(path), "read");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die_errno("%s", path);
	while (!*movers.stop) {
		unsigned long n = 1 + below(64), at = below(pages - n);

		check_tagged(&t, at, n, "pages of a task that is moved");
		write_tagged(&t, at, n);
		if (one_in(6))
			drop_tagged(&t, at, n, MADV_DONTNEED);
		read_file(fd);
		if (one_in(10))
			munmap(map_memfd(PG, NULL), PG);
		movers.rounds[me]++;
	}
	check_tagged(&t, 0, pages, "in the end");
	_exit(0);
}

/* All tasks leave a group, which goes; what was charged there is still in use. */
static void replace_group(int *id, int to, int next)
{
	int i;

	for (i = 0; i < MOVERS; i++)
		set_group(to, "cgroup.procs", "%d", movers.pids[i]);
	set_group(to, "memory.max", "max");
	remove_group(*id);
	*id = next;
	make_group(next);
}

/* Every group is gone, and so is what was charged. */
static void want_all_gone(void)
{
	long long kb = 0, dying = 0;
	int i;

	for (i = 0; i < 200; i++) {
		put("/proc/sys/vm/drop_caches", "3");
		kb = get_long(TOP "/memory.current", -1) / 1024;
		dying = number_in(TOP "/cgroup.stat", "nr_dying_descendants");
		if (kb <= BOUND_KB && dying <= 2)
			break;
		nap_ms(50);
	}
	if (kb > BOUND_KB)
		die("%lld KiB are charged though every group is gone; %lld are dying", kb, dying);
	figure("groups_dying", dying, "");
}

static void moves(long rounds)
{
	unsigned long moved = 0, seen;
	int ids[GROUPS], g, i, next = GROUPS;
	char path[PATH_MAX];
	long r;

	work_path(path, sizeof(path), "read");
	close(make_file(path, FILE_PAGES, FILE_TAG));
	for (g = 0; g < GROUPS; g++) {
		ids[g] = g;
		make_group(g);
	}
	crew_start(&movers, MOVERS, rnd() >> 16, mover);
	/* Each is in a group before one is removed. */
	crew_wait(&movers, 1);
	for (r = 0; r < rounds; r++) {
		seen = movers.rounds[r % MOVERS];
		g = r % GROUPS;
		for (i = 0; i < MOVERS; i++)
			if (one_in(3))
				moved += !set_group(ids[below(GROUPS)], "cgroup.procs", "%d",
						    movers.pids[i]);
		if (one_in(2))
			set_group(ids[g], "memory.high", "%ldM", 12 + (long)below(40));
		else
			set_group(ids[g], "memory.max", "%ldM", 40 + (long)below(40));
		if (r % 4 == 3)
			replace_group(&ids[g], ids[(g + 1) % GROUPS], next++ % IDS);
		while (movers.rounds[r % MOVERS] == seen) {
			crew_lives(&movers);
			nap_ms(5);
		}
	}
	crew_end(&movers);
	for (g = 0; g < GROUPS; g++) {
		set_group(ids[g], "memory.high", "max");
		set_group(ids[g], "memory.max", "max");
		want_empty(ids[g], "after all moves");
		remove_group(ids[g]);
	}
	empty_work();
	want_all_gone();
	figure("tasks_moved", moved, "");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "oom";
	long rounds = arg(argc, argv, 2, 4);

	begin("memcg", arg(argc, argv, 3, 16));
	open_top();
	if (!strcmp(what, "move"))
		moves(rounds);
	else
		kills(rounds, !strcmp(what, "group"));
	remove_path(TOP);
	finish();
	return 0;
}
