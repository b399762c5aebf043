// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that an ordinary user can run against the others on a machine:
 *
 *   adversary NAME SECONDS
 *
 * A victim runs alone at first, and then beside the adversary; with some of them
 * the owner of the machine changes it meanwhile. Told are what a round costs the
 * victim in both cases, whether it outlives that, whether anything is killed for
 * want of memory, and whether all memory is back afterwards: what is held against the
 * other users must go with its process.
 */
#include <glob.h>
#include <linux/fuse.h>
#include <linux/io_uring.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "cost.h"
#include "owner.h"

#define ADVERSARY_UID 1002
#define WINDOWS 128		/* of a MiB each */
#define WARM_MS 1000		/* an adversary gets going */
#define RESTING 128UL		/* MiB of a process, one page of each in a pipe */
#define GRANTED GROUPS "/granted"
#define OWN GRANTED "/own"
#define HUGE_PAGES "/sys/kernel/mm/transparent_hugepage/enabled"

/* In bytes: half of the machine in a file, which fills the page cache; a quarter in a heap. */
static size_t file_size, heap_size;
/* The connection of a file system, or -1. */
static int fuse = -1;
/* The group that the adversary's user may use as it likes, or NULL. */
static const char *group;
/* Has the adversary a right that it was not given? */
static volatile bool *gained;
/* Have processes huge pages without asking? */
static bool huge_was_set;

/* ---- the adversaries: each goes on until it is killed ---- */

/* An adversary of many processes has ended with the first of them. */
static void stay(void)
{
	wait(NULL);
	_exit(1);
}

static void child_ended(int signal)
{
	_exit(1);
}

/* Cached pages that pipes hold: reclaim and migration cannot have them. */
static void pipes(int file)
{
	int fds[2];
	loff_t at = 0;

	while (!pipe(fds)) {
		fcntl(fds[1], F_SETFL, O_NONBLOCK);
		while (splice(file, &at, fds[1], NULL, 16 * PAGE, SPLICE_F_NONBLOCK) > 0)
			at %= file_size;
	}
	pause();
}

