// SPDX-License-Identifier: GPL-2.0
/*
 * The camera: an app whose start needs far more buffers than any other's, from
 * a heap that the policy names. The price of its starts for the rest of the phone
 * is recorded beside them: stalls of others, page cache, traffic to the flash.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/buffers.h"
#include "apps/camera.h"
#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"
#include "measure/map.h"

bool camera_wanted(void)
{
	return sh->conf.camera.bytes;
}

bool camera_is(int slot)
{
	return camera_wanted() && sh->conf.camera.app == slot;
}

/* Frames and what is made of them, one after the other as a pipeline asks for them. */
void camera_open(int slot)
{
	uint64_t left = sh->conf.camera.bytes, piece = sh->conf.camera.piece;

	if (camera_is(slot)) {
		__atomic_store_n(&sh->camera_opens, sh->launch, __ATOMIC_RELEASE);
		bump(&sh->am_event);
	}
	for (; camera_is(slot) && left; left -= piece) {
		if (piece > left)
			piece = left;
		buffer_camera(slot, piece);
	}
}

/* Where the policy says so: room is made while the app loads. */
void camera_announce(int slot)
{
	char text[32];
	int err;

	if (!camera_is(slot) || !sh->conf.camera.announce)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)sh->conf.camera.bytes);
	err = spit(PCPA "announce", text);
	if (err)
		fatal(PCPA "announce: %s", strerror(-err));
}

static void look(struct camera_cost *c)
{
	static char text[16384];

	if (slurp("/proc/vmstat", text, sizeof(text)) < 0)
		fatal("cannot read /proc/vmstat: %s", strerror(errno));
	c->stalls = vmstat_value(text, "allocstall_normal") +
		    vmstat_value(text, "allocstall_movable") +
		    vmstat_value(text, "allocstall_dma32");
	c->file = vmstat_cache(text);
	c->free = vmstat_value(text, "nr_free_pages");
	c->in_kb = vmstat_value(text, "pgpgin");
	c->out_kb = vmstat_value(text, "pgpgout");
	c->own = __atomic_load_n(&sh->camera_stalls, __ATOMIC_ACQUIRE);
}

void camera_cost_begin(struct camera_cost *c)
{
	if (camera_wanted())
		look(c);
}

/* The effects of this launch on the rest of the phone, up to the moment the app was ready. */
void camera_cost_end(const struct camera_cost *a, int slot)
{
	struct camera_cost b;

	if (!camera_wanted())
		return;
	look(&b);
	record(RECORD_COST, sh->launch, sh->conf.prof[slot].name,
	       sh->conf.prof[slot].measured ? "true" : "false",
	       (unsigned long long)(b.stalls - a->stalls),
	       (unsigned long long)(b.own - a->own),
	       (unsigned long long)a->file, (unsigned long long)b.file,
	       (unsigned long long)a->free, (unsigned long long)(b.in_kb - a->in_kb),
	       (unsigned long long)(b.out_kb - a->out_kb));
}

/* ---- the page-cache-preferred area ---- */
static bool area_value(const char *name, uint64_t *value)
{
	char path[96], text[32];

	snprintf(path, sizeof(path), PCPA "%s", name);
	if (slurp(path, text, sizeof(text)) <= 0)
		return false;
	*value = strtoull(text, NULL, 0);
	return true;
}

static uint64_t area_kb(const char *name)
{
	uint64_t value;

	if (!area_value(name, &value))
		fatal(PCPA "%s: %s", name, strerror(errno));
	return value;
}

/* The content of the area; nothing where there is none. */
void area_record(uint32_t launch, const char *when)
{
	uint64_t size;

	if (!area_value("size", &size) || !size)
		return;
	record(RECORD_AREA, launch, when,
	       (unsigned long long)size / KB, (unsigned long long)area_kb("free_kb"),
	       (unsigned long long)area_kb("cache_kb"),
	       (unsigned long long)area_kb("client_kb"),
	       (unsigned long long)area_kb("other_kb"));
	if (!strcmp(when, "start"))
		map_area(launch, area_kb("base") / PAGE, size / PAGE);
}
