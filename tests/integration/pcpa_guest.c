// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a small guest with a page-cache-preferred area of 260 MB and an empty
 * ext4 at /dev/pmem0: the area fills with page cache, clients get it, contiguous
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
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "area.h"

#define AREA_MB 260
#define CGROUP "/cgroup/client/"
#define FILE_MB 420
#define SMALL_MB 48
#define UMOUNTS 20
#define PIECES 16
#define PIECE (AREA_MB * MB / PIECES)

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
	double start;

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
	start = now_ms();
	piece = heap_alloc("pcpa-contig", 250 * MB);
	printf("note busy_piece %d\nnote busy_ms %.0f\nnote busy %ld\n", piece, now_ms() - start,
	       stat_of("busy"));
	claim(piece == -EBUSY || piece == -ENOMEM, "a piece with pinned pages in it is refused");
	claim(now_ms() - start < 4000, "in bounded time");
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

/* What any user may try: to learn that a camera is on, or an address; to empty the area. */
static void others(void)
{
	static const char *const secret[] = {
		"base", "state", "free_kb", "cache_kb", "client_kb", "lent_kb", "other_kb", "stats",
		"contig_client_kb",
	};
	static const char *const knobs[] = { "size", "contig_size", "announce", "min_order" };
	char path[96];
	int status, fd;
	size_t i;
	pid_t pid = fork();

	if (!pid) {
		if (setgid(1000) || setuid(1000))
			claim(false, "an ordinary user");
		for (i = 0; i < sizeof(secret) / sizeof(secret[0]); i++) {
			snprintf(path, sizeof(path), AREA "%s", secret[i]);
			if (open(path, O_RDONLY) >= 0)
				printf("not ok any user reads %s\n", secret[i]);
		}
		for (i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
			snprintf(path, sizeof(path), AREA "%s", knobs[i]);
			if (put(path, "4M") != -EACCES)
				printf("not ok any user writes %s\n", knobs[i]);
		}
		fd = open("/proc/1/cohort_entitled", O_RDONLY);
		claim(fd < 0 && heap_alloc("pcpa", PAGE) == -EACCES &&
		      heap_alloc("pcpa-contig", PAGE) == -EACCES,
		      "no other user knows of a client, or is one");
		_exit(0);
	}
	waitpid(pid, &status, 0);
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
		done += !umount("/data") && !mount("/dev/pmem0", "/data", "ext4", 0, NULL);
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
		others();
		charged();
		limited();
		dirty();
		sizes();
		hog();
		loans_leave();
	}
	unmounted();
	printf("done\n");
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
