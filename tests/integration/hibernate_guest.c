// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a small guest that hibernates, and wakes up from the image it has written: processes
 * with holes in their memory and a file say a pattern, and have to say it afterwards. The kernel
 * tells how many pages the image has; free pages are none of them, whatever block they lie in.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/reboot.h>
#include <sys/swap.h>

#include "area.h"

#define DEVICE "/dev/pmem0"
#define SIGNATURE "SWAPSPACE2"
#define PROCESSES 6
#define EACH (40 * MB)
#define FILE_BYTES (16 * MB)
#define KEPT 4			/* of so many pages one stays */

struct swap_header {
	char boot[1024];
	uint32_t version, last_page, bad_pages;
};

static volatile sig_atomic_t woken;

static void wake(int sig)
{
	(void)sig;
	woken = 1;
}

static void make_swap(void)
{
	static char page[PAGE] __attribute__((aligned(PAGE)));
	struct swap_header *head = (void *)page;
	int fd = open(DEVICE, O_RDWR);
	off_t size = lseek(fd, 0, SEEK_END);

	head->version = 1;
	head->last_page = size / PAGE - 1;
	memcpy(page + PAGE - strlen(SIGNATURE), SIGNATURE, strlen(SIGNATURE));
	claim(fd >= 0 && pwrite(fd, page, PAGE, 0) == (ssize_t)PAGE && !fsync(fd),
	      "a swap device is made");
	close(fd);
	claim(!swapon(DEVICE, 0), "the swap device is on");
}

/* What a page of a process says. */
static uint64_t word(int who, size_t page)
{
	return (who + 1) * 1000003ULL + page;
}

static void fill(char *at, int who)
{
	size_t page;

	for (page = 0; page < EACH / PAGE; page++)
		*(uint64_t *)(at + page * PAGE) = word(who, page);
	for (page = 0; page < EACH / PAGE; page++)
		if (page % KEPT)
			madvise(at + page * PAGE, PAGE, MADV_DONTNEED);
}

static bool says_the_same(const char *at, int who)
{
	size_t page;

	for (page = 0; page < EACH / PAGE; page++)
		if (*(const uint64_t *)(at + page * PAGE) != (page % KEPT ? 0 : word(who, page)))
			return false;
	return true;
}

static void process(int who, int ready)
{
	char *at = mmap(NULL, EACH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	signal(SIGUSR1, wake);
	madvise(at, EACH, MADV_NOHUGEPAGE);
	fill(at, who);
	if (write(ready, "r", 1) != 1)
		_exit(2);
	while (!woken)
		usleep(10000);
	_exit(!says_the_same(at, who));
}

static char *make_file(void)
{
	int fd = open("/pattern", O_RDWR | O_CREAT, 0600);
	uint64_t *at;
	size_t i;

	if (ftruncate(fd, FILE_BYTES))
		return NULL;
	at = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (i = 0; i < FILE_BYTES / sizeof(*at); i++)
		at[i] = i * 2654435761u;
	return (char *)at;
}

static bool file_says_the_same(const char *file)
{
	const uint64_t *at = (const void *)file;
	size_t i;

	for (i = 0; i < FILE_BYTES / sizeof(*at); i++)
		if (at[i] != i * 2654435761u)
			return false;
	return true;
}

static long owned_kb(void)
{
	char text[64];

	get("/sys/kernel/mm/cohort/parked_kb", text, sizeof(text));
	return atol(text);
}

static void hibernate(void)
{
	char dev[32];

	get("/sys/block/pmem0/dev", dev, sizeof(dev));
	claim(!put("/sys/power/resume", dev), "it is where to resume from");
	claim(!put("/sys/power/disk", "test_resume"), "hibernation wakes up at once");
	claim(!put("/sys/power/state", "disk"), "the machine hibernated and woke up");
}

/* Every page that was free can be had and given back once more. */
static bool all_can_be_had(void)
{
	size_t bytes = 300 * MB, i;
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (i = 0; i < bytes; i += PAGE)
		if (at[i])
			return false;
		else
			at[i] = 1;
	return !munmap(at, bytes);
}

int main(void)
{
	pid_t pid[PROCESSES];
	int ready[2], who, status;
	char *file, byte;

	begin();
	umount("/data");
	make_swap();
	file = make_file();
	if (!file || pipe(ready))
		return 1;
	for (who = 0; who < PROCESSES; who++) {
		pid[who] = fork();
		if (!pid[who])
			process(who, ready[1]);
	}
	for (who = 0; who < PROCESSES; who++)
		if (read(ready[0], &byte, 1) != 1)
			return 1;
	printf("owned %ld KiB\n", owned_kb());
	hibernate();
	claim(file_says_the_same(file), "the file says what it said");
	for (who = 0; who < PROCESSES; who++) {
		kill(pid[who], SIGUSR1);
		waitpid(pid[who], &status, 0);
		claim(!status, "a process has its memory");
	}
	claim(all_can_be_had(), "free pages are free and zeroed");
	printf("done\n");
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 0;
}
