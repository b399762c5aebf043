// SPDX-License-Identifier: GPL-2.0
/* The price of an anonymous page fault: one fresh process, and no other is busy. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "measure/bench.h"

static void touch_all(const char *when)
{
	uint64_t n = sh->conf.set.fault_bench_mb * MB / PAGE, i, t;
	char *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fatal("fault benchmark: %s", strerror(errno));
	t = now_ns();
	for (i = 0; i < n; i++)
		*(volatile char *)(p + i * PAGE) = 1;
	t = now_ns() - t;
	record(RECORD_FAULT, (unsigned long long)now_ns(), when, (unsigned long long)n,
	       (unsigned long long)t);
}

void bench_fault(const char *when)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		fatal("fault benchmark: fork: %s", strerror(errno));
	if (!pid) {
		set_adj(getpid(), ADJ_FOREGROUND);
		touch_all(when);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		fatal("fault benchmark: status %d", status);
}
