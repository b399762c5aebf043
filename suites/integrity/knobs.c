// SPDX-License-Identifier: GPL-2.0
/*
 * knobs SECONDS [SEED]
 *
 * All files below /sys/kernel/mm/cohort: what can be read is read; each that can be written takes
 * its own value back; each refuses what its documentation does not allow, with EINVAL, and is then
 * as it was. Afterwards all of them are turned at random under load, and put back.
 */
#include "load.h"
#include <ftw.h>

enum type { NUMBER, SWITCH, SIZE, CHOICE, OTHER };

struct knob {
	char path[200];
	const char *name;	/* below the directory */
	enum type type;
	long long min, max;
	char before[300];
	bool readable;
};

static struct knob knobs[64];
static int nr_knobs;
static char read_only[128][200];
static int nr_read_only;
static unsigned long turned, refused;

static const struct {
	const char *name;
	enum type type;
	long long min, max;	/* of the documentation; -1, -2: of memory, a quarter of it */
} documented[] = {
	{ "region/headroom_kb", NUMBER, 0, -2 },
	{ "region/compact_delay_ms", NUMBER, 0, 60000 },
	{ "cpb/order", NUMBER, 1, 4 },
	{ "cpb/limit_kb", NUMBER, 256, -1 },
	{ "cpb/refill", CHOICE, 0, 0 },
	{ "rightsize/background_adj", NUMBER, 200, 1001 },
	{ "rightsize/read_around_pages", NUMBER, 0, 4096 },
	{ "pcpa/min_order", NUMBER, 0, 8 },
	{ "pcpa/timer_ms", NUMBER, 1, 60000 },
	{ "pcpa/size", SIZE, 0, 0 },
	{ "pcpa/contig_size", SIZE, 0, 0 },
	{ "pcpa/user_max", SIZE, 0, 0 },
	{ "pcpa/announce", SIZE, 0, 0 },
	{ "vnode/default", CHOICE, 0, 0 },
	{ "vnode/lend", SWITCH, 0, 1 },
	{ "region/enabled", SWITCH, 0, 1 },
	{ "cpb/enabled", SWITCH, 0, 1 },
	{ "rightsize/enabled", SWITCH, 0, 1 },
	{ "rightsize/scope", SWITCH, 0, 1 },
	{ "rightsize/sizing", SWITCH, 0, 1 },
	{ "buffer/enabled", SWITCH, 0, 1 },
	{ "buffer/compact", SWITCH, 0, 1 },
	{ "reclaim/enabled", SWITCH, 0, 1 },
	{ "reclaim/kswapd", SWITCH, 0, 1 },
};

static void describe(struct knob *k)
{
	const char *last = strrchr(k->name, '/');
	unsigned int i;

	k->type = OTHER;
	for (i = 0; i < ARRAY_SIZE(documented); i++) {
		if (strcmp(k->name, documented[i].name))
			continue;
		k->type = documented[i].type;
		k->min = documented[i].min;
		k->max = documented[i].max;
	}
	if (last && !strcmp(last, "/unusable_pct")) {
		k->type = NUMBER;
		k->min = 0;
		k->max = 100;
	}
	if (k->max < 0)
		k->max = meminfo("MemTotal") / (k->max == -2 ? 4 : 1);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *unused)
{
	char text[8192] = "";

	if (type != FTW_F)
		return 0;
	if (!(st->st_mode & 0222)) {
		if (nr_read_only < 128)
			snprintf(read_only[nr_read_only++], sizeof(read_only[0]), "%s", path);
		return 0;
	}
	if (nr_knobs == 64)
		return 0;
	snprintf(knobs[nr_knobs].path, sizeof(knobs[0].path), "%s", path);
	knobs[nr_knobs].name = knobs[nr_knobs].path + strlen(COHORT "/");
	knobs[nr_knobs].readable = (st->st_mode & 0444) &&
				   get_text(path, text, sizeof(text)) >= 0;
	snprintf(knobs[nr_knobs].before, sizeof(knobs[0].before), "%.299s", text);
	describe(&knobs[nr_knobs]);
	nr_knobs++;
	return 0;
}

