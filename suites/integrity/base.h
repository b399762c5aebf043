/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all programs of the suite begin with: words, random numbers, pages that are told by their
 * tags, files of the kernel, a place for files, children.
 */
#ifndef INTEGRITY_BASE_H
#define INTEGRITY_BASE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PG 4096UL
#define WORDS (PG / 8)
#define MB (1024UL * 1024UL)
#define HUGE (2 * MB)
#define SKIP 4
#define ARRAY_SIZE(x) (sizeof(x) / sizeof((x)[0]))

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE 101
#endif

static const char *prog = "?";

/* ---- words ---- */

static inline void say(const char *fmt, ...)
{
	char text[900];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 2, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (n > (int)sizeof(text) - 2)
		n = sizeof(text) - 2;
	text[n++] = '\n';
	if (write(STDOUT_FILENO, text, n) < 0)
		return;
}

#define die(fmt, ...) \
	do { \
		say("FAIL %s[%d] line %d: " fmt, prog, (int)getpid(), __LINE__, ##__VA_ARGS__); \
		_exit(1); \
	} while (0)
#define die_errno(fmt, ...) die(fmt ": %s", ##__VA_ARGS__, strerror(errno))
#define skip(fmt, ...) \
	do { \
		say("SKIP %s: " fmt, prog, ##__VA_ARGS__); \
		_exit(SKIP); \
	} while (0)

static inline void figure(const char *name, double value, const char *unit)
{
	say(*unit ? "# figure %s %.3f %s" : "# figure %s %.0f%s", name, value < 0 ? 0 : value,
	    unit);
}

/* ---- numbers drawn from a seed ---- */

static uint64_t rng_state = 88172645463325252ULL;

static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static inline void rng_seed(uint64_t seed)
{
	rng_state = mix(seed) | 1;
}

static inline uint64_t rnd(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state * 0x2545f4914f6cdd1dULL;
}

static inline unsigned long below(unsigned long n)
{
	return n ? (rnd() >> 11) % n : 0;
}

static inline bool one_in(unsigned int n)
{
	return below(n) == 0;
}

/* ---- time ---- */

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static inline uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

static inline void nap_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, (ms % 1000) * 1000000L };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* ---- patterns: a page is told by its tag; a quarter of its words does not compress ---- */

static inline uint64_t word_of(uint64_t base, unsigned int i)
{
	return i & 3 ? base : base * (2 * i + 1) + i;
}

static inline void fill_page(void *page, uint64_t tag)
{
	volatile uint64_t *p = page;
	uint64_t base = mix(tag);
	unsigned int i;

	for (i = 0; i < WORDS; i++)
		p[i] = word_of(base, i);
}

/* The first word that is wrong, or -1. Tag 0 is a page of zeros. */
static inline int wrong_word(const void *page, uint64_t tag)
{
	const volatile uint64_t *p = page;
	uint64_t base = mix(tag);
	unsigned int i;

	if (!tag) {
		for (i = 0; i < WORDS; i++)
			if (p[i])
				return i;
		return -1;
	}
	for (i = 0; i < WORDS; i++)
		if (p[i] != word_of(base, i))
			return i;
	return -1;
}

static inline uint64_t pagemap_entry(const void *page)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (pread(fd, &entry, 8, (uintptr_t)page / PG * 8) != 8)
			entry = 0;
		close(fd);
	}
	return entry;
}

static inline void tell_bad(const void *page, int at, uint64_t tag, const char *what)
{
	const volatile uint64_t *p = page;
	unsigned int i, zero = 0, bad = 0;
	uint64_t base = mix(tag);

	for (i = 0; i < WORDS; i++) {
		zero += !p[i];
		bad += p[i] != (tag ? word_of(base, i) : 0);
	}
	say("MISMATCH %s[%d] %s: address %p word %d: found %016llx, not %016llx", prog,
	    (int)getpid(), what, (const char *)page + at * 8, at, (unsigned long long)p[at],
	    (unsigned long long)(tag ? word_of(base, at) : 0));
	say("MISMATCH  page %p tag %llx: %u of %lu words wrong, %u are zero, pagemap %016llx; "
	    "begins %016llx %016llx %016llx", page, (unsigned long long)tag, bad, WORDS, zero,
	    (unsigned long long)pagemap_entry(page), (unsigned long long)p[0],
	    (unsigned long long)p[1], (unsigned long long)p[2]);
}

static inline void check_page(const void *page, uint64_t tag, const char *what)
{
	int at = wrong_word(page, tag);

	if (at < 0)
		return;
	tell_bad(page, at, tag, what);
	_exit(1);
}

static inline void fill_run(char *p, unsigned long pages, uint64_t tag)
{
	unsigned long i;

	for (i = 0; i < pages; i++)
		fill_page(p + i * PG, tag + i);
}

