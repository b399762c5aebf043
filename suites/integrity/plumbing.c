// SPDX-License-Identifier: GPL-2.0
/*
 * plumbing SECONDS [SEED]
 *
 * Pages on their way: files spliced into pipes that are teed and spliced on, user memory by
 * vmsplice, pipes that grow and shrink while they are full, sockets with huge buffers and messages
 * that need large pieces, while the files are dropped from the cache and memory is compacted.
 * Every byte that comes out is compared.
 */
#include "load.h"
#include <sys/sendfile.h>
#include <sys/socket.h>

#define FILE_TAG (1ULL << 60)
#define NR 4

static volatile int *stop;
static volatile unsigned long *moved;
static unsigned long file_pages;
static int file;
static char page[PG] __attribute__((aligned(4096)));

static void read_page(int fd, uint64_t tag, const char *what)
{
	size_t got = 0;

	while (got < PG) {
		ssize_t n = read(fd, page + got, PG - got);

		if (n <= 0)
			die_errno("%s: read %zd", what, n);
		got += n;
	}
	check_page(page, tag, what);
}

/* It may be refused; how many pages a pipe has room for then. */
static unsigned long set_size(int fd, unsigned long pages)
{
	if (fcntl(fd, F_SETPIPE_SZ, pages * PG) < 0 && errno != EBUSY && errno != ENOMEM &&
	    errno != EPERM)
		die_errno("F_SETPIPE_SZ %lu pages", pages);
	return fcntl(fd, F_GETPIPE_SZ) / PG;
}

/* file -> pipe =tee=> pipe; both say the same. The cache of the file goes meanwhile. */
static unsigned long through_pipes(int me)
{
	int a[2], b[2];
	unsigned long n = 1 + below(200), i, in = 0, out = 0, room;
	loff_t at;
	uint64_t tag;

	if (pipe(a) || pipe(b))
		die_errno("pipe");
	room = set_size(a[1], 256);
	set_size(b[1], 256);
	if (n > room)
		n = room;
	at = below(file_pages - n) * PG;
	tag = FILE_TAG + at / PG;
	while (in < n * PG) {
		ssize_t k = splice(file, &at, a[1], NULL, n * PG - in, SPLICE_F_NONBLOCK);

		if (k <= 0)
			die_errno("splice: %zd", k);
		in += k;
	}
	if (one_in(3))
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	while (out < in) {
		ssize_t k = tee(a[0], b[1], in - out, SPLICE_F_NONBLOCK);

		if (k <= 0)
			break;
		out += k;
		if (out < in)
			break;	/* tee begins at the front again: what it has given is enough */
	}
	/* Smaller and larger rings while pages are in them. */
	set_size(a[1], 256 + 128 * below(3));
	for (i = 0; i < n; i++)
		read_page(a[0], tag + i, "a spliced page");
	for (i = 0; i + PG <= out; i += PG)
		read_page(b[0], tag + i / PG, "a teed page");
	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
	return n;
}

/* Memory that is in a pipe and gone from the process, or locked, or swapped out. */
static unsigned long from_memory(int me)
{
	unsigned long n = 1 + below(240), i;
	uint64_t tag = rnd() >> 4;
	char *p = map_anon(n * PG);
	struct iovec iov = { p, n * PG };
	unsigned long room, all = n;
	size_t in = 0;
	int a[2];

	if (pipe(a))
		die_errno("pipe");
	room = set_size(a[1], 256);
	if (n > room)
		n = room;
	iov.iov_len = n * PG;
	fill_run(p, n, tag);
	while (in < n * PG) {
		ssize_t k = vmsplice(a[1], &iov, 1, 0);

		if (k <= 0)
			die_errno("vmsplice");
		in += k;
		iov.iov_base = p + in;
		iov.iov_len = n * PG - in;
	}
	switch (below(3)) {
	case 0:
		munmap(p, all * PG);
		p = NULL;
		break;
	case 1:
		madvise(p, n * PG, MADV_PAGEOUT);
		break;
	default:
		/* A copy takes the writes of a child; the pipe keeps what there was. */
		if (!fork()) {
			fill_run(p, n, 5);
			_exit(0);
		}
		wait(NULL);
	}
	for (i = 0; i < n; i++)
		read_page(a[0], tag + i, "a page by vmsplice");
	if (p) {
		check_run(p, n, tag, "a page that was in a pipe");
		munmap(p, all * PG);
	}
	close(a[0]);
	close(a[1]);
	return n;
}

