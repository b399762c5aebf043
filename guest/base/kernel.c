// SPDX-License-Identifier: GPL-2.0
/* The kernel's files: what it says of memory, its knobs, control groups and devices. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/kernel.h"
#include "base/records.h"
#include "base/util.h"

#define STORAGE_TIMEOUT_MS 5000

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

/* The counters are read one after the other, and lag: the rest may be less than nothing. */
uint64_t vmstat_cache(const char *text)
{
	uint64_t file = vmstat_value(text, "nr_file_pages");
	uint64_t none = vmstat_value(text, "nr_shmem") + vmstat_value(text, "nr_swapcached");

	return file > none ? file - none : 0;
}

uint64_t read_vmstat(const char *name)
{
	static char text[16384];

	if (slurp("/proc/vmstat", text, sizeof(text)) < 0)
		fatal("cannot read /proc/vmstat: %s", strerror(errno));
	return vmstat_value(text, name);
}
