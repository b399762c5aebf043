// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a small guest with a page-cache-preferred area of 260 MB and an empty
 * ext4 on slow storage: the area fills with page cache, clients get it, contiguous
 * pieces do not fail, sizes that cannot be are refused. Prints "ok WHAT" or
 * "not ok WHAT", a line a claim, and "note NAME VALUE" for what was measured. With
 * only_umount=1 on the kernel's command line it does only what a debug kernel is for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/klog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adversaries.h"

#define AREA_MB 260
#define CGROUP "/cgroup/client/"
#define GUARDED "/cgroup/guarded/"
#define GUARDED_MB 24	/* of a file that memory.min protects */
#define FILE_MB 420
#define SMALL_MB 48
#define UMOUNTS 20
#define PIECES 16
#define PIECE (AREA_MB * MB / PIECES)
#define OWN_MB 60	/* a user's file */
#define HELD_MB 64	/* a client's buffer, while others try to get at the area */
#define SOCKETS 400
#define FLOODERS 10
#define MESSAGE 4096
#define MAPPED_MB 200	/* of a file that is mapped, or written */
#define SPARE_MB 48	/* left outside of the area meanwhile */
#define MAPPINGS 8000	/* of a file, that are walked over for each page that is unmapped */
#define SHARED 20	/* mappings that each have all of its pages */
#define SOON_MS 10000	/* a tenth of a second, two for a piece; an emulator may be late */

static void make_file(const char *path, unsigned long mb)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, mb * MB))
		printf("not ok file: %s\n", strerror(errno));
	close(fd);
}

/* Holes: page cache without any I/O. */
static void read_file(const char *path)
{
	static char buffer[256 * 1024];
	int fd = open(path, O_RDONLY);

	while (fd >= 0 && read(fd, buffer, sizeof(buffer)) > 0)
		;
	if (fd >= 0)
		close(fd);
}

static bool filled(void)
{
	int i;

	for (i = 0; i < 20 && kb("cache_kb") < AREA_MB * 1024 * 95 / 100; i++) {
		put("/proc/sys/vm/drop_caches", "1");
		usleep(100000);
		read_file("/data/big");
	}
	return kb("cache_kb") >= AREA_MB * 1024 * 95 / 100;
}

/* Two turns of half a second each, and what a busy host is late. */
static void pause_for_timer(void)
{
	int i;

	usleep(1300000);
	for (i = 0; i < 100 && !says("state", "pcache_only"); i++)
		usleep(100000);
}

static long memfree_kb(void)
{
	char text[256], *at;

	get("/proc/meminfo", text, sizeof(text));
	at = strstr(text, "MemFree:");
	return at ? atol(at + strlen("MemFree:")) : 0;
}

static void cache(void)
{
	claim(says("size", "272629760"), "the area has the size that was asked for");
	claim(says("state", "pcache_only"), "it begins with page cache only");
	claim(kb("free_kb") > AREA_MB * 1024 * 9 / 10, "it is free at first");
	claim(memfree_kb() > kb("free_kb"), "MemFree has what is free there");
	claim(filled(), "it fills with page cache");
	printf("note cache_kb %ld\n", kb("cache_kb"));
}

static char *take(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	for (i = 0; i < size; i += PAGE)
		p[i] = 1;
	return p;
}

/*
 * A process takes all free pages and more: page cache goes, but not where that helps
 * no process, as long as there is much of it elsewhere.
 */
static void pressed(void)
{
	long kept = 128 * 1024 * 85 / 100;
	int status;
	pid_t pid;

	put(AREA "size", "128M");
	put("/proc/sys/vm/drop_caches", "1");
	read_file("/data/big");
	pid = fork();
	if (!pid) {
		take((memfree_kb() - kb("free_kb")) * 1024 + 60 * MB);
		printf("note pressed_kb %ld\n", kb("cache_kb"));
		claim(kb("cache_kb") > kept, "it keeps its pages when others need memory");
		_exit(0);
	}
	waitpid(pid, &status, 0);
	put(AREA "size", "260M");
}

/* The requests of a camera that starts. */
static double camera(const char *heap, int *fd)
{
	double start, zero;
	char text[32];
	int i, got = 0;

	put("/sys/kernel/mm/cohort/buffer/enabled", "1");
	get("/sys/kernel/mm/cohort/buffer/zero_ns", text, sizeof(text));
	zero = atoll(text) / 1e6;
	start = now_ms();
	for (i = 0; i < PIECES; i++) {
		fd[i] = heap_alloc(heap, PIECE);
		got += fd[i] >= 0;
	}
	start = now_ms() - start;
	get("/sys/kernel/mm/cohort/buffer/zero_ns", text, sizeof(text));
	zero = atoll(text) / 1e6 - zero;
	printf("note %s_got %d\nnote %s_find_ms %.1f\nnote %s_zero_ms %.1f\n", heap, got, heap,
	       start - zero, heap, zero);
	return got == PIECES ? start - zero : -1;
}

static void close_all(const int *fd, int nr)
{
	while (nr--)
		if (fd[nr] >= 0)
			close(fd[nr]);
}

