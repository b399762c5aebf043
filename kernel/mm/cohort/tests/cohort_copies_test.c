// SPDX-License-Identifier: GPL-2.0
/*
 * Frames kept for contiguous pieces: sizes, pieces, and what comes back late or poisoned.
 * That copies are those of what a file has is tested by a guest with a file system.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/kthread.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/vmstat.h>

#include "../host/filemap.h"
#include "cohort_pcpa_test.h"

static struct cohort_copies_stat cohort_copies_test_look(void)
{
	struct cohort_copies_stat stat;

	cohort_copies_stats(&stat);
	return stat;
}

static int cohort_copies_test_end(void)
{
	return cohort_copies_resize(0, COHORT_ANY_BASE);
}

static void cohort_copies_test_sizes(struct kunit *test)
{
	u64 most = round_down(PFN_PHYS((u64)totalram_pages()) / 100 * 99, BLOCK_BYTES);

	KUNIT_EXPECT_EQ(test, cohort_copies_resize(BLOCK_BYTES / 2, COHORT_ANY_BASE), -EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_copies_resize(PFN_PHYS((u64)totalram_pages()) * 2,
						   COHORT_ANY_BASE), -EINVAL);
	KUNIT_EXPECT_EQ_MSG(test, cohort_copies_resize(most, COHORT_ANY_BASE), -ENOMEM,
			    "nothing would be left");
	KUNIT_EXPECT_FALSE(test, cohort_copies());
	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_TRUE(test, cohort_copies());
	KUNIT_EXPECT_EQ(test, cohort_copies_test_look().size, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_copies_resize(2 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_look().size, AREA_PAGES / 2);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
	KUNIT_EXPECT_FALSE(test, cohort_copies());
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(1, GFP_KERNEL));
}

static unsigned long cohort_copies_test_base(struct kunit *test)
{
	struct page *page = cohort_copies_piece(AREA_PAGES, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	cohort_copies_free(page, AREA_PAGES);
	return page_to_pfn(page);
}

/* The same size in another place: what devices do not reach is moved, or refused. */
static void cohort_copies_test_place(struct kunit *test)
{
	unsigned long old, base;
	int err;

	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	old = cohort_copies_test_base(test);
	KUNIT_EXPECT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, PFN_PHYS((u64)old)), 0);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_base(test), old);
	base = cohort_frames_find(NUMA_NO_NODE, AREA_PAGES, 0, ULONG_MAX);
	KUNIT_ASSERT_NE(test, base, 0UL);
	KUNIT_EXPECT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, PFN_PHYS((u64)base)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_base(test), old);
	cohort_frames_free(base, AREA_PAGES);
	/* Others may have taken some of it meanwhile. */
	err = cohort_copies_resize(4 * BLOCK_BYTES, PFN_PHYS((u64)base));
	KUNIT_EXPECT_TRUE(test, !err || err == -ENOMEM);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_base(test), err ? old : base);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
}

static void cohort_copies_test_pieces(struct kunit *test)
{
	struct page *page, *half;

	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(AREA_PAGES + 1, GFP_KERNEL));
	page = cohort_copies_piece(AREA_PAGES, GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, page_count(page + AREA_PAGES - 1), 1);
	KUNIT_EXPECT_NULL(test, memchr_inv(page_address(page + 7), 0, PAGE_SIZE));
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(1, GFP_KERNEL));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), -EBUSY);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_look().client, AREA_PAGES);
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(page, AREA_PAGES));
	half = cohort_copies_piece(AREA_PAGES / 2, GFP_KERNEL);
	page = cohort_copies_piece(AREA_PAGES / 2, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, half);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(half, AREA_PAGES / 2));
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(page, AREA_PAGES / 2));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
}

/* A driver still has a page that its client has given back. */
static void cohort_copies_test_late(struct kunit *test)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	page = cohort_copies_piece(AREA_PAGES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	get_page(page + 5);
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(page, AREA_PAGES));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_look().client, 1UL);
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(AREA_PAGES, GFP_KERNEL));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), -EBUSY);
	put_page(page + 5);
	page = cohort_copies_piece(AREA_PAGES, GFP_KERNEL);
	KUNIT_EXPECT_NOT_NULL(test, page);
	if (page)
		cohort_copies_free(page, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
}

