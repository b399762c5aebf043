/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#ifndef PAGE
#define PAGE 4096UL		/* make's PAGE_SIZE says otherwise */
#endif
/* Pages, one at least, for the bytes of n pages of 4 KiB. */
#define PAGES(n) ((n) * 4096UL < PAGE ? 1 : (n) * 4096UL / PAGE)
#define PAGE_KB (PAGE / KB)
#define KB 1024UL
#define MB (1024UL * 1024UL)
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

#endif
