// SPDX-License-Identifier: GPL-2.0
/*
 * Records: JSON lines for the host.
 *
 * Every process appends to one ring in shared memory, populated at boot, so
 * making a record allocates nothing. The activity manager drains it to the
 * virtio-serial port between launches, in pieces small enough for the kernel
 * to copy into one slab object.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/util.h"

#define PORT_NAME "org.cohort.records\n"
#define CHUNK 2048

static int port = -1;

static void lock(void)
{
	while (__atomic_exchange_n(&sh->ring_lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&sh->ring_lock, 0, __ATOMIC_RELEASE);
}

static int open_port(const char *dev)
{
	char path[300], name[64];

	snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", dev);
	if (slurp(path, name, sizeof(name)) < 0 || strcmp(name, PORT_NAME))
		return -1;
	snprintf(path, sizeof(path), "/dev/%s", dev);
	return open(path, O_WRONLY | O_CLOEXEC);
}

/* Without the port there is no run: the console is not a place for results. */
void records_open(void)
{
	DIR *dir = opendir("/sys/class/virtio-ports");
	struct dirent *e;

	while (dir && port < 0 && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			port = open_port(e->d_name);
	if (dir)
		closedir(dir);
	if (port < 0)
		fatal("no virtio-serial port org.cohort.records");
}

void record(const char *fmt, ...)
{
	size_t room;
	va_list ap;
	int n;

	lock();
	room = RING_SIZE - sh->ring_used;
	va_start(ap, fmt);
	n = vsnprintf(sh->ring + sh->ring_used, room, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n + 1 < room) {
		sh->ring_used += n;
		sh->ring[sh->ring_used++] = '\n';
	}
	unlock();
	if (n < 0 || (size_t)n + 1 >= room)
		fatal("record ring full");
}

static void write_all(const char *p, size_t n)
{
	while (n) {
		ssize_t w = write(port, p, n < CHUNK ? n : CHUNK);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return;		/* the host went away: nothing to tell */
		p += w;
		n -= w;
	}
}

void records_flush(void)
{
	lock();
	if (port >= 0)
		write_all(sh->ring, sh->ring_used);
	sh->ring_used = 0;
	unlock();
}

void note(const char *fmt, ...)
{
	char text[256], escaped[6 * sizeof(text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	record(RECORD_NOTE,
	       (unsigned long long)now_ns(), json_text(escaped, sizeof(escaped), text));
}

/*
 * The run is worthless: say why, on the record port and the console, and
 * switch off. The first caller wins, the others wait for the power to go.
 */
void fatal(const char *fmt, ...)
{
	char text[512], escaped[6 * sizeof(text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (__atomic_exchange_n(&sh->fatal, 1, __ATOMIC_SEQ_CST))
		for (;;)
			pause();
	record(RECORD_FATAL,
	       (unsigned long long)now_ns(), json_text(escaped, sizeof(escaped), text));
	records_flush();
	fprintf(stderr, "phone: fatal: %s\n", text);
	power_off();
}