static void client(void)
{
	int fd[PIECES], i;
	bool clean = true;
	long refaults;

	claim(camera("pcpa", fd) >= 0, "a client gets all of it");
	claim(says("state", "anon_alloc"), "the area turns to clients");
	printf("note client_kb %ld\nnote reclaimed %ld\n", kb("client_kb"), stat_of("reclaimed"));
	claim(kb("client_kb") > AREA_MB * 1024 * 9 / 10, "what it gets is the area's");
	for (i = 0; i < PIECES; i++)
		clean &= fd[i] >= 0 && zeroed(fd[i], PIECE);
	claim(clean, "what it gets is zeroed, and can be mapped");
	pause_for_timer();
	claim(says("state", "pcache_only"), "the timer turns it back");
	close_all(fd, PIECES);
	claim(!kb("client_kb") && kb("free_kb") > AREA_MB * 1024 * 9 / 10, "what it frees is free");
	refaults = stat_of("refaults");
	read_file("/data/big");	/* without dropping caches, which forgets what was evicted */
	claim(filled(), "page cache takes it again");
	printf("note refaults %ld\n", stat_of("refaults") - refaults);
	claim(stat_of("refaults") > refaults, "refaults of a quick reclaim are counted");
}

static void contiguous(void)
{
	long failed = stat_of("contig_fail");
	int fd[PIECES], i, round;
	bool all = true;
	double start;

	for (round = 0; round < 3; round++) {
		filled();
		for (i = 0; i < 4; i++)
			fd[i] = heap_alloc("pcpa-contig", 64 * MB);
		for (i = 0; i < 4; i++)
			all &= fd[i] >= 0;
		start = now_ms();
		if (!round)
			claim(heap_alloc("pcpa-contig", 64 * MB) == -ENOMEM &&
			      now_ms() - start < 1000, "a fifth is refused at once");
		close_all(fd, 4);
		pause_for_timer();
	}
	claim(all, "four pieces of 64 MB fit, whatever was there");
	claim(stat_of("contig_fail") == failed + 1, "none of them failed");
	filled();
	claim(camera("pcpa-contig", fd) >= 0, "sixteen contiguous pieces fill it to the last page");
	close_all(fd, PIECES);
	pause_for_timer();
	printf("note contig_ms_max %ld\n", stat_of("contig_ns_max") / 1000000);
}

/* Pages of a file in a pipe: referenced for as long as it has no reader. */
static void pinned(void)
{
	char *map;
	int fd[2], file, i, piece;
	double took;

	filled();
	file = open("/data/big", O_RDONLY);
	map = mmap(NULL, FILE_MB * MB, PROT_READ, MAP_SHARED, file, 0);
	if (pipe(fd) || map == MAP_FAILED)
		return claim(false, "a pipe");
	for (i = 0; i < 12; i++) {
		struct iovec iov = { map + i * 23 * MB, PAGE };

		if (*(volatile char *)iov.iov_base || vmsplice(fd[1], &iov, 1, 0) < 0)
			claim(false, "vmsplice");
	}
	took = now_ms();
	piece = heap_alloc("pcpa-contig", 250 * MB);
	took = now_ms() - took;
	printf("note busy_piece %d\nnote busy_ms %.0f\nnote busy %ld\n", piece, took,
	       stat_of("busy"));
	claim(piece == -EBUSY || piece == -ENOMEM, "a piece with pinned pages in it is refused");
	claim(took < 4000, "in bounded time");
	claim(stat_of("busy") > 0, "and the page that was in the way is counted");
	close(fd[0]);
	close(fd[1]);
	munmap(map, FILE_MB * MB);
	close(file);
	pause_for_timer();
	piece = heap_alloc("pcpa-contig", 250 * MB);
	claim(piece >= 0, "it is granted when they are gone");
	if (piece >= 0)
		close(piece);
	pause_for_timer();
}

/* Written pages stay out, those written to later leave. */
static void dirty(void)
{
	static char buffer[MB];
	long before;
	int fd, i;

	put(AREA "size", "0");
	put(AREA "size", "260M");
	put("/proc/sys/vm/dirty_writeback_centisecs", "0");
	put("/proc/sys/vm/dirty_background_ratio", "90");
	put("/proc/sys/vm/dirty_ratio", "95");
	before = kb("cache_kb");
	memset(buffer, 1, sizeof(buffer));
	fd = open("/data/written", O_RDWR | O_CREAT, 0600);
	for (i = 0; i < 60; i++)
		if (write(fd, buffer, sizeof(buffer)) != sizeof(buffer))
			claim(false, "writing");
	claim(kb("cache_kb") - before < 4096, "written pages stay out");
	fsync(fd);
	put("/proc/sys/vm/drop_caches", "1");
	before = kb("cache_kb");
	read_file("/data/written");
	claim(kb("cache_kb") - before > 50 * 1024, "the same pages, read, go in");
	before = stat_of("migrated");
	for (i = 0; i < 60; i++)
		pwrite(fd, buffer, sizeof(buffer), i * MB);
	for (i = 0; i < 20 && stat_of("migrated") - before <= 60 * 256 / 2; i++)
		sleep(1);
	printf("note moved_out %ld\nnote move_s %d\n", stat_of("migrated") - before, i);
	claim(stat_of("migrated") - before > 60 * 256 / 2, "pages written to later move out");
	close(fd);
	sync();
}