/* With init_on_free=1 nothing of a client's is left, also where a frame comes back late. */
static void cohort_copies_test_wiped(struct kunit *test)
{
	unsigned long i, kept = 0;
	struct page *page;

	if (!want_init_on_free())
		kunit_skip(test, "no init_on_free=1");
	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	page = cohort_copies_piece(AREA_PAGES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	for (i = 0; i < AREA_PAGES; i++)
		memset(page_address(page + i), 0x5a, PAGE_SIZE);
	get_page(page + 5);
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(page, AREA_PAGES));
	KUNIT_EXPECT_NULL_MSG(test, memchr_inv(page_address(page + 5), 0x5a, PAGE_SIZE),
			      "a driver has lost its page");
	put_page(page + 5);
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(AREA_PAGES + 1, GFP_KERNEL));
	for (i = 0; i < AREA_PAGES; i++)
		kept += !!memchr_inv(page_address(page + i), 0, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, kept, 0UL);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
}

static void cohort_copies_test_poisoned(struct kunit *test)
{
	struct page *page, *bad;

	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	page = cohort_copies_piece(AREA_PAGES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	bad = page + 3;
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(page, AREA_PAGES));
	SetPageHWPoison(bad);
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(AREA_PAGES, GFP_KERNEL));
	page = cohort_copies_piece(AREA_PAGES / 2, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_TRUE(test, bad < page || bad >= page + AREA_PAGES / 2);
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(page, AREA_PAGES / 2));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_look().client, 0UL);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
	/* It has not been freed. */
	ClearPageHWPoison(bad);
	init_page_count(bad);
	__free_page(bad);
}

/* A page of a file that is said to be of a file system whose pages are copied. */
static struct folio *cohort_copies_test_file(struct kunit *test)
{
	static struct file_system_type ext4 = { .name = "ext4" };
	struct super_block *sb = kunit_kzalloc(test, sizeof(*sb), GFP_KERNEL);
	struct inode *inode = kunit_kzalloc(test, sizeof(*inode), GFP_KERNEL);
	struct folio *folio;

	if (want_init_on_free())
		kunit_skip(test, "init_on_free=1: nothing is copied");
	folio = folio_alloc(GFP_KERNEL | __GFP_ZERO, 0);
	KUNIT_ASSERT_NOT_NULL(test, sb);
	KUNIT_ASSERT_NOT_NULL(test, inode);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	sb->s_magic = EXT4_SUPER_MAGIC;
	sb->s_type = &ext4;
	inode->i_sb = sb;
	inode->i_mode = S_IFREG;
	address_space_init_once(&inode->i_data);
	inode->i_data.host = inode;
	folio->mapping = &inode->i_data;
	folio_lock(folio);
	return folio;
}

static void cohort_copies_test_file_end(struct folio *folio)
{
	folio->mapping = NULL;
	folio_clear_uptodate(folio);
	folio_unlock(folio);
	folio_put(folio);
}

/* It is evicted with this content; what another page has there does not matter. */
static void cohort_copies_test_evict(struct folio *folio, pgoff_t index, int content)
{
	memset(folio_address(folio), content, PAGE_SIZE);
	folio->index = index;
	folio_mark_uptodate(folio);
	cohort_copies_evict(folio->mapping, folio, true);
	memset(folio_address(folio), 0, PAGE_SIZE);
	folio_clear_uptodate(folio);
}

static bool cohort_copies_test_back(struct folio *folio, pgoff_t index, int content)
{
	folio->index = index;
	return cohort_copies_refault(folio) && folio_test_uptodate(folio) &&
	       !memchr_inv(folio_address(folio), content, PAGE_SIZE);
}

/* The frame that has this content in each byte. */
static struct page *cohort_copies_test_frame(struct page *first, int content)
{
	unsigned long i;

	for (i = 0; i < AREA_PAGES; i++)
		if (!memchr_inv(page_address(first + i), content, PAGE_SIZE))
			return first + i;
	return NULL;
}

/* A frame goes bad while it holds a copy: that is not read, and it holds no other. */
static void cohort_copies_test_bad_copy(struct kunit *test)
{
	struct folio *folio = cohort_copies_test_file(test);
	struct page *first, *bad;
	unsigned long i;

	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	first = cohort_copies_piece(AREA_PAGES, GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, first);
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(first, AREA_PAGES));
	cohort_copies_test_evict(folio, 1, 0x11);
	KUNIT_EXPECT_TRUE(test, cohort_copies_test_back(folio, 1, 0x11));
	KUNIT_EXPECT_FALSE_MSG(test, cohort_copies_refault(folio), "a copy is read once");
	cohort_copies_test_evict(folio, 2, 0x22);
	bad = cohort_copies_test_frame(first, 0x22);
	KUNIT_ASSERT_NOT_NULL(test, bad);
	SetPageHWPoison(bad);
	KUNIT_EXPECT_FALSE(test, cohort_copies_test_back(folio, 2, 0x22));
	KUNIT_EXPECT_FALSE(test, folio_test_uptodate(folio));
	for (i = 0; i < 2 * AREA_PAGES; i++)
		cohort_copies_test_evict(folio, i, 0x33);
	KUNIT_EXPECT_NULL(test, memchr_inv(page_address(bad), 0x22, PAGE_SIZE));
	KUNIT_EXPECT_TRUE(test, cohort_copies_test_back(folio, i - 1, 0x33));
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(AREA_PAGES, GFP_KERNEL));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
	cohort_copies_test_file_end(folio);
	/* It has not been freed. */
	ClearPageHWPoison(bad);
	init_page_count(bad);
	__free_page(bad);
}

