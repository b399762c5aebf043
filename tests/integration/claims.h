/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers of the small guests: a claim is a line, a file of the kernel is told a value. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void claim(bool held, const char *what)
{
	printf("%s %s\n", held ? "ok" : "not ok", what);
}

static int put(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		err = -errno;
	close(fd);
	return err;
}
