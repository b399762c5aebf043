// SPDX-License-Identifier: GPL-2.0
/*
 * Acts that no phone does to its kernel, all at once and all the time: a scheme
 * switched off and on, CPUs unplugged, memory compacted, caches dropped, parked
 * pages poisoned, allocations that fail, memory of virtual nodes lent and taken
 * back where the policy has them. Only with phone_stress= on the kernel's command
 * line, which PID 1 finds in its environment: region (or on), cpb, pcpa, rightsize,
 * or all for one after the other; meant for a kernel with every check built in.
 * With phone_stress=account the phone is left in peace, and only its end is looked
 * at.
 *
 * At the end all processes die, and what is left of memory must be what there was
 * before any was born.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kernel.h"
#include "base/records.h"
#include "base/rng.h"
#include "base/shared.h"
#include "base/util.h"
#include "stress/storms.h"
#include "stress/stress.h"

#define CPB SCHEMES "cpb/"
#define RIGHTSIZE SCHEMES "rightsize/"
#define LENDING VNODES "lend"
#define CPU "/sys/devices/system/cpu/cpu%llu/online"
#define FAILING "/sys/kernel/debug/"
#define POISON "/sys/kernel/debug/hwpoison/"
#define LEAKS "/sys/kernel/debug/kmemleak"

#define PAUSE_MIN_MS 50
#define PAUSE_MAX_MS 400
#define SETTLE_MS 1000		/* for the dead to be buried ... */
#define SETTLE_TRIES 60		/* ... which may take a loaded host longer */
#define LEAK_AGE_MS 6000	/* younger objects are no leaks to kmemleak */
#define FAIL_PCT "10"
#define FAIL_PAGES 1024
#define FAILING_SWITCHES 8
#define PARKED_BIT 45		/* of /proc/kpageflags */
#define LOST_MAX_KB (6 * 1024)	/* page_owner and lockdep learn as they go */

enum action {
	TOGGLE, HOTPLUG, COMPACT, DROP, FAULTS, HWPOISON, STORM, BOMB, HOG,
	BAD_PAGE, CONTIG, AREA, LEND, FAILING_SWITCH, NR_ACTIONS
};

static const char *const action_name[NR_ACTIONS] = {
	"toggle", "hotplug", "compact", "drop", "faults", "hwpoison", "storm", "bomb",
	"hog", "badpage", "contig", "area", "lend", "failswitch",
};

#define AREA_SCHEME 2

/*
 * A scheme: its directory, what the files that count its blocks end in, and the
 * file that switches it, with what to write for on.
 */
static const struct scheme {
	const char *name, *suffix, *file, *on;
} schemes[] = {
	{ "region", "_blocks", "enabled", "1" },
	{ "cpb", "_sets", "enabled", "1" },
	[AREA_SCHEME] = { "pcpa", "_kb", "size", "8M" },
	{ "rightsize", "_blocks", "enabled", "1" },	/* it has none */
};

#define NR_SCHEMES (sizeof(schemes) / sizeof(schemes[0]))

static uint64_t count[NR_ACTIONS];
static long long baseline_kb;
static bool is_on[NR_SCHEMES];

static bool wanted(const struct scheme *scheme)
{
	const char *value = getenv("phone_stress");

	if (!value)
		return false;
	if (!strcmp(value, "on"))
		value = "region";
	return !strcmp(value, scheme->name) || !strcmp(value, "all");
}

static bool area_wanted(void)
{
	return wanted(&schemes[AREA_SCHEME]);
}

static bool only_account(void)
{
	const char *value = getenv("phone_stress");

	return value && !strcmp(value, "account");
}

bool stress_wanted(void)
{
	size_t i;

	if (only_account())
		return true;
	for (i = 0; i < NR_SCHEMES; i++)
		if (wanted(&schemes[i]))
			return true;
	return false;
}

/* A control file that is there must do as it is told. */
static void tell(const char *path, const char *value)
{
	int err = spit(path, value);

	if (err)
		fatal("stress: write %s to %s: %s", value, path, strerror(-err));
}