/* A part that is cut off a page does not come back with a copy of the whole page. */
static void cohort_copies_test_cut(struct kunit *test)
{
	struct folio *folio = cohort_copies_test_file(test);
	struct address_space *mapping = folio->mapping;
	const loff_t page = PAGE_SIZE, part = PAGE_SIZE / 4;
	pgoff_t i;

	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	for (i = 0; i < 5; i++) {
		KUNIT_ASSERT_EQ(test, xa_err(xa_store_irq(&mapping->i_pages, i, xa_mk_value(0),
							  GFP_KERNEL)), 0);
		cohort_copies_test_evict(folio, i, 0x11 + i);
	}

	/* In a page; across a border, with no whole page; up to the end of the file. */
	truncate_inode_pages_range(mapping, page + part, page + 2 * part - 1);
	truncate_inode_pages_range(mapping, 2 * page + part, 3 * page + part - 1);
	truncate_inode_pages_range(mapping, 4 * page + part, -1);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_NOT_NULL_MSG(test, xa_load(&mapping->i_pages, i),
					  "the shadow of page %lu is gone", i);
	KUNIT_EXPECT_TRUE(test, cohort_copies_test_back(folio, 0, 0x11));
	for (i = 1; i < 5; i++)
		KUNIT_EXPECT_FALSE_MSG(test, cohort_copies_test_back(folio, i, 0x11 + i),
				       "the copy of page %lu is still there", i);

	/* The next eviction is copied again. */
	cohort_copies_test_evict(folio, 1, 0x66);
	KUNIT_EXPECT_TRUE(test, cohort_copies_test_back(folio, 1, 0x66));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
	xa_destroy(&mapping->i_pages);
	cohort_copies_test_file_end(folio);
}

struct cohort_copies_test_eviction {
	struct folio *folio;
	bool begun;
	struct completion done;
};

/* Another task may have seen the shadow for long when the copy is stored. */
static int cohort_copies_test_evict_late(void *arg)
{
	struct cohort_copies_test_eviction *eviction = arg;
	struct address_space *mapping = eviction->folio->mapping;

	xa_lock_irq(&mapping->i_pages);
	WRITE_ONCE(eviction->begun, true);
	mdelay(20);
	cohort_copies_test_evict(eviction->folio, 1, 0x11);
	xa_unlock_irq(&mapping->i_pages);
	complete(&eviction->done);
	return 0;
}

/* A cut beside an eviction waits for the copy, and forgets it. */
static void cohort_copies_test_cut_meets_eviction(struct kunit *test)
{
	struct cohort_copies_test_eviction eviction = { .begun = false };
	struct task_struct *thread;
	unsigned long stored;
	unsigned int cpu;

	if (num_online_cpus() == 1)
		kunit_skip(test, "one CPU");
	eviction.folio = cohort_copies_test_file(test);
	init_completion(&eviction.done);
	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	stored = cohort_copies_test_look().stored;
	migrate_disable();
	cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	thread = kthread_run_on_cpu(cohort_copies_test_evict_late, &eviction, cpu,
				    "cohort_copies_test/%u");
	while (!IS_ERR(thread) && !READ_ONCE(eviction.begun))
		cpu_relax();
	cohort_copies_cut(eviction.folio->mapping, 1);
	migrate_enable();
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	wait_for_completion(&eviction.done);
	KUNIT_EXPECT_GT(test, cohort_copies_test_look().stored, stored);
	KUNIT_EXPECT_FALSE_MSG(test, cohort_copies_refault(eviction.folio),
			       "what was cut off is back");
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
	cohort_copies_test_file_end(eviction.folio);
}