/* Processes of a few pages that come and go, each with a domain of its own. */
static void tiny(int file)
{
	struct rlimit limit = { .rlim_cur = 400, .rlim_max = 400 };

	setrlimit(RLIMIT_NPROC, &limit);
	for (;;) {
		pid_t pid = fork();

		if (!pid) {
			touch(map(8 * PAGE), 8 * PAGE);
			nap(50);
			_exit(0);
		}
		if (pid < 0)
			wait(NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

static void toggle(unsigned int background_ms, unsigned int foreground_ms)
{
	write_text("/proc/self/oom_score_adj", "1000");
	nap(background_ms);
	write_text("/proc/self/oom_score_adj", "0");
	nap(foreground_ms);
}

/* As many processes as a user may have, each in the background and back four times a second. */
static void adj(int file)
{
	for (;;) {
		pid_t pid = fork();

		if (pid < 0)
			pause();
		if (pid)
			continue;
		touch(map(8 * PAGE), 8 * PAGE);
		for (;;)
			toggle(210, 40);
	}
}

/*
 * A page of each MiB held in a pipe, and the rest given back. In the background the process
 * is packed, in vain, as what a pipe holds does not move; and it is soon in the background again.
 */
static void rest(size_t size)
{
	char *p = map(size);
	int fds[2], turns;
	size_t at;

	for (;;) {
		touch(p, size);
		if (pipe(fds) || fcntl(fds[1], F_SETPIPE_SZ, size / MB * PAGE) < 0)
			_exit(1);
		for (at = 0; at < size; at += MB) {
			struct iovec page = { p + at, PAGE };

			if (vmsplice(fds[1], &page, 1, SPLICE_F_NONBLOCK) != PAGE)
				_exit(1);
		}
		madvise(p, size, MADV_DONTNEED);
		for (turns = 0; turns < 8; turns++)
			toggle(210, 10);
		close(fds[0]);
		close(fds[1]);
	}
}

static void resting(int file)
{
	size_t size;

	for (size = 0; size < file_size; size += RESTING * MB)
		if (!fork())
			rest(RESTING * MB);
	stay();
}

/* Pages that are freed only when memory is short. */
static void lazyfree(int file)
{
	char *p = map(heap_size);

	for (;;) {
		touch(p, heap_size);
		madvise(p, heap_size, MADV_FREE);
	}
}

/* As many pages as the limit allows, in several processes. */
static void locked(int file)
{
	struct rlimit limit;
	int i;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur > 8 * MB)
		limit.rlim_cur = 8 * MB;
	for (i = 0; i < 16; i++) {
		if (!fork()) {
			char *p = map(limit.rlim_cur);

			for (;;) {
				mlock(p, limit.rlim_cur);
				nap(20);
				munlock(p, limit.rlim_cur);
				madvise(p, limit.rlim_cur, MADV_DONTNEED);
			}
		}
	}
	stay();
}

/* Much memory, taken and given back. */
static void hog(int file)
{
	for (;;) {
		char *p = map(heap_size);

		touch(p, heap_size);
		munmap(p, heap_size);
	}
}

/* Every second page of a large mapping stays: nothing but single pages is free. */
static void holes(int file)
{
	char *p = map(heap_size);
	size_t at;

	for (;;) {
		touch(p, heap_size);
		for (at = 0; at < heap_size; at += 2 * PAGE)
			madvise(p + at, PAGE, MADV_DONTNEED);
		nap(5);
	}
}

/* A file larger than what the cache has for it, written over and over. */
static void writer(int file)
{
	static char block[256 * 1024];
	off_t at;

	for (;;)
		for (at = 0; at < (off_t)file_size; at += sizeof(block))
			if (pwrite(file, block, sizeof(block), at) < 0)
				_exit(1);
}

/* The same file mapped, each page used once a turn. */
static void mapped(int file)
{
	char *p = mmap(NULL, file_size, PROT_READ, MAP_SHARED, file, 0);
	volatile char sum = 0;
	size_t at;

	if (p == MAP_FAILED)
		_exit(1);
	for (;;)
		for (at = 0; at < file_size; at += PAGE)
			sum += p[at];
}

/* Huge pages, made and taken apart. */
static void take_apart(char *p, size_t size)
{
	size_t at;

	for (;;) {
		touch(p, size);
		for (at = 0; at < size; at += 2 * MB)
			madvise(p + at + 17 * PAGE, PAGE, MADV_DONTNEED);
		madvise(p, size, MADV_DONTNEED);
	}
}

static void huge(int file)
{
	size_t size = 96 * MB;
	char *p = map(size);

	madvise(p, size, MADV_HUGEPAGE);
	take_apart(p, size);
}

/* Where processes have huge pages without asking, a fault that finds none does not wait for one. */
static void light(int file)
{
	size_t size = 96 * MB;

	take_apart(map(size), size);
}

static void huge_for_all(void)
{
	if (!write_text(HUGE_PAGES, "always"))
		die(HUGE_PAGES);
	huge_was_set = true;
}

/*
 * Memory policies that change under the pages of a mapping. Where there are two nodes its pages move
 * from one to the other, three times of four.
 */
static void policies(int file)
{
	bool two = !access("/sys/devices/system/node/node1", F_OK);
	size_t size = 64 * MB;
	char *p = map(size);
	int turn;

	for (turn = 0;; turn++) {
		int mode = turn % 4;
		unsigned long node = two ? 1UL << turn % 2 : 1UL;

		if (syscall(SYS_mbind, p, size, mode, mode ? &node : NULL, mode ? 3UL : 0UL,
			    MPOL_MF_MOVE))
			_exit(1);
		touch(p, size);
		if (!two || turn % 8 == 7)
			madvise(p, size, MADV_DONTNEED);
	}
}

/* Threads of one process that fault and free on all CPUs. */
static void spread(int file)
{
	int i;

	for (i = 0; i < 8; i++) {
		if (!fork()) {
			char *p = map(24 * MB);

			for (;;) {
				touch(p, 24 * MB);
				madvise(p, 24 * MB, MADV_DONTNEED);
			}
		}
	}
	stay();
}

/* A part of each MiB pinned for I/O, as far as the limit of locked memory goes. */
static void pinned(int file)
{
	struct io_uring_params params = { 0 };
	int ring = syscall(SYS_io_uring_setup, 1, &params);
	struct iovec windows[WINDOWS];
	struct rlimit limit;
	size_t part;
	char *p = map(WINDOWS * MB);
	int i;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	part = (limit.rlim_cur < 8 * MB ? limit.rlim_cur : 8 * MB) / 2 / WINDOWS / PAGE * PAGE;
	for (i = 0; i < WINDOWS; i++)
		windows[i] = (struct iovec){ p + i * MB, part };
	if (ring < 0 || !part)
		_exit(1);
	for (;;) {
		touch(p, WINDOWS * MB);
		if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, windows, WINDOWS))
			_exit(1);
		for (i = 0; i < WINDOWS; i++)
			madvise(p + i * MB + part, MB - part, MADV_DONTNEED);
		nap(20);
		syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
		madvise(p, WINDOWS * MB, MADV_DONTNEED);
	}
}