static void entitled(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		char text[8] = "";

		get("/proc/self/cohort_entitled", text, sizeof(text));
		claim(text[0] == '0' && !put("/proc/self/cohort_entitled", "1"), "a process is entitled");
		if (!fork()) {
			get("/proc/self/cohort_entitled", text, sizeof(text));
			_exit(text[0] != '1');
		}
		wait(&status);
		claim(!status, "its child is, too");
		claim(put_for_caller("/proc/self/cohort_entitled", "0") == -EPERM,
		      "no setuid program says so for its caller");
		if (setuid(1000) || !put("/proc/self/cohort_entitled", "0"))
			claim(false, "no other user says so");
		_exit(0);
	}
	waitpid(pid, &status, 0);
}

/* what a user without rights may try; each is a claim */

static pid_t as_user(void (*work)(void))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setpgid(0, 0);
	tell_none();
	ordinary();
	work();
	_exit(0);
}

/* To its end. */
static void done_by_user(void (*work)(void))
{
	int status;

	waitpid(as_user(work), &status, 0);
	if (status)
		claim(false, "a user tries to the end");
}

static bool refuses(const char *path, int flags)
{
	int fd = open(path, flags);

	if (fd < 0)
		return errno == EACCES;
	close(fd);
	printf("note opened %s\n", path);
	return false;
}

static void learns(void)
{
	static const char *const secret[] = {
		"base", "state", "free_kb", "cache_kb", "client_kb", "lent_kb", "other_kb", "stats",
		"contig_client_kb",
	};
	char path[96];
	bool none = true;
	size_t i;

	for (i = 0; i < sizeof(secret) / sizeof(secret[0]); i++) {
		snprintf(path, sizeof(path), AREA "%s", secret[i]);
		none &= refuses(path, O_RDONLY);
	}
	claim(none, "no other user reads what the area is used for");
	claim(refuses("/proc/1/cohort_entitled", O_RDONLY), "nor which process is a client");
	claim(refuses("/sys/kernel/debug/cohort", O_RDONLY) &&
	      refuses("/sys/kernel/tracing/events/cohort", O_RDONLY) &&
	      refuses("/sys/kernel/debug/dma_buf/bufinfo", O_RDONLY),
	      "nor debugfs, nor events, nor the list of buffers");
}

static void finds_frames(void)
{
	uint64_t entry = 0;
	char *p = take(PAGE);
	int fd = open("/proc/self/pagemap", O_RDONLY);

	claim(refuses("/proc/kpageflags", O_RDONLY) && refuses("/proc/kpagecount", O_RDONLY) &&
	      pread(fd, &entry, sizeof(entry), (uintptr_t)p / PAGE * sizeof(entry)) ==
	      sizeof(entry) && entry >> 63 && !(entry & ((1ULL << 55) - 1)),
	      "no other user learns where its pages are");
}

static void becomes_client(void)
{
	static const char *const knobs[] = {
		"size", "contig_size", "announce", "min_order", "timer_ms", "user_max",
	};
	char path[96];
	bool none = true;
	size_t i;

	for (i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
		snprintf(path, sizeof(path), AREA "%s", knobs[i]);
		none &= put(path, "4M") == -EACCES;
	}
	claim(none, "no other user changes it, or says that a client comes");
	claim(put("/proc/self/cohort_entitled", "1") == -EPERM, "nor entitles itself");
	claim(heap_alloc("pcpa", PAGE) == -EACCES && heap_alloc("pcpa-contig", PAGE) == -EACCES,
	      "nor opens a heap");
}

/* Its own file, and what it may read of others; what it may not stays. */
static void drops(void)
{
	int fd = open(OWN "file", O_RDWR), other = open("/data/big", O_RDONLY);
	char *map = mmap(NULL, OWN_MB * MB, PROT_READ, MAP_SHARED, fd, 0);

	madvise(map, OWN_MB * MB, MADV_DONTNEED);
	madvise(map, OWN_MB * MB, MADV_PAGEOUT);
	munmap(map, OWN_MB * MB);
	if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		_exit(1);
	if (other >= 0)
		posix_fadvise(other, 0, 0, POSIX_FADV_DONTNEED);
}

static void reads_own(void)
{
	read_file(OWN "file");
}

static void emptied(void)
{
	long full;

	make_file(OWN "file", OWN_MB);
	if (chown(OWN "file", USER, USER))
		claim(false, "a user's file");
	put("/proc/sys/vm/drop_caches", "1");
	done_by_user(reads_own);	/* into free memory: all of it goes in */
	read_file("/data/big");
	full = kb("cache_kb");
	done_by_user(drops);
	full -= kb("cache_kb");
	printf("note user_drops_kb %ld\n", full);
	claim(full > OWN_MB * 1024 / 2 && full <= (OWN_MB + 4) * 1024,
	      "a user empties it of no file that it may not read");
	chmod("/data/big", 0644);
	done_by_user(drops);
	printf("note user_leaves_kb %ld\n", kb("cache_kb"));
	claim(filled(), "what a user empties fills again");
}

