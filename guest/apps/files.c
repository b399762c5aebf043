// SPDX-License-Identifier: GPL-2.0
/*
 * Files of a process: code and resources read from ext4 with a skewed working
 * set, and SQLite-like databases (4 KiB writes, each synced).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/files.h"
#include "apps/heap.h"
#include "base/records.h"
#include "base/shared.h"

#define DB_PAGE 4096UL		/* of a database, on every machine */
#define DB_PAGES 256		/* size of a database file in the image */
#define JOURNAL_EVERY 8		/* writes between two rollback journals */
#define CONTENT_FILES 2		/* an app keeps */
#define CONTENT_CHUNK PAGES(16)	/* a write */
#define READ_CHUNK PAGES(16)	/* a read(2) */

#define MEDIA "/data/tmp/media"
#define MEDIA_SIZE (1ULL << 40)	/* more than any run looks at */
#define MEDIA_CHUNK MB

struct mapped system_image;

void file_open(struct mapped *m, const char *path)
{
	struct stat st;

	m->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (m->fd < 0 || fstat(m->fd, &st))
		fatal("%s: %s", path, strerror(errno));
	m->pages = st.st_size / PAGE;
	m->base = mmap(NULL, m->pages * PAGE, PROT_READ, MAP_PRIVATE, m->fd, 0);
	if (m->base == MAP_FAILED)
		fatal("mmap %s: %s", path, strerror(errno));
}

/* Read through the mapping: runs of pages, most of them in the hot part. */
void file_touch(struct mapped *m, struct rng *r, uint64_t pages)
{
	uint64_t at, i, run;

	while (pages && m->pages) {
		at = rng_skewed(r, m->pages);
		run = rng_range(r, 1, sh->conf.set.run_pages * 2 - 1);
		for (i = 0; i < run && at + i < m->pages; i++)
			(void)m->base[(at + i) * PAGE];
		pages -= run < pages ? run : pages;
		think(r);
	}
}

/* Read with read(2), as resources and images are: long sequential runs. */
void file_read(struct mapped *m, struct rng *r, uint64_t pages)
{
	static char buf[READ_CHUNK * PAGE];
	uint64_t at, run, n;

	while (pages && m->pages) {
		at = rng_skewed(r, m->pages);
		run = rng_range(r, PAGES(4), sh->conf.set.run_pages * 4);
		if (run > pages)
			run = pages;
		pages -= run;
		for (; run; run -= n, at += n) {
			n = run < READ_CHUNK ? run : READ_CHUNK;
			if (pread(m->fd, buf, n * PAGE, at * PAGE) <= 0)
				break;
		}
		think(r);
	}
}

static void write_chunk(int fd, const char *path, const void *buf, uint64_t offset)
{
	ssize_t n = pwrite(fd, buf, CONTENT_CHUNK * PAGE, offset);

	if (n != CONTENT_CHUNK * PAGE)
		fatal("%s: %s", path, n < 0 ? strerror(errno) : "the storage is full");
}

/*
 * Content that arrives, is kept in the app's cache and looked at once; it
 * replaces what came a few launches ago. Written back by the flusher.
 */
void content_write(const char *name, struct rng *r, uint32_t launch, uint64_t pages)
{
	static char buf[CONTENT_CHUNK * PAGE];
	char path[96];
	uint64_t i;
	int fd;

	snprintf(path, sizeof(path), "/data/tmp/%s-%u", name, launch % CONTENT_FILES);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		fatal("%s: %s", path, strerror(errno));
	memset(buf, (int)rng_range(r, 1, 255), sizeof(buf));
	for (i = 0; i + CONTENT_CHUNK <= pages; i += CONTENT_CHUNK) {
		write_chunk(fd, path, buf, i * PAGE);
		think(r);
	}
	for (i = 0; i + CONTENT_CHUNK <= pages; i += CONTENT_CHUNK)
		if (pread(fd, buf, sizeof(buf), i * PAGE) != sizeof(buf))
			fatal("%s: %s", path, strerror(errno));
	close(fd);
}

/*
 * Pictures, music and videos that are looked at once: pages for which the cache
 * has demand and which no app misses. They are read on and on through a file of
 * holes, so they cost memory and no flash, and none comes back as a refault.
 * No program looks at the bytes: they go where the kernel need not copy them.
 */
void media_read(struct rng *r, uint64_t kb)
{
	int fd = open(MEDIA, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	off_t at = __atomic_fetch_add(&sh->media_at, kb * KB, __ATOMIC_ACQ_REL);
	off_t end = at + kb * KB;

	if (fd < 0 || null < 0 || ftruncate(fd, MEDIA_SIZE))
		fatal(MEDIA ": %s", strerror(errno));
	while (at < end) {
		if (sendfile(null, fd, &at, MEDIA_CHUNK) <= 0)
			fatal(MEDIA ": %s", strerror(errno));
		think(r);
	}
	close(null);
	close(fd);
}

static void journal(const char *name, const char *page)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/data/db/%s.db-journal", name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		fatal("%s: %s", path, strerror(errno));
	if (write(fd, page, DB_PAGE) != (ssize_t)DB_PAGE || fsync(fd))
		fatal("%s: %s", path, strerror(errno));
	close(fd);
	unlink(path);
}

void db_write(const char *name, struct rng *r, uint64_t writes)
{
	static char page[DB_PAGE];
	char path[96];
	uint64_t i;
	int fd;

	snprintf(path, sizeof(path), "/data/db/%s.db", name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		fatal("%s: %s", path, strerror(errno));
	for (i = 0; i < writes; i++) {
		memset(page, (int)rng_range(r, 1, 255), sizeof(page));
		if (i % JOURNAL_EVERY == 0)
			journal(name, page);
		if (pwrite(fd, page, DB_PAGE, rng_below(r, DB_PAGES) * DB_PAGE) != (ssize_t)DB_PAGE ||
		    fdatasync(fd))
			fatal("%s: %s", path, strerror(errno));
		think(r);
	}
	close(fd);
}
