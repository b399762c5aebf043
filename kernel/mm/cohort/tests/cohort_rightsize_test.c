// SPDX-License-Identifier: GPL-2.0
/*
 * Right-sized reclaim: switching leaves nothing behind, which processes' pages are
 * recent, and how far is read around a page that was evicted.
 */
#include <kunit/test.h>
#include <linux/buffer_head.h>
#include <linux/compaction.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmzone.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/xarray.h>
#include <trace/events/vmscan.h>

#include "../host/filemap.h"
#include "../rightsize/rightsize.h"
#include "cohort_test.h"

/* The state before the suite that runs now. */
static bool cohort_rightsize_test_was_on;

static int cohort_rightsize_test_suite_init(struct kunit_suite *suite)
{
	cohort_rightsize_test_was_on = static_key_enabled(&cohort_scope_key);
	return cohort_rightsize_switch(true);
}

static void cohort_rightsize_test_suite_exit(struct kunit_suite *suite)
{
	cohort_rightsize_switch(cohort_rightsize_test_was_on);
}

static unsigned long cohort_rightsize_test_marks(void)
{
	unsigned long sum = 0;
	struct zone *zone;

	for_each_populated_zone(zone)
		sum = sum * 31 + zone->_watermark[WMARK_MIN] +
		      7 * zone->_watermark[WMARK_LOW] + 11 * zone->_watermark[WMARK_HIGH];
	return sum;
}

/* The controller begins with stock's gap; off, the marks are stock's again. */
static void cohort_rightsize_test_toggle(struct kunit *test)
{
	struct pglist_data *pgdat = NODE_DATA(first_online_node);
	unsigned long stock;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(false), 0);
	stock = cohort_rightsize_test_marks();
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(true), 0);
		KUNIT_EXPECT_TRUE(test, static_key_enabled(&cohort_sizing_key));
		KUNIT_EXPECT_TRUE(test, static_key_enabled(&cohort_scope_key));
		KUNIT_EXPECT_EQ(test, cohort_rightsize_test_marks(), stock);
		KUNIT_EXPECT_LE(test, cohort_kswapd_target(pgdat, 0, 0, 12345), 12345);
		/* A window is over: the controller may be at work. */
		cohort_sizer_ran(pgdat->node_id, COHORT_SIZER_WINDOW);
		KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(false), 0);
		KUNIT_EXPECT_FALSE(test, static_key_enabled(&cohort_sizing_key));
		KUNIT_EXPECT_FALSE(test, static_key_enabled(&cohort_scope_key));
		KUNIT_EXPECT_EQ(test, cohort_rightsize_test_marks(), stock);
	}
	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(true), 0);
}

#ifdef CONFIG_BUFFER_HEAD
/* While there are too many buffer heads kswapd looks for them in zones that lack nothing. */
static void cohort_rightsize_test_buffer_heads(struct kunit *test)
{
	struct pglist_data *pgdat = NODE_DATA(first_online_node);
	int over = buffer_heads_over_limit;
	unsigned long without, with;

	buffer_heads_over_limit = 0;
	without = cohort_kswapd_target(pgdat, MAX_NR_ZONES - 1, 0, 12345);
	buffer_heads_over_limit = 1;
	with = cohort_kswapd_target(pgdat, MAX_NR_ZONES - 1, 0, 12345);
	buffer_heads_over_limit = over;
	KUNIT_EXPECT_LT(test, without, 12345);
	KUNIT_EXPECT_EQ(test, with, 12345);
}
#endif

/* A window in which processes reclaim all by themselves. */
static void cohort_rightsize_test_window(void)
{
	trace_mm_vmscan_direct_reclaim_end(COHORT_SIZER_WINDOW);
	msleep(20);
}

/* A gap that is wide as it is gets no wider: the zone could not be balanced. */
static void cohort_rightsize_test_widest(struct kunit *test)
{
	struct zone *zone = kunit_kzalloc(test, sizeof(*zone), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, zone);
	atomic_long_set(&zone->managed_pages, 10000);
	KUNIT_EXPECT_GT(test, cohort_watermark_gap(zone, 100UL), 100);
	KUNIT_EXPECT_EQ(test, cohort_watermark_gap(zone, 2990UL), 3000);
	KUNIT_EXPECT_EQ(test, cohort_watermark_gap(zone, 4000UL), 4000);
}

