/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The common part of the suites of virtual memory nodes.
 */
#ifndef _MM_COHORT_TESTS_COHORT_VNODE_TEST_H
#define _MM_COHORT_TESTS_COHORT_VNODE_TEST_H

#include <kunit/test.h>

#include "../vnode/vnode.h"

/* While the machine boots: a node with all memory, which lends. */
struct cohort_vnode *cohort_vnode_test_layout(struct kunit *test);
void cohort_vnode_test_layout_end(void);

#endif /* _MM_COHORT_TESTS_COHORT_VNODE_TEST_H */
