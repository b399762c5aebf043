/* SPDX-License-Identifier: GPL-2.0 */
/* Buffers of KEPT_MB that a heap is asked for, one after another, beside users of adversaries.h. */
#include <dirent.h>
#include <stdint.h>
#include <string.h>

#include "adversaries.h"

#define KEPT_MB 64
#define MOST 10000	/* pieces that are asked for beside one user */
#define PAUSE_MS 20	/* after each, in which others have its memory again */
#define KPF_LOCKED 0
#define HALF 50		/* percent of the page cache, at least, that are dirty beside "dirty" */
#define UNTAKEN_KB 16	/* that wait to be written beside "fuse-writes", at least */
#define HANG_MS 60000	/* a request that takes longer would not end */
#define BEGUN_MS 300000	/* at most, for a user to hold what it is to hold */

/**
 * struct figures - what came of the requests beside some users
 * @held_kb: that the users told of, let go or not
 * @asked: requests
 * @given: of them, without the last one if @hung
 * @clean: of these, that were zeroed as far as was looked
 * @area_pages: that the page-cache-preferred area gave
 * @us: how long each took, ascending; zeroing is a part, and so is being refused
 * @dirty: the share of the page cache that was dirty before each, in percent, ascending
 * @others_kb: what others had of the heap's memory before each, ascending
 * @hung: the last one ended with the users' end alone, and no further one was made
 */
struct figures {
	unsigned long held_kb;
	int asked, given, clean;
	long area_pages;
	bool hung;
	uint32_t us[MOST], dirty[MOST], others_kb[MOST];
};

/* Processes beside which a request is made, each with its group; shared with the watch. */
struct company {
	int nr;
	pid_t pid[NR_ADVERSARIES];	/* 0: not there */
	atomic_ulong told[NR_ADVERSARIES];
	atomic_ulong since_ms;		/* a request is made; 0: none is */
	atomic_bool hung;
};

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

/* That it does what its name says, by what the kernel counts of that. */
static void claim_held(const char *name, long commits)
{
	if (is(name, "fuse-reads"))
		claim_of(name, locked_kb() >= READS * 1024 / 2, "its folios are locked");
	if (is(name, "ring-pins") || is(name, "gup-pins"))
		claim_of(name, pinned(), "pages are pinned");
	if (is(name, "mlock"))
		claim_of(name, locked_in_memory(), "pages are locked in memory");
	if (is(name, "fuse-writes"))
		claim_of(name, word_of("/proc/meminfo", "\nWritebackTmp:") >= UNTAKEN_KB,
			 "pages wait to be written");
	if (is(name, "memory"))
		claim_of(name, word_of("/proc/meminfo", "\nAnonPages:") >= TAKEN_MB * 1024,
			 "memory is taken");
	if (is(name, "journal"))
		claim_of(name, transactions() > commits, "the journal commits");
}

/* What others have of the heap's memory, or had put there since the last look. */
static unsigned long others_kb(const char *heap)
{
	static long stored;
	long before = stored;

	if (is(heap, "pcpa"))
		return kb("cache_kb") + kb("lent_kb");
	if (!is(heap, "pcpa-contig"))
		return word_of("/proc/meminfo", "\nCmaTotal:") -
		       word_of("/proc/meminfo", "\nCmaFree:");
	stored = stat_of("copies_stored");
	return (stored - before) * PAGE / 1024;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* One request, and how long it took. */
static int timed(int dev, struct figures *f)
{
	struct dma_heap_allocation_data data = {
		.len = KEPT_MB * MB, .fd_flags = O_RDWR | O_CLOEXEC,
	};
	double begun = now_ms();
	int err = ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &data);

	f->us[f->asked++] = (now_ms() - begun) * 1000;
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

/* The last piece was another's before, whose words would be seen. */
static bool looked_at(int i, int nr_pieces)
{
	return i % 10 == 0 || i == nr_pieces - 1;
}

static void ask(const char *heap, int nr_pieces, struct figures *f, struct company *with)
{
	int dev = open_heap(heap), fd, i;
	long granted = stat_of("granted");
	pid_t watcher = fork();

	if (!watcher)
		watch(with);
	others_kb(heap);
	for (i = 0; i < nr_pieces && !with->hung; i++) {
		nap(PAUSE_MS);
		f->dirty[i] = dirty_pct();
		f->others_kb[i] = others_kb(heap);
		with->since_ms = now_ms();
		fd = timed(dev, f);
		with->since_ms = 0;
		if (fd < 0)
			continue;
		if (!with->hung) {
			f->given++;
			f->clean += !looked_at(i, nr_pieces) || zeroed(fd, KEPT_MB * MB);
		}
		close(fd);
	}
	end(watcher);
	close(dev);
	f->hung = with->hung;
	f->area_pages = stat_of("granted") - granted;
	qsort(f->us, f->asked, sizeof(f->us[0]), ascending);
	qsort(f->dirty, f->asked, sizeof(f->dirty[0]), ascending);
	qsort(f->others_kb, f->asked, sizeof(f->others_kb[0]), ascending);
}

/* They have all begun.  False if time is up, or one ended. */
static bool begun(const char *name, const struct adversary *first, const struct company *with)
{
	int i, waited;
	bool all;

	for (waited = 0; waited < BEGUN_MS; waited += 100) {
		nap(100);
		all = !is(name, "dirty") || dirty_pct() >= HALF + 5;
		for (i = 0; i < with->nr; i++) {
			if (with->pid[i] && waitpid(with->pid[i], NULL, WNOHANG))
				return false;
			all &= !with->pid[i] || with->told[i] >= first[i].least_kb;
		}
		if (all)
			return true;
	}
	return false;
}

/**
 * beside - ask a heap for pieces beside some users
 * @name: of them together
 * @first: the first of them
 * @nr: how many
 * @heap: to ask
 * @nr_pieces: one after another, MOST at most
 * @promised: a claim does not hold if a piece is refused, or waited for without an end
 *
 * The page cache is full when the users come, and they have begun before a piece is asked for; if
 * one could not, none is.
 *
 * Return: what came of it, until the next call
 */
static const struct figures *beside(const char *name, const struct adversary *first, int nr,
				    const char *heap, int nr_pieces, bool promised)
{
	static struct figures figures, none;
	struct company *with = mmap(NULL, sizeof(*with), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long commits = transactions();
	bool held, still = true;
	int i;

	figures = none;
	with->nr = nr;
	put("/proc/sys/vm/drop_caches", "3");
	read_big();
	for (i = 0; i < nr; i++)
		if (there(&first[i]))
			with->pid[i] = let_in(&first[i], &with->told[i]);
	held = begun(name, first, with);
	claim_of(name, held, "it holds what it is to hold");
	if (held)
		ask(heap, nr_pieces, &figures, with);
	for (i = 0; i < nr; i++) {
		figures.held_kb += with->told[i];
		if (!held || figures.hung || !with->pid[i])
			continue;
		claim_held(first[i].name, commits);
		still &= !waitpid(with->pid[i], NULL, WNOHANG);
	}
	claim_of(name, still, "it is still there");
	if (held && is(name, "dirty") && !figures.hung)
		claim_of(name, figures.dirty[figures.asked / 2] >= HALF,
			 "half of the page cache is dirty");
	end_all(with);
	munmap(with, sizeof(*with));
	claim_of(name, figures.clean == figures.given, "each is zeroed");
	if (promised)
		claim_of(name, figures.given == nr_pieces, "every piece is given");
	return &figures;
}
