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

#define CONTIG COHORT "/pcpa/contig_size"
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
static struct crew crew;
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
		p = mmap(NULL, n * PG, PROT_READ, one_in(2) ? MAP_SHARED : MAP_PRIVATE, f->fd,
			 at * PG);
		if (p == MAP_FAILED)
			die_errno("mmap");
		check_tagged(&(struct tagged){ p, n, f->tags + at }, 0, n, what);
		munmap(p, n * PG);
		return;
	}
	got = pread(way ? f->direct : f->fd, buffer, n * PG, at * PG);
	if (got != (ssize_t)(n * PG))
		die_errno("%s: %zd bytes at page %lu of %lu", what, got, at, f->pages);
	check_tagged(&(struct tagged){ buffer, n, f->tags + at }, 0, n, what);
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
	unsigned long n = 1 + below(32), at = below(f->pages);
	struct tagged here;
	int way = below(3);
	char *p;

	if (at + n > 2 * PAGES - 1)
		at = 0;
	/* Only the first way may make it longer. */
	if (way && at + n > f->pages)
		n = f->pages - at;
	if (!n)
		return;
	here = (struct tagged){ buffer, n, f->tags + at };
	write_tagged(&here, 0, n);
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

/* What a page has whose file was cut behind `words` words of it, and is long again. */
static void check_cut(struct file *f, unsigned long page, unsigned long words)
{
	uint64_t base = mix(f->tags[page]), want, *w = (uint64_t *)buffer;
	unsigned long i;

	if (pread(f->fd, buffer, PG, page * PG) != PG)
		die_errno("pread");
	for (i = 0; i < WORDS; i++) {
		want = i < words && f->tags[page] ? word_of(base, i) : 0;
		if (w[i] != want)
			die("page %lu of %s, cut at word %lu: word %lu is %llx, not %llx", page,
			    f->path, words, i, (unsigned long long)w[i], (unsigned long long)want);
	}
}

static void write_page(struct file *f, unsigned long page)
{
	f->tags[page] = rnd() | 1;
	fill_page(buffer, f->tags[page]);
	if (pwrite(f->fd, buffer, PG, page * PG) != PG)
		die_errno("pwrite");
}

/* Cut, at times in the midst of a page: what was beyond is zero when the file is long again. */
static void cut(struct file *f)
{
	unsigned long to = below(f->pages), words = one_in(2) ? below(WORDS) : 0;

	if (ftruncate(f->fd, to * PG + words * 8))
		die_errno("ftruncate");
	if (one_in(2))
		posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
	if (ftruncate(f->fd, f->pages * PG))
		die_errno("ftruncate");
	check_cut(f, to, words);
	memset(f->tags + to, 0, (2 * PAGES - to) * sizeof(f->tags[0]));
	if (words)
		write_page(f, to);
}

/* Tags of pages that go, or come as zeros, within a file. */
static void shift_tags(struct file *f, unsigned long at, unsigned long n, bool longer)
{
	uint64_t *from = f->tags + at, *to = f->tags + at + n;

	if (longer) {
		memmove(to, from, (f->pages - at) * sizeof(*from));
		memset(from, 0, n * sizeof(*from));
		f->pages += n;
	} else {
		memmove(from, to, (f->pages - at - n) * sizeof(*from));
		f->pages -= n;
		memset(f->tags + f->pages, 0, n * sizeof(*from));
	}
}

