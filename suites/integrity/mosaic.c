// SPDX-License-Identifier: GPL-2.0
/*
 * mosaic PROCESSES PERCENT SECONDS [SEED]
 *
 * Each process has memory of eight kinds and does to runs of pages of it whatever a program may:
 * write, advise, protect, move, fork, punch holes. A model in the process knows what each page has
 * to hold; every page is compared at random meanwhile, and all in the end.
 */
#include "load.h"
#include <sys/shm.h>

enum kind { ANON, HUGEANON, SHANON, FILEPRIV, FILESH, TMPFS, MEMFD, SYSV, KINDS };

static const char *const names[] = {
	"anon", "huge anon", "shared anon", "private file", "shared file", "tmpfs", "memfd", "sysv",
};

struct area {
	enum kind kind;
	char *p;
	unsigned long pages;
	uint32_t *gen;		/* 0: as at first */
	bool *lazy;		/* freed lazily: this, or zero */
	uint64_t key;
	int fd;
};

#define FILE_KEY (1ULL << 61)
#define COMMON_PAGES (24 * MB / PG)

static struct area areas[KINDS];

static bool is_private(const struct area *a)
{
	return a->kind == ANON || a->kind == HUGEANON || a->kind == FILEPRIV;
}

static uint64_t expected(const struct area *a, unsigned long i)
{
	if (a->gen[i])
		return a->key + ((uint64_t)a->gen[i] << 20) + i;
	return a->kind == FILEPRIV ? FILE_KEY + i : 0;
}

static void check_at(struct area *a, unsigned long i, const char *when)
{
	const char *page = a->p + i * PG;
	char what[80];
	int at = wrong_word(page, expected(a, i));

	if (at < 0)
		return;
	/* A page may go between two words: then all of it is zero now. */
	if (a->lazy[i] && wrong_word(page, 0) < 0) {
		a->lazy[i] = false;
		a->gen[i] = 0;
		return;
	}
	snprintf(what, sizeof(what), "%s, %s%s", names[a->kind], when, a->lazy[i] ? ", lazy" : "");
	tell_bad(page, at, expected(a, i), what);
	_exit(1);
}

static void check_some(struct area *a, unsigned long at, unsigned long n, const char *when)
{
	unsigned long i;

	for (i = at; i < at + n; i++)
		check_at(a, i, when);
}

static void write_some(struct area *a, unsigned long at, unsigned long n)
{
	unsigned long i;

	for (i = at; i < at + n; i++) {
		a->gen[i] = 1 + below(1000000);
		a->lazy[i] = false;
		fill_page(a->p + i * PG, expected(a, i));
	}
}

static void make_area(struct area *a, enum kind kind, unsigned long pages, uint64_t key)
{
	char path[PATH_MAX];
	int id;

	a->kind = kind;
	a->key = key + ((uint64_t)kind << 50);
	a->fd = -1;
	if (kind == HUGEANON)
		pages = (pages + 511) & ~511UL;
	a->pages = pages;
	a->gen = calloc(pages, sizeof(*a->gen));
	a->lazy = calloc(pages, 1);
	if (!a->gen || !a->lazy)
		die("calloc");
	switch (kind) {
	case ANON:
		a->p = map_anon(pages * PG);
		return;
	case HUGEANON:
		a->p = map_huge_aligned(pages * PG);
		madvise(a->p, pages * PG, MADV_HUGEPAGE);
		return;
	case SHANON:
		a->p = map_shared(pages * PG);
		return;
	case FILEPRIV:
		work_path(path, sizeof(path), "common");
		a->fd = open(path, O_RDONLY | O_CLOEXEC);
		break;
	case FILESH:
		work_path(path, sizeof(path), "own-%d", (int)getpid());
		a->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		unlink(path);
		break;
	case TMPFS:
		snprintf(path, sizeof(path), "/dev/shm/integrity-%d", (int)getpid());
		a->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		unlink(path);
		break;
	case MEMFD:
		a->p = map_memfd(pages * PG, &a->fd);
		return;
	case SYSV:
		id = shmget(IPC_PRIVATE, pages * PG, IPC_CREAT | 0600);
		if (id < 0)
			die_errno("shmget");
		a->p = shmat(id, NULL, 0);
		if (shmctl(id, IPC_RMID, NULL) || a->p == (void *)-1)
			die_errno("shmat");
		return;
	default:
		die("no kind");
	}
	if (a->fd < 0)
		die_errno("a file for %s", names[kind]);
	if (kind != FILEPRIV && ftruncate(a->fd, pages * PG))
		die_errno("ftruncate");
	a->p = mmap(NULL, pages * PG, PROT_READ | PROT_WRITE,
		    kind == FILEPRIV ? MAP_PRIVATE : MAP_SHARED, a->fd, 0);
	if (a->p == MAP_FAILED)
		die_errno("mmap of %s", names[kind]);
}

