// SPDX-License-Identifier: GPL-2.0
/* PID 1: mounts, the policy's knobs, the phone's native processes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/switches.h"
#include "measure/sampler.h"
#include "phone/server.h"
#include "stress/stress.h"
#include "system/allocator.h"
#include "system/churn.h"
#include "system/lmkd.h"
#include "system/role.h"
#include "system/swap.h"
#include "system/zygote.h"

static void mount_or_die(const char *dev, const char *dir, const char *type,
			 unsigned long flags, const char *opts)
{
	mkdir(dir, 0755);
	if (mount(dev, dir, type, flags, opts))
		fatal("mount %s on %s: %s", dev, dir, strerror(errno));
}

static void mount_kernel(void)
{
	mount_or_die("dev", "/dev", "devtmpfs", 0, NULL);
	mount_or_die("proc", "/proc", "proc", 0, NULL);
	mount_or_die("sys", "/sys", "sysfs", 0, NULL);
	mount_or_die("tmp", "/tmp", "tmpfs", 0, "size=16m");
	mount("debug", "/sys/kernel/debug", "debugfs", 0, NULL);
	mount("trace", "/sys/kernel/tracing", "tracefs", 0, NULL);
}

/* Flash latency comes from a device-mapper target when the lab set one up. */
static void mount_data(void)
{
	const char *dev = access("/dev/dm-0", F_OK) ? "/dev/pmem0" : "/dev/dm-0";

	if (!storage_appears(dev))
		fatal("no storage: %s is not there", dev);
	mount_or_die(dev, "/data", "ext4", MS_NOATIME, "");
	note("storage %s", dev);
}

static void apply_writes(void)
{
	int i;

	for (i = 0; i < sh->conf.nr_write; i++)
		set_knob(sh->conf.write[i].path, sh->conf.write[i].value);
}

static void map_shared(void)
{
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (sh == MAP_FAILED) {
		fprintf(stderr, "phone: no memory for the shared block\n");
		_exit(1);
	}
}

static void make_pipe(int32_t fds[2])
{
	int p[2];

	if (pipe2(p, O_CLOEXEC))
		fatal("pipe: %s", strerror(errno));
	fds[0] = p[0];
	fds[1] = p[1];
}

static void spawn(void (*entry)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		fatal("fork: %s", strerror(errno));
	if (pid)
		return;
	set_adj(getpid(), ADJ_NATIVE);
	role_enter(sh->conf.native_role);
	entry();
}

int main(void)
{
	int status;
	pid_t pid;

	map_shared();
	mount_kernel();
	records_open();
	switches_record();
	conf_load(&sh->conf, "/phone.conf");
	apply_writes();
	roles_setup();
	sampler_hello();
	swap_on();
	roles_record();
	mount_data();
	make_pipe(sh->zygote_pipe);
	make_pipe(sh->gralloc_pipe);
	make_pipe(sh->lmkd_pipe);
	if (stress_wanted())
		stress_baseline();
	spawn(allocator_main);
	spawn(lmkd_main);
	spawn(churn_main);
	spawn(zygote_main);
	spawn(am_main);
	if (stress_wanted())
		spawn(stress_main);
	for (;;) {
		pid = wait(&status);
		if (pid > 0 && !__atomic_load_n(&sh->stress_over, __ATOMIC_ACQUIRE))
			fatal("a native process (pid %d) ended, status %d", pid, status);
	}
}