/* More than there is, again and again: it may be killed, and comes again. */
static void hogs(void)
{
	int status;
	pid_t pid;

	for (;;) {
		pid = fork();
		if (!pid) {
			take(820 * MB);
			_exit(0);
		}
		waitpid(pid, &status, 0);
	}
}

/* A client has all of it, and more than the half of that from the area. */
static void claim_client(const char *what)
{
	int fd[PIECES];
	double ms = camera("pcpa", fd);

	printf("note of_area_kb %ld\n", kb("client_kb"));
	claim(ms >= 0, what);
	close_all(fd, PIECES);
	pause_for_timer();
}

static void denied(void)
{
	pid_t pid;

	filled();
	pid = as_user(holds_pipes);
	sleep(2);
	claim_client("no pages in pipes deny a client its pieces");
	end_group(pid);
	filled();
	pid = as_user(locks);
	sleep(1);
	claim_client("no locked pages deny a client its pieces");
	end_group(pid);
	filled();
	pid = as_user(hogs);
	sleep(2);
	claim_client("no hog denies a client its pieces");
	end_group(pid);
}

/* Messages that no process receives, and pipes: pages that cannot be moved. */
static void floods(void)
{
	static char text[MESSAGE];
	int fd[2], i;

	for (i = 0; i < SOCKETS && !socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fd); i++)
		while (send(fd[0], text, sizeof(text), 0) > 0)
			;
	while (!pipe2(fd, O_NONBLOCK))
		while (write(fd[1], text, sizeof(text)) > 0)
			;
	pause();
}

/* A page of each part of a file that has a node of the tree: nodes are asked for without waiting. */
static void scatters(void)
{
	int fd = open(OWN "sparse", O_RDWR | O_CREAT, 0600);
	unsigned long i;
	char byte;

	if (ftruncate(fd, 1L << 40))
		_exit(1);
	for (i = 0;; i++)
		if (pread(fd, &byte, 1, i % (1UL << 22) * 64 * PAGE) < 0)
			_exit(1);
}

/* All memory for what can be moved; and nodes, which are asked for without waiting. */
static void asks_in_haste(void)
{
	also(scatters);
	hogs();
}

/* All memory for what cannot be moved: each process has so many descriptors. */
static void clogs(void)
{
	int i;

	for (i = 1; i < FLOODERS; i++)
		also(floods);
	floods();
}

/* Between the two readings a user may die, and all that is lent comes home. */
static long given_kb(void)
{
	long lent, other, now;
	int tries = 0;

	do {
		lent = kb("lent_kb");
		other = kb("other_kb");
		now = kb("lent_kb");
	} while (labs(now - lent) > 1024 && ++tries < 20);
	return other - (now > lent ? now : lent);
}

static bool patterned(const unsigned char *p, size_t size, bool make)
{
	size_t i;

	for (i = 0; i < size; i += PAGE) {
		if (make)
			memset((void *)(p + i), (i / PAGE) & 0xff, PAGE);
		else if (p[i] != ((i / PAGE) & 0xff) || p[i + PAGE - 1] != p[i])
			return false;
	}
	return true;
}

/*
 * Beside a user for ten seconds, or until the user has come to be given more than that, which a
 * busy host delays: the most that the area has given.
 */
static long most_given_kb(pid_t user, long more_than, const char *what)
{
	long most = 0, now;
	int i;

	for (i = 0; i < 500 || (i < 6000 && stat_of("given") <= more_than); i++) {
		now = given_kb();
		most = now > most ? now : most;
		usleep(20000);
	}
	printf("note given %ld\nnote given_most_kb %ld\n", stat_of("given"), most);
	claim_client(what);
	end_group(user);
	return most;
}

/* Slab caches may have what was given for a file. */
static bool given_back(void)
{
	int i;

	unlink(OWN "sparse");
	for (i = 0; i < 500 && given_kb() > 1024; i++) {
		put("/proc/sys/vm/drop_caches", "3");
		usleep(20000);
	}
	printf("note given_left_kb %ld\n", given_kb());
	return given_kb() <= 1024;
}

/*
 * What a client does not use now goes to requests that may not wait, a part of it, and to those
 * for which a process would be killed; its own pages do not.
 */
