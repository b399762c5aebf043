// SPDX-License-Identifier: GPL-2.0
/*
 * /phone.conf, written by the lab: one statement a line.
 *
 *   phone NAME | seed N | launches N | time virtual|real
 *   write PATH VALUE          a policy's knob, applied before the phone starts
 *   swap DEVICE BYTES         swapped to; incompressible bytes of a heap page
 *   set KEY N                 a setting; every key of the table must appear
 *   minfree ADJ KB            lmkd level, ascending adj
 *   role NAME none | role NAME vnode VNODE | role NAME cgroup MIN_KB LOW_KB MAX_KB
 *   native ROLE               role of the processes that init starts
 *   camera APP HEAP KB PIECE_KB WOKEN [announce]   buffers of a start of this app, from
 *                             what heap, and how many other processes work meanwhile
 *   entitled                  what makes buffers, for the screen and for a camera, is a client
 *                             of the page-cache-preferred area
 *   judge FRAMES US HEAP_PAGES FILE_PAGES   scrolling in each use, and what is recorded of it
 *   experiment KIND KEY=N...  after the launches; KIND exit, throughput,
 *                             bench, orders or scale
 *   program NAME WHEN ARGV...       of a bench; WHEN prepare, fresh or next
 *   proc NAME CLASS ADJ KEY=N...    a process started at boot
 *   app NAME KEY=N...         an application (home=1: the launcher)
 *   launch NAME               the sequence, in order
 *   round                     all apps had their turn with the launch before
 *
 * Strict: anything unknown or missing ends the run, so that the lab and the
 * guest cannot drift apart unnoticed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/json.h"
#include "base/records.h"
#include "base/units.h"

struct key {
	const char *name;
	size_t offset;
};

#define SET(field) { #field, offsetof(struct settings, field) }
static const struct key set_keys[] = {
	SET(zygote_heap_kb), SET(zygote_cow_kb), SET(foreground_ms),
	SET(home_ms), SET(burst_pages), SET(think_us), SET(extent_pages),
	SET(run_pages), SET(services_woken), SET(service_churn_kb),
	SET(service_file_kb), SET(service_db_writes), SET(cached_woken),
	SET(cached_churn_kb), SET(system_file_kb), SET(churn_forks),
	SET(churn_threads), SET(churn_pipes), SET(churn_files),
	SET(churn_pool), SET(gpu_piece_kb), SET(lmkd_psi), SET(lmkd_poll_ms),
	SET(lmkd_idle_ms), SET(lmkd_psi_partial_ms), SET(lmkd_psi_complete_ms),
	SET(lmkd_thrashing_pct), SET(normal_restart), SET(launch_timeout_ms), SET(fault_bench_mb),
	SET(map_cell_pages), SET(maps), SET(time_scale), SET(pressure_from), SET(pressure_nice),
	SET(pressure_cpus),
	SET(scan_kb), SET(watch_kb), SET(drop_caches_at),
};

#define PROF(field) { #field, offsetof(struct profile, field) }
static const struct key prof_keys[] = {
	PROF(heap_kb), PROF(heap_max_kb), PROF(grow_kb), PROF(churn_pct),
	PROF(trim_pct), PROF(code_kb), PROF(res_kb), PROF(cold_file_kb),
	PROF(warm_file_kb), PROF(buf_min_kb), PROF(buf_max_kb),
	PROF(piece_min_kb), PROF(piece_max_kb), PROF(piece_align_kb),
	PROF(gpu_kb), PROF(db_writes), PROF(stream_kb), PROF(threads), PROF(messages),
	PROF(measured),
	PROF(flood_kb), PROF(zero_kb), PROF(zero_every), PROF(burn_ms),
};

#define EXP(field) { #field, offsetof(struct experiment, field) }
static const struct key exit_keys[] = {
	EXP(programs), EXP(pages), EXP(period_us), EXP(cpus), EXP(quiet_ms),
};

static const struct key throughput_keys[] = {
	EXP(pages), EXP(rounds), EXP(quiet_ms),
};

static const struct key bench_keys[] = {
	EXP(hold_kb), EXP(fill_kb), EXP(quiet_ms),
};

static const struct key orders_keys[] = {
	EXP(pages), EXP(fill_kb), EXP(quiet_ms),
};

static const struct key scale_keys[] = {
	EXP(pages), EXP(rounds), EXP(turns), EXP(tasks), EXP(step), EXP(quiet_ms),
};

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t number(const char *text, const char *what)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 10);
	/* strtoull() makes a large number of a negative one. */
	if (end == text || *end || errno || *text == '-')
		fatal("phone.conf: %s: not a number: %s", what, text);
	return v;
}

