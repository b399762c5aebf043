// SPDX-License-Identifier: GPL-2.0
/*
 * What a case prints, a record a line. A program may print without an end: so
 * many lines are kept, and counted apart are those that are a result (TAP, a
 * cost, a figure), which no other output displaces. The first line of a kind
 * that is left out is told.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/records.h"
#include "base/util.h"
#include "suite/output.h"

#define SHOWN 300		/* of a line that is no result, bytes */
#define OTHERS 4000		/* of a case, lines */
#define RESULTS 40000

static bool is_result(const char *line)
{
	line += strspn(line, " \t");
	return !strncasecmp(line, "ok ", 3) || !strncasecmp(line, "not ok ", 7) ||
	       !strncmp(line, "# ", 2);
}

static void say(const char *line)
{
	char text[6 * OUTPUT_LINE];

	record(RECORD_OUT, (unsigned long long)now_ns(), json_text(text, sizeof(text), line));
	records_flush();
}

/* The note is a line, too: there are fewer records than lines wherever one was left out. */
static void leave_out(struct output *out, unsigned long most, const char *what)
{
	char text[80];

	snprintf(text, sizeof(text), "# suite: %lu %s are kept, and no more", most, what);
	out->lines++;
	say(text);
}

static void line_end(struct output *out)
{
	bool result;

	out->line[out->used] = '\0';
	result = is_result(out->line);
	if (!result && out->used > SHOWN)
		out->line[SHOWN] = '\0';
	out->used = 0;
	out->lines++;
	if (result ? out->results++ < RESULTS : out->others++ < OTHERS)
		say(out->line);
	else if (result && out->results == RESULTS + 1)
		leave_out(out, RESULTS, "lines of results");
	else if (!result && out->others == OTHERS + 1)
		leave_out(out, OTHERS, "lines without a result");
}

void output_take(struct output *out, const char *text, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (text[i] == '\n')
			line_end(out);
		else if (text[i] != '\r' && out->used < sizeof(out->line) - 1)
			out->line[out->used++] = text[i];
	}
}

void output_end(struct output *out)
{
	if (out->used)
		line_end(out);
}
