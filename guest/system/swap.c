// SPDX-License-Identifier: GPL-2.0
/*
 * Swap on a compressed block device in memory. The device's own knobs are
 * ordinary writes of phone.conf; here it gets a header and is switched on.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/fs.h>
#include <sys/swap.h>
#include <unistd.h>

#include "base/records.h"
#include "base/shared.h"
#include "system/swap.h"

#define MAGIC "SWAPSPACE2"
#define MAGIC_AT (PAGE - (sizeof(MAGIC) - 1))

/* Page 0 of a swap area: 1 KiB of boot block, version, last page, no bad pages. */
static void make_header(const char *dev)
{
	static union {
		char page[PAGE];
		uint32_t word[PAGE / 4];
	} header;
	uint64_t bytes;
	int fd = open(dev, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, BLKGETSIZE64, &bytes))
		fatal("swap: %s: %s", dev, strerror(errno));
	header.word[256] = 1;
	header.word[257] = bytes / PAGE - 1;
	memcpy(header.page + MAGIC_AT, MAGIC, sizeof(MAGIC) - 1);
	if (write(fd, &header, sizeof(header)) != sizeof(header))
		fatal("swap: write to %s: %s", dev, strerror(errno));
	close(fd);
}

void swap_on(void)
{
	const char *dev = sh->conf.swap;

	if (!*dev)
		return;
	make_header(dev);
	if (swapon(dev, 0))
		fatal("swapon %s: %s", dev, strerror(errno));
	note("swap %s", dev);
}
