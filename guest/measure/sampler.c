// SPDX-License-Identifier: GPL-2.0
/* The state of memory after each launch, as the kernel's own files tell it. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json.h"
#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "measure/sampler.h"
#include "measure/work.h"

#define RECLAIM SCHEMES "reclaim/"

static char text[16384];
static char out[16384];

/* Counts as the kernel prints them: "1 0 7" becomes "1,0,7". */
static void commas(char *counts)
{
	counts[strcspn(counts, "\n")] = '\0';
	for (; *counts; counts++)
		if (isspace(*counts))
			*counts = ',';
}

static void load(const char *path)
{
	if (slurp(path, text, sizeof(text)) < 0)
		fatal("cannot read %s", path);
}

/* Field number want (0 name, 1 value) of every vmstat line, comma separated. */
static void vm_fields(int want, char *p, size_t size)
{
	char *line, *save, *space;
	size_t n = 0;

	load("/proc/vmstat");
	p[0] = '\0';
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		space = strchr(line, ' ');
		if (!space)
			continue;
		*space = '\0';
		n += snprintf(p + n, size - n, want ? "%s%s" : "%s\"%s\"",
			      n ? "," : "", want ? space + 1 : line);
		if (n >= size)
			fatal("vmstat does not fit in a record");
	}
}

/* "Node 0, zone Normal 1 2 ..." becomes ["Normal",1,2,...] */
size_t sampler_buddy(char *p, size_t size)
{
	char *line, *save, *word, *save2;
	size_t n = 0;

	load("/proc/buddyinfo");
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *zone = strstr(line, "zone");

		if (!zone)
			continue;
		word = strtok_r(zone + 4, " ", &save2);
		n += snprintf(p + n, size - n, "%s[\"%s\"", n ? "," : "", word);
		while ((word = strtok_r(NULL, " ", &save2)))
			n += snprintf(p + n, size - n, ",%s", word);
		n += snprintf(p + n, size - n, "]");
	}
	return n;
}

/*
 * Free chunks of owned blocks by order, which buddyinfo leaves out, as another key of
 * the same record. Nothing on a kernel that has none.
 */
void sampler_owned(char *p, size_t size)
{
	char counts[256];

	p[0] = '\0';
	if (slurp(SCHEMES "owned_free", counts, sizeof(counts)) < 0)
		return;
	commas(counts);
	snprintf(p, size, ",\"owned\":[%s]", counts);
}

static void cpu(char *p, size_t size)
{
	char *word, *save;
	size_t n = 0;

	load("/proc/stat");
	text[strcspn(text, "\n")] = '\0';
	strtok_r(text, " ", &save);
	p[0] = '\0';
	while ((word = strtok_r(NULL, " ", &save)) && n < size)
		n += snprintf(p + n, size - n, "%s%s", n ? "," : "", word);
}

/* Free blocks of each node, where policies split memory into nodes. */
static void nodes(uint32_t launch)
{
	char *line, *save;
	unsigned int node;
	int at;

	load("/proc/buddyinfo");
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *p, blocks[256];
		size_t n = 0;

		if (sscanf(line, "Node %u, zone %*s%n", &node, &at) != 1)
			continue;
		for (p = line + at; *p && n < sizeof(blocks) - 1; p++) {
			if (*p != ' ')
				blocks[n++] = *p;
			else if (n && blocks[n - 1] != ',')
				blocks[n++] = ',';
		}
		while (n && blocks[n - 1] == ',')
			n--;
		blocks[n] = '\0';
		record(RECORD_NODE, launch, node, blocks);
	}
}

void sampler_hello(void)
{
	struct utsname un;
	static char cmdline[2048], escaped[6 * sizeof(cmdline)];

	uname(&un);
	if (slurp("/proc/cmdline", cmdline, sizeof(cmdline)) < 0)
		fatal("cannot read /proc/cmdline");
	cmdline[strcspn(cmdline, "\n")] = '\0';
	vm_fields(0, out, sizeof(out));
	record(RECORD_HELLO, (unsigned long long)now_ns(), un.release, un.machine,
	       sysconf(_SC_PAGESIZE), json_text(escaped, sizeof(escaped), cmdline),
	       sysconf(_SC_PHYS_PAGES),
	       sysconf(_SC_NPROCESSORS_ONLN), out);
}

void sampler_sample(uint32_t launch, int alive, int cached)
{
	static char zones[2048], owned[300], cpus[256];
	uint64_t t = now_ns();

	sampler_buddy(zones, sizeof(zones));
	sampler_owned(owned, sizeof(owned));
	cpu(cpus, sizeof(cpus));
	vm_fields(1, out, sizeof(out));
	record(RECORD_SAMPLE,
	       (unsigned long long)t, launch, zones, owned, out, alive, cached, cpus);
	if (sh->conf.nr_roles)
		nodes(launch);
	pressure_record(launch);
}

/* The same for one moment of an experiment. */
void sampler_moment(const char *when)
{
	static char zones[2048], owned[300];
	uint64_t t = now_ns();

	sampler_buddy(zones, sizeof(zones));
	sampler_owned(owned, sizeof(owned));
	vm_fields(1, out, sizeof(out));
	record(RECORD_MOMENT, (unsigned long long)t, when, zones, owned, out);
}

static void sizes(const char *kind)
{
	char path[96];

	snprintf(path, sizeof(path), RECLAIM "%s%s", kind,
		 strcmp(kind, "alloc_orders") ? "_sizes" : "");
	load(path);
	commas(text);
	record(RECORD_RECLAIM, kind, text);
}

/* How large reclaims and allocations were, if the policy has them measured. */
void sampler_sizes(void)
{
	static const char *const kinds[] = {
		"alloc_orders", "kswapd", "direct", "node", "lru_kswapd", "lru_other",
		"slab_kswapd", "slab_other",
	};
	size_t i;

	if (slurp(RECLAIM "enabled", text, sizeof(text)) < 0 || text[0] != '1')
		return;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		sizes(kinds[i]);
}
