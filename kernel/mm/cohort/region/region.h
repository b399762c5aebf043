/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The region scheme: what its files share, and what is above them calls.
 */
#ifndef _MM_COHORT_REGION_H
#define _MM_COHORT_REGION_H

#include <linux/cohort.h>

#include "../cohort.h"

/* region.c */
extern unsigned int cohort_region_order;	/* fixed at boot */
extern bool cohort_region_vmalloc;	/* single unmovable pages have a domain */
int cohort_region_switch(bool on);
struct cohort_domain *cohort_region_domain(enum cohort_kind kind);
struct cohort_domain *cohort_region_anon(struct cohort_domain *dom);
struct cohort_domain *cohort_region_cache(struct address_space *mapping, gfp_t gfp);
struct page *cohort_vmalloc_page_noprof(gfp_t gfp, int nid);
struct page *cohort_region_zspage(gfp_t gfp, nodemask_t *nodes);

/* cache.c */
struct cohort_room *cohort_cache_victims(int nid, int highest_zoneidx, bool ask,
					 struct cohort_block **blk,
					 struct list_head *victims,
					 struct list_head *survivors);
bool cohort_cache_settle(struct cohort_room *room, struct cohort_block *blk,
			 struct list_head *survivors, unsigned int dropped);
bool cohort_region_spare(int nid, int top);
bool cohort_region_pack(gfp_t gfp, int nid, int top);
bool cohort_region_room(int nid, int highest_zoneidx);

/* host/vmscan.h */
bool cohort_reclaims_for_all(void);
bool cohort_region_drop(int nid, gfp_t gfp);

/* sysfs.c */
extern const struct attribute_group cohort_region_group;

#endif /* _MM_COHORT_REGION_H */
