/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of the contiguous page buffer share: the scheme is on, and a
 * case stays on the CPU whose buffer it looks at.
 */
#ifndef _MM_COHORT_TESTS_COHORT_CPB_TEST_H
#define _MM_COHORT_TESTS_COHORT_CPB_TEST_H

#include "cohort_test.h"

int cohort_cpb_test_suite_init(struct kunit_suite *suite);
void cohort_cpb_test_suite_exit(struct kunit_suite *suite);
int cohort_cpb_test_init(struct kunit *test);

/* The buffer of this CPU; something complete in it and nothing in the domain. */
struct cohort_domain *cohort_cpb_test_buffer(void);
void cohort_cpb_test_fill(struct kunit *test, unsigned int sets);

/* Whose a page is: a domain's, or the buddy allocator's in a block of an order. */
struct cohort_domain *cohort_cpb_test_dom_of(struct page *page);
int cohort_cpb_test_buddy_order(struct page *page);

/* A request as the page allocator prepares it. */
void cohort_cpb_test_context(struct alloc_context *ac, gfp_t gfp);

/* Pages in use become what a free list has. */
void cohort_cpb_test_make_remnant(struct kunit *test, struct page *page,
				  unsigned int pages);

#endif /* _MM_COHORT_TESTS_COHORT_CPB_TEST_H */