static void given(void)
{
	int fd = heap_alloc("pcpa", HELD_MB * MB);
	unsigned char *p = mmap(NULL, HELD_MB * MB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	long client = kb("client_kb"), before = stat_of("given"), most;

	if (fd < 0 || p == MAP_FAILED)
		return claim(false, "a buffer");
	patterned(p, HELD_MB * MB, true);
	pause_for_timer();
	most = most_given_kb(as_user(asks_in_haste), before,
			     "no user in haste denies a client its pieces");
	claim(stat_of("given") > before && most <= AREA_MB * 1024 / 4,
	      "a user in haste is given a quarter of it at most");
	claim(given_back(), "which comes back with that user's end");
	most = most_given_kb(as_user(clogs), -1,
			     "no user that clogs memory denies a client its pieces");
	claim(most <= (AREA_MB - HELD_MB) * 1024L, "a user that clogs memory is given what is free");
	claim(given_back(), "that comes back, too");
	claim(kb("client_kb") == client && patterned(p, HELD_MB * MB, false),
	      "no page of a client is touched");
	munmap(p, HELD_MB * MB);
	close(fd);
	pause_for_timer();
}

/* A line for each block, of a MiB. */
static void listed(void)
{
	FILE *blocks = fopen("/sys/kernel/debug/cohort/blocks", "r");
	char line[128];
	int nr = 0;

	while (blocks && fgets(line, sizeof(line), blocks))
		nr += !!strstr(line, " area ");
	if (blocks)
		fclose(blocks);
	claim(nr == AREA_MB, "debugfs tells of each of its blocks");
}

static void others(void)
{
	put(AREA "timer_ms", "500");
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mkdir(OWN, 0700);
	if (chown(OWN, USER, USER))
		claim(false, "a user's directory");
	listed();
	done_by_user(learns);
	done_by_user(finds_frames);
	done_by_user(becomes_client);
	emptied();
	denied();
	given();
	umount("/sys/kernel/tracing");
	umount("/sys/kernel/debug");
}

/* what is mapped, and what is written */

/* Pages of a file that lie in the area, of those that are in memory; maps them. */
static long file_in_area_kb(const char *path, unsigned long mb)
{
	static unsigned char resident[FILE_MB * MB / PAGE];
	int fd = open(path, O_RDONLY), pagemap = open("/proc/self/pagemap", O_RDONLY);
	volatile char *map = mmap(NULL, mb * MB, PROT_READ, MAP_SHARED, fd, 0);
	unsigned long i, base, nr = 0;
	char text[32];
	uint64_t entry;

	get(AREA "base", text, sizeof(text));
	base = strtoul(text, NULL, 10) / PAGE;
	mincore((void *)map, mb * MB, resident);
	for (i = 0; i < mb * MB / PAGE; i++) {
		if (!(resident[i] & 1) || map[i * PAGE] < 0)
			continue;
		if (pread(pagemap, &entry, sizeof(entry),
			  ((uintptr_t)map / PAGE + i) * sizeof(entry)) != sizeof(entry))
			continue;
		entry &= (1ULL << 55) - 1;
		nr += entry >= base && entry < base + AREA_MB * MB / PAGE;
	}
	munmap((void *)map, mb * MB);
	close(pagemap);
	close(fd);
	return nr * PAGE / 1024;
}

/* Goes on until it is ended, and says when it is ready.  Return: its process. */
static pid_t until_ended(void (*work)(int ready))
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready))
		claim(false, "a pipe");
	pid = fork();
	if (!pid) {
		work(ready[1]);
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		claim(false, "a process that is ready");
	close(ready[0]);
	return pid;
}

static void pause_ready(int ready)
{
	if (write(ready, "", 1) == 1)
		pause();
}

/* Nearly all memory but the area's. */
static void takes_the_rest(int ready)
{
	take((memfree_kb() - kb("free_kb")) * 1024 - SPARE_MB * MB);
	pause_ready(ready);
}

/* Pages of a file that has zeros alone. */
static bool touch_file(const volatile char *map, size_t size)
{
	size_t at;

	for (at = 0; at < size; at += PAGE)
		if (map[at])
			return false;
	return true;
}

/* More than once: where reclaim has just made room elsewhere, a page goes there. */
static void maps_file(int ready)
{
	const volatile char *map = mmap(NULL, MAPPED_MB * MB, PROT_READ, MAP_SHARED,
					open("/data/big", O_RDONLY), 0);
	int i;

	for (i = 0; i < 4; i++)
		if (!touch_file(map, MAPPED_MB * MB))
			return;
	pause_ready(ready);
}

static bool made_empty(void)
{
	int i;

	sync();
	for (i = 0; i < 50 && kb("free_kb") < AREA_MB * 1024 * 95 / 100; i++) {
		put("/proc/sys/vm/drop_caches", "1");
		usleep(100000);
	}
	return kb("free_kb") >= AREA_MB * 1024 * 95 / 100;
}

/* Return: what the area had of pages meanwhile, at most, in kB. */
static long write_file(const char *path, unsigned long mb)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	static char buffer[MB];
	long now, most = 0;

	while (mb--) {
		if (write(fd, buffer, sizeof(buffer)) != sizeof(buffer))
			claim(false, "writing");
		now = kb("cache_kb") + kb("lent_kb");
		if (now > most)
			most = now;
	}
	fsync(fd);
	close(fd);
	return most;
}

