/* SPDX-License-Identifier: GPL-2.0 */
/* What the owner of the machine does beside an adversary, again and again. */
#ifndef OWNER_H
#define OWNER_H

#include <glob.h>

#include "victim.h"

#define PIECE_PAGES 4096	/* of contiguous memory, 16 MiB */
#define FRAMES "/sys/kernel/debug/cma/*reserved*"
#define BLOCKS "/sys/devices/system/memory/memory*"

/* What it does: how often it could, how often not. */
static volatile struct changes {
	bool stop;
	unsigned int made, refused;
} *changes;

static bool could_write(const char *where, const char *file, const char *text)
{
	char path[256];
	int fd;
	bool done;

	snprintf(path, sizeof(path), "%s/%s", where, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		die("%s", path);
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

static void count_change(bool made)
{
	if (made)
		changes->made++;
	else
		changes->refused++;
	nap(20);
}

/* Contiguous memory is taken and given back. */
static void takes_frames(void)
{
	char pages[16];
	glob_t found;

	snprintf(pages, sizeof(pages), "%u", PIECE_PAGES);
	if (glob(FRAMES, 0, NULL, &found))
		die(FRAMES);
	while (!changes->stop) {
		bool got = could_write(found.gl_pathv[0], "alloc", pages);

		count_change(got);
		if (got)
			could_write(found.gl_pathv[0], "free", pages);
	}
}

static bool all_movable(const char *block)
{
	char path[256], zones[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/valid_zones", block);
	f = fopen(path, "re");
	if (f && !fgets(zones, sizeof(zones), f))
		zones[0] = '\0';
	if (f)
		fclose(f);
	return !strncmp(zones, "Movable", strlen("Movable"));
}

/* Blocks of memory are unplugged and plugged in again, one after the other. */
static void unplugs(void)
{
	glob_t found;
	size_t i;

	if (glob(BLOCKS, 0, NULL, &found))
		die(BLOCKS);
	for (i = 0; !changes->stop; i = (i + 1) % found.gl_pathc) {
		const char *block = found.gl_pathv[i];
		bool gone;

		if (!all_movable(block))
			continue;
		gone = could_write(block, "online", "0");
		count_change(gone);
		if (gone && !could_write(block, "state", "online_movable"))
			die("%s stays away", block);
	}
}

static pid_t start_owner(void (*run)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	run();
	_exit(0);
}

/* Whatever was changed is as it was when its owner ends. */
static void end_owner(pid_t pid)
{
	int status = 0;

	changes->stop = true;
	waitpid(pid, &status, 0);
	printf("# figure changes %u\n", changes->made);
	printf("# figure refused %u\n", changes->refused);
	check(!status, "the machine is as it was");
}

#endif
