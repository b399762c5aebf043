// SPDX-License-Identifier: GPL-2.0
/*
 * births SECONDS [SEED]
 *
 * Processes that live for a moment: exec with large arguments, vfork, threads that exec or end the
 * process under others that fault, memory of a process whose first thread has gone, growing stacks.
 * Each checks what it was given; then all memory is back.
 */
#include "load.h"
#include <spawn.h>

extern char **environ;

#define ARG_WORD 4000

/* The second life: its argument is a number and a word that has to be made of it. */
static int reborn(char **argv)
{
	unsigned long n = strtoul(argv[2], NULL, 16), i, words = strtoul(argv[3], NULL, 10), k;
	volatile char stack[256 * 1024];

	for (k = 0; k < words; k++)
		for (i = 0; i < ARG_WORD; i++)
			if (argv[4 + k][i] != (char)('a' + mix(n + k * ARG_WORD + i) % 26))
				die("argument %lu is wrong at %lu", k, i);
	for (i = 0; i < sizeof(stack); i += 64)
		stack[i] = (char)i;
	for (i = 0; i < sizeof(stack); i += 64)
		if (stack[i] != (char)i)
			die("a stack is wrong at %lu", i);
	return 0;
}

static void be_born(bool with_spawn)
{
	static char words[8][ARG_WORD + 1], number[32], count[8];
	char *argv[14] = { "births", "reborn", number, count };
	unsigned long n = rnd() >> 16, k, i, nr = 1 + below(8);
	pid_t pid;

	snprintf(number, sizeof(number), "%lx", n);
	snprintf(count, sizeof(count), "%lu", nr);
	for (k = 0; k < nr; k++) {
		for (i = 0; i < ARG_WORD; i++)
			words[k][i] = 'a' + mix(n + k * ARG_WORD + i) % 26;
		argv[4 + k] = words[k];
	}
	if (with_spawn) {
		if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ))
			die_errno("posix_spawn");
	} else {
		pid = vfork();
		if (!pid) {
			execv("/proc/self/exe", argv);
			_exit(127);
		}
		if (pid < 0)
			die_errno("vfork");
	}
	want_well(pid, "one that was born");
}

static char *common;

static void *faulter(void *unused)
{
	unsigned long turn = 0;

	for (;;) {
		char *p = map_anon(64 * PG);

		turn += 64;
		fill_run(p, 64, turn);
		check_run(p, 64, turn, "a thread's memory");
		munmap(p, 64 * PG);
	}
	return NULL;
}

static void *survivor(void *unused)
{
	int i;

	/* The first thread has gone; the memory is there. */
	for (i = 0; i < 10; i++) {
		check_run(common, 256, 0x31, "memory of a process whose first thread has gone");
		nap_ms(1);
	}
	_exit(0);
}

static void *ends_all(void *how)
{
	nap_ms((uintptr_t)how % 16);
	if ((uintptr_t)how & 16)
		execl("/proc/self/exe", "births", "reborn", "1", "0", (char *)NULL);
	_exit(0);
}

static void with_threads(void)
{
	pid_t pid = child();
	pthread_t t;
	int i;

	if (pid)
		return want_well(pid, "one with threads");
	if (one_in(3)) {
		common = map_anon(256 * PG);
		fill_run(common, 256, 0x31);
		if (pthread_create(&t, NULL, survivor, NULL))
			die("pthread_create");
		/* Not the process's end. */
		syscall(SYS_exit, 0);
	}
	for (i = 0; i < 4; i++)
		if (pthread_create(&t, NULL, faulter, NULL))
			die("pthread_create");
	if (pthread_create(&t, NULL, ends_all, (void *)(uintptr_t)below(32)))
		die("pthread_create");
	faulter(NULL);
}

/* Many at a time, each with a few pages and none with many. */
static void litter(void)
{
	enum { N = 40 };
	pid_t pids[N];
	int i;

	for (i = 0; i < N; i++) {
		pids[i] = child();
		if (!pids[i]) {
			unsigned long n = 1 + below(24);
			char *p = map_anon(n * PG);

			fill_run(p, n, i + 1);
			if (one_in(4))
				put("/proc/self/oom_score_adj", "%d", 900);
			nap_ms(below(8));
			check_run(p, n, i + 1, "one of a litter");
			_exit(0);
		}
	}
	for (i = 0; i < N; i++) {
		if (one_in(4))
			end_child(pids[i]);
		else
			want_well(pids[i], "one of a litter");
	}
}

static void deep_stack(void)
{
	pid_t pid = child();

	if (!pid) {
		volatile char deep[6 * MB];
		unsigned long i;

		for (i = 0; i < sizeof(deep); i += PG)
			deep[i] = (char)(i >> 12);
		for (i = 0; i < sizeof(deep); i += PG)
			if (deep[i] != (char)(i >> 12))
				die("a stack is wrong at %lu", i);
		_exit(0);
	}
	want_well(pid, "one with a deep stack");
}

int main(int argc, char **argv)
{
	long seconds = arg(argc, argv, 1, 15), seed = arg(argc, argv, 2, 32);
	unsigned long births = 0;
	uint64_t end;

	if (argc > 3 && !strcmp(argv[1], "reborn")) {
		prog = "reborn";
		return reborn(argv);
	}
	begin("births", seed);
	load_start(2, budget_mb() / 4, 48);
	for (end = now_ms() + seconds * 1000; now_ms() < end || births < 20; births++) {
		switch (below(6)) {
		case 0: case 1:
			be_born(one_in(2));
			break;
		case 2: case 3:
			with_threads();
			break;
		case 4:
			litter();
			break;
		default:
			deep_stack();
		}
		load_lives();
	}
	load_end();
	figure("births", births, "");
	return 0;
}
