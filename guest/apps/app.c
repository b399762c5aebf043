// SPDX-License-Identifier: GPL-2.0
/*
 * An application: cold start, resume, use in the foreground, leaving it, and
 * the little work of a cached app that is woken to sync.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "apps/app.h"
#include "apps/buffers.h"
#include "apps/camera.h"
#include "apps/judge.h"
#include "apps/messages.h"
#include "base/shared.h"

#define STEPS 8			/* a start mixes its kinds of work in turns */
#define STACK (64 * KB)

static uint64_t pages(uint64_t kb)
{
	return kb * KB / PAGE;
}

static void *sleeper(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* Threads that wait for work: kernel stacks, task structs, user stacks. */
static void spawn_threads(uint64_t n)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	while (n--)
		if (pthread_create(&t, &attr, sleeper, NULL))
			break;
	pthread_attr_destroy(&attr);
}

static void open_files(struct app *a)
{
	char path[96];

	snprintf(path, sizeof(path), "/data/app/%s/code", a->prof->name);
	file_open(&a->code, path);
	snprintf(path, sizeof(path), "/data/app/%s/res", a->prof->name);
	file_open(&a->res, path);
}

static void read_files(struct app *a, struct rng *r, uint64_t kb)
{
	file_touch(&a->code, r, pages(kb) / 2);
	file_read(&a->res, r, pages(kb) / 4);
	file_touch(&system_image, r, pages(kb) / 4);
}

/* Cold start: code, heap, resources and surfaces come up together. */
void app_start(struct app *a, struct rng *r)
{
	const struct profile *p = a->prof;
	int step;

	heap_init(&a->heap, p->heap_max_kb);
	open_files(a);
	spawn_threads(p->threads);
	for (step = 0; step < STEPS; step++) {
		read_files(a, r, p->cold_file_kb / STEPS);
		heap_grow(&a->heap, r, pages(p->heap_kb) / STEPS);
		if (step == STEPS / 2)
			buffers_build(a, r, 1, 4);
	}
	messages_show(p);
	camera_open(a->slot);
	buffers_build(a, r, 3, 4);	/* the first frame */
	db_write(p->name, r, p->db_writes);
}

void app_resume(struct app *a, struct rng *r)
{
	read_files(a, r, a->prof->warm_file_kb / 2);
	heap_touch(&a->heap, r);
	messages_show(a->prof);
	camera_open(a->slot);
	buffers_build(a, r, 1, 1);
	read_files(a, r, a->prof->warm_file_kb / 2);
}

/* Use after the launch: grow, collect garbage, write the database. */
void app_use(struct app *a, struct rng *r)
{
	const struct profile *p = a->prof;
	int step;

	scroll_begin(a);
	for (step = 0; step < STEPS; step++) {
		heap_grow(&a->heap, r, pages(p->grow_kb) / STEPS);
		heap_churn(&a->heap, r, a->heap.used * p->churn_pct / 100 / STEPS);
		file_touch(&a->code, r, pages(p->warm_file_kb) / STEPS);
	}
	content_write(p->name, r, a->launch, pages(p->stream_kb));
	if (sh->conf.set.watch_kb && !camera_is(a->slot))
		media_read(r, sh->conf.set.watch_kb);
	db_write(p->name, r, p->db_writes);
	scroll_end(a);
}

void app_background(struct app *a, struct rng *r)
{
	heap_trim(&a->heap, r, a->heap.used * a->prof->trim_pct / 100);
	db_write(a->prof->name, r, 1);
}

void app_work(struct app *a, struct rng *r)
{
	heap_churn(&a->heap, r, pages(sh->conf.set.cached_churn_kb));
	db_write(a->prof->name, r, 1);
}
