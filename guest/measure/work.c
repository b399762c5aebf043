// SPDX-License-Identifier: GPL-2.0
/* What programs that press on memory got done, and how much they came to hold. */
#include "base/records.h"
#include "base/shared.h"
#include "measure/work.h"

/* The work that all of them got done so far, and the heap they came to hold since the last. */
void pressure_record(uint32_t launch)
{
	uint64_t bytes = 0, ns = 0, cpu_ns = 0, held_kb = 0, free_kb = 0, want_kb = 0;
	int i;

	if (!sh->conf.set.pressure_from)
		return;
	for (i = 0; i < sh->conf.nr_prof; i++) {
		bytes += __atomic_load_n(&sh->slot[i].work_bytes, __ATOMIC_RELAXED);
		ns += __atomic_load_n(&sh->slot[i].work_ns, __ATOMIC_RELAXED);
		cpu_ns += __atomic_load_n(&sh->slot[i].work_cpu_ns, __ATOMIC_RELAXED);
		if (!sh->conf.prof[i].zero_kb)
			continue;
		want_kb += sh->conf.prof[i].zero_kb;
		free_kb = __atomic_load_n(&sh->slot[i].held_free_kb, __ATOMIC_RELAXED);
		held_kb += __atomic_exchange_n(&sh->slot[i].held_kb, 0, __ATOMIC_RELAXED);
	}
	record(RECORD_WORK, launch,
	       (unsigned long long)bytes, (unsigned long long)ns, (unsigned long long)cpu_ns,
	       (unsigned long long)held_kb, (unsigned long long)want_kb,
	       (unsigned long long)free_kb);
}
