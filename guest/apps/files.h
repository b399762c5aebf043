/* SPDX-License-Identifier: GPL-2.0 */
#ifndef APPS_FILES_H
#define APPS_FILES_H

#include <stdint.h>

#include "base/rng.h"

struct mapped {
	const volatile char *base;
	uint64_t pages;
	int fd;
};

void file_open(struct mapped *m, const char *path);
void file_touch(struct mapped *m, struct rng *r, uint64_t pages);
void file_read(struct mapped *m, struct rng *r, uint64_t pages);
void db_write(const char *name, struct rng *r, uint64_t writes);
void content_write(const char *name, struct rng *r, uint32_t launch, uint64_t pages);
void media_read(struct rng *r, uint64_t kb);
extern struct mapped system_image;

#endif
