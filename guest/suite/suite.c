// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a guest that runs a suite: mounts, the policy's knobs, then one case
 * after the other, each with a time limit. What a case prints and how it ends
 * goes to the host as records.
 *
 * /suite.conf, written by the lab, one statement a line:
 *
 *   root DEVICE           ext4, becomes the root; without this the initramfs stays
 *   write PATH VALUE      a policy's knob
 *   setup COMMAND         run once before the cases; it must end well
 *   case NAME LIMIT_S COMMAND...
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/kernel.h"
#include "base/records.h"
#include "base/shared.h"
#include "base/switches.h"
#include "base/util.h"
#include "suite/output.h"

#define CONF "/suite.conf"
#define HOME "/suite"
#define SETUP_LIMIT_S 600
#define PIPE_READS 17		/* of 4 KiB */
#define POLL_MS 20

static const struct {
	const char *type, *dir, *opts;
	bool needed;
} mounts[] = {
	{ "devtmpfs", "/dev", NULL, true },
	{ "proc", "/proc", NULL, true },
	{ "sysfs", "/sys", NULL, true },
	{ "tmpfs", "/tmp", NULL, true },
	{ "tmpfs", "/run", NULL, true },
	{ "tmpfs", "/dev/shm", NULL, true },
	{ "devpts", "/dev/pts", NULL, false },
	{ "mqueue", "/dev/mqueue", NULL, false },
	{ "debugfs", "/sys/kernel/debug", NULL, false },
	{ "tracefs", "/sys/kernel/tracing", NULL, false },
	{ "cgroup2", CGROUPS, NULL, false },
};

static void mount_all(void)
{
	size_t i;

	for (i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].dir, 0755);
		if (mount(mounts[i].type, mounts[i].dir, mounts[i].type, 0, mounts[i].opts) &&
		    mounts[i].needed)
			fatal("mount %s: %s", mounts[i].dir, strerror(errno));
	}
}

/* Moved, and not only changed into: no process of a changed root may have a user namespace. */
static void enter_root(const char *dev)
{
	if (!storage_appears(dev))
		fatal("no storage: %s is not there", dev);
	mkdir("/root", 0755);
	if (mount(dev, "/root", "ext4", MS_NOATIME, "") || chdir("/root") ||
	    mount(".", "/", NULL, MS_MOVE, NULL) || chroot("."))
		fatal("root %s: %s", dev, strerror(errno));
	mount_all();
}

/* What a pipe holds, and no more: a case may print without an end. False if nothing can come. */
static bool drain(int fd, struct output *out)
{
	char text[4096];
	ssize_t n = 0;
	int i;

	for (i = 0; i < PIPE_READS; i++) {
		n = read(fd, text, sizeof(text));
		if (n <= 0)
			return n < 0;
		output_take(out, text, n);
	}
	return true;
}

static void run_command(const char *command, int fd)
{
	int null = open("/dev/null", O_RDONLY);

	setsid();
	dup2(null, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	if (!chdir(HOME))
		execl("/bin/sh", "sh", "-c", command, NULL);
	_exit(127);
}

/* Whatever a case left behind. Init is the one process that this does not hit. */
static void end_all(void)
{
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* Reaps orphans, too; the case's own end is in `status`. */
static bool has_ended(pid_t pid, int *status)
{
	int theirs;
	pid_t found;

	while ((found = waitpid(-1, &theirs, WNOHANG)) > 0)
		if (found == pid) {
			*status = theirs;
			return true;
		}
	return false;
}

/* The exit code, 128 and the signal, or -1 for a command that did not end in time. */
static int run(const char *command, uint64_t limit_s, unsigned long *lines)
{
	uint64_t end = now_ns() + limit_s * 1000 * NSEC_PER_MSEC;
	struct output out = { .used = 0 };
	int fds[2], status = -1;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) || fcntl(fds[0], F_SETFL, O_NONBLOCK))
		fatal("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		fatal("fork: %s", strerror(errno));
	if (!pid)
		run_command(command, fds[1]);
	close(fds[1]);
	while (!has_ended(pid, &status) && now_ns() < end) {
		struct pollfd p = { .fd = fds[0], .events = POLLIN };

		if (poll(&p, 1, POLL_MS) > 0 && !drain(fds[0], &out))
			sleep_ns(POLL_MS * NSEC_PER_MSEC);
	}
	end_all();
	drain(fds[0], &out);
	output_end(&out);
	close(fds[0]);
	*lines = out.lines;
	if (status == -1)
		return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What the kernel says of a case stands after this in its log. */
static void mark(const char *name)
{
	char text[160];

	snprintf(text, sizeof(text), "<5>suite: case %s\n", name);
	spit("/dev/kmsg", text);
}

static void do_case(char *save)
{
	const char *name = strtok_r(NULL, " ", &save), *limit = strtok_r(NULL, " ", &save);
	unsigned long lines;
	uint64_t start;
	int status;

	if (!name || !limit || !*save)
		fatal(CONF ": a case has a name, a limit and a command");
	if (!json_plain(name))
		fatal(CONF ": bad name %s", name);
	mark(name);
	record(RECORD_CASE, (unsigned long long)now_ns(), name);
	records_flush();
	start = now_ns();
	status = run(save, strtoull(limit, NULL, 10), &lines);
	record(RECORD_RESULT, (unsigned long long)now_ns(), name, status, lines,
	       (unsigned long long)(now_ns() - start));
	records_flush();
}

static void do_write(char *save)
{
	const char *path = strtok_r(NULL, " ", &save);

	if (!path || !*save)
		fatal(CONF ": a write has a path and a value");
	set_knob(path, save);
}

static void do_line(char *line)
{
	char *save, *verb = strtok_r(line, " ", &save);
	unsigned long lines;

	if (!verb)
		return;
	if (!strcmp(verb, "case"))
		return do_case(save);
	if (!strcmp(verb, "write"))
		return do_write(save);
	if (!strcmp(verb, "root"))
		return enter_root(save);
	if (strcmp(verb, "setup"))
		fatal(CONF ": unknown word %s", verb);
	if (run(save, SETUP_LIMIT_S, &lines))
		fatal("the suite's setup failed: %s", save);
}

static char *conf_read(void)
{
	struct stat st;
	int fd = open(CONF, O_RDONLY | O_CLOEXEC);
	char *text;

	if (fd < 0 || fstat(fd, &st))
		fatal(CONF ": %s", strerror(errno));
	text = calloc(1, st.st_size + 1);
	if (!text || read(fd, text, st.st_size) != st.st_size)
		fatal(CONF ": cannot be read");
	close(fd);
	return text;
}

int main(void)
{
	char *conf, *line;

	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		return 1;
	mount_all();
	records_open();
	switches_record();
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", HOME, 1);
	setenv("LANG", "C", 1);
	conf = conf_read();
	while ((line = strsep(&conf, "\n")))
		do_line(line);
	record(RECORD_END_SUITE, (unsigned long long)now_ns());
	records_flush();
	power_off();
}
