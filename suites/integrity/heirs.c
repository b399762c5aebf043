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

#define GROUP "/sys/fs/cgroup/integrity-heirs"
#define PIPES 12
#define PIPE_PAGES 16
#define FILE_PAGES 32UL

enum way { EXITS, KILLED, EXECS, HAS_CHILD, WAYS };

struct pipe_of {
	int fds[2];
	uint64_t tag;
	bool any;
};

static struct pipe_of pipes[PIPES];
static int grandchild_pipe[2], sock[2], ready[2];
static unsigned long pages;	/* of an owner */

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

/* Memory with many holes around what is left in a pipe: each page of it is alone. */
static void leave_pages(const struct pipe_of *p)
{
	unsigned long i, stride = pages / PIPE_PAGES;
	char *m = map_anon(pages * PG);

	if (one_in(2))
		madvise(m, pages * PG, MADV_HUGEPAGE);
	fill_run(m, pages, 0x1000000);
	for (i = 0; i < PIPE_PAGES; i++) {
		char *page = m + i * stride * PG;
		struct iovec iov = { page, PG };

		fill_page(page, p->tag + i);
		if (vmsplice(p->fds[1], &iov, 1, 0) != PG)
			die_errno("vmsplice");
		if (madvise(page + PG, (stride - 1) * PG, MADV_DONTNEED))
			die_errno("MADV_DONTNEED");
	}
}

static void leave_file(uint64_t tag)
{
	char *m;
	int fd;

	m = map_memfd(FILE_PAGES * PG, &fd);
	fill_run(m, FILE_PAGES, tag);
	send_fd(sock[1], fd);
}

/* A grandchild has the same pages as an owner and outlives it; it checks them later. */
static void leave_grandchild(uint64_t tag)
{
	char *heap = map_anon(128 * PG), byte;

	fill_run(heap, 128, tag);
	if (fork())
		return;
	close(grandchild_pipe[1]);
	while (read(grandchild_pipe[0], &byte, 1) > 0)
		;
	check_run(heap, 128, tag, "what is left to a grandchild");
	_exit(0);
}

static void owner(enum way way, const struct pipe_of *p, uint64_t tag)
{
	leave_pages(p);
	leave_file(tag);
	switch (way) {
	case KILLED:
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	case EXECS:
		/* Memory is given up while the process lives. */
		execl("/bin/true", "true", (char *)NULL);
		die_errno("/bin/true");
	case HAS_CHILD:
		leave_grandchild(tag + 5000);
		break;
	default:
		break;
	}
	_exit(0);
}

static void check_file(uint64_t tag)
{
	int fd = receive_fd(sock[0]);
	char *m = mmap(NULL, FILE_PAGES * PG, PROT_READ, MAP_SHARED, fd, 0);

	if (m == MAP_FAILED)
		die_errno("mmap of what was left");
	check_run(m, FILE_PAGES, tag, "a file of memory whose owner is dead");
	munmap(m, FILE_PAGES * PG);
	close(fd);
}

/* An owner in a group that is removed after it, if `grouped`. */
static void live_and_die(enum way way, struct pipe_of *p, uint64_t tag, bool grouped)
{
	pid_t pid;
	char byte;

	if (grouped && mkdir(GROUP, 0755) && errno != EEXIST)
		die_errno("mkdir " GROUP);
	p->tag = tag + 100000;
	pid = child_seeded(rnd());
	if (!pid) {
		if (grouped)
			put(GROUP "/cgroup.procs", "0");
		owner(way, p, tag);
	}
	p->any = true;
	if (way == KILLED) {
		if (read(ready[0], &byte, 1) != 1)
			die_errno("read");
		end_child(pid);
	} else {
		want_well(pid, "an owner");
	}
	/* Refused while a grandchild is in it. */
	if (grouped)
		rmdir(GROUP);
	check_file(tag);
}

/* Orphans come to this process, which sees how they end. */
static void end_grandchildren(void)
{
	int status;

	close(grandchild_pipe[1]);
	close(grandchild_pipe[0]);
	while (waitpid(-1, &status, 0) > 0 || errno != ECHILD)
		if (status)
			die("a grandchild ended with status %x", status);
	rmdir(GROUP);
}

int main(int argc, char **argv)
{
	long rounds = arg(argc, argv, 1, 48), r, i;

	begin("heirs", arg(argc, argv, 2, 14));
	pages = clamp(budget_mb() / 24, 4, 24) * MB / PG;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sock) || pipe(ready) || pipe(grandchild_pipe))
		die_errno("socketpair or pipe");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	load_start(2, budget_mb() / 16, 8);
	for (i = 0; i < PIPES; i++)
		if (pipe(pipes[i].fds))
			die_errno("pipe");
	for (r = 0; r < rounds; r++) {
		struct pipe_of *p = &pipes[r % PIPES];

		if (p->any)
			read_pipe(p);
		live_and_die(r % WAYS, p, ((uint64_t)r + 1) << 32, r % 3 == 0);
		if (r % 8 == 0)
			compact();
		load_wait(1);
	}
	for (i = 0; i < PIPES; i++)
		if (pipes[i].any)
			read_pipe(&pipes[i]);
	load_end();
	end_grandchildren();
	return 0;
}
