// SPDX-License-Identifier: GPL-2.0
/*
 * Measures by which device makers judge a phone, where the workload asks for them: frames
 * that come late while the app on the screen scrolls, memory that is available, major
 * faults by the work they were met in, and the apps that are alive when all had their turn.
 */
#include <pthread.h>

#include "apps/judge.h"
#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"

#define SCROLL_STREAM 0xf	/* of random numbers, beside those of the commands */

/* One at a time in a process: the thread that draws, and its frames. */
static struct {
	pthread_t thread;
	struct app *app;
	uint64_t late, worst_ns;
} scroll;

/* A run of pages of a file, most often in the hot part. */
static void show_file(const struct mapped *m, struct rng *r, uint64_t pages)
{
	uint64_t at = rng_skewed(r, m->pages), i;

	for (i = 0; i < pages && at + i < m->pages; i++)
		(void)m->base[(at + i) * PAGE];
}

static void draw(struct rng *r, uint64_t frame)
{
	const struct judge *judge = &sh->conf.judge;

	heap_show(&scroll.app->heap, frame * judge->heap_pages, judge->heap_pages);
	show_file(&scroll.app->code, r, judge->file_pages / 2);
	show_file(&scroll.app->res, r, judge->file_pages / 2);
}

/* The screen waits for no frame: after a late one the next is due as it was before. */
static void *scroll_on(void *unused)
{
	uint64_t due = now_ns(), now, frame;
	struct rng r;

	rng_seed(&r, sh->conf.seed,
		 ((uint64_t)scroll.app->launch << 16) | (scroll.app->slot << 4) | SCROLL_STREAM);
	for (frame = 0; frame < sh->conf.judge.frames; frame++) {
		draw(&r, frame);
		due += sh->conf.judge.frame_us * NSEC_PER_USEC;
		now = now_ns();
		if (now <= due) {
			sleep_until(due);
			continue;
		}
		scroll.late++;
		if (now - due > scroll.worst_ns)
			scroll.worst_ns = now - due;
	}
	return unused;
}

/* Beside the work of the app's other thread. */
void scroll_begin(struct app *a)
{
	if (!sh->conf.judge.frames)
		return;
	scroll.app = a;
	scroll.late = scroll.worst_ns = 0;
	if (pthread_create(&scroll.thread, NULL, scroll_on, NULL))
		fatal("%s: no thread to scroll with", a->prof->name);
}

void scroll_end(struct app *a)
{
	if (!sh->conf.judge.frames)
		return;
	pthread_join(scroll.thread, NULL);
	record(RECORD_SCROLL, (unsigned long long)now_ns(), a->launch,
	       a->prof->name, (unsigned long long)sh->conf.judge.frames,
	       (unsigned long long)scroll.late, (unsigned long long)scroll.worst_ns);
}

static uint64_t available_kb(void)
{
	char text[4096];

	meminfo_read(text, sizeof(text));
	return meminfo_kb(text, "MemAvailable:");
}

/* Beside each sample; `apps` are those alive, the one on the screen included. */
void judge_record(uint32_t launch, int apps)
{
	static int rounds;

	if (rounds < sh->conf.nr_rounds && sh->conf.round[rounds] == launch) {
		record(RECORD_ROUND, launch, apps);
		rounds++;
	}
	if (!sh->conf.judge.frames)
		return;
	record(RECORD_JUDGE, launch,
	       (unsigned long long)available_kb(),
	       (unsigned long long)sh->majflt[FAULTS_FOREGROUND],
	       (unsigned long long)sh->majflt[FAULTS_BACKGROUND],
	       (unsigned long long)sh->majflt[FAULTS_SYSTEM]);
}