/* The share of what processes reclaim themselves, in 1/65536, as the sysfs file says it. */
static unsigned int cohort_rightsize_test_direct_share(struct kunit *test)
{
	char *buf = (char *)get_zeroed_page(GFP_KERNEL);
	struct kobj_attribute *ka;
	unsigned int share = 0;
	struct attribute **a;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (a = cohort_rightsize_group.attrs; *a && strcmp((*a)->name, "direct_share"); a++)
		;
	ka = container_of(*a, struct kobj_attribute, attr);
	ka->show(NULL, ka, buf);
	KUNIT_EXPECT_EQ(test, kstrtouint(buf, 10, &share), 0);
	free_page((unsigned long)buf);
	return share;
}

/* What kswapd reclaims counts while its run goes on, and each page of it once. */
static void cohort_rightsize_test_long_run(struct kunit *test)
{
	int nid = first_online_node;
	unsigned int i, before;

	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(false), 0);
	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(true), 0);
	cohort_sizer_ran(nid, 0);
	for (i = 0; i < 3; i++)
		cohort_rightsize_test_window();
	before = cohort_rightsize_test_direct_share(test);
	KUNIT_EXPECT_GT(test, before, COHORT_SHARE_ONE / 4);
	for (i = 1; i <= 8; i++) {
		cohort_sizer_progress(nid, i * COHORT_SIZER_WINDOW);
		msleep(20);
	}
	KUNIT_EXPECT_LT(test, cohort_rightsize_test_direct_share(test), before / 4);
	/* The end has little to add: no window by itself. */
	for (i = 0; i < 3; i++)
		cohort_rightsize_test_window();
	before = cohort_rightsize_test_direct_share(test);
	cohort_sizer_ran(nid, 8 * COHORT_SIZER_WINDOW);
	msleep(20);
	KUNIT_EXPECT_GE(test, cohort_rightsize_test_direct_share(test), before);
}

/* What kswapd tells of after sizing was switched off moves no marks. */
static void cohort_rightsize_test_late(struct kunit *test)
{
	unsigned long stock;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(false), 0);
	stock = cohort_rightsize_test_marks();
	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(true), 0);
	for (i = 0; i < 100 && cohort_rightsize_test_marks() == stock; i++)
		cohort_rightsize_test_window();
	KUNIT_EXPECT_NE_MSG(test, cohort_rightsize_test_marks(), stock, "the gap is moved");
	cohort_rightsize_test_widest(test);
	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(false), 0);
	cohort_sizer_note(COHORT_SIZER_WINDOW);
	msleep(100);
	KUNIT_EXPECT_EQ(test, cohort_rightsize_test_marks(), stock);
	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(true), 0);
}

/* What is free and only for memory that can be moved makes kswapd aim no lower. */
static void cohort_rightsize_test_aim(struct kunit *test)
{
	struct pglist_data *pgdat = NODE_DATA(first_online_node);
	unsigned long high[MAX_NR_ZONES], stock = 1UL << 20, before, after;
	struct zone *zone;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++) {
		zone = pgdat->node_zones + i;
		high[i] = zone->_watermark[WMARK_HIGH];
		zone->_watermark[WMARK_HIGH] = zone_page_state(zone, NR_FREE_PAGES) + 4096;
	}
	before = cohort_kswapd_target(pgdat, MAX_NR_ZONES - 1, 0, stock);
	for (i = 0; i < MAX_NR_ZONES; i++)
		mod_zone_page_state(pgdat->node_zones + i, NR_FREE_CMA_PAGES, 512);
	after = cohort_kswapd_target(pgdat, MAX_NR_ZONES - 1, 0, stock);
	for (i = 0; i < MAX_NR_ZONES; i++) {
		zone = pgdat->node_zones + i;
		mod_zone_page_state(zone, NR_FREE_CMA_PAGES, -512);
		zone->_watermark[WMARK_HIGH] = high[i];
	}
	/* Others allocate and free meanwhile. */
	KUNIT_EXPECT_GE(test, before, 2048);
	KUNIT_EXPECT_GE(test, after, before + 256);
}

