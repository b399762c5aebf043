// SPDX-License-Identifier: GPL-2.0
/*
 * stale SECONDS CONTIG_MB [SEED]
 *
 * No old page of a file comes back: files are written through the cache, by mappings and by direct
 * I/O, cut, extended, punched, shifted, renamed over and made anew with the inode's old number, and
 * evicted in between, by advice, by drop_caches and by reclaim. Each read, by whichever way, has
 * what was written last. With CONTIG_MB the area that keeps copies of evicted pages is as large, if
 * there is such a thing.
 */
#include "load.h"

#define NR 3
#define FILES 5
#define PAGES 512UL

struct file {
	char path[PATH_MAX];
	int fd, direct;
	unsigned long pages;
	uint64_t tags[2 * PAGES];
};

static struct file files[FILES];
static volatile int *stop;
static volatile unsigned long *acts;
static char buffer[32 * PG] __attribute__((aligned(4096)));

static void open_file(struct file *f, int flags)
{
	f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
	f->direct = open(f->path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (f->fd < 0 || f->direct < 0)
		die_errno("%s", f->path);
}

static void close_file(struct file *f)
{
	close(f->fd);
	close(f->direct);
}

static void read_some(struct file *f, unsigned long at, unsigned long n, const char *after)
{
	char what[80];
	unsigned long i;
	ssize_t got;
	char *p;
	int way = below(3);

	if (n > 32)
		n = 32;
	if (!n)
		return;
	snprintf(what, sizeof(what), "%s read by %s", after,
		 way == 0 ? "the cache" : way == 1 ? "direct I/O" : "a mapping");
	if (way == 2) {
		p = mmap(NULL, n * PG, PROT_READ, one_in(2) ? MAP_SHARED : MAP_PRIVATE, f->fd, at * PG);
		if (p == MAP_FAILED)
			die_errno("mmap");
		for (i = 0; i < n; i++)
			check_page(p + i * PG, f->tags[at + i], what);
		munmap(p, n * PG);
		return;
	}
	got = pread(way ? f->direct : f->fd, buffer, n * PG, at * PG);
	if (got != (ssize_t)(n * PG))
		die_errno("%s: %zd of %lu bytes at page %lu of %lu", what, got, n * PG, at, f->pages);
	for (i = 0; i < n; i++)
		check_page(buffer + i * PG, f->tags[at + i], what);
}

static void read_all(struct file *f, const char *after)
{
	unsigned long at, n;

	for (at = 0; at < f->pages; at += n) {
		n = f->pages - at < 32 ? f->pages - at : 32;
		read_some(f, at, n, after);
	}
}

static void write_some(struct file *f)
{
	unsigned long n = 1 + below(32), at = below(f->pages), i;
	int way = below(3);
	char *p;

	if (at + n > 2 * PAGES - 1)
		at = 0;
	/* Only the first way may make it longer. */
	if (way && at + n > f->pages)
		n = f->pages - at;
	if (!n)
		return;
	for (i = 0; i < n; i++) {
		f->tags[at + i] = rnd() | 1;
		fill_page(buffer + i * PG, f->tags[at + i]);
	}
	if (way == 2) {
		p = mmap(NULL, n * PG, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, at * PG);
		if (p == MAP_FAILED)
			die_errno("mmap");
		memcpy(p, buffer, n * PG);
		munmap(p, n * PG);
	} else if (pwrite(way ? f->direct : f->fd, buffer, n * PG, at * PG) != (ssize_t)(n * PG)) {
		die_errno("writing by way %d", way);
	}
	if (at + n > f->pages)
		f->pages = at + n;
}

/* Cut in the midst of a page: what was beyond is zero when the file is long again. */
static void cut(struct file *f)
{
	unsigned long to = below(f->pages), words = below(WORDS), i;
	bool inside = one_in(2) && to < f->pages;
	uint64_t base = mix(f->tags[to]), *w = (uint64_t *)buffer;

	if (ftruncate(f->fd, to * PG + (inside ? words * 8 : 0)))
		die_errno("ftruncate");
	if (one_in(2))
		posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
	if (!inside || !words) {
		memset(f->tags + to, 0, (2 * PAGES - to) * sizeof(f->tags[0]));
		if (ftruncate(f->fd, f->pages * PG))
			die_errno("ftruncate");
		return;
	}
	if (ftruncate(f->fd, f->pages * PG))
		die_errno("ftruncate");
	if (pread(f->fd, buffer, PG, to * PG) != PG)
		die_errno("pread");
	for (i = 0; i < WORDS; i++) {
		uint64_t want = i < words && f->tags[to] ? word_of(base, i) : 0;

		if (w[i] != want)
			die("page %lu of %s, cut at word %lu: word %lu is %llx, not %llx", to, f->path,
			    words, i, (unsigned long long)w[i], (unsigned long long)want);
	}
	memset(f->tags + to, 0, (2 * PAGES - to) * sizeof(f->tags[0]));
	f->tags[to] = rnd() | 1;
	fill_page(buffer, f->tags[to]);
	if (pwrite(f->fd, buffer, PG, to * PG) != PG)
		die_errno("pwrite");
}

static void shift(struct file *f)
{
	unsigned long n = 1 + below(16), at = below(f->pages), i;

	if (at + n >= f->pages)
		return;
	switch (below(4)) {
	case 0:
		if (fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at * PG, n * PG))
			die_errno("punching");
		memset(f->tags + at, 0, n * sizeof(f->tags[0]));
		break;
	case 1:
		if (fallocate(f->fd, FALLOC_FL_ZERO_RANGE, at * PG, n * PG)) {
			if (errno == EOPNOTSUPP)
				return;
			die_errno("zeroing");
		}
		memset(f->tags + at, 0, n * sizeof(f->tags[0]));
		break;
	case 2:
		if (fallocate(f->fd, FALLOC_FL_COLLAPSE_RANGE, at * PG, n * PG)) {
			if (errno == EOPNOTSUPP)
				return;
			die_errno("collapsing");
		}
		memmove(f->tags + at, f->tags + at + n, (f->pages - at - n) * sizeof(f->tags[0]));
		f->pages -= n;
		memset(f->tags + f->pages, 0, n * sizeof(f->tags[0]));
		break;
	default:
		if (f->pages + n > PAGES + PAGES / 2)
			return;
		if (fallocate(f->fd, FALLOC_FL_INSERT_RANGE, at * PG, n * PG)) {
			if (errno == EOPNOTSUPP)
				return;
			die_errno("inserting");
		}
		memmove(f->tags + at + n, f->tags + at, (f->pages - at) * sizeof(f->tags[0]));
		memset(f->tags + at, 0, n * sizeof(f->tags[0]));
		f->pages += n;
	}
	i = at > 8 ? at - 8 : 0;
	read_some(f, i, f->pages - i, "shifted");
}