/* Pages that it gives itself by userfaultfd, every second one. */
static void copies(int file)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	char *p = map(heap_size), *from = map(PAGE);
	size_t at;

	touch(from, PAGE);
	all.range = (struct uffdio_range){ (unsigned long)p, heap_size };
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &all))
		_exit(1);
	for (;;) {
		for (at = 0; at < heap_size; at += 2 * PAGE) {
			struct uffdio_copy copy = {
				.dst = (unsigned long)p + at, .src = (unsigned long)from, .len = PAGE,
			};

			if (ioctl(fd, UFFDIO_COPY, &copy) && copy.copy != -EAGAIN)
				_exit(1);
		}
		madvise(p, heap_size, MADV_DONTNEED);
	}
}

/* Answers what is asked about its one file, and never what is in it. */
static void serve(int fd)
{
	static char asked[256 * 1024];
	struct fuse_attr root = { .ino = 1, .mode = S_IFDIR | 0755, .nlink = 2 };
	struct fuse_attr attr = { .ino = 2, .mode = S_IFREG | 0644, .nlink = 1, .size = file_size };
	struct fuse_in_header *in = (void *)asked;

	while (read(fd, asked, sizeof(asked)) > 0) {
		struct fuse_init_out init = {
			.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
			.max_readahead = 128 * 1024, .flags = FUSE_ASYNC_READ, .max_write = 128 * 1024,
		};
		struct fuse_entry_out entry = {
			.nodeid = 2, .entry_valid = 1000, .attr_valid = 1000, .attr = attr,
		};
		struct fuse_attr_out said = {
			.attr_valid = 1000, .attr = in->nodeid == 1 ? root : attr,
		};
		struct fuse_open_out opened = { .open_flags = FOPEN_KEEP_CACHE };
		struct fuse_out_header out = { .unique = in->unique };
		struct iovec parts[2] = { { &out, sizeof(out) }, { NULL, 0 } };

		switch (in->opcode) {
		case FUSE_INIT:
			parts[1] = (struct iovec){ &init, sizeof(init) };
			break;
		case FUSE_LOOKUP:
			parts[1] = (struct iovec){ &entry, sizeof(entry) };
			break;
		case FUSE_GETATTR:
			parts[1] = (struct iovec){ &said, sizeof(said) };
			break;
		case FUSE_OPEN:
			parts[1] = (struct iovec){ &opened, sizeof(opened) };
			break;
		case FUSE_READ:
		case FUSE_FORGET:
			continue;
		default:
			out.error = -ENOSYS;
		}
		out.len = sizeof(out) + parts[1].iov_len;
		if (writev(fd, parts, 2) < 0)
			_exit(1);
	}
}

/* Reads a part of a file, and the rest of it ahead. */
static void read_part(int fd, off_t at)
{
	static char block[64 * 1024];

	readahead(fd, at, MB);
	if (pread(fd, block, sizeof(block), at) < 0)
		_exit(1);
	_exit(0);
}

/* All that the kernel tells any user of its memory, again and again. */
static void asks(int file)
{
	static const char *const patterns[] = {
		"/proc/vmstat", "/proc/zoneinfo", "/proc/buddyinfo",
		"/sys/kernel/mm/cohort/*/*", "/sys/kernel/mm/cohort/*/*/*",
	};
	static char text[64 * 1024];
	glob_t found = { 0 };
	size_t i;
	int fd;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &found);
	for (i = 0;; i = (i + 1) % found.gl_pathc) {
		fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
		while (read(fd, text, sizeof(text)) > 0)
			;
		close(fd);
	}
}

static void read_own(const char *file, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/%s", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	text[n < 0 ? 0 : n] = '\0';
	close(fd);
}

/*
 * A setuid program complains to where its caller says, and begins with the name by which it
 * was called. Does that change what a file in /proc says of the caller?
 */
