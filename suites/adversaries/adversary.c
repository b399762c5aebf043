// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that an ordinary user can run against the others on a machine:
 *
 *   adversary NAME SECONDS
 *
 * A victim, another user's process, faults and frees memory and reads its file,
 * first alone, then beside the adversary. Told are what a round costs the victim
 * in both cases, whether the victim outlives it, and whether all memory is back
 * afterwards: what is held against everybody must go with its process.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MB (1024UL * 1024UL)
#define PAGE 4096UL
#define WINDOWS 128		/* of a MiB each */
#define VICTIM_UID 1001
#define ADVERSARY_UID 1002
#define VICTIM_HEAP (4 * MB)
#define VICTIM_FILE (32 * MB)
#define WARM_ROUNDS 4
/* Of what was available before: the kernel's own caches, and pages on their way. */
#define LOST_PERCENT 3
#define SETTLE_S 20

/* In bytes: half of the machine in a file, which fills the page cache; a quarter in a heap. */
static size_t file_size, heap_size;
/* The connection of a file system, or -1. */
static int fuse = -1;
/* What the victim tells: rounds so far. */
static volatile uint64_t *rounds;
static unsigned int checks;

static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf(": %s\n", strerror(errno));
	exit(1);
}

static void check(bool good, const char *what)
{
	printf("%sok %u - %s\n", good ? "" : "not ", ++checks, what);
}