/* An area that is free has a use for these, too, where there is no memory elsewhere. */
static void used(void)
{
	pid_t rest, maps;
	long in, most;
	int i;

	/* What the lists of CPUs hold is not in MemFree: so they hold little. */
	put("/proc/sys/vm/percpu_pagelist_high_fraction", "1000");
	put("/proc/sys/vm/dirty_ratio", "40");
	put("/proc/sys/vm/dirty_background_ratio", "20");
	put("/proc/sys/vm/dirty_writeback_centisecs", "500");
	claim(made_empty(), "an area is free");
	rest = until_ended(takes_the_rest);
	maps = until_ended(maps_file);
	in = file_in_area_kb("/data/big", MAPPED_MB);
	printf("note mapped_in_area_kb %ld\n", in);
	claim(in > MAPPED_MB * 1024 / 2, "pages that a process has mapped use it");
	end(maps);
	end(rest);
	claim(made_empty(), "it is free again");
	rest = until_ended(takes_the_rest);
	most = write_file("/data/written", MAPPED_MB);
	in = file_in_area_kb("/data/written", MAPPED_MB);
	printf("note written_most_kb %ld\nnote written_in_area_kb %ld\nnote pulled %ld\n", most, in,
	       stat_of("pulled"));
	/* How many are left of them in the end is up to reclaim, which drops them like any. */
	claim(most > AREA_MB * 1024 / 8, "pages that are written use it");
	for (i = 0; i < 100 && kb("lent_kb") > 4096; i++)
		usleep(100000);
	printf("note settle_ms %d\nnote cache_kb %ld\n", 100 * i, kb("cache_kb"));
	end(rest);
	unlink("/data/written");
	claim(made_empty(), "and free in the end");
}

/* Of a file with all of its pages in memory; touched by the last mapping, or by each. */
static void maps_often(int ready, int times, bool each)
{
	int fd = open("/data/big", O_RDONLY);
	const volatile char *map;

	while (times--) {
		map = mmap(NULL, AREA_MB * MB, PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED || ((each || !times) && !touch_file(map, AREA_MB * MB)))
			return;
	}
	pause_ready(ready);
}

static void maps_without_end(int ready)
{
	ordinary();
	maps_often(ready, MAPPINGS, false);
}

static void maps_as_many_do(int ready)
{
	maps_often(ready, SHARED, true);
}

/* Return: what was given, or an error, in time; else -ETIMEDOUT. */
static int soon(const char *heap)
{
	double start = now_ms();
	int fd = heap_alloc(heap, HELD_MB * MB);

	start = now_ms() - start;
	printf("note %s_beside_mappings_ms %.0f\n", heap, start);
	if (start < SOON_MS)
		return fd;
	if (fd >= 0)
		close(fd);
	return -ETIMEDOUT;
}

/* Each mapping of a file makes its pages more work, whatever it has of them. */
static void mapped_often(void)
{
	int fd[PIECES], piece;
	pid_t maps;

	chmod("/data/big", 0644);
	filled();
	maps = until_ended(maps_without_end);
	piece = soon("pcpa");
	claim(piece >= 0, "no number of mappings holds a client up");
	close_all(&piece, 1);
	piece = soon("pcpa-contig");
	claim(piece >= 0 || piece == -EBUSY || piece == -ENOMEM,
	      "a piece fails in time, or is given");
	close_all(&piece, 1);
	end(maps);
	pause_for_timer();
	filled();
	maps = until_ended(maps_as_many_do);
	claim(camera("pcpa", fd) >= 0 && kb("client_kb") > AREA_MB * 1024 * 3 / 4,
	      "what many have mapped makes room all the same");
	close_all(fd, PIECES);
	end(maps);
	pause_for_timer();
}

static long cgroup_kb(const char *name)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), CGROUP "%s", name);
	get(path, text, sizeof(text));
	return atoll(text) / 1024;
}

/* 40 MB of a limit of 64 fit once; the buffer stays with a process that is not of the group. */
static pid_t charged_client(int ready)
{
	pid_t holder, client = fork();
	int fd, ok;

	if (client)
		return client;
	put(CGROUP "cgroup.procs", "0");
	fd = heap_alloc("pcpa", 40 * MB);
	ok = fd >= 0 && heap_alloc("pcpa", 40 * MB) == -ENOMEM &&
	     heap_alloc("pcpa-contig", 40 * MB) == -ENOMEM;
	holder = fork();
	if (!holder) {
		put("/cgroup/cgroup.procs", "0");
		holder = getpid();
		if (write(ready, &holder, sizeof(holder)) == sizeof(holder))
			pause();
	}
	_exit(!ok);
}

/* Buffers are charged to the memory cgroup that asked, until they are freed. */
static void charged(void)
{
	int status, i, ready[2];
	pid_t holder, client;

	mkdir("/cgroup", 0755);
	mount("cgroup2", "/cgroup", "cgroup2", 0, NULL);
	put("/cgroup/cgroup.subtree_control", "+memory");
	mkdir(CGROUP, 0755);
	claim(!put(CGROUP "memory.max", "64M") && !pipe(ready), "a memory cgroup with a limit");
	client = charged_client(ready[1]);
	waitpid(client, &status, 0);
	claim(!status, "beyond its limit it gets no buffer, and is not killed");
	claim(read(ready[0], &holder, sizeof(holder)) == sizeof(holder) &&
	      cgroup_kb("memory.current") >= 40 * 1024, "what another process holds is charged");
	kill(holder, SIGKILL);
	for (i = 0; i < 500 && cgroup_kb("memory.current") > 8 * 1024; i++)
		usleep(20000);
	claim(cgroup_kb("memory.current") <= 8 * 1024, "what is freed is charged no more");
	pause_for_timer();
}