/* A new file, often with the number of the old one, or one that takes another's name. */
static void anew(struct file *f, int me)
{
	char path[PATH_MAX];
	unsigned long i;

	close_file(f);
	if (one_in(2)) {
		if (unlink(f->path))
			die_errno("unlink");
		open_file(f, O_EXCL);
	} else {
		work_path(path, sizeof(path), "new-%d", me);
		f->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (f->fd < 0 || rename(path, f->path))
			die_errno("rename");
		close(f->fd);
		open_file(f, 0);
	}
	memset(f->tags, 0, sizeof(f->tags));
	f->pages = 32 + below(PAGES - 32);
	if (ftruncate(f->fd, f->pages * PG))
		die_errno("ftruncate");
	for (i = 0; i < f->pages; i += 1 + below(16)) {
		f->tags[i] = rnd() | 1;
		fill_page(buffer, f->tags[i]);
		if (pwrite(f->fd, buffer, PG, i * PG) != PG)
			die_errno("pwrite");
	}
}

/* A child must see what its parent wrote, and nothing older, also by descriptors of its own. */
static void in_child(struct file *f)
{
	pid_t pid = child();

	if (!pid) {
		close_file(f);
		open_file(f, 0);
		read_all(f, "opened by a child,");
		_exit(0);
	}
	want_well(pid, "a child");
}

