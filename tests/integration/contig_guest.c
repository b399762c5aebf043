// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a small guest with 64 MB kept for contiguous pieces and an empty ext4 at
 * /dev/pmem0.  Pieces are there whatever an ordinary user holds, and the copies that the
 * frames hold meanwhile are never those of what a file has no more: pages are written,
 * directly too, punched out, cut off and read by many while memory is short.  Prints
 * "ok WHAT" or "not ok WHAT", a line a claim, "adversary NAME WORD VALUE ..." for the pieces
 * that were asked for beside one user, and "note NAME VALUE" for what was measured.
 *
 * Words of the kernel's command line: pieces=N beside each user, heap=NAME (one that promises
 * nothing is only measured), beside=NAME for one of the users, only_pieces=1, and few=1 on a
 * kernel that checks itself.
 */
#define _GNU_SOURCE
#include <dirent.h>
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

#include "adversaries.h"

#define KEPT_MB 64
#define MOST 10000	/* pieces that are asked for beside one user */
#define READERS 2
#define WRITES_MS 30000	/* at most: a checked kernel on a busy host is slow */
#define STAMPED 16384	/* pages of the file whose content is checked */
#define BUFFER "/sys/kernel/mm/cohort/buffer/"
#define KPF_LOCKED 0
#define HALF 50		/* percent of the page cache, at least, that are dirty beside "dirty" */
#define HANG_MS 60000	/* a request that takes longer would not end */

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

/* How long requests took, in us; and how much of the page cache was dirty then, in percent. */
struct figures {
	int asked, given, clean;
	uint32_t all[MOST], finding[MOST], dirty[MOST];
};

/* Processes beside which a request is made, each with its group; shared with the watch. */
struct company {
	int nr;
	pid_t pid[NR_ADVERSARIES];	/* 0: not there */
	atomic_ulong told[NR_ADVERSARIES];
	atomic_ulong since_ms;		/* a request is made; 0: none is */
	atomic_bool hung;
};

static struct versions *versions;
static int nr_pieces = 5, nr_writes = 30000;
static int begun_ms = 300000;	/* at most, for a user to hold what it is to hold */
static const char *heap = "pcpa-contig";

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

/* what users hold */

static long word_of(const char *path, const char *word)
{
	static char text[16384];
	char *at;

	get(path, text, sizeof(text));
	at = strstr(text, word);
	return at ? atol(at + strlen(word)) : 0;
}

static uint32_t dirty_pct(void)
{
	long cache = word_of("/proc/meminfo", "\nActive(file):") +
		     word_of("/proc/meminfo", "\nInactive(file):");
	long dirty = word_of("/proc/meminfo", "\nDirty:") +
		     word_of("/proc/meminfo", "\nWriteback:");

	return cache ? 100 * dirty / cache : 0;
}

/* Of all memory. */
static unsigned long locked_kb(void)
{
	static uint64_t flags[4096];
	int fd = open("/proc/kpageflags", O_RDONLY);
	unsigned long nr = 0;
	ssize_t n, i;

	while (fd >= 0 && (n = read(fd, flags, sizeof(flags))) > 0)
		for (i = 0; i < n / (ssize_t)sizeof(flags[0]); i++)
			nr += flags[i] >> KPF_LOCKED & 1;
	close(fd);
	return nr * PAGE / 1024;
}

/* So many that a user could have pinned them; one that lets go pins others soon. */
static bool pinned(void)
{
	int i;

	for (i = 0; i < 500; i++, nap(10))
		if (word_of("/proc/vmstat", "nr_foll_pin_acquired ") -
		    word_of("/proc/vmstat", "nr_foll_pin_released ") >= 1024)
			return true;
	return false;
}

/* Of the file system's journal so far. */
static long transactions(void)
{
	DIR *dir = opendir("/proc/fs/jbd2");
	struct dirent *entry;
	char path[300], text[64] = "";

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/fs/jbd2/%s/info", entry->d_name);
		get(path, text, sizeof(text));
	}
	if (dir)
		closedir(dir);
	return atol(text);
}

/* What lets go locks others soon, and what each CPU has counted for itself is late. */
static bool locked_in_memory(void)
{
	int i;

	for (i = 0; i < 500; i++, nap(10))
		if (word_of("/proc/meminfo", "\nMlocked:") >= LOCKED_MB * 1024)
			return true;
	return false;
}

static void claim_of(const char *name, bool held, const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "%s: %s", name, what);
	claim(held, text);
}

static bool is(const char *name, const char *other)
{
	return !strcmp(name, other);
}

/* That it does what its name says, seen by the kernel's counts. */
static void claim_held(const char *name, const struct figures *f, long commits)
{
	if (is(name, "fuse-reads"))
		claim_of(name, locked_kb() >= READS * 1024 / 2, "its folios are locked");
	if (is(name, "ring-pins") || is(name, "gup-pins"))
		claim_of(name, pinned(), "pages are pinned");
	if (is(name, "mlock"))
		claim_of(name, locked_in_memory(), "pages are locked in memory");
	if (is(name, "dirty"))
		claim_of(name, f->dirty[f->asked / 2] >= HALF, "half of the page cache is dirty");
	if (is(name, "journal"))
		claim_of(name, transactions() > commits, "the journal commits");
}

/* pieces */

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t now_us(void)
{
	return now_ms() * 1000;
}

/* One request: how long it took, and how much of that was not zeroing. */
static int timed(int dev, struct figures *f)
{
	struct dma_heap_allocation_data data = {
		.len = KEPT_MB * MB, .fd_flags = O_RDWR | O_CLOEXEC,
	};
	long zero = word_of(BUFFER "zero_ns", "");
	uint32_t us = now_us();
	int err = ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &data);

	us = now_us() - us;
	zero = (word_of(BUFFER "zero_ns", "") - zero) / 1000;
	f->all[f->asked] = us;
	f->finding[f->asked++] = us - (zero < us ? zero : us);
	return err ? -1 : (int)data.fd;
}