static uint64_t number_in(const char *path)
{
	char text[32];

	if (slurp(path, text, sizeof(text)) < 0)
		fatal("stress: cannot read %s: %s", path, strerror(errno));
	return strtoull(text, NULL, 10);
}

static void pause_a_little(struct rng *r)
{
	sleep_ns(rng_range(r, PAUSE_MIN_MS, PAUSE_MAX_MS) * NSEC_PER_MSEC);
}

/* ---- everything off: no block may be left, not even for a moment ---- */
static void expect_none_of(const struct scheme *scheme)
{
	struct dirent *entry;
	char path[320];
	uint64_t n;
	DIR *dir;

	snprintf(path, sizeof(path), SCHEMES "%s", scheme->name);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name), end = strlen(scheme->suffix);

		if (len <= end || strcmp(entry->d_name + len - end, scheme->suffix))
			continue;
		snprintf(path, sizeof(path), SCHEMES "%s/%s", scheme->name, entry->d_name);
		n = number_in(path);
		if (n)
			fatal("stress: all schemes are off, and %s/%s is %llu", scheme->name,
			      entry->d_name, (unsigned long long)n);
	}
	if (dir)
		closedir(dir);
}

static void expect_no_blocks(void)
{
	uint64_t n;
	size_t i;

	for (i = 0; i < NR_SCHEMES; i++)
		expect_none_of(&schemes[i]);
	/* Each CPU keeps a few counts to itself. */
	tell("/proc/sys/vm/stat_refresh", "1");
	n = read_vmstat("nr_cohort_owned") + read_vmstat("nr_cohort_reserved");
	if (n)
		fatal("stress: all schemes are off, and %llu pages are parked",
		      (unsigned long long)n);
}

/* The file that switches it. */
static const char *switch_of(const struct scheme *scheme)
{
	static char path[96];

	snprintf(path, sizeof(path), SCHEMES "%s/%s", scheme->name, scheme->file);
	return path;
}

static void switch_to(const struct scheme *scheme, bool on)
{
	int err = spit(switch_of(scheme), on ? scheme->on : "0");
	/* There may be no place for an area now. */
	if (err && !(on && err == -ENOMEM))
		fatal("stress: %s is not switched: %s", scheme->name, strerror(-err));
	is_on[scheme - schemes] = on && !err;
}

/* Other knobs of right-sized reclaim, and its measuring on or off beside it. */
static void vary_rightsize(struct rng *r)
{
	static const char *const pages[] = { "0", "1", "24", "4096" };
	static const char *const adjs[] = { "200", "900", "1001" };

	tell(RIGHTSIZE "read_around_pages", pages[rng_below(r, 4)]);
	tell(RIGHTSIZE "background_adj", adjs[rng_below(r, 3)]);
	tell(RIGHTSIZE "scope", rng_below(r, 4) ? "1" : "0");
	tell(RIGHTSIZE "sizing", rng_below(r, 4) ? "1" : "0");
	tell(SCHEMES "reclaim/enabled", rng_below(r, 2) ? "1" : "0");
}

/* Other sets than before, as far as they can be chosen. */
static void vary(const struct scheme *scheme, struct rng *r)
{
	static const char *const orders[] = { "1", "2", "3", "4" };

	if (!strcmp(scheme->name, "pcpa"))
		tell(PCPA "min_order", orders[rng_below(r, 4)]);
	if (!strcmp(scheme->name, "rightsize"))
		vary_rightsize(r);
	if (strcmp(scheme->name, "cpb"))
		return;
	tell(CPB "order", orders[rng_below(r, 4)]);
	tell(CPB "refill", rng_below(r, 2) ? "split" : "remnants");
}

static const struct scheme *pick_scheme(struct rng *r)
{
	const struct scheme *scheme;

	do {
		scheme = &schemes[rng_below(r, NR_SCHEMES)];
	} while (!wanted(scheme));
	return scheme;
}

static void switch_off(bool all)
{
	size_t i;

	for (i = 0; i < NR_SCHEMES; i++)
		if (is_on[i] && (all || wanted(&schemes[i])))
			switch_to(&schemes[i], false);
	expect_no_blocks();
}