/* What is gone of it is as at first again. */
static void forget(struct area *a, unsigned long at, unsigned long n)
{
	memset(a->gen + at, 0, n * sizeof(*a->gen));
	memset(a->lazy + at, 0, n);
}

static void drop(struct area *a, unsigned long at, unsigned long n)
{
	if (madvise(a->p + at * PG, n * PG, MADV_DONTNEED))
		die_errno("MADV_DONTNEED of %s", names[a->kind]);
	if (is_private(a))
		forget(a, at, n);
}

static void free_lazily(struct area *a, unsigned long at, unsigned long n)
{
	unsigned long i;

	if (a->kind != ANON && a->kind != HUGEANON)
		return;
	if (madvise(a->p + at * PG, n * PG, MADV_FREE))
		die_errno("MADV_FREE");
	for (i = at; i < at + n; i++)
		a->lazy[i] = true;
}

static void punch(struct area *a, unsigned long at, unsigned long n)
{
	if (is_private(a))
		return drop(a, at, n);
	if (madvise(a->p + at * PG, n * PG, MADV_REMOVE))
		die_errno("MADV_REMOVE of %s", names[a->kind]);
	forget(a, at, n);
}

static void protect(struct area *a, unsigned long at, unsigned long n)
{
	if (mprotect(a->p + at * PG, n * PG, PROT_READ)) {
		if (errno == ENOMEM)
			return;
		die_errno("mprotect");
	}
	check_some(a, at, n, "read-only");
	if (mprotect(a->p + at * PG, n * PG, PROT_READ | PROT_WRITE))
		die_errno("mprotect back");
	write_some(a, at, (n + 1) / 2);
}