static void nap(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static char *map(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void touch(char *p, size_t size)
{
	size_t at;

	for (at = 0; at < size; at += PAGE)
		p[at] = 1;
}

/* A file of that size, of an earlier case if there is one, all of it read. */
static int make_file(const char *path, size_t size)
{
	static char block[64 * 1024];
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;
	size_t at;

	if (fd < 0 || fstat(fd, &st))
		die("%s", path);
	for (at = st.st_size; at < size; at += sizeof(block))
		if (pwrite(fd, block, sizeof(block), at) != sizeof(block))
			die("%s", path);
	fsync(fd);
	for (at = 0; at < size; at += sizeof(block))
		if (pread(fd, block, sizeof(block), at) < 0)
			die("%s", path);
	return fd;
}

static uint64_t meminfo_kb(const char *name)
{
	char line[128];
	uint64_t value = 0;
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			value = strtoull(line + strlen(name) + 1, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		printf("# %s: %s\n", path, strerror(errno));
	close(fd);
}

static void become(uid_t uid)
{
	/* Its files in /proc are its own then, as those of a program that it executes would be. */
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid) || prctl(PR_SET_DUMPABLE, 1))
		die("uid %u", uid);
}

/* ---- the adversaries: each goes on until it is killed ---- */

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

/* Its own oom_score_adj, up and down. */
static void adj(int file)
{
	touch(map(16 * MB), 16 * MB);
	for (;;) {
		write_text("/proc/self/oom_score_adj", "1000");
		write_text("/proc/self/oom_score_adj", "0");
	}
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
	pause();
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
static void huge(int file)
{
	size_t size = 96 * MB, at;
	char *p = map(size);

	madvise(p, size, MADV_HUGEPAGE);
	for (;;) {
		touch(p, size);
		for (at = 0; at < size; at += 2 * MB)
			madvise(p + at + 17 * PAGE, PAGE, MADV_DONTNEED);
		madvise(p, size, MADV_DONTNEED);
	}
}

/* Memory policies that change under the pages of a mapping. */
static void policies(int file)
{
	size_t size = 64 * MB;
	unsigned long node = 1;
	char *p = map(size);
	int mode;

	for (mode = 0;; mode = (mode + 1) % 4) {
		syscall(SYS_mbind, p, size, mode, mode ? &node : NULL, mode ? 2UL : 0UL, 0);
		touch(p, size);
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
	pause();
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

	for (i = 0; i < 32; i++) {
		if (fork())
			continue;
		/* Only the server keeps it up: with its end all are let go. */
		close(fuse);
		read_part(open("silent/file", O_RDONLY | O_CLOEXEC), i * MB);
	}
	serve(fuse);
}

static const struct {
	const char *name;
	void (*run)(int file);
} adversaries[] = {
	{ "pipes", pipes }, { "tiny", tiny }, { "adj", adj }, { "lazyfree", lazyfree },
	{ "locked", locked }, { "hog", hog }, { "holes", holes }, { "writer", writer },
	{ "mapped", mapped }, { "huge", huge }, { "policies", policies }, { "spread", spread },
	{ "pinned", pinned }, { "copies", copies }, { "silent", silent },
};

/* ---- the victim ---- */

static void victim(int file)
{
	static char buffer[64 * 1024];
	char *p = map(VICTIM_HEAP);
	off_t at;

	become(VICTIM_UID);
	for (;;) {
		touch(p, VICTIM_HEAP);
		madvise(p, VICTIM_HEAP, MADV_DONTNEED);
		for (at = 0; at < (off_t)VICTIM_FILE; at += VICTIM_FILE / 64)
			if (pread(file, buffer, sizeof(buffer), at) < 0)
				_exit(1);
		++*rounds;
	}
}

/* The victim's CPU time, in ns: what else runs on its CPU costs it time, and no memory. */
static uint64_t victim_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* What a round costs the victim now, in us of its CPU time; 0 if it makes none. */
static double round_us(pid_t pid, unsigned int seconds)
{
	uint64_t before = *rounds, ns = victim_ns(pid);

	nap(seconds * 1000);
	if (*rounds == before)
		return 0;
	return (victim_ns(pid) - ns) / 1e3 / (*rounds - before);
}

static pid_t start(void (*run)(int file), int file, uid_t uid)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	setsid();
	if (uid)
		become(uid);
	run(file);
	_exit(0);
}

static uint64_t available_kb(void)
{
	sync();
	write_text("/proc/sys/vm/drop_caches", "3");
	return meminfo_kb("MemAvailable");
}

/* What is freed behind a process, by a worker or after a grace period, has time to come back. */
static uint64_t settled_kb(uint64_t wanted)
{
	uint64_t kb = available_kb();
	int i;

	for (i = 0; i < SETTLE_S && kb < wanted; i++) {
		nap(1000);
		kb = available_kb();
	}
	return kb;
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

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 2 ? atoi(argv[2]) : 0;
	uint64_t before, after, wanted;
	pid_t hurt, bad;
	double alone, beside;
	size_t i;
	int mine, theirs;

	for (i = 0; i < sizeof(adversaries) / sizeof(adversaries[0]); i++)
		if (argc == 3 && !strcmp(adversaries[i].name, argv[1]))
			break;
	if (i == sizeof(adversaries) / sizeof(adversaries[0]) || !seconds) {
		fprintf(stderr, "usage: adversary NAME SECONDS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	rounds = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
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
	while (*rounds < WARM_ROUNDS)
		nap(10);
	alone = round_us(hurt, seconds);
	if (adversaries[i].run == silent)
		mount_for_user();
	bad = start(adversaries[i].run, theirs, ADVERSARY_UID);
	close(fuse);
	nap(1000);
	beside = round_us(hurt, seconds);
	printf("# alone %.1f us a round\n", alone);
	printf("# cost round_us %.1f\n", beside);
	check(beside > 0, "the victim goes on");
	check(waitpid(hurt, NULL, WNOHANG) == 0, "the victim lives");
	printf("# the adversary %s\n", waitpid(bad, NULL, WNOHANG) ? "has ended" : "goes on");

	end_user(ADVERSARY_UID);
	umount2("silent", MNT_DETACH);
	kill(hurt, SIGKILL);
	while (wait(NULL) > 0)
		;
	wanted = before - before * LOST_PERCENT / 100;
	after = settled_kb(wanted);
	printf("# available %llu kB before, %llu kB after\n", (unsigned long long)before,
	       (unsigned long long)after);
	check(after >= wanted, "all memory is back");
	return 0;
}