/* It has to be refused like this, and nothing has changed. */
static void want_refused(struct knob *k, const void *text, size_t len, const char *shown)
{
	char before[300] = "", after[300] = "";
	int err;

	if (k->readable)
		get_text(k->path, before, sizeof(before));
	err = put_bytes(k->path, text, len);
	/* Without an area there is nothing to announce to. */
	if (err == -ENODEV && !strcmp(k->name, "pcpa/announce"))
		err = -EINVAL;
	if (err != -EINVAL)
		die("%s: %s was %s%s, and has to be refused with EINVAL", k->name, shown,
		    err ? "refused with " : "taken", err ? strerror(-err) : "");
	if (k->readable) {
		get_text(k->path, after, sizeof(after));
		if (strcmp(before, after))
			die("%s: %s was refused, and %s is now %s", k->name, shown, before, after);
	}
	refused++;
}

static void refuse_text(struct knob *k, const char *text)
{
	want_refused(k, text, strlen(text), text);
}

/* What may be answered to a value that is allowed. */
static bool is_answer(int err)
{
	return !err || err == -EBUSY || err == -ENOMEM || err == -ENOSYS || err == -ENODEV;
}

static bool is_on(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), COHORT "/%s", name);
	return get_long(path, 0) == 1;
}

/* A scheme that is switched off has given everything back; blocks are of the other one, too. */
static void want_all_back(const char *name)
{
	static const char *const counts[] = {
		"region/process_blocks", "region/shared_blocks", "region/service_blocks",
		"region/small_blocks", "region/cache_blocks", "region/hot_blocks",
		"region/metadata_blocks", "region/vmalloc_blocks", "region/kernel_blocks",
		"region/zspage_blocks", "cpb/process_sets", "cpb/cpu_sets",
	};
	char path[200];
	unsigned int i;
	long n;

	if (strcmp(name, "region/enabled") && strcmp(name, "cpb/enabled"))
		return;
	if (is_on("region/enabled") || is_on("cpb/enabled"))
		return;
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		snprintf(path, sizeof(path), COHORT "/%s", counts[i]);
		n = get_long(path, 0);
		if (n)
			die("%s is %ld after %s was switched off", counts[i], n, name);
	}
}

static void want_answer(struct knob *k, const char *text)
{
	char now[300];
	int err = put(k->path, "%s", text);

	if (err == -EINVAL && k->type == SWITCH && !strcmp(text, "1") &&
	    ((!strcmp(k->name, "region/enabled") && is_on("cpb/enabled")) ||
	     (!strcmp(k->name, "cpb/enabled") && is_on("region/enabled"))))
		return;		/* they exclude each other */
	if (!is_answer(err))
		die("%s: %s: %s", k->name, text, strerror(-err));
	turned += !err;
	if (!err && k->readable && (k->type == NUMBER || k->type == SWITCH)) {
		get_text(k->path, now, sizeof(now));
		/* Of a size in KiB a part of a page is dropped. */
		if (llabs(strtoll(now, NULL, 10) - strtoll(text, NULL, 10)) > 3)
			die("%s: %s was taken, and it is %s", k->name, text, now);
	}
	if (!err && k->type == SWITCH && !strcmp(text, "0"))
		want_all_back(k->name);
}

static void garbage(struct knob *k)
{
	static const char *const texts[] = {
		"garbage", "-1", "\n", " ", "xyzzy 1", "?", "/", "%d", "-", "--1", "\t\n", "{}",
	};
	static const char *const numbers[] = {
		"1 2", "1.5", "1e3", "0x", "1,2", "12a", "-9223372036854775808",
	};
	char text[4096];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(texts); i++)
		refuse_text(k, texts[i]);
	for (i = 0; k->type == NUMBER && i < ARRAY_SIZE(numbers); i++)
		refuse_text(k, numbers[i]);
	memset(text, 'A', sizeof(text));
	want_refused(k, text, 4095, "4095 letters");
	memset(text, 0, sizeof(text));
	want_refused(k, text, 16, "16 zeros");
	if (k->type == SWITCH) {
		refuse_text(k, "2");
		refuse_text(k, "q");
	}
	if (k->type == NUMBER) {
		memset(text, '9', 4000);
		want_refused(k, text, 4000, "4000 digits");
	}
}