/* Other schemes of the command line stay on: schemes meet each other. */
static void toggle(struct rng *r)
{
	const struct scheme *next = pick_scheme(r);

	switch_off(false);
	pause_a_little(r);
	expect_no_blocks();
	vary(next, r);
	switch_to(next, true);
}

/* The schemes that the command line switched on. */
static void find_running(void)
{
	size_t i;

	for (i = 0; i < NR_SCHEMES; i++) {
		const char *path = switch_of(&schemes[i]);

		is_on[i] = !access(path, R_OK) && number_in(path);
	}
}

static uint64_t nr_cpus(void)
{
	return sysconf(_SC_NPROCESSORS_CONF);
}

static void hotplug(struct rng *r)
{
	char path[64];

	snprintf(path, sizeof(path), CPU,
		 (unsigned long long)rng_range(r, 1, nr_cpus() - 1));
	tell(path, "0");
	pause_a_little(r);
	tell(path, "1");
}

/* ---- a process whose allocations fail one time in ten ---- */
static void __attribute__((noreturn)) fail_often(void)
{
	uint64_t i;
	char *p;
	int fd;

	set_adj(getpid(), ADJ_FOREGROUND);
	if (spit("/proc/self/make-it-fail", "1"))
		_exit(1);
	p = mmap(NULL, FAIL_PAGES * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; p != MAP_FAILED && i < FAIL_PAGES; i++)
		*(volatile char *)(p + i * PAGE) = 1;
	fd = open("/data/stress", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	for (i = 0; fd >= 0 && i < FAIL_PAGES / 4; i++)
		if (write(fd, p, PAGE) < 0)
			break;
	if (fork() == 0)
		_exit(0);
	wait(NULL);	/* an orphan would be taken for a lost native process */
	_exit(0);
}

static void faults(void)
{
	pid_t pid = fork();

	if (!pid)
		fail_often();
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* A knob of pages that fail, and of slab; not each of them has all. */
static void failing(const char *knob, const char *value)
{
	static const char *const what[] = { "fail_page_alloc", "failslab" };
	char path[96];
	size_t i;

	for (i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		snprintf(path, sizeof(path), FAILING "%s/%s", what[i], knob);
		if (!access(path, W_OK))
			tell(path, value);
	}
}

static bool faults_prepare(void)
{
	if (access(FAILING "failslab/probability", W_OK))
		return false;
	failing("task-filter", "Y");
	failing("min-order", "0");
	failing("ignore-gfp-wait", "N");
	failing("ignore-gfp-highmem", "N");
	failing("cache-filter", "N");
	failing("verbose", "0");
	failing("times", "-1");
	failing("probability", FAIL_PCT);
	return true;
}

/* ---- a scheme is switched by a process whose allocations fail: it is on then, or off ---- */
static void __attribute__((noreturn)) switch_failing(const struct scheme *scheme, bool on)
{
	if (!spit("/proc/self/make-it-fail", "1"))
		spit(switch_of(scheme), on ? scheme->on : "0");
	_exit(0);
}

static void failing_switch(struct rng *r)
{
	const struct scheme *scheme = pick_scheme(r);
	int i;

	for (i = 0; i < FAILING_SWITCHES; i++) {
		pid_t pid = fork();

		if (!pid)
			switch_failing(scheme, !is_on[scheme - schemes]);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		find_running();
	}
}

/* ---- a parked page that turns out to be bad ---- */
static bool parked(int fd, uint64_t pfn)
{
	uint64_t flags;

	return pread(fd, &flags, sizeof(flags), pfn * 8) == sizeof(flags) &&
	       flags >> PARKED_BIT & 1;
}

static void hwpoison(struct rng *r)
{
	uint64_t pfn, tries, pages = sysconf(_SC_PHYS_PAGES);
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	char value[32];

	for (tries = 0; fd >= 0 && tries < 4096; tries++) {
		pfn = rng_below(r, pages);
		if (!parked(fd, pfn))
			continue;
		/* A task may take it before we hit it: then it is refused or split off. */
		snprintf(value, sizeof(value), "%llu", (unsigned long long)pfn);
		spit(POISON "corrupt-pfn", value);
		spit(POISON "unpoison-pfn", value);
		break;
	}
	if (fd >= 0)
		close(fd);
}

static void act(enum action action, struct rng *r)
{
	switch (action) {
	case TOGGLE:
		toggle(r);
		break;
	case HOTPLUG:
		hotplug(r);
		break;
	case COMPACT:
		tell("/proc/sys/vm/compact_memory", "1");
		break;
	case DROP:
		tell("/proc/sys/vm/drop_caches", rng_below(r, 2) ? "1" : "3");
		break;
	case FAULTS:
		faults();
		break;
	case HWPOISON:
		hwpoison(r);
		break;
	case STORM:
		storm_processes();
		break;
	case BOMB:
		storm_bomb();
		break;
	case HOG:
		storm_hog();
		break;
	case BAD_PAGE:
		storm_bad_page();
		break;
	case AREA:
		storm_area();
		break;
	case LEND:
		tell(LENDING, rng_below(r, 2) ? "1" : "0");
		break;
	case FAILING_SWITCH:
		failing_switch(r);
		break;
	default:
		storm_cma();
	}
	count[action]++;
}

/* ---- accounting ---- */
static long long pcp_kb(void)
{
	static char text[65536];
	const char *p = text;
	long long pages = 0;

	if (slurp("/proc/zoneinfo", text, sizeof(text)) < 0)
		fatal("stress: cannot read /proc/zoneinfo");
	while ((p = strstr(p, " count: "))) {
		p += strlen(" count: ");
		pages += atoll(p);
	}
	return pages * PAGE_KB;
}

/* Memory of which no counter of the kernel says what it is. */
static long long unexplained_kb(void)
{
	static const char *const known[] = {
		"\nMemFree:", "\nActive:", "\nInactive:", "\nUnevictable:",
		"\nSlab:", "\nPageTables:", "\nVmallocUsed:", "\nPercpu:",
	};
	static char text[8192];
	long long kb;
	size_t i;

	meminfo_read(text, sizeof(text));
	kb = meminfo_kb(text, "MemTotal:");
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		kb -= meminfo_kb(text, known[i]);
	kb -= PAGE_KB * read_vmstat("nr_zspages");
	return kb - pcp_kb();
}

/* Pages in a CPU's batches are in no list that is counted. */
static void drain(void)
{
	tell("/proc/sys/vm/compact_memory", "1");
	tell("/proc/sys/vm/drop_caches", "3");
	tell("/proc/sys/vm/stat_refresh", "1");
}

/* Before the phone's processes are forked: so much is not theirs. */
void stress_baseline(void)
{
	drain();
	baseline_kb = unexplained_kb();
}

static unsigned long long lent_kb(void)
{
	unsigned long long sum = 0;
	struct dirent *entry;
	char path[320];
	DIR *dir = opendir(VNODES);

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), VNODES "%s/lent_kb", entry->d_name);
		if (!access(path, R_OK))
			sum += number_in(path);
	}
	if (dir)
		closedir(dir);
	return sum;
}

