/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers of the small guests: a claim is a line, a file of the kernel is told a value. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int nr_wrong;	/* claims that do not hold */

static inline void claim(bool held, const char *what)
{
	nr_wrong += !held;
	printf("%s %s\n", held ? "ok" : "not ok", what);
}

/* Of an open file, which is closed. */
static int put_fd(int fd, const char *value)
{
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static inline int put(const char *path, const char *value)
{
	return put_fd(open(path, O_WRONLY), value);
}

/*
 * The same as a setuid program that writes to what its caller opened.  1 if the caller could
 * not be played.
 */
static inline int put_for_caller(const char *path, const char *value)
{
	int fd;

	if (seteuid(1000) || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	fd = open(path, O_WRONLY);
	if (fd < 0 || seteuid(0))
		return 1;
	return put_fd(fd, value);
}

static inline void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