static void bounds(struct knob *k)
{
	static const char *const large[] = {
		"2147483648", "4294967296", "4294967297", "9223372036854775807",
		"9223372036854775808", "18446744073709551615", "18446744073709551616",
		"340282366920938463463374607431768211456",
	};
	char text[64];
	unsigned int i;
	long long values[] = { k->min, k->max, k->min + (k->max - k->min) / 2, 0 };

	for (i = 0; i < ARRAY_SIZE(large); i++)
		refuse_text(k, large[i]);
	snprintf(text, sizeof(text), "%lld", k->max + 8);
	refuse_text(k, text);
	if (k->min > 0) {
		snprintf(text, sizeof(text), "%lld", k->min - 1);
		refuse_text(k, text);
	}
	for (i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "%lld", values[i] & (k->max > 100000 ? ~3LL : ~0LL));
		want_answer(k, text);
	}
}

static void sizes(struct knob *k)
{
	static const char *const bad[] = {
		"garbage", "-1", "1", "4097", "1MM", "K", "1Q", "0x", "64M@", "99999999999999G",
		"18446744073709551615", "18446744073709551616", "64M 1", "@", "\n",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		/* What is announced need be no whole page, and may be more than there is. */
		if (!strcmp(k->name, "pcpa/announce") &&
		    (!strcmp(bad[i], "1") || !strcmp(bad[i], "4097") || strstr(bad[i], "99G") ||
		     !strcmp(bad[i], "18446744073709551615")))
			continue;
		refuse_text(k, bad[i]);
	}
	if (!strcmp(k->name, "pcpa/announce")) {
		refuse_text(k, "0");
		want_answer(k, "16M");
	} else if (!strcmp(k->name, "pcpa/user_max")) {
		want_answer(k, "64M");
		want_answer(k, "0");
	} else {
		refuse_text(k, "1K");
		refuse_text(k, "1024G");
	}
}

static void choices(struct knob *k)
{
	if (!strcmp(k->name, "cpb/refill")) {
		want_answer(k, "remnants");
		want_answer(k, "split");
	}
}

static int restore(struct knob *k)
{
	return k->readable ? put(k->path, "%s", k->before) : 0;
}

/* Values that are allowed or not, now and then the own one. */
static void turn(struct knob *k)
{
	static const char *const area[] = { "0", "8M", "32M", "64M", "garbage", "3M" };
	char text[64], line[256], *p;
	int err;

	switch (k->type) {
	case NUMBER:
		snprintf(text, sizeof(text), "%lld",
			 k->min + (long long)below(k->max - k->min + 1));
		break;
	case SWITCH:
		snprintf(text, sizeof(text), "%d", one_in(2));
		break;
	case SIZE:
		snprintf(text, sizeof(text), "%s", area[below(6)]);
		break;
	case CHOICE:
		if (!strcmp(k->name, "cpb/refill")) {
			snprintf(text, sizeof(text), "%s", one_in(2) ? "split" : "remnants");
			break;
		}
		/* A name of the layout: NAME:SIZE,... */
		if (get_text(COHORT "/vnode/layout", line, sizeof(line)) <= 0)
			return;
		p = one_in(2) && strchr(line, ',') ? strchr(line, ',') + 1 : line;
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(p, ":"), p);
		break;
	default:
		snprintf(text, sizeof(text), "%.60s", k->before);
	}
	err = put(k->path, "%s", text);
	turned += !err;
	refused += !!err;
	if (err && !is_answer(err) && err != -EINVAL)
		die("%s: %s: %s", k->name, text, strerror(-err));
	/* Without kswapd, or at another's default, no longer than for a look. */
	if (!strcmp(k->name, "reclaim/kswapd") || !strcmp(k->name, "vnode/default")) {
		nap_ms(50);
		restore(k);
	}
}

