// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a small guest with 64 MB kept for contiguous pieces and an empty ext4 at
 * /dev/pmem0.  Pieces are there whatever an ordinary user holds, and the copies that the
 * frames hold meanwhile are never those of what a file has no more: pages are written,
 * directly too, punched out, cut off and read by many while memory is short.  Prints
 * "ok WHAT" or "not ok WHAT", a line a claim, and "note NAME VALUE" for what was measured.
 *
 * Words of the kernel's command line: beside=NAME for one of the users, and few=1 on a kernel
 * that checks itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "beside.h"

#define READERS 2
#define WRITES_MS 30000	/* at most: a checked kernel on a busy host is slow */
#define STAMPED 16384	/* pages of the file whose content is checked */

/* What a page of the file may hold: of two versions while it is written. */
struct versions {
	atomic_uint begun[STAMPED];
	atomic_uint done[STAMPED];
	atomic_ulong checked, wrong;
	atomic_bool over;
};

struct stamp {
	uint64_t page;
	uint32_t version;	/* 0 in a hole */
};

static struct versions *versions;
static int nr_pieces = 5, nr_writes = 30000;

static pid_t child(void (*work)(void))
{
	pid_t pid = fork();

	if (!pid) {
		work();
		_exit(0);
	}
	return pid;
}

/* A little more than fits beside what others take. */
static void evicts_slowly(void)
{
	static char buffer[64 * 1024];
	int fd = open(BIG, O_RDONLY);

	ordinary();
	for (;; lseek(fd, 0, SEEK_SET))
		while (lseek(fd, 0, SEEK_CUR) < (off_t)(140 * MB) &&
		       read(fd, buffer, sizeof(buffer)) > 0)
			;
}

static void takes_much(void)
{
	tell_none();
	ordinary();
	takes();
}

/* Each of the users alone, and all of them at once. */
static void pieces(void)
{
	const char *only = getenv("beside");
	const struct adversary *user;
	int i;

	for (i = 0; i < NR_ADVERSARIES; i++) {
		user = &adversaries[i];
		if (!there(user))
			printf("note lacks %s\n", user->name);
		else if (!only || is(only, user->name))
			beside(user->name, user, 1, "pcpa-contig", nr_pieces, true);
	}
	if (!only || is(only, "all"))
		beside("all", adversaries, NR_ADVERSARIES, "pcpa-contig", nr_pieces, true);
	printf("note stored %ld\n", stat_of("copies_stored"));
	claim(stat_of("contig_fail") == 0, "no place was looked for elsewhere");
	claim(says("contig_client_kb", "0"), "what comes back is there again");
}

static void sizes(void)
{
	bool area = !says("size", "0");
	int fd, other;

	claim(put(AREA "contig_size", "63M") == -EINVAL && put(AREA "contig_size", "much") == -EINVAL,
	      "sizes that cannot be are refused");
	fd = heap_alloc("pcpa-contig", 40 * MB);
	other = heap_alloc("pcpa-contig", 40 * MB);
	claim(fd >= 0 && (area || other == -ENOMEM), "more than there is is refused");
	claim(put(AREA "contig_size", "0") == -EBUSY, "while a client has a piece the size stays");
	close(fd);
	close(other);
	claim(!put(AREA "contig_size", "0") && says("contig_size", "0"), "it goes");
	claim(area || heap_alloc("pcpa-contig", MB) == -ENOMEM, "then there is nothing");
	claim(!put(AREA "contig_size", "64M"), "it comes again");
}

/* what a file holds */

static bool plausible(const struct stamp *stamp, uint32_t page, uint32_t least)
{
	return stamp->version >= least && stamp->version <= versions->begun[page] &&
	       (!stamp->version || stamp->page == page);
}

