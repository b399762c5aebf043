// SPDX-License-Identifier: GPL-2.0
/* guest/base/conf.c by itself: what it makes of the file that is named, or how it refuses it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/conf.h"
#include "base/records.h"

static struct conf conf;

void fatal(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	conf_load(&conf, argv[1]);
	printf("%d profiles, %d roles, %llu launches\n", conf.nr_prof, conf.nr_roles,
	       (unsigned long long)conf.launches);
	return 0;
}