/* Names stand in records as they are, so those that JSON has otherwise are refused. */
static void take_name(char *to, size_t size, const char *name)
{
	if (!json_plain(name) || snprintf(to, size, "%s", name) >= (int)size)
		fatal("phone.conf: bad name %s", name);
}

static void put(const struct key *keys, size_t n, void *obj, const char *name,
		const char *value, uint64_t *seen)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(keys[i].name, name))
			break;
	if (i == n)
		fatal("phone.conf: unknown key %s", name);
	*(uint64_t *)((char *)obj + keys[i].offset) = number(value, name);
	if (seen)
		*seen |= 1ULL << i;
}

static enum class class_of(const char *name)
{
	static const char *const names[] = { "persistent", "service", "normal" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return i;
	fatal("phone.conf: unknown class %s", name);
}

static struct profile *new_profile(struct conf *conf, const char *name)
{
	struct profile *p = &conf->prof[conf->nr_prof];

	if (!name || conf->nr_prof == MAX_SLOTS)
		fatal("phone.conf: bad or too many processes");
	conf->nr_prof++;
	take_name(p->name, sizeof(p->name), name);
	p->role = NO_ROLE;
	p->zero_every = 1;
	return p;
}

static int role_index(const struct conf *conf, const char *name)
{
	int i;

	for (i = 0; i < conf->nr_roles; i++)
		if (!strcmp(conf->role[i].name, name))
			return i;
	fatal("phone.conf: unknown role %s", name);
}

/* role NAME KIND ... */
static void do_role(struct conf *conf, char **save)
{
	struct role *role = &conf->role[conf->nr_roles];
	const char *name = strtok_r(NULL, " ", save), *kind = strtok_r(NULL, " ", save);
	const char *a = strtok_r(NULL, " ", save), *b = strtok_r(NULL, " ", save);
	const char *c = strtok_r(NULL, " ", save);

	if (!name || !kind || conf->nr_roles == MAX_ROLES)
		fatal("phone.conf: bad or too many roles");
	conf->nr_roles++;
	take_name(role->name, sizeof(role->name), name);
	if (!strcmp(kind, "vnode") && a) {
		role->kind = ROLE_VNODE;
		take_name(role->vnode, sizeof(role->vnode), a);
	} else if (!strcmp(kind, "cgroup") && a && b && c) {
		role->kind = ROLE_CGROUP;
		role->min_kb = number(a, name);
		role->low_kb = number(b, name);
		role->max_kb = number(c, name);
	} else if (strcmp(kind, "none")) {
		fatal("phone.conf: role %s: bad kind %s", name, kind);
	}
}

/* The KEY=N words that are left on the line. */
static void profile_words(struct conf *conf, struct profile *p, char **save)
{
	char *word, *eq;

	while ((word = strtok_r(NULL, " ", save))) {
		eq = strchr(word, '=');
		if (!eq)
			fatal("phone.conf: expected KEY=N: %s", word);
		*eq = '\0';
		if (!strcmp(word, "home"))
			p->home = number(eq + 1, word);
		else if (!strcmp(word, "role"))
			p->role = role_index(conf, eq + 1);
		else
			put(prof_keys, ARRAY_SIZE(prof_keys), p, word, eq + 1, NULL);
	}
}

static void do_proc(struct conf *conf, char **save)
{
	struct profile *p = new_profile(conf, strtok_r(NULL, " ", save));
	const char *class = strtok_r(NULL, " ", save);
	const char *adj = strtok_r(NULL, " ", save);

	if (!class || !adj)
		fatal("phone.conf: proc %s: class and adj wanted", p->name);
	p->class = class_of(class);
	p->adj = atoi(adj);
	profile_words(conf, p, save);
}

static void do_app(struct conf *conf, char **save)
{
	struct profile *p = new_profile(conf, strtok_r(NULL, " ", save));

	p->class = CLASS_APP;
	profile_words(conf, p, save);
}

static void experiment_words(struct experiment *exp, const struct key *keys, size_t n,
			     char **save)
{
	uint64_t seen = 0;
	char *word, *eq;

	while ((word = strtok_r(NULL, " ", save))) {
		eq = strchr(word, '=');
		if (!eq)
			fatal("phone.conf: expected KEY=N: %s", word);
		*eq = '\0';
		put(keys, n, exp, word, eq + 1, &seen);
	}
	if (seen != (1ULL << n) - 1)
		fatal("phone.conf: experiment: not every key is there");
}

#define KIND(kind, name, keys) { kind, name, keys, ARRAY_SIZE(keys) }
static const struct {
	enum experiment_kind kind;
	const char *name;
	const struct key *keys;
	size_t n;
} experiments[] = {
	KIND(EXPERIMENT_EXIT, "exit", exit_keys),
	KIND(EXPERIMENT_THROUGHPUT, "throughput", throughput_keys),
	KIND(EXPERIMENT_BENCH, "bench", bench_keys),
	KIND(EXPERIMENT_ORDERS, "orders", orders_keys),
	KIND(EXPERIMENT_SCALE, "scale", scale_keys),
};

static void do_experiment(struct conf *conf, char **save)
{
	const char *kind = strtok_r(NULL, " ", save);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(experiments); i++)
		if (kind && !strcmp(kind, experiments[i].name))
			break;
	if (i == ARRAY_SIZE(experiments))
		fatal("phone.conf: unknown experiment %s", kind ? kind : "");
	conf->exp.kind = experiments[i].kind;
	experiment_words(&conf->exp, experiments[i].keys, experiments[i].n, save);
}