/* A boost raises the mark at which kswapd wakes, not the one that holds processes. */
static void cohort_rightsize_test_boost(struct kunit *test)
{
	struct zone *zone = kunit_kzalloc(test, sizeof(*zone), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, zone);
	zone->_watermark[WMARK_MIN] = 100;
	zone->_watermark[WMARK_LOW] = 125;
	zone->_watermark[WMARK_HIGH] = 150;
	zone->watermark_boost = 512;
	KUNIT_EXPECT_EQ(test, cohort_own_mark(zone, WMARK_MIN), 100);
	KUNIT_EXPECT_EQ(test, cohort_own_mark(zone, WMARK_LOW), 637);
	KUNIT_EXPECT_EQ(test, cohort_own_mark(zone, WMARK_HIGH), 662);
	/* Nor does it keep a process from compaction that would spare it from reclaim. */
	atomic_long_set(&zone->vm_stat[NR_FREE_PAGES], 200);
	KUNIT_EXPECT_TRUE(test, compaction_suitable(zone, 3, 0));
	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(false), 0);
	KUNIT_EXPECT_EQ(test, cohort_own_mark(zone, WMARK_MIN), 612);
	KUNIT_EXPECT_FALSE(test, compaction_suitable(zone, 3, 0));
	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(true), 0);
}

/* Measuring and deciding share a hook; neither takes it from the other. */
static void cohort_rightsize_test_shares_the_hook(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, cohort_reclaim_measure(true), 0);
	KUNIT_ASSERT_EQ(test, cohort_reclaim_measure(false), 0);
	KUNIT_EXPECT_TRUE(test, static_key_enabled(&cohort_reclaim_key));
	KUNIT_ASSERT_EQ(test, cohort_reclaim_measure(true), 0);
	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(false), 0);
	KUNIT_EXPECT_TRUE(test, static_key_enabled(&cohort_reclaim_key));
	KUNIT_ASSERT_EQ(test, cohort_reclaim_measure(false), 0);
	KUNIT_EXPECT_FALSE(test, static_key_enabled(&cohort_reclaim_key));
	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(true), 0);
}

static void cohort_rightsize_test_background(struct kunit *test)
{
	struct address_space mapping = {};
	struct file file = { .f_mapping = &mapping };
	struct vm_area_struct vma = { .vm_file = &file };
	struct file *shared = shmem_kernel_file_setup("cohort", PAGE_SIZE, 0);
	struct mm_struct *mm = mm_alloc();

	KUNIT_ASSERT_NOT_NULL(test, mm);
	vma.vm_mm = mm;
	KUNIT_EXPECT_TRUE(test, vma_has_recency(&vma));
	cohort_scope_note(mm, COHORT_BACKGROUND_ADJ);
	KUNIT_EXPECT_FALSE(test, vma_has_recency(&vma));
	/* What is anonymous ages as all else: it would only be swapped in again. */
	vma.vm_file = NULL;
	KUNIT_EXPECT_TRUE(test, vma_has_recency(&vma));
	vma.vm_file = &file;
	/* So does what was written to a private mapping of a file, and shared memory. */
	vma.anon_vma = (struct anon_vma *)&vma;
	KUNIT_EXPECT_TRUE(test, vma_has_recency(&vma));
	vma.anon_vma = NULL;
	KUNIT_ASSERT_FALSE(test, IS_ERR(shared));
	file.f_mapping = shared->f_mapping;
	KUNIT_EXPECT_TRUE(test, !IS_ENABLED(CONFIG_SHMEM) || vma_has_recency(&vma));
	file.f_mapping = &mapping;
	fput(shared);
	cohort_scope_note(mm, COHORT_BACKGROUND_ADJ - 1);
	KUNIT_EXPECT_TRUE(test, vma_has_recency(&vma));

	/* Off, the accesses of all count; on again, the roles are still known. */
	cohort_scope_note(mm, 999);
	KUNIT_EXPECT_EQ(test, cohort_rightsize_switch(false), 0);
	KUNIT_EXPECT_TRUE(test, vma_has_recency(&vma));
	KUNIT_EXPECT_EQ(test, cohort_rightsize_switch(true), 0);
	KUNIT_EXPECT_FALSE(test, vma_has_recency(&vma));
	mmput(mm);
}

/* Roles that were written while nothing asked for them are found. */
static void cohort_rightsize_test_late_role(struct kunit *test)
{
	/* Without, nothing tells that this thread of the kernel owns what it uses. */
	if (!IS_ENABLED(CONFIG_MEMCG))
		kunit_skip(test, "an address space has no owner");
	cohort_test_map(test, 1);
	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(false), 0);
	current->signal->oom_score_adj = COHORT_BACKGROUND_ADJ;
	KUNIT_EXPECT_FALSE(test, test_bit(COHORT_MMF_BACKGROUND, &current->mm->flags));
	KUNIT_ASSERT_EQ(test, cohort_rightsize_switch(true), 0);
	KUNIT_EXPECT_TRUE(test, test_bit(COHORT_MMF_BACKGROUND, &current->mm->flags));
}

