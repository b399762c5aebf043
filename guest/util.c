// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "phone.h"

#define STORAGE_TIMEOUT_MS 5000

struct shared *sh;

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000ULL,
				  .tv_nsec = ns % 1000000000ULL };
}

void sleep_until(uint64_t ns)
{
	struct timespec ts = to_timespec(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

void sleep_ns(uint64_t ns)
{
	sleep_until(now_ns() + ns);
}

/* Waits of people and apps: full length in virtual time, shorter in real. */
void wait_scaled_ms(uint64_t ms)
{
	sleep_ns(ms * NSEC_PER_MSEC / sh->conf.set.time_scale);
}

void futex_wait(uint32_t *word, uint32_t seen, uint64_t timeout_ns)
{
	struct timespec ts = to_timespec(timeout_ns);

	syscall(SYS_futex, word, FUTEX_WAIT, seen, timeout_ns ? &ts : NULL, NULL, 0);
}

void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
}

void bump(uint32_t *word)
{
	__atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
	futex_wake(word);
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

void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* Read a whole (proc) file as a string; -1 with errno on failure. */
ssize_t slurp(const char *path, char *buf, size_t size)
{
	size_t got = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	while (got < size - 1 && (n = read(fd, buf + got, size - 1 - got)) > 0)
		got += n;
	close(fd);
	buf[got] = '\0';
	return got;
}

void meminfo_read(char *text, size_t size)
{
	if (slurp("/proc/meminfo", text, size) < 0)
		fatal("cannot read /proc/meminfo: %s", strerror(errno));
}

/* A field of it; `name` is as it stands there, with its colon. */
long long meminfo_kb(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	if (!p)
		fatal("no %s in /proc/meminfo", name);
	return atoll(p + strlen(name));
}

/* Write a value to a control file; 0 or -errno. */
int spit(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* A knob of the policy: a guest that cannot set it is no guest of that policy. */
void set_knob(const char *path, const char *value)
{
	int err = spit(path, value);

	if (err)
		fatal("write %s to %s: %s", value, path, strerror(-err));
}

/* The disk is probed in the background: give it a moment. */
bool storage_appears(const char *dev)
{
	int ms;

	for (ms = STORAGE_TIMEOUT_MS; ms > 0; ms -= 10) {
		if (!access(dev, F_OK))
			return true;
		sleep_ns(10 * NSEC_PER_MSEC);
	}
	return false;
}

/* A control group with that controller ("+memory"), or NULL for none; 0 or -errno. */
int cgroup_make(const char *name, const char *controller)
{
	char path[96];
	int err = 0;

	if (access(CGROUPS "/cgroup.controllers", F_OK) &&
	    mount("cgroup", CGROUPS, "cgroup2", 0, NULL))
		return -errno;
	if (controller)
		err = spit(CGROUPS "/cgroup.subtree_control", controller);
	if (err)
		return err;
	snprintf(path, sizeof(path), CGROUPS "/%s", name);
	return mkdir(path, 0755) ? -errno : 0;
}

void set_adj(int pid, int adj)
{
	char path[64], value[16];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	snprintf(value, sizeof(value), "%d", adj);
	spit(path, value);	/* the process may be gone: not an error */
}

void set_name(const char *name)
{
	prctl(PR_SET_NAME, name);
}

/* The value of one name in the text of /proc/vmstat, 0 if it is not there. */
uint64_t vmstat_value(const char *text, const char *name)
{
	size_t len = strlen(name);
	const char *p = text;

	while ((p = strstr(p, name))) {
		if ((p == text || p[-1] == '\n') && p[len] == ' ')
			return strtoull(p + len + 1, NULL, 10);
		p += len;
	}
	return 0;
}

uint64_t read_vmstat(const char *name)
{
	static char text[16384];

	if (slurp("/proc/vmstat", text, sizeof(text)) < 0)
		fatal("cannot read /proc/vmstat: %s", strerror(errno));
	return vmstat_value(text, name);
}
