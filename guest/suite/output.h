/* SPDX-License-Identifier: GPL-2.0 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stddef.h>

#define OUTPUT_LINE 1024

/* What a command prints, on its way into records. `lines` are those that it ended. */
struct output {
	char line[OUTPUT_LINE];
	size_t used;
	unsigned long lines, results, others;
};

void output_take(struct output *out, const char *text, size_t n);

/* A last line may lack its end. */
void output_end(struct output *out);

#endif