static void end_all(const struct company *with)
{
	int i;

	for (i = 0; i < with->nr; i++)
		if (with->pid[i])
			end_group(with->pid[i]);
}

/*
 * A request may wait for what a user never lets go, and is not killed meanwhile: then the users
 * are.
 */
static void watch(struct company *with)
{
	unsigned long since_ms;
	int i;

	for (;; nap(200)) {
		since_ms = with->since_ms;	/* once: a request ends between two looks */
		if (!since_ms || now_ms() - since_ms < HANG_MS)
			continue;
		with->hung = true;
		for (i = 0; i < with->nr; i++)
			if (with->pid[i])
				kill(-with->pid[i], SIGKILL);
		_exit(0);
	}
}

static void ask(int dev, struct figures *f, struct company *with)
{
	pid_t watcher = fork();
	int i, fd;

	if (!watcher)
		watch(with);
	for (i = 0; i < nr_pieces && !with->hung; i++) {
		f->dirty[i] = dirty_pct();
		with->since_ms = now_ms();
		fd = timed(dev, f);
		with->since_ms = 0;
		if (fd >= 0) {
			f->given++;
			f->clean += i % 10 || zeroed(fd, KEPT_MB * MB);
			close(fd);
		}
		usleep(50000);
	}
	end(watcher);
	qsort(f->all, f->asked, sizeof(f->all[0]), ascending);
	qsort(f->finding, f->asked, sizeof(f->finding[0]), ascending);
	qsort(f->dirty, f->asked, sizeof(f->dirty[0]), ascending);
}

/* "adversary NAME WORD VALUE ...": us, of all that were asked for. */
static void print_figures(const char *name, const struct company *with, const struct figures *f,
			  long area)
{
	int half = f->asked / 2, most = f->asked * 99 / 100, last = f->asked - 1, i;
	unsigned long kb = 0;

	for (i = 0; i < with->nr; i++)
		kb += with->told[i];
	printf("adversary %s held_kb %lu dirty_pct %u asked %d given %d p50 %u p99 %u longest %u",
	       name, kb, f->dirty[half], f->asked, f->given, f->all[half], f->all[most],
	       f->all[last]);
	if (f->finding[half] != f->all[half])	/* the heap tells how long it zeroed */
		printf(" finding_p50 %u finding_p99 %u finding_longest %u", f->finding[half],
		       f->finding[most], f->finding[last]);
	if (area && f->given)
		printf(" of_area_pct %ld", area * 100 / ((long)(KEPT_MB * MB / PAGE) * f->given));
	printf("%s\n", with->hung ? " hung 1" : "");
}

/* They have all begun, or time is up. */
static bool begun(const char *name, const struct adversary *first, const struct company *with)
{
	int i, waited;
	bool all;

	for (waited = 0; waited < begun_ms; waited += 100) {
		nap(100);
		all = !is(name, "dirty") || dirty_pct() >= HALF + 5;
		for (i = 0; i < with->nr; i++)
			all &= !with->pid[i] || with->told[i] >= first[i].least_kb;
		if (all)
			return true;
	}
	return false;
}

/* The page cache is full when they come; they have begun before a piece is asked for. */
static void beside(const char *name, const struct adversary *first, int nr)
{
	static struct figures figures, none;
	struct company *with = mmap(NULL, sizeof(*with), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool promised = !strncmp(heap, "pcpa", strlen("pcpa")), held;
	long commits = transactions(), area = stat_of("granted");
	int dev = open_heap(heap), i;

	figures = none;
	with->nr = nr;
	put("/proc/sys/vm/drop_caches", "3");
	read_big();
	for (i = 0; i < nr; i++)
		if (there(&first[i]))
			with->pid[i] = let_in(&first[i], &with->told[i]);
	held = begun(name, first, with);
	ask(dev, &figures, with);
	print_figures(name, with, &figures, stat_of("granted") - area);
	claim_of(name, held, "it holds what it is to hold");
	if (!with->hung)
		claim_held(name, &figures, commits);
	end_all(with);
	close(dev);
	munmap(with, sizeof(*with));
	if (!promised)
		return;
	claim_of(name, figures.given == nr_pieces, "every piece is given");
	claim_of(name, figures.clean == nr_pieces, "each is zeroed");
}

/* Each of the users alone, and all of them at once. */
static void pieces(void)
{
	const char *only = getenv("beside");
	int i;

	put(BUFFER "enabled", "1");
	for (i = 0; i < NR_ADVERSARIES; i++) {
		if (!there(&adversaries[i]))
			printf("note lacks %s\n", adversaries[i].name);
		else if (!only || is(only, adversaries[i].name))
			beside(adversaries[i].name, &adversaries[i], 1);
	}
	if (!only || is(only, "all"))
		beside("all", adversaries, NR_ADVERSARIES);
	if (!is(heap, "pcpa-contig"))
		return;
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
	if (getenv("heap"))
		heap = getenv("heap");
	if (getenv("pieces"))
		nr_pieces = atoi(getenv("pieces"));
	if (nr_pieces > MOST)
		nr_pieces = MOST;
	if (getenv("few")) {
		nr_pieces = 2;
		nr_writes /= 10;
	}
	admit();
	pieces();
	if (!getenv("only_pieces")) {
		sizes();
		contents();
		claim(!umount("/data") && !put(AREA "contig_size", "0"), "it goes in the end");
	}
	printf("done\n");
	sync();
	reboot(RB_POWER_OFF);
}