/*
 * Of the page cache nothing is left, nor of what was lent to it: a page that one of the dead
 * still maps is dropped once the mapping is gone.
 */
static void expect_nothing_lent(void)
{
	unsigned long long lent;
	int tries = 0;

	while ((lent = lent_kb()) && ++tries < SETTLE_TRIES) {
		sleep_ns(SETTLE_MS * NSEC_PER_MSEC);
		drain();
	}
	if (lent)
		fatal("stress: nothing is to be lent, and %llu kB are", lent);
}

/*
 * Lost memory stays lost; memory that the last of the dead, RCU or a worker still
 * holds comes back.
 */
static void expect_nothing_lost(void)
{
	long long lost;
	int tries = 0;

	__atomic_store_n(&sh->stress_over, 1, __ATOMIC_SEQ_CST);
	kill(-1, SIGKILL);
	do {
		sleep_ns(SETTLE_MS * NSEC_PER_MSEC);
		drain();
		lost = unexplained_kb() - baseline_kb;
	} while (lost > LOST_MAX_KB && ++tries < SETTLE_TRIES);
	note("stress: %lld kB more unaccounted for than at boot, %d s after the end", lost,
	     tries + 1);
	if (lost > LOST_MAX_KB)
		fatal("stress: %lld kB of memory are lost", lost);
}