static void checks(void)
{
	int fd = open("/data/stamped", O_RDONLY);
	unsigned int seed = getpid();
	static char text[PAGE];

	ordinary();
	while (!versions->over) {
		uint32_t page = rand_r(&seed) % STAMPED, least = versions->done[page];
		const struct stamp *first = (void *)text;

		if (pread(fd, text, PAGE, (off_t)page * PAGE) != PAGE)
			continue;	/* cut off at the moment */
		versions->checked++;
		if (!plausible(first, page, least)) {
			versions->wrong++;
			printf("note page %u: of %lu, version %u, expected %u to %u\n", page,
			       (unsigned long)first->page, first->version, least,
			       versions->begun[page]);
		}
	}
	_exit(0);
}

/*
 * A version of a page is written; a hole is version 0, so that with it the count of the page
 * begins again.
 */
static void write_page(int fd, uint32_t page, char *text)
{
	struct stamp *stamp = (void *)text;

	stamp->page = page;
	stamp->version = ++versions->begun[page];
	if (pwrite(fd, text, PAGE, (off_t)page * PAGE) == PAGE)
		versions->done[page] = stamp->version;
}

static void contents(void)
{
	int fd = open("/data/stamped", O_RDWR | O_CREAT, 0644);
	int direct = open("/data/stamped", O_RDWR | O_DIRECT);
	long hits = stat_of("copies_hits");
	double begun;
	pid_t pid[READERS + 2];
	unsigned int seed = 7;
	static char text[PAGE] __attribute__((aligned(PAGE)));
	int i;

	versions = mmap(NULL, sizeof(*versions), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (fd < 0 || direct < 0)
		claim(false, "a file to write to");
	for (i = 0; i < STAMPED; i++)
		write_page(fd, i, text);
	fsync(fd);
	for (i = 0; i < READERS; i++)
		pid[i] = child(checks);
	pid[i++] = child(evicts_slowly);
	pid[i++] = child(takes_much);
	begun = now_ms();
	for (i = 0; i < nr_writes && now_ms() - begun < WRITES_MS; i++) {
		uint32_t page = rand_r(&seed) % STAMPED;

		write_page(rand_r(&seed) % 2 ? fd : direct, page, text);
		if (i % 64 == 0)
			fdatasync(fd);
	}
	/* Punched out, and cut off: what is read then is empty, also of what was copied. */
	versions->over = true;
	for (i = 0; i < READERS; i++)
		waitpid(pid[i], NULL, 0);
	for (i = 0; i < STAMPED; i++) {
		if (i % 3 == 0)
			fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, i * PAGE, PAGE);
		if (i % 3 == 0 || i >= STAMPED / 2)
			versions->begun[i] = versions->done[i] = 0;
	}
	if (ftruncate(fd, STAMPED / 2 * PAGE) || ftruncate(fd, STAMPED * PAGE))
		claim(false, "cutting the file");
	versions->over = false;
	pid[0] = child(checks);
	pid[1] = child(checks);
	/* Longer, where a busy host comes late to what evicts. */
	for (i = 0; i < 4 || (i < 60 && stat_of("copies_hits") - hits <= 100); i++)
		sleep(1);
	versions->over = true;
	for (i = 0; i < READERS; i++)
		waitpid(pid[i], NULL, 0);
	end(pid[READERS]);
	end(pid[READERS + 1]);
	printf("note checked %lu\nnote wrong %lu\nnote hits %ld\n", versions->checked,
	       versions->wrong, stat_of("copies_hits") - hits);
	claim(!versions->wrong && versions->checked > 100, "no copy is of what a file has no more");
	claim(stat_of("copies_hits") - hits > 100, "copies are read");
	close(fd);
	close(direct);
}

int main(void)
{
	begin();
	if (getenv("few")) {
		nr_pieces = 2;
		nr_writes /= 10;
	}
	admit();
	pieces();
	sizes();
	contents();
	claim(!umount("/data") && !put(AREA "contig_size", "0"), "it goes in the end");
	printf("done\n");
	sync();
	reboot(RB_POWER_OFF);
}
