/* SPDX-License-Identifier: GPL-2.0 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Write `from` into `to`, which has `size` bytes, as the inside of a JSON string. What does not
 * fit is left out from a whole character on; bytes that are not ASCII become the characters of
 * Latin-1, as the guest does not know what they are. Returns `to`.
 */
char *json_text(char *to, size_t size, const char *from);

/* Is this text the same inside a JSON string? */
bool json_plain(const char *text);

#endif