/* Files that can only be read are read; none may take a word. */
static void try_read_only(void)
{
	char text[8192];
	int i;

	for (i = 0; i < nr_read_only; i++) {
		if (get_text(read_only[i], text, sizeof(text)) < 0)
			die("%s cannot be read", read_only[i]);
		if (!put(read_only[i], "0"))
			die("%s could be written", read_only[i]);
	}
}

/* The order of sets says EBUSY to all while they are on. */
static bool is_busy(const struct knob *k)
{
	return !strcmp(k->name, "cpb/order") && is_on("cpb/enabled");
}

static void try_knob(struct knob *k)
{
	int err = restore(k);

	if (err && !(err == -EBUSY && is_busy(k)) && err != -ENOSYS)
		die("%s does not take its own value %s: %s", k->name, k->before, strerror(-err));
	if (is_busy(k))
		return;
	switch (k->type) {
	case NUMBER:
		garbage(k);
		bounds(k);
		break;
	case SWITCH:
		garbage(k);
		want_answer(k, "1");
		want_answer(k, "0");
		want_answer(k, "1");
		break;
	case SIZE:
		sizes(k);
		break;
	case CHOICE:
		garbage(k);
		choices(k);
		break;
	default:
		say("%s is new to this program", k->name);
		refuse_text(k, "\n\n?");
	}
	if (restore(k) && strcmp(k->name, "cpb/order"))
		die("%s cannot be %s again", k->name, k->before);
}

/* Under load, whatever comes. */
static void turn_all(long seconds)
{
	uint64_t end = now_ms() + seconds * 1000;
	char text[8192];

	while (now_ms() < end) {
		turn(&knobs[below(nr_knobs)]);
		if (one_in(3))
			restore(&knobs[below(nr_knobs)]);
		if (one_in(4))
			get_text(read_only[below(nr_read_only)], text, sizeof(text));
		if (one_in(8))
			compact();
		if (one_in(4))
			load_wait(1);
		load_lives();
		nap_ms(below(20));
	}
}

/* What excludes each other is switched off first; the order of sets is written while they are. */
static void restore_all(void)
{
	int k;

	for (k = 0; k < nr_knobs; k++)
		if (knobs[k].type == SWITCH && !strcmp(knobs[k].before, "0"))
			restore(&knobs[k]);
	put(COHORT "/cpb/enabled", "0");
	for (k = 0; k < nr_knobs; k++)
		if (!strcmp(knobs[k].name, "cpb/order"))
			restore(&knobs[k]);
	for (k = 0; k < nr_knobs; k++)
		restore(&knobs[k]);
}

/* Memory for an area need not be found again; all else is as it was. */
static bool is_as_before(struct knob *k)
{
	char now[300] = "";
	int i;

	if (!k->readable)
		return true;
	for (i = 0; i < 20; i++) {
		get_text(k->path, now, sizeof(now));
		if (!strcmp(now, k->before))
			return true;
		put("/proc/sys/vm/drop_caches", "3");
		compact();
		restore(k);
		nap_ms(200);
	}
	if (k->type != SIZE)
		die("%s is %s, and was %s", k->name, now, k->before);
	say("%s is %s, and was %s", k->name, now, k->before);
	return false;
}

int main(int argc, char **argv)
{
	unsigned long lost = 0;
	int k;

	begin("knobs", arg(argc, argv, 2, 35));
	if (access(COHORT, F_OK))
		skip("no " COHORT);
	if (nftw(COHORT, visit, 16, FTW_PHYS))
		die_errno("nftw");
	if (!nr_knobs || !nr_read_only)
		die("%d files can be written, %d only be read", nr_knobs, nr_read_only);
	try_read_only();
	for (k = 0; k < nr_knobs; k++)
		try_knob(&knobs[k]);
	load_start(4, budget_mb() / 12, 64);
	turn_all(arg(argc, argv, 1, 20));
	restore_all();
	load_end();
	for (k = 0; k < nr_knobs; k++)
		lost += !is_as_before(&knobs[k]);
	figure("knobs", nr_knobs, "");
	figure("knobs_turned", turned, "");
	figure("knobs_refused", refused, "");
	figure("areas_lost", lost, "");
	return 0;
}
