// SPDX-License-Identifier: GPL-2.0
/*
 * A mail server's churn of small files: `mail DIRECTORY MESSAGES`. Each message is
 * written to tmp/, forced to the disk and renamed into new/, as a maildir has it;
 * every second one is read and goes on to cur/; the one KEPT before it is deleted.
 * In the end each message that must be there is read and compared.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT 1500
#define LEAST 600		/* of a message, bytes */
#define MOST 40000

static const char *home;

static void fail(const char *what, int number)
{
	fprintf(stderr, "mail: %s, message %d: ", what, number);
	perror(NULL);
	exit(1);
}

/* Most messages are short: the square of a number that is spread evenly. */
static size_t size_of(int number)
{
	uint64_t x = (uint32_t)number * 2654435761u >> 16;

	return LEAST + x * x * (MOST - LEAST) / (65536ull * 65536ull);
}

static void text_of(int number, char *text, size_t size)
{
	uint32_t x = number * 2u + 1;
	size_t i;

	for (i = 0; i < size; i++) {
		x = x * 1664525u + 1013904223u;
		text[i] = i % 72 == 71 ? '\n' : ' ' + (x >> 24) % 95;
	}
}

static void path_of(char *path, size_t room, const char *folder, int number)
{
	snprintf(path, room, "%s/%s/%08d.day", home, folder, number);
}

static void deliver(int number)
{
	static char text[MOST];
	char from[4096], to[4096];
	size_t size = size_of(number);
	int fd;

	path_of(from, sizeof(from), "tmp", number);
	path_of(to, sizeof(to), "new", number);
	text_of(number, text, size);
	fd = open(from, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || write(fd, text, size) != (ssize_t)size || fsync(fd) || close(fd) ||
	    rename(from, to))
		fail("delivery", number);
}

static void check(const char *folder, int number)
{
	static char text[MOST], found[MOST + 1];
	char path[4096];
	size_t size = size_of(number);
	int fd;

	path_of(path, sizeof(path), folder, number);
	text_of(number, text, size);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, found, sizeof(found)) != (ssize_t)size || close(fd))
		fail("cannot be read", number);
	if (memcmp(text, found, size))
		fail("is another text", number);
}

static const char *folder_of(int number)
{
	return number % 2 ? "cur" : "new";
}

static void take_in(int number)
{
	char from[4096], to[4096];

	if (number % 2 == 0)
		return;
	check("new", number);
	path_of(from, sizeof(from), "new", number);
	path_of(to, sizeof(to), "cur", number);
	if (rename(from, to))
		fail("rename", number);
}

static void expunge(int number)
{
	char path[4096];

	path_of(path, sizeof(path), folder_of(number), number);
	if (unlink(path))
		fail("deletion", number);
}

int main(int argc, char **argv)
{
	static const char *const folders[] = { "tmp", "new", "cur" };
	int number, messages = argc == 3 ? atoi(argv[2]) : 0;
	char path[4096];
	size_t i;

	if (messages < 1) {
		fprintf(stderr, "usage: mail DIRECTORY MESSAGES\n");
		return 2;
	}
	home = argv[1];
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", home, folders[i]);
		if (mkdir(path, 0700))
			fail(folders[i], 0);
	}
	for (number = 0; number < messages; number++) {
		deliver(number);
		take_in(number);
		if (number >= KEPT)
			expunge(number - KEPT);
	}
	for (number = messages > KEPT ? messages - KEPT : 0; number < messages; number++)
		check(folder_of(number), number);
	return 0;
}
