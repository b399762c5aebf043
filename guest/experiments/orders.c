// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of a block of order 8, 4 and 0, found in the free lists or made by
 * the slow path: a process touches one block after the other on memory that is
 * full of page cache, with large folios of that order asked for.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/files.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "experiments/lib.h"
#include "experiments/orders.h"
#include "measure/stalls.h"

#define THP "/sys/kernel/mm/transparent_hugepage/"
#define NR_KINDS 3

/* Blocks from the free lists, from the slow path, and asked of it in vain. */
enum { NORMAL, SLOW, REFUSED };

struct tally {
	uint64_t blocks, ns, max_ns;
};

static void must_spit(const char *path, const char *value)
{
	int err = spit(path, value);

	if (err)
		fatal("%s: %s", path, strerror(-err));
}

/* Every fault in the right place asks for a folio of that order, and tries hard. */
static void ask_for(uint64_t order, const char *enabled)
{
	char path[96];

	if (!order)
		return;
	snprintf(path, sizeof(path), THP "hugepages-%llukB/enabled",
		 (unsigned long long)(PAGE << order) / KB);
	must_spit(path, enabled);
	must_spit(THP "defrag", "always");
}

static bool all_there(char *block, uint64_t order)
{
	unsigned char vec[2] = { 0 };

	return !order || (!mincore(block, 2 * PAGE, vec) && vec[1] & 1);
}

static void touch_blocks(uint64_t order, uint64_t blocks, struct tally *tally)
{
	uint64_t size = PAGE << order, i, t, before, at;
	char *base = experiment_map((blocks + 1) << order), *block;
	int fd[2] = { stall_counter(STALL_RECLAIM), stall_counter(STALL_COMPACT) };
	int kind;

	at = -(uintptr_t)base & (size - 1);
	for (i = 0; i < blocks; i++) {
		block = base + at + i * size;
		before = stall_count(fd[0]) + stall_count(fd[1]);
		t = now_ns();
		*(volatile char *)block = 1;
		t = now_ns() - t;
		kind = stall_count(fd[0]) + stall_count(fd[1]) == before ? NORMAL : SLOW;
		if (!all_there(block, order))
			kind = REFUSED;
		tally[kind].blocks++;
		tally[kind].ns += t;
		if (t > tally[kind].max_ns)
			tally[kind].max_ns = t;
	}
}

static void measure(uint64_t order, uint64_t pages)
{
	static const char *const names[NR_KINDS] = { "normal", "slow", "refused" };
	struct tally *tally = experiment_share(PAGE);
	int kind, status;
	pid_t pid;

	ask_for(order, "always");
	pid = experiment_fork("orders", 0, 0);
	if (!pid) {
		touch_blocks(order, pages >> order, tally);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		fatal("orders: status %d", status);
	ask_for(order, "never");
	for (kind = 0; kind < NR_KINDS; kind++)
		record(RECORD_ORDER, (unsigned long long)order, names[kind],
		       (unsigned long long)tally[kind].blocks,
		       (unsigned long long)tally[kind].ns,
		       (unsigned long long)tally[kind].max_ns);
	munmap(tally, PAGE);
}

void orders_run(void)
{
	static const uint64_t orders[] = { 0, 4, 8 };
	const struct experiment *exp = &sh->conf.exp;
	struct rng r;
	size_t i;

	for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		rng_seed(&r, sh->conf.seed, 4 + i);
		media_read(&r, exp->fill_kb);
		experiment_quiet(exp->quiet_ms);
		measure(orders[i], exp->pages);
	}
}