/* What a direct write makes stale is not there when it ends, and is not copied meanwhile. */
static void cohort_copies_test_direct_write(struct kunit *test)
{
	struct folio *folio = cohort_copies_test_file(test);
	struct address_space *mapping = folio->mapping;

	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	cohort_copies_test_evict(folio, 1, 0x11);
	cohort_copies_test_evict(folio, 2, 0x22);
	cohort_copies_test_evict(folio, 3, 0x33);
	KUNIT_ASSERT_EQ(test, xa_err(xa_store_irq(&mapping->i_pages, 2, xa_mk_value(0),
						  GFP_KERNEL)), 0);
	atomic_inc(&mapping->host->i_dio_count);
	KUNIT_EXPECT_TRUE(test, cohort_copies_test_back(folio, 1, 0x11));
	cohort_copies_test_evict(folio, 1, 0x11);
	KUNIT_EXPECT_TRUE(test, cohort_cached(mapping, 2 * PAGE_SIZE + 1, 1));
	atomic_dec(&mapping->host->i_dio_count);
	KUNIT_EXPECT_FALSE_MSG(test, cohort_copies_test_back(folio, 1, 0x11),
			       "it was copied during a direct write");
	KUNIT_EXPECT_FALSE_MSG(test, cohort_copies_test_back(folio, 2, 0x22),
			       "it was written to");
	KUNIT_EXPECT_TRUE(test, cohort_copies_test_back(folio, 3, 0x33));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
	xa_destroy(&mapping->i_pages);
	cohort_copies_test_file_end(folio);
}

/* Between a page that came of a copy and its reader's look at it they are switched off. */
static void cohort_copies_test_off_meanwhile(struct kunit *test)
{
	struct folio *folio = cohort_copies_test_file(test);

	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	cohort_copies_test_evict(folio, 1, 0x11);
	KUNIT_EXPECT_TRUE(test, cohort_copies_test_back(folio, 1, 0x11));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
	KUNIT_EXPECT_EQ_MSG(test, cohort_copies_filled(folio, false), -EEXIST, "it is read again");
	if (!folio_test_locked(folio))
		folio_lock(folio);
	cohort_copies_test_file_end(folio);
}

/* The number of ext4's super block is that of ext2's driver, too. */
static void cohort_copies_test_other_driver(struct kunit *test)
{
	static struct file_system_type ext2 = { .name = "ext2" };
	struct folio *folio = cohort_copies_test_file(test);

	folio->mapping->host->i_sb->s_type = &ext2;
	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	cohort_copies_test_evict(folio, 1, 0x11);
	KUNIT_EXPECT_FALSE(test, cohort_copies_test_back(folio, 1, 0x11));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
	cohort_copies_test_file_end(folio);
}

static unsigned long cohort_copies_test_refaults(struct kunit *test)
{
	unsigned long *sums = kunit_kcalloc(test, NR_VM_EVENT_ITEMS, sizeof(*sums), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sums);
	all_vm_events(sums);
	return sums[COHORT_PCPA_REFAULT];
}

/* What a quick reclaim dropped is no refault if it comes back from a copy: nothing is read. */
static void cohort_copies_test_no_refault(struct kunit *test)
{
	struct folio *folio = cohort_copies_test_file(test);
	unsigned long before;

	KUNIT_ASSERT_EQ(test, cohort_pcpa_test_begin(test), 0);
	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	before = cohort_copies_test_refaults(test);
	cohort_trail_note(folio->mapping, 7);
	cohort_copies_test_evict(folio, 7, 0x77);
	__cohort_pcpa_refault(folio);
	KUNIT_EXPECT_TRUE(test, folio_test_uptodate(folio));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_refaults(test), before);
	cohort_trail_note(folio->mapping, 7);
	__cohort_pcpa_refault(folio);
	KUNIT_EXPECT_GT(test, cohort_copies_test_refaults(test), before);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
	cohort_copies_test_file_end(folio);
	cohort_pcpa_test_end(test);
}

static struct kunit_case cohort_copies_test_cases[] = {
	KUNIT_CASE(cohort_copies_test_sizes),
	KUNIT_CASE(cohort_copies_test_place),
	KUNIT_CASE(cohort_copies_test_pieces),
	KUNIT_CASE(cohort_copies_test_late),
	KUNIT_CASE(cohort_copies_test_wiped),
	KUNIT_CASE(cohort_copies_test_poisoned),
	KUNIT_CASE(cohort_copies_test_bad_copy),
	KUNIT_CASE(cohort_copies_test_cut),
	KUNIT_CASE(cohort_copies_test_cut_meets_eviction),
	KUNIT_CASE(cohort_copies_test_direct_write),
	KUNIT_CASE(cohort_copies_test_off_meanwhile),
	KUNIT_CASE(cohort_copies_test_other_driver),
	KUNIT_CASE(cohort_copies_test_no_refault),
	{}
};

static struct kunit_suite cohort_copies_test_suite = {
	.name = "cohort_copies",
	.test_cases = cohort_copies_test_cases,
};
kunit_test_suite(cohort_copies_test_suite);
