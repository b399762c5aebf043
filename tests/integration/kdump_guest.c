// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a small guest that crashes, and of the kernel that then boots in the memory kept for it
 * and lets makedumpfile write what the crashed one's memory had, without free pages, caches and
 * memory of processes, as distributions do.
 */
#define _GNU_SOURCE
#include <linux/kexec.h>
#include <sys/reboot.h>
#include <sys/syscall.h>

#include "area.h"

#define VMCORE "/proc/vmcore"
#define DUMP "/dump"
#define BYTES (240 * MB)
#define KEPT 4			/* of so many pages one stays */
#define WORDS "console=ttyS0 panic=-1 nr_cpus=1 no_timer_check"

static void set_up(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mount("proc", "/proc", "proc", 0, "");
	mount("sysfs", "/sys", "sysfs", 0, "");
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static bool write_dump(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		execl("/makedumpfile", "makedumpfile", "-c", "-d", "31", "--message-level", "20",
		      VMCORE, DUMP, NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	return !status;
}

static bool load_crash_kernel(void)
{
	int image = open("/kernel", O_RDONLY), initrd = open("/initrd", O_RDONLY);

	return !syscall(SYS_kexec_file_load, image, initrd, sizeof(WORDS), WORDS,
			KEXEC_FILE_ON_CRASH);
}

/* Memory of this process with holes in its blocks. */
static bool make_holes(void)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t page;

	if (at == MAP_FAILED || madvise(at, BYTES, MADV_NOHUGEPAGE))
		return false;
	memset(at, 0x5a, BYTES);
	for (page = 0; page < BYTES / PAGE; page++)
		if (page % KEPT)
			madvise(at + page * PAGE, PAGE, MADV_DONTNEED);
	return true;
}

static void tell(const char *path, const char *key)
{
	char text[4096], *at;

	get(path, text, sizeof(text));
	at = strstr(text, key);
	printf("%s %ld KiB\n", *key ? key : "owned:", at ? atol(at + strlen(key)) : 0);
}

int main(void)
{
	struct stat about;

	set_up();
	if (!access(VMCORE, F_OK)) {
		claim(write_dump() && !stat(DUMP, &about), "the crashed kernel's memory is written");
		printf("done\n");
		fflush(stdout);
		reboot(RB_POWER_OFF);
	}
	claim(load_crash_kernel(), "a kernel is loaded for the crash");
	claim(make_holes(), "there are holes");
	tell("/proc/meminfo", "MemFree:");
	tell("/sys/kernel/mm/cohort/parked_kb", "");
	fflush(stdout);
	return 0;	/* without PID 1 the kernel panics */
}