/* A process in the background forks, or executes a program: it is there still. */
static void cohort_rightsize_test_inherited_role(struct kunit *test)
{
	struct mm_struct *mm;

	cohort_test_map(test, 1);
	current->signal->oom_score_adj = COHORT_BACKGROUND_ADJ;
	mm = mm_alloc();
	KUNIT_ASSERT_NOT_NULL(test, mm);
	KUNIT_EXPECT_TRUE(test, test_bit(COHORT_MMF_BACKGROUND, &mm->flags));
	mmput(mm);
}

/* A file of nothing, of which pages were evicted: reading ahead in it reads nothing. */
static struct address_space *cohort_rightsize_test_file(struct kunit *test)
{
	struct address_space *mapping = kunit_kzalloc(test, sizeof(*mapping), GFP_KERNEL);
	struct inode *inode = kunit_kzalloc(test, sizeof(*inode), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mapping);
	KUNIT_ASSERT_NOT_NULL(test, inode);
	address_space_init_once(mapping);
	mapping->host = inode;
	return mapping;
}

static void cohort_rightsize_test_store(struct kunit *test, struct address_space *mapping,
					pgoff_t index, void *entry)
{
	KUNIT_ASSERT_FALSE(test, xa_is_err(xa_store(&mapping->i_pages, index, entry,
						    GFP_KERNEL)));
}

static void cohort_rightsize_test_read_around(struct kunit *test)
{
	struct address_space *mapping = cohort_rightsize_test_file(test);
	struct file_ra_state ra = { .start = 3, .size = 32, .async_size = 8 };
	struct readahead_control ractl = { .mapping = mapping, .ra = &ra, ._index = 19 };
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, folio);

	/* Never read before: as stock. */
	cohort_read_around(&ractl);
	KUNIT_EXPECT_EQ(test, ra.start, 3);
	KUNIT_EXPECT_EQ(test, ra.size, 32);

	cohort_rightsize_test_store(test, mapping, 19, xa_mk_value(0));
	cohort_read_around(&ractl);
	KUNIT_EXPECT_EQ(test, ra.start, 19);
	KUNIT_EXPECT_EQ(test, ra.size, COHORT_READ_AROUND);
	KUNIT_EXPECT_EQ(test, ra.async_size, 0);

	/* A window that is no larger is left alone. */
	ra = (struct file_ra_state){ .start = 15, .size = COHORT_READ_AROUND, .async_size = 2 };
	cohort_read_around(&ractl);
	KUNIT_EXPECT_EQ(test, ra.start, 15);
	KUNIT_EXPECT_EQ(test, ra.size, COHORT_READ_AROUND);

	/* A reader that has come through the file so far will read on. */
	for (i = 1; i <= COHORT_READ_AROUND; i++)
		cohort_rightsize_test_store(test, mapping, 19 - i, folio);
	ra = (struct file_ra_state){ .start = 3, .size = 32, .async_size = 8 };
	cohort_read_around(&ractl);
	KUNIT_EXPECT_EQ(test, ra.start, 19);
	KUNIT_EXPECT_EQ(test, ra.async_size, COHORT_READ_AROUND / 4);
	cohort_rightsize_test_store(test, mapping, 19 - COHORT_READ_AROUND, NULL);
	ra = (struct file_ra_state){ .start = 3, .size = 32, .async_size = 8 };
	cohort_read_around(&ractl);
	KUNIT_EXPECT_EQ(test, ra.async_size, 0);
	xa_destroy(&mapping->i_pages);
	folio_put(folio);
}

