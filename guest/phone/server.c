// SPDX-License-Identifier: GPL-2.0
/*
 * The activity manager's process, from boot to the end of the run: what comes before
 * the launches, and the experiment that comes after them.
 */
#include "apps/files.h"
#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "experiments/dispatch.h"
#include "measure/bench.h"
#include "measure/profile.h"
#include "measure/sampler.h"
#include "phone/server.h"
#include "stress/stress.h"
#include "system/am.h"

static void __attribute__((noreturn)) finish(void)
{
	bench_fault("end");
	profile_report();
	sampler_sizes();
	if (stress_wanted())
		stress_finish();
	record(RECORD_END, (unsigned long long)now_ns(), (unsigned long long)sh->conf.launches);
	records_flush();
	power_off();
}

/* The media scanner looks for new content after boot. */
static void scan_media(void)
{
	struct rng r;

	rng_seed(&r, sh->conf.seed, 2);
	if (sh->conf.set.scan_kb)
		media_read(&r, sh->conf.set.scan_kb);
}

void am_main(void)
{
	uint32_t n;

	set_name("system_server");
	am_boot();
	wait_scaled_ms(sh->conf.set.home_ms);
	bench_fault("boot");
	note("boot done, %llu kB free",
	     (unsigned long long)read_vmstat("nr_free_pages") * PAGE_KB);
	scan_media();
	am_sample(0);
	profile_start();
	records_flush();
	for (n = 1; n <= sh->conf.launches; n++)
		am_launch(n);
	experiment_run();
	finish();
}
