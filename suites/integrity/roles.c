// SPDX-License-Identifier: GPL-2.0
/*
 * roles ROUNDS [SEED]
 *
 * A phone's life: apps that come to the foreground and go to the background as oom_score_adj says,
 * are killed there and started anew from one parent, with memory in holes, some of it pinned in
 * pipes, some locked, some written by threads just then. Whatever is done for a process in the
 * background, its bytes are what it wrote.
 */
#include "load.h"

#define APPS 10

static volatile unsigned long *turns;
static unsigned long heap_pages;
static char *zygote_heap;
#define ZYGOTE_PAGES 1024UL
#define ZYGOTE_TAG (1ULL << 58)

static uint64_t app_tag(int me, uint32_t gen, unsigned long i)
{
	return ((uint64_t)(me + 1) << 50) + ((uint64_t)gen << 22) + i;
}

struct part {
	int me;
	char *heap;
	unsigned long first, pages;
	uint32_t *gen;
	uint64_t state;
};

static void *part_of_app(void *arg)
{
	struct part *part = arg;

	for (;;) {
		unsigned long n, at, i;

		part->state = mix(part->state);
		n = 1 + part->state % 96;
		at = part->first + (part->state >> 8) % (part->pages - n);
		for (i = at; i < at + n; i++) {
			char *page = part->heap + i * PG;

			check_page(page, part->gen[i] ? app_tag(part->me, part->gen[i], i) : 0,
				   "an app's page");
			if ((part->state >> (32 + i % 16)) & 1) {
				part->gen[i] = part->gen[i] % 60000 + 1;
				fill_page(page, app_tag(part->me, part->gen[i], i));
			} else if ((part->state >> 50) % 4 == 0) {
				/* Refused where it is locked. */
				if (!madvise(page, PG, MADV_DONTNEED))
					part->gen[i] = 0;
				else if (errno != EINVAL)
					die_errno("MADV_DONTNEED");
			}
		}
		if ((part->state >> 54) % 64 == 0)
			mlock(part->heap + at * PG, PG);
		if ((part->state >> 54) % 64 == 1)
			munlock(part->heap + part->first * PG, part->pages * PG);
		turns[part->me]++;
		nap_ms(3);
	}
	return NULL;
}

static void app(int me)
{
	struct part parts[2];
	uint32_t *gen = calloc(heap_pages, sizeof(*gen));
	char *heap = map_anon(heap_pages * PG), *held = map_anon(64 * PG);
	pthread_t thread;
	int fds[2], i;

	if (!gen || pipe(fds))
		die("calloc or pipe");
	/* What all have from their parent: read by all, written by each a little. */
	check_run(zygote_heap, ZYGOTE_PAGES, ZYGOTE_TAG, "what the parent had");
	fill_run(zygote_heap + me * 32 * PG, 32, 77);
	/* Pages that cannot be moved, one here and there. */
	fill_run(held, 64, 0x4444);
	for (i = 0; i < 64; i += 8) {
		struct iovec iov = { held + i * PG, PG };

		if (vmsplice(fds[1], &iov, 1, SPLICE_F_NONBLOCK) != PG)
			break;
	}
	for (i = 0; i < 2; i++) {
		parts[i] = (struct part) {
			.me = me, .heap = heap, .gen = gen, .first = i * heap_pages / 2,
			.pages = heap_pages / 2, .state = rnd(),
		};
	}
	if (pthread_create(&thread, NULL, part_of_app, &parts[1]))
		die("pthread_create");
	check_run(held, 64, 0x4444, "held in a pipe");
	part_of_app(&parts[0]);
}

static int set_adj(pid_t pid, int adj)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	return put(path, "%d", adj);
}

int main(int argc, char **argv)
{
	static const int adjs[] = { 0, 0, 100, 200, 500, 600, 700, 800, 900, 906, 999, -800 };
	long rounds = arg(argc, argv, 1, 150), seed = arg(argc, argv, 2, 31), r, i;
	unsigned long kills = 0, all = 0;
	pid_t pids[APPS];

	begin("roles", seed);
	turns = map_shared(PG);
	heap_pages = budget_mb() / 2 / APPS * MB / PG;
	if (heap_pages > 32 * MB / PG)
		heap_pages = 32 * MB / PG;
	if (heap_pages < 512)
		heap_pages = 512;
	zygote_heap = map_anon(ZYGOTE_PAGES * PG);
	fill_run(zygote_heap, ZYGOTE_PAGES, ZYGOTE_TAG);
	load_start(1, budget_mb() / 8, 96);
	for (i = 0; i < APPS; i++) {
		pids[i] = child_seeded(rnd());
		if (!pids[i])
			app(i);
	}
	for (r = 0; r < rounds; r++) {
		unsigned long seen;
		int status;

		i = below(APPS);
		seen = turns[i];
		if (set_adj(pids[i], adjs[below(ARRAY_SIZE(adjs))]))
			die("oom_score_adj cannot be written");
		/* As long as it takes to settle in the background, often a little less. */
		nap_ms(below(260));
		if (one_in(6)) {
			end_child(pids[i]);
			kills++;
			pids[i] = child_seeded(rnd());
			if (!pids[i])
				app(i);
		}
		if (one_in(12))
			compact();
		while (turns[i] == seen) {
			if (waitpid(pids[i], &status, WNOHANG) > 0)
				die("app %ld ended with status %x", i, status);
			nap_ms(3);
		}
		load_lives();
	}
	for (i = 0; i < APPS; i++) {
		int status;

		if (waitpid(pids[i], &status, WNOHANG) > 0)
			die("app %ld ended with status %x", i, status);
		end_child(pids[i]);
		all += turns[i];
	}
	check_run(zygote_heap, ZYGOTE_PAGES, ZYGOTE_TAG, "what the parent has in the end");
	load_end();
	figure("apps_killed", kills, "");
	figure("app_turns", all, "");
	return 0;
}
