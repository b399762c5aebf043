/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The common part of the suites of the CPB: the scheme is on, and a
 * case stays on the CPU whose CPB it looks at.
 */
#ifndef _MM_COHORT_TESTS_COHORT_CPB_TEST_H
#define _MM_COHORT_TESTS_COHORT_CPB_TEST_H

#include "../cpb/cpb.h"
#include "cohort_test.h"

int cohort_cpb_test_suite_init(struct kunit_suite *suite);
void cohort_cpb_test_suite_exit(struct kunit_suite *suite);
int cohort_cpb_test_init(struct kunit *test);

/* Sets in the CPBs of all CPUs, and their pages. */
unsigned long cohort_cpb_test_sets(void);
unsigned long cohort_cpb_test_pages(void);

/* A whole set in the CPB of this CPU, and one page in use. */
void cohort_cpb_test_fill(struct kunit *test);

#endif /* _MM_COHORT_TESTS_COHORT_CPB_TEST_H */
