/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Users without rights that hold pages, each in one way, against all that needs the places of
 * those pages.  Each goes on until it is ended, and tells how much it holds; those that can let
 * go do so, and hold other pages at once, so that a place that was free does not stay so.
 */
#include <grp.h>
#include <linux/fuse.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "area.h"

#define USER 1000
#define BIG "/data/big"		/* all may read it */
#define BIG_MB 450	/* more than a guest of 512 MB has room for */
#define OWN "/data/own/"	/* the user's directory */
#define SERVED "/served"	/* the place of the user's file systems */

#define PIPES 400
#define PIPE_PAGES 16
#define LOCKED_MB 3		/* twice that is locked, and 8 MB are the limit */
#define WINDOWS 112		/* of a MB each, of which a part is pinned */
#define WINDOW_PART (16 * PAGE)
#define DIRECTS 24		/* direct writes, of a MB each */
#define READS 16		/* readers, of a MB each */
#define REQUEST (MB + PAGE)	/* of a server, with its header */
#define UNWRITTEN_MB 8
#define WRITERS 16		/* the kernel holds each up, some as soon as after a page */
#define DIRTY_MB 320
#define DIRECTORIES 2000	/* a block of metadata each */
#define TAKEN_MB 200

/**
 * struct adversary - a user without rights
 * @name: of what it does
 * @work: holds, and does not return
 * @needs: a file or directory that is there if the kernel can do that; NULL: each can
 * @least_kb: held, it has begun
 */
struct adversary {
	const char *name;
	void (*work)(void);
	const char *needs;
	unsigned long least_kb;
};

/* What each of them holds; shared. */
static atomic_ulong *told_kb;

static inline void tell(unsigned long bytes)
{
	*told_kb += bytes / 1024;
}

static inline void nap(unsigned int ms)
{
	usleep(ms * 1000);
}

/* A process of another user: its files in /proc are its own, as if it had executed a program. */
static inline void ordinary(void)
{
	if (setgroups(0, NULL) || setresgid(USER, USER, USER) || setresuid(USER, USER, USER) ||
	    prctl(PR_SET_DUMPABLE, 1))
		_exit(1);
}

/* One more process of the same user. */
static inline void also(void (*work)(void))
{
	if (!fork()) {
		work();
		_exit(0);
	}
}

static inline void read_big(void)
{
	static char buffer[64 * 1024];
	int fd = open(BIG, O_RDONLY);

	while (fd >= 0 && read(fd, buffer, sizeof(buffer)) > 0)
		;
	if (fd >= 0)
		close(fd);
}

static inline char *map_big(size_t at, size_t size)
{
	int fd = open(BIG, O_RDONLY);
	char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, at);

	close(fd);
	return map;
}

static inline void idles(void)
{
	pause();
}

/* Reads a file that does not fit, over and over. */
static inline void evicts(void)
{
	for (;;)
		read_big();
}

/* What a process does from now on is told to none. */
static inline void tell_none(void)
{
	static atomic_ulong none;

	told_kb = &none;
}

/* Pages of a file in pipes. */
static inline void holds_pipes(void)
{
	const unsigned long places = BIG_MB * MB / (PIPE_PAGES * PAGE);
	char *map = map_big(0, BIG_MB * MB);
	int fd[PIPES][2], file = open(BIG, O_RDONLY);
	unsigned long turn;

	also(evicts);
	for (turn = 0;; turn++) {
		loff_t at = turn * 47 % places * PIPE_PAGES * PAGE;
		struct iovec iov = { map + at, PIPE_PAGES * PAGE };
		int *ends = fd[turn % PIPES];
		ssize_t n;

		if (turn >= PIPES) {
			close(ends[0]);
			close(ends[1]);
			nap(1);
		}
		if (pipe(ends))
			_exit(1);
		n = turn % 2 ? vmsplice(ends[1], &iov, 1, SPLICE_F_NONBLOCK) :
			       splice(file, &at, ends[1], NULL, iov.iov_len, SPLICE_F_NONBLOCK);
		if (n > 0 && turn < PIPES)
			tell(n);
	}
}

/* Locked pages of a file: half of them at a time go for others. */
static inline void locks(void)
{
	const size_t size = LOCKED_MB * MB;
	char *map, *older = NULL;
	size_t turn;

	also(evicts);
	for (turn = 0;; turn++) {
		map = map_big(turn * size % ((BIG_MB - LOCKED_MB) * MB), size);
		if (map == MAP_FAILED || mlock(map, size))
			_exit(1);
		if (turn < 2)
			tell(size);
		nap(100);
		if (older)
			munmap(older, size);
		older = map;
	}
}

/* Buffers that are registered for I/O: pins for as long as it likes. */
static inline void pins_buffers(void)
{
	struct io_uring_params params = { 0 };
	int ring = syscall(SYS_io_uring_setup, 1, &params), i, turn;
	struct iovec part[WINDOWS];
	char *p = mmap(NULL, WINDOWS * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	also(evicts);
	for (turn = 0;; turn++) {
		for (i = 0; i < WINDOWS; i++) {
			part[i] = (struct iovec){ p + i * MB, WINDOW_PART };
			memset(part[i].iov_base, 1, WINDOW_PART);
		}
		if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, part, WINDOWS))
			_exit(1);
		if (!turn)
			tell(WINDOWS * WINDOW_PART);
		nap(100);
		syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
		madvise(p, WINDOWS * MB, MADV_DONTNEED);
	}
}

