// SPDX-License-Identifier: GPL-2.0
/*
 * Programs of the distribution, run after the launches on a phone whose memory
 * is mostly taken: benchmarks as they are, with the libraries they came with.
 * Their output goes to the host, which reads the result out of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/files.h"
#include "base/json.h"
#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "experiments/lib.h"
#include "experiments/programs.h"
#include "system/am.h"

#ifdef __aarch64__
#define LOADER "/data/opt/lib/ld-linux-aarch64.so.1"
#else
#define LOADER "/data/opt/lib/ld-linux-x86-64.so.2"
#endif
#define LIBRARIES "/data/opt/lib"
#define BIN "/data/opt/bin/"
#define WORK "/data/bench"
#define MAX_WORDS 32
#define MAX_OUTPUT (16 * KB)

struct memory_state {
	uint64_t free, file, in_kb, out_kb;
};

static void look(struct memory_state *m)
{
	static char text[16384];

	if (slurp("/proc/vmstat", text, sizeof(text)) < 0)
		fatal("cannot read /proc/vmstat: %s", strerror(errno));
	m->free = vmstat_value(text, "nr_free_pages");
	m->file = vmstat_cache(text);
	m->in_kb = vmstat_value(text, "pgpgin");
	m->out_kb = vmstat_value(text, "pgpgout");
}

/* Memory that is taken for as long as the benchmarks run. */
static void hold(uint64_t kb)
{
	uint64_t pages = kb * KB / PAGE, i;
	uint32_t *ready = experiment_share(PAGE);
	pid_t pid;
	char *p;

	if (!kb)
		return;
	pid = experiment_fork("holder", 0, 0);
	if (pid) {
		experiment_wait(ready, 1, &pid, 1);
		return;
	}
	p = experiment_map(pages);
	for (i = 0; i < pages; i++)
		*(volatile uint64_t *)(p + i * PAGE) = i + 1;
	bump(ready);
	for (;;)
		pause();
}

/* As after a boot: no page cache but of media. */
static void refresh(void)
{
	int err;
	struct rng r;

	sync();
	err = spit("/proc/sys/vm/drop_caches", "3");
	if (err)
		fatal("drop_caches: %s", strerror(-err));
	rng_seed(&r, sh->conf.seed, 3);
	media_read(&r, sh->conf.exp.fill_kb);
	experiment_quiet(sh->conf.exp.quiet_ms);
}

static void __attribute__((noreturn)) become(char *line, int out)
{
	char *argv[MAX_WORDS + 4] = { LOADER, "--library-path", LIBRARIES }, *word, *save;
	static char program[64];
	int n = 3;

	for (word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (n == MAX_WORDS + 3)
			fatal("programs: too many words");
		argv[n++] = word;
	}
	snprintf(program, sizeof(program), BIN "%s", argv[3]);
	argv[3] = program;
	dup2(out, 1);
	dup2(out, 2);
	execv(LOADER, argv);
	fatal("%s: %s", LOADER, strerror(errno));
}

static size_t take_output(int fd, char *text, size_t size)
{
	char drain[512];
	size_t got = 0;
	ssize_t n;

	while ((n = got < size - 1 ? read(fd, text + got, size - 1 - got) :
				     read(fd, drain, sizeof(drain))) > 0)
		if (got < size - 1)
			got += n;
	text[got] = '\0';
	return got;
}

static void report(const struct program *p, uint64_t ns, const char *output,
		   const struct memory_state *a, const struct memory_state *b)
{
	static char text[6 * MAX_OUTPUT];

	json_text(text, sizeof(text), output);
	record(RECORD_BENCH, (unsigned long long)now_ns(), p->name, (unsigned long long)ns,
	       (unsigned long long)a->free, (unsigned long long)b->free,
	       (unsigned long long)a->file, (unsigned long long)b->file,
	       (unsigned long long)(b->in_kb - a->in_kb),
	       (unsigned long long)(b->out_kb - a->out_kb), text);
	records_flush();
}

static void run(const struct program *p)
{
	static char output[MAX_OUTPUT];
	char line[sizeof(p->line)];
	struct memory_state before, after;
	int out[2], status;
	uint64_t t;
	pid_t pid;

	note("program %s", p->name);
	records_flush();		/* a sign of life: it may take its time */
	if (p->fresh)
		refresh();
	if (pipe2(out, O_CLOEXEC))
		fatal("pipe: %s", strerror(errno));
	memcpy(line, p->line, sizeof(line));
	look(&before);
	t = now_ns();
	pid = experiment_fork(p->name, 0, sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (!pid)
		become(line, out[1]);
	close(out[1]);
	take_output(out[0], output, sizeof(output));
	close(out[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		fatal("%s: status %d: %.300s", p->name, status, output);
	t = now_ns() - t;
	look(&after);
	if (p->counts)
		report(p, t, output, &before, &after);
	am_notice();
}

void programs_run(void)
{
	int i;

	mkdir(WORK, 0755);
	if (chdir(WORK))
		fatal(WORK ": %s", strerror(errno));
	hold(sh->conf.exp.hold_kb);
	for (i = 0; i < sh->conf.nr_programs; i++)
		run(&sh->conf.program[i]);
}
