// SPDX-License-Identifier: GPL-2.0
/*
 * Where the kernel was at each tick of the timer: only with profile= on its
 * command line. The kernel counts by address; here the counts become counts of
 * functions. Nothing is read before the launches are over.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/records.h"
#include "base/util.h"
#include "measure/profile.h"

#define PROFILE "/proc/profile"

struct profile_text {
	uint32_t *hits;			/* by address, from _stext */
	size_t nr;
	uint64_t step;			/* bytes of code for each */
};

/* Boot is not counted. Any write resets. */
void profile_start(void)
{
	if (!access(PROFILE, W_OK) && spit(PROFILE, "0"))
		fatal("profile: cannot reset " PROFILE);
}

static void load(struct profile_text *text)
{
	size_t size = 0, room = 0;
	char *buf = NULL;
	ssize_t n;
	int fd = open(PROFILE, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fatal("profile: cannot read " PROFILE);
	do {
		if (size + MB > room)
			buf = realloc(buf, room += 4 * MB);
		if (!buf)
			fatal("profile: no memory");
		n = read(fd, buf + size, MB);
		if (n > 0)
			size += n;
	} while (n > 0);
	close(fd);
	if (size < 2 * sizeof(uint32_t))
		fatal("profile: " PROFILE " is empty");
	text->step = *(uint32_t *)buf;
	text->hits = (uint32_t *)buf + 1;
	text->nr = size / sizeof(uint32_t) - 1;
}

/* The hits in [from, to), bytes from _stext; each address counts once. */
static uint64_t hits_between(const struct profile_text *text, uint64_t from, uint64_t to)
{
	uint64_t i, last = (to + text->step - 1) / text->step, sum = 0;

	for (i = (from + text->step - 1) / text->step; i < last && i < text->nr; i++)
		sum += text->hits[i];
	return sum;
}

static void report(const struct profile_text *text, const char *name, uint64_t from,
		   uint64_t to)
{
	uint64_t n = hits_between(text, from, to);

	if (n)
		record(RECORD_PROFILE, name,
		       (unsigned long long)n);
}

/* /proc/kallsyms is sorted by address: a function ends where the next begins. */
static void report_all(const struct profile_text *text)
{
	uint64_t at, start = 0, last_at = 0;
	char name[128], last[128] = "", type;
	FILE *f = fopen("/proc/kallsyms", "re");

	if (!f)
		fatal("profile: no /proc/kallsyms");
	while (fscanf(f, "%lx %c %127s%*[^\n]", &at, &type, name) == 3) {
		if (!strcmp(name, "_stext"))
			start = last_at = at;
		if (!start || at < last_at)
			continue;
		if (at > last_at) {
			report(text, last, last_at - start, at - start);
			last_at = at;
			snprintf(last, sizeof(last), "%s", name);
		} else if (!*last || !strcmp(last, "_stext")) {
			snprintf(last, sizeof(last), "%s", name);
		}
		if (!strcmp(name, "_etext"))
			break;
	}
	fclose(f);
	if (!start)
		fatal("profile: no _stext in /proc/kallsyms");
}

void profile_report(void)
{
	struct profile_text text;

	if (access(PROFILE, R_OK))
		return;
	load(&text);
	report_all(&text);
	free(text.hits - 1);
}
