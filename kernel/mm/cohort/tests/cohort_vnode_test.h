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

/*
 * Tests run in a thread of the kernel, which may go anywhere.  From true to false it is a
 * process; no interrupt sees that.
 */
void cohort_vnode_test_process(bool on);

/* Nodes for a request of a process, whose policy names these nodes, NULL for none. */
nodemask_t *cohort_vnode_test_bind(gfp_t gfp, int *nid, nodemask_t *policy, nodemask_t *both);

#endif /* _MM_COHORT_TESTS_COHORT_VNODE_TEST_H */
