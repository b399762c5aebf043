/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Merging of equal pages beside virtual memory nodes.  Included once, inside mm/ksm.c,
 * because it needs that file's merge_across_nodes_store().
 */
#ifdef CONFIG_COHORT_VNODE
#include "../vnode/vnode.h"
#endif

/*
 * A page that processes of two roles share lies in the node of one of them: there it is
 * reclaimed when that one is short, and there it stays when that one's part is over.
 */
static void __init cohort_ksm_within_roles(void)
{
#if defined(CONFIG_COHORT_VNODE) && defined(CONFIG_SYSFS)
	if (cohort_nr_vnodes && merge_across_nodes_store(NULL, NULL, "0", 1) < 0)
		pr_warn("ksm: pages of virtual nodes are merged with each other\n");
#endif
}