/* The pages that a fault on the mark of a window reads: is work left for stock? */
static void cohort_rightsize_test_read_on(struct kunit *test)
{
	struct address_space *mapping = cohort_rightsize_test_file(test);
	struct file_ra_state ra = { .start = 32, .size = 32, .async_size = 8, .ra_pages = 32 };
	struct readahead_control ractl = { .mapping = mapping, .ra = &ra, ._index = 56 };
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	folio_set_readahead(folio);

	/* The next page was never read: as stock. */
	KUNIT_EXPECT_FALSE(test, cohort_read_on(0, &ractl, folio));
	KUNIT_EXPECT_TRUE(test, folio_test_readahead(folio));

	/* It was evicted: not as much as stock after a window around a page... */
	cohort_rightsize_test_store(test, mapping, 64, xa_mk_value(0));
	KUNIT_EXPECT_TRUE(test, cohort_read_on(0, &ractl, folio));
	KUNIT_EXPECT_FALSE(test, folio_test_readahead(folio));
	KUNIT_EXPECT_EQ(test, ra.start, 64);
	KUNIT_EXPECT_EQ(test, ra.size, COHORT_READ_AROUND);
	KUNIT_EXPECT_EQ(test, ra.async_size, COHORT_READ_AROUND);

	/* ...but as much after this one... */
	folio_set_readahead(folio);
	cohort_rightsize_test_store(test, mapping, 64 + COHORT_READ_AROUND, xa_mk_value(0));
	ractl._index = 64;
	KUNIT_EXPECT_FALSE(test, cohort_read_on(0, &ractl, folio));
	KUNIT_EXPECT_TRUE(test, folio_test_readahead(folio));

	/* ...or for a reader that said it reads in sequence... */
	ractl._index = 63;
	KUNIT_EXPECT_FALSE(test, cohort_read_on(VM_SEQ_READ, &ractl, folio));

	/* ...and nothing for the mark of an older window. */
	KUNIT_EXPECT_TRUE(test, cohort_read_on(0, &ractl, folio));
	KUNIT_EXPECT_FALSE(test, folio_test_readahead(folio));
	KUNIT_EXPECT_EQ(test, ra.start, 64);

	/* Off, it is stock's. */
	KUNIT_EXPECT_EQ(test, cohort_rightsize_switch(false), 0);
	KUNIT_EXPECT_FALSE(test, cohort_read_on(0, &ractl, folio));
	KUNIT_EXPECT_EQ(test, cohort_rightsize_switch(true), 0);
	xa_destroy(&mapping->i_pages);
	folio_put(folio);
}

/* The shadow that eviction leaves behind of a page of the working set. */
static void *cohort_rightsize_test_shadow(struct kunit *test)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);
	void *shadow;

	KUNIT_ASSERT_NOT_NULL(test, folio);
	folio_set_workingset(folio);
	__folio_set_locked(folio);
	KUNIT_ASSERT_TRUE(test, folio_ref_freeze(folio, 1));
	shadow = workingset_eviction(folio, NULL);
	folio_ref_unfreeze(folio, 1);
	folio_clear_workingset(folio);
	folio_unlock(folio);
	folio_put(folio);
	return shadow;
}

/* A page of the working set that went lately comes back with what lies around it. */
static void cohort_rightsize_test_working_set(struct kunit *test)
{
	struct address_space *mapping = cohort_rightsize_test_file(test);
	struct file_ra_state ra = { .start = 3, .size = 32, .async_size = 8 };
	struct readahead_control ractl = { .mapping = mapping, .ra = &ra, ._index = 19 };
	void *shadow = cohort_rightsize_test_shadow(test);
	bool workingset = false, lately;

	cohort_rightsize_test_store(test, mapping, 19, shadow);
	lately = workingset_test_recent(shadow, true, &workingset, false) && workingset;
	cohort_read_around(&ractl);
	KUNIT_EXPECT_EQ(test, ra.size, lately ? 32 : COHORT_READ_AROUND);
	KUNIT_EXPECT_EQ(test, ra.start, lately ? 3 : 19);
	xa_destroy(&mapping->i_pages);
}

static struct kunit_case cohort_rightsize_test_cases[] = {
	KUNIT_CASE(cohort_rightsize_test_toggle),
#ifdef CONFIG_BUFFER_HEAD
	KUNIT_CASE(cohort_rightsize_test_buffer_heads),
#endif
	KUNIT_CASE(cohort_rightsize_test_long_run),
	KUNIT_CASE(cohort_rightsize_test_late),
	KUNIT_CASE(cohort_rightsize_test_aim),
	KUNIT_CASE(cohort_rightsize_test_boost),
	KUNIT_CASE(cohort_rightsize_test_shares_the_hook),
	KUNIT_CASE(cohort_rightsize_test_background),
	KUNIT_CASE(cohort_rightsize_test_late_role),
	KUNIT_CASE(cohort_rightsize_test_inherited_role),
	KUNIT_CASE(cohort_rightsize_test_read_around),
	KUNIT_CASE(cohort_rightsize_test_read_on),
	KUNIT_CASE(cohort_rightsize_test_working_set),
	{}
};

static struct kunit_suite cohort_rightsize_test_suite = {
	.name = "cohort_rightsize",
	.suite_init = cohort_rightsize_test_suite_init,
	.suite_exit = cohort_rightsize_test_suite_exit,
	.init = cohort_test_wait,
	.test_cases = cohort_rightsize_test_cases,
};

kunit_test_suite(cohort_rightsize_test_suite);