static void one(int me)
{
	int k;

	for (k = 0; k < FILES; k++) {
		struct file *f = &files[k];

		work_path(f->path, sizeof(f->path), "f-%d-%d", me, k);
		open_file(f, O_TRUNC);
		f->pages = 1;
		anew(f, me);
	}
	while (!*stop || acts[me] < 50) {
		struct file *f = &files[below(FILES)];
		unsigned long at = below(f->pages), n = f->pages - at;

		switch (below(16)) {
		case 0: case 1: case 2: case 3: case 4:
			write_some(f);
			break;
		case 5:
			cut(f);
			break;
		case 6: case 7:
			shift(f);
			break;
		case 8:
			if (one_in(3))
				anew(f, me);
			break;
		case 9:
			fdatasync(f->fd);
			posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
			break;
		case 10:
			posix_fadvise(f->fd, 0, 0, one_in(2) ? POSIX_FADV_WILLNEED : POSIX_FADV_RANDOM);
			break;
		case 11:
			if (one_in(3))
				in_child(f);
			break;
		case 12:
			read_all(f, "all of it");
			break;
		default:
			read_some(f, at, n, "some of it");
		}
		/* Now and then there is time to evict it. */
		if (one_in(16))
			nap_ms(20);
		acts[me]++;
	}
	for (k = 0; k < FILES; k++)
		read_all(&files[k], "in the end");
	_exit(0);
}

/* Presses the page cache out: as much memory as there is, again and again. */
static void presser(void)
{
	unsigned long pages = pressure_mb(85) * MB / PG, turn = 0;

	while (!*stop) {
		unsigned long i;
		char *p = map_anon(pages * PG);

		for (i = 0; i < pages && !*stop; i++)
			memset(p + i * PG, 0x5a, 64);
		munmap(p, pages * PG);
		turn++;
		nap_ms(300);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	long seconds = arg(argc, argv, 1, 25), contig = arg(argc, argv, 2, 0);
	long seed = arg(argc, argv, 3, 27), i, before = get_long(COHORT "/pcpa/contig_size", -1);
	unsigned long all = 0;
	pid_t pids[NR + 1];
	char path[PATH_MAX];
	uint64_t end;
	int fd;

	begin("stale", seed);
	work_path(path, sizeof(path), "try");
	fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
	if (fd < 0)
		skip("no direct I/O");
	close(fd);
	if (contig) {
		int err;

		if (before < 0)
			skip("no copies of evicted pages here");
		err = put(COHORT "/pcpa/contig_size", "%ldM", contig);
		if (err && err != -ENOMEM)
			die("contig_size: %s", strerror(-err));
		say("contig_size is %ld", get_long(COHORT "/pcpa/contig_size", -1));
	}
	stop = map_shared(PG);
	acts = map_shared(PG);
	for (i = 0; i < NR; i++) {
		pids[i] = child_seeded(seed * 100 + i);
		if (!pids[i])
			one(i);
	}
	pids[NR] = child_seeded(seed);
	if (!pids[NR])
		presser();
	for (end = now_ms() + seconds * 1000; now_ms() < end; nap_ms(200)) {
		int status;

		if (one_in(10))
			put("/proc/sys/vm/drop_caches", "%d", one_in(2) ? 1 : 3);
		if (one_in(10))
			compact();
		for (i = 0; i < NR; i++)
			if (waitpid(pids[i], &status, WNOHANG) > 0)
				die("process %ld ended early, status %x", i, status);
	}
	*stop = 1;
	for (i = 0; i <= NR; i++)
		want_well(pids[i], "a process");
	for (i = 0; i < NR; i++)
		all += acts[i];
	if (contig) {
		char text[4096], *p;
		int err = put(COHORT "/pcpa/contig_size", "%ld", before);

		/* Root's file: what came of the copies. */
		if (get_text(COHORT "/pcpa/stats", text, sizeof(text)) > 0)
			for (p = strtok(text, "\n"); p; p = strtok(NULL, "\n"))
				if (!strncmp(p, "copies_", 7))
					say("%s", p);
		if (err)
			die("contig_size cannot be what it was: %s", strerror(-err));
	}
	no_kills();
	finish();
	figure("file_acts", all, "");
	return 0;
}
