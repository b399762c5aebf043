// SPDX-License-Identifier: GPL-2.0
/*
 * heirs ROUNDS [SEED]
 *
 * Pages that outlive their owner: a process makes memory, leaves pages of it with its parent, and
 * dies: by exit, by a signal, by exec, as the last of several that share it, in a group that is
 * removed. What the parent holds (in pipes, in messages, in files of memory, in an extra mapping
 * through a fork that goes on) has to stay as it was, whatever is allocated meanwhile.
 */
#include "load.h"
#include <sys/socket.h>

#define PIPES 12
#define PIPE_PAGES 16

struct pipe_of {
	int fds[2];
	uint64_t tag;
	bool any;
};

static struct pipe_of pipes[PIPES];
static int grandchild_pipe[2];

static void read_pipe(struct pipe_of *p)
{
	static char page[PG] __attribute__((aligned(4096)));
	int i;

	for (i = 0; i < PIPE_PAGES; i++) {
		size_t got = 0;

		while (got < PG) {
			ssize_t n = read(p->fds[0], page + got, PG - got);

			if (n <= 0)
				die_errno("reading a pipe, %zd", n);
			got += n;
		}
		check_page(page, p->tag + i, "a page in a pipe whose owner is dead");
	}
	p->any = false;
}

static void send_fd(int to, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'f';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	if (sendmsg(to, &m, 0) != 1)
		die_errno("sendmsg");
}

static int receive_fd(int from)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(from, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		die_errno("recvmsg");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return fd;
}

/* Memory with many holes around what is left behind. */
static void owner(int way, unsigned long pages, struct pipe_of *p, int sock, uint64_t tag,
		  int ready)
{
	char *m = map_anon(pages * PG);
	unsigned long i, stride = pages / PIPE_PAGES;
	int fd;

	if (one_in(2))
		madvise(m, pages * PG, MADV_HUGEPAGE);
	fill_run(m, pages, 0x1000000);
	for (i = 0; i < PIPE_PAGES; i++) {
		char *page = m + i * stride * PG;
		struct iovec iov = { page, PG };

		fill_page(page, p->tag + i);
		if (vmsplice(p->fds[1], &iov, 1, 0) != PG)
			die_errno("vmsplice");
		/* The rest goes at once, so that the page is alone. */
		if (madvise(page + PG, (stride - 1) * PG, MADV_DONTNEED))
			die_errno("MADV_DONTNEED");
	}
	fd = memfd_create("left", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 32 * PG))
		die_errno("memfd");
	m = mmap(NULL, 32 * PG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		die_errno("mmap");
	fill_run(m, 32, tag);
	send_fd(sock, fd);
	switch (way) {
	case 0:
		_exit(0);
	case 1:
		/* The parent kills it. */
		if (write(ready, "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	case 2:
		/* exec gives its memory up while the process lives. */
		execl("/bin/true", "true", (char *)NULL);
		_exit(errno == ENOENT ? 0 : 1);
	default: {
		/* A grandchild has the same pages and outlives it; it checks them later. */
		char *heap = map_anon(128 * PG);

		fill_run(heap, 128, tag + 5000);
		if (!fork()) {
			char byte;

			setpgid(0, 0);
			close(grandchild_pipe[1]);
			while (read(grandchild_pipe[0], &byte, 1) > 0)
				;
			check_run(heap, 128, tag + 5000, "what is left to a grandchild");
			_exit(0);
		}
		_exit(0);
	}
	}
}

int main(int argc, char **argv)
{
	long rounds = arg(argc, argv, 1, 60), seed = arg(argc, argv, 2, 14), r;
	unsigned long pages, checked = 0;
	int sock[2], ready[2], i, group;
	const char *dir = "/sys/fs/cgroup/integrity-heirs";

	begin("heirs", seed);
	pages = budget_mb() * MB / 24 / PG & ~511UL;
	if (pages > 24 * MB / PG)
		pages = 24 * MB / PG;
	if (pages < 1024)
		pages = 1024;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sock) || pipe(ready) || pipe(grandchild_pipe))
		die_errno("socketpair or pipe");
	/* Orphans come to this process, which has to see how they end. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	group = (!mkdir(dir, 0755) || errno == EEXIST);
	load_start(2, budget_mb() / 16, 8);
	for (i = 0; i < PIPES; i++)
		if (pipe(pipes[i].fds))
			die_errno("pipe");
	for (r = 0; r < rounds; r++) {
		struct pipe_of *p = &pipes[r % PIPES];
		uint64_t tag = ((uint64_t)r + 1) << 32;
		int way = r % 4, fd;
		char *m, byte;
		pid_t pid;

		if (p->any) {
			read_pipe(p);
			checked += PIPE_PAGES;
		}
		p->tag = tag + 100000;
		pid = child_seeded(rnd());
		if (!pid) {
			if (group && r % 3 == 0)
				put("/sys/fs/cgroup/integrity-heirs/cgroup.procs", "0");
			owner(way, pages, p, sock[1], tag, ready[1]);
		}
		p->any = true;
		fd = receive_fd(sock[0]);
		if (way == 1) {
			if (read(ready[0], &byte, 1) != 1)
				die_errno("read");
			end_child(pid);
		} else {
			want_well(pid, "an owner");
		}
		if (group && r % 3 == 0 && way != 3 && (rmdir(dir), true))
			mkdir(dir, 0755);
		m = mmap(NULL, 32 * PG, PROT_READ, MAP_SHARED, fd, 0);
		if (m == MAP_FAILED)
			die_errno("mmap of what was left");
		check_run(m, 32, tag, "a file of memory whose owner is dead");
		munmap(m, 32 * PG);
		close(fd);
		if (r % 8 == 0)
			compact();
		load_wait(1);
	}
	/* Grandchildren end when the other end is closed. */
	close(grandchild_pipe[1]);
	close(grandchild_pipe[0]);
	for (i = 0; i < PIPES; i++)
		if (pipes[i].any) {
			read_pipe(&pipes[i]);
			checked += PIPE_PAGES;
		}
	load_end();
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, 0);

		if (pid < 0 && errno == ECHILD)
			break;
		if (pid > 0 && status)
			die("a grandchild ended with status %x", status);
	}
	if (group)
		rmdir(dir);
	no_kills();
	finish();
	figure("pages_inherited", checked, "");
	return 0;
}