static void shift(struct file *f)
{
	static const int modes[] = {
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE,
	};
	unsigned long n = 1 + below(16), at = below(f->pages);
	int mode = modes[below(4)];

	if (at + n >= f->pages)
		return;
	if (mode == FALLOC_FL_INSERT_RANGE && f->pages + n > PAGES + PAGES / 2)
		return;
	if (fallocate(f->fd, mode, at * PG, n * PG)) {
		if (errno == EOPNOTSUPP)
			return;
		die_errno("fallocate in mode %x", mode);
	}
	if (mode == FALLOC_FL_COLLAPSE_RANGE || mode == FALLOC_FL_INSERT_RANGE)
		shift_tags(f, at, n, mode == FALLOC_FL_INSERT_RANGE);
	else
		memset(f->tags + at, 0, n * sizeof(f->tags[0]));
	at = at > 8 ? at - 8 : 0;
	read_some(f, at, f->pages - at, "shifted");
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
	for (i = 0; i < f->pages; i += 1 + below(16))
		write_page(f, i);
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

static void act(struct file *f, int me)
{
	unsigned long at = below(f->pages);

	switch (below(16)) {
	case 0: case 1: case 2: case 3: case 4:
		return write_some(f);
	case 5:
		return cut(f);
	case 6: case 7:
		return shift(f);
	case 8:
		return anew(f, me);
	case 9:
		fdatasync(f->fd);
		posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
		return;
	case 10:
		posix_fadvise(f->fd, 0, 0, one_in(2) ? POSIX_FADV_WILLNEED : POSIX_FADV_RANDOM);
		return;
	case 11:
		return in_child(f);
	default:
		read_some(f, at, f->pages - at, "some of it");
	}
}

/* Presses the page cache out: nearly as much memory as there is, again and again. */
static void press(void)
{
	unsigned long pages = pressure_mb(85) * MB / PG, i;

	while (!*crew.stop) {
		char *p = map_anon(pages * PG);

		for (i = 0; i < pages && !*crew.stop; i++)
			memset(p + i * PG, 0x5a, 64);
		munmap(p, pages * PG);
		crew.rounds[NR]++;
		nap_ms(300);
	}
	_exit(0);
}

static void one(int me)
{
	int k;

	if (me == NR)
		press();
	for (k = 0; k < FILES; k++) {
		work_path(files[k].path, sizeof(files[k].path), "f-%d-%d", me, k);
		open_file(&files[k], O_TRUNC);
		anew(&files[k], me);
	}
	while (!*crew.stop) {
		act(&files[below(FILES)], me);
		/* Now and then there is time to evict it. */
		if (one_in(16))
			nap_ms(20);
		crew.rounds[me]++;
	}
	for (k = 0; k < FILES; k++)
		read_all(&files[k], "in the end");
	_exit(0);
}

/* Root's file tells what came of the copies. */
static void tell_copies(void)
{
	char text[4096], *p;

	if (get_text(COHORT "/pcpa/stats", text, sizeof(text)) <= 0)
		return;
	for (p = strtok(text, "\n"); p; p = strtok(NULL, "\n"))
		if (!strncmp(p, "copies_", 7))
			say("%s", p);
}

static void set_contig(long value, const char *unit)
{
	int err = put(CONTIG, "%ld%s", value, unit);

	if (err && err != -ENOMEM)
		die("contig_size: %s", strerror(-err));
	say("contig_size is %ld", get_long(CONTIG, -1));
}

int main(int argc, char **argv)
{
	long seconds = arg(argc, argv, 1, 25), contig = arg(argc, argv, 2, 0);
	long before = get_long(CONTIG, -1);
	uint64_t end;

	begin("stale", arg(argc, argv, 3, 27));
	if (contig && before < 0)
		skip("no copies of evicted pages here");
	if (contig)
		set_contig(contig, "M");
	crew_start(&crew, NR + 1, rnd() >> 16, one);
	for (end = now_ms() + seconds * 1000; now_ms() < end; nap_ms(200)) {
		if (one_in(10))
			put("/proc/sys/vm/drop_caches", "%d", one_in(2) ? 1 : 3);
		if (one_in(10))
			compact();
		crew_lives(&crew);
	}
	crew_wait(&crew, 1);
	figure("file_acts", crew_end(&crew), "");
	if (contig) {
		tell_copies();
		set_contig(before, "");
		if (get_long(CONTIG, -1) != before)
			die("contig_size cannot be what it was");
	}
	no_kills();
	finish();
	return 0;
}
