// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's own words on Cohort's switches on its command line: a
 * run of a scheme that stayed off would be a run of the stock kernel under a wrong
 * name. The host compares; it is told before anything else can fail.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/kernel.h"
#include "base/records.h"
#include "base/switches.h"
#include "base/util.h"

#define SRA_HEAP "/dev/dma_heap/sra"	/* there is no other sign of a static reserve */

static const char *const files[] = {
	"region/enabled", "region/order", "cpb/enabled", "cpb/order", "cpb/refill",
	"rightsize/enabled", "pcpa/size", "pcpa/contig_size", "pcpa/base", "pcpa/min_order",
	"pcpa/timer_ms", "pcpa/below", "vnode/layout", "vnode/default",
};

/* Files that are not there are left out. */
void switches_record(void)
{
	char path[96], value[300], escaped[6 * sizeof(value)], text[4096];
	size_t i, n = 0;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), SCHEMES "%s", files[i]);
		if (slurp(path, value, sizeof(value)) < 0)
			continue;
		value[strcspn(value, "\n")] = '\0';
		n += snprintf(text + n, sizeof(text) - n, "%s\"%s\":\"%s\"", n ? "," : "",
			      files[i], json_text(escaped, sizeof(escaped), value));
		if (n >= sizeof(text))
			fatal("the values of " SCHEMES " are too long");
	}
	text[n] = '\0';
	record(RECORD_SWITCHES,
	       (unsigned long long)now_ns(), text, access(SRA_HEAP, F_OK) ? "false" : "true");
	records_flush();
}