static bool speaks_for_caller(const char *file, const char *name)
{
	char path[64], before[32], after[32];

	read_own(file, before, sizeof(before));
	if (!fork()) {
		snprintf(path, sizeof(path), "/proc/%d/%s", getppid(), file);
		dup2(open(path, O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		execl("/bin/su", name, "--no-such-option", NULL);
		_exit(1);
	}
	wait(NULL);
	read_own(file, after, sizeof(after));
	return strcmp(before, after);
}

/* Rights by a setuid program's word, and then memory with what rights there are. */
static void deputy(int file)
{
	write_text("/proc/self/vnode", "untrusted");
	*gained = speaks_for_caller("cohort_entitled", "1");
	*gained |= speaks_for_caller("vnode", "trusted");
	hog(file);
}

/* What fusermount does for any user. */
static void mount_for_user(void)
{
	char options[128];

	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fuse,
		 ADVERSARY_UID, ADVERSARY_UID);
	if (fuse < 0 || (mkdir("silent", 0755) && errno != EEXIST) ||
	    mount("silent", "silent", "fuse", MS_NOSUID | MS_NODEV, options))
		die("fuse");
}

/* A file system of its own whose server is silent: pages of its file stay locked. */
static void silent(int file)
{
	int i;

	signal(SIGCHLD, child_ended);
	for (i = 0; i < 32; i++) {
		if (fork())
			continue;
		/* Only the server keeps it up: with its end all are let go. */
		close(fuse);
		read_part(open("silent/file", O_RDONLY | O_CLOEXEC), i * MB);
	}
	serve(fuse);
}

/* Its memory goes from node to node, by a group of its own. */
static void cpusets(int file)
{
	char *p = map(64 * MB);
	int node;

	for (node = 0;; node = !node) {
		touch(p, 64 * MB);
		write_text(OWN "/cpuset.mems", node ? "1" : "0");
	}
}

/* A file that fills half of memory, all of it protected from reclaim. */
static void protected(int file)
{
	static char block[256 * 1024];
	off_t at;

	write_text(OWN "/memory.min", "max");
	for (;;)
		for (at = 0; at < (off_t)file_size; at += sizeof(block))
			if (pread(file, block, sizeof(block), at) < 0)
				_exit(1);
}

/* What a session manager gives a user: a group whose limits are the user's to set. */
static void grant_group(void)
{
	static const char *const files[] = { OWN "/cpuset.mems", OWN "/memory.min" };
	char bytes[32];
	size_t i;

	snprintf(bytes, sizeof(bytes), "%zu", file_size);
	write_text(GROUPS "/cgroup.subtree_control", "+cpuset +memory");
	mkdir(GRANTED, 0755);
	write_text(GRANTED "/cgroup.subtree_control", "+cpuset +memory");
	write_text(GRANTED "/memory.min", bytes);
	mkdir(OWN, 0755);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (chown(files[i], ADVERSARY_UID, ADVERSARY_UID))
			die("%s", files[i]);
	group = OWN;
}

static const struct {
	const char *name;
	void (*run)(int file);
	void (*prepare)(void);
	void (*owner)(void);
	unsigned int warm_ms;	/* beyond WARM_MS */
	const char *denied;	/* what shall not be gained */
} adversaries[] = {
	/* by themselves */
	{ .name = "pipes", .run = pipes },
	{ .name = "tiny", .run = tiny },
	{ .name = "adj", .run = adj, .warm_ms = 4000 },
	{ .name = "resting", .run = resting },
	{ .name = "lazyfree", .run = lazyfree },
	{ .name = "locked", .run = locked },
	{ .name = "hog", .run = hog },
	{ .name = "holes", .run = holes },
	{ .name = "writer", .run = writer },
	{ .name = "mapped", .run = mapped },
	{ .name = "huge", .run = huge },
	{ .name = "policies", .run = policies },
	{ .name = "spread", .run = spread },
	{ .name = "pinned", .run = pinned },
	{ .name = "copies", .run = copies },
	{ .name = "asks", .run = asks },
	{ .name = "deputy", .run = deputy, .denied = "a setuid program gains it no right" },
	/* with what a user is given */
	{ .name = "silent", .run = silent, .prepare = mount_for_user },
	{ .name = "protected", .run = protected, .prepare = grant_group },
	{ .name = "cpusets", .run = cpusets, .prepare = grant_group },
	/* beside what the owner does */
	{ .name = "light", .run = light, .prepare = huge_for_all },
	{ .name = "frames", .run = holes, .owner = takes_frames },
	{ .name = "unplugged", .run = spread, .owner = unplugs },
};

static pid_t start(void (*run)(int file), int file, uid_t uid)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	setsid();
	if (uid && group)
		write_text(OWN "/cgroup.procs", "0");
	if (uid)
		become(uid);
	run(file);
	_exit(0);
}