/* prepare: its result does not count; fresh: the page cache is emptied before it. */
static void do_program(struct conf *conf, char **save)
{
	struct program *p = &conf->program[conf->nr_programs];
	const char *name = strtok_r(NULL, " ", save), *when = strtok_r(NULL, " ", save);

	if (!name || !when || !*save || conf->nr_programs == MAX_BENCHES)
		fatal("phone.conf: bad or too many programs");
	conf->nr_programs++;
	take_name(p->name, sizeof(p->name), name);
	p->fresh = !strcmp(when, "fresh");
	p->counts = strcmp(when, "prepare");
	if (snprintf(p->line, sizeof(p->line), "%s", *save) >= (int)sizeof(p->line))
		fatal("phone.conf: program %s: too long", name);
}

static int app_index(const struct conf *conf, const char *name)
{
	int i;

	for (i = 0; i < conf->nr_prof; i++)
		if (conf->prof[i].class == CLASS_APP && !strcmp(conf->prof[i].name, name))
			return i;
	fatal("phone.conf: unknown app %s", name);
}

static void do_launch(struct conf *conf, const char *name, uint64_t *n)
{
	if (*n == MAX_LAUNCHES)
		fatal("phone.conf: too many launches");
	conf->launch[(*n)++] = app_index(conf, name);
}

/* After the apps: it names one of them. */
static void do_camera(struct conf *conf, char **save)
{
	const char *app = strtok_r(NULL, " ", save), *heap = strtok_r(NULL, " ", save);
	const char *kb = strtok_r(NULL, " ", save), *piece = strtok_r(NULL, " ", save);
	const char *woken = strtok_r(NULL, " ", save), *word = strtok_r(NULL, " ", save);

	if (!app || !heap || !kb || !piece || !woken || (word && strcmp(word, "announce")))
		fatal("phone.conf: camera: app, heap, kb, piece and woken wanted");
	conf->camera.app = app_index(conf, app);
	take_name(conf->camera.heap, sizeof(conf->camera.heap), heap);
	conf->camera.bytes = number(kb, "camera") * KB;
	conf->camera.piece = number(piece, "camera") * KB;
	conf->camera.woken = number(woken, "camera");
	conf->camera.announce = word;
	if (!conf->camera.piece)
		fatal("phone.conf: camera: a piece must not be empty");
}

static void do_judge(struct conf *conf, char **save)
{
	uint64_t *const field[] = {
		&conf->judge.frames, &conf->judge.frame_us, &conf->judge.heap_pages,
		&conf->judge.file_pages,
	};
	const char *word;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(field); i++) {
		word = strtok_r(NULL, " ", save);
		if (!word)
			fatal("phone.conf: judge: %zu numbers wanted", ARRAY_SIZE(field));
		*field[i] = number(word, "judge");
	}
}

static void do_round(struct conf *conf, uint64_t launches)
{
	if (conf->nr_rounds == MAX_ROUNDS)
		fatal("phone.conf: too many rounds");
	conf->round[conf->nr_rounds++] = launches;
}

/* The path is one word, the value is the rest of the line. */
static void do_write(struct conf *conf, char **save)
{
	struct write_line *w = &conf->write[conf->nr_write];
	const char *path = strtok_r(NULL, " ", save);

	if (!path || !*save || conf->nr_write == MAX_WRITES)
		fatal("phone.conf: bad or too many writes");
	snprintf(w->path, sizeof(w->path), "%s", path);
	snprintf(w->value, sizeof(w->value), "%s", *save);
	conf->nr_write++;
}