/* file systems of its own */

/* As any user has one: in namespaces of its own.  Return: the server's end. */
static inline int serves_own(void)
{
	char options[96];
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) || put("/proc/self/setgroups", "deny") ||
	    put("/proc/self/uid_map", "0 1000 1") || put("/proc/self/gid_map", "0 1000 1"))
		_exit(1);
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0 || mount("own", SERVED, "fuse", MS_NOSUID | MS_NODEV, options))
		_exit(1);
	return fd;
}

static inline void answer(int fd, const struct fuse_in_header *in, int error, const void *what,
			  size_t size)
{
	struct fuse_out_header out = {
		.len = sizeof(out) + size, .error = error, .unique = in->unique,
	};
	struct iovec part[] = { { &out, sizeof(out) }, { (void *)what, size } };

	/* What it asked may be over. */
	if (writev(fd, part, size ? 2 : 1) < 0 && errno != ENOENT)
		_exit(1);
}

/*
 * Answers all that is asked about its files, each of whose names is a number, but no write, and
 * a read only if it @gives what was asked for.
 */
static inline void serve(int fd, bool gives, unsigned int open_flags)
{
	static char asked[REQUEST], zeros[MB];
	const struct fuse_in_header *in = (void *)asked;
	const struct fuse_read_in *read_in = (void *)(in + 1);
	const struct fuse_write_in *write_in = (void *)(in + 1);
	const char *name = (void *)(in + 1);

	while (read(fd, asked, sizeof(asked)) > 0) {
		bool root = in->nodeid == FUSE_ROOT_ID && in->opcode != FUSE_LOOKUP;
		struct fuse_init_out init = {
			.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
			.max_readahead = MB, .max_write = MB, .max_pages = MB / PAGE,
			.max_background = READS * 8, .flags = FUSE_ASYNC_READ | FUSE_MAX_PAGES |
							      FUSE_BIG_WRITES,
		};
		struct fuse_attr attr = {
			.ino = in->nodeid, .mode = root ? S_IFDIR | 0755 : S_IFREG | 0644,
			.nlink = 1, .size = root ? 0 : READS * MB,
		};
		struct fuse_entry_out entry = {
			.entry_valid = 1000, .attr_valid = 1000, .attr = attr,
		};
		struct fuse_attr_out said = { .attr_valid = 1000, .attr = attr };
		struct fuse_open_out opened = { .open_flags = open_flags };

		switch (in->opcode) {
		case FUSE_INIT:
			answer(fd, in, 0, &init, sizeof(init));
			break;
		case FUSE_LOOKUP:
			entry.nodeid = FUSE_ROOT_ID + 1 + atoi(name);
			entry.attr.ino = entry.nodeid;
			answer(fd, in, 0, &entry, sizeof(entry));
			break;
		case FUSE_GETATTR:
		case FUSE_SETATTR:
			answer(fd, in, 0, &said, sizeof(said));
			break;
		case FUSE_OPEN:
			answer(fd, in, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
			if (gives)
				answer(fd, in, 0, zeros, read_in->size);
			else
				tell(read_in->size);
			break;
		case FUSE_WRITE:
			tell(write_in->size);
			break;
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			answer(fd, in, -ENOSYS, NULL, 0);
		}
	}
	_exit(1);
}

static inline int open_served(int number)
{
	char path[32];

	snprintf(path, sizeof(path), SERVED "/%d", number);
	return open(path, O_RDWR | O_CLOEXEC);
}

/*
 * Serves, beside a process for each part of the work and a reader.  They are without the server's
 * end: with that all are let go.
 */
static inline void serve_parts(void (*work)(int part), int nr, bool gives,
			       unsigned int open_flags)
{
	int server, i;

	also(evicts);
	server = serves_own();
	for (i = 0; i < nr; i++) {
		if (fork())
			continue;
		close(server);
		work(i);
		_exit(1);
	}
	serve(server, gives, open_flags);
}

static inline void reads_part(int part)
{
	const size_t step = 128 * 1024;		/* that the kernel reads ahead at a time */
	int fd = open_served(0);
	size_t at;
	char byte;

	for (at = 0; at < MB; at += step)
		readahead(fd, part * MB + at, step);
	if (pread(fd, &byte, sizeof(byte), part * MB) < 0)
		_exit(1);
}

/* Pages that are being read, and so are locked, for as long as the server says nothing. */
static inline void waits_for_reads(void)
{
	serve_parts(reads_part, READS, false, FOPEN_KEEP_CACHE);
}

static inline void writes_mapped(int part)
{
	int fd = open_served(part);
	volatile char *map = mmap(NULL, UNWRITTEN_MB * MB, PROT_READ | PROT_WRITE, MAP_SHARED,
				  fd, 0);
	size_t i;

	if (map == MAP_FAILED)
		_exit(1);
	if (!fork())
		for (;; nap(50))
			fsync(fd);
	for (i = 0; i < UNWRITTEN_MB * MB; i += PAGE)
		map[i] = 1;
	pause();
}

/*
 * Pages that were written to, and their server does not take what is in them.  The kernel lets
 * such a file system have a hundredth of the pages that may be dirty.
 */
static inline void waits_for_writes(void)
{
	serve_parts(writes_mapped, WRITERS, true, FOPEN_KEEP_CACHE);
}

static inline void writes_directly(int part)
{
	char *map = map_big(0, BIG_MB * MB);

	if (write(open_served(part), map + part * (BIG_MB / DIRECTS) * MB, MB) < 0)
		_exit(1);
}

/* Pages of a file, pinned for direct writes that the server of another file does not take. */
static inline void pins_directly(void)
{
	serve_parts(writes_directly, DIRECTS, true, FOPEN_DIRECT_IO);
}

/* what waits for storage */

/* Written over and over: most of the page cache, where the owner's limits of dirty pages let it. */
static inline void dirties(void)
{
	static char buffer[MB];
	int fd = open(OWN "dirty", O_RDWR | O_CREAT, 0600);
	unsigned long i;

	for (i = 0;; i++) {
		if (pwrite(fd, buffer, sizeof(buffer), i % DIRTY_MB * MB) < 0)
			_exit(1);
		if (i < DIRTY_MB)
			tell(MB);
	}
}

/* Blocks of metadata that the journal holds until they are where they belong. */
static inline void fills_journal(void)
{
	unsigned long i;
	char path[64];
	int fd;

	for (i = 0;; i++) {
		snprintf(path, sizeof(path), OWN "d%lu", i % DIRECTORIES);
		if (!mkdir(path, 0700))
			tell(PAGE);
		else if (!rmdir(path))
			*told_kb -= PAGE / 1024;
		if (i % 64)
			continue;
		fd = open(OWN, O_RDONLY);
		fsync(fd);
		close(fd);
	}
}

static inline void takes(void)
{
	volatile char *p = mmap(NULL, TAKEN_MB * MB, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	for (i = 0; i < TAKEN_MB * MB; i += PAGE) {
		p[i] = 1;
		tell(PAGE);
	}
	for (;; sleep(1))
		for (i = 0; i < TAKEN_MB * MB; i += PAGE)
			p[i]++;
}

static const struct adversary adversaries[] = {
	{ "alone", idles, NULL, 0 },
	{ "reader", evicts, NULL, 0 },
	{ "pipes", holds_pipes, NULL, PIPES * 3 * PIPE_PAGES },
	{ "fuse-reads", waits_for_reads, "/dev/fuse", READS * 1024 / 2 },
	{ "fuse-writes", waits_for_writes, "/dev/fuse", WRITERS * PAGE / 1024 },
	{ "gup-pins", pins_directly, "/dev/fuse", DIRECTS * 1024 },
	{ "ring-pins", pins_buffers, "/proc/sys/kernel/io_uring_disabled", WINDOWS * 64 },
	{ "mlock", locks, NULL, 2 * LOCKED_MB * 1024 },
	{ "dirty", dirties, NULL, DIRTY_MB * 1024 },
	{ "journal", fills_journal, NULL, 1024 },
	{ "memory", takes, NULL, TAKEN_MB * 1024 },
};

enum { NR_ADVERSARIES = sizeof(adversaries) / sizeof(adversaries[0]) };

static inline bool there(const struct adversary *user)
{
	return !user->needs || !access(user->needs, F_OK);
}

/* Files, devices and limits, as an owner gives them to users. */
static inline void admit(void)
{
	int fd = open(BIG, O_RDWR | O_CREAT, 0644), i;
	static char buffer[MB];
	bool written = true;

	memset(buffer, 0xa5, sizeof(buffer));
	for (i = 0; i < BIG_MB; i++)
		written &= write(fd, buffer, sizeof(buffer)) == sizeof(buffer);
	if (!written || fsync(fd))
		claim(false, "a large file for the users");
	close(fd);
	mkdir(OWN, 0700);
	mkdir(SERVED, 0755);
	chmod("/dev/fuse", 0666);
	if (chown(OWN, USER, USER) || put("/proc/sys/vm/dirty_writeback_centisecs", "0") ||
	    put("/proc/sys/vm/dirty_background_ratio", "90") ||
	    put("/proc/sys/vm/dirty_ratio", "95"))
		claim(false, "a directory of the user's, and limits that let it write");
}

/* Begins to hold, in a group of processes of its own; all told is at @told. */
static inline pid_t let_in(const struct adversary *user, atomic_ulong *told)
{
	pid_t pid = fork();

	if (!pid) {
		setpgid(0, 0);
		told_kb = told;
		ordinary();
		user->work();
		_exit(1);
	}
	setpgid(pid, pid);
	return pid;
}

static inline void end_group(pid_t pid)
{
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0)
		;
}
