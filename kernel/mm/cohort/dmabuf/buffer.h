/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cost of an I/O buffer.
 */
#ifndef _MM_COHORT_BUFFER_H
#define _MM_COHORT_BUFFER_H

#include <linux/cohort_pcpa.h>

#include "../lib/arith.h"

extern unsigned int cohort_buffer_orders[COHORT_HEAP_ORDERS];
extern const struct attribute_group cohort_buffer_group;
struct page *cohort_buffer_ordinary_noprof(gfp_t gfp, unsigned int order);
#define cohort_buffer_ordinary(...) alloc_hooks(cohort_buffer_ordinary_noprof(__VA_ARGS__))
void cohort_buffer_zero(struct page *page, unsigned long nr);
void cohort_buffer_done(struct page *page, unsigned long nr, int order);

#endif /* _MM_COHORT_BUFFER_H */
