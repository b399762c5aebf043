// SPDX-License-Identifier: GPL-2.0
/*
 * Zygote: preloads a heap and the system image, forks every other process of
 * the phone from there (copy-on-write), and reaps them.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/files.h"
#include "apps/heap.h"
#include "apps/process.h"
#include "base/records.h"
#include "base/util.h"
#include "system/role.h"
#include "system/zygote.h"

static struct heap preloaded;

static uint64_t pages(uint64_t kb)
{
	return kb * KB / PAGE;
}

static void preload(void)
{
	struct rng r;

	rng_seed(&r, sh->conf.seed, 1);
	file_open(&system_image, "/data/system/framework");
	heap_init(&preloaded, sh->conf.set.zygote_heap_kb);
	heap_grow(&preloaded, &r, preloaded.max);
	file_touch(&system_image, &r, pages(sh->conf.set.service_file_kb) * 4);
}

/* A child writes part of what it inherited: those pages become its own. */
static void break_sharing(int slot)
{
	uint64_t n = pages(sh->conf.set.zygote_cow_kb);
	struct rng r;

	rng_seed(&r, sh->conf.seed, 0x100 + slot);
	while (n-- && preloaded.used) {
		uint64_t at = rng_below(&r, preloaded.used);

		*(volatile uint64_t *)(preloaded.base + at * PAGE) = at + 2;
	}
}

static void child(int slot)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	role_enter(sh->conf.prof[slot].role);
	break_sharing(slot);
	process_run(slot);
}

/*
 * Memory that fork() itself allocates for the child, page tables above all, has the
 * role of the parent: so that is the child's for as long as it takes.
 */
static void fork_slot(int slot)
{
	struct slot *s = &sh->slot[slot];
	pid_t pid;

	role_borrow(sh->conf.prof[slot].role);
	pid = fork();
	if (pid)
		role_borrow(sh->conf.native_role);
	if (pid < 0)
		fatal("zygote: fork %s: %s", sh->conf.prof[slot].name, strerror(errno));
	if (!pid)
		child(slot);
	__atomic_store_n(&s->pid, pid, __ATOMIC_RELEASE);
	bump(&sh->am_event);
}

static void reap(void)
{
	int i, status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (i = 0; i < sh->conf.nr_prof; i++)
			if (sh->slot[i].pid == pid)
				break;
		if (i == sh->conf.nr_prof)
			continue;
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			fatal("%s ended by itself, status %d", sh->conf.prof[i].name, status);
		__atomic_store_n(&sh->slot[i].pid, 0, __ATOMIC_RELEASE);
		bump(&sh->am_event);
	}
}

static int child_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		fatal("signalfd: %s", strerror(errno));
	return fd;
}

void zygote_main(void)
{
	struct pollfd fds[2] = {
		{ .fd = sh->zygote_pipe[0], .events = POLLIN },
		{ .fd = child_signals(), .events = POLLIN },
	};
	struct signalfd_siginfo info;
	int32_t slot;

	set_name("zygote");
	preload();
	for (;;) {
		poll(fds, 2, -1);
		if (fds[1].revents && read(fds[1].fd, &info, sizeof(info)) > 0)
			reap();
		if (fds[0].revents && read(fds[0].fd, &slot, sizeof(slot)) == sizeof(slot))
			fork_slot(slot);
	}
}

/* Ask zygote for a process; it is there when slot->pid is set. */
void zygote_fork(int slot)
{
	int32_t request = slot;

	if (write(sh->zygote_pipe[1], &request, sizeof(request)) != sizeof(request))
		fatal("zygote pipe: %s", strerror(errno));
}