static inline void check_run(const char *p, unsigned long pages, uint64_t tag, const char *what)
{
	unsigned long i;

	for (i = 0; i < pages; i++)
		check_page(p + i * PG, tag + i, what);
}

/* ---- files of the kernel ---- */

static inline long arg(int argc, char **argv, int i, long otherwise)
{
	return i < argc ? strtol(argv[i], NULL, 0) : otherwise;
}

/* The text of a file, without its last newline; a negative errno. */
static inline long get_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n, all = 0;

	text[0] = 0;
	if (fd < 0)
		return -errno;
	while (all < (ssize_t)size - 1 && (n = read(fd, text + all, size - 1 - all))) {
		if (n < 0) {
			n = -errno;
			close(fd);
			text[0] = 0;
			return n;
		}
		all += n;
	}
	close(fd);
	text[all] = 0;
	if (all && text[all - 1] == '\n')
		text[--all] = 0;
	return all;
}

static inline long get_long(const char *path, long otherwise)
{
	char text[64];

	return get_text(path, text, sizeof(text)) > 0 ? strtol(text, NULL, 10) : otherwise;
}

/* Of a choice the word in brackets, and what is no choice as it is. */
static inline long get_choice(const char *path, char *text, size_t size)
{
	long n = get_text(path, text, size);
	char *open = strchr(text, '['), *close = strchr(text, ']');

	if (!open || !close)
		return n;
	*close = 0;
	memmove(text, open + 1, close - open);
	return close - open - 1;
}

/* 0 or a negative errno. */
static inline int put_bytes(const char *path, const void *data, size_t len)
{
	int fd, err = 0;
	ssize_t n;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, data, len);
	if (n < 0)
		err = -errno;
	else if ((size_t)n != len)
		err = -EIO;
	close(fd);
	return err;
}

static inline int put(const char *path, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return put_bytes(path, text, strlen(text));
}

/* The number behind a name at the beginning of a line, or after "Node N "; -1 if none. */
static inline long long number_in(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	char line[512];
	long long found = -1;
	size_t len = strlen(name);

	if (!f)
		return -1;
	while (found < 0 && fgets(line, sizeof(line), f)) {
		char *p = line;
		int node, used = 0;

		if (sscanf(line, "Node %d %n", &node, &used) == 1 && used)
			p = line + used;
		if (!strncmp(p, name, len) && (p[len] == ' ' || p[len] == ':' || p[len] == '\t'))
			found = strtoll(p + len + 1, NULL, 10);
	}
	fclose(f);
	return found;
}

/* In KiB; 0 if there is no such line. */
static inline long meminfo(const char *name)
{
	long long n = number_in("/proc/meminfo", name);

	return n < 0 ? 0 : n;
}

static inline long long vmstat(const char *name)
{
	long long n = number_in("/proc/vmstat", name);

	return n < 0 ? 0 : n;
}

#define COHORT "/sys/kernel/mm/cohort"

/* Nodes in a list such as "0,2-3"; how many. */
static inline int nodes_in(const char *list, int *nodes, int most)
{
	int n = 0;

	while (*list && n < most) {
		char *end;
		long a = strtol(list, &end, 10), b = a;

		if (end == list)
			break;
		if (*end == '-')
			b = strtol(end + 1, &end, 10);
		for (; a <= b && n < most; a++)
			nodes[n++] = a;
		list = *end == ',' ? end + 1 : end;
		if (*end && *end != ',')
			break;
	}
	return n;
}

/* The nodes that this process has memory of under a split of memory; 0 without one. */
static inline int nodes_of_role(int *nodes, int most)
{
	char role[64], path[160], text[128];

	if (get_text("/proc/self/vnode", role, sizeof(role)) <= 0)
		return 0;
	snprintf(path, sizeof(path), COHORT "/vnode/%s/nodes", role);
	if (get_text(path, text, sizeof(text)) <= 0)
		return 0;
	return nodes_in(text, nodes, most);
}

static inline long node_kb(int node, const char *name)
{
	char path[96];
	long long n;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	n = number_in(path, name);
	return n < 0 ? 0 : n;
}

/* MiB of swap that are free. */
static inline long swap_free_mb(void)
{
	return meminfo("SwapFree") / 1024;
}

static inline unsigned long clamp(unsigned long n, unsigned long least, unsigned long most)
{
	return n < least ? least : n > most ? most : n;
}

static inline void compact(void)
{
	put("/proc/sys/vm/compact_memory", "1");
}

/*
 * MiB that a process may use without pressing others: what is available where its memory comes
 * from, less what is set aside.
 */
