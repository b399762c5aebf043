// SPDX-License-Identifier: GPL-2.0
/*
 * Property tests of guest/base/json.c: random bytes into rooms of all sizes are read
 * back, by rules of JSON, as what was written or the beginning of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "random.h"

#define ROUNDS	20000
#define LENGTH	40
#define ROOM	(6 * LENGTH + 1)

/* The character that begins at `text` and how long it is there; 0 if that is no JSON. */
static size_t read_one(const char *text, unsigned char *c)
{
	static const char letters[] = "\"\\nt", meant[] = "\"\\\n\t";
	const char *found;
	char digits[5];

	if (*text != '\\') {
		*c = *text;
		return *text >= ' ' && *text <= '~' && *text != '"';
	}
	if (text[1] == 'u') {
		snprintf(digits, sizeof(digits), "%.4s", text + 2);
		*c = strtoul(digits, NULL, 16);
		return strlen(digits) == 4 ? 6 : 0;
	}
	found = text[1] ? strchr(letters, text[1]) : NULL;
	if (!found)
		return 0;
	*c = meant[found - letters];
	return 2;
}

static int reads_back(const char *text, const char *from, size_t *nr)
{
	unsigned char c;
	size_t step;

	for (*nr = 0; *text; text += step, ++*nr) {
		step = read_one(text, &c);
		if (!step || c != (unsigned char)from[*nr])
			return 0;
	}
	return 1;
}

int main(int argc, char **argv)
{
	unsigned int seed = argc > 1 ? atoi(argv[1]) : 1, round;
	char from[LENGTH + 1], *to;
	size_t i, size, nr;

	state = seed;
	for (round = 0; round < ROUNDS; round++) {
		size_t length = next() % (LENGTH + 1);

		/* Every other one is mostly of characters that need no escape. */
		for (i = 0; i < length; i++)
			from[i] = round % 2 && next() % LENGTH ? 'a' + next() % 26 : 1 + next() % 255;
		from[length] = '\0';
		size = next() % 2 ? ROOM : 1 + next() % ROOM;
		/* A room of its own, so that a byte too many is seen. */
		to = malloc(size);
		if (json_text(to, size, from) != to || strlen(to) >= size ||
		    !reads_back(to, from, &nr) || (size == ROOM && nr != length) ||
		    (size == ROOM && json_plain(from) == !!strcmp(to, from))) {
			fprintf(stderr, "json_text: seed %u, round %u\n", seed, round);
			return 1;
		}
		free(to);
	}
	json_text(from, 0, "x");
	return 0;
}