/* All processes of the adversary's user, however many it has by now. */
static void end_user(uid_t uid)
{
	pid_t pid = fork();

	if (!pid) {
		become(uid);
		kill(-1, SIGKILL);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* What a round costs the victim beside the adversary, and what becomes of both. */
static void measure(size_t i, pid_t hurt, int file, unsigned int seconds)
{
	uint64_t kills = number_of("/proc/vmstat", "oom_kill");
	pid_t bad, owner = 0;
	struct cost beside;
	bool goes_on;

	if (adversaries[i].prepare)
		adversaries[i].prepare();
	bad = start(adversaries[i].run, file, ADVERSARY_UID);
	close(fuse);
	if (adversaries[i].owner)
		owner = start_owner(adversaries[i].owner);
	nap(WARM_MS + adversaries[i].warm_ms);
	printf("# beside %s\n", adversaries[i].name);
	goes_on = cost_now(seconds, &beside);
	kills = number_of("/proc/vmstat", "oom_kill") - kills;
	if (goes_on)
		tell_cost(&beside);
	check(goes_on, "the victim goes on");
	check(waitpid(hurt, NULL, WNOHANG) == 0, "the victim lives");
	check(waitpid(bad, NULL, WNOHANG) == 0, "the adversary goes on");
	/* Where the first policy has some, too, that is no difference. */
	printf("# figure kills %llu\n", (unsigned long long)kills);
	check(!kills, "nothing is killed for want of memory");
	if (adversaries[i].denied)
		check(!*gained, adversaries[i].denied);
	if (owner)
		end_owner(owner);
}

/* Nothing stays of the adversary, nor of the victim. */
static void clear(pid_t hurt)
{
	end_user(ADVERSARY_UID);
	umount2("silent", MNT_DETACH);
	kill(hurt, SIGKILL);
	while (wait(NULL) > 0)
		;
	rmdir(OWN);
	rmdir(GRANTED);
	rmdir(VICTIM_GROUP);
	if (huge_was_set)
		write_text(HUGE_PAGES, "madvise");
}

static size_t find_adversary(int argc, char **argv)
{
	size_t i;

	for (i = 0; i < sizeof(adversaries) / sizeof(adversaries[0]); i++)
		if (argc == 3 && !strcmp(adversaries[i].name, argv[1]) && atoi(argv[2]) > 0)
			return i;
	fprintf(stderr, "usage: adversary NAME SECONDS\n");
	exit(2);
}

int main(int argc, char **argv)
{
	size_t i = find_adversary(argc, argv);
	unsigned int seconds = atoi(argv[2]);
	uint64_t before, after, wanted;
	struct cost alone;
	pid_t hurt;
	int mine, theirs;

	setvbuf(stdout, NULL, _IOLBF, 0);
	told = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	changes = (void *)(told + 1);
	gained = (void *)(changes + 1);
	file_size = meminfo_kb("MemTotal") * 1024 / 2 / MB * MB;
	heap_size = file_size / 2;
	mine = make_file("victim.data", VICTIM_FILE);
	theirs = make_file("adversary.data", file_size);
	available_kb();
	nap(1000);
	before = available_kb();
	/* Memory is full when it begins. */
	close(make_file("adversary.data", file_size));
	hurt = start(victim, mine, 0);
	while (told->rounds < WARM_ROUNDS)
		nap(10);
	if (!cost_now(seconds, &alone))
		die("the victim makes no round");
	printf("# alone %.1f us a round, %.1f us of waits, %.1f us for a ms of users\n",
	       alone.cpu_us, alone.wait_us, alone.users_us);
	measure(i, hurt, theirs, seconds);
	clear(hurt);
	wanted = before - before * LOST_PERCENT / 100;
	after = settled_kb(wanted);
	printf("# available %llu kB before, %llu kB after\n", (unsigned long long)before,
	       (unsigned long long)after);
	check(after >= wanted, "all memory is back");
	return 0;
}
