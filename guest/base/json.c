// SPDX-License-Identifier: GPL-2.0
/*
 * Text of others as the inside of a JSON string.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* The longest escape, \u001f, and the end of the string. */
#define LONGEST 7

static size_t one(char *to, unsigned char c)
{
	switch (c) {
	case '"':
	case '\\':
		return sprintf(to, "\\%c", c);
	case '\n':
		return sprintf(to, "\\n");
	case '\t':
		return sprintf(to, "\\t");
	}
	if (c < ' ' || c > '~')
		return sprintf(to, "\\u%04x", c);
	*to = c;
	return 1;
}

char *json_text(char *to, size_t size, const char *from)
{
	size_t n = 0;

	while (*from && n + LONGEST <= size)
		n += one(to + n, *from++);
	if (size)
		to[n] = '\0';
	return to;
}

bool json_plain(const char *text)
{
	char escaped[LONGEST];

	while (*text)
		if (one(escaped, *text++) > 1)
			return false;
	return true;
}