/* Messages in pieces of up to 128 KiB, many of them under way. */
static unsigned long through_sockets(int me)
{
	static char message[32 * PG] __attribute__((aligned(4096)));
	static const int types[] = { SOCK_DGRAM, SOCK_STREAM, SOCK_SEQPACKET };
	int s[2], size = 4 << 20, type = types[below(3)];
	unsigned long n = 1 + below(32), k, sent = 0, i;
	uint64_t tag = rnd() >> 8;

	if (socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, s))
		die_errno("socketpair");
	if (setsockopt(s[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	for (k = 0; k < 16; k++) {
		ssize_t done;

		fill_run(message, n, tag + k * 32);
		done = send(s[0], message, n * PG, 0);
		if (done < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EMSGSIZE))
			break;
		if (done < 0)
			die_errno("send");
		sent++;
		if (done < (ssize_t)(n * PG)) {
			/* A stream takes a part. */
			sent--;
			break;
		}
	}
	for (k = 0; k < sent; k++) {
		size_t got = 0;

		memset(message, 0, n * PG);
		while (got < n * PG) {
			ssize_t done = recv(s[1], message + got, n * PG - got, 0);

			if (done <= 0)
				die_errno("recv %zd", done);
			got += done;
			if (type != SOCK_STREAM)
				break;
		}
		if (got != n * PG)
			die("a message of %lu bytes came as %zu", n * PG, got);
		for (i = 0; i < n; i++)
			check_page(message + i * PG, tag + k * 32 + i, "a page of a message");
	}
	close(s[0]);
	close(s[1]);
	return sent * n;
}

/* file -> socket or file by sendfile. */
static unsigned long by_sendfile(int me)
{
	unsigned long n = 1 + below(128), i;
	off_t at = below(file_pages - n) * PG;
	uint64_t tag = FILE_TAG + at / PG;
	int fd = memfd_create("copy", MFD_CLOEXEC);
	size_t done = 0;

	if (fd < 0)
		die_errno("memfd");
	while (done < n * PG) {
		ssize_t k = sendfile(fd, file, &at, n * PG - done);

		if (k <= 0)
			die_errno("sendfile");
		done += k;
	}
	lseek(fd, 0, SEEK_SET);
	for (i = 0; i < n; i++)
		read_page(fd, tag + i, "a page by sendfile");
	close(fd);
	return n;
}

static void one(int me)
{
	static unsigned long (*const ways[])(int) = {
		through_pipes, from_memory, through_sockets, by_sendfile,
	};
	char path[PATH_MAX];

	work_path(path, sizeof(path), "source");
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		die_errno("%s", path);
	while (!*stop || !moved[me])
		moved[me] += ways[below(4)](me);
	_exit(0);
}

int main(int argc, char **argv)
{
	long seconds = arg(argc, argv, 1, 20), seed = arg(argc, argv, 2, 21), i;
	unsigned long all = 0;
	char path[PATH_MAX];
	pid_t pids[NR];
	uint64_t end;

	begin("plumbing", seed);
	stop = map_shared(PG);
	moved = map_shared(PG);
	file_pages = (96) * MB / PG;
	work_path(path, sizeof(path), "source");
	i = make_file(path, file_pages, FILE_TAG);
	fsync(i);
	close(i);
	load_start(2, budget_mb() / 4, 0);
	for (i = 0; i < NR; i++) {
		pids[i] = child_seeded(seed * 100 + i);
		if (!pids[i])
			one(i);
	}
	for (end = now_ms() + seconds * 1000; now_ms() < end; nap_ms(100)) {
		if (one_in(4))
			compact();
		if (one_in(8))
			put("/proc/sys/vm/drop_caches", "1");
		load_lives();
	}
	*stop = 1;
	for (i = 0; i < NR; i++) {
		want_well(pids[i], "a process");
		all += moved[i];
	}
	load_end();
	figure("pages_moved", all, "");
	return 0;
}