static void do_swap(struct conf *conf, char **save)
{
	const char *dev = strtok_r(NULL, " ", save);
	const char *bytes = strtok_r(NULL, " ", save);

	if (!dev || !bytes)
		fatal("phone.conf: swap: device and bytes wanted");
	snprintf(conf->swap, sizeof(conf->swap), "%s", dev);
	conf->fill_bytes = number(bytes, "swap");
	if (conf->fill_bytes > PAGE - sizeof(uint64_t))
		fatal("phone.conf: swap: more bytes than a page has");
}

static void do_minfree(struct conf *conf, char **save, int *n)
{
	const char *adj = strtok_r(NULL, " ", save);
	const char *kb = strtok_r(NULL, " ", save);

	if (!adj || !kb || *n == MAX_MINFREE)
		fatal("phone.conf: bad minfree");
	conf->set.minfree_adj[*n] = number(adj, "minfree");
	conf->set.minfree_kb[(*n)++] = number(kb, "minfree");
}

struct parse {
	uint64_t seen;		/* bit i: set_keys[i] was given */
	uint64_t launches;
	int minfree;
};

static void do_line(struct conf *conf, struct parse *ps, char *line)
{
	char *save, *verb = strtok_r(line, " ", &save), *a;

	if (!verb || *verb == '#')
		return;
	if (!strcmp(verb, "write"))
		return do_write(conf, &save);
	if (!strcmp(verb, "proc"))
		return do_proc(conf, &save);
	if (!strcmp(verb, "app"))
		return do_app(conf, &save);
	if (!strcmp(verb, "role"))
		return do_role(conf, &save);
	if (!strcmp(verb, "experiment"))
		return do_experiment(conf, &save);
	if (!strcmp(verb, "program"))
		return do_program(conf, &save);
	if (!strcmp(verb, "entitled"))
		return (void)(conf->entitled = true);
	if (!strcmp(verb, "camera"))
		return do_camera(conf, &save);
	if (!strcmp(verb, "judge"))
		return do_judge(conf, &save);
	if (!strcmp(verb, "round"))
		return do_round(conf, ps->launches);
	if (!strcmp(verb, "swap"))
		return do_swap(conf, &save);
	if (!strcmp(verb, "minfree"))
		return do_minfree(conf, &save, &ps->minfree);
	a = strtok_r(NULL, " ", &save);
	if (!a)
		fatal("phone.conf: %s: value missing", verb);
	if (!strcmp(verb, "launch"))
		do_launch(conf, a, &ps->launches);
	else if (!strcmp(verb, "phone"))
		take_name(conf->name, sizeof(conf->name), a);
	else if (!strcmp(verb, "seed"))
		conf->seed = number(a, verb);
	else if (!strcmp(verb, "launches"))
		conf->launches = number(a, verb);
	else if (!strcmp(verb, "native"))
		conf->native_role = role_index(conf, a);
	else if (!strcmp(verb, "time"))
		conf->real_time = !strcmp(a, "real");
	else if (!strcmp(verb, "set"))
		put(set_keys, ARRAY_SIZE(set_keys), &conf->set, a, save, &ps->seen);
	else
		fatal("phone.conf: unknown word %s", verb);
}

static void check(const struct conf *conf, const struct parse *ps)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(set_keys); i++)
		if (!(ps->seen & 1ULL << i))
			fatal("phone.conf: missing: set %s", set_keys[i].name);
	if (ps->launches != conf->launches)
		fatal("phone.conf: %llu launches promised, %llu listed",
		      (unsigned long long)conf->launches,
		      (unsigned long long)ps->launches);
	if (ps->minfree != MAX_MINFREE)
		fatal("phone.conf: %d minfree levels wanted", MAX_MINFREE);
	if (!conf->set.time_scale || !conf->set.burst_pages || !conf->set.run_pages)
		fatal("phone.conf: time_scale, burst_pages, run_pages must not be 0");
}

void conf_load(struct conf *conf, const char *path)
{
	char line[1024];
	struct parse ps = { 0 };
	FILE *f = fopen(path, "re");

	if (!f)
		fatal("%s: %s", path, strerror(errno));
	conf->native_role = NO_ROLE;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		do_line(conf, &ps, line);
	}
	fclose(f);
	check(conf, &ps);
}