/* An object that nothing points to, twice: the first scan may have met it on its way. */
static void expect_nothing_leaked(void)
{
	unsigned long leaks = 0, lines = 0;
	char line[256];
	FILE *f;

	if (access(LEAKS, W_OK))
		return;
	sleep_ns(LEAK_AGE_MS * NSEC_PER_MSEC);
	tell(LEAKS, "scan");
	sleep_ns(SETTLE_MS * NSEC_PER_MSEC);
	tell(LEAKS, "scan");
	f = fopen(LEAKS, "re");
	if (!f)
		fatal("stress: " LEAKS ": %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		leaks += !strncmp(line, "unreferenced", strlen("unreferenced"));
		if (!strstr(line, "cohort_"))
			continue;
		line[strcspn(line, "\n")] = '\0';
		note("stress: leaked by%s", line);
		lines++;
	}
	fclose(f);
	note("stress: kmemleak knows %lu leaks of the kernel", leaks);
	if (lines)
		fatal("stress: Cohort leaks");
}

static void __attribute__((noreturn)) end(void)
{
	char text[256];
	size_t n = 0;
	int i;

	for (i = 0; i < NR_ACTIONS; i++)
		n += snprintf(text + n, sizeof(text) - n, " %s %llu", action_name[i],
			      (unsigned long long)count[i]);
	note("stress:%s", text);
	find_running();
	failing("probability", "0");
	switch_off(true);
	if (!access(LENDING, W_OK))
		tell(LENDING, "0");
	expect_nothing_lost();
	expect_nothing_lent();
	expect_no_blocks();
	expect_nothing_leaked();
	record(RECORD_END, (unsigned long long)now_ns(), (unsigned long long)sh->conf.launches);
	records_flush();
	power_off();
}

/* Acts that chance has left out are done now, and four storms of either kind. */
static void act_on_the_rest(const bool *can, struct rng *r)
{
	int i;

	for (i = 0; i < NR_ACTIONS; i++)
		if (can[i] && !count[i])
			act(i, r);
	while (count[STORM] < 4)
		act(STORM, r);
	while (can[LEND] && count[LEND] < 4)
		act(LEND, r);
	while (can[AREA] && count[AREA] < 4) {
		if (!is_on[AREA_SCHEME])
			toggle(r);
		act(AREA, r);
	}
}

static void __attribute__((noreturn)) account_main(void)
{
	while (!__atomic_load_n(&sh->stress_stop, __ATOMIC_ACQUIRE))
		sleep_ns(PAUSE_MAX_MS * NSEC_PER_MSEC);
	end();
}

static void __attribute__((noreturn)) act_main(void)
{
	bool can[NR_ACTIONS] = {
		[TOGGLE] = true, [COMPACT] = true, [DROP] = true,
		[HOTPLUG] = nr_cpus() > 1,
		[FAULTS] = faults_prepare(),
		[HWPOISON] = !access(POISON "corrupt-pfn", W_OK),
		[STORM] = true, [BAD_PAGE] = true,
		[BOMB] = storm_bomb_prepare(), [HOG] = storm_hog_prepare(),
		[CONTIG] = storm_cma_prepare(),
		[AREA] = area_wanted() && storm_area_prepare(),
		[LEND] = !access(LENDING, W_OK),
	};
	struct rng r;
	uint64_t i;

	can[FAILING_SWITCH] = can[FAULTS];
	rng_seed(&r, sh->conf.seed, 0x57e55);
	find_running();
	while (!__atomic_load_n(&sh->stress_stop, __ATOMIC_ACQUIRE)) {
		/* Every second time a scheme: the rest must meet both states. */
		i = rng_below(&r, 2) ? TOGGLE : rng_below(&r, NR_ACTIONS);
		if (can[i])
			act(i, &r);
		pause_a_little(&r);
	}
	act_on_the_rest(can, &r);
	end();
}

void stress_main(void)
{
	set_name("stress");
	if (only_account())
		account_main();
	act_main();
}

/* The run is over: the stress process writes the last record, and kills us. */
void stress_finish(void)
{
	__atomic_store_n(&sh->stress_stop, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}