/* The kernel brings the sum up to date every two seconds. */
static unsigned long stalled_us(void)
{
	char text[256], *at;

	usleep(2100000);
	get("/proc/pressure/memory", text, sizeof(text));
	at = strstr(text, "total=");
	return at ? strtoul(at + strlen("total="), NULL, 10) : 0;
}

/* A file that a protected group reads first, into the area. */
static void reads_guarded(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		put(GUARDED "cgroup.procs", "0");
		read_file("/data/guarded");
		_exit(0);
	}
	waitpid(pid, &status, 0);
}

static long guarded_kb(void)
{
	char text[64];

	get(GUARDED "memory.current", text, sizeof(text));
	return atoll(text) / 1024;
}

/* What memory.min protects stays in memory, whatever a client wants; it may move. */
static void guarded(void)
{
	long most = GUARDED_MB * 1024, least = most * 9 / 10;
	unsigned long stalled;
	int fd[PIECES], piece;

	mkdir(GUARDED, 0755);
	make_file("/data/guarded", GUARDED_MB);
	put("/proc/sys/vm/drop_caches", "1");
	claim(!put(GUARDED "memory.min", "64M"), "a memory cgroup is protected");
	reads_guarded();
	claim(kb("cache_kb") >= least && guarded_kb() >= least, "its page cache is in the area");
	read_file("/data/big");
	stalled = stalled_us();
	claim(camera("pcpa", fd) >= 0, "a client gets as much as without");
	claim(guarded_kb() >= least, "and none of what is protected");
	claim(stalled_us() > stalled, "it has stalled meanwhile");
	close_all(fd, PIECES);
	pause_for_timer();
	read_file("/data/big");
	piece = heap_alloc("pcpa-contig", 250 * MB);
	claim(piece >= 0, "a piece is granted there");
	claim(guarded_kb() >= least, "what is protected has moved");
	if (piece >= 0)
		close(piece);
	put(GUARDED "memory.min", "0");
	unlink("/data/guarded");
	pause_for_timer();
}

/* As /proc/self/maps has it; ~0 if nothing is mapped there. */
static unsigned long offset_at(const void *map)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, offset, found = ~0UL;
	char line[256];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%*x %*s %lx", &from, &offset) == 2 && from == (unsigned long)map)
			found = offset;
	if (maps)
		fclose(maps);
	return found;
}

/* The offset of a private map of memory without pages of its own is where that lies. */
static void maps_tell_no_place(void)
{
	int fd = heap_alloc("pcpa-contig", 4 * MB);
	void *map = mmap(NULL, 4 * MB, PROT_READ, MAP_PRIVATE, fd, 0);

	claim(fd >= 0 && map == MAP_FAILED && errno == EINVAL, "a buffer is not mapped privately");
	map = mmap(NULL, MB, PROT_READ, MAP_SHARED, fd, 2 * MB);
	claim(offset_at(map) == 2 * MB, "a shared map does not tell where a buffer lies");
	munmap(map, MB);
	close(fd);
	pause_for_timer();
}

/* A user without rights has so much of the heaps and no more, by all of its processes. */
static void limited(void)
{
	int status, fd, other;
	pid_t pid;

	chmod(HEAPS "pcpa", 0666);
	claim(put(AREA "user_max", "1") == -EINVAL && !put(AREA "user_max", "48M"),
	      "a user may have 48 MB");
	pid = fork();
	if (!pid) {
		if (setgid(1000) || setuid(1000))
			_exit(1);
		fd = heap_alloc("pcpa", 32 * MB);
		if (!fork())
			_exit(heap_alloc("pcpa", 32 * MB) != -EDQUOT ||
			      heap_alloc("pcpa", 16 * MB) < 0);
		wait(&status);
		close(fd);
		other = heap_alloc("pcpa", 48 * MB);
		_exit(fd < 0 || status || other < 0);
	}
	waitpid(pid, &status, 0);
	claim(!status, "it gets no more, and the same again when it has freed it");
	fd = heap_alloc("pcpa", 64 * MB);
	claim(fd >= 0, "a process with rights is not held to that");
	close(fd);
	put(AREA "user_max", "0");
	chmod(HEAPS "pcpa", 0600);
	pause_for_timer();
}

/* A line of the kernel's log has that. */
static bool told(const char *text)
{
	static char log[1 << 18];
	int len = klogctl(3, log, sizeof(log) - 1);

	if (len < 0)
		return false;
	log[len] = '\0';
	return strstr(log, text);
}