static inline long budget_mb(void)
{
	long kb = meminfo("MemAvailable"), here = 0;
	int nodes[16], n = nodes_of_role(nodes, 16), i;

	for (i = 0; i < n; i++)
		here += node_kb(nodes[i], "MemFree") + node_kb(nodes[i], "Active(file)") +
			node_kb(nodes[i], "Inactive(file)") - node_kb(nodes[i], "MemTotal") / 16;
	if (n > 0 && here < kb)
		kb = here;
	kb -= get_long(COHORT "/pcpa/size", 0) / 1024;
	kb -= get_long(COHORT "/pcpa/contig_size", 0) / 1024;
	return kb > 64 * 1024 ? kb / 1024 : 64;
}

/*
 * So much compressible memory that reclaim is busy, and that still has room with swap: what is
 * beyond memory costs a third of itself in zram, so 100 are swapped for every 66 that are gained.
 */
static inline long pressure_mb(int percent)
{
	long base = budget_mb(), want = base * percent / 100, swap = swap_free_mb();
	long most = swap < 64 ? base * 3 / 4 : base * 9 / 10 + swap / 4;

	return want < most ? want : most;
}

/* ---- a place for files ---- */

#define WORK "/suite/w"	/* on the disk */

static inline void empty_work(void)
{
	DIR *d = opendir(WORK);
	struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
}

static inline void work_anew(void)
{
	empty_work();
	mkdir(WORK, 0700);
}

static inline void work_path(char *path, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(path, size, WORK "/");

	va_start(ap, fmt);
	vsnprintf(path + n, size - n, fmt, ap);
	va_end(ap);
}

/* A file whose page i has the tag `tag` + i; its descriptor. */
static inline int make_file(const char *path, unsigned long pages, uint64_t tag)
{
	static char chunk[16 * PG] __attribute__((aligned(4096)));
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	unsigned long i, n;

	if (fd < 0)
		die_errno("%s", path);
	for (i = 0; i < pages; i += n) {
		n = pages - i < 16 ? pages - i : 16;
		fill_run(chunk, n, tag + i);
		if (write(fd, chunk, n * PG) != (ssize_t)(n * PG))
			die_errno("writing %s", path);
	}
	return fd;
}

/* ---- children ---- */

static inline char *map_anon(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die_errno("mmap of %zu", size);
	return p;
}

static inline void *map_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die_errno("shared mmap of %zu", size);
	return p;
}

/* A file of memory, mapped; its descriptor, where one is asked for. */
static inline char *map_memfd(size_t size, int *keep)
{
	int fd = memfd_create(prog, MFD_CLOEXEC);
	char *p;

	if (fd < 0 || ftruncate(fd, size))
		die_errno("memfd");
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die_errno("mmap of a memfd");
	if (keep)
		*keep = fd;
	else
		close(fd);
	return p;
}

static inline char *map_huge_aligned(size_t size)
{
	char *p = map_anon(size + HUGE), *q = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));

	if (q > p)
		munmap(p, q - p);
	munmap(q + size, p + HUGE - q);
	return q;
}

/* A process that dies with its parent. */
static inline pid_t child(void)
{
	uint64_t seed = rnd();
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die_errno("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		rng_seed(seed);
	}
	return pid;
}

static inline pid_t child_seeded(uint64_t seed)
{
	pid_t pid = child();

	if (!pid)
		rng_seed(seed);
	return pid;
}

/* Waits for a process that has to end well. */
static inline void want_well(pid_t pid, const char *what)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die_errno("waiting for %s", what);
	if (WIFSIGNALED(status))
		die("%s (%d) was killed by signal %d; oom_kill in vmstat is %lld", what, (int)pid,
		    WTERMSIG(status), vmstat("oom_kill"));
	if (WEXITSTATUS(status))
		die("%s (%d) ended with %d", what, (int)pid, WEXITSTATUS(status));
}

static inline void end_child(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status))
		die("child %d ended with %d", (int)pid, WEXITSTATUS(status));
}

/* ---- a program's beginning and end ---- */

static long long oom_kills_before;

/*
 * A machine that is no guest is left alone. The directory for files is empty then, also of what a
 * case left that took too long.
 */
static inline void begin(const char *name, uint64_t seed)
{
	char cwd[PATH_MAX] = "";

	prog = name;
	if (!getcwd(cwd, sizeof(cwd)) || strcmp(cwd, "/suite")) {
		fprintf(stderr, "%s: changes its machine: only in the guest's /suite\n", name);
		exit(2);
	}
	rng_seed(seed);
	work_anew();
	oom_kills_before = vmstat("oom_kill");
}

/* Nothing may have been killed for want of memory. */
static inline void no_kills(void)
{
	long long kills = vmstat("oom_kill") - oom_kills_before;

	if (kills)
		die("the kernel killed %lld processes for want of memory", kills);
}

static inline void finish(void)
{
	empty_work();
	rmdir(WORK);
}

#endif