/* The whole area goes elsewhere: its page tables move, its pages do not. */
static void move(struct area *a)
{
	size_t len = a->pages * PG;
	char *to, *got;

	if (a->kind == SYSV || a->kind == SHANON)
		return;
	to = mmap(NULL, len + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (to == MAP_FAILED)
		die_errno("a place to move to");
	got = (char *)(((uintptr_t)to + HUGE - 1) & ~(HUGE - 1));
	if (a->kind == ANON && one_in(2))
		got = to + PG;
	if (mremap(a->p, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, got) != got)
		die_errno("mremap of %s", names[a->kind]);
	if (got > to)
		munmap(to, got - to);
	munmap(got + len, to + len + HUGE - (got + len));
	a->p = got;
}

static void through_descriptor(struct area *a, unsigned long at, unsigned long n)
{
	static char page[PG] __attribute__((aligned(4096)));
	unsigned long i;

	if (a->kind != FILESH && a->kind != TMPFS && a->kind != MEMFD)
		return;
	for (i = at; i < at + n; i++) {
		if (pread(a->fd, page, PG, i * PG) != PG)
			die_errno("pread of %s", names[a->kind]);
		check_page(page, expected(a, i), names[a->kind]);
		if (i & 1)
			continue;
		a->gen[i] = 1 + below(1000000);
		fill_page(page, expected(a, i));
		if (pwrite(a->fd, page, PG, i * PG) != PG)
			die_errno("pwrite of %s", names[a->kind]);
	}
	if (a->kind == FILESH) {
		sync_file_range(a->fd, at * PG, n * PG, SYNC_FILE_RANGE_WRITE);
		if (one_in(4))
			fdatasync(a->fd);
		posix_fadvise(a->fd, at * PG, n * PG, POSIX_FADV_DONTNEED);
	}
}

/* The child has what was there when it was made, whatever its parent does meanwhile. */
static void split_off(void)
{
	pid_t pid = child();
	bool at_once = one_in(2);
	int k;

	if (!pid) {
		for (k = 0; k < KINDS; k++) {
			struct area *a = &areas[k];
			unsigned long n = 1 + below(24), at = below(a->pages - n);

			if (!is_private(a))
				continue;
			check_some(a, at, n, "child's");
			write_some(a, at, n);
			if (one_in(3))
				madvise(a->p + at * PG, n * PG, MADV_PAGEOUT);
			check_some(a, at, n, "child's own");
		}
		_exit(0);
	}
	for (k = 0; k < KINDS && at_once; k++)
		write_some(&areas[k], below(areas[k].pages - 8), 8);
	want_well(pid, "a child");
}

static void act(struct area *a)
{
	unsigned long n = 1 + below(one_in(8) ? 512 : 48), at;

	if (n > a->pages / 2)
		n = a->pages / 2;
	at = below(a->pages - n);
	switch (below(17)) {
	case 0: case 1: case 2: case 3:
		write_some(a, at, n);
		break;
	case 4: case 5:
		drop(a, at, n);
		break;
	case 6:
		free_lazily(a, at, n);
		break;
	case 7:
		madvise(a->p + at * PG, n * PG, MADV_COLD);
		break;
	case 8: case 9:
		madvise(a->p + at * PG, n * PG, MADV_PAGEOUT);
		break;
	case 10:
		madvise(a->p + at * PG, n * PG,
			one_in(2) ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
		break;
	case 11:
		at &= ~511UL;
		if (at + 512 > a->pages)
			return;
		n = 512;
		madvise(a->p + at * PG, n * PG, MADV_COLLAPSE);
		break;
	case 12:
		protect(a, at, n);
		break;
	case 13:
		move(a);
		break;
	case 14:
		if (n > 64)
			n = 64;
		if (!mlock(a->p + at * PG, n * PG))
			check_some(a, at, n, "locked");
		/* Also one that failed may have left some locked. */
		munlock(a->p + at * PG, n * PG);
		break;
	case 15:
		if (one_in(3))
			punch(a, at, n);
		else
			through_descriptor(a, at, n > 64 ? 64 : n);
		break;
	default:
		if (one_in(4))
			split_off();
	}
	if (one_in(2))
		check_some(a, at, n, "after an act");
}

static struct crew crew;
static unsigned long pages;	/* of a process */

/* How much of a process each kind is, of 20; of disk there is less. */
static void make_areas(uint64_t key)
{
	static const int parts[] = { 6, 4, 1, 2, 2, 1, 2, 2 };
	unsigned long left = 0, share, n;
	int k;

	/* The first kind last: it has what others leave. */
	for (k = KINDS - 1; k >= 0; k--) {
		share = pages * parts[k] / 20;
		n = share;
		if (k == FILESH)
			n = clamp(n, 0, 8 * MB / PG);
		if (k == FILEPRIV)
			n = clamp(n, 0, COMMON_PAGES);
		left += share - n;
		if (k == ANON)
			n += left;
		make_area(&areas[k], k, n < 128 ? 128 : n, key);
	}
}

static void one(int me)
{
	int k;

	make_areas((uint64_t)(me + 1) << 55);
	for (k = 0; k < KINDS; k++)
		write_some(&areas[k], 0, areas[k].pages);
	while (!*crew.stop) {
		act(&areas[below(KINDS)]);
		crew.rounds[me]++;
	}
	for (k = 0; k < KINDS; k++)
		check_some(&areas[k], 0, areas[k].pages, "in the end");
	_exit(0);
}

int main(int argc, char **argv)
{
	long nr = arg(argc, argv, 1, 6), percent = arg(argc, argv, 2, 45);
	long seconds = arg(argc, argv, 3, 20), each;
	char path[PATH_MAX];
	uint64_t end;

	begin("mosaic", arg(argc, argv, 4, 11));
	nr = clamp(nr, 1, CREW);
	each = pressure_mb(percent) / nr;
	if (each < 8)
		each = 8;
	pages = each * MB / PG;
	work_path(path, sizeof(path), "common");
	close(make_file(path, COMMON_PAGES, FILE_KEY));
	say("%ld processes of %ld MiB, %ld MiB available, %ld MiB of swap", nr, each, budget_mb(),
	    swap_free_mb());
	crew_start(&crew, nr, rnd() >> 16, one);
	for (end = now_ms() + seconds * 1000; now_ms() < end; nap_ms(50))
		crew_lives(&crew);
	crew_wait(&crew, 1);
	figure("mosaic_acts", crew_end(&crew), "");
	no_kills();
	finish();
	return 0;
}