static void sizes(void)
{
	static const struct {
		const char *text;
		int err;
	} bad[] = {
		{ "100G", -EINVAL }, { "261M", -EINVAL }, { "1", -EINVAL }, { "", 0 },
		{ "x", -EINVAL }, { "64M@0x100000", -EINVAL }, { "900M", -ENOMEM },
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (bad[i].text[0] && put(AREA "size", bad[i].text) != bad[i].err)
			printf("not ok size %s: %d\n", bad[i].text, put(AREA "size", bad[i].text));
	claim(says("size", "272629760"), "after bad sizes it is as it was");
	claim(!put(AREA "size", "260M") && says("size", "272629760"), "the same size again is nothing");
	claim(!put(AREA "size", "128M") && says("size", "134217728"), "it shrinks");
	claim(!put(AREA "size", "200M") && says("size", "209715200"), "it grows");
	printf("note other_kb %ld\n", kb("other_kb"));
	claim(kb("other_kb") == 0, "all of that is its own");
	claim(!put(AREA "size", "0") && says("size", "0") && !kb("free_kb"), "it goes");
	claim(put(AREA "min_order", "9") == -EINVAL && put(AREA "timer_ms", "0") == -EINVAL,
	      "a wrong order and a wrong time are refused");
	claim(told("min_order=9: expected 0 to 8; it stays") &&
	      told("timer_ms=0: expected 1 to ") && told("size=x: expected a size"),
	      "a message says what was expected");
	i = heap_alloc("pcpa", 4 * MB);
	claim((int)i >= 0, "without it the heap is an ordinary one");
	close(i);
	claim(heap_alloc("pcpa-contig", 4 * MB) == -ENOMEM, "and one piece is refused");
	claim(!put(AREA "size", "260M"), "it comes back");
}

/* 1 GiB of memory, and a process that wants nearly all of it: none is killed. */
static void hog(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		take(820 * MB);
		printf("note lent_kb %ld\n", kb("lent_kb"));
		claim(kb("lent_kb") > 50 * 1024, "it lends what nobody needs");
		_exit(0);
	}
	waitpid(pid, &status, 0);
	claim(WIFEXITED(status), "a hog that needs the area is not killed");
	claim(kb("lent_kb") < 4096, "loans end with who had them");
}

/* A client that comes again as soon as the area has turned back. */
static pid_t ask_again_and_again(size_t size)
{
	pid_t pid;
	int fd;

	put(AREA "timer_ms", "5");
	pid = fork();
	while (!pid) {
		fd = heap_alloc("pcpa", size);
		if (fd >= 0)
			close(fd);
		usleep(40000);
	}
	return pid;
}

/* The borrower lives on, in need no more, and clients come again and again. */
static void loans_leave(void)
{
	pid_t borrower, client;
	int i, has[2];
	char byte;

	if (pipe(has))
		printf("not ok pipe: %s\n", strerror(errno));
	borrower = fork();
	if (!borrower) {
		munmap(take(820 * MB), 756 * MB);
		if (write(has[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	if (read(has[0], &byte, 1) == 1)
		printf("note stay_kb %ld\n", kb("lent_kb"));
	client = ask_again_and_again(MB);
	for (i = 0; i < 500 && kb("lent_kb") > 1024; i++)
		usleep(20000);
	printf("note left_kb %ld\nnote leave_ms %d\n", kb("lent_kb"), 20 * i);
	claim(kb("lent_kb") <= 1024, "loans leave though clients come again and again");
	end(client);
	end(borrower);
}

/*
 * The background moves what was lent, after pauses that double while it finds little.  What
 * it or another CPU has in hand at this moment comes home, too; a page lost does not.
 */
static bool all_home(void)
{
	int i;

	for (i = 0; i < 1000 && kb("cache_kb") + kb("lent_kb"); i++) {
		put("/proc/sys/vm/drop_caches", "1");
		usleep(20000);
	}
	printf("note home_ms %d\nnote cache_kb %ld\nnote lent_kb %ld\n", 20 * i, kb("cache_kb"),
	       kb("lent_kb"));
	return kb("cache_kb") + kb("lent_kb") == 0;
}

/* Each page is dropped by one of both: the quick reclaim, or the end of the file system. */
static void unmounted(void)
{
	long before = stat_of("reclaimed");
	int i, done = 0;
	pid_t pid;

	make_file("/data/small", SMALL_MB);
	pid = ask_again_and_again(AREA_MB * MB);
	for (i = 0; i < UMOUNTS; i++) {
		read_file("/data/small");
		done += !umount("/data") && !mount(storage(), "/data", "ext4", 0, NULL);
	}
	end(pid);
	printf("note unmounted %d\nnote reclaimed %ld\n", done, stat_of("reclaimed") - before);
	claim(done == UMOUNTS, "file systems end while room is made");
	claim(stat_of("reclaimed") > before, "room is made of their pages");
	umount("/data");
	claim(all_home() && !put(AREA "size", "0"), "nothing is left of them");
}

int main(void)
{
	begin();
	if (!getenv("only_umount")) {
		make_file("/data/big", FILE_MB);
		cache();
		pressed();
		client();
		contiguous();
		pinned();
		entitled();
		charged();
		guarded();
		maps_tell_no_place();
		limited();
		dirty();
		sizes();
		hog();
		loans_leave();
		others();
		used();
		mapped_often();
	}
	unmounted();
	printf("done\n");
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
