/* SPDX-License-Identifier: GPL-2.0 */
/*
 * NUMA policy for pages of a domain.  Included once, inside mm/mempolicy.c,
 * because it needs that file's policy_nodemask().
 */
#include "../cohort.h"

/* Interleaving and "preferred many" spread pages on purpose: not for domains. */
static bool cohort_policy_ok(const struct mempolicy *pol)
{
	return pol->mode == MPOL_LOCAL || pol->mode == MPOL_BIND ||
	       pol->mode == MPOL_PREFERRED || pol->mode == MPOL_DEFAULT;
}

static struct folio *cohort_folio_alloc(struct cohort_domain *dom, gfp_t gfp,
					struct mempolicy *pol, pgoff_t ilx)
{
	int nid = numa_node_id();
	nodemask_t *nodemask = policy_nodemask(gfp, pol, ilx, &nid);

	return page_rmappable_folio(cohort_alloc_pages_noprof(gfp | __GFP_COMP,
							nid, nodemask, dom));
}

/* Does a policy leave it to the kernel which nodes a page may come from? */
static bool cohort_policy_any(const struct mempolicy *pol)
{
	return cohort_policy_ok(pol) && pol->mode != MPOL_BIND;
}

/*
 * A debugger or a pager writes into memory of another process: its pages belong to that
 * one's role.
 */
static struct folio *cohort_foreign_alloc(nodemask_t *nodes, gfp_t gfp, int order,
					  struct mempolicy *pol, pgoff_t ilx,
					  struct cohort_domain *dom)
{
	nodemask_t both = *nodes, *named;
	int nid = numa_node_id();

	/* What the policy names is a wish inside the role. */
	named = policy_nodemask(gfp, pol, ilx, &nid);
	if (named)
		nodes_and(both, *named, *nodes);
	if (nodes_empty(both))
		both = *nodes;
	if (!node_isset(nid, both))
		nid = first_node(both);
	if (!dom)
		return __folio_alloc_noprof(gfp, order, nid, nodes);
	return page_rmappable_folio(cohort_alloc_pages_noprof(gfp | __GFP_COMP, nid, nodes, dom));
}

static struct folio *cohort_vma_alloc(struct vm_area_struct *vma, gfp_t gfp,
				      int order, struct mempolicy *pol, pgoff_t ilx)
{
	struct cohort_domain *dom = cohort_anon_domain(vma->vm_mm, order);
	nodemask_t *nodes = NULL;

	/* A thread of the kernel may use the address space of the process it works for. */
	if (cohort_vnode_enabled() &&
	    (vma->vm_mm != current->mm || (current->flags & PF_KTHREAD)))
		nodes = cohort_vnode_nodes(vma->vm_mm, cohort_policy_any(pol));
	if (nodes)
		return cohort_foreign_alloc(nodes, gfp, order, pol, ilx,
					    cohort_policy_ok(pol) ? dom : NULL);
	if (dom && cohort_policy_ok(pol))
		return cohort_folio_alloc(dom, gfp, pol, ilx);
	return folio_alloc_mpol_noprof(gfp, order, pol, ilx, numa_node_id());
}

#ifdef CONFIG_COHORT
/**
 * cohort_cache_alloc() - a page of the page cache for a domain
 * @dom: the domain
 * @gfp: how it is asked for
 */
struct folio *cohort_cache_alloc(struct cohort_domain *dom, gfp_t gfp)
{
	struct mempolicy *pol = get_task_policy(current);

	if (cpuset_do_page_mem_spread() || !cohort_policy_ok(pol))
		return filemap_alloc_folio_noprof(gfp, 0);
	return cohort_folio_alloc(dom, gfp, pol, NO_INTERLEAVE_INDEX);
}
#endif /* CONFIG_COHORT */
